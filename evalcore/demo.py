"""The demo study: invented, imported through the same door as anybody's data."""

import json
from importlib.resources import files
from pathlib import Path

from sqlalchemy import Engine

from evalcore import store
from evalcore.assigning import Choice, assign
from evalcore.db import reading, writing
from evalcore.families import parse
from evalcore.importing import import_file
from evalcore.queries import lookups, study
from evalcore.queries.browse import UNREAD, Filters

ACTOR = "Overread"
DATASET = "overread-demo"
JUDGE = "Magpie"
EXAMPLES, SECOND_JUDGE, READS, PEOPLE, GUIDELINE, FAMILIES = (
    "demo_examples.jsonl",
    "wren_verdicts.jsonl",
    "physician_reads.csv",
    "people.json",
    "guideline.md",
    "families.csv",
)
N_ASSIGNED, ASSIGNED_SEED = 8, 348
"""What waits in Review: responses that nobody has read yet. Their conversations are out of the readers' sight in Browse."""


def folder() -> Path:
    """Where the demo's files are: inside the installed package, else beside it."""
    packaged = Path(str(files("evalcore") / "_app" / "data" / "demo"))
    return packaged if packaged.exists() else Path(__file__).resolve().parents[1] / "data" / "demo"


def seed(engine: Engine) -> bool:
    """Fill an empty study with the demo. Returns whether it did; a study that holds anything stays as it is."""
    with reading(engine) as session:
        if study.people(session) or lookups.has_examples(session):
            return False
    with writing(engine) as session:
        for person in json.loads((folder() / PEOPLE).read_text(encoding="utf-8")):
            store.add_person(session, person.pop("name"), **person, actor=ACTOR)
    results = sorted(folder().glob("*_allresults.json"))
    for path in [folder() / EXAMPLES, *results, folder() / SECOND_JUDGE, folder() / READS]:
        import_file(engine, path, actor=ACTOR, dataset=DATASET, judge=JUDGE if path in results else None)
    store.index_texts(engine)
    with writing(engine) as session:
        store.set_guideline(session, (folder() / GUIDELINE).read_text(encoding="utf-8"), actor=ACTOR)
        families = parse((folder() / FAMILIES).read_text(encoding="utf-8"), FAMILIES)
        store.set_families(session, families, actor=ACTOR)
    assign(engine, Choice(filters=Filters(reads=UNREAD), n_items=N_ASSIGNED, seed=ASSIGNED_SEED), actor=ACTOR)
    return True
