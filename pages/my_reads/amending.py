"""A read that is done, criterion by criterion: mine, the judge's, the final label; amended by a new verdict."""

from dataclasses import replace

import streamlit as st

from evalcore.errors import OverreadError
from evalcore.reading import deciding, desks
from evalcore.reading.deciding import Decision
from evalcore.study.schema import Ask, ReadingState, Viewer
from pages.review import html
from pages.review.html import QUESTIONS, Compared
from pages.review.revealing import as_decision, decided_words
from pages.shared import common, routes
from pages.shared import html as shared_html
from pages.shared import keys as reading_keys
from pages.shared.keys import Press


@common.fragment
def panel(viewer: Viewer, reading_id: int, finals: dict[int | None, str]) -> None:
    """Every item with what was said on it.

    Args:
        finals: The adjudicated label by criterion_id (None for acuity), where an item was settled.
    """
    desk = desks.desk(common.engine(), viewer, reading_id)
    if desk.state is not ReadingState.DONE:
        st.html(shared_html.notice("This read still waits for your decisions."))
        st.page_link(routes.REVIEW, label="Go on in Review", icon=":material/rate_review:")
        return
    keys, place_key = desk.keys, f"amend_{reading_id}"
    list_place = st.container(key="rows")
    with st.container(key="bar"):
        answers_place = st.container(horizontal=True, vertical_alignment="center", gap="small", key="answers")
        with st.container(horizontal=True, vertical_alignment="center", gap="small", key="moves"):
            at = min(int(st.session_state.get(place_key, 0)), len(keys) - 1)
            moved = reading_keys.step("", Press.UP, Press.DOWN)
            if moved:
                at = st.session_state[place_key] = max(0, min(at + moved, len(keys) - 1))
            st.html(html.keys_hint(), width="content")
        item = keys[at]
        first, before, judged = desk.first.get(item), desk.decided.get(item), desk.judged.get(item)
        standing = before or first
        said: Decision | None = None
        if standing is not None:
            current = as_decision(before) if before else Decision(label=desks.as_label(standing.label))  # type: ignore[arg-type]
            with answers_place:
                said = _answers(desk.asked.ask, current, judged.label if judged else None)
            typed = reading_keys.note(f"note_{reading_id}_{at}_amended", current.note)
            said = said if typed is None else replace(current, note=typed)
        if said is not None:
            _save(viewer, reading_id, item, said, before.verdict_id if before else None)
    clicked = reading_keys.listen(
        reading_keys.amending_keys(desk.asked.ask), f"Item {at + 1} of {len(keys)} is in hand."
    )
    if clicked is not None and clicked != at:
        st.session_state[place_key] = clicked
        common.draw_anew()
    notice = st.session_state.pop("amend_notice", None)
    rows = {row.criterion_id: row for row in desk.sheet.items}
    with list_place:
        if notice:
            st.html(shared_html.notice(notice, kind="warning"))
        lines = []
        for place, key in enumerate(keys):
            row, own = rows.get(key or 0), desk.first.get(key)
            decided, of_judge = desk.decided.get(key), desk.judged.get(key)
            if own is None:
                continue
            lines.append(
                Compared(
                    number=row.position if row else 1,
                    place=place,
                    text=row.text if row else QUESTIONS[desk.asked.ask],
                    points=row.points if row else None,
                    own=(decided or own).label,
                    judged=of_judge.label if of_judge else None,
                    explanation=of_judge.explanation if of_judge else None,
                    decided=f"first {_plain(own.label)} · {decided_words(own, decided)}" if decided else "",
                    final=finals.get(key),
                    is_current=place == at,
                    is_question=row is None,
                )
            )
        st.html(html.all_compared(lines, desk.judge or ""))


def _plain(label: str | None) -> str:
    return (label or "").replace("_", " ")


def _answers(ask: Ask, current: Decision, judge_label: str | None) -> Decision | None:
    """Another label, or that the judge's reason is wrong."""
    label = reading_keys.choose(reading_keys.answers(ask), "answer_{place}", disabled=current.label)
    if label is not None:
        return Decision(label=label, note=current.note)
    if judge_label is not None and current.label == judge_label:
        words = "Take back: reason wrong" if current.right_for_wrong_reason else "Judge's reason wrong"
        if st.button(words, key="wrong", shortcut=Press.REASON_WRONG.key):
            return replace(current, right_for_wrong_reason=not current.right_for_wrong_reason)
    return None


def _save(viewer: Viewer, reading_id: int, item: int | None, said: Decision, seen: int | None) -> None:
    try:
        common.saved(lambda: deciding.decide(common.engine(), viewer, reading_id, item, said, seen=seen))
    except OverreadError as error:
        st.session_state["amend_notice"] = str(error)
    common.draw_anew()
