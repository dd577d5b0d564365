"""What a study is made of, by the command line."""

from typing import Annotated

from typer import Option

from evalcore.cli.console import Db, Json, print_json, records, say, show, some_of, study

EVERY = "theme,category,language,turns,length,axis,sign,points,model,response_length"


def composition(
    by: Annotated[str, Option(help="Some of these groupings, joined by commas.")] = EVERY,
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
    from evalcore.study.db import reading

    wanted = some_of("--by", by, metric.GROUPINGS)
    with study(db) as engine, reading(engine) as session:
        frames = queries.load(session)
        sizes = metric.sizes(**frames, subsets=queries.subset_sizes(session))
    tables = {metric.Grouping(word): metric.parts(word, **frames) for word in wanted}
    spreads = metric.spreads(**frames)
    sentences = [sentence for grouping, table in tables.items() for sentence in metric.findings(grouping, table)]
    weighting = benchmark.weighting(frames["examples"]) if benchmark.has_themes(frames["examples"]) else None
    if as_json:
        groups = [
            {"grouping": grouping, "unit": grouping.unit, **row}
            for grouping, table in tables.items()
            for row in records(table.drop(columns=["label", "n_hidden"]))
        ]
        weights = weighting and {name: value for name, value in vars(weighting).items() if name != "weights"}
        tables_of_all = {"sizes": records(sizes), "spreads": records(spreads)}
        print_json(tables_of_all | {"groups": groups, "sentences": sentences, "weights": weights})
        return
    show(metric.size_columns(sizes))
    show(metric.spread_columns(spreads))
    for grouping, table in tables.items():
        show(metric.part_columns(grouping, table))
    if weighting:
        sentences.append(benchmark.weighting_sentence(weighting))
    say(*sentences)
