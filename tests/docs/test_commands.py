"""Every command in README and docs: what can run here runs on the demo study, and all name commands and options that exist."""

import json
import re
import shutil
from pathlib import Path

import pytest
from typer.main import get_command

from evalcore.__main__ import app
from evalcore.importing.formats import template
from evalcore.importing.mapping import keep, parse
from evalcore.study.db import connect
from evalcore.study.schema import Administrator
from tests.docs.blocks import DOCS, NOT_TESTED, ROOT, blocks, named
from tests.run_commands import models_file
from tests.team.test_docs import drill

FILES = {
    "examples.jsonl": "healthbench-examples", "healthbench_my-model_20260901_090000_allresults.json": "simple-evals", "log.eval": "inspect-log",
    "reads.csv": "verdict-table", "cases.csv": "acuity-cases", "votes.csv": "acuity-votes",
    "predictions.csv": "acuity-predictions", "responses.csv": "responses", "graded.jsonl": "graded-responses", "grades.csv": "grade-table",
}  # fmt: skip
"""Files that stand in the folder, by the template that each is."""
WORDS = {
    "NAME_allresults.json": "healthbench_my-model_20260901_090000_allresults.json", "NAME": "Magpie", "OLD": "Magpie", "NEW": "Wren",
    "NEW,OLD": "Alder-2,Briar-1", "NAME,OTHER,THIRD": "Magpie,Wren,my-judge", "score:MODEL:0.03": "score:Alder-2:0.03", "MODEL": "Alder-2",
    "DATASET": "overread-demo",
}  # fmt: skip
"""What a reader writes in place of these words."""
OURS = {
    "results": {
        "items": [{
            "prompt_text": "Can I swim with a cold?", "log": {"messages": [{"role": "assistant", "content": "With a fever no."}]},
            "system": "my-model", "scores": [{"name": "Names fever.", "value": "fulfilled"}, {"name": "Is friendly.", "value": 3}],
        }]
    }
}  # fmt: skip
"""A document with the names that the mapping in docs/own-data.md gives."""
ASKING = {"respond": ["--dataset", "overread-demo"], "judge": ["--dataset", "overread-demo"], "triage-run": []}
"""Would ask a model: tried without (`tests/runs/` has them with one); of the data sets that the folder's files make two."""
SIGN_IN = {
    "OVERREAD_PUBLIC_URL": "https://overread.example", "OVERREAD_OIDC_ISSUER": "https://id.example", "OVERREAD_OIDC_CLIENT_ID": "overread",
    "OVERREAD_OIDC_CLIENT_SECRET": "invented",
}  # fmt: skip
ELSEWHERE = {"download": "tests/importing/test_downloading.py", "serve": "tests/test_serving.py"}
"""Wants the network or does not end: the test that has it."""


@pytest.fixture
def folder(overread, demo_file: Path) -> Path:
    shutil.copyfile(demo_file, overread.db)
    for name, of_format in FILES.items():
        shutil.copyfile(template(of_format), overread.folder / name)
    demo = ROOT / "data" / "demo"
    shutil.copyfile(demo / "guideline.md", overread.folder / "guideline.md")
    of_new_judge = (demo / "wren_verdicts.jsonl").read_text("utf-8").replace('"Wren"', '"Robin"')
    (overread.folder / "verdicts.jsonl").write_text(of_new_judge, "utf-8")
    lines = (demo / "demo_examples.jsonl").read_text("utf-8").splitlines()
    planned = [f"{json.loads(line)['prompt_id']},{model},0.5" for line in lines for model in ("Alder-2", "Briar-1")]
    (overread.folder / "plan.csv").write_text("\n".join(["prompt_id,model,inclusion_probability", *planned]), "utf-8")
    prompt = next(block for block in blocks(ROOT / "docs" / "compare-judges.md") if "{criterion}" in block.text)
    (overread.folder / "strict.txt").write_text(prompt.text, "utf-8")
    mapping, *others = [block.text for block in blocks(ROOT / "docs" / "own-data.md") if block.language == "yaml"]
    assert [parse(text, "docs/own-data.md").format for text in others] == ["grade-table", "verdict-table"]
    (overread.folder / "ours.yaml").write_text(mapping, "utf-8")
    engine = connect(str(overread.db))
    keep(engine, "ours", parse(mapping, "ours"), actor=Administrator(name="tester"))
    engine.dispose()
    (overread.folder / "ours.jsonl").write_text(json.dumps(OURS), "utf-8")
    models_file(overread.folder, "http://127.0.0.1:9", "Magpie")
    return overread.folder


SLOW = {"README", "export"}  # tens of commands
RUN = [
    pytest.param(path, id=path.stem, marks=pytest.mark.slow if path.stem in SLOW else ())
    for path in DOCS
    if any(block.is_run for block in blocks(path))
]


@pytest.mark.parametrize("path", RUN)
def test_every_command_of_a_document_runs(path: Path, folder: Path, overread):
    for block in blocks(path):
        if not block.is_run:
            continue
        for first, *rest in block.commands():
            if first == "make":
                assert re.search(rf"^{rest[0]}:", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE), rest
                continue
            assert first == "overread", (
                f"{path.name}: {first} is no command that this test runs: say why in the block's title"
            )
            words = [WORDS.get(word, word) for word in rest]
            if words[0] in ELSEWHERE:
                assert (ROOT / ELSEWHERE[words[0]]).exists()
                continue
            dry = ["--dry-run", *ASKING[words[0]]] if words[0] in ASKING else []
            done = overread(*words, *dry, OVERREAD_DB="study.db", **(SIGN_IN if words[0] == "team" else {}))
            assert done.returncode == 0, (words, done.stdout[-500:], done.stderr)


@pytest.mark.parametrize("path", DOCS, ids=lambda path: path.stem)
def test_a_block_says_what_it_is_and_one_that_is_not_run_says_why(path: Path):
    for block in blocks(path):
        is_drill = block.language == "bash" and block.text == drill()  # tests/team/test_docs.py runs it, in a shell
        is_notebook = block.language == "python" and path.stem == "api"  # tests/team/test_api.py runs it
        assert is_drill or is_notebook or block.language in {"sh", "csv", "toml", "ini", "text", "yaml"}, block.text
        assert block.language != "sh" or not block.about or NOT_TESTED.search(block.about), block.about


@pytest.mark.parametrize("path", DOCS, ids=lambda path: path.stem)
def test_a_document_names_only_commands_and_options_that_exist(path: Path):
    whole = get_command(app)
    for words in named(path):
        command, place = whole, 0
        options = {name for one in whole.params for name in (*one.opts, *one.secondary_opts)}
        while place < len(words) and words[place].startswith("-"):
            place += 2  # --db or --as with its value
        while place < len(words) and hasattr(command, "commands") and words[place] in command.commands:
            command, place = command.commands[words[place]], place + 1
        assert command is not whole or place >= len(words) or not re.fullmatch("[a-z-]+", words[place]), words
        options |= {name for one in command.params for name in (*one.opts, *one.secondary_opts)}
        unknown = {word.split("=")[0] for word in words if word.startswith("--")} - options - {"--help"}
        assert not unknown, words
