"""What the statistics of triage begin from: cases with their panels, and what models say of them."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from sqlalchemy import Engine

from evalcore.study import store
from evalcore.study.db import open_study, reading, writing
from evalcore.study.schema import PARSER, Acuity, RaterKind, Stage, Verdict
from evalcore.triage import data as frames, queries as triage_queries
from evalcore.triage.data import LEVELS, NO_LEVEL, SHARES, AmbiguityRule, Kind
from evalcore.triage.predictions import COUNTS, joined, predictions, usual_judges
from evalcore.triage.rates import accounted
from tests.triage_cases import CONVERSATION, QA, drawn, stored

FRAMES = ("cases", "votes", "samples", "levels", "confidence", "reads", "published", "elsewhere")


@pytest.fixture
def study(database_url: str):
    engine = open_study(database_url)
    yield engine
    engine.dispose()


def loaded(engine: Engine):
    with reading(engine) as session:
        return triage_queries.load(session)


def level(words: str) -> float:
    return LEVELS["remove" if words == "Remove" else words]


def panel(words: str):
    """Votes as columns of one case."""
    votes = np.array([level(word) for word in words.split(",")])
    kept = votes[~np.isnan(votes)]
    return np.zeros(len(kept), dtype=np.int64), kept, 1


# ---------------------------------------------------------------- panels (check values of AcuityBench's definitions)


@pytest.mark.parametrize(
    ("words", "h", "median", "spread"),
    [
        ("C,C,C,C/D,D", (0, 0, 0.7, 0.3), 3, 0.3),
        ("A,B,C,C,D", (0.2, 0.2, 0.4, 0.2), 3, 2.6),
        ("A,A,A,A,A", (1, 0, 0, 0), 1, 0),
        ("A,A/B,Remove,D,D", (0.375, 0.125, 0, 0.5), 4, 4 + 1 / 3),
    ],
)
def test_a_panel_has_its_distribution_median_and_spread(words, h, median, spread):
    assert frames.distributions(*panel(words))[0] == pytest.approx(h)
    assert frames.medians(*panel(words))[0] == median
    assert frames.spreads(*panel(words))[0] == pytest.approx(spread, abs=1e-6)


@pytest.mark.parametrize(
    ("votes", "median"),
    [
        ([1, 2, 3, 4], 2.5),
        ([1, 2], 1.5),
        ([1.5, 2.5], 2.5),
        ([1, 1.5], 1.5),
        ([2, 2.5, 3, 3.5], 3),
        ([1, 3], 3),
        ([2.5, 2.5], 2.5),
    ],
)
def test_an_even_panel_is_settled_toward_the_more_severe(votes, median):
    assert frames.medians(np.zeros(len(votes), dtype=np.int64), np.array(votes, dtype=float), 1)[0] == median


def plain_distance(one: float, other: float) -> float:
    letters = [{np.floor(vote), np.ceil(vote)} for vote in (one, other)]
    return float(min((a - b) ** 2 for a in letters[0] for b in letters[1]))


votes_of_cases = st.lists(
    st.lists(st.sampled_from([vote for vote in LEVELS.values() if not np.isnan(vote)]), max_size=6), min_size=1
)


@given(votes_of_cases, st.randoms(use_true_random=False))
def test_panels_agree_with_their_plain_definition_in_any_order(cases, chance):
    rows = [(row, vote) for row, votes in enumerate(cases) for vote in votes]
    chance.shuffle(rows)
    row = np.array([row for row, _ in rows], dtype=np.int64)
    vote = np.array([vote for _, vote in rows], dtype=float)
    spreads, shares = frames.spreads(row, vote, len(cases)), frames.distributions(row, vote, len(cases))
    for number, votes in enumerate(cases):
        gaps = [plain_distance(a, b) for place, a in enumerate(votes) for b in votes[place + 1 :]]
        assert spreads[number] == pytest.approx(np.mean(gaps) if gaps else np.nan, nan_ok=True)
        halves = [letter for vote in votes for letter in (np.floor(vote), np.ceil(vote))]
        wanted = [halves.count(k) / len(halves) if halves else np.nan for k in (1, 2, 3, 4)]
        assert shares[number] == pytest.approx(wanted, nan_ok=True)
        median = frames.medians(row, vote, len(cases))[number]
        assert np.isnan(median) if not votes else min(votes) <= median <= max(votes)


def test_the_kind_of_a_case_follows_its_panel_and_the_rule():
    triage_data, _ = drawn(np.random.default_rng(1), n_cases=200)
    strict = frames.described(triage_data).cases
    lax = frames.described(triage_data, AmbiguityRule(spread=9)).cases
    has_panel = strict["n_votes"].gt(1)
    assert strict.loc[has_panel, "kind"].eq(Kind.AMBIGUOUS).equals(strict.loc[has_panel, "spread"].gt(0.75))
    assert not lax["kind"].eq(Kind.AMBIGUOUS).any()
    assert strict["gold"].isna().equals(strict["kind"].isin([Kind.AMBIGUOUS, Kind.UNLABELLED]))
    assert (strict["gold"] % 1 == 0.5).equals(strict["kind"].eq(Kind.BOUNDARY))
    assert strict.loc[~has_panel & strict["n_votes"].eq(0), "strength"].eq("direct").all()
    assert strict.loc[has_panel, list(SHARES)].sum(axis=1).to_numpy() == pytest.approx(1)
    five_alike = triage_data.votes.groupby("row")["vote"].agg(
        lambda votes: votes.notna().all() and len(set(votes)) == 1
    )
    assert strict["strength"].eq("unanimous").loc[five_alike.index[five_alike]].all()


def test_a_stated_uncertainty_above_the_rule_makes_a_case_ambiguous():
    triage_data, _ = drawn(np.random.default_rng(2), n_cases=4, share_panel=0)
    triage_data.cases["uncertainty"] = [np.nan, 0.7, 0.71, 1.0]
    assert list(frames.described(triage_data).cases["kind"]) == [Kind.CLEAR, Kind.CLEAR, Kind.AMBIGUOUS, Kind.AMBIGUOUS]


# ---------------------------------------------------------------- predictions


def test_a_prediction_is_the_most_frequent_level_and_of_equals_the_more_severe():
    triage_data, _ = drawn(np.random.default_rng(3), n_cases=80, invalid=0.3, noise=1.0)
    found = predictions(triage_data, {QA: PARSER, CONVERSATION: "Magpie"})
    assert len(found) == 80 * 2 * 2
    of_samples = triage_data.samples.assign(
        level=np.where(triage_data.samples["format"].eq(QA), triage_data.levels[PARSER], triage_data.levels["Magpie"])
    )
    for row in found.to_dict(orient="records"):
        mine = of_samples.loc[
            of_samples["row"].eq(row["row"]) & of_samples["model"].eq(row["model"]) & of_samples["format"].eq(row["format"])
        ]  # fmt: skip
        valid = [level for level in mine["level"] if level != NO_LEVEL]
        counts = {level: valid.count(level) for level in (1, 2, 3, 4)}
        assert [row[name] for name in COUNTS] == list(counts.values())
        assert (row["n_samples"], row["n_valid"], row["n_invalid"]) == (5, len(valid), 5 - len(valid))
        best = max(counts, key=lambda level: (counts[level], level)) if valid else np.nan
        assert row["predicted"] == pytest.approx(best, nan_ok=True)
        assert row["share"] == pytest.approx(counts[best] / len(valid) if valid else np.nan, nan_ok=True)
        assert triage_data.samples["has_text"][row["first"]]
        assert mine.index[0] == row["first"]


def test_no_invalid_output_becomes_a_level():
    triage_data, _ = drawn(np.random.default_rng(4), invalid=1.0)
    found = predictions(triage_data, usual_judges(triage_data))
    assert found["predicted"].isna().all()
    assert found["share"].isna().all()
    assert found["n_invalid"].eq(5).all()
    assert found["n_valid"].eq(0).all()


def test_what_nobody_looked_at_is_unread_and_not_invalid():
    triage_data, _ = drawn(np.random.default_rng(5))
    found = predictions(triage_data, {QA: "Magpie"})
    assert found["n_unread"].eq(5).all()
    assert found["n_invalid"].eq(0).all()


def test_no_case_gives_no_prediction():
    triage_data, _ = drawn(np.random.default_rng(6))
    empty = triage_data.where(np.zeros(len(triage_data.cases), dtype=bool))
    found = joined(frames.described(empty), predictions(empty, {QA: PARSER}))
    assert found.empty
    assert list(found.columns[-2:]) == ["gold", "kind"]


# ---------------------------------------------------------------- storage, on both databases


def test_what_is_stored_is_read_back(study: Engine):
    triage_data, _ = drawn(np.random.default_rng(7), n_cases=12, confidence=True)
    with writing(study) as session:
        stored(session, triage_data)
    found, triage_data = loaded(study), frames.described(triage_data)
    for name in FRAMES:
        one, other = getattr(found, name), getattr(triage_data, name)
        if name == "reads":
            one, other = one.drop(columns="verdict_id"), other.drop(columns="verdict_id")
        if name == "levels":
            one = one[list(other)]
        if name == "confidence":
            one, other = (table.sort_values(["rater", "sample"], ignore_index=True) for table in (one, other))
        pd.testing.assert_frame_equal(one, other, check_dtype=False, check_categorical=False)


def test_a_response_of_another_evaluation_is_in_neither_format_and_is_counted_apart(study: Engine):
    triage_data, _ = drawn(np.random.default_rng(7), n_cases=4)
    mine = triage_data.samples.loc[triage_data.samples["format"].eq(CONVERSATION) & triage_data.samples["row"].eq(1)]
    other = mine["response_id"].loc[mine["model"].eq("Alder-2")].tolist()
    with writing(study) as session:
        stored(session, triage_data, elsewhere=other)
    found = frames.described(loaded(study))
    assert not set(other) & set(found.samples["response_id"])
    assert len(found.samples) == len(triage_data.samples) - 5
    assert found.elsewhere.to_numpy().tolist() == [[1, "Alder-2"]] * 5
    table = accounted(found, joined(found, predictions(found, usual_judges(found)))).set_index(["model", "format"])
    assert table["n_elsewhere"].to_dict() == {
        ("Alder-2", QA): 5, ("Alder-2", CONVERSATION): 5, ("Briar-1", QA): 0, ("Briar-1", CONVERSATION): 0,
    }  # fmt: skip
    assert table.loc[("Alder-2", CONVERSATION), ["n_cases", "n_no_response"]].tolist() == [3, 1]
    assert found.where([False, True, True, True]).elsewhere["row"].tolist() == [0] * 5
    assert found.of_models(["Briar-1"]).elsewhere.empty


def test_an_empty_study_has_no_cases_and_all_columns(study: Engine):
    found = loaded(study)
    wanted = frames.described(drawn(np.random.default_rng(8), n_cases=1)[0])
    for name in FRAMES:
        assert getattr(found, name).empty
        if name != "levels":
            assert set(getattr(found, name).columns) == set(getattr(wanted, name).columns)
    assert predictions(frames.described(found), {QA: PARSER}).empty
    with reading(study) as session:
        assert not triage_queries.has_cases(session)


@given(st.integers(0, 1000), st.sets(st.integers(0, 9)))
def test_cases_are_taken_with_all_that_belongs_to_them(seed, kept):
    triage_data, _ = drawn(np.random.default_rng(seed), n_cases=10, confidence=True, share_read=0.5)
    part = triage_data.where([number in kept for number in range(10)])
    names = triage_data.cases["case_id"]
    assert list(part.cases["case_id"]) == [names[number] for number in sorted(kept)]
    for frame in ("votes", "samples", "reads"):
        whole = getattr(triage_data, frame)
        told = list(getattr(part, frame)["row"].map(part.cases["case_id"]))
        assert told == [names[row] for row in whole["row"] if row in kept]
    responses = triage_data.samples["response_id"]
    for frame in ("confidence", "reads"):
        whole, mine = getattr(triage_data, frame), getattr(part, frame)
        rows = (
            whole["row"]
            if frame == "reads"
            else triage_data.samples["row"].take(whole["sample"]).reset_index(drop=True)
        )
        wanted = [-1 if sample < 0 else responses[sample] for sample in whole.loc[rows.isin(kept), "sample"]]
        assert [-1 if sample < 0 else part.samples["response_id"][sample] for sample in mine["sample"]] == wanted


def test_models_are_taken_with_their_responses_and_reads_of_cases_stay():
    triage_data, _ = drawn(np.random.default_rng(9), confidence=True, share_read=0.5)
    part = triage_data.of_models(["Briar-1"])
    assert set(part.samples["model"]) == {"Briar-1"}
    assert part.reads["sample"].lt(0).sum() == triage_data.reads["sample"].lt(0).sum()
    kept = triage_data.samples["model"].eq("Briar-1").to_numpy()
    of_briar = triage_data.reads["sample"].ge(0) & kept[triage_data.reads["sample"]]
    assert part.reads["sample"].ge(0).sum() == of_briar.sum()
    assert len(part.confidence) == kept[triage_data.confidence["sample"]].sum()


def test_a_confidence_counts_with_the_level_that_it_was_stated_with(study: Engine):
    """The newer prompt gives the level, also where the older one, with a confidence, was asked about the response later."""
    triage_data, _ = drawn(np.random.default_rng(5), n_cases=3, judges={})
    with writing(study) as session:
        stored(session, triage_data)
        old, new = (store.ensure_rater(session, RaterKind.JUDGE, "Wren", prompt_version=word) for word in ("p1", "p2"))
        given = [
            (0, new, Acuity.B, None),
            (0, old, Acuity.A, 0.3),
            (1, old, Acuity.C, 0.4),
            (2, new, Acuity.D, 0.5),
            (2, old, Acuity.A, 0.6),
        ]
        verdicts = [
            Verdict(
                example_id=int(triage_data.cases["example_id"][triage_data.samples["row"][place]]), response_id=int(triage_data.samples["response_id"][place]),
                criterion_id=None, rater_id=rater, stage=Stage.JUDGE, label=label, confidence=confidence,
            )
            for place, rater, label, confidence in given
        ]  # fmt: skip
        for verdict in verdicts:
            store.add_verdicts(session, [verdict], actor="set-up", action="verdicts made")
    found = loaded(study)
    assert found.levels["Wren"].iloc[:3].tolist() == [2.0, 3.0, 4.0]
    assert dict(zip(found.confidence["sample"], found.confidence["confidence"], strict=True)) == {1: 0.4, 2: 0.5}
