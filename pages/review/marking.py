"""The blind read: the criteria as one list, one key a criterion, every mark stored at once."""

from collections.abc import Callable

import streamlit as st

from evalcore.errors import OverreadError
from evalcore.reading import desks, reviewing, tasks
from evalcore.reading.desks import Desk
from evalcore.reading.tasks import Draft
from evalcore.study.db import reading
from evalcore.study.schema import Acuity, CannotReason, Label, ReadingState, Viewer
from evalcore.study.tables import now
from pages.review import guideline as review_guideline
from pages.review import html
from pages.review.html import QUESTIONS, Row
from pages.shared import common, keys
from pages.shared import html as shared_html
from pages.shared.keys import REASONS, WORDS, Press


@common.fragment
def panel(viewer: Viewer, desk: Desk, guideline: str | None, *, names_model: bool) -> None:
    """The right side of a read that is not locked.

    A fragment: a mark redraws the list alone. Buttons come first in the script and the list after them, so that one run both stores
    and shows a mark; the page puts the list above.
    """
    _Marking(viewer, desk, guideline, names_model=names_model).draw()


class _Marking:
    def __init__(self, viewer: Viewer, desk: Desk, guideline: str | None, *, names_model: bool) -> None:
        self._names_model = names_model
        self._viewer = viewer
        self._desk = desk
        self._guideline = guideline
        self._number = desk.reading.id or 0
        self._keys = desk.keys
        self._said = ""
        self._saved_at = desk.reading.last_at
        self._drafts = self._stored()

    def _stored(self) -> dict[int | None, Draft]:
        with reading(common.engine()) as session:
            return tasks.drafts(session, self._number)

    # ---- where the reader is

    @property
    def _at(self) -> int:
        """Place of the item in hand: this tab's, else where the reader was when the connection was lost."""
        place = int(st.session_state.get(f"at_{self._number}", self._desk.reading.place))
        return max(0, min(place, len(self._keys) - 1))

    def _stand(self, place: int) -> None:
        st.session_state[f"at_{self._number}"] = place

    def _go(self, place: int) -> None:
        place = max(0, min(place, len(self._keys) - 1))
        if place != self._at and self._act(lambda: reviewing.move(common.engine(), self._viewer, self._number, place)):
            self._stand(place)

    def _next_open(self, answered: int) -> int:
        """The next item without an answer behind the one that is answered now, and round; the same where none is left."""
        missing = set(desks.missing(self._keys, self._drafts))
        order = [*range(answered + 1, len(self._keys)), *range(answered)]
        return next((place for place in order if self._keys[place] in missing), answered)

    # ---- acts

    def _act(self, act: Callable[[], object]) -> bool:
        """Do it; a refusal is a sentence, and the newer state is shown. Returns whether it was saved."""
        try:
            return common.saved(act)
        except OverreadError as error:
            st.session_state["review_notice"] = str(error)
            st.rerun()

    def _mark(self, draft: Draft, *, then: int) -> bool:
        label, at = desks.as_label(draft.label), now()
        is_saved = self._act(
            lambda: reviewing.mark(
                common.engine(), self._viewer, self._number, self._keys[self._at], label,
                reason=draft.reason, note=draft.note, then=then, at=at,
            )
        )  # fmt: skip
        if is_saved:
            self._saved_at = at
            self._drafts[self._keys[self._at]] = draft
            self._stand(then)
        return is_saved

    def _answer(self, label: Label | Acuity, reason: CannotReason | None = None) -> bool:
        place, before = self._at, self._drafts.get(self._keys[self._at])
        asks_reason = label is Label.CANNOT_ASSESS and reason is None
        then = place if asks_reason else self._next_open(place)
        is_saved = self._mark(Draft(label, reason, before.note if before else None), then=then)
        if is_saved:
            self._said = f"Item {place + 1}: {WORDS[label]}{', ' + REASONS[reason] if reason else ''}. "
        return is_saved

    def _lock(self) -> None:
        knows = bool(st.session_state.get(f"knows_model_{self._number}", False))
        reviewing.submit(common.engine(), self._viewer, self._number, knows_model=knows)

    def _undo(self) -> None:
        def act() -> None:
            key = reviewing.undo_mark(common.engine(), self._viewer, self._number)
            self._stand(self._keys.index(key))

        if self._act(act):
            self._drafts = self._stored()
            self._said = "Undone. "

    # ---- what is drawn

    def draw(self) -> None:
        """The list, and below it the keys. What moves or answers runs before what shows where the reader is, and the list comes next."""
        self._keep_note()
        list_place = st.container(key="rows")
        with st.container(key="bar"):
            answers_place = st.container(horizontal=True, vertical_alignment="center", gap="small", key="answers")
            asks_why = self._asks_why()
            with st.container(horizontal=True, vertical_alignment="center", gap="small", key="moves"):
                self._move_buttons(only_undo=asks_why)
            if asks_why != self._asks_why():
                common.draw_anew()
            with answers_place:
                self._answers()
            with list_place:
                self._list()
            self._note()
            with st.container(horizontal=True, vertical_alignment="center", gap="small", key="last_row"):
                self._submit()
            self._model()
        clicked = keys.listen(keys.reading_keys(self._desk.asked.ask), self._status(), arrows=True)
        if clicked is not None:
            self._go(clicked)
            common.draw_anew()

    def _list(self) -> None:
        if not review_guideline.shown(self._guideline):
            st.html(html.rows(self._rows()))

    def _rows(self) -> list[Row]:
        items = self._desk.sheet.items
        lines = []
        for place, key in enumerate(self._keys):
            draft = self._drafts.get(key)
            reason = REASONS[draft.reason].lower() if draft and draft.reason else ""
            judged = self._desk.judged.get(key)  # nothing, in a blind study
            lines.append(
                Row(
                    number=items[place].position if items else 1,
                    place=place,
                    text=items[place].text if items else QUESTIONS[self._desk.asked.ask],
                    points=items[place].points if items else None,
                    label=draft.label if draft else None,
                    said=reason,
                    has_note=bool(draft and draft.note),
                    judge=self._desk.judge,
                    judged=judged.label if judged else None,
                    explanation=judged.explanation if judged else None,
                    is_current=place == self._at,
                    is_question=not items,
                )
            )
        return lines

    def _asks_why(self) -> bool:
        draft = self._drafts.get(self._keys[self._at])
        return draft is not None and draft.label == Label.CANNOT_ASSESS and draft.reason is None

    def _answers(self) -> None:
        """The labels; or, once "cannot assess" was pressed, the reasons."""
        if self._asks_why():
            st.html('<span class="or-stamp">Why?</span>', width="content")
            reason = keys.choose(REASONS, f"reason_{{option}}_{self._number}")
            if reason is not None and self._answer(Label.CANNOT_ASSESS, reason):
                common.draw_anew()  # with the labels again
            return
        # the reading stands in the key: a press on a screen that was still showing the last item falls on nothing
        label = keys.choose(keys.answers(self._desk.asked.ask), f"answer_{{place}}_{self._number}")
        if label is not None and self._answer(label) and label is Label.CANNOT_ASSESS:
            common.draw_anew()  # with the reasons

    def _move_buttons(self, *, only_undo: bool) -> None:
        if len(self._keys) > 1 and not only_undo:
            self._go(self._at + keys.step(f"_{self._number}", Press.BACK, Press.NEXT))
        if st.button("Undo", key=f"undo_{self._number}", shortcut=Press.UNDO.key):
            self._undo()
        if self._guideline and not only_undo:
            review_guideline.button()

    @property
    def _field(self) -> str:
        """One field for the notes of all items: the browser takes long to make a new one."""
        return f"note_{self._number}"

    def _keep_note(self) -> None:
        """Store what was typed, before a press in the same run moves on."""
        drawn = st.session_state.get(f"{self._field}_drawn")
        said = str(st.session_state.get(self._field, "")).strip()
        if drawn is not None and drawn[0] == self._at and said != drawn[1]:
            draft = self._drafts.get(self._keys[self._at]) or Draft(None, None, None)
            self._mark(Draft(draft.label, draft.reason, said or None), then=self._at)

    def _note(self) -> None:
        draft = self._drafts.get(self._keys[self._at])
        shown = self._at, (draft.note if draft else None) or ""
        if st.session_state.get(f"{self._field}_drawn") != shown:
            st.session_state[self._field] = shown[1]
            st.session_state[f"{self._field}_drawn"] = shown
        st.text_input(
            "Note", key=self._field, placeholder="Note (N), saved with Enter", label_visibility="collapsed", max_chars=desks.MAX_NOTE
        )  # fmt: skip

    def _model(self) -> None:
        """Whether the reader knows who wrote the response: asked of every one, since style may tell it too."""
        if self._desk.asked.response_id is None:
            return
        with st.container(horizontal=True, vertical_alignment="center", gap="small", key="model_row"):
            st.checkbox("I know which model this is", key=f"knows_model_{self._number}")
            if self._names_model:
                st.html('<span class="or-stamp">The text may name the model that wrote it.</span>', width="content")

    def _submit(self) -> None:
        missing = desks.missing(self._keys, self._drafts)
        done = len(self._keys) - len(missing)
        if st.button(
            "Submit and lock",
            key=f"submit_{self._number}",
            type="primary",
            shortcut=Press.LOCK.key,
            disabled=bool(missing),
        ) and self._act(self._lock):
            locked = desks.desk(common.engine(), self._viewer, self._number)
            # no judge has a say on what a case needs
            agreed = locked.state is ReadingState.DONE and set(self._keys) <= set(locked.judged)
            st.session_state["review_done"] = f"Locked. {'You and the judge agree throughout.' if agreed else ''}"
            st.rerun()
        saved = f", saved {common.local_time(self._saved_at)[11:]}" if self._drafts else ""
        st.html(
            f'<span class="or-stamp">{done} of {len(self._keys)} answered{shared_html.escaped(saved)}</span>',
            width="content",
        )
        st.html(html.keys_hint(), width="content")

    def _status(self) -> str:
        return f"{self._said}Item {self._at + 1} of {len(self._keys)} is in hand."
