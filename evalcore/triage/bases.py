"""Matrices, rates, harm and differences by whoever says the level of an answer: judge, physicians, or both."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import pandas as pd

from evalcore.rubric import corrected as estimates
from evalcore.stats.arrays import Floats, quotient
from evalcore.stats.estimator import by_physicians as fit_by_physicians
from evalcore.stats.intervals import signed_points
from evalcore.stats.pair_tests import against_margin, margin_words
from evalcore.stats.wording import chance_words, counted, decimal
from evalcore.study.analysis import Analysis
from evalcore.study.schema import Format, Physicians
from evalcore.triage import corrected, harm as triage_harm, rates as triage_rates
from evalcore.triage.cases import bonett_price, mcnemar
from evalcore.triage.corrected import BOUNDS, CORRECTED, MEASURES, USUAL, Answers, Held
from evalcore.triage.data import TriageData
from evalcore.triage.harm import SHOWN, Weights, changes, expected_harm
from evalcore.triage.rates import RULES, STEP, Measure, confusion, denominator_words
from evalcore.triage.settings import METRICS
from evalcore.triage.words import by_model, rate_words, short_reason

PUBLISHED = " (published)"
"""Behind the name of a model whose finished matrix was imported: it may also have cases here."""
_WORDS = {"model": str, "format": str}


class Basis(StrEnum):
    """Who says which level an answer gives."""

    JUDGE = "by judge"
    PHYSICIANS = "by physicians"
    CORRECTED = "corrected"
    """The judge on all answers, put right by what physicians read on some."""


WHOSE = {
    Basis.JUDGE: "In the judge's opinion",
    Basis.PHYSICIANS: "By what physicians read",
    Basis.CORRECTED: "After correction",
}


@dataclass(frozen=True)
class LevelsBy:
    """Whose levels count; `found`: of `predictions.joined`; `known`: of `answered`, by judge nothing."""

    basis: Basis
    triage_data: TriageData
    found: pd.DataFrame
    held: Held = USUAL
    known: Sequence[Answers] = ()


def usual_held(known: Sequence[Answers], spec: Analysis) -> tuple[Held, str]:
    """What intervals are to hold for: as stated, else the widest claim that the reads carry; and why."""
    exact = MEASURES[Measure.EXACT]
    made_from, these = corrected.made_from, Physicians.THESE
    enough = [about for about in known if made_from(about, about.estimand(exact), "", these)["enough"]]
    usual = estimates.widest_claim([about.n_effective_readers for about in enough])
    held = Held(spec.claim or usual.claim, spec.physicians or usual.physicians, spec.settled)
    return held, "" if spec.claim and spec.physicians else usual.why


def stated_judges(triage_data: TriageData, spec: Analysis) -> dict[str, str]:
    """By format the first of the stated judges that has looked at any response, where there is one."""
    read = {word.value: [name for name in spec.judges if name in triage_data.judges(word)] for word in Format}
    return {word: names[0] for word, names in read.items() if names}


def with_cases(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of models that have cases here; published matrices are of other cases."""
    return table.loc[~table["model"].astype(str).str.endswith(PUBLISHED)]


@dataclass(frozen=True)
class Matrices:
    """The matrices of all models by one basis, as `rates.confusion`, `rates.rates` and `rates.summary`; plain names.

    Of estimates k and n are NaN, reason says what has to be read, and there is no summary. n_open: Cases (by
    physicians: responses, volunteered ones too) to look at in the cell; corrected those that the judge puts there.
    """

    cells: pd.DataFrame
    rates: pd.DataFrame
    summary: pd.DataFrame


