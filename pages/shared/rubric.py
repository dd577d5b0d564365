"""The rubric beside one to three responses: criterion, judges' verdicts, physicians' verdicts, and the viewer's own."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from evalcore.errors import OverreadError
from evalcore.reading import exposing, overriding
from evalcore.reading.read_queries import Opened
from evalcore.reading.reviewing import Decision, as_label
from evalcore.study.frames import records
from evalcore.study.policies import check_can_give_verdict, check_can_open, reason
from evalcore.study.schema import Acuity, Cause, Label, Severity, Source, Viewer
from pages.shared import common, html
from pages.shared.keys import CAUSES, OF_CRITERION, SEVERITIES, error_words

WORDS: dict[Label | Acuity, str] = {
    Label.MET: "✓ Met", Label.NOT_MET: "○ Not met", Label.CANNOT_ASSESS: "– Cannot assess"
}  # fmt: skip
SHORT = WORDS | {Label.CANNOT_ASSESS: "– Cannot"}
LEVELS: dict[Label | Acuity, str] = {
    **{level: level.value for level in Acuity if level is not Acuity.REMOVE},
    Label.CANNOT_ASSESS: "– Cannot assess",
}
MOVES = (
    "Your verdict here is open. It changes the reference label of an item that is not settled, and may send it to "
    "Adjudicate. Corrected scores, judges' records and agreement do not count it."
)
WHOLE = 0  # stands for no criterion
WIDGETS = ("label", "cause", "severity", "wrong", "note")


@common.fragment
def panel(
    viewer: Viewer, example_id: int, response_ids: list[int], judge: str, only: set[tuple[int, int]] | None
) -> None:
    """Every criterion with everybody's verdicts; saves what the viewer says at once, and redraws itself alone."""
    opened = open_conversation(viewer, example_id)
    if opened is None:
        return
    drawn = Cells(viewer, opened, judge, response_ids)
    for row in opened.criteria.to_dict(orient="records"):
        number = int(row["criterion_id"])
        if only is not None and not any((response, number) in only for response in response_ids):
            continue
        points = None if pd.isna(row["points"]) else row["points"]
        tags = [tag.replace("_", " ") for tag in (row["axis"], row["cluster"] and "consensus") if isinstance(tag, str)]
        st.html(html.criterion(int(row["position"]), row["text"], points, tags))
        for response, column in zip(response_ids, columns(response_ids), strict=True):
            with column:
                drawn.cell(response, number)
        st.html('<hr class="or-rule">')
    if drawn.acted:  # only now: what is not drawn in a run loses its state, and with it a click of the same run
        common.draw_anew()


def open_conversation(viewer: Viewer, example_id: int) -> Opened | None:
    """The conversation, which is written down as seen; None where it cannot be shown, and that is said."""
    waits = reason(check_can_open, viewer, example_id, common.blind(viewer))
    if waits:  # it was assigned to the viewer after the page had been drawn
        st.html(html.notice(waits))
        return None
    with common.shown_errors():
        return opened(viewer, example_id)
    return None


def opened(viewer: Viewer, example_id: int) -> Opened | None:
    """Likewise, once for the page and its parts; NotAllowed: it waits for the viewer's own read."""
    opening = partial(exposing.open_conversation, common.engine(), viewer, example_id)
    return common.in_run(("opened", viewer, example_id), opening)


def columns(response_ids: Sequence[int]) -> Sequence[DeltaGenerator]:
    """A place for each of some responses, beside one another."""
    n = len(response_ids)
    return st.columns(n, gap="medium") if n > 1 else [st.container() for _ in response_ids]


