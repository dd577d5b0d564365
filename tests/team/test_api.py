"""The study over HTTP: who is let in, what they read, and that it is what exports and figures say."""

import asyncio
import csv
import io
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from starlette.testclient import TestClient

from evalcore import serving
from evalcore.errors import NotAllowed, NotFound, OverreadError
from evalcore.export import tables as export_tables
from evalcore.reading import assigning
from evalcore.reading.assigning import Choice
from evalcore.study import contents
from evalcore.study.db import Engine, open_study, reading
from evalcore.study.schema import Role
from evalcore.study.tables import now
from evalcore.team import api, people
from evalcore.team.studies import Study
from tests import leaks, world
from tests.docs.blocks import ROOT, blocks
from tests.export_steps import as_file
from tests.leaks import EVERY_ROLE, MODEL, OPEN_EYES, REVIEWER, SECRETS
from tests.team.conftest import ADMINISTRATOR, echo
from tests.world import JUDGE, World

LEAD, READER = "Ana Ruiz", "Dr. Imani Noor"
HOST = "127.0.0.1:8501"


@dataclass
class Server:
    """The doors of a server, and behind them an application that tells what reached it."""

    app: Any

    def ask(self, address: str, key: str = "", *, method: str = "GET", **headers: str) -> httpx.Response:
        """One request, as a program makes it."""
        sent = {"host": HOST} | {name.replace("_", "-"): value for name, value in headers.items()}
        if key:
            sent["authorization"] = f"Bearer {key}"

        async def asked() -> httpx.Response:
            async with httpx.AsyncClient(transport=httpx.ASGITransport(self.app), base_url=f"http://{HOST}") as client:
                return await client.request(method, address, headers=sent)

        return asyncio.run(asked())


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Server]:
    """Makes a server of some studies: by name, or one without a name."""

    def make(**engines: Engine) -> Server:
        listed = {name if len(engines) > 1 else "": engine for name, engine in engines.items()}
        monkeypatch.setattr(api, "studies", lambda: {name: Study(name, name or "one") for name in listed})
        by_place = {name or "one": engine for name, engine in listed.items()}
        inner = api.Api(echo, engine_at=by_place.__getitem__, by_session=partial(serving._by_session, None))
        return Server(serving.OwnPages(inner, frozenset({HOST})))

    return make


@pytest.fixture
def server(small: World, serve: Callable[..., Server]) -> Server:
    return serve(one=small.engine)


def key_of(engine: Engine, name: str = LEAD, *, days: int = 30) -> str:
    return people.make_key(engine, name, purpose="dashboard", days=days, actor=ADMINISTRATOR)


def all_rows(server: Server, address: str, key: str, limit: int) -> list[dict[str, Any]]:
    """Page by page until there is no next."""
    rows, cursor = [], ""
    while True:
        told = server.ask(f"{address}?limit={limit}{cursor}", key).json()
        rows += told["rows"]
        if told["next"] is None:
            return rows
        cursor = f"&cursor={told['next']}"


# ---------------------------------------------------------------- who is let in


def refused(answer: httpx.Response, status: int) -> str:
    assert answer.status_code == status, answer.text
    assert answer.json().keys() == {"error"}
    assert answer.headers["cache-control"] == "private, no-cache"
    said: str = answer.json()["error"]
    return said


@pytest.mark.parametrize("what", api.PARAMETERS)
def test_without_a_valid_key_nothing_is_read(what: str, small: World, server: Server, monkeypatch: pytest.MonkeyPatch):
    address, key, expired = f"/api/v1/{what}", key_of(small.engine), key_of(small.engine, days=1)
    assert server.ask(address, key).status_code == 200
    for wrong in ("", "x", key[:-1], key + "x", key.upper()):
        answer = server.ask(address, wrong)
        assert "Authorization: Bearer" in refused(answer, 401)
        assert answer.headers["www-authenticate"] == "Bearer"
    refused(server.ask(address, authorization=f"Basic {key}"), 401)
    refused(server.ask(f"{address}?key={key}"), 401)
    people.revoke_key(small.engine, 1, actor=ADMINISTRATOR)
    refused(server.ask(address, key), 401)
    assert server.ask(address, expired).status_code == 200
    later = now() + timedelta(days=1, seconds=1)
    monkeypatch.setattr("evalcore.team.queries.now", lambda: later)
    refused(server.ask(address, expired), 401)


