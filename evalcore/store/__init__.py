"""Every write. Each act appends its audit event in the transaction of the act."""

from evalcore.store.bulk import Bulk, add_imported_file
from evalcore.store.events import FIRST_PREVIOUS_HASH, append_event
from evalcore.store.people import add_person, ensure_rater, ensure_study
from evalcore.store.plain_text import is_storable
from evalcore.store.searching import index_texts
from evalcore.store.verdicts import add_verdicts

__all__ = [
    "FIRST_PREVIOUS_HASH",
    "Bulk",
    "add_imported_file",
    "add_person",
    "add_verdicts",
    "append_event",
    "ensure_rater",
    "ensure_study",
    "index_texts",
    "is_storable",
]
