"""A study in which everything that a blind reader may not see is an unmistakable word; made by the importers, by assigning and by reading."""

import csv
import io
import json
import shutil
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import Connection, Engine, text

from evalcore.importing import import_file
from evalcore.reading import adjudication, assigning, overriding, reviewing
from evalcore.reading.assigning import Choice
from evalcore.reading.reviewing import Decision
from evalcore.runs.acts import start
from evalcore.runs.asking import Stop
from evalcore.runs.prompts import spec_for
from evalcore.runs.worker import work
from evalcore.study import contents, store
from evalcore.study.browse import Filters
from evalcore.study.db import open_study, reading, writing
from evalcore.study.policies import allows, check_can_adjudicate
from evalcore.study.schema import (  # fmt: skip
    Acuity,
    Administrator,
    Ask,
    Cause,
    Label,
    RaterKind,
    ReadingState,
    Role,
    Rules,
    RunKind,
    Selection,
    Severity,
    Stage,
    Verdict,
    Viewer,
)
from tests import world
from tests.run_steps import Scripted
from tests.run_world import settings

JUDGE, SEEN_MODEL = "Magpie", "Alder-2"
MODEL = "Qorvexim"
BLIND = ("Kelbrunth", "Kelbdovar", "Kelbsimax")
"""The conversations that wait: each by a word of its own, which is in its text and its prompt_id. On the last one the reader agrees with the
judge throughout, and nobody else says anything."""
OPEN = "Plainsong"
EVERY = (*BLIND, OPEN)

CASES = ("Kelbtrasso", "Kelbgoldun", "Kelbedgaro")
"""Cases of triage that wait, each by a word of its own: on the first the level of a response is asked, on the others what the case needs."""
OPEN_CASES = ("Plaincase", "Plainspread", "Plainedge")
"""Cases that wait for nobody, one of each kind, so that no section is empty for the walkers."""
VOTES = (("C", "C", "C", "C/D", "D"), ("A", "B", "C", "C", "D"), ("B/C",) * 5)
"""Of `CASES` and of `OPEN_CASES`: one is clear, and answered too low; on one its panel does not agree; one lies between two levels."""
SOURCE = "ward"

READER, VOLUNTEER = "Zephyrquist", "Ottobrusk"
"""Two people of the study: one has read all that waits for the walkers, the other has overridden the judge there."""
IMPORTED_READER, IMPORTED_OTHER, IMPORTED_ADJUDICATOR = "Hesselgrun", "Lindamarche", "Cazzimorn"
FIRST_NOTE, DECIDED_NOTE, OPEN_NOTE, IMPORTED_NOTE, RATIONALE = (
    "Wexlimore",
    "Trundavel",
    "Oskribald",
    "Pavontide",
    "Brinquell",
)
CASE_NOTES, OPEN_LEVEL_NOTE = ("Mirravolt", "Gossandrel", "Tessalquin"), "Fennocrast"
RUN_JUDGE, RUN_REPLY = "Rookery", "Vandelquor"
"""A run of this judge, all of whose questions failed; and the word in each of its replies, which the Runs tab alone shows."""
PEOPLE_AT_READING = (READER, VOLUNTEER)
OF_OTHERS = (
    IMPORTED_READER, IMPORTED_OTHER, IMPORTED_ADJUDICATOR, FIRST_NOTE, DECIDED_NOTE, OPEN_NOTE, IMPORTED_NOTE, RATIONALE, *PEOPLE_AT_READING,
    *CASE_NOTES, OPEN_LEVEL_NOTE,
)  # fmt: skip

REVIEWER, EVERY_ROLE, OPEN_EYES = "Dr. Iris Valk", "Dr. Nadir Osk", "Mina Castell"
"""The walkers: a reviewer; a reader who is adjudicator, researcher and lead as well; and one for whom nothing waits: no adjudicator."""
SETTLER = "Dr. Sunniva Falk"
"""An adjudicator and researcher who reads nothing: two of the conversations wait to be settled."""
WALKERS = (REVIEWER, EVERY_ROLE)

