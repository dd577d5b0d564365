"""The doors of a server that people sign in to: who comes without a session goes to the identity provider first, over HTTP and the socket.

The protocol is Authlib's; the session is a row of ours, of which the browser holds a token, and it decides on every run what a page shows.
"""

import hashlib
import hmac
import html
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from urllib.parse import quote, urlsplit

from authlib.common.errors import AuthlibBaseError
from authlib.integrations.starlette_client import OAuth
from httpx2 import HTTPError
from joserfc.errors import JoseError
from starlette.concurrency import run_in_threadpool
from starlette.middleware.sessions import SessionMiddleware
from starlette.requests import HTTPConnection, Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from evalcore.errors import DatabaseFault, NotAllowed, OverreadError
from evalcore.importing.uploads import UPLOAD
from evalcore.study.db import Engine, reading, writing
from evalcore.study.policies import check_can_import, reason
from evalcore.study.schema import Viewer
from evalcore.team import people, queries, store
from evalcore.team.provider import Provider
from evalcore.team.queries import SignedIn
from evalcore.team.studies import NAME, Study, studies

_log = logging.getLogger(__name__)
COOKIE, FLOW_COOKIE = "__Host-overread", "__Host-overread-sign-in"
HINT_COOKIE = "__Secure-overread-sign-out"
"""The ID token, for the provider's sign-out alone; `__Host-` would send it with every request."""
SIGN_IN, CALLBACK, SIGN_OUT, SIGNED_OUT = "/sign-in", "/sign-in/callback", "/sign-out", "/signed-out"
INVITATION = "/invitation/"
NO_STUDY = "There is no such study, or you are not in it"
STUDY_HEADER = b"x-overread-study"
"""By this header of its socket a page knows its study; of no use to who forges it, since the person is looked up in that study."""
FLOW_SECONDS = 600
MOST_HINT = 3_000
"""Characters of an ID token that a cookie takes; with a longer one the provider asks who signs out."""
_AWAY = (HTTPError, AuthlibBaseError, JoseError, ValueError, KeyError)
_FORGED = (
    b"forwarded", b"remote-user", b"x-remote-user", b"x-forwarded-user", b"x-forwarded-email", b"x-forwarded-preferred-username",
    b"x-forwarded-groups", b"x-forwarded-access-token", b"x-auth-request-user", b"x-auth-request-email", b"x-webauth-user",
    b"x-ms-client-principal", b"x-ms-client-principal-id", b"x-ms-client-principal-name", b"x-amzn-oidc-identity", b"x-amzn-oidc-data",
    b"x-goog-authenticated-user-email", b"x-goog-authenticated-user-id", b"x-streamlit-user",
)  # fmt: skip
"""Headers with which proxies tell who somebody is. Nobody here asks for them, and nobody shall."""


def token_of(cookies: Any) -> str:
    """The token of a session in a browser's cookies; empty where there is none."""
    return str(cookies.get(COOKIE, ""))


def session_of(engine: Engine, token: str, provider: Provider) -> SignedIn | None:
    """Who is signed in by a token; None where the session has ended or never was."""
    with reading(engine) as session:
        return queries.find(session, token, idle=provider.idle, longest=provider.longest)


def viewer_of(sign_ins: Engine, study: Engine, token: str, provider: Provider) -> tuple[SignedIn, Viewer | None] | None:
    """Who is signed in by a token, and whom the study knows them as; asked in one go where the study keeps the sessions itself, as a press does."""
    with reading(sign_ins) as session:
        who = queries.find(session, token, idle=provider.idle, longest=provider.longest)
        if who is None:
            return None
        if study is sign_ins:
            return who, queries.person_of(session, who.issuer, who.subject)
    return who, people.member(study, who)


def pressed(engine: Engine, who: SignedIn) -> None:
    """Somebody did something: their session lasts on, unless the database cannot take that now."""
    if who.is_seen_anew:
        with suppress(DatabaseFault), writing(engine, though_frozen=True) as session:
            store.seen(session, who.number)


def local_path(wanted: str) -> str:
    """A path on this server, whatever came."""
    try:
        parts = urlsplit(wanted)
    except ValueError:
        return "/"
    plain = wanted.isascii() and wanted.isprintable() and "\\" not in wanted
    local = wanted.startswith("/") and not wanted.startswith("//")  # a browser takes more slashes for a host's two
    return wanted if plain and local and not parts.scheme and not parts.netloc else "/"


