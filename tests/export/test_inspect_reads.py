"""The real inspect_ai reads the scores that Overread writes: in an environment of its own, since it is none of the packages of these tests."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from evalcore.export import judging_material as material
from evalcore.export.tables import Part
from evalcore.study.schema import Label
from tests import world

PYTHON = "OVERREAD_INSPECT_PYTHON"  # names a Python that has inspect_ai, so that it is not installed anew

SCORED = textwrap.dedent(
    """
    import json, sys
    from inspect_ai import Task, eval
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.model import ModelOutput, ModelUsage, get_model
    from inspect_ai.scorer import mean, precomputed_scores

    def said():  # with its counts, since the mock model would fetch a tokenizer to count them
        output = ModelOutput.from_content("mockllm/model", "Rest.")
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        return output

    path, ids = sys.argv[1], json.loads(sys.argv[2])
    task = Task(dataset=MemoryDataset([Sample(input="?", id=name) for name in ids]), epochs=2,
                scorer=precomputed_scores(path, metrics=[mean()]))
    model = get_model("mockllm/model", custom_outputs=[said() for _ in range(2 * len(ids))])
    (log,) = eval(task, model=model, log_dir=sys.argv[3], display="none")
    samples = [[s.id, s.epoch, [[x.value, x.answer, x.explanation, x.metadata] for x in (s.scores or {}).values()]] for s in log.samples]
    print(json.dumps({"status": log.status, "samples": samples, "mean": {name: metric.value for score in log.results.scores for name, metric in score.metrics.items()}}))
    """
)


@pytest.fixture(scope="module")
def python_with_inspect(tmp_path_factory):
    """A Python that can import inspect_ai; skips, with the installer's last words, where it cannot be had."""
    if named := os.environ.get(PYTHON):
        return named
    folder = tmp_path_factory.mktemp("inspect")
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    python = str(folder / "bin" / "python")
    try:
        done = subprocess.run(
            [python, "-m", "pip", "install", "-q", "inspect_ai"], capture_output=True, text=True, timeout=600, check=False
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        pytest.skip("inspect_ai could not be installed within 10 minutes")
    if done.returncode:
        pytest.skip(f"inspect_ai could not be installed: {done.stderr.strip().splitlines()[-1][:200]}")
    return python


@pytest.mark.slow
def test_inspect_ai_gives_each_sample_and_epoch_the_score_that_physicians_settled(python_with_inspect, tmp_path):
    small = world.made(f"sqlite:///{tmp_path}/study.db", points=((7, -4), (5, 3)))
    for criterion, label in enumerate((Label.MET, Label.MET)):
        world.said(small, label, criterion=criterion, explanation="So it says.")
    for criterion, label in enumerate((Label.MET, Label.NOT_MET)):
        world.said(small, label, example=1, criterion=criterion)
    scores = material.inspect_scores(small.engine, Part(model="Alder-2"))
    path = tmp_path / "scores.jsonl"
    path.write_bytes(scores.content)
    ids = json.dumps(["prompt-0", "prompt-1", "elsewhere"])
    done = subprocess.run(
        [python_with_inspect, "-c", SCORED, str(path), ids, str(tmp_path / "logs")],
        capture_output=True, text=True, timeout=300, check=False, cwd=Path(tmp_path),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    read = json.loads(done.stdout.splitlines()[-1])
    assert read["status"] == "success"
    assert read["mean"] == {"mean": pytest.approx((3 / 7 + 5 / 8) / 2)}  # what nobody read is not counted as 0
    found = {(name, epoch): said for name, epoch, said in read["samples"]}
    written = {(line["id"], line["epoch"]): line for line in map(json.loads, scores.content.splitlines())}
    # (7 - 4) / 7 and 5 / (5 + 3); there is no second answer, nobody has read "elsewhere"
    assert {key: line["value"] for key, line in written.items()} == {
        ("prompt-0", 1): pytest.approx(3 / 7), ("prompt-1", 1): pytest.approx(5 / 8),
    }  # fmt: skip
    for key, said in found.items():
        line = written.get(key)
        expected = [] if line is None else [[line[name] for name in ("value", "answer", "explanation", "metadata")]]
        assert said == expected, key
    small.engine.dispose()
