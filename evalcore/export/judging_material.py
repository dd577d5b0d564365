"""What physicians settled, for judges made elsewhere: scores that inspect_ai reads, and train, development and test sets split by conversation."""

import hashlib
import io
import json
import zipfile
from collections import Counter
from dataclasses import dataclass
from typing import Any

import orjson
import pandas as pd

from evalcore.errors import refuse
from evalcore.export.tables import Part, check as check_export, in_part
from evalcore.importing.formats.inspect_logs import sample_id_of
from evalcore.judges.splits import SETS, Split
from evalcore.reading.queries import awaited_examples
from evalcore.reading.reference import ADJUDICATED, AGREED, SINGLE, current_reads, item_labels
from evalcore.rubric.scores import OVERALL, scores_of_verdicts
from evalcore.stats.wording import counted
from evalcore.study import frames
from evalcore.study.acting import allow
from evalcore.study.db import Engine, Session, reading
from evalcore.study.frames import records
from evalcore.study.policies import check_can_split, visible_verdicts
from evalcore.study.schema import Label, RaterKind, Stage, Viewer

SOURCES = (ADJUDICATED, AGREED, SINGLE)
SCORES_HOW = "One line a response whose whole rubric physicians settled, as inspect_ai's precomputed_scores reads it: value is their score."
SPLIT_HOW = (
    "Train, development and test sets: one line an item that physicians labelled, with their rationales. No conversation is in two sets, and one that waits "
    "for a blind read is in none."
)
READER, ADJUDICATOR = "reader", "adjudicator"
_OF_ITEM = [
    "dataset",
    "example_id",
    "evaluation",
    "model",
    "sample_index",
    "response_id",
    "criterion_position",
    "criterion",
    "points",
]


@dataclass(frozen=True)
class Scores:
    """A file for `precomputed_scores`."""

    content: bytes
    n_rows: int
    n_left_out: int
    """Responses that physicians have read, and whose rubric they have not settled whole, or could not assess whole."""
    named: frozenset[str]

    @property
    def left_out(self) -> str:
        """How many responses have no score, and why; empty where none was left out."""
        why = "Left out, since physicians have not settled or could not assess the whole rubric"
        return f"{why}: {counted(self.n_left_out, 'response')}." if self.n_left_out else ""


@dataclass(frozen=True)
class Sets:
    """The files of a split by their names, and what is in them."""

    files: dict[str, bytes]
    n_rows: int
    n_conversations: dict[str, int]  # by set
    n_waiting: int  # conversations with a label that wait for somebody's blind read: in no set
    n_unassessed: int  # items whose label is "cannot assess": in no set, since a judge has no such answer
    named: frozenset[str]

    @property
    def hashes(self) -> dict[str, str]:
        """The SHA-256 of each file, as the trail keeps it and `--made-with` finds it again."""
        return {name: hashlib.sha256(content).hexdigest() for name, content in self.files.items() if content}

    @property
    def packed(self) -> bytes:
        """The files as one zip, the same bytes for the same files."""
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as packed:
            for name, content in self.files.items():
                packed.writestr(zipfile.ZipInfo(name), content, compress_type=zipfile.ZIP_DEFLATED)
        return buffer.getvalue()


def check_split(engine: Engine, actor: Viewer) -> None:
    """As `tables.check`, for leads and researchers: what is in no set tells what others have yet to read."""
    check_export(engine, actor)
    with reading(engine) as session:
        allow(session, actor, check_can_split)


def inspect_scores(engine: Engine, part: Part | None = None) -> Scores:
    """JSON Lines with id, value, epoch, answer, explanation and metadata: the score by physicians' labels (at most 1) of each response that they settled whole.

    The id is the sample's: the example's name, or the number that a log of inspect_ai gave it. One score a sample and epoch is what inspect_ai takes, so
    OverreadError where the part holds several models' responses, or one example twice.
    """
    part = part or Part()
    with reading(engine) as session:
        reads, items, texts = _settled(session, part)
    words = _rationales(reads)
    labelled = items.loc[items["reference_label"].notna()].assign(rater="physicians")
    labelled = labelled.drop(columns="judge").rename(columns={"reference_label": "label"}).astype({"points": float})
    of_response = scores_of_verdicts(labelled, [OVERALL]).set_index("response_id")["score"].dropna()
    whole = items.loc[items["response_id"].isin(of_response.index)]
    if len(models := sorted(whole["model"].unique())) > 1:
        refuse(f"model: expected one, since inspect_ai takes one score a sample, got {', '.join(models)}: choose one")
    lines, seen = [], dict[tuple[str, int], int]()
    for number, same in whole.groupby("response_id", sort=False):
        rows, text = records(same), texts.loc[number]
        first = rows[0]
        key = sample_id_of(first["prompt_id"], str(text["messages"])), int(first["sample_index"]) + 1
        if key in seen:
            msg = f"id: expected one response of {key[0]!r} in epoch {key[1]}, got responses {seen[key]} and {number}: choose a data set"
            refuse(msg)
        seen[key] = int(str(number))
        criteria: list[dict[str, Any]] = [
            {"position": row["position"], "criterion": row["criterion"], "points": row["points"]}
            | {"label": row["reference_label"], "source": row["reference_source"], "rationales": words.get(row["item_id"], [])}
            for row in rows
        ]  # fmt: skip
        n_met = sum(row["reference_label"] == Label.MET for row in rows)
        told = [f"{one['position']}. {one['label'].replace('_', ' ')}: {one['criterion']}" for one in criteria]
        metadata = {"dataset": first["dataset"], "model": first["model"], "response_id": seen[key]}
        metadata |= {"canary": first["canary"], "n_met": n_met, "criteria": criteria}
        line = {"id": key[0], "value": float(of_response[number]), "epoch": key[1], "answer": text["response"]}
        lines.append(orjson.dumps(line | {"explanation": "\n".join(told), "metadata": metadata}) + b"\n")
    n_left_out = items["response_id"].nunique() - len(lines)
    return Scores(b"".join(lines), len(lines), n_left_out, frozenset(whole["prompt_id"]))


