"""What the docs for IT departments say is what happens: the drill is run, every setting and every file that they name is there."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from evalcore.settings import PREFIX, Settings
from tests import world
from tests.conftest import postgres_database

ROOT = Path(__file__).parents[2]
DOCS = sorted((ROOT / "docs").glob("*.md"))


def drill() -> str:
    (block,) = re.findall(r"```bash\n(.*?)```", (ROOT / "docs" / "backup.md").read_text(encoding="utf-8"), re.DOTALL)
    return block


def drilled(folder: Path, study: str, spare: str) -> str:
    """Run the block of the docs as it stands."""
    overread = f'overread() {{ {shlex.quote(sys.executable)} -m evalcore "$@"; }}\n'
    command = ["bash", "-euo", "pipefail", "-c", overread + drill()]
    environment = {
        "STUDY": study,
        "SPARE": spare,
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": str(ROOT),
        "HOME": str(folder),
    }
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow  # ten commands, each a process
def test_the_drill_of_the_docs_restores_a_study_and_proves_it(sqlite_database_url, tmp_path):
    made = world.made(sqlite_database_url)
    folder = tmp_path / "drill"
    folder.mkdir()
    told = drilled(folder, sqlite_database_url, str(tmp_path / "spare.db"))
    assert "The audit trail holds" in told
    assert "Dr. Imani Noor" in told
    assert list(folder.iterdir()) == []  # it leaves nothing behind
    made.engine.dispose()


@pytest.mark.slow
def test_the_drill_works_on_postgresql(postgres_url, tmp_path):
    with postgres_database(postgres_url) as study, postgres_database(postgres_url) as spare:
        made = world.made(study)
        assert "The audit trail holds" in drilled(tmp_path, study, spare)
        made.engine.dispose()


def test_the_example_of_settings_names_settings_that_exist():
    said = (ROOT / "deploy" / "overread.env.example").read_text(encoding="utf-8")
    named = set(re.findall(rf"\b{PREFIX}([A-Z_]+)\b", said))
    assert {name.lower() for name in named} <= Settings.model_fields.keys()
    assert {"PUBLIC_URL", "OIDC_ISSUER", "OIDC_CLIENT_ID", "OIDC_CLIENT_SECRET_FILE", "DB"} <= named


@pytest.mark.parametrize("doc", DOCS, ids=lambda path: path.stem)
def test_what_a_doc_points_to_is_there(doc: Path):
    text = doc.read_text(encoding="utf-8")
    for named in re.findall(r"`((?:docs|deploy|data)/[\w@./-]+)`", text):
        assert (ROOT / named).exists(), named
    known = {f"{PREFIX}{name.upper()}" for name in Settings.model_fields}
    assert {name.rstrip("_") for name in re.findall(rf"\b{PREFIX}[A-Z_]+\b", text)} <= known | {f"{PREFIX}OIDC"}