RUBRIC = (("Names a warning sign", 7), ("Prescribes without asking", -5), ("Says when to come back", 4))
JUDGED = (True, False, True)


def explanation(conversation: str, model: str) -> str:
    """The word in what the judge says on one response."""
    return f"Zubro{EVERY.index(conversation)}{'m' if model == MODEL else 'a'}"


EXPLANATIONS = tuple(explanation(conversation, model) for conversation in BLIND for model in (MODEL, SEEN_MODEL))
LEVELS_EXPLAINED = tuple(
    f"Quivro{case[4:7]}{'m' if model == MODEL else 'a'}" for case in CASES for model in (MODEL, SEEN_MODEL)
)
"""The words in what the judge says of the level of each response to a case."""
SECRETS = (MODEL, *EXPLANATIONS, *OF_OTHERS, *CASES, *LEVELS_EXPLAINED)
"""What a reader may see nowhere while the conversations wait; the conversations' own words stand in Review alone, and cases are read after them."""


@dataclass(frozen=True)
class Hand:
    """What a walker has at hand.

    Attributes:
        conversation: Its word.
        own: The word of the judge on this very response: shown once the first read is locked.
    """

    number: int
    conversation: str
    own: str


def settles(role: Role) -> bool:
    """Whether this role adjudicates: such a person is shown nothing of what waits for them."""
    return allows(check_can_adjudicate, Viewer(0, "", frozenset({role})))


def make(location: str, folder: Path) -> Engine:
    """The study with nothing opened by the walkers; everybody else has said everything on what waits for them."""
    engine = open_study(location)
    with writing(engine) as session:
        store.ensure_study(session)
        people = (
            (REVIEWER, [Role.REVIEWER]), (EVERY_ROLE, list(Role)), (OPEN_EYES, [role for role in Role if not settles(role)]),
            (READER, [Role.REVIEWER]), (VOLUNTEER, [Role.REVIEWER]), (SETTLER, [Role.ADJUDICATOR, Role.RESEARCHER]),
        )  # fmt: skip
        for name, roles in people:
            store.add_person(session, name, roles=roles, actor="set-up")
        store.set_rules(session, Rules(both_against_judge=True, leads_read=True), actor="set-up")
        store.set_guideline(session, "# Guideline\n\nRead what stands there.", actor="set-up")
    _import(engine, folder)
    choice = Choice(filters=Filters(model=MODEL), readers=(REVIEWER, EVERY_ROLE, READER), n_readers=3, seed=7)
    assigning.assign(engine, choice, actor=Administrator(name=OPEN_EYES))
    _others_read(engine)
    _ask_about_cases(engine, folder)
    _run_fails(engine)
    store.index_texts(engine)
    return engine


def _run_fails(engine: Engine) -> None:
    """A judge is asked about all that waits, and says each time something that cannot be read; the last words stand in why the run stopped."""
    asked = settings(name=RUN_JUDGE)
    spec = spec_for(RunKind.JUDGE, asked, "invented", of_models=(MODEL,))
    run_id = start(engine, spec, actor=Administrator(name=OPEN_EYES), concurrency=1)
    says = f'{{"explanation": "{RUN_REPLY} is why.", "criteria_met": "{RUN_REPLY}"}}'
    with ThreadPoolExecutor(1) as beside:  # tests in a browser have a loop in this thread
        beside.submit(work, engine, run_id, key=None, stop=Stop(), client=Scripted(says)).result()


