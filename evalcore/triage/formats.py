"""What the format changes: the same case asked as qa and as conversation, side by side."""

from enum import StrEnum
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import bdtr, ndtri

from evalcore.stats.intervals import LEVEL, wilson
from evalcore.study.schema import Format
from evalcore.triage.panels import N_LEVELS, Kind
from evalcore.triage.rates import Floats, coded, ratio

FLIP_COLUMNS = (
    "row", "model", "gold", "kind", "qa", "conversation", "steps", "direction", "crosses", "nearer", "qa_share", "conversation_share",
    "qa_first", "conversation_first",
)  # fmt: skip
NOT_BOTH = "no case with a clear gold has a prediction in both formats"
_SIDES = (Format.QA.value, Format.CONVERSATION.value)


class Direction(StrEnum):
    """Which way the conversation differs from qa."""

    LOWER = "lower"
    """Less urgent when the patient tells it as a conversation."""
    HIGHER = "higher"


def in_both(found: pd.DataFrame) -> pd.DataFrame:
    """Cases with a prediction in both formats.

    Returns:
        One row a case and model, by model and case: row, model, gold, kind, qa, conversation (levels 1..4), qa_share, conversation_share, qa_first,
        conversation_first.
    """
    known = found["predicted"].notna().to_numpy()
    n_rows = int(found["row"].max()) + 1 if len(found) else 1
    numbers, names = coded(found, ["model"])
    key = numbers * n_rows + found["row"].to_numpy(dtype=np.int64)
    places = []
    for side in _SIDES:
        place = np.full(max(len(names), 1) * n_rows, -1, dtype=np.int64)
        here = np.flatnonzero(known & found["format"].eq(side).to_numpy(dtype=bool))
        place[key[here]] = here
        places.append(place)
    both = (places[0] >= 0) & (places[1] >= 0)
    qa, conversation = (found.iloc[place[both]].reset_index(drop=True) for place in places)
    columns = {
        f"{side}{after}": table[name]
        for name, after in (("predicted", ""), ("share", "_share"), ("first", "_first"))
        for side, table in zip(_SIDES, (qa, conversation), strict=True)
    }
    return qa[["row", "model", "gold", "kind"]].assign(model=qa["model"].astype(names["model"].dtype), **columns)


def flip_counts(found: pd.DataFrame) -> pd.DataFrame:
    """How often the format changes a model's answer, and what that does to under-triage.

    With b of n cases sent too low in conversation alone and c in qa alone, the difference of under-triage is (b - c)/n, and its interval
    (Bonett and Price 2012), with p = (b + 1)/(n + 2) and q = (c + 1)/(n + 2):

        p - q +- z sqrt((p + q - (p - q)^2)/(n + 2))

    Args:
        found: As `predictions.joined` gives it, of both formats.

    Returns:
        One row a model that occurs in `found`: model; of cases of every kind: n_both (with a prediction in both formats), n_flipped, flipped (n_flipped /
        n_both), flipped_low, flipped_high (Wilson), n_lower and n_higher (conversation against qa; they add up to n_flipped), n_crossing (one of the two
        is D and the other is not); of those with a clear gold: n (cases), under_qa, under_conversation (how many sent too low), only_qa, only_conversation
        (in that format alone), difference (under-triage in conversation minus in qa, -1..1), low, high, p (McNemar's exact test: both formats alike;
        1 where no case differs), reason (why these are NaN; empty where they are not).
    """
    _, names = coded(found, ["model"])
    both = in_both(found)
    place = np.zeros(len(both["model"].cat.categories), dtype=np.int64)
    place[names["model"].cat.codes.to_numpy()] = np.arange(len(names))
    of = place[both["model"].cat.codes.to_numpy()]
    qa, conversation, gold = (both[name].to_numpy(dtype=float) for name in ("qa", "conversation", "gold"))
    clear = both["kind"].eq(Kind.CLEAR).to_numpy(dtype=bool)
    low_qa, low_conversation = clear & (qa < gold), clear & (conversation < gold)

    def count(mask: Any) -> Floats:
        return np.bincount(of[mask], minlength=len(names)).astype(float)

    n_both, n_flipped, n = count(slice(None)), count(qa != conversation), count(clear)
    more, less = count(low_conversation & ~low_qa), count(low_qa & ~low_conversation)
    low, high = wilson(n_flipped, n_both)
    difference_low, difference_high = bonett_price(more, less, n)
    counts = {
        "n_both": n_both,
        "n_flipped": n_flipped,
        "n_lower": count(conversation < qa),
        "n_higher": count(conversation > qa),
        "n_crossing": count((qa == N_LEVELS) != (conversation == N_LEVELS)),
        "n": n,
        "under_qa": count(low_qa),
        "under_conversation": count(low_conversation),
        "only_qa": less,
        "only_conversation": more,
    }
    table = names.assign(**{name: values.astype(np.int64) for name, values in counts.items()})
    table.insert(3, "flipped", ratio(n_flipped, n_both))
    table.insert(4, "flipped_low", low)
    table.insert(5, "flipped_high", high)
    return table.assign(
        difference=ratio(more - less, n),
        low=difference_low,
        high=difference_high,
        p=np.where(n > 0, np.minimum(2 * bdtr(np.minimum(more, less), (more + less).astype(np.int64), 0.5), 1), np.nan),
        reason=np.where(n > 0, "", NOT_BOTH).astype(object),
    )


def bonett_price(more: Floats, less: Floats, n: Floats) -> tuple[Floats, Floats]:
    """The interval of a paired difference of shares (Bonett and Price 2012): `more` of n in the one alone, `less` in the other alone; NaN where n is 0."""
    size = np.where(n > 0, n + 2, np.nan)
    p, q = (more + 1) / size, (less + 1) / size
    half = float(ndtri((1 + LEVEL) / 2)) * np.sqrt((p + q - (p - q) ** 2) / size)
    return np.maximum(p - q - half, -1), np.minimum(p - q + half, 1)
