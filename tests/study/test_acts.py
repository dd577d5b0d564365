"""Every act checks its rule itself, by the roles that the study holds at that moment: for each act and each role, called directly."""

import ast
import io
import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from sqlalchemy import text

import evalcore
from evalcore.errors import NotAllowed, OverreadError
from evalcore.export import acts as exports, tables as export_tables
from evalcore.export.tables import Part
from evalcore.importing import import_file, mapping, staging
from evalcore.importing.mapping import OwnNames
from evalcore.judges import juries
from evalcore.judges.splits import Split
from evalcore.reading import (
    adjudication,
    amending,
    assigning,
    exposing,
    overriding,
    practice,
    registering,
    reviewing,
    threads,
)
from evalcore.reading.assigning import Choice
from evalcore.reading.reviewing import Decision
from evalcore.runs import acts as runs
from evalcore.study import acting, freezing, store
from evalcore.study.analysis import Analysis
from evalcore.study.audit import chain
from evalcore.study.corrections import mending, renaming
from evalcore.study.corrections.renaming import Kind
from evalcore.study.db import writing
from evalcore.study.schema import Administrator, Broken, ConfidenceMeaning, Label, NoteKind, Role, Rules, Viewer
from evalcore.study.tables import UnfinishedImport
from evalcore.team import people
from evalcore.triage import acts as triage_acts
from evalcore.triage.settings import TriageSettings
from tests import run_world, world
from tests.commands import Run
from tests.part_steps import in_parts
from tests.study.test_policies import ALLOWED, ROLES
from tests.world import JUDGE, World

REMEMBERED = frozenset(Role)
"""What a tab that was left open remembers: every role, whatever the study says since."""
ADMINISTRATOR = {Role.RESEARCHER, Role.LEAD}
"""The administrator may what these may."""
KEY = (2, 2)
"""A response that nobody of them reads."""


def a_file(folder: Path, n: int) -> Path:
    """An example to import, another one each time."""
    row = {
        "prompt_id": f"new-{n}",
        "prompt": [{"role": "user", "content": "May I swim?"}],
        "rubrics": [],
        "example_tags": [],
    }
    path = folder / f"examples-{n}.jsonl"
    path.write_text(json.dumps(row) + "\n", encoding="utf-8")
    return path


def imported_in_parts(*given: Any, **named: Any) -> Any:
    with in_parts():
        return import_file(*given, **named)


def given_up(small: World, actor: Viewer) -> None:
    """An import that was broken off; whatever comes of the act, none is left."""
    left = UnfinishedImport(
        name="lost.csv", source_hash="0" * 64, actor="Ana Ruiz", asked="{}", n_rows=2, n_done=1, report="{}"
    )
    with writing(small.engine) as session:
        store.begin_import(session, left)
    try:
        staging.give_up(small.engine, actor)
    finally:
        with writing(small.engine) as session:
            store.end_import(session, UnfinishedImport)


def frozen_for_a_moment(small: World, actor: Viewer) -> None:
    """The study is frozen, and open again for the acts after it."""
    freezing.freeze(small.engine, actor=actor)
    freezing.amend(small.engine, "open again", "for the next act", actor=Administrator(name="set-up"))


