"""Calibration by the command line: whether stated confidence is borne out, models' spread on ambiguous cases, and routing."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import pandas as pd
import typer

from evalcore.console import Db, Json, grid, out, print_json, records, some_of, study
from evalcore.errors import OverreadError
from evalcore.schema import Format

if TYPE_CHECKING:
    from evalcore.metrics.calibration_sections import Calibrated
    from evalcore.opinions import Opinions
    from evalcore.schema import ConfidenceMeaning
    from evalcore.triaged import Triaged

SECTIONS = ("judges", "models", "ambiguous", "routing")
READS = ("drawn", "all")
USUAL_WANTED = 0.9
IN_TEXT = ("distance", "jensen_shannon", "wasserstein", "entropy_model", "concentration")
NO_JUDGE = (
    "No judge states a confidence beside a physician's blind read, and there are no votes of several judges either."
)


def calibration(
    section: Annotated[
        str, typer.Option(help="Some of judges, models, ambiguous, routing, joined by commas.")
    ] = ",".join(SECTIONS),
    judge: Annotated[
        list[str] | None,
        typer.Option(
            help="Whose levels count: FORMAT=JUDGE; again for the other format. Default: the parser for qa, else who has read most."
        ),
    ] = None,
    reads: Annotated[
        str,
        typer.Option(help="Physicians' reads that judges are held against: drawn (all, where none was drawn), or all."),
    ] = "drawn",
    share: Annotated[
        bool, typer.Option("--share", help="Take the share of samples, even where a model states a confidence.")
    ] = False,
    wanted: Annotated[
        float, typer.Option(min=0.01, max=1, help="Routing: share of the dangerous misses to catch.")
    ] = USUAL_WANTED,
    threshold: Annotated[
        float | None,
        typer.Option(
            min=0, max=1, help="Routing: send cases below this confidence, instead of choosing one by --wanted."
        ),
    ] = None,
    db: Db = None,
    as_json: Json = False,
) -> None:
    """Whether stated confidence is borne out, by judges and by models; models' spread on ambiguous cases; and which cases a human should see.

    Nothing is computed from a judge's confidence before somebody has said what it means: import its file again with --confidence-means, or answer on the
    Calibration page. Intervals are 95 %, clustered by conversation or case.

    With --json an object: levels_by (by format, whose levels count), stated (whether confidences that models state count), seed, findings (sentences),
    and the sections that were asked for. What has no value is null.
    judges: the objects criteria and levels, each with reliability, errors, drawn (false: all blind reads count, as none was drawn) and meanings, a row a
    judge: judge, meaning (met, right), n, mean_confidence, contradicted, usable, why, against_met, against_right (of criteria also n_met, share_met,
    mean_confidence_met, mean_confidence_not_met). Of criteria also votes_reliability and votes_errors, where the share of several judges that say met is the
    confidence.
    reliability, a row a group (of models: model and format) and bin: bin, lowest, highest, mean_confidence, share_right, low, high, n, n_clusters.
    errors, a row a group: n, n_left_out, n_bins, n_clusters, mean_confidence, share_right, ece, null, null_high, null_miscalibration, and difference, error,
    brier, miscalibration, discrimination, uncertainty, each with _low and _high, undefined (why there is no value).
    models: reliability, errors, reliability_after, sources (model, format, n_stated, n_shares, n_without), and scaling, a row a model and
    format: n, n_clusters, n_folds, temperature with _low and _high (over the folds), error_before, error_after, brier_before, brier_after,
    brier_change, log_loss_change, each with _low and _high, log_loss_before, log_loss_after, undefined.
    ambiguous: summary, a row a model, format and measure (distance, jensen_shannon, wasserstein, rps, panel_share, entropy_panel, entropy_model,
    concentration): n_cases, n_left_out, value, low, high, floor, above, undefined; error (the article's), a row a model and format: n_ambiguous,
    n, n_stated, value, low, high, undefined; cases, sure where physicians are not first: case_id, model, format, n_votes, n_valid, predicted
    (1..4), share (of the samples that say so), stated, confidence, h_A .. h_D (votes), m_A .. m_D (samples), and the measures, all but distance with
    floor_ (by chance); n_few (answers with one valid sample, left out).
    routing: chosen, a row a model and format: threshold, and routed, caught, exact_kept, ambiguous_routed, each with k_, n_, low_, high_ before it, undefined;
    by --wanted also wanted, n_misses_first and caught_first, and the shares are of the half of the cases that did not choose; curves, as chosen at every
    threshold. A threshold at which every case goes is null, with every_case true.
    """
    from evalcore.metrics import calibration_sections as metric
    from evalcore.metrics.predictions import joined, predictions, usual_judges

    asked = some_of("--section", section, SECTIONS)
    if reads not in READS:
        msg = f"--reads: {reads!r} came, expected one of {', '.join(READS)}"
        raise OverreadError(msg)
    known = _loaded(db, with_judges="judges" in asked)
    judges = usual_judges(known.triaged) | _chosen(known.triaged, judge or [])
    meaning = metric.model_meaning(known.triaged, known.meanings)
    stated = not share and len(meaning) > 0 and bool(meaning["usable"].all())
    found = joined(known.triaged, predictions(known.triaged, judges))
    own = metric.own_confidence(found, judges, stated=stated)
    parts: dict[str, _Part] = {}
    if "judges" in asked:
        parts["judges"] = _judges(known, drawn=reads == "drawn")
    if "models" in asked:
        parts["models"] = _models(own)
    if "ambiguous" in asked:
        parts["ambiguous"] = _ambiguous(known.triaged, own, judges)
    if "routing" in asked:
        parts["routing"] = _routing(own, wanted, threshold)
    said = [sentence for part in parts.values() for sentence in part.said]
    unasked = [str(why) for why in meaning["why"] if why]
    if as_json:
        head = {"levels_by": judges, "stated": stated, "seed": metric.SEED, "findings": [*unasked, *said]}
        print_json(head | {name: _plain(part.tables) for name, part in parts.items()})
        return
    for sentence in unasked:
        out.print(sentence, markup=False)
    for part in parts.values():
        for sentence in part.said:
            out.print(sentence, markup=False)
        for columns, lines in part.shown:
            if lines:
                out.print(grid(columns, lines))
    read_by = ", ".join(f"{word} by {name}" for word, name in judges.items())
    out.print(f"Levels {read_by or 'by nobody yet'}; seed {metric.SEED}.", markup=False)


@dataclass(frozen=True)
class _Known:
    """What the study holds."""

    triaged: "Triaged"
    meanings: "dict[str, ConfidenceMeaning]"
    counts: pd.DataFrame
    beside: pd.DataFrame
    opinions: "Opinions | None"


@dataclass(frozen=True)
class _Part:
    """One section: its tables, its findings, and what is printed of them."""

    tables: Mapping[str, Any]
    said: list[str]
    shown: list[tuple[tuple[str, ...], list[list[str]]]]


def _loaded(db: str | None, *, with_judges: bool) -> _Known:
    from evalcore.db import reading
    from evalcore.metrics.panels import described
    from evalcore.queries import confidences, triage_settings
    from evalcore.queries import opinions as labels
    from evalcore.queries import triage as stored

    nothing = pd.DataFrame()
    with study(db) as engine, reading(engine) as session:
        triaged = described(stored.load(session), triage_settings.load(session).rule)
        return _Known(
            triaged,
            triage_settings.confidence_meanings(session),
            confidences.stated(session) if with_judges else nothing,
            confidences.beside_reads(session) if with_judges else nothing,
            labels.load(session) if with_judges else None,
        )


def _chosen(triaged: "Triaged", said: list[str]) -> dict[str, str]:
    """The judges that were asked for, by format.

    Raises:
        OverreadError: One that has read no answer of that format.
    """
    chosen = {}
    for words in said:
        asked, _, name = words.partition("=")
        if asked not in list(Format) or name not in triaged.judges(asked):
            every = [f"{word.value}={reader}" for word in Format for reader in triaged.judges(word)]
            msg = f"--judge: {words!r} came, expected some of {', '.join(every) or 'none, nobody has read a level yet'}"
            raise OverreadError(msg)
        chosen[asked] = name
    return chosen


def _judges(known: _Known, *, drawn: bool) -> _Part:
    """Judges' confidence on criteria and on levels; by all blind reads where none was drawn."""
    from evalcore.metrics import calibration_sections as metric
    from evalcore.metrics.calibration_words import judge_finding, votes_finding

    of_criteria = metric.criteria_meanings(known.counts, known.meanings)
    of_levels = metric.level_meanings(known.triaged, known.meanings)
    several = known.opinions if known.opinions is not None and len(known.opinions.judges) > 1 else None

    def on_criteria(only: bool) -> "dict[str, Calibrated]":
        found = {"": metric.judges_on_criteria(known.beside, of_criteria, drawn=only)}
        return found if several is None else found | {"votes_": metric.judges_votes(several, drawn=only)}

    def on_levels(only: bool) -> "dict[str, Calibrated]":
        return {"": metric.judges_on_levels(known.triaged, of_levels, drawn=only)}

    tables, said = {}, [str(why) for table in (of_criteria, of_levels) for why in table["why"] if why]
    for name, meanings, make, words in (
        ("criteria", of_criteria, on_criteria, {"label": "criterion", "cluster": "conversation"}),
        ("levels", of_levels, on_levels, {"label": "level", "cluster": "case"}),
    ):
        found = make(drawn)
        is_drawn = drawn and any(part.errors["n"].any() for part in found.values())
        found = found if is_drawn or not drawn else make(False)
        frames = {
            f"{kind}{what}": getattr(part, what) for kind, part in found.items() for what in ("reliability", "errors")
        }
        tables[name] = {"meanings": meanings, **frames, "drawn": is_drawn}
        for kind, part in found.items():
            rows = part.errors.loc[part.errors["n"].gt(0)].to_dict(orient="records")
            said += [votes_finding(row) if kind else judge_finding(row, str(row["group"]), **words) for row in rows]
    return _Part(tables, said or [NO_JUDGE], [])


def _models(own: pd.DataFrame) -> _Part:
    from evalcore.metrics import calibration_sections as metric
    from evalcore.metrics.calibration_words import ece_words, models_findings
    from evalcore.metrics.intervals import percent_words
    from evalcore.metrics.triage_words import number_words

    found = metric.models_confidence(own)
    errors = found.before.errors
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
        "reliability": found.before.reliability,
        "errors": errors,
        "reliability_after": found.after,
        "scaling": found.scaling,
        "sources": found.sources,
    }
    heads = ("model", "format", "clear cases", "sure", "right", "difference", "debiased error", "plain error (ECE)")
    return _Part(tables, models_findings(errors, found.scaling), [(heads, lines)])


