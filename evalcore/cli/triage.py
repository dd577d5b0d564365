"""Triage by the command line: rates with their direction, harm, dangerous misses, what the format changes; what a study has chosen about it; calibration."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import numpy as np
import pandas as pd
from typer import Exit, Option

from evalcore.cli import console
from evalcore.errors import refuse
from evalcore.stats.wording import counted
from evalcore.study import contents
from evalcore.study.analysis import Analysis
from evalcore.study.csv_cells import text_of
from evalcore.study.db import reading
from evalcore.study.frames import records
from evalcore.study.schema import ConfidenceMeaning, Format
from evalcore.triage import acts as triage_acts, predictions, queries, setting_queries, settings as settings_files
from evalcore.triage.data import TriageData
from evalcore.triage.label_maps import fold
from evalcore.triage.settings import HIGHEST_WEIGHT, TriageSettings

if TYPE_CHECKING:
    from evalcore.rubric.data import RubricData
    from evalcore.triage.bases import Basis
    from evalcore.triage.corrected import Held
    from evalcore.triage.harm import Weights

SHOWN = ("under", "missed_emergencies", "over", "exact")
FORMAT = "qa or conversation alone. Default: as the settings have it."
GOLD = "file: as published; physicians: as read by physicians of this study."
BASIS = "Who says which level an answer gives: judge, physicians (of this study), corrected (both)."
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
    claim: console.Claimed = None,
    physicians: console.WhoseReads = None,
    under_weight: Annotated[float | None, Option(min=0, max=HIGHEST_WEIGHT, help=UNDER)] = None,
    over_weight: Annotated[float | None, Option(min=0, max=HIGHEST_WEIGHT, help=OVER)] = None,
    db: console.Db = None,
    as_json: console.Json = False,
) -> None:
    """Whether models send patients to the right level of care, and which way they err. Levels are 1 (A, home) to 4 (D, emergency now).

    Counted are cases with a clear gold and a level; by physicians the responses that they read. Intervals are 95 %, clustered by case where a case enters more
    than once. Published matrices, which have no cases, stand beside the models by judge.
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
            | {name: records(table) for name, table in tables.items()}
        )
        return
    sentences = [*findings, *margins, *filter(None, [why])]
    _print(triage_data, judges, tables, sentences, settings, n_samples=len(whole.samples))
    levels = ", ".join(f"{word} by {name}" for word, name in judges.items())
    levels = "by physicians of this study" if by is bases.Basis.PHYSICIANS else levels
    put_right = ", put right by physicians" if by is bases.Basis.CORRECTED else ""
    console.say(means or "", f"Levels {levels}{put_right}; gold {gold}.")


def _levels_by(triage_data: TriageData, said: Iterable[str]) -> tuple[TriageData, dict[str, str]]:
    """The cases, with what most judges say where that was asked for, and whose levels count, by format: the usual judges, but for those said."""
    voted = {word: bool(predictions.members(triage_data.voters(word))) for word in Format}
    readers = {word.value: triage_data.judges(word) + [predictions.JURY] * voted[word] for word in Format}
    chosen = predictions.usual_judges(triage_data)
    for words in said:
        asked, _, name = words.partition("=")
        pairs = [(asked, name)] if asked in readers else [(word, words) for word in readers if words in readers[word]]
        if not pairs or any(reader not in readers[word] for word, reader in pairs):
            every = [f"{word}={reader}" for word, names in readers.items() for reader in names]
            known = ", ".join(every) or "none, nobody has read a level yet"
            refuse(f"--judge: expected some of {known}, got {words!r}")
        chosen |= dict(pairs)
    return predictions.with_jury(triage_data) if predictions.JURY in chosen.values() else triage_data, chosen


def _chosen(
    triage_data: TriageData, judges: Sequence[str], models: Sequence[str] | None, formats: Sequence[str]
) -> tuple[TriageData, dict[str, str]]:
    """The responses that were asked for, and whose levels count by format; an unknown model or judge is an `OverreadError`."""
    published = triage_data.published
    known = dict.fromkeys([*triage_data.samples["model"].cat.categories, *published["model"].unique()])
    for name in models or ():
        if name not in known:
            refuse(f"--model: expected one of {', '.join(known) or 'none, the study has no model yet'}, got {name!r}")
    triage_data, chosen = _levels_by(triage_data, judges)
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

    A meaning is a level from A (home) to D (emergency now), a boundary such as C/D, panel (physicians have to decide), or information and a level (kept,
    and never the gold). Cases that were imported before keep what was made of them.
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
    """Show what the study has chosen about triage, or take it from a file: names of levels, formats, metrics, weights, ambiguity."""
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


Part = tuple[dict[str, Any], list[str], dict[str, Any]]
"""A section: its tables for JSON, its findings, and the columns that are printed."""

SECTIONS = ("judges", "models", "ambiguous", "routing")
EVERY = ",".join(SECTIONS)
READS = "Physicians' reads that judges are held against: drawn (all, where none was drawn), or all."
SHARE = "Take the share of samples, even where a model states a confidence."
THRESHOLD = "Routing: send cases below this confidence, instead of choosing one by --wanted."
NO_JUDGE = "No judge states a confidence beside a physician's blind read, and no two judges labelled what one has read."


