"""Triage by the command line: rates with their direction, harm, dangerous misses, and what the format changes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import pandas as pd
import typer

from evalcore.console import Db, Json, grid, out, print_json, records, study
from evalcore.errors import OverreadError
from evalcore.schema import Format

if TYPE_CHECKING:
    from evalcore.metrics.triage_bases import Matrices
    from evalcore.triage_settings import TriageSettings
    from evalcore.triaged import Triaged

GOLDS, BASES = ("file", "physicians"), ("judge", "physicians", "corrected")
SHOWN = ("under", "missed_emergencies", "over", "exact")
N_DANGEROUS = 4
"""Of `triage_cases.WORST_FIRST`, the kinds of miss that are dangerous."""


def triage(
    format_: Annotated[str | None, typer.Option("--format", help="qa or conversation alone.")] = None,
    model: Annotated[list[str] | None, typer.Option(help="This model; again for another. Default: all.")] = None,
    judge: Annotated[
        list[str] | None,
        typer.Option(
            help="Whose levels count: FORMAT=JUDGE, or JUDGE for every format that it has read; again for the other format. "
            "Default: the parser for qa, else who has read most."
        ),
    ] = None,
    gold: Annotated[
        str, typer.Option(help="file: as published; physicians: as read by physicians of this study.")
    ] = "file",
    basis: Annotated[
        str,
        typer.Option(help="Who says which level an answer gives: judge, physicians (of this study), corrected (both)."),
    ] = "judge",
    db: Db = None,
    as_json: Json = False,
) -> None:
    """Whether models send patients to the right level of care, and which way they err. Levels are 1 (A, home) to 4 (D, emergency now).

    Counted are cases with a clear gold and a level; intervals are 95 %. Published matrices, which have no cases, stand beside the models by judge.

    With --json an object; what has no value is null.
    judges (by format), gold, basis, weights (under, over: of a level too low and too high, as the study's settings have them), findings (sentences),
    n_cases and n_kinds (clear, boundary, ambiguous, unlabelled).
    cells, a row a model, format, gold and predicted (1..4): n, n_gold (cases; of physicians: responses; null where only shares are estimated), share,
    low, high.
    rates, a row a model, format and measure: k, n, value, low, high in 0..1, denominator (words), reason (why there is no value). Corrected, cells and rates
    have judge_only, physicians_only and corrected beside these, each with _low and _high, and what they were made from (n_read, n_cases_read, needed, ...).
    summary, a row a model and format: n, n_levels, and macro_f1, kappa, kappa_linear, kappa_quadratic, mean_signed, each with _low, _high, _reason.
    harm, a row a model and format: n, harm, low, high, of_under, of_over, n_under, n_over, steps_under, steps_over, reason; changes, a row a format and two
    models: ratio (of the weights at which they change places), less_below, less_above, harm. Empty where only shares are estimated.
    misses, a row a model, format, gold and predicted of a dangerous miss (D answered A, B or C; C answered A): rank (0: the worst), n.
    flips, a row a model: n_both, n_flipped, flipped with flipped_low and flipped_high, n_lower, n_higher, n_crossing, n, under_qa, under_conversation,
    only_qa, only_conversation, difference, low, high, p, reason.
    boundary, a row a model, format and measure (constituent, upper_share, outside_high, outside_low), as rates; ambiguous, a row a model, format and
    predicted: n, n_cases, share, low, high, n_several, n_sure, sure.
    accounted, a row a model and format: what is counted and what is left out (n_cases, n_clear, clear_predicted, clear_no_level, ...).
    The last five and misses are by judge whatever the basis.
    """
    from evalcore.db import reading
    from evalcore.metrics.panels import described
    from evalcore.queries import triage as stored
    from evalcore.queries import triage_settings

    _one_of("--gold", gold, GOLDS)
    _one_of("--basis", basis, BASES)
    if format_ is not None:
        _one_of("--format", format_, [word.value for word in Format])
    with study(db) as engine, reading(engine) as session:
        settings = triage_settings.load(session)
        triaged = described(stored.load(session), settings.rule)
    found = _found(triaged, judge or [], model, format_)
    asked = _Asked(found.judges, gold, basis, settings.under_weight, settings.over_weight)
    tables, said = _tables(found, asked)
    if as_json:
        print_json(
            {
                "judges": found.judges,
                "gold": gold,
                "basis": basis,
                "weights": {"under": asked.under, "over": asked.over},
                "findings": said,
                "n_cases": len(triaged.cases),
                "n_kinds": {str(kind): int(n) for kind, n in triaged.cases["kind"].value_counts(sort=False).items()},
            }
            | {name: records(table) for name, table in tables.items()}
        )
        return
    _print(triaged, found, asked, tables, said, settings)


@dataclass(frozen=True)
class _Asked:
    """What was asked for: whose levels and gold, and the weights of harm."""

    judges: Mapping[str, str]
    gold: str
    basis: str
    under: float
    over: float


@dataclass(frozen=True)
class _Found:
    """The cases with the responses that were asked for, and whose levels count."""

    triaged: "Triaged"
    judges: dict[str, str]


def _one_of(option: str, word: str, known: Sequence[str]) -> None:
    if word not in known:
        msg = f"{option}: {word!r} came, expected one of {', '.join(known)}"
        raise OverreadError(msg)


def _found(triaged: "Triaged", judges: Sequence[str], models: Sequence[str] | None, format_: str | None) -> _Found:
    """The responses that were asked for.

    Raises:
        OverreadError: A model or judge that the study does not have.
    """
    from evalcore.metrics.predictions import usual_judges

    known = [str(name) for name in triaged.samples["model"].cat.categories]
    published = [str(name) for name in triaged.published["model"].unique()]
    for name in models or ():
        if name not in {*known, *published}:
            msg = f"--model: {name!r} came, expected one of {', '.join([*known, *published]) or 'none, the study has no model yet'}"
            raise OverreadError(msg)
    chosen = usual_judges(triaged)
    for said in judges:
        word, _, name = said.rpartition("=")
        formats = [word] if word else [asked for asked in Format if said in triaged.judges(asked)]
        for asked in formats or [""]:
            readers = triaged.judges(asked) if asked in list(Format) else []
            if name not in readers:
                every = sorted({f"{one}={reader}" for one in Format for reader in triaged.judges(one)})
                msg = f"--judge: {said!r} came, expected some of {', '.join(every) or 'none, nobody has read a level yet'}"
                raise OverreadError(msg)
            chosen[str(asked)] = name
    if format_ is not None:
        chosen = {word: name for word, name in chosen.items() if word == format_}
        triaged = _with_published(triaged, triaged.published["format"].eq(format_))
    if models:
        triaged = _with_published(triaged.of_models(models), triaged.published["model"].isin(models))
    return _Found(triaged, chosen)


def _with_published(triaged: "Triaged", kept: "pd.Series[bool]") -> "Triaged":
    from dataclasses import replace

    return replace(triaged, published=triaged.published.loc[kept].reset_index(drop=True))


def _tables(asked_of: _Found, asked: _Asked) -> tuple[dict[str, pd.DataFrame], list[str]]:
    """All tables by name, and the findings as sentences."""
    from evalcore.metrics import harm, triage_cases, triage_words
    from evalcore.metrics.harm_words import harm_sentences
    from evalcore.metrics.predictions import joined, predictions
    from evalcore.metrics.triage_formats import flip_counts

    triaged = asked_of.triaged
    if asked.gold == "physicians":
        from evalcore.metrics.triage_reads import with_physicians_gold

        triaged = with_physicians_gold(triaged)
    found = joined(triaged, predictions(triaged, asked.judges))
    made = _matrices(triaged, found, asked)
    cells, rates, whole = made.cells, made.rates, made.is_counted
    costs = harm.expected_harm(cells, asked.under, asked.over) if whole else pd.DataFrame()
    changes = harm.changes(cells) if whole else pd.DataFrame()
    flips = flip_counts(found)
    said = triage_words.findings(rates, flips if asked.basis == "judge" else None) if whole else []
    if len(costs):
        said += harm_sentences(costs, changes, asked.under, asked.over)
    missed = triage_cases.misses(triaged, found, judges=asked.judges)
    keys = ["model", "format", "gold", "predicted", "rank"]
    kinds = missed.loc[missed["rank"].lt(N_DANGEROUS)].groupby(keys, observed=True).size()
    tables = {
        "cells": cells,
        "rates": rates,
        "summary": made.summary,
        "harm": costs,
        "changes": changes,
        "misses": kinds.rename("n").reset_index().sort_values(["rank", "model", "format"], ignore_index=True),
        "flips": flips,
        "boundary": triage_cases.boundary(found),
        "ambiguous": triage_cases.ambiguous(found),
        "accounted": triage_cases.accounted(triaged, found),
    }
    return tables, said


def _matrices(triaged: "Triaged", found: pd.DataFrame, asked: _Asked) -> "Matrices":
    """By the basis that was asked for."""
    from evalcore.metrics import triage_bases

    if asked.basis == "physicians":
        return triage_bases.by_physicians(triaged)
    if asked.basis == "corrected":
        return triage_bases.corrected(triaged, asked.judges)
    return triage_bases.by_judge(triaged, found)


def _print(
    triaged: "Triaged",
    asked_of: _Found,
    asked: _Asked,
    tables: Mapping[str, pd.DataFrame],
    said: Sequence[str],
    settings: "TriageSettings",
) -> None:
    if not len(triaged.cases) and not len(triaged.published):
        out.print("No cases yet: import a file of cases, then predictions; or a published confusion matrix alone.")
        return
    if not asked_of.judges and not len(asked_of.triaged.published):
        what = "import a file of predictions" if not len(triaged.samples) else "run overread acuity-rules"
        out.print(f"{len(triaged.cases):,} cases, and no level of any answer yet: {what}.")
        return
    for sentence in said:
        out.print(sentence, markup=False)
    wanted = [name for name in SHOWN if name in settings.metrics] or list(SHOWN)
    out.print(_rates(tables["rates"], wanted))
    if len(tables["misses"]):
        out.print(_misses(tables["misses"]))
    read_by = ", ".join(f"{word} by {name}" for word, name in asked_of.judges.items())
    out.print(
        f"Levels {'by physicians of this study' if asked.basis == 'physicians' else read_by}"
        f"{', put right by physicians' if asked.basis == 'corrected' else ''}; gold {asked.gold}.",
        markup=False,
    )


def _rates(rates: pd.DataFrame, wanted: Sequence[str]) -> Any:
    from evalcore.metrics.triage_bases import rate_words
    from evalcore.metrics.triage_words import NAMES, by_model

    lines = []
    for (model, word), rows in by_model(rates).items():
        lines.append([model, word, *(rate_words(rows[name]) if name in rows else "" for name in wanted)])
    return grid(("model", "format", *(NAMES[name].lower() for name in wanted)), lines)


def _misses(misses: pd.DataFrame) -> Any:
    from evalcore.metrics.triage_words import level_letter

    lines = [
        [
            str(row["model"]),
            str(row["format"]),
            level_letter(row["gold"]),
            level_letter(row["predicted"]),
            f"{row['n']:,}",
        ]
        for row in misses.to_dict(orient="records")
    ]
    return grid(("dangerous misses: model", "format", "needs", "answers", "cases"), lines)
