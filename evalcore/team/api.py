"""The study over HTTP for programs: labels, scores, agreement, judges and progress as JSON under /api/v1/, read and never written.

Who asks, with a key or a browser's session, reads what Export and the figures show that person, by the same rule, and with the same exposures written down.
"""

import hashlib
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from threading import Lock
from typing import Any

import orjson
import pandas as pd
from anyio import CapacityLimiter, to_thread
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from evalcore.errors import DatabaseFault, NotAllowed, OverreadError, refuse
from evalcore.export import tables as export_tables
from evalcore.export.tables import CODEBOOK, DTYPES, Part
from evalcore.judges import agreement, quality
from evalcore.judges.record import OVERALL
from evalcore.reading import assignment_queries, exposing, pace
from evalcore.reading.adjudication import hidden_examples
from evalcore.reading.queries import numbers_of
from evalcore.rubric import queries as rubric_queries
from evalcore.rubric.data import RubricData
from evalcore.study import frames, lookups
from evalcore.study.acting import allow
from evalcore.study.db import Engine, reading
from evalcore.study.policies import check_can_follow
from evalcore.study.schema import Seen, Viewer
from evalcore.study.tables import now
from evalcore.team import queries
from evalcore.team.studies import Study, studies

PATH = re.compile(r"(?:/(?P<study>[a-z][a-z0-9-]*))?/api/v1/(?P<what>[a-z0-9._-]*)")
ROWS, MOST_ROWS = 1_000, 10_000
"""In one answer, unless `limit` says otherwise; and at most, but for those of the last response, which is never divided."""
AT_ONCE = 2
MOST_CURSOR = 18  # digits: a database gives no larger number
CSV = "text/csv"
NO_KEY = (
    "Send a key that a lead of the study made (overread team key, or Study, People) as `Authorization: Bearer KEY`, or sign in with a browser. This one is "
    "missing, revoked, expired, or of another study."
)
CODEBOOKS = ("labels", "scores")
FILTERS = {
    "judge": "Whose labels: the name of a judge. Default: of labels the judge with most verdicts, else every judge.",
    "dataset": "Only this data set.",
    "model": "Only this model's responses.",
    "theme": "Only conversations of this theme.",
    "read_only": "true: only what a physician has read.",
}
PAGED = {
    "limit": f"Rows in one answer, 1 to {MOST_ROWS:,}; a response's rows stay together, so there may be a few more. Default: {ROWS:,}.",
    "cursor": "`next` of the answer before.",
}
PARAMETERS: Mapping[str, Mapping[str, str]] = {
    "labels": FILTERS | PAGED,
    "scores": {name: FILTERS[name] for name in ("judge", "dataset", "model", "theme")} | PAGED,
    "agreement": {"by": f"Some of {', '.join(agreement.GROUPINGS)}, joined by commas. Default: {OVERALL}."},
    "judges": {},
    "progress": {},
}
MEANING = export_tables.MEANING | {
    "agreement": "How far physicians agree with one another, together (pooled) and by pair; the columns are those of `overread agreement --json`.",
    "judges": "How well judges say what physicians say: balanced_f1, percentiles and error_rates, as `overread judges --json` has them.",
    "progress": "Assignments, with the columns of `overread assignments list --json` but for chosen_by and readers; and readers: reader, n_reads and "
    "reads_a_day, of the last seven days and null without any.",
}


class Refused(OverreadError):
    """A request that is answered with a status and a sentence."""

    def __init__(self, status: int, sentence: str, **headers: str) -> None:
        self.status, self.headers = status, {name.replace("_", "-"): said for name, said in headers.items()}
        super().__init__(sentence)


