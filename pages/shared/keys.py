"""The keys of reviewing and adjudicating: one table, for buttons, the map that `?` shows and the README; a key means one thing on every screen."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum
from pathlib import Path
from typing import Any

import msgspec
import streamlit as st

from evalcore.reading.quoting import Selected
from evalcore.study.schema import Acuity, Ask, CannotReason, Cause, ConflictCause, ErrorKind, Label, Severity
from pages.shared import common
from pages.shared.html import LABELS

Choices = Mapping[str, tuple[Any, str]]
_CANNOT = {"3": (Label.CANNOT_ASSESS, "Cannot assess")}
_LEVELS: Choices = {
    "D": (Acuity.D, "D  Emergency now"),
    "6": (Acuity.C_D, "C/D"),
    "C": (Acuity.C, "C  Doctor within 24 to 48 hours"),
    "5": (Acuity.B_C, "B/C"),
    "B": (Acuity.B, "B  Doctor within weeks"),
    "4": (Acuity.A_B, "A/B"),
    "A": (Acuity.A, "A  Home"),
}
ANSWERS: Mapping[Ask, Choices] = {
    Ask.RUBRIC: {"1": (Label.MET, "Met"), "2": (Label.NOT_MET, "Not met"), **_CANNOT},
    Ask.RESPONSE_ACUITY: {**_LEVELS, **_CANNOT},
    Ask.GOLD_ACUITY: {**_LEVELS, **_CANNOT, "Z": (Acuity.REMOVE, "Case unsuitable")},
}
HEARD = frozenset("ABCD")
"""Keys that `keys.js` hears, before Streamlit does: it keeps C for itself and takes it for no button. Their letters stand in the words."""
REASON_KEYS: Choices = {
    "M": (CannotReason.CONTEXT_MISSING, "Context missing"),
    "X": (CannotReason.OUTSIDE_SPECIALTY, "Outside my specialty"),
    "L": (CannotReason.LANGUAGE, "Language"),
    "Q": (CannotReason.CRITERION_UNCLEAR, "Criterion unclear"),
    "E": (CannotReason.NEEDS_EXAMINATION, "Needs examination"),
}
CAUSE_KEYS: Choices = {
    "P": (Cause.MISREAD_ANSWER, "Judge misread the answer"),
    "T": (Cause.MISREAD_CRITERION, "Judge misread the criterion"),
    "I": (Cause.MEDICAL_DISAGREEMENT, "Medical disagreement"),
    "Q": (Cause.CRITERION_AMBIGUOUS, "Criterion ambiguous"),
    "W": (Cause.CRITERION_WRONG, "Criterion wrong"),
    "M": (Cause.CONTEXT_MISSING, "Context missing"),
    "L": (Cause.LANGUAGE, "Language"),
    "O": (Cause.OTHER, "Other"),
}
OF_CRITERION = frozenset({Cause.MISREAD_CRITERION, Cause.CRITERION_AMBIGUOUS, Cause.CRITERION_WRONG})
"""What a criterion can be at fault for: a level of care is asked for without one."""
LEVEL_CAUSE_KEYS: Choices = {key: choice for key, choice in CAUSE_KEYS.items() if choice[0] not in OF_CRITERION}
SEVERITY_KEYS: Choices = {
    "0": (Severity.NONE, "No harm"),
    "7": (Severity.MILD, "Mild"),
    "8": (Severity.MODERATE, "Moderate"),
    "9": (Severity.SEVERE, "Severe"),
}
KIND_KEYS: Choices = {"H": (ErrorKind.OMISSION, "Omission"), "F": (ErrorKind.COMMISSION, "False statement")}
CONFLICT_KEYS: Choices = {
    "S": (ConflictCause.READER_SLIPPED, "One reader slipped"),
    "Q": (ConflictCause.CRITERION_AMBIGUOUS, "Criterion ambiguous"),
    "M": (ConflictCause.CONTEXT_MISSING, "Context missing"),
    "I": (ConflictCause.CLINICAL_DISAGREEMENT, "True clinical disagreement"),
    "W": (ConflictCause.CRITERION_WRONG, "Criterion wrong"),
}
REASONS: Mapping[CannotReason, str] = dict(REASON_KEYS.values())
CAUSES: Mapping[Cause, str] = dict(CAUSE_KEYS.values())


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
    UNDO = Key("U", "undo the last mark")
    REASON_WRONG = Key("Y", "right label, wrong reasoning")
    JUDGE = Key("V", "show the judge's verdict")
    NOTE = Key("", "write a note; Enter saves it", "N")
    RATIONALE = Key("", "write the rationale; Escape leaves it", "N")
    QUOTE = Key("", "quote what is selected in the response", "R")
    GUIDELINE = Key("G", "guideline")
    NEXT_CASE = Key("Right", "next response to settle", "→")
    BACK_CASE = Key("Left", "the response before", "←")
    LIST = Key("Home", "the list of all that wait")
    TELL = Key("", "tell the lead: skip this response, or flag it", "-")
    LOCK = Key("Ctrl+Enter", "submit and lock", "Ctrl + Enter")
    REVEAL = Key("", "show the judge", "Enter")
    SLIP = Key("S", "I slipped: answer again")
    ONWARD = Key("Ctrl+Enter", "on to the next response", "Ctrl + Enter")
    SETTLE = Key("Ctrl+Enter", "settle, also while writing", "Ctrl + Enter")
    MAP = Key("", "show these keys", "?")


class Group(Enum):
    """Keys that choose from a list, and what for; of the answers the labels themselves say it."""

    ANSWERS = ""
    REASONS = "why it cannot be assessed"
    CAUSES = "why the judge differs"
    SEVERITIES = "how bad the judge's error is"
    KINDS = "what is wrong in the judge's reasoning"
    CONFLICT = "why the readers differed"


class Panel(StrEnum):
    """A screen with keys."""

    MARK = "Review"
    PRACTISE = "Review, practice"
    PRACTICE = "Review, practice feedback"
    LOCKED = "Review, locked"
    LOOK = "Review, second look"
    REVISE = "Review, once locked"
    AMEND = "My reads"
    ADJUDICATE = "Adjudicate"


_MOVES = (Press.NEXT, Press.BACK)
_DECIDE = (Group.ANSWERS, Group.REASONS, Group.CAUSES, Group.SEVERITIES, Group.KINDS, Press.REASON_WRONG, *_MOVES)
PANELS: Mapping[Panel, tuple[Press | Group, ...]] = {
    Panel.MARK: (
        Group.ANSWERS, Group.REASONS, *_MOVES, Press.UNDO, Press.NOTE, Press.QUOTE, Press.GUIDELINE, Press.TELL, Press.LOCK,
        Press.SLIP, Press.MAP,
    ),
    Panel.PRACTISE: (
        Group.ANSWERS, Group.REASONS, *_MOVES, Press.UNDO, Press.NOTE, Press.QUOTE, Press.GUIDELINE, Press.LOCK, Press.MAP,
    ),
    Panel.PRACTICE: (*_MOVES, Press.GUIDELINE, Press.ONWARD, Press.MAP),
    Panel.LOCKED: (Press.REVEAL, Press.SLIP, Group.ANSWERS, Group.REASONS, *_MOVES, Press.GUIDELINE, Press.MAP),
    Panel.LOOK: (Group.ANSWERS, *_MOVES, Press.NOTE, Press.QUOTE, Press.GUIDELINE, Press.MAP),
    Panel.REVISE: (*_DECIDE, Press.NOTE, Press.QUOTE, Press.GUIDELINE, Press.ONWARD, Press.MAP),
    Panel.AMEND: (*_DECIDE, Press.NOTE, Press.QUOTE, Press.MAP),
    Panel.ADJUDICATE: (
        Group.ANSWERS, Group.CONFLICT, Press.RATIONALE, Press.QUOTE, Press.SETTLE, Press.JUDGE, *_MOVES, Press.NEXT_CASE,
        Press.BACK_CASE, Press.LIST, Press.GUIDELINE, Press.MAP,
    ),
}  # fmt: skip
WORDS: Mapping[str, str] = dict(choice for choices in ANSWERS.values() for choice in choices.values())
SEVERITIES, KINDS = dict(SEVERITY_KEYS.values()), dict(KIND_KEYS.values())
CONFLICT_CAUSES: Mapping[ConflictCause, str] = dict(CONFLICT_KEYS.values())


def choices_of(group: Group, ask: Ask) -> Choices:
    """The list that a group of keys chooses from; a level of care is wrong in one way only, and for fewer causes."""
    is_rubric = ask is Ask.RUBRIC
    return {
        Group.ANSWERS: ANSWERS[ask],
        Group.REASONS: REASON_KEYS,
        Group.CAUSES: CAUSE_KEYS if is_rubric else LEVEL_CAUSE_KEYS,
        Group.SEVERITIES: SEVERITY_KEYS,
        Group.KINDS: KIND_KEYS if is_rubric else {},
        Group.CONFLICT: CONFLICT_KEYS,
    }[group]


def error_words(cause: str | None, severity: str | None, error_kind: str | None = None) -> list[str]:
    """What a verdict says of a judge's error, in words."""
    words = [CAUSES[Cause(cause)].lower()] if cause else []
    if severity:
        words += ["no harm" if severity == Severity.NONE else f"error {SEVERITIES[Severity(severity)].lower()}"]
    return words + ([KINDS[ErrorKind(error_kind)].lower()] if error_kind else [])