def matrices(of: LevelsBy) -> Matrices:
    """Of cases by judge, with the published ones behind them; of responses by physicians; estimates where corrected.

    Corrected, cells and rates have the further columns of `corrected_cells`; value, low and high of a rate lie in [0,
    1].
    """
    if of.basis is Basis.CORRECTED:
        cells = corrected.corrected_cells(of.known, of.held).astype(_WORDS)
        judged = confusion(of.found).astype(_WORDS).rename(columns={"n": "n_open"})
        keys = [*_WORDS, "gold", "predicted"]
        judged = judged.astype({key: cells[key].dtype for key in keys})  # without a case: of nothing in particular
        cells = cells.merge(judged[[*keys, "n_open"]], on=keys, how="left")
        made = corrected.corrected_rates(of.known, of.held).astype({**_WORDS, "measure": str})
        shares = made[[f"{CORRECTED}{bound}" for bound in BOUNDS]].set_axis(["value", "low", "high"], axis=1)
        words = [denominator_words(RULES[name].of, n) for name, n in zip(made["measure"], made["n_cases"], strict=True)]
        rated = pd.concat([made, shares.clip(0, 1)], axis=1)
        rated = rated.assign(k=np.nan, n=np.nan, denominator=words, reason=made["needed"])
        return Matrices(cells.assign(n=np.nan, n_open=cells["n_open"].fillna(0)), rated, pd.DataFrame())
    if of.basis is Basis.JUDGE:
        cells = _judged(of)
        return Matrices(cells.assign(n_open=cells["n"]), triage_rates.rates(cells), triage_rates.summary(cells))
    cells, rated, whole = (
        make(of.triage_data, settled=of.held.settled).astype(_WORDS)
        for make in (corrected.physicians_cells, corrected.physicians_rates, corrected.physicians_summary)
    )
    return Matrices(cells.assign(n_open=cells["n"] + cells["n_volunteered"]), rated, whole)


def _judged(of: LevelsBy) -> pd.DataFrame:
    """What judges say of every answer, and the published matrices behind them, marked `PUBLISHED`."""
    cells, published = confusion(of.found).astype(_WORDS), of.triage_data.published
    if not len(published):
        return cells
    finished = triage_rates.of_matrices(published.assign(model=published["model"] + PUBLISHED))
    return pd.concat([cells, finished.astype(_WORDS)], ignore_index=True)


def rates_columns(rates: pd.DataFrame, measures: Sequence[str]) -> dict[str, list[str]]:
    """Some measures of `Matrices.rates` by the headers of a table: a row a model and format, in their order."""
    of = by_model(rates.assign(reason=[short_reason(reason) for reason in rates["reason"]]))
    columns = {"Model": [model for model, _ in of], "Format": [word for _, word in of]}
    occurring = [name for name in measures if any(name in rows for rows in of.values())]
    words = ((name, [rate_words(rows[name]) if name in rows else "" for rows in of.values()]) for name in occurring)
    return columns | {METRICS[name]: cells for name, cells in words}


def harm(of: LevelsBy, weights: Weights) -> pd.DataFrame:
    """Expected harm of all models: by judge with the published matrices, corrected as `corrected_harm`."""
    if of.basis is Basis.PHYSICIANS:
        made = corrected.physicians_harm(of.triage_data, weights, settled=of.held.settled)
    elif of.basis is Basis.CORRECTED:
        made = corrected.corrected_harm(of.known, weights, of.held)
    else:
        made = expected_harm(_judged(of), weights)
    return made.astype(_WORDS)


@dataclass(frozen=True)
class Ranked:
    """Harm on the cases that all models answered in the format, where their order changes, and how every two differ."""

    harm: pd.DataFrame
    changes: pd.DataFrame
    differences: pd.DataFrame


def ranked(of: LevelsBy, weights: Weights) -> Ranked:
    """The models on the same cases, without published matrices; by physicians the differences alone."""
    if of.basis is Basis.JUDGE:
        made = expected_harm(confusion(triage_harm.on_same_cases(of.found)), weights)
        differences = triage_harm.harm_differences(of.found, weights)
        return Ranked(made.astype(_WORDS), changes(made, steps=weights.steps), differences)
    largest = max(weights.under, weights.over) or 1.0
    differences = paired_costs(of, weights.costs(STEP) / largest)
    scaled = {name: differences[name] * largest for name in ("difference", "low", "high", "se")}
    if of.basis is Basis.CORRECTED:
        made = corrected.corrected_harm(corrected.on_same_answers(of.known), weights, of.held)
    else:  # of each model other responses were read
        made = corrected.physicians_harm(of.triage_data, weights).iloc[:0]
    return Ranked(made.astype(_WORDS), changes(made, steps=weights.steps), differences.assign(**scaled))


SAFETY = (Measure.UNDER, Measure.MISSED_EMERGENCIES)
_PAIR_COLUMNS = ["format", "measure", "model_1", "model_2", "n", "difference", "low", "high", "se", "df", "p", "p_holm"]
_PAIR_COLUMNS += ["reason"]
NO_PAIR = "no such case has a level of both models"


