"""What a study is made of, in words: the same on the screen and at the command line."""

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from evalcore.metrics.composition import UNITS, UNKNOWN, Grouping
from evalcore.metrics.intervals import NO_VALUE, share_words
from evalcore.metrics.lopsided import Beside, Leaning, leaning_words, lopsided_sentence

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
    """What stands out of a table of `composition.parts`, a sentence for each thing that it is held against; none where nothing does.

    Args:
        grouping: By what the table is.
        table: As `composition.parts` gives it.
    """
    grouping = Grouping(grouping)
    unknown = f"{UNITS[grouping]} without a known {NAMES[grouping]}"
    named = table.assign(
        group=[unknown if group == UNKNOWN else _NOUNS[grouping].format(group) for group in table["group"]]
    )
    return [said for beside in Beside if (said := lopsided_sentence(named, beside))]


def here_words(row: Mapping[Any, Any], whole: int) -> str:
    """How many of all units a group has: "20 % (6/30)"."""
    return share_words(row["n"], whole, row["share"] if whole else math.nan)


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


def beside_words(row: Mapping[Any, Any], beside: Beside) -> str:
    """How a group stands: "▲ more, 1.8 times", "no clear difference", "too few to say"; a dash where there is nothing to hold it against."""
    leaning = row[f"{beside}_leaning"]
    if leaning in (Leaning.MORE, Leaning.FEWER):
        return f"{leaning_words(leaning)}, {row[f'{beside}_ratio']:.1f} times"
    return leaning_words(leaning) or NO_VALUE


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
        said += f" Undesirable are {share} of the criteria."
    return said


def _median(row: Mapping[Any, Any], one: str, more: str = "") -> str:
    name = one if row["median"] == 1 else more or one + "s"
    return f"{row['median']:,.0f} {name} ({row['low']:,.0f} to {row['high']:,.0f})"


def marks(row: Mapping[Any, Any]) -> str:
    """What is clearly more or fewer in a group, for the end of its bar; empty where nothing is."""
    said = {Leaning.MORE: "more than the benchmark", Leaning.FEWER: "fewer than the benchmark"}
    read = {Leaning.MORE: "read more often", Leaning.FEWER: "read less often"}
    words = [
        f"{leaning_words(leaning).split()[0]} {of[leaning]}"
        for of, leaning in ((said, row["benchmark_leaning"]), (read, row["read_leaning"]))
        if leaning in of
    ]
    return ", ".join(words)