def keys_of(panel: Panel, ask: Ask, absent: Collection[Press] = ()) -> list[Key]:
    """The keys of a panel, as its map and the README tell them; without those that it does not have at the moment."""
    has_moves = panel not in (Panel.MARK, Panel.LOCKED) or ask is Ask.RUBRIC  # a question on the whole is one item
    keys: list[Key] = []
    for row in PANELS[panel]:
        if isinstance(row, Press):
            is_there = has_moves if row in _MOVES else row is not Press.QUOTE or ask is not Ask.GOLD_ACUITY
            keys += [row.value] if is_there and row not in absent else []
        elif row is Group.ANSWERS:
            said = {press: words.removeprefix(press).strip() for press, (_, words) in ANSWERS[ask].items()}
            keys += [Key(press, words if "/" in words else words.lower()) for press, words in said.items()]  # C/D
        elif choices := choices_of(row, ask):
            words = ", ".join(words.lower() for _, words in choices.values())
            keys.append(Key("", f"{row.value}: {words}", "  ".join(choices)))
    return keys


WRITES = frozenset(
    {Press.UNDO, Press.TELL, Press.LOCK, Press.REVEAL, Press.SLIP, Press.ONWARD, Press.SETTLE, Press.REASON_WRONG}
)


def press(act: Press, words: str, key: str, *, disabled: bool = False, **how: Any) -> bool:
    """The button of a key. Returns whether it was pressed."""
    is_off = disabled or (act in WRITES and common.drawn_frozen())
    return st.button(words, key=key, shortcut=act.value.press or None, disabled=is_off, **how)


