"""Which responses to read next: with which probability each is drawn, and the drawing."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evalcore.rubric.recipes import clipped

FLOOR = 0.2
"""No probability is below this share of the mean one: a guess about the judge may be wrong, and a tiny probability is a huge weight."""
_ROUNDING = 1e-6
_NOTHING = 1e-200

Floats = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Probabilities:
    """With which probability each unit is drawn, and how to get it again from the unit's size: `scale` x size, at least `floor`, at most 1.

    Attributes:
        of_units: One a unit, in (0, 1].
        scale: 0 or more.
        floor: In (0, 1].
    """

    of_units: Floats
    scale: float
    floor: float

    def again(self, sizes: Floats) -> Floats:
        """The probabilities of units of these sizes."""
        return clipped(sizes, self.scale, self.floor)


def inclusion_probabilities(sizes: Floats, n_wanted: float, *, floor: float = FLOOR) -> Probabilities:
    """Probabilities proportional to size, scaled so that they add up to the wanted number; at most 1, at least a share of their mean.

    What is above 1 or below the floor is set there, and the rest is scaled anew until all add up.

    Args:
        sizes: One a unit, 0 or more; all 0: drawn alike. Less than a millionth of the largest counts as 0.
        n_wanted: How many are to be drawn, above 0 and at most as many as there are.
        floor: Share of the mean probability, in (0, 1]; 1: all alike.

    Raises:
        ValueError: The number is out of its range.

    >>> inclusion_probabilities(np.array([1.0, 1.0, 2.0]), 2).of_units.tolist()
    [0.5, 0.5, 1.0]
    """
    n_units = len(sizes)
    if not 0 < n_wanted <= n_units:
        msg = f"{n_wanted:,} units came, expected more than 0 and at most {n_units:,}, as many as there are"
        raise ValueError(msg)
    mean = n_wanted / n_units
    least = floor * mean
    largest = float(sizes.max())
    if least == mean or largest < _NOTHING or mean == 1:
        return Probabilities(np.full(n_units, mean), 0.0, mean)
    known = sizes[sizes > _ROUNDING * largest]
    n_without = n_units - len(known)
    if len(known) + n_without * least < n_wanted:  # all that have a size are certain, and the others take what is left
        rest = (n_wanted - len(known)) / n_without
        scale = 1 / float(known.min())
        return Probabilities(clipped(sizes, scale, rest), scale, rest)
    scale = _scale(known, n_wanted - n_without * least, least)
    return Probabilities(clipped(sizes, scale, least), scale, least)


def _scale(sizes: Floats, n_wanted: float, least: float) -> float:
    """The c for which c x size, at least `least`, at most 1, adds up to the wanted number.

    The sum is a broken line in c: a unit of size s begins to rise at c = least/s and stops at 1/s.
    """
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


def drawn_systematically(probabilities: Floats, *, rng: np.random.Generator) -> Numbers:
    """A systematic drawing from a random start, the units in random order (Madow 1949): each with exactly its probability, in a fixed number.

    The units are laid end to end on a line, each as long as its probability; those are drawn on which one of the points u, u + 1, ...
    falls. The number drawn is the sum of the probabilities (where that is no whole number, the one below or above it).

    Args:
        probabilities: In (0, 1].
        rng: Chance.

    Returns:
        Places of the drawn units, in random order.
    """
    order = rng.permutation(len(probabilities))
    ends = np.cumsum(probabilities[order])
    whole = round(float(ends[-1])) if len(ends) else 0
    if len(ends) and abs(ends[-1] - whole) < _ROUNDING:  # so that rounding errors neither add nor lose one
        ends *= whole / ends[-1]
        ends[-1] = whole
    n_points = int(np.ceil(ends[-1])) if len(ends) else 0
    points = rng.random() + np.arange(n_points)
    found = np.searchsorted(ends, points[points < (ends[-1] if len(ends) else 0)], side="right")
    drawn: Numbers = order[rng.permutation(np.unique(found))]
    return drawn
