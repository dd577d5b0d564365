"""What became of every case: how its label was read, and how it came to its level or is left out."""

from enum import StrEnum
from typing import Any

import numpy as np
import pandas as pd

from evalcore.stats.wording import counted
from evalcore.study.schema import MappingMethod
from evalcore.triage.data import LABELS, USUAL_RULE, AmbiguityRule, Kind, TriageData, labels_of

COLUMNS = ("source", "original_label", "meaning", "outcome", "why", "gold", "n")


class Outcome(StrEnum):
    """What a case is used for, and where its gold comes from."""

    DIRECT = "direct"
    CONSENSUS = "consensus"
    AMBIGUOUS = "ambiguous"
    EXCLUDED = "excluded"


class Why(StrEnum):
    """How a case came to its outcome, in words."""

    LABEL = "the source's label gives the level"
    VOTES = "the panel agreed"
    STATED_MEDIAN = "its file says that a panel agreed; the votes are not here"
    DISAGREED = "the panel disagreed"
    STATED_DISAGREEMENT = "its file says that a panel disagreed; the votes are not here"
    UNSURE = "physicians are unsure"
    REMOVED = "the panel removed it"
    STATED_REMOVED = "its file says that it was removed"
    FEW_VOTES = "fewer than two votes"
    NEEDS_PANEL = "its label needs a panel, and none has voted"
    INFORMATION = "its label is information only, and no panel has voted"
    NO_LABEL = "no label and no votes"


LEFT_OUT = {
    Why.REMOVED: "removed by its panel",
    Why.STATED_REMOVED: "removed by its file",
    Why.FEW_VOTES: "fewer than two votes",
    Why.NEEDS_PANEL: "no panel has voted",
    Why.INFORMATION: "no panel has voted",
    Why.NO_LABEL: "no label, no votes",
}
MOST_SOURCES = 14


def case_flow(triage_data: TriageData, rule: AmbiguityRule = USUAL_RULE) -> pd.DataFrame:
    """How many cases of each source and label went which way; meaning is what the label map made of it."""
    cases = triage_data.cases
    why = _why(cases, rule)
    kind = cases["kind"].astype(str).to_numpy()
    outcome = np.select(
        [kind == Kind.AMBIGUOUS, kind == Kind.UNLABELLED, np.isin(why, [Why.VOTES, Why.STATED_MEDIAN])],
        [Outcome.AMBIGUOUS.value, Outcome.EXCLUDED.value, Outcome.CONSENSUS.value],
        Outcome.DIRECT.value,
    )
    words = {"source": "source", "original_label": "original_label", "meaning": "mapped_label"}
    ways = {name: cases[column].astype(object).fillna("").astype(str) for name, column in words.items()}
    gold = labels_of(cases["gold"]).fillna("").astype(str)
    return in_order(pd.DataFrame({**ways, "outcome": outcome, "why": why, "gold": gold, "n": 1}))


def in_order(flows: pd.DataFrame) -> pd.DataFrame:
    """Rows of several flows as one, as `case_flow` gives it."""
    names = list(COLUMNS[:-1])
    found = flows.groupby(names, sort=False, observed=True)["n"].sum().reset_index()
    rank = {word.value: place for place, word in enumerate(Outcome)}
    by = ["source", "original_label", "meaning", "rank", "why", "gold"]
    ordered = found.assign(rank=found["outcome"].map(rank)).sort_values(by, kind="stable")
    return ordered[list(COLUMNS)].reset_index(drop=True).astype({"n": int})


def _why(cases: pd.DataFrame, rule: AmbiguityRule) -> Any:
    is_panel = cases["n_votes"].to_numpy() > 1
    n_cast = (cases["n_votes"] + cases["n_removed"]).to_numpy()
    method, meaning = cases["method"].astype(str), cases["mapped_label"].astype(object).fillna("").astype(str)
    kind = cases["kind"].astype(str).to_numpy()
    with np.errstate(invalid="ignore"):
        disagreed = is_panel & (cases["spread"].to_numpy(dtype=float) > rule.spread)
    stated_median, ambiguous = method.eq(MappingMethod.MEDIAN).to_numpy(), kind == Kind.AMBIGUOUS
    has_gold = ~ambiguous & (kind != Kind.UNLABELLED)
    ways = {
        Why.DISAGREED: ambiguous & disagreed,
        Why.STATED_DISAGREEMENT: ambiguous & ~is_panel & method.eq(MappingMethod.DISAGREEMENT).to_numpy(),
        Why.UNSURE: ambiguous,
        Why.VOTES: has_gold & is_panel,
        Why.STATED_MEDIAN: has_gold & stated_median,
        Why.LABEL: has_gold,
        Why.REMOVED: (cases["n_removed"].to_numpy() > 0) & ~is_panel,
        Why.STATED_REMOVED: method.eq(MappingMethod.REMOVED).to_numpy(),
        Why.FEW_VOTES: n_cast > 0,
        Why.INFORMATION: meaning.str.startswith("information").to_numpy(),
        Why.NEEDS_PANEL: meaning.eq("panel").to_numpy() | stated_median,
    }
    return np.select(list(ways.values()), [word.value for word in ways], Why.NO_LABEL.value)


