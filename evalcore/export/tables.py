"""Tables to take away: labels, verdicts, scores, criteria at fault, as CSV, Parquet or JSON Lines, with a codebook; and meta-evaluation rows.

Every text cell is made safe for spreadsheets: one that begins with = + - @ (full-width forms too), a tab or a line end gets a quote before it.
"""

import csv
import hashlib
import hmac
import io
import json
import re
from base64 import b64encode
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from itertools import groupby
from typing import Any, BinaryIO

import numpy as np
import orjson
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from evalcore.errors import OverreadError, ReadOnly, refuse
from evalcore.export import columnar, queries
from evalcore.reading import queries as reading_queries, store as reading_store
from evalcore.reading.conflicts import faulted_criteria
from evalcore.reading.reference import current_reads
from evalcore.runs.queries import are_suspect
from evalcore.stats.wording import counted
from evalcore.study import contents, frames, freezing, lookups, store
from evalcore.study.acting import allow
from evalcore.study.audit import trail
from evalcore.study.corrections import mending, renaming
from evalcore.study.csv_cells import DANGEROUS
from evalcore.study.db import Engine, Session, reading, writing
from evalcore.study.frames import records
from evalcore.study.policies import check_can_export, visible_verdicts
from evalcore.study.schema import LABELS_EXPORTED, MAX_POINTS, REPEAT, Format, Label, RaterKind, Seen, Viewer

WHAT = ("labels", "verdicts", "scores", "criteria", "acuity", "cases")
MEANING = {
    "labels": "One row per item (one criterion of one response): the judge's label, the physicians', and the label to use.",
    "scores": "One row per response and judge: points and score.",
}
"""Of those that programs read as well; the page has the others."""
_AT_ONCE = 50_000
"""Rows whose lines are made at once."""
_DANGEROUS = f"^'*[{re.escape(''.join(DANGEROUS))}]"
"""The cells that `csv_cells.guarded` puts a quote before."""
_SOUGHT = ["dataset", "example_id", "response_id", "model"]
"""Columns by which rows are sorted: of these alone Parquet says where which values are, half the work of writing."""
_DIGEST = re.compile("[0-9a-f]{64}")
CODEBOOK: dict[str, list[tuple[str, str]]] = {}
"""Table name to pairs of column and meaning: the tables have exactly the columns of `codebook.csv`, in its order."""
DTYPES: dict[str, dict[str, str]] = {}
"""Table name to the kinds of its columns, also where nothing is in them; a column that is not named here is text."""
for _row in csv.DictReader(files("evalcore.export").joinpath("codebook.csv").read_text(encoding="utf-8").splitlines()):
    CODEBOOK.setdefault(_row["table"], []).append((_row["column"], _row["meaning"]))
    DTYPES.setdefault(_row["table"], {}).update({_row["column"]: _row["kind"]} if _row["kind"] else {})


@dataclass(frozen=True)
class Part:
    """Which part of the study; None is all of it."""

    judge: str | None = None  # whose labels stand in `labels`; None: of the judge with the most verdicts
    dataset: str | None = None
    model: str | None = None
    theme: str | None = None
    read_only: bool = False  # only items that a physician has read
    blind: frozenset[int] = frozenset()
    """Numbers of conversations that wait for the viewer's own first read: nothing on them is given out."""


def table(engine: Engine, what: str, part: Part | None = None) -> pd.DataFrame:
    """One of the tables, with the columns of the codebook; OverreadError: there is no such table, or the study has no such judge."""
    with in_parts(engine, what, part) as found:
        whole: pd.DataFrame = pa.concat_tables(rows.cast(schema_of(what)) for rows in found).to_pandas()
    return whole


def schema_of(what: str) -> pa.Schema:
    """The columns of a table with their types, as Arrow and pandas know them."""
    kinds = {column: DTYPES[what].get(column, "str") for column in columns_of(what)}
    return pa.Schema.from_pandas(pd.DataFrame(columns=[*kinds]).astype(kinds), preserve_index=False)


