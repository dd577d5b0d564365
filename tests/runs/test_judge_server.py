"""The judge server itself: what it answers can be computed beforehand, and so can what goes wrong."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import httpx
import orjson
import pytest
from hypothesis import given, strategies as st

from evalcore.study.schema import Message
from tests.judge_server import Fault, Faults, answer, is_met, judge_process, judge_server, key_of
from tests.judge_server.faults import ASKED_AGAIN, READABLE, REFUSED, REJECTED, UNREADABLE
from tests.judge_server.rule import tokens

VERDICT = {
    "properties": {
        "explanation": {"type": "string"},
        "criteria_met": {"type": "boolean"},
        "confidence": {"type": "number"},
    }
}
LEVEL = {
    "properties": {"explanation": {"type": "string"}, "level": {"type": "string", "enum": ["A", "B", "C", "D", "none"]}}
}


def turns(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


def asking(schema: dict | None = None) -> dict:
    return (
        {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}} if schema else {}
    )


def ask(url: str, text: str, **more: object) -> httpx.Response:
    return httpx.post(f"{url}/chat/completions", json={"model": "m", "messages": turns(text)} | more, trust_env=False)


@pytest.fixture(scope="module")
def judge():
    with judge_server(seed=7) as running:
        yield running


def test_it_answers_by_the_rule(judge):
    for text in ("one", "two", "three"):
        said = ask(judge.base_url, text, **asking(VERDICT)).json()["choices"][0]["message"]["content"]
        assert said == answer(turns(text), seed=7, schema=VERDICT)
        assert orjson.loads(said)["criteria_met"] is is_met(turns(text), seed=7)


@given(st.text(max_size=50), st.integers())
def test_an_answer_has_the_form_that_was_asked_for(text, seed):
    verdict = orjson.loads(answer(turns(text), seed=seed, schema=VERDICT))
    assert list(verdict) == ["explanation", "criteria_met", "confidence"]
    assert isinstance(verdict["criteria_met"], bool)
    assert 0.5 <= verdict["confidence"] <= 1
    assert orjson.loads(answer(turns(text), seed=seed, schema=LEVEL))["level"] in LEVEL["properties"]["level"]["enum"]


def test_without_a_schema_the_words_say_what_is_asked():
    verdict = orjson.loads(answer(turns('the fields "explanation" and "criteria_met"; name the level')))
    assert list(verdict) == ["explanation", "criteria_met"]
    assert list(orjson.loads(answer(turns('"explanation", "level", "confidence"')))) == [
        "explanation",
        "level",
        "confidence",
    ]
    assert answer(turns("End with ACUITY: <letter>"))[-9:-1] == "ACUITY: "
    assert "ACUITY" not in answer(turns("My head hurts."))


def test_both_labels_and_every_level_are_given():
    assert Counter(is_met(turns(str(number))) for number in range(200))[True] in range(70, 131)
    levels = {answer(turns(f"ACUITY: {number}"))[-1] for number in range(100)}
    assert levels == set("ABCD")


@given(st.text(max_size=30), st.text(max_size=30), st.text("0123456789abcdef", min_size=32, max_size=32))
def test_a_delimiter_made_for_the_call_changes_nothing(before, after, fence):
    def fenced(mark):
        return key_of(turns(f"{before} [{mark}] {after} [{mark}]"))

    assert fenced(fence) == fenced("0" * 32)
    assert key_of([Message("user", before)]) == key_of(turns(before))
    assert key_of([Message("user", before)]) != key_of([Message("system", before)])


def test_it_counts_what_it_was_asked_and_what_it_said(judge):
    before = judge.told.asked[key_of(turns("count me"))]
    usage = [ask(judge.base_url, "count me").json()["usage"] for _ in range(3)]
    assert judge.told.asked[key_of(turns("count me"))] == before + 3
    assert usage[0]["prompt_tokens"] == tokens("count me") + 4
    assert usage[0]["completion_tokens"] == tokens(answer(turns("count me"), seed=7))
    counts = httpx.get(judge.base_url.removesuffix("/v1") + "/asked", trust_env=False).json()
    assert counts["asked"][key_of(turns("count me"))] == before + 3


def test_it_lists_its_model(judge):
    assert httpx.get(f"{judge.base_url}/models", trust_env=False).json()["data"][0]["object"] == "model"


def test_varied_answers_differ_by_model_and_by_time():
    with judge_server(varied=True) as varied, ThreadPoolExecutor(1) as one:
        said = list(
            one.map(
                lambda _: ask(varied.base_url, "same", **asking(VERDICT)).json()["choices"][0]["message"]["content"],
                range(12),
            )
        )
    assert len({orjson.loads(text)["criteria_met"] for text in said}) == 2


@given(st.integers(), st.floats(0.05, 1))
def test_the_shares_of_faults_are_those_that_were_told(seed, share):
    faults = Faults.mixed(share)
    n = 2000
    met = Counter(faults.of(str(number), 0, seed=seed) for number in range(n))
    # Six standard deviations of a binomial count: beyond them once in 10^9.
    assert abs(n - met[None] - n * share) <= 6 * (n * share * (1 - share)) ** 0.5 + 1
    assert set(met) <= {None, *Fault}


def test_a_fault_can_end_after_some_tries():
    faults = Faults.alone(Fault.BROKEN, tries=2)
    assert [faults.of("q", number) for number in range(3)] == [Fault.BROKEN, Fault.BROKEN, None]
    assert faults.last("q", 5) == (None, 3)
    assert faults.last("q", 2) == (Fault.BROKEN, 2)


def test_every_fault_has_one_end():
    ends = (ASKED_AGAIN, READABLE, UNREADABLE, REFUSED, REJECTED, {Fault.HUGE})
    assert Counter(fault for end in ends for fault in end) == dict.fromkeys(Fault, 1)


@pytest.mark.parametrize("schema", [VERDICT, LEVEL])
def test_spoilt_texts_are_not_what_was_asked_for(judge, schema):
    label = "criteria_met" if schema is VERDICT else "level"
    said = {}
    for fault in UNREADABLE:
        judge.told.faults = Faults.alone(fault)
        said[fault] = ask(judge.base_url, "spoilt", **asking(schema)).json()["choices"][0]["message"]["content"]
    judge.told.faults = Faults()
    right = answer(turns("spoilt"), seed=7, schema=schema)
    assert [orjson.loads(said[fault])[label] for fault in (Fault.WORD_TRUE, Fault.ONE, Fault.NULL)] == ["true", 1, None]
    assert orjson.loads(said[Fault.ARRAY]) == [orjson.loads(right)]
    first, second = said[Fault.TWO_OBJECTS].split("\n")
    assert first == right
    assert orjson.loads(second)[label] != orjson.loads(right)[label]


def test_it_runs_as_a_process_of_its_own():
    with judge_process("--seed", "7", "--key", "sk-1", "--fault", "400=1", "--tries", "1") as running:
        assert ask(running.base_url, "one").status_code == 401
        assert httpx.get(f"{running.base_url}/models", trust_env=False).status_code == 200
