"""The shipped judges read the responses to cases: whole or not at all, each once by each version, with one event for it."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from sqlalchemy import insert, text

from evalcore.study import store
from evalcore.study.audit.chain import verify
from evalcore.study.db import open_study, reading, writing
from evalcore.study.schema import CASES, LEVELS_READ, PARSER, RULES, Administrator, Format, Label, RaterKind, Stage
from evalcore.study.tables import TABLES, AcuityCase, Model, now
from evalcore.triage import acts, queries as triage_queries
from evalcore.triage.acts import LevelsRead, read_levels, recommended, stated
from evalcore.triage.data import NO_LEVEL

QA, CONVERSATION = Format.QA, Format.CONVERSATION
ANSWERS = ["Reasoning.\nACUITY: D", "ACUITY: C or D", "I cannot say."]
TALK = [
    "Go to the emergency room now.",
    "Rest and drink plenty of fluids.",
    "Vaya a urgencias ahora mismo porque su dolor puede ser grave.",
    "If it bleeds, call 911.",
    "",
]


@pytest.fixture
def engine(database_url):
    """One case, three qa answers, five responses to the conversation (one without text), and a response to another evaluation."""
    made = open_study(database_url)
    tables = TABLES
    with writing(made) as session:
        store.ensure_study(session)
        example = {
            "dataset": CASES,
            "prompt_id": "clinic_1",
            "messages": "[]",
            "n_turns": 1,
            "first_words": "x",
            "tags": "[]",
            "provisional": False,
        }
        session.connection().execute(insert(tables["example"]), [{"id": 1, **example}])
        session.add(AcuityCase(example_id=1, source="clinic", source_id="1", method="direct"))
        session.add(Model(id=1, name="Alder-2"))
        session.flush()
        places = [(QA.evaluation, number, words) for number, words in enumerate(ANSWERS)]
        places += [(CONVERSATION.evaluation, number, words) for number, words in enumerate(TALK)]
        places += [("healthbench", 0, "Go to the emergency room now.")]
        rows = [
            {"example_id": 1, "model_id": 1, "dataset": dataset, "sample_index": number, "text": words}
            for dataset, number, words in places
        ]
        session.connection().execute(insert(tables["response"]), rows)
    yield made
    made.dispose()


def verdicts(engine):
    statement = (
        "SELECT v.id, r.name, r.prompt_version, p.text, v.label, v.explanation, v.reason, v.supersedes, v.stage, v.criterion_id FROM verdict v "
        "JOIN rater r ON r.id = v.rater_id JOIN response p ON p.id = v.response_id ORDER BY v.id"
    )
    with engine.connect() as connection:
        return [row._asdict() for row in connection.execute(text(statement))]


def events(engine):
    with engine.connect() as connection:
        found = connection.execute(text("SELECT actor, action, subject, detail FROM audit_event ORDER BY id"))
        return [row._asdict() for row in found if row.action == LEVELS_READ]


def by_text(engine):
    return {row["text"]: row["label"] for row in verdicts(engine)}


def test_every_response_with_text_gets_the_level_of_its_text(engine):
    report = read_levels(engine, actor=Administrator(name="Dr. Noor"))
    assert by_text(engine) == {
        ANSWERS[0]: "D",
        ANSWERS[1]: "cannot_assess",
        ANSWERS[2]: "cannot_assess",
        TALK[0]: "D",
        TALK[1]: "A",
        TALK[2]: "cannot_assess",
        TALK[3]: "cannot_assess",
    }
    assert report.as_dict() == {
        "n_read": 7,
        "n_unchanged": 0,
        "labels": {PARSER: {"D": 1, "cannot_assess": 2}, RULES: {"A": 1, "D": 1, "cannot_assess": 2}},
        "other_language": {"es": 1},
    }
    for row in verdicts(engine):
        assert row["stage"] == Stage.JUDGE
        assert row["criterion_id"] is None
        assert (row["reason"] == "language") == (row["text"] == TALK[2])
        assert row["name"] == (PARSER if row["text"] in ANSWERS else RULES)
        assert row["prompt_version"] != ""


def test_what_is_invalid_is_counted_apart_and_never_a_level(engine):
    read_levels(engine, actor=Administrator(name="Dr. Noor"))
    with reading(engine) as session:
        triage_data = triage_queries.load(session)
    table = triage_data.samples.assign(**{name: triage_data.levels[name] for name in triage_data.levels})
    qa = table.loc[table["format"].eq(QA.value)].sort_values("sample_index")
    assert qa[PARSER].tolist() == [4.0, NO_LEVEL, NO_LEVEL]
    talk = table.loc[table["response_id"].between(4, 8)].sort_values("response_id")
    assert talk[RULES].fillna(-1).tolist() == [4.0, 1.0, NO_LEVEL, NO_LEVEL, -1]
    assert talk[PARSER].isna().all()


def test_the_explanation_quotes_the_deciding_words(engine):
    read_levels(engine, actor=Administrator(name="Dr. Noor"))
    said = {row["text"]: row["explanation"] for row in verdicts(engine)}
    assert said[ANSWERS[0]] == "“ACUITY: D”: the level that the answer states."
    assert said[ANSWERS[1]] == "Two different levels: “ACUITY: C or D”."
    assert said[TALK[0]] == "“Go to the emergency room now”: emergency care now is the main course."
    assert said[TALK[2]] == "The text is not in English."
    assert said[TALK[3]] == "Care is recommended only under a condition: “call 911”."


def test_a_run_leaves_one_event_and_one_that_finds_nothing_leaves_none(engine):
    read_levels(engine, actor=Administrator(name="Dr. Noor"))
    (event,) = events(engine)
    assert event["actor"] == "Dr. Noor"
    assert event["subject"] == "7 responses"
    assert json.loads(event["detail"])["labels"][RULES] == {"A": 1, "D": 1, "cannot_assess": 2}
    before = verdicts(engine)
    report = read_levels(engine, actor=Administrator(name="Dr. Noor"))
    assert report == LevelsRead()
    assert report.sentences() == ["No response waits to be read."]
    assert (len(events(engine)), verdicts(engine)) == (1, before)


def test_reading_again_writes_only_what_has_changed(engine, monkeypatch):
    read_levels(engine, actor=Administrator(name="Dr. Noor"))
    report = read_levels(engine, actor=Administrator(name="Dr. Noor"), again=True)
    assert (report.n_read, report.n_unchanged) == (0, 7)
    assert len(events(engine)) == 1
    changed = [acts.Judge(PARSER, "1", QA, lambda _: acts.Level(Label.CANNOT_ASSESS, "No."))]
    monkeypatch.setattr(acts, "judges", lambda: changed)
    report = read_levels(engine, actor=Administrator(name="Dr. Noor"), again=True)
    assert (report.n_read, report.n_unchanged) == (3, 0)
    new = [row for row in verdicts(engine) if row["explanation"] == "No."]
    assert sorted(row["supersedes"] for row in new) == [row["id"] for row in verdicts(engine)[:3]]


def test_a_new_version_reads_again_and_its_level_is_the_one_that_stands(engine, monkeypatch):
    read_levels(engine, actor=Administrator(name="Dr. Noor"))
    newer = [acts.Judge(PARSER, "2", QA, lambda _: acts.Level(Label.CANNOT_ASSESS, "No."))]
    monkeypatch.setattr(acts, "judges", lambda: newer)
    assert read_levels(engine, actor=Administrator(name="Dr. Noor")).n_read == 3
    assert read_levels(engine, actor=Administrator(name="Dr. Noor")).n_read == 0
    with reading(engine) as session:
        levels = triage_queries.load(session).levels[PARSER]
    assert levels.dropna().tolist() == [NO_LEVEL] * 3
    assert {row["prompt_version"] for row in verdicts(engine) if row["name"] == PARSER} == {"1", "2"}  # nothing is lost


def test_a_level_that_came_with_a_file_stands_until_it_is_read_again(engine):
    with writing(engine) as session:
        rater = store.ensure_rater(session, RaterKind.JUDGE, PARSER)
        row = {
            "example_id": 1,
            "response_id": 1,
            "rater_id": rater,
            "stage": "judge",
            "label": "B",
            "right_for_wrong_reason": False,
            "created_at": now(),
        }
        session.connection().execute(insert(TABLES["verdict"]), [row])
    assert read_levels(engine, actor=Administrator(name="Dr. Noor")).labels[PARSER].total() == 2
    with reading(engine) as session:
        assert triage_queries.load(session).levels[PARSER].max() == 2.0
    assert read_levels(engine, actor=Administrator(name="Dr. Noor"), again=True).labels[PARSER].total() == 1
    with reading(engine) as session:
        assert triage_queries.load(session).levels[PARSER].max() == 4.0


class Killed(BaseException):
    """Somebody pressed Ctrl-C."""


@pytest.mark.parametrize("at", ["reading", "writing", "event"])
def test_whoever_stops_it_midway_leaves_nothing_half(engine, monkeypatch, at):
    def stop(*_, **__):
        raise Killed

    monkeypatch.setattr(acts, "BATCH", 2)
    seen = []

    def progress(done, most):
        seen.append((done, most))
        if at == "reading" and done > 4:
            raise Killed

    if at == "writing":
        inserts = store.Bulk.verdicts
        monkeypatch.setattr(
            store.Bulk, "verdicts", lambda bulk, rows: stop() if rows[0].response_id > 3 else inserts(bulk, rows)
        )
    elif at == "event":
        monkeypatch.setattr(store, "append_event", stop)
    with pytest.raises(Killed):
        read_levels(engine, actor=Administrator(name="Dr. Noor"), progress=progress)
    assert seen[0] == (2, 7)
    assert verdicts(engine) == events(engine) == []
    monkeypatch.undo()
    assert read_levels(engine, actor=Administrator(name="Dr. Noor")).n_read == 7


def test_batches_read_every_response_once(engine, monkeypatch):
    monkeypatch.setattr(acts, "BATCH", 1)
    done = []
    read_levels(engine, actor=Administrator(name="Dr. Noor"), progress=lambda n, most: done.append((n, most)))
    assert done == [(n, 7) for n in range(1, 8)]
    assert len(by_text(engine)) == len(verdicts(engine)) == 7


def test_many_levels_are_written_in_parts_and_whoever_stops_between_two_loses_none(engine, monkeypatch):
    monkeypatch.setattr(acts, "PART", 2)
    pauses = []

    def pause(seconds):
        pauses.append(seconds)
        if len(pauses) == 2:
            raise Killed

    monkeypatch.setattr(acts, "sleep", pause)
    with pytest.raises(Killed):
        read_levels(engine, actor=Administrator(name="Dr. Noor"))
    assert [event["subject"] for event in events(engine)] == ["2 responses", "2 responses"]
    rest = read_levels(engine, actor=Administrator(name="Dr. Noor"))
    assert rest.n_read == 3
    assert [event["subject"] for event in events(engine)] == ["2 responses"] * 3 + ["1 response"]
    monkeypatch.undo()
    assert read_levels(engine, actor=Administrator(name="Dr. Noor")).n_read == 0
    assert len(by_text(engine)) == len(verdicts(engine)) == 7
    with reading(engine) as session:
        assert not [
            fault for fault in verify(session).faults if "erdict" in fault
        ]  # the rest was put in past the program


def test_the_parts_of_a_run_add_up(engine, monkeypatch):
    whole = read_levels(engine, actor=Administrator(name="Dr. Noor"))
    again = [replace(judge, version="next") for judge in acts.judges()]
    monkeypatch.setattr(acts, "judges", lambda: again)
    monkeypatch.setattr(acts, "PART", 1)
    monkeypatch.setattr(acts, "PAUSE_SECONDS", 0)
    assert read_levels(engine, actor=Administrator(name="Dr. Noor")) == whole


def test_what_another_run_wrote_meanwhile_is_seen_and_not_written_twice(engine):
    inner = []

    def progress(_done, _most):
        if not inner:
            inner.append(None)
            inner.append(read_levels(engine, actor=Administrator(name="Dr. Brandt")))

    report = read_levels(engine, actor=Administrator(name="Dr. Noor"), progress=progress)
    assert (inner[1].n_read, report.n_read) == (7, 0)
    assert report.n_unchanged in (3, 7)  # PostgreSQL shows what was committed meanwhile to the next statement already
    assert len(verdicts(engine)) == 7
    assert len(events(engine)) == 1


def test_the_report_says_what_was_read(engine):
    assert read_levels(engine, actor=Administrator(name="Dr. Noor")).sentences() == [
        "parser: 3 responses read: D 1; without a level 2",
        "acuity_rules: 4 responses read: A 1, D 1; without a level 2",
        "Of those without a level, not in English: Spanish 1",
    ]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text())
def test_any_text_gives_a_label_and_an_explanation(words):
    for judge in (stated, recommended):
        found = judge(words)
        assert found.label in {*"ABCD", Label.CANNOT_ASSESS}
        assert found.explanation.endswith(".")
        assert len(found.explanation) < 1_300


def test_the_rules_load_where_they_are_asked_and_not_with_every_page_of_triage():
    rules = "'evalcore.triage.levels' in sys.modules"
    loads = f"import sys; from evalcore.triage import acts; print({rules}, len(acts.judges()), {rules})"
    told = subprocess.run([sys.executable, "-c", loads], capture_output=True, text=True, check=True)
    assert told.stdout.split() == ["False", "2", "True"]
