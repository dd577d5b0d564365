"""A frozen study: every act is refused with one sentence, what looks and comes in is still written, and an amendment is a version with a name."""

import hashlib
import io
import json
import re
import threading
import zipfile
from pathlib import Path

import pytest

from evalcore.errors import AlreadyChanged, Frozen, NotAllowed, OverreadError
from evalcore.export import bundle, methods, tables as export_tables
from evalcore.importing import import_file
from evalcore.reading import (
    adjudication,
    amending,
    assigning,
    exposing,
    overriding,
    practice,
    queries,
    registering,
    reviewing,
    threads,
)
from evalcore.reading.assigning import Choice
from evalcore.runs import acts as runs
from evalcore.study import acting, analysis, freezing, store
from evalcore.study.audit.chain import verify
from evalcore.study.db import reading, writing
from evalcore.study.schema import Administrator, Label, NoteKind, Role, Rules
from evalcore.team import people
from evalcore.triage import acts as triage
from tests import world
from tests.world import after, answer, assigned, submitted

IMANI, TOVE = "Dr. Imani Noor", "Dr. Tove Lind"
LEAD = Administrator(name="Ana Ruiz")
STAYS = (
    "verdict", "row_hash", "assignment", "assignment_reader", "task", "mark", "response_note", "guideline", "analysis", "model_family", "example",
    "response", "criterion", "rater", "imported_file",
)  # fmt: skip


def dump(small):
    """All that a number rests on."""
    return {table: sorted(map(repr, world.rows(small.engine, f"SELECT * FROM {table}"))) for table in STAYS}


def acts(small, number, file):
    """Acts of every kind, by what they are called."""
    engine, imani = small.engine, small.viewer(IMANI)
    key = small.criteria[0][0]
    return {
        "take": lambda: reviewing.take(engine, small.viewer(TOVE), at=after(1)),
        "mark": lambda: reviewing.mark(engine, imani, number, key, Label.MET, at=after(1)),
        "undo": lambda: reviewing.undo_mark(engine, imani, number, at=after(1)),
        "submit": lambda: reviewing.submit(engine, imani, number, at=after(1)),
        "skip": lambda: threads.tell(engine, imani, number, "cut off", skip=True, at=after(1)),
        "answer": lambda: threads.reply(engine, LEAD, 1, imani.person_id, NoteKind.ANSWER, "yes", seen=1),
        "practise": lambda: practice.practise(engine, imani, 1, 1, {}),
        "override": lambda: overriding.give_verdict(
            engine, imani, **small.item(), decision=reviewing.Decision("not_met"), judge=world.JUDGE, seen=None
        ),
        "settle": lambda: adjudication.settle(engine, imani, (1, 1), []),
        "assign": lambda: assigning.assign(engine, Choice(seed=1), actor=LEAD),
        "cancel": lambda: amending.cancel(engine, 1, "enough", actor=LEAD),
        "hand over": lambda: amending.hand_over(engine, IMANI, TOVE, actor=LEAD),
        "freeze a queue": lambda: registering.freeze_queue(engine, 1, actor=LEAD),
        "guideline": lambda: acting.set_guideline(engine, "Read.", actor=LEAD),
        "rules": lambda: acting.set_rules(engine, Rules(), actor=LEAD),
        "analysis": lambda: acting.state_analysis(engine, analysis.Analysis(settled=True), actor=LEAD),
        "families": lambda: acting.set_families(engine, [("x", "Y")], actor=LEAD),
        "import": lambda: import_file(engine, file, actor=LEAD),
        "stop a run": lambda: runs.stop(engine, 1, actor=LEAD),
        "triage settings": lambda: triage.set_triage_settings(engine, None, actor=LEAD),
        "release": lambda: exposing.release(engine, LEAD, imani.person_id),
    }


@pytest.fixture
def frozen(small, tmp_path):
    """Somebody has an item in hand, and another one is locked; then a lead freezes the study."""
    assigned(small)
    submitted(small, IMANI, "+-")
    desk = reviewing.take(small.engine, small.viewer(IMANI), at=after(0))
    number = answer(small, small.viewer(IMANI), desk, "++")
    file = tmp_path / "reads.csv"
    file.write_text("example_id,model,criterion_position,rater,label\nprompt-0,Alder-2,1,Dr. X,met\n")
    version = freezing.freeze(small.engine, actor=LEAD)
    return small, number, file, version


