"""What a page shows whom somebody signed in as, and what an open tab says once that has ended."""

from datetime import timedelta
from unittest.mock import PropertyMock

import pytest
from streamlit.runtime.context import ContextProxy
from streamlit.testing.v1 import AppTest

from evalcore.study.db import reading, writing
from evalcore.study.schema import Role
from evalcore.study.tables import now
from evalcore.team import people, queries, store
from evalcore.team.sign_in import COOKIE
from tests import world
from tests.page_steps import NOT_FOR_YOU, at_address, words
from tests.team.conftest import ADMINISTRATOR
from tests.world import World

ISSUER, IMANI, LEAD = "https://id.example", "Dr. Imani Noor", "Ana Ruiz"
AGAIN = "Sign in again"


@pytest.fixture
def quick(sqlite_database_url, monkeypatch, open_page) -> World:
    """A study of a server that people sign in to."""
    made = world.made(sqlite_database_url)
    said = {
        "PUBLIC_URL": "https://overread.example",
        "OIDC_ISSUER": ISSUER,
        "OIDC_CLIENT_ID": "x",
        "OIDC_CLIENT_SECRET": "y",
    }
    for name, value in said.items():
        monkeypatch.setenv(f"OVERREAD_{name}", value)
    monkeypatch.setenv("OVERREAD_DB", sqlite_database_url)
    yield made
    made.engine.dispose()


def signed_in(small: World, monkeypatch, name: str | None) -> None:
    """The tab's cookie is that of somebody's session."""
    with writing(small.engine) as session:
        token = store.begin(session, issuer=ISSUER, subject=name or "nobody", name="Shown Name", groups=())
        if name is not None:
            store.bind(session, small.viewer(name).person_id, issuer=ISSUER, subject=name)
    monkeypatch.setattr(ContextProxy, "cookies", PropertyMock(return_value={COOKIE: token}))


def opened(page: str) -> AppTest:
    return at_address(page).run()


def test_who_is_signed_in_is_who_reads_and_may_sign_out(quick, monkeypatch):
    signed_in(quick, monkeypatch, LEAD)
    shown = words(opened("browse"))
    assert LEAD in shown
    assert "Sign out" in shown
    assert "Change reader" not in shown


@pytest.mark.parametrize("cookies", [{}, {COOKIE: "made up"}, {COOKIE: ""}])
def test_without_a_session_no_page_shows_anything_of_the_study(cookies, quick, monkeypatch):
    monkeypatch.setattr(ContextProxy, "cookies", PropertyMock(return_value=cookies))
    for page in ("overview", "browse", "study", "export"):
        shown = words(opened(page))
        assert AGAIN in shown, page
        assert "Dr. Imani Noor" not in shown


def test_who_is_signed_in_and_nobody_in_the_study_sees_nothing_of_it(quick, monkeypatch):
    signed_in(quick, monkeypatch, None)
    assert AGAIN in words(opened("browse"))


def test_the_profile_cookie_of_a_single_machine_is_worth_nothing(quick, open_page):
    app = open_page(quick.location, "browse", LEAD)
    assert AGAIN in words(app)


def test_an_open_tab_is_told_once_the_session_has_ended_and_the_way_back_is_the_same_page(quick, monkeypatch):
    signed_in(quick, monkeypatch, IMANI)
    app = opened("browse")
    assert AGAIN not in words(app)
    monkeypatch.setattr(queries, "now", lambda: now() + timedelta(minutes=31))
    app.run()
    assert AGAIN in words(app)
    assert any("/sign-in?next=" in element.proto.body for element in app.get("html"))


def test_an_open_tab_of_somebody_deactivated_shows_nothing_at_the_next_press(quick, monkeypatch):
    signed_in(quick, monkeypatch, IMANI)
    app = opened("browse")
    people.set_active(quick.engine, IMANI, active=False, actor=ADMINISTRATOR)
    app.run()
    assert AGAIN in words(app)


def test_a_role_that_was_taken_away_is_gone_at_the_next_press(quick, monkeypatch):
    world.add_researcher(quick.engine, "Second Lead", Role.LEAD)
    signed_in(quick, monkeypatch, LEAD)
    app = opened("audit")
    assert NOT_FOR_YOU not in words(app)
    people.set_roles(quick.engine, LEAD, [Role.REVIEWER], actor=ADMINISTRATOR)
    app.run()
    assert NOT_FOR_YOU in words(app)


def test_a_press_makes_the_session_last_and_what_draws_itself_anew_does_not(quick, monkeypatch):
    from pages.shared import common

    signed_in(quick, monkeypatch, LEAD)
    seen = "SELECT seen_at FROM sign_in"
    for module in (queries, store):
        monkeypatch.setattr(module, "now", lambda: now() + timedelta(minutes=10))
    before = world.rows(quick.engine, seen)
    assert common.viewer(pressed=False).name == LEAD
    assert world.rows(quick.engine, seen) == before
    assert common.viewer().name == LEAD
    assert world.rows(quick.engine, seen) != before


def test_a_lead_invites_changes_roles_and_lets_out_on_the_study_page(quick, monkeypatch):
    signed_in(quick, monkeypatch, LEAD)
    app = opened("study")
    app.selectbox(key="person_chosen").select(IMANI).run()
    app.button(key="invite").click().run()
    assert not app.exception
    (link,) = (element.value for element in app.code)
    assert link.startswith("https://overread.example/invitation/")
    number = quick.viewer(IMANI).person_id
    app.multiselect(key=f"roles_{number}").set_value(["adjudicator"]).run()
    app.button(key="change_roles").click().run()
    assert quick.viewer(IMANI).roles == {Role.ADJUDICATOR}
    app.selectbox(key="person_chosen").select(IMANI).run()
    app.button(key="set_active").click().run()
    assert world.rows(quick.engine, f"SELECT active FROM person WHERE id = {number}") == [(0,)]
    done = [action for _, action in quick.events()][-3:]
    assert done == ["person invited", "roles changed", "person deactivated"]


def test_who_is_no_lead_is_offered_no_invitations(quick, monkeypatch):
    signed_in(quick, monkeypatch, IMANI)
    app = opened("study")
    assert "Only leads can add people" in words(app)
    assert "invite" not in {button.key for button in app.button}


def test_a_lead_makes_and_revokes_a_key_on_the_study_page_and_it_is_shown_once(quick, monkeypatch):
    signed_in(quick, monkeypatch, LEAD)
    app = opened("study")
    app.text_input(key="key_purpose").input("weekly report")
    next(button for button in app.button if button.label == "Make a key").click().run()
    assert not app.exception
    (key,) = (element.value for element in app.code)
    with reading(quick.engine) as session:
        person = queries.person_of_key(session, key)
        assert person is not None
        assert person.name == LEAD
    assert key not in words(app.run())
    assert [element.value for element in app.code] == []
    app.button(key="revoke_key").click().run()
    assert not app.exception
    with reading(quick.engine) as session:
        assert queries.person_of_key(session, key) is None
    assert [action for _, action in quick.events()][-2:] == ["key made", "key revoked"]
