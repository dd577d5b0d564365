"""Whatever is imported, withdrawn, restored, marked as broken, renamed, merged and frozen, in whatever order: a study agrees with one that never had what is gone."""

import tempfile
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, Phase, given, settings, strategies as st

from evalcore.errors import Frozen, ImportFailed, OverreadError
from evalcore.reading import assigning, reviewing
from evalcore.reading.assigning import Choice
from evalcore.reading.assignment_queries import Planned
from evalcore.study import frames, freezing, store
from evalcore.study.acting import prepare_search
from evalcore.study.audit.chain import verify
from evalcore.study.contents import people
from evalcore.study.corrections import mending, renaming
from evalcore.study.corrections.renaming import Kind
from evalcore.study.db import open_study, reading, writing
from evalcore.study.schema import Administrator, Broken, Label, RaterKind, Role, Stage, Verdict
from tests import acuity_files as acuity
from tests.invented import bring, entry, example, judged, lines, results, rows, write
from tests.mended import differences, shown

ANA = Administrator(name="Ana Ruiz")
Step = tuple[Any, ...]
A, B, C = (f"healthbench_{model}_20260101_101010_allresults.json" for model in ("model-a", "model-b", "model-c"))
READS = "example_id,model,sample_index,criterion_position,rater,label,explanation\n"
FILES = {
    "examples.jsonl": lines(example("p1"), example("p2"), example("p3")),
    "hard.jsonl": lines(example("p2"), example("p3")),
    A: results(entry("p1"), entry("p2", (True, False, False), answer="Go today.")),
    B: results(entry("p2"), entry("p3", (False, False, True), answer="Wait.")),
    C: results(entry("p3", (True, True, False), answer="Sit down.")),
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
WITHOUT = {"p1": results(entry("p2", (True, False, False), answer="Go today.")), "p2": results(entry("p1"))}
"""The file A without model-a's answer to an example."""
NAMES = [
    (Kind.MODEL, "model-a", "Alder"),
    (Kind.MODEL, "model-b", "Briar"),
    (Kind.JUDGE, "Judge A", "Magpie"),
    (Kind.DATASET, "healthbench", "hb"),
]
MERGED = [(Kind.MODEL, "model-c", "model-a"), (Kind.JUDGE, "Judge C", "Judge A")]


class History:
    """A study with what was done to it: what counts of that, in its order, and what is gone."""

    def __init__(
        self, url: str, folder: Path, called: dict[str, str] | None = None, lacks: Collection[str] = ()
    ) -> None:
        self.engine = open_study(url)
        with writing(self.engine) as session:
            store.ensure_study(session)
            for name in ("Dr. Sol", "Dr. Rune"):
                store.add_person(session, name, roles=[Role.REVIEWER, Role.ADJUDICATOR], actor="set-up")
        self.folder, self.called, self.lacks = folder, called or {}, lacks
        self.kept: list[Step] = []
        self.gone: set[str] = set()
        self.broken: set[str] = set()
        self.names: dict[tuple[Kind, str], str] = {}
        self.is_frozen = False

    def do(self, act: str, *what: str) -> None:
        """One step, where it can be done; of a frozen study none can that changes anything."""
        before = [*self.kept]
        try:
            getattr(self, f"_{act}")(*what)
        except Frozen:
            assert self.is_frozen
            assert self.kept == before

    def _import(self, name: str) -> None:
        content, told = WITHOUT[next(iter(self.lacks))] if name == A and self.lacks else FILES[name], name
        if name == A and len(self.lacks) == len(WITHOUT):
            return
        for was, now in self.called.items():  # as if it had always been called so
            content = (
                content.replace(f'"{was}"'.encode(), f'"{now}"'.encode()) if isinstance(content, bytes) else content
            )
            content = (
                content.replace(f",{was},".encode(), f",{now},".encode()) if isinstance(content, bytes) else content
            )
            told = told.replace(f"_{was}_", f"_{now}_").replace(f"{was}_", f"{now}_") if was != "Judge A" else told
        dataset = self.called.get("healthbench")
        if (
            dataset and name == "hard.jsonl"
        ):  # a data set that is stated states its subset too: the file's name is not asked
            dataset = f"{dataset}_hard"
        options = {"judge": self.called.get("Judge A", "Judge A"), "dataset": dataset}
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
        if ("import", name) in self.kept and name not in self.gone and not (self.broken and name == "examples.jsonl"):
            mending.withdraw(self.engine, self._number(name), reason="the wrong file", actor=ANA)
            self.gone.add(name)

    def _restore(self, name: str) -> None:
        if name in self.gone:
            mending.restore(self.engine, self._number(name), actor=ANA)
            self.gone.remove(name)

    def _freeze(self) -> None:
        if not self.is_frozen:
            freezing.freeze(self.engine, actor=ANA)
            self.is_frozen = True

    def _amend(self) -> None:
        if self.is_frozen:
            freezing.amend(
                self.engine, f"version {len(self.kept)}-{len(self.names)}-{uuid4()}"[:60], "more to do", actor=ANA
            )
            self.is_frozen = False

    def _break(self, prompt_id: str) -> None:
        """Mark model-a's answer as broken, as long as the example itself came with another file; not both: a model of which all is broken stays in the lists."""
        if (
            not self.broken - {prompt_id}
            and ("import", "examples.jsonl") in self.kept
            and "examples.jsonl" not in self.gone
            and (found := self._response(prompt_id))
        ):
            mending.mark_broken(self.engine, found[1], Broken.EMPTY, actor=ANA)
            self.broken.add(prompt_id)

    def _count_again(self, prompt_id: str) -> None:
        if prompt_id in self.broken and A not in self.gone:
            with reading(self.engine) as session:
                marked = mending.broken(session).set_index("prompt_id")["response_id"]
            mending.mark_broken(self.engine, int(marked[prompt_id]), None, actor=ANA)
            self.broken.discard(prompt_id)

    def _rename(self, kind: Kind, first: str, name: str) -> None:
        """Give what came by a name another one, or merge it with what came by that."""
        now, target = self.names.get((kind, first), first), self.names.get((kind, name), name)
        with reading(self.engine) as session:
            known = renaming.names(session, kind)
        is_merge = (kind, first, name) in MERGED
        if now in known and now != target and (target in known) is is_merge:
            try:
                renaming.rename(self.engine, kind, now, target, merge=is_merge, actor=ANA)
            except OverreadError as refusal:
                if isinstance(refusal, Frozen) or "cannot be told from" not in str(refusal):
                    raise
                return
            self.names |= {key: target for key, called in self.names.items() if key[0] is kind and called == now}
            self.names[kind, first] = target

    def _name_back(self, kind: Kind, first: str) -> None:
        if (kind, first) in self.names:
            renaming.take_back(self.engine, kind, first, actor=ANA)
            del self.names[kind, first]

    def _response(self, prompt_id: str = "p1") -> tuple[int, int, int] | None:
        """Example, response of model-a, and first criterion, as the study shows them."""
        with reading(self.engine) as session:
            responses, criteria = frames.responses(session), frames.criteria(session)
        model = self.names.get((Kind.MODEL, "model-a"), self.called.get("model-a", "model-a"))
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
        model = self.names.get((Kind.MODEL, "model-a"), self.called.get("model-a", "model-a"))
        plan = (Planned("p1", model, 0, 1.0),)
        assigning.assign(self.engine, Choice(plan=plan, n_readers=2, seed=1), actor=ANA)
        with reading(self.engine) as session:
            reader = next(person for person in people(session) if person.name == "Dr. Rune")
        reviewing.take(self.engine, reader)
        self.kept.append(("assign",))

    def _look(self) -> None:
        shown(self.engine)


def twin(history: History, folder: Path, called: dict[str, str]) -> dict[str, list[str]]:
    """What a study shows that never had what is gone or broken, and always had the names of now."""
    called = called | {first: name for (_, first), name in history.names.items()}
    other = History(f"sqlite:///{folder}/twin.db", folder, called, sorted(history.broken))
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


FILE, PROMPT = st.sampled_from(list(FILES)), st.sampled_from(["p1", "p2"])
STEPS = st.one_of(
    st.tuples(st.just("import"), FILE),
    st.tuples(st.just("import"), FILE),
    st.tuples(st.just("withdraw"), FILE),
    st.tuples(st.just("restore"), FILE),
    st.tuples(st.just("read"), st.sampled_from(["Dr. Vale", "Dr. Sol"])),
    st.just(("look",)),
    st.just(("assign",)),
    st.tuples(st.just("break"), PROMPT),
    st.tuples(st.just("count_again"), PROMPT),
    st.sampled_from([("rename", *what) for what in (*NAMES, *MERGED)]),
    st.sampled_from([("name_back", kind, first) for kind, first, _ in (*NAMES, *MERGED)]),
    st.sampled_from([("freeze",), ("amend",), ("amend",)]),
)
BEGUN = [("import", name) for name in ("examples.jsonl", A, C, "judge.jsonl", "levels.csv")]
HISTORY = st.lists(STEPS, min_size=3, max_size=12).map(lambda steps: [*BEGUN, *steps]) | st.lists(
    STEPS, min_size=3, max_size=12
)


FEW = {"deadline": None, "phases": [Phase.explicit, Phase.reuse, Phase.generate]}  # shrunk by hand in less time


@pytest.mark.slow  # each day: the two histories below, and those of test_mending.py
@given(steps=HISTORY)
@settings(max_examples=12, **FEW)
def test_a_study_agrees_with_one_that_never_had_what_is_gone_and_always_had_its_names(steps):
    with tempfile.TemporaryDirectory() as folder:
        held(f"sqlite:///{folder}/study.db", steps)


@pytest.mark.slow
@given(steps=HISTORY)
@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture], **FEW)
def test_so_it_does_on_postgresql(steps, postgres_spare):
    try:
        held(postgres_spare.take(), steps)
    finally:
        postgres_spare.give_back()


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
    "a subset is found in a data set with another name": [*imports("hard.jsonl"), ("rename", Kind.DATASET, "healthbench", "hb")],
    "cases, answers and levels": [
        *imports("cases.csv", "answers.csv", "levels.csv", "matrix.csv"), ("withdraw", "levels.csv"), ("withdraw", "matrix.csv"),
    ],
}  # fmt: skip


EVERYDAY = (
    "a verdict that took another's place gives it back", "work on what is withdrawn leaves, and comes back",
    "a subset is found in a data set with another name",
)  # fmt: skip
"""The others are drawn by the property above too."""


@pytest.mark.slow_on_postgresql
@pytest.mark.parametrize(
    "steps",
    [pytest.param(s, id=name, marks=[] if name in EVERYDAY else [pytest.mark.slow]) for name, s in HISTORIES.items()],
)
def test_what_was_withdrawn_leaves_on_both_databases(database_url, steps):
    held(database_url, steps)
