"""Every write. Each act appends its audit event in the transaction of the act."""

from evalcore.study.store.bulk import Bulk, as_json
from evalcore.study.store.events import (
    FIRST_PREVIOUS_HASH,
    append_event,
    forget_written,
    is_storable,
    wait_for_others,
    written,
)
from evalcore.study.store.imports import (
    add_imported_file,
    append_part,
    begin_parts,
    end_parts,
    index_texts,
    note_part,
    refresh_statistics,
)
from evalcore.study.store.setup import (
    MAX_GUIDELINE,
    add_person,
    ensure_rater,
    ensure_study,
    set_families,
    set_guideline,
    set_rules,
    state_analysis,
)
from evalcore.study.store.verdicts import add_verdicts

__all__ = [
    "FIRST_PREVIOUS_HASH",
    "MAX_GUIDELINE",
    "Bulk",
    "add_imported_file",
    "add_person",
    "add_verdicts",
    "append_event",
    "append_part",
    "as_json",
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