def split_sets(engine: Engine, split: Split, part: Part | None = None) -> Sets:
    """Every item that physicians labelled met or not met, with their rationales, in the set of its conversation.

    A conversation is in one set, whatever data set, model or criterion it comes with; one that waits for somebody's blind read is in none, since its label
    may yet change.
    """
    part = part or Part()
    with reading(engine) as session:
        waiting = awaited_examples(session)
        reads, items, texts = _settled(session, part)
    words = _rationales(reads)
    items = items.loc[items["reference_source"].isin(SOURCES)]
    waits, unsure = items["example_id"].isin(waiting), items["reference_label"].eq(Label.CANNOT_ASSESS)
    n_waiting = items.loc[waits, "example_id"].nunique()
    rows = items.loc[~waits & ~unsure]
    files: dict[str, list[bytes]] = {name: [] for name in SETS}
    conversations: dict[str, set[str]] = {name: set() for name in SETS}
    for row in records(rows):
        text = texts.loc[row["response_id"]]
        name, known = split.set_of(text["messages"]), split.key(text["messages"])
        conversations[name].add(known)
        said = row | {"example_id": row["prompt_id"], "criterion_position": row["position"]}
        line = {"set": name, "seed": split.seed, "shares": split.shares} | {column: said[column] for column in _OF_ITEM}
        line |= {"conversation": json.loads(text["messages"]), "response": text["response"]}
        line |= {name: row[name] for name in ("reference_label", "reference_source", "n_reads")}
        line |= {"rationales": words.get(row["item_id"], []), "canary": row["canary"]}
        files[name].append(orjson.dumps(line) + b"\n")
    contained = {f"{name}.jsonl": b"".join(lines) for name, lines in files.items()}
    counts = {name: len(found) for name, found in conversations.items()}
    return Sets(contained, len(rows), counts, n_waiting, int((unsure & ~waits).sum()), frozenset(rows["prompt_id"]))


def _settled(session: Session, part: Part) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Physicians' verdicts, the items that they label, and the texts of the responses by their numbers."""
    given = frames.verdicts(session, kind=RaterKind.REVIEWER, texts=True)
    reads = in_part(visible_verdicts(given, None, part.blind), part)
    items = item_labels(reads, "").assign(
        n_expected=lambda table: table["response_id"].map(
            reads.drop_duplicates("response_id").set_index("response_id")["n_expected"]
        )
    )
    texts = frames.responses(session, example_ids=sorted(set(items["example_id"].tolist())), texts=True)
    return reads, items, texts.set_index("response_id")


def _rationales(reads: pd.DataFrame) -> dict[int, list[dict[str, str]]]:
    """What physicians wrote of each item, the adjudicator first; nobody is named."""
    settled = reads.loc[reads["stage"].eq(Stage.ADJUDICATED)].sort_values("verdict_id", ascending=False)
    standing = pd.concat([settled.drop_duplicates("item_id"), current_reads(reads)])
    standing = standing.loc[standing["explanation"].fillna("").ne("")]
    found: dict[int, list[dict[str, str]]] = {}
    for row in records(standing[["item_id", "stage", "label", "explanation"]]):
        by = ADJUDICATOR if row["stage"] == Stage.ADJUDICATED else READER
        found.setdefault(row["item_id"], []).append({"by": by, "label": row["label"], "text": row["explanation"]})
    return found


def left_out_words(sets: Sets) -> list[str]:
    """What a split holds and what it does not, a sentence each."""
    counts = Counter(sets.n_conversations)
    parts = ", ".join(f"{name} {counts[name]:,}" for name in SETS)
    sentences = [f"{sets.n_rows:,} labelled items; conversations: {parts}."]
    if sets.n_waiting:
        sentences.append(f"Conversations that wait for somebody's blind read, and are in no set: {sets.n_waiting:,}.")
    if sets.n_unassessed:
        sentences.append(f"Items that physicians could not assess, and that are in no set: {sets.n_unassessed:,}.")
    return sentences
