"""A judge's reply is one JSON object with the fields that were asked for, or it is no verdict."""

import json
import time

import pytest
from hypothesis import given, strategies as st

from evalcore.errors import JudgeReplyInvalid
from evalcore.runs.prompts import Judged, JudgePrompt
from evalcore.study.schema import Acuity, Label

JUDGE, SURE = JudgePrompt(with_points=True, with_confidence=False), JudgePrompt(with_points=True, with_confidence=True)
LEVEL, SURE_LEVEL = (
    JudgePrompt(of_levels=True, with_confidence=False),
    JudgePrompt(of_levels=True, with_confidence=True),
)
READ = {"judge": JUDGE, "judge, confidence": SURE, "acuity judge": LEVEL, "acuity judge, confidence": SURE_LEVEL}
GOOD = {"explanation": "It says so.", "criteria_met": True}
AROUND = st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="{}[]"), max_size=60).filter(
    lambda text: "<think>" not in text
)
WORDS = st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=60)
CONFIDENCES = st.floats(0, 1) | st.sampled_from([0, 1])
NOT_BOOLEAN = (
    st.none() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(["true", "false", "True", "yes", "met", 0, 1, 1.0])
    | st.lists(st.booleans(), max_size=2) | st.dictionaries(st.text(max_size=3), st.booleans(), max_size=2)
)  # fmt: skip


def as_json(**fields) -> str:
    return json.dumps(GOOD | fields)


# ---------------------------------------------------------------- what is read


@given(met=st.booleans(), why=WORDS, before=AROUND, after=AROUND, ascii_only=st.booleans())
def test_an_object_is_read_whatever_text_without_brackets_stands_around_it(met, why, before, after, ascii_only):
    reply = before + json.dumps({"explanation": why, "criteria_met": met}, ensure_ascii=ascii_only) + after
    assert JUDGE.read(reply) == Judged(Label.MET if met else Label.NOT_MET, why.strip())


@given(level=st.sampled_from([*"ABCD", "none"]), why=WORDS, confidence=CONFIDENCES, before=AROUND, after=AROUND)
def test_a_level_is_read_and_none_means_that_it_cannot_be_assessed(level, why, confidence, before, after):
    reply = before + json.dumps({"level": level, "confidence": confidence, "explanation": why}, indent=2) + after
    label = Label.CANNOT_ASSESS if level == "none" else Acuity(level)
    assert SURE_LEVEL.read(reply) == Judged(label, why.strip(), confidence)


@pytest.mark.parametrize(
    "reply",
    [
        as_json(),
        f"```json\n{as_json()}\n```",
        f"```\n{as_json()}\n```\n",
        f"Here is my verdict:\n\n{as_json()}\nLet me know if I can help.",
        f"\ufeff  {as_json()}  ",
        json.dumps(GOOD, indent=4),
        f"I looked at item [3] first. {as_json()} See [1].",
        f"<think>Perhaps {{\"criteria_met\": false}}? [No</think>\n{as_json()}",
        '{"criteria_met": true, "explanation": "It says so."}',
    ],
)  # fmt: skip
def test_fences_and_text_around_the_object_are_tolerated(reply):
    assert JUDGE.read(reply) == Judged(Label.MET, "It says so.")


def test_braces_in_the_explanation_are_text():
    assert (
        JUDGE.read(as_json(explanation='It says {"criteria_met": false} }{ ')).explanation
        == 'It says {"criteria_met": false} }{'
    )


def test_an_empty_explanation_is_tolerated_since_the_label_is_clear_without_it():
    assert JUDGE.read(as_json(explanation=" \n")) == Judged(Label.MET, "")


def test_an_explanation_holds_only_what_a_database_can():
    assert (
        JUDGE.read('{"explanation": "a\\u0000b\\ud800c\\ud83d\\ude00", "criteria_met": true}').explanation
        == "a\ufffdb\ufffdc😀"
    )


