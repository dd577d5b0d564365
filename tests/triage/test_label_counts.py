"""How many cases have each label, and for how many it stood for something else when they came."""

import pandas as pd
from hypothesis import given, strategies as st

from evalcore.triage import label_maps
from evalcore.triage.label_maps import beside, count_sentences, label_counts, unknown

MAPS = label_maps.maps(label_maps.default_tables())
LABELS = ["source", "original_label", "mapped_label", "n"]


def drawn(*rows):
    return pd.DataFrame(list(rows), columns=LABELS)


CASES = drawn(
    ("semigran", "em", "D", 4),
    ("semigran", "EM", "C", 3),
    ("semigran", "ne", "panel", 2),
    ("semigran", "odd", "A", 1),
    ("hotline", "Self_Care", "A", 5),
    ("clinic", "b|c", "B|C", 6),
    ("clinic", "d", None, 7),
    ("structured", "D", "the file's own words", 8),
)


def test_spellings_of_a_label_are_counted_together_and_what_it_stood_for_then_is_held_against_now():
    found = label_counts(CASES, MAPS).set_index(["source", "label"])
    assert found.loc[("semigran", "em"), ["written", "meaning", "n_cases", "n_otherwise"]].tolist() == ["em", "D", 7, 3]
    assert found.loc[("semigran", "ne"), ["meaning", "n_cases", "n_otherwise"]].tolist() == ["panel", 2, 0]
    assert found.loc[("semigran", "odd"), ["meaning", "n_cases", "n_otherwise"]].tolist() == [None, 1, 1]
    assert found.loc[("clinic", "b/c"), ["meaning", "n_cases", "n_otherwise"]].tolist() == ["B/C", 6, 0]
    # nothing was made of it then, or in words that are no meaning: there is nothing to hold against now
    assert found.loc[[("clinic", "d"), ("structured", "d")], "n_otherwise"].tolist() == [0, 0]
    assert len(found) == 7


@given(st.permutations(range(len(CASES))))
def test_the_order_of_the_rows_does_not_matter(order):
    columns = ["source", "label", "n_cases", "n_otherwise"]
    shuffled = label_counts(CASES.iloc[order].reset_index(drop=True), MAPS)
    pd.testing.assert_frame_equal(shuffled[columns], label_counts(CASES, MAPS)[columns])
    assert shuffled["n_cases"].sum() == CASES["n"].sum()


def test_a_study_without_labels_has_no_rows():
    found = label_counts(drawn(), MAPS)
    assert found.empty
    table = label_maps.default_tables()["semigran"]
    assert beside(found, "semigran", table, MAPS).to_numpy().tolist() == [[0, 0]] * 3
    assert count_sentences(found, "semigran", MAPS) == ["No case of this study has a label of it."]


def test_the_counts_stand_beside_the_rows_of_the_map():
    counts = label_counts(CASES, MAPS)
    assert beside(counts, "Semigran", [("ne", "panel"), ("Em", "D"), ("sc", "A")], MAPS).to_numpy().tolist() == [
        [2, 0], [7, 3], [0, 0],
    ]  # fmt: skip
    of_levels = beside(counts, "levels", label_maps.default_tables()["levels"], MAPS)
    assert of_levels["n_cases"].sum() == 5 + 6 + 7  # of hotline and clinic, which have no map of their own


def test_labels_that_the_map_does_not_know_are_named_as_they_are_written():
    counts = label_counts(drawn(("clinic", "Red", None, 2), ("clinic", "red", None, 1), ("clinic", "D", "D", 1)), MAPS)
    assert (unknown(counts, "Clinic"), unknown(counts, "semigran")) == (["Red"], [])


def test_what_there_is_to_say_of_a_source():
    counts = label_counts(CASES, MAPS)
    assert count_sentences(counts, "semigran", MAPS) == [
        "10 cases of this study, with 3 labels.",
        "The map does not know 'odd', on 1 case: a further import with such a label would stop.",
        "4 cases were imported when the label stood for something else, and keep that.",
    ]
    assert count_sentences(counts, "hotline", MAPS) == [
        "hotline has no map of its own yet: the names of the levels count for it.",
        "5 cases of this study, with 1 label.",
    ]
    assert count_sentences(counts, "levels", MAPS)[0] == "This map counts for every source that has none of its own."
