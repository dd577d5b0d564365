"""What Review shows as HTML: the list of criteria, the question in hand, the judge's answer beside one's own."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from evalcore.reading.tasks import Progress
from evalcore.study.schema import Ask, Label
from pages.shared import html

MINUTE = 60
FEW_MINUTES = 1.5
QUESTIONS = {
    Ask.RESPONSE_ACUITY: "Which level of care does the response recommend, as its main course?",
    Ask.GOLD_ACUITY: "Which level of care does this case need?",
}


@dataclass(frozen=True)
class Row:
    """One line of the list.

    Attributes:
        number: As shown, from 1.
        place: Place in the list, from 0: what a click tells.
        label: The reader's label so far, or None.
        judge, judged, explanation: Whose verdict is in view and what it says, in a study that reads open; None in a blind one.
    """

    number: int
    place: int
    text: str
    points: float | None
    label: str | None
    said: str = ""
    has_note: bool = False
    judge: str | None = None
    judged: str | None = None
    explanation: str | None = None
    is_current: bool = False
    is_question: bool = False


def rows(lines: Iterable[Row]) -> str:
    """The criteria as one compact list, the one in hand open."""
    return '<ol class="or-rows" tabindex="0" aria-label="Criteria">' + "".join(_row(line) for line in lines) + "</ol>"


def _row(row: Row) -> str:
    negative = row.points is not None and row.points < 0
    current = ' or-current" aria-current="true' if row.is_current else ""
    points = "" if row.is_question else _points(row.points)
    sign = " or-negative" if negative else ""
    undesirable = (
        f'<small class="or-undesirable">{html.escaped(html.points_words(row.points))}</small>' if negative else ""
    )
    opened = judge_says(row.judge or "", row.judged, row.explanation) if row.is_current else ""
    of_judge = f'<span class="or-said"><small>judge</small> {shown(row.judged)}</span>' if row.judged else ""
    return (
        f'<li class="or-row{sign}{current}" data-or-row="{row.place}"><span class="or-position">{row.number}</span>'
        f'<div class="or-what"><span class="or-words" dir="auto">{html.escaped(row.text)}</span>{undesirable}{opened}</div>'
        f"{mark(row.label, row.said, has_note=row.has_note, points=of_judge + points)}</li>"
    )


def _points(points: float | None) -> str:
    if points is None:
        return '<span class="or-points" title="no points known">?</span>'
    shown = f"{points:+.0f}".replace("-", "−")
    return f'<span class="or-points" title="{html.escaped(html.points_words(points))}">{shown}</span>'


def mark(label: str | None, said: str = "", *, has_note: bool = False, points: str = "") -> str:
    """A label in its column, with what belongs to it."""
    more = " · ".join(words for words in (said, "note" if has_note else "") if words)
    small = f"<small>{html.escaped(more)}</small>" if more else ""
    return f'<span class="or-mark">{shown(label)}{points}{small}</span>'


def shown(label: str | None) -> str:
    """A label with its mark; a level of care as its letter."""
    if label is None:
        return '<span class="or-open">open</span>'
    return html.label(label) if label in set(Label) else f'<span class="or-label or-level">{html.escaped(label)}</span>'


def left_words(progress: Progress) -> str:
    """How long what is left will take, from measured times.

    >>> left_words(Progress(n_done=13, n_left=47, seconds_each=45.0))
    'about 35 minutes left'
    """
    if progress.seconds_each is None or not progress.n_left:
        return ""
    minutes = progress.n_left * progress.seconds_each / MINUTE
    return "about a minute left" if minutes < FEW_MINUTES else f"about {minutes:.0f} minutes left"


def top(place: str, stamps: Sequence[str]) -> str:
    """Where one is, and quietly what else is to be said: how long it takes yet, what was just done; empty ones are left out."""
    parts = [f'<b class="or-place">{html.escaped(place)}</b>']
    parts += [f'<span class="or-stamp">{html.escaped(words)}</span>' for words in stamps if words]
    return f'<div class="or-top">{"".join(parts)}</div>'


def keys_hint() -> str:
    """The way to the map of keys, by mouse too."""
    return '<button type="button" class="or-keys-hint" data-or-keys="1"><kbd>?</kbd> keys</button>'


@dataclass(frozen=True)
class Compared:
    """One line after the lock.

    Attributes:
        own: The locked first read.
        judged: The judge's label; None where it gave none.
        record: How often this judge is right on such criteria.
        decided: What was kept or revised, in words; empty while it waits.
        final: The adjudicated label; None where nobody has settled the item.
    """

    number: int
    place: int
    text: str
    points: float | None
    own: str | None
    judged: str | None
    explanation: str | None
    decided: str
    record: str = ""
    final: str | None = None
    is_current: bool = False
    is_question: bool = False


def all_compared(lines: Sequence[Compared], judge: str) -> str:
    """Every criterion in order."""
    return (
        '<ol class="or-rows or-compared" tabindex="0" aria-label="Criteria">'
        + "".join(_compared(line, judge) for line in lines)
        + "</ol>"
    )


def looked_again(lines: Sequence[Compared]) -> str:
    """The criteria that get a second look, before anything of the judge is shown."""
    n = f"{len(lines)} {'criterion' if len(lines) == 1 else 'criteria'}"
    return (
        f'<h3 class="or-part">Look again at {n}, drawn at random</h3>'
        '<p class="or-quiet">Keep your label or change it. Nothing of the judge is shown yet.</p>'
        '<ol class="or-rows or-compared" tabindex="0" aria-label="Criteria for a second look">'
        + "".join(_compared(line, "") for line in lines)
        + "</ol>"
    )


def compared(lines: Sequence[Compared], judge: str, *, n_differing: int) -> str:
    """First what differs from the judge, then what agrees."""
    differing = "".join(_compared(line, judge) for line in lines[:n_differing])
    agreeing = "".join(_compared(line, judge) for line in lines[n_differing:])
    parts = [
        f'<h3 class="or-part">The judge differs on {n_differing}</h3>'
        f'<ol class="or-rows or-compared" tabindex="0" aria-label="Criteria on which the judge differs">{differing}</ol>'
    ]
    if agreeing:
        parts.append(
            f'<h3 class="or-part">You and the judge agree</h3><ol class="or-rows or-compared or-agreed">{agreeing}</ol>'
        )
    return "".join(parts)


def _compared(line: Compared, judge: str) -> str:
    current = ' or-current" aria-current="true' if line.is_current else ""
    points = "" if line.is_question else _points(line.points)
    negative = line.points is not None and line.points < 0
    undesirable = (
        f'<small class="or-undesirable">{html.escaped(html.points_words(line.points))}</small>' if negative else ""
    )
    decided = f'<small class="or-decided">{html.escaped(line.decided)}</small>' if line.decided else ""
    opened = f'<div class="or-opened">{_opened(line, judge)}</div>' if line.is_current else ""
    said = "".join(
        f'<span class="or-said"><small>{who}</small> {shown(label)}</span>'
        for who, label in (("you", line.own), ("judge", line.judged), ("final", line.final))
        if label is not None
    )
    sign = " or-negative" if negative else ""
    return (
        f'<li class="or-row{sign}{current}" data-or-row="{line.place}"><span class="or-position">{line.number}</span>'
        f'<div class="or-what"><span class="or-words" dir="auto">{html.escaped(line.text)}</span>{undesirable}{decided}</div>'
        f'<span class="or-mark">{said}{points}</span>{opened}</li>'
    )


def _opened(line: Compared, judge: str) -> str:
    record = f'<p class="or-quiet">{html.escaped(line.record)}</p>' if line.record else ""
    return judge_says(judge, line.judged, line.explanation) + record


def judge_says(judge: str, judged: str | None, explanation: str | None) -> str:
    """A judge's reasons; nothing where it gave no label."""
    if judged is None:
        return ""
    why = html.verbatim(explanation) if explanation else '<span class="or-none">no explanation given</span>'
    who = f'<span class="or-who" dir="auto">{html.escaped(judge)}</span>'
    return f'<div class="or-verdict or-judge"><div class="or-why">{who} {why}</div></div>'
