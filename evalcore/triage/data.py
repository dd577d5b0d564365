"""Cases of triage, what models answered, and what everybody says of that, as frames: the input of the statistics.

Levels are 1 (A, home) to 4 (D, emergency now); boundaries 1.5, 2.5, 3.5 stand for both of their letters.
Spread, gold and strength of a panel are those of AcuityBench (arXiv 2605.11398).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from evalcore.stats.arrays import Floats, Numbers, Truths, quotient
from evalcore.study.schema import Acuity, MappingMethod

ORDERED = (Acuity.A, Acuity.A_B, Acuity.B, Acuity.B_C, Acuity.C, Acuity.C_D, Acuity.D)
LEVELS = {label: 1 + place / 2 for place, label in enumerate(ORDERED)} | {Acuity.REMOVE: np.nan}
LABELS = {level: label.value for label, level in LEVELS.items() if label is not Acuity.REMOVE}
LETTERS = (Acuity.A, Acuity.B, Acuity.C, Acuity.D)
N_LEVELS = len(LETTERS)
NO_LEVEL = 0.0
"""In `TriageData.levels`: the rater looked and found no level, or conflicting ones. Not a level, and counted apart."""
READ_HERE = "read here"

READ_COLUMNS = ["row", "sample", "asked", "rater", "label", "stage", "blinded", "selection", "inclusion_probability"]
READ_COLUMNS += ["verdict_id"]
SAMPLE_COLUMNS = ["response_id", "row", "model", "format", "sample_index", "has_text"]
CONFIDENCE_COLUMNS = ["sample", "rater", "confidence"]
ELSEWHERE_COLUMNS = ["row", "model"]
SHARES = ("h_A", "h_B", "h_C", "h_D")
MAX_SPREAD, MAX_UNCERTAINTY = 0.75, 0.7


class Kind(StrEnum):
    """What a case can be asked about."""

    CLEAR = "clear"
    """Its gold is one letter."""
    BOUNDARY = "boundary"
    """Its gold lies between two letters, and both are right."""
    AMBIGUOUS = "ambiguous"
    """Physicians do not agree: it has no gold, and no accuracy."""
    UNLABELLED = "unlabelled"
    """Nobody has said which level it needs."""


@dataclass(frozen=True)
class AmbiguityRule:
    """Above which spread of a panel (0..9) or stated uncertainty (0..1) a case is ambiguous; infinity: either off."""

    spread: float = MAX_SPREAD
    uncertainty: float = MAX_UNCERTAINTY


USUAL_RULE = AmbiguityRule()


@dataclass(frozen=True)
class TriageData:
    """The cases of a study and everything said of them; `row` is one of `cases`, `sample` one of `samples`."""

    cases: pd.DataFrame
    """A row a case, from 0: example_id, case_id, source, original_label, mapped_label, file_gold (a level or NaN), method
    (`MappingMethod`), is_edge_case, uncertainty (0..1 or NaN), language, first_words; what `described` adds."""
    votes: pd.DataFrame
    """A row a panel vote: row, place (from 1), rater, vote (a level; NaN: Remove)."""
    samples: pd.DataFrame
    """A row a response, by case: response_id, row, model, format, sample_index, has_text (or only a level is known)."""
    levels: pd.DataFrame
    """The same rows, a column a judge: float32, a level, `NO_LEVEL`, or NaN where it has not looked."""
    confidence: pd.DataFrame
    """A row a stated confidence: sample, rater (the judge), confidence in 0..1."""
    reads: pd.DataFrame
    """A row a physician's standing verdict a stage, `READ_COLUMNS`: sample is -1 where it is of the case itself."""
    published: pd.DataFrame
    """Finished matrices, a row a model, format and gold: model, format, gold (a level), A, B, C, D (counts)."""
    elsewhere: pd.DataFrame = field(default_factory=lambda: pd.DataFrame({name: [] for name in ELSEWHERE_COLUMNS}))
    """Responses in neither format, which are no samples: row, model."""
    juries: frozenset[str] = frozenset()
    """Those of the judges that say what others say most often: they have no vote beside them."""

    def judges(self, asked: str) -> list[str]:
        """Who has looked at responses of one format, those who looked at most first."""
        of_format = self.samples["format"].eq(asked).to_numpy()
        looked = self.levels.loc[of_format].notna().sum()
        return [str(name) for name in looked[looked > 0].sort_values(ascending=False, kind="stable").index]

    def voters(self, asked: str) -> list[str]:
        """Those of them that are no juries."""
        return [name for name in self.judges(asked) if name not in self.juries]

    def is_clear(self) -> Truths:
        """By case whether its gold is one letter."""
        return self.cases["kind"].eq(Kind.CLEAR).to_numpy(dtype=bool)

    def where(self, kept: Any) -> "TriageData":
        """These cases alone (truth values, one a case), numbered anew. Published matrices have no cases and stay."""
        cases = np.asarray(kept, dtype=bool)
        of_cases = (_of(table, "row", cases) for table in (self.samples, self.elsewhere))
        return self if cases.all() else self._part(cases, *of_cases)

    def without(self, example_ids: frozenset[int]) -> "TriageData":
        """Without the cases of these examples."""
        return self.where(~self.cases["example_id"].isin(list(example_ids))) if example_ids else self

    def of_models(self, models: Sequence[str]) -> "TriageData":
        """With the responses of these models alone."""
        samples, elsewhere = (table["model"].isin(list(models)).to_numpy() for table in (self.samples, self.elsewhere))
        return self._part(np.ones(len(self.cases), dtype=bool), samples, elsewhere)

    def _part(self, cases: Truths, samples: Truths, elsewhere: Truths) -> "TriageData":
        rows = np.cumsum(cases) - 1
        places = np.append(np.cumsum(samples) - 1, -1)  # the last: of no sample
        is_read = np.append(samples, True)

        def renumbered(table: pd.DataFrame, mask: Truths) -> pd.DataFrame:
            part = table.loc[mask].reset_index(drop=True)
            new = {name: to for name, to in (("row", rows), ("sample", places)) if name in part}
            return part.assign(**{name: to[part[name].to_numpy(dtype=np.int64)] for name, to in new.items()})

        return replace(
            self,
            cases=self.cases.loc[cases].reset_index(drop=True),
            votes=renumbered(self.votes, _of(self.votes, "row", cases)),
            samples=renumbered(self.samples, samples),
            levels=self.levels.loc[samples].reset_index(drop=True),
            confidence=renumbered(self.confidence, _of(self.confidence, "sample", samples)),
            reads=renumbered(self.reads, _of(self.reads, "row", cases) & _of(self.reads, "sample", is_read)),
            elsewhere=renumbered(self.elsewhere, elsewhere),
        )