def test_a_key_of_another_study_opens_nothing_and_tells_nobody_which_studies_there_are(small, tmp_path, serve):
    other = world.made(f"sqlite:///{tmp_path / 'other.db'}")
    server, key = serve(first=small.engine, second=other.engine), key_of(small.engine)
    assert server.ask("/first/api/v1/labels", key).status_code == 200
    answers = [server.ask(f"/{name}/api/v1/labels", key) for name in ("second", "none-such")]
    assert answers[0].content == answers[1].content
    refused(answers[0], 401)
    refused(server.ask("/api/v1/labels", key), 401)
    other.engine.dispose()


def test_a_key_reads_with_the_roles_that_its_person_has_now(small, server):
    world.add_researcher(small.engine, "Mina Castell", Role.RESEARCHER)
    key = key_of(small.engine, "Mina Castell")
    assert server.ask("/api/v1/labels", key).status_code == 200
    people.set_roles(small.engine, "Mina Castell", [Role.REVIEWER], actor=ADMINISTRATOR)
    said = refused(server.ask("/api/v1/labels", key), 403)
    assert said == "Only leads and researchers can follow the study with a program; you are a reviewer in this study."
    people.set_active(small.engine, "Mina Castell", active=False, actor=ADMINISTRATOR)
    refused(server.ask("/api/v1/labels", key), 401)


def test_the_browsers_session_counts_and_a_readers_is_refused(small, server):
    with reading(small.engine) as session:
        cookie = serving.cookie_name(contents.study_key(session) or "")
    numbers = {name: small.viewer(name).person_id for name in (LEAD, READER)}
    assert server.ask("/api/v1/labels", cookie=f"{cookie}={numbers[LEAD]}").status_code == 200
    refused(server.ask("/api/v1/labels", cookie=f"{cookie}={numbers[READER]}"), 403)
    for nobody in ("99", "0", "-1", "1x", "9" * 40, "", "²"):
        refused(server.ask("/api/v1/labels", cookie=f"{cookie}={nobody}".encode()), 401)
    wrong_key = server.ask("/api/v1/labels", "wrong", cookie=f"{cookie}={numbers[LEAD]}")
    refused(wrong_key, 401)  # a key that is sent is what counts


def test_another_sites_page_and_another_name_of_this_machine_get_nothing(small, server):
    key = key_of(small.engine)
    assert server.ask("/api/v1/labels", key, host="evil.example").status_code == 403
    assert server.ask("/api/v1/labels", key, origin="https://evil.example").status_code == 403
    assert server.ask("/api/v1/labels", key, sec_fetch_site="cross-site", sec_fetch_mode="cors").status_code == 403
    assert "access-control-allow-origin" not in server.ask("/api/v1/labels", key).headers


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"])
def test_nothing_is_written(method: str, small: World, server: Server):
    key = key_of(small.engine)
    before = small.events()
    answer = server.ask("/api/v1/labels", key, method=method)
    assert refused(answer, 405) == f"expected GET, got {method}"
    assert answer.headers["allow"] == "GET, HEAD"
    assert small.events() == before


