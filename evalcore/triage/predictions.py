"""What each model says of each case, by the most frequent level of its samples; and several judges as one jury."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from evalcore.stats.arrays import Floats, occurring, quotient
from evalcore.study.schema import PARSER, Format
from evalcore.triage.data import N_LEVELS, NO_LEVEL, TriageData

_STATES = 2 * N_LEVELS + 1
COUNTS = ("n_A", "n_B", "n_C", "n_D")


def judges_by_format(triage_data: TriageData) -> dict[str, list[str]]:
    """By format who has looked at responses: the usual judge first, then who looked at most."""
    found = {}
    for word in Format:
        if judges := triage_data.judges(word):
            of_their_own = [name for name in judges if name not in triage_data.juries]
            usual = PARSER if word is Format.QA and PARSER in judges else (of_their_own or judges)[0]
            found[word.value] = [usual, *(name for name in judges if name != usual)]
    return found


def usual_judges(triage_data: TriageData) -> dict[str, str]:
    """Who is taken at their word for each format: the first of `judges_by_format`."""
    return {word: judges[0] for word, judges in judges_by_format(triage_data).items()}


def judges_of(triage_data: TriageData, judge: str | None) -> dict[str, str]:
    """The same, but this judge where it has looked."""
    found = usual_judges(triage_data)
    return found | {word: judge for word in found if judge is not None and judge in triage_data.judges(word)}


def predictions(triage_data: TriageData, judges: Mapping[str, str]) -> pd.DataFrame:
    """One row a case, model and format that has any response, by the judge of each format.

    n_unread (that judge has not looked), n_invalid (no level was found: not a level, counted apart), n_A .. n_D (valid
    samples by level; a boundary counts half to each), predicted (1..4, `most_frequent`; NaN without a valid sample),
    share (of the valid samples that say so), stated (mean confidence that the model states itself with those samples,
    or NaN), first (row in `samples` of the first response with text, -1: none).
    """
    samples = triage_data.samples
    formats, models = (samples[name].cat for name in ("format", "model"))
    n_rows, n_models = max(len(triage_data.cases), 1), max(len(models.categories), 1)
    keys = formats.codes.to_numpy().astype(np.int64)  # in place from here: memory for millions of samples comes slowly
    for codes, n in ((samples["row"], n_rows), (models.codes, n_models)):
        keys *= n
        keys += codes.to_numpy()
    is_asked = samples["format"].isin(list(judges)).to_numpy()
    places: Any = slice(None) if is_asked.all() else np.flatnonzero(is_asked)
    group, groups = occurring(keys[places])
    n = len(groups)
    level = levels_by(triage_data, judges)[places]
    # 0: not looked at, 1: no level, then levels and boundaries
    state = np.nan_to_num(2 * np.where(level == NO_LEVEL, np.float32(0.5), level)).astype(np.int8)
    tally = np.bincount(group * _STATES + state, minlength=n * _STATES).reshape(n, _STATES)
    counts, between = tally[:, 2::2].astype(float), tally[:, 3::2] / 2
    counts[:, :-1] += between
    counts[:, 1:] += between
    n_valid = tally[:, 2:].sum(axis=1)
    frequent, n_for = most_frequent(counts)
    predicted = np.where(n_valid > 0, frequent, np.nan)
    first = np.full(n, -1, dtype=np.int64)
    texts = samples["has_text"].to_numpy()
    first[group[texts[places]][::-1]] = np.flatnonzero(texts & is_asked)[::-1]  # the earliest is written last
    stated = _own_confidence(triage_data, judges)[places]
    at = np.flatnonzero(~np.isnan(stated))
    at = at[np.ceil(level[at]) == predicted[group[at]]]
    total, times = (np.bincount(group[at], by, n) for by in (stated[at], None))
    of_format, row = np.divmod(groups // n_models, n_rows)
    return pd.DataFrame(
        {
            "row": row,
            "model": pd.Categorical.from_codes((groups % n_models).astype(np.int32), models.categories),
            "format": pd.Categorical.from_codes(of_format.astype(np.int8), formats.categories),
            "n_samples": np.bincount(group, minlength=n),
            "n_unread": tally[:, 0],
            "n_invalid": tally[:, 1],
            "n_valid": n_valid,
            **dict(zip(COUNTS, counts.T, strict=True)),
            "predicted": predicted,
            "share": quotient(n_for, n_valid),
            "stated": quotient(total, times),
            "first": first,
        }
    )


def levels_by(triage_data: TriageData, judges: Mapping[str, str]) -> npt.NDArray[np.float32]:
    """By sample what the judge of its format says; NaN where it has none, or one that is not here."""
    found = np.full(len(triage_data.samples), np.nan, dtype=np.float32)
    for word, judge in judges.items():
        if judge in triage_data.levels:
            mine = triage_data.samples["format"].eq(word).to_numpy(dtype=bool)
            np.copyto(found, triage_data.levels[judge].to_numpy(dtype=np.float32), where=mine)
    return found


def _own_confidence(triage_data: TriageData, judges: Mapping[str, str]) -> Floats:
    """By sample the confidence that the model states itself: only what the parser read is its own."""
    given = triage_data.confidence.loc[triage_data.confidence["rater"].eq(PARSER)]
    by_parser = [word for word, judge in judges.items() if judge == PARSER]
    given = given.loc[triage_data.samples["format"].iloc[given["sample"]].isin(by_parser).to_numpy()]
    found = np.full(len(triage_data.samples), np.nan)
    found[given["sample"].to_numpy(dtype=np.int64)] = given["confidence"].to_numpy(dtype=float)
    return found


def joined(triage_data: TriageData, found: pd.DataFrame, columns: Sequence[str] = ("gold", "kind")) -> pd.DataFrame:
    """Predictions with columns of their cases (of `described`)."""
    rows = found["row"].to_numpy()
    return found.assign(**{name: triage_data.cases[name].array.take(rows) for name in columns})


JURY = "majority of the judges"
_MIN_JUDGES = 2


def votes(levels: pd.DataFrame) -> pd.DataFrame:
    """What most judges say of each response (one row a response, one column a judge, as `TriageData.levels`).

    A judge that has not looked, or found no level, does not vote. A letter is one vote, a level between two half a vote
    for each of its letters. The most frequent letter counts, of equals the more severe. Gives the same rows: level
    (1..4; `NO_LEVEL` where judges looked and none gave a level; NaN where none has looked), n_votes (judges that gave a
    level), share (of these votes that are for that letter, in (0, 1]; NaN without votes). A single vote has the share
    1.

    >>> levels = pd.DataFrame({"Magpie": [4.0, 1.0, 0.0], "Wren": [4.0, 3.0, np.nan], "Rook": [3.0, 0.0, np.nan]})
    >>> votes(levels)["level"].tolist(), votes(levels)["n_votes"].tolist(), votes(levels)["share"].round(2).tolist()
    ([4.0, 3.0, 0.0], [3, 2, 0], [0.67, 0.5, nan])
    """
    halves = np.zeros((len(levels), N_LEVELS), dtype=np.int16)
    looked = np.zeros(len(levels), dtype=bool)
    rows = np.arange(len(levels))
    for judge in levels:
        level = levels[judge].to_numpy()
        looked |= ~np.isnan(level)
        given = rows[level > NO_LEVEL]
        for letter in (np.floor(level[given]), np.ceil(level[given])):
            halves[given, letter.astype(np.int64) - 1] += 1
    n_votes = halves.sum(axis=1, dtype=np.int64) // 2
    frequent, n_for = most_frequent(halves)
    level = np.where(n_votes > 0, frequent, np.where(looked, NO_LEVEL, np.nan))
    return pd.DataFrame({"level": level, "n_votes": n_votes, "share": quotient(n_for / 2, n_votes)}, index=levels.index)


def most_frequent(counts: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """The most frequent level of each row (a column a letter), of equals the more severe, and its count."""
    place = N_LEVELS - 1 - np.argmax(counts[:, ::-1], axis=1)
    return place + 1.0, counts[np.arange(len(counts)), place]


def members(judges: Iterable[str]) -> list[str]:
    """Those whose majority can be asked for; none where there are fewer than two, or one is called as it is.

    >>> members(["parser", "Magpie", "Wren"]), members(["parser", "Magpie"])
    (['Magpie', 'Wren'], [])
    """
    names = list(judges)
    voting = [name for name in names if name != PARSER]
    return voting if len(voting) >= _MIN_JUDGES and JURY not in names else []


def with_jury(triage_data: TriageData) -> TriageData:
    """The same with the jury `JURY` as one more judge of the formats that have `members`."""
    column = np.full(len(triage_data.samples), np.nan, dtype=np.float32)
    for word in Format:
        if judges := members(triage_data.voters(word)):
            mine = triage_data.samples["format"].eq(word).to_numpy()
            column[mine] = votes(triage_data.levels.loc[mine, judges])["level"]
    if np.isnan(column).all():
        return triage_data
    return replace(triage_data, levels=triage_data.levels.assign(**{JURY: column}), juries=triage_data.juries | {JURY})
