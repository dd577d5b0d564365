"""The tables with a row a verdict or an item, as Arrow's columns: what is said of many rows is held once, as a dictionary.

What judges say is by far the most: of it numbers are held whole, and texts a part at a time. What physicians said is few, and goes through the functions
that all pages use.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
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
from evalcore.study import frames, snapshot
from evalcore.study.frames import ITEM_BASE
from evalcore.study.schema import REPEAT, RaterKind, Stage

if TYPE_CHECKING:
    from evalcore.export.tables import Part
    from evalcore.study.db import Session

Places = npt.NDArray[np.int64]
_NONE = -1
"""The code of no label."""
_ITEMS = 25_000
"""Items that are handed on together."""
_COUNTS = ("n_reads", "n_met", "n_not_met", "n_cannot_assess", "n_slips")
_UNREAD: dict[str, Any] = {"reference_source": JUDGE, "overridden": False, **dict.fromkeys(_COUNTS, 0)}
"""What is told of an item that no physician has read; else nothing."""


class _Rows:
    """Rows of a table by their number."""

    def __init__(self, table: pa.Table, number: str) -> None:
        self.table, self.number = table, number
        numbers = table[number].to_numpy()
        self._places = np.full(numbers.max(initial=0) + 2, -1)
        self._places[numbers] = np.arange(len(numbers))

    def at(self, numbers: Places) -> Places:
        """Their places in the table; -1: none."""
        return self._places.take(numbers, mode="clip")

    def of(self, names: Collection[str], numbers: Places) -> dict[str, pa.DictionaryArray]:
        """Those columns of `names` that the table has, for rows that are about these numbers."""
        own = [name for name in names if name in self.table.column_names]
        return _repeated(self.table.select(own), self.at(numbers))


def _repeated(table: pa.Table, places: Places) -> dict[str, pa.DictionaryArray]:
    """The columns of a table that stands at these places of it, with no more words than are used."""
    is_used = np.zeros(len(table), dtype=bool)
    is_used[places] = True
    words, codes = table.filter(is_used), pa.array((np.cumsum(is_used, dtype=np.int32) - 1)[places])
    return {name: pa.DictionaryArray.from_arrays(codes, words[name].combine_chunks()) for name in table.column_names}


def _fitting(responses: pa.Table, part: "Part") -> pa.Table:
    """Those of the part, without conversations that are hidden from who asks."""
    for name in ("dataset", "model", "theme"):
        if getattr(part, name) is not None:
            responses = responses.filter(pc.equal(responses[name], getattr(part, name)))
    return responses.filter(pc.invert(pc.is_in(responses["example_number"], pa.array(sorted(part.blind), pa.int64()))))


# ---------------------------------------------------------------- a row an item


def labels(session: "Session", judge: str, part: "Part", schema: pa.Schema) -> Iterator[pa.Table]:
    """What one judge and the physicians say of each item, response by response, in parts, made while texts are fetched."""
    responses = _Rows(_fitting(queries.response_columns(session, schema.names), part), "response_id")
    criteria = _Rows(queries.criterion_columns(session), "criterion_id")
    items = _judged(session, judge, responses)
    reads = queries.reads(session)
    reads = reads.filter(responses.at(reads["item_id"].to_numpy() // ITEM_BASE) >= 0).to_pandas()
    read = _read(session, items, reads, judge)
    if part.read_only:
        read = read.loc[read["reference_source"].ne(JUDGE)]
        items = items.loc[items["item_id"].isin(read.index)]
    unlabelled = read.index.difference(pd.Index(items["item_id"]))
    items = pd.concat([items, pd.DataFrame({"item_id": unlabelled, "code": _NONE, "verdict_id": 0})])
    of_response, of_criterion = np.divmod(items["item_id"].to_numpy(), ITEM_BASE)
    items = items.iloc[np.argsort(responses.at(of_response) * len(criteria.table) + criteria.at(of_criterion))]

    told = _told(read, schema)

    def made(found: tuple[pd.DataFrame, pa.Array]) -> pa.Table:
        return _items(*found, judge, read.index, told, responses, criteria, schema)

    parts = (items.iloc[start : start + _ITEMS] for start in range(0, max(len(items), 1), _ITEMS))
    return ahead(made, ((some, queries.explanations(session, some["verdict_id"])) for some in parts))


def ahead(make: Callable[[Any], Any], parts: Iterable[Any]) -> Iterator[Any]:
    """What another thread makes of each part, in order. This one gets the next: a database in memory is of it alone."""
    with ThreadPoolExecutor(1) as beside:
        begun = (beside.submit(make, part) for part in parts)
        for ready, _ in pairwise(chain(begun, [None])):  # each once the next one is begun
            yield cast(Future[Any], ready).result()


def _judged(session: "Session", judge: str, responses: _Rows) -> pd.DataFrame:
    """The items that a judge labels, by the newest of its prompts: item_id, code (of `snapshot.SAID`), verdict_id."""
    prompts = [
        row["rater_id"]
        for row in queries.rater_columns(session).to_pylist()
        if (row["rater"], row["rater_kind"]) == (judge, RaterKind.JUDGE) and REPEAT not in row["prompt_version"]
    ]
    parts = [pd.DataFrame({"item_id": [], "code": [], "verdict_id": [], "rater_id": []}, dtype=np.int64)]
    for said in snapshot.verdicts(session):
        own = np.flatnonzero(np.isin(said["rater_id"], prompts) & (responses.at(said["response_id"]) >= 0))
        told = {
            name: said[name].take(own) for name in ("response_id", "criterion_id", "code", "verdict_id", "rater_id")
        }
        item_ids = told.pop("response_id").astype(np.int64) * ITEM_BASE + told.pop("criterion_id")
        parts.append(pd.DataFrame({"item_id": item_ids} | told))
    every = pd.concat(parts[len(parts) > 1 :]).sort_values("rater_id", kind="stable")
    return every.drop(columns="rater_id").drop_duplicates("item_id", keep="last")


def _read(session: "Session", items: pd.DataFrame, reads: pd.DataFrame, judge: str) -> pd.DataFrame:
    """What the table says of the items of which physicians have ever said anything, by item_id."""
    slips, known = frames.slips(session)["verdict_id"], frames.numbers(session, frames.knowing())
    beside = items.loc[items["item_id"].isin(reads["item_id"])]
    words = pd.Series(snapshot.SAID, dtype="str").take(beside["code"].to_numpy()).to_numpy()
    whose = {"rater": judge, "rater_kind": RaterKind.JUDGE, "stage": Stage.JUDGE, "explanation": None}
    beside = beside.drop(columns=["code", "verdict_id"]).assign(label=words, **whose)
    found = labels_of_items(pd.concat([beside, reads.loc[reads["is_standing"]]], ignore_index=True), judge)
    first = reads.loc[reads["stage"].ne(Stage.ADJUDICATED)].groupby("item_id")["created_at"].min()
    found["first_read_at"] = first.reindex(found.index).where(found["n_reads"].gt(0))
    found["n_slips"] = reads["verdict_id"].isin(slips).groupby(reads["item_id"]).sum().reindex(found.index)
    known_items = reads.loc[reads["verdict_id"].isin(known), "item_id"]
    knows = pd.Series(found.index.isin(known_items), found.index, dtype="boolean")
    return found.assign(knows_model=knows.where(knows))


def _told(read: pd.DataFrame, schema: pa.Schema) -> pa.Table:
    """The rows of `read`, without what is the judge's, and last of all that of an item which nobody has read."""
    own = [name for name in schema.names if name in read.columns and not name.startswith("judge")]
    told = pa.Table.from_pandas(read[own], preserve_index=False).cast(pa.schema([schema.field(name) for name in own]))
    return pa.concat_tables([told, pa.Table.from_pylist([{name: _UNREAD.get(name) for name in own}], told.schema)])