class Cells:
    """What everybody says of an item (a criterion, or the level of care), and the viewer's own verdict, saved at once."""

    def __init__(self, viewer: Viewer, opened: Opened, judge: str, response_ids: Sequence[int]) -> None:
        why_not = reason(check_can_give_verdict, viewer)
        if why_not:
            st.html(html.notice(why_not, reachable=True))
        else:
            st.html(html.quiet(MOVES))
        if notice := st.session_state.pop("rubric_notice", None):
            st.html(html.notice(notice, kind="warning"))
        self._viewer, self._judge = viewer, judge
        self._disabled, self._wide = bool(why_not), len(response_ids) == 1
        responses = opened.responses
        self._names = (
            {} if self._wide else dict(zip(responses["response_id"], html.response_names(responses), strict=True))
        )
        self.acted = False
        # Which verdict each widget was last set to. A dictionary: at each access to the session a click may end the run.
        self._drawn: dict[str, int | None] = st.session_state.setdefault("rubric_drawn", {})
        verdicts = opened.verdicts
        of_criteria = verdicts["criterion_id"].astype(float).fillna(WHOLE).astype(int)
        self._given: dict[tuple[Any, int], list[dict[str, Any]]] = defaultdict(list)
        for row, criterion in zip(records(verdicts), of_criteria, strict=True):
            self._given[row["response_id"], criterion].append(row)

    def cell(self, response: int, criterion: int | None) -> None:
        """Judges first, then the physicians, then the viewer's own verdict."""
        given = self._given[response, WHOLE if criterion is None else criterion]
        judged = [row for row in given if row["rater_kind"] == "judge"]
        judged.sort(key=lambda row: (row["rater"] != self._judge, row["rater"]))
        own = "reviewer", self._viewer.name, "open"
        mine = next((row for row in given if (row["rater_kind"], row["rater"], row["stage"]) == own), None)
        others = [row for row in given if row["rater_kind"] == "reviewer" and row is not mine and row["label"]]
        parts = [f'<div class="or-of">{html.escaped(self._names[response])}</div>'] if self._names else []
        parts += [html.judge_verdict(row["rater"], row["label"], row["explanation"]) for row in judged]
        parts += [read(row) for row in others]
        if not judged:
            parts.insert(len(parts) - len(others), '<div class="or-verdict or-stamp">No judge has labelled this.</div>')
        st.html("".join(parts))
        if criterion is None and judged:  # who reads levels is another for each format: the one that stands first
            judge, of_judge = judged[0]["rater"], judged[0]["label"]
        else:
            judge, of_judge = self._judge, next((row["label"] for row in judged if row["rater"] == self._judge), None)
        self._own(response, criterion, mine, judge, of_judge)

    def _own(
        self, response: int, criterion: int | None, mine: dict[str, Any] | None, judge: str, of_judge: str | None
    ) -> None:
        key = f"{response}_{criterion}"
        item: Any = {"response_id": response, "criterion_id": criterion}
        seen = int(mine["verdict_id"]) if mine else None
        if f"label_{key}" in st.session_state and self._drawn.get(f"label_{key}", seen) != seen:
            changed = "Your verdict here was changed in another tab. The newer one is shown now; a click on the older one was not saved."
            st.html(html.notice(changed, kind="warning"))
        stored = Decision(
            label=as_label(mine["label"]) if mine and mine["label"] else None,  # type: ignore[arg-type]
            cause=Cause(mine["cause"]) if mine and mine["cause"] else None,
            severity=Severity(mine["severity"]) if mine and mine["severity"] else None,
            right_for_wrong_reason=bool(mine and mine["right_for_wrong_reason"]),
            note=(mine["explanation"] or "") if mine else "",
        )
        with st.container(horizontal=True, vertical_alignment="center", gap="small", key=f"own_{key}"):
            words = LEVELS if criterion is None else WORDS if self._wide else SHORT
            asked = "Your verdict" if criterion is not None else "The level that you read"
            look: Any = {"required": True, "label_visibility": "collapsed", "wrap": criterion is None}
            look |= {"disabled": self._disabled, "key": self._synced(f"label_{key}", stored.label, seen)}
            label = st.segmented_control(asked, list(words), format_func=words.__getitem__, **look)
            if mine and mine["label"]:
                saved = html.escaped(common.local_time(mine["created_at"])[11:])
                st.html(f'<span class="or-stamp">saved {saved}</span>', width="content")
            if seen is not None and st.button("Undo", key=f"undo_{key}", type="tertiary", disabled=self._disabled):
                self._act(lambda: overriding.undo(common.engine(), self._viewer, **item, seen=seen), key, keep=())
                return
        decision = stored
        if label is not None and label != stored.label:
            decision = Decision(label=label, note=stored.note)
        elif stored.label is not None:
            known = [cause for cause in CAUSES if criterion is not None or cause not in OF_CRITERION]
            decision = self._details(key, seen, stored, of_judge, known)
        if decision != stored:
            how: Any = {**item, "decision": decision, "judge": judge, "seen": seen}
            keep = ("label", "note") if decision.label != stored.label else WIDGETS
            self._act(lambda: overriding.give_verdict(common.engine(), self._viewer, **how), key, keep=keep)

    def _details(
        self, key: str, seen: int | None, stored: Decision, of_judge: str | None, known: list[Cause]
    ) -> Decision:
        with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key=f"details_{key}"):
            decision = stored
            if of_judge is not None and stored.label != of_judge:
                cause = st.selectbox(
                    "Why it differs", [cause for cause in CAUSES if cause in known or cause is stored.cause], index=None,
                    format_func=lambda value: CAUSES[value], placeholder="Choose a cause",
                    disabled=self._disabled, key=self._synced(f"cause_{key}", stored.cause, seen), width=212,
                )  # fmt: skip
                severity = st.selectbox(
                    "Harm of the error", list(SEVERITIES), index=None, format_func=lambda value: SEVERITIES[value], placeholder="Choose",
                    disabled=self._disabled, key=self._synced(f"severity_{key}", stored.severity, seen), width=128,
                )  # fmt: skip
                decision = replace(decision, cause=cause, severity=severity)
            elif of_judge is not None:
                wrong_key = self._synced(f"wrong_{key}", stored.right_for_wrong_reason, seen)
                wrong = st.checkbox("Right label, wrong reasoning", disabled=self._disabled, key=wrong_key)
                decision = replace(decision, right_for_wrong_reason=wrong)
            note = st.text_input(
                "Note", placeholder="Note, saved with Enter", disabled=self._disabled,
                key=self._synced(f"note_{key}", stored.note, seen), width="stretch",
            )  # fmt: skip
        return replace(decision, note=(note or "").strip())

    def _act(self, act: Callable[[], int], key: str, *, keep: Sequence[str]) -> None:
        """Do it, and have all drawn anew. Widgets to keep hold what was saved or said since, which must not be lost."""
        numbers: list[int] = []
        try:
            common.saved(lambda: numbers.append(act()))
        except OverreadError as error:
            st.session_state["rubric_notice"] = str(error)
        for number in numbers:
            for name in WIDGETS:
                if name in keep:
                    self._drawn[f"{name}_{key}"] = number
                else:
                    self._drawn.pop(f"{name}_{key}", None)
        self.acted = True

    def _synced(self, key: str, stored: object, seen: int | None) -> str:
        """A widget's key; its value is set to what is stored where it is new or showed another verdict."""
        if key not in st.session_state or self._drawn.get(key, -1) != seen:
            st.session_state[key] = stored
            self._drawn[key] = seen
        return key


def read(row: dict[str, Any]) -> str:
    """What a physician says, at which stage, how it came where that was by a file, and why."""
    words = []
    if row["source"] == Source.IMPORT:
        by = f" by {row['brought_by']}" if row["brought_by"] else ""
        words.append(f"from a file, imported {common.local_day(row['recorded_at'])}{by}")
    words += error_words(row["cause"], row["severity"])
    if row["right_for_wrong_reason"]:
        words.append("right label, wrong reasoning")
    return html.read_verdict(row["rater"], row["label"], row["stage"], words, row["explanation"])
