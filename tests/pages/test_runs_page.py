"""The Runs tab of the Study page: who sees what of runs, and what a lead can do with them."""

import os
from pathlib import Path

import pandas as pd
import pytest
from sqlalchemy import text
from streamlit.testing.v1 import AppTest

from evalcore.cli import run as cli_run
from evalcore.errors import RunRefused
from evalcore.reading import queries as reading_queries
from evalcore.reading.assigning import Choice, assign
from evalcore.runs import queries, store as run_store, worker as runs_worker
from evalcore.runs.acts import retry, start, stop
from evalcore.runs.asking import Stop
from evalcore.runs.prompts import spec_for
from evalcore.runs.worker import work
from evalcore.study import contents, store
from evalcore.study.browse import Filters
from evalcore.study.db import open_study, reading, writing
from evalcore.study.frames import records
from evalcore.study.policies import check_can_run, check_can_see_replies, reason
from evalcore.study.schema import CASES, STREAK, Administrator, Outcome, Role, Rules, RunKind, RunState
from pages.shared import common
from pages.study import run as one_run, run as study_run, runs
from tests.page_steps import LEAD, PHYSICIAN, said
from tests.run_commands import models_file
from tests.run_steps import MET, UNREADABLE, Scripted
from tests.run_world import settings

DATASET = "overread-demo"
HOSTILE = '<img src=x onerror=alert(1)> ![a](http://127.0.0.1:9/b.png) "criteria_met": "perhaps"'
N_ASKED = 30
READS_TOO = "Dr. Ines Roth"


@pytest.fixture
def opened(demo_study, open_page):
    """The Runs tab as somebody; `run`: with that run open."""

    def opens(name: str, run: int | None = None) -> AppTest:
        query = {"run": str(run)} if run is not None else {}
        return open_page(demo_study, "study", name, study_tab="Runs", **query)

    return opens


@pytest.fixture
def engine(demo_study):
    made = open_study(demo_study)
    yield made
    made.dispose()


