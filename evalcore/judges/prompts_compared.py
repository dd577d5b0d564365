"""Two prompts of judges on what physicians read: which of them agrees with physicians more often, on conversations that neither was made with."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from evalcore.errors import refuse
from evalcore.judges.queries import JudgeRater, conversations, judges
from evalcore.judges.splits import MadeWith
from evalcore.rubric import queries
from evalcore.rubric.data import first_reads
from evalcore.stats.arrays import Numbers
from evalcore.stats.intervals import clustered_means
from evalcore.stats.wording import NO_VALUE, counted, decimal, listed
from evalcore.study import snapshot
from evalcore.study.db import Session
from evalcore.study.schema import JURY, PARSER, REPEAT, RULES, Label

NO_INTERVAL = "the conversations are too few or all alike"
NOT_STATED = "Nobody has said which sets {} made with: whether these conversations were among them is not known."
FOOT = (
    "Agreement: of each item, the share of physicians' blind first reads (met or not met) that give the prompt's label; each item counts once. The difference "
    "is paired on items that both prompts have labelled, with a 95 % interval clustered by conversation (t). Conversations of a set that either prompt "
    "is said to be made with are left out. What nobody has said, and what the model itself was trained on, no record shows."
)


@dataclass(frozen=True)
class Compared:
    """What a comparison came to; shares in 0..1, NaN where no item is left or, of the bounds, where too little is known of how conversations differ."""

    before: str
    after: str
    n_items: int
    n_examples: int
    n_reads: int
    agreement_before: float
    agreement_after: float
    difference: float
    low: float
    high: float
    n_seen: int  # items left out: of conversations that a prompt is said to be made with
    n_one_alone: int  # items that physicians read and only one of the two has labelled
    not_stated: tuple[str, ...]  # the prompts of which nobody has said what they were made with

    @property
    def sentences(self) -> list[str]:
        """The finding, and what it does not cover."""
        more = (
            [f"Left out: {counted(self.n_seen, 'item')} of conversations that one of them was made with."]
            if self.n_seen
            else []
        )
        silent = self.not_stated
        unknown = [NOT_STATED.format(f"{listed(silent)} {'was' if len(silent) == 1 else 'were'}")] if silent else []
        return [self.finding, *more, *unknown]

    @property
    def finding(self) -> str:
        """Which agrees more often, where the interval shows it."""
        if not self.n_items:
            return f"There is no item that {self.before} and {self.after} have labelled, that a physician has read blind, and that neither was made with."
        on = f"on {counted(self.n_items, 'item')} in {counted(self.n_examples, 'conversation')} that neither is said to be made with"
        if math.isnan(self.low):
            return f"{self.after} less {self.before}: {decimal(self.difference, 3, signed=True)} {on}; no interval: {NO_INTERVAL}."
        difference = f"{decimal(self.difference, 3, signed=True)} [{decimal(self.low, 3, signed=True)}, {decimal(self.high, 3, signed=True)}]"
        if self.low <= 0 <= self.high:
            return f"Neither is shown to agree with physicians more often: {self.after} less {self.before} is {difference} {on}."
        better, worse = (self.after, self.before) if self.low > 0 else (self.before, self.after)
        return f"{better} agrees with physicians more often than {worse}: {self.after} less {self.before} is {difference} {on}."


def prompts(session: Session) -> dict[str, JudgeRater]:
    """Every prompt of every judge that can be compared, by judge and version ("Magpie judge@1a2b3c4d"); of verdicts that came with a file the judge alone."""
    asked = (rater for rater in judges(session) if rater.name not in {PARSER, RULES})  # which read levels, by no prompt
    known = [rater for rater in asked if REPEAT not in rater.version and not rater.version.startswith(JURY)]
    return {f"{rater.name} {rater.version}".strip(): rater for rater in known}


def compare(
    session: Session,
    before: str,
    after: str,
    *,
    stated: Mapping[str, Mapping[str, Sequence[MadeWith]]],
    blind: Collection[int] = (),
    reads: pd.DataFrame | None = None,
) -> Compared:
    """Two of `prompts` on physicians' blind first reads; `stated`: of each judge what its versions were made with; `blind`: conversations not shown.

    `reads`: all that physicians say (None: read here).
    """
    known = prompts(session)
    for name in (before, after):
        if name not in known:
            refuse(
                f"prompt: expected one of {', '.join(known) or 'none, no judge has labelled anything'}, got {name!r}"
            )
    if before == after:
        refuse(f"expected two prompts, got {before} twice")
    given = first_reads(queries.reads(session) if reads is None else reads)
    reads = given.loc[given["met"].notna() & ~given["example_id"].isin(list(blind))]
    reads = reads.assign(label=np.where(reads["met"].eq(1), Label.MET, Label.NOT_MET))
    examples = sorted(set(reads["example_id"].tolist()))
    said = snapshot.labels_of_raters(session, reads["item_id"].to_numpy())
    raters = [known[name] for name in (before, after)]
    sets = [one for rater in raters for one in stated.get(rater.name, {}).get(rater.version, ())]
    texts = conversations(session, examples) if sets else {}
    seen = frozenset(number for number, text in texts.items() if any(one.holds(text) for one in sets))
    silent = tuple(
        name
        for name, rater in zip((before, after), raters, strict=True)
        if not stated.get(rater.name, {}).get(rater.version)
    )
    labels = [
        pd.Series(said.get(rater.rater_id), reads["item_id"], dtype=object).loc[
            ~reads["item_id"].duplicated().to_numpy()
        ]
        for rater in raters
    ]
    return compared(reads, *labels, names=(before, after), seen=seen, not_stated=silent)


def compared(
    reads: pd.DataFrame,
    labels_before: pd.Series,
    labels_after: pd.Series,
    *,
    names: tuple[str, str],
    seen: Collection[int] = (),
    not_stated: tuple[str, ...] = (),
) -> Compared:
    """The mean over items of a_i(after) - a_i(before), a_i the share of the reads of item i that give a prompt's label, by `clustered_means` of conversations.

    `reads`: item_id, example_id, label, a row a read; labels by item_id; `seen`: conversations that are left out.
    """
    both = reads[["item_id", "example_id", "label"]].assign(before=reads["item_id"].map(labels_before))
    both["after"] = reads["item_id"].map(labels_after)
    for name in ("before", "after"):
        both[name] = both[name].where(both[name].isin([Label.MET, Label.NOT_MET]), None)
    n_known = both[["before", "after"]].notna().sum(axis=1)
    n_one_alone = both.loc[n_known.eq(1), "item_id"].nunique()
    both = both.loc[n_known.eq(2)]
    is_seen = both["example_id"].isin(list(seen))
    kept = both.loc[~is_seen]
    right = kept.assign(**{name: kept[name].eq(kept["label"]).astype(float) for name in ("before", "after")})
    items = right.groupby("item_id").agg(
        example_id=("example_id", "first"), before=("before", "mean"), after=("after", "mean")
    )
    cluster: Numbers = np.asarray(pd.factorize(items["example_id"])[0], dtype=np.int64)
    one = np.zeros(len(items), dtype=np.int64)
    old, new = (items[name].to_numpy(dtype=float) for name in ("before", "after"))
    means = [clustered_means(one, cluster, values, n_cells=1).iloc[0] for values in (old, new, new - old)]
    return Compared(
        *names,
        n_items=len(items),
        n_examples=int(items["example_id"].nunique()),
        n_reads=len(kept),
        agreement_before=float(means[0]["mean"]),
        agreement_after=float(means[1]["mean"]),
        difference=float(means[2]["mean"]),
        low=float(means[2]["low"]),
        high=float(means[2]["high"]),
        n_seen=int(both.loc[is_seen, "item_id"].nunique()),
        n_one_alone=int(n_one_alone),
        not_stated=not_stated,
    )


def columns(found: Compared) -> dict[str, Any]:
    """The two prompts and their difference as a table."""
    difference = decimal(found.difference, 3, signed=True)
    if not math.isnan(found.low):
        difference += f" [{decimal(found.low, 3, signed=True)}, {decimal(found.high, 3, signed=True)}]"
    shares = [decimal(value, 3) for value in (found.agreement_before, found.agreement_after)]
    return {
        "Prompt": [found.before, found.after],
        "Agreement with physicians": shares,
        "Difference": [NO_VALUE, difference],
        "Items": [found.n_items] * 2,
        "Reads": [found.n_reads] * 2,
        "Conversations": [found.n_examples] * 2,
    }