ACTS: dict[str, tuple[str, Callable[[World, Viewer, Path, int], Any]]] = {
    "study.acting.add_person": ("add_people", lambda w, a, _, n: acting.add_person(w.engine, f"New {n}", roles=["lead"], actor=a)),
    "study.acting.set_families": ("set_families", lambda w, a, _, n: acting.set_families(w.engine, [(f"new{n}", "Maker")], actor=a)),
    "study.corrections.mending.preview": ("mend", lambda w, a, _f, _n: mending.preview(w.engine, 1, actor=a)),
    "study.corrections.mending.withdraw": ("mend", lambda w, a, _f, _n: mending.withdraw(w.engine, 1, reason="x", actor=a)),
    "study.corrections.mending.restore": ("mend", lambda w, a, _f, _n: mending.restore(w.engine, 1, actor=a)),
    "study.corrections.mending.mark_broken": ("mend", lambda w, a, _f, _n: mending.mark_broken(w.engine, 99, Broken.EMPTY, actor=a)),
    "study.corrections.renaming.rename": ("mend", lambda w, a, _f, n: renaming.rename(w.engine, Kind.DATASET, "d", f"d{n}", actor=a)),
    "study.corrections.renaming.take_back": ("mend", lambda w, a, _f, n: renaming.take_back(w.engine, Kind.DATASET, "d", actor=a)),
    "study.freezing.freeze": ("freeze", lambda w, a, _f, _n: frozen_for_a_moment(w, a)),
    "study.freezing.amend": ("freeze", lambda w, a, _f, n: freezing.amend(w.engine, f"version {n}", "x", actor=a)),
    "importing.mapping.keep": ("import", lambda w, a, _f, n: mapping.keep(w.engine, f"names{n}", OwnNames("responses", {}), actor=a)),
    "reading.amending.add_readers": ("assign", lambda w, a, _f, _n: amending.add_readers(w.engine, 1, ["Dr. Tove Lind"], actor=a)),
    "reading.amending.cancel": ("assign", lambda w, a, _f, _n: amending.cancel(w.engine, 1, "x", actor=a)),
    "reading.amending.hand_over": (
        "assign", lambda w, a, _f, _n: amending.hand_over(w.engine, "Dr. Tove Lind", "Dr. Imani Noor", actor=a),
    ),
    "reading.amending.pause": ("assign", lambda w, a, _f, _n: amending.pause(w.engine, 1, actor=a)),
    "reading.amending.resume": ("assign", lambda w, a, _f, _n: amending.resume(w.engine, 1, actor=a)),
    "reading.registering.freeze_queue": ("assign", lambda w, a, _f, _n: registering.freeze_queue(w.engine, 1, actor=a)),
    "triage.set_label_map": ("set_triage", lambda w, a, _, n: triage_acts.set_label_map(w.engine, f"source{n}", [("x", "A")], actor=a)),
    "triage.set_triage_settings": ("set_triage", lambda w, a, _f, _n: triage_acts.set_triage_settings(w.engine, TriageSettings(), actor=a)),
    "triage.set_confidence_meaning": (
        "set_meaning", lambda w, a, _f, _n: triage_acts.set_confidence_meaning(w.engine, JUDGE, ConfidenceMeaning.MET, actor=a),
    ),
    "study.acting.state_analysis": ("state_analysis", lambda w, a, _f, _n: acting.state_analysis(w.engine, Analysis(), actor=a)),
    "study.acting.set_guideline": ("assign", lambda w, a, _, n: acting.set_guideline(w.engine, f"Version {n}.", actor=a)),
    "study.acting.set_rules": ("assign", lambda w, a, _, n: acting.set_rules(w.engine, Rules(check_share=n / 1000), actor=a)),
    "importing.import_file": ("import", lambda w, a, folder, n: import_file(w.engine, a_file(folder, n), dataset="d", actor=a)),
    "importing.staging._begun": ("import", lambda w, a, folder, n: imported_in_parts(w.engine, a_file(folder, n), dataset="d", actor=a)),
    "importing.staging.give_up": ("import", lambda w, a, _f, _n: given_up(w, a)),
    "triage.read_levels": ("import", lambda w, a, _f, _n: triage_acts.read_levels(w.engine, actor=a)),
    "judges.juries.convene": ("import", lambda w, a, _f, _n: juries.convene(w.engine, "Jury", members=[JUDGE], actor=a)),
    "export.tables.record": ("export", lambda w, a, _f, _n: export_tables.record(w.engine, actor=a, what="labels", file_format="csv", n_rows=1)),
    "export.take": ("export", lambda w, a, _f, _n: exports.take(w.engine, "scores", "csv", io.BytesIO(), actor=a)),
    "export.take_split": ("split", lambda w, a, _f, _n: exports.take_split(w.engine, Split(1), Part(), actor=a)),
    "export.tables.check": ("export", lambda w, a, _f, _n: export_tables.check(w.engine, a)),
    "reading.assigning.assign": ("assign", lambda w, a, _f, _n: assigning.assign(w.engine, Choice(readers=("Dr. Tove Lind",), n_readers=1), actor=a)),
    "team.people.invite": ("add_people", lambda w, a, _f, _n: people.invite(w.engine, "Dr. Tove Lind", actor=a)),
    "team.people.set_roles": ("add_people", lambda w, a, _f, _n: people.set_roles(w.engine, "Dr. Tove Lind", [Role.LEAD], actor=a)),
    "team.people.set_active": ("add_people", lambda w, a, _f, _n: people.set_active(w.engine, "Dr. Tove Lind", active=False, actor=a)),
    "team.people.unbind": ("add_people", lambda w, a, _f, _n: people.unbind(w.engine, "Dr. Tove Lind", actor=a)),
    "team.people.make_key": ("make_keys", lambda w, a, _f, _n: people.make_key(w.engine, "Ana Ruiz", purpose="x", days=1, actor=a)),
    "team.people.revoke_key": ("make_keys", lambda w, a, _f, _n: people.revoke_key(w.engine, 1, actor=a)),
    "team.people.keys": ("make_keys", lambda w, a, _f, _n: people.keys(w.engine, actor=a)),
    "team.people.sign_out": ("add_people", lambda w, a, _f, _n: people.sign_out(w.engine, w.engine, "Dr. Tove Lind", actor=a)),
    "runs.start": ("run", lambda w, a, _f, _n: runs.start(w.engine, run_world.responding(), concurrency=1, actor=a)),
    "runs.stop": ("run", lambda w, a, _f, _n: runs.stop(w.engine, 1, actor=a)),
    "runs.retry": ("run", lambda w, a, _f, _n: runs.retry(w.engine, 1, outcomes=[], actor=a)),
    "runs.failures": ("see_replies", lambda w, a, _f, _n: runs.failures(w.engine, a, 1)),
    "study.audit.chain.words": ("see_audit", lambda w, a, _f, _n: chain.words(w.engine, a, is_blind=False)),
    "study.audit.chain.events": ("see_audit", lambda w, a, _f, _n: chain.events(w.engine, a, is_blind=False, limit=1)),
    "reading.reviewing.take": ("read", lambda w, a, _f, _n: reviewing.take(w.engine, a)),
    "reading.overriding.give_verdict": (
        "give_verdict",
        lambda w, a, _f, _n: overriding.give_verdict(w.engine, a, **w.item(), decision=Decision(Label.MET), judge=JUDGE, seen=None),
    ),
    "reading.overriding.undo": ("give_verdict", lambda w, a, _f, _n: overriding.undo(w.engine, a, **w.item(), seen=0)),
    "reading.exposing.release": ("assign", lambda w, a, _f, _n: exposing.release(w.engine, a, 1)),
    "reading.threads.of_lead": ("answer", lambda w, a, _f, _n: threads.of_lead(w.engine, a)),
    "reading.threads.reply": ("answer", lambda w, a, _f, _n: threads.reply(w.engine, a, 1, 1, NoteKind.ANSWER, "Read on.", seen=1)),
    "reading.adjudication.cases": ("adjudicate", lambda w, a, _f, _n: adjudication.cases(w.engine, a)),
    "reading.adjudication.settled": ("adjudicate", lambda w, a, _f, _n: adjudication.settled(w.engine, a)),
    "reading.adjudication.at_fault": ("adjudicate", lambda w, a, _f, _n: adjudication.at_fault(w.engine, a)),
    "reading.adjudication.open_case": ("adjudicate", lambda w, a, _f, _n: adjudication.open_case(w.engine, a, KEY)),
    "reading.adjudication.look": ("adjudicate", lambda w, a, _f, _n: adjudication.look(w.engine, a, KEY, None)),
    "reading.adjudication.settle": ("adjudicate", lambda w, a, _f, _n: adjudication.settle(w.engine, a, KEY, [])),
}  # fmt: skip
OF_ONES_OWN = {
    "reading.reviewing.mark", "reading.reviewing.move", "reading.reviewing.undo_mark", "reading.reviewing.reveal", "reading.reviewing.slip", "reading.reviewing.submit",
    "reading.reviewing.revise", "reading.reviewing.finish", "reading.threads.tell",
    "reading.practice.practise",
}  # fmt: skip
NOBODYS = {
    "importing.staging._checked": "writes into a copy of the study, which is removed",
    "importing.staging.turn": "says that an import has begun, which is allowed there first, and that it has ended",
    "importing.staging.tell": "says how far an import is that has begun",
    "importing.staging._written": "goes on with an import that was allowed when it began",
    "reading.reviewing.acting_on": "checks the reader's own rule; what is written in it is that of the acts from `mark` to `finish`",
    "reading.exposing.expose": "writes that somebody sees what the page may show them: its door is `check_can_open`",
    "reading.exposing.choose_reader": "writes who came by which browser",
    "study.acting.opened": "makes the study's one row",
    "study.acting.act": "holds the rule of each act that it is the transaction of",
    "study.acting.begin": "the first person, where there is none: tested below",
    "team.people.accept": "whoever opens an invitation first",
    "team.people.admit": "who is in a group of the provider that the server lets in",
    "team.sign_in.pressed": "writes that somebody who is signed in has pressed",
    "team.sign_in._kept": "begins a session",
    "team.sign_in._ended": "ends one's own session",
    "team.sign_in._tell_refused": "writes that somebody was not let in",
    "importing.demo.seed": "fills a study that holds nothing",
    "runs.asking._transaction": "saves the answers of a run that was started",
    "runs.worker.work": "works on a run that was started",
    "runs.worker._end": "a worker says that it has ended",
}


