"""How judges stand to physicians, by the command line."""

from typing import Annotated

import msgspec
import pandas as pd
import typer
from rich.table import Table

from evalcore.cli.console import Db, Json, grid, out, print_json, records, some_of, study
from evalcore.errors import OverreadError
from evalcore.stats.wording import listed


def anchoring(
    judge: Annotated[str | None, typer.Option(help="By this judge only; default: each judge of the study.")] = None,
    by: Annotated[
        str, typer.Option(help="Some of overall, axis, sign, kind, rater, joined by commas.")
    ] = "overall,axis,sign,kind",
    db: Db = None,
    as_json: Json = False,
) -> None:
    """How many first reads physicians changed after they had seen the judge's label, toward it and away from it.

    With --json an object. movements: three rows a judge and group: judge; grouping (overall, axis, sign, kind or rater); group; movement:
    changed (of all first reads that were followed by a reveal), toward (of those that differed from the judge: those that took
    its label), away (of those that agreed with it: those that left its label); denominator (revealed, differed, agreed); n and
    n_moved; share in 0..1 with its 95 % interval low, high (null where n is 0); physicians (whom it is for: in_general, clustered by
    example and reader, from 3 effective readers on; else these, clustered by example); n_examples, n_readers, n_effective_readers; and
    the first reads left out: n_without_label, n_not_revealed, n_undecided, n_control. effects: where a
    study sends a share of criteria to a second look without the label, what seeing the label changes, a row a judge: judge; n_shown and n_changed_shown
    (first reads that differed from it and whose readers saw its label; those of them that were changed), n_control and n_changed_control (the same on a
    second look without it); share_shown, share_control; difference with its 95 % interval low, high (null where reason says why), for physicians.
    """
    from evalcore.judges import anchoring as metric
    from evalcore.rubric.blind_reads import blind_reads
    from evalcore.study import contents as queries
    from evalcore.study.db import reading

    wanted = some_of("--by", by, metric.GROUPINGS)
    with study(db) as engine, reading(engine) as session:
        judges = queries.judges(session)
        if judge is not None and judge not in judges:
            msg = f"--judge: {judge!r} came, expected one of {', '.join(judges) or 'none, the study has no judge yet'}"
            raise OverreadError(msg)
        reads = blind_reads(session, judge)
        table = metric.anchoring(reads, by=wanted)
    beside = {str(name): metric.effect(of_judge) for name, of_judge in reads.groupby("judge", sort=True)}
    effects = {name: found for name, found in beside.items() if found is not None}
    if as_json:
        told = pd.DataFrame({"judge": name, **msgspec.structs.asdict(found)} for name, found in effects.items())
        print_json({"movements": records(table), "effects": records(told)})
        return
    if table.empty:
        out.print("No blind first read beside a judge yet: assign items, or import physicians' first reads.")
        return
    counted = table.loc[table["n"].gt(0)]
    if len(counted):
        out.print(_shown(counted))
    shown = table.groupby("judge", sort=False)["n"].transform("sum").gt(0)
    for name, of_judge in table.loc[shown].groupby("judge", sort=False):
        words = metric.population_words(of_judge.head(len(metric.MOVEMENTS)))
        n_without = int(of_judge["n"].eq(0).sum())
        rows = "1 row has" if n_without == 1 else f"{n_without:,} rows have"
        said = [words, f"{rows} no first read and {'is' if n_without == 1 else 'are'} not listed." if n_without else ""]
        if str(name) in effects:
            said.append(metric.effect_words(effects[str(name)]))
        out.print(f"{name}: {' '.join(filter(None, said))}", markup=False)
    if nothing := list(table.loc[~shown, "judge"].unique()):
        out.print(f"No first read was followed by a reveal of {listed(nothing)}.", markup=False)


def _shown(table: pd.DataFrame) -> Table:
    from evalcore.stats.intervals import interval_words, share_words

    lines = [
        (
            row["judge"],
            row["group"],
            f"{row['movement']} (of {row['denominator']})",
            share_words(row["n_moved"], row["n"], row["share"]),
            interval_words(row["low"], row["high"]),
            row["physicians"].replace("_", " "),
            str(row["n_examples"]),
        )
        for row in table.to_dict(orient="records")
    ]
    return grid(("judge", "group", "movement", "share", "95 % interval", "for physicians", "examples"), lines)
