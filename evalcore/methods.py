"""The methods paragraph of a paper, written from what was done in the study and not from what was planned."""

import json
import math
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Any

import pandas as pd
from sqlalchemy import Engine

from evalcore.db import reading
from evalcore.metrics.agreement import agreement
from evalcore.metrics.agreement_labels import labels_of
from evalcore.metrics.agreement_sums import Coefficient
from evalcore.metrics.anchoring import CHANGED, OVERALL, anchoring
from evalcore.metrics.intervals import interval_words, share_words
from evalcore.metrics.opinions import first_reads
from evalcore.metrics.wording import counted, listed
from evalcore.opinions import Opinions
from evalcore.policies import visible_verdicts
from evalcore.queries import opinions as labels
from evalcore.queries import study, tasks
from evalcore.queries.blind_reads import blind_reads
from evalcore.schema import Ask, RaterKind, Selection, Stage

PACKAGES = ("numpy", "pandas", "scipy")
COEFFICIENTS = {
    Coefficient.AGREEMENT: "agreement",
    Coefficient.AC1: "Gwet's AC1",
    Coefficient.ALPHA_NOMINAL: "Krippendorff's alpha",
}
ESTIMATOR = (
    "A response's score is the sum of the points of its met criteria over the sum of its positive points (HealthBench, arXiv 2505.08775); "
    "a model's score is the mean over its responses. Corrected scores use the judge's labels on all items and the physicians' blind first reads on "
    "the items that were drawn: a generalised regression (GREG) estimator, which is prediction-powered inference with fitted weights (PPI++), with "
    "items weighted by their inclusion probability and residuals corrected for leverage. Several reads of an item enter as their mean. "
    "All intervals are 95 % intervals, clustered by conversation."
)


@dataclass(frozen=True)
class Drawn:
    """One drawing of responses: how many of how many, how, and with which seed."""

    n_drawn: int
    n_population: int
    by_plan: bool
    seed: int


@dataclass(frozen=True)
class Facts:
    """What was done.

    Attributes:
        by_selection: Blind first reads by how their item came to be read; "" where a file did not say.
        n_blind: First reads of which it is recorded that they were blind; of the others the file did not say.
        n_open: Reads that were made with the judge in view.
        n_conflicting: Items whose first reads differ; n_adjudicated of them are settled, by n_adjudicators.
        agreement: Rows of `metrics.agreement.agreement`, overall.
        pull: Share of first reads that were changed after the reveal, in words; empty where none was revealed.
        guidelines: How many versions readers had.
    """

    evaluations: tuple[str, ...]
    models: tuple[str, ...]
    judges: tuple[str, ...]
    n_examples: int
    n_responses: int
    n_items: int
    n_readers: int
    n_reads: int
    n_read_items: int
    n_cannot_assess: int
    n_read_examples: int
    n_read_twice: int
    by_selection: dict[str, int]
    n_blind: int
    n_open: int
    drawn: tuple[Drawn, ...]
    n_conflicting: int
    n_adjudicated: int
    n_adjudicators: int
    agreement: pd.DataFrame
    pull: str
    guidelines: int


def facts(engine: Engine, *, blind: frozenset[int] = frozenset()) -> Facts:
    """What was done in the study, without conversations that wait for the viewer's own first read."""
    with reading(engine) as session:
        known = labels.load(session).without(blind)
        drawings = tasks.assignments(session)
        newest = study.guideline(session)
        judge = study.rules(session).judge or next(iter(known.judges), None)
        shown = blind_reads(session, judge) if judge else pd.DataFrame()
    reads = first_reads(known.reads)
    rows = reads.groupby("row")["met"]
    differing = rows.agg(lambda met: met.nunique(dropna=False)).gt(1)
    settled = known.reads.loc[known.reads["stage"].eq(Stage.ADJUDICATED)]
    return Facts(
        evaluations=_names(known, "evaluation"),
        models=_names(known, "model"),
        judges=tuple(known.judges),
        n_examples=known.items["example_id"].nunique(),
        n_responses=known.items["response_id"].nunique(),
        n_items=len(known.items),
        n_readers=reads["rater"].nunique(),
        n_reads=len(reads),
        n_read_items=reads["row"].nunique(),
        n_cannot_assess=int(reads["met"].isna().sum()),
        n_read_examples=reads["example_id"].nunique(),
        n_read_twice=int(rows.size().gt(1).sum()),
        by_selection={
            str(name): int(n) for name, n in reads["selection"].fillna("").value_counts().sort_index().items()
        },
        n_blind=int(reads["blinded"].isin([True]).sum()),
        n_open=int(known.reads["stage"].eq(Stage.OPEN).sum()),
        drawn=tuple(
            Drawn(
                int(row["n_tasks"]), int(row["n_population"]), "plan" in json.loads(row["chosen_by"]), int(row["seed"])
            )
            for row in drawings.loc[drawings["ask"].eq(Ask.RUBRIC)].iloc[::-1].to_dict(orient="records")
        ),
        n_conflicting=int(differing.sum()),
        n_adjudicated=int(differing.index[differing].isin(settled["row"]).sum()),
        n_adjudicators=settled["rater"].nunique(),
        agreement=agreement(labels_of(known)),
        pull=_pull(visible_verdicts(shown.assign(rater_kind=RaterKind.REVIEWER), None, blind)) if len(shown) else "",
        guidelines=newest.version or 0 if newest else 0,
    )


