"""Who read the level: a section of the Triage page. The judges against each other and against physicians."""

import math
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
from evalcore.triage.reads import Agreement
from evalcore.triage.words import number_words
from pages.shared import common, html, tables, theme, triage_choice
from pages.shared.triage_choice import FORMATS, Chosen, Here, Read

PHYSICIANS = "physicians here"
DONE, FIGURE_PIXELS = "triage_levels_read", 560
FOOT = (
    "A response counts where both have looked at it. The same: of the responses that both gave one letter, those with the same letter; the interval "
    "is 95 % (Wilson), clustered by case. Kappa is Cohen's, with quadratic weights; its interval is by the jackknife over cases, and there is none "
    f"from fewer than {MIN_EXAMPLES} cases, or where all of them, or all but one, give the same value. No level is an answer in which the reader "
    "found no advice, or advice in conflict: it is never taken for a level, so it is left out of every rate and counted here. Physicians' level: what the "
    "readers said together, blind, before the judge was shown, or an adjudicator who had not looked at it; responses may have been chosen for reading by "
    "what a judge said, so these shares need not hold for all. A qa answer ends with a level, which the parser reads; a conversation has none, and what it "
    "recommends is read by rules or by a language model."
)


def offer(viewer: Viewer) -> None:
    """The button that has the parser and the rules read every answer that they have not read; and what the last press did."""
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
    found: list[dict[str, Any]] = []
    for word in Format:
        mine = samples["format"].eq(word).to_numpy()
        for judge in read.triage_data.judges(word):
            said = levels[judge].to_numpy()[mine]
            n_looked, n_none = int((said == said).sum()), int((said == NO_LEVEL).sum())  # noqa: PLR0124 - NaN
            found.append(
                {"format": word.value, "judge": judge, "n": int(mine.sum()), "n_looked": n_looked, "n_level": n_looked - n_none, "n_none": n_none}
            )  # fmt: skip
    return pd.DataFrame(found, columns=["format", "judge", "n", "n_looked", "n_level", "n_none"])


def compared(read: Read) -> list[tuple[str, str, str, Agreement]]:
    """Every judge beside the physicians, and every two judges: format, who, beside whom, how often they say the same."""
    found = []
    for word in Format:
        judges = read.triage_data.judges(word)
        for judge in judges:
            agreed = reads.agreement(reads.physicians_pairs(read.triage_data, judge, asked=word))
            if agreed.n:
                found.append((word.value, judge, PHYSICIANS, agreed))
        for place, judge in enumerate(judges):
            for other in judges[place + 1 :]:
                if read.triage_data.juries & {judge, other}:  # a jury is made of the others
                    continue
                agreed = reads.agreement(reads.judge_pairs(read.triage_data, other, judge, asked=word))
                if agreed.n:
                    found.append((word.value, judge, other, agreed))
    return found


def beside(read: Read, word: str, judge: str, other: str) -> pd.DataFrame:
    """The levels of physicians, or of another judge, by those of a judge."""
    if other == PHYSICIANS:
        return reads.pair_cells(reads.physicians_pairs(read.triage_data, judge, asked=word))
    return reads.pair_cells(reads.judge_pairs(read.triage_data, other, judge, asked=word))


def show(here: Here) -> None:
    """Who is taken at their word, who else looked, and where they differ."""
    viewer, chosen = here.viewer, here.chosen
    for sentence in st.session_state.pop(DONE, ()):
        st.html(html.notice(sentence))
    pairs = triage_choice.computed(compared, viewer, chosen)
    for sentence in findings(chosen, pairs):
        st.html(html.finding(sentence))
    _looked(viewer, chosen)
    if pairs:
        _pairs(viewer, chosen, pairs)
    else:
        st.html(
            html.quiet(
                "Nobody else has looked at what these judges have read: no second judge, and no physician. Assign responses on Study."
            )
        )
    st.html(
        html.quiet(
            "The parser reads qa answers and the rules read conversations: every answer with a text that they have not read yet."
        )
    )
    offer(viewer)
    st.html(html.foot(FOOT))


def findings(chosen: Chosen, pairs: list[tuple[str, str, str, Agreement]]) -> list[str]:
    """How each judge that is taken at its word stands to physicians, in words."""
    said = []
    for word, judge in chosen.judges:
        agreed = next((pair[3] for pair in pairs if pair[:3] == (word, judge, PHYSICIANS)), None)
        if agreed is None:
            said.append(
                f"{FORMATS[word].capitalize()}: no physician here has read blind a response that {judge} has looked at."
            )
            continue
        none = f" It found no level in {agreed.n_other_none:,} of these {agreed.n:,}." if agreed.n_other_none else ""
        said.append(
            f"{FORMATS[word].capitalize()}: {judge} gives the level that physicians gave blind on {_same(agreed)}.{none}"
        )
    return said


def _looked(viewer: Viewer, chosen: Chosen) -> None:
    table = triage_choice.computed(looked, viewer, chosen)
    taken = dict(chosen.judges)
    tables.show(
        {
            "Format": table["format"].map(FORMATS),
            "Who read the level": table["judge"],
            "Taken here": [
                "yes" if taken.get(row["format"]) == row["judge"] else "" for row in table.to_dict(orient="records")
            ],
            "Responses": table["n"],
            "Looked at": table["n_looked"],
            "With a level": table["n_level"],
            "No level, left out": table["n_none"],
        },
        key="triage_looked",
        alt="How many responses each judge has looked at, and in how many it found a level",
        names=("Who read the level",),
    )


def _pairs(viewer: Viewer, chosen: Chosen, pairs: list[tuple[str, str, str, Agreement]]) -> None:
    st.subheader("Where they differ", anchor=False)
    tables.show(
        {
            "Format": [FORMATS[word] for word, *_ in pairs],
            "Who": [judge for _, judge, _, _ in pairs],
            "Beside": [other for _, _, other, _ in pairs],
            "The same level": [_same(agreed) for *_, agreed in pairs],
            "Kappa": [_kappa(agreed) for *_, agreed in pairs],
            "Both looked": [agreed.n for *_, agreed in pairs],
            "Who found none": [agreed.n_other_none for *_, agreed in pairs],
            "Other found none": [agreed.n_one_none for *_, agreed in pairs],
        },
        key="triage_compared",
        alt="How often each two say the same level",
        names=("Who", "Beside"),
    )
    pairs = sorted(pairs, key=lambda pair: pair[3].exact.n_hits - pair[3].exact.n)  # who differ most, first
    names = [f"{FORMATS[word]}: {judge} beside {other}" for word, judge, other, _ in pairs]
    name = triage_choice.one_of("Whose levels by whose", names, "triage_beside", width=420)
    word, judge, other, _ = pairs[names.index(name)]
    cells = triage_choice.computed(beside, viewer, chosen, word, judge, other)
    st.plotly_chart(
        figures.readers(cells, other, judge, ink=theme.ink()),
        config={"displayModeBar": False},
        key="triage_readers",
        width=FIGURE_PIXELS,
        alt=f"Levels of {other} in rows by those of {judge} in columns",
    )


def _kappa(agreed: Agreement) -> str:
    reason = agreed.reason if math.isnan(agreed.kappa) else "no interval"  # the foot says where
    return number_words(agreed.kappa, agreed.kappa_low, agreed.kappa_high, reason)


def _same(agreed: Agreement) -> str:
    share = agreed.exact
    return f"{share_words(share.n_hits, share.n, share.share)} {interval_words(share.low, share.high)}"
