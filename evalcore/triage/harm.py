"""Expected harm of triage: what errors cost when one too low weighs more than one too high."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import stdtr, stdtrit

from evalcore.stats.arrays import Floats, Truths, quotient
from evalcore.stats.intervals import LEVEL
from evalcore.stats.pair_tests import adjusted, holm
from evalcore.stats.wording import listed
from evalcore.study.schema import Format
from evalcore.triage import rates
from evalcore.triage.data import N_LEVELS
from evalcore.triage.settings import OVER_WEIGHT, UNDER_WEIGHT
from evalcore.triage.words import number_words

HARM_COLUMNS = [*rates.KEYS, "n", "harm", "low", "high", "of_under", "of_over"]
HARM_COLUMNS += ["n_under", "n_over", "steps_under", "steps_over", "reason"]
NOT_BOTH = "no case with a clear gold has a prediction of both models"
_PLACES = 12
"""Decimals to which harms are told apart: those that are equal on paper differ by rounding."""
SHOWN = 0.05
"""A difference is told where its p, adjusted for the number of pairs, is below this."""


@dataclass(frozen=True)
class Weights:
    """What an answer too low and one too high cost, 0 or more; steps: as many times as it is levels off, or once."""

    under: float = UNDER_WEIGHT
    over: float = OVER_WEIGHT
    steps: bool = True

    @property
    def highest(self) -> float:
        """The most that an answer can cost."""
        return max(self.under, self.over) * (N_LEVELS - 1 if self.steps else 1)

    def costs(self, step: npt.NDArray[Any]) -> Floats:
        """What answers cost that lie so many levels above the gold (below 0: below it)."""
        size = np.abs(step) if self.steps else (step != 0).astype(float)
        found: Floats = np.where(step < 0, self.under, self.over) * size
        return found


USUAL_WEIGHTS = Weights()


def expected_harm(cells: pd.DataFrame, weights: Weights = USUAL_WEIGHTS) -> pd.DataFrame:
    """What an answer costs on average, with a t interval over cases.

    With d = prediction - gold of each of n cases:

        steps     harm = (under * sum of -d where d < 0 + over * sum of d where d > 0) / n
        counts    harm = (under * #(d < 0) + over * #(d > 0)) / n

    On cases drawn from published matrices, with weights 5 and 1, the 95 % interval covers .94 from 100 cases on, .92
    with 50 and .88 to .91 with 30: a few cases carry most of the harm, and in a small set they may be missing. `cells`:
    As `rates.confusion`. Gives a row a model and format, `HARM_COLUMNS`: of_under and of_over add up to harm; reason
    (why harm or interval is NaN).
    """
    names, counts = rates.matrices(cells)

    def total(values: npt.NDArray[Any], kind: Any = np.int64) -> npt.NDArray[Any]:
        return np.asarray((counts * values).sum(axis=(1, 2)), dtype=np.float64).astype(kind)

    n = counts.sum(axis=(1, 2))
    cost = weights.costs(rates.STEP)
    harm = quotient(total(cost, np.float64), n)
    squares = (counts * (cost - harm[:, None, None]) ** 2).sum(axis=(1, 2))
    half, reason = _t_half(n, squares, harm, rates.NO_CASE)
    of_under = quotient(total(np.where(rates.STEP < 0, cost, 0), np.float64), n)
    low, high = np.maximum(harm - half, 0), np.minimum(harm + half, weights.highest)
    parts = {"of_under": of_under, "of_over": harm - of_under}
    table = names.assign(n=n.astype(np.int64), harm=harm, low=low, high=high, **parts)
    table = table.assign(n_under=total(rates.STEP < 0), n_over=total(rates.STEP > 0))
    table["steps_under"] = total(-np.minimum(rates.STEP, 0))
    return table.assign(steps_over=total(np.maximum(rates.STEP, 0)), reason=reason)


def _t_half(n: Floats, squares: Floats, mean: Floats, none: str) -> tuple[Floats, npt.NDArray[Any]]:
    """Half a t interval of a mean: t(n - 1) sqrt(squares / (n (n - 1))); NaN with a reason."""
    few = n < rates.MIN_CASES
    se = np.sqrt(quotient(np.where(few, np.nan, squares), n * np.maximum(n - 1, 0)))
    same = se <= rates.NO_ERROR * np.maximum(1.0, np.abs(mean))
    reason = np.select([n == 0, few, same], [none, rates.TOO_FEW, rates.NO_SPREAD], "").astype(object)
    half = stdtrit(np.maximum(n - 1, 1), (1 + LEVEL) / 2) * np.where(reason == "", se, np.nan)
    return half, reason


def on_same_cases(found: pd.DataFrame) -> pd.DataFrame:
    """The predictions on clear cases that every model with any answer in the format answered."""
    mine = found.loc[rates.clear_answers(found)[0]]
    n_models = mine.groupby("format", observed=True)["model"].transform("nunique")
    n_answers = mine.groupby(["format", "row"], observed=True)["model"].transform("size")
    return mine.loc[n_answers.eq(n_models)]


def paired_sums(found: pd.DataFrame, counts: Truths, values: Floats) -> pd.DataFrame:
    """What a value adds up to on the cases of both of two models: n, sums, sums of squares, and of products."""
    formats, of_formats = rates.coded(found, ["format"])
    models, of_models = rates.coded(found, ["model"])
    rows = pd.factorize(found["row"])[0]
    first, second = np.triu_indices(len(of_models), k=1)
    shape = (int(rows.max(initial=-1)) + 1, len(of_models))
    tables = []
    for place in range(len(of_formats)):
        mine = counts & (formats == place)
        value, known = np.zeros((2, *shape))
        value[rows[mine], models[mine]] = values[mine]
        known[rows[mine], models[mine]] = 1
        table = pd.DataFrame({"format": of_formats["format"].array.take(np.full(len(first), place))})
        table["model_1"], table["model_2"] = (of_models["model"].array.take(which) for which in (first, second))
        table["n"] = (known.T @ known)[first, second].astype(np.int64)
        for name, sums in (("sum", value.T @ known), ("square", (value**2).T @ known)):
            table[f"{name}_1"], table[f"{name}_2"] = sums[first, second], sums[second, first]
        tables.append(table.assign(product=(value.T @ value)[first, second]))
    names = ["format", "model_1", "model_2", "n", "sum_1", "sum_2", "square_1", "square_2", "product"]
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame({name: [] for name in names})


def by_holm(p: pd.Series, formats: pd.Series) -> pd.Series:
    """P values adjusted by Holm's method for the pairs of each format."""
    return p.groupby(formats.astype(str), sort=False).transform(lambda values: adjusted(values.to_numpy(), holm))


def harm_differences(found: pd.DataFrame, weights: Weights = USUAL_WEIGHTS) -> pd.DataFrame:
    """The difference of each two models' harm on the cases of both; below 0 the first does less; p_holm: by format."""
    counts, gold, predicted = rates.clear_answers(found)
    sums = paired_sums(found, counts, weights.costs(predicted - gold))
    n, one, other, product = (sums[name].to_numpy(dtype=float) for name in ("n", "sum_1", "sum_2", "product"))
    difference = quotient(one - other, n)
    squares = sums["square_1"].to_numpy(dtype=float) + sums["square_2"].to_numpy(dtype=float) - 2 * product
    around = np.maximum(squares - n * np.nan_to_num(difference) ** 2, 0)
    half, reason = _t_half(n, around, difference, NOT_BOTH)
    t = np.abs(difference) / half * stdtrit(np.maximum(n - 1, 1), (1 + LEVEL) / 2)
    table = sums[["format", "model_1", "model_2", "n"]].assign(
        difference=difference, low=difference - half, high=difference + half, p=2 * stdtr(np.maximum(n - 1, 1), -t)
    )
    return table.assign(p_holm=by_holm(table["p"], table["format"]), reason=reason)


def orders(harm: pd.DataFrame, ratios: Sequence[float] | Floats, *, steps: bool = True) -> pd.DataFrame:
    """The models' harm (ratio * under + over) and place in each format by ratio; equals share the better place."""
    under, over = _lines(harm, steps=steps)
    at = np.asarray(ratios, dtype=float)
    table = rates.repeated(harm[list(rates.KEYS)], len(at))
    table = table.assign(ratio=np.tile(at, len(harm)), harm=(under[:, None] * at + over[:, None]).ravel())
    rounded = table["harm"].round(_PLACES)
    table["place"] = rounded.groupby([table["format"], table["ratio"]], observed=True).rank(method="min").astype(float)
    return table.sort_values(["format", "model", "ratio"], kind="stable", ignore_index=True)


def changes(harm: pd.DataFrame, *, steps: bool = True) -> pd.DataFrame:
    """At which ratio of the weights two models of one format change places: where their lines of harm cross.

    With u and o the mean cost of errors too low and too high (at weights of 1), ratio = (o_2 - o_1) / (u_1 - u_2),
    above 0. less_below: The model that does less harm when under-triage weighs less; less_above: more; harm: of both,
    there.
    """
    under, over = _lines(harm, steps=steps)
    formats, known = pd.factorize(harm["format"])[0], ~np.isnan(under)
    one, other = np.triu_indices(len(harm), k=1)
    same = (formats[one] == formats[other]) & known[one] & known[other]
    one, other = one[same], other[same]
    gap_under = under[one] - under[other]
    gap_over = over[other] - over[one]
    # A gap that is rounding is none; lines that differ in one direction alone meet nowhere, or at 0.
    crossing = (np.abs(gap_under) > rates.NO_ERROR) & (np.abs(gap_over) > rates.NO_ERROR) & (gap_under * gap_over > 0)
    one, other, gap_under, gap_over = one[crossing], other[crossing], gap_under[crossing], gap_over[crossing]
    at = gap_over / gap_under
    first_above = gap_under < 0  # the flatter line lies lower from there on
    below, above = (harm["model"].array.take(np.where(first_above, *of)) for of in ((other, one), (one, other)))
    table = pd.DataFrame({"format": harm["format"].array.take(one), "ratio": at, "less_below": below})
    table = table.assign(less_above=above, harm=under[one] * at + over[one])
    return table.iloc[np.lexsort((at, formats[one]))].reset_index(drop=True)


def _lines(harm: pd.DataFrame, *, steps: bool) -> tuple[Floats, Floats]:
    kind = "steps" if steps else "n"
    under, over = (quotient(harm[f"{kind}_{way}"], harm["n"]) for way in ("under", "over"))
    return under, over


def harm_sentences(
    harm: pd.DataFrame, weights: Weights, differences: pd.DataFrame | None = None, *, ranked: bool = True
) -> list[str]:
    """How much harm models do in each format, and which are shown to do less; `ranked`: on the same cases."""
    sentences = []
    for word in Format:
        mine = harm.loc[harm["format"].eq(word) & harm["harm"].notna()]
        if not len(mine):
            continue
        rows = mine.sort_values("harm", kind="stable").to_dict(orient="records")
        least, most = (number_words(row["harm"], row["low"], row["high"], row["reason"]) for row in (rows[0], rows[-1]))
        known = f"the expected harm of {rows[0]['model']} is {least}"
        if len(rows) > 1:
            lowest, highest = (", the lowest", ", the highest") if len(rows) > 2 else ("", "")  # noqa: PLR2004
            known = f"expected harm: {rows[0]['model']}'s is {least}{lowest}; {rows[-1]['model']}'s is {most}{highest}"
            known = known if ranked else "each model's expected harm is of other responses"
        head = f"In {word}, with weights {weights.under:g} for too low and {weights.over:g} for too high, {known}."
        if len(mine) > 1:
            pairs = None if differences is None else differences.loc[differences["format"].astype(str).eq(word)]
            head = f"{head} {_apart(mine, pairs)}"
        sentences.append(head)
    return sentences


def _apart(mine: pd.DataFrame, differences: pd.DataFrame | None) -> str:
    names = [str(name) for name in mine["model"]]
    if differences is None or not differences["p_holm"].notna().any():
        return "Which of them differ cannot be said yet."
    less = {name: set[str]() for name in names}
    for row in differences.loc[differences["p_holm"].lt(SHOWN)].to_dict(orient="records"):
        one, other = str(row["model_1"]), str(row["model_2"])
        better, worse = (one, other) if row["difference"] < 0 else (other, one)
        if better in less and worse in less:
            less[better].add(worse)
    if best := [name for name in names if len(less[name]) == len(names) - 1]:
        others = "the other" if len(names) == 2 else f"each of the {len(names) - 1:,} others"  # noqa: PLR2004
        return f"On the same cases {best[0]} does less harm than {others}."
    known = [f"{name} does less harm than {listed(sorted(worse))}" for name, worse in less.items() if worse]
    if known:
        return f"On the same cases {'; '.join(known)}; the other pairs are not shown to differ."
    return "On the same cases no two models are shown to differ."
