"""Votes of panels on cases that the study has: joined, checked against what their source counted, all or nothing."""

import re

import pytest

from evalcore.errors import ImportFailed
from evalcore.importing.formats.acuity_panels import Votes
from tests.acuity_files import case, cases, table, votes
from tests.invented import bring, dump, study, write

BARE = {"original_label": "", "normalized_label": "", "mapping_method": ""}


def panel(source_id: object, *given: str, **other: object) -> dict[str, str]:
    """A row of votes."""
    named = {f"anon_label_{place}": vote for place, vote in enumerate(given, start=1)}
    return (
        {"source_dataset": "clinic", "source_id": str(source_id)}
        | named
        | {name: str(value) for name, value in other.items()}
    )


@pytest.fixture
def engine(sqlite_database_url, tmp_path):
    with study(sqlite_database_url) as engine:
        bring(engine, write(tmp_path / "first.csv", table(case(1), case(2) | BARE, case(3, "A", "B"), case(4) | BARE)))
        yield engine


def test_votes_join_their_case_and_give_it_the_method_it_came_without(tmp_path, database_url):
    with study(database_url) as engine:
        bring(engine, write(tmp_path / "cases.csv", table(case(1), case(2) | BARE, case(3) | BARE, case(4) | BARE)))
        came = [
            panel(2, "C", "C|D", "D", anon_label_2_rater="Dr. B", normalized_label="C|D", mapping_method="median"),
            panel(3, "A", "D", "Remove"),
            panel(4, "Remove", "remove"),
        ]
        report = bring(engine, write(tmp_path / "votes.csv", table(*came)))
        assert (report.format, report.votes_new, report.without_partner, report.different) == ("acuity-votes", 8, 0, 0)
        assert votes(engine)[:3] == [
            ("clinic_2", 1, None, "C"),
            ("clinic_2", 2, "Dr. B", "C/D"),
            ("clinic_2", 3, None, "D"),
        ]
        assert [row[2:] for row in cases(engine)] == [
            ("A", "direct"), ("C/D", "median"), (None, "excluded_disagreement"), (None, "excluded_removed"),
        ]  # fmt: skip
        before = dump(engine)
        assert bring(engine, write(tmp_path / "again.csv", table(*reversed(came)))).adds_nothing
        assert dump(engine) == before


def test_rows_without_their_case_are_left_out_and_named(engine, tmp_path):
    report = bring(engine, write(tmp_path / "votes.csv", table(panel(2, "A", "B"), panel(77, "A", "B"))))
    assert (report.votes_new, report.without_partner) == (2, 1)
    assert report.without_partner_named == ["line 3: case 'clinic_77' is not in the study"]


def test_what_the_file_says_against_its_votes_is_counted_and_the_votes_count(engine, tmp_path):
    report = bring(engine, write(tmp_path / "votes.csv", table(panel(2, "A", "A", "B", normalized_label="B"))))
    assert report.different_named == [
        "line 2: clinic_2: the file says B; its votes A, A, B say A by the rule, and count"
    ]


@pytest.mark.parametrize(
    "counted",
    [
        {"n_raters": 4, "remove_votes": 1, "avg_sd": 0.666667},
        {"n_raters": 3.0, "remove_votes": "1.0", "avg_sd": 0.67},
        {"n_raters": "", "remove_votes": "", "avg_sd": "nan"},
    ],
)
def test_counts_that_fit_the_votes_pass(engine, tmp_path, counted):
    # C, C|D, Remove, B: distances C to C|D 0, C to B 1, C|D to B 1 (its nearer letter is C), the mean of three pairs 2/3
    came = panel(2, "C", "C|D", "Remove", "B", **counted)
    assert bring(engine, write(tmp_path / "votes.csv", table(came))).votes_new == 4


FAULTS = {
    "no votes": (panel(2, ""), "anon_label_1: expected at least one vote, got nothing"),
    "an unknown vote": (panel(2, "A", "F"), "anon_label_2: expected A, B, .*, got 'F'"),
    "fewer raters": (panel(2, "A", "B", n_raters=3), "n_raters: expected 2 as in its votes, got 3$"),
    "other raters": (panel(2, "A", "B", "Remove", n_raters=4), "n_raters: expected 3 as in its votes, or 2 without those to remove, got 4$"),
    "other removals": (panel(2, "A", "B", remove_votes=1), "remove_votes: expected 0 as in its votes, got 1$"),
    "another spread": (panel(2, "A", "B", avg_sd=0.9), "avg_sd: expected 1 as in its votes, got 0.9$"),
    "a spread of one": (panel(2, "A", "Remove", avg_sd=0), "avg_sd: expected nothing, as fewer than two votes stand, got 0$"),
    "a spread above 9": (panel(2, "A", "B", avg_sd=9.5), "avg_sd: expected a number from 0 to 9, got '9.5'$"),
    "a negative number": (panel(2, "A", "B", n_raters=-1), "n_raters: expected a whole number from 0 to .*, got '-1'"),
    "other votes than before": (panel(3, "A", "C"), "anon_label_2: expected 'B' for the case 'clinic_3' as imported before, got 'C'$"),
    "another level than the case": (panel(1, "A", "A", normalized_label="B"), "normalized_label: expected A for the case 'clinic_1' as imported before, got B"),
    "other votes than on line 2": (panel(4, "A", "B"), "anon_label_2: expected 'C' for the case 'clinic_4' as on line 2, got 'B'$"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_is_named_with_its_line_and_nothing_is_imported(engine, tmp_path, name):
    wrong, expected = FAULTS[name]
    before = dump(engine)
    with pytest.raises(ImportFailed) as failed:
        bring(engine, write(tmp_path / "votes.csv", table(panel(4, "A", "C"), wrong)))
    assert len(failed.value.faults) == 1, failed.value.faults
    assert re.search("^votes.csv line 3: " + expected, failed.value.faults[0]), failed.value.faults
    assert dump(engine) == before


@pytest.mark.parametrize("batch", [1, 500])
def test_two_rows_on_one_case_state_one_level(engine, tmp_path, monkeypatch, batch):
    monkeypatch.setattr(Votes, "batch", batch)
    came = [panel(2, "A", normalized_label="A"), panel(2, "A", normalized_label="B")]
    before = dump(engine)
    expected = r"votes\.csv line 3: normalized_label: expected A for the case 'clinic_2' as imported before, got B"
    with pytest.raises(ImportFailed, match=expected):
        bring(engine, write(tmp_path / "votes.csv", table(*came)))
    assert dump(engine) == before
