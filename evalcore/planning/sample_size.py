"""How many responses physicians have to read until a number is as exact as somebody wants it, and with which probability each is drawn."""

import math
from bisect import bisect_left
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

import numpy as np
import pandas as pd
from scipy.special import ndtri, stdtrit

from evalcore.planning.pilot_estimates import Components, Pilot, Population, Target, components, measured, population
from evalcore.rubric.data import RubricData, votes
from evalcore.rubric.drawings import Goal, clipped, drawing_sizes, unit_sizes
from evalcore.stats.arrays import Floats, Numbers
from evalcore.stats.estimator import effective_readers, freedom_of_sum
from evalcore.stats.intervals import LEVEL
from evalcore.study.schema import Claim, Physicians

UNIFORM, IMPORTANCE = "uniform", "importance"
DESIGNS = (UNIFORM, IMPORTANCE)
CURVE_POINTS = 25
MOST_READERS = 100
TAIL = (1 + LEVEL) / 2
FLOOR = 0.2  # the least probability, of the mean one: a guess may be wrong, and a tiny probability is a huge weight
_ROUNDING = 1e-6
_NOTHING = 1e-200


@dataclass(frozen=True)
class Probabilities:
    """With which probability in (0, 1] each unit is drawn, and how to get it from the unit's size: `scale` x size, at least `floor`, at most 1."""

    of_units: Floats
    scale: float
    floor: float


def inclusion_probabilities(sizes: Floats, n_wanted: float, *, floor: float = FLOOR) -> Probabilities:
    """Probabilities proportional to size that add up to the wanted number; at most 1, at least the share `floor` of their mean.

    What is above 1 or below the floor is set there, and the rest is scaled anew until all add up. Less than a millionth of the largest counts as 0.

    >>> inclusion_probabilities(np.array([1.0, 1.0, 2.0]), 2).of_units.tolist()
    [0.5, 0.5, 1.0]
    """
    n_units = len(sizes)
    if not 0 < n_wanted <= n_units:
        msg = f"expected more than 0 and at most {n_units:,} units, as many as there are, got {n_wanted:,}"
        raise ValueError(msg)
    mean, largest = n_wanted / n_units, float(sizes.max())
    least = floor * mean
    if least == mean or largest < _NOTHING or mean == 1:
        return Probabilities(np.full(n_units, mean), 0.0, mean)
    positive = sizes[sizes > _ROUNDING * largest]
    n_without = n_units - len(positive)
    if len(positive) + n_without * least < n_wanted:
        # all that have a size are certain, and the others take what is left
        least, scale = (n_wanted - len(positive)) / n_without, 1 / float(positive.min())
    else:
        scale = _scale(positive, n_wanted - n_without * least, least)
    return Probabilities(clipped(sizes, scale, least), scale, least)


def _scale(sizes: Floats, n_wanted: float, least: float) -> float:
    """The c for which c x size, within [least, 1], adds up to the wanted number: a unit begins to rise at c = least/size and stops at 1/size."""
    corners = np.concatenate([least / sizes, 1 / sizes])
    turns = np.concatenate([sizes, -sizes])
    order = np.argsort(corners, kind="stable")
    corners, slopes = corners[order], np.cumsum(turns[order])
    sums = len(sizes) * least + np.concatenate([[0.0], np.cumsum(slopes[:-1] * np.diff(corners))])
    place = min(max(int(np.searchsorted(sums, n_wanted)), 1), len(corners) - 1)
    middle = (corners[place - 1] + corners[place]) / 2
    rising = (middle * sizes > least) & (middle * sizes < 1)
    if not rising.any():
        return float(corners[place])
    n_certain = np.count_nonzero(middle * sizes >= 1)
    n_least = len(sizes) - n_certain - np.count_nonzero(rising)
    return float((n_wanted - n_certain - n_least * least) / sizes[rising].sum())


