"""What a judge's stated confidence is the probability of, whether the data bear that out, and the probability that its label is right.

A confidence is either P(met) or P(my label is right) (`schema.ConfidenceMeaning`). Nothing is drawn or computed from it before that is known.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from evalcore.calibration.judge_confidence import stated_levels
from evalcore.stats.wording import counted
from evalcore.study.schema import PARSER, ConfidenceMeaning
from evalcore.triage.data import TriageData

Meanings = Mapping[str, ConfidenceMeaning]
Row = Mapping[Any, Any]


COLUMNS = [
    "judge", "meaning", "n", "n_met", "share_met", "mean_confidence", "mean_confidence_met", "mean_confidence_not_met", "contradicted",
    "usable", "why",
]  # fmt: skip
HALF = 0.5
CHANCE_OF_LEVELS = 0.25
"""A reader that guesses among four levels is right this often; with two labels it is `HALF`."""
FEWEST = 10
"""With fewer labels of one kind nothing is said against a meaning."""
MEANINGS = {ConfidenceMeaning.MET: "that the criterion is met", ConfidenceMeaning.RIGHT: "that its own label is right"}
"""What a stated confidence is the probability of."""


def checked_counts(counts: pd.DataFrame, meaning: Meanings) -> pd.DataFrame:
    """Each judge's stated confidences beside its labels, and whether they can mean what they are said to mean.

    Meaning P(met) is contradicted where more than half of the labels "not met" come with a confidence above 0.5, or more than half of
    the labels "met" with one below: a judge that calls 0.4 % met with a mean confidence of 0.903 does not state P(met). Meaning P(right) is
    contradicted where more than half of the labels of one kind come with less than a guess would have, 0.5. Of a kind with fewer than
    `FEWEST` labels nothing is concluded.

    `counts` are those of `calibration.queries.stated`; a judge that is missing in `meaning` has not been asked about.

    Returns:
        One row a judge, by name: judge, meaning (a `ConfidenceMeaning`, None where nobody has said), n, n_met, share_met in [0, 1],
        mean_confidence over all labels, over those met and those not met (NaN without any), contradicted, usable (the meaning
        is known and not contradicted), why (a sentence: what speaks against it, or that the meaning is to be chosen; "" where usable).
    """
    rows = []
    for judge, mine in counts.groupby("judge", sort=True, observed=True):
        sums = mine.set_index("label").reindex([1.0, 0.0])
        n = sums["n"].fillna(0).astype(int)
        means = sums["mean_confidence"]
        total, stated = int(n.sum()), meaning.get(str(judge))
        against = _against(stated, sums.fillna({"n": 0, "n_above": 0, "n_below": 0})) if stated is not None else ""
        rows.append(
            {
                "judge": str(judge),
                "n": total,
                "n_met": int(n[1.0]),
                "share_met": n[1.0] / total if total else np.nan,
                "mean_confidence": (means.fillna(0) * n).sum() / total if total else np.nan,
                "mean_confidence_met": means[1.0],
                "mean_confidence_not_met": means[0.0],
                "why": against,
            }
        )
    return _usable(pd.DataFrame(rows, columns=COLUMNS), meaning)


def checked_levels(labels: pd.DataFrame, meaning: Meanings) -> pd.DataFrame:
    """The same for judges that read levels of care: a level is neither met nor not met, so only P(right) can be meant.

    `labels` are levels with a stated confidence: judge, confidence in [0, 1].

    Returns:
        One row a judge: judge, meaning, n, mean_confidence, contradicted (P(met), or more than half below a guess among four,
        0.25), usable, why.
    """
    rows = []
    for judge, mine in labels.loc[labels["confidence"].notna()].groupby("judge", sort=True, observed=True):
        stated, n = meaning.get(str(judge)), len(mine)
        low = int(mine["confidence"].lt(CHANCE_OF_LEVELS).sum())
        against = ""
        if stated is ConfidenceMeaning.MET:
            against = f"A level of care is neither met nor not met: the confidence of {judge} can only be the probability that its own level is right."
        elif stated is ConfidenceMeaning.RIGHT and n >= FEWEST and low > n * HALF:
            less = f"{judge} states less than 0.25 with {low:,} of {n:,} levels, less than a guess among four"
            against = f"{less}: so it is not the probability that its own level is right."
        mean = float(mine["confidence"].mean())
        rows.append({"judge": str(judge), "n": n, "mean_confidence": mean, "why": against})
    names = ["judge", "meaning", "n", "mean_confidence", "contradicted", "usable", "why"]
    return _usable(pd.DataFrame(rows, columns=names), meaning)


def _usable(table: pd.DataFrame, meaning: Meanings) -> pd.DataFrame:
    """With the meanings, and whether they are known and not contradicted; `why` says what speaks against them."""
    # as objects: a column of texts would turn the meanings into texts, and None into NaN
    meanings = pd.Series([meaning.get(judge) for judge in table["judge"]], index=table.index, dtype=object)
    why = table["why"].where(meanings.notna(), table["judge"].map(_unasked))
    return table.assign(meaning=meanings, contradicted=table["why"].ne(""), usable=why.eq(""), why=why)


def _unasked(judge: str) -> str:
    return f"Nobody has said what the confidence of {judge} means: answer on the Calibration page, or import its file again with --confidence-means."


def _against(said: ConfidenceMeaning, sums: pd.DataFrame) -> str:
    """What in the labels contradicts the meaning; "" where nothing does."""
    total = sums["n"].sum()
    rows = dict(zip(("met", "not met"), sums.to_dict(orient="records"), strict=True))
    for label, row in rows.items():
        of_met = said is ConfidenceMeaning.MET
        side = "above" if of_met and label == "not met" else "below"
        n, n_contrary = int(row["n"]), int(row[f"n_{side}"])
        if n >= FEWEST and n_contrary > n * HALF:
            counted = f'{n_contrary:,} of {n:,} labels "{label}" come with a confidence {side} 0.5'
            mean = f"their mean is {row['mean_confidence']:.3f}"
            if of_met:
                met = f"{100 * rows['met']['n'] / total:.1f} % of the labels are met"
                return f"{met}, and {counted} ({mean}): so it is not the probability that the criterion is met."
            return f"{counted} ({mean}), less than a guess between two labels: so it is not the probability that its own label is right."
    return ""


def criteria_meanings(counts: pd.DataFrame, meanings: Meanings) -> pd.DataFrame:
    """What the confidences of judges on criteria mean, and what speaks against either meaning.

    `counts` are those of `calibration.queries.stated`, `meanings` hold the judges of which somebody has said it.

    Returns:
        As `checked_counts`, with against_met and against_right: what the labels would say against that meaning, "" where nothing.
    """
    return _with_objections(lambda said: checked_counts(counts, said), meanings)


def level_meanings(triage_data: TriageData, meanings: Meanings) -> pd.DataFrame:
    """The same for judges that read levels of care, without the parser: what comes with its levels is the model's own confidence."""
    return _level_meanings(triage_data, meanings, of_parser=False)


