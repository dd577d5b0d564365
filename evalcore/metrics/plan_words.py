"""A plan in words, for the screen and the command line."""

import math

from evalcore.metrics.intervals import NO_VALUE
from evalcore.metrics.pilot import ASSUMED_ACCURACY, ASSUMED_CORRELATION, PILOT_READS, Basis
from evalcore.metrics.sample_size import IMPORTANCE, UNIFORM, Answer, Needed
from evalcore.metrics.targets import Goal, Target
from evalcore.metrics.wording import counted

DESIGN_WORDS = {UNIFORM: "drawn with equal chances", IMPORTANCE: "drawn by importance"}
MINUTES_AN_HOUR, FEW_HOURS = 60, 10


def goal_words(target: Target) -> str:
    """What is to be known.

    >>> goal_words(Target(Goal.DIFFERENCE, 0.03, ("Alder", "Birch"), ("Magpie",)))
    'the corrected difference between Alder and Birch'
    """
    if target.goal is Goal.JUDGE_ERROR:
        return f"the share of labels on which {target.judges[0]} is wrong"
    if target.goal is Goal.DIFFERENCE:
        return f"the corrected difference between {target.models[0]} and {target.models[1]}"
    return f"{target.models[0]}'s corrected score"


def width_words(target: Target, half_width: float) -> str:
    """Half a width as the number itself is said: points of a score, percentage points of a share.

    >>> width_words(Target(Goal.SCORE, 0.03, ("Alder",), ("Magpie",)), 0.0304)
    '±0.030'
    >>> width_words(Target(Goal.JUDGE_ERROR, 0.03, (), ("Magpie",)), 0.0304)
    '±3.0 percentage points'
    """
    if math.isinf(half_width):
        return "not known at all"
    return f"±{100 * half_width:.1f} percentage points" if target.goal is Goal.JUDGE_ERROR else f"±{half_width:.3f}"


def amount_words(target: Target, needed: Needed) -> str:
    """How much has to be read."""
    inside = f"{counted(needed.n_responses, 'response')}, {needed.n_items:,} criteria"
    if target.goal is Goal.DIFFERENCE:
        return f"{counted(needed.n_units, 'further example')} with both models' responses ({inside})"
    return f"{counted(needed.n_units, 'further response')} ({needed.n_items:,} criteria)"


def units_words(target: Target) -> str:
    """What is drawn: responses, or examples with both models' responses."""
    return "examples" if target.goal is Goal.DIFFERENCE else "responses"


def finding(found: Answer) -> str:
    """How much has to be read, in a sentence."""
    what, wanted = goal_words(found.target), width_words(found.target, found.target.within)
    if not found.n_units:
        return "There is nothing to read for this: no response can be scored and has every chosen judge's label on all its criteria."
    alike, important = found.design(UNIFORM), found.design(IMPORTANCE)
    if not alike.reachable:
        return (
            f"Reading alone will not do: with every response read, the 95 % interval of {what} would still be "
            f"{width_words(found.target, found.half_width_all)}, not {wanted}, since it has to hold for new examples too. That takes more examples."
        )
    if not alike.n_units:
        now = width_words(found.target, found.half_width_now)
        return f"Nothing more has to be read: the 95 % interval of {what} is expected to be {now} with what is read and assigned."
    return (
        f"To know {what} within {wanted}, physicians have to read {amount_words(found.target, alike)} {DESIGN_WORDS[UNIFORM]}, or "
        f"{amount_words(found.target, important)} {DESIGN_WORDS[IMPORTANCE]}."
    )


def basis_words(found: Answer) -> str:
    """Where the expectations come from."""
    n = f"{found.pilot.n_reads:,}"
    assumed = (
        f"Too little has been read to measure anything here: this assumes a judge that is right on {100 * ASSUMED_ACCURACY:.0f} % of the criteria, "
        f"and errors on one response that are alike (correlation {ASSUMED_CORRELATION})."
    )
    words = {
        Basis.DRAWN: f"Worked out from {n} criteria that were drawn and read blind.",
        Basis.NOT_DRAWN: f"Worked out from {n} criteria that were read blind, though not all of them were drawn: take it as a guess.",
        Basis.OTHERS: f"Worked out from {n} criteria of responses of all models, since too few of these were read.",
        Basis.ASSUMED: assumed,
    }
    small = found.pilot.is_small and found.pilot.basis is not Basis.ASSUMED
    return words[found.pilot.basis] + (
        f" That is a pilot: below {PILOT_READS} the answer will still move as more is read." if small else ""
    )


def so_far_words(found: Answer) -> str:
    """What has been read, and what waits."""
    read = f"{found.n_responses_read:,} of {found.n_responses:,} responses ({found.n_items_read:,} of {found.n_items:,} criteria) are drawn and read"
    waits = f", {found.n_responses_waiting:,} more are assigned and wait" if found.n_responses_waiting else ""
    if not math.isfinite(found.half_width_now):
        return f"{read}."
    return (
        f"{read}{waits}; with these the interval is expected to be {width_words(found.target, found.half_width_now)}."
    )


def disagreement_words(found: Answer) -> str:
    """What it does to a drawing by importance that judges disagree."""
    judges = found.disagreement
    if not judges.n_items:
        return (
            "No two judges have labelled these criteria, nor one judge twice, so responses drawn by importance are drawn by their points alone: "
            "where judges disagree, more would be drawn."
        )
    labelled = f"{judges.n_items:,} criteria that two judges or more, or one judge several times, have labelled"
    if judges.n_disagreed in (0, judges.n_items):
        how = "disagree" if judges.n_disagreed else "agree"
        return f"Judges {how} on all of the {labelled}, so it makes no difference to a drawing."
    drawn = "" if math.isnan(judges.times) else (
        f": drawn by importance, these are drawn {judges.times:.1f} times as often as those on which they agree"
    )  # fmt: skip
    return f"Judges disagree on {judges.n_disagreed:,} of the {labelled}{drawn}."


def hours_words(hours: float | None, n_readers: int, seconds: float | None) -> str:
    """How long the reading takes.

    >>> hours_words(12.34, 2, 61.0)
    'About 12 hours of reading in all, with 2 readers each: a criterion takes 61 seconds, as measured.'
    >>> hours_words(None, 2, None)
    'No reading has been timed yet, so hours cannot be told.'
    """
    if hours is None or seconds is None:
        return "No reading has been timed yet, so hours cannot be told."
    each = "one reader each" if n_readers == 1 else f"{n_readers} readers each"
    return f"About {hours_short(hours)} of reading in all, with {each}: a criterion takes {seconds:.0f} seconds, as measured."


def hours_short(hours: float | None) -> str:
    """A time for a cell of a table.

    >>> hours_short(0.5), hours_short(2.345), hours_short(1234.5), hours_short(None)
    ('30 minutes', '2.3 hours', '1,234 hours', '– (not timed yet)')
    """
    if hours is None:
        return f"{NO_VALUE} (not timed yet)"
    if hours < 1:
        return f"{hours * MINUTES_AN_HOUR:.0f} minutes"
    return f"{hours:,.0f} hours" if hours >= FEW_HOURS else f"{hours:.1f} hours"
