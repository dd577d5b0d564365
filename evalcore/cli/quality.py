"""How judges do against physicians, by the command line."""

from collections.abc import Mapping
from typing import Annotated, Any

import pandas as pd
import typer
from rich.markup import escape
from rich.table import Table

from evalcore.cli.console import Db, Json, ReadsIn, grid, out, print_json, reads_in, records, some_of, study
from evalcore.errors import OverreadError


def judges(
    judge: Annotated[
        list[str] | None,
        typer.Option(help="This judge; again for another. Default: every judge of the study, and their jury."),
    ] = None,
    by: Annotated[
        str, typer.Option(help="Groups of sensitivity and specificity: some of overall, sign, axis, theme, language.")
    ] = "overall,sign,axis,theme,language",
    min_pairs: Annotated[
        int, typer.Option(min=0, help="Physicians with more pairs than this enter the percentile.")
    ] = 50,
    jury: Annotated[bool, typer.Option("--jury/--no-jury", help="Add the judges' majority and mean.")] = True,
    reads: ReadsIn = None,
    db: Db = None,
    as_json: Json = False,
) -> None:
    """How well judges say what physicians say: balanced F1 as in HealthBench's meta-evaluation, percentile, sensitivity, specificity.

    Each blind first read is a pair with the judge's label. Drawn reads enter, weighted by one over the probability with which their item was
    drawn; --reads all shows every one, unweighted. Intervals are 95 %, clustered by example.

    With --json an object with the lists balanced_f1, percentiles and error_rates, the object jury, reads (drawn or all), n_reads (how many
    enter) and selection, a sentence on how they came to be made. Counts are not weighted, shares are. What has no value is null.
    balanced_f1, a row a rater and group: rater_kind (judge, physicians: all together, physician), rater, grouping (overall or category), group,
    n_pairs, n_items, n_examples, n_both, n_rater_only, n_other_only, n_neither (pairs met by whom), share_met, share_met_by_others,
    precision_met, recall_met, f1_met, precision_not_met, recall_not_met, f1_not_met, balanced_f1 with low, high (jackknife), all in 0..1, and
    undefined: why there is no balanced F1.
    percentiles, a row a judge and group: judge, grouping (overall or theme), group, n_pairs, balanced_f1 (of a theme: the mean of its categories,
    weighted by pairs), n_physicians, n_physicians_left_out, lowest, q25, median, q75, highest (of physicians), percentile in 0..100 with its
    interval percentile_low, percentile_high (over physicians; null with fewer than 10 of them).
    error_rates, a row a judge and group: judge, grouping, group, n_pairs, n_examples, weighted (pairs count differently), n_met,
    n_met_right, sensitivity, sensitivity_low, sensitivity_high, n_not_met, n_not_met_right, specificity, specificity_low, specificity_high.
    jury (null with one judge): n_judges, n_items, n_decided, n_unanimous, n_tied, n_open.
    """
    import msgspec

    from evalcore.judges import quality as metric
    from evalcore.judges import reads as judge_reads
    from evalcore.judges.quality import ERROR_GROUPINGS, balanced_f1, error_rates
    from evalcore.rubric.queries import load
    from evalcore.stats import majority as juries
    from evalcore.study.db import reading

    wanted = some_of("--by", by, ERROR_GROUPINGS)
    which = reads_in(reads)
    with study(db) as engine, reading(engine) as session:
        rubric_data = load(session)
    chosen = list(dict.fromkeys(judge or rubric_data.judges))
    if unknown := sorted(set(chosen) - set(rubric_data.judges)):
        known = ", ".join(rubric_data.judges) or "none, the study has no judge yet"
        msg = f"--judge: expected some of {known}, found {', '.join(unknown)}"
        raise OverreadError(msg)
    rubric_data = rubric_data.by(chosen)
    shown = which or judge_reads.usual_reads(judge_reads.assessed(rubric_data.reads))
    quality = balanced_f1(rubric_data, jury=jury, reads=shown)
    values = metric.standings(quality, metric.theme_of_categories(rubric_data.items))
    ranks = metric.percentiles(values, min_pairs=min_pairs)
    errors = error_rates(rubric_data, by=wanted, jury=jury, reads=shown)
    is_jury = jury and len(rubric_data.voters) >= juries.MIN_JUDGES
    decided = juries.decisions(rubric_data.judged[rubric_data.voters]) if is_jury else None
    selection = judge_reads.reads_words(judge_reads.assessed(rubric_data.reads), shown)
    if as_json:
        tables = {"balanced_f1": quality, "percentiles": ranks, "error_rates": errors}
        print_json(
            {name: records(table) for name, table in tables.items()}
            | {"jury": decided and msgspec.to_builtins(decided), "reads": shown.value}
            | {"n_reads": len(judge_reads.counted_reads(rubric_data.reads, shown)), "selection": selection}
        )
        return
    if not quality["rater_kind"].eq(metric.JUDGE).any():
        out.print("No blind first read beside a judge yet: assign items, or import physicians' first reads.")
        return
    out.print(selection)
    for name in chosen:
        out.print(escape(metric.finding(quality, ranks, name, min_pairs=min_pairs)))
    told = quality.loc[quality["rater_kind"].ne(metric.PHYSICIAN)]
    listed, left_out = _worth_listing(told)
    out.print(_quality(listed))
    if left_out:
        out.print(left_out)
    for sentence in metric.undefined_words(told):
        out.print(escape(sentence))
    out.print(_errors(errors))
    if decided:
        out.print(juries.words(decided))


def _worth_listing(table: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """What is pooled and groups with an interval; and in a sentence how many others have a value."""
    from evalcore.judges.quality import OVERALL

    valued = table.loc[table["balanced_f1"].notna()]
    listed = valued.loc[valued["low"].notna() | valued["grouping"].eq(OVERALL)]
    n_bare = len(valued) - len(listed)
    if not n_bare:
        return listed, ""
    rows = "1 row has" if n_bare == 1 else f"{n_bare:,} rows have"
    return listed, f"{rows} a value and no interval, since too few conversations hold both labels: --json lists them."


def _quality(table: pd.DataFrame) -> Table:
    from evalcore.judges.quality import value_words

    lines = [
        (row["rater"], row["group"], value_words(row), f"{row['n_pairs']:,}", f"{row['n_examples']:,}")
        for row in table.to_dict(orient="records")
    ]
    return grid(("who", "criteria", "balanced F1", "pairs", "examples"), lines)


def _errors(table: pd.DataFrame) -> Table:
    lines = [
        (
            row["judge"],
            row["group"],
            *(_rate(row, *pair) for pair in (("sensitivity", "met"), ("specificity", "not_met"))),
        )
        for row in table.to_dict(orient="records")
    ]
    return grid(("judge", "group", "sensitivity", "specificity"), lines)


def _rate(row: Mapping[Any, Any], rate: str, of: str) -> str:
    from evalcore.stats.intervals import NO_VALUE, rate_words

    if not row[f"n_{of}"]:
        return f"{NO_VALUE} (none read as {of.replace('_', ' ')})"
    bounds = (row[rate], row[f"{rate}_low"], row[f"{rate}_high"])
    return rate_words(*bounds, n_hits=row[f"n_{of}_right"], n=row[f"n_{of}"], weighted=row["weighted"])
