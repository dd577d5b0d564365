"""Calibration by the command line: whether stated confidence is borne out, models' spread on ambiguous cases, and routing."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from evalcore.cli.console import Db, Json, Judges, grid, levels_by, one_of, out, print_json, some_of, study

if TYPE_CHECKING:
    from evalcore.cli.calibration_tables import Known

SECTIONS = ("judges", "models", "ambiguous", "routing")
READS = ("drawn", "all")
USUAL_WANTED = 0.9


def calibration(
    section: Annotated[
        str, typer.Option(help="Some of judges, models, ambiguous, routing, joined by commas.")
    ] = ",".join(SECTIONS),
    judge: Judges = None,
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
    from evalcore.calibration import confidence_meaning
    from evalcore.calibration import sections as metric
    from evalcore.calibration.judge_confidence import own_confidence
    from evalcore.cli import calibration_tables
    from evalcore.triage.predictions import joined, predictions

    asked = some_of("--section", section, SECTIONS)
    one_of("--reads", reads, READS)
    known = _loaded(db, with_judges="judges" in asked)
    triage_data, judges = levels_by(known.triage_data, judge or [])
    known, judges = (
        replace(known, triage_data=triage_data),
        {word: judges[word] for word in judges if word in known.formats},
    )
    meaning = confidence_meaning.model_meaning(known.triage_data, known.meanings)
    stated = not share and confidence_meaning.takes_stated(meaning)
    own = own_confidence(joined(known.triage_data, predictions(known.triage_data, judges)), stated=stated)
    parts: dict[str, calibration_tables.Part] = {}
    if "judges" in asked:
        parts["judges"] = calibration_tables.judges(known, drawn=reads == "drawn")
    if "models" in asked:
        parts["models"] = calibration_tables.models(own)
    if "ambiguous" in asked:
        parts["ambiguous"] = calibration_tables.ambiguous(known.triage_data, own, judges)
    if "routing" in asked:
        parts["routing"] = calibration_tables.routed(own, wanted, threshold)
    said = [sentence for part in parts.values() for sentence in part.said]
    unasked = [str(why) for why in meaning["why"] if why]
    if as_json:
        head = {"levels_by": judges, "stated": stated, "seed": metric.SEED, "findings": [*unasked, *said]}
        print_json(head | {name: calibration_tables.plain(part.tables) for name, part in parts.items()})
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


def _loaded(db: str | None, *, with_judges: bool) -> "Known":
    import pandas as pd

    from evalcore.calibration import queries as calibration_queries
    from evalcore.cli.calibration_tables import Known
    from evalcore.rubric import queries as labels
    from evalcore.study.db import reading
    from evalcore.triage import queries as stored
    from evalcore.triage import setting_queries
    from evalcore.triage.data import described

    nothing = pd.DataFrame()
    with study(db) as engine, reading(engine) as session:
        chosen = setting_queries.load(session)
        triage_data = described(stored.load(session), chosen.rule)
        return Known(
            triage_data,
            chosen.formats,
            setting_queries.confidence_meanings(session),
            calibration_queries.stated(session) if with_judges else nothing,
            calibration_queries.beside_reads(session) if with_judges else nothing,
            labels.load(session) if with_judges else None,
        )
