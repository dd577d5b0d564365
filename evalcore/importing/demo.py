"""The demo study: invented, imported through the same door as anybody's data."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from evalcore.importing import import_file
from evalcore.reading.assigning import Choice, Drawn, assign, draw
from evalcore.reading.assignment_queries import Item
from evalcore.settings import shipped
from evalcore.study import contents, store
from evalcore.study.analysis import Analysis
from evalcore.study.browse import UNREAD, Filters
from evalcore.study.db import Engine, reading, writing
from evalcore.study.families import parse
from evalcore.study.schema import Acuity, Administrator, Ask, Format, Selection
from evalcore.triage import label_maps, queries as triage_queries, store as triage_store
from evalcore.triage.data import LEVELS, Kind

ACTOR = "Overread"
DEMO = Administrator(name=ACTOR)
DATASET = "overread-demo"
JUDGE = "Magpie"
LEAD = "Mina Castell"
_MODELS = ("Alder-2", "Briar-1")
STATED = Analysis(
    evaluation=DATASET, judges=(JUDGE,), primary=_MODELS, margin=0.05, margin_under=0.10, margin_missed=0.10
)
"""What the lead stated before anything was read; whom the intervals hold for is left to the widest claim that can be had."""
STATED_AT = datetime(2026, 9, 7, 8, 30, tzinfo=UTC)
"""Between the models' answers and the first read, as the files date them."""
LABEL_MAPS = "label_maps"  # a map a source that is invented too
TRIAGE = ("acuity_cases.csv", "acuity_predictions.jsonl", "acuity_matrices.csv", "acuity_reads.csv")
"""Cases before what was answered to them, and that before physicians' reads of it."""
N_ASSIGNED, ASSIGNED_SEED = 8, 348
"""What waits in Review: responses that nobody has read yet. Their conversations are out of the readers' sight in Browse."""
N_EMERGENCIES, N_AMBIGUOUS, TRIAGE_SEED = 4, 3, 79
"""What waits there of triage: answers in conversation to emergencies, and cases on which the panel did not agree."""


def folder() -> Path:
    """Where the demo's files are: inside the installed package, else beside it."""
    return shipped("data/demo")


def seed(engine: Engine) -> bool:
    """Fill an empty study with the demo. Returns whether it did; a study that holds anything stays as it is."""
    with reading(engine) as session:
        if contents.people(session) or contents.counts(session)["examples"]:
            return False
    files = folder()
    with writing(engine) as session:
        everybody = json.loads((files / "people.json").read_text(encoding="utf-8"))
        people = [store.add_person(session, person.pop("name"), **person, actor=ACTOR).name for person in everybody]
    results = sorted(files.glob("*_allresults.json"))
    for path in [files / "demo_examples.jsonl", *results, files / "wren_verdicts.jsonl"]:
        import_file(engine, path, actor=DEMO, dataset=DATASET, judge=JUDGE if path in results else None)
    with writing(engine) as session:
        store.state_analysis(session, STATED, actor=LEAD, at=STATED_AT)
    for name in ("physician_reads.csv", "revised_reads.csv"):
        import_file(engine, files / name, actor=DEMO, dataset=DATASET, reads_of=people)
    with writing(engine) as session:
        for path in sorted((files / LABEL_MAPS).glob("*.csv")):
            table = label_maps.parse(path.read_text(encoding="utf-8"), path.name)
            triage_store.set_label_map(session, path.stem, table, actor=ACTOR)
    for name in TRIAGE:
        import_file(engine, files / name, actor=DEMO, reads_of=people if name == TRIAGE[-1] else ())
    store.index_texts(engine)
    with writing(engine) as session:
        store.set_guideline(session, (files / "guideline.md").read_text(encoding="utf-8"), actor=ACTOR)
        families = parse((files / "families.csv").read_text(encoding="utf-8"), "families.csv")
        store.set_families(session, families, actor=ACTOR)
    assign(engine, Choice(filters=Filters(reads=UNREAD), n_items=N_ASSIGNED, seed=ASSIGNED_SEED), actor=DEMO)
    _assign_triage(engine)
    return True


def _assign_triage(engine: Engine) -> None:
    with reading(engine) as session:
        triage_data = triage_queries.load(session)
    cases, samples, reads = triage_data.cases, triage_data.samples, triage_data.reads
    gold = cases["gold"].to_numpy()[samples["row"].to_numpy()]
    worded = samples["has_text"] & samples["format"].eq(Format.CONVERSATION)
    waiting = samples.loc[worded & (gold == LEVELS[Acuity.D]) & ~samples.index.isin(reads["sample"])]
    examples = cases["example_id"].to_numpy()[waiting["row"].to_numpy()]
    emergencies = [(int(one), int(other)) for one, other in zip(examples, waiting["response_id"], strict=True)]
    unread = ~cases.index.isin(reads.loc[reads["asked"].eq(Ask.GOLD_ACUITY), "row"])
    ambiguous = [(int(number), None) for number in cases.loc[cases["kind"].eq(Kind.AMBIGUOUS) & unread, "example_id"]]
    of_cases: list[tuple[Ask, str, Sequence[Item], int]] = [
        (Ask.RESPONSE_ACUITY, "emergencies", emergencies, N_EMERGENCIES),
        (Ask.GOLD_ACUITY, "ambiguous cases", ambiguous, N_AMBIGUOUS),
    ]
    for ask, of, items, n_items in of_cases:
        drawn = draw(items, n_items, seed=TRIAGE_SEED)
        shares = dict.fromkeys(drawn, len(drawn) / len(items))
        chosen = Drawn(shares, Selection.RANDOM, len(items), {"of": of, "reads": UNREAD})
        assign(engine, Choice(ask=ask, drawn=chosen, seed=TRIAGE_SEED), actor=DEMO)
