"""What the study is made of and what physicians have read of it, in numbers and in words."""

import math
from collections.abc import Collection, Mapping
from enum import StrEnum
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from evalcore.rubric import benchmark
from evalcore.rubric.composition_queries import MadeOf
from evalcore.stats.arrays import quotient
from evalcore.stats.intervals import LEVEL, NO_VALUE, grouped_shares, interval_words, percent_words, share_words
from evalcore.stats.wording import decimal, listed
from evalcore.study.languages import LANGUAGES

UNKNOWN = "not known"
MAX_GROUPS = 20
EXAMPLES, CRITERIA, RESPONSES = "conversations", "criteria", "responses"


class Grouping(StrEnum):
    """What the parts of a study are told apart by: what it counts, and what it is called above a column, in a sentence, and of one group."""

    unit: str
    label: str
    words: str
    noun: str

    def __new__(cls, name: str, unit: str = "", label: str = "", words: str = "", noun: str = "") -> "Grouping":
        """A member by its name, with the other four."""
        member = str.__new__(cls, name)
        member._value_ = name
        member.unit, member.label, member.words, member.noun = unit, label, words, noun
        return member

    THEME = "theme", EXAMPLES, "Theme", "theme", "{}"
    CATEGORY = "category", EXAMPLES, "Category", "category", "the category {}"
    LANGUAGE = "language", EXAMPLES, "Language", "language", "conversations in {}"
    TURNS = "turns", EXAMPLES, "Turns", "turns", "conversations of {}"
    LENGTH = "length", EXAMPLES, "Length", "characters of the conversation", "conversations of {} characters"
    AXIS = "axis", CRITERIA, "Axis", "axis", "criteria of {}"
    SIGN = "sign", CRITERIA, "Sign", "sign of the points", "{} criteria"
    POINTS = "points", CRITERIA, "Points", "points", "criteria of {} points"
    MODEL = "model", RESPONSES, "Model", "model", "responses of {}"
    RESPONSE_LENGTH = (
        "response_length", RESPONSES, "Length of responses", "characters of the response", "responses of {} characters"
    )  # fmt: skip


GROUPINGS = tuple(Grouping)
_STEPS: Mapping[Grouping, tuple[str, tuple[float, ...], tuple[str, ...]]] = {  # its column, where each begins, names
    Grouping.TURNS: ("n_turns", (2, 4, 6), (benchmark.ONE_TURN, "2 to 3 turns", "4 to 5 turns", "6 turns or more")),
    Grouping.LENGTH: (
        "n_chars",
        (200, 500, 1_000, 2_000),
        ("under 200", "200 to 499", "500 to 999", "1,000 to 1,999", "2,000 or more"),
    ),
    Grouping.POINTS: ("points", (-5, 0, 6), ("−10 to −6", "−5 to −1", "1 to 5", "6 to 10")),
    Grouping.SIGN: ("points", (0,), ("undesirable", "desirable")),
    Grouping.RESPONSE_LENGTH: (
        "n_chars",
        (500, 1_000, 2_000, 4_000),
        ("under 500", "500 to 999", "1,000 to 1,999", "2,000 to 3,999", "4,000 or more"),
    ),
}


