"""Who gets through the doors of a server that people sign in to, and what is tried to get past them."""

import hashlib
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from authlib.integrations.base_client.async_openid import AsyncOpenIDMixin
from httpx2 import HTTPError
from sqlalchemy import text
from sqlmodel import select

from evalcore.errors import NotAllowed
from evalcore.study import contents, frames
from evalcore.study.audit import trail
from evalcore.study.audit.chain import verify
from evalcore.study.db import open_study, reading, writing
from evalcore.study.schema import Role, Viewer
from evalcore.study.tables import SignIn, now
from evalcore.team import people, queries, store
from evalcore.team.sign_in import COOKIE, FLOW_COOKIE, HINT_COOKIE, session_of
from tests import world
from tests.team.conftest import ADMINISTRATOR, PUBLIC, Browser, MakeServer, Server

IMANI, TOVE, LEAD = "Dr. Imani Noor", "Dr. Tove Lind", "Ana Ruiz"
PARTS = (
    "/media/abc.csv",
    "/_stcore/upload_file/a/b",
    "/_stcore/metrics",
    "/_stcore/health",
    "/_stcore/host-config",
    "/static/js/index.js",
)


def actions(server: Server) -> list[tuple[str, str]]:
    with reading(server.engine) as session:
        return [(event.action, event.actor) for _, event in trail.events(session) if event is not None]


def person_of(server: Server, subject: str = "ana") -> Viewer:
    with reading(server.engine) as session:
        person = queries.person_of(session, server.provider.issuer, subject)
    assert person is not None
    return person


# ---------------------------------------------------------------- without a session


def test_a_page_leads_to_sign_in_and_names_itself(server: Server):
    answer = server.browser().get("/review?item=3&x=a%20b")
    assert answer.status_code == 303
    assert parse_qs(urlsplit(answer.headers["location"]).query) == {"next": ["/review?item=3&x=a%20b"]}


def test_help_is_for_whoever_has_signed_in(server: Server):
    answer = server.browser().get("/help?doc=blinding")
    assert answer.status_code == 303
    assert parse_qs(urlsplit(answer.headers["location"]).query) == {"next": ["/help?doc=blinding"]}
    assert server.signed_in("ana", IMANI).get("/help?doc=blinding").status_code == 200


@pytest.mark.parametrize("path", PARTS)
def test_no_part_of_a_page_is_given_without_a_session(path: str, server: Server):
    assert server.browser().part(path).status_code == 401


def test_no_socket_is_opened_without_a_session(server: Server):
    assert server.browser().socket() is None


@pytest.mark.parametrize("token", ["", "x", "0" * 43, "' OR 1=1 --", "a" * 5000, "\u00e9"])
def test_a_made_up_token_is_no_session(token: str, server: Server):
    browser = server.browser()
    browser.cookies[COOKIE] = token.encode("ascii", "replace").decode()
    assert browser.part("/media/abc.csv").status_code == 401
    assert browser.socket() is None


# ---------------------------------------------------------------- the way in


def test_the_way_to_the_provider_carries_state_nonce_and_a_challenge(server: Server):
    asked = parse_qs(urlsplit(server.browser().get("/sign-in").headers["location"]).query)
    assert asked["code_challenge_method"] == ["S256"]
    assert {"state", "nonce", "code_challenge"} <= asked.keys()
    assert asked["redirect_uri"] == [f"{PUBLIC}/sign-in/callback"]


def test_who_comes_back_has_a_session_of_which_only_a_hash_is_kept(server: Server):
    browser = server.browser()
    answer = browser.sign_in("ana")
    assert (answer.status_code, answer.headers["location"]) == (303, "/browse")
    (said,) = (said for said in answer.headers.get_list("set-cookie") if said.startswith(f"{COOKIE}="))
    marks = {part.strip().lower() for part in said.split(";")[1:]}
    assert marks == {"secure", "httponly", "path=/", "samesite=lax"}  # no end: the browser forgets it when it closes
    with server.engine.connect() as connection:
        (kept,) = connection.execute(text("SELECT token_hash FROM sign_in")).scalars()
    assert kept == hashlib.sha256(browser.cookies[COOKIE].encode()).hexdigest()


