"""Real results files and the numbers that the reference tool wrote beside them; skipped where the files are not.

`bootstrap_std` is unseeded in the tool and is not compared. A metric of a group is compared where as many responses carry the
group's tag here as the tool counted: some of the files lack tags that the tool had.
"""

import atexit
import json
import math
import shutil
import tempfile
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

from evalcore.importing import told_by_name
from evalcore.rubric import scores
from evalcore.study import frames
from evalcore.study.db import reading
from evalcore.study.schema import RaterKind
from tests.invented import bring, rows, study

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
HERE = DATA.is_dir()
RESULTS = sorted(DATA.glob("results/*_allresults.json")) if HERE else [None]
NAMES = [path.stem.removesuffix("_allresults") if path else "absent" for path in RESULTS]
pytestmark = pytest.mark.skipif(not HERE, reason=f"The real HealthBench files are not here: {DATA} does not exist.")

# How many metrics were compared when this was written, with the examples imported and without. Fewer: the comparison has come apart.
N_COMPARED = {
    "healthbench_consensus_gpt-4o-mini_20260113_121108": (26, 24),
    "healthbench_custom_consensus_short_20250513_1747": (7, 7),
    "healthbench_custom_consensus_short_20250513_1752": (7, 7),
    "healthbench_custom_consensus_short_20250513_1753": (7, 7),
    "healthbench_gpt-4o-mini_20260113_121418": (24, 24),
    "healthbench_hard_gpt-4.1-mini_20260117_121957": (39, 38),
    "healthbench_hard_gpt-4.1-mini_20260117_123441_bodhi": (39, 38),
    "healthbench_hard_gpt-4o-mini_20260113_121425_tta": (24, 24),
    "healthbench_hard_gpt-4o-mini_20260116_202452": (40, 40),
}


def compared(engine, path):
    """Every metric of the tool that the study's tags allow, as (key, tool's value, ours)."""
    with reading(engine) as session:
        verdicts = frames.verdicts(session, kind=RaterKind.JUDGE)
    ours = scores.mean_scores(scores.scores_of_verdicts(verdicts, scores.REPORTED_GROUPINGS)).set_index("group")
    assert ours.index.is_unique
    told = json.loads(path.with_name(path.name.replace("_allresults", "")).read_text(encoding="utf-8"))
    for key, value in told.items():
        group = "overall" if key == "overall_score" else key
        if key.endswith((":n_samples", ":bootstrap_std")) or group not in ours.index:
            continue
        if int(ours.loc[group, "n_responses"]) == told[f"{key}:n_samples"]:
            yield group, value, float(ours.loc[group, "score"])


def bring_results(engine, path):
    model = told_by_name(path.name).model or "a model"
    return bring(engine, path, model=model, judge="gpt-4.1")


def bring_examples(engine):
    for path in sorted(DATA.glob("examples/*.jsonl")):
        bring(engine, path)


@cache
def _examples_brought():
    """A SQLite file with the examples, made once a process."""
    folder = Path(tempfile.mkdtemp(prefix="overread-examples-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    with study(str(folder / "made.db")) as engine:
        bring_examples(engine)
        with engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    return folder / "made.db"


@contextmanager
def study_with_examples(folder):
    """A study in this folder into which the examples were brought."""
    with study(str(shutil.copyfile(_examples_brought(), folder / "overread.db"))) as engine:
        yield engine


@pytest.mark.parametrize("with_examples", [True, False], ids=["with examples", "alone"])
@pytest.mark.parametrize("path", RESULTS, ids=NAMES)
def test_every_metric_of_the_tool_comes_out_equal(path, with_examples, tmp_path):
    with study_with_examples(tmp_path) if with_examples else study(str(tmp_path / "overread.db")) as engine:
        bring_results(engine, path)
        found = list(compared(engine, path))
    assert "overall" in [group for group, _, _ in found]
    for group, told, ours in found:
        assert math.isclose(told, ours, rel_tol=0, abs_tol=1e-12), group
    expected = N_COMPARED[path.stem.removesuffix("_allresults")]
    assert len(found) >= expected[0 if with_examples else 1]


def test_there_is_a_count_for_every_file():
    assert set(NAMES) == set(N_COMPARED)


def test_it_makes_no_difference_whether_the_examples_come_first(tmp_path):
    path = next(
        path for path in RESULTS if path.name.startswith("healthbench_hard") and path.stat().st_size > 1_000_000
    )
    with study(f"sqlite:///{tmp_path}/before.db") as before, study(f"sqlite:///{tmp_path}/after.db") as after:
        bring_examples(before)
        bring_results(before, path)
        bring_results(after, path)
        bring_examples(after)
        assert list(compared(before, path)) == list(compared(after, path))
        texts = "SELECT e.prompt_id, c.position, c.text, c.points, c.tags FROM criterion c JOIN example e ON e.id = c.example_id ORDER BY 1, 2"
        assert rows(before, texts) == rows(after, texts)


def test_physicians_and_judges_on_the_same_rows(database_url):
    labels = [json.loads(line) for line in (DATA / "physicians" / "meta_eval_part.jsonl").read_bytes().splitlines()]
    judged = [
        json.loads(line) for line in (DATA / "physicians" / "judges_on_meta_eval_part.jsonl").read_bytes().splitlines()
    ]
    with study(database_url) as engine:
        bring_examples(engine)
        physicians = bring(engine, DATA / "physicians" / "meta_eval_part.jsonl")
        judges = bring(engine, DATA / "physicians" / "judges_on_meta_eval_part.jsonl")
        assert physicians.verdicts_new == sum(len(row["binary_labels"]) for row in labels)
        assert (judges.verdicts_new, judges.without_partner) == (len(judged), 0)
        found = rows(
            engine,
            "SELECT a.kind, v.label, count(*) FROM verdict v JOIN rater a ON a.id = v.rater_id GROUP BY a.kind, v.label ORDER BY a.kind, v.label",
        )
        n_met = sum(row["criteria_met"] for row in judged)
        n_met_by_physicians = sum(sum(row["binary_labels"]) for row in labels)
        assert found == [
            ("judge", "met", n_met),
            ("judge", "not_met", len(judged) - n_met),
            ("reviewer", "met", n_met_by_physicians),
            ("reviewer", "not_met", physicians.verdicts_new - n_met_by_physicians),
        ]


def test_importing_everything_again_adds_nothing(sqlite_database_url):
    paths = [*sorted(DATA.glob("examples/*.jsonl")), *sorted(DATA.glob("physicians/*.jsonl"), reverse=True)]
    with study(sqlite_database_url) as engine:
        for _ in range(2):
            reports = [bring(engine, path) for path in paths] + [bring_results(engine, path) for path in RESULTS]
        assert all(report.adds_nothing for report in reports)
