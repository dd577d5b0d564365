"""Truth tables of the rules: who may do what, when, and see what."""

import itertools
import re

import pandas as pd
import pytest
from hypothesis import given, strategies as st

from evalcore.errors import AlreadyChanged, NotAllowed, OverreadError
from evalcore.study import policies
from evalcore.study.schema import Ask, ReadingMode, ReadingState, Role, Viewer

ALLOWED = {
    # rule:          reviewer, adjudicator, researcher, lead
    "give_verdict": (True, True, False, False),
    "import": (False, False, True, True),
    "import_reads_of": (False, False, False, True),
    "export": (True, True, True, True),
    "add_people": (False, False, False, True),
    "see_audit": (False, False, True, True),
    "read": (True, True, False, False),
    "assign": (False, False, False, True),
    "mend": (False, False, True, True),
    "set_families": (False, False, True, True),
    "set_triage": (False, False, False, True),
    "set_meaning": (False, False, True, True),
    "state_analysis": (False, False, True, True),
    "run": (False, False, False, True),
    "see_replies": (False, False, False, True),
    "answer": (False, False, False, True),
    "adjudicate": (False, True, False, False),
    "freeze": (False, False, False, True),
    "delete": (False, False, False, True),
    "split": (False, False, True, True),
    "follow": (False, False, True, True),
    "make_keys": (False, False, False, True),
}
ROLES = (Role.REVIEWER, Role.ADJUDICATOR, Role.RESEARCHER, Role.LEAD)

OF_A_READING = {
    # state:              mark, reveal, decide: by a reader of the study on a reading of their own
    ReadingState.READING: (True, False, False),
    ReadingState.LOCKED: (False, True, False),
    ReadingState.REVEALED: (False, True, True),
    ReadingState.DONE: (False, True, True),
}
SLIPS = {
    # state, others' verdicts seen, gone on: whether a slip may be told
    **dict.fromkeys(
        itertools.product([ReadingState.READING, ReadingState.REVEALED], (False, True), (False, True)), False
    ),
    **{
        (ReadingState.LOCKED, has_seen, gone_on): not has_seen
        for has_seen, gone_on in itertools.product((False, True), repeat=2)
    },
    **{
        (ReadingState.DONE, has_seen, gone_on): not has_seen and not gone_on
        for has_seen, gone_on in itertools.product((False, True), repeat=2)
    },
}
ON_SOMETHING = {"mark", "reveal", "decide", "slip", "settle", "open", "amend", "give_practice", "practise"}
ME, SOMEBODY_ELSE = 1, 2
EVERY_ROLES = [frozenset(roles) for n in range(5) for roles in itertools.combinations(ROLES, n)]


def viewer(*roles: Role) -> Viewer:
    return Viewer(person_id=ME, name="Dr. Imani Noor", roles=frozenset(roles))


def refusal(rule: str, person: Viewer, *what: object) -> OverreadError | None:
    """How the rule refuses, once the check, `allows` and `reason` were held against each other."""
    check = getattr(policies, f"check_can_{rule}")
    said: OverreadError | None = None
    try:
        check(person, *what)
    except OverreadError as error:
        said = error
    assert policies.allows(check, person, *what) == (said is None)
    assert policies.reason(check, person, *what) == ("" if said is None else str(said))
    assert said is None or re.match(r"^[A-Z].*\.$", str(said))  # a sentence
    return said


def test_the_truth_tables_name_every_rule_and_every_role():
    rules = {name.removeprefix("check_can_") for name in vars(policies) if name.startswith("check_can_")}
    assert rules == set(ALLOWED) | ON_SOMETHING
    assert set(ROLES) == set(Role)
    assert set(OF_A_READING) == set(ReadingState)


@pytest.mark.parametrize("rule", ALLOWED)
def test_each_role_alone_may_do_what_the_table_says(rule):
    check = getattr(policies, f"check_can_{rule}")
    assert tuple(policies.allows(check, viewer(role)) for role in ROLES) == ALLOWED[rule]