def parts(
    grouping: Grouping | str,
    *,
    examples: pd.DataFrame,
    criteria: pd.DataFrame,
    responses: pd.DataFrame,
    hidden: Collection[int] = (),
) -> pd.DataFrame:
    """The groups of a study: how many there are, beside the published counts of the full benchmark where an example has one of its themes, and what was read.

    Beside the benchmark the units are those of the grouping; beside the study they are what was read: responses, and for groups of criteria items. Hidden
    examples and their criteria are counted in n, and left out of every number of reads; their responses are left out altogether.

    Returns:
        One row a group, the largest first, or in their order where they have one; beyond twenty the smallest together as one: n (units) of n_whole (all that
        are known) with share, low, high; n_read, n_unread, n_hidden, label ("hedging  3/4": read of all that are not hidden); published counts; n_reads of
        n_reads_whole with read_share, read_low, read_high, beside population_share (of all that could be read). Intervals are Wilson's, clustered by
        example, and hold together for all known groups (Bonferroni). NaN where there is nothing, and for what is not known.
    """
    grouping = Grouping(grouping)
    tallied = _tallied(grouping, examples, criteria, responses, frozenset(hidden))
    benchmark_groups = benchmark.published(grouping)
    if len(examples) and not examples["theme"].isin(benchmark.THEMES).any():
        benchmark_groups = benchmark_groups.iloc[:0]  # another data set: nothing of it is HealthBench's
    tallied["group"] = _named(grouping, tallied, benchmark_groups.index)
    table = tallied.groupby("group", sort=False)[["n", "n_read", "n_unread", "n_hidden", "n_reads"]].sum()
    table = table.reindex(table.index.union(benchmark_groups.index, sort=False), fill_value=0)
    order = sorted(table.index, key=lambda group: (group == UNKNOWN, -table.loc[group, "n"], group))
    if grouping in _STEPS:
        ranks = {name: place for place, name in enumerate(_STEPS[grouping][2])}
        order = sorted(table.index, key=lambda group: ranks.get(group, len(ranks)))
    table = table.loc[order].rename_axis("group").reset_index()
    n_reads = table.pop("n_reads")
    rows = zip(table["group"], table["n_read"], table["n_read"] + table["n_unread"], strict=True)
    table["label"] = [f"{group}  {n:,}/{m:,}" for group, n, m in rows]
    beside = benchmark_groups.reindex(table["group"])
    for name, column in (("published", "n"), ("published_whole", "n_whole"), ("published_share", "share")):
        table[name] = beside[column].to_numpy()
    known_groups = [group for group in table["group"] if group != UNKNOWN]
    level = 1 - (1 - LEVEL) / max(len(known_groups), 1)
    known = tallied.loc[tallied["group"].ne(UNKNOWN)]
    here, read = (_shares(known, column, known_groups, level) for column in ("n", "n_reads"))
    table["n_whole"] = np.where(table["group"].eq(UNKNOWN), table["n"].sum(), int(known["n"].sum()))
    table["share"] = table["n"] / table["n_whole"].clip(lower=1)
    table["n_reads"] = n_reads
    table["n_reads_whole"] = int(known["n_reads"].sum())
    table[["low", "high"]] = here.reindex(table["group"])[["low", "high"]].to_numpy()
    table[["read_share", "read_low", "read_high"]] = read.reindex(table["group"]).to_numpy()
    population = known.groupby("group")["n_population"].sum()
    table["population_share"] = quotient(population.reindex(table["group"]), np.full(len(table), population.sum()))
    return table


def _shares(tallied: pd.DataFrame, column: str, groups: list[str], level: float) -> pd.DataFrame:
    """The share of each group among all units: a unit is counted once for each group, as a hit in its own."""
    counted = tallied.loc[tallied[column].gt(0)]
    n_units = counted[column].to_numpy(dtype=float)
    clusters, example_ids = pd.factorize(counted["example_id"])
    own, n, n_groups = pd.Index(groups).get_indexer(pd.Index(counted["group"])), len(example_ids), len(groups)
    hit = own >= 0
    hits = np.bincount((own * n + clusters)[hit], n_units[hit], n_groups * n)
    sizes = np.tile(np.bincount(clusters, n_units, n), n_groups)
    each, clusters = np.repeat(np.arange(n_groups), n), np.tile(np.arange(n), n_groups)
    shares = grouped_shares(hits, clusters, each, n_groups, sizes=sizes, level=level)
    return shares[["share", "low", "high"]].set_axis(pd.Index(groups))


