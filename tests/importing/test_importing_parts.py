"""A large file on SQLite: checked in a copy of the study, written in short parts; whoever dies in between is followed by somebody who finishes."""

import json
import shutil
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given, strategies as st
from sqlalchemy import event

from evalcore.errors import ImportFailed, OverreadError
from evalcore.export import tables as export_tables
from evalcore.importing import staging
from evalcore.importing.responses import GradedRows
from evalcore.study import frames, lookups
from evalcore.study.audit.chain import verify
from evalcore.study.db import connect, importing_file, reading, writing
from evalcore.study.schema import FILE_IMPORTED, PART_IMPORTED, Administrator
from evalcore.study.store import set_guideline
from pages.shared import common
from tests import invented as made
from tests.commands import Run
from tests.importing.test_importing_order import files
from tests.invented import bring, example, judged, study, write
from tests.part_steps import Killed, in_parts

RESULTS = "healthbench_x_20260101_101010_allresults.json"
READS = (
    "example_id,model,sample_index,criterion_position,rater,label,explanation\n"
    "p1,x,0,1,Dr. Vale,met,first\n"
    "p2,x,0,1,Dr. Vale,met,\n"
    "p1,x,0,1,Dr. Vale,not_met,on second thoughts\n"
    "p2,x,0,2,Dr. Vale,cannot_assess,\n"
    "p1,x,0,1,Dr. Vale,met,after all\n"
)


def holds(engine):
    with reading(engine) as session:
        report = verify(session)
    assert report.holds, report.sentence
    return report


def unfinished(engine):
    with reading(engine) as session:
        return lookups.unfinished_import(session)


def actions(engine):
    return [row[0] for row in made.rows(engine, "SELECT action FROM audit_event ORDER BY id")]


def beside(engine):
    """Files that imports left beside the study."""
    return [path.name for path in Path(engine.url.database).parent.iterdir() if ".import-" in path.name]


@pytest.fixture
def engine(sqlite_database_url):
    with study(sqlite_database_url) as found:
        yield found


@pytest.fixture
def content(tmp_path):
    """Three files of a study, in the order in which they can be joined."""
    entries = made.results(*(made.entry(f"p{number}") for number in range(1, 7)))
    return [
        write(tmp_path / "oss_eval.jsonl", made.lines(*(example(f"p{number}") for number in range(1, 7)))),
        write(tmp_path / RESULTS, entries),
        write(tmp_path / "reads.csv", READS.encode()),
    ]


@pytest.fixture
def large(tmp_path, engine, content):
    """A study with the first of them, and the second, to be imported."""
    bring(engine, content[0])
    return content[1]


@given(content=files(), batch=st.integers(1, 4), dies=st.integers(0, 6))
def test_the_study_is_the_same_whatever_the_parts_and_wherever_it_was_broken_off(sqlite_template, content, batch, dies):
    with tempfile.TemporaryDirectory() as folder:
        reports, contents = [], []
        for way in ("at once", "in batches", "in parts", "broken off"):
            (Path(folder) / way).mkdir()
            with study(str(shutil.copy(sqlite_template, Path(folder) / way / "a.db"))) as engine:
                reports.append(
                    [_brought(engine, write(Path(folder) / name, content[name]), way, batch, dies) for name in content]
                )
                contents.append(made.contents(engine))
                holds(engine)
                assert not beside(engine)
        assert contents == [contents[0]] * 4
        assert reports == [reports[0]] * 4


def _brought(engine, path, way, batch, dies):
    if way == "at once":
        return bring(engine, path)
    if way == "in batches":
        with mock.patch.object(GradedRows, "batch", batch):
            return bring(engine, path)
    if way == "in parts":
        with in_parts(batch):
            return bring(engine, path)
    with suppress(Killed), in_parts(batch, dies):
        return bring(engine, path)
    holds(engine)
    return staging.finish(engine)