def roles_are(small: World, name: str, *roles: Role) -> None:
    """Give somebody other roles, as the database then has them."""
    with small.engine.begin() as connection:
        held = json.dumps([role.value for role in roles])
        connection.execute(text("UPDATE person SET roles = :held WHERE name = :name"), {"held": held, "name": name})


def remembering(small: World, name: str) -> Viewer:
    """Somebody as an old tab remembers them: with every role."""
    return msgspec.structs.replace(small.viewer(name), roles=REMEMBERED)


def tried(act: Callable[[], Any]) -> NotAllowed | None:
    """The refusal; None where the act went through, or failed for another reason than who acts."""
    try:
        act()
    except NotAllowed as refusal:
        return refusal
    except OverreadError:
        return None
    return None


@pytest.mark.slow_on_postgresql
def test_every_act_called_directly_is_refused_or_allowed_as_the_table_of_rules_says(database_url, tmp_path):
    """Whatever the caller remembers of their roles: those of the study count. The administrator may what a researcher and a lead may."""
    small = world.made(database_url)
    people = {role: f"The {role}" for role in ROLES}
    for role, name in people.items():
        world.add_researcher(small.engine, name, role)
    world.add_researcher(small.engine, "Nobody any more", Role.LEAD)
    roles_are(small, "Nobody any more")
    someone = [(frozenset({role}), remembering(small, name)) for role, name in people.items()]
    someone += [
        (frozenset(), remembering(small, "Nobody any more")),
        (frozenset(ADMINISTRATOR), Administrator(name="root")),
    ]
    n = 0
    for act, (rule, called) in ACTS.items():
        may = {role for role, is_allowed in zip(ROLES, ALLOWED[rule], strict=True) if is_allowed}
        for roles, actor in someone:
            n, before = n + 1, len(small.events())
            refusal = tried(lambda called=called, actor=actor, n=n: called(small, actor, tmp_path, n))
            assert (refusal is None) == bool(roles & may), (act, actor.name, refusal)
            if refusal is not None:
                assert "; you " in str(refusal), act
                assert len(small.events()) == before, act
    small.engine.dispose()