@pytest.mark.parametrize(
    ("stated", "read"), [("0", 0.0), ("1", 1.0), ("0.5", 0.5), ("1e-3", 0.001), ("-0.0", 0.0), ("1.0", 1.0)]
)
def test_a_confidence_is_a_number_from_0_to_1(stated, read):
    found = SURE.read(f'{{"explanation": "x", "criteria_met": false, "confidence": {stated}}}').confidence
    assert str(found) == str(float(read))  # no -0.0, which a database gives back as another number


# ---------------------------------------------------------------- what is refused

REFUSED = {
    "nothing": "",
    "prose": "The criterion is met.",
    "the word": "true",
    "a string of the object": json.dumps(as_json()),
    "true as a string": as_json(criteria_met="true"),
    "one": as_json(criteria_met=1),
    "null": as_json(criteria_met=None),
    "an array as the value": as_json(criteria_met=[True]),
    "an object as the value": as_json(criteria_met={"value": True}),
    "an array of it": f"[{as_json()}]",
    "an array of two": f"[{as_json()}, {as_json()}]",
    "in an array of others": f"[1, {as_json()}, 2]",
    "an array cut off": f"[{as_json()}",
    "an array in a fence": f"```json\n[\n{as_json()}\n]\n```",
    "nested": json.dumps({"verdict": GOOD}),
    "two equal": f"{as_json()}\n{as_json()}",
    "two different": f"{as_json()}\n{as_json(criteria_met=False)}",
    "two with a thought": f"<think>x</think>{as_json()} {as_json()}",
    "a draft in a thought that does not end": f'<think>{{"criteria_met": false}} so {as_json()}',
    "a brace before": f"{{ {as_json()}",
    "a brace after": f"{as_json()} }}",
    "no explanation": json.dumps({"criteria_met": True}),
    "no label": json.dumps({"explanation": "x"}),
    "another field": as_json(note="x"),
    "a confidence nobody asked for": as_json(confidence=0.5),
    "another name": json.dumps({"explanation": "x", "criterion_met": True}),
    "the field twice": '{"explanation": "x", "criteria_met": false, "criteria_met": true}',
    "the field twice and equal": '{"explanation": "x", "criteria_met": true, "criteria_met": true}',
    "the field twice, once escaped": '{"explanation": "x", "criteria_met": false, "criteria\\u005fmet": true}',
    "the explanation a number": as_json(explanation=3),
    "the explanation null": as_json(explanation=None),
    "the explanation a list": as_json(explanation=["x"]),
    "not a number": '{"explanation": "x", "criteria_met": NaN}',
    "Python": "{'explanation': 'x', 'criteria_met': True}",
    "a comma too many": '{"explanation": "x", "criteria_met": true,}',
    "a comment": '{"explanation": "x", /* ! */ "criteria_met": true}',
    "a bare line break in a string": '{"explanation": "x\ny", "criteria_met": true}',
    "cut off": '{"explanation": "x", "criteria_met": tr',
    "cut off in the explanation": '{"explanation": "it is {criteria_met: true}',
    "closing before opening": '} "criteria_met": true {',
    "empty object": "{}",
    "the label in capitals": '{"explanation": "x", "criteria_met": TRUE}',
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_one_such_object_is_no_verdict(name):
    with pytest.raises(JudgeReplyInvalid) as refused:
        JUDGE.read(REFUSED[name])
    assert str(refused.value)


@pytest.mark.parametrize(
    "stated",
    ["1.01", "-0.01", "2", "95", '"0.9"', '"high"', "null", "true", "false", "[0.5]", "{}", "NaN", "Infinity", "-Infinity", "1e400", "9" * 5_000],
)  # fmt: skip
def test_any_other_confidence_is_no_verdict(stated):
    with pytest.raises(JudgeReplyInvalid):
        SURE.read(f'{{"explanation": "x", "criteria_met": true, "confidence": {stated}}}')


@pytest.mark.parametrize(
    "level", ["a", "A ", "E", "", "A/B", "None", "NONE", "D now", None, 1, True, ["A"], {"A": 1}], ids=repr
)
def test_any_other_level_is_no_verdict(level):
    with pytest.raises(JudgeReplyInvalid, match="level: expected"):
        LEVEL.read(json.dumps({"explanation": "x", "level": level}))


def test_the_message_says_what_came_and_is_short():
    with pytest.raises(JudgeReplyInvalid, match='criteria_met: expected true or false, got "true"'):
        JUDGE.read(as_json(criteria_met="true"))
    with pytest.raises(JudgeReplyInvalid, match=r'Expected the field "criteria_met" once, got it twice'):
        JUDGE.read(REFUSED["the field twice"])
    for reply in (
        "x" * 100_000,
        as_json(criteria_met="y" * 100_000),
        json.dumps(GOOD | {f"f{n}": n for n in range(10_000)}),
    ):
        with pytest.raises(JudgeReplyInvalid) as refused:
            JUDGE.read(reply)
        assert len(str(refused.value)) < 300


@given(value=NOT_BOOLEAN, why=WORDS)
def test_no_other_type_is_taken_for_a_boolean(value, why):
    with pytest.raises(JudgeReplyInvalid):
        JUDGE.read(json.dumps({"explanation": why, "criteria_met": value}))


@given(
    field=st.sampled_from(["explanation", "criteria_met", "confidence"]),
    value=st.none() | st.lists(st.integers(), max_size=2) | st.dictionaries(st.text(max_size=2), st.none(), max_size=1),
)
def test_no_field_of_another_type_is_tolerated(field, value):
    with pytest.raises(JudgeReplyInvalid):
        SURE.read(json.dumps({"explanation": "x", "criteria_met": True, "confidence": 0.5} | {field: value}))


@given(reply=st.text(max_size=200) | st.text(alphabet='{}[]":, truefalsn\\expcriteria_m01', max_size=200))
def test_no_text_becomes_a_verdict_unless_it_holds_the_boolean(reply):
    for prompt in READ.values():
        try:
            label = prompt.read(reply).label
        except JudgeReplyInvalid:
            continue
        words = {Label.MET: "true", Label.NOT_MET: "false"}
        assert words.get(label, '"level"') in reply


@given(
    reply=st.sampled_from([as_json(), as_json(criteria_met=False)]),
    place=st.integers(0, 200),
    char=st.characters(exclude_categories=["Cs"]),
)
def test_one_changed_character_never_turns_a_verdict_around(reply, place, char):
    place %= len(reply)
    changed = reply[:place] + char + reply[place + 1 :]
    try:
        label = JUDGE.read(changed).label
    except JudgeReplyInvalid:
        return
    assert label == JUDGE.read(reply).label


# ---------------------------------------------------------------- hostile replies

N = 1_000_000
HOSTILE = {
    "opening braces": "{" * N,
    "closing braces": "}" * N,
    "pairs": "{}" * (N // 2),
    "nested objects": '{"a":' * 10_000 + "1" + "}" * 10_000,
    "nested arrays": as_json(explanation=0).replace("0", "[" * 10_000 + "]" * 10_000),
    "brackets around": "[" * 10_000 + as_json() + "]" * 10_000,
    "brackets all the way": "[" * N + "{" + "]" * N + "}",
    "quotation marks": '{"' + '"' * N + "}",
    "backslashes": '{"explanation": "' + "\\" * N + '"}',
    "many fields": "{" + ",".join(f'"f{n}": {n}' for n in range(60_000)) + "}",
    "one field over and over": "{" + '"a": 1,' * 150_000 + '"a": 1}',
    "digits": '{"explanation": "x", "criteria_met": ' + "9" * N + "}",
    "spaces": " " * N + "{" + " " * N,
    "thoughts": "<think>" * 140_000,
    "fences": "```json\n" * 120_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_reply_is_refused_soon(name):
    begun = time.process_time()
    with pytest.raises(JudgeReplyInvalid):
        JUDGE.read(HOSTILE[name])
    assert time.process_time() - begun < 1  # what looks at every pair of characters would take hours


def test_a_long_explanation_is_read_soon():
    begun = time.process_time()
    assert len(JUDGE.read(as_json(explanation="é{" * (N // 2))).explanation) == N
    assert time.process_time() - begun < 1
