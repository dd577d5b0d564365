"""What a server says to its proxy, and what it writes down of its work."""

import contextlib
import io
import json
import logging

import pytest

from evalcore import serving
from evalcore.study import acting, db
from evalcore.study.db import connect, open_study
from evalcore.team import logs, people
from tests.team.conftest import ADMINISTRATOR, Browser, echo


def ready(location, monkeypatch) -> list[str]:
    monkeypatch.setenv("OVERREAD_DB", location)
    engines = {}

    def engine_at(place):
        if place not in engines:
            engines[place] = open_study(place)
        return engines[place]

    try:
        return logs.faults(engine_at)
    finally:
        for engine in engines.values():
            engine.dispose()


def test_a_study_that_can_be_used_is_ready(small, monkeypatch):
    assert ready(small.location, monkeypatch) == []


def test_a_database_that_cannot_be_used_a_full_disk_and_older_tables_are_told(small, tmp_path, monkeypatch):
    (tmp_path / "broken.db").write_bytes(b"no database")
    assert "study: the database cannot be used" in ready(str(tmp_path / "broken.db"), monkeypatch)
    monkeypatch.setenv("OVERREAD_DB", small.location)
    with small.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '1'")
    engine = connect(small.location)
    assert "study: the tables are of an older version of Overread" in logs.faults(lambda _: engine)
    engine.dispose()


def test_a_server_whose_connections_are_all_in_use_is_not_ready_and_says_so(small, monkeypatch):
    monkeypatch.setenv("OVERREAD_DB", small.location)
    monkeypatch.setattr(db, "_MOST_BEYOND", 0)
    engine = connect(small.location, wait_seconds=0.1)
    with contextlib.ExitStack() as held:
        for _ in range(db._KEPT):
            held.enter_context(engine.connect())
        answer = Browser(logs.Health(echo, engine_at=lambda _: engine)).get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["faults"] == [
        f"{name}: every connection to the database is in use" for name in ("study", "sign-ins")
    ]
    assert Browser(logs.Health(echo, engine_at=lambda _: engine)).get("/readyz").status_code == 200
    engine.dispose()


def test_a_disk_that_is_nearly_full_is_told(sqlite_database_url, monkeypatch):
    monkeypatch.setattr(logs, "LEAST_BYTES", 1 << 62)
    assert ready(sqlite_database_url, monkeypatch) == [
        "study: the disk is nearly full",
        "sign-ins: the disk is nearly full",
    ]


def test_health_is_told_to_whoever_asks_by_whatever_name_and_nothing_else_is(sqlite_database_url, monkeypatch):
    monkeypatch.setenv("OVERREAD_DB", sqlite_database_url)
    made = []

    def engine_at(place):
        made.append(open_study(place))
        return made[-1]

    browser = Browser(logs.Health(echo, engine_at=engine_at))
    assert browser.get("/healthz", host="10.0.0.7:8501").json() == {"status": "ok"}
    assert browser.get("/readyz", host="10.0.0.7:8501").json() == {"status": "ok", "faults": []}
    assert browser.get("/browse").json()["path"] == "/browse"
    for engine in made:
        engine.dispose()


@pytest.fixture
def lines():
    """What the program writes as JSON lines, read after the act."""
    ours, written = logging.getLogger("evalcore"), io.StringIO()
    before = ours.handlers, ours.propagate, ours.level
    logs.begin(written)
    yield lambda: [json.loads(line) for line in written.getvalue().splitlines()]
    ours.handlers, ours.propagate = before[:2]
    ours.setLevel(before[2])


def test_an_act_is_written_with_its_person_and_without_a_word_of_the_study(small, lines):
    lead = small.viewer("Ana Ruiz")
    acting.set_guideline(small.engine, "Read every SECRET twice.", actor=lead)
    people.invite(small.engine, "Dr. Imani Noor", actor=ADMINISTRATOR)
    told = lines()
    assert [(line["act"], line["person_id"]) for line in told] == [
        ("guideline changed", lead.person_id),
        ("person invited", 0),
    ]
    assert all(line["seconds"] >= 0 for line in told)
    assert not any(word in json.dumps(told) for word in ("SECRET", "Imani", "Ana Ruiz"))


def test_an_act_that_is_undone_is_not_written(small, lines):
    with pytest.raises(Exception, match="Only leads can "):
        acting.set_guideline(small.engine, "x", actor=small.viewer("Dr. Imani Noor"))
    assert lines() == []


def test_a_request_has_a_number_that_the_proxy_gave_or_its_own_and_no_query(lines):
    browser = Browser(logs.RequestLog(echo))
    assert browser.get("/browse?q=chest+pain", x_request_id="abcdef-123").headers["x-request-id"] == "abcdef-123"
    own = browser.get("/invitation/a-token", x_request_id="bad id\u0022}").headers["x-request-id"]
    first, second = lines()
    assert (first["request"], first["path"], first["status"]) == ("abcdef-123", "/browse", 200)
    assert (second["request"], second["path"]) == (own, "/invitation/…")


def test_an_error_is_told_by_its_kind_and_place_not_by_its_words(lines):
    try:
        int("SECRET")
    except ValueError:
        logging.getLogger("evalcore.x").exception("It broke off")
    (line,) = lines()
    assert line["error"].startswith("ValueError at ")
    assert "SECRET" not in json.dumps(line)


def test_only_with_sign_in_it_listens_elsewhere_than_here():
    with pytest.raises(Exception, match="no sign-in is set up"):
        serving.check_address("0.0.0.0", sign_in=False)
    serving.check_address("0.0.0.0", sign_in=True)
