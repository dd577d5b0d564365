"""A model's own confidence in the level it gives a case, and a judge's in the level it reads, as items for `calibration`."""

import numpy as np
import pandas as pd

from evalcore.metrics.panels import Kind
from evalcore.schema import Ask, Stage
from evalcore.triaged import LEVELS, NO_LEVEL, Triaged

MODEL_COLUMNS = ["model", "format", "group", "cluster", "confidence", "is_stated", "right", "gold", "predicted"]
LEVEL_COLUMNS = [
    "judge", "format", "model", "group", "cluster", "example_id", "response_id", "confidence", "label", "right", "n_reads", "weight",
]  # fmt: skip


def model_items(found: pd.DataFrame, *, stated: bool = True) -> pd.DataFrame:
    """One row a prediction on a clear case: how sure the model was, and whether it was right.

    Args:
        found: `predictions.joined(triaged, predictions(...))`.
        stated: A confidence that the file states goes before the share of samples; False: the share alone (where nobody has said what
            the stated ones mean).

    Returns:
        One row a clear case, model and format with a prediction, for `calibration` with by=("model", "format") or ("group",): model,
        format, group ("Alder-2, qa"), cluster (the case), confidence in [0, 1] (stated, else the share of the valid samples that say
        the predicted level), is_stated, right (1 or 0), gold, predicted.
    """
    kept = found.loc[found["kind"].eq(Kind.CLEAR) & found["predicted"].notna()].reset_index(drop=True)
    is_stated = kept["stated"].notna() & stated
    table = kept.assign(
        cluster=kept["row"],
        confidence=kept["stated"].where(is_stated, kept["share"]),
        is_stated=is_stated,
        right=kept["predicted"].eq(kept["gold"]).astype(float),
        group=_pairs(kept, "model", "format"),
    )
    return table[MODEL_COLUMNS]


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
    reads = _first_reads(triaged, drawn=drawn)
    stated = triaged.confidence.rename(columns={"rater": "judge"})
    stated = stated.loc[stated["sample"].isin(reads["sample"])]
    place, judge = stated["sample"].to_numpy(), stated["judge"].astype(object).to_numpy()
    label = np.full(len(stated), np.nan)
    for name in triaged.levels:
        mine = judge == name
        label[mine] = triaged.levels[name].to_numpy(dtype=float)[place[mine]]
    said = stated.assign(label=label)
    said = said.loc[said["label"].notna() & said["label"].ne(NO_LEVEL)]
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


def _first_reads(triaged: Triaged, *, drawn: bool) -> pd.DataFrame:
    """Physicians' blind first reads of responses that gave a level: sample, level, weight."""
    reads = triaged.reads
    kept = reads.loc[
        reads["asked"].eq(Ask.RESPONSE_ACUITY) & reads["stage"].eq(Stage.FIRST) & ~reads["blinded"].isin([False])
    ]  # fmt: skip
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
