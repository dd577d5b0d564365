"""Whatever is imported, withdrawn, restored, marked as broken and renamed, in whatever order: a study agrees with one that never had what is gone."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings, strategies as st

from evalcore.errors import ImportFailed
from evalcore.reading import assigning, reviewing
from evalcore.reading.assigning import Choice
from evalcore.reading.assignment_queries import Planned
from evalcore.study import frames, mending, store
from evalcore.study.acting import prepare_search
from evalcore.study.auditing import verify
from evalcore.study.contents import people
from evalcore.study.db import open_study, reading, writing
from evalcore.study.schema import Administrator, Label, RaterKind, Role, Stage, Verdict
from tests import acuity_files as acuity
from tests.invented import bring, entry, example, judged, lines, results, rows, write
from tests.mended import differences, shown

ANA = Administrator(name="Ana Ruiz")
Step = tuple[str, ...]
A, B = (f"healthbench_{model}_20260101_101010_allresults.json" for model in ("model-a", "model-b"))
READS = "example_id,model,sample_index,criterion_position,rater,label,explanation\n"
FILES = {
    "examples.jsonl": lines(example("p1"), example("p2"), example("p3")),
    "hard.jsonl": lines(example("p2"), example("p3")),
    A: results(entry("p1"), entry("p2", (True, False, False), answer="Go today.")),
    B: results(entry("p2"), entry("p3", (False, False, True), answer="Wait.")),
    "judge.jsonl": lines(judged("p1"), judged("p1", position=2, met=False), judged("p2", met=False)),
    "judge_again.jsonl": lines(judged("p1", met=False), judged("p2", met=False)),
    "reads.csv": f"{READS}p1,model-a,0,1,Dr. Vale,met,\np1,model-a,0,2,Dr. Vale,met,\np2,model-a,0,3,Dr. Okri,not_met,no\n".encode(),
    "reads_again.csv": f"{READS}p1,model-a,0,1,Dr. Vale,not_met,sweats\n".encode(),
    "cases.csv": acuity.table(acuity.case("1"), acuity.case("2", "A", "B", normalized_prompt_text="My leg hurts.")),
    "answers.csv": acuity.table(
        acuity.prediction(), acuity.prediction(case_id="clinic_2", level="B", text="See a doctor.")
    ),
    "levels.csv": acuity.table(acuity.prediction(level="C", rater="Judge C", text=""), acuity.prediction(level="B")),
    "matrix.csv": acuity.table(*acuity.matrix([[1, 2, 3, 4]] * 4)),
}
OTHERS = {"model-a": ("model", "Alder"), "model-b": ("model", "Briar"), "Judge A": ("judge", "Magpie"), "Judge B": ("judge", "Jay"), "healthbench": ("dataset", "hb")}  # fmt: skip


class History:
    """A study with what was done to it: what counts of that, in its order, and what is gone."""

    def __init__(self, url: str, folder: Path, called: dict[str, str] | None = None) -> None:
        self.engine = open_study(url)
        with writing(self.engine) as session:
            store.ensure_study(session)
            for name in ("Dr. Sol", "Dr. Rune"):
                store.add_person(session, name, roles=[Role.REVIEWER, Role.ADJUDICATOR], actor="set-up")
        self.folder, self.called = folder, called or {}
        self.kept: list[Step] = []
        self.gone: set[str] = set()
        self.broken: set[str] = set()

    def do(self, act: str, *what: str) -> None:
        """One step, where it can be done."""
        getattr(self, f"_{act}")(*what)

    def _import(self, name: str) -> None:
        content, told = FILES[name], name
        for was, now in self.called.items():  # as if it had always been called so
            content = (
                content.replace(f'"{was}"'.encode(), f'"{now}"'.encode()) if isinstance(content, bytes) else content
            )
            content = (
                content.replace(f",{was},".encode(), f",{now},".encode()) if isinstance(content, bytes) else content
            )
            told = told.replace(f"_{was}_", f"_{now}_").replace(f"{was}_", f"{now}_") if was != "Judge A" else told
        options = {"judge": self.called.get("Judge A", "Judge A"), "dataset": self.called.get("healthbench")}
        options = options if name not in ("cases.csv", "answers.csv", "levels.csv", "matrix.csv") else {}
        try:
            report = bring(self.engine, write(self.folder / told, content), **options)
        except ImportFailed:  # nothing there that it fits, or it was withdrawn
            return
        if not report.adds_nothing and not report.already_imported:
            self.kept.append(("import", name))

    def _number(self, name: str) -> int:
        return int(next(iter(rows(self.engine, f"SELECT id FROM file_import WHERE name = '{name}'")))[0])

    def _withdraw(self, name: str) -> None:
        if ("import", name) in self.kept and name not in self.gone:
            mending.withdraw(self.engine, self._number(name), reason="the wrong file", actor=ANA)
            self.gone.add(name)

    def _restore(self, name: str) -> None:
        if name in self.gone:
            mending.restore(self.engine, self._number(name), actor=ANA)
            self.gone.remove(name)

    def _response(self, prompt_id: str = "p1") -> tuple[int, int, int] | None:
        """Example, response of model-a, and first criterion, as the study shows them."""
        with reading(self.engine) as session:
            responses, criteria = frames.responses(session), frames.criteria(session)
        model = self.called.get("model-a", "model-a")
        found = responses[responses["prompt_id"].eq(prompt_id) & responses["model"].eq(model)]
        if found.empty:
            return None
        first = criteria[criteria["example_id"].eq(found["example_id"].iloc[0]) & criteria["position"].eq(1)]
        return int(found["example_id"].iloc[0]), int(found["response_id"].iloc[0]), int(first["criterion_id"].iloc[0])

    def _read(self, name: str) -> None:
        """A physician's read of the first criterion, where they have not read it."""
        if (item := self._response()) is None:
            return
        with writing(self.engine) as session:
            rater = store.ensure_rater(session, RaterKind.REVIEWER, name)
            given = frames.verdicts(session)
            if (given["rater_id"].eq(rater) & given["criterion_id"].eq(item[2])).any():
                return
            said = dict(zip(("example_id", "response_id", "criterion_id"), item, strict=True))
            verdict = Verdict(
                rater_id=rater, stage=Stage.FIRST, label=Label.NOT_MET, explanation="Night sweats.", **said
            )
            store.add_verdicts(session, [verdict], actor=name, action="verdicts made")
        self.kept.append(("read", name))

    def _assign(self) -> None:
        """Have Dr. Sol and Dr. Rune read model-a's answer to p1, and the first of them open it."""
        if self._response() is None or ("assign",) in self.kept:
            return
        plan = (Planned("p1", self.called.get("model-a", "model-a"), 0, 1.0),)
        assigning.assign(self.engine, Choice(plan=plan, n_readers=2, seed=1), actor=ANA)
        with reading(self.engine) as session:
            reader = next(person for person in people(session) if person.name == "Dr. Rune")
        reviewing.take(self.engine, reader)
        self.kept.append(("assign",))

    def _look(self) -> None:
        shown(self.engine)


