"""How judges stand to physicians, by the command line."""

from typing import Annotated

import pandas as pd
import typer
from rich.table import Table

from evalcore.console import Db, Json, grid, out, print_json, records, some_of, study
from evalcore.errors import OverreadError


def anchoring(
    judge: Annotated[str | None, typer.Option(help="By this judge only; default: each judge of the study.")] = None,
    by: Annotated[
        str, typer.Option(help="Some of overall, axis, sign, kind, rater, joined by commas.")
    ] = "overall,axis,sign,kind",
    db: Db = None,
    as_json: Json = False,
) -> None:
    """How many first reads physicians changed once the judge's label was shown, toward it and away from it.

    With --json a list with three rows a judge and group: judge; grouping (overall, axis, sign, kind or rater); group; movement:
    changed (of all first reads that were followed by a reveal), toward (of those that differed from the judge: those that took
    its label), away (of those that agreed with it: those that left its label); denominator (revealed, differed, agreed); n and
    n_moved; share in 0..1 with its 95 % interval low, high, clustered by example (null where n is 0); n_examples; and the
    first reads left out: n_without_label, n_not_revealed, n_undecided.
    """
    from evalcore.db import reading
    from evalcore.metrics import anchoring as metric
    from evalcore.queries import study as queries
    from evalcore.queries.blind_reads import blind_reads

    wanted = some_of("--by", by, metric.GROUPINGS)
    with study(db) as engine, reading(engine) as session:
        judges = queries.judges(session)
        if judge is not None and judge not in judges:
            msg = f"--judge: {judge!r} came, expected one of {', '.join(judges) or 'none, the study has no judge yet'}"
            raise OverreadError(msg)
        table = metric.anchoring(blind_reads(session, judge), by=wanted)
    if as_json:
        print_json(records(table))
    elif table.empty:
        out.print("No blind first read beside a judge yet: assign items, or import physicians' first reads.")
    else:
        out.print(_shown(table))


def _shown(table: pd.DataFrame) -> Table:
    from evalcore.metrics.intervals import interval_words, share_words

    lines = [
        (
            row["judge"],
            row["group"],
            f"{row['movement']} (of {row['denominator']})",
            share_words(row["n_moved"], row["n"], row["share"]),
            interval_words(row["low"], row["high"]),
            str(row["n_examples"]),
        )
        for row in table.to_dict(orient="records")
    ]
    return grid(("judge", "group", "movement", "share", "95 % interval", "examples"), lines)
