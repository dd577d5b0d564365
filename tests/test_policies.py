"""Truth tables of the rules: which roles may do what."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcore import policies
from evalcore.errors import NotAllowed
from evalcore.schema import Role, Viewer

ALLOWED = {
    # rule:          reviewer, adjudicator, researcher, lead
    "give_verdict": (True, True, False, False),
    "import": (False, False, True, True),
    "export": (True, True, True, True),
    "add_people": (False, False, False, True),
    "see_audit": (False, False, True, True),
}
ROLES = (Role.REVIEWER, Role.ADJUDICATOR, Role.RESEARCHER, Role.LEAD)


def viewer(*roles: Role) -> Viewer:
    return Viewer(person_id=1, name="Dr. Imani Noor", roles=frozenset(roles))


def test_the_truth_tables_name_every_rule_and_every_role():
    rules = {name.removeprefix("check_can_") for name in vars(policies) if name.startswith("check_can_")}
    assert rules == set(ALLOWED)
    assert set(ROLES) == set(Role)


@pytest.mark.parametrize("rule", ALLOWED)
def test_each_role_alone_may_do_what_the_table_says(rule):
    can = getattr(policies, f"can_{rule}")
    assert tuple(can(viewer(role)) for role in ROLES) == ALLOWED[rule]


@pytest.mark.parametrize("rule", ALLOWED)
def test_of_several_roles_one_that_may_is_enough(rule):
    can = getattr(policies, f"can_{rule}")
    allowed = dict(zip(ROLES, ALLOWED[rule], strict=True))
    for n_roles in (2, 3, 4):
        for roles in itertools.combinations(ROLES, n_roles):
            assert can(viewer(*roles)) == any(allowed[role] for role in roles), roles


@pytest.mark.parametrize("rule", ALLOWED)
def test_somebody_without_a_role_may_do_nothing_and_is_told_so(rule):
    with pytest.raises(NotAllowed, match=r"^\S.* takes the role .*\. Dr\. Imani Noor has no role in this study\.$"):
        getattr(policies, f"check_can_{rule}")(viewer())


@given(st.sampled_from(sorted(ALLOWED)), st.frozensets(st.sampled_from(ROLES)))
def test_check_and_can_and_reason_agree(rule, roles):
    check, can = getattr(policies, f"check_can_{rule}"), getattr(policies, f"can_{rule}")
    person = viewer(*roles)
    if can(person):
        check(person)
        assert policies.reason(check, person) == ""
    else:
        with pytest.raises(NotAllowed) as refusal:
            check(person)
        assert policies.reason(check, person) == str(refusal.value) != ""


def test_a_refusal_names_the_role_that_it_takes_and_the_roles_that_are_there():
    person = viewer(Role.REVIEWER, Role.ADJUDICATOR)
    assert policies.reason(policies.check_can_import, person) == (
        "Importing takes the role lead or researcher. Dr. Imani Noor is adjudicator and reviewer in this study."
    )
