"""What a judge alone says of models: paired differences, how often one beats another, the worst of k answers, longer against shorter ones."""

import math

import msgspec
import numpy as np
import pandas as pd
from scipy.special import comb, stdtrit

from evalcore.rubric.scores import SMALL
from evalcore.stats import pair_tests
from evalcore.stats.arrays import Numbers, Truths, cells_of, quotient
from evalcore.stats.intervals import LEVEL, NO_SPREAD, SCORE_COLUMNS, as_scores, clustered_means, wilson

N_RESAMPLES = N_FLIPS = 10_000
LENGTH_TOLERANCE = 0.1  # lengths that differ by at most this share of their mean count as alike (arXiv 2505.08775)
TIE = 1e-9  # scores closer than this are equal: the difference is rounding (a jury's labels are means)
PER_CHARS = 1_000  # slopes are said as points of score a thousand characters
N_BINS = 5
MIN_SLOPE_EXAMPLES = 3  # A line through two examples fits them exactly and has no interval


def differences(
    scores: pd.DataFrame, *, rng: np.random.Generator, n_resamples: int = N_RESAMPLES, n_flips: int = N_FLIPS
) -> pd.DataFrame:
    """How far apart each pair of models is on the examples that both have a score on (`scores.example_scores`), in one judge's opinion.

        difference   mean of d_i = score of model_1 - score of model_2 on example i
        low, high    percentile interval (95 %) of the mean of d over resampled examples; a little narrow with few: below 20 `small` says so
        p            sign flips, two-sided: T = sum d_i, T* = sum s_i d_i with fair signs s; p = (#{|T*| >= |T|} + 1) / (n_flips + 1)
        p_max_t      the same for the largest |T*| / sqrt(sum d_i^2) over all pairs: the chance of any difference as clear where no model differs
        p_holm, p_bh p adjusted for the number of pairs: family-wise (Holm 1979), false discovery rate (Benjamini, Hochberg 1995)

    Returns:
        One row a pair, in the order of the columns of `scores`; n_left_out: examples with a score of one only; p in (0, 1]. Undefined is NaN: everything
        without a shared example, low and high with one example or where d is the same on all of them (its spread was not seen).
    """
    table = scores.sort_index().dropna(how="all")
    first, second = np.triu_indices(table.shape[1], k=1)
    values = table.to_numpy(dtype=float)
    gaps = pair_tests.differences(values)
    shared = ~np.isnan(gaps)
    n_examples = shared.sum(axis=0)
    either = (~np.isnan(values[:, first]) | ~np.isnan(values[:, second])).sum(axis=0)
    low, high = pair_tests.pair_percentiles(values, rng=rng, n_resamples=n_resamples, level=LEVEL)
    highest = np.where(shared, gaps, -np.inf).max(axis=0, initial=-np.inf)
    lowest = np.where(shared, gaps, np.inf).min(axis=0, initial=np.inf)
    unseen = ~(highest > lowest + TIE)
    p, p_max_t = pair_tests.sign_flip_chances(values, rng=rng, n_flips=n_flips)
    p, p_max_t = np.where(n_examples > 0, p, np.nan), np.where(n_examples > 0, p_max_t, np.nan)
    return pd.DataFrame(
        {
            "model_1": table.columns.to_numpy()[first],
            "model_2": table.columns.to_numpy()[second],
            "n_examples": n_examples,
            "n_left_out": either - n_examples,
            "difference": quotient(np.where(shared, gaps, 0.0).sum(axis=0), n_examples),
            "low": np.where(unseen, np.nan, low),
            "high": np.where(unseen, np.nan, high),
            "p": p,
            "p_holm": pair_tests.adjusted(p, pair_tests.holm),
            "p_bh": pair_tests.adjusted(p, pair_tests.benjamini_hochberg),
            "p_max_t": p_max_t,
            "small": n_examples < SMALL,
        }
    )


