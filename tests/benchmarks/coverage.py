"""How often 95 % intervals hold the truth, and how wide they are: `python tests/benchmarks/coverage.py [--draws 1000] [--ppi-python PATH]`.

Each draw takes examples from 20,000, with rubrics of 3 to 12 criteria as real ones are built, lets judges label every criterion and physicians read some that
are drawn, and makes the intervals. Physicians err (right on 90 %) and lean, each study has its own few, drawn from all physicians, and each reads
by chance what is theirs. The truth is, by claim,

    this benchmark, these physicians       what these would say of every criterion of these examples, each counted by their share of the reading
    new examples, these physicians         what these would say of the 20,000, counted likewise
    this benchmark, physicians             what all physicians would say on average of these examples
    new examples, physicians               what all physicians would say on average of the 20,000

and of triage the same of cases and levels. The width is that of this benchmark and these physicians, beside physicians only on the same draws, and beside
`ppi_mean_ci` of ppi_py (PPI++, `pip install ppi-python` in an environment of its own) where --ppi-python names its Python; that takes items for
independent and knows neither readers nor that a share of all was read, so that its coverage is printed as well.

"–" is where nothing is said, in all draws but a few: fewer than 10 examples, or fewer than 3 effective readers for physicians in general.
Coverage above 97 % is right in three places:
where nothing was read twice, or no more than a dozen items, since nobody knows how far readers differ, and the more so the more was read
(the judges' errors then stand in for it); with 60 reads of a rare thing, since three votes not seen are added; and for physicians in general where they are nearly equally strict: three or five of them
cannot show that they are, and their interval is never narrower than that for these physicians. Of 740 figures 13 are below 93 %. Nine are too narrow: missed
emergencies, for physicians in general by three readers (.898 to .929). Who leans to more care calls an emergency an emergency all the same, so in one
study of eight, where all three do, nothing shows that others lean to less. The other four (.922 to .929) are for this benchmark and these physicians.
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402 - found beside this file, installed or not
import numpy.typing as npt  # noqa: E402

from evalcore.rubric.corrected import (  # noqa: E402  # noqa: E402
    CORRECTED,
    MIN_EFFECTIVE,
    MIN_EXAMPLES_READ,
    MIN_FREEDOM,
    MIN_READ,
    PHYSICIANS,
    Fitted,
    of_reads,
)
from evalcore.rubric.data import coefficients  # noqa: E402
from evalcore.stats import estimator  # noqa: E402
from evalcore.stats.estimator import Population, Sample, effective_readers, reading_loads  # noqa: E402  # noqa: E402
from evalcore.study.schema import Claim, Physicians  # noqa: E402
from evalcore.triage.corrected import MEASURES, Answers  # noqa: E402
from evalcore.triage.rates import Measure  # noqa: E402
from tests.population import drawn, mild_probabilities  # noqa: E402

Floats = npt.NDArray[np.float64]
N_EXAMPLES, N_ALL, N_LEVELS = 5_000, 20_000, 4
Numbers = npt.NDArray[np.int64]
NEAR, CRITERIA, ROUNDING = 1.96, 7.5, 1e-9
FEWEST_DRAWS = 30
"""Of fewer that say anything no coverage is told."""
N_PPI, BOTH = 50, np.array([1.0, 0.0])
UNIFORM, IMPORTANCE, RESPONSES = "uniform", "importance", "whole responses"
FITS = {CORRECTED: estimator.corrected, PHYSICIANS: estimator.by_physicians}


@dataclass(frozen=True)
class World:
    """All examples that there could be, one response each, with what is true and what judges say of it."""

    item_weights: Floats
    undesirable: npt.NDArray[np.bool_]
    labels: Floats
    truth: Floats
    starts: npt.NDArray[np.int64]

    @property
    def n_examples(self) -> int:
        return len(self.starts) - 1

    @cached_property
    def _met_and_not(self) -> Floats:
        met = float(self.item_weights @ self.truth)
        return np.array([met, float(self.item_weights.sum()) - met]) / self.n_examples

    def score(self, said: Floats) -> float:
        """Where met and not met are called met so often."""
        return float(self._met_and_not @ said)

    def some(self, rng: np.random.Generator, n: int) -> tuple[Population, Floats]:
        """So many examples, with the truth of their items."""
        examples = rng.integers(0, self.n_examples, n)
        sizes = (self.starts[1:] - self.starts[:-1])[examples]
        ends = np.cumsum(sizes)
        rows = np.arange(ends[-1]) + np.repeat(self.starts[examples] - ends + sizes, sizes)
        example = np.repeat(np.arange(n), sizes)
        return Population(self.item_weights[rows] / n, self.undesirable[rows], self.labels[rows], example), self.truth[
            rows
        ]


def world(rng: np.random.Generator, judges: Mapping[str, float], *, n_examples: int = N_ALL) -> World:
    """Judges by name, with their accuracy."""
    rubric_data, truth = drawn(rng, n_examples=n_examples, judges=judges, share_read=1e-4)
    item_weights = coefficients(rubric_data.items).to_numpy() * n_examples
    labels = rubric_data.judged.to_numpy().astype(float)
    starts = np.searchsorted(rubric_data.items["example_id"].to_numpy(), np.arange(1, n_examples + 2))
    return World(item_weights, rubric_data.items["points"].to_numpy() < 0, labels, truth.to_numpy(), starts)


@dataclass(frozen=True)
class Reading:
    """How physicians read.

    Attributes:
        share: Of the items, read on average.
        draw: One of the three.
        n_readers: Physicians an item is read by.
        second: Share of the items that one more physician reads.
        loads: By physician of a study, how much each reads.
        accuracy: Of a physician, against what is true.
        differing: Standard deviation of how far they lean: of not met the share that they call met (above 0), or of met not (below 0).
    """

    share: float
    draw: str = UNIFORM
    n_readers: int = 1
    second: float = 0.0
    loads: tuple[float, ...] = (1.0,)
    accuracy: float = 1.0
    differing: float = 0.0

    @property
    def shares(self) -> Floats:
        return np.array(self.loads) / sum(self.loads)

    def says(self, truth: Floats, leans: Floats | None = None) -> Floats:
        """The chance that a physician says met: each of those who lean so, by item; or on average over all physicians."""
        plain = self.accuracy * truth + (1 - self.accuracy) * (1 - truth)
        if leans is None:
            mean = self.differing / np.sqrt(2 * np.pi)  # of the share that a physician turns either way
            return plain * (1 - mean) + (1 - plain) * mean
        return np.where(
            leans[:, None] > 0, plain + (1 - plain) * leans[:, None].clip(min=0), plain * (1 + leans[:, None])
        )


def readers_of(rng: np.random.Generator, how: Reading, unit: Numbers, rows: Numbers) -> tuple[Numbers, Numbers]:
    """By read its place in `rows` and its physician: a unit goes as a whole to physicians that are drawn by their loads."""
    n = int(unit.max()) + 1
    order = np.argsort(-(np.log(how.shares) + rng.gumbel(size=(n, len(how.loads)))), axis=1)
    times = np.minimum(how.n_readers + (rng.random(n) < how.second), len(how.loads))[unit[rows]]
    places = np.repeat(np.arange(len(rows)), times)
    turn = np.arange(len(places)) - np.repeat(np.cumsum(times) - times, times)
    return places, order[unit[rows[places]], turn]


def read(rng: np.random.Generator, how: Reading, about: Population, said: Floats) -> Sample:
    """What physicians read, of what each would say of every item (a physician a row)."""
    probabilities = np.full(said.shape[1], how.share)
    if how.draw == IMPORTANCE:
        probabilities = mild_probabilities(about.item_weights, about.labels, how.share)
    unit = about.example if how.draw == RESPONSES else np.arange(said.shape[1])
    rows = np.flatnonzero(rng.random(int(unit.max()) + 1)[unit] < probabilities)
    places, readers = readers_of(rng, how, unit, rows)
    votes = said[readers, rows[places]]
    means = np.bincount(places, votes, len(rows)) / np.bincount(places, minlength=len(rows))
    chance = probabilities[rows]
    return Sample(
        rows,
        means,
        np.minimum(chance * (1 / chance).sum() / said.shape[1], 1.0),
        np.unique(unit[rows], return_inverse=True)[1],
        places,
        np.unique(readers, return_inverse=True)[1],
        votes,
    )


class Counted:
    """How often intervals hold, by kind of score, claim and physicians, and their widths."""

    def __init__(self) -> None:
        self.held: dict[tuple[str, Claim, Physicians], list[bool]] = {}
        self.widths: dict[tuple[str, Claim, Physicians], list[float]] = {}

    def add(
        self,
        about: Population,
        sample: Sample,
        fits: Mapping[str, estimator.Fit],
        true: Mapping[tuple[Claim, Physicians], float],
    ) -> bool:
        """The intervals of one draw; whether enough is read."""
        enough = len(sample.rows) >= MIN_READ and len(np.unique(about.example[sample.rows])) >= MIN_EXAMPLES_READ
        enough = enough and sample.n_units - max(fit.n_columns for fit in fits.values()) >= MIN_FREEDOM
        effective = effective_readers(reading_loads(sample.probabilities, sample.places, sample.readers))
        for kind, (claim, physicians) in product(fits, true if enough else ()):
            if physicians is Physicians.IN_GENERAL and effective < MIN_EFFECTIVE:
                continue
            found = of_reads(Fitted(about, sample, fits[kind]), claim, physicians).columns("score")
            key = kind, claim, physicians
            self.held.setdefault(key, []).append(
                found["score_low"] - ROUNDING <= true[claim, physicians] <= found["score_high"] + ROUNDING
            )
            self.widths.setdefault(key, []).append(found["score_high"] - found["score_low"])
        return enough

    def coverage(self, kind: str, claim: Claim, physicians: Physicians) -> float:
        held = self.held.get((kind, claim, physicians), [])
        return float(np.mean(held)) if len(held) >= FEWEST_DRAWS else np.nan

    def width(self, kind: str, claim: Claim = Claim.BENCHMARK, physicians: Physicians = Physicians.THESE) -> float:
        return float(np.mean(self.widths.get((kind, claim, physicians), np.nan)))


def coverage(
    of: World,
    how: Reading,
    *,
    n_draws: int,
    seed: int,
    n_examples: int = N_EXAMPLES,
    kept: list[tuple[Floats, ...]] | None = None,
) -> Counted:
    """How often the intervals of scores hold.

    Args:
        of: All examples.
        how: What is read.
        n_draws: Studies.
        seed: Of chance.
        n_examples: Of a study.
        kept: Takes, of each draw, what `ppi_mean_ci` needs: votes and labels of the items read, labels of the others, each times a and the number of items,
            and the truth.
    """
    rng = np.random.default_rng(seed)
    counted = Counted()
    for _ in range(n_draws):
        about, truth = of.some(rng, n_examples)
        leans = rng.normal(0, how.differing, len(how.loads)).clip(-1, 1)
        said = (rng.random((len(how.loads), len(truth))) < how.says(truth, leans)).astype(float)
        sample = read(rng, how, about, said)
        true = {
            (Claim.BENCHMARK, Physicians.THESE): float(about.item_weights @ (how.shares @ said)),
            (Claim.NEW_EXAMPLES, Physicians.THESE): of.score(how.shares @ how.says(BOTH, leans)),
            (Claim.BENCHMARK, Physicians.IN_GENERAL): float(about.item_weights @ how.says(truth)),
            (Claim.NEW_EXAMPLES, Physicians.IN_GENERAL): of.score(how.says(BOTH)),
        }
        enough = counted.add(about, sample, {kind: fitted(about, sample) for kind, fitted in FITS.items()}, true)
        if kept is not None and enough and len(kept) < N_PPI and len(sample.rows) < len(truth):
            scaled = about.item_weights * len(truth)
            others = np.setdiff1d(np.arange(len(truth)), sample.rows)
            labels = scaled * about.labels.mean(axis=1)
            wanted = np.array([true[Claim.BENCHMARK, Physicians.THESE]])
            kept.append((scaled[sample.rows] * sample.votes, labels[sample.rows], labels[others], wanted))
    return counted


def triage_coverage(
    how: Reading, measure: Measure, *, n_draws: int, seed: int, n_cases: int, accuracy: float = 0.8
) -> Counted:
    """How often the intervals of corrected triage hold: one response a case, of a model that is right on 70 %; who errs says a level beside it.

    Args:
        how: What is read; leaning is towards the level above (above 0) or below.
        measure: The rate.
        n_draws: Studies.
        seed: Of chance.
        n_cases: Of a study that the rate is about.
        accuracy: Of the judge.
    """
    rng = np.random.default_rng(seed)
    counted, counts = Counted(), MEASURES[measure]
    golds = np.flatnonzero(~np.isnan(counts[:, 0]))
    eye, beside = np.eye(N_LEVELS), np.array([[0, 1, 0, 0], [0.5, 0, 0.5, 0], [0, 0.5, 0, 0.5], [0, 0, 1, 0]])
    responses = 0.7 * eye + 0.3 * beside
    above, below = np.roll(eye, 1, axis=1), np.roll(eye, -1, axis=1)
    above[-1], below[0] = eye[-1], eye[0]

    def says(lean: float) -> Floats:
        """True level x what a physician says who leans so."""
        turned = above if lean > 0 else below
        return (how.accuracy * eye + (1 - how.accuracy) * beside) @ ((1 - abs(lean)) * eye + abs(lean) * turned)

    size = how.differing / np.sqrt(2 * np.pi)
    general = (1 - 2 * size) * says(0.0) + size * (says(1.0) + says(-1.0))

    def mean(gold: Numbers, level: Floats) -> float:
        return float((level * counts[gold]).sum(axis=1).mean())

    for _ in range(n_draws):
        gold = rng.choice(golds, n_cases)
        truth = _one_of(rng, responses[gold])
        judged = _one_of(rng, (accuracy * eye + (1 - accuracy) * beside)[truth])
        leans = rng.normal(0, how.differing, len(how.loads)).clip(-1, 1)
        said = np.stack([eye[_one_of(rng, says(lean)[truth])] for lean in leans])
        rows = np.flatnonzero(rng.random(n_cases) < how.share)
        places, readers = readers_of(rng, how, np.arange(n_cases), rows)
        votes = said[readers, rows[places]]
        means = np.stack([np.bincount(places, vote, len(rows)) for vote in votes.T], axis=1)
        left = np.ones(n_cases)
        left[rows] = 0
        about = _answers(
            gold=gold, judged=eye[judged], rest=eye[judged] * left[:, None], read=rows, once=np.ones(len(rows)), level=judged[rows],
            votes=means / means.sum(axis=1, keepdims=True), probabilities=np.full(len(rows), how.share), places=places,
            readers=readers, said=votes, own=votes,
        )  # fmt: skip
        if not len(rows):
            continue
        share = about.estimand(counts)
        everything = np.eye(N_LEVELS)[golds]
        these = np.tensordot(how.shares, np.stack([says(lean) for lean in leans]), 1)
        true = {
            (Claim.BENCHMARK, Physicians.THESE): mean(gold, np.tensordot(how.shares, said, 1)),
            (Claim.NEW_EXAMPLES, Physicians.THESE): mean(golds, everything @ responses @ these),
            (Claim.BENCHMARK, Physicians.IN_GENERAL): mean(gold, general[truth]),
            (Claim.NEW_EXAMPLES, Physicians.IN_GENERAL): mean(golds, everything @ responses @ general),
        }
        fits = {CORRECTED: share.corrected, PHYSICIANS: estimator.by_physicians(share.population, share.sample)}
        counted.add(share.population, share.sample, fits, true)
    return counted


def _answers(**arrays: npt.NDArray[np.generic]) -> Answers:
    named = {
        "model": "Alder",
        "format": "conversation",
        "n_responses": len(arrays["gold"]),
        "n_no_level": 0,
        "n_unreached": 0,
    }
    fields = Answers.__dataclass_fields__
    if "cases" in fields:
        named["cases"] = np.arange(len(arrays["gold"]))
    return Answers(**named, **arrays)


def _one_of(rng: np.random.Generator, chances: Floats) -> Numbers:
    """One level a row, by its chances."""
    return (chances.cumsum(axis=1) < rng.random(len(chances))[:, None]).sum(axis=1).clip(max=N_LEVELS - 1)


PPI = """
import sys, numpy as np
from ppi_py import ppi_mean_ci
kept = np.load(sys.argv[1])
for number in range(int(sys.argv[2])):
    votes, labels, others, true = (kept[f"{number}_{part}"] for part in range(4))
    low, high = ppi_mean_ci(votes, labels, others, alpha=0.05)
    print(float(high[0] - low[0]), int(low[0] <= true[0] <= high[0]))
