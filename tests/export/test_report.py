"""The report: numbers as the pages have them, in one file that asks nobody for anything and runs no script but its own."""

import base64
import hashlib
import json
import re
from datetime import UTC, datetime
from html import unescape

import pytest

from evalcore.export.report import NO_BREAK, report
from evalcore.rubric import finding, queries as rubric_queries
from evalcore.rubric.results import compute
from evalcore.study import contents
from evalcore.study.db import connect, reading
from evalcore.study.schema import Label
from tests import chromium, world

AT = datetime(2026, 11, 25, 12, tzinfo=UTC)
HOSTILE = "</script><img src=x onerror=alert(1)><b>"


def visible(content):
    """The words of the file, without scripts and style."""
    text = re.sub(r"(?s)<(script|style)\b.*?</\1>", " ", content.decode())
    return unescape(re.sub(r"<[^>]*>", " ", text)).replace(NO_BREAK, " ")


@pytest.fixture(scope="module")
def of_demo(demo_file):
    engine = connect(f"sqlite:///{demo_file}")
    yield engine, report(engine, at=AT)
    engine.dispose()


def test_the_numbers_are_those_of_the_pages_with_their_intervals_and_the_methods(of_demo):
    engine, content = of_demo
    shown = " ".join(visible(content).split())
    with reading(engine) as session:
        done = compute(session, rubric_data=rubric_queries.load(session))
    assert done.results.finding in shown
    for cells in finding.score_columns(finding.best_first(done.results.scores)).values():
        for cell in cells:
            assert str(cell) in shown
    for title in (
        "How the study was done",
        "Models",
        "Judges against physicians",
        "Agreement between physicians",
        "Calibration of judges",
        "Levels of care",
    ):
        assert title in shown
    assert "Corrected scores use the judge's labels on all items" in shown
    assert "Made on 2026-11-25 12:00 UTC" in shown
    assert not re.search(r"\b(nan|None|NaT)\b", shown)


def test_calibration_is_that_of_the_command(of_demo, demo_file, overread):
    _, content = of_demo
    shown = " ".join(visible(content).split())
    told = json.loads(overread("calibration", "--section", "judges", "--json", "--db", str(demo_file)).stdout)
    rows = [row for part in ("criteria", "levels") for row in told["judges"][part]["errors"] if row["n"]]
    assert rows
    assert all(sentence in shown for sentence in told["findings"])
    for row in rows:
        assert f"{row['ece']:.2f} (perfect: {row['null']:.2f}" in shown


def test_nobody_is_named_and_no_conversation_is_quoted(of_demo):
    engine, content = of_demo
    shown = content.decode()
    with reading(engine) as session:
        people = [person.name for person in contents.people(session)]
        quoted = [row[0] for row in session.connection().exec_driver_sql("SELECT first_words FROM example")]
    assert people
    assert not [name for name in people if name in shown]
    assert not [words for words in quoted if words and words in shown]


def test_only_its_own_scripts_may_run_and_nothing_is_fetched(of_demo):
    _, content = of_demo
    text = content.decode()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
    scripts = re.findall(r"(?s)<script>(.*?)</script>", text)
    assert len(scripts) == 2
    hashes = {f"'sha256-{base64.b64encode(hashlib.sha256(one.encode()).digest()).decode()}'" for one in scripts}
    assert set(policy.partition("script-src ")[2].split()) == hashes
    assert "default-src 'none'" in policy
    outside = re.sub(r"(?s)<script.*?</script>", "", text)
    assert not re.search(r"<(img|link|iframe|object|a)\b|\ssrc=|@import|url\(", outside)


def test_names_from_files_are_shown_and_never_run(tmp_path):
    small = world.made(f"sqlite:///{tmp_path}/hostile.db", models=("Alder-2", HOSTILE))
    for response in small.responses:
        for criterion in small.criteria[0 if response < 3 else 1]:
            world.said(small, Label.MET, response_id=response, criterion_id=criterion, example=0 if response < 3 else 1)
    text = report(small.engine).decode()
    assert HOSTILE not in text
    assert "<img" not in text
    (data,) = re.findall(r'(?s)<script type="application/json" id="figures">(.*?)</script>', text)
    assert json.loads(data)
    assert HOSTILE in visible(text.encode())
    small.engine.dispose()


def test_conversations_that_wait_for_the_viewer_are_in_no_number(tmp_path):
    small = world.made(f"sqlite:///{tmp_path}/blind.db")
    part = visible(report(small.engine, blind=frozenset({1}), at=AT))
    assert "2 items" in part
    assert "4 items" not in part
    assert "Score of each model" in part
    nothing = visible(report(small.engine, blind=frozenset({1, 2}), at=AT))
    assert "Score of each model" not in nothing
    small.engine.dispose()


@pytest.mark.slow
def test_the_file_opens_without_a_network_draws_its_figures_and_fits_the_screen(of_demo, tmp_path):
    from playwright.sync_api import sync_playwright

    path = tmp_path / "report.html"
    path.write_bytes(of_demo[1])
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium.find(), args=list(chromium.FLAGS))
        for width in (1280, 390):
            context = browser.new_context(viewport={"width": width, "height": 900}, offline=True, color_scheme="dark")
            page, asked, wrong = context.new_page(), [], []
            page.on("request", lambda request, asked=asked: asked.append(request.url))
            page.on("console", lambda message, wrong=wrong: wrong.append(message.text))
            page.on("pageerror", lambda error, wrong=wrong: wrong.append(str(error)))
            page.goto(path.as_uri())
            page.locator(".main-svg").last.wait_for()
            n_figures = page.locator(".figure").count()
            assert n_figures > 2
            assert page.locator(".figure .main-svg").count() >= n_figures
            assert (asked, wrong) == ([path.as_uri()], [])
            assert page.evaluate("document.documentElement.scrollWidth") == width
            assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        browser.close()
