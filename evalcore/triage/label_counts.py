"""How many cases have each label of their source, and what was made of the label when they were imported."""

import numpy as np
import pandas as pd

from evalcore.stats.wording import counted, listed
from evalcore.triage import label_maps
from evalcore.triage.label_maps import Maps, fold

COLUMNS = ("source", "label", "written", "meaning", "n_cases", "n_otherwise")


def label_counts(labels: pd.DataFrame, maps: Maps) -> pd.DataFrame:
    """What each label stands for now, and on how many cases it is.

    Args:
        labels: As `setting_queries.labels_of_cases` gives them: source, original_label, mapped_label (None where nothing was made of it), n.

    Returns:
        One row a source and label: source and label, both folded; written, as its cases have it most often; meaning (`label_maps.MEANINGS`;
        None: the map does not know the label); n_cases, and n_otherwise: those for which the label stood for something else when they were
        imported. Sources and labels without cases are left out.
    """
    if labels.empty:
        return pd.DataFrame(columns=list(COLUMNS)).astype({"n_cases": int, "n_otherwise": int})
    found = labels.sort_values("n", ascending=False, kind="stable")
    source, label = found["source"].map(fold), found["original_label"].map(fold)
    meaning = [label_maps.map_of(maps, place).get(word) for place, word in zip(source, label, strict=True)]
    then = [label_maps.meaning_written(word) if isinstance(word, str) else None for word in found["mapped_label"]]
    is_other = np.array([was is not None and was != now for was, now in zip(then, meaning, strict=True)])
    n_cases = found["n"].to_numpy(dtype=np.int64)
    rows = pd.DataFrame(
        {
            "source": source, "label": label, "written": found["original_label"], "meaning": pd.Series(meaning, found.index, dtype=object),
            "n_cases": n_cases, "n_otherwise": np.where(is_other, n_cases, 0),
        }
    )  # fmt: skip
    by = ["source", "label"]
    rows[["n_cases", "n_otherwise"]] = rows.groupby(by)[["n_cases", "n_otherwise"]].transform("sum")
    return rows.drop_duplicates(by).sort_values(by, ignore_index=True)[list(COLUMNS)]


def words(counts: pd.DataFrame, source: str, known: Maps) -> list[str]:
    """What there is to say of a source's labels, in sentences."""
    own = label_maps.fold(source)
    if own == label_maps.LEVELS:
        rows = counts.loc[~counts["source"].isin(list(known))]
        said = ["This map counts for every source that has none of its own."]
    else:
        rows = counts.loc[counts["source"].eq(own)]
        said = [] if own in known else [f"{source} has no map of its own yet: the names of the levels count for it."]
    n_cases, n_otherwise = int(rows["n_cases"].sum()), int(rows["n_otherwise"].sum())
    if not n_cases:
        return [*said, "No case of this study has a label of it."]
    said.append(f"{counted(n_cases, 'case')} of this study, with {counted(len(rows), 'label')}.")
    strange = rows.loc[rows["meaning"].isna()]
    if len(strange):
        n = int(strange["n_cases"].sum())
        said.append(
            f"The map does not know {listed(list(strange['written'].map(repr)))}, on {counted(n, 'case')}: a further import with such a label would stop."
        )
    if n_otherwise:
        said.append(
            f"{counted(n_otherwise, 'case')} {'was' if n_otherwise == 1 else 'were'} imported when the label stood for something else, and "
            f"{'keeps' if n_otherwise == 1 else 'keep'} that."
        )
    return said


def unknown(counts: pd.DataFrame, source: str) -> list[str]:
    """The labels of a source's cases that its map does not know, as they are written."""
    mine = counts["source"].eq(fold(source)) & counts["meaning"].isna()
    return [str(label) for label in counts.loc[mine, "written"]]


def beside(counts: pd.DataFrame, source: str, table: label_maps.Table, known: Maps) -> pd.DataFrame:
    """How many cases stand behind each row of a map: n_cases and n_otherwise, one row a row of `table`, 0 where there is none.

    Args:
        source: Whose map it is; `label_maps.LEVELS`: of all sources without a map of their own.
    """
    own = label_maps.fold(source)
    of_source = ~counts["source"].isin(list(known)) if own == label_maps.LEVELS else counts["source"].eq(own)
    summed = counts.loc[of_source].groupby("label")[["n_cases", "n_otherwise"]].sum()
    return summed.reindex([fold(label) for label, _ in table], fill_value=0).reset_index(drop=True).astype(int)