@contextmanager
def in_parts(engine: Engine, what: str, part: Part | None = None) -> Iterator[Iterator[pa.Table]]:
    """The rows of `table` in order, some thousands at a time, so that a large study needs no more memory; one part at least, even of no rows.

    What many rows say may stand as a dictionary of Arrow.
    """
    part = part or Part()
    if what not in WHAT:
        refuse(f"table: expected one of {', '.join(WHAT)}, got {what!r}")
    with reading(engine) as session:
        judges = contents.judges(session)
        if part.judge is not None and part.judge not in judges:
            refuse(
                f"judge: expected one of {', '.join(judges) or 'none, the study has no judge yet'}, got {part.judge!r}"
            )
        judge, schema = part.judge or (judges[0] if judges else ""), schema_of(what)
        by_row = {"labels": columnar.labels, "verdicts": columnar.verdicts}.get(what)
        if by_row is not None:
            with queries.read_once(session):
                yield by_row(session, judge, part, schema)
            return
        made = {"scores": _scores, "criteria": _criteria}.get(what)
        rows = _of_cases(session, what, part) if made is None else made(session, judge, part)
        kinds = {column: DTYPES[what].get(column, "str") for column in schema.names}
        found = _further(session, set(schema.names), rows)[schema.names].astype(kinds)
        yield iter([pa.Table.from_pandas(found, schema, preserve_index=False)])


def _further(session: Session, columns: set[str], rows: pd.DataFrame) -> pd.DataFrame:
    """With the columns that tables of several kinds have."""
    if "length_adjusted" in columns:
        from evalcore.rubric.length_adjusted import with_length_adjusted  # noqa: PLC0415 - as below

        rows = with_length_adjusted(rows, frames.lengths(session), "evaluation")
    if "suspect" in columns:
        rows = rows.assign(suspect=rows["response_id"].map(are_suspect(session)).astype("boolean"))
    if "slipped_from" in columns:
        rows = rows.merge(frames.slips(session), on="verdict_id", how="left")
    if "knows_model" in columns:
        said = rows["verdict_id"].isin(list(frames.numbers(session, frames.knowing())))
        rows = rows.assign(knows_model=said.astype("boolean").where(said))
    return rows


def in_part(items: pd.DataFrame, part: Part) -> pd.DataFrame:
    """The rows of a part's data set, model and theme."""
    for column in ("dataset", "model", "theme"):
        wanted = getattr(part, column)
        if wanted is not None:
            items = items.loc[items[column].eq(wanted)]
    return items


def _named(items: pd.DataFrame) -> pd.DataFrame:
    named = {"example_id": "example_number", "prompt_id": "example_id", "position": "criterion_position"}
    return items.rename(columns=named)


def _of_cases(session: Session, what: str, part: Part) -> pd.DataFrame:
    from evalcore.triage import queries as triage_queries  # noqa: PLC0415 - other tables need no statistics, which load SciPy
    from evalcore.triage.cases import case_table  # noqa: PLC0415
    from evalcore.triage.predictions import judges_of  # noqa: PLC0415

    triage_data = triage_queries.load(session).without(part.blind)
    judges = judges_of(triage_data, part.judge)
    if what == "cases":
        cases = in_part(case_table(triage_data, judges).assign(theme=None), part)
        if part.read_only:
            cases = cases.loc[cases["n_read"].gt(0) | cases["gold_how"].notna()]
        return _named(cases.rename(columns={"case_id": "prompt_id"}))
    verdicts = visible_verdicts(frames.acuity_verdicts(session, origin=True), None, part.blind)
    of_case = ["example_id", "source", "gold", "gold_read_here", "kind"]
    known = case_table(triage_data, {}).drop_duplicates("example_id")[of_case]
    told = verdicts.merge(known.astype({"kind": object, "source": object}), on="example_id", how="left")
    told = told.assign(format=told["evaluation"].map({word.evaluation: word.value for word in Format}))
    of_judge = told.loc[told["rater_kind"].eq(RaterKind.JUDGE) & told["rater"].eq(told["format"].map(dict(judges)))]
    of_judge = of_judge.loc[~of_judge["prompt_version"].str.contains(REPEAT, regex=False)]
    of_judge = of_judge.sort_values(["rater_id", "verdict_id"])  # the newest prompt last
    beside = of_judge[["response_id", "rater", "label"]].drop_duplicates("response_id", keep="last")
    beside = beside.rename(columns={"rater": "judge", "label": "judge_label"})
    told = told.merge(beside, on="response_id", how="left")
    read = told["rater_kind"].eq(RaterKind.REVIEWER) & told["response_id"].notna()
    told[["judge", "judge_label"]] = told[["judge", "judge_label"]].where(read, None)
    of_part = in_part(told, part)
    if part.read_only:
        by_physicians = of_part.loc[of_part["rater_kind"].eq(RaterKind.REVIEWER), "item_id"]
        of_part = of_part.loc[of_part["item_id"].isin(by_physicians)]
    return _named(of_part).rename(columns={"created_at": "read_at"})


