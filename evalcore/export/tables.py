"""Tables to take away: labels, verdicts, scores, criteria at fault, as CSV, Parquet or JSON Lines, with a codebook; and meta-evaluation rows.

Every text cell is made safe for spreadsheets: one that begins with = + - @ (full-width forms too), a tab or a line end gets a quote before it.
"""

import csv
import hashlib
import hmac
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any

import orjson
import pandas as pd

from evalcore.errors import OverreadError, ReadOnly, refuse
from evalcore.export import queries
from evalcore.reading import queries as reading_queries, store as reading_store
from evalcore.reading.conflicts import faulted_criteria
from evalcore.reading.reference import current_reads, item_labels
from evalcore.rubric.blind_read_queries import LOOK, second_looks
from evalcore.rubric.length_adjusted import with_length_adjusted
from evalcore.rubric.scores import OVERALL, scores_of_verdicts
from evalcore.runs.queries import are_suspect
from evalcore.stats.wording import counted
from evalcore.study import contents, frames, lookups, store
from evalcore.study.acting import allow
from evalcore.study.corrections import mending, renaming
from evalcore.study.csv_cells import guarded
from evalcore.study.db import Engine, Session, reading, writing
from evalcore.study.policies import check_can_export, visible_verdicts
from evalcore.study.schema import LABELS_EXPORTED, MAX_POINTS, REPEAT, Format, Label, RaterKind, Seen, Stage, Viewer
from evalcore.triage import queries as triage_queries, setting_queries
from evalcore.triage.cases import case_table
from evalcore.triage.data import described
from evalcore.triage.predictions import judges_of

WHAT = ("labels", "verdicts", "scores", "criteria", "acuity", "cases")
_DIGEST = re.compile("[0-9a-f]{64}")
CODEBOOK: dict[str, list[tuple[str, str]]] = {}
"""Table name to pairs of column and meaning: the tables have exactly the columns of `codebook.csv`, in its order."""
DTYPES: dict[str, dict[str, str]] = {}
"""Table name to the kinds of its columns, also where nothing is in them; a column that is not named here is text."""
for _row in csv.DictReader(files(__package__).joinpath("codebook.csv").read_text(encoding="utf-8").splitlines()):
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
    part = part or Part()
    if what not in WHAT:
        refuse(f"table: expected one of {', '.join(WHAT)}, got {what!r}")
    columns = columns_of(what)
    with reading(engine) as session:
        judges = contents.judges(session)
        if part.judge is not None and part.judge not in judges:
            refuse(
                f"judge: expected one of {', '.join(judges) or 'none, the study has no judge yet'}, got {part.judge!r}"
            )
        if what in ("acuity", "cases"):
            made = _of_cases(session, what, part)
        else:
            given = frames.verdicts(
                session, texts=what != "scores", every_prompt=what == "verdicts", origin=what == "verdicts"
            )
            verdicts = visible_verdicts(given, None, part.blind)
            judge = part.judge or (judges[0] if judges else "")
            tables = {"labels": _labels, "verdicts": _verdicts, "scores": _scores, "criteria": _criteria}
            made = tables[what](verdicts, judge, part)
        if "length_adjusted" in columns:
            made = with_length_adjusted(made, frames.lengths(session), "evaluation")
        if "suspect" in columns:
            made["suspect"] = made["response_id"].map(are_suspect(session)).astype("boolean")
        if what == "verdicts":  # an amendment takes the place of what was said on a second look
            made = made.join(second_looks(session).rename("second_look"), on=LOOK)
            made["second_look"] = made["second_look"].where(made["stage"].isin([Stage.FIRST, Stage.REVISED]))
        if "slipped_from" in columns:
            made = made.merge(frames.slips(session), on="verdict_id", how="left")
        if "n_slips" in columns:
            history = frames.verdicts(session, kind=RaterKind.REVIEWER, history=True)
            slipped = history.loc[history["verdict_id"].isin(frames.slips(session)["verdict_id"]), "item_id"]
            made["n_slips"] = made["item_id"].map(slipped.value_counts()).fillna(0)
        if "knows_model" in columns:
            known, known_by = pd.Series(list(frames.numbers(session, frames.knowing())), dtype="int64"), "verdict_id"
            if what == "labels":  # with reads that were replaced
                ever_read = frames.verdicts(session, kind=RaterKind.REVIEWER, history=True)
                of_item = ever_read.loc[ever_read["stage"].ne(Stage.ADJUDICATED)].groupby("item_id")["created_at"]
                first = of_item.min().reindex(made["item_id"])
                made["first_read_at"] = pd.Series(first.array, index=made.index).where(made["n_reads"].gt(0))
                known, known_by = ever_read.loc[ever_read["verdict_id"].isin(known), "item_id"], "item_id"
            said = made[known_by].isin(known)
            made["knows_model"] = said.astype("boolean").where(said)
    return made[columns].astype({column: DTYPES[what].get(column, "str") for column in columns})


