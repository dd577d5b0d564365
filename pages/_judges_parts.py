"""What the sections of the Judges page share: numbers that are kept, and the line under the title."""

from collections.abc import Callable
from typing import Any

import streamlit as st

from evalcore.metrics.opinions import first_reads
from evalcore.opinions import Opinions
from evalcore.schema import Viewer
from evalcore.settings import settings
from pages import _common

LEFT = "judges_left"
KEYS = ("judges_show", "judges_judge", "criteria_by")
Made = Callable[..., Any]


@st.cache_data(max_entries=128, show_spinner=False)
def _computed(
    location: str,  # noqa: ARG001 - the key
    version: Any,  # noqa: ARG001 - the key
    hidden: frozenset[int],  # noqa: ARG001 - the key
    name: str,  # noqa: ARG001 - the key
    arguments: tuple[Any, ...],
    _make: Made,
    _viewer: Viewer,
) -> Any:
    return _make(_common.opinions(_viewer), *arguments)


def computed(make: Made, viewer: Viewer, *arguments: Any) -> Any:
    """What `make(opinions, *arguments)` gives; made anew as soon as anything in the study has changed.

    Args:
        make: A function of a module; its name is part of the key.
        viewer: Who looks: conversations that wait for this person's own read are left out.
        arguments: Further ones, small: they are part of the key.
    """
    name = f"{make.__module__}.{make.__qualname__}"
    return _computed(settings().db, _common.version(), _common.blind(viewer), name, arguments, make, viewer)


def leave(group: str | int) -> None:
    """Keep what is chosen, for the browser's way back: Streamlit empties this page's address before it goes to another page.

    Args:
        group: Whose items are listed.
    """
    kept = {key: st.session_state[key] for key in KEYS if key in st.session_state}
    st.session_state[LEFT] = {**kept, "group": group}


def left(key: str, usual: Any = None) -> Any:
    """What was chosen before, after the browser's way back from a conversation; else what is usual."""
    return st.session_state.get(LEFT, {}).get(key, usual) if "example" in st.query_params else usual


def names(opinions: Opinions) -> list[str]:
    """The judges that have labelled a criterion, those with most labels first."""
    return opinions.judges


def read_beside(opinions: Opinions) -> list[str]:
    """The judges of which a label stands beside a physician's blind first read."""
    reads = first_reads(opinions.reads)
    rows = reads.loc[reads["met"].notna(), "row"].to_numpy()
    return [judge for judge in opinions.judges if opinions.judged[judge].iloc[rows].notna().any()]


def n_reads(opinions: Opinions) -> int:
    """How many blind first reads there are."""
    return len(first_reads(opinions.reads))


def beside(opinions: Opinions, judge: str) -> str:
    """What one looks at: the judge and the reads that its labels stand beside."""
    reads = first_reads(opinions.reads)
    labelled = opinions.judged[judge].notna().to_numpy()[reads["row"].to_numpy()]
    known = reads.loc[labelled & reads["met"].notna()]
    return f"Judge {judge} beside {reads_words(len(known), known['example_id'].nunique())}"


def between(opinions: Opinions) -> str:
    """What one looks at where physicians stand beside one another."""
    reads = first_reads(opinions.reads)
    n_cannot_assess = int(reads["met"].isna().sum())
    more = f", {n_cannot_assess:,} of which could not assess" if n_cannot_assess else ""
    return f"{reads_words(len(reads), reads['example_id'].nunique())}{more}".capitalize()


def reads_words(n_reads: int, n_examples: int) -> str:
    """How many reads, in words.

    >>> reads_words(1, 1)
    '1 blind first read of criteria in 1 conversation'
    """
    reads = "read" if n_reads == 1 else "reads"
    conversations = "conversation" if n_examples == 1 else "conversations"
    return f"{n_reads:,} blind first {reads} of criteria in {n_examples:,} {conversations}"
