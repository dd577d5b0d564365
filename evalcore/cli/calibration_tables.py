"""What `overread calibration` says of each section: its tables for JSON, its findings, and what is printed of them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd

from evalcore.calibration import confidence_meaning, routing
from evalcore.calibration import sections as metric
from evalcore.calibration.case_spread import MEASURE_WORDS as MEASURES
from evalcore.calibration.case_spread import from_zero, spread_findings, spread_words
from evalcore.calibration.judge_confidence import who
from evalcore.calibration.routing import routed_words, routing_finding, threshold_words
from evalcore.calibration.sections import Calibrated, ece_words, judge_finding, models_findings
from evalcore.cli.console import records
from evalcore.rubric.data import RubricData
from evalcore.stats.intervals import percent_words
from evalcore.stats.wording import listed
from evalcore.study.schema import ConfidenceMeaning, Format
from evalcore.triage.data import TriageData
from evalcore.triage.words import number_words

NO_JUDGE = "No judge states a confidence beside a physician's blind read, and no two judges labelled what one has read."


@dataclass(frozen=True)
class Known:
    """What the study holds.

    Attributes:
        formats: Those that the study shows: nothing is said of what models answer in others.
        meanings: What the confidence of each judge means, as far as somebody has said it.
        rubric_data: What everybody says of criteria; None where judges were not asked for.
    """

    triage_data: TriageData
    formats: tuple[Format, ...]
    meanings: dict[str, ConfidenceMeaning]
    counts: pd.DataFrame
    beside: pd.DataFrame
    rubric_data: RubricData | None


@dataclass(frozen=True)
class Part:
    """One section: its tables, its findings, and what is printed of them (heads and lines)."""

    tables: Mapping[str, Any]
    said: list[str]
    shown: list[tuple[tuple[str, ...], list[list[str]]]]


def judges(known: Known, *, drawn: bool) -> Part:
    """Judges' confidence on criteria and on levels; by all blind reads where none was drawn."""
    of_criteria = confidence_meaning.criteria_meanings(known.counts, known.meanings)
    of_levels = confidence_meaning.level_meanings(known.triage_data, known.meanings)

    on_criteria = partial(metric.judges_on_criteria, known.beside, of_criteria, known.rubric_data)
    on_levels = partial(metric.judges_on_levels, known.triage_data, of_levels)
    said = [str(why) for table in (of_criteria, of_levels) for why in table["why"] if why]
    on: tuple[tuple[str, pd.DataFrame, Callable[..., Calibrated], dict[str, str]], ...] = (
        ("criteria", of_criteria, on_criteria, {"label": "criterion", "cluster": "conversation"}),
        ("levels", of_levels, on_levels, {"label": "level", "cluster": "case"}),
    )
    tables = {}
    for name, meanings, make, words in on:
        found = make(drawn=drawn)
        is_drawn = drawn and bool(found.errors["n"].any())
        found = found if is_drawn or not drawn else make(drawn=False)
        tables[name] = {
            "meanings": meanings,
            "reliability": found.reliability,
            "errors": found.errors,
            "majorities": sorted(found.majorities),
            "drawn": is_drawn,
        }
        for row in found.errors.loc[found.errors["n"].gt(0)].to_dict(orient="records"):
            group = str(row["group"])
            said.append(judge_finding(row, group, is_majority=group in found.majorities, **words))
    return Part(tables, said or [NO_JUDGE], [])


def models(own: pd.DataFrame) -> Part:
    """Models' own confidence on clear cases."""
    found = metric.models_confidence(own)
    errors = found.found.errors
    after, scaling = metric.temperature_scaled(own)
    lines = [
        [
            str(row["model"]),
            str(row["format"]),
            f"{row['n']:,}",
            percent_words(row["mean_confidence"]),
            percent_words(row["share_right"]),
            number_words(row["difference"], row["difference_low"], row["difference_high"]),
            number_words(row["error"], row["error_low"], row["error_high"]),
            ece_words(row),
        ]
        for row in errors.to_dict(orient="records")
    ]
    tables = {
        "reliability": found.found.reliability,
        "errors": errors,
        "reliability_after": after,
        "scaling": scaling,
        "sources": found.sources,
    }
    heads = ("model", "format", "clear cases", "sure", "right", "difference", "debiased error", "plain error (ECE)")
    return Part(tables, models_findings(errors), [(heads, lines)])


def ambiguous(triage_data: TriageData, own: pd.DataFrame, levels_by: Mapping[str, str]) -> Part:
    """Models' samples beside the panels' votes."""
    found = metric.on_ambiguous(triage_data, own, levels_by)
    lines = [
        [
            str(row["model"]),
            str(row["format"]),
            MEASURES[row["measure"]],
            spread_words(row),
            f"{row['n_cases']:,}",
        ]
        for row in from_zero(found.summary).to_dict(orient="records")
    ]
    names = triage_data.cases["case_id"].to_numpy()[found.cases["row"].to_numpy(dtype=int)]
    cases = found.cases.drop(columns=["row", "kind", "gold"])
    cases.insert(0, "case_id", names)
    tables = {"summary": found.summary, "cases": cases, "n_few": found.n_few}
    heads = ("model", "format", "measure", "value (by chance)", "ambiguous cases")
    return Part(tables, spread_findings(found.summary), [(heads, lines)])


def routed(own: pd.DataFrame, wanted: float, threshold: float | None) -> Part:
    """Which cases a human would see, by a share of the misses to catch or by a threshold that is given."""
    curves = routing.curves(own)
    chosen = (
        metric.routing_chosen(own, wanted)
        if threshold is None
        else routing.curves(own, at=threshold).assign(undefined="")
    )
    lines = [
        [
            str(row["model"]),
            str(row["format"]),
            threshold_words(row["threshold"]),
            *(routed_words(row, name) for name in ("caught", "routed", "exact_kept", "ambiguous_routed")),
        ]
        for row in chosen.to_dict(orient="records")
    ]
    heads = (
        "model",
        "format",
        "to a human",
        "misses caught",
        "cases sent",
        "right, of those kept",
        "ambiguous cases sent",
    )
    said = [routing_finding(chosen, wanted if threshold is None else None)]
    for why in dict.fromkeys(str(word) for word in chosen["undefined"] if word):
        of = chosen.loc[chosen["undefined"].eq(why)]
        said.append(f"{listed([who(row) for row in of.to_dict(orient='records')])}: {why}")
    return Part({"chosen": _every(chosen), "curves": _every(curves)}, said, [(heads, lines)])


def _every(table: pd.DataFrame) -> pd.DataFrame:
    """JSON has no infinity: a threshold above all confidences is null, and named."""
    every = table["threshold"].eq(float("inf"))
    return table.assign(threshold=table["threshold"].mask(every), every_case=every)


def plain(tables: Mapping[str, Any]) -> dict[str, Any]:
    """Tables as lists of rows, whatever they stand in."""
    found: dict[str, Any] = {}
    for name, table in tables.items():
        if isinstance(table, pd.DataFrame):
            found[name] = records(table)
        else:
            found[name] = plain(table) if isinstance(table, Mapping) else table
    return found
