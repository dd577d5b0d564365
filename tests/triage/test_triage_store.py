"""What a study chooses about triage, stored on both databases, each change with its event."""

import json
import math

import numpy as np
import pandas as pd
import pytest

from evalcore.errors import NotFound, OverreadError
from evalcore.study import store
from evalcore.study.audit import chain
from evalcore.study.audit.chain import verify
from evalcore.study.db import open_study, reading, writing
from evalcore.study.schema import Administrator, ConfidenceMeaning, Format, RaterKind
from evalcore.triage import label_maps, queries as triage_queries, setting_queries, settings, store as triage_store
from evalcore.triage.data import AmbiguityRule, Kind, described
from evalcore.triage.settings import TriageSettings
from tests import triage_cases
from tests.triage_cases import settings_with

LEAD = "Dr. Noor"


@pytest.fixture
def engine(database_url):
    made = open_study(database_url)
    yield made
    made.dispose()


def did(engine, act, *arguments):
    with writing(engine) as session:
        return act(session, *arguments, actor=LEAD)


def trail(engine):
    with reading(engine) as session:
        assert verify(session).broken_event is None
    found = chain.events(engine, Administrator(), is_blind=False)[0]
    rows = found.loc[found["actor"].eq(LEAD)].iloc[::-1]
    return [(row.action, row.subject, json.loads(row.detail)) for row in rows.itertuples()]


def test_a_study_s_own_map_replaces_the_shipped_one_of_that_source_alone(engine):
    assert did(engine, triage_store.set_label_map, "Semigran", [("sc", "A"), ("em", "C/D"), ("watch", "panel")])
    with reading(engine) as session:
        found = label_maps.maps(setting_queries.tables_of(session))
    assert found["semigran"] == {"em": "C/D", "sc": "A", "watch": "panel"}
    assert {source: known for source, known in found.items() if source != "semigran"} == {
        source: known for source, known in label_maps.maps(label_maps.default_tables()).items() if source != "semigran"
    }
    with pytest.raises(OverreadError, match=r"'ne' of the source 'semigran'"):
        label_maps.meaning_of(found, "semigran", "ne")
    assert trail(engine) == [("label map set", "source semigran", {"labels": ["em = C/D", "sc = A", "watch = panel"]})]


def test_a_source_of_the_study_s_own_gets_a_map_and_loses_it_again(engine):
    did(engine, triage_store.set_label_map, "our hotline", [("red", "D")])
    with reading(engine) as session:
        assert label_maps.meaning_of(label_maps.maps(setting_queries.tables_of(session)), "Our_Hotline", "RED") == "D"
    assert did(engine, triage_store.set_label_map, "our hotline", [])
    with reading(engine) as session:
        assert setting_queries.own_tables(session) == {}
        assert (
            label_maps.meaning_of(label_maps.maps(setting_queries.tables_of(session)), "our hotline", "SELF_CARE")
            == "A"
        )
    assert [row[:2] for row in trail(engine)] == [
        ("label map set", "source our hotline"), ("label map reset", "source our hotline"),
    ]  # fmt: skip


def test_the_same_map_again_in_another_order_writes_nothing(engine):
    rows = [("2", "B"), ("10", "A")]
    assert did(engine, triage_store.set_label_map, "clinic", rows)
    assert not did(engine, triage_store.set_label_map, "clinic", rows[::-1])
    assert not did(engine, triage_store.set_label_map, "hotline", [])
    assert len(trail(engine)) == 1


def test_the_shipped_map_is_no_map_of_the_study_s_own(engine):
    shipped = label_maps.default_tables()["semigran"]
    assert not did(engine, triage_store.set_label_map, "semigran", shipped)
    assert did(engine, triage_store.set_label_map, "semigran", [("em", "C")])
    assert did(engine, triage_store.set_label_map, "semigran", shipped[::-1])
    with reading(engine) as session:
        assert setting_queries.own_tables(session) == {}
    assert [row[0] for row in trail(engine)] == ["label map set", "label map reset"]


def test_labels_of_cases_that_may_not_be_seen_are_left_out(engine):
    drawn = triage_cases.drawn(np.random.default_rng(3), n_cases=3, models=("Alder-2",), n_samples=1)[0]
    drawn.cases["source"], drawn.cases["original_label"] = "semigran", pd.Series(["em", "ne", "em"], dtype=object)
    with writing(engine) as session:
        triage_cases.stored(session, drawn)
    hidden = frozenset(int(number) for number in drawn.cases["example_id"][1:])
    with reading(engine) as session:
        found = setting_queries.labels_of_cases(session, hidden)
    assert found[["original_label", "n"]].to_numpy().tolist() == [["em", 1]]


def test_a_map_with_a_fault_changes_nothing(engine):
    did(engine, triage_store.set_label_map, "clinic", [("red", "D")])
    for source, rows, said in [
        (
            "clinic",
            [("red", "D"), ("Red", "C")],
            r"^row 2: label: expected each label once, got 'Red', which row 1 has already$",
        ),
        ("clinic", [("red", "E")], r"^row 1: meaning: expected one of A, A/B, .*, got 'E'$"),
        (" ", [("red", "D")], r"^source: expected 1 to 200 printable characters, got ' '"),
        ("a\x00b", [("red", "D")], r"^source"),
        ("clinic", [("r\ud83d", "D")], r"^row 1: label"),
    ]:
        with pytest.raises(OverreadError, match=said):
            did(engine, triage_store.set_label_map, source, rows)
    with reading(engine) as session:
        assert setting_queries.own_tables(session) == {"clinic": [("red", "D")]}
    assert len(trail(engine)) == 1