def test_an_invitation_makes_an_account_a_person_and_parts_and_sockets_reach_the_pages(server: Server):
    browser = server.signed_in("ana", IMANI)
    assert browser.get("/browse").json()["path"] == "/browse"
    assert browser.part("/media/abc.csv").status_code == 200
    reached = browser.socket()
    assert reached is not None
    assert reached["path"] == "/_stcore/stream"
    who = session_of(server.engine, browser.cookies[COOKIE], server.provider)
    assert who is not None
    assert person_of(server).name == IMANI


@pytest.mark.parametrize(
    "wanted",
    ["https://evil.example", "//evil.example/x", "/\\evil.example", "https:evil", "javascript:alert(1)", "\n/x"],
)
def test_a_sign_in_leads_to_no_other_site(wanted: str, server: Server):
    address = f"/sign-in?{httpx.QueryParams({'next': wanted})}"
    assert server.browser().sign_in("ana", address).headers["location"] == "/"


def test_a_token_that_somebody_put_into_the_browser_is_not_the_session(server: Server):
    browser = server.browser()
    browser.cookies[COOKIE] = "chosen-by-somebody-else"
    browser.sign_in("ana")
    assert browser.cookies[COOKIE] != "chosen-by-somebody-else"
    browser.cookies[COOKIE] = "chosen-by-somebody-else"
    assert browser.part("/media/abc.csv").status_code == 401


def test_a_second_sign_in_in_a_browser_ends_the_first_whose_tab_is_told(server: Server):
    browser = server.signed_in("ana", IMANI)
    first = dict(browser.cookies)
    browser.sign_in("eve")
    browser.get(server.invitation(TOVE))
    assert browser.get("/browse").status_code == 200
    assert session_of(server.engine, first[COOKIE], server.provider) is None


def test_a_way_back_that_another_browser_began_is_not_taken(server: Server):
    address = server.browser().allowed_at_provider("eve")
    victim = server.browser()
    answer = victim.get(address)
    assert answer.status_code == 403
    assert COOKIE not in victim.cookies


def test_a_way_back_is_taken_once(server: Server):
    browser = server.browser()
    address = browser.allowed_at_provider("ana")
    flow = browser.cookies[FLOW_COOKIE]
    assert browser.get(address).status_code == 303
    again = server.browser()
    again.cookies[FLOW_COOKIE] = flow
    assert again.get(address).status_code == 403  # the provider takes its code once


def test_a_provider_that_does_not_answer_is_a_page_with_a_way_on(serve: MakeServer):
    server = serve(oidc_issuer="http://127.0.0.1:9")
    answer = server.browser().get("/sign-in")
    assert answer.status_code == 502
    assert "cannot be reached" in answer.text


def test_no_answer_of_a_door_is_kept_by_a_browser(server: Server):
    browser = server.browser()
    for address in ("/", "/sign-in", "/signed-out", "/sign-in/callback"):
        assert browser.get(address).headers["cache-control"] == "no-store", address


# ---------------------------------------------------------------- whom the server lets in


@pytest.mark.parametrize(
    ("said", "subject", "is_let_in"),
    [
        ({}, "bo", True),
        ({"allowed_domains": "hospital.example, clinic.example"}, "ana", True),
        ({"allowed_domains": "Hospital.Example"}, "ana", True),
        ({"allowed_domains": "hospital.example"}, "bo", False),  # the address is not verified
        ({"allowed_domains": "hospital.example"}, "eve", False),
        ({"allowed_domains": "example"}, "ana", False),  # a part of a domain is another one
        ({"allowed_groups": "readers"}, "ana", True),
        ({"allowed_groups": "readers"}, "eve", False),
        ({"allowed_groups": "readers", "allowed_domains": "elsewhere.example"}, "eve", False),
    ],
)
def test_who_is_let_in(said: dict[str, str], subject: str, is_let_in: bool, serve: MakeServer):
    server = serve(**said)
    browser = server.browser()
    answer = browser.sign_in(subject)
    assert (answer.status_code == 303) is is_let_in
    assert (COOKIE in browser.cookies) is is_let_in
    refused = [actor for action, actor in actions(server) if action == "sign-in refused"]
    assert refused == ([] if is_let_in else [f"{server.provider.issuer} {subject}"])  # never the e-mail address


