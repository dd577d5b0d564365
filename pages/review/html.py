"""What Review shows as HTML: the list of criteria with what was said of them, the judge's answer beside one's own."""

from collections.abc import Iterable, Mapping, Sequence

from evalcore.reading.practice import Settled
from evalcore.reading.queries import Draft, Given, Progress
from evalcore.reading.reviewing import OpenReview
from evalcore.study.schema import Ask, Label
from pages.shared import html
from pages.shared.keys import REASONS, error_words

MINUTE, FEW_MINUTES = 60, 1.5
QUESTIONS = {
    Ask.RESPONSE_ACUITY: "Which level of care does the response recommend, as its main course?",
    Ask.GOLD_ACUITY: "Which level of care does this case need?",
}
KEYS_HINT = (  # by mouse too
    '<button type="button" class="or-keys-hint" data-or-keys="1"><span class="or-keys-on"><kbd>?</kbd> shortcuts</span>'
    '<span class="or-keys-off">Shortcuts are off while you type; show shortcuts</span></button>'
)

QUOTE = (
    '<button type="button" class="or-quote" title="What is selected in the response goes into the note, with its place">'
    "Quote <kbd>R</kbd></button>"
)


def stamp(words: str) -> str:
    """Small words beside the buttons."""
    return f'<span class="or-stamp">{html.escaped(words)}</span>'


def left_words(progress: Progress) -> str:
    """How long what is left will take, from measured times."""
    if progress.seconds_each is None or not progress.n_left:
        return ""
    minutes = progress.n_left * progress.seconds_each / MINUTE
    return "about a minute left" if minutes < FEW_MINUTES else f"about {minutes:.0f} minutes left"


def guideline_words(version: int, known: int | None) -> str:
    """That the guideline is new to a reader, or has changed; empty for who has read under this version before."""
    if known is None:
        return "The guideline is new to you"
    return "The guideline has changed since your last read" if known < version else ""


def top(place: str, stamps: Sequence[str]) -> str:
    """Where one is, and quietly what else is to be said; empty ones are left out."""
    said = "".join(stamp(words) for words in stamps if words)
    return f'<div class="or-top"><b class="or-place">{html.escaped(place)}</b>{said}</div>'


def rows(lines: Sequence[str], places: Iterable[int], heads: Mapping[int, str], kind: str = "") -> str:
    """The lines of these places as compact lists, a new one under each heading."""
    text, start = "", f'<ol class="or-rows{kind}" aria-label="Criteria">'
    for place in places:
        is_first = place in heads or not text
        text += ("</ol>" if text else "") + heads.get(place, "") + start if is_first else ""
        text += lines[place]
    return f"{text}</ol>"


NOT_SHOWN = "Nothing of the judge is shown yet. If a key was wrong, say so now."
WHICH_SLIP = "Which answer was the slip? Take it in hand and answer again. Both answers are kept."


def locked(desk: OpenReview, *, is_slipping: bool) -> str:
    """What was locked, and what can be said of it now."""
    return status(f"{locked_words(desk)}.", WHICH_SLIP if is_slipping else NOT_SHOWN)


def status(words: str, more: str = "") -> str:
    """What has just come of a press, above the buttons that come next."""
    return f'<p class="or-locked" role="status"><b>{html.escaped(words)}</b> {more}</p>'


def locked_words(desk: OpenReview) -> str:
    """What was locked, in a line: "Locked: 4 met, 1 not met"; of one question its answer."""
    labels = [given.label or "" for given in desk.first.values()]
    if desk.asked.ask is not Ask.RUBRIC:
        return f"Locked: {_words(labels[0])}"
    return "Locked: " + ", ".join(f"{labels.count(label)} {_words(label)}" for label in Label if label in labels)


def _words(label: str) -> str:
    return html.LABELS[label][1] if label in html.LABELS else label  # a level is its own word


def item_word(ask: Ask) -> str:
    """What an item of a queue is called."""
    return "Case" if ask is Ask.GOLD_ACUITY else "Response"


def _row(
    desk: OpenReview,
    key: int | None,
    labels: str,
    *,
    place: int,
    after: str = "",
    below: str = "",
    opened: str = "",
    is_current: bool,
) -> str:
    item = desk.item(key)
    number, text, points = (item.position, item.text, item.points) if item else (1, QUESTIONS[desk.asked.ask], None)
    negative = points is not None and points < 0
    words = html.escaped(html.points_words(points))
    shown = "?" if points is None else f"{points:+.0f}".replace("-", "−")
    title = "no points known" if points is None else words
    worth = f'<span class="or-points" title="{title}">{shown}</span>' if item else ""
    undesirable = f'<small class="or-undesirable">{words}</small>' if negative else ""
    return line(
        number,
        text,
        f"{labels}{worth}{after}",
        place=place,
        below=undesirable + below,
        opened=opened,
        kind=" or-negative" if negative else "",
        is_current=is_current,
    )


