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


_searched = st.cache_data(max_entries=common.CACHED_LISTS, show_spinner=False)(suspects)


def of(response_id: int) -> str:
    """The line of a response as HTML, "" where nothing is suspect or no judge has labelled it."""
    with reading(common.engine()) as session:
        flagged = queries.suspects_of(session, [response_id]).get(response_id)
        text = "" if flagged else queries.judged_text(session, response_id)
    return line(flagged or _searched(text))


def show(response_id: int | None) -> None:
    """Draw the line of a suspect response; only beside a judge's verdict: a blind reader reads it as any other."""
    if response_id is not None and (found := of(response_id)):
        st.html(found)