def _import(engine: Engine, folder: Path) -> None:
    criteria = [
        {"criterion": words, "points": points, "tags": ["level:example", "axis:accuracy"]} for words, points in RUBRIC
    ]
    examples = [
        {
            "prompt_id": f"prompt-{word}",
            "prompt": [{"role": "user", "content": f"{word}: since yesterday my throat is sore. What should I do about it?"}],
            "rubrics": criteria,
            "example_tags": ["theme:hedging", f"physician_agreed_category:{'some' if word == OPEN else 'other'}"],
            "canary": "invented canary",
        }
        for word in EVERY
    ]  # fmt: skip
    _bring(engine, folder / "examples.jsonl", "".join(json.dumps(example) + "\n" for example in examples))
    for model in (SEEN_MODEL, MODEL):
        entries = [
            {
                "prompt_id": example["prompt_id"],
                "prompt": example["prompt"],
                "completion": [{"role": "assistant", "content": "Drink water, rest, and come back if it lasts."}],
                "rubric_items": [
                    {**item, "criteria_met": met, "explanation": f"The answer does so: {explanation(word, model)}."}
                    for item, met in zip(criteria, JUDGED, strict=True)
                ],
            }
            for word, example in zip(EVERY, examples, strict=True)
            if model == SEEN_MODEL or word != OPEN
        ]
        results = {"score": 0, "metrics": {}, "metadata": {"example_level_metadata": entries}}
        _bring(engine, folder / f"results_{model}.json", json.dumps(results), model=model, judge=JUDGE)
    said = [
        (IMPORTED_READER, "first", "not_met", IMPORTED_NOTE, 1, BLIND[:2]),
        (IMPORTED_READER, "first", "met", IMPORTED_NOTE, 2, BLIND[:2]),
        (IMPORTED_OTHER, "first", "met", IMPORTED_NOTE, 1, BLIND[:1]),  # here they conflict
        (IMPORTED_OTHER, "first", "not_met", IMPORTED_NOTE, 1, BLIND[1:2]),  # and here agree against the judge
        (IMPORTED_ADJUDICATOR, "adjudicated", "not_met", RATIONALE, 3, BLIND[:1]),
        ("Dr. Plain", "first", "met", "It stands there.", 1, (OPEN,)),
    ]
    rows = [
        {
            "example_id": f"prompt-{word}", "model": SEEN_MODEL if word == OPEN else MODEL, "criterion_position": position, "rater": rater,
            "label": label, "stage": stage, "explanation": f"{note} is why.", "blinded": True, "read_at": "2026-11-20T10:00:00+00:00",
        }
        for rater, stage, label, note, position, words in said
        for word in words
    ]  # fmt: skip
    _bring(engine, folder / "reads.jsonl", "".join(json.dumps(row) + "\n" for row in rows))


def _bring(engine: Engine, path: Path, content: str, **told: str) -> None:
    path.write_text(content)
    import_file(engine, path, actor=Administrator(name=OPEN_EYES), dataset="invented", **told)


def _others_read(engine: Engine) -> None:
    reader = viewer(engine, READER)
    agreed = [Label.MET if met else Label.NOT_MET for met in JUDGED]
    for _ in BLIND:
        desk = reviewing.take(engine, reader)
        assert desk is not None
        number = desk.reading.id or 0
        labels = agreed if _hand(engine, number).conversation == BLIND[-1] else (Label.NOT_MET, Label.MET, Label.MET)
        for key, label in zip(desk.keys, labels, strict=True):
            reviewing.mark(engine, reader, number, key, label, note=f"{FIRST_NOTE} is what I think.")
        world.lock(engine, reader, number)
        desk = reviewing.open_review(engine, reader, number)
        for key in desk.undecided:
            kept = Decision(
                Label(desk.first[key].label),
                cause=Cause.LANGUAGE,
                severity=Severity.MODERATE,
                note=f"{DECIDED_NOTE} is why.",
            )
            reviewing.revise(engine, reader, number, key, kept, seen=None)
        if desk.undecided:
            reviewing.finish(engine, reader, number)
    items = rows(
        engine,
        "SELECT r.id, c.id FROM response r JOIN criterion c ON c.example_id = r.example_id JOIN example e ON e.id = r.example_id"
        f" JOIN model m ON m.id = r.model_id WHERE m.name = '{MODEL}' AND c.position = 1 AND e.prompt_id <> 'prompt-{BLIND[-1]}'",
    )
    for response_id, criterion_id in items:
        said = Decision(
            Label.NOT_MET, cause=Cause.CRITERION_AMBIGUOUS, severity=Severity.MILD, note=f"{OPEN_NOTE} is missing."
        )
        item = {"response_id": response_id, "criterion_id": criterion_id}
        overriding.give_verdict(engine, viewer(engine, VOLUNTEER), **item, decision=said, judge=JUDGE, seen=None)