def calibration(
    section: Annotated[str, Option(help="Some of judges, models, ambiguous, routing, joined by commas.")] = EVERY,
    judge: console.Judges = None,
    reads: Annotated[str, console.chosen("--reads", ("drawn", "all"), READS)] = "drawn",
    share: Annotated[bool, Option("--share", help=SHARE)] = False,
    wanted: Annotated[float, Option(min=0.01, max=1, help="Routing: share of the dangerous misses to catch.")] = 0.9,
    threshold: Annotated[float | None, Option(min=0, max=1, help=THRESHOLD)] = None,
    db: console.Db = None,
    as_json: console.Json = False,
) -> None:
    """Whether stated confidence is borne out, by judges and by models; models' spread on ambiguous cases; and which cases a human should see.

    Nothing is computed from a judge's confidence before somebody has said what it means: import its file again with --confidence-means, or answer on the
    Calibration page. Intervals are 95 %, clustered by conversation or case.
    """
    from evalcore.calibration import SEED, confidence, queries as calibration_queries
    from evalcore.rubric import queries as rubric_queries

    sections = console.some_of("--section", section, SECTIONS)
    with console.study(db) as engine, reading(engine) as session:
        settings = setting_queries.load(session)
        triage_data = queries.load(session)
        meanings = setting_queries.confidence_meanings(session)
        stored: list[Any] = []
        if "judges" in sections:
            said = calibration_queries.stated(session)
            beside = calibration_queries.beside_reads(session, said)
            stored = [said, beside, rubric_queries.load(session)]
    triage_data, every = _levels_by(triage_data, judge or [])
    judges: dict[str, str] = {word: every[word] for word in every if word in settings.formats}
    meaning = confidence.level_meanings(triage_data, meanings, of_parser=True)
    stated = not share and confidence.takes_stated(meaning)
    answers = predictions.joined(triage_data, predictions.predictions(triage_data, judges))
    own = confidence.own_confidence(answers, stated=stated)
    make: dict[str, Any] = {"judges": lambda: _judges(triage_data, meanings, *stored, drawn=reads == "drawn")}
    make |= {"models": lambda: _models(own), "ambiguous": lambda: _ambiguous(triage_data, own, judges)}
    make |= {"routing": lambda: _routing(own, wanted, threshold)}
    parts: dict[str, Part] = {name: make[name]() for name in SECTIONS if name in sections}
    unasked = [str(why) for why in meaning["why"] if why]
    if as_json:
        findings = [*unasked, *(sentence for _, sentences, _ in parts.values() for sentence in sentences)]
        head = {"levels_by": judges, "stated": stated, "seed": SEED, "findings": findings}
        console.print_json(head | {name: _plain(tables) for name, (tables, _, _) in parts.items()})
        return
    console.say(*unasked)
    for _, sentences, columns in parts.values():
        console.say(*sentences)
        if columns and len(columns["Model"]):
            console.show(columns)
    read_by = ", ".join(f"{word} by {name}" for word, name in judges.items())
    console.say(f"Levels {read_by or 'by nobody yet'}; seed {SEED}.")


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    return records(value) if hasattr(value, "columns") else value


def _judges(
    triage_data: TriageData,
    meanings: Mapping[str, ConfidenceMeaning],
    counts: pd.DataFrame,
    beside: pd.DataFrame,
    rubric_data: "RubricData",
    *,
    drawn: bool,
) -> Part:
    from evalcore.calibration import confidence

    held = confidence.held_against_reads(triage_data, meanings, counts, beside, rubric_data, drawn=drawn)
    tables = {
        name: {
            "meanings": one.meanings,
            "reliability": one.calibrated.reliability,
            "errors": one.calibrated.errors,
            "majorities": sorted(one.calibrated.majorities),
            "drawn": one.is_drawn,
        }
        for name, one in held.items()
    }
    return tables, confidence.held_words(held) or [NO_JUDGE], {}


def _models(own: pd.DataFrame) -> Part:
    from evalcore.calibration import SEED, confidence
    from evalcore.calibration.reliability import error_columns, reliability as reliability_of, scaled

    (reliability, errors, _), sources = confidence.models_confidence(own)
    items = confidence.model_items(own)
    scaling, moved = scaled(items, rng=np.random.default_rng(SEED), by=confidence.BY_MODEL)
    after = reliability_of(moved, by=confidence.BY_MODEL)
    tables: dict[str, Any] = {"reliability": reliability, "errors": errors, "reliability_after": after}
    tables |= {"scaling": scaling, "sources": sources}
    columns = {"Model": errors["model"], "Format": errors["format"], "Clear cases": errors["n"]}
    return tables, confidence.models_findings(errors), columns | error_columns(errors)


def _ambiguous(triage_data: TriageData, own: pd.DataFrame, judges: Mapping[str, str]) -> Part:
    from evalcore.calibration.case_spread import on_ambiguous, spread_columns, spread_findings

    summary, cases, n_few = on_ambiguous(triage_data, own, judges)
    names = triage_data.cases["case_id"].to_numpy()[cases["row"].to_numpy(dtype=int)]
    cases = cases.drop(columns=["row", "kind", "gold"])
    cases.insert(0, "case_id", names)
    return {"summary": summary, "cases": cases, "n_few": n_few}, spread_findings(summary), spread_columns(summary)


def _routing(own: pd.DataFrame, wanted: float, threshold: float | None) -> Part:
    from evalcore.calibration import routing
    from evalcore.calibration.reliability import reasons

    if threshold is None:
        chosen, share = routing.chosen(own, wanted), wanted
    else:
        chosen, share = routing.curves(own, at=threshold).assign(undefined=""), None
    tables = {}
    for name, table in (("chosen", chosen), ("curves", routing.curves(own))):
        every = table["threshold"].eq(float("inf"))  # JSON has no infinity
        tables[name] = table.assign(threshold=table["threshold"].mask(every), every_case=every)
    sentences = [routing.routing_finding(chosen, share), *reasons(chosen)]
    return tables, sentences, routing.routing_columns(chosen)