def _of(table: pd.DataFrame, name: str, kept: Truths) -> Truths:
    found: Truths = kept[table[name].to_numpy(dtype=np.int64)]
    return found


def described(triage_data: TriageData, rule: AmbiguityRule = USUAL_RULE) -> TriageData:
    """The same with the gold that counts: a panel of two votes or more decides by the rule, else the file.

    Adds to `cases` n_votes (without n_removed), n_removed, spread (NaN below two votes), strength ("direct",
    "unanimous", "4-1", ...; "" without votes or direct gold), `SHARES` of the votes, gold (1..4, boundaries at .5; or
    NaN), kind (`Kind`).
    """
    cases, votes = triage_data.cases, triage_data.votes
    n = len(cases)
    row, vote = votes["row"].to_numpy(), votes["vote"].to_numpy(dtype=float)
    given = ~np.isnan(vote)
    n_removed = np.bincount(row[~given], minlength=n)
    row, vote = row[given], vote[given]
    n_votes = np.bincount(row, minlength=n)
    spread = spreads(row, vote, n)
    is_panel = n_votes > 1
    unsure = cases["uncertainty"].to_numpy(dtype=float) > rule.uncertainty
    disagreed = np.where(is_panel, spread > rule.spread, cases["method"].eq(MappingMethod.DISAGREEMENT).to_numpy())
    ambiguous = disagreed | unsure
    settled = np.where(is_panel, medians(row, vote, n), cases["file_gold"].to_numpy(dtype=float))
    gold = np.where(ambiguous, np.nan, settled)
    width = 2 * N_LEVELS + 1
    counts = np.bincount(row * width + np.rint(vote * 2).astype(int), minlength=n * width).reshape(n, width)
    distinct, which = np.unique(-np.sort(-counts, axis=1), axis=0, return_inverse=True)
    words = ["unanimous" if (line > 0).sum() == 1 else "-".join(str(k) for k in line if k) for line in distinct]
    together = np.array(words, dtype=str)[which.ravel()]
    strength = np.where(is_panel, together, np.where(np.isnan(gold), "", "direct"))
    kind = pd.Categorical(np.where(ambiguous, Kind.AMBIGUOUS.value, kinds_of(gold)), categories=list(map(str, Kind)))
    shares = dict(zip(SHARES, distributions(row, vote, n).T, strict=True))
    cases = cases.assign(n_votes=n_votes, n_removed=n_removed, spread=spread, strength=pd.Categorical(strength))
    return replace(triage_data, cases=cases.assign(**shares, gold=gold, kind=kind))


