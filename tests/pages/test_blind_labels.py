"""Other labels where somebody is blind change nothing that they see, on no page and in no file."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from sqlalchemy import Engine

from evalcore.export import tables as export_tables
from evalcore.study import browse
from pages.shared import filters
from tests import leaks
from tests.blind_walks import ASSIGNED, BRIEF, BY_LEVEL, Phase, Visit, Walker, as_words, can_go
from tests.export_steps import as_file
from tests.leaks import BLIND, EVERY_ROLE, OPEN_EYES, REVIEWER, SECRETS, WALKERS

# ---------------------------------------------------------------- what cannot be looked for by a word: labels


NOT_MET = {"assign_judge": leaks.JUDGE, "assign_label": "not_met", "assign_sign": "desirable"}  # once turned round


FLIPPED: tuple[Visit, ...] = (
    *(visit for visit in BRIEF if "read" not in visit.query),
    *(Visit("browse", {"reads": filters.READS[state]}) for state in (browse.OVERRIDDEN, browse.CONFLICTING)),
    Visit("browse", {"label": "met"}),
    Visit("study", chosen={**ASSIGNED, **NOT_MET}, pressed=("assign_check",)),
    *(Visit("study", chosen={**ASSIGNED, "assign_reads": state}, pressed=("assign_check",)) for state in (browse.OVERRIDDEN, browse.CONFLICTING)),
)  # fmt: skip


def changed(
    walker: Callable[..., Walker], phase: Phase, name: str, visits: Sequence[Visit], spared: int | None
) -> dict[str, list[str]]:
    """Visits that look otherwise once verdicts are turned round, by what is turned round."""
    seen = {}
    for which in ("nothing", *leaks.FLIPS):
        one = walker(phase.path, name=f"{phase.path.stem} {which}")
        if which != "nothing":
            assert one.flip(which, but=spared if which == "judge" else None) > 0
        one.come(name)
        seen[which] = [sent.steady for sent in [one.see(visit) for visit in visits]]  # the files after the walk
    before = seen.pop("nothing")
    return {
        which: [str(v) for v, *both in zip(visits, before, after, strict=True) if both[0] != both[1]]
        for which, after in seen.items()
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", [REVIEWER, EVERY_ROLE])
def test_other_labels_where_somebody_is_blind_change_no_byte_of_what_they_see(name, walker, phases):
    # No page is left out, and no total: what a blind reader is told of the whole study is counted without what waits for them.
    none: dict[str, list[str]] = {which: [] for which in leaks.FLIPS}
    own = phases["locked"].hands[name].number
    of_levels = (
        BY_LEVEL if name == EVERY_ROLE else ()
    )  # the same sections for everybody, and no role has more controls there
    visits = [
        visit
        for visit in (*FLIPPED, *of_levels, Visit("my_reads", {"read": str(own)}))
        if can_go(visit, name, "locked")
    ]
    assert changed(walker, phases["locked"], name, visits, own) == none
    visits = [Visit("review"), Visit("review", pressed=("next",)), Visit("my_reads")]
    assert changed(walker, phases["in_hand"], name, visits, None) == none


@pytest.mark.slow
def test_other_labels_are_seen_by_whoever_is_not_blind(walker, phases):
    visits = [Visit("overview"), Visit("judges"), Visit("export", chosen={"paper": True})]
    found = changed(walker, phases["in_hand"], OPEN_EYES, visits, None)
    assert found["judge"] == list(map(str, visits))
    assert found["readers"] == list(map(str, visits))


# ---------------------------------------------------------------- files, on both databases


@pytest.fixture
def engine(database_url: str, tmp_path: Path) -> Iterator[Engine]:
    made = leaks.make(database_url, tmp_path)
    for name in WALKERS:
        leaks.take_in_hand(made, name)
    yield made
    made.dispose()


def files(engine: Engine, part: export_tables.Part) -> dict[str, bytes]:
    tables = {what: export_tables.table(engine, what, part) for what in export_tables.WHAT}
    made = {
        f"{what}.{kind}": as_words(as_file(table, kind))
        for what, table in tables.items()
        for kind in export_tables.WRITERS
    }
    return made | {"meta-eval": export_tables.meta_eval_rows(engine, part)}


def test_files_for_a_blind_reader_hold_no_secret_and_do_not_change_with_what_is_hidden(engine):
    parts = [export_tables.Part(blind=leaks.blind(engine, name)) for name in WALKERS]
    assert parts[0] == parts[1]
    before, whole = files(engine, parts[0]), files(engine, export_tables.Part())
    assert leaks.found((*SECRETS, *BLIND), *whole.values()) == {*SECRETS, *BLIND}
    assert leaks.found((*SECRETS, *BLIND), *before.values()) == set()
    assert leaks.OPEN.encode() in before["labels.csv"]
    for which in leaks.FLIPS:
        assert leaks.flip(engine, which) > 0
        assert files(engine, parts[0]) == before
        assert files(engine, export_tables.Part()) != whole
