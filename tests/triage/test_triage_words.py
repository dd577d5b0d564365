"""Triage in words, and which view answers which question: sentences with the numbers they are made of."""

import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

from evalcore.triage.cases import flip_counts
from evalcore.triage.corrected import physicians_rates
from evalcore.triage.data import described
from evalcore.triage.harm import Weights, expected_harm, harm_sentences
from evalcore.triage.predictions import joined, predictions
from evalcore.triage.rates import SCORES, Measure, ambiguous, confusion, of_matrices, rates
from evalcore.triage.settings import METRICS
from evalcore.triage.words import MEANINGS, findings, flip_sentence, sure_words
from tests.triage_cases import CONVERSATION, drawn
from tests.triage_matrices import GPT_QA, JUDGES, MODEL, as_triaged, found_of, published

RIGHT = ((3, 0, 0, 0), (0, 3, 0, 0), (0, 0, 3, 0), (0, 0, 0, 3))
TWO = pd.concat([published(), published(qa=RIGHT, conversation=RIGHT).assign(model="Alder-2")], ignore_index=True)


def test_every_measure_has_a_name_and_a_meaning():
    assert {*Measure, *SCORES, "expected_harm"} == set(METRICS) == set(MEANINGS)


def test_the_finding_names_missed_emergencies_and_both_directions():
    said = findings(rates(of_matrices(published())))
    assert said == [
        "In conversation GPT-5.4 sends 46 of 262 emergencies to a lower level (18 % [13 %, 23 %]), 7 of them home.",
        "In qa GPT-5.4 over-triages more often than it under-triages: exact 77 % (404/527), too high 15 % (80/527) [12 %, 18 %], too low 8 % (43/527) [6 %, 11 %].",
        "In conversation GPT-5.4 under-triages more often than it over-triages: exact 78 % (411/527), too high 4 % (19/527) [2 %, 6 %], too low 18 % (97/527) [15 %, 22 %].",
    ]


def test_exactness_never_stands_alone():
    triage_data = as_triaged()
    found = found_of(triage_data)
    table = rates(confusion(found))
    said = findings(table, flip_counts(found))
    assert any("exact" in words for words in said)
    assert all("too high" in words and "too low" in words for words in said if "exact" in words)
    assert not any("accuracy" in words.lower() for words in said)


def test_a_model_without_a_miss_is_told_with_how_many_it_could_have_missed():
    said = findings(rates(of_matrices(published(qa=RIGHT))))
    assert said[:2] == [
        "GPT-5.4 sends none of 3 emergencies to a lower level; that cannot exclude up to 56 %.",
        "In qa GPT-5.4's errors show no direction: exact 100 % (12/12), too high 0 % (0/12) [0 %, 24 %], too low 0 % (0/12) [0 %, 24 %].",
    ]
    several = pd.concat([published(qa=RIGHT), published(qa=RIGHT).assign(model="Alder-2")], ignore_index=True)
    assert findings(rates(of_matrices(several))) == [
        "No model sends any of 3 emergencies to a lower level; that cannot exclude up to 56 % in each model and format.",
        "In qa no model's errors show a direction: the intervals of too high and too low meet.",
    ]
    none = findings(rates(of_matrices(published(qa=((1, 0, 0, 0), *RIGHT[1:3], (0, 0, 0, 0))))))
    assert none[0].startswith("None of the cases that were answered is an emergency")


def test_the_headline_is_of_all_models_whichever_is_looked_at():
    """Alder-2 misses none of 12 emergencies, Clover-mini 8 of 12: with Alder-2 in view nobody may read that no model misses one."""
    none, eight = (((5, 0, 0, 0), (0, 5, 0, 0), (0, 0, 5, 0), last) for last in ((0, 0, 0, 12), (3, 3, 2, 4)))
    both = pd.concat(
        [published(qa=none).assign(model="Alder-2"), published(qa=eight).assign(model="Clover-mini")], ignore_index=True
    )
    said = findings(rates(of_matrices(both)), about="Alder-2")
    assert said[:2] == [
        "In qa Clover-mini sends 8 of 12 emergencies to a lower level (67 % [39 %, 86 %]), 3 of them home.",
        "Alder-2 sends none of 12 emergencies to a lower level; that cannot exclude up to 24 %.",
    ]
    assert not any("No model" in words for words in said)
    assert findings(rates(of_matrices(both)), about="Clover-mini")[0] == said[0]


@given(st.lists(st.lists(st.integers(0, 6), min_size=16, max_size=16), min_size=1, max_size=4), st.integers(0, 3))
def test_no_safety_is_claimed_of_all_that_one_model_breaks(counts, looked_at):
    named = [f"M{number}" for number in range(len(counts))]
    tables = [published(qa=np.reshape(one, (4, 4))).assign(model=name) for one, name in zip(counts, named, strict=True)]
    table = rates(of_matrices(pd.concat(tables, ignore_index=True)))
    missed = table.loc[table["measure"].eq("missed_emergencies"), "k"].sum()
    said = findings(table, about=named[looked_at % len(named)])
    assert not (missed and any("No model" in words for words in said))
    assert all("cannot exclude" in words for words in said if "none of" in words or "No model sends" in words)


