"""Is one model not worse than another, or as good, within a margin that was stated before anything was read?"""

import math

import msgspec
from scipy.special import stdtr, stdtrit

from evalcore.stats.intervals import LEVEL, ROUNDING
from evalcore.stats.wording import chance_words, decimal


class Verdict(msgspec.Struct, frozen=True):
    """What a difference says against a margin. Bounds are in the units of the difference: first model less second.

    Attributes:
        margin: How much worse still counts as not worse; above 0.
        level: Of the two-sided interval whose worse end is the bound.
        bound: How bad the first model may be: the worse end of the two-sided interval of `level` (0.95: that is one-sided 0.975).
        low, high: The interval of equivalence, of 2 level - 1 (0.95: 90 %, as two one-sided tests ask).
        p_non_inferior: One-sided, of "worse by the margin or more"; `non_inferior` where it is below (1 - level)/2.
        p_equivalent: The greater of two one-sided p, of "apart by the margin or more"; `equivalent` where it is below 1 - level.
        non_inferior, equivalent: Whether it is shown. False does not mean that the opposite is.
        inferior: Whether even the better end of the two-sided interval is worse than the margin allows.
    """

    margin: float
    is_higher_better: bool
    level: float
    difference: float
    bound: float
    low: float
    high: float
    p_non_inferior: float
    p_equivalent: float
    non_inferior: bool
    equivalent: bool
    inferior: bool

    @property
    def is_known(self) -> bool:
        """Whether there was a difference with an error to hold against the margin."""
        return not math.isnan(self.bound)


def against_margin(difference: float, se: float, df: float, margin: float, *, higher_is_better: bool = True) -> Verdict:
    """A difference of two models held against a margin: non-inferiority and equivalence.

    With gain g = difference where more is better, else -difference, standard error s and T of t(df):

        non-inferior    P(T >= (g + margin)/s) < (1 - level)/2       the interval of `level` ends above -margin
        equivalent      that, and P(T <= (g - margin)/s), both < 1 - LEVEL      the interval of 2 level - 1 lies within ±margin

    A margin that was chosen after the reads were seen proves nothing.

    Edge cases: no difference, no error or no degrees of freedom: numbers are NaN and nothing is shown. An error of 0 (to rounding): p is 0
    or 1, and a difference of exactly the margin shows nothing.

    The margin is above 0, in the units of the difference (first model less second); `se` is the standard error, `df` may be infinite. For rates of errors
    higher is not better.

    Raises:
        ValueError: The margin is not a number above 0.

    References:
        Schuirmann 1987 (two one-sided tests); Piaggio et al. 2012 (CONSORT for non-inferiority and equivalence).

    >>> held = against_margin(-0.01, 0.015, 40, 0.05)
    >>> held.non_inferior, round(held.bound, 4), round(held.p_non_inferior, 4)
    (True, -0.0403, 0.0055)
    """
    if not 0 < margin < math.inf:
        msg = f"margin: expected a number above 0, got {margin}"
        raise ValueError(msg)
    sign = 1.0 if higher_is_better else -1.0
    gain = sign * difference
    if math.isnan(gain) or math.isnan(se) or not df > 0:
        none = (math.nan,) * 5
        return Verdict(margin, higher_is_better, LEVEL, difference, *none, False, False, False)  # noqa: FBT003
    p_worse = _above(gain + margin, se, df)
    p_apart = max(p_worse, _above(margin - gain, se, df))
    half, narrow = (float(stdtrit(df, tail)) * se for tail in ((1 + LEVEL) / 2, LEVEL))
    return Verdict(
        margin=margin,
        is_higher_better=higher_is_better,
        level=LEVEL,
        difference=difference,
        bound=sign * (gain - half),
        low=difference - narrow,
        high=difference + narrow,
        p_non_inferior=p_worse,
        p_equivalent=p_apart,
        non_inferior=p_worse < (1 - LEVEL) / 2,
        equivalent=p_apart < 1 - LEVEL,
        inferior=_above(-gain - margin, se, df) < (1 - LEVEL) / 2,
    )


def _above(distance: float, se: float, df: float) -> float:
    """P(T >= distance / se)."""
    if se < ROUNDING:  # what rounding leaves of a distance is none
        return 0.0 if distance > ROUNDING else 1.0
    return float(stdtr(df, -distance / se))


def margin_words(held: Verdict, first: str, second: str, value: str, *, as_percent: bool = False) -> str:
    """What is shown against the margin, in one or two sentences.

    `first` is the model that is asked about, `value` what differs, e.g. "corrected score" or "under-triage rate"; rates are said in percentage points.
    """
    if not held.is_known:
        return f"Too little is known to hold {first} against {second} by the margin of {_size(held.margin, as_percent=as_percent)}."
    sign = 1 if held.is_higher_better else -1
    worst, margin = sign * held.bound, _size(held.margin, as_percent=as_percent)
    how = f"one-sided {100 * (1 + held.level) / 2:.4g} % bound"
    lower, higher = ("lower", "higher") if held.is_higher_better else ("higher", "lower")
    if worst < 0:
        bound = f"its {value} may be {lower} by up to {_size(-worst, as_percent=as_percent)} ({how})"
    else:
        bound = f"its {value} is {higher} by at least {_size(worst, as_percent=as_percent)} ({how})"
    if held.inferior:
        least = _size(sign * (held.bound - 2 * held.difference), as_percent=as_percent)
        return f"{first} is inferior to {second}: its {value} is {lower} by at least {least} ({how}), more than the margin of {margin}."
    p = f"p {chance_words(held.p_non_inferior)}"
    if held.non_inferior:
        within = f", less than the margin of {margin}" if worst < 0 else f"; the margin is {margin}"
        verdict = f"{first} is non-inferior to {second}: {bound}{within} ({p})."
        also = "also "
    else:
        needed = f"{p}; below {(1 - held.level) / 2:.3g} would show it"
        verdict = (
            f"It is not shown that {first} is non-inferior to {second}: {bound}, and the margin is {margin} ({needed})."
        )
        also = ""
    if not held.equivalent:
        return verdict
    interval = ", ".join(_signed(end, as_percent=as_percent) for end in (held.low, held.high))
    return f"{verdict} It is {also}equivalent: the {100 * (2 * held.level - 1):.4g} % interval of the difference [{interval}] lies within ±{margin}."


def _size(value: float, *, as_percent: bool) -> str:
    return f"{decimal(100 * value, 1).removesuffix('.0')} percentage points" if as_percent else f"{value:.3f}"


def _signed(value: float, *, as_percent: bool) -> str:
    return decimal(100 * value, 1, signed=True) if as_percent else decimal(value, 3, signed=True)
