"""Labels as the metrics of agreement take them: a long frame made of a study, and the same as numbers."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from evalcore.rubric.data import Opinions
from evalcore.rubric.items import first_reads
from evalcore.stats.agreement_sums import Codes, Labels
from evalcore.study.schema import Label, Selection

TAGS = ("theme", "axis", "category", "cluster")
CATEGORIES = (Label.NOT_MET.value, Label.MET.value)
CHOSEN_BY_READERS = (Selection.VOLUNTEERED, Selection.ADJUDICATION)


def labels_of(opinions: Opinions, *, judges: Sequence[str] = ()) -> pd.DataFrame:
    """Physicians' blind first reads, and if wanted judges' labels of the same items, as the frame that `agreement` takes.

    Reads of items that somebody chose to read (volunteered, adjudicated) are left out. Of a judge only labels count: whether it was asked
    and could not assess an item is not told apart from its not having been asked.

    Args:
        opinions: The study.
        judges: Names of judges to count as raters; their labels on items that no physician has read are left out.

    Returns:
        One row a label: unit (row of `opinions.items`), example_id, rater (categorical: judges first, then physicians by name), value (ordered
        categorical not_met < met; missing where a physician could not assess), theme, axis, category, cluster.
    """
    reads = first_reads(opinions.reads)
    reads = reads.loc[~reads["selection"].isin(CHOSEN_BY_READERS)]
    rows = np.unique(reads["row"].to_numpy(dtype=np.int64))
    physicians = reads["rater"].astype("str")
    physicians = physicians.mask(physicians.isin(list(judges)), physicians + " (physician)")
    parts = [pd.DataFrame({"row": reads["row"], "rater": physicians, "met": reads["met"]})]
    parts += [
        pd.DataFrame({"row": rows, "rater": judge, "met": opinions.judged[judge].to_numpy()[rows]}).dropna()
        for judge in judges
    ]
    types = {"row": "int64", "rater": "str", "met": "float64"}
    every = pd.concat([part.astype(types) for part in parts], ignore_index=True)
    items = opinions.items.iloc[every["row"].to_numpy()]
    codes = every["met"].fillna(-1).to_numpy().astype(np.int64)
    return pd.DataFrame(
        {
            "unit": every["row"],
            "example_id": items["example_id"].to_numpy(),
            "rater": pd.Categorical(every["rater"], categories=[*judges, *sorted(set(physicians))]),
            "value": pd.Categorical.from_codes(codes, dtype=pd.CategoricalDtype(list(CATEGORIES), ordered=True)),
            **{name: items[name].array for name in TAGS},
        }
    )


@dataclass(frozen=True)
class Coded:
    """Labels as numbers: `Labels`, with value -1 for cannot assess; `both`: a unit counts only with all its labels."""

    labels: Labels
    both: bool = False

    def answered(self) -> Labels:
        """Without cannot assess."""
        kept = self.labels.value >= 0
        if self.both:
            n = np.bincount(self.labels.unit[kept], minlength=len(self.labels.group))
            kept &= n[self.labels.unit] > 1
        return _of_rows(self.labels, kept)


def _of_rows(labels: Labels, kept: npt.NDArray[np.bool_]) -> Labels:
    return replace(labels, unit=labels.unit[kept], rater=labels.rater[kept], value=labels.value[kept])


def value_codes(values: pd.Series, categories: Sequence[str] | None = None) -> tuple[Codes, list[str]]:
    """Each value's place among the categories, -1 where it is missing; and the categories.

    Args:
        values: Labels.
        categories: All that could be given, in their order; default: those of the column, sorted where it is not categorical.

    Raises:
        ValueError: A value is not among the categories.
    """
    used = values.astype("category")
    names = list(used.cat.categories) if categories is None else list(categories)
    codes = np.asarray(used.cat.codes, dtype=np.int64)
    place = np.append(pd.Index(names, dtype=object).get_indexer(used.cat.categories.astype(object)), -1)
    found = np.asarray(place[codes], dtype=np.int64)
    if (unknown := np.unique(codes[(found < 0) & (codes >= 0)])).size:
        came = ", ".join(str(name) for name in used.cat.categories[unknown])
        msg = f"value: {came} came, expected some of {', '.join(map(str, names))}"
        raise ValueError(msg)
    return found, names


def coded(labels: pd.DataFrame, categories: Sequence[str] | None) -> tuple[Coded, list[str]]:
    """The frame as numbers, all in one group; and the categories."""
    value, names = value_codes(labels["value"], categories)
    unit, units = pd.factorize(labels["unit"])
    rater = np.asarray(labels["rater"].astype("category").cat.codes, dtype=np.int64)
    if len(pd.unique(unit * (rater.max(initial=0) + 1) + rater)) != len(labels):
        msg = "a rater with two labels on an item came, expected one row a rater and item"
        raise ValueError(msg)
    example = np.zeros(len(units), dtype=np.int64)
    example[unit] = pd.factorize(labels["example_id"])[0]
    nothing = np.zeros(len(units), dtype=np.int64)
    found = Labels(np.asarray(unit, dtype=np.int64), rater, value, nothing, example, 1, max(2, len(names)))
    return Coded(found), names


def grouped(given: Coded, of_label: Codes, n_groups: int) -> tuple[Coded, Codes]:
    """The labels of units that are in a group, and which groups there are."""
    labels, kept = given.labels, of_label >= 0
    codes, units = pd.factorize(labels.unit[kept])
    number = np.asarray(codes, dtype=np.int64)
    group = np.zeros(len(units), dtype=np.int64)
    group[number] = of_label[kept]
    part = replace(_of_rows(labels, kept), unit=number, group=group, example=labels.example[units], n_groups=n_groups)
    return Coded(part), np.unique(group)


def pairs(given: Coded) -> tuple[Coded, Codes]:
    """Each item of two raters as a unit of its own, in the group of their pair; and the two raters of each pair."""
    labels = given.labels
    n_raters = int(labels.rater.max(initial=0)) + 1
    order = np.argsort(labels.unit * n_raters + labels.rater, kind="stable")
    unit, rater, value = labels.unit[order], labels.rater[order], labels.value[order]
    most = int(np.bincount(unit, minlength=1).max(initial=0))
    ahead = [np.flatnonzero(unit[:-lag] == unit[lag:]) for lag in range(1, most)]
    first = np.concatenate([*ahead, np.zeros(0, dtype=np.int64)])
    second = np.concatenate([*(rows + lag for lag, rows in enumerate(ahead, start=1)), np.zeros(0, dtype=np.int64)])
    keys, pair = np.unique(rater[first] * n_raters + rater[second], return_inverse=True)
    units, zero = np.arange(len(first)), np.zeros(len(first), dtype=np.int64)
    both = Labels(
        np.concatenate([units, units]),
        np.concatenate([zero, zero + 1]),
        np.concatenate([value[first], value[second]]),
        pair.astype(np.int64),
        labels.example[unit[first]],
        len(keys),
        labels.n_categories,
    )
    return Coded(both, both=True), np.stack([keys // n_raters, keys % n_raters], axis=1)


def most_labels(labels: pd.DataFrame, n: int) -> list[str]:
    """The n raters with the most labels, in the order of `rater`: what still can be read in a matrix.

    Args:
        labels: As `labels_of` gives them.
        n: How many at most.
    """
    counts = labels["rater"].value_counts(sort=False)
    kept = counts.loc[counts.gt(0)].sort_values(ascending=False, kind="stable").head(n).index
    return [str(name) for name in labels["rater"].cat.categories if name in kept]
