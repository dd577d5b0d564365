"""How many responses physicians have to read until a number is as exact as somebody wants it."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import ndtri

from evalcore.metrics.disagreement import Disagreement, at_odds
from evalcore.metrics.inclusion import Probabilities, inclusion_probabilities
from evalcore.metrics.intervals import LEVEL
from evalcore.metrics.opinions import votes
from evalcore.metrics.pilot import Basis, Pilot, measured
from evalcore.metrics.targets import Goal, Population, Target, population
from evalcore.opinions import Opinions
from evalcore.recipes import drawing_sizes, unit_sizes

UNIFORM, IMPORTANCE = "uniform", "importance"
DESIGNS = (UNIFORM, IMPORTANCE)
CURVE_POINTS = 25

Floats = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]


def _z(level: float) -> float:
    return float(ndtri((1 + level) / 2))


@dataclass(frozen=True)
class Variances:
    """What the width of an interval is made of, before anything more is drawn.

    With pi_j = pi_0 + (1 - pi_0) p_j, the probability that unit j has been read or is drawn now:

        V = V_examples + sum_j (1/pi_j - 1) v_j,   v_j = E[E_j^2] = (1 - r) sum (a s)^2 + r (sum |a| s)^2 over its items

    s is how far a vote will be from what is expected of the item, r the correlation within a unit (`pilot`). V_examples is 0 for this
    benchmark alone; for new examples too it is what remains when everything is read: N var(sum a m) over examples + sum_j v_j.
    Drawn alike, with n of N units, this is n = n0/(1 + n0/N) with n0 = (z N sd/x)^2; for a share with v_j of m_j items it is
    deff p(1-p) (1/n - 1/M) with deff = 1 + (b - 1) r, b = sum m_j^2 / sum m_j.

    Attributes:
        of_unit: v_j.
        sizes: What an importance drawing is proportional to, one a unit.
        of_examples: V_examples.
        share_taken: pi_0, the share of responses that were read or wait to be read.
        n_free: Units with a response that was not.
    """

    of_unit: Floats
    sizes: Floats
    of_examples: float
    share_taken: float
    n_free: int

    def probabilities(self, n_wanted: int, design: str) -> Probabilities:
        """Of each unit, were it free, when so many of the free units are drawn."""
        scaled = len(self.of_unit) * (n_wanted / self.n_free)
        return inclusion_probabilities(self.sizes, scaled, floor=1.0) if design == UNIFORM else self._important(scaled)

    def _important(self, scaled: float) -> Probabilities:
        return inclusion_probabilities(self.sizes, scaled)

    def half_width(self, n_wanted: int, design: str, *, level: float = LEVEL) -> float:
        """Expected half-width when so many free units are drawn and read beyond those taken; infinite where nothing would be read.

        It never grows with the number.
        """
        pi = np.full(len(self.of_unit), self.share_taken)
        if n_wanted > 0:
            pi = pi + (1 - pi) * self.probabilities(n_wanted, design).of_units
        if not pi.all():
            return math.inf
        return _z(level) * math.sqrt(self.of_examples + float(((1 / pi - 1) * self.of_unit).sum()))

    def n_needed(self, within: float, design: str, *, level: float = LEVEL) -> int | None:
        """The smallest number of further units with a half-width of at most so much; None where even all of them are too few."""
        if self.half_width(self.n_free, design, level=level) > within:
            return None
        low, high = -1, self.n_free
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.half_width(middle, design, level=level) <= within else (middle, high)
        return high


def variances(about: Population, pilot: Pilot, target: Target, *, taken: frozenset[int]) -> Variances:
    """What the width of a target's interval is made of.

    Args:
        about: The items of the target.
        pilot: What is expected of them.
        target: What is to be known.
        taken: Numbers of responses that were read, drawn, or wait to be read.
    """
    pull = np.abs(about.moves) * pilot.spread
    of_unit = unit_sizes(pull, about.unit, correlation=pilot.correlation) ** 2
    responses = about.items["response_id"].to_numpy()
    is_taken = np.isin(responses, list(taken))
    share_taken = len(np.unique(responses[is_taken])) / max(len(np.unique(responses)), 1)
    n_free = len(np.unique(about.unit[~is_taken]))
    of_examples = 0.0
    if target.goal is Goal.DIFFERENCE:
        example = pd.factorize(about.items["example_id"])[0]
        totals = np.bincount(example, weights=about.moves * pilot.expected)
        of_examples = len(totals) * float(totals.var(ddof=1)) if len(totals) > 1 else math.inf
        of_examples += float(of_unit.sum())
    return Variances(of_unit, drawing_sizes(about, pilot.correlation), of_examples, share_taken, n_free)


@dataclass(frozen=True)
class Answer:
    """How many responses have to be read.

    Attributes:
        target: What is to be known.
        pilot: What is expected of its items.
        variances: What the width is made of.
        n_responses, n_items: That the target is about; 0: nothing can be drawn.
        n_units: The same as they are drawn: a response, or for a difference both models' responses to an example.
        n_responses_read, n_items_read: Of those, read blind and drawn.
        n_responses_waiting: Assigned and not read yet; counted as if they were read.
        half_width_now: Expected of what is read and waits; infinite where nothing does, NaN where nothing can be drawn.
        half_width_all: When everything is read: above 0 only where new examples count too.
        designs: One row a design: design; reachable; n_units, n_responses, n_items (expected, further ones, that are needed; all that are
            left where even they are too few); half_width (expected then); n_same and half_width_same (with as many units as drawing
            alike needs).
        disagreement: Of the judges, and what it does.
    """

    target: Target
    pilot: Pilot
    variances: Variances
    n_responses: int
    n_items: int
    n_units: int
    n_responses_read: int
    n_items_read: int
    n_responses_waiting: int
    half_width_now: float
    half_width_all: float
    designs: pd.DataFrame
    disagreement: Disagreement

    def design(self, name: str) -> "Needed":
        """One row of `designs`."""
        (row,) = self.designs.loc[self.designs["design"].eq(name)].to_dict(orient="records")
        return Needed(**{str(column): value for column, value in row.items()})


@dataclass(frozen=True)
class Needed:
    """A row of `Answer.designs`."""

    design: str
    reachable: bool
    n_units: int
    n_responses: int
    n_items: int
    half_width: float
    n_same: int
    half_width_same: float


def answer(opinions: Opinions, target: Target, *, taken: frozenset[int] = frozenset()) -> Answer:
    """How many further responses have to be read until a target's 95 % interval is as narrow as wanted, by either design.

    Args:
        opinions: Of the whole study, or what may be seen of it.
        target: What is to be known.
        taken: Numbers of responses that are assigned already.
    """
    about = population(opinions, target)
    pilot = measured(opinions, target, about)
    read = votes(about.opinions.reads)
    rows = read["row"].to_numpy(dtype=np.int64)
    responses = about.items["response_id"].to_numpy()
    read_ids = frozenset(np.unique(responses[rows]).tolist())
    waiting = frozenset(np.unique(responses).tolist()) & taken - read_ids
    found = variances(about, pilot, target, taken=read_ids | waiting)
    of_unit = pd.DataFrame({"unit": about.unit, "response": responses})
    n_items = np.bincount(about.unit, minlength=about.n_units).astype(np.int64)
    n_responses = np.bincount(of_unit.drop_duplicates()["unit"], minlength=about.n_units).astype(np.int64)
    is_known = about.n_units > 0
    designs = _designs(found, target.within, n_responses, n_items) if is_known else pd.DataFrame(columns=COLUMNS)
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
        disagreement=_at_odds(about, found, designs),
    )


def _at_odds(about: Population, found: Variances, designs: pd.DataFrame) -> Disagreement:
    """By the probabilities of the drawing that is needed."""
    if not found.n_free:
        return at_odds(about.disagreement, None)
    n_units = int(designs.loc[designs["design"].eq(IMPORTANCE), "n_units"].iloc[0])
    return at_odds(about.disagreement, found.probabilities(max(n_units, 1), IMPORTANCE).of_units[about.unit])


COLUMNS = ["design", "reachable", "n_units", "n_responses", "n_items", "half_width", "n_same", "half_width_same"]


def _designs(found: Variances, within: float, n_responses: Numbers, n_items: Numbers) -> pd.DataFrame:
    needed = {design: found.n_needed(within, design) for design in DESIGNS}
    uniform = needed[UNIFORM]
    n_same = found.n_free if uniform is None else uniform
    rows = []
    for design, number in needed.items():
        n_units = found.n_free if number is None else number
        drawn = found.probabilities(n_units, design).of_units * (1 - found.share_taken) if n_units else 0 * found.sizes
        rows.append(
            {
                "design": design,
                "reachable": number is not None,
                "n_units": n_units,
                "n_responses": round(float(drawn @ n_responses)),
                "n_items": round(float(drawn @ n_items)),
                "half_width": found.half_width(n_units, design),
                "n_same": n_same,
                "half_width_same": found.half_width(n_same, design),
            }
        )
    return pd.DataFrame(rows, columns=COLUMNS)


def curve(found: Answer, *, n_points: int = CURVE_POINTS) -> pd.DataFrame:
    """How the interval narrows as more is read.

    Args:
        found: The answer.
        n_points: Of the curve.

    Returns:
        One row a design and number of further units, up to twice of what is needed: design, n_units, half_width.
    """
    needed = int(found.designs["n_units"].max()) if len(found.designs) else 0
    most = min(max(2 * needed, n_points), found.variances.n_free)
    numbers = np.unique(np.linspace(1, most, n_points).round().astype(int)) if most else np.empty(0, dtype=int)
    rows = [(design, int(n), found.variances.half_width(int(n), design)) for design in DESIGNS for n in numbers]
    return pd.DataFrame(rows, columns=["design", "n_units", "half_width"])


__all__ = [
    "Answer",
    "Basis",
    "Disagreement",
    "Needed",
    "Variances",
    "answer",
    "curve",
    "variances",
]
