"""How one physician's reads are listed: by task, for rubrics and for levels of care."""

import pandas as pd
import pytest

from evalcore.reading.read_queries import examples_of, my_reads
from evalcore.reading.reference import by_task, final_labels, own_items, totals
from evalcore.study import contents, frames
from evalcore.study.db import reading
from evalcore.study.schema import Ask, RaterKind
from tests import invented, tables

ME = "dr_a"


@pytest.fixture
def items() -> pd.DataFrame:
    rubric = tables.verdicts("""
        response | criterion | dr_a | dr_a:revised | dr_v:adjudicated
        r1       | c1        |  +   |  -           |  +
        r1       | c2        |  +   |              |
        r2       | c1        |  -   |              |  -
    """)
    level = rubric.head(1).assign(criterion_id=pd.NA, label="C", rater=ME, stage="first")
    settled = level.assign(label="D", rater="dr_v", stage="adjudicated", verdict_id=99)
    of_acuity = own_items(pd.concat([level, settled]), ME).assign(ask=Ask.RESPONSE_ACUITY)
    of_case = own_items(level.assign(response_id=pd.NA), ME).assign(ask=Ask.GOLD_ACUITY)
    found = pd.concat([own_items(rubric, ME).assign(ask=Ask.RUBRIC), of_acuity, of_case], ignore_index=True)
    return found.astype({"response_id": "Int64"})


def test_the_rubric_and_the_level_of_one_response_are_counted_apart(items):
    counts = by_task(items).set_index(["ask", "response_id"])
    named = ["n_items", "n_changed", "n_settled", "n_off_final"]
    assert counts.loc[(Ask.RUBRIC, 1), named].tolist() == [2, 1, 1, 1]  # c1 revised to -, settled as +
    assert counts.loc[(Ask.RUBRIC, 2), named].tolist() == [1, 0, 1, 0]
    assert counts.loc[(Ask.RESPONSE_ACUITY, 1), named].tolist() == [1, 0, 1, 1]


def test_a_case_without_a_response_is_counted(items):
    of_case = by_task(items).loc[lambda counts: counts["ask"].eq(Ask.GOLD_ACUITY)]
    assert of_case["n_items"].tolist() == [1]
    assert of_case["response_id"].isna().all()


def test_the_final_label_is_that_of_the_task_alone(items):
    assert final_labels(items, Ask.RUBRIC, 1, 1) == {1: "met"}
    assert final_labels(items, Ask.RESPONSE_ACUITY, 1, 1) == {None: "D"}
    assert final_labels(items, Ask.GOLD_ACUITY, 1, None) == {}


def test_every_page_counts_a_physicians_reads_alike_those_too_that_came_with_a_file(sqlite_demo_url):
    """By hand, from the verdicts: items, responses and cases once each, whatever the stage; settling others' conflicts is no read."""
    with invented.study(sqlite_demo_url) as engine, reading(engine) as session:
        long = pd.concat(
            [frames.verdicts(session, kind=RaterKind.REVIEWER).assign(asked="rubric"), frames.acuity_verdicts(session, kind=RaterKind.REVIEWER)]
        )  # fmt: skip
        long_all, long = long, long.loc[long["stage"].ne("adjudicated")]
        counts = contents.readers(session).set_index("reader")
        assert set(counts.index) == set(long["rater"])
        for viewer in contents.people(session):
            mine = long.loc[long["rater"].eq(viewer.name)]
            if mine.empty:
                assert viewer.name not in counts.index
                continue
            tasks = mine.drop_duplicates(["asked", "example_id", "response_id"])
            listed = my_reads(session, viewer)
            assert len(listed) == len(tasks)
            every = mine.drop_duplicates(["asked", "example_id", "response_id", "criterion_id"])
            cases = mine.loc[mine["response_id"].isna(), "example_id"].nunique()
            row = counts.loc[viewer.name]
            settled = long_all.loc[long_all["stage"].eq("adjudicated")].groupby("item_id")["label"].last()
            off = every.merge(settled.rename("final"), left_on="item_id", right_index=True)
            own = totals(pd.concat([own_items(asked, viewer.name) for _, asked in long_all.groupby("asked")]))
            assert tuple(own[:3]) == (row.n_items, row.n_responses, row.n_cases)
            assert own.n_settled == len(off)
            assert (row.n_items, row.n_responses, row.n_cases) == (len(every), mine["response_id"].nunique(), cases)
            assert examples_of(session, viewer) == sorted(mine["example_id"].unique())
