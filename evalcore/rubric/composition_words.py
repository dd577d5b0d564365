"""What a study is made of, in words: the same on the screen and at the command line."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import pandas as pd

from evalcore.rubric.composition import UNITS, UNKNOWN, Grouping
from evalcore.stats.intervals import NO_VALUE, interval_words, percent_words, share_words
from evalcore.stats.wording import listed

NAMED = 3
MIN_EXPECTED = 5
"""With fewer expected, Wilson's interval is too narrow at either end to claim a direction."""


class Beside(NamedTuple):
    """What a share is held against: columns of `composition.parts`, and words for the end of a bar."""

    share: str
    low: str
    high: str
    expected: str
    n: str
    words: tuple[str, str]


BENCHMARK = Beside(
    "share", "low", "high", "published_share", "n_whole", ("▲ more than the benchmark", "▽ fewer than the benchmark")
)
STUDY = Beside(
    "read_share",
    "read_low",
    "read_high",
    "population_share",
    "n_reads_whole",
    ("▲ read more often", "▽ read less often"),
)

NAMES: Mapping[Grouping, str] = {
    Grouping.THEME: "theme",
    Grouping.CATEGORY: "category",
    Grouping.LANGUAGE: "language",
    Grouping.TURNS: "turns",
    Grouping.LENGTH: "characters of the conversation",
    Grouping.AXIS: "axis",
    Grouping.SIGN: "sign of the points",
    Grouping.POINTS: "points",
    Grouping.MODEL: "model",
    Grouping.RESPONSE_LENGTH: "characters of the response",
}
_NOUNS: Mapping[Grouping, str] = {
    Grouping.THEME: "{}",
    Grouping.CATEGORY: "the category {}",
    Grouping.LANGUAGE: "conversations in {}",
    Grouping.TURNS: "conversations of {}",
    Grouping.LENGTH: "conversations of {} characters",
    Grouping.AXIS: "criteria of {}",
    Grouping.SIGN: "{} criteria",
    Grouping.POINTS: "criteria of {} points",
    Grouping.MODEL: "responses of {}",
    Grouping.RESPONSE_LENGTH: "responses of {} characters",
}


def findings(grouping: Grouping | str, table: pd.DataFrame) -> list[str]:
    """Which groups' shares differ from the full benchmark's, and whose reads from the study's: those whose interval shows it, the farthest first.

    Args:
        grouping: By what the table is.
        table: As `composition.parts` gives it.
    """
    grouping = Grouping(grouping)
    rows = [
        {**row, "noun": _NOUNS[grouping].format(row["group"])}
        for row in table.to_dict(orient="records")
        if row["group"] != UNKNOWN
    ]
    here, read = ([_apart(row, beside) for row in rows] for beside in (BENCHMARK, STUDY))
    unit = UNITS[grouping]
    return [
        f"{subject} {listed(said)}."
        for subject, said in (
            (f"Of this study's {unit}, beside the full benchmark:", _farthest(here)),
            ("Of what physicians have read, beside the whole study:", _farthest(read)),
        )
        if said
    ]


def _direction(row: Mapping[Any, Any], beside: Beside) -> int:
    """1 where the interval shows more than what it is held against, -1 where fewer; 0 where neither, or fewer than five would be expected."""
    if not row[beside.n] * row[beside.expected] >= MIN_EXPECTED:
        return 0
    return int(row[beside.low] > row[beside.expected]) - int(row[beside.high] < row[beside.expected])


def _apart(row: Mapping[Any, Any], beside: Beside) -> tuple[float, str]:
    """How far a share is from what it is held against, and that in words; 0 where the interval does not show it."""
    direction = _direction(row, beside)
    if not direction:
        return 0.0, ""
    share, expected = row[beside.share], row[beside.expected]
    numbers = (
        f"{percent_words(share)} {interval_words(row[beside.low], row[beside.high])}, there {percent_words(expected)}"
    )
    return abs(share - expected), f"{'more' if direction > 0 else 'fewer'} {row['noun']} ({numbers})"


def _farthest(apart: list[tuple[float, str]]) -> list[str]:
    named = sorted((one for one in apart if one[1]), key=lambda one: -round(one[0], 9))
    more = len(named) - NAMED
    return [words for _, words in named[:NAMED]] + ([f"{more:,} more"] if more > 0 else [])


def here_words(row: Mapping[Any, Any]) -> str:
    """How many of all units a group has: "20 % (6/30) [8 %, 42 %]"."""
    said = share_words(row["n"], row["n_whole"], row["share"] if row["n_whole"] else math.nan)
    return said if math.isnan(row["low"]) else f"{said} {interval_words(row['low'], row['high'])}"


def of_reads_words(row: Mapping[Any, Any]) -> str:
    """A group's part of all reads beside its part of the study: "18 % [9 %, 32 %], of the study 21 %"."""
    if math.isnan(row["read_share"]) or math.isnan(row["population_share"]):
        return NO_VALUE
    return f"{percent_words(row['read_share'])} {interval_words(row['read_low'], row['read_high'])}, of the study {percent_words(row['population_share'])}"


def benchmark_words(row: Mapping[Any, Any]) -> str:
    """The published share of a group: "22 % (1,097/5,000)", "58 %", or a dash where none is published."""
    if math.isnan(row["published_share"]):
        return NO_VALUE
    if math.isnan(row["published"]):
        return f"{100 * row['published_share']:.0f} %"
    return share_words(int(row["published"]), int(row["published_whole"]), row["published_share"])


def read_words(row: Mapping[Any, Any]) -> str:
    """How much of a group physicians have read, of what may be told: "75 % (3/4)"."""
    told = row["n_read"] + row["n_unread"]
    return share_words(row["n_read"], told, row["n_read"] / told if told else math.nan)


def spread_sentence(spreads: pd.DataFrame, sizes: pd.DataFrame) -> str:
    """How large conversations, rubrics and responses are, and how much of the criteria is undesirable.

    Args:
        spreads: As `composition.spreads` gives them.
        sizes: As `composition.sizes` gives them.
    """
    of = {row["what"]: row for row in spreads.to_dict(orient="records")}
    n = dict(zip(sizes["what"], sizes["n"], strict=True))
    words = [
        f"A conversation has {_median(of['turns of a conversation'], 'turn')} and {_median(of['characters of a conversation'], 'character')}",
        f"its rubric {_median(of['criteria of a conversation'], 'criterion', 'criteria')}",
    ]
    if n["responses"]:
        words.append(f"a response {_median(of['characters of a response'], 'character')}")
    said = f"{', '.join(words)} (medians, with the least and the most)."
    if n["criteria"]:
        share = share_words(n["of these undesirable"], n["criteria"], n["of these undesirable"] / n["criteria"])
        said += f" Of the criteria {share} are undesirable."
    return said


def _median(row: Mapping[Any, Any], one: str, more: str = "") -> str:
    name = one if row["median"] == 1 else more or one + "s"
    return f"{row['median']:,.0f} {name} ({row['low']:,.0f} to {row['high']:,.0f})"


def marks(row: Mapping[Any, Any]) -> str:
    """What an interval shows to be more or fewer in a group, for the end of its bar; empty where it shows neither."""
    directions = [(beside, _direction(row, beside)) for beside in (BENCHMARK, STUDY)]
    return ", ".join(beside.words[0 if direction > 0 else 1] for beside, direction in directions if direction)