@pytest.fixture
def started(monkeypatch):
    """The runs for which the page has started a process; none is really started."""
    found: list[int] = []

    def start_worker(_location: str, run_id: int) -> int:
        found.append(run_id)
        return 1

    monkeypatch.setattr(runs_worker, "start_worker", start_worker)
    return found


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    """The folder in which Overread is started, with a file of two models."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OVERREAD_MODELS", raising=False)
    models_file(tmp_path, "http://127.0.0.1:1/v1", "Merlin", "Rook", key_variable='"INVENTED_KEY"')
    return tmp_path


def asked(engine, says, *, name="Merlin", **about) -> int:
    """A run whose model has said this on each question."""
    spec = spec_for(RunKind.JUDGE, settings(name=name), DATASET, **({"limit": N_ASKED} | about))
    run_id = start(engine, spec, actor=Administrator(name=LEAD), concurrency=1)
    work(engine, run_id, key=None, stop=Stop(), client=Scripted(says))
    return run_id


def some_fail(number: int, _request) -> str | Outcome:
    """Of 10 calls one is refused, one has a reply that is hostile, asked for three times in all, and the others bring a verdict."""
    return Outcome.REFUSED if number % 10 == 5 else HOSTILE if number % 10 in (7, 8, 9) else MET


def raw(app: AppTest) -> str:
    return "\n".join(element.proto.body for element in app.get("html"))


def buttons(app: AppTest) -> set[str]:
    return {button.key for button in app.button if str(button.key).startswith("run_")}


# ---------------------------------------------------------------- the list


def test_where_nothing_has_run_a_lead_is_told_how_to_begin_and_others_why_they_cannot(opened, here):
    app = opened(LEAD)
    shown = said(app)
    assert "Nothing has run yet." in shown
    assert "A key is never typed, stored or shown here." in shown
    assert 'key_variable = "OPENAI_API_KEY"' in app.code[0].value
    assert buttons(app) == {"run_plan"}

    app = opened(PHYSICIAN)
    shown = said(app)
    assert "Only leads can start and stop runs; you are a reviewer in this study." in shown
    assert "Nothing has run yet." in shown
    assert buttons(app) == set()


def test_a_run_stands_in_words_with_its_figures_for_everybody(opened, engine):
    done, failing = asked(engine, MET), asked(engine, UNREADABLE, name="Rook", limit=STREAK + 5)
    with reading(engine) as session:
        n_responses = session.connection().execute(
            text("SELECT count(DISTINCT response_id), count(*) FROM run_question WHERE run_id = :run"), {"run": done}
        ).one()  # fmt: skip
    for name in (LEAD, PHYSICIAN):
        app = opened(name)
        shown = said(app)
        assert f"Verdicts of judge Merlin on {n_responses[0]} responses of 1 model" in shown
        assert f"{N_ASKED} of {N_ASKED} answered" in shown
        assert f"0 of {STREAK + 5} answered" in shown
        assert f"{STREAK} failed" in shown
        assert f"{STREAK} questions in a row failed" in shown
        # The last failure of the row speaks the judge's words.
        assert ('criteria_met: expected true or false, got "true"' in shown) is (name == LEAD)
        assert shown.index("judge Rook") < shown.index("judge Merlin")  # newest first
        assert {f"run_open_{done}", f"run_open_{failing}"} <= buttons(app)
    app.button(key=f"run_open_{failing}").click().run()
    assert "".join(app.query_params["run"]) == str(failing)
    assert f"Run {failing} on the data set {DATASET}, started by {LEAD}" in said(app)


def test_an_address_with_no_run_or_with_another_studys_is_told(opened, engine):
    assert "This study has no run 99." in said(opened(LEAD, 99))
    assert "Nothing has run yet." in said(opened(LEAD, "one"))


# ---------------------------------------------------------------- failures


def test_replies_are_shown_to_leads_as_text_and_to_nobody_else(opened, engine):
    run_id = asked(engine, some_fail)
    with reading(engine) as session:
        at = queries.progress(session, run_id)
    n_refused, n_unreadable = at.outcomes[Outcome.REFUSED], at.outcomes[Outcome.UNREADABLE]
    assert min(n_refused, n_unreadable) > 0
    counts = (f"{n_refused} declined: The model declined to answer.", f"{n_unreadable} not readable:")

    app = opened(LEAD, run_id)
    shown = said(app)
    assert all(words in shown for words in counts)
    assert HOSTILE in shown
    assert "<img" not in raw(app)
    assert "asked 3 times" in shown

    app = opened(PHYSICIAN, run_id)
    shown = said(app)
    assert all(words in shown for words in counts)
    assert "perhaps" not in raw(app)
    assert "Only leads can read the replies to questions that failed;" in shown
    assert buttons(app) == {"run_back"}


def test_a_lead_who_reads_blind_sees_no_reply_on_what_waits_for_that_read_and_no_model_behind_it(opened, engine):
    judged = asked(engine, some_fail)
    answering = spec_for(RunKind.RESPOND, settings(name="Vexel-3", api_model="vexel-3-0901"), DATASET, limit=2)
    answered = start(engine, answering, actor=Administrator(name=LEAD), concurrency=1)
    work(engine, answered, key=None, stop=Stop(), client=Scripted("Rest, and drink enough."))
    with writing(engine) as session:
        store.add_person(session, READS_TOO, roles=[Role.LEAD, Role.REVIEWER], actor=LEAD)
        store.set_rules(session, Rules(leads_read=True), actor=LEAD)
    with reading(engine) as session:
        failed = queries.failures(session, judged)
    told = (raw(opened(READS_TOO, judged)), raw(opened(READS_TOO, answered)), raw(opened(READS_TOO)))
    assert "perhaps" in told[0]
    assert all(prompt_id in told[0] for prompt_id in failed["prompt_id"])
    assert all(name in told[1] for name in ("Vexel-3", "vexel-3-0901"))
    assert "Vexel-3" in told[2]

    assign(engine, Choice(filters=Filters(), readers=(READS_TOO,), n_readers=1, seed=1), actor=Administrator(name=LEAD))
    with reading(engine) as session:
        person = next(one for one in contents.people(session) if one.name == READS_TOO)
        waits = failed["example_id"].isin(reading_queries.blind_examples(session, person))
    assert waits.any()
    assert not waits.all()
    app = opened(READS_TOO, judged)
    assert "on conversations that wait for your own first read" in said(app)
    told = (raw(app), raw(opened(READS_TOO, answered)), raw(opened(READS_TOO)))
    secrets = ("vexel", *failed["prompt_id"].loc[waits])
    assert [word for word in secrets for page in told if word.casefold() in page.casefold()] == []
    assert all("Answers of a model to 2 conversations" in page for page in told[1:])
    assert (
        told[0].count("perhaps") == 2 * failed.loc[~waits, "outcome"].eq(Outcome.UNREADABLE).sum()
    )  # why, and the reply


def test_failures_with_and_without_a_reply_stand_beside_one_another():
    alike = {
        "prompt_id": "p",
        "response_id": 1,
        "model": "Ash",
        "position": 2,
        "format": "",
        "sample_index": 0,
        "repeat": 0,
        "error": "why",
    }
    found = pd.DataFrame([
        alike | {"outcome": "unreadable", "status": 200, "reply": "perhaps", "n_tries": 3},
        alike | {"outcome": "unreachable", "status": None, "reply": None, "n_tries": 6},
        alike | {"outcome": "rejected", "status": None, "reply": None, "n_tries": 0},
    ])  # fmt: skip
    read, unreached, unsent = map(study_run.failure_html, records(found))
    assert "perhaps" in read
    assert "HTTP 200" in read
    assert "asked 6 times" in unreached
    assert "No reply" in unreached
    assert "never sent" in unsent


def test_kinds_that_are_chosen_are_shown_and_asked_again(opened, engine, started):
    run_id = asked(engine, some_fail)
    app = opened(LEAD, run_id)
    kinds = app.button_group(key=f"run_kinds_{run_id}")
    kinds.unselect(Outcome.UNREADABLE).run()
    assert HOSTILE not in said(app)
    with reading(engine) as session:
        before = queries.progress(session, run_id)
    app.button(key="run_retry").click().run()
    assert not app.exception
    with reading(engine) as session:
        after = queries.progress(session, run_id)
    assert started == [run_id]
    assert (after.state, after.n_open) == (RunState.OPEN, before.outcomes[Outcome.REFUSED])
    assert after.outcomes == {word: n for word, n in before.outcomes.items() if word is not Outcome.REFUSED}
    assert "Paused: nothing is being asked now." in said(app)


# ---------------------------------------------------------------- starting, stopping, going on


def test_a_lead_sees_what_it_would_take_and_starts_it(opened, engine, here, started, monkeypatch):
    app = opened(LEAD)
    app.selectbox(key="run_name").set_value("Merlin").run()
    assert "the environment variable INVENTED_KEY is not set" in said(app)
    assert app.button(key="run_plan").disabled

    monkeypatch.setenv("INVENTED_KEY", "sk-invented")
    app.run()
    assert "the key is in the variable INVENTED_KEY" in said(app)
    app.multiselect(key=f"run_of_{DATASET}").set_value(["Alder-2"]).run()
    app.checkbox(key="run_points").uncheck().run()
    app.number_input(key="run_concurrency").set_value(7).run()
    app.number_input(key="run_cost").set_value(1.5).run()
    app.button(key="run_plan").click().run()
    shown = said(app)
    with reading(engine) as session:
        n_items = session.connection().execute(
            text(
                "SELECT count(*) FROM response r JOIN model m ON m.id = r.model_id JOIN example e ON e.id = r.example_id "
                "JOIN criterion c ON c.example_id = r.example_id WHERE m.name = 'Alder-2' AND e.dataset = :dataset"
            ),
            {"dataset": DATASET},
        ).scalar_one()  # fmt: skip
    assert f"{n_items:,} questions in all" in " ".join(shown.split())
    assert "not known yet" in shown  # the time: nobody has asked it yet

    # What was planned is not what is asked now: it has to be looked at again.
    app.number_input(key="run_limit").set_value(12).run()
    assert "run_start" not in buttons(app)
    app.button(key="run_plan").click().run()
    app.button(key="run_start").click().run()
    assert not app.exception
    (row,) = _rows(engine)
    assert started == [row.run_id]
    assert (row.started_by, row.concurrency, row.max_cost) == (LEAD, 7, 1.5)
    wanted = (row.spec.of_models, row.spec.with_points, row.spec.limit, row.spec.model.key_variable)
    assert wanted == (("Alder-2",), False, 12, "INVENTED_KEY")
    assert "".join(app.query_params["run"]) == str(row.run_id)
    assert "sk-invented" not in raw(app)


def _rows(engine):
    with reading(engine) as session:
        return queries.rows(session)


def test_cases_are_asked_in_both_formats_and_by_chance_where_the_file_does_not_say(opened, engine, here, started):
    models_file(here, "http://127.0.0.1:1/v1", "Merlin")
    app = opened(LEAD)
    app.button_group(key="run_kind").set_value(RunKind.TRIAGE).run()
    app.selectbox(key="run_name").set_value("Merlin").run()
    assert "temperature 1; it needs no key" in said(app)
    app.number_input(key=f"run_samples_{RunKind.TRIAGE}").set_value(2).run()
    app.button(key="run_plan").click().run()
    app.button(key="run_start").click().run()
    (row,) = _rows(engine)
    assert started == [row.run_id]
    assert (row.spec.dataset, row.spec.formats, row.spec.n_samples) == (CASES, ("conversation", "qa"), 2)
    assert row.spec.model.temperature == runs.TEMPERATURE == cli_run.TEMPERATURE
    assert "Answers of Merlin to 60 cases, both formats, 2 samples each" in said(app)


def test_a_file_of_models_that_is_wrong_says_where(opened, here):
    (here / "models.toml").write_text('[models.Merlin]\nbase_url = "http://127.0.0.1:1/v1"\napi_key = "sk-invented"\n')
    shown = said(opened(LEAD))
    assert 'models.toml: models."Merlin": expected base_url, api_model' in shown
    assert "got api_key. A key is never kept in this file" in shown
    assert "sk-invented" not in shown


def test_a_run_that_was_stopped_goes_on_and_an_open_one_without_a_process_does_too(opened, engine, here, started):
    spec = spec_for(RunKind.JUDGE, settings(name="Merlin"), DATASET, limit=N_ASKED)
    run_id = start(engine, spec, actor=Administrator(name=LEAD), concurrency=3)
    app = opened(LEAD, run_id)
    assert "Paused: nothing is being asked now." in said(app)
    app.number_input(key=f"run_on_concurrency_{run_id}").set_value(9).run()
    app.button(key="run_on").click().run()
    assert started == [run_id]
    assert _rows(engine)[0].concurrency == 9


def test_a_run_started_again_gets_a_process_beside_one_that_was_told_to_stop_and_none_beside_one_that_works(
    engine, started
):
    spec = spec_for(RunKind.JUDGE, settings(name="Merlin"), DATASET, limit=N_ASKED)
    run_id = start(engine, spec, actor=Administrator(name=LEAD), concurrency=3)
    with reading(engine) as session:
        lead = next(one for one in contents.people(session) if one.name == LEAD)
    with writing(engine) as session:
        run_store.add_worker(session, run_id, pid=os.getpid())
    one_run.start(lead, spec, concurrency=3, max_cost=None)
    assert started == []
    stop(engine, run_id, actor=lead)
    one_run.start(lead, spec, concurrency=3, max_cost=None)  # it ends, once what is in flight has come
    assert started == [run_id]


def test_a_process_that_does_not_start_says_why_and_the_run_waits(opened, engine, here, monkeypatch):
    run_id = start(
        engine, spec_for(RunKind.JUDGE, settings(name="Merlin"), DATASET), actor=Administrator(name=LEAD), concurrency=3
    )

    def start_worker(_location: str, run_id: int) -> int:
        msg = f"run {run_id}: the process that was started has ended: no room"
        raise RunRefused(msg)

    monkeypatch.setattr(runs_worker, "start_worker", start_worker)
    app = opened(LEAD, run_id)
    app.button(key="run_on").click().run()
    shown = said(app)
    assert f"run {run_id}: the process that was started has ended: no room" in shown
    assert "Paused: nothing is being asked now." in shown


def test_what_only_leads_may_do_is_refused_below_the_buttons_too(engine):
    with reading(engine) as session:
        physician = next(one for one in contents.people(session) if one.name == PHYSICIAN)
    run_id = start(engine, spec_for(RunKind.JUDGE, settings(), DATASET), actor=Administrator(name=LEAD), concurrency=3)
    row = _rows(engine)[0]
    sentence = reason(check_can_run, physician)
    for act in (
        lambda: one_run.start(physician, row.spec, concurrency=1, max_cost=None),
        lambda: stop(engine, run_id, actor=physician),
        lambda: one_run.retry(physician, row, [Outcome.REFUSED]),
    ):
        with pytest.raises(Exception, match="Only leads can ") as refused:
            act()
        assert str(refused.value) == sentence
    assert _rows(engine)[0] == row
    assert reason(check_can_see_replies, physician)


# ---------------------------------------------------------------- reading seldom


def test_what_is_drawn_every_two_seconds_reads_nothing_that_is_kept_until_the_study_changes(
    engine, demo_study, monkeypatch
):
    answering = spec_for(RunKind.RESPOND, settings(name="Vexel-3"), DATASET, limit=2)
    run_id = start(engine, answering, actor=Administrator(name=LEAD), concurrency=1)
    with reading(engine) as session:
        person = next(one for one in contents.people(session) if one.name == PHYSICIAN)
    title = one_run.title(person, _rows(engine)[0], 2)
    read: list[str] = []
    monkeypatch.setattr(common, "read", lambda name, *_: read.append(name) or [])
    monkeypatch.setattr(common, "version", lambda: read.append("version"))
    monkeypatch.setattr(common, "blind", lambda _: read.append("blind") or frozenset())
    runs._rows(person, {run_id: title}, is_live=False)
    study_run._figures(person, run_id, is_live=False, has_failed=False)
    assert read == []


def test_a_run_that_has_ended_is_counted_once_and_again_when_it_has_changed(engine, demo_study, monkeypatch):
    run_id = asked(engine, some_fail)
    counted: list[int] = []
    count = queries.progress

    def progress(session, run_id):
        counted.append(run_id)
        return count(session, run_id)

    monkeypatch.setattr(queries, "progress", progress)
    first, second = one_run.progress(_rows(engine)[0]), one_run.progress(_rows(engine)[0])
    assert first == second
    assert counted == [run_id]
    retry(engine, run_id, actor=Administrator(name=LEAD), outcomes=[Outcome.REFUSED])
    assert one_run.progress(_rows(engine)[0]).n_open == first.outcomes[Outcome.REFUSED]
    assert counted == [run_id, run_id]


def test_what_takes_long_to_count_is_counted_seldom(engine, demo_study, monkeypatch):
    spec = spec_for(RunKind.JUDGE, settings(name="Merlin"), DATASET, limit=N_ASKED)
    run_id = start(engine, spec, actor=Administrator(name=LEAD), concurrency=1)
    clock, counted, count = [100.0], [], queries.progress

    def progress(session, run_id):
        counted.append(clock[0])
        clock[0] += 3.0  # so long it takes
        return count(session, run_id)

    monkeypatch.setattr(queries, "progress", progress)
    monkeypatch.setattr(one_run.time, "monotonic", lambda: clock[0])
    (row,) = [row for row in _rows(engine) if row.run_id == run_id]
    for seconds in (0, 10, 19, 2):  # after the first: 10, 29 and 31 seconds later
        clock[0] += seconds
        one_run.progress(row)
    assert counted == [100.0, 103.0 + 31.0]