def _tallied(
    grouping: Grouping, examples: pd.DataFrame, criteria: pd.DataFrame, responses: pd.DataFrame, hidden: frozenset[int]
) -> pd.DataFrame:
    if grouping.unit == EXAMPLES:
        counted = {"n_units_read": examples["n_read"].gt(0), "n_reads": examples["n_read"]}
        rows = examples.assign(n=1, **counted, n_population=examples["n_responses"])
    elif grouping.unit == CRITERIA:
        answers = examples.set_index("example_id")["n_responses"]
        items = criteria["n_criteria"] * criteria["example_id"].map(answers).astype("int64")
        rows = criteria.rename(columns={"n_criteria": "n", "n_read": "n_units_read", "n_items_read": "n_reads"})
        rows = rows.assign(n_population=items)
    else:  # which models answered what waits is not told
        rows = responses.loc[~responses["example_id"].isin(list(hidden))]
        rows = rows.assign(n=1, n_units_read=rows["is_read"], n_reads=rows["is_read"], n_population=1)
    column = _STEPS[grouping][0] if grouping in _STEPS else str(grouping)
    is_shown = (~rows["example_id"].isin(list(hidden))).astype(int)
    columns = {
        "value": rows[column],
        "example_id": rows["example_id"],
        "n": rows["n"],
        "n_hidden": rows["n"] * (1 - is_shown),
        "n_unread": (rows["n"] - rows["n_units_read"]) * is_shown,
        "n_read": rows["n_units_read"] * is_shown,
        "n_reads": rows["n_reads"] * is_shown,
        "n_population": rows["n_population"] * is_shown,
    }
    return pd.DataFrame(columns).reset_index(drop=True)


def _named(grouping: Grouping, tallied: pd.DataFrame, kept: pd.Index) -> npt.NDArray[np.object_]:
    values = tallied["value"]
    if grouping in _STEPS:
        _, begins, steps = _STEPS[grouping]
        place = np.searchsorted(np.array(begins), values.to_numpy(dtype=float), side="right")
        return np.where(values.isna(), UNKNOWN, np.array(steps, dtype=object)[np.minimum(place, len(steps) - 1)])
    code, names = pd.factorize(values.astype(object))
    if grouping is Grouping.LANGUAGE:
        named = [LANGUAGES.get(name, name) for name in names]
    else:
        named = [str(name) if grouping is Grouping.MODEL else str(name).replace("_", " ") for name in names]
    n = pd.Series(np.bincount(code + 1, weights=tallied["n"], minlength=len(named) + 1)[1:], index=named)
    words = np.array([*named, UNKNOWN], dtype=object)
    if len(n) > MAX_GROUPS:
        rare = n.loc[~n.index.isin(kept)].sort_values(ascending=False, kind="stable").index[MAX_GROUPS - 1 :]
        words = np.where(np.isin(words, list(rare)), f"{len(rare)} others", words)
    return np.take(words, code)


def spreads(*, examples: pd.DataFrame, criteria: pd.DataFrame, responses: pd.DataFrame) -> pd.DataFrame:
    """How large conversations, rubrics and responses are, a row a measure; NaN where there is none, points of criteria that have some."""
    scored = criteria.loc[criteria["points"].notna()]
    points = np.repeat(scored["points"].to_numpy(), scored["n_criteria"].to_numpy())
    measures = (
        ("turns of a conversation", examples["n_turns"], benchmark.MEAN_TURNS),
        ("characters of a conversation", examples["n_chars"], np.nan),
        ("criteria of a conversation", examples["n_criteria"], benchmark.MEAN_CRITERIA),
        ("points of a criterion", points, np.nan),
        ("characters of a response", responses["n_chars"], np.nan),
    )
    names = ("low", "quartile_1", "median", "quartile_3", "high")
    rows = []
    for what, column, published_mean in measures:
        values = pd.Series(column, dtype=float)
        quantiles = dict(zip(names, values.quantile((0, 0.25, 0.5, 0.75, 1)), strict=True))
        row = {"what": what, "n": len(values), "mean": float(np.mean(values)) if len(values) else np.nan}
        rows.append(row | quantiles | {"published_mean": published_mean})
    return pd.DataFrame(rows)