@pytest.mark.parametrize(
    ("asks", "is_let_in"), [("UserInfo", True), ("UserInfo of somebody else", False), ("no UserInfo", False)]
)
def test_what_a_short_token_leaves_out_comes_from_userinfo(asks: str, is_let_in: bool, serve: MakeServer, monkeypatch):
    """As Okta's own issuer and Shibboleth have it by default: the ID token has the subject alone."""
    whole, info = AsyncOpenIDMixin.parse_id_token, AsyncOpenIDMixin.userinfo

    async def short(*arguments, **named):
        claims = await whole(*arguments, **named)
        return {name: claims[name] for name in claims.keys() - {"name", "email", "email_verified", "groups"}}

    async def of(client, **named):
        said = await info(client, **named)
        if asks == "no UserInfo":
            msg = "away"
            raise HTTPError(msg)
        return said | ({"sub": "bo"} if asks != "UserInfo" else {})

    monkeypatch.setattr(AsyncOpenIDMixin, "parse_id_token", short)
    monkeypatch.setattr(AsyncOpenIDMixin, "userinfo", of)
    server = serve(allowed_domains="hospital.example", allowed_groups="readers")
    browser = server.browser()
    assert (browser.sign_in("ana").status_code == 303) is is_let_in
    assert (COOKIE in browser.cookies) is is_let_in


def test_a_token_of_another_issuer_is_refused(server: Server):
    claims = {"iss": "https://other.example", "sub": "ana", "email_verified": True}
    assert server.provider.refusal(claims)
    assert not server.provider.refusal({**claims, "iss": server.provider.issuer})


def test_the_same_subject_at_another_issuer_is_somebody_else(server: Server):
    server.signed_in("ana", IMANI)
    with reading(server.engine) as session:
        assert queries.person_of(session, server.provider.issuer, "ana") is not None
        assert queries.person_of(session, "https://other.example", "ana") is None


def test_a_name_is_not_who_somebody_is(server: Server):
    """Ana and Eve are both called Ana Lund."""
    server.signed_in("ana", IMANI)
    namesake = server.browser()
    namesake.sign_in("eve")
    assert namesake.get("/browse").status_code == 404
    assert namesake.part("/media/abc.csv").status_code == 404
    assert namesake.socket() is None


HEADERS = (
    "X-Forwarded-User",
    "Remote-User",
    "X-Auth-Request-Email",
    "X-Ms-Client-Principal-Name",
    "X-Streamlit-User",
    "X-Overread-Study",
)


@pytest.mark.parametrize("name", HEADERS)
def test_what_a_header_says_of_who_somebody_is_reaches_nothing(name: str, server: Server):
    assert server.browser().get("/browse", **{name: LEAD}).status_code == 303
    browser = server.signed_in("ana", IMANI)
    assert name.lower() not in browser.get("/browse", **{name: LEAD}).json()["headers"]
    reached = browser.socket(**{name.lower(): LEAD})
    assert reached is not None
    assert name.lower() not in reached["headers"]


# ---------------------------------------------------------------- how a session ends


def test_after_sign_out_the_token_is_worth_nothing(server: Server):
    browser = server.signed_in("ana", IMANI)
    kept = dict(browser.cookies)
    assert browser.get("/sign-out", sec_fetch_site="same-origin").status_code in (302, 303)
    assert COOKIE not in browser.cookies
    browser.cookies = kept
    assert browser.get("/browse").status_code == 303
    assert browser.part("/media/abc.csv").status_code == 401
    assert browser.socket() is None
    assert [action for action, _ in actions(server)][-1] == "signed out"


def test_who_signs_out_is_led_to_the_providers_own_sign_out_and_back(server: Server, issuer: str):
    browser = server.signed_in("ana", IMANI)
    there = urlsplit(browser.get("/sign-out", sec_fetch_site="same-origin").headers["location"])
    asked = {name: values[0] for name, values in parse_qs(there.query).items()}
    assert f"{there.scheme}://{there.netloc}" == issuer
    assert asked["post_logout_redirect_uri"] == f"{PUBLIC}/signed-out"
    assert asked["client_id"] == "overread"
    assert asked["id_token_hint"].count(".") == 2  # a token of the provider's own; the server has kept none
    assert HINT_COOKIE not in browser.cookies
    back = httpx.post(
        f"{issuer}/oauth2/end_session/confirm", data={"redirect_uri": f"{PUBLIC}/signed-out?state={asked['state']}"}
    )
    shown = browser.get(back.headers["location"].removeprefix(PUBLIC)).text
    assert "You are signed out" in shown
    assert "sign out of your institution" not in shown