def _ask_about_cases(engine: Engine, folder: Path) -> None:
    """Three cases wait for the walkers; everybody else has said everything on them."""
    cases = [
        {
            "dataset": SOURCE, "source_id": word, "original_prompt_text": "Pt c/o cough.",
            "normalized_prompt_text": f"{word}: I have been coughing for three days. What should I do?",
            **{f"anon_label_{place}": vote for place, vote in enumerate(votes, start=1)},
        }
        for words in (CASES, OPEN_CASES)
        for word, votes in zip(words, VOTES, strict=True)
    ]  # fmt: skip
    _bring(engine, folder / "cases.csv", _csv(cases))
    told = {(word, model): f"Because of {LEVELS_EXPLAINED[2 * place + other]}." for place, word in enumerate(CASES)
            for other, model in enumerate((MODEL, SEEN_MODEL))}  # fmt: skip
    answers = [
        {
            "case_id": f"{SOURCE}_{word}", "model": model, "format": asked, "sample_index": sample,
            "text": "" if sample else "Drink water, rest, and come back if it lasts.", "level": "A" if asked == "conversation" else "C", "confidence": "",
            "rater": JUDGE if asked == "conversation" else "parser", "explanation": told.get((word, model), "") if asked == "conversation" else "",
        }
        for word in (*CASES, *OPEN_CASES)
        for model in (SEEN_MODEL, MODEL)
        if model == SEEN_MODEL or word not in OPEN_CASES
        for asked in ("qa", "conversation")
        for sample in (0, 1)
    ]  # fmt: skip
    _bring(engine, folder / "answers.csv", _csv(answers))
    to = {"readers": (REVIEWER, EVERY_ROLE, READER), "n_readers": 3, "seed": 7}
    responses = rows(
        engine,
        "SELECT r.id FROM response r JOIN example e ON e.id = r.example_id JOIN model m ON m.id = r.model_id"
        f" WHERE e.prompt_id = '{SOURCE}_{CASES[0]}' AND m.name = '{MODEL}' AND r.dataset = 'acuity_conversation' AND r.text <> ''",
    )
    chosen = Choice(ask=Ask.RESPONSE_ACUITY, chosen=(responses[0][0],), alone=True, **to)
    assigning.assign(engine, chosen, actor=Administrator(name=OPEN_EYES))
    planned = "".join(f"{SOURCE}_{word},0.5\n" for word in CASES[1:])
    plan = assigning.read_plan(f"prompt_id,inclusion_probability\n{planned}".encode())
    assigning.assign(engine, Choice(ask=Ask.GOLD_ACUITY, plan=plan, **to), actor=Administrator(name=OPEN_EYES))
    reader = viewer(engine, READER)
    for note in CASE_NOTES:
        desk = reviewing.take(engine, reader)
        assert desk is not None
        number = desk.reading.id or 0
        reviewing.mark(engine, reader, number, None, Acuity.B, note=f"{note} is what I think.")
        if world.lock(engine, reader, number) is ReadingState.REVEALED:
            reviewing.revise(engine, reader, number, None, Decision(Acuity.B, cause=Cause.LANGUAGE), seen=None)
            reviewing.finish(engine, reader, number)
    said = Decision(Acuity.D, cause=Cause.OTHER, severity=Severity.MILD, note=f"{OPEN_LEVEL_NOTE} is missing.")
    item = {"response_id": responses[0][0], "criterion_id": None}
    overriding.give_verdict(engine, viewer(engine, VOLUNTEER), **item, decision=said, judge=JUDGE, seen=None)