def test_a_role_taken_away_while_a_tab_is_open_refuses_the_next_press_of_the_readers_own_work(database_url):
    small = world.made(database_url)
    world.assigned(small, n_readers=1, readers=("Dr. Imani Noor",))
    old_tab, engine = small.viewer(), small.engine
    desk = reviewing.take(engine, old_tab)
    number, keys = desk.reading.id, desk.keys
    of_a_draft = {
        "mark": lambda: reviewing.mark(engine, old_tab, number, keys[0], Label.NOT_MET),
        "move": lambda: reviewing.move(engine, old_tab, number, 1),
        "undo_mark": lambda: reviewing.undo_mark(engine, old_tab, number),
        "submit": lambda: reviewing.submit(engine, old_tab, number),
        "tell": lambda: threads.tell(engine, old_tab, number, "It is cut off.", skip=False),
        "practise": lambda: practice.practise(engine, old_tab, 1, 1, {}),
    }
    slip = {"reason": None, "seen": None}
    once_locked = {
        "slip": lambda: reviewing.slip(engine, old_tab, number, keys[0], Label.MET, **slip),
        "reveal": lambda: reviewing.reveal(engine, old_tab, number),
    }
    afterwards = {
        "revise": lambda: reviewing.revise(engine, old_tab, number, keys[0], Decision(Label.NOT_MET), seen=None),
        "finish": lambda: reviewing.finish(engine, old_tab, number),
    }
    room = {"tell": "threads", "practise": "practice"}
    presses_of_all = (*of_a_draft, *once_locked, *afterwards)
    assert {f"reading.{room.get(name, 'reviewing')}.{name}" for name in presses_of_all} == OF_ONES_OWN
    for key in keys:
        reviewing.mark(engine, old_tab, number, key, Label.NOT_MET)
    for presses in (of_a_draft, once_locked, afterwards):
        roles_are(small, old_tab.name, Role.RESEARCHER)
        for name, press in presses.items():
            refusal = tried(press)
            assert refusal is not None, name
            assert "you are a researcher in this study" in str(refusal), name
        roles_are(small, old_tab.name, Role.REVIEWER)
        for press in presses.values():
            with suppress(OverreadError):
                press()
        if presses is of_a_draft:  # what was undone is marked again
            with suppress(OverreadError):
                reviewing.mark(engine, old_tab, number, keys[0], Label.NOT_MET)
                reviewing.submit(engine, old_tab, number)
    assert next(action for actor, action in small.events() if actor == old_tab.name) == "first read submitted"
    small.engine.dispose()