@pytest.mark.parametrize("how", ["by the setting", "since the provider has no sign-out"])
def test_where_the_provider_is_not_asked_the_page_says_so(how: str, serve: MakeServer, monkeypatch):
    server = serve(oidc_sign_out=how != "by the setting")
    browser = server.signed_in("ana", IMANI)
    if how != "by the setting":
        client = server.app._oauth.overread
        monkeypatch.setitem(client.server_metadata, "end_session_endpoint", None)
    assert browser.get("/sign-out", sec_fetch_site="same-origin").headers["location"] == "/signed-out"
    assert "sign out of your institution" in browser.get("/signed-out").text


def test_another_site_signs_nobody_out(server: Server):
    browser = server.signed_in("ana", IMANI)
    assert browser.get("/sign-out", sec_fetch_site="cross-site").status_code == 403
    assert browser.get("/browse").status_code == 200


@pytest.mark.parametrize(
    ("minutes", "pressed_at", "lasts"),
    [
        (29, (), True),
        (31, (), False),
        (58, (29,), True),
        (599, range(0, 599, 20), True),
        (601, range(0, 600, 20), False),
    ],
)
def test_a_session_ends_half_an_hour_after_the_last_press_and_after_ten_hours(
    minutes, pressed_at, lasts, server: Server, monkeypatch
):
    browser = server.signed_in("ana", IMANI)
    begun = now()
    for press in pressed_at:
        for module in (queries, store):
            monkeypatch.setattr(module, "now", lambda at=press: begun + timedelta(minutes=at))
        assert browser.get("/browse").status_code == 200
    for module in (queries, store):
        monkeypatch.setattr(module, "now", lambda: begun + timedelta(minutes=minutes))
    assert (browser.get("/browse").status_code == 200) is lasts
    assert (browser.socket() is not None) is lasts


def test_a_socket_that_opens_itself_again_is_no_press(server: Server, monkeypatch):
    browser = server.signed_in("ana", IMANI)
    begun = now()
    for minutes in (10, 20, 29):
        for module in (queries, store):
            monkeypatch.setattr(module, "now", lambda at=minutes: begun + timedelta(minutes=at))
        assert browser.socket() is not None
        assert browser.part("/_stcore/health").status_code == 200
    monkeypatch.setattr(queries, "now", lambda: begun + timedelta(minutes=31))
    assert browser.socket() is None


def test_who_is_deactivated_gets_nothing_any_more(server: Server):
    browser = server.signed_in("ana", IMANI)
    people.set_active(server.engine, IMANI, active=False, actor=ADMINISTRATOR)
    assert browser.part("/media/abc.csv").status_code == 401
    assert browser.socket() is None
    browser.sign_in("ana")
    assert browser.get("/browse").status_code == 404
    people.set_active(server.engine, IMANI, active=True, actor=ADMINISTRATOR)
    assert browser.get("/browse").status_code == 200


def test_only_who_may_import_uploads_a_file(server: Server):
    reader, lead = server.signed_in("ana", IMANI), server.signed_in("eve", LEAD)
    assert "Only leads and researchers can import" in reader.part("/_stcore/upload_file/a/b").text
    assert lead.part("/_stcore/upload_file/a/b").status_code == 200


