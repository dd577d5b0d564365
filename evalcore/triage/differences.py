"""Which of two models is safer: differences of under-triage and of missed emergencies on the cases that both answered, case by case."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import bdtr

from evalcore.rubric.corrected import EstimatorInputs, ModelEstimate, no_estimate, of_reads, paired_differences
from evalcore.stats.arrays import Floats
from evalcore.stats.estimator import by_physicians
from evalcore.stats.intervals import LEVEL
from evalcore.stats.pair_tests import adjusted, against_margin, holm, margin_words
from evalcore.stats.wording import chance_words, counted, decimal
from evalcore.study.analysis import Analysis
from evalcore.study.schema import Claim, Physicians
from evalcore.triage.corrected import CORRECTED, MEASURES, Answers, asked, made_from
from evalcore.triage.formats import bonett_price
from evalcore.triage.harm import SHOWN
from evalcore.triage.panels import Kind
from evalcore.triage.rates import RULES, Measure, coded
from evalcore.triage.words import points

SAFETY = (Measure.UNDER, Measure.MISSED_EMERGENCIES)
"""The rates by which models are compared: of both less is better."""
COLUMNS = (
    "format",
    "measure",
    "model_1",
    "model_2",
    "n",
    "difference",
    "low",
    "high",
    "se",
    "df",
    "p",
    "p_holm",
    "reason",
)
NO_PAIR = "no such case has a level of both models"
_EVEN = 0.5


def judged_differences(found: pd.DataFrame, measures: Sequence[Measure] = SAFETY) -> pd.DataFrame:
    """By the judge: the difference of every two models' rates on the cases that both answered. It is the judge's opinion.

    With b of n cases that count for the first model alone and c for the second alone, the difference is (b - c)/n; its interval is that of
    `triage_formats.bonett_price`, p is McNemar's exact one (1 where no case differs).

    Returns:
        One row a format, measure and pair of models: `COLUMNS`, with n (cases of both that the rate is of), k_1, k_2 (what counts of either), difference
        (first model less second: below 0, the first does better), low, high, p, p_holm (Holm's, over the pairs of the format and measure), reason
        (why there is none); se and df are NaN.
    """
    predicted, gold = (found[name].to_numpy(dtype=float) for name in ("predicted", "gold"))
    counts = found["kind"].eq(Kind.CLEAR).to_numpy(dtype=bool) & ~np.isnan(predicted)
    formats, of_formats = coded(found, ["format"])
    models, of_models = coded(found, ["model"])
    rows = pd.factorize(found["row"])[0]
    first, second = np.triu_indices(len(of_models), k=1)
    n_rows = int(rows.max(initial=-1)) + 1
    tables = []
    for place in range(len(of_formats)):
        for measure in measures:
            rule = RULES[measure]
            mine = np.flatnonzero(counts & (formats == place))
            level, answer = gold[mine].astype(np.int64) - 1, predicted[mine].astype(np.int64) - 1
            mine, level, answer = (column[rule.base[level, 0]] for column in (mine, level, answer))
            hit, known = np.zeros((2, n_rows, len(of_models)))
            hit[rows[mine], models[mine]] = rule.hits[level, answer]
            known[rows[mine], models[mine]] = 1
            n, both = (known.T @ known)[first, second], (hit.T @ hit)[first, second]
            k_1, k_2 = (hit.T @ known)[first, second], (known.T @ hit)[first, second]
            low, high = bonett_price(k_1 - both, k_2 - both, n)
            less = np.minimum(k_1, k_2) - both
            p = np.minimum(2 * bdtr(less, (k_1 + k_2 - 2 * both).astype(np.int64), _EVEN), 1)
            table = {
                "format": of_formats["format"].astype(str).to_numpy()[np.full(len(first), place)],
                "measure": measure.value,
                "model_1": of_models["model"].astype(str).to_numpy()[first],
                "model_2": of_models["model"].astype(str).to_numpy()[second],
                "n": n.astype(np.int64),
                "k_1": k_1.astype(np.int64),
                "k_2": k_2.astype(np.int64),
                "difference": np.divide(k_1 - k_2, n, out=np.full(len(n), np.nan), where=n > 0),
                "low": low,
                "high": high,
                "se": np.nan,
                "df": np.nan,
                "p": np.where(n > 0, p, np.nan),
                "p_holm": adjusted(np.where(n > 0, p, np.nan), holm),
                "reason": np.where(n > 0, "", NO_PAIR),
            }
            tables.append(pd.DataFrame(table))
    columns = [*COLUMNS[:5], "k_1", "k_2", *COLUMNS[5:]]
    return pd.concat(tables, ignore_index=True)[columns] if tables else pd.DataFrame(columns=columns)


def read_differences(
    known: Sequence[Answers],
    *,
    kind: str = CORRECTED,
    claim: Claim = Claim.NEW_EXAMPLES,
    physicians: Physicians = Physicians.THESE,
    measures: Sequence[Measure] = SAFETY,
    level: float = LEVEL,
) -> pd.DataFrame:
    """The same by what physicians have read, or by the judge corrected by it: by influence values, case by case.

    A case's influence is what it adds to either rate (`estimator.influences`); their difference over the cases of both has the variance and the degrees of
    freedom of `corrected_differences`, whose claims these are.

    Args:
        known: As `triage_corrected.answered` gives them, for this claim.
        claim: What the interval is to hold for.
        physicians: Whose judgement it is to hold for.
        level: Of confidence, in (0, 1).

    Returns:
        One row a format, measure and pair: `COLUMNS`, with n (cases of both); numbers are NaN where too little was read of either model, and reason says
        of whom what lacks.
    """
    tables = []
    for measure in measures:
        table = paired_costs(known, MEASURES[measure], kind=kind, claim=claim, physicians=physicians, level=level)
        tables.append(table.assign(measure=measure.value))
    found = pd.concat(tables, ignore_index=True)[list(COLUMNS)]
    return found.sort_values("format", kind="stable", key=lambda names: names.ne("qa"), ignore_index=True)


def paired_costs(
    known: Sequence[Answers],
    counts: Floats,
    *,
    kind: str = CORRECTED,
    claim: Claim = Claim.NEW_EXAMPLES,
    physicians: Physicians = Physicians.THESE,
    level: float = LEVEL,
) -> pd.DataFrame:
    """Differences of the mean of anything that a gold and a level cost, as `read_differences`.

    Args:
        counts: Gold x level, in [0, 1]: what it costs; NaN throughout a gold that it is not about.
        level: Of confidence, in (0, 1).

    Returns:
        `COLUMNS` without measure.
    """
    tables = []
    for word in dict.fromkeys(about.format for about in known):
        models = [_scored(about, counts, kind, claim, physicians) for about in known if about.format == word]
        rows = paired_differences([one for one, _ in models], claim, physicians, level)
        if rows.empty:
            continue
        lacking = {one.inputs.model: needed for one, needed in models}
        pairs = zip(rows["model_1"], rows["model_2"], strict=True)
        why = ["; ".join(f"{name}: {lacking[name]}" for name in pair if lacking[name]) for pair in pairs]
        rows = rows.rename(columns={"evaluation": "format", "n_examples": "n"})
        reason = np.where(rows["difference"].notna(), "", np.where(rows["n"].gt(0), why, NO_PAIR))
        tables.append(rows.assign(reason=reason))
    columns = [name for name in COLUMNS if name != "measure"]
    return pd.concat(tables, ignore_index=True)[columns] if tables else pd.DataFrame(columns=columns)


def _scored(
    about: Answers, counts: Floats, kind: str, claim: Claim, physicians: Physicians
) -> tuple[ModelEstimate, str]:
    """One model's share as `corrected_differences` takes a score, and what has still to be read for it."""
    share = asked(about, counts, about.by_level())
    made = made_from(about, share, "", physicians)
    kept = ~np.isnan(counts[:, 0])[about.gold]
    given = kept[about.read][about.places]
    readers = tuple(f"{number:09d}" for number in np.unique(about.readers[given]))
    inputs = EstimatorInputs(
        about.model, about.format, share.population, share.sample, about.cases[kept], (), readers, {}
    )
    if not made["enough"]:
        return ModelEstimate(inputs, no_estimate(share.population)), str(made["needed"])
    fit = share.corrected if kind == CORRECTED else by_physicians(share.population, share.sample)
    return ModelEstimate(inputs, of_reads(share.population, share.sample, fit, claim, physicians)), ""


# ---------------------------------------------------------------- in words

NAMES = {Measure.UNDER.value: "under-triage", Measure.MISSED_EMERGENCIES.value: "missed emergencies"}
RATES = {Measure.UNDER.value: "under-triage rate", Measure.MISSED_EMERGENCIES.value: "rate of missed emergencies"}


def difference_words(row: Mapping[Any, Any]) -> str:
    """A difference in percentage points with its interval; where there is none, why.

    >>> nan = float("nan")
    >>> difference_words({"difference": 0.1, "low": -0.02, "high": 0.22, "reason": ""})
    '+10 [−2, +22]'
    >>> difference_words(
    ...     {"difference": nan, "low": nan, "high": nan, "reason": "no such case has a level of both models"}
    ... )
    '– (no such case has a level of both models)'
    """
    said = points(row["difference"])
    if np.isnan(row["difference"]):
        return f"{said} ({row['reason']})" if row["reason"] else said
    low, high = max(row["low"], -1.0), min(row["high"], 1.0)  # an estimate of few reads may reach beyond what can be
    return f"{said} [{points(low)}, {points(high)}]"


def safety_sentences(differences: pd.DataFrame, whose: str) -> list[str]:
    """Which models are shown to miss more, format by format: only where Holm's p over the pairs is below .05.

    Args:
        differences: As `judged_differences` or `read_differences` give them.
        whose: Who says so, e.g. "After correction".

    Returns:
        A sentence a format and measure in which any difference is known; of several pairs without one that is shown, with the widest.
    """
    said = []
    for (word, measure), rows in differences.groupby(["format", "measure"], sort=False):
        known = rows.loc[rows["difference"].notna()]
        if known.empty:
            continue
        shown = known.loc[known["p_holm"].lt(SHOWN)]
        head, name = f"{whose}, in {word}", NAMES[str(measure)]
        if len(shown):
            parts = [_more(row, str(measure)) for row in shown.to_dict(orient="records")]
            said.append(
                f"{head}, {name} is more frequent {'; '.join(parts)}.".replace("emergencies is", "emergencies are")
            )
            continue
        row = known.iloc[int(known["difference"].abs().to_numpy().argmax())].to_dict()
        pair = f"{row['model_1']} minus {row['model_2']}"
        if len(known) == 1:
            head, widest = (
                f"{head} {row['model_1']} and {row['model_2']} are not shown to differ in {name}",
                f"the difference, {pair},",
            )
        else:
            head, widest = f"{head} no two models are shown to differ in {name}", f"the widest difference, {pair},"
        alone = row["low"] > 0 or row["high"] < 0
        adjusted = f"; allowing for {counted(len(known), 'pair')}, p is {chance_words(row['p_holm'])}" if alone else ""
        said.append(
            f"{head}: {widest} is {difference_words(row)} percentage points, {_cases(row, str(measure))}{adjusted}."
        )
    return said


def _more(row: Mapping[Any, Any], measure: str) -> str:
    sign = 1 if row["difference"] > 0 else -1
    more, less = (row["model_1"], row["model_2"])[::sign]
    low, high = sorted((sign * row["low"], sign * row["high"]))
    interval = (
        f"{decimal(100 * row['difference'] * sign, 0)} [{decimal(100 * low, 0)}, {decimal(100 * min(high, 1.0), 0)}]"
    )
    return f"with {more} than with {less}, by {interval} percentage points ({_cases(row, measure)})"


def _cases(row: Mapping[Any, Any], measure: str) -> str:
    one = ("emergency", "emergencies") if measure == Measure.MISSED_EMERGENCIES else ("case", "cases")
    return f"{counted(int(row['n']), *one)} of both"


def margin_sentences(differences: pd.DataFrame, spec: Analysis) -> list[str]:
    """The primary comparison of the stated analysis held against its margins, in each format; no sentence where none is stated.

    Args:
        differences: As `read_differences` gives them: what a judge alone says is held against no margin.
    """
    if spec.primary is None:
        return []
    first, second = spec.primary
    said = []
    for measure, margin in ((Measure.UNDER, spec.margin_under), (Measure.MISSED_EMERGENCIES, spec.margin_missed)):
        if margin is None:
            continue
        mine = differences.loc[differences["measure"].eq(measure.value)]
        for row in mine.to_dict(orient="records"):
            pair = (row["model_1"], row["model_2"])
            if set(pair) != {first, second}:
                continue
            difference = row["difference"] if pair[0] == first else -row["difference"]
            held = against_margin(difference, row["se"], row["df"], margin, higher_is_better=False)
            rate = RATES[measure.value]
            held_words = margin_words(held, first, second, rate, as_percent=True)
            said.append(f"{rate.capitalize()} in {row['format']}: {held_words}")
    return said or [
        f"{first} and {second} are not both among the models here, so their stated margins cannot be held."
    ] * bool(spec.margin_under or spec.margin_missed)
