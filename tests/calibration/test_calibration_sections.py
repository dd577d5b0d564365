"""The parts of calibration as the page and the command show them: whose confidence counts, what is asked first, and in which words it is said."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from evalcore.calibration import case_spread, confidence, routing
from evalcore.calibration.confidence import own_confidence
from evalcore.calibration.figures import STEP, reliability, routing as routing_figure, spread
from evalcore.calibration.reliability import judge_finding
from evalcore.study.schema import PARSER, ConfidenceMeaning
from evalcore.triage import data as frames
from evalcore.triage.data import NO_LEVEL, AmbiguityRule, Kind
from evalcore.triage.predictions import joined, predictions, usual_judges
from tests import rubric_rows
from tests.confidences import counted
from tests.triage_cases import CONVERSATION, QA, drawn

MET, RIGHT = ConfidenceMeaning.MET, ConfidenceMeaning.RIGHT
COLUMNS = ("gold", "kind", "source", "strength", "language")
HOSTILE = "<b>Alder</b>"


def cases(seed=1, rule=frames.USUAL_RULE, **more):
    """Drawn cases, their predictions by the usual judges, and those judges."""
    triage_data, _ = drawn(np.random.default_rng(seed), confidence=True, **more)
    triage_data = frames.described(triage_data, rule)
    judges = usual_judges(triage_data)
    return triage_data, joined(triage_data, predictions(triage_data, judges), COLUMNS), judges


# ---------------------------------------------------------------- whose confidence counts


def test_every_clear_case_is_counted_by_what_its_confidence_is_made_of():
    _, found, _ = cases(2, n_cases=40, n_samples=2, invalid=0.5)
    own = own_confidence(found)
    parts = confidence.models_confidence(own)
    clear = own.loc[own["kind"].eq(Kind.CLEAR) & own["predicted"].notna()]
    without = clear["confidence"].isna().sum()
    assert parts[0].errors["n"].sum() == len(clear) - without
    assert parts[0].errors["n_left_out"].sum() == without > 0
    counts = [clear["is_stated"].sum(), len(clear) - clear["is_stated"].sum() - without, without]
    assert parts[1][["n_stated", "n_shares", "n_without"]].sum().tolist() == counts


def test_models_that_answered_once_have_no_confidence_and_the_sentence_says_so():
    triage_data, found, judges = cases(n_samples=1)
    own = own_confidence(found, stated=False)
    parts = confidence.models_confidence(own)
    assert not parts[0].errors["n"].any()
    assert parts[0].reliability.empty
    assert confidence.models_findings(parts[0].errors) == [confidence.NO_CONFIDENCE]
    of_ambiguous = case_spread.on_ambiguous(triage_data, own, judges)
    assert of_ambiguous.summary.empty
    assert case_spread.spread_findings(of_ambiguous.summary) == [case_spread.NO_SPREAD]
    assert of_ambiguous.n_few == (own["kind"].eq(Kind.AMBIGUOUS) & own["n_valid"].eq(1)).sum() > 0
    curves = routing.curves(own)
    assert np.isinf(curves["threshold"]).all()  # without a confidence every case goes
    assert curves["routed"].eq(1).all()


# ---------------------------------------------------------------- what a confidence means


def test_a_judge_that_nobody_has_asked_about_gives_no_value_and_both_answers_are_held_against_its_labels():
    labels = pd.DataFrame({"judge": "Heron", "label": [1.0] * 2 + [0.0] * 498, "confidence": 0.903})
    (row,) = confidence.criteria_meanings(counted(labels), {}).to_dict(orient="records")
    assert not row["usable"]
    assert "0.4 % of the labels are met" in row["against_met"]
    assert row["against_right"] == ""
    said = confidence.criteria_meanings(counted(labels), {"Heron": MET}).to_dict(orient="records")[0]
    assert (said["usable"], said["why"]) == (False, row["against_met"])


def beside(confidence, label, reference):
    """Labels of one judge on criteria beside physicians, each in a conversation of its own."""
    n = len(confidence)
    return pd.DataFrame(
        {"judge": "Heron", "item_id": range(n), "example_id": range(n), "label": label, "confidence": confidence, "reference": reference,
         "is_drawn": True, "reference_drawn": reference, "inclusion_probability": 0.5}
    )  # fmt: skip


def test_nothing_is_computed_before_the_meaning_is_known_and_p_met_is_turned_round_under_not_met():
    found = beside([0.9] * 20 + [0.1] * 20, [1.0] * 20 + [0.0] * 20, [1.0] * 18 + [0.0] * 22)
    counts = counted(found)
    silent = confidence.judges_on_criteria(found, confidence.criteria_meanings(counts, {}), None, drawn=True)
    assert silent.reliability.empty
    assert silent.errors[["n", "n_left_out"]].to_numpy().tolist() == [[0, 40]]
    assert "is not specified" in judge_finding(
        silent.errors.iloc[0].to_dict(), "Heron", label="criterion", cluster="conversation"
    )
    told = confidence.judges_on_criteria(found, confidence.criteria_meanings(counts, {"Heron": MET}), None, drawn=True)
    (row,) = told.errors.to_dict(orient="records")
    # P(right) is .9 throughout; right are 18 of 20 and 20 of 20.
    assert (row["mean_confidence"], row["share_right"]) == pytest.approx((0.9, 38 / 40))
    wrong = confidence.judges_on_criteria(
        found, confidence.criteria_meanings(counts, {"Heron": RIGHT}), None, drawn=True
    )
    assert wrong.errors["n"].tolist() == [0]  # 20 labels "not met" with .1: no probability that they are right


def test_judges_of_levels_leave_out_the_parser_whose_confidence_is_the_models_own():
    triage_data, _, _ = cases(n_cases=80, share_read=0.5)
    said = {PARSER: RIGHT, "Magpie": RIGHT}
    of_levels = confidence.level_meanings(triage_data, said)
    assert of_levels["judge"].tolist() == ["Magpie"]
    assert confidence.level_meanings(triage_data, said, of_parser=True)["judge"].tolist() == [PARSER]
    silent = replace(
        triage_data, levels=triage_data.levels.assign(Magpie=NO_LEVEL)
    )  # a confidence, and no level that it is about
    assert confidence.level_meanings(silent, said).empty
    found = confidence.judges_on_levels(triage_data, of_levels, drawn=True)
    assert found.errors["group"].tolist() == ["Magpie, conversation"]
    assert found.errors["n"].item() > 0
    unasked = confidence.judges_on_levels(triage_data, confidence.level_meanings(triage_data, {}), drawn=True)
    assert unasked.reliability.empty
    assert unasked.errors["undefined"].str.startswith("What the confidence of Magpie refers to is not specified").all()


def test_a_majority_stands_beside_each_judges_own_confidence_and_needs_no_question():
    rubric_data = rubric_rows.of_columns(
        example=[1, 2, 3], criterion=[1, 1, 1], judges={"Heron": "+++", "Wren": "+++", "Owl": "++-"}, readers={"dr_a": "+-+"}
    )  # fmt: skip
    stated = beside([0.9] * 3, [1.0] * 3, [1.0, 0.0, 1.0])
    found = confidence.judges_on_criteria(
        stated, confidence.criteria_meanings(counted(stated), {}), rubric_data, drawn=True
    )
    rows = found.errors.set_index("group")
    assert found.majorities == {"majority of 3 judges"}
    assert rows["n"].to_dict() == {"Heron": 0, "majority of 3 judges": 3}
    row = rows.loc["majority of 3 judges"]
    assert (row["mean_confidence"], row["share_right"]) == pytest.approx(((1 + 1 + 2 / 3) / 3, 2 / 3))
    said = judge_finding(
        row.to_dict(), "majority of 3 judges", label="criterion", cluster="conversation", is_majority=True
    )
    assert said.startswith(
        "The majority of 3 judges is carried by 89 % of the votes on average and right on 67 % of 3 criteria in 3 conversations"
    )
    alone = confidence.judges_on_criteria(stated, confidence.criteria_meanings(counted(stated), {}), None, drawn=True)
    assert alone.errors["group"].tolist() == ["Heron"]


# ---------------------------------------------------------------- ambiguous cases and routing


def test_only_ambiguous_cases_with_two_valid_samples_enter_and_the_surest_come_first():
    triage_data, found, judges = cases(n_cases=80, rule=AmbiguityRule(spread=0.3), n_samples=3, invalid=0.3)
    own = own_confidence(found, stated=False)
    parts = case_spread.on_ambiguous(triage_data, own, judges)
    ambiguous = own.loc[own["kind"].eq(Kind.AMBIGUOUS)]
    assert len(parts.cases) == ambiguous["n_valid"].ge(2).sum() > 0
    assert parts.n_few == ambiguous["n_valid"].eq(1).sum() > 0
    assert parts.cases["concentration"].is_monotonic_decreasing
    assert parts.cases["n_valid"].min() == 2
    shown = case_spread.from_zero(parts.summary)
    free = shown["measure"].isin(["distance", "concentration"])
    assert shown.loc[~free, "low"].dropna().ge(0).all()
    pd.testing.assert_frame_equal(shown.loc[free], parts.summary.loc[free])


# ---------------------------------------------------------------- in words

ENDS = ("", "_low", "_high")


def errors(**more):
    """A row of `calibration_error` that is off by nothing."""
    row = {f"{name}{end}": 0.0 for name in ("difference", "error") for end in ENDS} | {
        "n": 40,
        "n_clusters": 30,
        "n_left_out": 0,
    }
    named = {"group": "Heron", "mean_confidence": 0.9, "share_right": 0.8, "undefined": ""}
    return row | named | {"difference_low": -0.1, "difference_high": 0.1, "error_high": 0.2} | more


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, "debiased error 0.00 [0.00, 0.20]); with 40 criteria errors of up to 0.20 cannot be excluded"),
        ({"error": 0.2, "error_low": 0.1}, "neither over- nor under-confident (difference 0.00 [−0.10, 0.10]), but off along the way"),
        ({"ece": 0.11, "null": 0.08, "null_high": 0.1}, "but its plain error of 0.11 is more than 95 % of perfectly calibrated data give (up to 0.10)"),
        ({"ece": 0.09, "null": 0.08, "null_high": 0.1}, "Its confidences are consistent with this"),
        ({"difference": 0.2, "difference_low": 0.1, "difference_high": 0.3}, "over-confident by 0.20 [0.10, 0.30]"),
        ({"difference": -0.2, "difference_low": -0.3, "difference_high": -0.1}, "under-confident by 0.20 [0.10, 0.30]"),
    ],
)  # fmt: skip
def test_over_confidence_is_said_only_beyond_chance(more, expected):
    said = judge_finding(errors(**more), "Heron", label="criterion", cluster="conversation")
    assert expected in said
    assert said.startswith("Heron is 90 % sure on average and right on 80 % of 40 criteria in 30 conversations")


def test_one_cluster_has_no_interval_and_the_sentence_says_why():
    row = errors(difference_low=math.nan, undefined="All items come from one case.")
    assert judge_finding(row, "Heron", label="level", cluster="case").endswith(
        "30 cases. All items come from one case."
    )


def test_the_most_over_confident_model_is_named_and_no_more_than_three_others():
    rows = [
        errors(model=f"M{place}", format="qa", difference=0.1 * place, difference_low=0.05, difference_high=0.6)
        for place in range(1, 7)
    ]
    (over,) = confidence.models_findings(pd.DataFrame(rows))
    assert over.startswith(
        "M6 in qa is over-confident: 90 % sure on average, right on 80 % of 40 clear cases, 60 [5, 60] percentage points too sure."
    )
    assert over.endswith("So are M5 in qa, M4 in qa, M3 in qa and 2 more.")


def test_of_models_without_an_interval_nothing_is_said_beyond_the_reason():
    nothing = {f"difference{end}": math.nan for end in ("_low", "_high")}
    rows = pd.DataFrame([errors(model="M1", format="qa", difference=1.0, undefined="All are alike.") | nothing])
    assert confidence.models_findings(rows)[0] == "Whether models are over-confident cannot be said. All are alike."
    one = pd.DataFrame([errors(model="M1", format="qa")])
    assert confidence.models_findings(one) == [
        "M1 is not shown to be over-confident on clear cases; up to 10 percentage points too sure cannot be excluded (M1 in qa, 40 cases)."
    ]
    under = pd.DataFrame([errors(model="M1", format="qa", difference=-0.2, difference_low=-0.3, difference_high=-0.1)])
    assert confidence.models_findings(under)[1] == "M1 in qa is under-confident."


def test_routing_speaks_of_the_model_with_most_misses():
    shares = {f"{end}{name}": 0.5 for name in routing.SHARES for end in ("", "low_", "high_")}
    rows = [
        {"model": model, "format": "qa", "threshold": threshold, "undefined": "", **shares}
        | {f"{end}{name}": count for name in routing.SHARES for end, count in (("k_", n // 2), ("n_", n))}
        for model, threshold, n in (("A", 0.5, 2), ("B", np.inf, 8))
    ]
    said = routing.routing_finding(pd.DataFrame(rows), 0.9)
    assert said.startswith("To catch 90 % of what B in qa misses, every case goes to a human.")
    assert "catches 50 % (4/8) [50 %, 50 %] of the dangerous misses" in said
    none = pd.DataFrame(rows).assign(caught=np.nan, undefined=routing.TOO_FEW)
    assert routing.routing_finding(none, 0.9) == routing.TOO_FEW
    unsure = none.assign(undefined=routing.NONE_SURE)
    assert routing.routing_finding(unsure, 0.9) == routing.NONE_SURE
    assert routing.routing_finding(none.assign(undefined=""), None) == routing.NO_MISSES


# ---------------------------------------------------------------- figures


def test_a_reliability_diagram_draws_every_bin_where_it_is_and_names_stay_words():
    _, found, _ = cases(models=[HOSTILE, "Briar-1"], n_cases=80)
    table = confidence.models_confidence(own_confidence(found, stated=False))[0].reliability
    drawn_table = table.assign(panel=table["format"].astype(str), series=table["model"].astype(str))
    figure = reliability(drawn_table, {QA: "qa", CONVERSATION: "conversation"}, {}, {}, x_title="x", y_title="y")
    marks = [trace for trace in figure.data if trace.mode == "lines+markers"]
    assert sorted(y for trace in marks for y in trace.y) == sorted(table["share_right"])
    assert len(marks) == 4  # two models, two formats
    assert HOSTILE not in figure.to_json()
    assert "&lt;b&gt;Alder&lt;/b&gt;" in {trace.name for trace in marks}
    # At one confidence the models stand apart, no further than a step each.
    far = [abs(x - stated[1]) for trace in marks for x, stated in zip(trace.x, trace.customdata, strict=True)]
    assert max(far) <= STEP


def test_the_other_figures_draw_their_numbers_and_nothing_where_there_is_none():
    triage_data, found, judges = cases(models=[HOSTILE, "Briar-1"], n_cases=80, rule=AmbiguityRule(spread=0.3))
    own = own_confidence(found, stated=False)
    parts = case_spread.on_ambiguous(triage_data, own, judges)
    figure = spread(parts.summary, {})
    values = {round(float(x), 9) for trace in figure.data for x in trace.x if x is not None}
    wanted = parts.summary.loc[parts.summary["measure"].isin(["distance", "entropy_model", "entropy_panel"])]
    assert {round(value, 9) for value in wanted["value"]} <= values
    assert {round(value, 9) for value in wanted.loc[wanted["measure"].ne("entropy_panel"), "floor"]} <= values
    curves, chosen = routing.curves(own), routing.chosen(own, 0.9)
    figure = routing_figure(curves, chosen, {QA: "qa", CONVERSATION: "conversation"}, {}, {})
    large = [trace for trace in figure.data if trace.mode == "markers"]
    assert sorted(trace.y[0] for trace in large) == sorted(chosen["caught"].dropna())
    assert HOSTILE not in figure.to_json()
    nothing = routing_figure(curves.assign(caught=np.nan), chosen.assign(caught=np.nan), {QA: "qa"}, {}, {})
    assert "no dangerous miss to catch" in {note.text for note in nothing.layout.annotations}
