"""What the error of a corrected score is made of, and what the next hours of reading would take from it."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from evalcore.planning.pilot import MIN_READS, as_surveyed, fitted
from evalcore.planning.targets import Goal, Population, Target
from evalcore.rubric.data import DRAWN, first_reads, votes
from evalcore.stats.estimator import effective_readers
from evalcore.study.schema import Claim, Physicians

ROUNDING = 1e-9
COLUMNS = ["option", "n_reads", "n_units", "n_readers", "effective_readers", "standard_error"]
EXAMPLES, UNITS, READERS, REST = "examples", "units", "readers", "rest"
NOW, MORE_RESPONSES, MORE_READERS, SECOND_READS = "now", "more_responses", "more_readers", "second_reads"

Floats = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Moments:
    """The variances of x = unit + reader + rest, as they come out: a variance may be below 0 by chance.

    Attributes:
        of_units, of_readers, of_rest: Unbiased. Without a unit that two have read, units and the rest cannot be told apart: of_units is NaN, and of_rest
            holds both. Without two readers of_readers is NaN, and in the rest.
        n_double: Units that two readers or more have read.
    """

    of_units: float
    of_readers: float
    of_rest: float
    n_double: int


def moments(x: Floats, unit: Numbers, reader: Numbers, weight: Floats) -> Moments:
    """Variance components by the method of moments, from pairs of reads (Searle, Casella and McCulloch 1992, chapter 5).

    Half the mean squared difference of two reads is, of two reads

        of one unit                                     A = readers + rest
        of one reader on two units                      B = units + rest
        of two readers on two units                     C = units + readers + rest

    so that readers = C - B, units = C - A, rest = A + B - C. Each unit counts 1/pi, so that those drawn by importance stand for all.

    Args:
        x: By read.
        unit: Of each read, 0, 1, ...; a reader reads a unit once.
        reader: Of each read, 0, 1, ...
        weight: 1/pi of the unit.
    """
    n_double = int((np.bincount(unit) > 1).sum()) if len(unit) else 0
    all_of, all_pairs = _differences(x, weight, np.zeros(len(x), dtype=np.int64))
    in_reader, reader_pairs = _differences(x, weight, reader)
    in_unit, unit_pairs = _differences(x, weight, unit)
    apart_pairs = all_pairs.sum() - reader_pairs.sum() - unit_pairs.sum()
    apart = math.nan
    if apart_pairs > ROUNDING * all_pairs.sum():
        apart = float((all_of.sum() - in_reader.sum() - in_unit.sum()) / apart_pairs)
    # each reader's reads count by their number, each unit's by its weight: pairs alone would leave it to those with most
    of_reader, of_unit = (np.bincount(group, weight).astype(np.float64) for group in (reader, unit))
    within_reader = _ratio(_shared(in_reader, of_reader), _shared(reader_pairs, of_reader))
    within_unit = _ratio(_shared(in_unit, of_unit), _shared(unit_pairs, of_unit))
    of_readers = apart - within_reader
    if n_double and not math.isnan(apart):
        return Moments(apart - within_unit, of_readers, within_unit + within_reader - apart, n_double)
    return Moments(math.nan, of_readers, within_reader, n_double)


def _differences(x: Floats, weight: Floats, group: Numbers) -> tuple[Floats, Floats]:
    """By group, over its pairs: the sum of w w (x - x)^2 / 2, and of w w."""
    sums, squares, of_weights, of_squares = (
        np.bincount(group, values) for values in (weight * x, weight * x**2, weight, weight**2)
    )
    return (of_weights * squares - sums**2) / 2, (of_weights**2 - of_squares) / 2


def _shared(sums: Floats, weights: Floats) -> float:
    return float((sums[weights > 0] / weights[weights > 0]).sum())


def _ratio(above: float, below: float) -> float:
    return above / below if below > 0 else math.nan


@dataclass(frozen=True)
class Components:
    """The variances that the error of a corrected score is made of, in squares of the score; none is below 0.

    With N examples, n of U units (responses) read, K readers with loads q, r reads a unit:

        V = of_examples / N                                   for new examples
          + of_units (1/n - 1/U)                              the judge is off by more on one response than on another
          + of_readers sum q^2                                for physicians in general: one is stricter than another
          + of_rest / (n r)                                   the same physician is not always as strict; for these physicians (1/r - 1/K)/n

    Attributes:
        of_examples: Between examples.
        of_units: Between units, of the difference of physicians from what the judge lets expect. NaN where no unit has two readers: it is in the rest.
        of_readers: Between physicians. NaN where fewer than two have read.
        of_rest: Of a physician's read of a unit.
        clipped: Names of those that came out below 0 and were set to 0.
        n_examples: N.
        n_all: U.
        n_units: n.
        n_reads: Of units.
        loads: Units read, by physician.
        n_double: Units with two reads or more.
        n_items: Criteria a unit, on average.
    """

    of_examples: float
    of_units: float
    of_readers: float
    of_rest: float
    clipped: tuple[str, ...]
    n_examples: int
    n_all: float
    n_units: int
    n_reads: int
    loads: tuple[int, ...]
    n_double: int
    n_items: float

    @property
    def is_known(self) -> bool:
        """Whether enough was read to tell anything."""
        return not math.isnan(self.of_rest)

    @property
    def share_of_rest(self) -> float:
        """Of the spread of single reads of units, the part that is the reader's and not the unit's, in [0, 1]; NaN where nobody can tell."""
        whole = self.of_units + self.of_rest
        return self.of_rest / whole if whole else 0.0

    def sources(self) -> dict[str, float]:
        """The parts of V for new examples and physicians in general, as it stands, by name; a part that nobody knows is NaN."""
        of_physicians = self.of_readers / effective_readers(np.asarray(self.loads, dtype=float))
        return {
            EXAMPLES: self.of_examples / self.n_examples,
            UNITS: self.of_units * max(0.0, 1 / self.n_units - 1 / self.n_all),
            READERS: of_physicians,
            REST: self.of_rest / self.n_reads,
        }

    def variance(
        self, claim: Claim, physicians: Physicians, *, n_units: float, n_reads: float, loads: "list[float]"
    ) -> float:
        """V as above, for a reading of so many units.

        Args:
            claim: What is to hold.
            physicians: For whom.
            n_units: n, above 0 and at most U.
            n_reads: n r.
            loads: By physician.
        """
        of_units = 0.0 if math.isnan(self.of_units) else self.of_units
        found = self.of_examples / self.n_examples if claim is Claim.NEW_EXAMPLES else 0.0
        found += of_units * max(0.0, 1 / n_units - 1 / self.n_all)
        if physicians is Physicians.IN_GENERAL:
            return found + self.of_readers / effective_readers(np.asarray(loads, dtype=float)) + self.of_rest / n_reads
        if len(loads) > 1:
            left = 1 / n_reads if math.isnan(self.of_units) else max(0.0, 1 / n_reads - 1 / (n_units * len(loads)))
            return found + self.of_rest * left
        return found + (self.of_rest * max(0.0, 1 / n_units - 1 / self.n_all) if math.isnan(self.of_units) else 0.0)


_UNKNOWN = Components(math.nan, math.nan, math.nan, math.nan, (), 0, 0.0, 0, 0, (), 0, math.nan)


def components(about: Population, target: Target) -> Components:
    """The variance components of a score, or of a difference, from the drawn blind reads of its items.

    A read of a unit is x = U sum of a e over the items that the physician labelled there, e how far the vote is from what the judges' labels let
    expect, as if the item had had no part in the fit. A difference takes each response by itself, the second model's with a minus, so that
    a physician who is strict with both does not count as different.

    Args:
        about: The items of the target.
        target: A score or a difference; a judge's errors are not taken apart.
    """
    first = first_reads(about.rubric_data.reads)
    first = first.loc[first["selection"].isin(DRAWN) & first["inclusion_probability"].notna() & first["met"].notna()]
    voted = votes(about.rubric_data.reads)
    if target.goal is Goal.JUDGE_ERROR or len(voted) < MIN_READS:
        return _UNKNOWN
    rows, pi = voted["row"].to_numpy(dtype=np.int64), voted["inclusion_probability"].to_numpy(dtype=float)
    pi = np.clip(pi * (1 / pi).sum() / len(about.items), None, 1.0)
    population = as_surveyed(about)
    unit = pd.factorize(voted["unit"])[0]
    predicted, leverage = fitted(about, rows, voted["vote"].to_numpy(dtype=float), pi, by_model=True)
    place = np.searchsorted(rows, first["row"].to_numpy(dtype=np.int64))
    error = (first["met"].to_numpy(dtype=float) - predicted[rows[place]]) / (1 - leverage[place]).clip(min=0.1)
    pull = about.moves[rows[place]] * error
    raters, names = pd.factorize(first["rater"], sort=True)
    pairs, read_of = np.unique(unit[place] * len(names) + raters, return_inverse=True)
    of_unit = 1 / pi[np.unique(unit, return_index=True)[1]]
    n_all = float(of_unit.sum())
    x = n_all * np.bincount(read_of, pull).astype(np.float64)
    units, readers = pairs // len(names), pairs % len(names)
    found = moments(x, units, readers, np.asarray(of_unit[units], dtype=np.float64))
    totals = np.bincount(population.example, about.moves * predicted, minlength=population.n_examples)
    n = len(totals)
    between = float((n * totals).var(ddof=1)) if n > 1 else math.nan
    of_units = max(
        found.of_rest if math.isnan(found.of_units) else found.of_units, 0.0
    )  # rather too much than too little
    raw = {UNITS: found.of_units, READERS: found.of_readers, REST: found.of_rest}
    clipped = tuple(name for name, value in raw.items() if value < 0)
    return Components(
        of_examples=between + of_units * n / n_all,
        of_units=_floored(found.of_units),
        of_readers=_floored(found.of_readers),
        of_rest=_floored(found.of_rest),
        clipped=clipped,
        n_examples=n,
        n_all=n_all,
        n_units=len(of_unit),
        n_reads=len(pairs),
        loads=tuple(np.bincount(readers, minlength=len(names)).tolist()),
        n_double=found.n_double,
        n_items=len(rows) / len(of_unit),
    )


def _floored(value: float) -> float:
    return value if math.isnan(value) else max(value, 0.0)


def options(found: Components, target: Target, *, n_more: float) -> pd.DataFrame:
    """The standard error that is expected after so many further reads of a unit, by what they are spent on.

    Args:
        found: The components.
        target: With its claim and physicians.
        n_more: Further reads of a unit: hours over the time that one takes.

    Returns:
        One row an option: option (now; more_responses: unread units, by the physicians who have read; more_readers: the same by as many physicians
        again, who share the new ones; second_reads: units read already, by another of the physicians), n_reads (further ones: fewer than
        asked for where no more are left), n_units (read then), n_readers, effective_readers, standard_error (NaN where it cannot be told:
        second reads without any double read so far or with one physician, physicians in general with fewer than two). No row
        where nothing is known.
    """
    if not found.is_known:
        return pd.DataFrame(columns=COLUMNS)
    loads = [float(load) for load in found.loads]
    k, whole = len(loads), sum(loads)
    fresh = max(0.0, min(n_more, found.n_all - found.n_units))
    again = max(0.0, min(n_more, found.n_units * k - found.n_reads))
    same = [load + fresh * load / whole for load in loads]
    twice = [load + again * load / whole for load in loads]
    rows: list[tuple[str, float, float, list[float]]] = [
        (NOW, 0.0, found.n_units, loads),
        (MORE_RESPONSES, fresh, found.n_units + fresh, same),
        (MORE_READERS, fresh, found.n_units + fresh, [*loads, *([fresh / k] * k if fresh else [])]),
        (SECOND_READS, again, found.n_units, twice),
    ]
    table = []
    for option, n_reads, n_units, shares in rows:
        is_told = option != SECOND_READS or (k > 1 and not math.isnan(found.of_units))
        variance = (
            found.variance(
                target.claim, target.physicians, n_units=n_units, n_reads=found.n_reads + n_reads, loads=shares
            )
            if is_told
            else math.nan
        )
        table.append(
            (
                option,
                round(n_reads),
                round(n_units),
                len(shares),
                effective_readers(np.array(shares)),
                math.sqrt(variance),
            )
        )
    return pd.DataFrame(table, columns=COLUMNS)