class Api:
    """Answers /api/v1/, on a server of several studies /STUDY/api/v1/; passes on all else. `by_session`: who asks in a study by what a browser sends."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        engine_at: Callable[[str], Engine],
        by_session: Callable[[Mapping[str, str], Engine], Viewer | None],
    ) -> None:
        self._app, self._engine_at, self._by_session = app, engine_at, by_session
        self._limiter: CapacityLimiter | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """200, 304 where nothing has changed; 400, 401, 403, 404, 405 or 503 with a sentence."""
        asked = PATH.fullmatch(scope["path"]) if scope["type"] == "http" else None
        if asked is None:
            await self._app(scope, receive, send)
            return
        # two at once, in threads of their own: a program that asks often slows other programs down, and no reader
        self._limiter = self._limiter or CapacityLimiter(AT_ONCE)
        request = Request(scope)
        answer = await to_thread.run_sync(self._answer, request, asked["study"], asked["what"], limiter=self._limiter)
        await answer(scope, receive, send)

    def _answer(self, request: Request, study: str | None, what: str) -> Response:
        always = {"cache-control": "private, no-cache", "vary": "Accept, Authorization, Cookie"}
        if request.method not in ("GET", "HEAD"):
            return _sentence(405, f"expected GET, got {request.method[:20]}", always | {"allow": "GET, HEAD"})
        if what == "openapi.json":
            return JSONResponse(openapi(), headers=always)
        try:
            engine, viewer = self._let_in(request, study)
            answer = _read(engine, viewer, what, request)
        except (OverreadError, DatabaseFault) as error:
            if isinstance(error, Refused):
                return _sentence(error.status, str(error), {**always, **error.headers})
            if isinstance(error, DatabaseFault):
                return _sentence(503, str(error), {**always, "retry-after": "5"})
            return _sentence(403 if isinstance(error, NotAllowed) else 400, str(error), always)
        answer.headers.update(always)
        return answer

    def _let_in(self, request: Request, name: str | None) -> tuple[Engine, Viewer]:
        """The study and who asks. Nobody learns which studies there are."""
        study: Study | None = studies().get(name or "")
        said = request.headers.getlist("authorization")
        scheme, _, key = said[0].partition(" ") if len(said) == 1 else ("", "", "")
        engine, viewer = None if study is None else self._engine_at(study.db), None
        if engine is not None and said:
            with reading(engine) as session:
                viewer = queries.person_of_key(session, key.strip()) if scheme.lower() == "bearer" else None
        elif engine is not None:
            viewer = self._by_session(request.cookies, engine)
        if engine is None or viewer is None:
            raise Refused(401, NO_KEY, www_authenticate="Bearer")
        return engine, viewer


def _sentence(status: int, sentence: str, headers: Mapping[str, str]) -> Response:
    return JSONResponse({"error": sentence}, status, headers)


def _read(engine: Engine, viewer: Viewer, what: str, request: Request) -> Response:
    known, asked = PARAMETERS.get(what), request.query_params
    if known is None:
        raise Refused(404, f"/api/v1/: expected {', '.join(PARAMETERS)} or openapi.json, got {what[:40]!r}")
    if wrong := [name for name in asked if name not in known or len(asked.getlist(name)) > 1]:
        refuse(
            f"query: expected each of {', '.join(known) or 'no parameter'} once at most, got {', '.join(wrong)[:80]!r}"
        )
    with reading(engine) as session:
        allow(session, viewer, check_can_follow)
        if (found := lookups.unfinished_import(session)) is not None:
            raise Refused(503, found.sentence, retry_after="30")
        blind, version = hidden_examples(session, viewer), frames.data_version(session)
    if what == "progress":  # the pace and what is begun change without an act
        return _json(_progress(engine, blind), version, request.headers)
    is_csv = what in CODEBOOKS and CSV in request.headers.get("accept", "")
    seen = [str(engine.url), version, sorted(blind), what, sorted(asked.items()), is_csv]
    tag = f'"{hashlib.sha256(orjson.dumps(seen)).hexdigest()[:32]}"'
    if _is_known(tag, request.headers):
        return Response(status_code=304, headers={"etag": tag})
    if what in CODEBOOKS:
        return _rows(engine, viewer, what, asked, Part(blind=blind), version, tag, is_csv=is_csv)
    data = _rubric_data(engine, version).without(blind)
    return _json(_agreement(data, asked.get("by")) if what == "agreement" else _judges(data), version, None, tag)


def _is_known(tag: str, headers: Headers) -> bool:
    known = {one.strip().removeprefix("W/") for one in headers.get("if-none-match", "").split(",")}
    return tag in known


def _json(told: Mapping[str, Any], version: int, headers: Headers | None, tag: str = "") -> Response:
    body = orjson.dumps({"version": version, **told}, option=orjson.OPT_SERIALIZE_NUMPY, default=pd.Timestamp.isoformat)
    tag = tag or f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    if headers is not None and _is_known(tag, headers):
        return Response(status_code=304, headers={"etag": tag})
    return Response(body, media_type="application/json", headers={"etag": tag})


def _rows(
    engine: Engine,
    viewer: Viewer,
    what: str,
    asked: Mapping[str, str],
    part: Part,
    version: int,
    tag: str,
    *,
    is_csv: bool,
) -> Response:
    """The rows of the next responses, whole: so that what is read meanwhile neither repeats a row nor leaves one out."""
    chosen = {name: asked[name] for name in ("judge", "dataset", "model", "theme") if name in asked}
    read_only = asked.get("read_only", "false")
    if read_only not in ("true", "false"):
        refuse(f"read_only: expected true or false, got {read_only[:40]!r}")
    limit, after = _number("limit", asked.get("limit", str(ROWS)), MOST_ROWS), asked.get("cursor", "0")
    after_response = _number("cursor", after, 10**MOST_CURSOR, least=0)
    wanted = Part(**chosen, read_only=read_only == "true", blind=part.blind)
    with _making:  # one table at a time: the next who asks for the same finds it made
        rows = _table(engine, version, what, wanted)
    rows = rows.loc[rows["response_id"].gt(after_response)]
    following = ""
    if len(rows) > limit:
        last = rows["response_id"].iloc[limit - 1]
        kept = rows.loc[rows["response_id"].le(last)]
        following = str(last) if len(kept) < len(rows) else ""
        rows = kept
    if not rows.empty:
        with reading(engine) as session:
            examples = numbers_of(session, set(rows["example_id"])) - part.blind
        exposing.expose(engine, viewer, Seen.EXPORT, examples)
    headers = {"etag": tag, "x-overread-version": str(version), **({"x-next-cursor": following} if following else {})}
    if is_csv:
        return Response(export_tables.to_csv(rows), media_type=CSV, headers=headers)
    told = {"version": version, "rows": frames.records(rows), "next": following or None}
    body = orjson.dumps(told, default=pd.Timestamp.isoformat)
    return Response(body, media_type="application/json", headers=headers)


def _number(name: str, said: str, most: int, *, least: int = 1) -> int:
    number = int(said) if said.isascii() and said.isdigit() and len(said) <= MOST_CURSOR else -1
    if not least <= number <= most:
        refuse(f"{name}: expected a whole number from {least:,} to {most:,}, got {said[:40]!r}")
    return number


_making = Lock()


@lru_cache(maxsize=4)
def _table(engine: Engine, version: int, what: str, part: Part) -> pd.DataFrame:  # noqa: ARG001 - the version is the key
    return export_tables.table(engine, what, part).sort_values("response_id", kind="stable", ignore_index=True)


@lru_cache(maxsize=1)
def _rubric_data(engine: Engine, version: int) -> RubricData:  # noqa: ARG001 - the version is the key
    with reading(engine) as session:
        return rubric_queries.load(session)


def _agreement(data: RubricData, by: str | None) -> dict[str, Any]:
    groupings = (by or OVERALL).split(",")
    if unknown := [word for word in groupings if word not in agreement.GROUPINGS]:
        refuse(f"by: expected some of {', '.join(agreement.GROUPINGS)}, got {', '.join(unknown)[:80]!r}")
    labels = agreement.labels_of(data)
    pooled = agreement.agreement(labels, by=groupings, coefficients=agreement.SHOWN)
    by_pair = agreement.pair_agreement(labels, coefficients=agreement.SHOWN)
    return {"pooled": frames.records(pooled), "by_pair": frames.records(by_pair)}


def _judges(data: RubricData) -> dict[str, Any]:
    f1 = quality.balanced_f1(data)
    ranks = quality.percentiles(quality.standings(f1, quality.theme_of_categories(data.items)))
    found = {"balanced_f1": f1, "percentiles": ranks, "error_rates": quality.error_rates(data, by=[OVERALL])}
    return {name: frames.records(table) for name, table in found.items()}


def _progress(engine: Engine, blind: frozenset[int]) -> dict[str, Any]:
    """As Overview: who has read what waits for whoever asks is not told, and the filters of an assignment may name its model."""
    at = now()
    with reading(engine) as session:
        made = assignment_queries.assignments(session).drop(columns=["chosen_by", "readers"])
        locked = assignment_queries.locked_reads(session, blind)
    readers = [
        {"reader": name, "n_reads": len(of_reader), "reads_a_day": pace.reads_a_day(of_reader, at)}
        for name, of_reader in locked.groupby("reader")["locked_at"]
    ]
    return {"assignments": frames.records(made), "readers": readers}


_LISTS = {
    "agreement": ("pooled", "by_pair"),
    "judges": ("balanced_f1", "percentiles", "error_rates"),
    "progress": ("assignments", "readers"),
}
_TYPES = {"Int64": "integer", "float64": "number", "boolean": "boolean"}
_REFUSALS = {
    "400": "A parameter that is not known, or a name that the study does not have.",
    "401": "No key, or one that opens nothing.",
    "403": "Whoever the key reads as is no researcher and no lead.",
    "503": "The database is away, or a large file is not imported whole. Try again.",
}


def openapi() -> dict[str, Any]:
    """The description of all this by OpenAPI 3.1; it tells nothing of a study, and is the same for everybody."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "Overread", "version": "1", "description": "A study, read by programs; see docs/api.md."},
        "servers": [{"url": "."}],
        "security": [{"key": []}],
        "paths": {f"/{what}": {"get": _operation(what)} for what in PARAMETERS},
        "components": {"securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
    }