def test_a_file_that_revises_itself_is_the_same_in_parts_and_broken_off_after_each(tmp_path, sqlite_template, content):
    def history(way, dies):
        folder = tmp_path / f"{way}-{dies}"
        folder.mkdir()
        with study(str(shutil.copy(sqlite_template, folder / "a.db"))) as engine:
            for path in content[:2]:
                bring(engine, path)
            report = _brought(engine, content[2], way, 1, dies)
            said = "SELECT id, label, explanation, supersedes FROM verdict WHERE stage <> 'judge' ORDER BY id"
            return report, made.rows(engine, said), made.contents(engine), holds(engine).n_verdicts

    expected = history("at once", 0)
    assert len(expected[1]) == 5
    for dies in range(6):
        assert history("broken off", dies) == expected


def test_a_part_is_an_act_of_its_own_and_the_last_tells_the_whole(engine, large):
    with in_parts(2):
        report = bring(engine, large)
    assert actions(engine)[-4:] == [PART_IMPORTED] * 3 + [FILE_IMPORTED]
    assert report.rows == report.responses_new == 6
    assert unfinished(engine) is None
    assert not beside(engine)
    with reading(engine) as session:
        assert frames.data_version(session) == frames.trail_length(session) - 3


def test_a_file_that_takes_long_is_one_act_while_nobody_comes_to_write(engine, large):
    with mock.patch.object(staging, "AT_ONCE_SECONDS", -1.0), mock.patch.object(GradedRows, "batch", 1):
        assert bring(engine, large).responses_new == 6
    assert PART_IMPORTED not in actions(engine)
    holds(engine)


def test_who_comes_to_write_has_their_turn_before_a_file_that_takes_long_is_written(engine, large):
    other_engine = connect(str(engine.url.database))

    def write_something():
        with writing(other_engine) as session:
            set_guideline(session, "# Version 1", actor="Ana")

    other = threading.Thread(target=write_something)

    def come(_done):
        if other.ident is None:
            other.start()
            until = time.monotonic() + 30
            while not staging._is_awaited(importing_file(engine)):
                assert time.monotonic() < until

    with mock.patch.object(staging, "AT_ONCE_SECONDS", -1.0), mock.patch.object(GradedRows, "batch", 1):
        report = bring(engine, large, progress=come)
    other.join()
    other_engine.dispose()
    assert report.responses_new == 6
    acts = actions(engine)
    assert acts.count("guideline changed") == 1
    assert acts.index("guideline changed") < acts.index(FILE_IMPORTED, 2)
    assert PART_IMPORTED in acts
    holds(engine)


def test_a_batch_that_takes_too_long_by_itself_is_halved(engine, large):
    with in_parts(4, halved=-1.0):
        bring(engine, large)
    told = made.rows(engine, f"SELECT detail FROM audit_event WHERE action = '{PART_IMPORTED}' ORDER BY id")
    assert [json.loads(detail)["rows"] for (detail,) in told] == [4, 6]
    assert made.rows(engine, "SELECT count(*) FROM response") == [(6,)]


def test_no_transaction_lasts_longer_than_one_batch_where_that_is_the_limit(engine, large):
    """Between two parts others write: each of their acts comes between two events of the import."""
    n = 0

    def other(_seconds):
        nonlocal n
        n += 1
        with writing(other_engine) as session:
            set_guideline(session, f"# Version {n}", actor="Ana")

    other_engine = connect(str(engine.url.database), wait_seconds=0.1)
    with in_parts(2), mock.patch.object(staging.time, "sleep", other):
        bring(engine, large)
    other_engine.dispose()
    last = actions(engine)[-7:]
    assert last == [PART_IMPORTED, "guideline changed"] * 3 + [FILE_IMPORTED]
    holds(engine)


def test_the_copy_of_the_study_takes_no_lock_of_the_study(engine, large):
    waits = []

    @event.listens_for(engine, "begin")
    def began(connection):
        waits.append(connection.get_execution_options().get("immediate", False))

    with in_parts(1):
        bring(engine, large, dry_run=True)
    assert waits.count(True) == 3  # the turn that is taken, the first attempt, the turn that is given back
    assert not beside(engine)