def test_a_lead_makes_and_revokes_keys_for_researchers_and_each_act_is_in_the_trail_without_the_key(small):
    lead = small.viewer(LEAD)
    key = people.make_key(small.engine, LEAD, purpose=" notebook ", days=7, actor=lead)
    people.revoke_key(small.engine, 1, actor=lead)
    people.revoke_key(small.engine, 1, actor=lead)  # again: no event
    assert small.events()[-2:] == [(LEAD, "key made"), (LEAD, "key revoked")]
    stored = repr([world.rows(small.engine, f"SELECT * FROM {table}") for table in ("access_key", "audit_event")])
    assert "notebook" in stored
    assert key not in stored
    assert key.removeprefix("overread_") not in stored
    (known,) = people.keys(small.engine, actor=lead)
    assert (known.person, known.purpose, known.state) == (LEAD, "notebook", "revoked")
    assert (known.expires_at - known.created_at).days in (6, 7)
    with pytest.raises(
        NotAllowed, match=r"expected a researcher or a lead to read as, got Dr\. Imani Noor \(reviewer\)"
    ):
        people.make_key(small.engine, READER, purpose="x", days=1, actor=lead)
    with pytest.raises(NotFound, match="got 7"):
        people.revoke_key(small.engine, 7, actor=lead)
    for told, why in (({"purpose": " ", "days": 1}, "purpose: expected"), ({"purpose": "x", "days": 367}, "got 367")):
        with pytest.raises(OverreadError, match=why):
            people.make_key(small.engine, LEAD, **told, actor=lead)
    assert len(people.keys(small.engine, actor=lead)) == 1


# ---------------------------------------------------------------- what is read


@pytest.fixture(scope="module")
def waiting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """The study of `leaks`: conversations wait for blind reads of somebody who is researcher too."""
    folder = tmp_path_factory.mktemp("waiting")
    leaks.make(str(folder / "waiting.db"), folder).dispose()
    engine = open_study(str(folder / "waiting.db"))
    yield engine
    engine.dispose()