def _csv(lines: list[dict[str, Any]]) -> str:
    text_ = io.StringIO()
    writer = csv.DictWriter(text_, list(lines[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return text_.getvalue()


def take_in_hand(engine: Engine, name: str) -> Hand:
    """A walker opens an item and marks the first two of its three criteria, otherwise than the judge did."""
    desk = reviewing.take(engine, viewer(engine, name))
    assert desk is not None
    number = desk.reading.id or 0
    for key, met in list(zip(desk.keys, JUDGED, strict=True))[:2]:
        reviewing.mark(
            engine, viewer(engine, name), number, key, Label.NOT_MET if met else Label.MET, note="My own words."
        )
    return _hand(engine, number)


def lock(engine: Engine, name: str) -> Hand:
    """The walker submits what is in hand: it differs from the judge, and nothing is decided yet."""
    person = viewer(engine, name)
    desk = reviewing.take(engine, person)
    assert desk is not None
    number = desk.reading.id or 0
    reviewing.mark(engine, person, number, desk.keys[-1], Label.MET)
    assert world.lock(engine, person, number) is ReadingState.REVEALED
    return _hand(engine, number)


def _hand(engine: Engine, number: int) -> Hand:
    statement = (
        "SELECT e.prompt_id FROM reading r JOIN task t ON t.id = r.task_id JOIN example e ON e.id = t.example_id"
        f" WHERE r.id = {number}"
    )
    conversation = str(rows(engine, statement)[0][0]).removeprefix("prompt-")
    return Hand(number, conversation, explanation(conversation, MODEL))


def make_blind(engine: Engine) -> None:
    """Readers see no verdict on what they have not read, also where they have seen some before."""
    with writing(engine) as session:
        store.set_rules(session, msgspec.structs.replace(contents.rules(session), blind=True), actor=OPEN_EYES)


def viewer(engine: Engine, name: str) -> Viewer:
    """Somebody in the study."""
    with reading(engine) as session:
        return next(person for person in contents.people(session) if person.name == name)


def blind(engine: Engine, name: str) -> frozenset[int]:
    """Numbers of the conversations that wait for somebody."""
    with reading(engine) as session:
        return adjudication.hidden_examples(session, viewer(engine, name))


def rows(engine: Engine, statement: str) -> list[tuple[Any, ...]]:
    """Rows of a query."""
    with engine.connect() as connection:
        return [tuple(row) for row in connection.execute(text(statement))]


# ---------------------------------------------------------------- the same study, with other verdicts where the walkers are blind

_OTHERWISE = "CASE {} WHEN 'met' THEN 'not_met' WHEN 'not_met' THEN 'met' WHEN 'A' THEN 'D' WHEN 'B' THEN 'C' WHEN 'C' THEN 'A' WHEN 'D' THEN 'B' ELSE {} END"
_OPEN = ", ".join(f"'{name}'" for name in (f"prompt-{OPEN}", *(f"{SOURCE}_{word}" for word in OPEN_CASES)))
_ON_BLIND = f"example_id IN (SELECT id FROM example WHERE prompt_id NOT IN ({_OPEN}))"
_OF_WALKERS = "rater_id IN (SELECT id FROM rater WHERE name IN ('" + "', '".join(WALKERS) + "'))"
FLIPS: dict[str, tuple[str, ...]] = {
    "judge": (
        f"UPDATE verdict SET label = {_OTHERWISE.format('label', 'label')} WHERE stage = 'judge' AND {_ON_BLIND}",
        f"UPDATE acuity_case SET gold = {_OTHERWISE.format('gold', 'gold')}, method = 'direct' WHERE {_ON_BLIND}",
        f"UPDATE panel_vote SET vote = {_OTHERWISE.format('vote', 'vote')} WHERE {_ON_BLIND}",
    ),
    "readers": (
        f"UPDATE verdict SET label = {_OTHERWISE.format('label', 'label')}, cause = CASE cause WHEN 'language' THEN 'other' ELSE cause END,"
        f" severity = CASE severity WHEN 'moderate' THEN 'severe' ELSE severity END WHERE stage <> 'judge' AND {_ON_BLIND} AND NOT {_OF_WALKERS}",
    ),
}
"""What is turned round on the conversations that wait: the judge's labels, and what cases need by panel and file; the other physicians' labels, causes
and severities, with their number, order and times."""


def flip(engine: Engine, which: str, *, but: int | None = None) -> int:
    """Turn verdicts round as no program could, with the triggers away. Returns how many.

    Args:
        engine: The study.
        which: A key of `FLIPS`.
        but: Number of a reading whose response keeps its verdicts: its reader has locked it and sees them.
    """
    first, *others = FLIPS[which]
    if but is not None:
        first += f" AND response_id NOT IN (SELECT t.response_id FROM reading r JOIN task t ON t.id = r.task_id WHERE r.id = {but})"
    with engine.begin() as connection:
        for table in ("verdict", "audit_event", "reading"):
            of_sqlite = f"SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = '{table}'"
            of_postgresql = f"SELECT tgname FROM pg_trigger WHERE tgrelid = '{table}'::regclass AND NOT tgisinternal"
            is_sqlite = engine.dialect.name == "sqlite"
            for name in connection.execute(text(of_sqlite if is_sqlite else of_postgresql)).scalars().all():
                connection.execute(text(f"DROP TRIGGER {name}" if is_sqlite else f"DROP TRIGGER {name} ON {table}"))
        n_flipped = sum(int(connection.execute(text(statement)).rowcount) for statement in (first, *others))
        if which == "readers":
            for table, columns, chosen in _TIMES:
                _reverse(connection, table, columns, chosen)
    if which == "readers":
        _say_more(engine)
    return n_flipped


_ON_BLIND_TASKS = f"task_id IN (SELECT id FROM task WHERE {_ON_BLIND})"
_TIMES = (
    ("verdict", ("created_at",), f"stage <> 'judge' AND {_ON_BLIND} AND NOT {_OF_WALKERS}"),
    (
        "reading",
        ("locked_at", "seconds"),
        f"{_ON_BLIND_TASKS} AND person_id IN (SELECT id FROM person WHERE name NOT IN ('{WALKERS[0]}', '{WALKERS[1]}'))",
    ),
    ("audit_event", ("at",), f"actor IN ('{READER}', '{VOLUNTEER}')"),
)
"""Times, with which their order is turned round: a table, its columns, and which rows."""


def _reverse(connection: Connection, table: str, columns: tuple[str, ...], chosen: str) -> None:
    """The last becomes the first."""
    statement = text(f"SELECT id, {', '.join(columns)} FROM {table} WHERE {chosen} ORDER BY id")
    rows_ = connection.execute(statement).all()
    assert len(rows_) > 1
    change = text(f"UPDATE {table} SET {', '.join(f'{name} = :{name}' for name in columns)} WHERE id = :id")
    for row, other in zip(rows_, reversed(rows_), strict=True):
        connection.execute(change, {"id": row[0], **dict(zip(columns, other[1:], strict=True))})


def _say_more(engine: Engine) -> None:
    """More reads are revised, with severe harm, and more people read and conflict, each in an act of its own."""
    items = rows(
        engine,
        f"SELECT DISTINCT example_id, response_id, criterion_id FROM verdict WHERE stage = 'first' AND criterion_id IS NOT NULL AND {_ON_BLIND}"
        f" AND NOT {_OF_WALKERS} ORDER BY response_id, criterion_id",
    )
    with writing(engine) as session:
        others = [store.ensure_rater(session, RaterKind.REVIEWER, name) for name in ("Dr. One More", "Dr. Two More")]
        for example, response, criterion in items:
            item = {"example_id": example, "response_id": response, "criterion_id": criterion, "blinded": False}
            revised = Verdict(
                **item,
                rater_id=others[0],
                stage=Stage.REVISED,
                label=Label.MET,
                severity=Severity.SEVERE,
                cause=Cause.OTHER,
            )
            more = Verdict(
                **item, rater_id=others[1], stage=Stage.OPEN, label=Label.NOT_MET, selection=Selection.VOLUNTEERED
            )
            store.add_verdicts(session, [revised], actor=READER, action="read kept")
            store.add_verdicts(session, [more], actor=IMPORTED_OTHER, action="judge overridden")


def copied(source: Path, target: Path) -> Path:
    """A copy of a SQLite study that nothing has open."""
    with closing(sqlite3.connect(source)) as study_file:
        study_file.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return Path(shutil.copyfile(source, target))


def found(secrets: tuple[str, ...], *places: bytes) -> set[str]:
    """Which of the words stand there, whatever their case."""
    everything = b"\n".join(places).lower()
    return {secret for secret in secrets if secret.lower().encode() in everything}
