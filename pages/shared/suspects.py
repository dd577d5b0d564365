"""The line that says of a response that it holds text which speaks to the judge."""

from collections.abc import Sequence

import streamlit as st

from evalcore.runs import queries
from evalcore.runs.suspicion import suspects
from evalcore.study.db import reading
from pages.shared import common, html


def line(reasons: Sequence[str]) -> str:
    """One calm line as HTML; "" where nothing was found."""
    return html.notice(f"This answer holds text that speaks to the judge: {' '.join(reasons)}") if reasons else ""


@st.cache_data(max_entries=common.CACHED_LISTS, show_spinner=False)
def _searched(text: str) -> tuple[str, ...]:
    return suspects(text)


def of(response_id: int) -> str:
    """The line of one response as HTML; "" where it is not suspect, or where no judge has said anything of it.

    What a run has not flagged is searched here: verdicts may have come by file, and an import searches nothing (`suspects`).
    """
    with reading(common.engine()) as session:
        flagged = queries.suspects_of(session, [response_id]).get(response_id, ())
        text = "" if flagged else queries.judged_text(session, response_id)
    return line(flagged or _searched(text))


def show(response_id: int | None) -> None:
    """Draw the line under a response, where it is suspect.

    Only beside a judge's verdict. In Review that is after the reveal, though the words themselves stand in the response from the start: a
    blind reader shall read it as any other, and not learn from us that its judge is to be watched, nor which words a machine found in it.
    """
    if response_id is not None and (found := of(response_id)):
        st.html(found)