def safety(of: LevelsBy) -> pd.DataFrame:
    """Differences of under-triage and of missed emergencies of every two models: by the judge `judged_differences`.

    By physicians, or corrected, as `rubric.corrected.paired_differences`, from what each case adds to either rate:
    without k_1 and k_2, with se and df; NaN where too little was read of either model, and reason says of whom what
    lacks.
    """
    if of.basis is Basis.JUDGE:
        return judged_differences(of.found)
    tables = [paired_costs(of, MEASURES[measure]).assign(measure=measure.value) for measure in SAFETY]
    found = pd.concat(tables, ignore_index=True)[_PAIR_COLUMNS]
    return found.sort_values("format", kind="stable", key=lambda names: names.ne("qa"), ignore_index=True)


def judged_differences(found: pd.DataFrame) -> pd.DataFrame:
    """In the judge's opinion the difference of every two models' rates on the cases that both answered.

    With b of n cases that count for the first model alone and c for the second alone, (b - c)/n (below 0: the first
    does better) with `cases.bonett_price`'s interval, McNemar's exact p, p_holm over the pairs of the format and
    measure, reason.
    """
    counts, gold, predicted = triage_rates.clear_answers(found)
    level, answer = (np.where(counts, levels, 1).astype(np.int64) - 1 for levels in (gold, predicted))
    tables = []
    for measure in SAFETY:
        rule = RULES[measure]
        sums = triage_harm.paired_sums(found, counts & rule.base[level, 0], rule.hits[level, answer].astype(float))
        n = sums["n"].to_numpy()
        k_1, k_2, both = (sums[name].to_numpy(dtype=np.int64) for name in ("sum_1", "sum_2", "product"))
        low, high = bonett_price(k_1 - both, k_2 - both, n)
        table = sums[["format", "model_1", "model_2", "n"]].assign(measure=measure.value, k_1=k_1, k_2=k_2)
        table = table.assign(difference=quotient(k_1 - k_2, n), low=low, high=high, se=np.nan, df=np.nan)
        table = table.assign(p=mcnemar(k_1 - both, k_2 - both, n), reason=np.where(n > 0, "", NO_PAIR))
        tables.append(table.assign(p_holm=triage_harm.by_holm(table["p"], table["format"])))
    together = pd.concat(tables).sort_values("format", kind="stable", ignore_index=True)
    columns = [*_PAIR_COLUMNS[:5], "k_1", "k_2", *_PAIR_COLUMNS[5:]]
    return together[columns].astype({"format": str, "model_1": str, "model_2": str})


def paired_costs(of: LevelsBy, counts: Floats) -> pd.DataFrame:
    """Differences of the mean of what gold x level costs, in [0, 1] (NaN: not about that gold), as `safety`."""
    columns = [name for name in _PAIR_COLUMNS if name != "measure"]
    tables = []
    for word in dict.fromkeys(about.format for about in of.known):
        models = [_scored(about, counts, of) for about in of.known if about.format == word]
        held = of.held.claim, of.held.physicians
        rows = estimates.paired_differences([one for one, _ in models], [held])[held]
        if rows.empty:
            continue
        lacking = {one.inputs.model: needed for one, needed in models}
        pairs = zip(rows["model_1"], rows["model_2"], strict=True)
        why = ["; ".join(f"{name}: {lacking[name]}" for name in pair if lacking[name]) for pair in pairs]
        rows = rows.rename(columns={"evaluation": "format", "n_examples": "n"})
        reason = np.where(rows["difference"].notna(), "", np.where(rows["n"].gt(0), why, NO_PAIR))
        tables.append(rows.assign(reason=reason)[columns])
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=columns)


def _scored(about: Answers, counts: Floats, of: LevelsBy) -> tuple[estimates.ModelEstimate, str]:
    """One model's share as `paired_differences` takes a score, and what has still to be read for it."""
    share, held = about.estimand(counts), of.held
    made = corrected.made_from(about, share, "", held.physicians)
    kept = ~np.isnan(counts[:, 0])[about.gold]
    readers = tuple(f"{number:09d}" for number in np.unique(about.readers[kept[about.read][about.places]]))
    read = (share.population, share.sample)
    inputs = estimates.EstimatorInputs(about.model, about.format, *read, about.cases[kept], (), readers, {})
    claim = held.claim, held.physicians
    if not made["enough"]:
        none = estimates.no_estimate(share.population.n_examples)
        return estimates.ModelEstimate(inputs, {claim: none}), str(made["needed"])
    fit = share.corrected if of.basis is Basis.CORRECTED else fit_by_physicians(*read)
    return estimates.ModelEstimate(inputs, {claim: estimates.of_reads(estimates.Fitted(*read, fit), *claim)}), ""


