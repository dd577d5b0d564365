"""Criteria, versions and families of judges by the command line; and the check of a judge for continuous integration."""

from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Exit, Option

from evalcore.cli import console
from evalcore.errors import OverreadError
from evalcore.judges.record import reads_words
from evalcore.rubric import queries
from evalcore.rubric.data import first_reads
from evalcore.stats.wording import counted
from evalcore.study import acting, contents
from evalcore.study.csv_cells import text_of
from evalcore.study.db import reading

FROM = "The earlier judge or version; NAME#2: the judge when it was asked again."
GROUPINGS = "Some of overall, category, axis, sign, theme, joined by commas."
FAMILIES = "CSV with the columns pattern and family; leave it out to list."
BAD_INPUT = 2
"""Exit status of judge-check where the check could not be made; 1: it was made, and the judge failed."""


def criteria(
    judge: Annotated[str | None, Option(help="Whose labels; default: the judge with the most.")] = None,
    by: Annotated[str, Option(help="category, axis, theme or criterion")] = "category",
    reads: console.ReadsIn = None,
    everything: Annotated[bool, Option("--all", help="Also groups that no physician has read.")] = False,
    db: console.Db = None,
    as_json: console.Json = False,
) -> None:
    """Whether judge and physicians mean the same by each group of criteria, with alarms.

    With --json a list with one row a group, those with alarms first: judge; grouping; group (name, or criterion_id); n_items, n_judged, n_met_judged;
    n (items that judge and physicians labelled), n_clusters (their examples; of one criterion: responses), n_met_judge, n_reads,
    n_cannot_assess, n_pairs, n_disagreeing; judge, physicians, right, if_met, if_not_met, disagreement, cannot_assess as shares in 0..1, each with
    NAME_low and NAME_high (95 %, clustered by example; of one criterion by response), shift (judge less physicians) and association
    (if_met less if_not_met) in -1..1 likewise (the judge's own share is judge_met); weighted (true: shares are, counts are not);
    inverted, lenient, strict, disputed, unassessable (true or false), n_alarms, reasons.
    """
    from evalcore.judges import criterion_health as metric

    console.one_of("--by", by, metric.GROUPINGS)
    which, rubric_data = console.reads_in(reads), console.rubric_data_of(db)
    usual = next(iter(rubric_data.judges), "")
    chosen = console.one_of("--judge", usual if judge is None else judge, rubric_data.judges)
    table = metric.criterion_health(rubric_data, chosen, by=by, reads=which)
    kept = table if everything else table.loc[table["n_reads"].gt(0)]
    kept = kept.sort_values(["n_alarms", "n_reads"], ascending=False, kind="stable")
    if as_json:
        renamed = {f"judge{end}": f"judge_met{end}" for end in ("", "_low", "_high")}
        console.print_json(console.records(kept.rename(columns=renamed).assign(judge=chosen)))
        return
    console.say(f"{chosen}: {metric.finding(table)}")
    console.say(reads_words(first_reads(rubric_data.reads), which))
    if len(kept):
        names = [str(group) for group in kept["group"]]
        console.show(metric.columns(kept, names))
        console.say(*(f"{name}: {why}" for name, why in zip(names, kept["reasons"], strict=True) if why))


def drift(
    before: Annotated[str, Option("--from", help=FROM)],
    after: Annotated[str, Option("--to", help="The later one.")],
    by: Annotated[str, Option(help=GROUPINGS)] = "overall,category,axis,sign",
    db: console.Db = None,
    as_json: console.Json = False,
) -> None:
    """What changes where one judge or version takes the place of another: labels that flip, and scores.

    With --json an object: before, after; flips, a list with one row a grouping and group: n (items that both labelled), n_examples,
    n_before_only, n_after_only, n_met_before, n_met_after, n_flips (of n), n_to_not_met (of n_met_before), n_to_met (of the rest),
    and flips, to_not_met, to_met as shares with NAME_low and NAME_high (95 %, clustered by example), z (positive: the later judge says
    met more often), test (clustered: McNemar's with examples as clusters; exact: from the examples' signs, with fewer than 20 that lean either
    way), p, p_holm (adjusted for the groups of the grouping), reason (why p is null); scores, a list with one row a model and
    evaluation: n_responses, n_left_out, n_examples, score_before, score_after (means, not clipped), difference with low and high.
    """
    from evalcore.judges import drift as metric

    wanted = console.some_of("--by", by, metric.GROUPINGS)
    rubric_data = console.rubric_data_of(db).with_repeats()
    for option, judge in (("--from", before), ("--to", after)):
        console.one_of(option, judge, rubric_data.judges)
    flips = metric.flips(rubric_data, before, after, by=wanted)
    scores = metric.score_drift(rubric_data, before, after)
    if as_json:
        tables = {"flips": console.records(flips), "scores": console.records(scores)}
        console.print_json({"before": before, "after": after} | tables)
        return
    console.say(f"From {before} to {after}")
    console.show(metric.flips_columns(flips))
    console.show(metric.scores_columns(scores))


