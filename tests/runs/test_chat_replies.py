"""What replies of servers say: a completion or a sentence, whatever the bytes are; and no key in anything that is kept."""

import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import orjson
import pytest
from hypothesis import given, strategies as st

from evalcore.runs.model_client import (
    SHORTEST_KEY,
    CallFailed,
    Hider,
    TryAgain,
    error_message,
    is_filtered,
    read,
    retry_after,
)
from evalcore.runs.spec import MAX_RAW
from evalcore.study.schema import Outcome

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
KEY = "sk-proj-4f5A77c2b19/+=x"


def completion(content="Drink enough.", **message):
    return {
        "choices": [{"message": {"role": "assistant", "content": content} | message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 12, "completion_tokens": 3},
    }


def test_a_whole_completion_gives_its_text_and_counts():
    said = read(orjson.dumps(completion()))
    assert (said.text, said.finish) == ("Drink enough.", "stop")
    assert (said.prompt_tokens, said.completion_tokens) == (12, 3)


@pytest.mark.parametrize(
    "counts",
    [
        None,
        [],
        {},
        {"prompt_tokens": None},
        {"prompt_tokens": True},
        {"prompt_tokens": -1},
        {"prompt_tokens": 1.5},
        {"prompt_tokens": 2**31},
    ],
)
def test_a_count_that_is_none_is_unknown_and_the_answer_stays(counts):
    said = read(orjson.dumps(completion() | {"usage": counts}))
    assert (said.text, said.prompt_tokens) == ("Drink enough.", None)


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b"", r"expected a chat completion, got an empty body"),
        (b"<!doctype html>", r"expected a chat completion, got a body of 15 bytes that is not JSON"),
        (orjson.dumps(completion())[:-1], r"expected a chat completion, got a body of 145 bytes that is not JSON"),
        (b"[]", r"expected a chat completion, got JSON without choices"),
        (b"{}", r"expected a chat completion, got JSON without choices"),
        (b'{"choices": []}', r"expected a chat completion, got JSON without choices"),
        (b'{"choices": [1]}', r"expected a chat completion, got JSON without choices"),
        (
            b'{"error": {"message": "no such model"}}',
            "expected a chat completion: no such model, got JSON without choices",
        ),
        (b'{"choices": [{}]}', r"expected a chat completion, got a choice without a message"),
        (orjson.dumps(completion(None)), "expected text, got a message whose content is null"),
        (
            orjson.dumps(completion([{"type": "text"}])),
            r"expected text, got a message whose content is a list \(it ended with 'stop'\)",
        ),
        (
            orjson.dumps(completion(None, refusal="")),
            r"expected text, got a message whose content is null \(it ended with 'stop'\)",
        ),
    ],
)
def test_what_is_no_completion_is_said(body, sentence):
    with pytest.raises(TryAgain, match=sentence):
        read(body)


def refusal_of(body):
    with pytest.raises(CallFailed) as failed:
        read(orjson.dumps(body))
    assert failed.value.outcome is Outcome.REFUSED
    assert failed.value.prompt_tokens == 12
    return str(failed.value)


def test_a_refusal_is_no_answer():
    assert refusal_of(completion(None, refusal="I cannot\nhelp.")) == "the model refused: I cannot help."
    assert refusal_of(completion(refusal="No.")) == "the model refused: No."
    filtered = completion("Half an")
    filtered["choices"][0]["finish_reason"] = "content_filter"
    assert refusal_of(filtered) == "the server's content filter held the answer back"


def test_an_empty_refusal_is_none():
    assert read(orjson.dumps(completion(refusal=""))).text == "Drink enough."
    assert read(orjson.dumps(completion(refusal=None))).text == "Drink enough."


def test_the_character_that_no_database_takes_is_replaced():
    assert read(orjson.dumps(completion("a\x00b"))).text == "a\ufffdb"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "choices",
                    "message",
                    "content",
                    "refusal",
                    "usage",
                    "error",
                    "prompt_tokens",
                    "finish_reason",
                    "code",
                    "detail",
                ]
            )
            | st.text(max_size=5),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
choices = st.fixed_dictionaries(
    {
        "choices": st.lists(
            st.fixed_dictionaries(
                {},
                optional={
                    "message": st.dictionaries(st.sampled_from(["content", "refusal"]), json_values),
                    "finish_reason": json_values,
                },
            ),
            max_size=2,
        ),
        "usage": json_values,
    }
)