def model_meaning(triage_data: TriageData, meanings: Meanings) -> pd.DataFrame:
    """The same for the confidences that models state themselves, which the parser reads: one row, or none where they state none."""
    return _level_meanings(triage_data, meanings, of_parser=True)


def _level_meanings(triage_data: TriageData, meanings: Meanings, *, of_parser: bool) -> pd.DataFrame:
    stated = stated_levels(triage_data)
    stated = stated.loc[stated["judge"].eq(PARSER).eq(of_parser)]
    return _with_objections(lambda said: checked_levels(stated, said), meanings)


def _with_objections(check: Callable[[Meanings], pd.DataFrame], meanings: Meanings) -> pd.DataFrame:
    table = check(meanings)
    for word in ConfidenceMeaning:
        table[f"against_{word.value}"] = check(dict.fromkeys(table["judge"], word))["why"]
    return table


def takes_stated(meaning: pd.DataFrame) -> bool:
    """Whether a confidence that a model states may count as its own: some state one, and what it means is known and not contradicted."""
    return len(meaning) > 0 and bool(meaning["usable"].all())


def as_right(frame: pd.DataFrame, checked: pd.DataFrame) -> pd.DataFrame:
    """Confidences as the probability that the judge's own label is right.

    P(right) stays as it is; P(met) becomes 1 - P(met) under "not met". A judge whose meaning is not known, or contradicted, has no
    such probability: NaN, with the sentence that says why, so that nothing is computed from it.

    `frame` holds a label a row: judge, label (1 met, 0 not met; needed for P(met) alone), confidence; `checked` is that of `checked_counts` or
    `checked_levels`.

    Returns:
        The same rows with confidence in [0, 1] (NaN where refused) and refused (the sentence; "" where usable), categorical.
    """
    by_judge = checked.set_index("judge")
    judge = frame["judge"].astype(object)
    usable = judge.map(by_judge["usable"]).eq(True).to_numpy()  # noqa: FBT003 - a judge that is missing is neither
    of_met = judge.map(by_judge["meaning"]).eq(ConfidenceMeaning.MET).to_numpy()
    confidence = frame["confidence"].to_numpy(dtype=float)
    not_met = frame["label"].eq(0).to_numpy() if "label" in frame else np.zeros(len(frame), dtype=bool)
    turned = np.where(of_met & not_met, 1 - confidence, confidence)
    sentences = {name: _unasked(str(name)) for name in judge.unique()} | by_judge["why"].to_dict()
    refused = pd.Categorical(judge.map(sentences).astype(object).to_numpy())
    return frame.assign(confidence=np.where(usable, turned, np.nan), refused=refused)


def stated_words(row: Row) -> str:
    """What a judge states, before anybody says what it means: a row of `checked_counts` or `checked_levels` in words.

    >>> row = {"judge": "Wren", "n": 1000, "share_met": 0.004, "mean_confidence": 0.903}
    >>> stated_words(row | {"mean_confidence_met": 0.81, "mean_confidence_not_met": 0.9034})
    'Wren states a confidence with 1,000 labels on criteria, 0.903 on average: 0.4 % are met (mean 0.810), the others not met (mean 0.903).'
    """
    mean = f"{row['mean_confidence']:.3f} on average"
    if "share_met" not in row:
        return (
            f"{row['judge']} states a confidence with {counted(row['n'], 'level of care', 'levels of care')}, {mean}."
        )
    met, others = (_mean_words(row[f"mean_confidence_{word}"]) for word in ("met", "not_met"))
    labels = counted(row["n"], "label on a criterion", "labels on criteria")
    return f"{row['judge']} states a confidence with {labels}, {mean}: {100 * row['share_met']:.1f} % are met{met}, the others not met{others}."


def _mean_words(mean: float) -> str:
    return "" if math.isnan(mean) else f" (mean {mean:.3f})"


def meaning_words(row: Row) -> str:
    """What a judge's confidence means, and that its labels are consistent with it; the row is usable."""
    label = "level" if "share_met" not in row else "label"
    of_what = MEANINGS[row["meaning"]].replace("label", label)
    return f"{row['judge']} states the probability {of_what}. Its {counted(row['n'], label)} with a confidence are consistent with this."
