"""Level readers: a section of the Triage page. The judges against each other and against physicians."""

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import pandas as pd
import streamlit as st

from evalcore.judges.agreement import MIN_EXAMPLES
from evalcore.stats.intervals import interval_words, share_words
from evalcore.study.policies import check_can_import, reason
from evalcore.study.schema import Format, Viewer
from evalcore.triage import figures, reads
from evalcore.triage.acts import read_levels
from evalcore.triage.data import NO_LEVEL
from evalcore.triage.reads import PHYSICIANS, Agreement
from evalcore.triage.words import number_words
from pages.shared import common, html, tables, theme, triage_choice
from pages.shared.triage_choice import HEADS, Chosen, Here, Read

Pair = tuple[str, str, str, Agreement]
"""Format, who, beside whom, how often they say the same."""
DONE, FIGURE_PIXELS = "triage_levels_read", 560
FOOT = (
    "A response counts where both have looked at it. The same: of the responses that both gave one letter, those "
    "with the same letter; the interval is 95 % (Wilson), clustered by case. Kappa is Cohen's, with quadratic "
    f"weights; its interval is by the jackknife over cases, and there is none from fewer than {MIN_EXAMPLES} cases, "
    "or where all of them, or all but one, give the same value. No level is an answer in which the reader found no "
    "advice, or advice in conflict: it is never taken for a level, so it is left out of every rate and counted here. "
    "Physicians' level: what the readers said together, blind, before the judge was shown, or an adjudicator who had "
    "not looked at it; responses may have been chosen for reading by what a judge said, so these shares need not "
    "hold for all. A qa answer ends with a level, which the parser reads; a conversation has none, and what it "
    "recommends is read by rules or by a language model."
)


def offer(viewer: Viewer) -> None:
    """The button that has the parser and the rules read what they have not read; and what the last press did."""
    why = reason(check_can_import, viewer)
    pressed = st.button(
        "Read the levels", icon=":material/rule:", disabled=bool(why), help=why or None, key="triage_read_levels"
    )
    if pressed:
        with common.shown_errors():
            st.session_state[DONE] = read_levels(common.engine(), actor=viewer).sentences()
            st.rerun()


def looked(read: Read) -> pd.DataFrame:
    """What each judge made of the responses of each format: format, judge, n, n_looked, n_level, n_none."""
    samples, levels = read.triage_data.samples, read.triage_data.levels
    rows = []
    for word in Format:
        mine = samples["format"].eq(word).to_numpy()
        for judge in read.triage_data.judges(word):
            level = levels[judge].loc[mine]
            n_looked, n_none = int(level.notna().sum()), int(level.eq(NO_LEVEL).sum())
            rows.append((word.value, judge, int(mine.sum()), n_looked, n_looked - n_none, n_none))
    return pd.DataFrame(rows, columns=["format", "judge", "n", "n_looked", "n_level", "n_none"])


def compared(read: Read) -> list[Pair]:
    """Every judge beside the physicians, and every two judges; a jury beside none of them."""
    data, pairs = read.triage_data, []
    for word in Format:
        judges = data.judges(word)
        beside_whom = [(judge, PHYSICIANS) for judge in judges]
        beside_whom += [pair for pair in combinations(judges, 2) if not data.juries & {*pair}]
        for judge, other in beside_whom:
            agreed = reads.agreement(reads.level_pairs(data, other, judge, asked=word))
            pairs.append((word.value, judge, other, agreed))
    return [pair for pair in pairs if pair[3].n]


def beside(read: Read, word: str, judge: str, other: str) -> pd.DataFrame:
    """The levels of physicians, or of another judge, by those of a judge."""
    return reads.pair_cells(reads.level_pairs(read.triage_data, other, judge, asked=word))


def show(here: Here) -> None:
    """Who is taken at their word, who else looked, and where they differ."""
    for sentence in st.session_state.pop(DONE, ()):
        st.html(html.notice(sentence))
    pairs = here.computed(compared)
    for sentence in findings(here.chosen, pairs):
        st.html(html.finding(sentence))
    table, taken = here.computed(looked), here.chosen.judges
    keys = zip(table["format"], table["judge"], strict=True)
    columns = {"Format": table["format"], "Level reader": table["judge"]}
    columns |= {"Used here": ["yes" if key in taken else "" for key in keys], "Responses": table["n"]}
    columns |= {"Looked at": table["n_looked"], "With a level": table["n_level"], "No level, left out": table["n_none"]}
    alt = "How many responses each judge has looked at, and in how many it found a level"
    tables.show(columns, key="triage_looked", alt=alt, names=("Level reader",))
    if pairs:
        _pairs(here, pairs)
    else:
        nobody = "Nobody else has looked at what these judges have read: no second judge, and no physician."
        st.html(html.quiet(f"{nobody} Assign responses on Study."))
    what = "The parser reads qa answers and the rules read conversations: every answer with a text that they have not read yet."
    st.html(html.quiet(what))
    offer(here.viewer)
    st.html(html.foot(FOOT))


def findings(chosen: Chosen, pairs: list[Pair]) -> list[str]:
    """How each judge that is taken at its word stands to physicians, in words."""
    sentences = []
    for word, judge in chosen.judges:
        agreed = next((pair[3] for pair in pairs if pair[:3] == (word, judge, PHYSICIANS)), None)
        said = f"no physician here has read blind a response that {judge} has looked at."
        if agreed is not None:
            said = f"{judge} gives the level that physicians gave blind on {_same(agreed)}."
            if agreed.n_other_none:
                said += f" It found no level in {agreed.n_other_none:,} of these {agreed.n:,}."
        sentences.append(f"{HEADS[word]}: {said}")
    return sentences


def _pairs(here: Here, pairs: list[Pair]) -> None:
    st.subheader("Agreement of level readers", anchor=False)
    words, judges, others, agreements = zip(*pairs, strict=True)
    columns: dict[str, Sequence[Any]] = {"Format": words, "Reader": judges, "Beside": others}
    columns |= {"The same level": [_same(agreed) for agreed in agreements], "Kappa": list(map(_kappa, agreements))}
    columns |= {"Both looked": [agreed.n for agreed in agreements]}
    columns |= {"Reader found none": [agreed.n_other_none for agreed in agreements]}
    columns |= {"The other found none": [agreed.n_one_none for agreed in agreements]}
    alt = "How often each two say the same level"
    tables.show(columns, key="triage_compared", alt=alt, names=("Reader", "Beside"))
    pairs = sorted(pairs, key=lambda pair: pair[3].exact.n_hits - pair[3].exact.n)  # who differ most, first
    names = [f"{word}: {judge} beside {other}" for word, judge, other, _ in pairs]
    name = triage_choice.one_of("Pair", names, "triage_beside", width=420)
    word, judge, other, _ = pairs[names.index(name)]
    figure = figures.readers(here.computed(beside, word, judge, other), other, judge)
    alt = f"Levels of {other} in rows by those of {judge} in columns"
    theme.figure(figure, key="triage_readers", width=FIGURE_PIXELS, alt=alt)


def _kappa(agreed: Agreement) -> str:
    reason = agreed.reason if math.isnan(agreed.kappa) else "no interval"  # the foot says where
    return number_words(agreed.kappa, agreed.kappa_low, agreed.kappa_high, reason)


def _same(agreed: Agreement) -> str:
    share = agreed.exact
    return f"{share_words(share.n_hits, share.n, share.share)} {interval_words(share.low, share.high)}"