def test_a_faulty_file_is_refused_whole_before_a_part_is_written(engine, large, tmp_path):
    path = write(
        tmp_path / "judge.jsonl", made.lines(judged("p1", model="x", sample_index=0), judged("p2", met="perhaps"))
    )
    bring(engine, large)
    before = made.dump(engine)
    with in_parts(1), pytest.raises(ImportFailed, match="line 2"):
        bring(engine, path)
    assert made.dump(engine) == before
    assert not beside(engine)


def test_a_dry_run_says_what_an_import_in_parts_would_do(engine, large):
    before = made.dump(engine)
    with in_parts(1):
        planned = bring(engine, large, dry_run=True)
        assert made.dump(engine) == before
        done = bring(engine, large)
    assert vars(planned) | {"dry_run": False} == vars(done)


def test_a_large_file_that_adds_nothing_leaves_nothing(engine, large):
    bring(engine, large)
    before = made.dump(engine)
    again = write(large.with_name("healthbench_x_20270101_101010_allresults.json"), large.read_bytes() + b"\n")
    with in_parts(1):
        assert bring(engine, again).adds_nothing
    assert made.dump(engine) == before


def test_the_first_attempt_of_a_large_file_is_given_up_and_leaves_nothing(engine, large):
    with mock.patch.object(staging, "in_parts", side_effect=Killed), in_parts(1), pytest.raises(Killed):
        bring(engine, large)
    assert PART_IMPORTED not in actions(engine)
    assert unfinished(engine) is None


# ---------------------------------------------------------------- broken off


@pytest.fixture
def broken(engine, large):
    """The second file was broken off after two of its three parts."""
    with suppress(Killed), in_parts(2, dies_after=1):
        bring(engine, large)
    return large


def test_what_was_broken_off_is_known_and_held_by_nobody(engine, broken):
    found = unfinished(engine)
    assert (found.name, found.n_done, found.n_rows) == (RESULTS, 4, 6)
    assert len(beside(engine)) == 1
    path = staging.kept_path(engine, found.source_hash)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.read_bytes() == broken.read_bytes()
    holds(engine)


def test_the_next_import_finishes_it_first(engine, broken, content):
    bring(engine, content[2])
    assert [
        row[0]
        for row in made.rows(engine, f"SELECT subject FROM audit_event WHERE action = '{FILE_IMPORTED}' ORDER BY id")
    ] == [path.name for path in content]
    assert unfinished(engine) is None
    assert not beside(engine)
    holds(engine)


def test_without_the_kept_copy_only_the_same_file_may_come_and_finishes_it(engine, broken, content):
    staging.kept_path(engine, unfinished(engine).source_hash).unlink()
    assert staging.finish(engine) is None
    with pytest.raises(
        ImportFailed, match=f"the import of {RESULTS} was broken off, and the copy that was kept of it is gone"
    ):
        bring(engine, content[2])
    report = bring(engine, broken)
    assert (report.rows, report.responses_new, report.responses_known) == (6, 6, 0)
    assert unfinished(engine) is None
    holds(engine)
    assert bring(engine, broken).already_imported


def test_without_copy_and_file_the_import_is_given_up_and_what_is_in_stays(engine, broken, content):
    location, run = engine.url.database, Run(broken.parent)
    with staging.held(staging.kept_path(engine, unfinished(engine).source_hash)):
        refused = run("import", "--give-up", "--db", location)
    assert refused.returncode == 1
    assert f"{RESULTS}: it is being imported just now" in refused.stderr
    staging.kept_path(engine, unfinished(engine).source_hash).unlink()
    done = run("import", "--give-up", "--db", location)
    assert done.stdout.strip() == f"{RESULTS}: given up; 4 of its 6 rows are in the study and stay"
    assert unfinished(engine) is None
    assert made.rows(engine, "SELECT count(*) FROM response") == [(4,)]
    assert actions(engine)[-1] == "import stopped"
    holds(engine)
    assert "got none" in run("import", "--give-up", "--db", location).stderr
    export_tables.check(engine, Administrator(name="Ana"))
    assert bring(engine, content[1]).responses_new == 2