def twin(history: History, folder: Path, called: dict[str, str]) -> dict[str, list[str]]:
    """What a study shows that never had what is gone, and always had the names of now."""
    other = History(f"sqlite:///{folder}/twin.db", folder, called)
    for act, *what in history.kept:
        if not history.gone.intersection(what):
            other.do(act, *what)
    prepare_search(other.engine)
    found = shown(other.engine)
    other.engine.dispose()
    return found


def held(url: str, steps: Sequence[Step], called: dict[str, str] | None = None) -> None:
    with tempfile.TemporaryDirectory() as folder:
        history = History(url, Path(folder))
        try:
            for step in steps:
                history.do(*step)
            prepare_search(history.engine)
            found = shown(history.engine)
            expected = twin(history, Path(folder), called or {})
            assert found == expected, differences(found, expected)
            with reading(history.engine) as session:
                assert verify(session).sentence.startswith("The audit trail holds")
        finally:
            history.engine.dispose()


FILE = st.sampled_from(list(FILES))
STEPS = st.one_of(
    st.tuples(st.just("import"), FILE),
    st.tuples(st.just("import"), FILE),
    st.tuples(st.just("withdraw"), FILE),
    st.tuples(st.just("restore"), FILE),
    st.tuples(st.just("read"), st.sampled_from(["Dr. Vale", "Dr. Sol"])),
    st.just(("look",)),
    st.just(("assign",)),
)


@pytest.mark.slow  # the histories below are a few of these, on both databases
@given(st.lists(STEPS, min_size=3, max_size=12))
@settings(max_examples=8, phases=[Phase.explicit, Phase.reuse, Phase.generate])  # shrunk by hand in less time
def test_a_study_agrees_with_one_that_never_had_what_was_withdrawn(steps):
    with tempfile.TemporaryDirectory() as folder:
        held(f"sqlite:///{folder}/study.db", steps)


def imports(*names: str) -> list[Step]:
    return [("import", name) for name in names]


HISTORIES: dict[str, list[Step]] = {
    "examples that results brought too stay": [*imports("examples.jsonl", A, B), ("withdraw", "examples.jsonl")],
    "a verdict that took another's place gives it back": [
        *imports("examples.jsonl", A, "judge.jsonl", "judge_again.jsonl"), ("look",), ("withdraw", "judge_again.jsonl"),
    ],
    "a later verdict stands without the one before it": [
        *imports("examples.jsonl", A, "judge.jsonl", "judge_again.jsonl"), ("withdraw", "judge.jsonl"),
    ],
    "who was imported by mistake reads for themselves": [
        *imports("examples.jsonl", A, "reads.csv", "reads_again.csv"), ("withdraw", "reads_again.csv"), ("withdraw", "reads.csv"), ("read", "Dr. Vale"),
    ],
    "work on what is withdrawn leaves, and comes back": [
        *imports("examples.jsonl", A, B), ("assign",), ("read", "Dr. Sol"), ("withdraw", A), ("look",), ("restore", A),
    ],
    "work on what is withdrawn leaves": [*imports("examples.jsonl", A, B), ("assign",), ("read", "Dr. Sol"), ("withdraw", A)],
    "cases, answers and levels": [
        *imports("cases.csv", "answers.csv", "levels.csv", "matrix.csv"), ("withdraw", "levels.csv"), ("withdraw", "matrix.csv"),
    ],
}  # fmt: skip


@pytest.mark.slow_on_postgresql
@pytest.mark.parametrize("steps", HISTORIES.values(), ids=HISTORIES)
def test_what_was_withdrawn_leaves_on_both_databases(database_url, steps):
    held(database_url, steps)