@pytest.mark.parametrize("rule", ALLOWED)
def test_of_several_roles_one_that_may_is_enough(rule):
    check = getattr(policies, f"check_can_{rule}")
    allowed = dict(zip(ROLES, ALLOWED[rule], strict=True))
    for n_roles in (2, 3, 4):
        for roles in itertools.combinations(ROLES, n_roles):
            assert policies.allows(check, viewer(*roles)) == any(allowed[role] for role in roles), roles


@pytest.mark.parametrize("rule", ALLOWED)
def test_somebody_without_a_role_may_do_nothing_and_is_told_so(rule):
    with pytest.raises(NotAllowed, match=r"^Only .* can .*; you have no role in this study\.$"):
        getattr(policies, f"check_can_{rule}")(viewer())


@pytest.mark.parametrize("rule", ALLOWED)
def test_check_and_can_and_reason_agree(rule):
    allowed = dict(zip(ROLES, ALLOWED[rule], strict=True))
    for roles in EVERY_ROLES:
        said = refusal(rule, viewer(*roles))
        assert (said is None) == any(allowed[role] for role in roles)
        assert said is None or isinstance(said, NotAllowed)


def test_a_refusal_names_the_role_that_it_takes_and_the_roles_that_are_there():
    person = viewer(Role.REVIEWER, Role.ADJUDICATOR)
    assert policies.reason(policies.check_can_import, person) == (
        "Only leads and researchers can import; you are an adjudicator and a reviewer in this study."
    )


# ---------------------------------------------------------------- a reading: role x owner x state


@pytest.mark.parametrize("state", ReadingState)
@pytest.mark.parametrize("act", ["mark", "reveal", "decide"])
def test_a_reading_is_its_readers_alone_and_each_act_has_its_time(act, state):
    in_time = OF_A_READING[state][("mark", "reveal", "decide").index(act)]
    for roles, owner in itertools.product(EVERY_ROLES, (ME, SOMEBODY_ELSE)):
        said = refusal(act, viewer(*roles), owner, state)
        reads = bool(roles & {Role.REVIEWER, Role.ADJUDICATOR})
        assert (said is None) == (reads and owner == ME and in_time), (roles, owner)
        if not reads:
            assert "Only adjudicators and reviewers can read assigned responses;" in str(said)
        elif owner != ME:
            assert str(said) == "This read belongs to somebody else."


def test_a_slip_is_told_after_the_lock_and_before_anything_of_others_was_seen_by_the_reader_alone():
    for (state, has_seen, gone_on), in_time in SLIPS.items():
        for roles, owner in itertools.product(EVERY_ROLES, (ME, SOMEBODY_ELSE)):
            said = ""
            try:
                policies.check_can_slip(viewer(*roles), owner, state, has_seen=has_seen, has_gone_on=gone_on)
            except NotAllowed as refused:
                said = str(refused)
            reads = bool(roles & {Role.REVIEWER, Role.ADJUDICATOR})
            assert (said == "") == (reads and owner == ME and in_time), (roles, owner, state, has_seen, gone_on)


def test_a_mark_after_the_lock_came_second_and_a_decision_before_it_came_too_early():
    person = viewer(Role.REVIEWER)
    for state in (ReadingState.LOCKED, ReadingState.REVEALED, ReadingState.DONE):
        late = refusal("mark", person, ME, state)
        assert isinstance(late, AlreadyChanged)
        assert str(late).endswith("Nothing was saved twice.")
    early = refusal("decide", person, ME, ReadingState.READING)
    assert isinstance(early, NotAllowed)
    assert str(early) == "The judge's verdict is shown once your first read is submitted."


# ---------------------------------------------------------------- practice: role x question x mode, role x response


def test_a_lead_gives_practice_for_criteria_that_are_read_blind():
    for roles, ask, mode in itertools.product(EVERY_ROLES, Ask, ReadingMode):
        said = refusal("give_practice", viewer(*roles), ask, mode)
        assert (said is None) == (Role.LEAD in roles and ask is Ask.RUBRIC and mode is ReadingMode.BLIND)


