"""Fixtures of these tests."""

import json

import pytest

from tests.commands import PROMPT, RUBRIC


@pytest.fixture
def files(tmp_path):
    """An examples file and a results file on it: criteria judged + + -, so the score is (6 - 3) / 10."""
    example = {
        "prompt_id": "p-1",
        "prompt": PROMPT,
        "rubrics": RUBRIC,
        "example_tags": ["theme:hedging"],
        "canary": "c",
    }
    examples = tmp_path / "examples.jsonl"
    examples.write_text(json.dumps(example) + "\n")
    graded = [
        item | {"criteria_met": met, "explanation": "So it is."}
        for item, met in zip(RUBRIC, (True, True, False), strict=True)
    ]
    entry = {
        "prompt_id": "p-1",
        "prompt": PROMPT,
        "completion": [{"role": "assistant", "content": "Probably a virus."}],
        "completion_id": "k-1",
        "rubric_items": graded,
        "score": 0.3,
    }
    results = tmp_path / "invented_Alder-2_20261120_100000_allresults.json"
    results.write_text(
        json.dumps(
            {"score": 0.3, "metrics": {}, "htmls": [], "convos": [], "metadata": {"example_level_metadata": [entry]}}
        )
    )
    return examples, results


@pytest.fixture
def filled(overread, files):
    """A study that holds both files."""
    examples, results = files
    overread.good("import", examples, "--dataset", "invented", "--db", overread.db)
    overread.good("import", results, "--judge", "Magpie", "--db", overread.db)
    return overread
