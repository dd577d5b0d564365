"""What file names tell."""

import pytest
from hypothesis import given, strategies as st

from evalcore.importing import named_dataset, told_by_name
from evalcore.importing.context import Options
from evalcore.importing.files.streams import most_unpacked
from evalcore.importing.formats import FORMATS
from evalcore.importing.formats.inspect_logs import without_provider
from evalcore.importing.formats.values import cell, shown_apart


@pytest.mark.parametrize(
    ("name", "dataset", "subset", "model"),
    [
        ("healthbench_model-x_20260101_101010_allresults.json", "healthbench", None, "model-x"),
        ("healthbench_hard_model-x_20260101_101010_allresults.json", "healthbench", "hard", "model-x"),
        ("healthbench_consensus_model_x_20260101_101010_allresults.json.gz", "healthbench", "consensus", "model_x"),
        ("healthbench_hard_model-x_20260101_101010_again_allresults.json", "healthbench", "hard", "model-x_again"),
        ("2025-05-07-06-14-12_oss_eval.jsonl", "healthbench", "oss_eval", None),
        ("hard_2025-05-08-21-00-10.jsonl", "healthbench", "hard", None),
        ("consensus_2025-05-09-20-00-46.jsonl.gz", "healthbench", "consensus", None),
        ("2025-05-07-06-14-12_oss_meta_eval.jsonl", "healthbench", None, None),
        ("orchard.jsonl", "healthbench", None, None),
        ("a.b.c", "healthbench", None, None),
        ("", "healthbench", None, None),
    ],
)
def test_a_name_tells_data_set_part_and_model(name, dataset, subset, model):
    told = told_by_name(name)
    assert (told.dataset, told.subset, told.model, told.judge) == (dataset, subset, model, None)


@given(st.text())
def test_any_name_tells_something(name):
    assert told_by_name(name).dataset


@given(st.text(min_size=1))
def test_a_data_sets_name_is_the_family_and_its_part(name):
    family, subset = named_dataset(name)
    assert name == (f"{family}_{subset}" if subset else family)


def test_every_format_says_what_it_is_and_what_its_fields_mean():
    for name, file_format in FORMATS.items():
        assert name == file_format.name
        assert file_format.title
        assert all(file_format.columns.values())


def test_names_of_files_of_data_sets_and_of_models_are_taken_apart():
    told = told_by_name("healthbench_hard_gpt-x_20260113_121425_tta_allresults.json")
    assert told == Options(dataset="healthbench", subset="hard", model="gpt-x_tta", judge=None)
    assert told_by_name("consensus_2025-05-09-20-00-46.jsonl.gz").subset == "consensus"
    assert (named_dataset("healthbench_hard"), named_dataset("clinic")) == (("healthbench", "hard"), ("clinic", None))
    assert Options(subset="hard").evaluation == "healthbench_hard"
    assert list(map(without_provider, ("openai/gpt-x", "openrouter/lab/m", "m"))) == ["gpt-x", "lab/m", "m"]


def test_a_file_may_unpack_to_a_hundred_times_its_size_and_to_some_in_any_case():
    assert (most_unpacked(13_000), most_unpacked(6_000_000)) == (50_000_000, 600_000_000)


def test_two_texts_are_shown_from_shortly_before_where_they_differ():
    assert shown_apart("rest " * 30 + "today", "rest " * 30 + "now") == ("'…rest rest today'", "'…rest rest now'")
    assert shown_apart("Rest" + " now" * 40, "You" + " rest now" * 40)[0][:12] == "'Rest now no"


def test_a_value_is_the_text_of_a_cell():
    assert [cell("a", value, ()) for value in (12.0, True, float("nan"), None)] == ["12", "true", "", ""]
