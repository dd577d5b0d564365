"""What the statistics begin from, against the plain long table of verdicts, on both databases."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sqlalchemy import Engine, make_url

from evalcore.errors import OverreadError
from evalcore.reading import overriding
from evalcore.reading.assignment_queries import Planned
from evalcore.reading.reviewing import Decision as Given
from evalcore.rubric import queries as rubric_queries
from evalcore.rubric.data import ITEM_COLUMNS, READ_COLUMNS, RubricData, coefficients, first_reads, is_scored, votes
from evalcore.rubric.scores import mean_scores, scores_of_verdicts
from evalcore.study import frames, store
from evalcore.study.browse import Filters
from evalcore.study.db import reading, writing
from evalcore.study.schema import Label, RaterKind, Stage, Verdict
from tests import world
from tests.invented import study

MET = {"met": 1.0, "not_met": 0.0}


def loaded(engine: Engine) -> RubricData:
    with reading(engine) as session:
        return rubric_queries.load(session)


@pytest.fixture
def seeded(demo_url: str) -> Iterator[Engine]:
    """The demo study."""
    with study(demo_url) as engine:
        yield engine


@pytest.fixture
def made(database_url: str) -> Iterator[Callable[..., world.World]]:
    """Makes a small world, and closes it after the test."""
    with ExitStack() as open_worlds:

        def make(**told: Any) -> world.World:
            small = world.made(database_url, **told)
            open_worlds.callback(small.engine.dispose)
            return small

        yield make


def test_every_label_of_every_judge_stands_in_its_cell(seeded: Engine):
    found = loaded(seeded)
    assert tuple(found.items.columns) == ITEM_COLUMNS
    assert tuple(found.reads.columns) == READ_COLUMNS
    with reading(seeded) as session:
        long = frames.verdicts(session, kind=RaterKind.JUDGE)
    wide = long.assign(met=long["label"].map(MET)).pivot(index="item_id", columns="rater", values="met")
    assert found.judges == list(long["rater"].value_counts().index)
    for judge in found.judges:
        told = pd.Series(found.judged[judge].to_numpy(dtype=float), index=found.items["item_id"])
        pd.testing.assert_series_equal(told.dropna().sort_index(), wide[judge].dropna(), check_names=False)


def assert_equal(one: RubricData, other: RubricData) -> None:
    for name in ("items", "judged", "reads"):
        pd.testing.assert_frame_equal(getattr(one, name), getattr(other, name))


def test_every_item_has_the_columns_of_its_response_and_criterion(seeded: Engine):
    items = loaded(seeded).items
    with reading(seeded) as session:
        long = frames.verdicts(session).drop_duplicates("item_id").set_index("item_id")
    assert set(items["item_id"]) == set(long.index)
    for name in (
        "response_id",
        "criterion_id",
        "example_id",
        "position",
        "points",
        "model",
        "evaluation",
        "axis",
        "theme",
        "n_expected",
    ):
        assert items[name].astype(object).tolist() == long.loc[items["item_id"], name].astype(object).tolist(), name
    assert items[["response_id", "position"]].apply(tuple, axis=1).is_monotonic_increasing


def test_physicians_reads_point_at_their_items(seeded: Engine):
    found = loaded(seeded)
    with reading(seeded) as session:
        long = frames.verdicts(session, kind=RaterKind.REVIEWER)
    assert len(found.reads) == len(long)
    assert found.items["item_id"].to_numpy()[found.reads["row"]].tolist() == found.reads["item_id"].tolist()
    assert found.reads["met"].isna().sum() == long["label"].eq("cannot_assess").sum()
    assert found.reads["met"].sum() == long["label"].eq("met").sum()


def test_scores_from_coefficients_are_those_of_the_reference_formula(seeded: Engine):
    found = loaded(seeded)
    judge = found.judges[0]
    with reading(seeded) as session:
        table = mean_scores(scores_of_verdicts(frames.verdicts(session, kind=RaterKind.JUDGE), ["overall"]))
    of_judge = found.where(is_scored(found.items) & found.judged[judge].notna())
    achieved = coefficients(of_judge.items) * of_judge.judged[judge]
    means = achieved.groupby(of_judge.items["model"], observed=True).sum()
    expected = table.loc[table["judge"].eq(judge)].set_index("model")["raw_mean"]
    assert means.to_dict() == pytest.approx(expected.to_dict(), abs=1e-6)


def test_a_label_taken_back_and_one_superseded_do_not_stand(made: Callable[..., world.World]):
    small = made(judged="+-++")
    with writing(small.engine) as session:
        judge = store.ensure_rater(session, RaterKind.JUDGE, world.JUDGE)
        with reading(small.engine) as looking:
            standing = frames.verdicts(looking)
        number = int(standing.loc[standing["criterion_id"].eq(small.criteria[0][0]), "verdict_id"].iloc[0])
        item = {
            "example_id": 1,
            "response_id": small.responses[0],
            "criterion_id": small.criteria[0][0],
            "rater_id": judge,
        }
        store.add_verdicts(
            session,
            [Verdict(**item, stage=Stage.JUDGE, label=None, supersedes=number)],
            actor="set-up",
            action="taken back",
        )
    found = loaded(small.engine)
    assert small.criteria[0][0] not in set(found.items["criterion_id"])
    assert not is_scored(found.items).loc[found.items["response_id"].eq(small.responses[0])].any()
    assert found.judged[world.JUDGE].tolist() == [0.0, 1.0, 1.0]


def test_an_item_that_only_a_physician_has_labelled_is_there_without_a_judge(made: Callable[..., world.World]):
    small = made(judged="+-+ ")
    world.assigned(small, n_readers=1, readers=("Dr. Imani Noor",))
    world.submitted(small, "Dr. Imani Noor", "+-")
    world.submitted(small, "Dr. Imani Noor", "-?", at=world.after(5))
    found = loaded(small.engine)
    assert len(found.items) == 4
    assert found.judged[world.JUDGE].isna().sum() == 1
    assert sorted(found.reads["met"].fillna(-1)) == [-1, 0, 0, 1]
    assert found.reads["inclusion_probability"].tolist() == [1.0] * 4
    assert set(found.reads["unit"]) == set(small.responses)


def test_two_drawings_one_after_the_other_are_one_of_their_joint_probability(made: Callable[..., world.World]):
    small = made(points=((7,),) * 10, judged="+" * 10)
    reader = "Dr. Imani Noor"
    world.assigned(small, n_items=2, n_readers=1, readers=(reader,))
    world.assigned(small, n_items=4, n_readers=1, readers=(reader,))
    for minute in range(6):
        world.submitted(small, reader, "+", at=world.after(minute))
    joint = 1 - (1 - 2 / 10) * (1 - 4 / 8)  # of ten two, then of the eight that were left four
    found = loaded(small.engine).reads["inclusion_probability"]
    assert found.tolist() == pytest.approx([joint] * 6)
    assert (1 / found).sum() == pytest.approx(10)  # so that those read stand for all ten


def test_of_a_drawing_that_is_half_read_the_read_half_counts(made: Callable[..., world.World]):
    small = made(points=((7,),) * 10, judged="+" * 10)
    reader = "Dr. Imani Noor"
    world.assigned(small, n_items=4, n_readers=1, readers=(reader,))
    for minute in range(2):
        world.submitted(small, reader, "+", at=world.after(minute))
    assert loaded(small.engine).reads["inclusion_probability"].tolist() == pytest.approx([2 / 10] * 2)


def test_a_drawing_that_could_not_have_taken_an_item_does_not_raise_its_probability(made: Callable[..., world.World]):
    small = made(points=((7,), (7,), (7,), (7,)), judged="++++", models=("Alder-2", "Briar-1"))
    reader = "Dr. Imani Noor"
    world.assigned(small, n_items=2, n_readers=1, readers=(reader,), filters=Filters(model="Alder-2"))
    world.assigned(small, n_items=3, n_readers=1, readers=(reader,), filters=Filters(model="Briar-1"))
    for minute in range(5):
        world.submitted(small, reader, "+", at=world.after(minute))
    found = loaded(small.engine)
    model = found.items["model"].to_numpy()[found.reads["row"]]
    by_model = found.reads["inclusion_probability"].groupby(np.asarray(model, dtype=object)).unique()
    assert by_model["Alder-2"] == pytest.approx([2 / 4])
    assert by_model["Briar-1"] == pytest.approx([3 / 4])
    assert found.items["reachable"].all()


def test_what_no_drawing_could_have_taken_is_out_of_reach(made: Callable[..., world.World]):
    small = made(points=((7,), (7,)), judged="++", models=("Alder-2", "Briar-1"))
    world.assigned(small, n_items=1, n_readers=1, readers=("Dr. Imani Noor",), filters=Filters(model="Alder-2"))
    assert not loaded(small.engine).items["reachable"].any()  # nothing is read yet
    world.submitted(small, "Dr. Imani Noor", "+")
    items = loaded(small.engine).items
    assert items["reachable"].tolist() == items["model"].eq("Alder-2").tolist()


def test_what_was_chosen_for_what_physicians_said_was_not_drawn(made: Callable[..., world.World]):
    small = made(points=((7,),) * 4, judged="++++")
    overridden = Given(Label.NOT_MET)
    overriding.give_verdict(
        small.engine, small.viewer(), **small.item(), decision=overridden, judge=world.JUDGE, seen=None
    )
    world.assigned(small, n_readers=1, readers=("Dr. Tove Lind",), filters=Filters(reads="overridden"))
    world.submitted(small, "Dr. Tove Lind", "+")
    found = loaded(small.engine)
    assert found.reads["inclusion_probability"].isna().all()
    assert votes(found.reads).empty
    assert not found.items["reachable"].any()


def test_what_a_file_of_a_plan_does_not_name_had_its_mean_probability(made: Callable[..., world.World]):
    small = made(points=((7,),) * 4, judged="++++")
    reader = "Dr. Imani Noor"
    plan = tuple(Planned(f"prompt-{n}", None, 0, share) for n, share in ((0, 0.2), (1, 0.6)))
    world.assigned(small, plan=plan, n_readers=1, readers=(reader,))
    world.assigned(small, n_items=1, n_readers=1, readers=(reader,))
    for minute in range(3):
        world.submitted(small, reader, "+", at=world.after(minute))
    found = loaded(small.engine).reads.set_index("example_id")["inclusion_probability"]
    second = 1 / 2  # one of the two that the plan had left
    assert found[1] == pytest.approx(1 - (1 - 0.2) * (1 - second))
    assert found[2] == pytest.approx(1 - (1 - 0.6) * (1 - second))
    assert found.drop([1, 2]).tolist() == pytest.approx([1 - (1 - 0.4) * (1 - second)])


def test_names_that_only_hidden_conversations_hold_are_hidden_too(made: Callable[..., world.World]):
    small = made(points=((7,), (7,)), judged="++", models=("Alder-2", "Briar-1"))
    with small.engine.begin() as connection:
        connection.exec_driver_sql(
            f"UPDATE response SET model_id = 1, sample_index = 1 WHERE id = {small.responses[1]}"
        )
    found = loaded(small.engine)  # Briar-1 has answered the second conversation alone
    assert set(found.items["model"].cat.categories) == {"Alder-2", "Briar-1"}
    assert set(found.without(frozenset({2})).items["model"].cat.categories) == {"Alder-2"}


def test_an_empty_study_has_no_items(database_url: str):
    with study(database_url) as engine:
        found = loaded(engine)
    assert len(found.items) == len(found.reads) == 0
    assert found.judges == []


def test_votes_are_means_of_blind_first_reads_that_were_drawn(seeded: Engine):
    found = loaded(seeded)
    table = votes(found.reads)
    firsts = first_reads(found.reads)
    assert firsts["stage"].eq("first").all()
    item = firsts.loc[firsts["row"].eq(table["row"].iloc[0])]
    assert table["vote"].iloc[0] == item["met"].mean()
    assert table["n_cannot_assess"].sum() <= firsts["met"].isna().sum()
    adjudicated = found.reads.loc[found.reads["stage"].eq("adjudicated") & found.reads["met"].notna()]
    assert len(adjudicated)
    for blinded in (True, False):  # settled with the judge in view, it is no claim on physicians
        reads = found.reads.assign(blinded=found.reads["blinded"].mask(found.reads["stage"].eq("adjudicated"), blinded))
        settled = votes(reads, settled=True)
        where = settled.set_index("row")["vote"].reindex(adjudicated["row"]).dropna()
        assert where.isin([0.0, 1.0]).all() == blinded
        assert settled.equals(table) != blinded


def test_without_some_examples_reads_still_point_at_their_items(seeded: Engine):
    found = loaded(seeded)
    left = found.without(frozenset({int(found.items["example_id"].iloc[0])}))
    assert 0 < len(left.items) < len(found.items)
    assert left.items["item_id"].to_numpy()[left.reads["row"]].tolist() == left.reads["item_id"].tolist()
    assert len(left.judged) == len(left.items)


def test_labels_on_what_the_study_does_not_hold_are_one_clear_error(sqlite_database_url):
    small = world.made(sqlite_database_url, points=((1,), (1,)), judged="++")
    with closing(sqlite3.connect(make_url(sqlite_database_url).database or "")) as connection:  # checks no foreign key
        connection.execute("DELETE FROM criterion WHERE id = 2")
        connection.commit()
    with pytest.raises(
        OverreadError,
        match=r"expected labels of items of the study alone, got labels of 1 others, first of response 2 and criterion 2",
    ):
        loaded(small.engine)
    small.engine.dispose()
