"""Every write. Each act appends its audit event in the transaction of the act."""

from evalcore.study.store.analyses import state_analysis
from evalcore.study.store.bulk import Bulk
from evalcore.study.store.events import FIRST_PREVIOUS_HASH, append_event
from evalcore.study.store.families import set_families
from evalcore.study.store.imports import add_imported_file, append_part, begin_parts, end_parts, note_part
from evalcore.study.store.people import add_person, ensure_rater, ensure_study
from evalcore.study.store.plain_text import is_storable
from evalcore.study.store.rules import set_guideline, set_rules
from evalcore.study.store.searching import index_texts, refresh_statistics
from evalcore.study.store.verdicts import add_verdicts
from evalcore.study.store.written import forget_written, wait_for_others, written

__all__ = [
    "FIRST_PREVIOUS_HASH",
    "Bulk",
    "add_imported_file",
    "add_person",
    "add_verdicts",
    "append_event",
    "append_part",
    "begin_parts",
    "end_parts",
    "ensure_rater",
    "ensure_study",
    "forget_written",
    "index_texts",
    "is_storable",
    "note_part",
    "refresh_statistics",
    "set_families",
    "set_guideline",
    "set_rules",
    "state_analysis",
    "wait_for_others",
    "written",
]
