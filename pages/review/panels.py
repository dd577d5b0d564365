"""The panels of a review: a list of items with one in hand, its answers beside it; the blind read first, then beside the judge."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from evalcore.errors import OverreadError
from evalcore.judges.record import record_for, sentence
from evalcore.reading import queries, reviewing, threads
from evalcore.reading.queries import Draft
from evalcore.reading.quoting import Selected, quotation, with_quotation
from evalcore.reading.reviewing import MAX_NOTE, Decision, OpenReview
from evalcore.stats.wording import counted
from evalcore.study.db import Engine, reading
from evalcore.study.schema import Ask, CannotReason, Cause, Label, ReadingState, Severity, Viewer
from evalcore.study.tables import now
from pages.review import html, telling
from pages.review.html import KEYS_HINT, QUOTE, stamp
from pages.shared import common, html as shared_html, keys
from pages.shared.keys import ANSWERS, REASON_KEYS, REASONS, WORDS, Group, Panel, Press

_REFUSED, SLIPPING = "panel_notice", "slipping"
CHOSEN = ":material/check:"
DETAILS: Mapping[str, tuple[Group, str]] = {
    "reason": (Group.REASONS, "Why can it not be assessed?"),
    "cause": (Group.CAUSES, "Optional: why does the judge differ?"),
    "severity": (Group.SEVERITIES, "Optional: how bad is the judge's error?"),
    "error_kind": (Group.KINDS, "Optional: in the judge's reasoning"),
}


def draw_guideline(guideline: str) -> None:
    """What readers are told."""
    st.html(f'<div class="or-guideline" tabindex="0">{shared_html.formatted(guideline)}</div>')


def refusal(other: str | None = None) -> None:
    """Why the last press was refused, else what is to be said instead; in view wherever one has scrolled to."""
    if said := st.session_state.pop(_REFUSED, other):
        with st.container(key="refused"):
            st.html(shared_html.notice(said, kind="warning"))


def row(key: str) -> DeltaGenerator:
    """A line of buttons."""
    return st.container(horizontal=True, vertical_alignment="center", gap="small", key=key)


class ItemPanel:
    """Items with one in hand: where the viewer is, what a press does, and what is said where it is refused."""

    panel: Panel
    viewer: Viewer
    number: int | str
    keys: Sequence[int | None]

    @property
    def _in_hand(self) -> str:
        return f"in_hand_{self.panel.name}_{self.number}"

    def _start(self) -> int:
        return 0

    @property
    def at(self) -> int:
        """Place of the item in hand; kept by its criterion, since others may settle what stands before it."""
        if self._in_hand in st.session_state and st.session_state[self._in_hand] in self.keys:
            return self.keys.index(st.session_state[self._in_hand])
        return max(0, min(self._start(), len(self.keys) - 1))

    @property
    def key(self) -> int | None:
        """The item in hand."""
        return self.keys[self.at]

    def go(self, place: int) -> None:
        """Take another item in hand."""
        st.session_state[self._in_hand] = self.keys[max(0, min(place, len(self.keys) - 1))]

    def next_open(self, waiting: Collection[int | None], after: int) -> int:
        """The place of the next of these items behind another, and round; the same place where there is no other."""
        order = [*range(after + 1, len(self.keys)), *range(max(after, 0))]
        return next((place for place in order if self.keys[place] in waiting), max(after, 0))

    def act(self, act: Callable[..., object], *what: Any, **how: Any) -> bool:
        """Do it as the viewer; a refusal is a sentence, and the newer state is shown. Returns whether it was saved."""
        try:
            return common.saved(lambda: act(common.engine(), self.viewer, *what, **how))
        except OverreadError as error:
            self._refuse(error)

    def quotation(self, response: str | None, selected: Selected) -> str:
        """The words that were selected in the response, with their place."""
        try:
            return quotation(response or "", selected)
        except OverreadError as error:
            self._refuse(error)

    @staticmethod
    def _refuse(error: OverreadError) -> NoReturn:
        st.session_state[_REFUSED] = str(error)
        st.rerun()


class ListPanel(ItemPanel):
    """The items as one list, with the answers under the one in hand. One run of the fragment a press: buttons come first in the script, and the list after."""

    number: int
    kind = ""  # of the list, as the style calls it
    _moves: Callable[[], None]
    _answers: Callable[[], bool]  # whether a press asks for other answers than were drawn
    _lines: Callable[[], list[str]]
    _stored_note: Callable[[], str | None]  # of the item in hand; None: there is no place for a note
    _save_note: Callable[[str], None]

    def __init__(self, viewer: Viewer, desk: OpenReview, guideline: str | None = None) -> None:
        self.viewer, self.desk, self.guideline = viewer, desk, guideline
        self.number = desk.reading.id or 0
        self.ask = desk.asked.ask
        self.keys: Sequence[int | None] = desk.keys
        self.said = ""

    def draw(self) -> None:
        """The list, and below it the keys. What moves or answers runs before what shows where the reader is."""
        drawn = st.session_state.get(f"{self._field}_drawn")
        typed = str(st.session_state.get(self._field, "")).strip()
        if self._field in st.session_state and drawn is not None and drawn[0] == self.key and typed != drawn[1]:
            self._save_note(typed)
        self._replay()
        heard = keys.heard()
        if heard.quoted is not None:
            self._quote(heard.quoted, self.at if heard.row is None else heard.row)
        elif heard.row is not None and heard.row != self.at:
            self.go(heard.row)
        with st.container(key="rows"):
            above, answers_place, below = st.container(), st.container(key="answers"), st.container()
        with st.container(key="bar"):
            with row("moves"):
                self._moves()
            with answers_place:
                asks_anew = self._answers()
            if asks_anew and not common.has_failed():
                common.draw_anew()
            self._list(above, below)
            with answers_place:
                self._note()
            self._last_row()
        status = f"{self.said}Item {self.at + 1} of {len(self.keys)} is in hand."
        keys.listen(self.panel, self.ask, status, self._answering(), absent=self._absent)
        if asks_anew:  # that failed: only now, since a field that is not drawn in a run loses what is typed in it
            common.draw_anew()

    @property
    def _absent(self) -> set[Press]:
        """Keys of the panel that it does not have at the moment, which its map leaves out."""
        return set() if self.guideline else {Press.GUIDELINE}

    def _replay(self) -> None:
        """What was pressed since the last run and is drawn already, where the browser may draw it."""

    def _answering(self) -> Mapping[str, Any] | None:
        return None

    def _list(self, above: DeltaGenerator, below: DeltaGenerator) -> None:
        if self.guideline and st.session_state.get("guideline_open"):
            with above:
                draw_guideline(self.guideline)
            return
        lines, heads, after = self._lines(), self._heads(), self.at + 1
        above.html(html.rows(lines, range(after), heads, self.kind))
        if after < len(lines):
            below.html(html.rows(lines, range(after, len(lines)), heads, self.kind))

    def _heads(self) -> dict[int, str]:
        return {}

    def labels(self, disabled: str | None = None) -> Any:
        """The answers to what is asked: labels in a row, or levels as a scale. Returns the one that was pressed."""
        with row("labels") if self.ask is Ask.RUBRIC else st.container(key="scale"):
            # the reading stands in the key: a press on a screen that was still showing the last item falls on nothing
            return keys.choose(ANSWERS[self.ask], f"answer_{{press}}_{self.number}", disabled=disabled)

    def _last_row(self) -> None:
        st.html(KEYS_HINT, width="content")

    def guideline_button(self) -> None:
        """Opens what readers are told in the place of the list, and closes it."""
        if self.guideline and keys.press(Press.GUIDELINE, "Guideline", "guideline"):
            st.session_state["guideline_open"] = not st.session_state.get("guideline_open", False)

    # ---- the note: one field for all items, since the browser takes long to make a new one; but a new one once something is quoted, since the next press may
    # still bring what stood in the field before

    @property
    def _field(self) -> str:
        return f"note_{self.number}_{self.panel.name}_{st.session_state.get('n_quoted', 0)}"

    def _note(self) -> None:
        stored = self._stored_note()
        if stored is None:
            return
        if self._field not in st.session_state or st.session_state.get(f"{self._field}_drawn") != (self.key, stored):
            st.session_state[self._field] = stored
            st.session_state[f"{self._field}_drawn"] = self.key, stored
        with row("quoting"):
            st.text_input(
                "Note",
                key=self._field,
                placeholder="Note, saved with Enter",
                label_visibility="collapsed",
                max_chars=MAX_NOTE,
                disabled=common.drawn_frozen(),
            )
            if self.desk.material.response is not None and not common.drawn_frozen():
                st.html(QUOTE, width="content")

    def _quote(self, selected: Selected, place: int) -> None:
        """Into the note of the item that was in hand on the screen; a mark of the same moment is kept, and what it took in hand."""
        said, in_hand = self.quotation(self.desk.material.response, selected), self.at
        self.go(place)
        note = self._stored_note()
        if note is not None:
            self._save_note(with_quotation(note, said))
            st.session_state["n_quoted"] = st.session_state.get("n_quoted", 0) + 1
        self.go(in_hand)


@common.fragment
def panel(viewer: Viewer, desk: OpenReview, guideline: str | None, *, names_model: bool) -> None:
    """The right side of a read: one key a criterion, every mark stored at once; once it is locked, one key a decision, where the judge differs."""
    if desk.state is ReadingState.READING:
        Marking(viewer, desk, guideline, names_model=names_model).draw()
        return
    now_locked = desk
    if common.runs_alone():  # what the browser holds of this read may be older than the last press
        now_locked = reviewing.open_review(common.engine(), viewer, desk.reading.id or 0, known=desk.material)
    if now_locked.state is ReadingState.LOCKED or (is_slipping(desk.reading.id) and not now_locked.judged):
        _Locked(viewer, now_locked, guideline).draw()
    else:
        _Revealing(viewer, now_locked, guideline).draw()


def is_slipping(reading_id: int | None) -> bool:
    """Whether the reader said on this screen that an answer of this read was a slip, and has not given the other one yet."""
    return reading_id is not None and st.session_state.get(SLIPPING) == reading_id


def slip_line(viewer: Viewer) -> bool:
    """What was locked last, with the key for a slip, where no judge is to be shown on it and nothing was answered since. Returns whether that is so."""
    last = common.ask(queries.last_read, viewer.person_id)
    if last is None:
        return False
    with row("slip_row"):
        st.html(stamp(f"{html.locked_words(reviewing.open_review(common.engine(), viewer, last))}."), width="content")
        if keys.press(Press.SLIP, "I slipped", f"slip_{last}"):
            st.session_state[SLIPPING] = last
            st.rerun()
    return True


class Marking(ListPanel):
    """The blind read: one key a criterion. Where its marks go is in `_load`, `_save` and `_undo`: a practice read keeps them to itself."""

    panel = Panel.MARK
    _offers_slip = False

    def __init__(self, viewer: Viewer, desk: OpenReview, guideline: str | None, *, names_model: bool) -> None:
        super().__init__(viewer, desk, guideline)
        self._names_model = names_model
        self._saved_at = desk.reading.last_at
        self._drafts: dict[int | None, Draft] = {}
        self._load()

    def _load(self) -> None:
        with reading(common.engine()) as session:
            self._drafts = queries.drafts(session, self.number)

    @property
    def _draft(self) -> Draft:
        return self._drafts.get(self.key) or Draft(None, None, None)

    def _start(self) -> int:
        return self.desk.reading.place  # where the reader was when the connection was lost

    def go(self, place: int) -> None:
        """Take another item in hand; where one is, is stored too."""
        place = max(0, min(place, len(self.keys) - 1))
        if place != self.at and (common.drawn_frozen() or self.act(reviewing.move, self.number, place)):
            super().go(place)

    def _save(self, draft: Draft, *, then: int) -> bool:
        at = now()
        how: Any = {"reason": draft.reason, "note": draft.note, "then": then, "at": at}
        is_saved = self.act(reviewing.mark, self.number, self.key, draft.label, **how)
        if is_saved:
            self._saved_at = at
            self._drafts[self.key] = draft
            super().go(then)
        return is_saved

    def _stored_note(self) -> str:
        return self._draft.note or ""

    def _save_note(self, note: str) -> None:
        self._save(Draft(self._draft.label, self._draft.reason, note or None), then=self.at)

    def _moves(self) -> None:
        if len(self.keys) > 1:
            self.go(self.at + keys.step(f"_{self.number}"))
        if keys.press(Press.UNDO, "Undo", f"undo_{self.number}") and self.act(self._undo):
            self._load()
            self.said = "Undone. "
        self.guideline_button()

    def _undo(self, engine: Engine, viewer: Viewer) -> None:
        super().go(self.keys.index(reviewing.undo_mark(engine, viewer, self.number)))

    def _answers(self) -> bool:
        if label := self.labels():
            self._mark(Draft(label, None, self._draft.note))
        if self._draft.label != Label.CANNOT_ASSESS:
            return False
        with row("reasons"):
            st.html(stamp("Why?"), width="content")
            reason = keys.choose(REASON_KEYS, f"reason_{{option}}_{self.number}", disabled=self._draft.reason)
        return reason is not None and self._mark(Draft(Label.CANNOT_ASSESS, reason, self._draft.note))

    def _answering(self) -> Mapping[str, Any] | None:
        is_drawn = self.ask is Ask.RUBRIC and not common.drawn_frozen()
        return keys.answering(str(self.number), self.at) if is_drawn else None

    def _replay(self) -> None:
        for answer in keys.pressed(str(self.number)) if self.ask is Ask.RUBRIC else ():
            if not 0 <= answer.row < len(self.keys):
                continue
            if answer.key not in (*ANSWERS[self.ask], *REASON_KEYS):
                self.go(answer.to)
                continue
            ItemPanel.go(self, answer.row)
            if answer.key in ANSWERS[self.ask]:
                self._mark(Draft(ANSWERS[self.ask][answer.key][0], None, self._draft.note))
            elif self._draft.label == Label.CANNOT_ASSESS:
                self._mark(Draft(Label.CANNOT_ASSESS, REASON_KEYS[answer.key][0], self._draft.note))

    def _mark(self, draft: Draft) -> bool:
        place, is_asked = self.at, draft.label == Label.CANNOT_ASSESS and draft.reason is None
        then = place if is_asked else self.next_open(reviewing.missing(list(self.keys), self._drafts), place)
        is_saved = self._save(draft, then=then)
        if is_saved:
            self.said = (
                f"Item {place + 1}: {WORDS[draft.label or '']}{', ' + REASONS[draft.reason] if draft.reason else ''}. "
            )
        return is_saved

    def _lines(self) -> list[str]:
        at = self.at
        return [
            html.marked(self.desk, key, self._drafts.get(key), place=place, is_current=place == at)
            for place, key in enumerate(self.keys)
        ]

    def _last_row(self) -> None:
        if telling.is_open(self.number):
            told = telling.form(self.number)
            if told is not None and self.act(threads.tell, self.number, told.line, skip=told.skip):
                telling.done(self.number, told, html.item_word(self.ask))
                st.rerun()
        else:
            self._submit_row()
        with row("model_row"):
            if self.desk.asked.response_id is not None:  # asked of every response, since style may tell its model too
                key = f"knows_model_{self.number}"
                st.checkbox("I know which model this is", key=key, disabled=common.drawn_frozen())
                if self._names_model:
                    st.html(stamp("The text may name the model that wrote it."), width="content")
            telling.button(self.number)
        self._offers_slip = not self._drafts and slip_line(self.viewer)

    @property
    def _absent(self) -> set[Press]:
        return super()._absent | (set() if self._offers_slip else {Press.SLIP})

    def _submit_row(self) -> None:
        n_missing, n = len(reviewing.missing(list(self.keys), self._drafts)), len(self.keys)
        with row("last_row"):
            name, is_off = f"submit_{self.number}", bool(n_missing)
            pressed = keys.press(Press.LOCK, "Submit and lock", name, type="primary", disabled=is_off)
            knows = bool(st.session_state.get(f"knows_model_{self.number}", False))
            if pressed and self.act(reviewing.submit, self.number, knows_model=knows):
                st.rerun()
            saved = f", saved {common.local_time(self._saved_at)[11:]}" if self._drafts else ""
            st.html(stamp(f"{n - n_missing} of {n} answered{saved}"), width="content")
            super()._last_row()


class _Locked(ListPanel):
    """What was locked, and nothing of the judge: to be shown the judge, or to say that an answer was a slip and give the other one."""

    panel = Panel.LOCKED
    kind = " or-compared"

    @property
    def _is_slipping(self) -> bool:
        return is_slipping(self.number)

    @property
    def _absent(self) -> set[Press]:
        return super()._absent | (set() if self.desk.state is ReadingState.LOCKED else {Press.REVEAL})

    def _moves(self) -> None:
        if self._is_slipping and len(self.keys) > 1:
            self.go(self.at + keys.step(f"_{self.number}"))
        self.guideline_button()

    def _answers(self) -> bool:
        if not self._is_slipping:
            return False
        stands, asks_why = self.desk.first[self.key], f"slip_why_{self.number}"
        label = self.labels(disabled=None if stands.label == Label.CANNOT_ASSESS else stands.label)
        if label is not None and label != Label.CANNOT_ASSESS:
            return self._slip(label)
        if label is not None:
            st.session_state[asks_why] = self.key
        if st.session_state.get(asks_why, "") != self.key:
            return False
        with row("reasons"):
            st.html(stamp("Why?"), width="content")
            reason = keys.choose(REASON_KEYS, f"reason_{{option}}_{self.number}", disabled=stands.reason)
        return reason is not None and self._slip(Label.CANNOT_ASSESS, reason)

    def _slip(self, label: str, reason: CannotReason | None = None) -> bool:
        seen = self.desk.first[self.key].verdict_id
        if self.act(reviewing.slip, self.number, self.key, label, reason=reason, seen=seen):
            self._leave()
        return True

    def _leave(self) -> None:
        """The other answer was given, or none: as before the slip, or the next response where nothing is to be shown on this one."""
        st.session_state.pop(f"slip_why_{self.number}", None)
        st.session_state.pop(SLIPPING, None)
        st.rerun()

    def _stored_note(self) -> None:
        return None  # the note stays as it was locked

    def _lines(self) -> list[str]:
        return [
            html.compared(
                self.desk,
                key,
                {"you": self.desk.first[key].label, "slip": self.desk.slipped.get(key)},
                "",
                place=place,
                is_current=self._is_slipping and place == self.at,
            )
            for place, key in enumerate(self.keys)
        ]

    def _last_row(self) -> None:
        st.html(html.locked(self.desk, is_slipping=self._is_slipping))
        with row("last_row"):
            waits, name = self.desk.state is ReadingState.LOCKED, f"go_on_{self.number}"
            pressed = waits and keys.press(Press.REVEAL, "Show the judge", name, type="primary")
            if pressed and self.act(reviewing.reveal, self.number):
                shown = reviewing.open_review(common.engine(), self.viewer, self.number, known=self.desk.material)
                if shown.state is ReadingState.DONE:
                    n_locked = common.ask(queries.n_locked, self.viewer)
                    agreed = "; you and the judge agreed on everything" if {*self.keys} <= {*shown.judged} else ""
                    st.session_state["review_done"] = f"{html.item_word(self.ask)} {n_locked:,} is locked{agreed}"
                self._leave()
            words = "No slip" if self._is_slipping else "I slipped"
            if keys.press(Press.SLIP, words, f"slip_{self.number}"):
                if self._is_slipping:
                    self._leave()
                st.session_state[SLIPPING] = self.number
                st.rerun()
            super()._last_row()


class DecidingPanel(ListPanel):
    """What was said of each item of a locked read, and saying more: each a new verdict."""

    def decide(self, decision: Decision) -> bool:
        """Say this of the item in hand. Returns whether it was saved."""
        before = self.desk.decided.get(self.key)
        seen = before.verdict_id if before else None
        is_saved = self.act(reviewing.revise, self.number, self.key, decision, seen=seen)
        if is_saved:
            self.desk = reviewing.open_review(common.engine(), self.viewer, self.number, known=self.desk.material)
        return is_saved

    def standing(self) -> Decision:
        """What stands on the item in hand, to be said again with something changed."""
        given = self.desk.decided.get(self.key)
        if given is None:
            return Decision(self.desk.first[self.key].label or "")
        names = ("cause", "severity", "error_kind", "right_for_wrong_reason", "reason")
        same: Any = {name: getattr(given, name) for name in names}
        return Decision(given.label or "", note=given.explanation or "", **same)

    def _stored_note(self) -> str | None:
        return self.standing().note

    def _save_note(self, note: str) -> None:
        self.decide(replace(self.standing(), note=note))

    def _moves(self) -> None:
        if len(self.keys) > 1 and (moved := keys.step(f"_{self.number}")):
            self.go(self.at + moved)

    def _answers(self) -> bool:
        waits = self.key in self.desk.undecided
        label = self.labels(disabled=None if waits else self.standing().label)
        if label is not None:
            self.say(label)
        return self._details()

    def say(self, label: str) -> bool:
        """This is the label: the first one again, or any other. Each takes one key, so that none is the easier one to give."""
        return self.decide(Decision(label, note=self.standing().note))

    def _details(self) -> bool:
        """What may be said beside a label, whichever it is; a second press takes it back. Returns whether something was said."""
        standing, is_said = self.standing(), False
        for name in self._asked(standing):
            group, question = DETAILS[name]
            chosen = getattr(standing, name)
            with row(f"{name}_row"):
                st.html(stamp(question), width="content")
                choices, key = keys.choices_of(group, self.ask), f"{name}_{{press}}_{self.number}"
                value = keys.choose(choices, key, icon=lambda one, chosen=chosen: CHOSEN if one == chosen else None)
            if value is not None:
                said: dict[str, Any] = {name: None if value == chosen else value}
                is_said = self.decide(_without_rest(replace(standing, **said)))
        judged = self.desk.judged.get(self.key)
        if judged is not None and judged.label == standing.label:
            flagged = standing.right_for_wrong_reason
            with row("wrong_row"):
                icon = CHOSEN if flagged else None
                if keys.press(Press.REASON_WRONG, "Right label, wrong reasoning", f"wrong_{self.number}", icon=icon):
                    is_said = self.decide(replace(standing, right_for_wrong_reason=not flagged))
        return is_said

    def _asked(self, standing: Decision) -> list[str]:
        """The questions on a label that was decided. How bad the judge's error is is no question where physicians may differ as well."""
        judged = self.desk.judged.get(self.key)
        if self.key not in self.desk.decided:
            return []
        if standing.label == Label.CANNOT_ASSESS and standing.reason is None:
            return ["reason"]
        if judged is None or judged.label in (None, standing.label):
            return []
        is_error = standing.cause not in (None, Cause.MEDICAL_DISAGREEMENT)
        is_harm = is_error and standing.severity not in (None, Severity.NONE) and self.ask is Ask.RUBRIC
        return ["cause", *(["severity"] if is_error else []), *(["error_kind"] if is_harm else [])]


