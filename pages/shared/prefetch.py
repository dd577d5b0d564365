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
    if settings().read_ahead and person.roles & STUDY:
        begun(common.location(), person)


@cache
def begun(location: str, person: Viewer) -> Thread:
    """The thread that reads."""
    thread = Thread(target=_read, args=(location, person), name=THREAD, daemon=True)
    thread.start()
    return thread


def _read(location: str, person: Viewer) -> None:
    try:
        with common.at(location):
            _read_all(person)
    except Exception:  # noqa: BLE001 - the page that needs it meets the same, and says so
        _log.debug("reading ahead broke off", exc_info=True)


def _read_all(person: Viewer) -> None:
    with reading(common.engine()) as session:
        has_cases, has_criteria = triage_queries.has_cases(session), rubric_queries.has_criteria(session)
    if has_cases:
        from pages.shared import triage_choice  # noqa: PLC0415 - their code takes a moment to load as well
        from pages.triage import matrices  # noqa: F401, PLC0415 - their code takes a moment to load as well

        triage_choice.read(person, triage_choice.usual(triage_choice.about(person)))
    if has_criteria:
        common.rubric_data(person)
