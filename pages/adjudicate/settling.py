"""The right side of Adjudicate: the item in question, its readers, and how it is settled. One key an act."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import streamlit as st

from evalcore.errors import OverreadError
from evalcore.reading import adjudication
from evalcore.reading.adjudication import Case, Key, Question, Settling
from evalcore.reading.desks import MAX_NOTE
from evalcore.study.schema import Acuity, Ask, ConflictCause, Label, Viewer
from evalcore.study.tables import now
from pages.adjudicate import html
from pages.adjudicate.html import CONFLICT_CAUSES
from pages.review.html import keys_hint
from pages.shared import common, keys, suspects
from pages.shared import html as shared_html
from pages.shared.keys import CONFLICT_KEYS, WORDS, Press

GONE = "Somebody else has settled this item meanwhile, or its reads were changed. What stands is kept; the last press was not saved."
CHANGED = "A verdict here has changed since the screen was drawn. It is shown now: look again."
NOTE = "rationale_"
ON, OFF = ":material/radio_button_checked:", ":material/radio_button_unchecked:"


@dataclass
class Draft:
    """What the viewer has said on one item and not settled yet."""

    label: Label | Acuity | None = None
    cause: ConflictCause | None = None
    rationale: str = ""


def case_word(key: Key) -> str:
    """A response or case as the address has it.

    >>> case_word((3, 12)), case_word((3, None))
    ('r12', 'e3')
    """
    return f"e{key[0]}" if key[1] is None else f"r{key[1]}"


def keep_notes() -> None:
    """Take over what stands in the rationale before its field leaves the screen."""
    for name in st.session_state:
        if isinstance(name, str) and name.startswith(NOTE):
            draft = st.session_state.get("draft_" + name.removeprefix(NOTE))
            if draft is not None:
                draft.rationale = st.session_state[name] or ""


@common.fragment
def panel(viewer: Viewer, key: Key, following: Key | None, guideline: str | None) -> None:
    """The items in question on one response or case.

    A fragment: a key redraws this side alone, and the conversation stays as it is.

    Args:
        following: What is opened once all is settled here; None where nothing else waits.
        guideline: Its text, or None.
    """
    try:
        case = adjudication.open_case(common.engine(), viewer, key)
    except OverreadError as error:
        st.html(shared_html.notice(str(error), kind="warning"))
        return
    if not case.questions:
        st.html(
            shared_html.notice(
                "Nothing is in question here any more: it was settled, or its reads were changed. What stands is kept."
            )
        )
        return
    _Settling(viewer, case, following, guideline).draw()


class _Settling:
    def __init__(self, viewer: Viewer, case: Case, following: Key | None, guideline: str | None) -> None:
        self._viewer = viewer
        self._case = case
        self._following = following
        self._guideline = guideline
        self._word = case_word(case.key)
        self._gone = False

    # ---- where the viewer is, and what is said so far

    @property
    def _in_hand(self) -> str:
        return f"settling_in_hand_{self._word}"

    @property
    def _at(self) -> int:
        """Place of the item in hand; kept by its criterion, since others may settle what stands before it."""
        ids = [question.criterion_id for question in self._case.questions]
        if self._in_hand in st.session_state and st.session_state[self._in_hand] in ids:
            return ids.index(st.session_state[self._in_hand])
        still = [place for place, question in enumerate(self._case.questions) if question.settled is None]
        return still[0] if still else 0

    def _go(self, place: int) -> None:
        keep_notes()
        place = max(0, min(place, len(self._case.questions) - 1))
        st.session_state[self._in_hand] = self._case.questions[place].criterion_id

    def _has_gone(self) -> bool:
        """What was in hand when the screen was drawn is in question no more: a press on it must not fall on another item."""
        drawn = st.session_state.get("settling_drawn")
        return (
            drawn is not None
            and drawn[0] == self._word
            and drawn[1] not in [q.criterion_id for q in self._case.questions]
        )

    def _drawn(self, question: Question) -> frozenset[int] | None:
        """The verdicts that the screen showed on this item; None where it was not on the screen."""
        drawn = st.session_state.get("settling_drawn")
        shown: frozenset[int] | None = drawn[2] if drawn and drawn[:2] == (self._word, question.criterion_id) else None
        return shown

    def _item(self, question: Question) -> str:
        return f"{self._word}_{question.criterion_id or 0}"

    def _draft(self, question: Question) -> Draft:
        """Begins with the viewer's own settlement where there is one."""
        name = f"draft_{self._item(question)}"
        if name not in st.session_state:
            st.session_state[name] = self._stored(question)
        draft: Draft = st.session_state[name]
        return draft

    def _stored(self, question: Question) -> Draft:
        if question.settled is None:
            return Draft()
        label, cause = question.settled.label or "", question.settled.conflict_cause
        is_level = question.ask is not Ask.RUBRIC and label != Label.CANNOT_ASSESS
        return Draft(
            Acuity(label) if is_level else Label(label),
            ConflictCause(cause) if cause else None,
            question.settled.explanation or "",
        )

    # ---- what is drawn

    def draw(self) -> None:
        """The item in hand from its reason to its settlement, top to bottom."""
        question = self._case.questions[self._at]
        draft = self._draft(question)
        self._gone = self._has_gone()
        shown = self._drawn(question)
        if self._guideline and st.session_state.get("settling_guideline"):
            st.html(f'<div class="or-guideline" tabindex="0">{shared_html.formatted(self._guideline)}</div>')
        notice = st.session_state.pop("settling_notice", None)
        if self._gone:
            notice = GONE
        elif shown is not None and shown != question.seen:
            notice = notice or CHANGED
        if notice:
            st.html(shared_html.notice(notice, kind="warning"))
        st.html(html.reads(question, self._at, len(self._case.questions)))
        self._judge(question)
        with st.container(key="settling_form"):
            self._labels(question, draft)
            self._causes(question, draft)
            self._rationale(question, draft)
            self._settle(question, draft, shown or frozenset())
        self._moves()
        st.session_state["settling_drawn"] = (self._word, question.criterion_id, question.seen)
        keys.listen(keys.settling_keys(question.ask), self._status(question, draft))

    def _judge(self, question: Question) -> None:
        with st.container(key="settling_judge"):
            if question.has_looked:
                st.html(html.judge(question.judge, question.judged))
                suspects.show(self._case.key[1])
            elif (
                st.button("Show the judge's verdict", key="show_judge", type="tertiary", shortcut=Press.JUDGE.key)
                and not self._gone
            ):
                with common.shown_errors():
                    adjudication.look(common.engine(), self._viewer, self._case.key, question.criterion_id)
                    keep_notes()
                    common.draw_anew()

    def _labels(self, question: Question, draft: Draft) -> None:
        options = keys.answers(question.ask)
        with st.container(horizontal=True, gap="small", key="settling_labels"):
            chosen = partial(self._choose, question, "label")
            keys.choose(options, "settle_{option}", icons=_marked(options, draft.label), on_click=chosen)

    def _causes(self, question: Question, draft: Draft) -> None:
        words = "Why the readers differed" if question.differ else "Why the readers differed, if they did"
        st.html(f'<span class="or-stamp">{shared_html.escaped(words)}</span>')
        with st.container(horizontal=True, gap="small", key="settling_causes"):
            chosen = partial(self._choose, question, "cause")
            icons = _marked(CONFLICT_CAUSES, draft.cause)
            keys.choose(CONFLICT_CAUSES, "because_{option}", shortcuts=CONFLICT_KEYS, icons=icons, on_click=chosen)

    def _choose(self, question: Question, what: str, chosen: Label | Acuity | ConflictCause) -> None:
        """A second press on a cause takes it back."""
        keep_notes()
        draft = self._draft(question)
        is_taken_back = what == "cause" and draft.cause == chosen
        setattr(draft, what, None if is_taken_back else chosen)

    def _rationale(self, question: Question, draft: Draft) -> None:
        name = NOTE + self._item(question)
        if name not in st.session_state:
            st.session_state[name] = draft.rationale
        draft.rationale = (
            st.text_area(
                "Rationale, required (N)", key=name, max_chars=MAX_NOTE, height=96,
                placeholder="Why this label holds. It is kept with the label.",
            )
            or ""
        )  # fmt: skip

    def _settle(self, question: Question, draft: Draft, shown: frozenset[int]) -> None:
        with st.container(horizontal=True, vertical_alignment="center", gap="small", key="settle_row"):
            words = "Correct it" if question.settled else "Settle"
            pressed = st.button(words, key="settle", type="primary", shortcut=Press.SETTLE.key)
            missing = self._missing(question, draft)
            if missing or not pressed:
                st.html(html.missing(missing), width="content")
            if not pressed or self._gone:
                return
        if draft.label is None:
            st.html(shared_html.notice("Say first what the label is.", kind="warning"))
            return
        if draft == self._stored(question):
            st.html(shared_html.notice("This is what you have settled already: nothing was changed."))
            return
        item = Settling(question.criterion_id, draft.label, draft.cause, draft.rationale, shown)
        try:
            if not common.saved(lambda: adjudication.settle(common.engine(), self._viewer, self._case.key, [item])):
                return
        except OverreadError as error:
            st.session_state["settling_notice"] = str(error)
            st.session_state["settling_drawn"] = (self._word, question.criterion_id, question.seen)
            common.draw_anew()
        st.session_state["settling_saved"] = f"saved {common.local_time(now())[11:]}"
        for name in (f"draft_{self._item(question)}", "settling_drawn"):
            st.session_state.pop(name, None)
        self._on()

    def _missing(self, question: Question, draft: Draft) -> list[str]:
        wanted = {"a label": draft.label is None, "why they differed": question.differ and draft.cause is None}
        return [words for words, is_missing in wanted.items() if is_missing]

    def _on(self) -> None:
        """The next item that is not settled, here or on the next response; else the list."""
        questions = self._case.questions
        order = [*range(self._at + 1, len(questions)), *range(self._at)]
        still = [place for place in order if questions[place].settled is None]
        if still:
            st.session_state[self._in_hand] = questions[still[0]].criterion_id
        elif self._following is not None:
            st.query_params["case"] = case_word(self._following)
        else:
            st.query_params.pop("case", None)
        st.rerun()

    def _moves(self) -> None:
        with st.container(horizontal=True, gap="small", key="settling_moves"):
            if len(self._case.questions) > 1:
                moves = {Press.BACK: ("Back", -1), Press.UP: ("↑", -1), Press.NEXT: ("Next", 1), Press.DOWN: ("↓", 1)}
                for press, (words, step) in moves.items():
                    st.button(
                        words, key=f"move_{press.key}", shortcut=press.key, on_click=self._go, args=(self._at + step,)
                    )
            if self._guideline:
                st.button("Guideline", key="settling_guide", shortcut=Press.GUIDELINE.key, on_click=_toggle_guideline)
            st.html(keys_hint(), width="content")

    def _status(self, question: Question, draft: Draft) -> str:
        said = [WORDS[draft.label]] if draft.label else []
        said += [CONFLICT_CAUSES[draft.cause]] if draft.cause else []
        missing = self._missing(question, draft)
        still = f"Still needed: {', '.join(missing)}." if missing else "Ready to settle."
        return f"Item {self._at + 1} of {len(self._case.questions)}. {'. '.join([*said, still])}"


def _marked(options: Iterable[Any], chosen: object) -> dict[Any, str]:
    return {option: ON if option == chosen else OFF for option in options}


def _toggle_guideline() -> None:
    keep_notes()
    st.session_state["settling_guideline"] = not st.session_state.get("settling_guideline", False)
