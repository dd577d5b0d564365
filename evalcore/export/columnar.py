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
_OF_VERDICT = {"code": pa.int8(), "verdict_id": pa.int32(), "rater_id": pa.int32()}
"""What is kept of a judge's verdict, beside the item."""
_NONE = -1
"""The code of no label."""
_ITEMS = 25_000
"""Items that are handed on together."""
_RESPONSES = 1 << 15
"""Responses whose reads are held at once."""
_COUNTS = ("n_reads", "n_met", "n_not_met", "n_cannot_assess", "n_slips")
_UNREAD: dict[str, Any] = {"reference_source": JUDGE, "overridden": False, **dict.fromkeys(_COUNTS, 0)}
"""What is told of an item that no physician has read; else nothing."""


class _Rows:
    """Rows of a table by their number, with the rows of other tables that they name by theirs."""

    def __init__(self, table: pa.Table, number: str, *others: "_Rows") -> None:
        self.table, self.number, self.others = table, number, others
        numbers = table[number].to_numpy()
        self._places = np.full(numbers.max(initial=0) + 2, -1, dtype=np.int32)
        self._places[numbers] = np.arange(len(numbers))

    def at(self, numbers: Places) -> Places:
        """Their places in the table; -1: none."""
        return self._places.take(numbers, mode="clip")

    def of(self, names: Collection[str], places: Places) -> dict[str, pa.DictionaryArray]:
        """Those columns of `names` that the tables have, for rows that are about the rows at these places."""
        found = _repeated(self.table.select([name for name in names if name in self.table.column_names]), places)
        for other in self.others:
            found |= other.of(names, other.at(self.table[other.number].to_numpy()[places]))
        return found


def _repeated(table: pa.Table, places: Places) -> dict[str, pa.DictionaryArray]:
    """The columns of a table that stands at these places of it, with no more words than are used."""
    first = places.min(initial=len(table))
    is_used = np.zeros(places.max(initial=first) - first + 1, dtype=bool)
    is_used[places - first] = True
    words = table.take(np.flatnonzero(is_used) + first)
    codes = pa.array((np.cumsum(is_used, dtype=np.int32) - 1)[places - first])
    return {name: pa.DictionaryArray.from_arrays(codes, words[name].combine_chunks()) for name in table.column_names}


def _responses(session: "Session", names: Collection[str], part: "Part") -> _Rows:
    """Those of the part, without conversations that are hidden from who asks."""
    responses, examples, models = queries.response_columns(session, names)
    hidden = pa.array(sorted(part.blind), pa.int64())
    examples = examples.filter(pc.invert(pc.is_in(examples["example_number"], hidden)))
    for name in ("dataset", "theme"):
        if getattr(part, name) is not None:
            examples = examples.filter(pc.equal(examples[name], getattr(part, name)))
    if part.model is not None:
        models = models.filter(pc.equal(models["model"], part.model))
    others = _Rows(examples, "example_number"), _Rows(models, "model_number")
    fitting = [pc.is_in(responses[other.number], other.table[other.number]) for other in others]
    return _Rows(responses.filter(pc.and_(*fitting)).combine_chunks(), "response_id", *others)


# ---------------------------------------------------------------- a row an item


