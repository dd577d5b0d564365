"""Every benchmark of this folder, its ratios kept: `python tests/benchmarks/_all.py [NAME...]`, or `make bench`.

A ratio is the time of ours over that of a floor in the same run, so that it compares between machines; the time of a fixed loop beside it
tells how fast the machine was. `ratios.csv` holds the last ones. What became worse by a fifth is printed at the end, and the file written anew
only for the benchmarks that ran to their end.
"""

import argparse
import csv
import re
import subprocess
import sys
import time
from pathlib import Path

FOLDER = Path(__file__).parent
KEPT = FOLDER / "ratios.csv"
COLUMNS = ["benchmark", "line", "ratio", "machine_s"]
WORSE = 1.2
RATIO = re.compile(r"(?:(?P<before>[\d.,]+) x |ratio (?P<after>[\d.,]*\d))")


def main() -> None:
    """Run, print as they print, compare, keep."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("names", nargs="*", help="of benchmarks, without .py; all if none")
    names = asked.parse_args().names or sorted(path.stem for path in FOLDER.glob("[!_]*.py"))
    before = {(row["benchmark"], row["line"]): row for row in kept()}
    after = dict(before)
    worse = []
    for name in names:
        print(f"== {name}", flush=True)
        machine = seconds_of_a_fixed_loop()
        ratios = ratios_of(name)
        after = {key: row for key, row in after.items() if key[0] != name}
        for line, ratio in ratios.items():
            after[name, line] = dict(zip(COLUMNS, (name, line, f"{ratio:.4g}", f"{machine:.2f}"), strict=True))
            if (last := before.get((name, line))) and ratio > WORSE * float(last["ratio"]):
                worse.append(
                    f"worse: {name}, {line}: {ratio:.4g}, last {last['ratio']} (machine {machine:.2f} s, last {last['machine_s']} s)"
                )
    with KEPT.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(row for _, row in sorted(after.items()))
    print("\n".join(worse) or "nothing became worse by a fifth")


def kept() -> list[dict[str, str]]:
    """The ratios of the last run of each benchmark."""
    if not KEPT.exists():
        return []
    with KEPT.open(newline="") as file:
        return list(csv.DictReader(file))


def ratios_of(name: str) -> dict[str, float]:
    """Run one benchmark, and take the ratios from what it prints, by the words before the line's first colon.

    Raises:
        subprocess.CalledProcessError: It failed.
    """
    command = [sys.executable, str(FOLDER / f"{name}.py")]
    ratios = {}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        for line in running.stdout:
            print(line, end="", flush=True)
            title, _, told = line.partition(":")
            found = [float((match["before"] or match["after"]).replace(",", "")) for match in RATIO.finditer(told)]
            ratios |= {
                title if place == 1 else f"{title}, ratio {place}": ratio for place, ratio in enumerate(found, 1)
            }
    if running.returncode:
        raise subprocess.CalledProcessError(running.returncode, command)
    return ratios


def seconds_of_a_fixed_loop() -> float:
    """Of plain Python on one core, the best of three."""

    def once() -> float:
        start = time.perf_counter()
        total = 0
        for number in range(5_000_000):
            total += number & 7
        return time.perf_counter() - start

    return min(once() for _ in range(3))


if __name__ == "__main__":
    main()
