"""The benchmark of imports runs, on a small file; its figures are not judged here."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[1] / "benchmarks" / "import_speed.py"


@pytest.mark.slow
def test_the_benchmark_prints_a_ratio_and_a_peak():
    ran = subprocess.run(
        [sys.executable, BENCHMARK, "--verdicts", "120", "--repeats", "1", "--no-real"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert re.search(
        r"^invented, 120 verdicts: import \d+\.\d{3} s; floor of verdict rows \d+\.\d{3} s, ratio \d+\.\d\d; "
        r"floor of all rows that the import writes \d+\.\d{3} s, ratio \d+\.\d\d \(target: at most 4\)$",
        ran.stdout,
        re.M,
    )
    assert re.search(
        r"^peak memory of importing it: \d+ MB \(target: under 250\), with the search \d+ MB$", ran.stdout, re.M
    )


@pytest.mark.slow
@pytest.mark.parametrize("order", [[], ["--by-model"]])
def test_the_benchmark_of_a_long_table_prints_seconds_and_a_peak(order):
    ran = subprocess.run(
        [sys.executable, BENCHMARK, "--long-table", "400", *order], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert re.match(r"long table of 400 rows, .* 0\.0 GB: \d+\.\d s, \d+\.\d s of the processor, \d+ MB", ran.stdout)