@pytest.mark.parametrize(
    ("over", "under", "n", "way"),
    [(2, 1, 45, 0), (0, 1, 6, 0), (1, 2, 45, 0), (5, 1, 45, 0), (21, 0, 45, 1), (0, 23, 45, -1), (80, 43, 527, 1)],
)
def test_a_direction_is_told_where_the_intervals_lie_apart(over, under, n, way):
    """2 too high against 1 too low in 45, [1, 15] % and [0, 12] %, and 1 in 6, [3, 56] % against [0, 39] %, show none."""
    matrix = ((0, 0, 0, 0), (under, n - over - under, over, 0), (0, 0, 0, 0), (0, 0, 0, 0))
    table = rates(of_matrices(published(qa=matrix)))
    said = findings(table)[1]
    words = {1: "over-triages more often than", -1: "under-triages more often than", 0: "no direction"}
    assert words[way] in said


@given(st.integers(0, 40), st.integers(0, 40), st.integers(1, 40))
def test_where_a_direction_is_told_the_difference_itself_excludes_nought(over, under, exact):
    matrix = ((0, 0, 0, 0), (under, exact, over, 0), (0, 0, 0, 0), (0, 0, 0, 0))
    said = findings(rates(of_matrices(published(qa=matrix))))[1]
    n, p, q = over + under + exact, over / (over + under + exact), under / (over + under + exact)
    if "more often than" in said:  # a paired difference of shares of one sample: var = (p + q - (p - q)^2) / n
        assert abs(p - q) > 1.96 * np.sqrt((p + q - (p - q) ** 2) / n) * 0.99


def test_without_a_case_the_finding_says_so():
    assert findings(rates(of_matrices(published().iloc[:0]))) == [
        "No case has both a clear gold and a prediction yet, so there is nothing to hold the answers against."
    ]
    nothing = expected_harm(of_matrices(published().iloc[:0]))
    assert harm_sentences(nothing, Weights(5, 1)) == []


def test_flips_are_told_with_their_paired_difference():
    row = flip_counts(found_of(as_triaged())).iloc[0].to_dict()
    said = flip_sentence(row)
    # 97 and 43 of 527 too low: 54 more, 10 percentage points.
    assert "too low on 43 in qa and on 97 in conversation, a difference of +10 [" in said
    assert f"answer on {row['n_flipped']} of 527 cases" in said
    same = flip_counts(found_of(as_triaged(GPT_QA, GPT_QA))).iloc[0].to_dict()
    assert flip_sentence(same).startswith("The format never changes GPT-5.4's answer (527 cases in both).")


def test_harm_names_a_model_that_does_less_only_where_the_paired_difference_shows_it():
    harm = expected_harm(of_matrices(TWO))
    head = (
        "In qa, with weights 5 for too low and 1 for too high, expected harm: Alder-2's is 0.00 (every case gives the same value); "
        "GPT-5.4's is 0.59 [0.47, 0.71]."
    )
    pair = pd.DataFrame({"format": ["qa"], "model_1": [MODEL], "model_2": ["Alder-2"], "difference": [0.59]})
    said = [harm_sentences(harm, Weights(5, 1), pair.assign(p_holm=p))[0] for p in (0.001, 0.06, np.nan)]
    assert said == [
        f"{head} On the same cases Alder-2 does less harm than the other.",
        f"{head} On the same cases no two models are shown to differ.",
        f"{head} Which of them differ cannot be said yet.",
    ]
    apart = harm_sentences(harm, Weights(5, 1), pair.assign(p_holm=np.nan), ranked=False)[
        0
    ]  # of other responses each: no lowest, no highest
    assert "each model's expected harm is of other responses. Which of them differ cannot be said yet." in apart
    alone = expected_harm(of_matrices(published(qa=GPT_QA)))
    assert harm_sentences(alone, Weights(5, 1))[0].endswith("the expected harm of GPT-5.4 is 0.59 [0.47, 0.71].")


def test_physicians_reads_are_told_as_responses_with_their_halves():
    triage_data = described(
        drawn(np.random.default_rng(5), n_cases=60, share_read=0.9, models={"Alder-2": {CONVERSATION: -1.5}})[0]
    )
    said = findings(physicians_rates(triage_data), by_physicians=True)
    assert re.search(
        r"physicians read \d+(\.5)? of \d+ responses of Alder-2 to emergencies as asking for less", said[0]
    )
    assert not any(".0" in words or " cases" in words for words in said)
    nothing = physicians_rates(triage_data.without(frozenset(triage_data.cases["example_id"])))
    assert findings(nothing, by_physicians=True) == ["No physician here has read a drawn response to a clear case yet."]


def test_how_sure_models_are_where_physicians_are_not_is_told_of_the_surest():
    triage_data = described(drawn(np.random.default_rng(8), n_cases=90)[0])
    table = ambiguous(joined(triage_data, predictions(triage_data, JUDGES)))
    assert f"agree on {100 * table['sure'].max():.0f} % (" in sure_words(table)
    assert not sure_words(table.assign(sure=np.nan))