def _scores(session: Session, judge: str, part: Part) -> pd.DataFrame:
    from evalcore.rubric.scores import OVERALL, scores_of_verdicts  # noqa: PLC0415 - as above

    judged = visible_verdicts(frames.verdicts(session, kind=RaterKind.JUDGE), None, part.blind)
    if part.judge is not None:
        judged = judged.loc[judged["rater"].eq(judge)]
    judged = in_part(judged, part)
    scored = scores_of_verdicts(judged, [OVERALL]).rename(columns={"dataset": "evaluation"})
    columns = ["response_id", "dataset", "prompt_id", "sample_index", "theme", "n_expected", "canary"]
    items = judged.drop_duplicates("response_id")[columns]
    return _named(scored.drop(columns="example_id").merge(items, on="response_id"))


def _criteria(session: Session, judge: str, part: Part) -> pd.DataFrame:  # noqa: ARG001 - called as the others are
    reads = visible_verdicts(frames.verdicts(session, kind=RaterKind.REVIEWER, texts=True), None, part.blind)
    return _named(faulted_criteria(in_part(reads, part)))


def write_csv(parts: Iterable[pa.Table], file: BinaryIO, schema: pa.Schema) -> None:
    """CSV (RFC 4180) in UTF-8 with a header; missing values are empty cells; texts are guarded."""
    file.write(_lines(pa.table([[name] for name in schema.names], schema.names)))
    some = (rows.slice(start, _AT_ONCE) for rows in parts for start in range(0, len(rows), _AT_ONCE))
    file.writelines(columnar.ahead(_lines, some))


def _lines(rows: pa.Table) -> memoryview:
    """The lines of some rows, joined by Arrow: as the `csv` module joins them, in a tenth of the time."""
    columns = [column.chunk(0) if column.num_chunks == 1 else column.combine_chunks() for column in rows.columns]
    *cells, last = (_cells([*beside]) for _, beside in groupby(columns, key=_coding))
    if len(columns) == 1:  # a line of one empty cell would be an empty line
        last = pc.if_else(pc.equal(pc.fill_null(last, ""), ""), '""', last)
    ended = pc.binary_join_element_wise(last, "", "\r\n", null_handling="replace")
    joined = pc.binary_join_element_wise(*cells, ended, ",", null_handling="replace")
    _, offsets, content = joined.buffers()
    return memoryview(content)[: np.frombuffer(offsets, dtype=np.int32)[len(joined)]]


def _coding(column: pa.Array) -> int:
    """Where the codes of a column lie: columns of the same table of words share them."""
    return column.indices.buffers()[1].address if pa.types.is_dictionary(column.type) else id(column)


def _cells(columns: list[pa.Array]) -> pa.StringArray:
    """The cells of columns beside each other that share their codes: what is said again and again is joined once."""
    coded = [column.dictionary_encode() for column in columns]
    first, *more = (_words(column.dictionary) for column in coded)
    joined = pc.binary_join_element_wise(first, *more, ",", null_handling="replace") if more else first
    return joined.take(coded[0].indices)