def _ambiguous(triaged: "Triaged", own: pd.DataFrame, judges: Mapping[str, str]) -> _Part:
    from evalcore.metrics import calibration_sections as metric
    from evalcore.metrics.calibration_words import MEASURES, from_zero, spread_findings, spread_words

    found = metric.on_ambiguous(triaged, own, judges)
    lines = [
        [
            str(row["model"]),
            str(row["format"]),
            MEASURES[row["measure"]],
            spread_words(row),
            f"{row['n_cases']:,}",
        ]
        for row in from_zero(found.summary).to_dict(orient="records")
        if row["measure"] in IN_TEXT
    ]
    names = triaged.cases["case_id"].to_numpy()[found.cases["row"].to_numpy(dtype=int)]
    cases = found.cases.drop(columns=["row", "kind", "gold"])
    cases.insert(0, "case_id", names)
    reasons = [str(why) for why in dict.fromkeys(found.error["undefined"]) if why]
    tables = {"summary": found.summary, "error": found.error, "cases": cases, "n_few": found.n_few}
    heads = ("model", "format", "measure", "value (by chance)", "ambiguous cases")
    return _Part(tables, [*spread_findings(found.summary), *reasons], [(heads, lines)])


def _routing(own: pd.DataFrame, wanted: float, threshold: float | None) -> _Part:
    from evalcore.metrics import calibration_sections as metric
    from evalcore.metrics import routing
    from evalcore.metrics.calibration_words import routed_words, routing_finding, threshold_words

    curves = routing.curves(own)
    chosen = metric.routing_chosen(own, wanted)
    if threshold is not None:
        chosen = metric.routed_at(curves, threshold).assign(undefined="")
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
    return _Part({"chosen": _every(chosen), "curves": _every(curves)}, said, [(heads, lines)])


def _every(table: pd.DataFrame) -> pd.DataFrame:
    """JSON has no infinity: a threshold above all confidences is null, and named."""
    every = table["threshold"].eq(float("inf"))
    return table.assign(threshold=table["threshold"].mask(every), every_case=every)


def _plain(tables: Mapping[str, Any]) -> dict[str, Any]:
    """Tables as lists of rows, whatever they stand in."""
    found: dict[str, Any] = {}
    for name, table in tables.items():
        if isinstance(table, pd.DataFrame):
            found[name] = records(table)
        else:
            found[name] = _plain(table) if isinstance(table, Mapping) else table
    return found
