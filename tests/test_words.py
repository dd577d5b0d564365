"""Sentences that readers stumbled over stay gone from every text of the product: screens, commands, errors and the documents about them."""

import ast
import csv
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCUMENTS = ("README.md", "CHANGELOG.md", "SECURITY.md", "docs/*.md", "data/*/README.md", "pages/shared/keys.js")
GONE = (
    "Who is reading?", "wait for your read", "by blind reads of such criteria", "of such criteria by blind reads", "somebody in this study has already",
    ": nothing came, expected", " came, expected", "told by the content", "Confidence means", "Bring data in", "Readers an item",
    "Minutes that an opened item is kept", "that an adjudicator checks all the same", "say what you think of the judge", "rest on them have moved",
    "nothing stands out clearly", "What it is made of", "Take the labels away", "take the adjudicated labels away",
    "were made whose selection is not recorded", "Judge worth", "No chance enters", "so many further criteria", "stands below all of them",
    "stands above all of them", "Without an interval because", "nothing speaks against that", "surer than right", "less sure than right", "not its gold",
    "as staying at home", "Which view answers", "Who read the level", "takes the role", "At most so many questions", "What this would take",
    "one question at a time", "Go on by", "did not take the question", "asking again is of no use", "leans too", "cannot be triage_data",
    "ight verdict for the wrong reason", "right, reason wrong", "What is wrong?", "agree throughout", "Remove the case", "error none",
    "Severe harm claimed", "nobody of these readers", "of 2 in question here", "items wait for your", "revised to", "Something is missing",
    "Something wrong is said", "Keys rest", "; this map",
)  # fmt: skip
"""Short and particular enough that no other sentence holds them by accident."""
OPTIONS = ("--judge", "--model", "--dataset", "--confidence-means", "--reads-of")
"""Options of `overread import`, whose faults the Study page shows too: there they are the fields Judge, Model and so on."""


def texts(path: Path) -> Iterator[str]:
    """Every string of a module as one line, each hole of an f-string as {}; of a codebook every cell; else the whole text."""
    if path.suffix == ".csv":
        yield from (cell for row in csv.reader(path.read_text(encoding="utf-8").splitlines()) for cell in row)
        return
    if path.suffix != ".py":
        yield " ".join(path.read_text(encoding="utf-8").split())
        return
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.JoinedStr):
            yield "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield " ".join(node.value.split()) if "\n" in node.value else node.value


def product() -> Iterator[tuple[Path, str]]:
    """Where each text of the product stands, and the text."""
    modules = [ROOT / "app.py", *(ROOT / "pages").rglob("*.py"), *(ROOT / "evalcore").rglob("*.py")]
    documents = [path for pattern in DOCUMENTS for path in ROOT.glob(pattern)]
    for path in [*modules, *documents, *(ROOT / "evalcore").rglob("codebook.csv")]:
        yield from ((path.relative_to(ROOT), text) for text in texts(path))


@pytest.fixture(scope="module")
def everything() -> list[tuple[Path, str]]:
    return list(product())


def test_no_text_says_again_what_readers_stumbled_over(everything):
    assert len(everything) > 10_000, "the texts are not where they were"
    found = [f"{path}: {phrase!r}" for path, text in everything for phrase in GONE if phrase in text]
    assert not found


def test_a_button_is_a_verb_that_says_what_it_does(everything):
    assert not [str(path) for path, text in everything if text == "Go on" and path.parts[0] == "pages"]


def test_what_a_page_shows_of_an_import_names_no_option_of_the_command_line(everything):
    importing = [(path, text) for path, text in everything if path.is_relative_to("evalcore/importing")]
    assert not [f"{path}: {text}" for path, text in importing for option in OPTIONS if option in text]