@given(st.binary(max_size=200) | (json_values | choices).map(orjson.dumps))
def test_any_body_is_a_completion_or_a_sentence(body):
    said = failed = None
    try:
        said = read(body)
    except CallFailed as error:
        failed = error
    if isinstance(failed, TryAgain):
        assert str(failed).startswith("expected ")
        assert ", got " in str(failed)
    elif failed is not None:
        assert failed.outcome is Outcome.REFUSED
        assert str(failed).startswith("the ")
    else:
        assert isinstance(said.text, str)
        assert said.prompt_tokens is None or 0 <= said.prompt_tokens < 2**31
        given_text = orjson.loads(body)["choices"][0]["message"].get("content")
        assert said.text == given_text.replace("\x00", "\ufffd")
    assert "\n" not in error_message(body)
    assert is_filtered(body) in (True, False)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"error": {"message": "too\\nlong", "code": 400}}', "too long"),
        (b'{"error": "nope"}', "nope"),
        (b'{"message": "nope"}', "nope"),
        (b'{"detail": [{"loc": ["body"], "msg": "nope"}]}', '[{"loc": ["body"], "msg": "nope"}]'),
        (b"<h1>Bad\n gateway</h1>", "<h1>Bad gateway</h1>"),
        (b"", ""),
    ],
)
def test_an_errors_message_is_found_where_servers_put_it(body, said):
    assert error_message(body) == said


def test_a_content_filter_is_known_by_its_code():
    assert is_filtered(b'{"error": {"code": "content_filter"}}')
    assert not is_filtered(b'{"error": {"message": "content_filter"}}')


@given(st.floats(0, 1e6))
def test_retry_after_takes_seconds(seconds):
    assert retry_after(repr(seconds), NOON) == seconds


@given(st.integers(-1000, 100_000))
def test_retry_after_takes_a_date(seconds):
    assert retry_after(format_datetime(NOON + timedelta(seconds=seconds), usegmt=True), NOON) == max(0, seconds)


@given(
    st.none()
    | st.text(max_size=40)
    | st.sampled_from(["inf", "-inf", "nan", "-5", "1e400", "Thu, 99 Xyz 9999 99:99:99 GMT", "0 0 0 0"])
)
def test_retry_after_of_any_text_is_a_wait_or_unknown(value):
    seconds = retry_after(value, NOON)
    assert seconds is None or 0 <= seconds < float("inf")


keys = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=SHORTEST_KEY, max_size=60)


@given(key=keys, before=st.text(max_size=30), after=st.text(max_size=30), end=st.integers(0, 200))
def test_no_key_is_kept_wherever_a_body_breaks_off(key, before, after, end):
    body = f"{before} {key}{after}".encode()[:end]
    kept = Hider(key).kept(body) or ""
    if key not in "[key]" * 3:
        assert key not in kept
    assert not any(
        kept.endswith(key[:length]) for length in range(SHORTEST_KEY, len(key)) if key[:length] not in "[key]"
    )


@pytest.mark.parametrize(
    "written", [KEY, json.dumps(KEY), json.dumps(KEY).replace("/", "\\/"), "key=sk-proj-4f5A77c2b19%2F%2B%3Dx"]
)
def test_a_key_is_found_as_json_and_addresses_write_it(written):
    assert "4f5A77c2b19" not in Hider(KEY).hide(f"Incorrect key {written} came.")


def test_a_sentence_is_cut_after_the_key_is_out_of_it():
    for filling in range(260, 305):
        said = Hider(KEY).sentence("x" * filling + KEY + "y" * 40)
        assert len(said) <= 300
        assert "sk-p" not in said


def test_a_body_is_cut_after_the_key_is_out_of_it():
    for over in range(30):
        kept = Hider(KEY).kept(b"x" * (MAX_RAW - over) + KEY.encode() * 2)
        assert len(kept) <= MAX_RAW
        assert "sk-p" not in kept


def test_nothing_that_came_is_none():
    assert Hider(None).kept(b"") is None


def test_a_key_is_hidden_and_a_placeholder_of_a_few_letters_is_none():
    hidden = [Hider(key).hide(f"Incorrect key: {key}") for key in ("sk-12345678", "EMPTY", None)]
    assert hidden == ["Incorrect key: [key]", "Incorrect key: EMPTY", "Incorrect key: None"]
