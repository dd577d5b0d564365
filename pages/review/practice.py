"""A practice round in Review: the same screen and keys, marks that only this browser tab keeps, and feedback after each lock."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import streamlit as st

from evalcore.errors import AlreadyChanged
from evalcore.reading import practice, queries
from evalcore.reading.practice import Feedback
from evalcore.reading.practice_queries import Score
from evalcore.reading.queries import Draft
from evalcore.reading.reviewing import NOTHING_TO_UNDO, OpenReview, missing
from evalcore.study import contents
from evalcore.study.db import Engine
from evalcore.study.schema import Viewer
from pages.review import html
from pages.review.html import KEYS_HINT, stamp
from pages.review.panels import ItemPanel, ListPanel, Marking, refusal, row
from pages.shared import common, html as shared_html, kept_choices, keys
from pages.shared.keys import Panel, Press

NOT_COUNTED = "these reads are not counted"
FOR_REAL = "From here on you read for real, and your reads count."


@dataclass
class Sitting:
    """Where a reader is in a practice round on this screen: the place of the response (behind the last: all are read), its marks, its feedback."""

    assignment_id: int
    responses: tuple[int, ...]
    scores: dict[int, Score]
    place: int = 0
    drafts: dict[int | None, Draft] = field(default_factory=dict)
    before: list[tuple[int | None, Draft]] = field(default_factory=list)
    feedback: Feedback | None = None

    @property
    def response_id(self) -> int:
        """The response in hand."""
        return self.responses[self.place]

    def begin(self, place: int) -> None:
        """Take the response at a place in hand."""
        self.place, self.drafts, self.before, self.feedback = place, {}, [], None


def show(viewer: Viewer) -> None:
    """The practice round that is at hand, and the end of the run; nothing where there is none."""
    name = f"practice_{common.location()}_{viewer.person_id}"  # another study's people have the same numbers
    sitting: Sitting | None = st.session_state.get(name)
    if sitting is None:
        waiting = practice.waiting(common.engine(), viewer)
        if waiting is None:
            return
        scores = dict(waiting.scores)
        sitting = Sitting(waiting.assignment_id, waiting.responses, scores, waiting.responses.index(waiting.left[0]))
        st.session_state[name] = sitting
    refusal()
    if sitting.place < len(sitting.responses):
        _read(viewer, sitting)
    elif _is_over(sitting):
        del st.session_state[name]
        st.rerun()
    st.stop()


def _read(viewer: Viewer, sitting: Sitting) -> None:
    desk = practice.open_practice(common.engine(), viewer, sitting.assignment_id, sitting.response_id)
    guideline = common.ask(contents.guideline, desk.reading.guideline_version)
    known = common.ask(queries.guideline_known, viewer)
    with st.container(horizontal=True, vertical_alignment="center", key="review_top"):
        place = f"Practice {sitting.place + 1} of {len(sitting.responses)}: {NOT_COUNTED}"
        st.html(html.top(place, [html.guideline_words(guideline.version or 0, known) if guideline else ""]))
        as_markdown = kept_choices.formatted()
    left, right = st.columns([58, 42], gap="large")
    with left, st.container(key="reading"):
        st.html(shared_html.conversation(desk.material.messages, as_markdown=as_markdown))
        st.html(shared_html.response("The response", "", desk.material.response or "", as_markdown=as_markdown))
    with right, st.container(key="desk"):
        _panel(viewer, sitting, desk, guideline.text if guideline else None)


@common.fragment
def _panel(viewer: Viewer, sitting: Sitting, desk: OpenReview, guideline: str | None) -> None:
    if sitting.feedback is None:
        _Practising(viewer, desk, guideline, sitting).draw()
    else:
        _Compared(viewer, desk, guideline, sitting, sitting.feedback).draw()


def agreed_words(scores: Mapping[int, Score]) -> str:
    """How much agrees, over some responses."""
    agreed, compared = (sum(counts) for counts in zip((0, 0), *scores.values(), strict=True))
    return f"You agreed on {agreed:,} of {compared:,}"


def _is_over(sitting: Sitting) -> bool:
    st.html(shared_html.heading("Practice is done", f"{agreed_words(sitting.scores)} criteria. {FOR_REAL}"))
    with row("practice_over"):
        is_over = keys.press(Press.ONWARD, "Begin reading", "practice_begin", type="primary")
        if st.button("Practise again", key="practice_again"):
            sitting.scores.clear()
            sitting.begin(0)
            st.rerun()
    return is_over


class _Practising(Marking):
    panel = Panel.PRACTISE

    def __init__(self, viewer: Viewer, desk: OpenReview, guideline: str | None, sitting: Sitting) -> None:
        self.sitting = sitting
        super().__init__(viewer, desk, guideline, names_model=False)

    def _load(self) -> None:
        self._drafts = self.sitting.drafts

    def go(self, place: int) -> None:
        ItemPanel.go(self, place)

    def _save(self, draft: Draft, *, then: int) -> bool:
        self.sitting.before.append((self.key, self._draft))
        self._drafts[self.key] = draft
        self.go(then)
        return True

    def _undo(self, engine: Engine, viewer: Viewer) -> None:  # noqa: ARG002 - as an act
        while self.sitting.before:
            key, was = self.sitting.before.pop()
            stands = self._drafts[key]
            # else a note alone, which stays as it was written last
            if (was.label, was.reason) != (stands.label, stands.reason):
                self._drafts[key] = Draft(was.label, was.reason, stands.note)
                self.go(self.keys.index(key))
                return
        raise AlreadyChanged(NOTHING_TO_UNDO)

    def _lock(self, engine: Engine, viewer: Viewer) -> None:
        sitting = self.sitting
        sitting.feedback = practice.practise(engine, viewer, sitting.assignment_id, sitting.response_id, sitting.drafts)
        sitting.scores[sitting.response_id] = sitting.feedback.score
        self.go(0)  # where it is practised again

    def _last_row(self) -> None:
        n_missing, n = len(missing(list(self.keys), self._drafts)), len(self.keys)
        with row("last_row"):
            name, is_off = f"submit_{self.number}", bool(n_missing)
            pressed = keys.press(Press.LOCK, "Submit and lock", name, type="primary", disabled=is_off)
            if pressed and self.act(self._lock):
                st.rerun()
            st.html(stamp(f"{n - n_missing} of {n} answered"), width="content")
            st.html(KEYS_HINT, width="content")


class _Compared(ListPanel):
    panel = Panel.PRACTICE
    kind = " or-compared"

    def __init__(
        self, viewer: Viewer, desk: OpenReview, guideline: str | None, sitting: Sitting, feedback: Feedback
    ) -> None:
        super().__init__(viewer, desk, guideline)
        self.sitting, self.feedback = sitting, feedback

    def _moves(self) -> None:
        if len(self.keys) > 1:
            self.go(self.at + keys.step(f"_{self.number}"))
        self.guideline_button()

    def _answers(self) -> bool:
        return False

    def _stored_note(self) -> None:
        return None

    def _lines(self) -> list[str]:
        labels, settled = self.feedback.labels, self.feedback.settled
        return [
            html.practised(self.desk, key, labels[key], settled.get(key), place=place, is_current=place == self.at)
            for place, key in enumerate(self.keys)
        ]

    def _last_row(self) -> None:
        st.html(html.status(f"{agreed_words({0: self.feedback.score})}."))
        is_last = self.sitting.place + 1 == len(self.sitting.responses)
        with row("last_row"):
            words = "Finish practice" if is_last else "Next practice response"
            if keys.press(Press.ONWARD, words, f"onward_{self.number}", type="primary"):
                self.sitting.begin(self.sitting.place + 1)
                st.rerun()
            super()._last_row()
