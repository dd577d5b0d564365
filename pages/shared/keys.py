"""The keys of reviewing and adjudicating: one table, from which come the buttons, the map that `?` shows, and the README's table."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum
from pathlib import Path
from typing import Any

import streamlit as st

from evalcore.study.schema import Acuity, Ask, CannotReason, Cause, ConflictCause, ErrorKind, Label, Severity

Choices = Mapping[str, tuple[Any, str]]
"""What can be chosen, by its key, with its words."""
_CANNOT = (Label.CANNOT_ASSESS, "Cannot assess")
_LEVELS: Choices = {
    "1": (Acuity.A, "A  Home"),
    "2": (Acuity.A_B, "A/B"),
    "3": (Acuity.B, "B  Doctor within weeks"),
    "4": (Acuity.B_C, "B/C"),
    "5": (Acuity.C, "C  Doctor within 24 to 48 hours"),
    "6": (Acuity.C_D, "C/D"),
    "7": (Acuity.D, "D  Emergency now"),
}
ANSWERS: Mapping[Ask, Choices] = {
    Ask.RUBRIC: {"1": (Label.MET, "Met"), "2": (Label.NOT_MET, "Not met"), "3": _CANNOT},
    Ask.RESPONSE_ACUITY: {**_LEVELS, "8": _CANNOT},
    Ask.GOLD_ACUITY: {**_LEVELS, "8": (Acuity.REMOVE, "Remove the case"), "9": _CANNOT},
}
REASONS: Mapping[CannotReason, str] = {
    CannotReason.CONTEXT_MISSING: "Context missing",
    CannotReason.OUTSIDE_SPECIALTY: "Outside my specialty",
    CannotReason.LANGUAGE: "Language",
    CannotReason.CRITERION_UNCLEAR: "Criterion unclear",
    CannotReason.NEEDS_EXAMINATION: "Needs examination",
}
CAUSES: Mapping[Cause, str] = {
    Cause.MISREAD_ANSWER: "Judge misread the answer",
    Cause.MISREAD_CRITERION: "Judge misread the criterion",
    Cause.MEDICAL_DISAGREEMENT: "Medical disagreement",
    Cause.CRITERION_AMBIGUOUS: "Criterion ambiguous",
    Cause.CRITERION_WRONG: "Criterion wrong",
    Cause.CONTEXT_MISSING: "Context missing",
    Cause.LANGUAGE: "Language",
    Cause.OTHER: "Other",
}
OF_CRITERION = frozenset({Cause.MISREAD_CRITERION, Cause.CRITERION_AMBIGUOUS, Cause.CRITERION_WRONG})
"""What a criterion can be at fault for: a level of care is asked for without one."""


def _numbered(words: Mapping[Any, str]) -> Choices:
    return {str(number): choice for number, choice in enumerate(words.items(), 1)}


REASON_KEYS, CAUSE_KEYS = _numbered(REASONS), _numbered(CAUSES)
LEVEL_CAUSE_KEYS = _numbered({cause: words for cause, words in CAUSES.items() if cause not in OF_CRITERION})
SEVERITY_KEYS = _numbered({severity: severity.capitalize() for severity in Severity})
KIND_KEYS: Choices = {"1": (ErrorKind.OMISSION, "Omission"), "2": (ErrorKind.COMMISSION, "False statement")}
CONFLICT_KEYS: Choices = {
    "S": (ConflictCause.READER_SLIPPED, "One reader slipped"),
    "A": (ConflictCause.CRITERION_AMBIGUOUS, "Criterion ambiguous"),
    "M": (ConflictCause.CONTEXT_MISSING, "Context missing"),
    "D": (ConflictCause.CLINICAL_DISAGREEMENT, "True clinical disagreement"),
    "W": (ConflictCause.CRITERION_WRONG, "Criterion wrong"),
}
"""C and R are Streamlit's own, J and K move, N and G are taken."""


@dataclass(frozen=True)
class Key:
    """A key: as Streamlit's shortcut takes it ("" where `keys.js` hears it), what it does, how the map writes it where that differs."""

    press: str
    does: str
    written: str = ""


