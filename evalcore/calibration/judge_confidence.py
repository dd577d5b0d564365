"""Judges' and models' own confidences: on criteria, and in levels of care, beside physicians' blind reads."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from evalcore.rubric.data import RubricData, first_reads, votes
from evalcore.stats.majority import MIN_VOTERS, jury_names, most
from evalcore.study.schema import PARSER, Ask, Format
from evalcore.triage.data import LEVELS, NO_LEVEL, Kind, TriageData
from evalcore.triage.predictions import votes as level_votes

MODEL_COLUMNS = ["model", "format", "cluster", "confidence", "is_stated", "right", "gold", "predicted"]
FEWEST = 2
"""The share of samples that agree says something from two valid samples on: of one it is always 1."""
DIGITS = 9
"""Means of stated confidences are rounded, so that 0.8 three times is 0.8 again: a threshold of 0.8 would send it to a human else."""


def who(row: Mapping[Any, Any]) -> str:
    """A model in a format: "Alder-2 in conversation"."""
    return f"{row['model']} in {row['format']}"


def own_confidence(predictions: pd.DataFrame, *, stated: bool = True) -> pd.DataFrame:
    """Predictions with the confidence that is the model's own: the one that it states itself, else the share of its samples.

    A confidence stated with a level belongs to whoever read the level. The parser takes both from the model's own words, so where it read the level
    the model states the confidence (`predictions.predictions` gives no other). With `stated` false the share of its samples alone counts (where
    nobody has said what the stated ones mean).

    Returns:
        The same rows with confidence in [0, 1] (stated, else the share of the valid samples that say the predicted level, from two valid samples
        on; NaN where the model has none) and is_stated.
    """
    is_stated = predictions["stated"].notna() & stated
    share = predictions["share"].where(predictions["n_valid"].ge(FEWEST))
    return predictions.assign(
        confidence=predictions["stated"].where(is_stated, share).round(DIGITS), is_stated=is_stated
    )


def model_items(own: pd.DataFrame) -> pd.DataFrame:
    """How sure the model was of each prediction on a clear case, and whether it was right, from `own_confidence` with gold and kind of the cases.

    Returns:
        One row a clear case, model and format with a prediction, for `reliability` with by=("model", "format"): model, format, cluster (the case),
        confidence in [0, 1] (NaN where the model has none), is_stated, right (1 or 0), gold, predicted.
    """
    kept = own.loc[own["kind"].eq(Kind.CLEAR) & own["predicted"].notna()].reset_index(drop=True)
    return kept.assign(cluster=kept["row"], right=kept["predicted"].eq(kept["gold"]).astype(float))[MODEL_COLUMNS]


TOO_FEW_VOTES = "Fewer than three votes: two that agree would always be sure."
TIED = "The judges are evenly split, so there is no majority."


def criterion_items(beside: pd.DataFrame, *, drawn: bool = False) -> pd.DataFrame:
    """One row a judge and item that physicians have read: how sure the judge is that its label is right, and how right it is.

    `beside` is `as_right(queries.beside_reads(...), checked)`. With `drawn` only reads of items that were drawn with a known probability count, by
    its inverse.

    Returns:
        The same rows with right (share of the physicians' blind first reads that say what the judge says, in [0, 1]), cluster (the
        example), group (the judge) and weight (1, or 1 / inclusion probability).
    """
    kept = beside.loc[beside["is_drawn"] & beside["inclusion_probability"].notna()] if drawn else beside
    return kept.assign(
        right=_said_the_same(kept["label"], kept["reference_drawn" if drawn else "reference"]),
        cluster=kept["example_id"],
        group=kept["judge"],
        weight=1 / kept["inclusion_probability"] if drawn else 1.0,
    ).reset_index(drop=True)


def _said_the_same(label: pd.Series, share_met: pd.Series) -> pd.Series:
    """The share of physicians that say what the label says; NaN without a label."""
    return share_met.where(label.eq(1), 1 - share_met).where(label.notna())


def majority(labels: pd.DataFrame) -> pd.DataFrame:
    """What most of several judges, or of one judge asked again and again, say of each item, and how many of them: a confidence that nobody states.

    `labels` has one row an item, one column a judge or a repeat: 1 met, 0 not met, NaN where there is no label.

    Returns:
        The same rows: n_votes, label (1 or 0, what most say), confidence (the share that says so, in (0.5, 1]), refused ("" or why there is
        neither: NaN with fewer than three votes, since two that agree are always sure, and where the votes are evenly split).
    """
    is_vote = labels.notna().to_numpy()
    n = is_vote.sum(axis=1)
    label, share = most(np.where(is_vote, labels.to_numpy(dtype=float), 0.0).sum(axis=1), n)
    refused = np.select([n < MIN_VOTERS, np.isnan(label)], [TOO_FEW_VOTES, TIED], "")
    is_known = refused == ""
    return pd.DataFrame(
        {
            "n_votes": n,
            "label": np.where(is_known, label, np.nan),
            "confidence": np.where(is_known, share, np.nan),
            "refused": refused,
        },
        index=labels.index,
    )


def majority_items(rubric_data: RubricData, *, drawn: bool = False) -> pd.DataFrame:
    """One row an item that physicians have read and a judge has labelled: what most of the judges say of it, and the share of them that does.

    The same for each judge that was asked several times: what it says most often, and the share of its answers that say so. Juries have no vote.

    Returns:
        For `reliability`, beside `criterion_items`: group ("majority of 3 judges", "Magpie, asked 3 times"), cluster (the example), item_id,
        label, confidence, refused (as `majority`), right (share of the physicians' blind first reads that say the same, in [0, 1]), weight. No row
        where no item has three votes; others are told as refused.
    """
    parts = [_majority_items(rubric_data, None, drawn=drawn)]
    for judge in rubric_data.voters:
        again = rubric_data.asked_again(judge)
        if len(again.judges) >= MIN_VOTERS:
            parts.append(_majority_items(again, f"{judge}, asked {len(again.judges)} times", drawn=drawn))
    kept = [part for part in parts if len(part)] or parts[:1]
    return pd.concat(kept, ignore_index=True)


def _majority_items(rubric_data: RubricData, name: str | None, *, drawn: bool) -> pd.DataFrame:
    read = votes(rubric_data.reads, drawn=drawn)
    rows = read["row"].to_numpy(dtype=np.int64)
    majorities = majority(rubric_data.judged[rubric_data.voters].iloc[rows]).reset_index(drop=True)
    items = rubric_data.items.iloc[rows]
    table = majorities.assign(
        item_id=items["item_id"].to_numpy(),
        cluster=items["example_id"].to_numpy(),
        group=jury_names(rubric_data.voters)[0] if name is None else name,
        right=_said_the_same(majorities["label"], read["vote"]),
        weight=1 / read["inclusion_probability"].to_numpy(dtype=float) if drawn else 1.0,
    )
    kept = table.loc[table["n_votes"].gt(0)]
    return kept.reset_index(drop=True) if kept["n_votes"].ge(MIN_VOTERS).any() else kept.iloc[:0]


LEVEL_COLUMNS = [
    "judge", "format", "model", "group", "cluster", "example_id", "response_id", "confidence", "label", "right", "n_reads", "weight",
]  # fmt: skip


def stated_levels(triage_data: TriageData, samples: pd.Series | None = None) -> pd.DataFrame:
    """The levels that come with a stated confidence; of `samples` (rows of `triage_data.samples`) alone, where they are named.

    Returns:
        One row a level that was found: sample, judge (the parser too), label (the level), confidence in [0, 1].
    """
    confidences = (
        triage_data.confidence
        if samples is None
        else triage_data.confidence.loc[triage_data.confidence["sample"].isin(samples)]
    )
    place = confidences["sample"].to_numpy(dtype=np.int64)
    codes, names = pd.factorize(confidences["rater"])
    label = np.full(len(confidences), np.nan)
    for code, name in enumerate(names):
        if name in triage_data.levels:
            mine = codes == code
            label[mine] = triage_data.levels[name].to_numpy(dtype=float)[place[mine]]
    levels = confidences.rename(columns={"rater": "judge"}).assign(label=label)
    return levels.loc[levels["label"].gt(NO_LEVEL)].reset_index(drop=True)


def level_items(triage_data: TriageData, *, drawn: bool = False) -> pd.DataFrame:
    """One row a level that a judge read out of a response with a stated confidence, where physicians have read the response blind.

    With `drawn` only responses that were drawn with a known probability, weighted by its inverse.

    Returns:
        For `checked_levels` and `as_right`, then `reliability`: judge, format, model, group ("Magpie, conversation"),
        cluster (the case), example_id, response_id, confidence in [0, 1], label (the judge's level), right (in [0, 1]: share of the
        physicians' blind first reads whose level has a letter in common with it; reads that could not assess are left out), n_reads,
        weight (1, or 1 / inclusion probability).
    """
    reads = _response_reads(triage_data, drawn=drawn)
    return _beside(stated_levels(triage_data, reads["sample"]), reads, triage_data)


def level_vote_items(triage_data: TriageData, *, drawn: bool = False) -> pd.DataFrame:
    """The same for several judges as one: what most of them read out of a response, and the share of them that does as its confidence.

    Returns:
        As `level_items`, a group a format in which three judges or more have read a level out of one of these responses, with refused: "" or why there is no
        confidence (NaN: fewer than three judges gave a level). The parser reads what an answer states, and is no judge.
    """
    reads = _response_reads(triage_data, drawn=drawn)
    places = reads["sample"].drop_duplicates().to_numpy(dtype=np.int64)
    formats = triage_data.samples["format"].to_numpy()[places]
    parts = []
    for word in Format:
        judges = [name for name in triage_data.voters(word) if name != PARSER]
        mine = places[formats == word.value]
        voted = level_votes(triage_data.levels[judges].iloc[mine])
        several = voted["n_votes"].ge(MIN_VOTERS)
        if several.any():
            said = pd.DataFrame(
                {
                    "sample": mine,
                    "judge": jury_names(judges)[0],
                    "label": voted["level"].where(voted["n_votes"].gt(0)).to_numpy(),
                    "confidence": voted["share"].where(several).to_numpy(),
                }
            )
            parts.append(said.loc[said["label"].notna()])
    columns = ["sample", "judge", "label", "confidence"]
    said = pd.concat(parts, ignore_index=True) if parts else stated_levels(triage_data).iloc[:0][columns]
    items = _beside(said, reads, triage_data)
    return items.assign(refused=np.where(items["confidence"].isna(), TOO_FEW_VOTES, ""))


def _beside(levels: pd.DataFrame, reads: pd.DataFrame, triage_data: TriageData) -> pd.DataFrame:
    """Levels (sample, judge, label, confidence) beside the reads of the same responses."""
    pairs = levels.merge(reads, on="sample")
    pairs["right"] = pairs["label"].sub(pairs["level"]).abs().le(_reach(pairs["label"]) + _reach(pairs["level"]))
    of_sample = pairs.groupby(["judge", "sample"], as_index=False, observed=True).agg(
        confidence=("confidence", "first"),
        label=("label", "first"),
        right=("right", "mean"),
        n_reads=("right", "size"),
        weight=("weight", "min"),
    )
    samples = triage_data.samples.iloc[of_sample["sample"].to_numpy(dtype=np.int64)].reset_index(drop=True)
    table = of_sample.assign(
        model=samples["model"],
        format=samples["format"],
        cluster=samples["row"],
        response_id=samples["response_id"],
        example_id=triage_data.cases["example_id"].to_numpy()[samples["row"].to_numpy()],
    )
    group = table["judge"].astype(str) + ", " + table["format"].astype(str)
    return table.assign(group=group.astype(object))[LEVEL_COLUMNS]


def _reach(level: pd.Series) -> pd.Series:
    """Half a level to either side for a boundary, which stands for both of its letters."""
    return (level % 1).clip(upper=0.5)


def _response_reads(triage_data: TriageData, *, drawn: bool) -> pd.DataFrame:
    """Physicians' blind first reads of responses that gave a level: sample, level, weight."""
    kept = first_reads(triage_data.reads.loc[triage_data.reads["asked"].eq(Ask.RESPONSE_ACUITY)])
    if drawn:
        kept = kept.loc[kept["inclusion_probability"].notna()]
    weight = 1 / kept["inclusion_probability"] if drawn else 1.0
    table = kept[["sample"]].assign(level=kept["label"].map(LEVELS).astype(float), weight=weight)
    return table.loc[table["level"].notna()]