@dataclass(frozen=True)
class Readers:
    """Who reads, as far as it enters a width. Without anything said: one physician, whose word is the truth."""

    n: int = 1  # K, who have read, or are to
    n_effective: float = 1.0  # 1 / sum q^2 of what they have read so far; once more is read their loads even out
    n_each: int = 1  # readers that each further unit gets
    n_each_now: float = 1.0  # reads of a unit so far, on average
    of_readers: float = 0.0  # the variance between physicians, of the number itself; NaN where nobody knows
    share_of_rest: float = 0.0  # the reader's own part of the spread of single reads; NaN where no unit has two
    in_general: bool = False  # the width is to hold for physicians in general
    n_examples: int = 0  # that new examples are told from; 0: they do not enter

    def parts(self) -> tuple[float, float]:
        """Of v_j, the unit's part, which a read removes, and the reader's (of a single read), which stays."""
        rest = self.share_of_rest
        if math.isnan(rest):  # as if it were all the reader's, but where there is only one, who is these physicians
            return (1.0, 0.0) if self.n == 1 and not self.in_general else (0.0, self.n_each_now)
        whole = (1 - rest) + rest / self.n_each_now
        return (1 - rest) / whole, rest / whole


@dataclass(frozen=True)
class Variances:
    """What the width of an interval is made of, before anything more is drawn.

    With pi_j = pi_0 + (1 - pi_0) p_j, the probability that unit j has been read or is drawn now:

        V = V_examples + sum_j [ (1/pi_j - 1) v_j (1-f) + v_j f g_j / pi_j ],   v_j = E[E_j^2] = (1 - r) sum (a s)^2 + r (sum |a| s)^2 over its items

    s is how far a label will be from what is expected of the item, r the correlation within a unit (`Pilot`), f the part of it that is the reader's
    (`Components`). V_examples is 0 for this benchmark alone; for new examples too it is what remains when everything is read:
    N var(sum a m) over examples + sum_j v_j. Of m readers a unit, g = 1/m - 1/K for these K physicians, and 1/m for physicians
    in general, for whom V_readers/K is added, and the quantile is that of t with K - 1 degrees of freedom for all but V_examples (`corrected_scores`).
    Without double reads nobody knows f, and it is taken as 1 with m = 1; with one physician as 0.
    """

    of_unit: Floats  # v_j
    sizes: Floats  # what an importance drawing is proportional to, one a unit
    of_examples: float  # V_examples
    share_taken: float  # pi_0, the share of responses that were read or wait to be read
    n_free: int  # units with a response that was not
    readers: Readers = Readers()

    def probabilities(self, n_wanted: int, design: str) -> Probabilities:
        """Of each unit, were it free, when so many of the free units are drawn."""
        scaled = len(self.of_unit) * (n_wanted / self.n_free)
        return inclusion_probabilities(self.sizes, scaled, floor=1.0 if design == UNIFORM else FLOOR)

    def half_width(self, n_wanted: int, design: str, *, n_readers: int | None = None) -> float:
        """Expected half of the 95 % interval with so many free units read beyond those taken; infinite where nobody can tell. It never grows with n."""
        pi = np.full(len(self.of_unit), self.share_taken)
        if n_wanted > 0:
            pi = pi + (1 - pi) * self.probabilities(n_wanted, design).of_units
        if not pi.all():
            return math.inf
        who, (of_unit, of_reader) = self.readers, self.readers.parts()
        now = who.n_effective if n_wanted == 0 else who.n
        k = now if n_readers is None else n_readers
        each = 1.0 if math.isnan(who.share_of_rest) else (
            self.share_taken / who.n_each_now + (pi - self.share_taken) / who.n_each
        ) / pi  # fmt: skip
        counts = each if who.in_general or math.isnan(who.share_of_rest) else np.clip(each - 1 / who.n, 0, None)
        of_reads = float((((1 / pi - 1) * of_unit + counts * of_reader / pi) * self.of_unit).sum())
        if not who.in_general:
            return float(ndtri(TAIL)) * math.sqrt(self.of_examples + of_reads)
        if math.isnan(who.of_readers) or k <= 1:
            return math.inf
        of_physicians = of_reads + who.of_readers / k
        degrees = freedom_of_sum(of_physicians, k - 1, self.of_examples, max(who.n_examples - 1, 1))
        on_benchmark = float(stdtrit(k - 1, TAIL)) * math.sqrt(of_physicians)
        return max(float(stdtrit(degrees, TAIL)) * math.sqrt(of_physicians + self.of_examples), on_benchmark)

    def n_needed(self, within: float, design: str) -> int | None:
        """The fewest further units with a half-width of at most so much; None where even all are too few."""
        if self.half_width(self.n_free, design) > within:
            return None
        return bisect_left(range(self.n_free), -within, key=lambda n: -self.half_width(n, design))

    def n_readers_needed(self, within: float) -> int | None:
        """The smallest number of physicians, not fewer than now, with whom reading everything is enough; None: 100, or all these, are too few."""
        most = MOST_READERS if self.readers.in_general else self.readers.n
        numbers = range(max(self.readers.n, 1), most + 1)
        return next((n for n in numbers if self.half_width(self.n_free, UNIFORM, n_readers=n) <= within), None)