def choose(
    choices: Choices,
    key: str,
    *,
    disabled: Any = None,
    icon: Callable[[Any], str | None] | None = None,
    on_click: Callable[[Any], None] | None = None,
) -> Any:
    """A button a choice; its key has `{press}` or `{option}` in it, and the one that stands is `disabled`. Returns the one that was pressed, else None."""
    pressed = None
    for shortcut, (option, words) in choices.items():
        if st.button(
            words,
            key=key.format(press=shortcut, option=option),
            shortcut=None if shortcut in HEARD else shortcut,
            disabled=option == disabled or common.drawn_frozen(),
            icon=icon(option) if icon else None,
            on_click=on_click,
            args=(option,) if on_click else None,
        ):
            pressed = option
    return pressed


def step(suffix: str, *, move: Callable[[int], None] | None = None) -> int:
    """Back and Next. Returns -1, 0 or 1; `move` is called with it before the page is drawn anew."""
    is_back = press(Press.BACK, "Back", f"back{suffix}", on_click=move, args=(-1,) if move else None)
    is_next = press(Press.NEXT, "Next", f"next{suffix}", on_click=move, args=(1,) if move else None)
    return int(is_next) - int(is_back)


_HTML = """
<div class="live" role="status" aria-live="polite"></div>
<dialog aria-label="Keys"><div><b>Keys</b><button class="close" type="button">Close</button></div><dl></dl>
<p>Shortcuts are off while you type; Escape leaves the note.</p></dialog>
"""

