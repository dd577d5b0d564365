"""What can be taken out of the study, kept until it changes: tables, and the methods of a paper."""

from typing import NamedTuple

import pandas as pd
import streamlit as st

from evalcore.export import methods
from evalcore.export import tables as export_tables
from evalcore.export.bundle import FILES
from evalcore.settings import settings
from pages.shared import common


@st.cache_data(max_entries=4, show_spinner="Making the table")
def _table(
    location: str,  # noqa: ARG001 - the key
    version: common.Version,  # noqa: ARG001 - the key
    what: str,
    part: export_tables.Part,
) -> pd.DataFrame:
    return export_tables.table(common.engine(), what, part)


def table(what: str, part: export_tables.Part) -> pd.DataFrame:
    """A table of `export`, made anew as soon as anything in the study has changed."""
    return _table(settings().db, common.version(), what, part)


class Paper(NamedTuple):
    """What of a paper a study can write.

    Attributes:
        paragraph, page: The methods, as text and with headings.
        checklist: Where the items of reporting guidelines stand, as Markdown.
        flow: The flow diagram as SVG; empty where no judge has labelled anything.
        items: How many items of the guidelines have each status.
    """

    paragraph: str
    page: str
    checklist: str
    flow: str
    items: dict[str, int]


@st.cache_data(max_entries=4, show_spinner=False)
def _paper(
    location: str,  # noqa: ARG001 - the key
    version: common.Version,  # noqa: ARG001 - the key
    hidden: frozenset[int],
) -> Paper:
    done = methods.facts(common.engine(), blind=hidden)
    texts, tables = methods.documents(done, files=FILES)
    items = tables["checklist"].drop_duplicates(["guideline", "item"])["status"].value_counts()
    return Paper(
        paragraph=methods.paragraph(done),
        page=texts["methods.md"],
        checklist=texts["checklist.md"],
        flow=texts.get("flow.svg", ""),
        items={str(status): int(n) for status, n in items.items()},
    )


def paper(hidden: frozenset[int]) -> Paper:
    """What was done, for a paper, without conversations that wait for the viewer's own first read."""
    return _paper(settings().db, common.version(), hidden)
