"""The right side of Adjudicate: the item in question, its readers, and how it is settled. One key an act."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import streamlit as st

from evalcore.errors import OverreadError
from evalcore.reading import adjudication
from evalcore.reading.adjudication import Case, Question, Settling
from evalcore.reading.conflicts import SENTENCES, Key, Reason
from evalcore.reading.queries import Given
from evalcore.reading.quoting import Selected, with_quotation
from evalcore.reading.reviewing import MAX_NOTE
from evalcore.study.schema import Acuity, Ask, ConflictCause, Stage, Viewer
from evalcore.study.tables import now
from pages.review.html import KEYS_HINT, QUESTIONS, QUOTE, line, rows, stamp
from pages.review.panels import ItemPanel, draw_guideline, refusal
from pages.shared import common, html, keys, suspects
from pages.shared.keys import ANSWERS, CONFLICT_CAUSES, CONFLICT_KEYS, REASONS, WORDS, Panel, Press, error_words

GONE = "Somebody else has settled this item meanwhile, or its reads were changed. What stands is kept; the last press was not saved."
NOT_IN_QUESTION = (
    "Nothing is in question here any more: it was settled, or its reads were changed. What stands is kept."
)
CHANGED = "A verdict here has changed since the screen was drawn. It is shown now: look again."
NOTE = "rationale_"
ON, OFF = ":material/radio_button_checked:", ":material/radio_button_unchecked:"


@dataclass
class Draft:
    """What the viewer has said on one item and not settled yet."""

    label: str | None = None
    cause: ConflictCause | None = None
    rationale: str = ""


def case_word(key: Key) -> str:
    """A response or case as the address has it."""
    return f"e{key[0]}" if key[1] is None else f"r{key[1]}"


def keep_notes() -> None:
    """Take over what stands in the rationale before its field leaves the screen."""
    for name in st.session_state:
        if isinstance(name, str) and name.startswith(NOTE):
            draft = st.session_state.get("draft_" + name.removeprefix(NOTE))
            if draft is not None:
                draft.rationale = st.session_state[name] or ""


def opened(viewer: Viewer, key: Key) -> Case:
    """The case, read once a run for the page and its panel; anew when the panel runs by itself, or something was saved."""
    return common.once(("case", key), lambda _: adjudication.open_case(common.engine(), viewer, key))


@common.fragment
def panel(viewer: Viewer, key: Key, following: Key | None, guideline: str | None) -> None:
    """The items in question on one response or case; `following` is opened once all is settled here. A key redraws this side alone."""
    try:
        case = opened(viewer, key)
    except OverreadError as error:
        st.html(html.notice(str(error), kind="warning"))
        return
    if not case.questions:
        st.html(html.notice(NOT_IN_QUESTION))
        return
    _Adjudicating(viewer, case, following, guideline).draw()


class _Adjudicating(ItemPanel):
    panel = Panel.ADJUDICATE

    def __init__(self, viewer: Viewer, case: Case, following: Key | None, guideline: str | None) -> None:
        self.number = case_word(case.key)
        self.keys = [question.criterion_id for question in case.questions]
        self.viewer, self._case, self._following, self._guideline = viewer, case, following, guideline
        question = case.questions[self.at]
        self._question = question
        self._item = f"{self.number}_{question.criterion_id or 0}"
        self._draft: Draft = st.session_state.setdefault(f"draft_{self._item}", self._stored())
        drawn_in, drawn_item, drawn_verdicts = st.session_state.get("settling_drawn") or (None, None, None)
        # what was in hand when the screen was drawn is in question no more: a press on it must not fall on another item
        self._gone = drawn_in == self.number and drawn_item not in self.keys
        is_this = (drawn_in, drawn_item) == (self.number, question.criterion_id)
        self._shown: frozenset[int] | None = drawn_verdicts if is_this else None

    def _start(self) -> int:
        return self.next_open([q.criterion_id for q in self._case.questions if q.settled is None], -1)

    def _stored(self) -> Draft:
        settled = self._question.settled
        if settled is None:
            return Draft()
        return Draft(settled.label, settled.conflict_cause, settled.explanation or "")

    def _move(self, by: int) -> None:
        keep_notes()
        self.go(self.at + by)

    def draw(self) -> None:
        """The item in hand from its reason to its settlement, top to bottom."""
        question = self._question
        if self._guideline and st.session_state.get("settling_guideline"):
            draw_guideline(self._guideline)
        is_changed = self._shown is not None and self._shown != question.seen
        refusal(GONE if self._gone else CHANGED if is_changed else None)
        if len(self.keys) > 1:
            drafts = [st.session_state.get(f"draft_{self.number}_{key or 0}") for key in self.keys]
            st.html(all_items(self._case.questions, drafts, self.at))
        st.html(item_reads(question, self.at, len(self.keys)))
        self._judge()
        with st.container(key="settling_form"):
            is_scale = question.ask is not Ask.RUBRIC
            key = "settling_scale" if is_scale else "settling_labels"
            with st.container(horizontal=not is_scale, gap="small", key=key):
                self._choices(ANSWERS[question.ask], "settle_{option}", "label")
            st.html(stamp("Why the readers differed" + ("" if question.differ else ", if they did")))
            with st.container(horizontal=True, gap="small", key="settling_causes"):
                self._choices(CONFLICT_KEYS, "because_{option}", "cause")
            name = NOTE + self._item
            if name not in st.session_state:
                st.session_state[name] = self._draft.rationale
            said = st.text_area(
                "Rationale, required", key=name, max_chars=MAX_NOTE, height=96, placeholder="Why this label holds. It is kept with the label."
            )  # fmt: skip
            self._draft.rationale = said or ""
            self._settle()
        with st.container(horizontal=True, gap="small", key="settling_moves"):
            if len(self.keys) > 1:
                keys.step("_settling", move=self._move)
            if self._guideline:
                keys.press(Press.GUIDELINE, "Guideline", "settling_guide", on_click=_toggle_guideline)
            if self._case.material.response is not None:
                st.html(QUOTE, width="content")
            st.html(KEYS_HINT, width="content")
        st.session_state["settling_drawn"] = (self.number, question.criterion_id, question.seen)
        absent = {Press.JUDGE} if question.has_looked else set()
        absent |= set() if self._guideline else {Press.GUIDELINE}
        heard = keys.listen(self.panel, question.ask, self._status(), absent=absent)
        if heard.quoted is not None:
            self._quote(heard.quoted, self.at if heard.row is None else heard.row)
        elif heard.row is not None and heard.row != self.at:
            self._move(heard.row - self.at)
            common.draw_anew()

    def _judge(self) -> None:
        with st.container(key="settling_judge"):
            if self._question.has_looked:
                st.html(judge_verdict(self._question.judge, self._question.judged))
                suspects.show(self._case.key[1])
            elif keys.press(Press.JUDGE, "Show the judge's verdict", "show_judge", type="tertiary") and not self._gone:
                with common.shown_errors():
                    adjudication.look(common.engine(), self.viewer, self._case.key, self.key)
                    keep_notes()
                    # what is shown from now on was asked for: nothing has changed under the screen
                    st.session_state.pop("settling_drawn", None)
                    common.draw_anew()

    def _choices(self, choices: keys.Choices, key: str, what: str) -> None:
        chosen = getattr(self._draft, what)
        press = partial(self._choose, what)
        keys.choose(choices, key, icon=lambda option: ON if option == chosen else OFF, on_click=press)

    def _choose(self, what: str, chosen: Any) -> None:
        keep_notes()
        is_taken_back = what == "cause" and self._draft.cause == chosen
        setattr(self._draft, what, None if is_taken_back else chosen)

    def _quote(self, selected: Selected, place: int) -> None:
        said = self.quotation(self._case.material.response, selected)
        item = f"{self.number}_{self.keys[max(0, min(place, len(self.keys) - 1))] or 0}"
        draft: Draft = st.session_state.get(f"draft_{item}", self._draft)
        draft.rationale = with_quotation(draft.rationale, said)
        st.session_state.pop(NOTE + item, None)  # its field is drawn anew with what the draft says
        common.draw_anew()

    def _missing(self) -> list[str]:
        is_unexplained = self._question.differ and self._draft.cause is None
        missing = {"a label": self._draft.label is None, "why they differed": is_unexplained}
        missing["the rationale"] = not self._draft.rationale.strip()
        return [what for what, is_missing in missing.items() if is_missing]

    def _settle(self) -> None:
        draft = self._draft
        with st.container(horizontal=True, vertical_alignment="center", gap="small", key="settle_row"):
            words = "Correct it" if self._question.settled else "Settle"
            pressed = keys.press(Press.SETTLE, words, "settle", type="primary")
            missing = self._missing()
            if missing or not pressed:
                st.html(stamp("still needed: " + ", ".join(missing) if missing else ""), width="content")
            if not pressed or self._gone:
                return
        if draft.label is None:
            st.html(html.notice("Say first what the label is.", kind="warning"))
            return
        if draft == self._stored():
            st.html(html.notice("This is what you have settled already: nothing was changed."))
            return
        drawn = st.session_state.get("settling_drawn")
        st.session_state["settling_drawn"] = (self.number, self.key, self._question.seen)
        item = Settling(self.key, draft.label, draft.cause, draft.rationale, self._shown or frozenset())
        if not self.act(adjudication.settle, self._case.key, [item]):
            st.session_state["settling_drawn"] = drawn
            return
        st.session_state["settling_saved"] = f"saved {common.local_time(now())[11:]}"
        for name in (f"draft_{self._item}", "settling_drawn"):
            st.session_state.pop(name, None)
        self._on()

    def _on(self) -> None:
        following = self.next_open([q.criterion_id for q in self._case.questions if q.settled is None], self.at)
        if following != self.at:
            self.go(following)
        elif self._following is not None:
            st.query_params["case"] = case_word(self._following)
        else:
            st.query_params.pop("case", None)
        st.rerun()

    def _status(self) -> str:
        said = [WORDS[self._draft.label]] if self._draft.label else []
        said += [CONFLICT_CAUSES[self._draft.cause]] if self._draft.cause else []
        missing = self._missing()
        still = f"Still needed: {', '.join(missing)}." if missing else "Ready to settle."
        return f"Item {self.at + 1} of {len(self.keys)}. {'. '.join([*said, still])}"


def _toggle_guideline() -> None:
    keep_notes()
    st.session_state["settling_guideline"] = not st.session_state.get("settling_guideline", False)


def all_items(questions: Sequence[Question], drafts: Sequence[Draft | None], at: int) -> str:
    """Every item in question on the response, in one list: what the readers say, and how far its settlement is. A click takes one in hand."""
    lines = []
    for place, (question, draft) in enumerate(zip(questions, drafts, strict=True)):
        said = "".join(_label(reader.said[0].label) for reader in question.readers)
        state = "settled" if question.settled else "begun" if draft and draft != Draft() else ""
        item = question.criterion
        number, words = (item.position, item.text) if item else ("", QUESTIONS[question.ask])
        lines.append(line(number, words, f"{said}<small>{state}</small>", place=place, is_current=place == at))
    return rows(lines, range(len(lines)), {}, " or-brief")


def item_reads(question: Question, place: int, n_questions: int) -> str:
    """The item in hand, why it is in question, and what each reader says on it, without names. One element, so that the next one begins at its top."""
    number = f"<b>Item {place + 1} of {n_questions}</b>" if n_questions > 1 else ""
    why = "".join(f"<span>{html.escaped(SENTENCES[Reason(reason)])}</span>" for reason in question.reasons)
    settled = "<span>You have settled this</span>" if question.settled else ""
    item = question.criterion
    if item is None:
        asked = f'<p class="or-asked">{html.escaped(QUESTIONS[question.ask])}</p>'
    else:
        tags = [tag.replace("_", " ") for tag in (item.axis, item.cluster and "consensus") if tag]
        asked = html.criterion(item.position, item.text, item.points, tags)
    readers = "".join(
        f'<div class="or-reader"><h3>Reader {reader.number}</h3>'
        f"{''.join(_said(said, before) for said, before in zip(reader.said, (None, *reader.said), strict=False))}</div>"
        for reader in question.readers
    )
    head = f'<div class="or-why-here">{number}{why}{settled}</div>'
    return f'<div class="or-case-reads" tabindex="0">{head}{asked}<div class="or-readers">{readers}</div></div>'


def _said(said: Given, before: Given | None) -> str:
    words = [] if said.stage is Stage.FIRST else [html.STAGES[said.stage]]
    if said.stage is Stage.REVISED and before is not None and before.label == said.label:
        words = ["kept after the judge was shown"]
    if said.reason:
        words.append(REASONS[said.reason].lower())
    words += error_words(said.cause, said.severity, said.error_kind)
    if said.right_for_wrong_reason:
        words.append("right label, wrong reasoning")
    about = f"<small>{html.escaped(' · '.join(words))}</small>" if words else ""
    note = f'<div class="or-why">{html.verbatim(said.explanation)}</div>' if said.explanation else ""
    return f'<div class="or-verdict or-read"><div>{_label(said.label)} {about}</div>{note}</div>'


def judge_verdict(name: str | None, judged: Given | None) -> str:
    """The judge's verdict, once it was asked for."""
    if name is None or judged is None:
        return '<div class="or-verdict or-stamp">No judge has labelled this.</div>'
    why = html.verbatim(judged.explanation) if judged.explanation else "no explanation given"
    none = "" if judged.explanation else " or-none"
    return (
        f'<div class="or-verdict or-judge"><div><span class="or-who">The judge, <span dir="auto">{html.escaped(name)}</span></span> '
        f'{_label(judged.label)}</div><div class="or-why{none}">{why}</div></div>'
    )


def _label(value: str | None) -> str:
    if value and value in set(Acuity):
        return f'<span class="or-label or-level">{html.escaped(WORDS[value])}</span>'
    return html.label(value)
