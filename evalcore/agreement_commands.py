"""How far raters agree, by the command line."""

from typing import Annotated

import pandas as pd
import typer
from rich.table import Table

from evalcore.console import Db, Json, grid, out, print_json, records, some_of, study

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
        typer.Option(help="Names joined by commas. Default: those that differ from one another with two categories."),
    ] = None,
    db: Db = None,
    as_json: Json = False,
) -> None:
    """How far physicians agree with one another on the criteria that they have read blind, together and by pair.

    First reads count, as they were locked, and none that somebody chose to read. Intervals leave out one example at a time. Coefficients: agreement
    (share), kappa (Cohen; of all raters together Conger), fleiss_kappa, alpha_nominal (Krippendorff), ac1 (Gwet); and kappa_linear,
    kappa_quadratic, alpha_ordinal, alpha_interval, ac2_linear, ac2_quadratic, which with met and not met equal the plain ones.

    With --json an object of two lists. `pooled`: one row a group and coefficient: grouping (overall, theme, axis, category or cluster), group,
    coefficient, value (at most 1) with its 95 % interval low, high, and se; reason (why one of them is null, else empty); bound_low and bound_high
    (the lowest and highest value with all of cannot assess taken as met, and all as not met); n_items (with two labels or
    more), and on these n_labels, n_examples, n_raters; n_cannot_assess (labels). `by_pair`: the same for each two raters: rater_1 and rater_2
    in the place of grouping and group.
    """
    from evalcore.db import reading
    from evalcore.metrics import agreement as metric
    from evalcore.metrics.agreement_labels import labels_of
    from evalcore.metrics.agreement_sums import Coefficient
    from evalcore.queries.opinions import load

    groupings = some_of("--by", by, metric.GROUPINGS)
    wanted = (
        some_of("--coefficients", coefficients, list(Coefficient))
        if coefficients is not None
        else metric.OF_TWO_CATEGORIES
    )
    with study(db) as engine, reading(engine) as session:
        opinions = load(session)
    named = (
        []
        if judges is None
        else opinions.judges
        if judges == ALL_JUDGES
        else some_of("--judges", judges, opinions.judges)
    )
    labels = labels_of(opinions, judges=named)
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
        out.print(_shown(pooled.loc[pooled["n_items"].gt(0)], ["group"]))
        out.print()
        out.print(_shown(by_pair, ["rater_1", "rater_2"]))
        _print_bounds(pooled)


def _shown(table: pd.DataFrame, keys: list[str]) -> Table:
    from evalcore.metrics.agreement_words import NAMES, coefficient_words

    used = list(dict.fromkeys(table["coefficient"]))
    lines = []
    for key, rows in table.groupby(keys if "grouping" not in table else ["grouping", *keys], sort=False):
        words = [
            coefficient_words(row["coefficient"], row["value"], row["low"], row["high"])
            for row in rows.to_dict(orient="records")
        ]
        counts = rows.iloc[0]
        lines.append((*map(str, key[-len(keys) :]), *words, str(counts["n_items"]), str(counts["n_examples"])))
    return grid((*keys, *(NAMES[name] for name in used), "criteria", "examples"), lines)


def _print_bounds(pooled: pd.DataFrame) -> None:
    """What cannot assess could change, and why a value is missing, of everything together."""
    from evalcore.metrics.agreement import OVERALL
    from evalcore.metrics.agreement_words import NAMES, bounds_words, reasons, undecided_words

    overall = pooled.loc[pooled["grouping"].eq(OVERALL)]
    if not overall.empty and (n := int(overall["n_cannot_assess"].iloc[0])):
        said = ", ".join(
            f"{NAMES[row['coefficient']]} {bounds_words(row['coefficient'], row['bound_low'], row['bound_high'])}"
            for row in overall.to_dict(orient="records")
        )
        out.print(f"\n{undecided_words(n)}; taken as met, or as not met: {said}.")
    for reason in reasons(overall):
        out.print(reason)