def judge_only_warning(judge: str) -> str:
    """What a comparison by a judge (or a jury) alone does not say, for the screen and for a paper."""
    return (
        f"These scores are the opinion of the judge {judge} alone. A difference that is clear here is clear in that opinion, on other examples "
        "of this kind; it is not a significant difference by physicians. For that, use the corrected difference."
    )


class WinRate(msgspec.Struct, frozen=True):
    """How often the first model's responses beat the second's."""

    share: float  # mean over examples of the share of decided pairs that the first wins, in [0, 1]; NaN without a decided pair
    low: float
    high: float
    n_examples: int  # with at least one decided pair
    n_pairs: int  # with a score of both that count
    n_ties: int  # of these: equal scores, which decide nothing
    n_unlike: int  # pairs left out because their lengths differ, or one is not known; 0 where length is not controlled


def win_rate(responses_1: pd.DataFrame, responses_2: pd.DataFrame, *, length_controlled: bool = False) -> WinRate:
    """The win rate of one model over another: all pairs of their responses to the same example, ties dropped, then the mean over examples (arXiv 2505.08775).

    With the examples' shares w_g, g = 1..G, and their mean m, the interval is Wilson's with n_eff = m (1-m) / (s^2/G) (t(n-1) / t(G-1))^2, s^2 the variance
    of w, kept between G and the number of decided pairs: so three wins out of three are not taken for certainty (Korn and Graubard 1998). Both frames
    are `scores.response_scores` by the same judge; length-controlled, only pairs count whose lengths are known and differ by at most 10 % of their mean.
    """
    columns = ["evaluation", "example_id", "score", "n_chars"]
    first, second = (rows[columns].astype({"evaluation": object}) for rows in (responses_1, responses_2))
    pairs = first.merge(second, on=columns[:2], suffixes=("_1", "_2"))
    scored = pairs["score_1"].notna() & pairs["score_2"].notna()
    alike = pd.Series(data=True, index=pairs.index)
    if length_controlled:
        one, other = pairs["n_chars_1"].astype(float), pairs["n_chars_2"].astype(float)
        alike = (one - other).abs().le(LENGTH_TOLERANCE * (one + other) / 2)
    compared = pairs.loc[scored & alike]
    gap = compared["score_1"].to_numpy(dtype=float) - compared["score_2"].to_numpy(dtype=float)
    decided = np.abs(gap) > TIE
    examples, names = pd.factorize(compared["example_id"].to_numpy()[decided])
    wins = np.bincount(examples, gap[decided] > 0, len(names)).astype(float)
    n_examples, n_decided = len(names), float(decided.sum())
    share = low = high = math.nan
    if n_examples:
        shares = wins / np.bincount(examples, minlength=n_examples)
        share, effective = float(shares.mean()), float(n_examples)
        if n_examples > 1:
            variance, tail = float(shares.var(ddof=1)) / n_examples, (1 + LEVEL) / 2
            if 0 < share < 1:
                effective = min(share * (1 - share) / variance, n_decided) if variance > 0 else n_decided
            few = float(stdtrit(max(effective, n_examples) - 1, tail) / stdtrit(n_examples - 1, tail)) ** 2
            effective = min(max(effective * few, n_examples), n_decided)
        low, high = map(float, wilson(share * effective, effective))
        low, high = max(min(low, share), 0.0), min(max(high, share), 1.0)
    return WinRate(
        share,
        low,
        high,
        n_examples=n_examples,
        n_pairs=len(compared),
        n_ties=int((~decided).sum()),
        n_unlike=int((scored & ~alike).sum()),
    )