def test_the_server_finishes_it_when_it_opens_the_study(engine, broken):
    common._engine_at.clear()
    opened = common._engine_at(str(engine.url.database))
    try:
        until = time.monotonic() + 60
        while unfinished(engine) is not None and time.monotonic() < until:
            time.sleep(0.05)
    finally:
        common._engine_at.clear()
        opened.dispose()
    assert actions(engine)[-1] == FILE_IMPORTED
    holds(engine)


def test_a_kept_copy_that_was_changed_is_not_imported(engine, broken):
    staging.kept_path(engine, unfinished(engine).source_hash).write_bytes(b"")
    assert staging.finish(engine) is None
    assert unfinished(engine).n_done == 4


def test_a_second_import_is_refused_while_one_is_being_written(engine, broken, content):
    found = unfinished(engine)
    with staging.held(staging.kept_path(engine, found.source_hash)) as is_ours:
        assert is_ours
        with pytest.raises(
            ImportFailed, match=rf"tester has been importing {RESULTS} since .* UTC: 4 of 6 rows are in the study"
        ):
            bring(engine, content[2])
        assert staging.finish(engine) is None
        with in_parts(1), pytest.raises(ImportFailed, match="tester has been importing"):
            bring(engine, broken)
    assert staging.finish(engine).rows == 6


def test_what_changed_in_between_stops_the_import_with_its_sentence(engine, broken):
    """Somebody changes a response that the rest of the file speaks of: only a hand in the database can, so it stands for whatever may."""
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE criterion SET text = 'Quite another text' WHERE example_id = 6")
        connection.exec_driver_sql("UPDATE example SET messages = '[]' WHERE id = 6")
    with pytest.raises(ImportFailed, match=r"Expected to write 6 rows, wrote 4: those stay") as refused:
        staging.finish(engine)
    assert refused.value.n_faults > 1
    assert actions(engine)[-1] == "import stopped"
    assert unfinished(engine) is None
    assert not beside(engine)


def test_what_a_killed_check_left_is_removed(engine, large):
    path = staging.kept_path(engine, "f" * 64)
    for left in (path, path.with_name(path.name + staging.CHECK)):
        left.write_bytes(b"left")
    bring(engine, large)
    assert not beside(engine)


def test_no_room_for_the_copy_is_said_in_one_sentence(engine, large):
    with mock.patch.object(staging.shutil, "disk_usage") as usage, in_parts(1):
        usage.return_value.free = 10
        with pytest.raises(
            ImportFailed,
            match=r"needs about .* MB beside the study; expected so much room, got 0 MB\. Nothing was imported\.",
        ):
            bring(engine, large)
    assert not beside(engine)


def test_nothing_is_taken_out_while_a_part_is_in_and_the_next_command_finishes_it_first(engine, broken):
    who = Administrator(name="Ana")
    sentence = rf"{RESULTS} is not imported whole yet: 4 of its 6 rows are in the study"
    with pytest.raises(OverreadError, match=sentence):
        export_tables.check(engine, who)
    with pytest.raises(OverreadError, match=sentence):
        export_tables.record(engine, actor=who, what="labels", file_format="csv", n_rows=3)
    found = unfinished(engine)
    run = Run(broken.parent)
    with staging.held(staging.kept_path(engine, found.source_hash)):
        refused = run("export", "labels.csv", "--db", engine.url.database)
        assert refused.returncode == 1
        assert "4 of its 6 rows" in refused.stderr
    done = run("export", "labels.csv", "--db", engine.url.database)
    assert done.returncode == 0
    assert f"{RESULTS}, whose import was broken off, is in the study whole now." in done.stderr
    assert unfinished(engine) is None


def test_every_page_says_that_a_part_is_in_and_counts_nothing_anew_until_it_is_whole(engine, broken, monkeypatch):
    monkeypatch.setattr(common, "engine", lambda: engine)
    said = []
    monkeypatch.setattr(common.st, "html", said.append)
    common.tell_unfinished()
    assert len(said) == 1
    assert f"{RESULTS} is not imported whole yet" in said[0]
    before = common.version()
    staging.finish(engine)
    assert common.version() > before
    common.tell_unfinished()
    assert len(said) == 1