def variances(
    about: Population, pilot: Pilot, target: Target, *, taken: frozenset[int], parts: Components | None, n_each: int
) -> Variances:
    """What the width of a target's interval is made of; without components (`parts`) who reads makes no difference."""
    expected_error = np.abs(about.item_weights) * pilot.spread
    of_unit = pilot.calibration * unit_sizes(expected_error, about.unit, correlation=pilot.correlation) ** 2
    responses = about.items["response_id"].to_numpy()
    is_taken = np.isin(responses, list(taken))
    share_taken = len(np.unique(responses[is_taken])) / max(len(np.unique(responses)), 1)
    n_free = len(np.unique(about.unit[~is_taken]))
    of_examples, n_examples = 0.0, 0
    if target.claim is Claim.NEW_EXAMPLES and target.goal is not Goal.JUDGE_ERROR:
        example = pd.factorize(about.items["example_id"])[0]
        totals = np.bincount(example, weights=about.item_weights * pilot.expected)
        n_examples = len(totals)
        of_examples = n_examples * float(totals.var(ddof=1)) if n_examples > 1 else math.inf
        of_examples += float(of_unit.sum())
    in_general = target.physicians is Physicians.IN_GENERAL and target.goal is not Goal.JUDGE_ERROR
    readers = Readers(of_readers=math.nan, in_general=in_general, n_examples=n_examples)
    if parts is not None and parts.is_known:
        readers = replace(
            readers,
            n=len(parts.loads),
            n_effective=effective_readers(np.array(parts.loads, dtype=float)),
            n_each=n_each,
            n_each_now=parts.n_reads / parts.n_units,
            of_readers=parts.of_readers,
            share_of_rest=parts.share_of_rest,
        )
    return Variances(of_unit, drawing_sizes(about, pilot.correlation), of_examples, share_taken, n_free, readers)


@dataclass(frozen=True)
class Disagreement:
    """What it does to a drawing by importance that judges disagree."""

    n_items: int  # that two judges or more, or one judge several times, have labelled
    n_disagreed: int  # those on which they do not all say the same
    times: float
    """As often as an item on which they agree one of these is drawn, on average: above 0 (points count too), NaN where there are none of either."""


def at_odds(disagreements: Floats, probabilities: Floats | None) -> Disagreement:
    """From each item's disagreement and its probability in (0, 1] of being drawn; None: nothing can be drawn."""
    differ, agree = disagreements > 0, disagreements == 0
    n_differ, n_agree = int(differ.sum()), int(agree.sum())
    times = math.nan
    if probabilities is not None and n_differ and n_agree:
        times = float(probabilities[differ].mean() / probabilities[agree].mean())
    return Disagreement(n_differ + n_agree, n_differ, times)


@dataclass(frozen=True)
class Needed:
    """What has to be read by one design: further units, responses and items, expected; all that are left where even they are too few."""

    design: str
    reachable: bool
    n_units: int
    n_responses: int
    n_items: int
    half_width: float  # expected then
    n_same: int  # as many as drawing alike needs
    half_width_same: float  # expected with these


@dataclass(frozen=True)
class Answer:
    """How many responses have to be read."""

    target: Target
    pilot: Pilot
    variances: Variances
    n_responses: int  # that the target is about; 0: nothing can be drawn
    n_items: int  # that the target is about
    n_units: int  # the responses as they are drawn: each by itself, or for a difference both models' to an example
    n_responses_read: int  # of those, read blind and drawn
    n_items_read: int
    n_responses_waiting: int  # assigned and not read yet; counted as if they were read
    half_width_now: float  # of what is read and waits; infinite where nothing does, NaN where nothing can be drawn
    half_width_all: float  # when everything is read: above 0 only where new examples count too
    designs: dict[str, Needed]  # what each design takes; empty where nothing can be drawn
    disagreement: Disagreement
    components: Components
    claims: pd.DataFrame
    """Half widths now and with as many further units as drawing alike needs (infinite: cannot be told), one row a claim and physicians; errors: none."""
    n_readers_needed: int | None  # physicians by whom reading everything is enough; None: no number is