class Press(Enum):
    """Every key that chooses nothing of a list."""

    NEXT = Key("J", "next item", "J or ↓")
    BACK = Key("K", "the item before", "K or ↑")
    DOWN = Key("Down", "next item", "↓")
    UP = Key("Up", "the item before", "↑")
    UNDO = Key("U", "undo the last mark")
    KEEP = Key("K", "keep your label, then say what went wrong")
    LOOK_KEEP = Key("K", "keep your label")
    REVISE = Key("V", "revise: take the judge's label")
    SKIP = Key("S", "skip what is asked")
    REASON_WRONG = Key("W", "judge's label right, reason wrong")
    JUDGE = Key("V", "show the judge's verdict")
    NOTE = Key("", "write a note; Enter saves it", "N")
    RATIONALE = Key("", "write the rationale; Escape leaves it", "N")
    GUIDELINE = Key("G", "guideline")
    NEXT_CASE = Key("Right", "next response to settle", "→")
    BACK_CASE = Key("Left", "the response before", "←")
    LIST = Key("L", "the list of all that wait")
    LOCK = Key("Ctrl+Enter", "submit and lock", "Ctrl + Enter")
    ONWARD = Key("Ctrl+Enter", "on to the next response", "Ctrl + Enter")
    SETTLE = Key("Ctrl+Enter", "settle, also while writing", "Ctrl + Enter")
    MAP = Key("", "show these keys", "?")


class Group(Enum):
    """Keys that choose from a list; which list, the question says."""

    ANSWERS = "answers"
    REASONS = "why it cannot be assessed, once asked"
    ERROR = "once asked"
    AMENDED = "amend: another label; what you said before stays in the record"
    CONFLICT = "why they differed: slipped, ambiguous, missing context, disagreement, wrong"


class Panel(StrEnum):
    """A screen with keys."""

    MARK = "Review"
    LOOK = "Review, second look"
    REVISE = "Review, once locked"
    AMEND = "My reads"
    ADJUDICATE = "Adjudicate"


PANELS: Mapping[Panel, tuple[Press | Group, ...]] = {
    Panel.MARK: (
        Group.ANSWERS, Group.REASONS, Press.NEXT, Press.BACK, Press.UNDO, Press.NOTE, Press.GUIDELINE, Press.LOCK, Press.MAP
    ),
    Panel.LOOK: (Press.LOOK_KEEP, Group.ANSWERS, Press.DOWN, Press.UP, Press.NOTE, Press.GUIDELINE, Press.MAP),
    Panel.REVISE: (
        Press.KEEP, Press.REVISE, Group.ERROR, Press.SKIP, Press.REASON_WRONG, Press.DOWN, Press.UP, Press.NOTE, Press.GUIDELINE, Press.ONWARD,
        Press.MAP,
    ),
    Panel.AMEND: (Press.DOWN, Press.UP, Group.AMENDED, Press.REASON_WRONG, Press.NOTE, Press.MAP),
    Panel.ADJUDICATE: (
        Group.ANSWERS, Group.CONFLICT, Press.RATIONALE, Press.SETTLE, Press.JUDGE, Press.NEXT, Press.BACK, Press.NEXT_CASE, Press.BACK_CASE,
        Press.LIST, Press.GUIDELINE, Press.MAP,
    ),
}  # fmt: skip
WORDS: Mapping[str, str] = dict(choice for choices in ANSWERS.values() for choice in choices.values())
SEVERITIES, KINDS = dict(SEVERITY_KEYS.values()), dict(KIND_KEYS.values())
CONFLICT_CAUSES: Mapping[ConflictCause, str] = dict(CONFLICT_KEYS.values())


def error_choices(ask: Ask) -> dict[str, Choices]:
    """What is asked about a judge's error, in this order; a level of care is wrong in one way only."""
    if ask is not Ask.RUBRIC:
        return {"cause": LEVEL_CAUSE_KEYS, "severity": SEVERITY_KEYS}
    return {"cause": CAUSE_KEYS, "severity": SEVERITY_KEYS, "error_kind": KIND_KEYS}


