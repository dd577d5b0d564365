"""The keys of reading and of adjudication: one table, from which come the buttons, the map that `?` shows, and the README's list."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import streamlit as st

from evalcore.reading.desks import ANSWERS, MAX_NOTE
from evalcore.study.schema import Acuity, Ask, CannotReason, Cause, ErrorKind, Label, Severity

LABELS: dict[Label | Acuity, str] = {Label.MET: "Met", Label.NOT_MET: "Not met", Label.CANNOT_ASSESS: "Cannot assess"}
LEVELS: dict[Label | Acuity, str] = {
    Acuity.A: "A  Home",
    Acuity.A_B: "A/B",
    Acuity.B: "B  Doctor within weeks",
    Acuity.B_C: "B/C",
    Acuity.C: "C  Doctor within 24 to 48 hours",
    Acuity.C_D: "C/D",
    Acuity.D: "D  Emergency now",
    Acuity.REMOVE: "Remove the case",
}
WORDS: Mapping[Label | Acuity, str] = {**LABELS, **LEVELS}
REASONS = {
    CannotReason.CONTEXT_MISSING: "Context missing",
    CannotReason.OUTSIDE_SPECIALTY: "Outside my specialty",
    CannotReason.LANGUAGE: "Language",
    CannotReason.CRITERION_UNCLEAR: "Criterion unclear",
    CannotReason.NEEDS_EXAMINATION: "Needs examination",
}
CAUSES = {
    Cause.MISREAD_ANSWER: "Judge misread the answer",
    Cause.MISREAD_CRITERION: "Judge misread the criterion",
    Cause.MEDICAL_DISAGREEMENT: "Medical disagreement",
    Cause.CRITERION_AMBIGUOUS: "Criterion ambiguous",
    Cause.CRITERION_WRONG: "Criterion wrong",
    Cause.CONTEXT_MISSING: "Context missing",
    Cause.LANGUAGE: "Language",
    Cause.OTHER: "Other",
}
OF_CRITERIA = frozenset((Cause.MISREAD_CRITERION, Cause.CRITERION_AMBIGUOUS, Cause.CRITERION_WRONG))
SEVERITIES = {Severity.NONE: "None", Severity.MILD: "Mild", Severity.MODERATE: "Moderate", Severity.SEVERE: "Severe"}
KINDS = {ErrorKind.OMISSION: "Omission", ErrorKind.COMMISSION: "False statement"}
DIGITS = "123456789"
"""Keys of choices, by their places."""
CONFLICT_KEYS = "SAMDW"
"""Keys of the causes of a conflict. C and R are Streamlit's own, J and K move, N and G are taken."""
NOTE_DRAWN = "_drawn"


@dataclass(frozen=True)
class Key:
    """A key: as Streamlit's shortcut takes it ("" where `keys.js` hears it), what it does, and how the map writes it where that differs."""

    press: str
    does: str
    written: str = ""


class Press(Enum):
    """Every key that is no place in a list of choices."""

    NEXT = Key("J", "next item", "J or ↓")
    BACK = Key("K", "the item before", "K or ↑")
    DOWN = Key("Down", "next item", "↓")
    UP = Key("Up", "the item before", "↑")
    UNDO = Key("U", "undo the last mark")
    KEEP = Key("K", "keep your label, then say what went wrong")
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

    @property
    def key(self) -> str:
        """As Streamlit's shortcut takes it."""
        return self.value.press


def causes(*, of_criterion: bool) -> dict[Cause, str]:
    """Why a judge may differ; a level of care is asked for without a criterion that could be at fault."""
    return {cause: words for cause, words in CAUSES.items() if of_criterion or cause not in OF_CRITERIA}


def causes_of_error(ask: Ask) -> dict[str, Mapping[Any, str]]:
    """What is asked about a judge's error, in this order; a level of care is wrong in one way only."""
    if ask is not Ask.RUBRIC:
        return {"cause": causes(of_criterion=False), "severity": SEVERITIES}
    return {"cause": CAUSES, "severity": SEVERITIES, "error_kind": KINDS}


