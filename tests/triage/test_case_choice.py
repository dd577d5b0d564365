"""Cases by what can be asked about them, and by the direction in which a model's answer is wrong."""

import numpy as np
import pytest

from evalcore.triage.cases import Miss, chosen_cases
from evalcore.triage.data import Kind, described
from evalcore.triage.predictions import predictions
from tests.triage_cases import drawn

LEANS = {"Low": {"qa": -1.5, "conversation": -1.5}, "High": {"qa": 1.5, "conversation": 1.5}}


@pytest.fixture(scope="module")
def triage_data():
    found, _ = drawn(np.random.default_rng(5), n_cases=80, models=LEANS, judges={"Magpie": 0.7, "Wren": 0.9})
    return described(found)


@pytest.mark.parametrize("kind", list(Kind))
def test_the_cases_of_a_kind_are_those_that_their_panel_makes_so(triage_data, kind):
    cases = triage_data.cases
    assert chosen_cases(triage_data, kind=kind) == set(cases.loc[cases["kind"].eq(kind), "example_id"])


@pytest.mark.parametrize("judge", [None, "Wren", "nobody"])
@pytest.mark.parametrize("model", [None, "Low"])
@pytest.mark.parametrize("asked", [None, "conversation"])
@pytest.mark.parametrize("miss", list(Miss))
def test_a_miss_is_one_of_the_chosen_model_and_format_on_a_case_with_one_letter(triage_data, judge, model, asked, miss):
    judges = {"qa": "parser", "conversation": "Wren" if judge == "Wren" else "Magpie"}
    wanted = set()
    for row in predictions(triage_data, judges).to_dict(orient="records"):
        case = triage_data.cases.iloc[row["row"]]
        fits = model in (None, row["model"]) and asked in (None, row["format"]) and case["kind"] == Kind.CLEAR
        if fits and (row["predicted"] < case["gold"] if miss is Miss.UNDER else row["predicted"] > case["gold"]):
            wanted.add(case["example_id"])
    assert chosen_cases(triage_data, miss=miss, judge=judge, model=model, asked=asked) == wanted
    assert wanted or (model, miss) == ("Low", Miss.OVER)


def test_kind_and_miss_have_to_hold_together(triage_data):
    assert chosen_cases(triage_data, kind=Kind.AMBIGUOUS, miss=Miss.UNDER) == set()
    assert chosen_cases(triage_data, kind=Kind.CLEAR, miss=Miss.OVER) == chosen_cases(triage_data, miss=Miss.OVER)
