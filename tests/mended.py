"""What a study shows, by names instead of row numbers and without times, so that it can be held against one that never had what was withdrawn."""

from collections.abc import Collection
from typing import Any

import msgspec
import pandas as pd
from sqlalchemy import Engine

from evalcore.export.tables import table
from evalcore.reading import adjudication, assignment_queries, queries
from evalcore.rubric import queries as rubric
from evalcore.study import browse, contents, frames
from evalcore.study.browse import Filters
from evalcore.study.db import reading
from evalcore.study.tables import now
from evalcore.triage import queries as triage

NUMBERS = (
    "example_id",
    "response_id",
    "criterion_id",
    "item_id",
    "rater_id",
    "verdict_id",
    "row",
    "unit",
    "case",
    "sample",
    "person_id",
)
COMPLETED = ("provisional", "theme", "category", "axis", "level", "cluster", "canary", "language", "file_sha256")
"""What a file may complete in an example of another, and does not take away; and a hash, which is the same verdict's by another file."""


def shown(engine: Engine) -> dict[str, list[str]]:
    """Tables behind the pages, numbers and exports, as sorted lines."""
    with reading(engine) as session:
        data, cases = rubric.load(session), triage.load(session)
        named = frames.criteria(session).set_index("criterion_id")["criterion"]
        found: dict[str, Any] = {
            "counts": pd.DataFrame([contents.counts(session)]),
            "models": pd.DataFrame({"name": contents.models(session)}),
            "judges": pd.DataFrame({"name": sorted(contents.judges(session))}),
            "choices": pd.DataFrame({"words": sorted(map(repr, _choices(contents.choices(session)).items()))}),
            "readers": contents.readers(session),
            "browse": browse.examples(session, Filters()),
            "read": browse.examples(session, Filters(reads=browse.READ)),
            "overridden": browse.examples(session, Filters(reads=browse.OVERRIDDEN)),
            **{
                f"search {words}": browse.examples(session, Filters(search=words))
                for words in ("sweats", "go today", "wai")
            },
            "verdicts": frames.verdicts(session, texts=True, every_prompt=True),
            "acuity": frames.acuity_verdicts(session),
            "items": pd.concat([data.items, data.judged.rename(columns="judge {}".format)], axis=1),
            "reads": data.reads.assign(
                item=data.items["criterion_id"].map(named).to_numpy()[data.reads["row"].to_numpy(dtype=int)]
            ),
            "sums": rubric.response_sums(session),
            "assignments": assignment_queries.assignments(session),
            "queues": pd.DataFrame(
                [
                    (
                        reader.name,
                        *msgspec.structs.astuple(queries.progress(session, reader, now()))[:2],
                        len(queries.blind_examples(session, reader)),
                    )
                    for reader in contents.people(session)
                ]
            ),
            "adjudication": pd.DataFrame(
                {"n": [len(adjudication.to_settle(session, reader)) for reader in contents.people(session)]}
            ),
            "cases": cases.cases,
            "samples": pd.concat([cases.samples, cases.levels.rename(columns="judge {}".format)], axis=1),
            "votes": cases.votes,
            "published": cases.published,
        }
    found |= {f"export {what}": table(engine, what) for what in ("labels", "scores", "verdicts", "acuity", "cases")}
    return {name: lines(frame) for name, frame in found.items()}


def _choices(offered: dict[str, Any]) -> dict[str, Any]:
    return {name: values for name, values in offered.items() if name not in COMPLETED}


def lines(frame: pd.DataFrame, left_out: Collection[str] = (*NUMBERS, *COMPLETED)) -> list[str]:
    """The rows of a table as sorted text, with the columns in the order of their names."""
    times = [name for name in frame.columns if str(name).endswith(("_at", "seconds"))]
    kept = frame.drop(columns=[name for name in (*left_out, *times) if name in frame.columns])
    kept = kept[sorted(kept.columns, key=str)].astype(object)
    kept = kept.where(kept.notna(), None)
    return [
        *sorted(repr(tuple(map(str, row))) for row in kept.itertuples(index=False)),
        f"columns: {list(kept.columns)}",
    ]


def differences(one: dict[str, list[str]], other: dict[str, list[str]]) -> str:
    """Where two studies show something else."""
    said = []
    for name, found in one.items():
        more, less = ([line for line in a[name] if line not in b[name]] for a, b in ((one, other), (other, one)))
        if found != other[name]:
            said.append(f"{name}: too much {more[:3]}, missing {less[:3]}, {len(found)} and {len(other[name])} rows")
    return "\n".join(said)
