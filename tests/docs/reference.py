"""Writes the reference pages of docs/ and the README's table of keys from the code: `python -m tests.docs.reference`, which `make docs` runs."""

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.main import get_command

from evalcore.__main__ import app
from evalcore.export.tables import CODEBOOK
from evalcore.importing.formats import FORMATS, template
from evalcore.settings import PREFIX, Settings
from evalcore.study.schema import Ask
from pages.shared import keys

DOCS = Path(__file__).parents[2] / "docs"
README = DOCS.parent / "README.md"
MADE = "This page is made from the code by `make docs`."


def plain(text: str) -> str:
    """Words in which no sign is taken for Markdown, but for code between backticks."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else re.sub(r"([_*<])", r"\\\1", part) for part in parts)


def table(heads: list[str], rows: list[list[str]]) -> str:
    """A table of Markdown."""
    lines = [heads, ["---"] * len(heads), *([plain(cell).replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def formats() -> str:
    parts = ["# Formats of files", "A file's format is told by its content. " + MADE]
    for name, one in FORMATS.items():
        about = f"{one.title}. A file to begin with: `overread template {name}` writes `{template(name).name}`."
        rows = [[f"`{column}`", meaning] for column, meaning in one.columns.items()]
        parts += [f"## {name}", about, table(["column or key", "meaning"], rows)]
    return "\n\n".join(parts) + "\n"


def commands_of(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Every command with its words, those of groups in their turn."""
    if not hasattr(command, "commands"):
        yield path, command
    for name, below in getattr(command, "commands", {}).items():
        yield from commands_of(below, f"{path} {name}")


def commands() -> str:
    parts = ["# Commands", f"`overread COMMAND --help` says the same. {MADE}"]
    whole = get_command(app)
    for path, command in sorted([("overread", whole), *commands_of(whole, "overread")]):
        rows = []
        for one in command.params:
            names = ", ".join(f"`{name}`" for name in (*one.opts, *one.secondary_opts) if name.startswith("-"))
            said = getattr(one, "help", None) or ""
            rows.append([names or f"`{(one.metavar or one.name or '').upper()}`", " ".join(said.split())])
        rows = [row for row in rows if row[0] != "`--help`"]
        parts += [f"## {path}", plain(inspect.cleandoc(command.help or ""))]
        parts += [table(["option", "meaning"], rows)] if rows else []
    return "\n\n".join(parts) + "\n"


def columns() -> str:
    parts = ["# Columns of exports", f"Every export has a codebook with the same words beside it. {MADE}"]
    for name, meanings in CODEBOOK.items():
        parts += [f"## {name}", table(["column", "meaning"], [[f"`{column}`", told] for column, told in meanings])]
    return "\n\n".join(parts) + "\n"


def keys_of_screens() -> dict[str, list[list[str]]]:
    """By screen each key as it is written, and what it does."""
    asked = [(panel.value, panel, Ask.RUBRIC) for panel in keys.Panel]
    asked.append(("Review, a level of care", keys.Panel.MARK, Ask.GOLD_ACUITY))
    return {
        title: [[f"`{key.written or key.press}`", key.does] for key in keys.keys_of(panel, ask)]
        for title, panel, ask in asked
    }


def keys_page() -> str:
    parts = ["# Keys", f"A key means one thing on every screen. Shortcuts are off while you type. {MADE}"]
    for title, rows in keys_of_screens().items():
        parts += [f"## {title}", table(["key", "what it does"], rows)]
    return "\n\n".join(parts) + "\n"


def with_keys(readme: str) -> str:
    """The README with its table of the keys of Review as the code has it."""
    (_, keys_of_review), *_ = keys_of_screens().items()
    made = table(["key in Review", "what it does"], keys_of_review)
    return re.sub(r"\| key in Review \| what it does \|\n(\|.*\n)+", lambda _: f"{made}\n", readme)


def settings() -> str:
    told = inspect.cleandoc(Settings.__doc__ or "").partition("Attributes:")[2]
    about = dict(re.findall(r"^ {4}(\w[\w, ]*): ((?:.|\n {8})+)", told, re.MULTILINE))
    meaning = {name: " ".join(words.split()) for names, words in about.items() for name in names.split(", ")}
    rows = [
        [
            f"`{PREFIX}{name.upper()}`",
            f"`{field.default}`" if field.default not in {None, ""} else "",
            meaning.get(name, ""),
        ]
        for name, field in Settings.model_fields.items()
    ]
    begin = "Settings are environment variables. `deploy/overread.env.example` shows those of a server. " + MADE
    return f"# Settings\n\n{begin}\n\n{table(['variable', 'default', 'meaning'], rows)}\n"


PAGES = {"formats": formats, "commands": commands, "columns": columns, "keys": keys_page, "settings": settings}

if __name__ == "__main__":
    for page, made in PAGES.items():
        (DOCS / f"{page}.md").write_text(made(), encoding="utf-8")
    README.write_text(with_keys(README.read_text(encoding="utf-8")), encoding="utf-8")
