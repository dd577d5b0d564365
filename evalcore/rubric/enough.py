"""Whether physicians have read enough of a model to say its corrected score, and what lacks."""

from math import ceil

from evalcore.rubric.surveyed import Surveyed
from evalcore.stats.survey import MIN_OF_A_SIGN
from evalcore.stats.wording import counted

MIN_READ = 30
"""Items read: with 33 a 95 % interval still covers 94 % and more."""
MIN_EXAMPLES_READ = 10
MIN_FREEDOM = 10
"""Units drawn, over the numbers that are fitted."""
MIN_PHYSICIANS = 3
"""To say something of physicians in general: of two the spread is a guess."""
MIN_EFFECTIVE = 2.75
"""Effective readers that count as three: three who share the reading by chance never share it quite alike, and 3 : 2 : 2 still counts."""


def lacking(about: Surveyed, *, n_columns: int, in_general: bool) -> tuple[int, str]:
    """How many items more have to be read, at least, and that in words; 0 and nothing where it is enough.

    A benchmark that has fewer of something than is asked for never has enough.

    Args:
        about: The model's items and reads.
        n_columns: Numbers that are fitted.
        in_general: The score is to hold for physicians in general.
    """
    population, sample = about.population, about.sample
    by_unit = max(1.0, len(sample.rows) / max(sample.n_units, 1))
    signs = {
        name: max(0, min(MIN_OF_A_SIGN, int(side.sum())) - int(side[sample.rows].sum()))
        for name, side in (("desirable", ~population.undesirable), ("undesirable", population.undesirable))
    }
    examples = max(0, MIN_EXAMPLES_READ - about.n_examples_read)
    readers, by_whom = further_readers(sample.n_readers, about.counts["n_effective_readers"]) if in_general else (0, "")
    units = max(0, MIN_FREEDOM + n_columns - sample.n_units)
    n_needed = max(MIN_READ - len(sample.rows), ceil(units * by_unit), sum(signs.values()), examples, readers)
    if n_needed <= 0:
        return 0, ""
    words = [f"{counted(n_needed, 'more criterion', 'more criteria')} to be read"]
    words += [f"{n} of them {name}" for name, n in signs.items() if n]
    words += [f"from {counted(examples, 'more example')}"] if examples else []
    words += [by_whom] if readers else []
    return n_needed, ", ".join(words)


def further_readers(n_readers: int, effective: float) -> tuple[int, str]:
    """How many physicians more are needed, at least, to say something of physicians in general, and by whom in words; 0 and nothing where enough have read.

    Where one has read nearly everything, the others say little: it is effective readers that count.

    >>> further_readers(2, 2.0), further_readers(3, 2.9)
    ((1, 'by 1 more physician'), (0, ''))
    >>> further_readers(5, 1.68)[1]
    'by those who have read less: so far 5 physicians say as much as 1.7 who read alike'

    Args:
        n_readers: Physicians who have read.
        effective: As many as that count (`over_physicians.effective_readers`).
    """
    lacking = max(0, MIN_PHYSICIANS - n_readers, ceil(MIN_EFFECTIVE - effective))
    if not lacking:
        return 0, ""
    if n_readers < MIN_PHYSICIANS:
        return lacking, f"by {counted(MIN_PHYSICIANS - n_readers, 'more physician')}"
    return (
        lacking,
        f"by those who have read less: so far {n_readers} physicians say as much as {effective:.1f} who read alike",
    )
