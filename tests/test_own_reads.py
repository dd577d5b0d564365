"""How one physician's reads are listed: by task, for rubrics and for levels of care."""

import pandas as pd
import pytest

from evalcore.metrics.own_reads import by_task, final_labels, own_items
from evalcore.schema import Ask
from tests import tables

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
