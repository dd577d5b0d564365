"""The tables with a row a verdict or an item, as Arrow's columns: what is said of many rows is held once, as a dictionary.

What judges say is by far the most, and never a frame of pandas; what physicians said is few, and goes through the functions that all pages use.
"""

from collections.abc import Collection, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from evalcore.export import queries
from evalcore.reading.reference import JUDGE, labels_of_items
from evalcore.rubric.blind_read_queries import LOOK, second_looks
from evalcore.runs.queries import are_suspect
from evalcore.study import frames
from evalcore.study.frames import ITEM_BASE
from evalcore.study.schema import REPEAT, RaterKind, Stage

if TYPE_CHECKING:
    from evalcore.export.tables import Part
    from evalcore.study.db import Session

Places = npt.NDArray[np.int64]
_RESPONSES, _ITEMS = 5_000, 25_000
"""Responses whose labels are in memory at once, and items that are handed on together."""
_COUNTS = ("n_reads", "n_met", "n_not_met", "n_cannot_assess", "n_slips")
_UNREAD: dict[str, Any] = {"reference_source": JUDGE, "overridden": False, **dict.fromkeys(_COUNTS, 0)}
"""What is told of an item that no physician has read; else nothing."""


class _Rows:
    """Rows of a table by their number."""

    def __init__(self, table: pa.Table, number: str) -> None:
        self.table, self.number = table, number
        numbers = table[number].to_numpy()
        self._places = np.full(numbers.max(initial=0) + 1, -1)
        self._places[numbers] = np.arange(len(numbers))

    def at(self, numbers: Places) -> Places:
        """Their places in the table; -1: none."""
        return self._places[numbers]

    def of(self, names: Collection[str], numbers: Places) -> dict[str, pa.DictionaryArray]:
        """Those columns of `names` that the table has, for rows that are about these numbers."""
        own = [name for name in names if name in self.table.column_names]
        return _repeated(self.table.select(own), self.at(numbers))


def _repeated(table: pa.Table, places: Places) -> dict[str, pa.DictionaryArray]:
    """The columns of a table that stands at these places of it, with no more words than are used."""
    used, codes = np.unique(places, return_inverse=True)
    words, codes = table.take(used), pa.array(codes, pa.int32())
    return {name: pa.DictionaryArray.from_arrays(codes, words[name].combine_chunks()) for name in table.column_names}


def _fitting(responses: pa.Table, part: "Part") -> pa.Table:
    """Those of the part, without conversations that are hidden from who asks."""
    for name in ("dataset", "model", "theme"):
        if getattr(part, name) is not None:
            responses = responses.filter(pc.equal(responses[name], getattr(part, name)))
    return responses.filter(pc.invert(pc.is_in(responses["example_number"], pa.array(sorted(part.blind), pa.int64()))))


# ---------------------------------------------------------------- a row an item


def labels(session: "Session", judge: str, part: "Part", schema: pa.Schema) -> Iterator[pa.Table]:
    """What one judge and the physicians say of each item, response by response, in parts: of some they are made while the next are fetched."""
    responses = _fitting(queries.response_columns(session), part)
    criteria = _Rows(queries.criterion_columns(session), "criterion_id")
    prompts = [
        row["rater_id"]
        for row in queries.rater_columns(session).to_pylist()
        if (row["rater"], row["rater_kind"]) == (judge, RaterKind.JUDGE) and REPEAT not in row["prompt_version"]
    ]
    slips, known = frames.slips(session)["verdict_id"].tolist(), list(frames.numbers(session, frames.knowing()))

    def made(some: pa.Table, judged: pa.Table, reads: pd.DataFrame) -> list[pa.Table]:
        read = _read(judged, reads, judge, slips, known)
        if part.read_only:
            read = read.loc[read["reference_source"].ne(JUDGE)]
            judged = judged.filter(pc.is_in(judged["item_id"], pa.array(read.index, pa.int64())))
        return [*_items(judged, read, judge, _Rows(some, "response_id"), criteria, schema)]

    with ThreadPoolExecutor(1) as beside:  # a database in memory is of this thread alone
        parts = (
            (some, queries.judged(session, some, prompts), queries.reads(session, some).to_pandas())
            for some in _by_examples(responses)
        )
        begun = (beside.submit(made, *found) for found in parts)
        for ready, _ in pairwise(chain(begun, [None])):  # each once the next one is begun
            yield from cast(Future[list[pa.Table]], ready).result()