def _without_rest(decision: Decision) -> Decision:
    """What was said of an error goes with the answer that led to the question."""
    if decision.cause in (None, Cause.MEDICAL_DISAGREEMENT):
        decision = replace(decision, severity=None)
    return decision if decision.severity not in (None, Severity.NONE) else replace(decision, error_kind=None)


class _Revealing(DecidingPanel):
    """The control comes first and by itself; then what differs from the judge, then the rest, without the control."""

    kind = " or-compared"

    def __init__(self, viewer: Viewer, desk: OpenReview, guideline: str | None) -> None:
        super().__init__(viewer, desk, guideline)
        self._order()

    def _order(self) -> None:
        self._is_looking = bool(self.desk.looking)
        self.panel = Panel.LOOK if self._is_looking else Panel.REVISE
        first = list(self.desk.control) if self._is_looking else self.desk.differing
        rest = [key for key in self.desk.keys if key not in {*self.desk.control, *first}]
        self.keys = first if self._is_looking else [*first, *rest]
        self._n_first = len(first)

    def _start(self) -> int:
        return self.next_open(self.desk.undecided, -1)

    def _moves(self) -> None:
        super()._moves()
        self.guideline_button()

    def say(self, label: str) -> bool:
        place, first = self.at, self.desk.first[self.key].label
        self.go(place)  # it stays in hand, for what may be said beside the label
        if not super().say(label):
            return False
        self.said = f"Item {place + 1}: {'kept' if label == first else 'changed'}. "
        if self._is_looking and not self.desk.looking:  # from here on the judge is shown, where it differs
            if self.desk.state is ReadingState.DONE:
                st.rerun()
            self._order()
        elif self._is_looking:
            self.go(self.next_open(self.desk.undecided, place))
        return True

    def _stored_note(self) -> str | None:
        """A note belongs to a decision: the first read's own stays with it."""
        return super()._stored_note() if self.key in self.desk.decided else None

    def _last_row(self) -> None:
        with row("last_row"):
            if self._is_looking:
                n, done = len(self.desk.control), len(self.desk.control) - len(self.desk.looking)
                st.html(stamp(f"{done} of {n} looked at again"), width="content")
            else:
                n_waiting, name = len(self.desk.undecided), f"onward_{self.number}"
                is_off = bool(n_waiting)
                pressed = keys.press(Press.ONWARD, "Next response", name, type="primary", disabled=is_off)
                if pressed and self.act(reviewing.finish, self.number):
                    st.rerun()
                st.html(stamp(f"{self._n_first - n_waiting} of {self._n_first} decided"), width="content")
            super()._last_row()

    def _record(self) -> str:
        item, name = self.desk.item(self.key), f"records_{self.number}"
        if item is None or self.desk.judge is None or self.at >= self._n_first:
            return ""
        if name not in st.session_state:
            st.session_state[name] = common.judge_records(self.viewer, self.desk.judge, self.desk.asked.response_id)
        return sentence(record_for(st.session_state[name], item.axis, item.points))

    def _lines(self) -> list[str]:
        lines, at = [], self.at
        for place, key in enumerate(self.keys):
            first, judged, is_current = self.desk.first[key], self.desk.judged.get(key), place == at
            labels = {"you": first.label, "judge": judged.label if judged else None}
            decided = html.decided_words(first, self.desk.decided.get(key))
            how: Any = {"place": place, "record": self._record() if is_current else "", "is_current": is_current}
            lines.append(html.compared(self.desk, key, labels, decided, **how))
        return lines

    def _heads(self) -> dict[int, str]:
        if self._is_looking:
            n = counted(len(self.keys), "criterion", "criteria")
            head = f'<h3 class="or-part">Look again at {n}, drawn at random</h3>'
            line = '<p class="or-quiet">Keep your label or change it. Nothing of the judge is shown yet.</p>'
            return {0: head + line}
        agreeing = '<h3 class="or-part">You and the judge agree</h3>'
        return {self._n_first: agreeing} | {0: f'<h3 class="or-part">The judge differs on {self._n_first}</h3>'}
