"""Whatever is imported, withdrawn, restored and marked as broken, in whatever order: a study agrees with one that never had what is gone."""

import tempfile
from itertools import count
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings, strategies as st

from evalcore.errors import ImportFailed
from evalcore.study import mending
from evalcore.study.acting import prepare_search
from evalcore.study.auditing import verify
from evalcore.study.db import open_study, reading, writing
from evalcore.study.schema import Administrator, Broken, Label, RaterKind, Stage, Verdict
from evalcore.study import store
from tests import acuity_files as acuity
from tests.invented import bring, entry, example, judged, lines, results, rows, write
from tests.mended import differences, shown

ANA = Administrator(name="Ana Ruiz")
RESULT = "healthbench_{model}_20260101_101010_allresults.json"
READS = "example_id,model,sample_index,criterion_position,rater,label,explanation\n"
FILES = {
    "examples.jsonl": lines(example("p1"), example("p2"), example("p3")),
    "hard.jsonl": lines(example("p2"), example("p3")),
    RESULT.format(model="model-a"): results(entry("p1"), entry("p2", (True, False, False), answer="Go today.")),
    RESULT.format(model="model-b"): results(entry("p2"), entry("p3", (False, False, True), answer="Wait.")),
    "judge.jsonl": lines(judged("p1"), judged("p1", position=2, met=False), judged("p2", met=False)),
    "judge_again.jsonl": lines(judged("p1", met=False), judged("p2", met=False)),
    "reads.csv": f"{READS}p1,model-a,0,1,Dr. Vale,met,\np1,model-a,0,2,Dr. Vale,met,\np2,model-a,0,3,Dr. Okri,not_met,no\n".encode(),
    "reads_again.csv": f"{READS}p1,model-a,0,1,Dr. Vale,not_met,sweats\n".encode(),
    "cases.csv": acuity.table(acuity.case("1"), acuity.case("2", "A", "B", normalized_prompt_text="My leg hurts.")),
    "answers.csv": acuity.table(acuity.prediction(), acuity.prediction(case_id="clinic_2", level="B", text="See a doctor.")),
    "levels.csv": acuity.table(acuity.prediction(level="C", rater="Judge C", text=""), acuity.prediction(level="B")),
    "matrix.csv": acuity.table(*acuity.matrix([[1, 2, 3, 4]] * 4)),
}
NAMES = list(FILES)
STEPS = st.one_of(
    st.tuples(st.just("import"), st.sampled_from(NAMES)),
    st.tuples(st.just("import"), st.sampled_from(NAMES)),
    st.tuples(st.just("withdraw"), st.sampled_from(NAMES)),
    st.tuples(st.just("restore"), st.sampled_from(NAMES)),
    st.tuples(st.just("read"), st.sampled_from(["Dr. Vale", "Dr. Sol"])),
    st.tuples(st.just("look"), st.just("")),
)


class History:
    """A study with what was done to it, and the names of the files that it has now, in the order of their imports."""

    def __init__(self, url: str, folder: Path) -> None:
        self.engine = open_study(url)
        with writing(self.engine) as session:
            store.ensure_study(session)
        self.folder = folder
        self.kept: list[tuple[str, str]] = []
        self.gone: set[str] = set()

    def do(self, act: str, name: str) -> None:
        """One step, where it can be done."""
        getattr(self, f"_{act}")(name)

    def _import(self, name: str) -> None:
        try:
            report = bring(self.engine, write(self.folder / name, FILES[name]))
        except ImportFailed as failed:
            assert name in self.gone or "not in the study" in str(failed) or "no response" in str(failed) or "fit" in str(failed), failed
            return
        if not report.adds_nothing and not report.already_imported:
            self.kept.append(("import", name))

    def _number(self, name: str) -> int | None:
        return next(iter(rows(self.engine, f"SELECT id FROM file_import WHERE name = '{name}'")), (None,))[0]

    def _withdraw(self, name: str) -> None:
        if ("import", name) in self.kept and name not in self.gone:
            mending.withdraw(self.engine, self._number(name) or 0, reason="the wrong file", actor=ANA)
            self.gone.add(name)

    def _restore(self, name: str) -> None:
        if name in self.gone:
            mending.restore(self.engine, self._number(name) or 0, actor=ANA)
            self.gone.remove(name)

    def _read(self, name: str) -> None:
        """A physician's read of the first criterion of model-a's answer to p1, where it is shown, and they have not read it."""
        with reading(self.engine) as session:
            from evalcore.study import frames

            given = frames.verdicts(session)
            items = frames.responses(session).merge(frames.criteria(session).drop(columns="example_id").iloc[:0], how="cross")
            del items
            shown_responses = frames.responses(session).query("prompt_id == 'p1' and model == 'model-a'")
            criteria = frames.criteria(session)
        if shown_responses.empty or not given.query(f"prompt_id == 'p1' and rater == '{name}'").empty:
            return
        row = shown_responses.iloc[0]
        of_example = criteria.query(f"example_id == {row['example_id']} and position == 1")
        if of_example.empty:
            return
        with writing(self.engine) as session:
            rater = store.ensure_rater(session, RaterKind.REVIEWER, name)
            verdict = Verdict(
                example_id=int(row["example_id"]), response_id=int(row["response_id"]), criterion_id=int(of_example["criterion_id"].iloc[0]),
                rater_id=rater, stage=Stage.FIRST, label=Label.NOT_MET,
            )  # fmt: skip
            store.add_verdicts(session, [verdict], actor=name, action="verdicts made")
        self.kept.append(("read", name))

    def _look(self, _name: str) -> None:
        shown(self.engine)


def twin(history: History, folder: Path) -> dict[str, list[str]]:
    """What a study shows that never had what is gone."""
    other = History(f"sqlite:///{folder}/twin.db", folder)
    for act, name in history.kept:
        if name not in history.gone:
            other.do(act, name)
    prepare_search(other.engine)
    found = shown(other.engine)
    other.engine.dispose()
    return found


def held(url: str, steps: list[tuple[str, str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        history = History(url, Path(folder))
        try:
            for step in steps:
                history.do(*step)
            prepare_search(history.engine)
            found = shown(history.engine)
            assert found == (expected := twin(history, Path(folder))), differences(found, expected)
            with reading(history.engine) as session:
                assert verify(session).holds
        finally:
            history.engine.dispose()


_numbers = count()


@given(st.lists(STEPS, min_size=3, max_size=14))
@settings(max_examples=15, phases=[Phase.explicit, Phase.reuse, Phase.generate])  # a history is shrunk by hand in less time
def test_a_study_agrees_with_one_that_never_had_what_was_withdrawn(steps):
    with tempfile.TemporaryDirectory() as folder:
        held(f"sqlite:///{folder}/study.db", steps)
