"""Calibration by the command line: whether stated confidence is borne out, models' spread on ambiguous cases, and routing."""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import pandas as pd
from typer import Option

from evalcore.cli.console import Db, Json, Judges, chosen, levels_by, print_json, records, say, show, some_of, study
from evalcore.rubric import queries as rubric_queries
from evalcore.rubric.data import RubricData
from evalcore.study.db import reading
from evalcore.study.schema import ConfidenceMeaning
from evalcore.triage import predictions, queries as triage_queries, setting_queries
from evalcore.triage.data import TriageData

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
    judge: Judges = None,
    reads: Annotated[str, chosen("--reads", ("drawn", "all"), READS)] = "drawn",
    share: Annotated[bool, Option("--share", help=SHARE)] = False,
    wanted: Annotated[float, Option(min=0.01, max=1, help="Routing: share of the dangerous misses to catch.")] = 0.9,
    threshold: Annotated[float | None, Option(min=0, max=1, help=THRESHOLD)] = None,
    db: Db = None,
    as_json: Json = False,
) -> None:
    """Whether stated confidence is borne out, by judges and by models; models' spread on ambiguous cases; and which cases a human should see.

    Nothing is computed from a judge's confidence before somebody has said what it means: import its file again with --confidence-means, or answer on the
    Calibration page. Intervals are 95 %, clustered by conversation or case.

    With --json an object: levels_by (by format that the study shows, whose levels count), stated (whether confidences that models state count), seed, findings
    (sentences), and the sections that were asked for. What has no value is null.
    judges: the objects criteria and levels, each with reliability, errors, drawn (false: all blind reads count, as none was drawn) and meanings, a row a
    judge: judge, meaning (met, right), n, mean_confidence, contradicted, usable, why, against_met, against_right (of criteria also n_met, share_met,
    mean_confidence_met, mean_confidence_not_met). Where several judges labelled the same items, their majority is a group more: its confidence is the share of
    the judges that say what most of them say. majorities names these groups.
    reliability, a row a group (a judge or a majority, of levels in a format; of models: model and format) and bin: bin, lowest, highest, mean_confidence,
    share_right, low, high, n, n_clusters.
    errors, a row a group: n, n_left_out, n_bins, n_clusters, mean_confidence, share_right, ece, null, null_high, null_miscalibration, and difference, error,
    brier, miscalibration, discrimination, uncertainty, each with _low and _high, undefined (why there is no value).
    models: reliability, errors, reliability_after, sources (model, format, n_stated, n_shares, n_without), and scaling, a row a model and
    format: n, n_clusters, n_folds, temperature with _low and _high (over the folds), error_before, error_after, brier_before, brier_after,
    brier_change, log_loss_change, each with _low and _high, log_loss_before, log_loss_after, undefined.
    ambiguous: summary, a row a model, format and measure (distance, unbiased; entropy_panel, entropy_model and concentration, their difference, in
    bits): n_cases, n_left_out, value, low, high, floor, above, undefined; cases, sure where physicians are not first: case_id, model, format, n_votes,
    n_valid, predicted (1..4), share (of the samples that say so), confidence, is_stated (by the model; else it is the share), h_A .. h_D (votes),
    m_A .. m_D (samples), panel_share (of the votes for its level), and the measures, all but distance with floor_ (by chance); n_few (answers with
    one valid sample, left out).
    routing, of the dangerous misses (D answered A, B or C; C answered A): chosen, a row a model and format: threshold, n_without (clear cases without a
    confidence, which always go), and routed, caught, exact_kept, ambiguous_routed, each with k_, n_, low_, high_ before it, undefined;
    by --wanted also wanted, n_misses_first and caught_first, and the shares are of the half of the cases that did not choose; curves, as chosen at every
    threshold. A threshold at which every case goes is null, with every_case true.
    """
    from evalcore.calibration import SEED, confidence, queries as calibration_queries

    sections = some_of("--section", section, SECTIONS)
    with study(db) as engine, reading(engine) as session:
        settings = setting_queries.load(session)
        triage_data = triage_queries.load(session)
        meanings = setting_queries.confidence_meanings(session)
        stored: list[Any] = []
        if "judges" in sections:
            stored = [calibration_queries.stated(session), calibration_queries.beside_reads(session)]
            stored.append(rubric_queries.load(session))
    triage_data, judges = levels_by(triage_data, judge or [])
    judges = {word: judges[word] for word in judges if word in settings.formats}
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
        print_json(head | {name: _plain(tables) for name, (tables, _, _) in parts.items()})
        return
    say(*unasked)
    for _, sentences, columns in parts.values():
        say(*sentences)
        if columns and len(columns["Model"]):
            show(columns)
    read_by = ", ".join(f"{word} by {name}" for word, name in judges.items())
    say(f"Levels {read_by or 'by nobody yet'}; seed {SEED}.")


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    return records(value) if hasattr(value, "columns") else value


def _judges(
    triage_data: TriageData,
    meanings: Mapping[str, ConfidenceMeaning],
    counts: pd.DataFrame,
    beside: pd.DataFrame,
    rubric_data: RubricData,
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