def labels(session: "Session", judge: str, part: "Part", schema: pa.Schema) -> Iterator[pa.Table]:
    """What one judge and the physicians say of each item, response by response, in parts, made while texts are fetched."""
    responses = _responses(session, schema.names, part)
    criteria = _Rows(queries.criterion_columns(session), "criterion_id")
    said = _judged(session, judge, responses, criteria)
    slips, known = frames.slips(session)["verdict_id"], frames.numbers(session, frames.knowing())

    def fetched() -> Iterator[tuple[int, pa.Table]]:
        for number in range(len(responses.table) // _RESPONSES + 1):
            of = responses.table["response_id"].slice(number * _RESPONSES, _RESPONSES).to_numpy()
            yield number, queries.reads(session, of)

    def joined(fetched: tuple[int, pa.Table]) -> tuple[pd.DataFrame, pa.Table]:
        items = _newest(said, fetched[0], responses, criteria)
        read = _read(items, fetched[1].to_pandas(), judge, slips, known)
        if part.read_only:
            read = read.loc[read["reference_source"].ne(JUDGE)]
            items = items.loc[items["item_id"].isin(read.index)]
        place = read.index.get_indexer(pd.Index(items["item_id"])).astype(np.int32)
        is_labelled = np.zeros(len(read) + 1, dtype=bool)
        is_labelled[place] = True  # the last: of those that nobody read
        unlabelled = np.flatnonzero(~is_labelled[:-1]).astype(np.int32)
        numbers = np.divmod(read.index.to_numpy()[unlabelled], ITEM_BASE)
        of = {"response": responses.at(numbers[0]), "criterion": criteria.at(numbers[1])}
        added = pd.DataFrame(of | {"code": np.int8(_NONE), "verdict_id": np.int32(0), "read": unlabelled})
        items = items.drop(columns="item_id").assign(read=np.where(place < 0, np.int32(len(read)), place))
        items = pd.concat([items, added], ignore_index=True)
        return items.iloc[np.lexsort((items["criterion"], items["response"]))], _told(read, schema)

    def found() -> Iterator[tuple[pd.DataFrame, pa.Array, pa.Table]]:
        is_first = True
        for items, told in ahead(joined, fetched()):
            for start in range(0, max(len(items), is_first), _ITEMS):  # one part at least
                some = items.iloc[start : start + _ITEMS]
                yield some, queries.explanations(session, some["verdict_id"].to_numpy()), told
            is_first = False

    def made(found: tuple[pd.DataFrame, pa.Array, pa.Table]) -> pa.Table:
        return _items(*found, judge, responses, criteria, schema)

    return ahead(made, found())


def ahead(make: Callable[[Any], Any], parts: Iterable[Any]) -> Iterator[Any]:
    """What another thread makes of each part, in order. This one gets the next: a database in memory is of it alone."""
    with ThreadPoolExecutor(1) as beside:
        begun = (beside.submit(make, part) for part in parts)
        for ready, _ in pairwise(chain(begun, [None])):  # each once the next one is begun
            yield cast(Future[Any], ready).result()


def _judged(session: "Session", judge: str, responses: _Rows, criteria: _Rows) -> list[pa.Table]:
    """What a judge says, by all of its prompts: response and criterion (places), code, verdict_id, rater_id, each part by block of responses (its number)."""
    prompts = [
        row["rater_id"]
        for row in queries.rater_columns(session).to_pylist()
        if (row["rater"], row["rater_kind"]) == (judge, RaterKind.JUDGE) and REPEAT not in row["prompt_version"]
    ]
    kinds = pa.schema({"block": pa.int16(), "response": pa.int32(), "criterion": pa.int32()} | _OF_VERDICT)
    parts = [kinds.empty_table()]
    for said in snapshot.verdicts(session):
        own = np.flatnonzero(np.isin(said["rater_id"], prompts))
        places = responses.at(said["response_id"].take(own))
        own, places = own[places >= 0], places[places >= 0]
        order = np.argsort((places // _RESPONSES).astype(np.int16), kind="stable")
        own, places = own[order], places[order]
        of_item = places // _RESPONSES, places, criteria.at(said["criterion_id"].take(own))
        parts.append(pa.table([*of_item, *(said[name].take(own) for name in _OF_VERDICT)], kinds.names).cast(kinds))
    return parts


def _newest(said: list[pa.Table], block: int, responses: _Rows, criteria: _Rows) -> pd.DataFrame:
    """The items of a block of `_judged`, in order, each by the newest of the prompts: its columns, item_id."""
    bounds = (np.searchsorted(part["block"], (block, block + 1)) for part in said)
    own = pa.concat_tables(part.slice(first, last - first) for part, (first, last) in zip(said, bounds, strict=True))
    found = {name: own[name].to_numpy() for name in own.column_names[1:]}
    order = np.lexsort((found.pop("rater_id"), found["criterion"], found["response"]))
    items = pd.DataFrame({name: column[order] for name, column in found.items()})
    of_response = responses.table["response_id"].to_numpy()[items["response"]]
    items["item_id"] = of_response * ITEM_BASE + criteria.table["criterion_id"].to_numpy()[items["criterion"]]
    return items.loc[items["item_id"].ne(items["item_id"].shift(-1))]


def _read(
    items: pd.DataFrame, reads: pd.DataFrame, judge: str, slips: "pd.Series[int]", known: frozenset[int]
) -> pd.DataFrame:
    """What the table says of the items of which physicians have ever said anything, by item_id."""
    beside = items.loc[items["item_id"].isin(reads["item_id"])]
    words = pd.Series(snapshot.SAID, dtype="str").take(beside["code"].to_numpy()).to_numpy()
    whose: dict[str, Any] = {"rater": judge, "rater_kind": RaterKind.JUDGE, "stage": Stage.JUDGE}
    beside = beside[["item_id", "verdict_id"]].assign(label=words, explanation="", rater_id=0, **whose)
    standing = reads.loc[reads["is_standing"]].assign(rater="", rater_kind=RaterKind.REVIEWER)
    found = labels_of_items(pd.concat([beside, standing], ignore_index=True), judge)
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
    unread = pa.Table.from_pylist([{name: _UNREAD.get(name) for name in own}], told.schema)
    return pa.concat_tables([told, unread]).combine_chunks()


def _items(
    items: pd.DataFrame,
    texts: pa.Array,
    told: pa.Table,
    judge: str,
    responses: _Rows,
    criteria: _Rows,
    schema: pa.Schema,
) -> pa.Table:
    """The rows of some items, in order."""
    codes, read = items["code"].to_numpy(), items["read"].to_numpy()
    columns: dict[str, Any] = responses.of(schema.names, items["response"].to_numpy())
    columns |= criteria.of(schema.names, items["criterion"].to_numpy())
    columns |= {"judge_explanation": texts} | _repeated(told, read)
    reference = pc.index_in(told["reference_label"], pa.array(snapshot.SAID, pa.large_string())).fill_null(_NONE)
    reference = np.where(read == len(told) - 1, codes, reference.to_numpy()[read])
    said = {"judge_label": codes, "reference_label": reference, "judge": np.minimum(codes, 0)}
    for name, code in said.items():
        words = [judge] if name == "judge" else snapshot.SAID
        coded = pa.array(code, pa.int32(), mask=code == _NONE)
        columns[name] = pa.DictionaryArray.from_arrays(coded, pa.array(words, pa.large_string()))
    return pa.table([columns[name] for name in schema.names], schema.names)


# ---------------------------------------------------------------- a row a verdict


def verdicts(session: "Session", judge: str, part: "Part", schema: pa.Schema) -> Iterator[pa.Table]:
    """What judges and physicians say, in the order in which it was written, in parts. Of judges all, but where the part names one."""
    responses, suspect = _responses(session, schema.names, part), are_suspect(session)
    of = [suspect.get(number) for number in responses.table["response_id"].to_pylist()]
    responses.table = responses.table.append_column("suspect", pa.array(of, pa.bool_()))
    read = queries.read_items(session) if part.read_only else None
    known = dict.fromkeys(frames.numbers(session, frames.knowing()), True)
    slips: dict[int, str] = dict(frames.slips(session).itertuples(index=False))
    looks = second_looks(session).to_dict()
    raters = queries.rater_columns(session)
    rows = [responses, _Rows(queries.criterion_columns(session), "criterion_id"), _Rows(raters, "rater_id")]
    whose = raters.filter(pc.or_(pc.equal(raters["rater"], judge), pc.equal(raters["rater_kind"], RaterKind.REVIEWER)))
    for found in queries.verdicts(session, schema.names):
        kept = found.filter(pa.array(responses.at(found["response_id"].to_numpy()) >= 0))
        if part.judge is not None:
            kept = kept.filter(pc.is_in(kept["rater_id"], whose["rater_id"]))
        if read is not None:
            item = pc.add(pc.multiply(kept["response_id"], ITEM_BASE), kept["criterion_id"])
            kept = kept.filter(pc.is_in(item, read))
        columns: dict[str, Any] = {}
        for table in rows:
            columns |= table.of(schema.names, table.at(kept[table.number].to_numpy()))
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