def _words(values: pa.Array) -> pa.StringArray:
    """Each value as a cell. A line end of either sort in a text is quoted."""
    if pa.types.is_boolean(values.type):
        return pc.if_else(values, "true", "false")
    if pa.types.is_timestamp(values.type):
        fraction = pc.replace_substring(pc.strftime(values, "%Y-%m-%dT%H:%M:%S"), ".000000", "")
        return pc.binary_join_element_wise(fraction, "+00:00", "")
    if pa.types.is_floating(values.type):
        return pa.array([None if value is None else repr(value) for value in values.to_pylist()], pa.string())
    texts = values.cast(pa.string())
    if pa.types.is_integer(values.type):
        return texts
    dangerous = pc.match_substring_regex(texts, _DANGEROUS)
    texts = pc.if_else(dangerous, pc.binary_join_element_wise("'", texts, ""), texts)
    doubled = pc.binary_join_element_wise('"', pc.replace_substring(texts, '"', '""'), '"', "")
    return pc.if_else(pc.match_substring_regex(texts, '[,"\r\n]'), doubled, texts)


def write_parquet(parts: Iterable[pa.Table], file: BinaryIO, schema: pa.Schema) -> None:
    """Parquet, a row group a part; texts as they are. A dictionary is written as one, which is read as the schema says."""
    first = _coded(next(parts := iter(parts)), schema)
    how: dict[str, Any] = {"write_statistics": _SOUGHT, "write_batch_size": _AT_ONCE}
    with pq.ParquetWriter(file, first.schema, store_schema=False, **how) as writer:
        writer.add_key_value_metadata(schema.metadata | {"ARROW:schema": b64encode(schema.serialize()).decode()})
        writer.write_table(first)
        for _ in columnar.ahead(lambda rows: writer.write_table(_coded(rows, schema)), parts):
            pass


