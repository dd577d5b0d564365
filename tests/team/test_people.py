"""Acts on people: who comes in, with which roles, and that a study keeps a lead."""

import pytest
from hypothesis import given, strategies as st

from evalcore.errors import NotAllowed, NotFound, OverreadError
from evalcore.runs import acts as runs
from evalcore.settings import Settings
from evalcore.study import contents
from evalcore.study.db import reading, writing
from evalcore.study.schema import Role
from evalcore.team import people, store, studies
from evalcore.team.provider import provider_of
from tests import run_world, world
from tests.team.conftest import ADMINISTRATOR

IMANI, TOVE, LEAD = "Dr. Imani Noor", "Dr. Tove Lind", "Ana Ruiz"


def leads(small) -> set[str]:
    with reading(small.engine) as session:
        return {person.name for person in contents.people(session) if Role.LEAD in person.roles}


LEAVE = {
    "another role": lambda small: people.set_roles(small.engine, LEAD, [Role.REVIEWER], actor=small.viewer(LEAD)),
    "let in no longer": lambda small: people.set_active(small.engine, LEAD, active=False, actor=small.viewer(LEAD)),
}


@pytest.mark.parametrize("how", LEAVE)
def test_a_study_keeps_a_lead(how, small):
    act = LEAVE[how]
    with pytest.raises(NotAllowed, match=f"{LEAD} is the only lead"):
        act(small)
    assert leads(small) == {LEAD}
    people.set_roles(small.engine, TOVE, [Role.LEAD], actor=ADMINISTRATOR)
    act(small)
    assert leads(small) == {TOVE}


def test_roles_are_one_or_more(small):
    with pytest.raises(NotAllowed, match="expected one or more, got none"):
        people.set_roles(small.engine, IMANI, [], actor=ADMINISTRATOR)


def test_somebody_who_is_not_there_is_named(small):
    with pytest.raises(NotFound, match=r"got 'Dr\. Who'"):
        people.invite(small.engine, "Dr. Who", actor=ADMINISTRATOR)


def test_the_same_roles_and_the_same_state_are_no_event(small):
    before = small.events()
    people.set_roles(small.engine, IMANI, small.viewer(IMANI).roles, actor=ADMINISTRATOR)
    people.set_active(small.engine, IMANI, active=True, actor=ADMINISTRATOR)
    assert small.events() == before


def test_who_is_not_active_gets_nothing_to_read_and_their_name_is_not_given_again(small):
    people.set_active(small.engine, IMANI, active=False, actor=ADMINISTRATOR)
    with reading(small.engine) as session:
        assert IMANI not in {person.name for person in contents.people(session)}
        assert IMANI in {person.name for person in contents.people(session, everybody=True)}
    with pytest.raises(OverreadError, match=IMANI):
        world.assigned(small, n_readers=1, readers=(IMANI,))
    with pytest.raises(OverreadError, match="already in this study"):
        world.add_researcher(small.engine, IMANI, Role.REVIEWER)


# ---------------------------------------------------------------- the settings of the provider

WHOLE = {
    "public_url": "https://o.example",
    "oidc_issuer": "https://id.example/x",
    "oidc_client_id": "a",
    "oidc_client_secret": "b",
}


@given(said=st.sets(st.sampled_from(sorted(WHOLE))))
def test_sign_in_is_set_up_whole_or_not_at_all(said):
    settings = Settings(**{name: WHOLE[name] for name in said})
    if not said:
        assert provider_of(settings) is None
    elif said == WHOLE.keys():
        assert provider_of(settings).host == "o.example"
    else:
        with pytest.raises(OverreadError, match="expected all of") as refused:
            provider_of(settings)
        missing = str(refused.value).partition("got no ")[2]
        assert all((f"OVERREAD_{name.upper()}" in missing) == (name not in said) for name in WHOLE)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("public_url", "http://o.example"),
        ("public_url", "https://o.example/path"),
        ("public_url", "https://user@o.example"),
        ("public_url", "o.example"),
        ("oidc_issuer", "http://id.example"),
        ("oidc_issuer", "https://id.example?x=1"),
    ],
)
def test_an_address_that_others_can_listen_to_is_refused(name, value):
    with pytest.raises(OverreadError, match=f"OVERREAD_{name.upper()}: expected https://"):
        provider_of(Settings(**WHOLE | {name: value}))


def test_whom_to_let_in_without_a_provider_is_a_mistake():
    with pytest.raises(OverreadError, match="are for sign-in"):
        provider_of(Settings(allowed_domains="hospital.example"))


def test_the_secret_comes_from_a_file_or_a_variable_not_from_both(tmp_path):
    path = tmp_path / "secret"
    path.write_text("from the file\n")
    said = {name: value for name, value in WHOLE.items() if name != "oidc_client_secret"}
    assert provider_of(Settings(**said, oidc_client_secret_file=path)).client_secret == "from the file"
    with pytest.raises(OverreadError, match="got both"):
        provider_of(Settings(**WHOLE, oidc_client_secret_file=path))
    with pytest.raises(OverreadError, match="cannot be read"):
        provider_of(Settings(**said, oidc_client_secret_file=tmp_path / "none"))


