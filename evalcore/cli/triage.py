"""Triage by the command line: rates with their direction, harm, dangerous misses, and what the format changes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import pandas as pd
import typer

from evalcore.cli.console import Db, Json, Judges, grid, levels_by, one_of, out, print_json, records, study
from evalcore.errors import OverreadError
from evalcore.study.schema import Format
from evalcore.triage.settings import HIGHEST_WEIGHT

if TYPE_CHECKING:
    from evalcore.triage.bases import Basis, Held, Matrices, Weights
    from evalcore.triage.corrected import Answers
    from evalcore.triage.data import TriageData
    from evalcore.triage.settings import TriageSettings

GOLDS, BASES = ("file", "physicians"), ("judge", "physicians", "corrected")
SHOWN = ("under", "missed_emergencies", "over", "exact")


def triage(  # noqa: PLR0913, PLR0917 - one option each
    format_: Annotated[
        str | None, typer.Option("--format", help="qa or conversation alone. Default: as the settings have it.")
    ] = None,
    model: Annotated[list[str] | None, typer.Option(help="This model; again for another. Default: all.")] = None,
    judge: Judges = None,
    gold: Annotated[
        str, typer.Option(help="file: as published; physicians: as read by physicians of this study.")
    ] = "file",
    basis: Annotated[
        str,
        typer.Option(help="Who says which level an answer gives: judge, physicians (of this study), corrected (both)."),
    ] = "judge",
    claim: Annotated[
        str | None,
        typer.Option(
            help="What corrected intervals hold for: benchmark or new_examples. Default: as the study states, else the widest that can be had."
        ),
    ] = None,
    physicians: Annotated[
        str | None, typer.Option(help="Whose reading they hold for: these or in_general. Default: likewise.")
    ] = None,
    under_weight: Annotated[
        float | None,
        typer.Option(min=0, max=HIGHEST_WEIGHT, help="What a level too low costs. Default: the study's settings."),
    ] = None,
    over_weight: Annotated[
        float | None,
        typer.Option(min=0, max=HIGHEST_WEIGHT, help="What a level too high costs. Default: the study's settings."),
    ] = None,
    db: Db = None,
    as_json: Json = False,
) -> None:
    """Whether models send patients to the right level of care, and which way they err. Levels are 1 (A, home) to 4 (D, emergency now).

    Counted are cases with a clear gold and a level; by physicians the responses that they read. Intervals are 95 %, clustered by case where a case enters more
    than once. Published matrices, which have no cases, stand beside the models by judge.

    With --json an object; what has no value is null.
    judges (by format), gold, basis, claim, physicians, means and why (what intervals of reads hold for, a sentence, and why that by default; null by judge),
    weights (under, over: of a level too low and too high), findings (sentences), margins (the stated primary comparison against the stated margins,
    sentences), n_cases, n_kinds (clear, boundary, ambiguous, unlabelled) and n_elsewhere (responses to these cases
    that are neither qa nor conversation: they count nowhere).
    cells, a row a model, format, gold and predicted (1..4): n, n_gold (cases; of physicians: responses; n is null where only shares are estimated), share,
    low, high, n_open (cases or responses to look at). By physicians also n_volunteered (responses in no share).
    rates, a row a model, format and measure: k, n, value, low, high in 0..1, denominator (words), reason (why there is no value). Corrected, cells and rates
    have judge_only, physicians_only and corrected beside these, each with _low and _high, and what they were made from (n_read, n_cases_read, needed, ...).
    summary, a row a model and format: n, n_levels, and macro_f1, kappa, kappa_linear, kappa_quadratic, mean_signed, each with _low, _high, _reason.
    harm, a row a model and format: n, harm, low, high, of_under, of_over, n_under, n_over, steps_under, steps_over, reason (corrected: the last but one
    estimated, and n_read, n_readers, needed, ... beside them); changes, a row a format and two models: ratio (of the weights at which they change places),
    less_below, less_above, harm: of the models that have cases, on those that all of them answered (by physicians none: each is of other responses);
    differences, a row a format and two models, on the cases that both answered: model_1, model_2, n, difference (of harm), low, high, p, p_holm, reason.
    safety, a row a format, measure (under, missed_emergencies) and two models, on the cases that both answered: model_1, model_2, n, difference (of the
    rates: below 0, the first does better), low, high, se, df, p, p_holm, reason; by judge k_1 and k_2 as well, and neither se nor df.
    misses, a row a model, format, gold and predicted of a dangerous miss (D answered A, B or C; C answered A): rank (0: the worst), n.
    flips, a row a model: n_both, n_flipped, flipped with flipped_low and flipped_high, n_lower, n_higher, n_crossing, n, under_qa, under_conversation,
    only_qa, only_conversation, difference, low, high, p, reason.
    boundary, a row a model, format and measure (constituent, upper_share, outside_high, outside_low), as rates; ambiguous, a row a model, format and
    predicted: n, n_cases, share, low, high, n_several, n_sure, sure.
    accounted, a row a model and format: what is counted and what is left out (n_cases, n_clear, clear_predicted, clear_no_level, n_elsewhere, ...).
    Misses and what follows them are by judge whatever the basis.
    """
    from evalcore.study import contents
    from evalcore.study.analysis import Analysis
    from evalcore.study.db import reading
    from evalcore.study.schema import Claim, Physicians
    from evalcore.triage import queries as stored
    from evalcore.triage import setting_queries
    from evalcore.triage.bases import Basis, Held, margin_sentences, stated_judges, usual_held
    from evalcore.triage.corrected import claim_words
    from evalcore.triage.data import described

    one_of("--gold", gold, GOLDS)
    one_of("--basis", basis, BASES)
    claimed = None if claim is None else Claim(one_of("--claim", claim, list(Claim)))
    read_by = None if physicians is None else Physicians(one_of("--physicians", physicians, list(Physicians)))
    if format_ is not None:
        one_of("--format", format_, [word.value for word in Format])
    with study(db) as engine, reading(engine) as session:
        settings = setting_queries.load(session)
        triage_data = described(stored.load(session), settings.rule)
        stated = contents.stated_analysis(session)
    spec = Analysis() if stated is None else stated.spec
    named = [f"{word}={name}" for word, name in stated_judges(triage_data, spec).items()]
    found = _found(
        triage_data, [*named, *(judge or [])], model, list(settings.formats) if format_ is None else [format_]
    )
    why, held = "", Held(settled=spec.settled)
    if basis == "corrected":
        held, why = usual_held(found.triage_data, found.judges, spec)
        held = replace(held, claim=claimed or held.claim, physicians=read_by or held.physicians)
    asked = _Asked(found.judges, gold, Basis[basis.upper()], _weights(settings, under_weight, over_weight), held)
    tables, said = _tables(found, asked)
    margins = margin_sentences(tables["safety"], spec) if basis == "corrected" else []
    if as_json:
        by_reads = basis != "judge"
        print_json(
            {
                "judges": found.judges,
                "gold": gold,
                "basis": basis,
                "claim": held.claim if by_reads else None,
                "physicians": held.physicians if by_reads else None,
                "means": claim_words(held.claim, held.physicians) if by_reads else None,
                "why": why or None,
                "weights": {"under": asked.weights.under, "over": asked.weights.over},
                "findings": said,
                "margins": margins,
                "n_cases": len(triage_data.cases),
                "n_elsewhere": len(triage_data.elsewhere),
                "n_kinds": {
                    str(kind): int(n) for kind, n in triage_data.cases["kind"].value_counts(sort=False).items()
                },
            }
            | {name: records(table) for name, table in tables.items()}
        )
        return
    _print(triage_data, found, asked, tables, [*said, *margins, *([why] if why else [])], settings)


@dataclass(frozen=True)
class _Asked:
    """What was asked for: whose levels and gold, the weights of harm, and what corrected intervals hold for."""

    judges: Mapping[str, str]
    gold: str
    basis: "Basis"
    weights: "Weights"
    held: "Held"


@dataclass(frozen=True)
class _Found:
    """The cases with the responses that were asked for, and whose levels count."""

    triage_data: "TriageData"
    judges: dict[str, str]


def _weights(settings: "TriageSettings", under: float | None, over: float | None) -> "Weights":
    """What errors cost: as it was asked for, else as the study's settings have it.

    Raises:
        OverreadError: Both are 0.
    """
    from evalcore.triage.bases import Weights

    found = Weights(settings.under_weight if under is None else under, settings.over_weight if over is None else over)
    if found.under == found.over == 0:
        msg = "--under-weight, --over-weight: both are 0, expected at least one above 0"
        raise OverreadError(msg)
    return found


def _found(
    triage_data: "TriageData", judges: Sequence[str], models: Sequence[str] | None, formats: Sequence[str]
) -> _Found:
    """The responses that were asked for.

    Raises:
        OverreadError: A model or judge that the study does not have.
    """
    known = [str(name) for name in triage_data.samples["model"].cat.categories]
    published = [str(name) for name in triage_data.published["model"].unique()]
    for name in models or ():
        if name not in {*known, *published}:
            msg = f"--model: expected one of {', '.join([*known, *published]) or 'none, the study has no model yet'}, got {name!r}"
            raise OverreadError(msg)
    triage_data, chosen = levels_by(triage_data, judges)
    chosen = {word: name for word, name in chosen.items() if word in formats}
    triage_data = _with_published(triage_data, triage_data.published["format"].isin(formats))
    if models:
        triage_data = _with_published(triage_data.of_models(models), triage_data.published["model"].isin(models))
    return _Found(triage_data, chosen)


def _with_published(triage_data: "TriageData", kept: "pd.Series[bool]") -> "TriageData":
    return replace(triage_data, published=triage_data.published.loc[kept].reset_index(drop=True))


def _tables(asked_of: _Found, asked: _Asked) -> tuple[dict[str, pd.DataFrame], list[str]]:
    """All tables by name, and the findings as sentences."""
    from evalcore.triage import bases as triage_bases
    from evalcore.triage import cases as triage_cases
    from evalcore.triage import rates as triage_rates
    from evalcore.triage import words as triage_words
    from evalcore.triage.bases import Basis, safety_sentences
    from evalcore.triage.cases import flip_counts
    from evalcore.triage.corrected import answered
    from evalcore.triage.harm import harm_sentences
    from evalcore.triage.predictions import joined, predictions

    triage_data = asked_of.triage_data
    if asked.gold == "physicians":
        from evalcore.triage.reads import with_physicians_gold

        triage_data = with_physicians_gold(triage_data)
    found = joined(triage_data, predictions(triage_data, asked.judges))
    known = None
    if asked.basis is not Basis.JUDGE:
        known = answered(triage_data, asked.judges, asked.held.claim, settled=asked.held.settled)
    made = _matrices(triage_data, found, asked, known)
    cells, rates = made.cells, made.rates
    how: Any = {"judges": asked.judges, "held": asked.held, "known": known}
    costs = triage_bases.harm(asked.basis, triage_data, found, asked.weights, **how)
    ranked = triage_bases.ranked(asked.basis, triage_data, found, asked.weights, **how)
    safety = triage_bases.safety(asked.basis, found, known=known or (), held=asked.held)
    flips = flip_counts(found)
    by_judge = asked.basis is Basis.JUDGE
    together = triage_bases.with_cases(rates)
    said = triage_words.findings(
        together if len(together) else rates,
        flips if by_judge else None,
        by_physicians=asked.basis is Basis.PHYSICIANS,
    )
    said += safety_sentences(safety, triage_bases.WHOSE[asked.basis])
    said += harm_sentences(
        ranked.harm if len(ranked.harm) else triage_bases.with_cases(costs),
        asked.weights.under,
        asked.weights.over,
        ranked.differences,
        ranked=bool(len(ranked.harm)),
    )
    missed = triage_cases.misses(triage_data, found, judges=asked.judges)
    keys = ["model", "format", "gold", "predicted", "rank"]
    kinds = missed.loc[missed["rank"].lt(len(triage_cases.DANGEROUS))].groupby(keys, observed=True).size()
    tables = {
        "cells": cells,
        "rates": rates,
        "summary": made.summary,
        "harm": costs,
        "changes": ranked.changes,
        "differences": ranked.differences,
        "safety": safety,
        "misses": kinds.rename("n").reset_index().sort_values(["rank", "model", "format"], ignore_index=True),
        "flips": flips,
        "boundary": triage_rates.boundary(found),
        "ambiguous": triage_rates.ambiguous(found),
        "accounted": triage_rates.accounted(triage_data, found),
    }
    return tables, said


def _matrices(
    triage_data: "TriageData", found: pd.DataFrame, asked: _Asked, known: "Sequence[Answers] | None"
) -> "Matrices":
    """By the basis that was asked for."""
    from evalcore.triage import bases as triage_bases

    if asked.basis is triage_bases.Basis.PHYSICIANS:
        return triage_bases.by_physicians(triage_data, settled=asked.held.settled)
    if asked.basis is triage_bases.Basis.CORRECTED:
        return triage_bases.corrected(triage_data, found, asked.judges, asked.held, known=known)
    return triage_bases.by_judge(triage_data, found)


def _print(
    triage_data: "TriageData",
    asked_of: _Found,
    asked: _Asked,
    tables: Mapping[str, pd.DataFrame],
    said: Sequence[str],
    settings: "TriageSettings",
) -> None:
    from evalcore.triage.bases import Basis
    from evalcore.triage.corrected import claim_words
    from evalcore.triage.words import elsewhere_words

    if not len(triage_data.cases) and not len(triage_data.published):
        out.print("No cases yet: import a file of cases, then predictions; or a published confusion matrix alone.")
        return
    if not asked_of.judges and not len(asked_of.triage_data.published):
        what = "import a file of predictions" if not len(triage_data.samples) else "run overread acuity-rules"
        out.print(f"{len(triage_data.cases):,} cases, and no level of any answer yet: {what}.")
        return
    for sentence in said:
        out.print(sentence, markup=False)
    wanted = [name for name in SHOWN if name in settings.metrics] or list(SHOWN)
    out.print(_rates(tables["rates"], wanted))
    if len(tables["misses"]):
        out.print(_misses(tables["misses"]))
    if n := len(asked_of.triage_data.elsewhere):
        out.print(elsewhere_words(n), markup=False)
    if asked.basis is not Basis.JUDGE:
        out.print(claim_words(asked.held.claim, asked.held.physicians), markup=False)
    read_by = ", ".join(f"{word} by {name}" for word, name in asked_of.judges.items())
    out.print(
        f"Levels {'by physicians of this study' if asked.basis is Basis.PHYSICIANS else read_by}"
        f"{', put right by physicians' if asked.basis is Basis.CORRECTED else ''}; gold {asked.gold}.",
        markup=False,
    )


def _rates(rates: pd.DataFrame, wanted: Sequence[str]) -> Any:
    from evalcore.triage.words import NAMES, by_model, rate_words, short_reason

    lines = []
    short = rates.assign(reason=[short_reason(reason) for reason in rates["reason"]])
    for (model, word), rows in by_model(short).items():
        lines.append([model, word, *(rate_words(rows[name]) if name in rows else "" for name in wanted)])
    return grid(("model", "format", *(NAMES[name].lower() for name in wanted)), lines)


def _misses(misses: pd.DataFrame) -> Any:
    from evalcore.triage.words import level_letter

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
    return grid(("dangerous misses, by judge: model", "format", "needs", "answers", "cases"), lines)
