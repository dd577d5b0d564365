"""Make the logs beside this file by running inspect_ai with its mock model. Run by hand, in an environment of its own with inspect_ai 0.3.285:

    python tests/inspect_logs/make.py

Everything in the logs is invented. The model's answers come with their counts of tokens, because the mock model would fetch a tokenizer to count
them. Two things are changed after inspect_ai has written them, by inspect_ai itself (`read_eval_log`, edit, `write_eval_log`): what Python says of
where an error stood, which names folders of the machine, and nothing else. A log that was stopped in the middle is left as it was. Last, every
member of every log is searched for paths and names of this machine.
"""

import getpass
import gzip
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from inspect_ai import Task, eval as run, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import read_eval_log, write_eval_log
from inspect_ai.model import (
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    ContentText,
    ModelOutput,
    ModelUsage,
    get_model,
)
from inspect_ai.scorer import Score, accuracy, includes, mean, scorer
from inspect_ai.solver import generate, solver, system_message

BROKEN = "The sandbox did not start."
ARABIC = "عمري ثلاثون عاما وعندي حمى منذ يومين، ماذا أفعل؟"
ARABIC_ANSWER = "اشرب الماء واسترح، وراجع الطبيب إن طالت الحمى."
RUBRICS = {
    "fever-1": [
        {"criterion": "Advises to drink enough", "points": 5, "tags": ["axis:completeness"], "met": "water"},
        {"criterion": "Names a dose of an antibiotic", "points": -6, "tags": ["axis:accuracy"], "met": "mg"},
    ],
    "fever-ar": [{"criterion": "يجيب بلغة السائل", "points": 4, "tags": [], "met": "الماء"}],
}
CASES = {"clinic_1": ("I have crushing chest pain.", "D"), "clinic_2": ("My nose has been running for a day.", "B")}


def said(text: str) -> ModelOutput:
    """An answer with its counts."""
    output = ModelOutput.from_content("alder-2", text)
    output.usage = ModelUsage(input_tokens=11, output_tokens=7, total_tokens=18)
    return output


def answer(messages, _tools, _choice, _config) -> ModelOutput:
    """What the mock model says: by the last question."""
    asked = messages[-1].text
    if asked == ARABIC:
        return said(ARABIC_ANSWER)
    if "chest" in asked:
        return said("Call an ambulance now.\n\nACUITY: D")
    if "nose" in asked:
        return said("Rest at home.\n\nACUITY: A")
    return said("Drink water and rest. Epoch by epoch I say the same.")


def model():
    return get_model("mockllm/alder-2", custom_outputs=answer, memoize=False)


def grader():
    return get_model("mockllm/magpie", custom_outputs=lambda *_: said("true"), memoize=False)


@scorer(metrics=[mean()])
def rubric():
    """A judge's verdict on each criterion; met where a word of it is in the answer."""

    async def score(state, _target):
        text = state.output.completion
        items = [
            {key: item[key] for key in ("criterion", "points", "tags")}
            | {
                "criteria_met": item["met"] in text,
                "explanation": f"It {'says' if item['met'] in text else 'does not say'} so.",
            }
            for item in RUBRICS[state.sample_id]
        ]
        return Score(value=0.5, explanation="See the items.", metadata={"rubric_items": items, "n_items": len(items)})

    return score


@scorer(metrics=[accuracy()])
def level():
    """The level of care that an answer recommends, as inspect_ai's own scorers write it: the letter is the answer, C means correct."""

    async def score(state, target):
        letter = state.output.completion[-1]
        return Score(value="C" if letter == target.text else "I", answer=letter, explanation="Read from the last line.")

    return score


@scorer(metrics=[])
def recommended():
    """The same as a value, with the judge's name beside it."""

    async def score(state, _target):
        return Score(value=state.output.completion[-1], metadata={"judge_model": "openai/heron-1"})

    return score


@solver
def fails_on(text: str):
    async def solve(state, _generate):
        if text in state.input_text:
            raise RuntimeError(BROKEN)
        return state

    return solve


@solver
def stops_at(n: int):
    """End the whole process at the n-th sample, as a power cut would."""
    begun = []

    async def solve(state, _generate):
        begun.append(state.sample_id)
        if len(begun) == n:
            os._exit(3)
        return state

    return solve


QUESTIONS = [
    Sample(id="fever-1", input="I have had a fever of 39 since yesterday. What should I do?", target="water"),
    Sample(id="fever-ar", input=[ChatMessageUser(content=ARABIC)], target="الماء"),
]


@task
def fever_advice():
    """Two questions, two epochs, a rubric."""
    return Task(
        dataset=MemoryDataset(QUESTIONS, name="fever"),
        solver=[system_message("Answer briefly."), generate()],
        scorer=[rubric(), includes()],
        epochs=2,
    )