def test_who_lost_their_account_comes_in_by_another_and_the_old_one_is_nobodys(serve: MakeServer):
    server = serve(groups={"readers": frozenset({Role.REVIEWER})})
    old = server.signed_in("ana", IMANI)
    unused = server.invitation(IMANI)
    assert people.unbind(server.engine, IMANI, actor=ADMINISTRATOR) == 1
    assert old.get("/browse").status_code == 404  # nor by the group that they are in
    assert old.socket() is None
    assert old.get(unused).status_code == 403
    new = server.signed_in("eve", IMANI)
    assert new.get("/browse").status_code == 200
    assert person_of(server, "eve").name == IMANI
    assert people.unbind(server.engine, IMANI, actor=ADMINISTRATOR) == 1
    assert old.get(server.invitation(IMANI)).status_code == 303  # the old account is found again
    assert person_of(server).name == IMANI
    with reading(server.engine) as session:
        assert verify(session).holds
    told = [action for action, _ in actions(server) if action.startswith("identity")]
    assert told == ["identity bound", "identity unbound", "identity bound", "identity unbound", "identity bound"]


def test_a_lead_ends_the_sessions_of_somebody_and_an_administrator_those_of_all(server: Server):
    ana, lead = server.signed_in("ana", IMANI), server.signed_in("lena", LEAD)
    of_lead = person_of(server, "lena")
    assert people.sign_out(server.engine, server.engine, IMANI, actor=of_lead) == 1
    assert ana.part("/media/abc.csv").status_code == 401
    assert lead.part("/media/abc.csv").status_code == 200
    assert actions(server)[-1] == ("signed out", of_lead.signature)
    with pytest.raises(NotAllowed):
        people.sign_out(server.engine, server.engine, LEAD, actor=small_viewer(server))
    ana.sign_in("ana")
    assert people.sign_out(server.engine, server.engine, None, actor=ADMINISTRATOR) == 2
    for browser in (ana, lead):
        assert browser.part("/media/abc.csv").status_code == 401


def small_viewer(server: Server) -> Viewer:
    """Dr. Imani Noor, who reads."""
    with reading(server.engine) as session:
        return next(person for person in contents.people(session) if person.name == IMANI)


def test_a_session_is_forgotten_30_days_after_its_end_at_somebodys_next_sign_in(server: Server):
    days = {
        "ended long ago": (40, 31),
        "ended lately": (40, 29),
        "ran out long ago": (31, None),
        "ran out lately": (29, None),
    }
    with writing(server.engine) as session:
        for name in days:
            store.begin(session, issuer="i", subject=name, name=name, groups=())
        for name, (seen, ended) in days.items():
            row = session.exec(select(SignIn).where(SignIn.subject == name)).one()
            row.seen_at = row.created_at = now() - timedelta(days=seen)
            row.ended_at = None if ended is None else now() - timedelta(days=ended)
            session.add(row)
    server.browser().sign_in("ana")
    with server.engine.connect() as connection:
        kept = set(connection.execute(text("SELECT subject FROM sign_in")).scalars())
    assert kept == {"ended lately", "ran out lately", "ana"}


# ---------------------------------------------------------------- invitations


def test_an_invitation_is_for_whoever_opens_it_first(server: Server):
    link = server.invitation(IMANI)
    first, second = server.browser(), server.browser()
    first.sign_in("ana")
    second.sign_in("eve")
    assert first.get(link).status_code == 303
    assert second.get(link).status_code == 403
    assert second.get("/browse").status_code == 404
    assert first.get("/browse").status_code == 200


def test_an_invitation_needs_a_sign_in_and_waits_for_it(server: Server):
    browser, link = server.browser(), server.invitation(IMANI)
    there = browser.get(link).headers["location"]
    assert browser.sign_in("ana", there).headers["location"] == link
    assert browser.get(link).headers["location"] == "/"
    assert browser.get("/browse").status_code == 200


def test_an_invitation_is_too_old_after_14_days(server: Server, monkeypatch):
    link = server.invitation(IMANI)
    browser = server.browser()
    monkeypatch.setattr(store, "now", lambda: now() + timedelta(days=14, seconds=1))
    browser.sign_in("ana")
    assert browser.get(link).status_code == 403


def test_a_new_invitation_takes_the_place_of_the_one_before(server: Server):
    earlier, newer = server.invitation(IMANI), server.invitation(IMANI)
    browser = server.browser()
    browser.sign_in("ana")
    assert browser.get(earlier).status_code == 403
    assert browser.get(newer).status_code == 303


def test_one_account_is_one_person_of_a_study(server: Server):
    browser = server.signed_in("ana", IMANI)
    answer = browser.get(server.invitation(LEAD))
    assert answer.status_code == 403
    assert "somebody in this study already" in answer.text
    assert person_of(server).name == IMANI


