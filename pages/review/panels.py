"""The panels of a review: a list of items with one in hand, and below it the keys; the blind read first, then beside the judge."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from evalcore.errors import OverreadError
from evalcore.judges.record import record_for, sentence
from evalcore.reading import queries, reviewing
from evalcore.reading.queries import Draft
from evalcore.reading.reviewing import MAX_NOTE, Decision, OpenReview
from evalcore.stats.wording import counted
from evalcore.study.db import Engine, reading
from evalcore.study.schema import Acuity, CannotReason, Label, ReadingState, Severity, Viewer
from evalcore.study.tables import now
from pages.review import html
from pages.review.html import KEYS_HINT, stamp
from pages.shared import common, html as shared_html, keys
from pages.shared.keys import ANSWERS, REASON_KEYS, REASONS, WORDS, Panel, Press

NOTICE = "panel_notice"
ERROR_QUESTIONS = {
    "cause": "Why does the judge differ?",
    "severity": "How bad is the judge's error?",
    "error_kind": "What is wrong?",
}


def draw_guideline(guideline: str) -> None:
    """What readers are told."""
    st.html(f'<div class="or-guideline" tabindex="0">{shared_html.formatted(guideline)}</div>')


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
            st.session_state[NOTICE] = str(error)
            st.rerun()


class ListPanel(ItemPanel):
    """The items as one list above the keys. One run of the fragment a press: buttons come first in the script, and the list after them."""

    number: int
    _moves: Callable[[], None]
    _answers: Callable[[], bool]
    _list: Callable[[], None]
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
        self._keep_note()
        list_place = st.container(key="rows")
        with st.container(key="bar"):
            answers_place = row("answers")
            with row("moves"):
                self._moves()
            with answers_place:
                asks_anew = self._answers()
            if asks_anew and not common.has_failed():
                common.draw_anew()
            with list_place:
                if self.guideline and st.session_state.get("guideline_open"):
                    draw_guideline(self.guideline)
                else:
                    self._list()
            self._note()
            self._last_row()
        status = f"{self.said}Item {self.at + 1} of {len(self.keys)} is in hand."
        clicked = keys.listen(self.panel, self.ask, status)
        if clicked is not None and clicked != self.at:
            self.go(clicked)
            common.draw_anew()
        if asks_anew:  # that failed: only now, since a field that is not drawn in a run loses what is typed in it
            common.draw_anew()

    def _last_row(self) -> None:
        st.html(KEYS_HINT, width="content")

    def guideline_button(self) -> None:
        """Opens what readers are told in the place of the list, and closes it."""
        if self.guideline and keys.press(Press.GUIDELINE, "Guideline", "guideline"):
            st.session_state["guideline_open"] = not st.session_state.get("guideline_open", False)

    # ---- the note: one field for all items, since the browser takes long to make a new one

    @property
    def _field(self) -> str:
        return f"note_{self.number}_{self.panel.name}"

    def _keep_note(self) -> None:
        drawn = st.session_state.get(f"{self._field}_drawn")
        typed = str(st.session_state.get(self._field, "")).strip()
        if self._field in st.session_state and drawn is not None and drawn[0] == self.key and typed != drawn[1]:
            self._save_note(typed)

    def _note(self) -> None:
        stored = self._stored_note()
        if stored is None:
            return
        if self._field not in st.session_state or st.session_state.get(f"{self._field}_drawn") != (self.key, stored):
            st.session_state[self._field] = stored
            st.session_state[f"{self._field}_drawn"] = self.key, stored
        st.text_input(
            "Note", key=self._field, placeholder="Note (N), saved with Enter", label_visibility="collapsed", max_chars=MAX_NOTE
        )  # fmt: skip


@common.fragment
def panel(viewer: Viewer, desk: OpenReview, guideline: str | None, *, names_model: bool) -> None:
    """The right side of a read: one key a criterion, every mark stored at once; once it is locked, one key a decision, where the judge differs."""
    if desk.state is ReadingState.READING:
        _Marking(viewer, desk, guideline, names_model=names_model).draw()
    else:
        locked = reviewing.open_review(common.engine(), viewer, desk.reading.id or 0)
        _Revealing(viewer, locked, guideline).draw()


class _Marking(ListPanel):
    panel = Panel.MARK

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
        place = max(0, min(place, len(self.keys) - 1))
        if place != self.at and self.act(reviewing.move, self.number, place):
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

    def _asks_why(self) -> bool:
        return self._draft.label == Label.CANNOT_ASSESS and self._draft.reason is None

    def _moves(self) -> None:
        asks_why = self._asks_why()
        if len(self.keys) > 1 and not asks_why:
            self.go(self.at + keys.step(f"_{self.number}", Press.BACK, Press.NEXT))
        if keys.press(Press.UNDO, "Undo", f"undo_{self.number}") and self.act(self._undo):
            self._load()
            self.said = "Undone. "
        if not asks_why:
            self.guideline_button()
        if asks_why != self._asks_why():
            common.draw_anew()

    def _undo(self, engine: Engine, viewer: Viewer) -> None:
        super().go(self.keys.index(reviewing.undo_mark(engine, viewer, self.number)))

    def _answers(self) -> bool:
        reason: CannotReason | None = None
        label: Label | Acuity | None = None
        if asks_why := self._asks_why():
            st.html(stamp("Why?"), width="content")
            if reason := keys.choose(REASON_KEYS, f"reason_{{option}}_{self.number}"):
                label = Label.CANNOT_ASSESS
        else:  # the reading stands in the key: a press on a screen that was still showing the last item falls on nothing
            label = keys.choose(ANSWERS[self.ask], f"answer_{{press}}_{self.number}")
        if label is None:
            return False
        place, will_ask = self.at, label is Label.CANNOT_ASSESS and reason is None
        then = place if will_ask else self.next_open(reviewing.missing(list(self.keys), self._drafts), place)
        if not self._save(Draft(label, reason, self._draft.note), then=then):
            return False
        self.said = f"Item {place + 1}: {WORDS[label]}{', ' + REASONS[reason] if reason else ''}. "
        return asks_why or will_ask

    def _list(self) -> None:
        lines = [
            html.marked(self.desk, key, self._drafts.get(key), place=place, is_current=place == self.at)
            for place, key in enumerate(self.keys)
        ]
        st.html(html.rows(lines))

    def _last_row(self) -> None:
        n_missing, n = len(reviewing.missing(list(self.keys), self._drafts)), len(self.keys)
        with row("last_row"):
            name, is_off = f"submit_{self.number}", bool(n_missing)
            pressed = keys.press(Press.LOCK, "Submit and lock", name, type="primary", disabled=is_off)
            knows = bool(st.session_state.get(f"knows_model_{self.number}", False))
            if pressed and self.act(reviewing.submit, self.number, knows_model=knows):
                locked = reviewing.open_review(common.engine(), self.viewer, self.number)
                # no judge has a say on what a case needs
                agreed = locked.state is ReadingState.DONE and set(self.keys) <= set(locked.judged)
                st.session_state["review_done"] = f"Locked. {'You and the judge agree throughout.' if agreed else ''}"
                st.rerun()
            saved = f", saved {common.local_time(self._saved_at)[11:]}" if self._drafts else ""
            st.html(stamp(f"{n - n_missing} of {n} answered{saved}"), width="content")
            super()._last_row()
        if self.desk.asked.response_id is not None:  # asked of every response, since style may tell its model too
            with row("model_row"):
                st.checkbox("I know which model this is", key=f"knows_model_{self.number}")
                if self._names_model:
                    st.html(stamp("The text may name the model that wrote it."), width="content")


class DecidingPanel(ListPanel):
    """What was said of each item of a locked read, and saying more: each a new verdict."""

    def decide(self, decision: Decision) -> bool:
        """Say this of the item in hand. Returns whether it was saved."""
        before = self.desk.decided.get(self.key)
        seen = before.verdict_id if before else None
        is_saved = self.act(reviewing.revise, self.number, self.key, decision, seen=seen)
        if is_saved:
            self.desk = reviewing.open_review(common.engine(), self.viewer, self.number)
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
        if moved := keys.step(f"_{self.number}", Press.UP, Press.DOWN):
            self.go(self.at + moved)

    def reason_wrong(self, words: str, standing: Decision) -> bool:
        """The key that says that the judge is right for a wrong reason, or takes that back; from what stands otherwise."""
        flagged = self.standing().right_for_wrong_reason
        shown = "Take back: reason wrong" if flagged else words
        return keys.press(Press.REASON_WRONG, shown, f"wrong_{self.number}") and self.decide(
            replace(standing, right_for_wrong_reason=not flagged)
        )


class _Revealing(DecidingPanel):
    """The control comes first and by itself; then what differs from the judge, then the rest, without the control."""

    def __init__(self, viewer: Viewer, desk: OpenReview, guideline: str | None) -> None:
        super().__init__(viewer, desk, guideline)
        self._choices = keys.error_choices(self.ask)
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

    # ---- what is being asked about the decision in hand; a reload asks it again

    @property
    def _asked_name(self) -> str:
        return f"asked_{self.number}_{self.key}"

    def _save(self, decision: Decision) -> bool:
        """Save, and take the next that waits in hand; what was asked stands where it was not saved."""
        place, asked = self.at, st.session_state.pop(self._asked_name, None)
        if not self.decide(decision):
            if asked is not None:
                st.session_state[self._asked_name] = asked
        elif self._is_looking and not self.desk.looking:  # from here on the judge is shown, where it differs
            if self.desk.state is ReadingState.DONE:
                st.rerun()
            self._order()
        elif place < self._n_first:
            self.go(self.next_open(self.desk.undecided, place))
        return True

    def _moves(self) -> None:
        if self._asked_name not in st.session_state:
            super()._moves()
            self.guideline_button()

    def _kept(self) -> Decision:
        return Decision(self.desk.first[self.key].label or "", note=self.standing().note)

    def _answers(self) -> bool:
        if self._is_looking:
            return self._look_again()
        if self.at >= self._n_first:
            wrong = "Judge's label right, reason wrong"
            return self.key in self.desk.judged and self.reason_wrong(wrong, self._kept())
        if self._asked_name in st.session_state:
            return self._error_question(*st.session_state[self._asked_name])
        if keys.press(Press.KEEP, "Keep mine", f"keep_{self.number}"):
            st.session_state[self._asked_name] = next(iter(self._choices)), self._kept()
            return True
        if keys.press(Press.REVISE, "Revise to the judge's", f"revise_{self.number}"):
            return self._save(replace(self._kept(), label=self.desk.judged[self.key].label or ""))
        return False

    def _look_again(self) -> bool:
        kept = self._kept()
        if keys.press(Press.LOOK_KEEP, "Keep mine", f"keep_{self.number}"):
            return self._save(kept)
        label = keys.choose(ANSWERS[self.ask], f"look_{{press}}_{self.number}", disabled=kept.label)
        return label is not None and self._save(replace(kept, label=label))

    def _error_question(self, step: str, decision: Decision) -> bool:
        st.html(stamp(ERROR_QUESTIONS[step]), width="content")
        value = keys.choose(self._choices[step], f"{step}_{{press}}_{self.number}")
        is_skipped = keys.press(Press.SKIP, "Skip", f"skip_{step}_{self.number}", type="tertiary")
        if value is None and not is_skipped:
            return False
        said: dict[str, Any] = {step: value}
        decision, steps = replace(decision, **said), list(self._choices)
        rest = steps[steps.index(step) + 1 :]
        if value is Severity.NONE or not rest:
            return self._save(decision)
        st.session_state[self._asked_name] = rest[0], decision
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

    def _list(self) -> None:
        lines = []
        for place, key in enumerate(self.keys):
            first, judged, is_current = self.desk.first[key], self.desk.judged.get(key), place == self.at
            labels = {"you": first.label, "judge": judged.label if judged else None}
            decided = html.decided_words(first, self.desk.decided.get(key))
            how: Any = {"place": place, "record": self._record() if is_current else "", "is_current": is_current}
            lines.append(html.compared(self.desk, key, labels, decided, **how))
        kind = " or-compared"
        if self._is_looking:
            n = counted(len(lines), "criterion", "criteria")
            head = f'<h3 class="or-part">Look again at {n}, drawn at random</h3>'
            head += '<p class="or-quiet">Keep your label or change it. Nothing of the judge is shown yet.</p>'
            st.html(head + html.rows(lines, "Criteria for a second look", kind))
            return
        shown = f'<h3 class="or-part">The judge differs on {self._n_first}</h3>'
        shown += html.rows(lines[: self._n_first], "Criteria on which the judge differs", kind)
        if agreeing := "".join(lines[self._n_first :]):
            shown += '<h3 class="or-part">You and the judge agree</h3>'
            shown += f'<ol class="or-rows or-compared or-agreed">{agreeing}</ol>'
        st.html(shown)
