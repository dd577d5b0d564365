"""Whoever is killed while settling or importing leaves nothing half written, and the trail holds."""

import os
from itertools import product
from pathlib import Path
from unittest import mock

import pytest

from evalcore.importing import import_file, staging
from evalcore.importing.responses import GradedRows
from evalcore.reading import adjudication
from evalcore.study import frames, lookups
from evalcore.study.audit.chain import verify
from evalcore.study.db import connect, open_study, reading
from evalcore.study.schema import Administrator, RaterKind
from tests import world
from tests.adjudicating_steps import SOL, item, key_of, opened, settlements
from tests.kills import N_KILLS, killed

pytestmark = pytest.mark.slow

FEW = 2
N_JUDGES = 100
KILLS = [FEW, N_KILLS]
SMALL_PARTS = {"AT_ONCE_SECONDS": -1.0, "PART_SECONDS": 0.0, "PAUSE_SECONDS": 0.02, "PAUSES_SECONDS": 1e12}
engines = {}


def study_of(location):
    """A process opens the study once."""
    return engines.setdefault((os.getpid(), location), connect(location))


def holds(location):
    engine = open_study(location)
    with reading(engine) as session:
        assert verify(session).holds
    engine.dispose()


def _settle(location, viewer, key, number):
    engine = study_of(location)
    case = adjudication.open_case(engine, viewer, key)
    items = [item(question, rationale=f"{os.getpid()} {number}") for question in case.questions]
    adjudication.settle(engine, viewer, key, items)


@pytest.mark.parametrize("n", KILLS)
def test_kills_while_settling_leave_whole_settlements(conflicting, database_url, n):
    n_items, viewer, key = len(opened(conflicting).questions), conflicting.viewer(SOL), key_of(conflicting)
    conflicting.engine.dispose()  # no process takes over a connection of this one
    for n_killed in killed(_settle, database_url, viewer, key, n=n):
        by_act = [row["explanation"] for row in settlements(conflicting)]
        assert {by_act.count(act) for act in by_act} == {n_items}
        assert len({act.split()[0] for act in by_act}) == n_killed
        conflicting.engine.dispose()
    holds(database_url)


def _import(location, folder, items, number):
    """Two hundred verdicts and more, by judges of whom the study has not heard."""
    path = Path(folder) / f"{os.getpid()}-{number}.csv"
    judges = [f"{path.stem} {judge}" for judge in range(N_JUDGES)]
    lines = [",".join([*row, judge, "judge", "judge", "met"]) for row, judge in product(items, judges)]
    head = "dataset,example_id,criterion_position,model,sample_index,evaluation,rater,rater_kind,stage,label"
    path.write_text("\n".join([head, *lines]) + "\n")
    import_file(study_of(location), path, actor=Administrator(name="somebody"))


def items_of(made):
    with reading(made.engine) as session:
        rows = frames.verdicts(session, kind=RaterKind.JUDGE)
    return [
        (row.dataset, row.prompt_id, str(row.position), row.model, "0", row.evaluation) for row in rows.itertuples()
    ]


def are_whole(made, items, n_killed):
    """Of each file all verdicts are in, or none; all but the last of each process were imported before it was killed."""
    files = world.rows(
        made.engine, "SELECT source_hash, count(*) FROM verdict WHERE source = 'import' GROUP BY source_hash"
    )
    assert {n_rows for _, n_rows in files} == {len(items) * N_JUDGES}
    assert len(files) >= n_killed


@pytest.mark.parametrize("n", KILLS)
def test_kills_while_importing_leave_files_whole_or_not_at_all(database_url, tmp_path, n):
    made = world.made(database_url)
    items = items_of(made)
    made.engine.dispose()
    for n_killed in killed(_import, database_url, tmp_path, items, n=n):
        are_whole(made, items, n_killed)
        made.engine.dispose()
    holds(database_url)


@pytest.mark.parametrize("n", KILLS)
def test_what_kills_leave_of_large_imports_is_made_whole_from_the_kept_copy(sqlite_database_url, tmp_path, n):
    made, n_broken_off = world.made(sqlite_database_url), 0
    items = items_of(made)
    made.engine.dispose()
    with mock.patch.multiple(staging, **SMALL_PARTS), mock.patch.object(GradedRows, "batch", 25):
        for n_killed in killed(_import, sqlite_database_url, tmp_path, items, n=n, within=1.2):
            for path in tmp_path.glob("*.csv"):
                path.unlink()
            holds(sqlite_database_url)
            with reading(made.engine) as session:
                n_broken_off += lookups.unfinished_import(session) is not None
            staging.finish(made.engine)
            are_whole(made, items, n_killed)
            made.engine.dispose()
    holds(sqlite_database_url)
    left = [path.name for path in Path(made.engine.url.database).parent.iterdir() if ".import-" in path.name]
    assert not left
    assert n_broken_off or n == FEW