"""


def by_ppi(python: str, kept: list[tuple[Floats, ...]]) -> tuple[float, float]:
    """Mean width and coverage of `ppi_mean_ci` on these draws."""
    with tempfile.NamedTemporaryFile(suffix=".npz") as file:
        np.savez(
            file, **{f"{number}_{part}": array for number, draw in enumerate(kept) for part, array in enumerate(draw)}
        )
        file.flush()
        done = subprocess.run(
            [python, "-c", PPI, file.name, str(len(kept))], capture_output=True, text=True, check=True
        )
    widths, held = np.array([line.split() for line in done.stdout.splitlines()], dtype=float).T
    return float(widths.mean()), float(held.mean())


BY_WHOM: Mapping[str, dict[str, object]] = {
    "1 physician": {},
    "1 of 5": {"loads": (1.0,) * 5},
    "1 of 5, a fifth twice": {"loads": (1.0,) * 5, "second": 0.2},
    "2 of 3": {"loads": (1.0,) * 3, "n_readers": 2},
    "12:1:1:1:1, a fifth twice": {"loads": (12.0, 1.0, 1.0, 1.0, 1.0), "second": 0.2},
}
CLAIMS = tuple(product(Physicians, Claim))
HEAD = f"{'':50}|" + "".join(f"{f'{claim.value[:5]}, {physicians.value[:5]}':>13}" for physicians, claim in CLAIMS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=["scores", "triage", "draws"], help="One of the three parts.")
    parser.add_argument("--ppi-python", help="The Python of an environment with ppi-python.")
    chosen = parser.parse_args()
    how = {"n_draws": chosen.draws, "seed": chosen.seed}
    error = 100 * NEAR * np.sqrt(0.95 * 0.05 / chosen.draws)
    print(
        f"{chosen.draws:,} draws, seed {chosen.seed}; coverage of 95 % intervals in percent, where it is 95 measured to ±{error:.1f}; widths of the first claim"
    )
    if not chosen.ppi_python:
        print("ppi_mean_ci is left out: --ppi-python names no Python that has ppi-python.")
    print(f"{HEAD} | {'width':>6} {'alone':>6} {'PPI++':>6} {'(holds)':>7}")
    of = {n: world(np.random.default_rng(chosen.seed), {f"judge {i}": 0.78 for i in range(n)}) for n in (1, 3)}
    for whom, n_reads, share in product(BY_WHOM, (60, 300, 1200), (0.05, 0.2, 0.5, 0.8, 1.0)):
        reading = Reading(share, accuracy=0.9, differing=0.1, **BY_WHOM[whom])  # type: ignore[arg-type]
        if chosen.only in {None, "scores"}:
            kept: list[tuple[Floats, ...]] = []
            found = coverage(of[1], reading, n_examples=round(n_reads / share / CRITERIA), kept=kept, **how)
            _say(f"score, {n_reads} read, {share:.0%}, {whom}", found, chosen.ppi_python, kept)
        for measure in (Measure.EXACT, Measure.MISSED_EMERGENCIES) if chosen.only in {None, "triage"} else ():
            found = triage_coverage(reading, measure, n_cases=round(n_reads / share), **how)
            _say(f"{measure.value[:12]}, {n_reads} read, {share:.0%}, {whom}", found)
    for n_judges, share, draw in (
        product(of, (0.01, 0.05, 0.2), (UNIFORM, IMPORTANCE, RESPONSES)) if chosen.only in {None, "draws"} else ()
    ):
        _say(
            f"{n_judges} judges, {share:.0%} of 5,000 read, {draw}", coverage(of[n_judges], Reading(share, draw), **how)
        )


def _say(name: str, found: Counted, python: str | None = None, kept: list[tuple[Floats, ...]] | None = None) -> None:
    cells = [100 * found.coverage(CORRECTED, claim, physicians) for physicians, claim in CLAIMS]
    widths = [f"{found.width(kind):6.3f}" for kind in (CORRECTED, PHYSICIANS)]
    if python and kept:
        width, held = by_ppi(python, kept)
        widths += [f"{width:6.3f}", f"{100 * held:7.1f}"]
    print(
        f"{name:50}|{''.join(f'{cell:13.1f}' if cell >= 0 else f'{chr(8211):>13}' for cell in cells)} | {' '.join(widths)}",
        flush=True,
    )


if __name__ == "__main__":
    main()
