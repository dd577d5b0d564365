"""What the sections of the Judges page share: numbers that are kept, and the line under the title."""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from streamlit.delta_generator import DeltaGenerator

from evalcore.judges.record import Reads, assessed, is_choice
from evalcore.rubric.data import RubricData, first_reads
from evalcore.stats.wording import counted
from evalcore.study.schema import Viewer
from pages.shared import common, page_cache

_Made = TypeVar("_Made")
PAGE = "judges"
KEYS = ("judges_show", "judges_judge", "criteria_by")


def computed(make: Callable[..., _Made], viewer: Viewer, *arguments: Any) -> _Made:
    """What `make(rubric_data, *arguments)` gives, as `page_cache.computed` keeps it."""
    return page_cache.computed(make, viewer, lambda: common.rubric_data(viewer), *arguments)


leave = partial(page_cache.leave, PAGE, KEYS)
left = partial(page_cache.left, PAGE)


def names(rubric_data: RubricData) -> list[str]:
    """The judges that have labelled a criterion, those with most labels first."""
    return rubric_data.judges


def read_beside(rubric_data: RubricData) -> list[str]:
    """The judges of which a label stands beside a physician's blind first read."""
    reads = first_reads(rubric_data.reads)
    rows = reads.loc[reads["met"].notna(), "row"].to_numpy()
    return [judge for judge in rubric_data.judges if rubric_data.judged[judge].iloc[rows].notna().any()]


READS = {Reads.DRAWN: "Drawn, weighted", Reads.ALL: "All, each once"}


def chosen_reads(row: DeltaGenerator, *, asked: bool) -> Reads | None:
    """Which reads enter, asked where the drawn ones, weighted, are not all; None: drawn ones if there are any."""
    if not asked:
        return None
    words = row.segmented_control(
        "Reads",
        list(READS.values()),
        default=READS[Reads.DRAWN],
        required=True,
        key="judges_reads",
        bind="query-params",
        help="Drawn reads count by one over the probability with which their item was drawn, so they stand for what was not read. "
        "Volunteered reads do not: they show with all.",
    )
    return Reads.ALL if words == READS[Reads.ALL] else None


def has_choice(rubric_data: RubricData) -> bool:
    """Whether drawn reads, weighted, differ from all blind first reads."""
    return is_choice(assessed(rubric_data.reads))


def n_reads(rubric_data: RubricData) -> int:
    """How many blind first reads there are."""
    return len(first_reads(rubric_data.reads))


def beside(rubric_data: RubricData, judge: str) -> str:
    """What one looks at: the judge and the reads that its labels stand beside."""
    reads = first_reads(rubric_data.reads)
    labelled = rubric_data.judged[judge].notna().to_numpy()[reads["row"].to_numpy()]
    known = reads.loc[labelled & reads["met"].notna()]
    return f"Judge {judge} beside {reads_words(len(known), known['example_id'].nunique())}"


def between(rubric_data: RubricData) -> str:
    """What one looks at where physicians stand beside one another."""
    reads = first_reads(rubric_data.reads)
    n_cannot_assess = int(reads["met"].isna().sum())
    more = f", {n_cannot_assess:,} of which could not assess" if n_cannot_assess else ""
    return f"{reads_words(len(reads), reads['example_id'].nunique())}{more}".capitalize()


def reads_words(n_reads: int, n_examples: int) -> str:
    """How many reads, in words."""
    return f"{counted(n_reads, 'blind first read')} of criteria in {counted(n_examples, 'conversation')}"