def test_who_has_left_the_study_acts_no_more(sqlite_database_url, tmp_path):
    small = world.made(sqlite_database_url)
    gone = Viewer(99, "Dr. Gone", REMEMBERED)
    other = msgspec.structs.replace(small.viewer("Ana Ruiz"), name="Dr. Gone")  # the number is somebody else's by now
    for actor in (gone, other):
        with pytest.raises(NotAllowed, match=r"Dr\. Gone is not in this study any more"):
            import_file(small.engine, a_file(tmp_path, 0), dataset="d", actor=actor)


def test_only_the_first_comes_without_being_added(database_url):
    """Two browsers on a new study: one becomes its first person, the other is told."""
    engine = acting.opened(database_url)
    acting.begin(engine, "Ana Ruiz")
    with pytest.raises(NotAllowed, match="Ask a lead to add you"):
        acting.begin(engine, "Dr. Second")
    assert world.rows(engine, "SELECT name FROM person") == [("Ana Ruiz",)]
    engine.dispose()


WRITES = {"writing", "acting_on", "act"}


def writers() -> dict[str, str]:
    """Every function of the core that opens a writing transaction, by the module it is found in."""
    found, root = {}, Path(evalcore.__file__).parent
    for path in root.rglob("*.py"):
        parts = path.relative_to(root).with_suffix("").parts
        if parts[:2] in {("study", "store"), ("study", "migrations"), ("study", "db")}:
            continue
        module = ".".join(part for part in parts if part not in {"__init__", "acts"})
        content = path.read_text(encoding="utf-8")
        if not any(f"{word}(" in content for word in WRITES):
            continue
        for node in ast.walk(ast.parse(content)):
            if isinstance(node, ast.FunctionDef) and any(_is_writing(call) for call in ast.walk(node)):
                found[f"{module}.{node.name}"] = str(path)
    return found


