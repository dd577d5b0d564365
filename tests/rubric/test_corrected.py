"""The corrected scores of a study: what counts, what is left out, when there is enough, and what the numbers must do."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from scipy.stats import norm, t as students

from evalcore.rubric.corrected import (
    CORRECTED,
    JUDGE,
    KINDS,
    PHYSICIANS,
    Estimate,
    anytime_factor,
    claim_sentence,
    estimates_of,
    estimator_inputs,
)
from evalcore.rubric.data import RubricData
from evalcore.study.schema import Claim, Physicians
from tests.population import corrected_differences, corrected_scores, drawn, example_terms

some = settings(max_examples=4, deadline=None)
seeds = st.integers(0, 10_000)
NUMBERS = [kind + suffix for kind in KINDS for suffix in ("", "_low", "_high", "_se")]


def study(seed=1, **how):
    """Sixty examples, half of the items read, unless said otherwise; and what is true."""
    return drawn(np.random.default_rng(seed), **({"n_examples": 60, "share_read": 0.5} | how))


def one(rubric_data, **how):
    """The row of a study with one model."""
    (row,) = corrected_scores(rubric_data, **how).to_dict(orient="records")
    return row


def true_score(rubric_data, truth):
    """The mean over responses of achieved over possible points."""
    points = rubric_data.items["points"]
    by_response = pd.DataFrame({"achieved": points * truth, "possible": points.clip(lower=0)}).groupby(
        rubric_data.items["response_id"]
    )
    sums = by_response.sum()
    return (sums["achieved"] / sums["possible"]).mean()


def width(row, kind=CORRECTED):
    return row[f"{kind}_high"] - row[f"{kind}_low"]


# ---------------------------------------------------------------- what the numbers are


def test_judge_only_is_the_mean_of_the_responses_scores_without_sampling_error_on_this_benchmark():
    rubric_data, _ = study()
    row = one(rubric_data)
    assert row["judge_only"] == pytest.approx(true_score(rubric_data, rubric_data.judged["Magpie"]))
    assert (row["judge_only_low"], row["judge_only_high"], row["judge_only_se"]) == (row[JUDGE], row[JUDGE], 0)


def test_judge_only_for_new_examples_has_the_standard_error_of_the_examples_scores():
    rubric_data, _ = study()
    scored = rubric_data.items.assign(
        achieved=rubric_data.items["points"] * rubric_data.judged["Magpie"],
        possible=rubric_data.items["points"].clip(lower=0),
    )
    sums = scored.groupby("example_id")[["achieved", "possible"]].sum()
    scores = sums["achieved"] / sums["possible"]
    row = one(rubric_data, claim=Claim.NEW_EXAMPLES)
    assert row["judge_only_se"] == pytest.approx(scores.std(ddof=1) / np.sqrt(60))
    # t(59): .975 quantile 2.000995 (scipy 1.17, scipy.stats.t.ppf(.975, 59))
    assert width(row, JUDGE) == pytest.approx(2 * 2.000995 * row["judge_only_se"], rel=1e-6)


def test_several_judges_are_judge_only_the_mean_of_their_labels():
    rubric_data, _ = study(judges={"Magpie": 0.8, "Wren": 0.6, "Finch": 0.7})
    row = one(rubric_data, judges=["Magpie", "Wren"])
    assert row["judge_only"] == pytest.approx(
        true_score(rubric_data, rubric_data.judged[["Magpie", "Wren"]].mean(axis=1).to_numpy())
    )


@pytest.mark.parametrize("physicians", [Physicians.THESE])
@pytest.mark.parametrize("accuracy", [0.8, 1.0])
def test_at_full_read_corrected_and_physicians_only_are_the_truth_with_width_0(accuracy, physicians):
    rubric_data, truth = study(share_read=1.0, judges={"Magpie": accuracy}, readers=("Dr. Noor",))
    row = one(rubric_data, physicians=physicians)
    for kind in (PHYSICIANS, CORRECTED):
        assert row[kind] == pytest.approx(true_score(rubric_data, truth))
        assert width(row, kind) == pytest.approx(0, abs=1e-12)
    assert (row["worth"], row["worth_low"], row["worth_high"]) == (0, 0, 0)


def test_at_full_read_the_interval_for_new_examples_is_that_of_the_true_scores():
    rubric_data, truth = study(share_read=1.0)
    told = replace(rubric_data, judged=pd.DataFrame({"Truth": truth.astype(np.float32)}))
    known, row = one(told, claim=Claim.NEW_EXAMPLES), one(rubric_data, claim=Claim.NEW_EXAMPLES)
    assert known["judge_only_se"] == pytest.approx(known["corrected_se"])
    # leverage makes e/(1-h) of an imperfect judge a little larger than e
    assert row["corrected_se"] == pytest.approx(known["corrected_se"], rel=0.02)


def test_a_judge_who_is_always_right_still_has_an_interval_while_not_everything_is_read():
    row = one(study(judges={"Magpie": 1.0})[0])
    assert width(row) > 0.005
    assert row["corrected"] == pytest.approx(row["judge_only"])


def test_a_judge_who_is_always_too_kind_is_corrected():
    rubric_data, truth = study(n_examples=300, judges={"Magpie": 0.8})
    kind = np.where(rubric_data.items["points"].gt(0) & (truth == 0), 1.0, truth).astype(np.float32)
    row = one(replace(rubric_data, judged=pd.DataFrame({"Kind": kind})))
    true = true_score(rubric_data, truth)
    assert row["judge_only"] > true + 0.1
    assert row["corrected_low"] <= true <= row["corrected_high"]


@pytest.mark.parametrize("share_read", [0.1, 0.5])
@pytest.mark.parametrize("physicians", Physicians)
def test_the_interval_for_new_examples_is_never_narrower_than_that_for_this_benchmark(physicians, share_read):
    for seed in range(10):
        rubric_data = drawn_by_three(study(seed, n_examples=100, share_read=share_read)[0])
        narrow, wide = (one(rubric_data, claim=claim, physicians=physicians) for claim in Claim)
        assert narrow["enough"]
        for kind in KINDS:
            assert width(narrow, kind) <= width(wide, kind) + 1e-12
        assert width(narrow, JUDGE) < width(wide, JUDGE)


def test_for_new_examples_and_physicians_in_general_the_variance_has_both_parts():
    # V_physicians + (V_B - V_A), each from the claim that shows it
    (about,) = estimator_inputs(drawn_by_three(study(n_examples=100)[0]))
    squares = {
        (claim, physicians): estimates_of(about, claim=claim, physicians=physicians).of_kind[CORRECTED].widths[-1][0]
        for claim in Claim
        for physicians in Physicians
    }
    these = [squares[claim, Physicians.THESE] for claim in Claim]
    general = [squares[claim, Physicians.IN_GENERAL] for claim in Claim]
    assert these[1] > these[0]
    assert general[1] == pytest.approx(general[0] + these[1] - these[0])


def test_few_examples_have_few_degrees_of_freedom_however_many_items_were_read():
    # t(11): .975 quantile 2.200985 (scipy 1.17, scipy.stats.t.ppf(.975, 11))
    row = one(study(n_examples=12, share_read=1.0)[0], claim=Claim.NEW_EXAMPLES)
    assert row["n_units"] > 60
    assert width(row) == pytest.approx(2 * 2.200985 * row["corrected_se"], rel=1e-6)


def test_few_reads_have_few_degrees_of_freedom_however_many_examples_there_are():
    # at most k - 1 are left of k items read: t(k - 1) at least, where t(N - 1) would be 1.96
    row = one(study(n_examples=1000, share_read=0.006)[0], claim=Claim.NEW_EXAMPLES)
    assert 30 <= row["n_units"] < 60
    assert width(row) >= 2 * students.ppf(0.975, row["n_units"] - 1) * row["corrected_se"]


def drawn_by_three(rubric_data):
    """The same reads, made by three physicians in turn."""
    names = np.array(["Dr. A", "Dr. B", "Dr. C"])
    return replace(rubric_data, reads=rubric_data.reads.assign(rater=names[np.arange(len(rubric_data.reads)) % 3]))


def test_physicians_who_differ_widen_the_interval_for_physicians_in_general():
    readers = ("Dr. A", "Dr. B", "Dr. C", "Dr. D")
    leanings = {"Dr. A": 0.5, "Dr. B": -0.5, "Dr. C": 0.3}
    alike, _ = study(n_examples=300, readers=readers)
    apart, _ = study(n_examples=300, readers=readers, leanings=leanings)
    widths = [width(one(rubric_data, physicians=Physicians.IN_GENERAL)) for rubric_data in (alike, apart)]
    assert widths[1] > 2 * widths[0]


def test_the_standard_error_is_that_of_the_interval_also_where_a_narrower_claim_gives_it():
    widths = (0.04, np.inf), (0.02, np.inf), (0.01, np.inf)
    found = Estimate(0.5, 0.0, np.empty(0), widths).columns(CORRECTED)
    assert found[f"{CORRECTED}_se"] == pytest.approx(0.2)
    assert found[f"{CORRECTED}_high"] - 0.5 == pytest.approx(norm.ppf(0.975) * 0.2)


def test_terms_of_examples_average_to_the_scores():
    rubric_data, _ = study(models=("Alder", "Birch"), n_repeats=2)
    terms = example_terms(rubric_data).groupby("model").mean(numeric_only=True)
    scores = corrected_scores(rubric_data).set_index("model")
    for psi, kind in (("psi_judge_only", JUDGE), ("psi_physicians_only", PHYSICIANS), ("psi_corrected", CORRECTED)):
        assert terms[psi].to_numpy() == pytest.approx(scores[kind].to_numpy())
    sums = example_terms(rubric_data).groupby("model")
    assert sums["share"].sum().to_numpy() == pytest.approx(1)
    errors = corrected_scores(rubric_data, claim=Claim.NEW_EXAMPLES).set_index("model")["corrected_se"]
    assert (sums["psi_corrected"].std() / np.sqrt(sums.size())).to_numpy() == pytest.approx(errors.to_numpy())


def test_repeats_of_an_example_are_together():
    # The same responses three times over, all said again by the judge: three times the responses, and not a bit surer.
    rubric_data, _ = study(share_read=0.0)
    again = [rubric_data.items.assign(response_id=rubric_data.items["response_id"] + 1000 * k) for k in range(3)]
    items = pd.concat(again, ignore_index=True)
    thrice = RubricData(items, pd.concat([rubric_data.judged] * 3, ignore_index=True), rubric_data.reads)
    row, wide = one(rubric_data, claim=Claim.NEW_EXAMPLES), one(thrice, claim=Claim.NEW_EXAMPLES)
    assert (wide["n_responses"], wide["n_examples"]) == (180, 60)
    assert [wide[name] for name in NUMBERS[:4]] == pytest.approx([row[name] for name in NUMBERS[:4]])


def test_weights_weight_examples():
    rubric_data, _ = study(n_examples=100)
    ones = pd.Series(1.0, index=range(1, 101))
    same = pd.DataFrame([one(rubric_data), one(rubric_data, weights=7 * ones)])
    assert same[NUMBERS].iloc[0].to_numpy(dtype=float) == pytest.approx(same[NUMBERS].iloc[1].to_numpy(dtype=float))
    half = rubric_data.where(rubric_data.items["example_id"].le(50))
    assert one(rubric_data, weights=ones.where(ones.index <= 50, 0.0))["judge_only"] == pytest.approx(
        one(half)["judge_only"]
    )
    heavy = rubric_data.where(rubric_data.items["example_id"].eq(7))
    tilted = ones.where(ones.index != 7, 99.0)
    assert one(rubric_data, weights=tilted)["judge_only"] == pytest.approx(
        (100 * one(rubric_data)["judge_only"] + 98 * one(heavy)["judge_only"]) / 198
    )


def test_an_example_without_a_weight_is_left_out():
    rubric_data, _ = study()
    row = one(rubric_data, weights=pd.Series(1.0, index=range(1, 60)))
    assert (row["n_examples"], row["n_left_out"]) == (59, 1)


# ---------------------------------------------------------------- what counts


def test_what_was_read_is_counted():
    rubric_data, _ = study(n_readers=2, readers=("Dr. A", "Dr. B", "Dr. C"))
    row = one(rubric_data)
    read = rubric_data.reads["row"].nunique()
    assert {name: row[name] for name in ("n_read", "n_reads", "n_readers", "n_units", "n_cannot_assess", "n_items")} == {
        "n_read": read, "n_reads": 2 * read, "n_readers": 3, "n_units": read, "n_cannot_assess": 0, "n_items": len(rubric_data.items),
    }  # fmt: skip


def test_responses_that_no_drawing_could_have_taken_are_counted():
    rubric_data, _ = study()
    beyond = rubric_data.items["example_id"].le(5)
    row = one(replace(rubric_data, items=rubric_data.items.assign(reachable=~beyond)))
    assert (row["n_unreached"], one(rubric_data)["n_unreached"]) == (5, 0)
    unread = replace(rubric_data, items=rubric_data.items.assign(reachable=False), reads=rubric_data.reads.head(0))
    assert one(unread)["n_unreached"] == 0  # nothing is read: there is no drawing that it could be out of reach of


def test_whole_responses_are_the_units_where_they_were_drawn():
    rubric_data, _ = study(whole_responses=True)
    row = one(rubric_data)
    assert row["n_units"] == rubric_data.reads["response_id"].nunique() < row["n_read"]


def test_a_response_that_a_judge_has_not_labelled_wholly_is_left_out_for_all_kinds():
    rubric_data, _ = study(judges={"Magpie": 0.8, "Wren": 0.7})
    rubric_data.judged.loc[3, "Wren"] = np.nan
    kept = rubric_data.where(rubric_data.items["response_id"].ne(rubric_data.items["response_id"][3]))
    row, wanted = one(rubric_data), one(kept)
    assert (row["n_left_out"], row["n_responses"]) == (1, 59)
    assert {name: row[name] for name in NUMBERS} == pytest.approx({name: wanted[name] for name in NUMBERS})
    assert one(rubric_data, judges=["Magpie"])["n_left_out"] == 0


def test_a_response_without_a_score_is_left_out():
    rubric_data, _ = study()
    first = rubric_data.items["example_id"].eq(1)
    negative = replace(
        rubric_data, items=rubric_data.items.assign(points=rubric_data.items["points"].where(~first, -2.0))
    )
    unknown = replace(
        rubric_data,
        items=rubric_data.items.assign(points=rubric_data.items["points"].where(rubric_data.items.index > 0)),
    )
    assert [one(negative)["n_left_out"], one(unknown)["n_left_out"], one(rubric_data)["n_left_out"]] == [1, 1, 0]


def test_a_read_that_could_not_assess_is_counted_and_is_as_if_the_item_had_not_been_drawn():
    rubric_data, _ = study(share_read=1.0)
    unknown = rubric_data.reads.index < 20
    told = replace(rubric_data, reads=rubric_data.reads.assign(met=rubric_data.reads["met"].mask(unknown)))
    fewer = replace(rubric_data, reads=rubric_data.reads.loc[~unknown].reset_index(drop=True))
    row, wanted = one(told), one(fewer)
    assert (row["n_cannot_assess"], row["n_read"]) == (20, len(rubric_data.items) - 20)
    assert {name: row[name] for name in NUMBERS} == pytest.approx({name: wanted[name] for name in NUMBERS})
    assert width(row) > 0  # not everything is known, though everything was drawn


@pytest.mark.parametrize(
    "change", [{"selection": "volunteered"}, {"selection": "adjudication"}, {"blinded": False}, {"stage": "revised"}, {"stage": "open"}]
)  # fmt: skip
def test_reads_that_were_not_drawn_or_not_blind_change_nothing(change):
    rubric_data, truth = study()
    unread = np.setdiff1d(np.arange(len(truth)), rubric_data.reads["row"])
    wrong = rubric_data.reads.iloc[np.zeros(len(unread), dtype=int)].assign(
        row=unread, met=1 - truth[unread].to_numpy()
    )
    more = replace(rubric_data, reads=pd.concat([rubric_data.reads, wrong.assign(**change)], ignore_index=True))
    assert one(more) == pytest.approx(one(rubric_data), nan_ok=True)


def test_where_settled_is_asked_the_adjudicated_label_takes_the_readers_place():
    rubric_data, truth = study(reader_accuracy=0.6, share_read=1.0)
    final = rubric_data.reads.assign(
        stage="adjudicated", met=truth[rubric_data.reads["row"]].to_numpy(), selection="adjudication"
    )
    both = replace(rubric_data, reads=pd.concat([rubric_data.reads, final], ignore_index=True))
    assert one(both, settled=True)["physicians_only"] == pytest.approx(true_score(rubric_data, truth))
    assert one(both)["physicians_only"] == pytest.approx(one(rubric_data)["physicians_only"])


def test_who_could_not_assess_a_settled_item_stands_for_it_as_if_they_had_said_the_settled_label():
    readers = ("Dr. A", "Dr. B", "Dr. C")
    rubric_data, _ = study(readers=readers)
    unknown = rubric_data.reads.index < 15
    final = rubric_data.reads.loc[unknown].assign(stage="adjudicated", selection="adjudication", rater="Dr. Z")
    told = rubric_data.reads.assign(met=rubric_data.reads["met"].mask(unknown))
    both = replace(rubric_data, reads=pd.concat([told, final], ignore_index=True))
    how = {"settled": True, "physicians": Physicians.IN_GENERAL}
    row, wanted = one(both, **how), one(rubric_data, **how)
    assert (row["n_cannot_assess"], row["n_read"]) == (15, wanted["n_read"])
    assert {name: row[name] for name in NUMBERS} == pytest.approx({name: wanted[name] for name in NUMBERS})


def test_without_a_judge_physicians_speak_alone():
    row = one(study()[0], judges=[])
    assert np.isnan([row["judge_only"], row["corrected"], row["worth"]]).all()
    assert width(row, PHYSICIANS) > 0


def test_models_and_evaluations_are_kept_apart():
    rubric_data, _ = study(models=("Alder", "Birch"))
    scores = corrected_scores(rubric_data)
    assert scores["model"].tolist() == ["Alder", "Birch"]
    alone = one(rubric_data.where(rubric_data.items["model"].eq("Birch")))
    assert scores.iloc[1].to_dict() == pytest.approx(
        alone, nan_ok=True
    )  # no data set of HealthBench: no length-adjusted score
    nothing = corrected_scores(rubric_data.where(np.zeros(len(rubric_data.items), dtype=bool)))
    assert list(nothing.columns) == list(scores.columns)
    assert nothing.empty


# ---------------------------------------------------------------- what must not change them


@given(seeds, st.booleans())
@some
def test_the_order_of_rows_does_not_matter(seed, in_general):
    rubric_data, _ = study(seed % 50, models=("Alder", "Birch"), readers=("A", "B", "C"), n_readers=2)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(rubric_data.items))
    places = np.argsort(order)
    reads = rubric_data.reads.assign(row=places[rubric_data.reads["row"]])
    turned = RubricData(
        rubric_data.items.iloc[order].reset_index(drop=True),
        rubric_data.judged.iloc[order].reset_index(drop=True),
        reads.iloc[rng.permutation(len(reads))].reset_index(drop=True),
    )
    how = {"claim": Claim.NEW_EXAMPLES, "physicians": Physicians.IN_GENERAL if in_general else Physicians.THESE}
    pd.testing.assert_frame_equal(corrected_scores(turned, **how), corrected_scores(rubric_data, **how), rtol=1e-7)


@given(seeds, st.floats(0.2, 1.0))
@some
def test_a_drawing_that_is_partly_read_is_as_sure_as_what_was_read_of_it(seed, scale):
    # Probabilities of .5 for items of which only half were read so far: the numbers are those of a draw with .25.
    rubric_data, _ = study(seed % 50)
    told = rubric_data.reads.assign(inclusion_probability=rubric_data.reads["inclusion_probability"] * scale)
    assert one(replace(rubric_data, reads=told)) == pytest.approx(
        one(rubric_data), nan_ok=True
    )  # a study outside HealthBench has no length-adjusted score


@given(seeds)
@some
def test_a_judge_that_always_says_the_same_changes_only_judge_only(seed):
    rubric_data, _ = study(seed % 50)
    more = replace(rubric_data, judged=rubric_data.judged.assign(Constant=np.float32(1)))
    row, other = one(rubric_data), one(more)
    assert other["judge_only"] != row["judge_only"]
    assert {name: other[name] for name in NUMBERS[4:]} == pytest.approx({name: row[name] for name in NUMBERS[4:]})


# ---------------------------------------------------------------- words


def test_each_claim_has_its_own_sentence():
    said = {claim_sentence(claim, physicians) for claim in Claim for physicians in Physicians}
    assert len(said) == 4
    assert all(sentence.startswith("The interval says where the score would lie") for sentence in said)


# ---------------------------------------------------------------- looks in between


def test_who_looks_again_and_again_is_right_at_all_looks_with_the_wider_interval_alone():
    # 2,000 studies read one by one, each looked at after every read from the 30th to the 1,000th: 95 % of these should hold throughout
    rng = np.random.default_rng(1)
    n = np.arange(1, 1001)
    means = np.cumsum(rng.normal(size=(2000, 1000)), axis=1) / n
    half = 1.96 / np.sqrt(n[29:])
    wider = half * np.array([anytime_factor(int(looked)) for looked in n[29:]])
    away = np.abs(means[:, 29:])
    assert (away <= half).all(axis=1).mean() < 0.7
    assert (away <= wider).all(axis=1).mean() > 0.95


def test_the_interval_for_looks_at_any_time_stands_beside_the_ordinary_one():
    row = one(study()[0])
    half = row["corrected_high"] - row["corrected"]
    assert row["corrected_any_high"] - row["corrected"] == pytest.approx(half * anytime_factor(row["n_units"]))
    assert row["corrected_any_low"] < row["corrected_low"]
    assert np.isnan(one(study(share_read=0.02)[0])["corrected_any_low"])


@given(seeds, st.sampled_from([0.2, 0.5, 1.0]), st.sampled_from([0.0, 0.4]))
@some
def test_a_wider_claim_never_has_the_narrower_interval(seed, share_read, leaning):
    # of scores and of differences; physicians who are alike by chance do not make the interval for all physicians the narrower one
    names = ("Dr. A", "Dr. B", "Dr. C", "Dr. D")
    leanings = dict(zip(names, (leaning, -leaning, leaning / 2, 0.0), strict=True))
    rubric_data, _ = study(
        seed, share_read=share_read, readers=names, leanings=leanings, models=("Alder", "Birch"), reader_accuracy=0.9
    )
    halves = {}
    for claim in Claim:
        for physicians in Physicians:
            scores = corrected_scores(rubric_data, claim=claim, physicians=physicians)
            pairs = corrected_differences(rubric_data, claim=claim, physicians=physicians)
            of_scores = [(scores[f"{kind}_high"] - scores[kind]).to_numpy() for kind in (PHYSICIANS, CORRECTED)]
            halves[claim, physicians] = np.concatenate([*of_scores, pairs["high"] - pairs["difference"]])
            assert not np.isnan(halves[claim, physicians]).any()
    for claim in Claim:
        assert (halves[claim, Physicians.IN_GENERAL] >= halves[claim, Physicians.THESE] - 1e-12).all()
    for physicians in Physicians:
        assert (halves[Claim.NEW_EXAMPLES, physicians] >= halves[Claim.BENCHMARK, physicians] - 1e-12).all()