def as_dict(done: Facts) -> dict[str, Any]:
    """The facts as JSON takes them."""
    table = done.agreement.astype(object).where(done.agreement.notna(), None)
    return asdict(done) | {"agreement": table.to_dict(orient="records")}


def _names(known: Opinions, column: str) -> tuple[str, ...]:
    return tuple(sorted(known.items[column].dropna().unique()))


def _pull(reads: pd.DataFrame) -> str:
    moved = anchoring(reads, by=[OVERALL])
    changed = moved.loc[moved["movement"].eq(CHANGED)]
    if changed.empty or not changed["n"].iloc[0]:
        return ""
    row = changed.iloc[0]
    return f"{share_words(row['n_moved'], row['n'], row['share'])} {interval_words(row['low'], row['high'])}"


def paragraph(done: Facts) -> str:
    """The paragraph, in plain sentences; what did not happen is not mentioned."""
    if not done.n_items:
        return "Nothing has been labelled yet."
    said = [_material(done), *_reading(done), *_drawing(done), *_between(done), *_settling(done)]
    if done.pull:
        said.append(
            f"After the reveal, {done.pull} of the first reads were changed by their reader; first reads enter all estimates."
        )
    return " ".join([*said, ESTIMATOR, software()])


def _material(done: Facts) -> str:
    judges = f" Items were labelled met or not met by {_named(done.judges, 'judge')}." if done.judges else ""
    return (
        f"We studied {counted(done.n_responses, 'response')} of {_named(done.models, 'model')} to {counted(done.n_examples, 'conversation')} "
        f"({', '.join(done.evaluations)}): {counted(done.n_items, 'item')}, each one criterion of one response.{judges}"
    )


def _reading(done: Facts) -> list[str]:
    if not done.n_reads:
        return ["No physician has read any of them blind."]
    twice = f", {done.n_read_twice:,} of them by two or more" if done.n_read_twice else ""
    said = [
        f"{counted(done.n_readers, 'physician')} read {counted(done.n_read_items, 'item')} of {counted(done.n_read_examples, 'conversation')}{twice} "
        f"({counted(done.n_reads, 'first read')}; {done.n_cannot_assess:,} could not be assessed and are left out).",
        _blinding(done),
    ]
    if done.guidelines:
        said.append(f"Readers had a written guideline ({counted(done.guidelines, 'version')}).")
    if done.n_open:
        said.append(f"A further {counted(done.n_open, 'read')} with the judge's verdict in view enter no estimate.")
    return said


def _blinding(done: Facts) -> str:
    if not done.n_blind:
        return "The imported files do not say whether these reads were blind."
    share = "Every first read" if done.n_blind == done.n_reads else f"{done.n_blind:,} of the first reads"
    verb, pronoun, reader = (
        ("was", "it was", "its reader") if done.n_blind in (1, done.n_reads) else ("were", "they were", "their readers")
    )
    rest = "" if done.n_blind == done.n_reads else " Of the others the imported files do not say."
    return f"{share} {verb} blind: until {pronoun} locked, {reader} did not see the judge's verdict.{rest}"


SELECTIONS = {
    Selection.RANDOM: "on items drawn at random",
    Selection.IMPORTANCE: "on items drawn with unequal, known probabilities",
    Selection.VOLUNTEERED: "volunteered, which enter no estimate",
    Selection.ADJUDICATION: "made for an adjudication, which enter no estimate",
}


def _drawing(done: Facts) -> list[str]:
    if not done.n_reads:
        return []
    counts = [
        f"{n:,} {SELECTIONS[Selection(name)] if name else 'whose selection is not recorded'}"
        for name, n in done.by_selection.items()
    ]
    said = [
        f"Of the first reads, {listed(counts)} were made."
        if len(counts) > 1
        else f"All first reads were made {counts[0].partition(' ')[2]}."
    ]
    for drawn in done.drawn:
        how = "by a plan of inclusion probabilities" if drawn.by_plan else "at random"
        said.append(
            f"{counted(drawn.n_drawn, 'response')} of {drawn.n_population:,} were drawn {how} (seed {drawn.seed})."
        )
    return said


def _between(done: Facts) -> list[str]:
    known = {row["coefficient"]: row for row in done.agreement.to_dict(orient="records")}
    values = [
        f"{words} {known[name]['value']:.2f} [{known[name]['low']:.2f}, {known[name]['high']:.2f}]"
        for name, words in COEFFICIENTS.items()
        if name in known and not math.isnan(known[name]["value"]) and not math.isnan(known[name]["low"])
    ]
    return [f"Between physicians, on items with two reads or more: {listed(values)}."] if values else []


def _settling(done: Facts) -> list[str]:
    if not done.n_conflicting:
        return []
    who = f" by {counted(done.n_adjudicators, 'adjudicator')}" if done.n_adjudicated else ""
    share = share_words(done.n_adjudicated, done.n_conflicting, done.n_adjudicated / done.n_conflicting)
    return [f"First reads differed on {counted(done.n_conflicting, 'item')}, of which {share} were adjudicated{who}."]


def software() -> str:
    """Which versions made the numbers."""
    packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    return f"Software: Overread {version('overread')} on Python {platform.python_version()} with {packages}."


def _named(names: Sequence[str], what: str) -> str:
    return f"{counted(len(names), what)} ({', '.join(names)})"
