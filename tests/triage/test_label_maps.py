"""Label maps: what each source's labels stand for, how they are spelt, what is no map."""

import string

import pytest
from hypothesis import given, strategies as st

from evalcore.errors import OverreadError
from evalcore.study.csv_cells import text_of
from evalcore.study.schema import Acuity
from evalcore.triage import label_maps
from evalcore.triage.label_maps import PANEL, fold, level_of, meaning_of

SHIPPED = {
    # as acuity.md has them
    "healthbench": {"emergent": "D", "conditionally-emergent": PANEL, "non-emergent": PANEL},
    "semigran": {"em": "D", "sc": "A", "ne": PANEL},
    "pmr": {"1": "information D", "2": "information C", "3": "information C", "4": "information B", "5": "information A", "6": "information A"},
    "structured": {word: word for word in ("A", "B", "C", "D", "A/B", "B/C", "C/D")},
    "any other source": {"SELF_CARE": "A", "PRIMARY_CARE": "B", "URGENT_CARE": "C", "EMERGENCY": "D", "A/B": "A/B", "D": "D"},
}  # fmt: skip


@pytest.mark.parametrize("source", SHIPPED)
def test_the_shipped_maps_say_what_each_label_of_their_source_stands_for(source):
    maps = label_maps.maps(label_maps.default_tables())
    assert {label: meaning_of(maps, source, label) for label in SHIPPED[source]} == SHIPPED[source]


def test_the_shipped_maps_know_no_other_labels():
    found = {source: set(labels) for source, labels in label_maps.maps(label_maps.default_tables()).items()}
    assert found["levels"] == {fold(word) for word in [*SHIPPED["structured"], *SHIPPED["any other source"]]}
    for source in SHIPPED.keys() - {"any other source"}:
        assert found[source] == {fold(label) for label in SHIPPED[source]}


@pytest.mark.parametrize(
    ("source", "label", "meaning"),
    [
        ("healthbench", "CONDITIONALLY_EMERGENT", PANEL),
        ("HealthBench", "non emergent", PANEL),
        ("healthbench", " Emergent ", "D"),
        ("clinic", "self care", "A"),
        ("clinic", "Urgent-Care", "C"),
        ("clinic", "b | c", "B/C"),
        ("pmr", "4.0", "information B"),  # a column of numbers with a gap in it
        ("structured", "c|d", "C/D"),
    ],
)
def test_case_and_the_sign_between_words_make_no_other_label(source, label, meaning):
    assert meaning_of(label_maps.maps(label_maps.default_tables()), source, label) == meaning


@pytest.mark.parametrize(
    ("source", "label"),
    [("semigran", "D"), ("semigran", "EMERGENCY"), ("pmr", "-1"), ("pmr", "7"), ("clinic", "emergent"), ("clinic", "A-B"), ("clinic", ""), ("pmr", "1.5")],
)  # fmt: skip
def test_an_unknown_label_is_an_error_that_names_source_and_label(source, label):
    with pytest.raises(OverreadError) as refused:
        meaning_of(label_maps.maps(label_maps.default_tables()), source, label)
    assert repr(source) in str(refused.value)
    assert repr(label) in str(refused.value)


def test_the_error_says_what_was_expected_and_by_which_map():
    maps = label_maps.maps(label_maps.default_tables())
    with pytest.raises(
        OverreadError,
        match=r"expected one of em, ne, sc, got the label 'urgent' of the source 'semigran' \(the label map of 'semigran'\)$",
    ):
        meaning_of(maps, "semigran", "urgent")
    with pytest.raises(OverreadError, match=r"expected one of a, .*, emergency.*'clinic' has no map of its own\)$"):
        meaning_of(maps, "clinic", "urgent")


def test_only_a_level_or_boundary_is_a_gold():
    golds = {meaning: level_of(meaning) for meaning in label_maps.MEANINGS}
    assert {meaning for meaning, gold in golds.items() if gold is not None} == {"A", "A/B", "B", "B/C", "C", "C/D", "D"}
    assert all(gold == meaning for meaning, gold in golds.items() if gold is not None)
    assert len(label_maps.MEANINGS) == 7 + 1 + 7


def test_a_level_is_known_by_letter_boundary_and_name():
    named = {
        word: label_maps.level_named(word) for word in ("d", "A|B", "primary_care", "EMERGENCY", "emergent", "E", "")
    }
    assert named == {
        "d": Acuity.D, "A|B": Acuity.A_B, "primary_care": Acuity.B, "EMERGENCY": Acuity.D, "emergent": None, "E": None, "": None,
    }  # fmt: skip