def kinds_of(gold: Floats) -> npt.NDArray[np.object_]:
    """What cases with these golds can be asked about."""
    between = gold != np.floor(gold)
    kinds = [Kind.UNLABELLED.value, Kind.BOUNDARY.value]
    return np.select([np.isnan(gold), between], kinds, Kind.CLEAR.value).astype(object)


def distributions(row: Numbers, vote: Floats, n: int) -> Floats:
    """Shares of the levels among the votes of each case, n x 4; a boundary is half of each letter; NaN without any."""
    low, high = np.floor(vote).astype(int) - 1, np.ceil(vote).astype(int) - 1
    counted = np.bincount(np.concatenate([row, row]) * N_LEVELS + np.concatenate([low, high]), minlength=n * N_LEVELS)
    counts = counted.reshape(n, N_LEVELS) / 2
    return quotient(counts, np.broadcast_to(counts.sum(axis=1, keepdims=True), counts.shape))


def spreads(row: Numbers, vote: Floats, n: int) -> Floats:
    """The mean over pairs of votes of each case of their letters' least squared difference, 0..9; NaN below two."""
    levels = np.arange(2 * N_LEVELS - 1) / 2
    half = levels % 1  # a boundary reaches to either of its letters
    gap = np.maximum(np.abs(levels[:, None] - levels) - half[:, None] - half, 0) ** 2
    place = row * len(levels) + np.rint(2 * vote).astype(np.int64) - 2
    counts = np.bincount(place, minlength=n * len(levels)).reshape(n, len(levels))
    size = counts.sum(axis=1)
    return quotient((counts @ gap * counts).sum(axis=1) / 2, size * (size - 1) / 2)


def medians(row: Numbers, vote: Floats, n: int) -> Floats:
    """Ordinal median of the votes of each case; NaN without votes.

    Of an even number the midpoint where it is 1.5, 2.5 or 3.5 or both middle votes are one, else the severer one.
    """
    order = np.lexsort((vote, row))
    vote = vote[order]
    counts = np.bincount(row, minlength=n)
    first = np.cumsum(counts) - counts
    found = np.full(n, np.nan)
    some = counts > 0
    low = vote[(first + (counts - 1) // 2)[some]]
    high = vote[(first + counts // 2)[some]]
    middle = (low + high) / 2
    is_named = (middle * 2 == np.floor(middle * 2)) & ((low == high) | (middle != np.floor(middle)))
    found[some] = np.where(is_named, middle, high)
    return found


def labels_of(levels: pd.Series) -> pd.Series:
    """Levels as their labels, missing where there is none.

    >>> labels_of(pd.Series([4.0, 2.5, float("nan")])).tolist()[:2]
    ['D', 'B/C']
    """
    return levels.map(LABELS).astype(object)


def case_keys(table: pd.DataFrame, samples: pd.DataFrame) -> Numbers:
    """Case, model and format of each row as one number; model and format as `samples` number them."""
    key = table["row"].to_numpy(dtype=np.int64)
    for name in ("model", "format"):
        known = samples[name].cat.categories
        key = key * max(len(known), 1) + pd.Categorical(table[name], categories=known).codes
    return key
