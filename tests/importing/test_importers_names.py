"""What file names tell."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcore.importing import named_dataset, told_by_name
from evalcore.importing.formats import FORMATS


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
