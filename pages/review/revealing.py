"""After the lock: where the judge says something else, keep or revise; one key a decision."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import streamlit as st

from evalcore.errors import OverreadError
from evalcore.judges.record import record_for, sentence
from evalcore.reading import deciding, desks
from evalcore.reading.deciding import Decision
from evalcore.reading.desks import Desk
from evalcore.reading.sheets import Given
from evalcore.study.schema import CannotReason, Cause, ErrorKind, ReadingState, Severity, Viewer
from pages.review import guideline as review_guideline
from pages.review import html
from pages.review.html import QUESTIONS, Compared
from pages.shared import common, keys
from pages.shared import html as shared_html
from pages.shared.keys import CAUSES, LABELS, SEVERITIES, Press

ASKS = {
    "cause": "Why does the judge differ?",
    "severity": "How bad is the judge's error?",
    "error_kind": "What is wrong?",
}


@common.fragment
def panel(viewer: Viewer, reading_id: int, guideline: str | None) -> None:
    """The right side of a read that is locked."""
    _Revealing(viewer, desks.desk(common.engine(), viewer, reading_id), guideline).draw()


class _Revealing:
    def __init__(self, viewer: Viewer, desk: Desk, guideline: str | None) -> None:
        self._viewer = viewer
        self._guideline = guideline
        self._number = desk.reading.id or 0
        self._options = keys.causes_of_error(desk.asked.ask)
        self._said = ""
        self._take(desk)

    def _take(self, desk: Desk) -> None:
        self._desk = desk
        # the control comes first and by itself; then what differs from the judge, then the rest, without the control
        self._is_looking = bool(desk.looking)
        rest = [key for key in desk.keys if key not in desk.control]
        asked = list(desk.control) if self._is_looking else desk.differing
        self._keys = asked if self._is_looking else [*asked, *(key for key in rest if key not in asked)]
        self._n_differing = len(asked)

    # ---- where the reader is

    @property
    def _at(self) -> int:
        return min(int(st.session_state.get(f"reveal_{self._number}", self._next_open(-1))), len(self._keys) - 1)

    def _go(self, place: int) -> None:
        st.session_state[f"reveal_{self._number}"] = max(0, min(place, len(self._keys) - 1))

    def _next_open(self, decided: int) -> int:
        waiting = set(self._desk.undecided)
        order = [*range(decided + 1, len(self._keys)), *range(decided + 1)]
        return next((place for place in order if self._keys[place] in waiting), max(decided, 0))

    @property
    def _chain(self) -> tuple[str, Decision] | None:
        """What is being asked about the decision in hand; a reload asks it again."""
        found: tuple[str, Decision] | None = st.session_state.get(f"asked_{self._number}_{self._keys[self._at]}")
        return found

    def _ask(self, step: str | None, decision: Decision | None = None) -> None:
        name = f"asked_{self._number}_{self._keys[self._at]}"
        if step is None or decision is None:
            st.session_state.pop(name, None)
        else:
            st.session_state[name] = step, decision

    # ---- acts

    def _save(self, decision: Decision) -> None:
        place = self._at
        key = self._keys[place]
        before = self._desk.decided.get(key)

        def act() -> None:
            deciding.decide(
                common.engine(), self._viewer, self._number, key, decision, seen=before.verdict_id if before else None
            )

        asked = self._chain
        self._ask(None)
        if not self._act(act):
            self._ask(*asked or (None,))
        elif self._is_looking and not self._desk.looking:  # from here on the judge is shown, where it differs
            st.session_state.pop(f"reveal_{self._number}", None)
            if self._desk.state is ReadingState.DONE:
                st.rerun()
            self._take(self._desk)
        elif place < self._n_differing:
            self._go(self._next_open(place))

    def _act(self, act: Callable[[], object]) -> bool:
        """Do it; a refusal is a sentence, and the newer state is shown. Returns whether it was saved."""
        try:
            is_saved = common.saved(act)
        except OverreadError as error:
            st.session_state["review_notice"] = str(error)
            st.rerun()
        if is_saved:
            self._desk = desks.desk(common.engine(), self._viewer, self._number)
        return is_saved

    def _kept(self) -> Decision:
        key = self._keys[self._at]
        label = desks.as_label(self._desk.first[key].label)
        before = self._desk.decided.get(key)
        return Decision(label=label, note=(before.explanation if before else "") or "")  # type: ignore[arg-type]

    def _answered(self, step: str, decision: Decision, value: Any) -> None:
        """Ask the next question, or save."""
        said: dict[str, Any] = {step: value}
        decision = replace(decision, **said)
        steps = list(self._options)
        rest = steps[steps.index(step) + 1 :]
        if value is Severity.NONE or not rest:
            self._save(decision)
        else:
            self._ask(rest[0], decision)

    # ---- what is drawn

    def draw(self) -> None:
        """The differences with what both said, and below them the keys."""
        list_place = st.container(key="rows")
        with st.container(key="bar"):
            answers_place = st.container(horizontal=True, gap="small", vertical_alignment="center", key="answers")
            with st.container(horizontal=True, gap="small", key="moves"):
                if self._chain is None:
                    moved = keys.step(f"_{self._number}", Press.UP, Press.DOWN)
                    if moved:
                        self._go(self._at + moved)
                    if self._guideline:
                        review_guideline.button()
            with answers_place:
                is_other = self._answers()
            if is_other and not common.has_failed():
                common.draw_anew()
            self._note()
            with st.container(horizontal=True, vertical_alignment="center", gap="small", key="last_row"):
                self._onward()
        clicked = keys.listen(
            keys.second_look_keys() if self._is_looking else keys.deciding_keys(self._desk.asked.ask),
            f"{self._said}Item {self._at + 1} of {len(self._keys)} is in hand.",
        )
        if clicked is not None and clicked != self._at:
            self._go(clicked)
            common.draw_anew()
        with list_place:
            if review_guideline.shown(self._guideline):
                pass
            elif self._is_looking:
                st.html(html.looked_again(self._lines()))
            else:
                st.html(html.compared(self._lines(), self._desk.judge or "", n_differing=self._n_differing))
        if (
            is_other
        ):  # a press that failed: only now, since a field that is not drawn in a run loses what is typed in it
            common.draw_anew()

    def _answers(self) -> bool:
        """Keep or revise, and what follows from it. Returns whether something was pressed that asks other buttons."""
        if self._is_looking:
            return self._look_again()
        if self._at >= self._n_differing:
            return self._reason_wrong()
        if self._chain is not None:
            return self._asked(*self._chain)
        key = self._keys[self._at]
        if st.button("Keep mine", key=f"keep_{self._number}", shortcut=Press.KEEP.key):
            self._ask(next(iter(self._options)), self._kept())
        elif st.button("Revise to the judge's", key=f"revise_{self._number}", shortcut=Press.REVISE.key):
            label = desks.as_label(self._desk.judged[key].label)
            self._save(replace(self._kept(), label=label))  # type: ignore[arg-type]
        else:
            return False
        return True

    def _look_again(self) -> bool:
        """Keep the label of the first read, or another one; nothing of the judge is shown."""
        kept = self._kept()
        if st.button("Keep mine", key=f"keep_{self._number}", shortcut=Press.KEEP.key):
            self._save(kept)
            return True
        own = self._desk.first[self._keys[self._at]].label
        label = keys.choose(LABELS, f"look_{{place}}_{self._number}", disabled=own)
        if label is not None:
            self._save(replace(kept, label=label))
        return label is not None

    def _asked(self, step: str, decision: Decision) -> bool:
        st.html(f'<span class="or-stamp">{shared_html.escaped(ASKS[step])}</span>', width="content")
        value = keys.choose(self._options[step], f"{step}_{{place}}_{self._number}")
        is_skipped = st.button("Skip", key=f"skip_{step}_{self._number}", shortcut=Press.SKIP.key, type="tertiary")
        if value is not None or is_skipped:
            self._answered(step, decision, value)
        return value is not None or is_skipped

    def _reason_wrong(self) -> bool:
        key = self._keys[self._at]
        if key not in self._desk.judged:
            return False
        before = self._desk.decided.get(key)
        flagged = bool(before and before.right_for_wrong_reason)
        words = "Take back: reason wrong" if flagged else "Judge's label right, reason wrong"
        if st.button(words, key=f"wrong_{self._number}", shortcut=Press.REASON_WRONG.key):
            self._save(replace(self._kept(), right_for_wrong_reason=not flagged))
            return True
        return False

    def _note(self) -> None:
        key = self._keys[self._at]
        before = self._desk.decided.get(key)
        if before is None:  # a note belongs to a decision: the first read's own stays with it
            return
        field = f"note_{self._number}_{key}_decided"
        said = keys.note(field, before.explanation or "")
        if said is not None:
            is_saved = self._act(
                lambda: deciding.decide(
                    common.engine(), self._viewer, self._number, key, replace(as_decision(before), note=said), seen=before.verdict_id
                )
            )  # fmt: skip
            if is_saved:
                keys.note_saved(field, said)

    def _onward(self) -> None:
        if self._is_looking:
            done = len(self._desk.control) - len(self._desk.looking)
            st.html(
                f'<span class="or-stamp">{done} of {len(self._desk.control)} looked at again</span>', width="content"
            )
            st.html(html.keys_hint(), width="content")
            return
        waiting = len(self._desk.undecided)
        if st.button(
            "Next response",
            key=f"onward_{self._number}",
            type="primary",
            shortcut=Press.ONWARD.key,
            disabled=bool(waiting),
        ) and self._act(lambda: deciding.finish(common.engine(), self._viewer, self._number)):
            st.rerun()
        done = self._n_differing - waiting
        st.html(f'<span class="or-stamp">{done} of {self._n_differing} decided</span>', width="content")
        st.html(html.keys_hint(), width="content")

    def _record(self) -> str:
        """How often this judge is right on criteria like the one in hand, by others' blind reads."""
        key = self._keys[self._at]
        item = next((item for item in self._desk.sheet.items if item.criterion_id == key), None)
        name = f"records_{self._number}"
        if item is None or self._desk.judge is None or self._at >= self._n_differing:
            return ""
        if name not in st.session_state:
            st.session_state[name] = common.judge_records(self._viewer, self._desk.judge, self._desk.asked.response_id)
        return sentence(record_for(st.session_state[name], item.axis, item.points))

    def _lines(self) -> list[Compared]:
        items = {item.criterion_id: item for item in self._desk.sheet.items}
        lines = []
        for place, key in enumerate(self._keys):
            item, judged = items.get(key or 0), self._desk.judged.get(key)
            lines.append(
                Compared(
                    number=item.position if item else 1,
                    place=place,
                    text=item.text if item else QUESTIONS[self._desk.asked.ask],
                    points=item.points if item else None,
                    own=self._desk.first[key].label,
                    judged=judged.label if judged else None,
                    explanation=judged.explanation if judged else None,
                    decided=decided_words(self._desk.first[key], self._desk.decided.get(key)),
                    record=self._record() if place == self._at else "",
                    is_current=place == self._at,
                    is_question=item is None,
                )
            )
        return lines


def as_decision(given: Given) -> Decision:
    """A stored decision, to be said again with something changed."""
    return Decision(
        label=desks.as_label(given.label),  # type: ignore[arg-type]
        cause=Cause(given.cause) if given.cause else None,
        severity=Severity(given.severity) if given.severity else None,
        error_kind=ErrorKind(given.error_kind) if given.error_kind else None,
        right_for_wrong_reason=given.right_for_wrong_reason,
        note=given.explanation or "",
        reason=CannotReason(given.reason) if given.reason else None,
    )


def decided_words(first: Given, decided: Given | None) -> str:
    """What became of a first read: "kept · judge misread the answer · error severe"."""
    if decided is None:
        return ""
    words = ["kept" if decided.label == first.label else f"revised to {(decided.label or '').replace('_', ' ')}"]
    if decided.right_for_wrong_reason:
        words = ["judge's reason wrong"]
    if decided.cause:
        words.append(CAUSES[Cause(decided.cause)].lower())
    if decided.severity:
        words.append(f"error {SEVERITIES[Severity(decided.severity)].lower()}")
    if decided.error_kind:
        words.append(decided.error_kind)
    return " · ".join(words)