def _is_writing(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in WRITES


def test_every_function_that_writes_is_an_act_of_the_table_or_nobodys():
    found = writers().keys()
    assert found <= ACTS.keys() | OF_ONES_OWN | NOBODYS.keys()
    assert NOBODYS.keys() <= found


def test_no_page_and_no_command_writes_past_an_act():
    """Neither opens a writing transaction, nor imports the writers of the store."""
    root = Path(evalcore.__file__).parent
    outside = [root.parent / "app.py", *(root.parent / "pages").rglob("*.py"), root / "__main__.py"]
    outside += (root / "cli").glob("*.py")
    assert len(outside) > 80
    for path in outside:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = {alias.name for alias in node.names} if isinstance(node, ast.Import | ast.ImportFrom) else set()
            module = (node.module or "") if isinstance(node, ast.ImportFrom) else ""
            assert not re.match(r"evalcore\.\w+\.(\w+_)?store\b", module), path
            assert not (re.fullmatch(r"evalcore\.\w+", module) and any(name.endswith("store") for name in names)), path
            assert not (module == "evalcore.study.db" and names & {"writing"}), path


# ---------------------------------------------------------------- the command line


@pytest.fixture
def studied(tmp_path: Path) -> Iterator[tuple[Run, World]]:
    """The command line in the folder of a small study."""
    small = world.made(str(tmp_path / "overread.db"))
    yield Run(tmp_path), small
    small.engine.dispose()


def test_a_command_acts_as_the_administrator_or_as_a_named_person_and_the_trail_says_which(studied, tmp_path):
    run, small = studied
    path, n = a_file(tmp_path, 1), len(small.events())
    for arguments, environment in (((), {}), (("--as", "Ana Ruiz"), {}), ((), {"OVERREAD_ACTING_AS": "Ana Ruiz"})):
        run.good(*arguments, "guideline", path, **environment)
    administrator, by_option, by_setting = (actor for actor, _ in small.events()[n:])
    assert administrator.endswith(" (administrator, command line)")
    assert by_option == by_setting
    assert by_option.startswith("Ana Ruiz (command line of ")


def test_a_command_as_somebody_is_held_to_the_rules_of_their_roles(studied, tmp_path):
    run, small = studied
    path, before = a_file(tmp_path, 1), small.events()
    for arguments in (("import", path, "--dataset", "d"), ("people", "--add", "Dr. Third"), ("guideline", path)):
        assert "you are a reviewer in this study" in run.bad("--as", "Dr. Imani Noor", *arguments)
    unknown = run.bad("--as", "Dr. Who", "guideline", path)
    assert "expected somebody in this study: Ana Ruiz, Dr. Imani Noor, Dr. Tove Lind" in unknown
    assert small.events() == before


def test_what_a_command_gives_out_as_somebody_leaves_out_what_they_are_to_read_blind(studied, tmp_path):
    """A reader who exports at the command line learns no more than on the page."""
    run, small = studied
    world.assigned(small, n_readers=1, n_items=1, readers=("Dr. Imani Noor",))
    assert "4 rows" in run.good("export", tmp_path / "all.csv", "--what", "verdicts")
    assert "2 rows" in run.good("--as", "Dr. Imani Noor", "export", tmp_path / "mine.csv", "--what", "verdicts")