def _items(
    items: pd.DataFrame,
    texts: pa.Array,
    judge: str,
    read: pd.Index,
    told: pa.Table,
    responses: _Rows,
    criteria: _Rows,
    schema: pa.Schema,
) -> pa.Table:
    """The rows of some items, in order."""
    of_response, of_criterion = np.divmod(items["item_id"].to_numpy(), ITEM_BASE)
    codes, places = items["code"].to_numpy(), read.get_indexer(pd.Index(items["item_id"]))
    columns: dict[str, Any] = responses.of(schema.names, of_response) | criteria.of(schema.names, of_criterion)
    for name, code, words in (("judge", codes * 0, [judge]), ("judge_label", codes, snapshot.SAID)):
        coded = pa.array(code, pa.int32(), mask=codes == _NONE)
        columns[name] = pa.DictionaryArray.from_arrays(coded, pa.array(words, pa.large_string()))
    columns |= {"judge_explanation": texts} | _repeated(told, np.where(places < 0, len(read), places))
    reference, label = (columns[name].cast(pa.large_string()) for name in ("reference_label", "judge_label"))
    columns["reference_label"] = pc.if_else(pa.array(places >= 0), reference, label)
    return pa.table([columns[name] for name in schema.names], schema.names)


# ---------------------------------------------------------------- a row a verdict


def verdicts(session: "Session", judge: str, part: "Part", schema: pa.Schema) -> Iterator[pa.Table]:
    """What judges and physicians say, in the order in which it was written, in parts. Of judges all, but where the part names one."""
    suspect, every = are_suspect(session), queries.response_columns(session, schema.names)
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