def error_words(cause: str | None, severity: str | None, error_kind: str | None = None) -> list[str]:
    """What a verdict says of a judge's error, in words."""
    words = [CAUSES[Cause(cause)].lower()] if cause else []
    words += [f"error {SEVERITIES[Severity(severity)].lower()}"] if severity else []
    return words + ([KINDS[ErrorKind(error_kind)].lower()] if error_kind else [])


def keys_of(panel: Panel, ask: Ask) -> list[Key]:
    """The keys of a panel, as its map and the README tell them."""
    answers, errors = ANSWERS[ask], error_choices(ask)
    levels = [press for press, (label, _) in answers.items() if label in set(Acuity)]
    singly = [Key(press, words.lower()) for press, (_, words) in answers.items() if press not in levels]
    to = ", and remove" if ask is Ask.GOLD_ACUITY else ""
    asked = f"{', '.join(name.replace('_', ' ') for name in errors)}, {Group.ERROR.value}"
    groups = {
        Group.ANSWERS: [*([_span(levels, f"levels of care from A to D{to}")] if levels else []), *singly],
        Group.REASONS: [_span(REASON_KEYS, Group.REASONS.value)],
        Group.ERROR: [_span(max(errors.values(), key=len), asked)],
        Group.AMENDED: [_span(answers, Group.AMENDED.value)],
        Group.CONFLICT: [Key("", Group.CONFLICT.value, "  ".join(CONFLICT_KEYS))],
    }
    has_moves = panel is not Panel.MARK or ask is Ask.RUBRIC  # a question on the whole is one item
    rows = [row for row in PANELS[panel] if has_moves or row not in (Press.NEXT, Press.BACK)]
    return [key for row in rows for key in (groups[row] if isinstance(row, Group) else [row.value])]


def _span(presses: Any, does: str) -> Key:
    first, *_, last = presses
    return Key("", does, f"{first} to {last}")


def press(act: Press, words: str, key: str, **how: Any) -> bool:
    """The button of a key. Returns whether it was pressed."""
    return st.button(words, key=key, shortcut=act.value.press, **how)


def choose(
    choices: Choices,
    key: str,
    *,
    disabled: Any = None,
    icon: Callable[[Any], str] | None = None,
    on_click: Callable[[Any], None] | None = None,
) -> Any:
    """A button a choice; its key has `{press}` or `{option}` in it, and the one that stands is `disabled`. Returns the one that was pressed, else None."""
    pressed = None
    for shortcut, (option, words) in choices.items():
        if st.button(
            words,
            key=key.format(press=shortcut, option=option),
            shortcut=shortcut,
            disabled=option == disabled,
            icon=icon(option) if icon else None,
            on_click=on_click,
            args=(option,) if on_click else None,
        ):
            pressed = option
    return pressed


def step(suffix: str, back: Press, following: Press, *, move: Callable[[int], None] | None = None) -> int:
    """Back and Next. Returns -1, 0 or 1; `move` is called with it before the page is drawn anew."""
    is_back = press(back, "Back", f"back{suffix}", on_click=move, args=(-1,) if move else None)
    is_next = press(following, "Next", f"next{suffix}", on_click=move, args=(1,) if move else None)
    return int(is_next) - int(is_back)


_HTML = """
<div class="live" role="status" aria-live="polite"></div>
<dialog aria-label="Keys"><div><b>Keys</b><button class="close" type="button">Close</button></div><dl></dl>
<p>Shortcuts are off while you type; Escape leaves the note.</p></dialog>
"""

_CSS, _JS = (Path(__file__).with_suffix(kind).read_text(encoding="utf-8") for kind in (".css", ".js"))
_component = st.components.v2.component("overread_keys", html=_HTML, css=_CSS, js=_JS)


def listen(panel: Panel, ask: Ask, status: str) -> int | None:
    """Hear what no button can: the map, the note, clicks on rows, and where J and K move the arrows too. Returns the row that was just clicked."""
    written = [[key.written or key.press, key.does] for key in keys_of(panel, ask)]
    data = {"keys": written, "status": status, "arrows": Press.NEXT in PANELS[panel]}
    clicked = _component(key="keys", data=data, on_row_change=lambda: None).row
    return int(clicked) if isinstance(clicked, int | float) else None