def line(
    number: int | str,
    text: str,
    marks: str,
    *,
    place: int,
    below: str = "",
    opened: str = "",
    kind: str = "",
    is_current: bool,
) -> str:
    """One line of a list of items; a click on it gives its place."""
    current = ' or-current" aria-current="true' if is_current else ""
    return (
        f'<li class="or-row{kind}{current}" data-or-row="{place}"><span class="or-position">{number}</span>'
        f'<div class="or-what"><span class="or-words" dir="auto">{html.escaped(text)}</span>{below}</div>'
        f'<span class="or-mark">{marks}</span>{opened}</li>'
    )


def marked(desk: OpenReview, key: int | None, draft: Draft | None, *, place: int, is_current: bool) -> str:
    """A line before the lock: the reader's label so far; in a study that reads open, the judge's too."""
    reason = REASONS[draft.reason].lower() if draft and draft.reason else ""
    is_asked = draft and draft.label == Label.CANNOT_ASSESS and not reason
    asks = '<small class="or-open">reason?</small>' if is_asked else ""
    more = " · ".join(words for words in (reason, "note" if draft and draft.note else "") if words)
    judged = desk.judged.get(key)
    return _row(
        desk,
        key,
        _label(draft.label if draft else None) + (_by("judge", judged.label) if judged and judged.label else ""),
        place=place,
        after=asks + (f"<small>{html.escaped(more)}</small>" if more else ""),
        below=_judge_says(desk, key) if is_current else "",
        is_current=is_current,
    )


def compared(
    desk: OpenReview,
    key: int | None,
    labels: dict[str, str | None],
    decided: str,
    *,
    place: int,
    record: str = "",
    is_current: bool,
) -> str:
    """A line after the lock: labels by whom ("you", "judge", "final"), and what was kept or revised, in words (empty while it waits)."""
    told = _own_note(desk.first[key].explanation) + _judge_says(desk, key) + (html.quiet(record) if record else "")
    return _row(
        desk,
        key,
        "".join(_by(who, label) for who, label in labels.items() if label is not None),
        place=place,
        below=f'<small class="or-decided">{html.escaped(decided)}</small>' if decided else "",
        opened=f'<div class="or-opened">{told}</div>' if is_current else "",
        is_current=is_current,
    )


def practised(
    desk: OpenReview, key: int | None, label: str, settled: Settled | None, *, place: int, is_current: bool
) -> str:
    """A line of practice: one's label beside what physicians settled, and the adjudicator's reason; nothing of the judge, nor who it was."""
    you = _by("you", label)
    if settled is None:
        below = _told("", "No label is settled here any more.")
        return _row(desk, key, you, place=place, below=below, is_current=is_current)
    below = _told(
        "You agree." if settled.label == label else "You differ.",
        "Settled by an adjudicator." if settled.by_adjudicator else "The readers agreed.",
    )
    if settled.rationale:
        below += f'<div class="or-verdict"><div class="or-why">{html.verbatim(settled.rationale)}</div></div>'
    return _row(desk, key, you + _by("settled", settled.label), place=place, below=below, is_current=is_current)


def _told(agrees: str, how: str) -> str:
    return f'<small class="or-told"><b>{agrees}</b> {how}</small>'


def decided_words(first: Given, decided: Given | None) -> str:
    """What became of a first read: "kept · judge misread the answer · error severe"."""
    if decided is None:
        return ""
    was, is_now = (_words(given.label or "") for given in (first, decided))
    words = ["kept" if was == is_now else f"changed from {was} to {is_now}"]
    words += ["right label, wrong reasoning"] if decided.right_for_wrong_reason else []
    words += [REASONS[decided.reason].lower()] if decided.reason and decided.reason != first.reason else []
    return " · ".join([*words, *error_words(decided.cause, decided.severity, decided.error_kind)])


def _label(label: str | None) -> str:
    return '<span class="or-open">unanswered</span>' if label is None else html.label(label)


def _by(who: str, label: str | None) -> str:
    return f'<span class="or-said"><small>{who}</small> {_label(label)}</span>'


def _own_note(note: str | None) -> str:
    if not note:
        return ""
    words = f'<span class="or-who">Your note</span> {html.verbatim(note)}'
    return f'<div class="or-verdict or-read"><div class="or-why">{words}</div></div>'


def _judge_says(desk: OpenReview, key: int | None) -> str:
    judged = desk.judged.get(key)
    if judged is None or judged.label is None:
        return ""
    none = '<span class="or-none">no explanation given</span>'
    why = html.verbatim(judged.explanation) if judged.explanation else none
    who = f'<span class="or-who" dir="auto">{html.escaped(desk.judge or "")}</span>'
    return f'<div class="or-verdict or-judge"><div class="or-why">{who} {why}</div></div>'
