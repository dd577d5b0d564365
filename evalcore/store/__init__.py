"""Every write. Each act appends its audit event in the transaction of the act."""

from evalcore.store.analyses import state_analysis
from evalcore.store.bulk import Bulk
from evalcore.store.events import FIRST_PREVIOUS_HASH, append_event
from evalcore.store.exposures import add_exposures, unseen
from evalcore.store.families import set_families
from evalcore.store.imports import add_imported_file, append_part, begin_parts, end_parts, note_part
from evalcore.store.people import add_person, ensure_rater, ensure_study
from evalcore.store.plain_text import is_storable
from evalcore.store.readings import (
    add_assignment,
    add_mark,
    drop_mark,
    drop_reading,
    open_reading,
    set_guideline,
    set_rules,
    set_state,
    touch,
    wait_for_others,
)
from evalcore.store.searching import index_texts, refresh_statistics
from evalcore.store.suspects import flag_suspects
from evalcore.store.triage import set_confidence_meaning, set_label_map, set_triage_settings, write_confidence_meaning
from evalcore.store.verdicts import add_verdicts
from evalcore.store.written import forget_written, written

__all__ = [
    "FIRST_PREVIOUS_HASH",
    "Bulk",
    "add_assignment",
    "add_exposures",
    "add_imported_file",
    "add_mark",
    "add_person",
    "add_verdicts",
    "append_event",
    "append_part",
    "begin_parts",
    "drop_mark",
    "drop_reading",
    "end_parts",
    "ensure_rater",
    "ensure_study",
    "flag_suspects",
    "forget_written",
    "index_texts",
    "is_storable",
    "note_part",
    "open_reading",
    "refresh_statistics",
    "set_confidence_meaning",
    "set_families",
    "set_guideline",
    "set_label_map",
    "set_rules",
    "set_state",
    "set_triage_settings",
    "state_analysis",
    "touch",
    "unseen",
    "wait_for_others",
    "write_confidence_meaning",
    "written",
]
