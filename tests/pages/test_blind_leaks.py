"""Whoever is to read blind finds nowhere what the judge said, which model answered, or what others read: every page, address, file and log."""

import logging
import re
from collections.abc import Callable, Sequence

import pytest

from tests import leaks
from tests.blind_walks import (
    ADDRESSES,
    BRIEF,
    BY_LEVEL,
    FEW,
    N_EXAMPLES,
    N_READINGS,
    PAGES,
    RUNS,
    SECTIONS,
    Phase,
    Visit,
    Walker,
    allowed,
    can_go,
)
from tests.leaks import BLIND, EVERY_ROLE, MODEL, OPEN_EYES, REVIEWER, SECRETS, WALKERS, Hand
from tests.page_steps import ROOT


def test_the_walk_knows_every_page():
    listed = re.findall(r'listed\("(\w+)"', (ROOT / "app.py").read_text())
    assert sorted(listed) == sorted(PAGES)


# ---------------------------------------------------------------- the study, in the three phases of a read


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> Callable[[], bytes]:
    """All that was logged and printed; everything is logged but SQL, which the database's own module logs where it is told to."""
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.WARNING, "sqlalchemy")

    def collected() -> bytes:
        printed = capfd.readouterr()
        assert caplog.text
        return "\n".join((caplog.text, printed.out, printed.err)).encode()

    return collected


def leaked(one: Walker, name: str, visits: Sequence[Visit], phase: str, hand: Hand | None) -> list[str]:
    """Visits that show a secret, each with the words."""
    one.come(name)
    walked = [(visit, one.see(visit)) for visit in visits if can_go(visit, name, phase)]
    shown = []
    for visit, sent in walked:
        words_hidden = (*SECRETS, leaks.RUN_REPLY, *BLIND)
        words = leaks.found(words_hidden, sent.everything)
        said = [value.encode() for value in visit.query.values()]
        echoes = leaks.found(words_hidden, *said)  # what the address says itself: tests/pages/test_blind_addresses.py
        bad = words - allowed(visit, name, hand, locked=phase == "locked") - echoes
        shown += [f"{visit}: {', '.join(sorted(bad))}"] if bad else []
    return shown


def test_the_walk_opens_every_section_of_every_page_that_has_any(walker, phases):
    one = walker(phases["waiting"].path)
    one.come(OPEN_EYES)
    for page, sections in SECTIONS.items():
        control = one.see(Visit(page)).app.button_group(key=f"{page}_show")
        assert control.options[0] == control.value, page
        assert tuple(control.options[1:]) == sections, page


def found_with_open_eyes(one: Walker, visits: Sequence[Visit]) -> None:
    """The walks below prove something only where their eyes see: whoever waits for nothing finds every secret at the same addresses."""
    one.come(OPEN_EYES)
    by_page: dict[str, set[str]] = {page: set() for page in PAGES}
    by_section: dict[str, set[str]] = {}
    for visit, sent in [(visit, one.see(visit)) for visit in visits]:
        found = leaks.found((*SECRETS, leaks.RUN_REPLY, *BLIND), sent.everything)
        by_page[visit.page] |= found
        by_section[str(visit)] = found
    assert by_page["browse"] >= {*SECRETS, *BLIND}
    assert by_page["export"] >= {*SECRETS, *BLIND}
    assert by_page["audit"] >= {MODEL, *leaks.PEOPLE_AT_READING}
    assert by_page["overview"] >= {leaks.IMPORTED_READER, leaks.READER}
    assert leaks.READER in by_page["judges"]
    assert MODEL in by_page["study"]
    assert by_section[str(RUNS[1])] >= {leaks.RUN_REPLY, *BLIND}
    clear, ambiguous, edge = leaks.CASES
    shown_by_section = {
        "Dangerous misses": {clear, leaks.LEVELS_EXPLAINED[0]},
        "Groups": {leaks.MODEL},
        "Boundary": {edge},
        "Ambiguous": {ambiguous},
        "Flips": {clear},
        "Harm": {MODEL},
    }
    for visit, words in [
        *((Visit("triage", {"triage_show": section}), words) for section, words in shown_by_section.items()),
        (Visit("triage", {"triage_cell": "conversation: needs C, answers A"}), {clear}),
        (Visit("calibration", {"calibration_show": "Ambiguous cases"}), {ambiguous}),
    ]:
        assert visit not in visits or by_section[str(visit)] >= words, visit


EXAMPLES = tuple(visit for visit in ADDRESSES if "example" in visit.query and visit not in BRIEF)


def leaked_after_open_eyes(
    one: Walker, phase: Phase, seen_first: Sequence[Visit], walks: dict[str, Sequence[Visit]]
) -> list[str]:
    """Somebody who sees everything comes first, then the walkers, one after the other: what the server keeps of one must not reach the next."""
    found_with_open_eyes(one, seen_first)
    return [
        f"{name}: {line}"
        for name, visits in walks.items()
        for line in leaked(one, name, visits, "in_hand", phase.hands[name])
    ]


