"""Why a run cannot be started: one sentence each, and nothing is written."""

import msgspec
import pytest
from sqlalchemy import text

from evalcore.errors import RunRefused
from evalcore.runs.acts import start
from evalcore.study.schema import CASES, JURY, Acuity, Administrator
from tests.run_world import add_cases, begun, judged, judging, responding, settings as model, study, triage


def refused(small, spec, **changed):
    with pytest.raises(RunRefused) as caught:
        start(small.engine, spec, **({"actor": Administrator(name="Ana Ruiz"), "concurrency": 4} | changed))
    return str(caught.value)


def test_who_was_asked_otherwise_is_another_judge(small_run):
    begun(small_run, judging())
    words = refused(small_run, judging(model={"temperature": 0.5}))
    assert words == (
        "'Magpie' was asked otherwise in run 1 (magpie-1, temperature unset, max_tokens unset), and now with magpie-1, "
        "temperature 0.5, max_tokens unset; give it another name, so that its answers are not mixed up"
    )
    begun(small_run, judging(model={"temperature": 0.5}, with_points=False))  # another prompt is another judge anyway
    begun(small_run, judging(model={"name": "Magpie warm", "temperature": 0.5}))


def test_answers_to_the_same_questions_come_from_one_model(small_run):
    add_cases(small_run, 1)
    begun(small_run, triage(formats=("qa",)))
    other = triage(formats=("conversation", "qa"), model={"api_model": "magpie-2"})
    assert "was asked otherwise in run 1" in refused(small_run, other)


def test_a_server_that_has_moved_is_the_same_model_and_the_same_run(small_run):
    run_id = begun(small_run, judging("http://127.0.0.1:1/v1"))
    assert begun(small_run, judging("http://127.0.0.2:9/v1")) == run_id
    assert "127.0.0.2:9" in small_run.one("SELECT spec FROM run")  # where it is asked from now on


UNREFUSED = judging()
CHANGED = {
    "data set: expected one of invented, got 'other'": {"dataset": "other"},
    "models: expected some of Alder-2, of which 'invented' has responses, got Ash-9": {"of_models": ("Ash-9",)},
    "repeats: expected 1 or more, got 0": {"n_repeats": 0},
    "limit: expected 1 or more, got -1": {"limit": -1},
    "prompt: expected 'judge@512fa4ff', with which this version of Overread asks, got 'judge@00000000'; start a new run": {
        "prompt_version": "judge@00000000"
    },
    "base URL of 'Magpie': expected no user name or password in it; name the variable that holds the key instead": {
        "model": model("http://me:secret@127.0.0.1:1/v1")
    },
    "base URL of 'Magpie': expected one such as http://127.0.0.1:8000/v1, got no address": {
        "model": model("ftp://127.0.0.1")
    },
    "model: expected a name of 1 to 200 printable characters, got ''": {"model": model(name="")},
    "model: expected a name of 1 to 200 printable characters, got 'a\\nb'": {"model": model(name="a\nb")},
    "judge: expected another name than 'acuity_rules', which is that of a judge that ships with Overread": {
        "model": model(name="acuity_rules")
    },
}


@pytest.mark.parametrize("words", CHANGED)
def test_what_cannot_be_asked_is_refused_with_a_sentence(small_run, words):
    told = refused(small_run, msgspec.structs.replace(UNREFUSED, **CHANGED[words]))
    assert words in told
    assert "secret" not in told
    assert small_run.rows("SELECT * FROM run") == []


def test_other_reasons_for_which_a_run_is_refused(small_run):
    assert "has no responses with a text in the format conversation" in _on_cases(small_run)
    assert refused(small_run, triage(formats=())) == "formats: expected one or both of qa, conversation, got nothing"
    assert "expected another than 'acuity' for respond" in refused(small_run, responding(dataset=CASES))
    assert refused(small_run, judging(), concurrency=0) == "concurrency: expected 1 to 2,000, got 0"
    assert refused(small_run, judging(), max_cost=0.0) == "max cost: expected more than 0 US dollars, got 0.0"
    assert "has no prices" in refused(small_run, judging(model={"price_in": None}), max_cost=1.0)


def _on_cases(small):
    add_cases(small, 1)
    return refused(small, judging(dataset=CASES))


def test_a_study_without_examples_or_responses_has_nothing_to_ask(database_url):
    with study(database_url, n_examples=0, models=()) as empty:
        assert refused(empty, judging()) == "data set: expected one of none: the study has no examples, got 'invented'"
    with study(database_url, n_examples=1, models=()) as unanswered:
        assert refused(unanswered, judging()) == "data set: 'invented' has no responses to judge"


def test_the_name_of_a_jury_is_refused(small_run):
    jury = msgspec.structs.replace(judging(), prompt_version=f"{JURY}1a2b3c4d")
    judged(small_run, jury, small_run.responses[0], None, example=small_run.examples[0], label=Acuity.A)
    assert (
        refused(small_run, judging())
        == "judge: expected another name than 'Magpie', which is that of a jury of this study"
    )
    begun(small_run, judging(model={"name": "Wren"}))


def test_a_confidence_that_the_study_takes_for_another_is_refused(small_run):
    spec = judging(with_confidence=True)
    judged(small_run, spec, small_run.responses[0], None, example=small_run.examples[0], label=Acuity.A)
    with small_run.engine.begin() as connection:
        connection.execute(text("INSERT INTO judge_confidence (judge, meaning) VALUES ('Magpie', 'met')"))
    assert "means 'met', and this prompt asks for 'right'" in refused(small_run, spec)
    begun(small_run, judging())
