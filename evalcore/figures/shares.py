"""Shares and their intervals as the words of a figure, in the same form as everywhere: figures stand below what computes, and import none of it."""

import math

NO_VALUE = "–"


def percent(share: float) -> str:
    """A share alone.

    >>> percent(0.6216), percent(math.nan)
    ('62 %', '–')
    """
    return NO_VALUE if math.isnan(share) else f"{100 * share:.0f} %"


def counted(k: float, n: float, share: float) -> str:
    """A share with its counts; without them where it is an estimate.

    >>> counted(92, 148, 92 / 148), counted(2.5, 8, 2.5 / 8), counted(math.nan, math.nan, 0.62)
    ('62 % (92/148)', '31 % (2.5/8)', '62 %')
    """
    return percent(share) if math.isnan(k) or math.isnan(n) else f"{percent(share)} ({number(k)}/{number(n)})"


def number(k: float) -> str:
    """A count: whole, but for the halves that a read between two levels gives each of them.

    >>> number(1200), number(2.5), number(math.nan)
    ('1,200', '2.5', '–')
    """
    if math.isnan(k):
        return NO_VALUE
    return f"{k:,.0f}" if k == round(k) else f"{k:,.1f}"


def interval(low: float, high: float) -> str:
    """An interval.

    >>> interval(0.5404, 0.6958)
    '[54 %, 70 %]'
    """
    return NO_VALUE if math.isnan(low) else f"[{percent(low)}, {percent(high)}]"