_CSS, _JS = (Path(__file__).with_suffix(kind).read_text(encoding="utf-8") for kind in (".css", ".js"))
_component = st.components.v2.component("overread_keys", html=_HTML, css=_CSS, js=_JS)


class Heard(msgspec.Struct, frozen=True):
    """A row that was clicked; or words that are to be quoted, and the row that was in hand then, where rows are shown."""

    row: int | None = None
    quoted: Selected | None = None


class Answer(msgspec.Struct, frozen=True):
    """A key that the browser has drawn already: its number, the place of the item that was in hand on the screen, and of the one that is in hand since."""

    n: int
    key: str
    row: int
    to: int


class _Pressed(msgspec.Struct, frozen=True):
    of: str = ""
    presses: tuple[Answer, ...] = ()


def pressed(of: str) -> Iterator[Answer]:
    """The keys that the browser sent for this list and that were not given here before, in their order. Each counts as done once it is given."""
    try:
        said = msgspec.convert(dict(st.session_state.get("keys") or {}).get("pressed") or {}, _Pressed, strict=False)
    except msgspec.ValidationError:  # no browser of ours
        return
    for answer in said.presses if said.of == of else ():
        if answer.n > _n_done(of):
            st.session_state["keys_done"] = of, answer.n
            yield answer


def _n_done(of: str) -> int:
    whose, n = st.session_state.get("keys_done", (of, 0))
    return n if whose == of else 0


def answering(of: str, at: int) -> dict[str, Any]:
    """What the browser needs to draw an answer to a criterion before it is stored: the keys, what they say, the item in hand."""
    answers = {
        press: {"label": label, "words": " ".join(LABELS[label]), "asks": label is Label.CANNOT_ASSESS}
        for press, (label, _) in ANSWERS[Ask.RUBRIC].items()
    }
    reasons = {press: words.lower() for press, (_, words) in REASON_KEYS.items()}
    return {"of": of, "done": _n_done(of), "at": at, "answers": answers, "reasons": reasons}


def listen(
    panel: Panel, ask: Ask, status: str, answering: Mapping[str, Any] | None = None, *, absent: Collection[Press] = ()
) -> Heard:
    """Hear what no button can: the map, the note, arrows, letters of levels, clicks on rows, what is selected in the response; answers, where they are told."""
    written = [[key.written or key.press, key.does] for key in keys_of(panel, ask, absent)]
    data = {"keys": written, "status": status, "answering": answering}
    return _heard(_component(key="keys", data=data, on_heard_change=lambda: None, on_pressed_change=lambda: None).heard)


def heard() -> Heard:
    """The same, before anything is drawn: where the next press breaks a run off while it draws, nothing that was heard is lost."""
    return _heard(dict(st.session_state.get("keys") or {}).get("heard"))


def _heard(said: Any) -> Heard:
    try:
        return msgspec.convert(said or {}, Heard, strict=False)
    except msgspec.ValidationError:  # no browser of ours
        return Heard()