def an_adjudicator_sees_readers_of_what_waits_without_names_in_adjudicate_and_nothing_of_it_elsewhere(
    one: Walker, visits: Sequence[Visit]
) -> None:
    one.come(leaks.SETTLER)
    assert one.blind(leaks.SETTLER) == {1, 2}
    elsewhere = (
        *leaks.EXPLANATIONS[:4],
        leaks.IMPORTED_ADJUDICATOR,
        leaks.RATIONALE,
        leaks.OPEN_NOTE,
        leaks.IMPORTED_NOTE,
    )
    names = (leaks.IMPORTED_READER, leaks.IMPORTED_OTHER, leaks.READER, leaks.VOLUNTEER, MODEL)
    for visit in (visit for visit in visits if visit.page not in ("review", "my_reads")):
        shown = leaks.found(elsewhere, one.see(visit).everything)
        at_desk = visit.page == "adjudicate" and "case" in visit.query
        assert shown <= ({leaks.IMPORTED_NOTE} if at_desk else set()), (str(visit), shown)
    desk = b"".join(one.see(Visit("adjudicate", {"case": f"r{number}"})).everything for number in one.settling())
    assert leaks.found((*SECRETS, *BLIND), desk) == {*BLIND[:2], leaks.FIRST_NOTE, leaks.IMPORTED_NOTE}
    assert not leaks.found(names, desk)


PAGES_OF_FEW = tuple(visit for visit in FEW if visit.page != "export")


def test_no_page_or_file_shows_a_secret_while_an_item_is_half_marked(walker, phases, said):
    one, hands = walker(phases["in_hand"].path), phases["in_hand"].hands
    one.come(OPEN_EYES)  # comes first: what the server keeps of one must not reach the next
    hidden = (*SECRETS, leaks.RUN_REPLY, *BLIND)
    assert set().union(*(leaks.found(hidden, one.see(visit).everything) for visit in FEW)) == set(hidden)
    # files are made with what the page leaves out of them for whoever it is, so one is asked for them
    walks = {EVERY_ROLE: FEW, REVIEWER: PAGES_OF_FEW}
    shown = {name: leaked(one, name, visits, "in_hand", hands[name]) for name, visits in walks.items()}
    assert not any(shown.values()), shown
    assert leaks.found(hidden, said()) == set()
    an_adjudicator_sees_readers_of_what_waits_without_names_in_adjudicate_and_nothing_of_it_elsewhere(one, PAGES_OF_FEW)


@pytest.mark.slow
def test_nor_does_any_address_at_all(walker, phases, said):
    every = (*BRIEF, *(visit for visit in ADDRESSES if visit not in BRIEF))
    one = walker(phases["in_hand"].path)
    shown = leaked_after_open_eyes(
        one, phases["in_hand"], (*BRIEF, *BY_LEVEL, *EXAMPLES), dict.fromkeys((EVERY_ROLE, REVIEWER), every)
    )
    assert not shown, "\n".join(shown)
    assert leaks.found((*SECRETS, leaks.RUN_REPLY, *BLIND), said()) == set()
    an_adjudicator_sees_readers_of_what_waits_without_names_in_adjudicate_and_nothing_of_it_elsewhere(one, BRIEF)


AT_THE_DESK = tuple(visit for visit in FEW if visit.page in ("review", "my_reads", "browse", "judges"))
"""Of these, where a lock changes what its reader is shown."""


@pytest.mark.parametrize(
    ("phase", "visits"),
    [("locked", AT_THE_DESK), *(pytest.param(phase, BRIEF, marks=pytest.mark.slow) for phase in ("waiting", "locked"))],
)
def test_nor_does_any_while_all_waits_or_one_is_locked_but_the_judge_on_that_very_response(
    phase, visits, walker, phases
):
    one = walker(phases[phase].path)
    for name in WALKERS:
        hand = phases[phase].hands.get(name)
        shown = leaked(one, name, visits, phase, hand)
        assert not shown, f"{name}: " + "\n".join(shown)
        if hand is not None:
            revealed = one.see(Visit("review")).everything
            assert leaks.found(SECRETS, revealed) == {hand.own}


def test_a_conversation_that_waits_has_no_verdict_on_its_page_and_one_that_does_not_has(walker, phases):
    one = walker(phases["in_hand"].path)
    for name in WALKERS:
        one.come(name)
        for number in range(1, N_EXAMPLES + 1):
            shown = one.see(Visit("browse", {"example": str(number)}))
            is_blind = number in one.blind(name)
            assert (b'class="or-verdict' in shown.everything) is not is_blind
            assert bool(shown.app.get("button_group")) is not is_blind
            assert (b"waits for your first read" in shown.everything) is is_blind


def test_a_read_that_belongs_to_somebody_else_opens_no_more_than_one_that_is_not_there(walker, phases):
    one = walker(phases["locked"].path)
    one.come(REVIEWER)

    def main(number: int) -> list[bytes]:
        shown = one.see(Visit("my_reads", {"read": str(number)})).app.main
        return [
            element.proto.SerializeToString().replace(f"item {number} in".encode(), b"item N in")
            for element in shown.get("html")
        ]

    numbers, own = {*range(1, N_READINGS + 1)}, phases["locked"].hands[REVIEWER].number
    assert {number for number in numbers if main(number) == main(9)} == numbers - {own}