# ---------------------------------------------------------------- groups of the provider


def test_who_is_in_a_group_of_the_study_comes_in_with_its_roles(serve: MakeServer):
    server = serve(groups={"readers": frozenset({Role.REVIEWER, Role.ADJUDICATOR})})
    browser = server.browser()
    browser.sign_in("ana")
    assert browser.get("/browse").status_code == 200
    person = person_of(server)
    assert (person.name, person.roles) == ("Ana Lund", {Role.REVIEWER, Role.ADJUDICATOR})
    other = server.browser()
    other.sign_in("eve")
    assert other.get("/browse").status_code == 404


def test_groups_give_roles_and_take_those_alone_that_they_gave(serve: MakeServer):
    server = serve(groups={"readers": frozenset({Role.REVIEWER})})
    browser = server.signed_in("ana", LEAD)
    assert person_of(server).roles == {Role.LEAD}
    browser.get("/browse")
    assert person_of(server).roles == {Role.REVIEWER, Role.LEAD}
    assert ("roles changed", "groups of the provider") in actions(server)
    people.set_roles(server.engine, LEAD, [Role.REVIEWER, Role.LEAD, Role.RESEARCHER], actor=ADMINISTRATOR)
    left(server, "ana").get("/browse")
    assert person_of(server).roles == {Role.LEAD, Role.RESEARCHER}


def left(server: Server, subject: str) -> Browser:
    """Somebody signs in anew, and the provider says that they are in no group any more."""
    browser = server.browser()
    browser.sign_in(subject)
    with server.engine.begin() as connection:
        connection.execute(text("UPDATE sign_in SET groups = '[]' WHERE subject = :who"), {"who": subject})
    return browser


def test_who_leaves_the_groups_that_let_them_in_is_let_in_no_longer_and_may_come_again(serve: MakeServer):
    server = serve(groups={"readers": frozenset({Role.REVIEWER})})
    first = server.browser()
    first.sign_in("ana")
    assert first.get("/browse").status_code == 200
    gone = left(server, "ana")
    assert gone.get("/browse").status_code == 404
    assert gone.part("/media/abc.csv").status_code == 404
    assert gone.socket() is None
    again = server.browser()
    again.sign_in("ana")
    assert again.get("/browse").status_code == 200
    assert person_of(server).roles == {Role.REVIEWER}


def test_the_only_lead_stays_one_until_there_is_another(serve: MakeServer):
    server = serve(groups={"readers": frozenset({Role.LEAD})})
    people.set_roles(server.engine, TOVE, [Role.LEAD], actor=ADMINISTRATOR)
    browser = server.browser()
    browser.sign_in("ana")
    browser.get("/browse")
    for name in (LEAD, TOVE):
        people.set_roles(server.engine, name, [Role.REVIEWER], actor=ADMINISTRATOR)
    gone = left(server, "ana")
    assert gone.get("/browse").status_code == 200
    assert person_of(server).roles == {Role.LEAD}
    people.set_roles(server.engine, TOVE, [Role.LEAD], actor=ADMINISTRATOR)
    assert gone.get("/browse").status_code == 404


def test_a_group_does_not_let_in_who_was_deactivated(serve: MakeServer):
    server = serve(groups={"readers": frozenset({Role.REVIEWER})})
    browser = server.signed_in("ana", IMANI)
    people.set_active(server.engine, IMANI, active=False, actor=ADMINISTRATOR)
    browser.sign_in("ana")
    assert browser.get("/browse").status_code == 404


# ---------------------------------------------------------------- several studies


@pytest.fixture
def second(tmp_path) -> str:
    """A second study, in which Dr. Second reads."""
    location = str(tmp_path / "second.db")
    made = world.made(location)
    world.add_researcher(made.engine, "Dr. Second", Role.REVIEWER)
    made.engine.dispose()
    return location


