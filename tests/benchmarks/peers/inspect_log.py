"""In the environment of Inspect: `python inspect_log.py make EXAMPLES.jsonl FOLDER` or `python inspect_log.py export FOLDER FILE.csv`."""

import json
import sys
from pathlib import Path

from inspect_ai.analysis import samples_df
from inspect_ai.log import EvalConfig, EvalDataset, EvalLog, EvalSample, EvalSpec, write_eval_log
from inspect_ai.model import ChatMessageUser, ModelOutput
from inspect_ai.scorer import Score

LOG = "2026-01-01T00-00-00+00-00_bench_one.eval"


def make(lines: Path, folder: Path) -> None:
    """A log with one sample a response, and one value a criterion."""
    samples = []
    for line in lines.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        words = "\n".join(f"{one['text']}: {one['explanation']}" for one in row["criteria"])
        score = Score(
            value={f"k{place}": one["label"] for place, one in enumerate(row["criteria"], 1)}, explanation=words
        )
        asked = [ChatMessageUser(content=row["question"])]
        output = ModelOutput.from_content("bench/model", row["answer"])
        samples.append(
            EvalSample(
                id=row["id"], epoch=1, input=asked, target="", messages=asked, output=output, scores={"rubric": score}
            )
        )
    spec = EvalSpec(
        created="2026-01-01T00:00:00+00:00",
        task="bench",
        dataset=EvalDataset(name="bench", samples=len(samples)),
        model="bench/model",
        config=EvalConfig(),
    )
    write_eval_log(EvalLog(status="success", eval=spec, samples=samples), str(folder / LOG))


def export(folder: Path, file: Path) -> None:
    """All its values as CSV."""
    samples_df(str(folder)).to_csv(file, index=False)


if __name__ == "__main__":
    {"make": make, "export": export}[sys.argv[1]](Path(sys.argv[2]), Path(sys.argv[3]))
