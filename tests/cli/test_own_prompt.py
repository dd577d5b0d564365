"""A judge's prompt of one's own, from the split of physicians' labels to the check on the test set: `split`, `judge --prompt`, `judge-check`, `prompts`."""

import csv
import json

import pytest

from tests.run_commands import everything

TEXT = """You judge answers on health, strictly.

{conversation}
{response}
{criterion}

Reply as told. {"explanation": "...", "criteria_met": true}
"""


@pytest.fixture
def read_by_physicians(overread, larger_run, judge, tmp_path):
    """30 conversations with 2 criteria, each read by two physicians who agree; the judge is the server. Runs `overread` on it."""
    from tests.run_commands import models_file, on_study

    models_file(overread.folder, judge.base_url)
    path = tmp_path / "reads.csv"
    with path.open("w", newline="") as lines:
        writer = csv.writer(lines)
        writer.writerow(["example_id", "model", "criterion_position", "rater", "label", "explanation", "stage"])
        for number in range(30):
            for position in (1, 2):
                for rater in ("Dr. A", "Dr. B"):
                    label = "met" if (number + position) % 3 else "not_met"
                    writer.writerow([f"prompt-{number}", "Alder-2", position, rater, label, "So it says.", "first"])
    run = on_study(overread, larger_run)
    run("import", path, "--dataset", "invented")
    (tmp_path / "strict.txt").write_text(TEXT)
    return run


def test_a_prompt_made_with_the_train_set_is_checked_on_the_test_set_and_refused_on_its_own(
    read_by_physicians, tmp_path, larger_run, judge
):
    run = read_by_physicians
    said = run("split", "sets", "--seed", "4", "--shares", "50,0,50")
    assert said.startswith("60 labelled items; conversations: train ")
    judge.told.keep = True
    run("judge", "--judge", "Magpie", "--prompt", "strict.txt", "--made-with", "sets/train.jsonl", "--json")
    (listed,) = json.loads(run("runs", "--json"))
    assert listed["prompt_version"].startswith("strict@")
    assert len(listed["prompt_version"]) == len("strict@") + 8
    assert larger_run.rows("SELECT name, prompt_version FROM rater WHERE kind = 'judge'") == [
        ("Magpie", listed["prompt_version"])
    ]
    sent = judge.told.bodies[0]["messages"][1]["content"]
    assert "You judge answers on health, strictly.\n\n[" in sent
    assert "Names sign" in sent
    assert sent.endswith('Reply as told. {"explanation": "...", "criteria_met": true}')

    checked = ("judge-check", "--judge", "Magpie", "--min-f1", "0", "--json", "--gold")
    report = json.loads(run(*checked, "sets/test.jsonl"))
    n_test = len((tmp_path / "sets" / "test.jsonl").read_text().splitlines())
    assert (report["n_used"], report["not_stated"]) == (n_test, [])
    refused = run.ended(*checked, "sets/train.jsonl")
    assert refused.returncode == 2
    assert "Magpie: expected conversations that it was not made with, got " in refused.stderr
    assert f"train of seed 4 (50, 0, 50 %), with which prompt {listed['prompt_version']} was made" in refused.stderr
    run("export", "labels.csv", "--read-only")  # the same labels by another file are the same conversations
    assert "it was not made with" in run.ended(*checked, "labels.csv").stderr

    run("judge", "--judge", "Magpie", "--json")  # Overread's own prompt, of which nobody says anything
    ours, theirs = json.loads(run("prompts", "--json"))[::-1]
    assert theirs["made_with"] == ["train of seed 4 (50, 0, 50 %)"]
    found = json.loads(run("prompts", "--from", ours["prompt"], "--to", theirs["prompt"], "--json"))
    assert (found["n_items"], found["n_seen"], found["not_stated"]) == (n_test, 60 - n_test, [ours["prompt"]])
    assert f"on {n_test} items" in run("prompts", "--from", ours["prompt"], "--to", theirs["prompt"])


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{conversation} {response}", "it lacks {criterion}"),
        ("{conversation} {response} {criterion} {answer}", "there is no {answer}"),
        ("{conversation} {response} {criterion} {criterion}", "it has {criterion} 2 times"),
        ("{Conversation} {response} {criterion}", "it lacks {conversation}; there is no {Conversation}"),
        ("", "it lacks {conversation}; it lacks {response}; it lacks {criterion}"),
    ],
)
def test_a_prompt_with_other_fields_is_one_sentence_and_nothing_is_asked(asked, quick_run, overread, text, sentence):
    (overread.folder / "mine.txt").write_text(text)
    before = everything(quick_run)
    said = asked.bad("judge", "--judge", "Magpie", "--prompt", "mine.txt")
    assert said.startswith(
        "prompt mine: expected {conversation}, {response}, {criterion} once each, and {points} if wanted; "
    )
    assert sentence in said
    assert everything(quick_run) == before


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        (
            "judge.txt",
            TEXT.encode(),
            "prompt: expected a file named by letters, digits, hyphens and underscores, and not judge",
        ),
        ("a#2.txt", TEXT.encode(), "prompt: expected a file named by letters"),
        ("mine.txt", b"\xff", "prompt mine.txt: byte 1: expected UTF-8"),
        ("mine.txt", b"x" * 64_001, "prompt mine.txt: expected at most 64,000 bytes, got 64,001"),
    ],
)
def test_a_file_that_is_no_prompt_is_one_sentence(asked, overread, name, content, sentence):
    (overread.folder / name).write_bytes(content)
    assert sentence in asked.bad("judge", "--judge", "Magpie", "--prompt", name)


def test_a_set_that_this_study_did_not_write_is_refused(asked, overread):
    (overread.folder / "mine.txt").write_text(TEXT)
    (overread.folder / "train.jsonl").write_text("{}\n")
    said = asked.bad("judge", "--judge", "Magpie", "--prompt", "mine.txt", "--made-with", "train.jsonl")
    assert "got train.jsonl, which the audit trail does not know" in said