def answers(ask: Ask) -> dict[Label | Acuity, str]:
    """What can be answered, in the order of its keys, with its words."""
    return {label: WORDS[label] for label in ANSWERS[ask]}


def _places(n: int, does: str) -> Key:
    return Key("", does, f"1 to {n}")


def _answer_keys(ask: Ask) -> tuple[Key, ...]:
    words = answers(ask)
    if ask is Ask.RUBRIC:
        return (Key("", ", ".join(words.values()).lower(), "  ".join(DIGITS[: len(words)])),)
    levels = [label for label in words if label is not Label.CANNOT_ASSESS]
    last = ", and remove" if Acuity.REMOVE in levels else ""
    none = DIGITS[list(words).index(Label.CANNOT_ASSESS)]
    return _places(len(levels), f"levels of care from A to D{last}"), Key("", "cannot assess", none)


def reading_keys(ask: Ask) -> list[Key]:
    """Of the blind read."""
    moves = [Press.NEXT, Press.BACK] if ask is Ask.RUBRIC else []
    rest = [*moves, Press.UNDO, Press.NOTE, Press.GUIDELINE, Press.LOCK, Press.MAP]
    reasons = _places(len(CannotReason), "why it cannot be assessed, once asked")
    return [*_answer_keys(ask), reasons, *(press.value for press in rest)]


def deciding_keys(ask: Ask) -> list[Key]:
    """Of keeping or revising beside the judge's verdict."""
    options = causes_of_error(ask)
    n = max(map(len, options.values()))
    asked = f"{', '.join(name.replace('_', ' ') for name in options)}, once asked"
    rest = (Press.SKIP, Press.REASON_WRONG, Press.DOWN, Press.UP, Press.NOTE, Press.GUIDELINE, Press.ONWARD, Press.MAP)
    return [Press.KEEP.value, Press.REVISE.value, _places(n, asked), *(press.value for press in rest)]


def second_look_keys() -> list[Key]:
    """Of the second look without the judge's verdict."""
    singly = [Key("", words.lower(), DIGITS[place]) for place, words in enumerate(LABELS.values())]
    rest = (Press.DOWN, Press.UP, Press.NOTE, Press.GUIDELINE, Press.MAP)
    return [Key("K", "keep your label"), *singly, *(press.value for press in rest)]


def amending_keys(ask: Ask) -> list[Key]:
    """Of a read that is done."""
    amend = _places(len(ANSWERS[ask]), "amend: another label; what you said before stays in the record")
    rest = (Press.REASON_WRONG, Press.NOTE, Press.MAP)
    return [Press.DOWN.value, Press.UP.value, amend, *(press.value for press in rest)]


def settling_keys(ask: Ask) -> list[Key]:
    """Of adjudication."""
    causes = Key(
        "", "why they differed: slipped, ambiguous, missing context, disagreement, wrong", "  ".join(CONFLICT_KEYS)
    )
    rest = (
        Press.RATIONALE, Press.SETTLE, Press.JUDGE, Press.NEXT, Press.BACK, Press.NEXT_CASE, Press.BACK_CASE, Press.LIST,
        Press.GUIDELINE, Press.MAP,
    )  # fmt: skip
    return [*_answer_keys(ask), causes, *(press.value for press in rest)]


SCREENS = {
    "Review": reading_keys(Ask.RUBRIC),
    "Review, once locked": deciding_keys(Ask.RUBRIC),
    "My reads": amending_keys(Ask.RUBRIC),
    "Adjudicate": settling_keys(Ask.RUBRIC),
}


def listed() -> str:
    """The keys of criteria as the README has them: a line a screen."""
    return "\n".join(
        f"- {screen}: {'; '.join(f'`{key.written or key.press}` {key.does}' for key in keys)}"
        for screen, keys in SCREENS.items()
    )