def test_every_act_is_refused_with_one_sentence_and_nothing_is_written(frozen):
    small, number, file, _ = frozen
    before, events = dump(small), small.events()
    said = set()
    for name, act in acts(small, number, file).items():
        with pytest.raises(Frozen) as refused:
            act()
        said.add(str(refused.value))
        assert dump(small) == before, name
    assert small.events() == events
    (sentence,) = said
    assert re.match(
        r"This study was frozen by Ana Ruiz on \d{4}-\d\d-\d\d \d\d:\d\d UTC as version 1, so nothing is changed any more\. "
        r"To change something, a lead opens it again as an amendment",
        sentence,
    )


def test_who_looks_exports_or_comes_in_is_still_written_and_changes_no_number(frozen):
    small, _, _, version = frozen
    before, engine = dump(small), small.engine
    export_tables.record(engine, actor=LEAD, what="labels", file_format="csv", n_rows=1)
    acting.add_person(engine, "Dr. Co Author", roles=["researcher"], actor=LEAD)
    people.set_roles(engine, "Dr. Co Author", [Role.RESEARCHER, Role.REVIEWER], actor=LEAD)
    exposing.open_conversation(engine, small.viewer("Dr. Co Author"), 1)
    people.set_active(engine, TOVE, active=False, actor=LEAD)
    after_ = dump(small)
    assert {table for table in STAYS if before[table] != after_[table]} == {
        "row_hash"
    }  # of the person, and of who saw what
    done = [action for _, action in small.events()]
    assert done[done.index("study frozen") + 1 :] == [
        "labels exported", "person added", "roles changed", "verdicts seen", "person deactivated",
    ]  # fmt: skip
    with reading(engine) as session:
        assert verify(session, expected=version.hash).holds
        assert queries.is_exposed(session, small.viewer("Dr. Co Author").person_id, 1)  # never to read it blind
        assert not queries.is_exposed(session, small.viewer("Dr. Co Author").person_id, 2)


def test_only_who_comes_in_or_looks_writes_past_it():
    """One place asks; who is let past it stands in these files, and the acts that freeze themselves."""
    root = Path(freezing.__file__).parents[1]
    past = {str(path.relative_to(root)) for path in root.rglob("*.py") if "though_frozen=True" in path.read_text()}
    assert past == {
        "export/tables.py", "reading/exposing.py", "study/acting.py", "study/freezing.py", "team/people.py", "team/sign_in.py",
    }  # fmt: skip


def test_a_lead_opens_it_again_as_a_version_with_a_name_and_a_reason(frozen):
    small, number, _, first = frozen
    engine = small.engine
    for name, reason, words in (
        ("", "more readers", "name: expected"),
        ("A", " ", "reason: expected"),
        ("version 1", "x", "expected a new one"),
    ):
        with pytest.raises(OverreadError, match=words):
            freezing.amend(engine, name, reason, actor=LEAD)
    with pytest.raises(NotAllowed, match="Only leads can freeze"):
        freezing.amend(engine, "A", "more readers", actor=small.viewer(IMANI))
    freezing.amend(engine, "A", "more readers", actor=LEAD)
    reviewing.submit(engine, small.viewer(IMANI), number, at=after(1))
    with pytest.raises(AlreadyChanged, match="not frozen"):
        freezing.amend(engine, "B", "x", actor=LEAD)
    second = freezing.freeze(engine, actor=LEAD)
    with pytest.raises(AlreadyChanged, match="frozen already"):
        freezing.freeze(engine, actor=LEAD)
    with reading(engine) as session:
        found = freezing.versions(session)
        assert freezing.frozen(session) == second
        assert verify(session, expected=first.hash).holds
    assert [(one.name, one.amendment, one.reason) for one in found] == [
        ("version 1", "A", "more readers"),
        ("A", None, None),
    ]
    assert found[1].hash != first.hash
    assert found[1].n_events == len(small.events())