def _coded(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Of the schema's types, but dictionaries of texts stay, each word once in them and nulls outside."""
    made = {}
    for field, chunked in zip(schema, rows.columns, strict=True):
        column = chunked.chunk(0) if chunked.num_chunks == 1 else chunked.combine_chunks()
        if not pa.types.is_dictionary(column.type):
            made[field.name] = column.cast(field.type)
        elif pa.types.is_large_string(field.type):
            words = column.dictionary.dictionary_encode()
            made[field.name] = pa.DictionaryArray.from_arrays(words.indices.take(column.indices), words.dictionary)
        else:
            made[field.name] = column.dictionary.cast(field.type).take(column.indices)
    return pa.table(made, metadata=schema.metadata)


def write_jsonl(parts: Iterable[pa.Table], file: BinaryIO, schema: pa.Schema) -> None:
    """One JSON object a line; missing values are null; texts as they are."""
    for rows in parts:
        made = records(rows.cast(schema).to_pandas())
        file.writelines(orjson.dumps(row, default=pd.Timestamp.isoformat) + b"\n" for row in made)


def to_csv(items: pd.DataFrame) -> bytes:
    """The file of a table that is in memory."""
    file, rows = io.BytesIO(), pa.Table.from_pandas(items, preserve_index=False)
    write_csv([rows], file, rows.schema)
    return file.getvalue()


WRITERS = {"csv": write_csv, "parquet": write_parquet, "jsonl": write_jsonl}


def write(
    engine: Engine, what: str, file_format: str, file: BinaryIO, part: Part | None = None
) -> tuple[int, set[str]]:
    """Write one of the tables, a part at a time: how many rows, and the names of the examples in them. The errors of `table`."""
    n_rows, named = 0, set[str]()

    def counted_rows(parts: Iterable[pa.Table]) -> Iterator[pa.Table]:
        nonlocal n_rows
        for rows in parts:
            n_rows += len(rows)
            named.update(rows["example_id"].unique().cast(pa.large_string()).to_pylist())
            yield rows

    with in_parts(engine, what, part) as parts:
        WRITERS[file_format](counted_rows(parts), file, schema_of(what))
    return n_rows, named


def mended(engine: Engine) -> list[str]:
    """What was mended and an export's reader has to know: other names, responses in no row; a sentence each."""
    with reading(engine) as session:
        called, broken = renaming.changed(session), mending.broken(session)
    sentences = [
        f"The {renaming.Kind(str(row.kind)).words} {row.name} was called {row.first_name} before."
        for row in called.itertuples()
    ]
    if n := len(broken):
        n_by = broken["reason"].value_counts().items()
        why = ", ".join(f"{str(reason).replace('_', ' ')} {n_of:,}" for reason, n_of in n_by)
        sentences.append(f"{counted(n, 'response')} marked as broken ({why}): in no row and no number.")
    return sentences


def codebook(engine: Engine, what: str) -> str:
    """The codebook of a table with what is to be known of the study as it is now."""
    columns_of(what)
    with reading(engine) as session:
        trail_hash, versions = trail.trail_head(session)[1], freezing.sentences(freezing.versions(session))
    return codebook_text(what, trail_hash, [*versions, *mended(engine)])


def codebook_text(what: str, trail_hash: str = "", said: Iterable[str] = ()) -> str:
    """The codebook of a table as Markdown; with the last hash of the audit trail as it was then, and what else is to be known (`mended`, frozen versions)."""
    rows = "\n".join(f"| {column} | {meaning} |" for column, meaning in CODEBOOK[what])
    kept = f"\nLast hash of the audit trail: {trail_hash}\n" if trail_hash else ""
    further = "".join(f"\n- {sentence}" for sentence in said)
    ending = f"{further}\n" if further else ""
    return f"# Codebook: {what}\n\n| column | meaning |\n|---|---|\n{rows}\n{kept}{ending}"


def meta_eval_rows(engine: Engine, part: Part | None = None) -> bytes:
    """JSON Lines that the reference tool's meta-evaluation reads: one row a (response, criterion) with its physicians' labels.

    Standing reads met and not met count, no adjudications. A criterion of no cluster has its axis for a category; it stands bare, as in the official file.
    """
    part = part or Part()
    with reading(engine) as session:
        visible = visible_verdicts(frames.verdicts(session, kind=RaterKind.REVIEWER), None, part.blind)
        reads = current_reads(in_part(visible, part))
        reads = reads.loc[reads["label"].isin([Label.MET, Label.NOT_MET])].sort_values(["item_id", "rater_id"])
        texts = frames.responses(session, example_ids=sorted(set(reads["example_id"].tolist())), texts=True)
        key = contents.study_key(session) or ""
    text_of = {text["response_id"]: text for text in records(texts)}
    of_item: dict[int, list[dict[str, Any]]] = {}
    for read in records(reads):
        of_item.setdefault(read["item_id"], []).append(read)
    rows = []
    for same in of_item.values():
        item, text = same[0], text_of[same[0]["response_id"]]
        row: dict[str, Any] = {"prompt_id": item["prompt_id"]}
        row |= {"completion_id": item["completion_id"] or f"response-{item['response_id']}"}
        row |= {"prompt": json.loads(text["messages"]), "completion": text["response"], "rubric": item["criterion"]}
        row |= {"category": next((f"{kind}:{item[kind]}" for kind in ("cluster", "axis") if item[kind]), "none")}
        row |= {"binary_labels": [read["label"] == Label.MET for read in same]}
        row |= {"anonymized_physician_ids": [anonymous(read["rater"], key=key) for read in same]}
        row |= {"canary": item["canary"]}
        rows.append(orjson.dumps(row) + b"\n")
    return b"".join(rows)


def example_rows(engine: Engine, part: Part | None = None) -> tuple[bytes, int]:
    """The examples of one data set in HealthBench's format, as JSON Lines; those without a rubric, or with points that it does not hold, are counted alone."""
    part = part or Part()
    with reading(engine) as session:
        examples = queries.examples(session, _one_dataset(session, part), part.blind)
    lines, n_left_out = [], 0
    for example in examples:
        criteria = example["criteria"]
        if not criteria or any(points is None or abs(points) > MAX_POINTS for _, points, _ in criteria):
            n_left_out += 1
            continue
        rubric = [{"criterion": text, "points": points, "tags": json.loads(tags)} for text, points, tags in criteria]
        line = {"prompt_id": example["prompt_id"], "prompt": json.loads(example["messages"]), "rubrics": rubric}
        line |= {"example_tags": json.loads(example["tags"]), "canary": example["canary"]}
        if example["ideal_completions"]:
            line["ideal_completions_data"] = json.loads(example["ideal_completions"])
        lines.append(orjson.dumps(line) + b"\n")
    return b"".join(lines), n_left_out


def response_rows(engine: Engine, part: Part | None = None) -> bytes:
    """The responses to the examples of one data set, as the format `responses` has them."""
    part = part or Part()
    with reading(engine) as session:
        found = queries.responses(session, _one_dataset(session, part), part.blind)
    lines = []
    for row in found:
        sent = json.loads(row["sent"]) if row["sent"] else None
        if part.model in {None, row["model"]}:
            lines.append(
                orjson.dumps({name: value for name, value in (row | {"sent": sent}).items() if value is not None})
                + b"\n"
            )
    return b"".join(lines)


def _one_dataset(session: Session, part: Part) -> str:
    """A file of examples does not say of which data set they are: it holds one."""
    known = contents.choices(session)["dataset"]
    if part.dataset is None and len(known) == 1:
        return known[0]
    if part.dataset not in known:
        msg = f"data set: expected one of {', '.join(known) or 'none, the study has no examples'}, got {part.dataset or 'none'}: choose one"
        refuse(msg)
    return part.dataset


def anonymous(name: str, *, key: str) -> str:
    """A physician's name as 64 hexadecimal digits, the same throughout a study, and not to be found by hashing names; one that is that already stays."""
    return name if _DIGEST.fullmatch(name) else hmac.new(key.encode(), name.encode(), hashlib.sha256).hexdigest()


def check(engine: Engine, actor: Viewer) -> None:
    """The first thing of whoever takes something out, before it is made; NotAllowed: no role; OverreadError: a large file is not imported whole."""
    with reading(engine) as session:
        _check(session, actor)


def _check(session: Session, actor: Viewer) -> None:
    allow(session, actor, check_can_export)
    if (found := lookups.unfinished_import(session)) is not None:
        raise OverreadError(found.sentence)


def record(
    engine: Engine,
    *,
    actor: Viewer,
    what: str,
    file_format: str,
    n_rows: int,
    part: Part | None = None,
    named: Collection[str] | None = None,
    more: Mapping[str, Any] | None = None,
) -> None:
    """Leave an audit event: who took what out of the study; and that this person has seen it (`exposing`). What was made is handed over only afterwards.

    A study that is read-only keeps no event. With no `n_rows` nothing was seen. `named`: which examples are in it; None: all but those that the part leaves
    out. `more`: what else the event says. NotAllowed, OverreadError: as `check`.
    """
    part = part or Part()
    asked = {key: value for key, value in vars(part).items() if value and key != "blind"}
    try:
        with writing(engine, though_frozen=True) as session:
            _check(session, actor)
            person = next((person for person in contents.people(session) if person.name == actor.name), None)
            if person is not None and n_rows:
                is_whole = not asked and not part.blind
                examples = None if is_whole else reading_queries.numbers_of(session, named) - part.blind
                seen = Seen.BUNDLE if what == "bundle" else Seen.EXPORT
                reading_store.add_exposures(session, person.person_id, seen, examples)
            subject, detail = f"{what} as {file_format}", {"rows": n_rows, **asked, **(more or {})}
            store.append_event(session, actor=actor.signature, action=LABELS_EXPORTED, subject=subject, detail=detail)
    except ReadOnly:
        check(engine, actor)


def columns_of(what: str) -> list[str]:
    """The columns of a table, in order."""
    if what not in CODEBOOK:
        refuse(f"table: expected one of {', '.join(WHAT)}, got {what!r}")
    return [column for column, _ in CODEBOOK[what]]
