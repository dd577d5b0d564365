"""What everybody says of every criterion of every response (an item), as frames that fit in memory."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from evalcore.stats.arrays import Floats, Numbers, Truths, occurring, quotient, rows_by_code, runs_of
from evalcore.study.schema import REPEAT, Selection, Stage

ITEM_COLUMNS = (
    "item_id", "response_id", "criterion_id", "example_id", "position", "points", "model", "evaluation", "sample_index",
    "n_expected", "axis", "level", "cluster", "theme", "category", "language", "n_chars", "reachable",
)  # fmt: skip
READ_COLUMNS = (
    "row", "item_id", "example_id", "response_id", "rater", "met", "stage", "blinded", "selection", "inclusion_probability", "unit",
)  # fmt: skip
DRAWN = (Selection.RANDOM, Selection.IMPORTANCE)  # probability known, so that they can stand for what was not read


@dataclass(frozen=True)
class RubricData:
    """The items of a study, what each judge says of them, and what physicians say of some.

    Attributes:
        items: One row an item, sorted by response and position, numbered from 0: points (-10..10, NaN where unknown), sample_index (0, 1, ... for repeats),
            n_expected (criteria that a judge is asked on the response), names (categorical, missing where untagged; `TASK_TAGS` only where the study
            has some), n_chars (of the response), reachable (a drawing could have taken the response: reads stand for these alone).
        reads: One row a physician's standing verdict a stage: row (of `items`), met (1, 0, NaN where they could not assess), inclusion_probability (in (0, 1],
            over all drawings; NaN where not drawn), unit (number of what was drawn together: the response or the item).
        repeats: One column a judge and time that it was asked again ("Magpie#2"): never a say of the judge's own; they tell how sure it is.
    """

    items: pd.DataFrame
    judged: pd.DataFrame  # the same rows, one column a judge: 1 met, 0 not met, NaN no label or could not assess
    reads: pd.DataFrame
    repeats: pd.DataFrame = field(default_factory=pd.DataFrame)
    juries: frozenset[str] = frozenset()  # judges that say what others say most often: they have no vote beside them
    kept: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)  # what follows from `items`

    def __post_init__(self) -> None:
        if self.kept.get("items") is not self.items:
            object.__setattr__(self, "kept", {"items": self.items})

    @property
    def responses(self) -> "Responses":
        """The responses of the items; told apart once, whatever is asked of them."""
        if "responses" not in self.kept:
            self.kept["responses"] = Responses(self.items)
        found: Responses = self.kept["responses"]
        return found

    @property
    def judges(self) -> list[str]:
        """Names of the judges, those with most labels first."""
        return list(self.judged.columns)

    def where(self, kept: Any) -> "RubricData":
        """These items alone (one truth value an item), numbered anew, with what was said of them."""
        mask = np.asarray(kept, dtype=bool)
        if mask.all():
            return self
        return self._taken(np.flatnonzero(mask), mask[self.reads["row"].to_numpy()])

    def parts(self, codes: Numbers, n: int) -> Iterator["RubricData"]:
        """The items of each of n codes, one part after the other, likewise; what has none (-1) is in no part."""
        by_code, of_reads = rows_by_code(codes + 1, n + 1)[1:], codes[self.reads["row"].to_numpy()]
        return (self._taken(rows, of_reads == code) for code, rows in enumerate(by_code))

    def _taken(self, rows: Numbers, of_reads: Truths) -> "RubricData":
        reads, known = self.reads.loc[of_reads].reset_index(drop=True), self.kept.get("responses")
        items, judged = (table.take(rows).reset_index(drop=True) for table in (self.items, self.judged))
        repeats = self.repeats.take(rows).reset_index(drop=True) if self.repeats.shape[1] else self.repeats
        reads = reads.assign(row=np.searchsorted(rows, reads["row"].to_numpy()))
        part = replace(self, items=items, judged=judged, reads=reads, repeats=repeats)
        if known is not None:
            part.kept["responses"] = known.of(items, rows)
        return part

    def without(self, example_ids: frozenset[int]) -> "RubricData":
        """Without these examples, and without the names that only they hold."""
        if not example_ids:
            return self
        return self.where(~self.items["example_id"].isin(list(example_ids))).with_used_names()

    def with_used_names(self) -> "RubricData":
        """Without the names of models, themes and the like that no item has."""
        names = {str(name): self.items[name].cat for name in self.items.select_dtypes("category")}
        rows = self.responses.firsts  # most names occur among a response's first items: then no other is looked at
        unused = [name for name, of in names.items() if of.codes.iloc[rows].nunique() < len(of.categories)]
        used = {name: names[name].remove_unused_categories() for name in unused}
        return replace(self, items=self.items.assign(**used)) if used else self

    @property
    def voters(self) -> list[str]:
        """The judges but for juries, which say again what others say."""
        return [name for name in self.judges if name not in self.juries]

    @property
    def votes(self) -> pd.DataFrame:
        """What is said of each item by everybody who has a vote: the judges but for juries, and their repeats."""
        voters = self.judged[self.voters]
        return pd.concat([voters, self.repeats], axis=1) if self.repeats.shape[1] else voters

    def asked_again(self, judge: str) -> "RubricData":
        """This judge and its repeats as the only judges, in the order in which it was asked."""
        again = [name for name in self.repeats if str(name).rpartition(REPEAT)[0] == judge]
        judged = pd.concat([self.judged[[judge]], self.repeats[again]], axis=1) if again else self.judged[[judge]]
        return replace(self, judged=judged, repeats=pd.DataFrame(), juries=frozenset())

    def with_repeats(self) -> "RubricData":
        """With every repeat as a judge more."""
        more = self.repeats[[name for name in self.repeats if name not in self.judged]]
        return replace(self, judged=pd.concat([self.judged, more], axis=1)) if more.shape[1] else self

    def by(self, judges: Sequence[str]) -> "RubricData":
        """With these judges alone."""
        return replace(self, judged=self.judged[list(judges)])


class Responses:
    """The responses that items belong to, by number, and what each of them is on the whole."""

    def __init__(self, items: pd.DataFrame, response: Numbers | None = None, table: pd.DataFrame | None = None) -> None:
        self._items, self._table = items, table
        self.codes, self.firsts = runs_of(items["response_id"].to_numpy() if response is None else response)
        """By item the row of its response, and by response its first item."""

    def of(self, items: pd.DataFrame, rows: Numbers) -> "Responses":
        """Those of some of the items, which are these rows; what is known of them is not looked up in the items again."""
        codes = self.codes[rows]
        kept = np.flatnonzero(np.bincount(codes, minlength=len(self.firsts)))
        table = self._table if self._table is None else self._table.take(kept).reset_index(drop=True)
        return Responses(items, codes, table)

    @cached_property
    def table(self) -> pd.DataFrame:
        """The columns of the items, of each response's first item."""
        return self._items.take(self.firsts).reset_index(drop=True) if self._table is None else self._table

    @cached_property
    def n_items(self) -> Numbers:
        """How many items each has."""
        return np.bincount(self.codes, minlength=len(self.firsts))

    @cached_property
    def possible(self) -> Floats:
        """The sum of the positive points of each."""
        points = self._items["points"].to_numpy(dtype=float)
        return np.asarray(np.bincount(self.codes, np.where(points > 0, points, 0.0)), dtype=np.float64)

    @cached_property
    def is_scored(self) -> Truths:
        """Which have points on every criterion, all criteria that are asked, and positive points among them."""
        is_whole = self.n_items >= self.table["n_expected"].to_numpy()
        return is_whole & (self.possible > 0) & ~self.any_of(self._items["points"].isna().to_numpy())

    def n_of(self, is_item: Truths) -> Numbers:
        """How many items of each are such."""
        return self.n_items if is_item.all() else np.bincount(self.codes[is_item], minlength=len(self.firsts))

    def any_of(self, is_item: Truths) -> Truths:
        """Which have an item that is such."""
        found = np.zeros(len(self.firsts), dtype=bool)
        if is_item.any():
            found[self.codes[is_item]] = True
        return found

    @cached_property
    def coefficients(self) -> Floats:
        """As the function, with one weight for all examples."""
        return self.weighted_coefficients(None)

    def weighted_coefficients(self, weights: pd.Series | None) -> Floats:
        """As the function."""
        responses = self.table
        weight = pd.Series(1.0, index=responses.index) if weights is None else responses["example_id"].map(weights)
        of_model = weight.groupby([responses["model"], responses["evaluation"]], sort=False, observed=True)
        points, whole = self._items["points"].to_numpy(dtype=float), of_model.transform("sum").to_numpy()
        moves = points if weights is None else points * weight.to_numpy(dtype=float)[self.codes]
        shares = (self.possible * whole)[self.codes]
        return np.divide(moves, shares, out=shares)  # in place: memory comes slowly