def answer(rubric_data: RubricData, target: Target, *, taken: frozenset[int] = frozenset(), n_each: int = 1) -> Answer:
    """How many further responses have to be read until a target's 95 % interval is as narrow as wanted; `taken`: assigned already; `n_each`: readers."""
    about = population(rubric_data, target)
    pilot = measured(rubric_data, target, about)
    read = votes(about.rubric_data.reads)
    rows = read["row"].to_numpy(dtype=np.int64)
    responses = about.items["response_id"].to_numpy()
    read_ids = frozenset(np.unique(responses[rows]).tolist())
    waiting = frozenset(np.unique(responses).tolist()) & taken - read_ids
    parts = components(about, target)
    variances_of = partial(variances, about, pilot, taken=read_ids | waiting, parts=parts, n_each=n_each)
    found = variances_of(target)
    of_unit = pd.DataFrame({"unit": about.unit, "response": responses})
    n_items = np.bincount(about.unit, minlength=about.n_units).astype(np.int64)
    n_responses = np.bincount(of_unit.drop_duplicates()["unit"], minlength=about.n_units).astype(np.int64)
    is_known = about.n_units > 0
    designs = _designs(found, target.half_width, n_responses, n_items) if is_known else {}
    drawn = None
    if found.n_free:
        drawn = found.probabilities(max(designs[IMPORTANCE].n_units, 1), IMPORTANCE).of_units[about.unit]
    claims = []
    if designs and target.goal is not Goal.JUDGE_ERROR:  # the same reads, by what their interval is to hold for
        for claim, physicians in product(Claim, Physicians):
            other = variances_of(replace(target, claim=claim, physicians=physicians))
            widths = (other.half_width(n, UNIFORM) for n in (0, designs[UNIFORM].n_units))
            claims.append((claim.value, physicians.value, *widths))
    return Answer(
        target=target,
        pilot=pilot,
        variances=found,
        n_responses=int(n_responses.sum()),
        n_items=len(responses),
        n_units=about.n_units,
        n_responses_read=len(read_ids),
        n_items_read=len(rows),
        n_responses_waiting=len(waiting),
        half_width_now=found.half_width(0, UNIFORM) if is_known else math.nan,
        half_width_all=found.half_width(found.n_free, UNIFORM) if is_known else math.nan,
        designs=designs,
        disagreement=at_odds(about.disagreement, drawn),
        components=parts,
        claims=pd.DataFrame(claims, columns=["claim", "physicians", "half_width_now", "half_width"]),
        n_readers_needed=found.n_readers_needed(target.half_width) if is_known else None,
    )


def _designs(widths: Variances, within: float, n_responses: Numbers, n_items: Numbers) -> dict[str, Needed]:
    needed = {design: widths.n_needed(within, design) for design in DESIGNS}
    n_of = {design: widths.n_free if number is None else number for design, number in needed.items()}
    n_same = n_of[UNIFORM]
    designs = {}
    for design, n_units in n_of.items():
        drawn = np.zeros(len(widths.sizes))
        if n_units:
            drawn = widths.probabilities(n_units, design).of_units * (1 - widths.share_taken)
        designs[design] = Needed(
            design=design,
            reachable=needed[design] is not None,
            n_units=n_units,
            n_responses=round(float(drawn @ n_responses)),
            n_items=round(float(drawn @ n_items)),
            half_width=widths.half_width(n_units, design),
            n_same=n_same,
            half_width_same=widths.half_width(n_same, design),
        )
    return designs


def curve(answer: Answer) -> pd.DataFrame:
    """How the interval narrows up to twice of what is needed, one row a design and number of further units: design, n_units, half_width."""
    needed = max((design.n_units for design in answer.designs.values()), default=0)
    most = min(max(2 * needed, CURVE_POINTS), answer.variances.n_free)
    numbers = np.unique(np.linspace(1, most, CURVE_POINTS).round().astype(int)) if most else np.empty(0, dtype=int)
    rows = [(design, int(n), answer.variances.half_width(int(n), design)) for design in DESIGNS for n in numbers]
    return pd.DataFrame(rows, columns=["design", "n_units", "half_width"])