def sizes(
    *, examples: pd.DataFrame, criteria: pd.DataFrame, responses: pd.DataFrame, subsets: Mapping[str, int]
) -> pd.DataFrame:
    """How much there is, a row a kind, beside the full benchmark, and how much of it physicians have read; NaN where there is no such number."""
    undesirable = criteria.loc[criteria["points"].lt(0), ["n_criteria", "n_read"]].sum()
    rows = [
        ("conversations", len(examples), examples["n_read"].gt(0).sum(), benchmark.N_EXAMPLES),
        *((f"of these {name}", n, np.nan, benchmark.SUBSETS.get(name, np.nan)) for name, n in subsets.items()),
        ("criteria", criteria["n_criteria"].sum(), criteria["n_read"].sum(), benchmark.N_CRITERIA),
        ("of these undesirable", *undesirable, np.nan),
        ("responses", len(responses), responses["is_read"].sum(), np.nan),
    ]
    table = pd.DataFrame(rows, columns=["what", "n", "n_read", "published"])
    return table.astype({"n": int, "n_read": float, "published": float})


NAMED = 3
MIN_EXPECTED = 5  # with fewer expected, Wilson's interval is too narrow at either end to claim a direction


class Beside(NamedTuple):
    """What a share is held against: columns of `parts`, words for the end of a bar, and how a sentence begins."""

    share: str
    low: str
    high: str
    expected: str
    n: str
    more: str
    fewer: str
    subject: str

    def direction(self, row: Mapping[Any, Any]) -> int:
        """1 where the interval shows more than what the share is held against, -1 where fewer; 0 where neither, or fewer than five would be expected."""
        if not row[self.n] * row[self.expected] >= MIN_EXPECTED:
            return 0
        return int(row[self.low] > row[self.expected]) - int(row[self.high] < row[self.expected])


BENCHMARK = Beside(
    "share", "low", "high", "published_share", "n_whole", "▲ more than the benchmark", "▽ fewer than the benchmark",
    "Of this study's {unit}, beside the full benchmark:",
)  # fmt: skip
STUDY = Beside(
    "read_share", "read_low", "read_high", "population_share", "n_reads_whole", "▲ read more often", "▽ read less often",
    "Of what physicians have read, beside the whole study:",
)  # fmt: skip


def findings(grouping: Grouping | str, table: pd.DataFrame) -> list[str]:
    """Which groups' shares differ from the full benchmark's, and whose reads from the study's: those whose interval shows it, the farthest first."""
    words = Grouping(grouping)
    rows = table.loc[table["group"].ne(UNKNOWN)].to_dict(orient="records")
    sentences = []
    for beside in (BENCHMARK, STUDY):
        apart = []
        for row in rows:
            if direction := beside.direction(row):
                share, expected = row[beside.share], row[beside.expected]
                interval = f"{percent_words(share)} {interval_words(row[beside.low], row[beside.high])}"
                noun = f"{'more' if direction > 0 else 'fewer'} {words.noun.format(row['group'])}"
                words_of = f"{noun} ({interval}, there {percent_words(expected)})"
                apart.append((-round(abs(share - expected), 9), words_of))
        named = [sentence for _, sentence in sorted(apart, key=itemgetter(0))]
        more = len(named) - NAMED
        if named:
            others = [f"{more:,} more"] if more > 0 else []
            sentences.append(f"{beside.subject.format(unit=words.unit)} {listed(named[:NAMED] + others)}.")
    return sentences