def is_scored(items: pd.DataFrame) -> pd.Series:
    """Which items enter a score: their response has points on every criterion, all criteria that are asked, and positive points among them."""
    responses = Responses(items)
    return pd.Series(responses.is_scored[responses.codes], index=items.index, dtype=bool)


def coefficients(items: pd.DataFrame, weights: pd.Series | None = None) -> pd.Series:
    """By how much each item moves its model's mean score when it is met: a = w points / (W P), as signed shares.

    P is the sum of the response's positive points, w the weight of its example, W the sum of the weights of all scored responses of the model in the
    evaluation. The score of a model is then the sum over its items of a times met, and its positive a add up to 1. Only items that `is_scored` may come.
    """
    return pd.Series(Responses(items).weighted_coefficients(weights), index=items.index)


def first_reads(reads: pd.DataFrame) -> pd.DataFrame:
    """The blind first reads, as they were locked: what every statistic of physicians begins from, of criteria and of levels of care."""
    return reads.loc[reads["stage"].eq(Stage.FIRST) & ~reads["blinded"].isin([False])]


def settlements(reads: pd.DataFrame) -> pd.DataFrame:
    """The adjudications that may take the place of first reads: those made without the judge in view. The others are shown, and enter no estimate."""
    return reads.loc[reads["stage"].eq(Stage.ADJUDICATED) & ~reads["blinded"].isin([False])]