def in_part(items: pd.DataFrame, part: Part) -> pd.DataFrame:
    """The rows of a part's data set, model and theme."""
    for column in ("dataset", "model", "theme"):
        wanted = getattr(part, column)
        if wanted is not None:
            items = items.loc[items[column].eq(wanted)]
    return items


def _named(items: pd.DataFrame) -> pd.DataFrame:
    return items.rename(
        columns={"example_id": "example_number", "prompt_id": "example_id", "position": "criterion_position"}
    )


def _labels(verdicts: pd.DataFrame, judge: str, part: Part) -> pd.DataFrame:
    items = in_part(item_labels(verdicts, judge), part)
    if part.read_only:
        items = items.loc[items["reference_source"].ne("judge")]
    return _named(items)


def _verdicts(verdicts: pd.DataFrame, judge: str, part: Part) -> pd.DataFrame:
    kept = in_part(verdicts, part)
    if part.judge is not None:
        kept = kept.loc[kept["rater_kind"].eq(RaterKind.REVIEWER) | kept["rater"].eq(judge)]
    if part.read_only:
        kept = kept.loc[kept["item_id"].isin(kept.loc[kept["rater_kind"].eq(RaterKind.REVIEWER), "item_id"])]
    return _named(kept).rename(columns={"created_at": "read_at"})


def _of_cases(session: Session, what: str, part: Part) -> pd.DataFrame:
    triage_data = described(triage_queries.load(session).without(part.blind), setting_queries.load(session).rule)
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
    return _verdicts(told, "", replace(part, judge=None))  # levels are read by one judge a format: all stay


def _scores(verdicts: pd.DataFrame, judge: str, part: Part) -> pd.DataFrame:
    judged = verdicts.loc[verdicts["rater_kind"].eq(RaterKind.JUDGE)]
    if part.judge is not None:
        judged = judged.loc[judged["rater"].eq(judge)]
    judged = in_part(judged, part)
    scored = scores_of_verdicts(judged, [OVERALL]).rename(columns={"dataset": "evaluation"})
    columns = ["response_id", "dataset", "prompt_id", "sample_index", "theme", "n_expected", "canary"]
    items = judged.drop_duplicates("response_id")[columns]
    return _named(scored.drop(columns="example_id").merge(items, on="response_id"))


def _criteria(verdicts: pd.DataFrame, judge: str, part: Part) -> pd.DataFrame:  # noqa: ARG001 - called as the others are
    return _named(faulted_criteria(in_part(verdicts.loc[verdicts["rater_kind"].eq(RaterKind.REVIEWER)], part)))


def to_csv(items: pd.DataFrame) -> bytes:
    """CSV (RFC 4180) in UTF-8 with a header; missing values are empty cells; texts are guarded."""
    safe = items.copy()
    for column in safe.columns:
        kind = safe[column].dtype
        if pd.api.types.is_bool_dtype(kind):
            safe[column] = safe[column].astype(object).map({True: "true", False: "false"})
        elif pd.api.types.is_datetime64_any_dtype(kind):
            safe[column] = safe[column].astype(object).map(pd.Timestamp.isoformat, na_action="ignore")
        elif not pd.api.types.is_numeric_dtype(kind):
            safe[column] = safe[column].map(guarded, na_action="ignore")
    # with \n alone, csv leaves a bare \r in a text unquoted
    return safe.to_csv(index=False, lineterminator="\r\n").encode()