@settings(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(limit=st.integers(1, 40))
def test_pages_of_any_size_are_together_the_table_of_the_export(
    limit: int, waiting: Engine, serve: Callable[..., Server]
):
    key, server = key_of(waiting, OPEN_EYES), serve(one=waiting)
    for what in api.CODEBOOKS:
        whole = export_tables.table(waiting, what).sort_values("response_id", kind="stable")
        expected = [json.loads(line) for line in as_file(whole, "jsonl").splitlines()]
        assert all_rows(server, f"/api/v1/{what}", key, limit) == expected
        assert expected


def test_what_waits_for_a_blind_read_of_whoever_the_key_reads_as_is_in_no_answer(waiting, serve):
    """As on Export: the same person's file leaves the same out, and once more once it waits again."""
    server = serve(one=waiting)
    seeing, blind = key_of(waiting, OPEN_EYES), key_of(waiting, EVERY_ROLE)

    def said(key: str, *kinds: str) -> bytes:
        answers = [server.ask(f"/api/v1/{what}?", key) for what in (*api.PARAMETERS,)]
        answers += [server.ask(f"/api/v1/{what}", key, accept="text/csv") for what in api.CODEBOOKS]
        assert {answer.status_code for answer in answers} == {200}
        return b"\n".join(answer.content for answer in answers)

    assert leaks.found(SECRETS, said(seeing)) >= {MODEL}
    assert leaks.found((*SECRETS, *leaks.BLIND), said(blind)) == set()
    leaks.make_blind(waiting)
    with reading(waiting) as session:
        everybody = {person.name for person in contents.people(session)}
    assert {REVIEWER, OPEN_EYES} <= everybody
    assert leaks.found((*SECRETS, *leaks.BLIND), said(seeing)) == set()  # in the export test the same holds of a file


def test_what_was_read_is_known_when_a_blind_read_is_assigned_later(small, server):
    """Whoever a program read verdicts for has seen them, by one event in the trail for each conversation that is new."""
    world.add_researcher(small.engine, "Mina Castell", Role.RESEARCHER)
    key = key_of(small.engine, "Mina Castell")
    server.ask("/api/v1/labels", key)
    server.ask("/api/v1/labels", key)
    seen = [actor for actor, action in small.events() if action == "verdicts seen"]
    assert seen == ["Mina Castell"]
    person = small.viewer("Mina Castell").person_id
    assert world.rows(small.engine, f"SELECT example_id, what FROM exposure WHERE person_id = {person} ORDER BY 1") == [
        (1, "export"), (2, "export"),
    ]  # fmt: skip


def test_an_answer_is_kept_until_the_study_changes(small, server):
    key = key_of(small.engine)
    world.assigned(small, n_readers=1, readers=(READER,))
    for what in api.PARAMETERS:
        first = server.ask(f"/api/v1/{what}", key)
        again = server.ask(f"/api/v1/{what}", key, if_none_match=f'"other", W/{first.headers["etag"]}')
        assert (again.status_code, again.content) == (304, b""), what
        assert again.headers["etag"] == first.headers["etag"]
    tags = {what: server.ask(f"/api/v1/{what}", key).headers["etag"] for what in api.PARAMETERS}
    assert len(set(tags.values())) == len(tags)
    world.submitted(small, READER, "++")
    for what, tag in tags.items():
        assert server.ask(f"/api/v1/{what}", key, if_none_match=tag).status_code == 200, what
    labels = server.ask("/api/v1/labels", key).json()["rows"]
    assert sum(row["n_reads"] for row in labels) == 2
    readers = server.ask("/api/v1/progress", key).json()["readers"]
    assert [(row["reader"], row["n_reads"]) for row in readers] == [(READER, 1)]


def test_figures_are_those_of_the_command(small, server, overread):
    world.assigned(small, n_readers=2, readers=(READER, "Dr. Tove Lind"))
    world.submitted(small, READER, "++")
    world.submitted(small, "Dr. Tove Lind", "+-")
    key = key_of(small.engine)
    told = server.ask("/api/v1/agreement?by=overall,theme", key).json()
    command = json.loads(overread("agreement", "--by", "overall,theme", "--json", "--db", small.location).stdout)
    assert {name: told[name] for name in command} == command
    assert told["pooled"][0]["n_items"] == 2
    told = server.ask("/api/v1/judges", key).json()
    command = json.loads(overread("judges", "--by", "overall", "--json", "--db", small.location).stdout)
    tables = ("balanced_f1", "percentiles", "error_rates")
    assert {name: told[name] for name in tables} == {name: command[name] for name in tables}
    told = server.ask("/api/v1/progress", key).json()
    command = json.loads(overread("assignments", "list", "--json", "--db", small.location).stdout)
    assert told["assignments"][0]["n_reads"] == command["assignments"][0]["n_reads"] == 2


def test_rows_come_as_csv_with_texts_that_no_spreadsheet_runs(small, server):
    key = key_of(small.engine)
    answer = server.ask("/api/v1/labels?limit=1", key, accept="text/csv")
    assert answer.headers["content-type"].startswith("text/csv")
    assert answer.headers["x-next-cursor"]
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    told = server.ask("/api/v1/labels?limit=1", key).json()["rows"]
    assert [row["criterion"] for row in rows] == [row["criterion"] for row in told]
    assert answer.content == export_tables.to_csv(export_tables.table(small.engine, "labels").head(len(told)))


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("limit=0", "limit: expected a whole number from 1 to 10,000, got '0'"),
        ("limit=10001", "got '10001'"),
        ("limit=-1", "got '-1'"),
        ("limit=%C2%B2", "got '²'"),
        ("cursor=x", "cursor: expected a whole number"),
        ("cursor=" + "9" * 30, "cursor: expected a whole number"),
        ("judge=Nobody", f"judge: expected one of {JUDGE}, got 'Nobody'"),
        ("read_only=yes", "read_only: expected true or false, got 'yes'"),
        (
            "sort=x",
            "query: expected each of judge, dataset, model, theme, read_only, limit, cursor once at most, got 'sort'",
        ),
        ("limit=1&limit=2", "got 'limit'"),
    ],
)
def test_a_parameter_that_cannot_be_meant_is_named(query: str, why: str, small: World, server: Server):
    assert why in refused(server.ask(f"/api/v1/labels?{query}", key_of(small.engine)), 400)