def worst_at_k(responses: pd.DataFrame) -> pd.DataFrame:
    """The expected lowest score of k answers to one example, drawn from the N that the model gave, for every k that some example has.

    With the scores of an example in order, x_1 <= ... <= x_N, it is sum_j C(N - j, k - 1) / C(N, k) x_j, and worst-at-k is its mean over examples
    (arXiv 2505.08775, section on reliability). One row a model, evaluation and k, with the examples that have k scored answers (n_left_out: fewer) and
    the `SCORE_COLUMNS`, interval over examples (NaN with one example, or where all have the same value).
    """
    cells, keys = cells_of(responses, ["model", "evaluation"])
    examples = pd.factorize(responses["example_id"].to_numpy())[0]
    score = responses["score"].to_numpy(dtype=float)
    n_examples = int(examples.max(initial=0)) + 1
    of_example, pairs = pd.factorize(cells * n_examples + examples, sort=True)
    n_scored = np.bincount(of_example, ~np.isnan(score), len(pairs)).astype(np.int64)
    order = np.lexsort((score, of_example))
    order = order[~np.isnan(score[order])]
    example, ordered = of_example[order], score[order]
    place = np.arange(len(example)) - (np.cumsum(n_scored) - n_scored)[example] + 1  # j, from 1
    cell_of, example_of = np.divmod(pairs, n_examples)
    n_all = np.bincount(cell_of, minlength=len(keys))
    columns = ["model", "evaluation", "k", "n_examples", "n_left_out", *SCORE_COLUMNS]
    tables = [pd.DataFrame(columns=columns)]
    for k in range(1, int(n_scored.max(initial=0)) + 1):
        n, kept = n_scored[example], n_scored >= k
        share = np.divide(comb(n - place, k - 1), comb(n, k), out=np.zeros(len(n)), where=n >= k)
        lowest = np.bincount(example, share * ordered, len(pairs)).astype(float)[kept]
        means = clustered_means(cell_of[kept], example_of[kept], lowest, n_cells=len(keys))
        n_left_out = n_all - means["n_clusters"]
        table = keys.assign(k=k, n_examples=means["n_clusters"], n_left_out=n_left_out, **as_scores(means))
        tables.append(table.loc[table["n_examples"].gt(0)])
    table = pd.concat(tables[1:] or tables).sort_index(kind="stable")  # by model, then k
    return table[columns].reset_index(drop=True)


def length_slopes(responses: pd.DataFrame) -> pd.DataFrame:
    """By how much a model's score rises with the length of its response: a line through all its responses, interval by example (CR1; Liang and Zeger 1986).

    With lengths x in thousands of characters, x' = x - mean, residuals r, S = sum x'^2, and G examples:

        slope b = sum x' s / S,    v = G/(G-1) (n-1)/(n-2) sum_g (sum_{i in g} x'_i r_i)^2 / S^2,    b +- t(G-1) sqrt(v)

    One row a model and evaluation: n_left_out (responses without a score or length), the `SCORE_COLUMNS`, slope with its bounds, and correlation in [-1, 1]
    (Pearson's, over responses). NaN where all lengths are the same; the interval with fewer than three examples or where the line fits exactly.
    """
    every_cell, every_example, kept, keys = _cells(responses)
    n_cells = len(keys)
    cells, examples = every_cell[kept], every_example[kept]
    x = responses["n_chars"].to_numpy(dtype=float)[kept] / PER_CHARS
    y = responses["score"].to_numpy(dtype=float)[kept]
    n = np.bincount(cells, minlength=n_cells)
    mean_x, mean_y = (quotient(np.bincount(cells, values, n_cells), n) for values in (x, y))
    dx, dy = x - mean_x[cells], y - mean_y[cells]
    square, cross, spread = (np.bincount(cells, values, n_cells) for values in (dx**2, dx * dy, dy**2))
    square = np.where(square > NO_SPREAD, square, 0.0)
    slope = quotient(cross, square)
    residual = dy - slope[cells] * dx
    width = int(examples.max(initial=0)) + 1
    both, pairs = pd.factorize(cells * width + examples)
    cell_of = pairs // width
    n_examples = np.bincount(cell_of, minlength=n_cells)
    meat = np.bincount(cell_of, np.bincount(both, dx * residual, len(pairs)) ** 2, n_cells)
    enough = (n_examples >= MIN_SLOPE_EXAMPLES) & (n > 2)  # noqa: PLR2004 - two coefficients
    correction = quotient(n_examples * (n - 1.0), np.where(enough, (n_examples - 1.0) * (n - 2.0), 0.0))
    error = np.sqrt(correction * quotient(meat, square**2))
    error[error <= NO_SPREAD] = np.nan
    half = stdtrit(np.where(enough, n_examples - 1, np.nan), (1 + LEVEL) / 2) * error
    return keys.assign(
        n_examples=n_examples,
        n_responses=n,
        n_left_out=np.bincount(every_cell, minlength=n_cells) - n,
        mean_chars=mean_x * PER_CHARS,
        **as_scores(clustered_means(cells, examples, y, n_cells=n_cells)),
        slope=slope,
        slope_low=slope - half,
        slope_high=slope + half,
        correlation=quotient(cross, np.sqrt(square * np.where(spread > NO_SPREAD, spread, 0.0))).clip(-1, 1),
    )


