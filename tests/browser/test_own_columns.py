"""A new user's own files, as they lie there: from nothing to a corrected score without a file being edited."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from evalcore.reading import reviewing
from evalcore.study import contents, store
from evalcore.study.db import connect, open_study, reading, writing
from evalcore.study.schema import Label
from tests.browser import steps
from tests.browser.server import AppServer, running_app
from tests.importing.shapes import json_lines, table

LEAD, READER = "Mina Castell", "Dr. Amara Okafor"
N = 12  # conversations: two more than a corrected score needs
RULES = ("Names a reason to be careful.", "Is friendly in tone.")


def asked(number: int) -> str:
    return f"May I swim {number} days after a cold?"


def answer(number: int) -> str:
    return f"After {number} days with a light cold you may, without a fever."


def is_met(number: int, place: int) -> bool:
    """By the judge: of six conversations five on care, of three two on tone."""
    return number % 6 != 0 if place == 0 else number % 3 != 0


def long_table() -> bytes:
    words = {True: "erfüllt", False: "nicht erfüllt"}
    return table(
        [
            {"Frage": asked(number), "Antwort": answer(number), "System": "wren", "Kriterium": rule, "Punkte": 5,
             "Urteil": words[is_met(number, place)], "Grund": "So steht es da.", "Richter": "Magpie"}
            for number in range(N)
            for place, rule in enumerate(RULES)
        ],
        ";",
    )  # fmt: skip


def nested_log() -> bytes:
    return json_lines(
        [
            {
                "request": {"model": "wren", "messages": [{"role": "user", "content": asked(number)}]},
                "response": {"choices": [{"message": {"role": "assistant", "content": answer(number)}, "finish_reason": "stop"}]},
                "evaluation": {
                    "grader": "Magpie",
                    "checks": [{"rule": rule, "weight": 5, "passed": is_met(number, place), "why": "So it says."} for place, rule in enumerate(RULES)],
                },
            }
            for number in range(N)
        ]
    )  # fmt: skip


def read_all(folder: Path) -> None:
    """The physician's reads: everything is met."""
    engine = connect(str(folder / "overread.db"))
    with reading(engine) as session:
        reader = next(person for person in contents.people(session) if person.name == READER)
    while (desk := reviewing.take(engine, reader)) is not None:
        for key in desk.keys:
            reviewing.mark(engine, reader, desk.reading.id, key, Label.MET)
        reviewing.submit(engine, reader, desk.reading.id)
        reviewing.reveal(engine, reader, desk.reading.id)
        desk = reviewing.open_review(engine, reader, desk.reading.id)
        for key in desk.undecided:
            reviewing.revise(engine, reader, desk.reading.id, key, reviewing.Decision(Label.MET), seen=None)
        reviewing.finish(engine, reader, desk.reading.id)
    engine.dispose()


def upload(page: Page, name: str, content: bytes) -> None:
    file = {"name": name, "mimeType": "application/octet-stream", "buffer": content}
    steps.keyed(page, "upload").locator("input[type=file]").set_input_files([file])  # type: ignore[list-item]


@pytest.fixture
def server(tmp_path: Path):
    engine = open_study(str(tmp_path / "overread.db"))
    with writing(engine) as session:
        store.ensure_study(session)
        store.add_person(session, LEAD, roles=["lead"], actor="set-up")
        store.add_person(session, READER, roles=["reviewer"], actor="set-up")
    engine.dispose()
    with running_app(tmp_path) as running:
        yield running


@pytest.mark.slow
@pytest.mark.parametrize(("name", "content"), [("long.csv", long_table()), ("log.jsonl", nested_log())])
def test_a_new_user_gets_from_a_file_of_their_own_to_a_corrected_score(
    page: Page, server: AppServer, name: str, content: bytes
):
    steps.choose_reader(page, server, LEAD)
    steps.go(page, "study")
    upload(page, name, content)
    expect(page.get_by_text("Nothing is missing: this is what will be imported.")).to_be_visible()
    expect(page.locator(".or-conversation").first).to_contain_text(asked(0))
    expect(page.locator(".or-response").first).to_contain_text(answer(0))
    steps.keyed(page, "import").get_by_role("button").click()
    expect(page.get_by_text(f"{2 * N} new verdicts")).to_be_visible()

    steps.opened(page, server, "study", "?study_tab=Reading")
    steps.keyed(page, "assign").get_by_role("button").click()
    expect(page.get_by_text(f"{N} responses").first).to_be_visible()
    read_all(server.folder)

    # The judge: 10 of 12 on care and 8 of 12 on tone, of 5 points each: 9 of 12. All is met by the reads, which are of all responses: 1.
    steps.opened(page, server, "models")
    scores = steps.table(page).first
    expect(scores).to_contain_text("0.75")
    expect(scores).to_contain_text("1.00")