def mapping(flow: pd.DataFrame) -> pd.DataFrame:
    """What was made of each label: source, original_label, meaning, n and n of each outcome."""
    counts = {f"n_{word.value}": flow["n"].where(flow["outcome"].eq(word.value), 0).astype(int) for word in Outcome}
    keys = ["source", "original_label", "meaning"]
    return flow[[*keys, "n"]].assign(**counts).groupby(keys, sort=False).sum().reset_index()


def label_columns(labels: pd.DataFrame) -> dict[str, pd.Series]:
    """What was made of each label, from `mapping`, as people read it."""
    words = labels.replace({"original_label": {"": "none"}, "meaning": {"": "–"}})
    heads = {"source": "Source", "original_label": "Label of the source", "meaning": "Stands for", "n": "Cases"}
    heads |= {"n_direct": "By its label", "n_consensus": "By a panel"}
    heads |= {"n_ambiguous": "Ambiguous", "n_excluded": "Left out"}
    return {head: words[name] for name, head in heads.items()}


def sentence(flow: pd.DataFrame) -> str:
    """The whole flow in words: how many cases came, how many are used for what, and why the others are not.

    >>> flow = pd.DataFrame(
    ...     [("clinic", "em", "D", "direct", Why.LABEL, "D", 3), ("clinic", "", "", "excluded", Why.NO_LABEL, "", 1)],
    ...     columns=COLUMNS,
    ... )
    >>> sentence(flow)
    '4 cases of 1 source. 3 are used: 3 with one level (3 by their label). 1 is left out: no label and no votes.'
    """
    n = int(flow["n"].sum())
    if not n:
        return "No cases yet."
    sources = flow["source"].nunique()
    of = {word: flow.loc[flow["outcome"].eq(word.value)] for word in Outcome}
    n_excluded = int(of[Outcome.EXCLUDED]["n"].sum())
    with_gold = pd.concat([of[Outcome.DIRECT], of[Outcome.CONSENSUS]])
    between = with_gold["gold"].str.contains("/", regex=False)
    used = _joined(
        (int(with_gold.loc[~between, "n"].sum()), "with one level" + _by(with_gold.loc[~between])),
        (int(with_gold.loc[between, "n"].sum()), "between two levels" + _by(with_gold.loc[between])),
        (int(of[Outcome.AMBIGUOUS]["n"].sum()), "ambiguous"),
    )
    kept = n - n_excluded
    words = f"{counted(n, 'case')} of {counted(sources, 'source')}. {f'{kept:,}' if kept else 'None'} {'are' if kept > 1 else 'is'} used"
    words += f": {used}." if used else "."
    if n_excluded:
        reasons = of[Outcome.EXCLUDED].groupby("why")["n"].sum().sort_values(ascending=False, kind="stable")
        named = "; ".join(f"{why} ({count:,})" if len(reasons) > 1 else str(why) for why, count in reasons.items())
        words += f" {n_excluded:,} {'is' if n_excluded == 1 else 'are'} left out: {named}."
    return words


def _by(rows: pd.DataFrame) -> str:
    sums = rows.groupby("outcome")["n"].sum()
    by_label, by_panel = (int(sums.get(word.value, 0)) for word in (Outcome.DIRECT, Outcome.CONSENSUS))
    named = _joined((by_label, "by their label"), (by_panel, "by a panel"))
    return f" ({named})" if named else ""


def _joined(*counts: tuple[int, str]) -> str:
    return ", ".join(f"{count:,} {words}" for count, words in counts if count)


def folded(flow: pd.DataFrame, most: int = MOST_SOURCES) -> pd.DataFrame:
    """The same with the smallest sources as one where there are more than `most`, so that the figure can be read."""
    sizes = flow.groupby("source", sort=False)["n"].sum().sort_values(ascending=False, kind="stable")
    small = sizes.index[most - 1 :]
    if len(small) <= 1:
        return flow
    return flow.assign(source=flow["source"].where(~flow["source"].isin(small), f"{len(small)} other sources"))


Stages = tuple[dict[str, int], dict[str, int], dict[str, int]]


def stages(flow: pd.DataFrame) -> Stages:
    """The columns of the figure: sources (most cases first), outcomes, and where the cases end."""
    sources = flow.groupby("source", sort=False)["n"].sum().sort_values(ascending=False, kind="stable")
    outcomes, ends = flow.groupby("outcome")["n"].sum(), flow.groupby(_ends(flow))["n"].sum()
    order = [*LABELS.values(), Outcome.AMBIGUOUS.value, *dict.fromkeys(LEFT_OUT.values())]
    return (
        {str(name): int(n) for name, n in sources.items()},
        {word.value: int(outcomes[word.value]) for word in Outcome if word.value in outcomes.index},
        {name: int(ends[name]) for name in order if name in ends.index},
    )


def links(flow: pd.DataFrame) -> pd.DataFrame:
    """The flow as the figure draws it: stage 0 from source to outcome, 1 from there to the level or why not."""
    first = flow.assign(stage=0, start=flow["source"], end=flow["outcome"])
    second = flow.assign(stage=1, start=flow["outcome"], end=_ends(flow))
    both = pd.concat([first, second], ignore_index=True)
    return both.groupby(["stage", "start", "end"], sort=False)["n"].sum().reset_index()


def _ends(flow: pd.DataFrame) -> pd.Series:
    without = flow["why"].map(LEFT_OUT).astype(object).where(flow["outcome"].eq(Outcome.EXCLUDED), flow["outcome"])
    return flow["gold"].where(flow["gold"].ne(""), without).astype(str)
