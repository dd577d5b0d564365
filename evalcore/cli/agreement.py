"""How far raters agree, by the command line."""

from typing import Annotated

import pandas as pd
import typer
from rich.table import Table

from evalcore.cli.console import Db, Json, grid, out, print_json, records, some_of, study

ALL_JUDGES = "all"


def agreement(
    by: Annotated[
        str, typer.Option(help="Some of overall, theme, axis, category, cluster, joined by commas.")
    ] = "overall,theme,axis,category",
    judges: Annotated[
        str | None,
        typer.Option(help="Judges to count as raters too: names joined by commas, or all. Default: physicians alone."),
    ] = None,
    coefficients: Annotated[
        str | None,
        typer.Option(help="Names joined by commas. Default: agreement, ac1, alpha_nominal."),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="All coefficients that differ from one another with two categories.")
    ] = False,
    db: Db = None,
    as_json: Json = False,
) -> None:
    """How far physicians agree with one another on the criteria that they have read blind, together and by pair.

    First reads count, as they were locked, and none that somebody chose to read. There are two intervals: for these physicians, leaving out one
    example at a time; and for physicians in general, of whom these are a sample, leaving out one example and one reader at a time, from
    three effective readers on. Coefficients: agreement (share), ac1 (Gwet), alpha_nominal (Krippendorff); with --all also kappa (Cohen; of all raters
    together Conger) and fleiss_kappa; by name kappa_linear, kappa_quadratic, alpha_ordinal, alpha_interval, ac2_linear, ac2_quadratic,
    which with met and not met equal the plain ones.

    With --json an object of two lists. `pooled`: one row a group and coefficient: grouping (overall, theme, axis, category or cluster), group,
    coefficient, value (at most 1); low, high, se (95 %, these raters) and reason (why one of them is null, else empty); general_low,
    general_high, general_se, general_reason (raters in general); bound_low and bound_high (of percent agreement: the lowest and highest value
    whatever each cannot assess had been; else null); n_items (with two labels or more), and on these n_labels, n_examples, n_raters,
    n_effective_raters; n_cannot_assess (labels). `by_pair`: the same for each two raters, but for raters in general: rater_1 and rater_2 in the
    place of grouping and group.
    """
    from evalcore.judges import agreement as metric
    from evalcore.judges.agreement import labels_of
    from evalcore.rubric.queries import load
    from evalcore.stats.agreement_sums import Coefficient
    from evalcore.study.db import reading

    groupings = some_of("--by", by, metric.GROUPINGS)
    wanted = (
        some_of("--coefficients", coefficients, list(Coefficient))
        if coefficients is not None
        else metric.OF_TWO_CATEGORIES
        if everything
        else metric.SHOWN
    )
    with study(db) as engine, reading(engine) as session:
        rubric_data = load(session)
    named = (
        []
        if judges is None
        else rubric_data.judges
        if judges == ALL_JUDGES
        else some_of("--judges", judges, rubric_data.judges)
    )
    labels = labels_of(rubric_data, judges=named)
    chosen = [Coefficient(name) for name in wanted]
    pooled = metric.agreement(labels, by=groupings, coefficients=chosen)
    by_pair = metric.pair_agreement(labels, coefficients=chosen)
    if as_json:
        print_json({"pooled": records(pooled), "by_pair": records(by_pair)})
    elif by_pair.empty:
        out.print(
            "No criterion has been read blind by two physicians yet: assign items to two readers, or import their first reads."
        )
    else:
        whom = "raters" if named else "physicians"
        shown = pooled.loc[pooled["n_items"].gt(0)]
        for prefix, title in ((metric.GENERAL, f"{whom} in general"), (metric.THESE, f"these {whom}")):
            if not shown[f"{prefix}reason"].eq(metric.TOO_FEW_RATERS).all():
                out.print(f"95 % intervals for {title}")
                out.print(_shown(shown, ["group"], prefix))
        out.print(f"By pair, for these {whom}")
        out.print(_shown(by_pair, ["rater_1", "rater_2"], metric.THESE))
        _print_bounds(pooled)


def _shown(table: pd.DataFrame, keys: list[str], prefix: str) -> Table:
    from evalcore.judges.agreement import NAMES, coefficient_words

    used = list(dict.fromkeys(table["coefficient"]))
    lines = []
    for key, rows in table.groupby(keys if "grouping" not in table else ["grouping", *keys], sort=False):
        words = [
            coefficient_words(row["coefficient"], row["value"], row[f"{prefix}low"], row[f"{prefix}high"])
            for row in rows.to_dict(orient="records")
        ]
        counts = rows.iloc[0]
        lines.append((*map(str, key[-len(keys) :]), *words, str(counts["n_items"]), str(counts["n_examples"])))
    return grid((*keys, *(NAMES[name] for name in used), "criteria", "examples"), lines)


def _print_bounds(pooled: pd.DataFrame) -> None:
    """What cannot assess leaves open, and why a value is missing, of everything together."""
    from evalcore.judges.agreement import NAMES, OVERALL, bounds_words, reasons, undecided_words

    overall = pooled.loc[pooled["grouping"].eq(OVERALL)]
    for row in overall.loc[overall["bound_low"].notna() & overall["n_cannot_assess"].gt(0)].to_dict(orient="records"):
        between = bounds_words(row["coefficient"], row["bound_low"], row["bound_high"])
        name = NAMES[row["coefficient"]].lower()
        out.print(
            f"\n{undecided_words(row['n_cannot_assess'])}; whatever each had been, {name} over all reads is {between}."
        )
    for reason in reasons(overall):
        out.print(reason)
