"""A model is asked about cases of triage by the command line, and a judge about what it answered."""

import json
from collections import Counter

import msgspec
import pytest

from evalcore.study.schema import JURY, PARSER, RULES, Acuity
from tests.judge_server import Fault, Faults, judge_server
from tests.run_commands import everything, models_file, on_study, pressing
from tests.run_world import add_cases, add_response, judged, judging, study

N_CASES = 3


@pytest.fixture
def small(sqlite_database_url):
    with study(sqlite_database_url, n_examples=1) as made:
        add_cases(made, N_CASES)
        yield made


@pytest.fixture
def judge():
    with judge_server(seed=5, keep=True) as running:
        yield running


@pytest.fixture
def asked(overread, small, judge):
    """Runs `overread triage-run --model Alder-9` on the small study; Alder-9 and Magpie are the judge server."""
    models_file(overread.folder, judge.base_url, "Alder-9", "Magpie")
    return on_study(overread, small, "triage-run", "--model", "Alder-9")


def levels(small):
    """How many levels each rater has given."""
    return Counter(
        name for (name,) in small.rows("SELECT r.name FROM verdict v JOIN rater r ON r.id = v.rater_id")
    )  # fmt: skip


def test_a_model_answers_in_both_formats_and_the_shipped_judges_read_it(asked, small, judge):
    said = asked()
    rows = small.rows(
        "SELECT p.dataset, p.sample_index FROM response p JOIN model m ON m.id = p.model_id WHERE m.name = 'Alder-9'"
    )
    every = {(word, sample): N_CASES for word in ("acuity_qa", "acuity_conversation") for sample in range(5)}
    assert Counter(rows) == every  # five samples of each case and format
    assert levels(small) == {PARSER: 15, RULES: 15}
    assert f"Run 1: {2 * 5 * N_CASES} answered, 0 failed.\nparser: 15 responses read" in said
    assert {(body["model"], body["temperature"]) for body in judge.told.bodies} == {("magpie-1", 1.0)}
    stated = small.rows(
        "SELECT p.text, v.label FROM verdict v JOIN response p ON p.id = v.response_id JOIN rater r ON r.id = v.rater_id WHERE r.name = 'parser'"
    )
    assert all(text.endswith(f"ACUITY: {label}") for text, label in stated)


def test_a_judge_then_reads_the_conversations(asked, small):
    add_response(small, 2, "Birch-1", "acuity_conversation", "Rest.")  # of another model: not this command's
    found = json.loads(asked("--samples", "2", "--judge", "Magpie", "--json"))
    assert found["answers"]["outcomes"]["answered"] == 2 * 2 * N_CASES
    assert found["answers"]["levels"]["n_read"] == 2 * 2 * N_CASES + 1
    assert found["judged"]["outcomes"]["answered"] == 2 * N_CASES
    assert found["judged"]["levels"] is None
    assert levels(small) == {PARSER: 6, RULES: 7, "Magpie": 6}
    again = json.loads(asked("--samples", "2", "--judge", "Magpie", "--json"))
    assert again["answers"]["n_calls"] == again["judged"]["n_calls"] == 0
    assert levels(small).total() == 19


def test_one_format_and_a_temperature_of_the_file(asked, overread, small, judge):
    models_file(overread.folder, judge.base_url, "Alder-9", temperature="0.25")
    asked("--formats", "qa", "--samples", "1")
    assert [body["temperature"] for body in judge.told.bodies] == [0.25] * N_CASES
    assert levels(small) == {PARSER: N_CASES}


def test_a_dry_run_tells_of_the_answers_and_of_what_the_judge_finds_there(asked, small, judge):
    before = everything(small)
    found = json.loads(asked("--samples", "2", "--judge", "Magpie", "--dry-run", "--json"))
    assert (found["answers"]["n_missing"], found["judged"]) == (12, None)
    said = asked("--samples", "2", "--judge", "Magpie", "--dry-run")
    assert "Alder-9 answers acuity (dry run)" in said
    assert "Magpie judges each conversation more that comes; its cost can be told then." in said
    assert (everything(small), judge.told.n_asked) == (before, 0)
    asked("--samples", "1")
    found = json.loads(asked("--samples", "2", "--judge", "Magpie", "--dry-run", "--json"))
    assert [found["answers"][name] for name in ("n_all", "n_there", "n_missing")] == [12, 6, 6]
    assert [found["judged"][name] for name in ("n_all", "n_there", "n_missing")] == [3, 0, 3]


