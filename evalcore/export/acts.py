"""Take something out of a study: who may is asked first, and who took what is written down before it is handed over."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from evalcore.export import tables
from evalcore.export.tables import Part
from evalcore.judges.splits import SPLIT_WHAT, Split
from evalcore.reading.adjudication import hidden_examples
from evalcore.stats.wording import counted
from evalcore.study.db import Engine, reading
from evalcore.study.schema import Viewer

if TYPE_CHECKING:
    from evalcore.export.judging_material import Sets

FORMATS = ("meta-eval", "inspect", "examples", "responses")
"""What a study can be taken out as, beside `tables.WRITERS`."""
OTHERS = (*FORMATS, "bundle", "report")


class Taken(NamedTuple):
    """How many rows a file has; the names of the examples in it (None: all of its part); and what was left out, a sentence, else empty."""

    n_rows: int
    named: set[str] | frozenset[str] | None = None
    left_out: str = ""


def take(
    engine: Engine, what: str, file_format: str, file: BinaryIO, *, actor: Viewer, part: Part | None = None
) -> Taken:
    """Write one of the tables, or one of `OTHERS`, to a file, without conversations that wait for the actor's own blind read.

    NotAllowed, OverreadError: as `tables.check`, and of what is made.
    """
    tables.check(engine, actor)
    open_part = _open_to(engine, actor, part)
    other = next((word for word in (file_format, what) if word in OTHERS), None)
    if other is None:
        taken = Taken(*tables.write(engine, what, file_format, file, open_part))
    else:
        content, taken = _made(engine, other, open_part)
        file.write(content)
    told: dict[str, Any] = {"what": what, "file_format": file_format, "n_rows": taken.n_rows, "named": taken.named}
    tables.record(engine, actor=actor, part=open_part, **told)
    return taken


def take_split(engine: Engine, split: Split, part: Part, *, actor: Viewer) -> "Sets":
    """The sets of a split for a judge; the event has its seed, its shares and the hash of each file. The errors of `check_split`."""
    from evalcore.export.judging_material import check_split, split_sets  # noqa: PLC0415 - a table needs no statistics

    check_split(engine, actor)
    open_part = _open_to(engine, actor, part)
    sets = split_sets(engine, split, open_part)
    told: dict[str, Any] = {"what": SPLIT_WHAT, "file_format": "jsonl", "n_rows": sets.n_rows, "named": sets.named}
    more = {"seed": split.seed, "shares": list(split.shares), "files": sets.hashes}
    tables.record(engine, actor=actor, part=open_part, **told, more=more)
    return sets


def _open_to(engine: Engine, actor: Viewer, part: Part | None) -> Part:
    with reading(engine) as session:
        return replace(part or Part(), blind=hidden_examples(session, actor))


def _made(engine: Engine, other: str, part: Part) -> tuple[bytes, Taken]:
    if other == "bundle":
        from evalcore.export.bundle import bundle  # noqa: PLC0415 - the same

        content, n_rows = bundle(engine, blind=part.blind)
        return content, Taken(n_rows)
    if other == "report":
        from evalcore.export.report import report  # noqa: PLC0415 - the same

        return report(engine, blind=part.blind), Taken(0)
    if other == "inspect":
        from evalcore.export.judging_material import inspect_scores  # noqa: PLC0415 - the same

        scores = inspect_scores(engine, part)
        return scores.content, Taken(scores.n_rows, scores.named, scores.left_out)
    left_out = ""
    if other == "examples":
        content, n_left_out = tables.example_rows(engine, part)
        if n_left_out:
            why = "Left out, since they have no rubric with points from -10 to 10"
            left_out = f"{why}: {counted(n_left_out, 'example')}"
    else:
        content = (tables.meta_eval_rows if other == "meta-eval" else tables.response_rows)(engine, part)
    return content, Taken(content.count(b"\n"), left_out=left_out)
