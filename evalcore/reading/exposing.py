"""To see verdicts is an act of its own: it takes a conversation out of one's blind reads, and is written down before anything is shown.

Of a study that is read-only nothing is written down: nobody reads blind there either.
"""

from collections.abc import Collection
from contextlib import suppress

from evalcore.errors import NotFound, ReadOnly, refuse
from evalcore.reading import queries, store as reading_store
from evalcore.reading.read_queries import Opened, open_example
from evalcore.stats.wording import counted
from evalcore.study import contents, store
from evalcore.study.acting import allow
from evalcore.study.audit import trail
from evalcore.study.db import Engine, Session, reading, writing
from evalcore.study.policies import check_can_assign, check_can_open
from evalcore.study.schema import READER_CHOSEN, VERDICTS_SEEN, Seen, Viewer

MAX_BROWSER = 200  # characters


def open_conversation(engine: Engine, viewer: Viewer, example_id: int) -> Opened | None:
    """Everything on one example; None where there is none of this number. Where others have said something on it, the viewer has seen that."""
    with reading(engine) as session:
        opened = open_example(session, example_id)
        others = opened is not None and (opened.is_case or bool(opened.verdicts["rater"].ne(viewer.name).any()))
        is_known = not others or not reading_store.unseen(session, viewer.person_id, Seen.CONVERSATION, [example_id])
    if not is_known:
        expose(engine, viewer, Seen.CONVERSATION, [example_id])
    return opened


def preview(engine: Engine, viewer: Viewer, named: Collection[str], *, blind: frozenset[int]) -> None:
    """Write that somebody sees the rows of a table on these examples, as its column example_id names them."""
    with reading(engine) as session:
        numbers = queries.numbers_of(session, named) - blind  # a name may stand in two data sets
    expose(engine, viewer, Seen.PREVIEW, numbers)


def expose(engine: Engine, viewer: Viewer, what: Seen, examples: Collection[int]) -> None:
    """Write that somebody sees others' verdicts on some examples, before they are shown. Nothing is written of what is known already."""
    with reading(engine) as session:
        if not reading_store.unseen(session, viewer.person_id, what, examples):
            return
    try:
        with writing(engine, though_frozen=True) as session:
            store.wait_for_others(session)  # whoever assigns at the same time comes before this, or after
            _check(session, viewer, examples)
            if reading_store.add_exposures(session, viewer.person_id, what, examples):
                subject = f"example {next(iter(examples))}" if len(examples) == 1 else counted(len(examples), "example")
                where = {"where": what}
                store.append_event(session, actor=viewer.name, action=VERDICTS_SEEN, subject=subject, detail=where)
    except ReadOnly:
        with reading(engine) as session:
            _check(session, viewer, examples)


def _check(session: Session, viewer: Viewer, examples: Collection[int]) -> None:
    blind = queries.blind_examples(session, viewer)
    for number in examples:
        check_can_open(viewer, number, blind)


def release(engine: Engine, viewer: Viewer, person_id: int) -> None:
    """Let somebody see every verdict, and read nothing blind any more."""
    with writing(engine) as session:
        allow(session, viewer, check_can_assign)
        store.wait_for_others(session)
        person = contents.person(session, person_id)
        if person is None:
            refuse(f"This study has no person {person_id}.", NotFound)
        if reading_store.add_exposures(session, person_id, Seen.RELEASED, None):
            store.append_event(session, actor=viewer.signature, action="reader released", subject=person.name)


def choose_reader(engine: Engine, viewer: Viewer, browser: str) -> None:
    """Leave an event where somebody comes by a browser (those that say the same of themselves are one) by which somebody else came last, or nobody."""
    subject = "".join(filter(str.isprintable, browser))[:MAX_BROWSER] or "a browser that does not say which"
    with reading(engine) as session:
        last = trail.last_actor(session, READER_CHOSEN, subject)
    if last != viewer.name:
        with suppress(ReadOnly), writing(engine, though_frozen=True) as session:
            detail = {"before": last} if last else {}
            store.append_event(session, actor=viewer.name, action=READER_CHOSEN, subject=subject, detail=detail)