@task
def levels_of_care():
    """Two cases of triage: one as the patient wrote it, one within a question that names the levels."""
    samples = [
        Sample(id="clinic_1", input=CASES["clinic_1"][0], target="D"),
        Sample(
            id="clinic_2", input=f"Which level of care, A to D, does this need?\n\n{CASES['clinic_2'][0]}", target="B"
        ),  # the answer says A
    ]
    return Task(dataset=MemoryDataset(samples, name="clinic"), solver=generate(), scorer=[level(), recommended()])


@task
def odd_samples():
    """One sample with an error, one whose question is a conversation in parts, numbered by inspect_ai itself."""
    talk = [
        ChatMessageSystem(content="You are a nurse."),
        ChatMessageUser(content=[ContentText(text="I feel hot."), ContentText(text="Is that a fever?")]),
        ChatMessageAssistant(content="Have you measured it?"),
        ChatMessageUser(content="38.5"),
    ]
    samples = [Sample(input="This one fails.", target="x"), Sample(input=talk, target="water")]
    return Task(dataset=MemoryDataset(samples, name="odd"), solver=[fails_on("fails"), generate()], scorer=includes())


@task
def stopped_early():
    """Stops in its third sample."""
    samples = [Sample(id=f"stop-{n}", input=f"Question {n} about water?", target="water") for n in (1, 2, 3, 4)]
    return Task(dataset=MemoryDataset(samples, name="stopped"), solver=[stops_at(3), generate()], scorer=includes())


SETTINGS = {
    "display": "none",
    "log_dir": "logs",
    "max_samples": 1,
    "fail_on_error": False,
    "log_buffer": 1,
    "log_realtime": False,
}


def made(what, *, log_format: str = "eval", **more) -> Path:
    """Run a task. Returns its log."""
    (log,) = run(what, model=model(), log_format=log_format, **SETTINGS | more)
    return Path(log.location.removeprefix("file://"))


def without_places(path: Path) -> None:
    """Write a log again without what Python says of where errors stood."""
    log = read_eval_log(str(path))
    for sample in log.samples:
        errors = [sample.error, *(event.error for event in sample.events if event.event == "error")]
        for error in filter(None, errors):
            error.traceback = error.traceback_ansi = f"RuntimeError: {BROKEN}"
    write_eval_log(log, str(path))


def check(path: Path, target: Path) -> None:
    """No path or name of this machine is in a log."""
    places = [
        "/tmp",
        "/root",
        "/home",
        "/Users",
        "site-packages",
        str(Path.cwd()),
        str(target),
        f"/{getpass.getuser()}/",
    ]
    hidden = re.compile("|".join([*map(re.escape, places), rf"\b{re.escape(socket.gethostname())}\b"]).encode())
    texts = {path.name: path.read_bytes()}
    if path.suffix == ".eval":
        with zipfile.ZipFile(path) as packed:  # inspect_ai has taught zipfile to read zstandard
            texts = {name: packed.read(name) for name in packed.namelist()}
    for name, text in texts.items():
        if found := hidden.search(text):
            sys.exit(f"{path.name}: {name} holds {text[max(0, found.start() - 60) : found.end() + 60]!r}")
    sys.stdout.write(f"{path.name}: {path.stat().st_size:,} bytes, {len(texts)} members\n")


def main() -> None:
    """Run in a folder of its own that is in no repository: a log names the file of its task and the commit of the folder where it was made."""
    if sys.argv[1:] == ["stop"]:
        made(stopped_early())
    elif sys.argv[1:2] == ["run"]:
        write_all(Path(sys.argv[2]))
    else:
        with tempfile.TemporaryDirectory() as folder:
            shutil.copyfile(__file__, Path(folder) / "tasks.py")
            target = str(Path(__file__).resolve().parent)
            subprocess.run([sys.executable, "tasks.py", "run", target], check=True, cwd=folder)


def write_all(target: Path) -> None:
    """Make the logs in this folder, check them, and copy them to another."""
    roles = {"model_roles": {"grader": grader()}}
    logs = {
        "rubric.eval": made(fever_advice(), **roles),
        "rubric.json": made(fever_advice(), log_format="json", **roles),
        "levels.eval": made(levels_of_care()),
        "odd.eval": made(odd_samples()),
    }
    without_places(logs["odd.eval"])
    before = set(Path("logs").iterdir())
    stopped = subprocess.run([sys.executable, "tasks.py", "stop"], check=False)
    assert stopped.returncode == 3
    (logs["stopped.eval"],) = set(Path("logs").iterdir()) - before
    for name, path in logs.items():
        check(path, target)
        if path.suffix == ".json":
            (target / f"{name}.gz").write_bytes(gzip.compress(path.read_bytes(), mtime=0))
        else:
            shutil.copyfile(path, target / name)


if __name__ == "__main__":
    main()