def self_preference(db: console.Db = None, as_json: console.Json = False) -> None:
    """Whether each judge labels its own family's responses in their favour more often than others', where physicians gave the same label.

    With --json a list with one row a judge: judge, family, n_own, n_other (blind first reads), n_own_examples, n_other_examples, n_shared_examples;
    met_difference and not_met_difference (where physicians say met, and where they say not met) and difference (both combined by Mantel and
    Haenszel's weights), in -1..1 and positive where it favours its own, each with its 95 % interval, clustered by example: met_difference_low,
    met_difference_high, not_met_difference_low, not_met_difference_high, low, high; reason (why the difference is null), n_without_family,
    models_without_family, n_without_label, n_without_points, n_not_drawn (reads left out).
    """
    from evalcore.judges import self_preference as metric
    from evalcore.study import families

    with console.study(db) as engine, reading(engine) as session:
        rubric_data, patterns = queries.load(session), contents.family_table(session)
    names = [*rubric_data.items["model"].cat.categories, *rubric_data.judges]
    table = metric.self_preference(rubric_data, families.families_of(names, patterns))
    if as_json:
        console.print_json(console.records(table))
    elif table.empty:
        console.say("No judge has labelled anything yet.")
    else:
        found: list[Any] = table.to_dict(orient="records")
        console.say(*map(metric.finding, found))


def families(
    path: Annotated[Path | None, Argument(help=FAMILIES)] = None,
    reset: Annotated[bool, Option("--reset", help="Back to the table that comes with Overread.")] = False,
    db: console.Db = None,
    as_json: console.Json = False,
) -> None:
    """List which family each model and judge belongs to, by which patterns; or write the study's own table of them.

    A pattern is a glob on the whole name, upper and lower case alike; the first that fits counts. With --json an object: is_own (the study
    has a table of its own), patterns (list of pattern, family), names (list of name, kind: model or judge, family or null).
    """
    from evalcore.study import families as tables

    given = None if path is None else tables.parse(text_of(console.content(path), path.name), path.name)
    if reset and given:
        msg = "expected --reset or a file, got both"
        raise OverreadError(msg)
    with console.study(db) as engine:
        if given or reset:
            acting.set_families(engine, given or [], actor=console.actor(engine))
        with reading(engine) as session:
            own, patterns = contents.own_families(session), contents.family_table(session)
            kinds = [("model", contents.models(session)), ("judge", contents.judges(session))]
    found = [(name, kind) for kind, of_kind in kinds for name in of_kind]
    names = [{"name": name, "kind": kind, "family": tables.family_of(name, patterns)} for name, kind in found]
    if as_json:
        listed = [{"pattern": pattern, "family": family} for pattern, family in patterns]
        console.print_json({"is_own": bool(own), "patterns": listed, "names": names})
        return
    whose = "the study's own table" if own else "the table that comes with Overread"
    console.say(f"{len(patterns)} patterns, {whose}")
    shown = ("name", "kind", "family")
    console.show({word.capitalize(): [row[word] or "– (no pattern fits)" for row in names] for word in shown})


def judge_check(  # noqa: PLR0913, PLR0917 - one option each
    gold: Annotated[Path, Option(help="CSV of labels, as `overread export labels.csv` writes it.")],
    judge: Annotated[str, Option(help="Whose labels in this study are checked.")],
    source: Annotated[str, Option(help="Which gold labels count: adjudicated, agreed, single.")] = "adjudicated,agreed",
    min_f1: Annotated[float | None, Option(min=0, max=1, help="Least balanced F1.")] = None,
    min_accuracy: Annotated[float | None, Option(min=0, max=1)] = None,
    min_sensitivity: Annotated[float | None, Option(min=0, max=1)] = None,
    min_specificity: Annotated[float | None, Option(min=0, max=1)] = None,
    by_bound: Annotated[str, Option(help="point or low: the measure, or the lower end of its interval.")] = "point",
    max_missing: Annotated[int, Option(min=0, help="So many items may be without the judge's label.")] = 0,
    db: console.Db = None,
    as_json: console.Json = False,
) -> None:
    """Check a judge against gold labels; for the continuous integration of prompts.

    Exit status: 0 the judge reaches every bound, 1 it does not, 2 the check could not be made. Without a bound a balanced F1 of 0.6 is
    wanted. With --json an object: judge, gold (the file), passed, failures (a sentence each), sources, by_bound, bounds (measure to least
    value), measures (list of measure, value, low, high, n, n_examples, reason; measure: f1, accuracy, sensitivity, specificity), n_rows, n_used,
    n_other_source, n_cannot_assess, n_missing, n_not_in_study, n_not_labelled, max_missing.
    """
    try:
        from evalcore.judges import gold_check as metric

        values = (min_f1, min_accuracy, min_sensitivity, min_specificity)
        bounds = {name: bound for name, bound in zip(metric.MEASURES, values, strict=True) if bound is not None}
        bounds = bounds or {metric.F1: metric.DEFAULT_MIN_F1}
        sources = console.some_of("--source", source, metric.SOURCES)
        console.one_of("--by-bound", by_bound, (metric.POINT, metric.LOW))
        labels = metric.read_gold(console.content(gold), gold.name)
        with console.study(db) as engine, reading(engine) as session:
            report = metric.check_judge(
                session, labels, judge, name=gold.name, sources=sources, bounds=bounds, by=by_bound, max_missing=max_missing
            )  # fmt: skip
    except OverreadError as error:
        console.err.print(str(error), markup=False)
        raise Exit(BAD_INPUT) from error
    if as_json:
        numbers = {name: value for name, value in vars(report).items() if name.startswith("n_")}
        printed = {"judge": judge, "gold": str(gold), "passed": not report.failures, "failures": report.failures}
        printed |= {"sources": sources, "by_bound": by_bound, "bounds": bounds}
        printed |= {"measures": console.records(report.measures), **numbers}
        n_missing = report.n_not_in_study + report.n_not_labelled
        console.print_json(printed | {"n_missing": n_missing, "max_missing": max_missing})
    else:
        console.show(metric.columns(report.measures, bounds))
        console.say(f"{counted(report.n_used, 'item')} of {gold.name}", *report.failures)
    raise Exit(1 if report.failures else 0)