def test_a_reader_practises_on_their_own_responses_alone_and_before_the_first_real_one():
    for roles, own in itertools.product(EVERY_ROLES, ((), (3,), (4, 3))):
        said = refusal("practise", viewer(*roles), own, 3)
        assert (said is None) == (bool(roles & {Role.REVIEWER, Role.ADJUDICATOR}) and 3 in own)
    policies.check_has_practised(0)
    with pytest.raises(NotAllowed, match=r"^Practise first: 2 practice responses wait for you in Review\.$"):
        policies.check_has_practised(2)


# ---------------------------------------------------------------- settling: role x own read


@pytest.mark.parametrize(
    ("readers", "has_read"), [((), False), (("Dr. Tove Lind",), False), (("Dr. Tove Lind", "Dr. Imani Noor"), True)]
)
def test_an_adjudicator_settles_what_others_have_read(readers, has_read):
    for roles in EVERY_ROLES:
        said = refusal("settle", viewer(*roles), readers)
        adjudicates = policies.allows(policies.check_can_adjudicate, viewer(*roles))
        assert (said is None) == (adjudicates and not has_read)
        if has_read and adjudicates:
            assert "You have read this response yourself" in str(said)


# ---------------------------------------------------------------- what may be seen

EXAMPLES = st.integers(1, 6)
RATERS = st.tuples(
    st.sampled_from(["Dr. Imani Noor", "Dr. Tove Lind", "Magpie"]), st.sampled_from(["reviewer", "judge"])
)
ROWS = st.lists(st.tuples(EXAMPLES, RATERS), max_size=25)
BLIND = st.frozensets(EXAMPLES) | st.lists(EXAMPLES, max_size=4)


def long_table(rows: list[tuple[int, tuple[str, str]]]) -> pd.DataFrame:
    made = [(number, example, *rater) for number, (example, rater) in enumerate(rows)]
    return pd.DataFrame(made, columns=["verdict_id", "example_id", "rater", "rater_kind"])


@given(ROWS, BLIND)
def test_of_a_blind_conversation_nothing_is_seen_but_ones_own_and_of_the_others_everything(rows, blind):
    """Held against a plain loop; a judge who is called as the viewer is a judge all the same."""
    verdicts = long_table(rows)
    seen = policies.visible_verdicts(verdicts, viewer(Role.REVIEWER), blind)
    wanted = [
        number
        for number, (example, rater) in enumerate(rows)
        if example not in blind or rater == ("Dr. Imani Noor", "reviewer")
    ]
    assert seen["verdict_id"].tolist() == wanted  # in their order, each once
    assert list(seen.columns) == list(verdicts.columns)
    pd.testing.assert_frame_equal(seen, verdicts.loc[seen.index])  # and unchanged
    assert len(verdicts) == len(rows)


@given(ROWS)
def test_who_waits_for_nothing_sees_everything(rows):
    pd.testing.assert_frame_equal(policies.visible_verdicts(long_table(rows), viewer(Role.LEAD), ()), long_table(rows))


@given(ROWS, BLIND)
def test_for_nobody_in_particular_a_blind_conversation_holds_nothing(rows, blind):
    seen = policies.visible_verdicts(long_table(rows), None, blind)
    assert seen["verdict_id"].tolist() == [number for number, (example, _) in enumerate(rows) if example not in blind]


@given(ROWS, BLIND, BLIND)
def test_the_more_is_blind_the_less_is_seen(rows, blind, more):
    verdicts, person = long_table(rows), viewer(Role.REVIEWER)
    both = policies.visible_verdicts(verdicts, person, [*blind, *more])
    assert set(both["verdict_id"]) <= set(policies.visible_verdicts(verdicts, person, blind)["verdict_id"])


@given(EXAMPLES, BLIND, st.sampled_from(EVERY_ROLES))
def test_a_conversation_is_open_to_all_but_those_who_are_to_read_it_blind(example, blind, roles):
    said = refusal("open", viewer(*roles), example, blind)
    assert (said is None) == (example not in blind)
    if said is not None:
        assert "Dr. Imani Noor" in str(said)
