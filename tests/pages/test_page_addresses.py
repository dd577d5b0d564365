"""What an address opens: filters that are on, filters that do not exist, searches, numbers that are none."""

import re

import pytest
from sqlalchemy import text

from evalcore.study.db import open_study
from tests.page_steps import LEAD, PHYSICIAN, TITLES, Open, check, few


def n_fitting(shown: str) -> int:
    found = re.search(r"([\d,]+) fit", shown)
    assert found, shown[:400]
    return int(found[1])


@pytest.mark.parametrize(
    ("query", "condition"),
    [
        ({"theme": "hedging"}, "theme = 'hedging'"),
        ({"language": "Arabic"}, "language = 'ar'"),
        ({"theme": "emergency referrals"}, "theme = 'emergency_referrals'"),
        ({"theme": "hedging", "language": "English"}, "theme = 'hedging' AND language = 'en'"),
        ({"sign": "undesirable (negative)"}, "id IN (SELECT example_id FROM criterion WHERE points < 0)"),
        ({"points": ["8", "10"]}, "id IN (SELECT example_id FROM criterion WHERE points >= 8)"),
    ],
)
def test_a_filter_in_the_address_is_on(query: dict[str, str], condition: str, demo_study: str, open_page: Open):
    shown = check(open_page(demo_study, "browse", LEAD, **query))  # who reads nothing blind sees everything
    with open_study(demo_study).connect() as connection:
        wanted = connection.execute(text(f"SELECT count(*) FROM example WHERE {condition}")).scalar_one()
    assert n_fitting(shown) == wanted
    assert wanted > 0


@pytest.mark.parametrize(
    "query",
    [{"theme": "no such theme"}, {"points": "x"}, {"points": ["3", "-3"]}, {"differ": "maybe"}, {"language": "xx"}],
)
def test_a_filter_that_does_not_exist_is_left_out(query: dict[str, str], demo_study: str, open_page: Open):
    check(open_page(demo_study, "browse", PHYSICIAN, **query))


@pytest.mark.parametrize(
    "search",
    few(['"', "(((", "'; DROP TABLE verdict; --", "a" * 3_000, "AND OR NOT", "*", "col:x", "٣", "\u202e", "%_\\"], 4),
)
def test_any_search_finds_something_or_says_that_nothing_fits(search: str, demo_study: str, open_page: Open):
    shown = check(open_page(demo_study, "browse", PHYSICIAN, q=search))
    assert n_fitting(shown) >= 0
    check(open_page(demo_study, "audit", LEAD, audit_search=search))


def test_an_example_that_is_not_there_is_named(demo_study: str, open_page: Open):
    shown = check(open_page(demo_study, "browse", PHYSICIAN, example="99999"))
    assert "This study has no conversation 99999" in shown


@pytest.mark.parametrize("example", ["x", "-1", "1.5", "", "²", "9" * 40])
def test_an_address_that_is_no_number_shows_the_list(example: str, demo_study: str, open_page: Open):
    assert TITLES["browse"] in check(open_page(demo_study, "browse", PHYSICIAN, example=example))


def test_three_responses_stand_side_by_side_and_a_wrong_name_among_them_is_left_out(demo_study: str, open_page: Open):
    three = check(open_page(demo_study, "browse", PHYSICIAN, example="1", shown=["Alder-2", "Briar-1", "Clover-mini"]))
    assert three.count("score by Magpie") == 3
    one = check(open_page(demo_study, "browse", PHYSICIAN, example="1", shown=["Briar-1", "Nobody-9"]))
    assert one.count("score by Magpie") == 1
