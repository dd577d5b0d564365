"""Numbers and names inside sentences."""

import math
from collections.abc import Iterable

NO_VALUE = "–"
LEAST_P, TWO_DIGITS_FROM = 0.001, 0.1


def decimal(value: float, digits: int = 2, *, signed: bool = False) -> str:
    """A number as screens say it: a proper minus sign, thousands apart, nought without a sign, a dash for NaN."""
    if math.isnan(value):
        return NO_VALUE
    text = f"{value:{'+' if signed else ''},.{digits}f}"
    is_nought = not any(digit in "123456789" for digit in text)
    return text.lstrip("+-") if is_nought else text.replace("-", "−")


def chance_words(p: float) -> str:
    """A p value, never with more digits than it deserves."""
    if math.isnan(p):
        return NO_VALUE
    if p < LEAST_P:
        return f"< {LEAST_P}"
    return f"{p:.3f}" if p < TWO_DIGITS_FROM else f"{p:.2f}"


def counted(n: int, one: str, many: str | None = None) -> str:
    """A number with what it counts; several are called `many`, or `one` with an s."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def listed(names: Iterable[object], joined: str = "and") -> str:
    """Names one after the other, at least one."""
    *first, last = map(str, names)
    return f"{', '.join(first)} {joined} {last}" if first else last
