"""Judges' confidence in the levels that they read out of responses, against physicians' blind reads, as items for `calibration`."""

import numpy as np
import pandas as pd

from evalcore.calibration.judge_confidence import TOO_FEW_VOTES
from evalcore.rubric.items import first_reads
from evalcore.stats.majority import MIN_VOTERS, jury_names
from evalcore.study.schema import PARSER, Ask, Format
from evalcore.triage.data import LEVELS, NO_LEVEL, Triaged
from evalcore.triage.level_jury import votes as level_votes

LEVEL_COLUMNS = [
    "judge", "format", "model", "group", "cluster", "example_id", "response_id", "confidence", "label", "right", "n_reads", "weight",
]  # fmt: skip


def stated_levels(triaged: Triaged, samples: pd.Series | None = None) -> pd.DataFrame:
    """The levels that come with a stated confidence. A rater that looked and found no level has none to be sure of.

    Args:
        triaged: The cases.
        samples: Only of these responses (rows of `triaged.samples`).

    Returns:
        One row a level: sample, judge (the parser too), label (the level), confidence in [0, 1].
    """
    given = (
        triaged.confidence if samples is None else triaged.confidence.loc[triaged.confidence["sample"].isin(samples)]
    )
    place = given["sample"].to_numpy(dtype=np.int64)
    codes, names = pd.factorize(given["rater"])
    label = np.full(len(given), np.nan)
    for code, name in enumerate(names):
        if name in triaged.levels:
            mine = codes == code
            label[mine] = triaged.levels[name].to_numpy(dtype=float)[place[mine]]
    said = given.rename(columns={"rater": "judge"}).assign(label=label)
    return said.loc[said["label"].gt(NO_LEVEL)].reset_index(drop=True)


def level_items(triaged: Triaged, *, drawn: bool = False) -> pd.DataFrame:
    """One row a level that a judge read out of a response with a stated confidence, where physicians have read the response blind.

    Args:
        triaged: The cases.
        drawn: Only responses that were drawn with a known probability, weighted by its inverse.

    Returns:
        For `confidence_meaning.checked_levels` and `as_right`, then `calibration`: judge, format, model, group ("Magpie, conversation"),
        cluster (the case), example_id, response_id, confidence in [0, 1], label (the judge's level), right (in [0, 1]: share of the
        physicians' blind first reads whose level has a letter in common with it; reads that could not assess are left out), n_reads,
        weight (1, or 1 / inclusion probability).
    """
    reads = _response_reads(triaged, drawn=drawn)
    return _beside(stated_levels(triaged, reads["sample"]), reads, triaged)


def level_vote_items(triaged: Triaged, *, drawn: bool = False) -> pd.DataFrame:
    """The same for several judges as one: what most of them read out of a response, and the share of them that does as its confidence.

    Args:
        triaged: The cases.
        drawn: As for `level_items`.

    Returns:
        As `level_items`, a group a format in which three judges or more have read a level out of one of these responses, with refused: "" or why there is no
        confidence (NaN: fewer than three judges gave a level). The parser reads what an answer states, and is no judge.
    """
    reads = _response_reads(triaged, drawn=drawn)
    places = reads["sample"].drop_duplicates().to_numpy(dtype=np.int64)
    asked = triaged.samples["format"].to_numpy()[places]
    parts = []
    for word in Format:
        judges = [name for name in triaged.voters(word) if name != PARSER]
        mine = places[asked == word.value]
        voted = level_votes(triaged.levels[judges].iloc[mine])
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
    said = pd.concat(parts, ignore_index=True) if parts else stated_levels(triaged).iloc[:0][columns]
    found = _beside(said, reads, triaged)
    return found.assign(refused=np.where(found["confidence"].isna(), TOO_FEW_VOTES, ""))


def _beside(said: pd.DataFrame, reads: pd.DataFrame, triaged: Triaged) -> pd.DataFrame:
    """Levels beside the reads of the same responses.

    Args:
        said: One row a judge and response: sample, judge, label (a level), confidence.
        reads: As `_response_reads` gives them.
        triaged: The cases.
    """
    pairs = said.merge(reads, on="sample")
    pairs["right"] = pairs["label"].sub(pairs["level"]).abs().le(_reach(pairs["label"]) + _reach(pairs["level"]))
    found = pairs.groupby(["judge", "sample"], as_index=False, observed=True).agg(
        confidence=("confidence", "first"),
        label=("label", "first"),
        right=("right", "mean"),
        n_reads=("right", "size"),
        weight=("weight", "min"),
    )
    samples = triaged.samples.iloc[found["sample"].to_numpy(dtype=np.int64)].reset_index(drop=True)
    table = found.assign(
        model=samples["model"],
        format=samples["format"],
        cluster=samples["row"],
        response_id=samples["response_id"],
        example_id=triaged.cases["example_id"].to_numpy()[samples["row"].to_numpy()],
    )
    return table.assign(group=_pairs(table, "judge", "format"))[LEVEL_COLUMNS]


def _reach(level: pd.Series) -> pd.Series:
    """Half a level to either side for a boundary, which stands for both of its letters."""
    return (level % 1).clip(upper=0.5)


def _response_reads(triaged: Triaged, *, drawn: bool) -> pd.DataFrame:
    """Physicians' blind first reads of responses that gave a level: sample, level, weight."""
    kept = first_reads(triaged.reads.loc[triaged.reads["asked"].eq(Ask.RESPONSE_ACUITY)])
    if drawn:
        kept = kept.loc[kept["inclusion_probability"].notna()]
    weight = 1 / kept["inclusion_probability"] if drawn else 1.0
    table = kept[["sample"]].assign(level=kept["label"].map(LEVELS).astype(float), weight=weight)
    return table.loc[table["level"].notna()]


def _pairs(table: pd.DataFrame, one: str, other: str) -> pd.Categorical:
    """The names of two columns, as one: "Alder-2, qa"."""
    left, right = table[one].astype("category").cat, table[other].astype("category").cat
    n = max(len(right.categories), 1)
    names = [f"{a}, {b}" for a in left.categories for b in right.categories]
    codes = left.codes.to_numpy().astype(np.int64) * n + right.codes.to_numpy()
    return pd.Categorical.from_codes(codes, pd.Index(names, dtype=object))
