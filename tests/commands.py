"""Runs the command line in a folder: what it printed, how it ended; and a study that two files were imported into."""

import io
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from sqlalchemy import text
from typer.main import get_command

from evalcore.__main__ import app, main
from evalcore.study.db import connect

RUBRIC = [
    {"criterion": "Names the warning signs.", "points": 6, "tags": ["level:example", "axis:accuracy"]},
    {"criterion": "Prescribes an antibiotic unasked.", "points": -3, "tags": ["level:example", "axis:accuracy"]},
    {"criterion": "Says when to come back.", "points": 4, "tags": ["level:example", "axis:completeness"]},
]
PROMPT = [{"role": "user", "content": "Sore throat for two days, should I worry?"}]


class Run:
    """Runs `overread` in a folder: the console command's own `main`, in this process, which saves each a second and a half of imports."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.db = folder / "study.db"

    def __call__(self, *arguments, **environment):
        told = ["overread", *map(str, arguments)]
        shown, complained = io.StringIO(), io.StringIO()
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(shown), redirect_stderr(complained):
            patch.chdir(self.folder)
            patch.setattr(sys, "argv", told)
            for name in [name for name in os.environ if name.startswith("OVERREAD_")]:
                patch.delenv(name)
            for name, value in environment.items():
                patch.setenv(name, value)
            with pytest.raises(SystemExit) as ended:
                main()
        return subprocess.CompletedProcess(told, ended.value.code or 0, shown.getvalue(), complained.getvalue())

    def good(self, *arguments, **environment):
        """What a command printed that ended well."""
        done = self(*arguments, **environment)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        return done.stdout

    def bad(self, *arguments, **environment):
        """The sentence of a command that ended with status 1."""
        done = self(*arguments, **environment)
        assert done.returncode == 1, done.stderr
        assert "Traceback" not in done.stderr
        assert done.stderr.strip()
        assert done.stdout == ""
        return done.stderr.strip()


class Process(Run):
    """Runs it in a process of its own, as people and scripts do."""

    def __call__(self, *arguments, **environment):
        clean = {name: value for name, value in os.environ.items() if not name.startswith("OVERREAD_")}
        return subprocess.run(
            [sys.executable, "-m", "evalcore", *map(str, arguments)],
            cwd=self.folder,
            env=clean | {"PYTHONPATH": str(Path(__file__).parents[1])} | environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )


def help_of(command):
    """What `--help` says of a command."""
    return get_command(app).commands[command].help


def dump(path):
    """Every row of every table of the study, as one comparable value."""
    engine = connect(str(path))
    tables = (
        "study",
        "example",
        "criterion",
        "response",
        "verdict",
        "imported_file",
        "audit_event",
        "person",
        "rater",
        "model",
    )
    with engine.connect() as connection:
        found = [tuple(map(tuple, connection.execute(text(f"SELECT * FROM {table}")))) for table in tables]
    engine.dispose()
    return found