def _operation(what: str) -> dict[str, Any]:
    told: dict[str, Any] = {
        "version": {"type": "integer", "description": "Grows with each act that changes the study."}
    }
    told |= {name: {"type": "array", "items": {"type": "object"}} for name in _LISTS.get(what, ())}
    as_csv = {}
    if what in CODEBOOKS:
        rows = {"type": "array", "items": _object(_columns(what))}
        told |= {"rows": rows, "next": {"type": ["string", "null"]}}
        as_csv = {CSV: {"schema": {"type": "string"}}}
    parameters = [
        {"name": name, "in": "query", "description": meaning, "schema": _schema_of(name)}
        for name, meaning in PARAMETERS[what].items()
    ]
    error = _content(_object({"error": {"type": "string"}}))
    responses: dict[str, Any] = {
        "200": {"description": MEANING[what], "content": {**_content(_object(told)), **as_csv}},
        "304": {"description": "Nothing has changed since the ETag that came with If-None-Match."},
    }
    responses |= {status: {"description": why, "content": error} for status, why in _REFUSALS.items()}
    return {"operationId": what, "summary": MEANING[what], "parameters": parameters, "responses": responses}


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


def _content(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _schema_of(name: str) -> dict[str, Any]:
    if name == "limit":
        return {"type": "integer", "minimum": 1, "maximum": MOST_ROWS, "default": ROWS}
    if name == "read_only":
        return {"type": "boolean", "default": False}
    return {"type": "string", **({"pattern": f"^[0-9]{{1,{MOST_CURSOR}}}$"} if name == "cursor" else {})}


def _columns(what: str) -> dict[str, Any]:
    return {
        column: {"type": [_TYPES.get(DTYPES[what].get(column, ""), "string"), "null"], "description": meaning}
        for column, meaning in CODEBOOK[what]
    }