def _by_examples(responses: pa.Table) -> Iterator[pa.Table]:
    """In parts of some thousands, each with all responses to its examples; one at least."""
    of = responses["example_number"]
    examples = of.unique()
    n_examples = max(_RESPONSES * len(examples) // max(len(responses), 1), 1)
    for start in range(0, max(len(examples), 1), n_examples):
        yield responses.filter(pc.is_in(of, examples.slice(start, n_examples)))


def _read(judged: pa.Table, reads: pd.DataFrame, judge: str, slips: list[int], known: list[int]) -> pd.DataFrame:
    """What the table says of the items of which physicians have ever said anything, by item_id."""
    beside = judged.filter(pc.is_in(judged["item_id"], pa.array(reads["item_id"].unique(), pa.int64()))).to_pandas()
    whose = {"rater": judge, "rater_kind": RaterKind.JUDGE, "stage": Stage.JUDGE}
    beside = beside.drop_duplicates("item_id", keep="last").assign(**whose)
    found = labels_of_items(pd.concat([beside, reads.loc[reads["is_standing"]]], ignore_index=True), judge)
    first = reads.loc[reads["stage"].ne(Stage.ADJUDICATED)].groupby("item_id")["created_at"].min()
    found["first_read_at"] = first.reindex(found.index).where(found["n_reads"].gt(0))
    found["n_slips"] = reads["verdict_id"].isin(slips).groupby(reads["item_id"]).sum().reindex(found.index)
    known_items = reads.loc[reads["verdict_id"].isin(known), "item_id"]
    knows = pd.Series(found.index.isin(known_items), found.index, dtype="boolean")
    return found.assign(knows_model=knows.where(knows))


def _items(
    judged: pa.Table, read: pd.DataFrame, judge: str, responses: _Rows, criteria: _Rows, schema: pa.Schema
) -> Iterator[pa.Table]:
    """The rows of some responses, in order: with the words of `read`, or of an item that nobody has read."""
    labelled = judged["item_id"].to_numpy()
    items, newest = np.unique(labelled[::-1], return_index=True)
    unlabelled = read.index[~read.index.isin(items)].to_numpy(dtype=np.int64)
    items = np.concatenate([items, unlabelled])
    said = np.concatenate([len(labelled) - 1 - newest, np.full(len(unlabelled), len(labelled))])
    of_response, of_criterion = np.divmod(items, ITEM_BASE)
    order = np.lexsort((criteria.at(of_criterion), responses.at(of_response)))
    by_judge = judged.rename_columns(["judge", "judge_label", "judge_explanation"])
    by_judge = by_judge.set_column(0, "judge", pa.array([judge] * len(judged), pa.large_string()))
    by_judge = pa.concat_tables([by_judge, pa.Table.from_pylist([{}], by_judge.schema)])  # nobody's: nothing
    own = [name for name in schema.names if name in read.columns and name not in by_judge.column_names]
    told = pa.Table.from_pandas(read[own], preserve_index=False).cast(pa.schema([schema.field(name) for name in own]))
    unread = pa.Table.from_pylist([{name: _UNREAD.get(name) for name in own}], told.schema)
    told = pa.concat_tables([told, unread])
    for start in range(0, max(len(order), 1), _ITEMS):
        some = order[start : start + _ITEMS]
        places = read.index.get_indexer(pd.Index(items[some]))
        columns: dict[str, Any] = responses.of(schema.names, of_response[some])
        columns |= criteria.of(schema.names, of_criterion[some])
        columns |= {name: by_judge[name].take(pa.array(said[some])) for name in by_judge.column_names}
        columns |= _repeated(told, np.where(places < 0, len(read), places))
        reference = columns["reference_label"].cast(pa.large_string())
        columns["reference_label"] = pc.if_else(pa.array(places >= 0), reference, columns["judge_label"])
        yield pa.table([columns[name] for name in schema.names], schema.names)


# ---------------------------------------------------------------- a row a verdict


def verdicts(session: "Session", judge: str, part: "Part", schema: pa.Schema) -> Iterator[pa.Table]:
    """What judges and physicians say, in the order in which it was written, in parts. Of judges all, but where the part names one."""
    suspect, every = are_suspect(session), queries.response_columns(session)
    every = every.append_column("suspect", pa.array(map(suspect.get, every["response_id"].to_pylist()), pa.bool_()))
    fitting, read = _fitting(every, part)["response_id"], queries.read_items(session) if part.read_only else None
    known = dict.fromkeys(frames.numbers(session, frames.knowing()), True)
    slips: dict[int, str] = dict(frames.slips(session).itertuples(index=False))
    looks = second_looks(session).to_dict()
    raters = queries.rater_columns(session)
    rows = [
        _Rows(every, "response_id"),
        _Rows(queries.criterion_columns(session), "criterion_id"),
        _Rows(raters, "rater_id"),
    ]
    whose = raters.filter(pc.or_(pc.equal(raters["rater"], judge), pc.equal(raters["rater_kind"], RaterKind.REVIEWER)))
    for found in queries.verdicts(session, schema.names):
        kept = found
        if len(fitting) < len(every):
            kept = kept.filter(pc.is_in(kept["response_id"], fitting))
        if part.judge is not None:
            kept = kept.filter(pc.is_in(kept["rater_id"], whose["rater_id"]))
        if read is not None:
            item = pc.add(pc.multiply(kept["response_id"], ITEM_BASE), kept["criterion_id"])
            kept = kept.filter(pc.is_in(item, read))
        columns: dict[str, Any] = {}
        for table in rows:
            columns |= table.of(schema.names, kept[table.number].to_numpy())
        columns |= {name: kept[name] for name in schema.names if name in kept.column_names and name not in columns}
        columns |= {
            "knows_model": _looked_up(kept, known, "verdict_id"),
            "slipped_from": _looked_up(kept, slips, "verdict_id"),
        }
        is_looked = pc.is_in(kept["stage"], pa.array([Stage.FIRST, Stage.REVISED], pa.large_string()))
        columns["second_look"] = pc.if_else(is_looked, _looked_up(kept, looks, *LOOK), None)
        yield pa.table([columns[name] for name in schema.names], schema.names)


def _looked_up(verdicts: pa.Table, found: dict[Any, Any], *names: str) -> pa.Array:
    """What is known of a few of the verdicts, by some of their columns."""
    if not found:
        return pa.nulls(len(verdicts))
    keys = [verdicts[name].to_pylist() for name in names]
    return pa.array(map(found.get, zip(*keys, strict=True) if keys[1:] else keys[0]))