words = st.text(string.ascii_letters, min_size=1, max_size=8)


@given(st.lists(words, min_size=1, max_size=4), st.sampled_from([" ", "-", "_", "  ", "\u2013"]))
def test_folding_knows_no_sign_between_words_and_folds_once(parts, sign):
    folded = fold(sign.join(parts).upper())
    assert folded == fold(" ".join(parts))
    assert fold(folded) == folded


@given(st.dictionaries(words, st.sampled_from(label_maps.MEANINGS), min_size=1, max_size=8))
def test_a_map_is_the_same_after_writing_and_reading_and_in_any_order_of_rows(drawn):
    unique = {fold(label): (label, meaning) for label, meaning in drawn.items()}
    rows = list(unique.values())
    text = label_maps.to_csv(rows)
    table = label_maps.parse(text, "map.csv")
    assert sorted(table) == sorted(rows)
    assert label_maps.parse(label_maps.to_csv(rows[::-1]), "map.csv") == table
    assert label_maps.parse("\ufeff" + text.replace("\n", "\r\n"), "map.csv") == table


def test_numbers_come_by_their_value():
    table = label_maps.parse("label,meaning\n10,A\n2,B\nesi 3,C\nESI 20,D\n1,A\n", "map.csv")
    assert [label for label, _ in table] == ["1", "2", "10", "esi 3", "ESI 20"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", r"^m.csv line 1: expected the columns label, meaning, got nothing$"),
        ("label,level\nx,A\n", r"^m\.csv line 1: expected the columns label, meaning, got label, level"),
        ("label,meaning\n", r"^m\.csv: expected 1 to 500 rows, got 0$"),
        ("label,meaning\nx,A\ny,E\n", r"^m\.csv line 3: meaning: expected one of A, A/B, B, B/C, C, C/D, D, panel, information A, information A/B, information B, information B/C, information C"),
        ("label,meaning\nx,remove\n", r"^m\.csv line 2: meaning: expected one of A, A/B, B, B/C, C, C/D, D, panel, information A, information A/B, information B, information B/C, information C"),
        ("label,meaning\nx\n", r"^m\.csv line 2: meaning: expected one of A, A/B, B, B/C, C, C/D, D, panel, information A, information A/B, information B, information B/C, information C"),
        ("label,meaning\n ,A\n", r"^m\.csv line 2: label: expected 1 to 200 printable characters, got ''"),
        ("label,meaning\na\x00b,A\n", r"^m.csv line 2"),
        ("label,meaning\nSelf care,A\nb,B\nself_care,B\n", r"^m\.csv line 4: label: expected each label once, got 'self_care', which m\.csv line 2 has already$"),
        ('label,meaning\n"x,A\n', r"^m.csv line \d: not CSV"),
        ("label,meaning\n" + "".join(f"{n},A\n" for n in range(501)), r"m\.csv: expected 1 to 500 rows, got 501"),
        (f"label,meaning\n{'x' * 201},A\n", r"^m\.csv line 2: label: expected 1 to 200 printable characters, got 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'"),
    ],
)  # fmt: skip
def test_a_fault_in_a_map_names_file_and_line(content, said):
    with pytest.raises(OverreadError, match=said):
        label_maps.parse(content, "m.csv")


@pytest.mark.parametrize(
    ("written", "meaning"),
    [("d", "D"), ("A|B", "A/B"), ("Panel", PANEL), ("INFORMATION_c", "information C"), ("information a|b", "information A/B")],
)  # fmt: skip
def test_a_meaning_may_be_spelt_otherwise(written, meaning):
    assert label_maps.parse(f"label,meaning\nx,{written}\n", "m.csv") == [("x", meaning)]


@pytest.mark.parametrize("sign", ["=", "+", "-", "@", "'="])
def test_a_label_that_a_spreadsheet_would_run_is_written_as_text_and_read_as_it_was(sign):
    rows = [(f"{sign}1+1", "A")]
    text = label_maps.to_csv(rows)
    assert text.splitlines()[1] == f"'{sign}1+1,A"
    assert label_maps.parse(text, "map.csv") == rows


def test_a_file_that_is_no_utf_8_is_refused_with_its_place_and_never_read_with_holes():
    assert text_of("\ufefflabel\n".encode(), "map.csv") == "label\n"
    with pytest.raises(OverreadError, match=r"^map.csv line 2: byte 15: expected UTF-8, got fc$"):
        text_of("label,meaning\nübel,A\n".encode("latin-1"), "map.csv")