def test_a_study_is_not_frozen_amid_a_run(small):
    with writing(small.engine) as session:
        session.connection().exec_driver_sql(
            "INSERT INTO run (id, kind, name, fingerprint, spec, state, max_failures, concurrency, started_by, created_at) "
            "VALUES (1, 'judge', 'x', 'x', '{}', 'open', 5, 1, 'x', '2026-11-25 00:00:00')"
        )
        session.add(store.tables.RunWorker(run_id=1, host="x", pid=1))
    with pytest.raises(OverreadError, match="A run is being worked on"):
        freezing.freeze(small.engine, actor=LEAD)


def test_who_freezes_waits_for_who_writes_and_comes_before_or_after(database_url):
    """A writer that began first is in the frozen state; one that comes later is refused."""
    made = world.made(database_url)
    begun, may_end, said = threading.Event(), threading.Event(), []

    def writes():
        with writing(made.engine) as session:
            store.set_guideline(session, "Read.", actor="x")
            begun.set()
            may_end.wait(5)

    def freezes():
        said.append(freezing.freeze(made.engine, actor=LEAD))

    first, second = threading.Thread(target=writes), threading.Thread(target=freezes)
    first.start()
    begun.wait(5)
    second.start()
    second.join(0.3)
    assert second.is_alive()
    may_end.set()
    first.join()
    second.join(10)
    done = [action for _, action in made.events()]
    assert done[-2:] == ["guideline changed", "study frozen"]
    with pytest.raises(Frozen):
        acting.set_guideline(made.engine, "Other.", actor=LEAD)
    made.engine.dispose()


# ---------------------------------------------------------------- exports carry it


def test_exports_methods_and_bundle_carry_the_hash_and_the_analysis(small):
    assigned(small)
    _, content = registering.freeze_queue(small.engine, 1, actor=LEAD)
    acting.state_analysis(small.engine, analysis.Analysis(settled=True), actor=LEAD)
    submitted(small, IMANI, "+-")
    amending.cancel(small.engine, 1, "enough", actor=LEAD)
    version = freezing.freeze(small.engine, actor=LEAD)
    assert version.analysis == 1
    told = export_tables.codebook_text("labels", "abc", [version.sentence])
    assert f"last hash of the audit trail {version.hash}, version 1 of the stated analysis" in told
    said = methods.documents(methods.facts(small.engine))[0]["methods.md"]
    assert version.sentence in said
    assert f"(SHA-256 {hashlib.sha256(content).hexdigest()})" in said
    assert "2 of these since" not in said
    assert (
        "3 have not been made, 3 of these since their assignment was cancelled" in said
    )  # two responses, two readers, one read
    packed = json.loads(_member(bundle.bundle(small.engine)[0], bundle.MANIFEST))
    assert [one["hash"] for one in packed["frozen"]] == [version.hash]
    assert packed["frozen"][0]["analysis"] == 1


def _member(content, name):
    with zipfile.ZipFile(io.BytesIO(content)) as whole:
        return whole.read(name)


# ---------------------------------------------------------------- a queue before any read


def test_the_hash_of_a_queue_is_of_its_items_order_probabilities_and_seed(small):
    number = assigned(small, seed=7)
    kept, content = registering.freeze_queue(small.engine, number, actor=LEAD)
    rows = world.rows(
        small.engine,
        "SELECT place, example_id, response_id, inclusion_probability FROM task WHERE assignment_id = 1 ORDER BY place",
    )
    told = {
        "ask": "rubric",
        "assignment": 1,
        "n_population": 2,
        "n_readers": 2,
        "seed": 7,
        "selection": "random",
        "tasks": [list(row) for row in rows],
    }
    again = json.dumps(told, sort_keys=True, separators=(",", ":")).encode()
    assert again == content
    assert kept.sha256 == hashlib.sha256(again).hexdigest()
    with reading(small.engine) as session:
        assert registering.registered(session) == {1: kept}
        assert registering.record(session, 1) == content  # nothing of it changes by being read
    with pytest.raises(AlreadyChanged, match=kept.sha256):
        registering.freeze_queue(small.engine, number, actor=LEAD)


def test_a_queue_is_frozen_before_the_first_read_of_it_alone(small):
    assigned(small)
    reviewing.take(small.engine, small.viewer(IMANI), at=after(0))
    with pytest.raises(NotAllowed, match="being read already"):
        registering.freeze_queue(small.engine, 1, actor=LEAD)
    with pytest.raises(NotAllowed, match="Only leads can assign"):
        registering.freeze_queue(small.engine, 1, actor=small.viewer(TOVE))