def test_an_unknown_address_below_it_names_what_there_is_and_others_pass(small, server):
    key = key_of(small.engine)
    assert "expected labels, scores" in refused(server.ask("/api/v1/verdicts", key), 404)
    for other in ("/api/v2/labels", "/api/v1/labels/1", "/api/v1", "/browse", "/API/v1/labels"):
        assert server.ask(other, key).json()["path"] == other  # goes on to sign-in and the pages


def test_the_description_says_what_comes(small, server, overread):
    described = server.ask("/api/v1/openapi.json").json()
    key = key_of(small.engine)
    assert {path.removeprefix("/") for path in described["paths"]} == set(api.PARAMETERS)
    for path, said in described["paths"].items():
        shape = said["get"]["responses"]["200"]["content"]["application/json"]["schema"]
        told = server.ask(f"/api/v1{path}", key).json()
        assert set(told) == set(shape["required"]) == set(shape["properties"])
        if "rows" in told:
            columns = shape["properties"]["rows"]["items"]["properties"]
            kinds = {"string": str, "integer": int, "number": (int, float), "boolean": bool, "null": type(None)}
            for row in told["rows"]:
                assert list(row) == list(columns)
                for name, value in row.items():
                    assert any(isinstance(value, kinds[kind]) for kind in columns[name]["type"]), (path, name, value)
    assert small.location not in json.dumps(described)


def test_a_key_is_made_listed_and_revoked_by_commands(small, server, overread):
    db = ("--db", small.location)
    key = overread("team", "key", LEAD, "--for", "weekly report", *db).stdout.strip()
    assert server.ask("/api/v1/scores", key).status_code == 200
    (listed,) = json.loads(overread("team", "keys", "--json", *db).stdout)
    assert (listed["number"], listed["purpose"], listed["state"]) == (1, "weekly report", "valid")
    overread("team", "revoke-key", "1", *db)
    refused(server.ask("/api/v1/scores", key), 401)


def test_the_notebook_of_the_documents_reads_the_study(small, server, monkeypatch):
    world.assigned(small, n_readers=1, readers=(READER,))
    world.submitted(small, READER, "++")
    (notebook,) = (block.text for block in blocks(ROOT / "docs" / "api.md") if block.language == "python")
    monkeypatch.setattr("httpx.Client", partial(TestClient, server.app))
    said: dict[str, Any] = {"key": key_of(small.engine)}
    exec(notebook, said)
    assert list(said["labels"]["n_reads"]) == [1, 1]
    assert list(said["progress"]["n_reads"]) == [1]
    assert len(said["pooled"]) == 3


def test_a_conversation_that_is_assigned_blind_meanwhile_is_left_out_of_the_next_answer(small, server):
    world.add_researcher(small.engine, "Mina Castell", Role.RESEARCHER, Role.REVIEWER)
    world.leads_read(small.engine)
    key = key_of(small.engine, "Mina Castell")
    choice = Choice(readers=("Mina Castell",), n_readers=1, chosen=(small.responses[0],), alone=True)
    before = server.ask("/api/v1/agreement", key).headers["etag"]
    assigning.assign(small.engine, choice, actor=ADMINISTRATOR)
    answer = server.ask("/api/v1/labels", key)
    assert {row["response_id"] for row in answer.json()["rows"]} == {small.responses[1]}
    assert server.ask("/api/v1/agreement", key).headers["etag"] != before


def test_the_launcher_puts_it_before_the_pages(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    app = serving.build("k" * 32, frozenset({HOST}))
    placed = [one.cls.__name__ for one in app._user_middleware]
    assert placed.index("OwnPages") < placed.index("Api") < placed.index("RememberReader")