def test_an_address_names_its_study_and_nobody_sees_another(second: str, serve: MakeServer):
    server = serve(others={"second": second})
    browser = server.browser()
    browser.sign_in("ana")
    assert browser.get(f"/first{server.invitation(IMANI)}").headers["location"] == "/first/"
    reached = browser.get("/first/browse").json()
    assert (reached["path"], reached["headers"]["x-overread-study"]) == ("/browse", "first")
    assert browser.get("/first").headers["location"] == "/first/"
    assert browser.get("/second/browse").status_code == 404
    assert browser.part("/second/media/abc.csv").status_code == 404
    assert browser.socket("/second/_stcore/stream") is None
    assert browser.socket("/_stcore/stream") is None
    reached = browser.socket("/first/_stcore/stream", **{"x-overread-study": "second"})
    assert reached is not None
    assert reached["headers"]["x-overread-study"] == "first"


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "/browse",
        "/invitation/abc",
        "/review?item=3",
        "/static/js/index.js",
        "/media/abc.csv",
        "/_stcore/stream",
    ],
)
def test_a_study_of_others_cannot_be_told_from_one_that_does_not_exist(path: str, second: str, serve: MakeServer):
    server = serve(others={"second": second})
    browser = server.browser()
    browser.sign_in("ana")
    for ask in (browser.get, browser.part):
        theirs, none = ask(f"/second{path}"), ask(f"/nowhere{path}")
        assert theirs.status_code == none.status_code
        assert theirs.status_code in ((303, 404, 403) if path in ("", "/invitation/abc") else (404,))
        assert theirs.text == none.text.replace("nowhere", "second")
        assert dict(theirs.headers) == {
            name: value.replace("nowhere", "second") for name, value in none.headers.items()
        } | {"content-length": theirs.headers["content-length"]}
    assert browser.socket(f"/second{path}") is browser.socket(f"/nowhere{path}") is None


def test_an_invitation_is_of_its_study_alone(second: str, serve: MakeServer):
    server = serve(others={"second": second})
    browser = server.browser()
    browser.sign_in("ana")
    assert browser.get(f"/second{server.invitation(IMANI)}").status_code == 403
    assert browser.get("/second/").status_code == 404


def test_the_only_study_opens_at_once_and_several_are_a_choice(second: str, serve: MakeServer):
    server = serve(others={"second": second})
    browser = server.browser()
    browser.sign_in("ana")
    assert "You are in no study" in browser.get("/").text
    browser.get(f"/first{server.invitation(IMANI)}")
    assert browser.get("/").headers["location"] == "/first/"
    engine = open_study(second)
    token = people.invite(engine, "Dr. Second", actor=ADMINISTRATOR)
    engine.dispose()
    browser.get(f"/second/invitation/{token}")
    listed = browser.get("/").text
    assert "The first" in listed
    assert "Second" in listed


def test_a_study_that_cannot_be_opened_leaves_the_others_as_they_are(tmp_path, serve: MakeServer):
    broken = tmp_path / "broken.db"
    broken.write_bytes(b"no database")
    server = serve(others={"broken": str(broken)})
    browser = server.browser()
    browser.sign_in("ana")
    browser.get(f"/first{server.invitation(IMANI)}")
    assert browser.get("/").headers["location"] == "/first/"
    assert browser.get("/first/browse").status_code == 200
    answer = browser.get("/broken/browse")
    assert answer.status_code == 503
    assert "cannot be" in answer.text


# ---------------------------------------------------------------- the trail


def test_sign_ins_are_in_the_trail_and_make_no_page_count_anew(server: Server):
    with reading(server.engine) as session:
        before = frames.data_version(session)
    browser = server.browser()
    browser.sign_in("ana")
    browser.get("/sign-out", sec_fetch_site="same-origin")
    told = actions(server)[-2:]
    assert told == [("signed in", f"{server.provider.issuer} ana"), ("signed out", f"{server.provider.issuer} ana")]
    with reading(server.engine) as session:
        assert frames.data_version(session) == before


def test_no_token_and_no_address_of_mail_is_in_the_database(server: Server):
    browser = server.signed_in("ana", IMANI)
    link = server.invitation(TOVE)
    with writing(server.engine) as session:
        tables = ("sign_in", "identity", "invitation", "audit_event", "person")
        rows = "\n".join(str(session.connection().execute(text(f"SELECT * FROM {table}")).all()) for table in tables)
    for secret in (browser.cookies[COOKIE], link.removeprefix("/invitation/"), "hospital.example"):
        assert secret not in rows
