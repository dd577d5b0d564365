"""What the pages of results need of a large study is read while its lead, or a researcher, is still elsewhere: it takes seconds."""

import logging
from functools import cache
from threading import Thread

from evalcore.rubric import queries as rubric_queries
from evalcore.settings import settings
from evalcore.study.db import reading
from evalcore.study.policies import STUDY
from evalcore.study.schema import Viewer
from evalcore.triage import queries as triage_queries
from pages.shared import common

_log = logging.getLogger(__name__)
THREAD = "read ahead"


def begin(person: Viewer) -> None:
    """Once a process, study and person. Physicians who only read never wait for it, and a server for them alone does not hold it in memory."""
    known = settings()
    if known.read_ahead and person.roles & STUDY:
        begun(known.db, person)


@cache
def begun(location: str, person: Viewer) -> Thread:  # noqa: ARG001 - the key
    """The thread that reads."""
    thread = Thread(target=_read, args=(person,), name=THREAD, daemon=True)
    thread.start()
    return thread


def _read(person: Viewer) -> None:
    try:
        with reading(common.engine()) as session:
            has_cases, has_criteria = triage_queries.has_cases(session), rubric_queries.has_criteria(session)
        if has_cases:
            from pages.shared import triage_choice  # noqa: PLC0415 - their code takes a moment to load as well
            from pages.triage import matrices  # noqa: F401, PLC0415 - their code takes a moment to load as well

            triage_choice.read(person, triage_choice.usual(triage_choice.about(person)))
        if has_criteria:
            common.rubric_data(person)
    except Exception:  # noqa: BLE001 - the page that needs it meets the same, and says so
        _log.debug("reading ahead broke off", exc_info=True)
