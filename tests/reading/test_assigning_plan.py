"""A plan names the items to read, each with its probability; one that cannot be read or does not fit names its line."""

import json
import re

import pytest
from hypothesis import given, strategies as st

from evalcore.errors import NotFound, OverreadError
from evalcore.reading.assigning import Choice, assign, read_plan
from evalcore.reading.assignment_queries import Planned
from evalcore.study.schema import Administrator, Ask
from tests import world
from tests.assigning_steps import LEAD, refused, tasks


def test_a_plan_brings_its_own_probabilities(five_examples):
    plan = read_plan(
        b"\xef\xbb\xbfprompt_id,model,inclusion_probability\r\nprompt-0,Birch-1,0.25\r\nprompt-3,Alder-2,1\r\n\r\nprompt-1,Alder-2,1e-3\r\n"
    )
    done = assign(five_examples.engine, Choice(plan=plan, seed=3), actor=Administrator(name=LEAD))
    wanted = {
        (1, five_examples.responses[1], 0.25),
        (4, five_examples.responses[6], 1.0),
        (2, five_examples.responses[2], 0.001),
    }
    assert {(example, response, share) for example, response, _, share in tasks(five_examples)} == wanted
    assert (done.n_items, done.n_population) == (3, 3)
    ((selection, chosen_by),) = world.rows(five_examples.engine, "SELECT selection, chosen_by FROM assignment")
    assert (selection, json.loads(chosen_by)) == ("importance", {"plan": 3})


def test_a_plan_of_cases_names_no_model(five_examples):
    plan = read_plan(b"prompt_id,inclusion_probability\nprompt-4,0.5\n")
    assign(five_examples.engine, Choice(ask=Ask.GOLD_ACUITY, plan=plan), actor=Administrator(name=LEAD))
    assert tasks(five_examples) == [(5, None, 1, 0.5)]


def test_what_is_assigned_already_falls_out_of_a_plan_and_the_rest_keeps_its_probability(five_examples):
    plan = read_plan(b"prompt_id,model,inclusion_probability\nprompt-0,Alder-2,0.25\nprompt-1,Alder-2,0.125\n")
    assign(five_examples.engine, Choice(plan=plan[:1]), actor=Administrator(name=LEAD))
    done = assign(five_examples.engine, Choice(plan=plan), actor=Administrator(name=LEAD))
    assert (done.n_items, done.n_waiting) == (1, 1)
    assert tasks(five_examples, done.assignment_id) == [(2, five_examples.responses[2], 1, 0.125)]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "plan line 1: expected the columns prompt_id and inclusion_probability, got nothing"),
        (b"prompt_id,share\np,1\n", "plan line 1: expected the columns prompt_id and inclusion_probability, got prompt_id, share"),
        (b"prompt_id;inclusion_probability\np;1\n", "plan line 1: expected the columns prompt_id and inclusion_probability, got prompt_id;inclusion_probability"),
        (b"prompt_id,inclusion_probability\n", "plan line 2: expected an item below the names of the columns, got nothing"),
        (b"prompt_id,inclusion_probability\np,1\nq,0\n", "plan line 3: inclusion_probability: expected a number above 0 and at most 1, got '0'"),
        (b"prompt_id,inclusion_probability\np,1.01\n", "plan line 2: inclusion_probability: expected a number above 0 and at most 1, got '1.01'"),
        (b"prompt_id,inclusion_probability\np,nan\n", "plan line 2: inclusion_probability: expected a number above 0 and at most 1, got 'nan'"),
        (b"prompt_id,inclusion_probability\np,-inf\n", "plan line 2: inclusion_probability: expected a number above 0 and at most 1, got '-inf'"),
        (b"prompt_id,inclusion_probability\np,half\n", "plan line 2: inclusion_probability: expected a number above 0 and at most 1, got 'half'"),
        (b"prompt_id,inclusion_probability\np\n", "plan line 2: inclusion_probability: expected a number above 0 and at most 1, got ''"),
        (b"prompt_id,inclusion_probability\n,1\n", "plan line 2: prompt_id: expected how the study names the conversation, got ''"),
        (b'prompt_id,inclusion_probability\n"a\x00b",1\n', "plan line 2: prompt_id: expected how the study names the conversation, got 'a\\x00b'"),
        (b'prompt_id,inclusion_probability\n"a\nb",1\nq,2\n', "plan line 4: inclusion_probability: expected a number above 0 and at most 1, got '2'"),  # one row on two lines
        (b"prompt_id,inclusion_probability\n\np,2\n", "plan line 3: inclusion_probability: expected a number above 0 and at most 1, got '2'"),  # an empty line counts
        (b"prompt_id,inclusion_probability,sample_index\np,1,-1\n", "plan line 2: sample_index: expected a whole number, 0 or more, got '-1'"),
        (b"prompt_id,inclusion_probability,sample_index\np,1,1.5\n", "plan line 2: sample_index: expected a whole number, 0 or more, got '1.5'"),
        (b"prompt_id,inclusion_probability,sample_index\np,1,2147483648\n", "plan line 2: sample_index: expected a whole number, 0 or more, got '2147483648'"),
        (b"\xff\xfe", "plan: 'utf-8' codec can't decode"),
        (b"prompt_id,inclusion_probability\n" + b"x" * 1_001 + b",1\n", "plan line 2: prompt_id, model, dataset: expected names of at most 1,000 characters, got a longer one"),
    ],
)  # fmt: skip
def test_a_plan_that_cannot_be_read_names_the_line_what_came_and_what_was_expected(content, sentence):
    with pytest.raises(OverreadError, match="^" + re.escape(sentence)):
        read_plan(content)


