"""By what kept numbers are known to be old: acts that change something, and those that only take something out or look."""

import pytest

from evalcore.export import tables as export_tables
from evalcore.study import frames, store
from evalcore.study.db import open_study, reading, writing
from evalcore.study.schema import JUDGE_SHOWN, LEVELS_READ, Administrator


@pytest.fixture
def engine(database_url: str):
    made = open_study(database_url)
    with writing(made) as session:
        store.ensure_study(session)
    yield made
    made.dispose()


def versions(engine) -> tuple[int, int, int]:
    with reading(engine) as session:
        return frames.trail_length(session), frames.data_version(session), frames.judged_version(session)


def test_who_takes_a_file_away_or_looks_at_a_judge_makes_nothing_kept_old(engine):
    length, data, judged = versions(engine)
    export_tables.record(engine, actor=Administrator(name="Ana"), what="labels", file_format="csv", n_rows=3)
    with writing(engine) as session:
        store.append_event(session, actor="Ana", action=JUDGE_SHOWN, subject="response 1")
    assert versions(engine) == (length + 2, data, judged)


def test_every_other_act_makes_old_what_was_kept_and_a_judges_levels_what_only_judges_change(engine):
    length, data, judged = versions(engine)
    with writing(engine) as session:
        store.set_guideline(session, "# Read what stands there", actor="Ana")
    assert versions(engine) == (length + 1, data + 1, judged)
    with writing(engine) as session:
        store.append_event(session, actor="Ana", action=LEVELS_READ, subject="3 responses")
        store.append_event(session, actor="Ana", action="an act of a later version", subject="study")
    assert versions(engine) == (length + 3, data + 3, judged + 1)
