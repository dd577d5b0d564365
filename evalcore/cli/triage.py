"""Triage by the command line: rates with their direction, harm, dangerous misses, what the format changes; and what a study has chosen about it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import pandas as pd
from typer import Exit, Option

from evalcore.cli import console
from evalcore.errors import refuse
from evalcore.stats.wording import counted
from evalcore.study import contents
from evalcore.study.analysis import Analysis
from evalcore.study.csv_cells import text_of
from evalcore.study.db import reading
from evalcore.study.schema import Claim, Format, Physicians
from evalcore.triage import acts as triage_acts, predictions, queries, setting_queries, settings as settings_files
from evalcore.triage.data import TriageData
from evalcore.triage.label_maps import fold
from evalcore.triage.settings import HIGHEST_WEIGHT, TriageSettings

if TYPE_CHECKING:
    from evalcore.triage.bases import Basis
    from evalcore.triage.corrected import Held
    from evalcore.triage.harm import Weights

SHOWN = ("under", "missed_emergencies", "over", "exact")
FORMAT = "qa or conversation alone. Default: as the settings have it."
GOLD = "file: as published; physicians: as read by physicians of this study."
BASIS = "Who says which level an answer gives: judge, physicians (of this study), corrected (both)."
CLAIM = "What corrected intervals hold for: benchmark or new_examples. Default: as the study states, else the widest possible."
PHYSICIANS = "Whose reading they hold for: these or in_general. Default: likewise."
UNDER = "What a level too low costs. Default: the study's settings."
OVER = "What a level too high costs. Default: the study's settings."
MAP = "CSV with the columns label and meaning: the study's own map of --source."
SETTINGS = "Take the settings from a YAML file; what it leaves out gets its default."


def triage(  # noqa: PLR0913, PLR0917 - one option each
    format_: Annotated[str | None, console.chosen("--format", list(Format), FORMAT)] = None,
    model: Annotated[list[str] | None, Option(help="This model; again for another. Default: all.")] = None,
    judge: console.Judges = None,
    gold: Annotated[str, console.chosen("--gold", ("file", "physicians"), GOLD)] = "file",
    basis: Annotated[str, console.chosen("--basis", ("judge", "physicians", "corrected"), BASIS)] = "judge",
    claim: Annotated[Claim | None, console.chosen("--claim", Claim, CLAIM)] = None,
    physicians: Annotated[Physicians | None, console.chosen("--physicians", Physicians, PHYSICIANS)] = None,
    under_weight: Annotated[float | None, Option(min=0, max=HIGHEST_WEIGHT, help=UNDER)] = None,
    over_weight: Annotated[float | None, Option(min=0, max=HIGHEST_WEIGHT, help=OVER)] = None,
    db: console.Db = None,
    as_json: console.Json = False,
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
    from evalcore.triage import bases, corrected, harm

    by = bases.Basis[basis.upper()]
    with console.study(db) as engine, reading(engine) as session:
        settings = setting_queries.load(session)
        whole = queries.load(session)
        stated = contents.stated_analysis(session)
    spec = Analysis() if stated is None else stated.spec
    named = [f"{word}={name}" for word, name in bases.stated_judges(whole, spec).items()]
    formats = list(settings.formats) if format_ is None else [format_]
    triage_data, judges = _chosen(whole, [*named, *(judge or [])], model, formats)
    why, held = "", corrected.Held(settled=spec.settled)
    if by is bases.Basis.CORRECTED:
        held, why = bases.usual_held(corrected.answered(triage_data, judges, settled=spec.settled), spec)
        held = replace(held, claim=claim or held.claim, physicians=physicians or held.physicians)
    usual = settings.weights
    under = usual.under if under_weight is None else under_weight
    weights = harm.Weights(under, usual.over if over_weight is None else over_weight)
    if weights.under == weights.over == 0:
        refuse("--under-weight, --over-weight: expected at least one above 0, got 0 for both")
    tables, findings = _tables(triage_data, judges, by, held, weights, by_physicians=gold == "physicians")
    margins = bases.margin_sentences(tables["safety"], spec) if by is bases.Basis.CORRECTED else []
    means = None if by is bases.Basis.JUDGE else held.words()
    if as_json:
        kinds = whole.cases["kind"].value_counts(sort=False)
        console.print_json(
            {
                "judges": judges,
                "gold": gold,
                "basis": basis,
                "claim": held.claim if means else None,
                "physicians": held.physicians if means else None,
                "means": means,
                "why": why or None,
                "weights": {"under": weights.under, "over": weights.over},
                "findings": findings,
                "margins": margins,
                "n_cases": len(whole.cases),
                "n_elsewhere": len(whole.elsewhere),
                "n_kinds": {str(kind): int(n) for kind, n in kinds.items()},
            }
            | {name: console.records(table) for name, table in tables.items()}
        )
        return
    sentences = [*findings, *margins, *filter(None, [why])]
    _print(triage_data, judges, tables, sentences, settings, n_samples=len(whole.samples))
    levels = ", ".join(f"{word} by {name}" for word, name in judges.items())
    levels = "by physicians of this study" if by is bases.Basis.PHYSICIANS else levels
    put_right = ", put right by physicians" if by is bases.Basis.CORRECTED else ""
    console.say(means or "", f"Levels {levels}{put_right}; gold {gold}.")


def _chosen(
    triage_data: TriageData, judges: Sequence[str], models: Sequence[str] | None, formats: Sequence[str]
) -> tuple[TriageData, dict[str, str]]:
    """The responses that were asked for, and whose levels count by format; an unknown model or judge is an `OverreadError`."""
    published = triage_data.published
    known = dict.fromkeys([*triage_data.samples["model"].cat.categories, *published["model"].unique()])
    for name in models or ():
        if name not in known:
            refuse(f"--model: expected one of {', '.join(known) or 'none, the study has no model yet'}, got {name!r}")
    triage_data, chosen = console.levels_by(triage_data, judges)
    published = published.loc[published["format"].isin(formats)]
    if models:
        triage_data = triage_data.of_models(models)
        published = published.loc[published["model"].isin(models)]
    triage_data = replace(triage_data, published=published.reset_index(drop=True))
    return triage_data, {word: name for word, name in chosen.items() if word in formats}


def _tables(
    triage_data: TriageData,
    judges: Mapping[str, str],
    basis: "Basis",
    held: "Held",
    weights: "Weights",
    *,
    by_physicians: bool,
) -> tuple[dict[str, pd.DataFrame], list[str]]:
    from evalcore.triage import bases, cases, corrected, harm, rates, reads, words

    if by_physicians:
        triage_data = reads.with_physicians_gold(triage_data)
    found = predictions.joined(triage_data, predictions.predictions(triage_data, judges))
    by_judge = basis is bases.Basis.JUDGE
    known = () if by_judge else corrected.answered(triage_data, judges, held.claim, settled=held.settled)
    levels = bases.LevelsBy(basis, triage_data, found, held, known)
    matrices, safety = bases.matrices(levels), bases.safety(levels)
    costs, ranked = bases.harm(levels, weights), bases.ranked(levels, weights)
    flips = cases.flip_counts(found)
    together = bases.with_cases(matrices.rates)
    shown = together if len(together) else matrices.rates
    is_read = basis is bases.Basis.PHYSICIANS
    sentences = words.findings(shown, flips if by_judge else None, by_physicians=is_read)
    sentences += bases.safety_sentences(safety, bases.WHOSE[basis])
    is_ranked = bool(len(ranked.harm))
    lowest = ranked.harm if is_ranked else bases.with_cases(costs)
    sentences += harm.harm_sentences(lowest, weights, ranked.differences, ranked=is_ranked)
    missed = cases.misses(triage_data, found, judges=judges)
    keys = ["model", "format", "gold", "predicted", "rank"]
    kinds = missed.loc[missed["rank"].lt(len(cases.DANGEROUS))].groupby(keys, observed=True).size()
    tables: dict[str, Any] = {"cells": matrices.cells, "rates": matrices.rates, "summary": matrices.summary}
    tables |= {"harm": costs, "changes": ranked.changes, "differences": ranked.differences, "safety": safety}
    tables |= {"misses": kinds.rename("n").reset_index().sort_values(["rank", "model", "format"], ignore_index=True)}
    tables |= {"flips": flips, "boundary": rates.boundary(found), "ambiguous": rates.ambiguous(found)}
    tables |= {"accounted": rates.accounted(triage_data, found)}
    return tables, sentences


def _print(
    triage_data: TriageData,
    judges: Mapping[str, str],
    tables: Mapping[str, pd.DataFrame],
    sentences: Sequence[str],
    settings: TriageSettings,
    *,
    n_samples: int,
) -> None:
    from evalcore.triage.bases import rates_columns
    from evalcore.triage.words import elsewhere_words, level_letter

    if not len(triage_data.cases) and not len(triage_data.published):
        console.say("No cases yet: import a file of cases, then predictions; or a published confusion matrix alone.")
        raise Exit
    if not judges and not len(triage_data.published):
        what = "import a file of predictions" if not n_samples else "run overread acuity-rules"
        console.say(f"{counted(len(triage_data.cases), 'case')}, and no level of any answer yet: {what}.")
        raise Exit
    console.say(*sentences)
    console.show(rates_columns(tables["rates"], [name for name in SHOWN if name in settings.metrics] or SHOWN))
    misses = tables["misses"]
    if len(misses):
        columns: dict[str, Any] = {"Model (dangerous misses, by judge)": misses["model"], "Format": misses["format"]}
        columns |= {"Needs": misses["gold"].map(level_letter), "Answers": misses["predicted"].map(level_letter)}
        columns |= {"Cases": misses["n"]}
        console.show(columns)
    if n := len(triage_data.elsewhere):
        console.say(elsewhere_words(n))


def label_maps(
    source: Annotated[str | None, Option(help="This source alone, e.g. semigran.")] = None,
    import_: Annotated[Path | None, Option("--import", help=MAP)] = None,
    export: Annotated[Path | None, Option(help="Write the map of --source as such a file.")] = None,
    reset: Annotated[bool, Option("--reset", help="Back to the map of --source that comes with Overread.")] = False,
    db: console.Db = None,
    as_json: console.Json = False,
) -> None:
    """List what the labels of each source stand for, and on how many cases they are; or write the study's own map of a source.

    A meaning is a level from A (home) to D (emergency now), a boundary such as C/D, panel (physicians have to decide), or information and a level (kept, and
    never the gold). Cases that were imported before keep what was made of them. With --json a list with one object a source, by name: source, is_own (the
    study's own map), has_map (false: the map of the levels' names counts for it), n_cases, n_otherwise (of them imported when their label stood for
    something else), labels (list of label, meaning, n_cases, n_otherwise), unknown (labels of cases that the map does not know: list of label, n_cases).
    """
    from evalcore.triage import label_maps as tables

    asked = {"--import": import_ is not None, "--export": export is not None, "--reset": reset}
    acts = [name for name, is_asked in asked.items() if is_asked]
    if len(acts) > 1:
        refuse(f"expected one of {', '.join(acts)}, got {len(acts)}")
    if acts and not source:
        refuse(f"--source: expected the source whose map it is beside {acts[0]}, got nothing")
    chosen = tables.fold(source or "")
    given = None if import_ is None else tables.parse(text_of(console.content(import_), import_.name), import_.name)
    with console.study(db) as engine:
        if given or reset:
            triage_acts.set_label_map(engine, chosen, given or [], actor=console.actor(engine))
        with reading(engine) as session:
            own, maps_in_force = setting_queries.own_tables(session), setting_queries.tables_of(session)
            labels = setting_queries.labels_of_cases(session)
    counts = tables.label_counts(labels, tables.maps(maps_in_force))
    known = sorted({*maps_in_force, *counts["source"]})
    if chosen and chosen not in known:
        refuse(f"--source: expected one of {', '.join(known)}, got {source!r}")
    if export is not None:
        console.write_whole(export, tables.to_csv(maps_in_force.get(chosen, maps_in_force[tables.LEVELS])).encode())
    listed = [_described(name, counts, own, maps_in_force) for name in known if chosen in {"", name}]
    if as_json:
        console.print_json(listed)
        return
    for row in listed:
        whose = "the study's own map" if row["is_own"] else "the map that comes with Overread"
        console.say(f"{row['source']}: {whose if row['has_map'] else 'no map of its own'}")
        lines = [*row["labels"], *({"meaning": "– (unknown)"} | label for label in row["unknown"])]
        heads = {"Label": "label", "Stands for": "meaning", "Cases": "n_cases"}
        console.show({head: [line[name] for line in lines] for head, name in heads.items()})
        if row["n_otherwise"]:
            console.say(f"{row['n_otherwise']:,} of {counted(row['n_cases'], 'case')} imported as something else.")


def _described(
    source: str, counts: pd.DataFrame, own: Collection[str], maps_in_force: Mapping[str, Sequence[tuple[str, str]]]
) -> dict[str, Any]:
    mine = counts.loc[counts["source"].eq(source)]
    by_label = {row["label"]: row for row in mine.to_dict(orient="records")}
    nothing = {"n_cases": 0, "n_otherwise": 0}
    table = maps_in_force.get(source)
    rows = table if table is not None else list(zip(mine["written"], mine["meaning"], strict=True))
    labels = [
        {"label": label, "meaning": meaning} | {name: int(by_label.get(fold(label), nothing)[name]) for name in nothing}
        for label, meaning in rows
        if meaning is not None
    ]
    unknown = mine.loc[mine["meaning"].isna(), ["written", "n_cases"]]
    return {
        "source": source,
        "is_own": source in own,
        "has_map": table is not None,
        "n_cases": int(mine["n_cases"].sum()),
        "n_otherwise": int(mine["n_otherwise"].sum()),
        "labels": labels,
        "unknown": unknown.rename(columns={"written": "label"}).to_dict(orient="records"),
    }


def triage_settings(
    export: Annotated[Path | None, Option(help="Write the settings as a YAML file.")] = None,
    import_: Annotated[Path | None, Option("--import", help=SETTINGS)] = None,
    reset: Annotated[bool, Option("--reset", help="Back to the settings that come with Overread.")] = False,
    db: console.Db = None,
    as_json: console.Json = False,
) -> None:
    """Show what the study has chosen about triage, or take it from a file: names of levels, formats, metrics, weights, ambiguity.

    Without --json the settings are printed as the YAML file has them. With --json an object: is_own (the study has chosen), level_names (A, B, C,
    D), formats and metrics (lists), weights (under, over), ambiguous (spread_above, uncertainty_above; null: switched off).
    """
    if import_ is not None and reset:
        refuse("expected --reset or a file, got both")
    given = None
    if import_ is not None:
        given = settings_files.parse(text_of(console.content(import_), import_.name), import_.name)
    with console.study(db) as engine:
        if given is not None or reset:
            triage_acts.set_triage_settings(engine, given, actor=console.actor(engine))
        with reading(engine) as session:
            own, settings = setting_queries.own(session), setting_queries.load(session)
    if export is not None:
        console.write_whole(export, settings_files.to_yaml(settings).encode())
    if as_json:
        console.print_json({"is_own": own is not None, **msgspec.to_builtins(settings)})
    elif export is not None:
        console.say(f"{export} written")
    else:
        console.say(settings_files.to_yaml(settings).rstrip())