def test_a_number_of_thousands_of_digits_is_a_fault_with_a_sentence():
    with pytest.raises(
        OverreadError,
        match=r"^plan line 2: sample_index: expected a whole number, 0 or more, got '9999999999999999999999999999999999999999999999999999999999999999999999999999999999",
    ):
        read_plan(b"prompt_id,inclusion_probability,sample_index\np,1," + b"9" * 5_000)


@given(
    st.binary(max_size=200)
    | st.text(max_size=80).map(lambda said: ("prompt_id,inclusion_probability\n" + said).encode())
)
def test_whatever_bytes_come_as_a_plan_they_are_read_or_refused_with_a_sentence(content):
    refusal, found = "", ()
    try:
        found = read_plan(content)
    except OverreadError as error:
        refusal = str(error)
    assert refusal.startswith(("plan ", "plan:")) or found
    assert all(line.prompt_id and 0 < line.probability <= 1 and line.line >= 2 for line in found)


UNFITTING = [
    (Ask.RUBRIC, "prompt-0,Alder-2,0,1\nprompt-9,Alder-2,0,1", "plan line 3: prompt_id 'prompt-9' by model 'Alder-2': expected one item of the study (model, sample_index and dataset tell which), got 0"),
    (Ask.RUBRIC, "prompt-0,Alder-2,1,1", "plan line 2: prompt_id 'prompt-0' by model 'Alder-2': expected one item of the study (model, sample_index and dataset tell which), got 0"),
    (Ask.RUBRIC, "prompt-0,,0,1", "plan line 2: prompt_id 'prompt-0': expected one item of the study (model, sample_index and dataset tell which), got 2"),
    (Ask.RUBRIC, "prompt-4,Alder-2,0,1", "expected a response with a rubric to read, got plan line 2: prompt_id 'prompt-4' by model 'Alder-2', which has no criteria"),
    (Ask.RUBRIC, "prompt-1,Alder-2,0,1\nprompt-0,Alder-2,0,1\nprompt-1,Alder-2,,0.5",
     "expected each item once, got plan line 4: prompt_id 'prompt-1' by model 'Alder-2', which plan line 2 names already"),
    (Ask.GOLD_ACUITY, "prompt-1,,0,1\nprompt-1,Alder-2,0,1", "expected each item once, got plan line 3: prompt_id 'prompt-1' by model 'Alder-2', which plan line 2 names"),
]  # fmt: skip


def test_a_plan_that_the_study_does_not_fit_names_its_line_and_leaves_nothing(five_examples):
    for ask, lines, sentence in UNFITTING:
        plan = read_plan(f"prompt_id,model,sample_index,inclusion_probability\n{lines}\n".encode())
        refused(five_examples, Choice(ask=ask, plan=plan), sentence)
    elsewhere = Choice(plan=(Planned("prompt-0", "Alder-2", 0, 1.0, "elsewhere"),))
    refused(
        five_examples,
        elsewhere,
        "plan: prompt_id 'prompt-0' by model 'Alder-2': expected one item of the study (model, sample_index and dataset tell which), got 0",
        error=NotFound,
    )


def test_a_plan_and_a_number_of_items_contradict_each_other(five_examples):
    refused(five_examples, Choice(plan=(Planned("prompt-0", "Alder-2", 0, 1.0),), n_items=1), "a plan says itself")