def test_a_server_asks_the_models_of_its_file_alone(small, tmp_path, monkeypatch):
    """An address that a lead types would be a way into the network; the administrator's command line may name any."""
    spec = run_world.responding()
    lead = small.viewer(LEAD)
    monkeypatch.setenv("OVERREAD_PUBLIC_URL", "https://o.example")
    with pytest.raises(OverreadError, match="expected an address of the server's file of models"):
        runs.start(small.engine, spec, concurrency=1, actor=lead)
    listed = tmp_path / "models.toml"
    listed.write_text(f'[models."{spec.model.name}"]\nbase_url = "{spec.model.base_url}"\n')
    monkeypatch.setenv("OVERREAD_MODELS", str(listed))
    assert runs.start(small.engine, spec, concurrency=1, actor=lead)


def test_groups_of_the_provider_have_roles_by_a_setting(monkeypatch):
    monkeypatch.setenv("OVERREAD_GROUP_ROLES", "cn=readers=reviewer, leads = lead + researcher,")
    (study,) = studies.studies().values()
    assert study.groups == {"cn=readers": {Role.REVIEWER}, "leads": {Role.LEAD, Role.RESEARCHER}}


@pytest.mark.parametrize("said", ["readers", "=reviewer", "readers=king", "readers="])
def test_a_map_of_groups_that_is_none_says_what_was_expected(said, monkeypatch):
    monkeypatch.setenv("OVERREAD_GROUP_ROLES", said)
    with pytest.raises(OverreadError, match="OVERREAD_GROUP_ROLES: expected"):
        studies.studies()


# ---------------------------------------------------------------- the studies of a server


@pytest.fixture
def listed(tmp_path, monkeypatch):
    """The file of a server's studies, which is not there yet."""
    path = tmp_path / "studies.toml"
    monkeypatch.setenv("OVERREAD_STUDIES", str(path))
    return path


def test_studies_are_added_one_after_the_other_and_the_first_keeps_the_sessions(listed):
    studies.add(listed, "cardio", db="/srv/cardio.db", title='Heart "2026"')
    studies.add(listed, "skin", db="postgresql://db/skin", title="")
    assert [(one.name, one.db, one.title) for one in studies.studies().values()] == [
        ("cardio", "/srv/cardio.db", 'Heart "2026"'),
        ("skin", "postgresql://db/skin", "skin"),
    ]
    assert studies.sign_ins() == "/srv/cardio.db"
    assert listed.stat().st_mode & 0o777 == 0o600
    link = studies.invitation_link("https://o.example", "/srv/cardio.db", "abc")
    assert link == "https://o.example/cardio/invitation/abc"
    with pytest.raises(OverreadError, match="does not list this database"):
        studies.invitation_link("https://o.example", "/srv/other.db", "abc")


@pytest.mark.parametrize("name", ["", "Cardio", "a b", "../x", "review", "static", "healthz", "a" * 41, "-a", "ä"])
def test_a_name_that_could_be_another_address_is_refused(name, listed):
    with pytest.raises(OverreadError, match="expected a name of small letters"):
        studies.add(listed, name, db="/srv/x.db", title="")
    assert not listed.exists()


def test_two_studies_in_one_database_are_refused_and_the_file_stays_as_it_was(listed):
    studies.add(listed, "one", db="/srv/x.db", title="")
    before = listed.read_text()
    with pytest.raises(OverreadError, match="a database of its own"):
        studies.add(listed, "two", db="/srv/x.db", title="")
    assert listed.read_text() == before
    assert [path.name for path in listed.parent.iterdir()] == [listed.name]


@pytest.mark.parametrize(
    "content",
    [
        "",
        "studies = 3",
        "[studies]",
        "[studies.a]\ntitle = 'x'",
        "[studies.a]\ndb = 'x'\nmore = 1",
        "[studies.a]\ndb = 'x'\n[studies.a.groups]\nx = ['king']",
    ],
)
def test_a_file_that_is_none_of_studies_says_what_was_expected(content, listed):
    listed.write_text(content)
    with pytest.raises(OverreadError, match="expected"):
        studies.studies()


# ---------------------------------------------------------------- commands


def test_commands_unbind_an_account_and_end_sessions(overread, sqlite_database_url):
    small = world.made(sqlite_database_url)
    with writing(small.engine) as session:
        for _ in range(2):
            store.begin(session, issuer="https://id.example", subject="ana", name="Ana", groups=())
        store.bind(session, small.viewer(IMANI).person_id, issuer="https://id.example", subject="ana")
        store.begin(session, issuer="https://id.example", subject="bo", name="Bo", groups=())
    assert "expected the name of a person or --all, got neither" in overread.bad("team", "sign-out")
    assert "got both" in overread.bad("team", "sign-out", IMANI, "--all")
    db = ("--db", sqlite_database_url)
    assert overread.good("team", "sign-out", IMANI, *db) == "2 sessions ended.\n"
    assert overread.good("team", "sign-out", "--all", *db) == "1 session ended.\n"
    assert overread.good("team", "unbind", IMANI, *db) == f"{IMANI}: 1 account unbound.\n"
    assert overread.good("team", "unbind", IMANI, *db) == f"{IMANI}: 0 accounts unbound.\n"
    small.engine.dispose()