def test_a_limit_holds_for_answers_and_for_verdicts(asked, small, judge):
    asked("--samples", "2", "--formats", "conversation", "--judge", "Magpie", "--limit", "2")
    assert levels(small) == {RULES: 2, "Magpie": 2}
    asked("--samples", "2", "--formats", "conversation", "--judge", "Magpie")
    assert levels(small) == {RULES: 6, "Magpie": 6}
    assert judge.told.n_asked == 12


def test_after_ctrl_c_the_judge_is_not_asked_and_the_same_command_goes_on(asked, small, judge, monkeypatch):
    judge.told.delay = 1.0
    with pressing(monkeypatch, lambda: judge.told.in_flight == 2):
        done = asked.ended("--samples", "1", "--formats", "conversation", "--judge", "Magpie", "--concurrency", "2")
    assert done.returncode == 130
    assert levels(small) == {RULES: 2}  # what came has been read
    judge.told.delay = 0.0
    asked("--samples", "1", "--formats", "conversation", "--judge", "Magpie")
    assert levels(small) == {RULES: 3, "Magpie": 3}


def test_answers_and_verdicts_share_a_most_that_they_may_cost(asked, small, judge):
    options = ("--samples", "1", "--formats", "conversation", "--judge", "Magpie", "--concurrency", "1", "--json")
    found = json.loads(asked(*options, "--max-cost", "1"))
    each = [found[part]["cost"] for part in ("answers", "judged")]
    assert small.rows("SELECT max_cost FROM run ORDER BY id") == [(1.0,), (pytest.approx(1 - each[0]),)]
    done = asked.ended(*options, "--max-cost", str(each[0] / 2))  # all of it is spent already
    assert done.returncode == 1
    assert "nothing of --max-cost is left for Magpie" in done.stderr


def test_a_run_that_was_stopped_by_failures_is_not_judged(asked, small, judge):
    judge.told.faults = Faults.alone(Fault.BAD_REQUEST)
    found = asked.ended("--samples", "9", "--judge", "Magpie", "--json")
    assert found.returncode == 1
    assert json.loads(found.stdout)["judged"] is None
    assert small.one("SELECT count(*) FROM run") == 1