def length_finding(slopes: pd.DataFrame) -> str:
    """Whose score rises or falls with the length of the response, by `length_slopes` of one evaluation: only where the slope's interval leaves out 0."""
    shown = slopes.loc[slopes["slope_low"].gt(0) | slopes["slope_high"].lt(0)]
    if shown.empty:
        return "No model is shown to score higher or lower where its responses are longer."
    parts = []
    for row in shown.to_dict(orient="records"):
        low, high = sorted(abs(row[f"slope_{end}"]) for end in ("low", "high"))
        way = f"{'higher' if row['slope'] > 0 else 'lower'} by {abs(row['slope']):.3f}"
        parts.append(f"of {row['model']} score {way} [{low:.3f}, {high:.3f}] per 1,000 characters")
    others = "; of the other models none is shown to score higher or lower" if len(shown) < len(slopes) else ""
    return f"Longer responses {'; '.join(parts)}{others}."


def length_bins(responses: pd.DataFrame, *, n_bins: int = N_BINS) -> pd.DataFrame:
    """Mean scores of each model's responses by length, in at most `n_bins` bins that all models share and that hold about as many responses each.

    Equal lengths are never apart. One row a model, evaluation and bin (from 1) that holds a response of it: from_chars and to_chars (of the bin, both
    inclusive), mean_chars (of the model's), counts, and the `SCORE_COLUMNS`, clustered by example (NaN with one example, or where all score the same).
    """
    cells, examples, kept, keys = _cells(responses)
    cells, examples = cells[kept], examples[kept]
    chars = responses["n_chars"].to_numpy(dtype=float)[kept]
    score = responses["score"].to_numpy(dtype=float)[kept]
    edges = np.unique(np.quantile(chars, np.arange(1, n_bins) / n_bins, method="lower")) if len(chars) else chars
    place = pd.factorize(np.searchsorted(edges, chars, side="left"), sort=True)[0]
    lengths = pd.Series(chars).groupby(place)
    first, last = lengths.min().to_numpy(), lengths.max().to_numpy()
    n_filled = len(first)
    at = cells * n_filled + place
    means = clustered_means(at, examples, score, n_cells=len(keys) * n_filled)
    row, number = np.divmod(np.arange(len(means)), max(n_filled, 1))
    table = keys.take(row).reset_index(drop=True).assign(
        bin=number + 1,
        from_chars=first[number],
        to_chars=last[number],
        mean_chars=quotient(np.bincount(at, chars, len(means)), means["n_values"]),
        n_examples=means["n_clusters"],
        n_responses=means["n_values"],
        **as_scores(means),
    )  # fmt: skip
    return table.loc[table["n_responses"].gt(0)].reset_index(drop=True)


def _cells(responses: pd.DataFrame) -> tuple[Numbers, Numbers, Truths, pd.DataFrame]:
    cells, keys = cells_of(responses, ["model", "evaluation"])
    kept = (responses["score"].notna() & responses["n_chars"].notna()).to_numpy(dtype=bool)
    return cells, pd.factorize(responses["example_id"].to_numpy())[0], kept, keys