class SignedInOnly:
    """Lets nobody pass without a session, strips what others may have said of who they are, and names the study of an address."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        provider: Provider,
        sign_ins: Callable[[], Engine],
        study_engine: Callable[[Study], Engine],
    ) -> None:
        self._app = app
        self._provider = provider
        self._sign_ins = sign_ins
        self._study_engine = study_engine
        self._oauth = OAuth()
        self._oauth.register(
            "overread",
            server_metadata_url=f"{provider.issuer.rstrip('/')}/.well-known/openid-configuration",
            client_id=provider.client_id,
            client_secret=provider.client_secret,
            client_kwargs={"scope": provider.scopes, "code_challenge_method": "S256", "timeout": 10},
        )
        # The same on every process of the server: somebody may begin at one and come back to another.
        secret = hmac.new(provider.client_secret.encode(), b"sign-in on its way", hashlib.sha256).hexdigest()
        cookie: dict[str, Any] = {"session_cookie": FLOW_COOKIE, "max_age": FLOW_SECONDS}
        self._doors = SessionMiddleware(self._door, secret_key=secret, same_site="lax", https_only=True, **cookie)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer our own doors; pass on what has a session."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = [pair for pair in scope["headers"] if pair[0].lower() not in (*_FORGED, STUDY_HEADER)]
        scope = {**scope, "headers": headers}
        if scope["type"] == "http" and scope["path"] in (SIGN_IN, CALLBACK, SIGN_OUT, SIGNED_OUT):
            await self._doors(scope, receive, send)
            return
        try:
            token = token_of(HTTPConnection(scope).cookies)
            who = await run_in_threadpool(session_of, self._sign_ins(), token, self._provider)
            answer = self._without(scope) if who is None else await run_in_threadpool(self._study, scope, who)
        except DatabaseFault as fault:
            answer = _page("Overread cannot be reached", str(fault), status=503)
        except OverreadError as error:
            _log.warning("%s", error)
            answer = _page("This study cannot be opened", "Ask whoever runs this server: its log says why.", status=503)
        if not isinstance(answer, Response):
            await self._app(answer, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})  # before it is accepted: the server answers 403
        else:
            await answer(scope, receive, send)

    def _without(self, scope: Scope) -> Response:
        if not _is_navigation(scope):
            return PlainTextResponse("Sign in first.", status_code=401, headers={"cache-control": "no-store"})
        return _to(f"{SIGN_IN}?next={quote(_address(scope), safe='')}")

    # ------------------------------------------------------------ the study of an address

    def _study(self, scope: Scope, who: SignedIn) -> Scope | Response:
        """The request as the study's pages get it; or where to go instead."""
        listed = studies()
        first, _, rest = scope["path"].removeprefix("/").partition("/")
        study = listed.get("") or listed.get(first)
        if study is None and first == "static":  # Streamlit's own files, the same for everybody
            return scope
        if study is None and not first and _is_navigation(scope):
            return self._choice(who)
        if "" not in listed and scope["path"] == f"/{first}" and NAME.fullmatch(first):
            return _to(f"/{first}/")
        if study is None:
            if f"/{rest}".startswith(INVITATION) and _is_navigation(scope):
                return _no_invitation(store.NO_INVITATION, f"/{first}/")
            return _no_study(scope, who)
        if study.name:
            headers = [*scope["headers"], (STUDY_HEADER, study.name.encode())]
            scope = {**scope, "path": f"/{rest}", "raw_path": f"/{rest}".encode(), "headers": headers}
        return self._opened(scope, study, who) if _is_navigation(scope) else self._part(scope, study, who)

    def _part(self, scope: Scope, study: Study, who: SignedIn) -> Scope | Response:
        person = people.member(self._study_engine(study), who)
        if person is None:
            return _no_study(scope, who)
        if scope["path"].startswith(UPLOAD) and (why := reason(check_can_import, person)):
            return PlainTextResponse(why, 403)
        return scope

    def _opened(self, scope: Scope, study: Study, who: SignedIn) -> Scope | Response:
        engine = self._study_engine(study)
        if scope["path"].startswith(INVITATION):
            try:
                people.accept(engine, scope["path"].removeprefix(INVITATION), who)
            except NotAllowed as refusal:
                return _no_invitation(str(refusal), f"{study.prefix}/")
            return _to(f"{study.prefix}/")
        if people.admit(engine, who, who.groups, study.groups) is None:
            return _no_study(scope, who)
        pressed(self._sign_ins(), who)
        return scope

    def _choice(self, who: SignedIn) -> Response:
        mine = []
        for study in studies().values():
            try:
                if people.admit(self._study_engine(study), who, who.groups, study.groups) is not None:
                    mine.append(study)
            except (OverreadError, DatabaseFault):  # one that cannot be opened leaves the others as they are
                continue
        if len(mine) == 1:
            return _to(f"{mine[0].prefix}/")
        if not mine:
            sentence = "Ask the lead of your study for an invitation."
            return _page("You are in no study", sentence, status=403, link=SIGN_OUT)
        links = "".join(f'<p><a href="{html.escape(one.prefix)}/">{html.escape(one.title)}</a></p>' for one in mine)
        return _page("Your studies", "", body=links)

    # ------------------------------------------------------------ our own doors

    async def _door(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        doors = {SIGN_IN: self._begin, CALLBACK: self._come_back}
        doors |= {SIGN_OUT: self._sign_out, SIGNED_OUT: self._signed_out}
        try:
            response = await doors[scope["path"]](request)
        except DatabaseFault as fault:
            response = _page("Overread cannot be reached", str(fault), status=503)
        await response(scope, receive, send)

    async def _begin(self, request: Request) -> Response:
        try:
            back = self._provider.public_url + CALLBACK
            answer: Response = await self._oauth.overread.authorize_redirect(request, back)
        except _AWAY:
            title = "The sign-in of your institution cannot be reached"
            return _page(title, "Try again in a minute.", status=502, link=SIGN_IN)
        request.session["next"] = local_path(request.query_params.get("next", "/"))
        answer.headers["cache-control"] = "no-store"
        return answer

    async def _come_back(self, request: Request) -> Response:
        wanted = local_path(request.session.get("next", "/"))
        try:
            options = {"iss": {"essential": True, "value": self._provider.issuer}}
            said = await self._oauth.overread.authorize_access_token(request, claims_options=options)
            claims = await self._claims(said)
        except _AWAY as error:
            await run_in_threadpool(self._tell_refused, "somebody", type(error).__name__)
            why = "It took more than ten minutes, was begun in another window, or your institution said no."
            return _page("You are not signed in", why, status=403, link=SIGN_IN, again=True)
        finally:
            request.session.clear()
        if why := self._provider.refusal(claims):
            await run_in_threadpool(self._tell_refused, f"{claims.get('iss')} {claims.get('sub')}", why)
            return _page("You are not signed in", why, status=403, link=SIGN_IN, again=True)
        token = await run_in_threadpool(self._kept, claims, token_of(request.cookies))
        answer = _to(wanted)
        answer.set_cookie(COOKIE, token, secure=True, httponly=True, samesite="lax", path="/")
        if self._provider.signs_out and len(hint := str(said.get("id_token", ""))) <= MOST_HINT:
            answer.set_cookie(HINT_COOKIE, hint, secure=True, httponly=True, samesite="lax", path=SIGN_OUT)
        return answer

    async def _claims(self, said: Any) -> dict[str, Any]:
        claims = dict(said.get("userinfo") or {})
        metadata = await self._oauth.overread.load_server_metadata()
        if not self._provider.lacks(claims) or "userinfo_endpoint" not in metadata:
            return claims
        try:
            more = await self._oauth.overread.userinfo(token=said)
        except (HTTPError, AuthlibBaseError):  # what the token says has to do
            return claims
        if more.get("sub") != claims.get("sub"):
            msg = "UserInfo is of somebody else than the ID token"
            raise ValueError(msg)
        return {**more, **claims}

    def _kept(self, claims: Any, earlier: str) -> str:
        with writing(self._sign_ins(), though_frozen=True) as session:
            store.end(session, earlier)
            name = str(claims.get("name") or claims.get("preferred_username") or "")[:200]
            groups = self._provider.groups_of(claims)
            return store.begin(session, issuer=str(claims["iss"]), subject=str(claims["sub"]), name=name, groups=groups)

    def _tell_refused(self, who: str, why: str) -> None:
        with writing(self._sign_ins(), though_frozen=True) as session:
            store.refused(session, who=who, why=why)

    async def _sign_out(self, request: Request) -> Response:
        if request.headers.get("sec-fetch-site") not in ("same-origin", "none"):
            return _page("You are still signed in", "Another site asked to sign you out.", status=403, link="/")
        await run_in_threadpool(self._ended, token_of(request.cookies))
        answer = await self._signed_out_there(request)
        answer.headers["cache-control"] = "no-store"
        answer.delete_cookie(COOKIE, secure=True, httponly=True, samesite="lax", path="/")
        answer.delete_cookie(HINT_COOKIE, secure=True, httponly=True, samesite="lax", path=SIGN_OUT)
        return answer

    async def _signed_out_there(self, request: Request) -> Response:
        """The way to the provider's own sign-out, where it has one, which leads back; else to our page."""
        if self._provider.signs_out:
            with suppress(*_AWAY, RuntimeError):  # it names none
                back, hint = self._provider.public_url + SIGNED_OUT, request.cookies.get(HINT_COOKIE)
                whose = {"client_id": self._provider.client_id}
                there: Response = await self._oauth.overread.logout_redirect(request, back, hint, **whose)
                return there
        return _to(SIGNED_OUT)

    def _ended(self, token: str) -> None:
        with writing(self._sign_ins(), though_frozen=True) as session:
            store.end(session, token)

    async def _signed_out(self, request: Request) -> Response:
        came_back = "state" in request.query_params
        request.session.clear()
        elsewhere = "" if came_back else " On a shared machine, sign out of your institution as well."
        return _page("You are signed out", f"Your reads are saved.{elsewhere}", link=SIGN_IN)


def _no_study(scope: Scope, who: SignedIn) -> Response:
    """The same answer whether there is no such study or somebody is not in it, so that no name is told."""
    if not _is_navigation(scope):
        return PlainTextResponse(NO_STUDY, 404)
    signed_in = (
        f"You are signed in as {who.name or 'somebody without a name'}. Ask a lead of the study for an invitation."
    )
    return _page(NO_STUDY, signed_in, status=404, link=SIGN_OUT)


def _no_invitation(why: str, link: str) -> Response:
    return _page("You cannot come in by this link", why, status=403, link=link)


def _is_navigation(scope: Scope) -> bool:
    if scope["type"] != "http" or scope["method"] not in ("GET", "HEAD"):
        return False
    said = dict(scope["headers"])
    mode = said.get(b"sec-fetch-mode")
    return mode == b"navigate" if mode else b"text/html" in said.get(b"accept", b"")


def _address(scope: Scope) -> str:
    query = scope.get("query_string", b"").decode("latin-1")
    return local_path(f"{scope['path']}?{query}" if query else scope["path"])


def _to(address: str) -> RedirectResponse:
    return RedirectResponse(address, status_code=303, headers={"cache-control": "no-store"})


STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #23262a; background: #fbf9f5; max-width: 32rem; margin: 18vh auto 0; padding: 0 1.5rem }
h1 { font-size: 1.5rem; font-weight: 600 }
a { color: #0b5d73 }
@media (prefers-color-scheme: dark) { body { color: #e6e3dd; background: #14181c } a { color: #62bcd2 } }
"""


def _page(
    title: str, sentence: str, *, status: int = 200, link: str = "", again: bool = False, body: str = ""
) -> HTMLResponse:
    words = "Try again" if again else {SIGN_IN: "Sign in", SIGN_OUT: "Sign out"}.get(link, "Go on")
    way = f'<p><a href="{html.escape(link)}">{words}</a></p>' if link else ""
    whole = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{html.escape(title)} · Overread</title><style>{STYLE}</style></head>"
        f'<body><main><h1>{html.escape(title)}</h1><p dir="auto">{html.escape(sentence)}</p>{body}{way}</main></body></html>'
    )
    return HTMLResponse(whole, status_code=status, headers={"cache-control": "no-store"})
