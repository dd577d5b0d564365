"""What a study is made of, by the command line."""

import math
from typing import Annotated, Any

import pandas as pd
import typer
from rich.table import Table

from evalcore.cli.console import Db, Json, grid, out, print_json, records, some_of, study
from evalcore.stats.wording import NO_VALUE

EVERY = "theme,category,language,turns,length,axis,sign,points,model,response_length"


def composition(
    by: Annotated[str, typer.Option(help="Some of these groupings, joined by commas.")] = EVERY,
    db: Db = None,
    as_json: Json = False,
) -> None:
    """What the study is made of and what physicians have read of it, beside the published counts of the full HealthBench.

    With --json an object. sizes: a list with what (conversations, criteria, ...), n, n_read, published. spreads: a list with what, n,
    mean, low, quartile_1, median, quartile_3, high, published_mean. groups: a list with grouping, unit (conversations, criteria or
    responses), group, n, n_whole (of all known groups), share with low and high, n_read (with a physician's verdict), n_unread, published,
    published_whole and published_share (of the full benchmark); n_reads (responses, or items, that physicians read), n_reads_whole (of all known groups),
    read_share
    (of all such reads) with read_low and read_high, and population_share (of all that could be read). Intervals are clustered by example and
    hold together for the groups of a grouping (95 %, Bonferroni). sentences: what these intervals show.
    weights: by_theme (the weight of a conversation of each theme that gives the
    themes their published shares), n_known, n_unknown (without a theme of the benchmark: weight 0), absent, share_present,
    n_effective; null where no conversation has such a theme. Shares are in 0..1; a value that there is none of is null.
    """
    from evalcore.rubric import benchmark
    from evalcore.rubric import composition as metric
    from evalcore.rubric import composition_queries as queries
    from evalcore.rubric.composition import findings
    from evalcore.study.db import reading

    wanted = some_of("--by", by, metric.GROUPINGS)
    with study(db) as engine, reading(engine) as session:
        frames = queries.load(session)
        sizes = metric.sizes(**frames, subsets=queries.subset_sizes(session))
    tables = {grouping: metric.parts(grouping, **frames) for grouping in wanted}
    spreads = metric.spreads(**frames)
    sentences = [said for grouping, table in tables.items() for said in findings(grouping, table)]
    weighting = benchmark.weighting(frames["examples"]) if benchmark.has_themes(frames["examples"]) else None
    if as_json:
        groups = [
            {"grouping": grouping, "unit": metric.UNITS[metric.Grouping(grouping)], **row}
            for grouping, table in tables.items()
            for row in records(table.drop(columns=["label", "n_hidden"]))
        ]
        print_json(
            {
                "sizes": records(sizes),
                "spreads": records(spreads),
                "groups": groups,
                "sentences": sentences,
                "weights": _weights(weighting),
            }
        )
        return
    out.print(_sizes(sizes), _spreads(spreads))
    for grouping, table in tables.items():
        out.print(_groups(grouping, metric.UNITS[metric.Grouping(grouping)], table))
    for sentence in sentences:
        out.print(sentence, markup=False)
    if weighting:
        out.print(benchmark.weighting_sentence(weighting), markup=False)


def _weights(weighting: Any) -> dict[str, Any] | None:
    if weighting is None:
        return None
    return {name: value for name, value in vars(weighting).items() if name != "weights"}


def _number(value: float, digits: int = 0) -> str:
    return NO_VALUE if math.isnan(value) else f"{value:,.{digits}f}"


def _sizes(sizes: pd.DataFrame) -> Table:
    lines = [
        (row["what"], *(_number(row[name]) for name in ("n", "n_read", "published")))
        for row in sizes.to_dict("records")
    ]
    return grid(("", "here", "read", "full benchmark"), lines)


def _spreads(spreads: pd.DataFrame) -> Table:
    lines = []
    for row in spreads.to_dict("records"):
        cells = (_number(row["mean"], 1), _number(row["median"]), _number(row["low"]), _number(row["high"]))
        lines.append((row["what"], *cells, _number(row["published_mean"], 1)))
    return grid(("", "mean", "median", "from", "to", "mean of the full benchmark"), lines)


def _groups(grouping: str, unit: str, table: pd.DataFrame) -> Table:
    from evalcore.rubric import composition as metric

    has_published = bool(table["published_share"].notna().any())
    columns = (unit, *(("full benchmark",) if has_published else ()), "read", "of all reads")
    lines = []
    for row in table.to_dict("records"):
        published = (metric.benchmark_words(row),) if has_published else ()
        cells = (
            row["group"],
            metric.here_words(row),
            *published,
            metric.read_words(row),
            metric.of_reads_words(row),
        )
        lines.append(cells)
    return grid((metric.NAMES[metric.Grouping(grouping)], *columns), lines)