def choose(
    options: Mapping[Any, str],
    key: str,
    *,
    shortcuts: str = DIGITS,
    disabled: Any = None,
    icons: Mapping[Any, str] | None = None,
    on_click: Any = None,
) -> Any:
    """A button a choice, the first on the first key. Returns the one that was pressed, else None.

    Args:
        options: Choices with their words.
        key: Of the buttons, with `{place}` (from 1) or `{option}`.
        disabled: The choice that cannot be pressed, since it is what stands.
        icons: What stands before the words, by choice.
        on_click: Is called with the choice before the page is drawn anew.
    """
    pressed = None
    for place, (option, words) in enumerate(options.items()):
        if st.button(
            words,
            key=key.format(place=place + 1, option=option),
            shortcut=shortcuts[place],
            disabled=option == disabled,
            icon=icons[option] if icons else None,
            on_click=on_click,
            args=(option,) if on_click else None,
        ):
            pressed = option
    return pressed  # fmt: skip


def step(suffix: str, back: Press, following: Press) -> int:
    """Back and Next. Returns -1, 0 or 1."""
    is_back = st.button("Back", key=f"back{suffix}", shortcut=back.key)
    is_next = st.button("Next", key=f"next{suffix}", shortcut=following.key)
    return int(is_next) - int(is_back)


def note(field: str, stored: str) -> str | None:
    """The field of a note, which holds what is stored until somebody types. Returns what was typed since, else None."""
    if st.session_state.get(field + NOTE_DRAWN) != stored:
        st.session_state[field] = st.session_state[field + NOTE_DRAWN] = stored
    typed = st.text_input(
        "Note", key=field, placeholder="Note (N), saved with Enter", label_visibility="collapsed", max_chars=MAX_NOTE
    ).strip()
    return typed if typed != stored else None


def note_saved(field: str, typed: str) -> None:
    """What was typed is what is stored now: whatever is typed since stays in the field."""
    st.session_state[field + NOTE_DRAWN] = typed


_HTML = """
<div class="live" role="status" aria-live="polite"></div>
<dialog aria-label="Keys"><div><b>Keys</b><button class="close" type="button">Close</button></div><dl></dl>
<p>Shortcuts are off while you type; Escape leaves the note.</p></dialog>
"""
_CSS = """
.live { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
dialog { position: fixed; inset: auto 1.5rem 1.5rem auto; margin: 0; z-index: 1000; width: 23rem; max-height: 80vh; overflow: auto;
  border: 1px solid var(--st-border-color); border-radius: 5px; padding: 0.8rem 1rem; box-shadow: 0 4px 24px rgb(0 0 0 / 18%);
  background: var(--st-background-color); color: var(--st-text-color); font-family: var(--st-font); font-size: 0.95rem; }
dialog > div { display: flex; justify-content: space-between; align-items: baseline; }
button { font: inherit; border: 1px solid var(--st-border-color); border-radius: 4px; background: none; color: inherit;
  cursor: pointer; padding: 0.1rem 0.6rem; }
button:focus-visible { outline: 2px solid var(--st-primary-color); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0.25rem 1rem; margin: 0.6rem 0; }
dt { font-weight: 600; } dd { margin: 0; } p { margin: 0; opacity: 0.8; font-size: 0.88rem; }
"""

_component = st.components.v2.component(
    "overread_keys", html=_HTML, css=_CSS, js=(Path(__file__).parent / "keys.js").read_text(encoding="utf-8")
)


def listen(keys: Sequence[Key], status: str, *, arrows: bool = False) -> int | None:
    """Listen on this page. Returns the row that was just clicked, counted from 0, or None.

    Args:
        keys: The map.
        status: What a screen reader says when it changes.
        arrows: The arrows up and down press the page's buttons `back` and `next`, which have other keys of their own.
    """
    clicked = _component(
        key="keys",
        data={"keys": [[key.written or key.press, key.does] for key in keys], "status": status, "arrows": arrows},
        on_row_change=lambda: None,
    ).row
    return int(clicked) if isinstance(clicked, int | float) else None