def is_drawn(reads: pd.DataFrame) -> pd.Series:
    """Which reads are of items that were drawn with a known probability: others cannot stand for what was not read."""
    return reads["selection"].isin(DRAWN) & reads["inclusion_probability"].notna()


def votes(reads: pd.DataFrame, *, drawn: bool = True, settled: bool = False) -> pd.DataFrame:
    """What physicians say of each item that they have read blind (`drawn`: and that was drawn with a known probability), as one number.

    `settled`: an adjudicated label takes the place of the readers' votes. One row per item with a read that could assess it, sorted by row: vote in [0, 1]
    (mean of the readers'), n_reads, n_cannot_assess, inclusion_probability, unit.
    """
    counted = first_reads(reads)
    if drawn:
        counted = counted.loc[is_drawn(counted)]
    of_item, rows = occurring(counted["row"].to_numpy(dtype=np.int64))
    met, unit, chance = (counted[name].to_numpy() for name in ("met", "unit", "inclusion_probability"))
    is_unknown = np.isnan(met)
    n_reads, n_unknown = (np.bincount(of_item, of, len(rows)).astype(np.int64) for of in (~is_unknown, is_unknown))
    of_first, highest = np.empty(len(rows), dtype=unit.dtype), np.full(len(rows), np.nan)
    of_first[of_item[::-1]] = unit[::-1]
    np.fmax.at(highest, of_item, chance)
    columns = {"vote": quotient(np.bincount(of_item, np.nan_to_num(met), len(rows)), n_reads), "n_reads": n_reads}
    columns |= {"n_cannot_assess": n_unknown, "inclusion_probability": highest, "unit": of_first}
    table = pd.DataFrame(columns, index=pd.Index(rows, name="row"))
    if settled:
        final = settlements(reads).dropna(subset="met").drop_duplicates("row", keep="last")
        table["vote"] = final.set_index("row")["met"].reindex(table.index).fillna(table["vote"])
    return table.loc[table["vote"].notna()].reset_index()
