"""Opens a page as somebody, without a browser, and says what stands on it."""

import re
from collections.abc import Callable, Iterable
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from evalcore.serving import cookie_name
from evalcore.study import contents
from evalcore.study.db import connect, reading

ROOT = Path(__file__).parents[1]
PEOPLE = (
    "Dr. Amara Okafor", "Dr. Nils Lindqvist", "Dr. Leila Haddad", "Dr. Priya Nair", "Dr. Jonas Weber", "Dr. Mei Zhou", "Dr. Tomas Vega", "Mina Castell",
)  # fmt: skip
LEAD, PHYSICIAN, BOTH_READER = "Mina Castell", "Dr. Amara Okafor", "Dr. Tomas Vega"
NOT_FOR_YOU = "This page is not for your role"
TITLES = {
    "overview": "Overview",
    "browse": "Conversations and verdicts",
    "models": "Model scores",
    "judges": "Record of the judge",
    "triage": "Levels of care",
    "calibration": "Confidence of judges against physicians",
    "study": "Study set-up",
    "export": "Export",
    "audit": "Audit trail",
}
PAGES = tuple(TITLES)
HOLES = re.compile(r"\b(nan|NaN|None|NaT|<NA>|null|undefined)\b")
Open = Callable[..., AppTest]


def few(values: Iterable[Any], n: int) -> list[Any]:
    """Parameters of a test of which the everyday run tries the first n, and `make test-slow` the others."""
    given = [value if isinstance(value, tuple) else (value,) for value in values]
    return [pytest.param(*value, marks=pytest.mark.slow if place >= n else ()) for place, value in enumerate(given)]


def at_address(page: str) -> AppTest:
    """The dashboard at a page's address, not run yet. (`AppTest.switch_page` would have the start page run first.)"""
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=30)
    if page != "overview":  # the start page, whose address is empty
        app._page_hash = calc_hash(page)
    return app


def cookie_of(location: str, name: str) -> dict[str, str]:
    engine = connect(location)
    with reading(engine) as session:
        key = contents.study_key(session)
        number = next(person.person_id for person in contents.people(session) if person.name == name)
    engine.dispose()
    return {cookie_name(key or ""): str(number)}


def words(app: AppTest) -> str:
    """Everything that stands on the screen, tags taken off; tables as their cells."""
    html = [element.proto.body for element in app.get("html") if not element.proto.body.startswith("<style>")]
    labels = [
        getattr(widget, "label", "") or "" for widget in (*app.button, *app.text_input, *app.selectbox, *app.toggle)
    ]
    cells = [
        str(cell)
        for table in app.dataframe
        for column in table.value
        for cell in [column, *table.value[column].dropna()]
    ]
    shown = [
        element.value
        for kind in (app.markdown, app.subheader, app.caption, app.info, app.warning, app.error)
        for element in kind
    ]
    return "\n".join(
        [re.sub(r"<[^>]*>", " ", part).replace("\xa0%", " %") for part in html]
        + labels
        + cells
        + [str(part) for part in shown]
    )


def check(app: AppTest) -> str:
    """Nothing went wrong, and no sentence has a hole; gives what stands on the screen."""
    assert not app.exception, [error.value for error in app.exception]
    found = words(app)
    holes = [found[max(hole.start() - 40, 0) : hole.end() + 40] for hole in HOLES.finditer(found)]
    assert holes == []
    return found


def said(app: AppTest) -> str:
    """What stands on the page and in its tables, as it reads; nothing went wrong, and neither a sentence nor a cell has a hole."""
    assert not app.exception, [error.value for error in app.exception]
    html = [element.proto.body for element in app.get("html") if not element.proto.body.startswith("<style>")]
    cells = [str(cell) for table in app.dataframe for column in table.value for cell in (column, *table.value[column])]
    headings = [element.value for element in (*app.subheader, *app.info)]
    found = "\n".join(
        [unescape(re.sub(r"<[^>]*>", " ", part).replace("\xa0%", " %")) for part in html] + headings + cells
    )
    holes = re.findall(r".{0,40}\b(?:nan|NaN|None|NaT|<NA>|inf)\b.{0,20}", found)
    assert holes == []
    return found


def own_verdicts(app: AppTest) -> list[Any]:
    return [group for group in app.get("button_group") if str(group.key).startswith("label_")]


def drawn(app, start):
    """The buttons of a panel whose key begins so: it ends with the number of the read."""
    return [button for button in app.button if str(button.key).startswith(f"{start}_")]


def press(app, start):
    """Press the one button whose key begins so."""
    (button,) = drawn(app, start)
    assert not button.disabled
    button.click()
    assert not app.run().exception
