"""An adjudicator who reads nothing sees the same whatever the judge says of what waits to be settled."""

import pytest

from evalcore.export import tables as export_tables
from evalcore.reading import reviewing
from evalcore.reading.adjudication import to_settle
from evalcore.study.db import reading
from evalcore.study.schema import ReadingState, Role
from tests import world
from tests.adjudicating_steps import IMANI, SOL, TOVE, opened, waiting
from tests.page_steps import words
from tests.reading_steps import decide_the_rest

PAGES = ("overview", "browse", "judges", "study")


def made(location, judged):
    """Two conversations, read by two: on the first they differ over one criterion, on the second they agree."""
    study = world.made(location, points=((7, -4, 3), (5, 2)), judged=judged)
    world.add_researcher(study.engine, SOL, Role.ADJUDICATOR)
    world.assigned(study)
    for name, labels in ((IMANI, {1: "++?", 2: "++"}), (TOVE, {1: "+-+", 2: "++"})):
        for _ in labels:
            desk = reviewing.take(study.engine, study.viewer(name), at=world.START)
            number = world.answer(study, study.viewer(name), desk, labels[desk.asked.example_id])
            if world.lock(study.engine, study.viewer(name), number, at=world.START) is ReadingState.REVEALED:
                decide_the_rest(study, number, name=name)
    return study


def told(case):
    """What the screen shows of a case, readers in one order."""
    return [
        (
            question.criterion,
            question.reasons,
            question.differ,
            sorted(
                [(said.stage, said.label, said.cause, said.severity) for said in reader.said]
                for reader in question.readers
            ),
            question.judge,
            question.judged,
        )
        for question in case.questions
    ]


@pytest.mark.slow
def test_other_labels_of_the_judge_change_nothing_that_an_adjudicator_without_reads_sees(
    tmp_path, open_page, monkeypatch
):
    seen = []
    for judged in ("+-+++", "-+-++"):
        path = str(tmp_path / f"study{judged.replace('+', 'p').replace('-', 'm')}.db")
        monkeypatch.setenv("OVERREAD_DB", path)
        study = made(path, judged)
        with reading(study.engine) as session:
            blind = to_settle(session, study.viewer(SOL))
        assert blind == {1}
        tables = {
            what: export_tables.table(study.engine, what, export_tables.Part(blind=blind))
            for what in export_tables.WHAT
        }
        taken = {
            what: table.loc[:, ~table.columns.str.endswith("_at")].to_csv(index=False) for what, table in tables.items()
        }
        shown = {page: words(open_page(path, page, SOL)) for page in PAGES}
        seen.append((taken, shown, waiting(study), told(opened(study))))
        study.engine.dispose()
    for other in seen[1:]:
        for one, two in zip(seen[0], other, strict=True):
            assert one == two