def part_columns(grouping: Grouping, table: pd.DataFrame) -> dict[str, Any]:
    """`parts` in words, a row a group: of all units, in the full benchmark where something is published of it, what is read of it, and of all reads."""
    here, published, of_reads = [], [], []
    for row in table.to_dict(orient="records"):
        share = share_words(row["n"], row["n_whole"], row["share"] if row["n_whole"] else math.nan)
        here.append(share if math.isnan(row["low"]) else f"{share} {interval_words(row['low'], row['high'])}")
        beside = percent_words(row["published_share"])
        if not math.isnan(row["published"]):
            beside = share_words(int(row["published"]), int(row["published_whole"]), row["published_share"])
        published.append(beside)
        interval = interval_words(row["read_low"], row["read_high"])
        words = f"{percent_words(row['read_share'])} {interval}, of the study {percent_words(row['population_share'])}"
        of_reads.append(NO_VALUE if math.isnan(row["read_share"]) or math.isnan(row["population_share"]) else words)
    columns = {grouping.label: table["group"], grouping.unit.capitalize(): here}
    if table["published_share"].notna().any():
        columns["Full benchmark"] = published
    n = table["n_read"] + table["n_unread"]
    read = zip(table["n_read"], n, quotient(table["n_read"], n), strict=True)
    return columns | {"Read": [share_words(*row) for row in read], "Of all reads": of_reads}


SIZES = {"n": "Here", "n_read": "Read", "published": "Full benchmark"}
SPREADS = {"mean": "Mean", "median": "Median", "low": "From", "high": "To"}
SPREADS |= {"published_mean": "Mean of the full benchmark"}


def number_columns(table: pd.DataFrame, headers: Mapping[str, str]) -> dict[str, Any]:
    """`sizes` or `spreads` in words."""
    cells = {words: [decimal(n, int(name.endswith("mean"))) for n in table[name]] for name, words in headers.items()}
    return {"": table["what"], **cells}


def spread_sentence(spreads: pd.DataFrame, sizes: pd.DataFrame) -> str:
    """How large conversations, rubrics and responses are, and how much of the criteria is undesirable."""
    of = {row["what"]: row for row in spreads.to_dict(orient="records")}
    n = dict(zip(sizes["what"], sizes["n"], strict=True))
    a_criterion = _median(of["criteria of a conversation"], "criterion", "criteria")
    turns = _median(of["turns of a conversation"], "turn")
    characters = _median(of["characters of a conversation"], "character")
    words = f"A conversation has {turns} and {characters}, its rubric {a_criterion}"
    if n["responses"]:
        words += f", a response {_median(of['characters of a response'], 'character')}"
    sentence = f"{words} (medians, with the least and the most)."
    if n["criteria"]:
        share = share_words(n["of these undesirable"], n["criteria"], n["of these undesirable"] / n["criteria"])
        sentence += f" Of the criteria {share} are undesirable."
    return sentence


def _median(row: Mapping[Any, Any], one: str, more: str = "") -> str:
    name = one if row["median"] == 1 else more or one + "s"
    return f"{row['median']:,.0f} {name} ({row['low']:,.0f} to {row['high']:,.0f})"


def marks(row: Mapping[Any, Any]) -> str:
    """What an interval shows to be more or fewer in a group, for the end of its bar; empty where it shows neither."""
    directions = [(beside, beside.direction(row)) for beside in (BENCHMARK, STUDY)]
    return ", ".join(beside.more if direction > 0 else beside.fewer for beside, direction in directions if direction)


def summary(
    frames: MadeOf, subsets: Mapping[str, int], hidden: frozenset[int]
) -> tuple[dict[Grouping, pd.DataFrame], str, str]:
    """`parts` by every grouping with marks, how large the study's texts are, and what weights would do (empty where nothing can be weighted)."""
    tables = {grouping: parts(grouping, **frames, hidden=hidden) for grouping in GROUPINGS}
    for table in tables.values():
        table["marks"] = [marks(row) for row in table.to_dict(orient="records")]
    weights = benchmark.weighting(frames["examples"])
    texts = spread_sentence(spreads(**frames), sizes(**frames, subsets=subsets))
    return tables, texts, benchmark.weighting_sentence(weights) if weights else ""