REFUSED = {
    "--formats: expected some of qa, conversation, got poem": ("--formats", "qa,poem"),
    "--judge: a judge reads conversations, and --formats is qa": ("--formats", "qa", "--judge", "Magpie"),
    "--judge: expected a judge whose address is in the file of models, got 'Wren', and models.toml has Alder-9, Magpie": (
        "--judge",
        "Wren",
    ),
    "samples: expected 1 or more, got 0": ("--samples", "0"),
    "concurrency: expected 1 to 2,000, got 0": ("--concurrency", "0"),
    "max cost: expected more than 0 US dollars, got -1.0": ("--max-cost", "-1"),
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_cannot_be_asked_is_one_sentence_and_nothing_is_written(asked, small, words):
    assert asked.bad(*REFUSED[words]) == words
    assert small.rows("SELECT * FROM run") == []


def test_a_judge_that_cannot_be_reached_is_named_before_the_first_answer(asked, overread, small, judge):
    known = overread.folder / "models.toml"
    known.write_text(known.read_text() + 'key_variable = "INVENTED_KEY"\n')  # Magpie stands last
    assert "the environment variable INVENTED_KEY is not set" in asked.bad("--judge", "Magpie")
    known.unlink()
    said = ("--base-url", judge.base_url, "--judge", "Magpie")
    assert "there is no file of models" in asked.bad(*said)
    assert (small.rows("SELECT * FROM run"), judge.told.n_asked) == ([], 0)


@pytest.mark.parametrize("dry_run", [(), ("--dry-run",)])
def test_a_judge_that_would_be_refused_is_refused_before_the_first_answer(asked, overread, small, judge, dry_run):
    """By its name: of a judge that ships, of a jury; and where it was asked otherwise before."""
    asked("--samples", "1", "--formats", "conversation", "--judge", "Magpie")
    n_runs, n_asked = small.one("SELECT count(*) FROM run"), judge.told.n_asked
    add_response(small, 2, "Alder-9", "acuity_conversation", "Rest.", sample_index=9)
    jury = judging(dataset="acuity", model={"name": "Bench"})
    jury = msgspec.structs.replace(jury, prompt_version=f"{JURY}1a2b3c4d")
    judged(small, jury, small.one("SELECT min(id) FROM response"), None, example=small.examples[0], label=Acuity.A)
    known = models_file(overread.folder, judge.base_url, "Alder-9", "Magpie", "Bench", RULES, max_tokens="500")
    known.write_text(known.read_text().replace("max_tokens = 500\n", "", 1))  # Alder-9 is asked as before
    for name, words in (
        ("Magpie", "'Magpie' was asked otherwise in run 2 (magpie-1, temperature unset, max_tokens unset)"),
        ("Bench", "judge: expected another name than 'Bench', which is that of a jury of this study"),
        (RULES, f"judge: expected another name than '{RULES}', which is that of a judge that ships"),
    ):
        assert words in asked.bad("--samples", "2", "--formats", "qa,conversation", "--judge", name, *dry_run)
    assert (small.one("SELECT count(*) FROM run"), judge.told.n_asked) == (n_runs, n_asked)


@pytest.mark.parametrize("dry_run", [(), ("--dry-run",)])
def test_a_most_that_it_may_cost_takes_the_prices_of_both(asked, overread, small, judge, dry_run):
    whole = (overread.folder / "models.toml").read_text()
    alder, magpie = whole.split("\n\n")
    for name, (one, other) in (
        ("Alder-9", (alder.replace("price_in = 1.0\n", ""), magpie)),
        ("Magpie", (alder, magpie.replace("price_out = 4.0\n", ""))),
    ):
        (overread.folder / "models.toml").write_text(f"{one}\n\n{other}\n")
        assert asked.bad("--judge", "Magpie", "--max-cost", "1", *dry_run) == (
            f"max cost: '{name}' has no prices, so what it costs is not known; set price_in and price_out"
        )
    assert (small.rows("SELECT * FROM run"), judge.told.n_asked) == ([], 0)


def test_answers_whose_tokens_the_server_did_not_count_cost_as_the_others_on_average(asked, small):
    options = ("--samples", "1", "--formats", "conversation")
    each = json.loads(asked(*options, "--json"))["answers"]["cost"] / N_CASES
    with small.engine.begin() as connection:
        connection.exec_driver_sql(f"UPDATE run_call SET cost = {each}")
        connection.exec_driver_sql("UPDATE run_call SET cost = NULL WHERE id = (SELECT max(id) FROM run_call)")
    asked(*options, "--judge", "Magpie", "--max-cost", "1")
    assert small.rows("SELECT max_cost FROM run ORDER BY id") == [(1.0,), (pytest.approx(1 - N_CASES * each),)]


def test_where_no_answers_cost_is_known_the_judge_is_not_asked(asked, small, judge):
    options = ("--samples", "1", "--formats", "conversation")
    asked(*options)
    with small.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE run_call SET cost = NULL")
    done = asked.ended(*options, "--judge", "Magpie", "--max-cost", "1")
    assert done.returncode == 1
    assert (
        "max cost: what the answers of 'Alder-9' have cost is not known, so what is left for 'Magpie' is not"
        in done.stderr
    )
    assert (small.one("SELECT count(*) FROM run"), judge.told.n_asked) == (1, N_CASES)
    asked(*options, "--judge", "Magpie")
    assert levels(small) == {RULES: N_CASES, "Magpie": N_CASES}


def test_a_study_without_cases_has_nothing_to_ask(asked, overread):
    said = overread.bad("triage-run", "--model", "Alder-9", "--db", overread.db)
    assert said == "The study has no cases of triage: see `overread import`"
