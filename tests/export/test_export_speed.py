"""The benchmarks of the exports still run: on a study so small that its times mean nothing."""

import subprocess
import sys
from pathlib import Path

import pytest

from evalcore.export.tables import WHAT


@pytest.mark.slow
def test_the_export_benchmark_prints_every_table_beside_its_floor():
    script = Path(__file__).parents[1] / "benchmarks" / "export_speed.py"
    done = subprocess.run(
        [sys.executable, script, "--verdicts", "240", "--repeats", "1"],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    named = [line.partition(":")[0] for line in done.stdout.splitlines()]
    assert named == [*WHAT, "meta-eval"]
    assert done.stdout.startswith("labels: 240 rows in ")
    assert done.stdout.count("the floor (bare to_csv") == 3  # labels, verdicts and scores: the others have no rows
