"""People, raters and the study itself, as the database keeps them."""

import re

import pytest
from sqlmodel import Session, select

from evalcore.errors import OverreadError
from evalcore.study import store
from evalcore.study.db import writing
from evalcore.study.tables import Rater, Study
from tests import world


def test_a_study_keeps_its_random_name(small):
    with writing(small.engine) as session:
        key = store.ensure_study(session).key
    with writing(small.engine) as session:
        assert store.ensure_study(session).key == key
    assert re.fullmatch("[0-9a-f]{32}", key)
    with Session(small.engine) as session:
        assert len(session.exec(select(Study)).all()) == 1


@pytest.mark.parametrize(
    ("name", "roles", "said"),
    [
        (
            "",
            ["reviewer"],
            "name, specialties, languages: expected how the person is to be called, in plain text, got ''",
        ),
        (
            "  ",
            ["reviewer"],
            "name, specialties, languages: expected how the person is to be called, in plain text, got ''",
        ),
        ("a\x00b", ["reviewer"], "in plain text"),
        ("Dr. Half \ud83d", ["reviewer"], "in plain text"),
        ("Dr. New", [], "roles: expected one or more of reviewer, adjudicator, researcher, lead, got nothing"),
        (
            "Dr. New",
            ["reviewer", "king"],
            "roles: expected one or more of reviewer, adjudicator, researcher, lead, got king",
        ),
        ("Dr. Tove Lind", ["reviewer"], "Dr. Tove Lind is already in this study"),
        (" Dr. Tove Lind ", ["reviewer"], "Dr. Tove Lind is already in this study"),
    ],
)
def test_a_person_without_a_name_or_role_of_their_own_is_refused(small, name, roles, said):
    n_before = world.count(small.engine, "person")
    with pytest.raises(OverreadError, match=re.escape(said)), writing(small.engine) as session:
        store.add_person(session, name, roles=roles, actor="set-up")
    assert world.count(small.engine, "person") == n_before


def test_a_specialty_that_no_database_holds_is_refused(small):
    with pytest.raises(OverreadError, match="plain text"), writing(small.engine) as session:
        store.add_person(session, "Dr. New", roles=["reviewer"], specialties=["car\x00diology"], actor="set-up")


def test_a_rater_is_made_once_and_linked_to_the_person_of_the_same_name(small):
    with writing(small.engine) as session:
        number = store.ensure_rater(session, world.RaterKind.REVIEWER, "Dr. New")
        assert session.get_one(Rater, number).person_id is None
    with writing(small.engine) as session:
        person = store.add_person(session, "Dr. New", roles=["reviewer"], actor="set-up")
        assert store.ensure_rater(session, world.RaterKind.REVIEWER, "Dr. New") == number
        assert session.get_one(Rater, number).person_id == person.id
        judge = store.ensure_rater(session, world.RaterKind.JUDGE, "Dr. New")
        assert session.get_one(Rater, judge).person_id is None