_NAMES = {Measure.UNDER.value: "under-triage", Measure.MISSED_EMERGENCIES.value: "missed emergencies"}


def difference_words(row: Mapping[Any, Any]) -> str:
    """A difference in percentage points with its interval; where there is none, why.

    >>> nan = float("nan")
    >>> difference_words({"difference": 0.1, "low": -0.02, "high": 0.22, "reason": ""})
    '+10 [−2, +22]'
    >>> difference_words({"difference": nan, "low": nan, "high": nan, "reason": "too few"})
    '– (too few)'
    """
    value = signed_points(row["difference"])
    if np.isnan(row["difference"]):
        return f"{value} ({row['reason']})" if row["reason"] else value
    low, high = max(row["low"], -1.0), min(row["high"], 1.0)  # an estimate of few reads may reach beyond what can be
    return f"{value} [{signed_points(low)}, {signed_points(high)}]"


def safety_sentences(differences: pd.DataFrame, whose: str) -> list[str]:
    """Which models are shown to miss more, format by format (Holm's p below .05), else the widest difference."""
    sentences = []
    for (word, measure), rows in differences.groupby(["format", "measure"], sort=False):
        known = rows.loc[rows["difference"].notna()]
        if known.empty:
            continue
        head, name = f"{whose}, in {word}", _NAMES[str(measure)]
        more = [_more(row, str(measure)) for row in known.loc[known["p_holm"].lt(SHOWN)].to_dict(orient="records")]
        if more:
            verb = "is" if measure == Measure.UNDER else "are"
            sentences.append(f"{head}, {name} {verb} more frequent {'; '.join(more)}.")
            continue
        row = known.iloc[int(known["difference"].abs().to_numpy().argmax())].to_dict()
        who, widest = "no two models are", "widest difference"
        if len(known) == 1:
            who, widest = f"{row['model_1']} and {row['model_2']} are not", "difference"
        alone = row["low"] > 0 or row["high"] < 0
        by_pairs = f"; allowing for {counted(len(known), 'pair')}, p is {chance_words(row['p_holm'])}" if alone else ""
        gap = f"the {widest}, {row['model_1']} minus {row['model_2']}, is {difference_words(row)} percentage points"
        sentences.append(f"{head} {who} shown to differ in {name}: {gap}, {_cases(row, str(measure))}{by_pairs}.")
    return sentences


def _more(row: Mapping[Any, Any], measure: str) -> str:
    sign = 1 if row["difference"] > 0 else -1
    more, less = (row["model_1"], row["model_2"])[::sign]
    low, high = sorted((sign * row["low"], sign * row["high"]))
    value, low, high = (decimal(100 * share, 0) for share in (sign * row["difference"], low, min(high, 1.0)))
    return f"with {more} than with {less}, by {value} [{low}, {high}] percentage points ({_cases(row, measure)})"


def _cases(row: Mapping[Any, Any], measure: str) -> str:
    one = ("emergency", "emergencies") if measure == Measure.MISSED_EMERGENCIES else ("case", "cases")
    return f"{counted(int(row['n']), *one)} of both"


def margin_sentences(differences: pd.DataFrame, spec: Analysis) -> list[str]:
    """The stated primary comparison held against its margins in each format; nothing where none is stated."""
    margins = {Measure.UNDER: spec.margin_under, Measure.MISSED_EMERGENCIES: spec.margin_missed}
    stated = {measure: margin for measure, margin in margins.items() if margin is not None}
    if spec.primary is None or not stated:
        return []
    first, second = spec.primary
    sentences = []
    for measure, margin in stated.items():
        for row in differences.loc[differences["measure"].eq(measure.value)].to_dict(orient="records"):
            if {row["model_1"], row["model_2"]} == {first, second}:
                difference = row["difference"] if row["model_1"] == first else -row["difference"]
                held = against_margin(difference, row["se"], row["df"], margin, higher_is_better=False)
                rate = "under-triage rate" if measure is Measure.UNDER else "rate of missed emergencies"
                words = margin_words(held, first, second, rate, as_percent=True)
                sentences.append(f"{rate[:1].upper()}{rate[1:]} in {row['format']}: {words}")
    none = f"{first} and {second} are not both among the models here, so their stated margins cannot be held."
    return sentences or [none]