def test_settings_are_stored_and_the_trail_says_what_changed(engine):
    wanted = settings_with(under=10, formats=(Format.QA,), rule=AmbiguityRule(uncertainty=math.inf))
    with reading(engine) as session:
        assert setting_queries.own(session) is None
        assert setting_queries.load(session) == TriageSettings()
    assert did(engine, triage_store.set_triage_settings, wanted)
    assert not did(engine, triage_store.set_triage_settings, wanted)
    with reading(engine) as session:
        assert setting_queries.load(session) == setting_queries.own(session) == wanted
    assert did(engine, triage_store.set_triage_settings, None)
    with reading(engine) as session:
        assert setting_queries.own(session) is None
    assert trail(engine) == [
        ("triage settings changed", "study", {
            "formats": ["qa"],
            "weights": {"under": 10.0, "over": 1.0},
            "ambiguous": {"spread_above": 0.75, "uncertainty_above": None},
        }),
        ("triage settings changed", "study", {
            "formats": ["qa", "conversation"],
            "weights": {"under": 5.0, "over": 1.0},
            "ambiguous": {"spread_above": 0.75, "uncertainty_above": 0.7},
        }),
    ]  # fmt: skip


def test_settings_that_cannot_be_are_not_stored(engine):
    with pytest.raises(OverreadError, match=r"the settings of triage: weights\.over: expected a number >= 0\.0"):
        did(engine, triage_store.set_triage_settings, settings_with(over=-1))
    assert trail(engine) == []


def test_what_a_judge_s_confidence_means_is_said_changed_and_taken_back(engine):
    with writing(engine) as session:
        store.ensure_rater(session, RaterKind.JUDGE, "Magpie")
        store.ensure_rater(session, RaterKind.REVIEWER, "Dr. Brandt")
    for meaning in (ConfidenceMeaning.MET, ConfidenceMeaning.RIGHT):
        assert did(engine, triage_store.set_confidence_meaning, "Magpie", meaning)
        assert not did(engine, triage_store.set_confidence_meaning, "Magpie", meaning)
        with reading(engine) as session:
            assert setting_queries.confidence_meanings(session) == {"Magpie": meaning}
    assert did(engine, triage_store.set_confidence_meaning, "Magpie", None)
    with reading(engine) as session:
        assert setting_queries.confidence_meanings(session) == {}
    for name in ("Wren", "Dr. Brandt"):
        with pytest.raises(NotFound, match=rf"judge: expected one with a verdict in this study, got '{name}'"):
            did(engine, triage_store.set_confidence_meaning, name, ConfidenceMeaning.MET)
    assert trail(engine) == [
        ("confidence meaning set", "judge Magpie", {"meaning": "met"}),
        ("confidence meaning set", "judge Magpie", {"meaning": "right"}),
        ("confidence meaning set", "judge Magpie", {"meaning": None}),
    ]


def test_labels_of_the_cases_are_counted_by_source_and_by_what_was_made_of_them(engine):
    drawn = triage_cases.drawn(np.random.default_rng(3), n_cases=12, models=("Alder-2",), n_samples=1)[0]
    label = pd.Series(["em", "em", "ne", None] * 3, dtype=object)
    mapped = pd.Series(["D", "C/D", "panel", None] * 3, dtype=object)
    drawn.cases["source"] = "semigran"
    drawn.cases["original_label"], drawn.cases["mapped_label"] = label, mapped
    with writing(engine) as session:
        triage_cases.stored(session, drawn)
    with reading(engine) as session:
        found = setting_queries.labels_of_cases(session)
    assert found.to_dict(orient="split", index=False)["data"] == [
        ["semigran", "em", "C/D", 3], ["semigran", "em", "D", 3], ["semigran", "ne", "panel", 3],
    ]  # fmt: skip


def test_the_study_s_rule_decides_which_cases_are_ambiguous(engine):
    drawn = triage_cases.drawn(np.random.default_rng(4), n_cases=40, models=("Alder-2",), n_samples=1, share_panel=1.0)[
        0
    ]
    with writing(engine) as session:
        triage_cases.stored(session, drawn)
    n_ambiguous = []
    for rule in (AmbiguityRule(spread=0), AmbiguityRule(), AmbiguityRule(spread=math.inf, uncertainty=math.inf)):
        did(engine, triage_store.set_triage_settings, settings_with(rule=rule))
        with reading(engine) as session:
            cases = described(triage_queries.load(session), setting_queries.load(session).rule).cases
        n_ambiguous.append(int(cases["kind"].eq(Kind.AMBIGUOUS).sum()))
    assert n_ambiguous[0] > n_ambiguous[1] > n_ambiguous[2] == 0
    assert settings.rule_words(rule) == "where its file says that the panel did not agree"
