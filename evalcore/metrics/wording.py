"""Numbers and names inside sentences."""

from collections.abc import Iterable


def counted(n: int, one: str, many: str | None = None) -> str:
    """A number with what it counts.

    Args:
        n: How many.
        one: What one is called.
        many: What several are called; default: with an s.

    >>> counted(1, "response"), counted(1_200, "response"), counted(0, "criterion", "criteria")
    ('1 response', '1,200 responses', '0 criteria')
    """
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def listed(names: Iterable[object], joined: str = "and") -> str:
    """Names one after the other, at least one.

    >>> listed(["Magpie"]), listed(["A", "B", "C"]), listed(["A", "B"], "or")
    ('Magpie', 'A, B and C', 'A or B')
    """
    *first, last = map(str, names)
    return f"{', '.join(first)} {joined} {last}" if first else last