def to_parquet(items: pd.DataFrame) -> bytes:
    """Parquet; texts as they are."""
    return items.to_parquet(index=False)


def to_jsonl(items: pd.DataFrame) -> bytes:
    """One JSON object a line; missing values are null; texts as they are."""
    return b"".join(orjson.dumps(row, default=pd.Timestamp.isoformat) + b"\n" for row in records(items))


def records(items: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows as Python's own values, None where there is none."""
    return items.astype(object).where(items.notna(), None).to_dict(orient="records")  # type: ignore[return-value]


WRITERS: dict[str, Callable[[pd.DataFrame], bytes]] = {"csv": to_csv, "parquet": to_parquet, "jsonl": to_jsonl}


def mended(engine: Engine) -> list[str]:
    """What was mended and an export's reader has to know: other names, responses in no row; a sentence each."""
    with reading(engine) as session:
        called, broken = renaming.changed(session), mending.broken(session)
    sentences = [
        f"The {renaming.Kind(str(row.kind)).words} {row.name} was called {row.first_name} before."
        for row in called.itertuples()
    ]
    if n := len(broken):
        why = ", ".join(
            f"{str(reason).replace('_', ' ')} {n_of:,}" for reason, n_of in broken["reason"].value_counts().items()
        )
        sentences.append(f"{counted(n, 'response')} marked as broken ({why}): in no row and no number.")
    return sentences


def codebook_text(what: str, trail_hash: str = "", said: Iterable[str] = ()) -> str:
    """The codebook of a table as Markdown; with the last hash of the audit trail as it was then, and what else is to be known (`mended`, frozen versions)."""
    rows = "\n".join(f"| {column} | {meaning} |" for column, meaning in CODEBOOK[what])
    kept = f"\nLast hash of the audit trail: {trail_hash}\n" if trail_hash else ""
    further = "".join(f"\n- {sentence}" for sentence in said)
    return f"# Codebook: {what}\n\n| column | meaning |\n|---|---|\n{rows}\n{kept}" + (
        f"{further}\n" if further else ""
    )


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


@dataclass(frozen=True)
class Lines:
    """A file of JSON Lines that the importer reads, and how many examples could not be written in it."""

    content: bytes
    n_left_out: int = 0


def example_rows(engine: Engine, part: Part | None = None) -> Lines:
    """The examples of one data set in HealthBench's format; those without a rubric, or with points that it does not hold, are left out and counted."""
    part = part or Part()
    with reading(engine) as session:
        examples = queries.examples(session, _one_dataset(session, part), part.blind)
    lines, n_left_out = [], 0
    for example in examples:
        if not example["criteria"] or any(
            points is None or abs(points) > MAX_POINTS for _, points, _ in example["criteria"]
        ):
            n_left_out += 1
            continue
        rubric = [
            {"criterion": text, "points": points, "tags": json.loads(tags)}
            for text, points, tags in example["criteria"]
        ]
        line = {"prompt_id": example["prompt_id"], "prompt": json.loads(example["messages"]), "rubrics": rubric}
        line |= {"example_tags": json.loads(example["tags"]), "canary": example["canary"]}
        if example["ideal_completions"]:
            line["ideal_completions_data"] = json.loads(example["ideal_completions"])
        lines.append(orjson.dumps(line) + b"\n")
    return Lines(b"".join(lines), n_left_out)


def response_rows(engine: Engine, part: Part | None = None) -> Lines:
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
    return Lines(b"".join(lines))


def _one_dataset(session: Session, part: Part) -> str:
    """A file of examples does not say of which data set they are: it holds one."""
    known = contents.choices(session)["dataset"]
    if part.dataset is None and len(known) == 1:
        return known[0]
    if part.dataset not in known:
        refuse(
            f"data set: expected one of {', '.join(known) or 'none, the study has no examples'}, got {part.dataset or 'none'}: choose one"
        )
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
    return [column for column, _ in CODEBOOK[what]]
