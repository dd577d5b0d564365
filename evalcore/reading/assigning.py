"""Say what is read, by whom and in which order: items by filter or by plan, drawn with a stored seed and a known probability."""

import csv
import io
import json
import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import msgspec
import numpy as np

from evalcore.errors import NotFound, OverreadError, refuse
from evalcore.reading import assignment_queries, practice_queries, queries, store as reading_store
from evalcore.reading.assignment_queries import Item, Planned
from evalcore.stats.wording import counted, listed
from evalcore.study import browse, contents, store
from evalcore.study.acting import allow
from evalcore.study.browse import Filters
from evalcore.study.csv_cells import unguarded
from evalcore.study.db import Engine, Session, writing
from evalcore.study.languages import LANGUAGES
from evalcore.study.policies import (
    STUDY,
    allows,
    check_can_amend,
    check_can_assign,
    check_can_give_practice,
    check_can_read,
)
from evalcore.study.schema import Ask, ReadingMode, Role, Rules, Seen, Selection, Viewer
from evalcore.study.tables import Assignment

READERS_EACH, RESERVE_MINUTES = 2, 45
MAX_NAME = 1_000  # characters
MAX_SEED = MAX_SAMPLE = 2**31 - 1
MAX_DIGITS = len(str(MAX_SAMPLE))  # Python itself refuses to read a number of thousands of digits
MAX_MINUTES = 60 * 24 * 30
PRACTICE = 3  # responses of a practice round
COMPANIONS = 3  # at least so many others are read with responses that somebody chose: see `_companions`
EXTENDS = "extends"
"""Under this name `chosen_by` has the assignment of which an assignment drew more; the rest of it is filters."""
PLAN_COLUMNS = ("prompt_id", "inclusion_probability")


@dataclass(frozen=True)
class Drawn:
    """Items that were drawn for a purpose (`planning.draw`), at random where all had the same probability, in (0, 1], else by importance."""

    shares: dict[Item, float]
    selection: Selection
    n_population: int
    how: dict[str, Any]  # for the record: what probability any other item had, as JSON would hold it


@dataclass(frozen=True)
class Choice:
    """What is to be read.

    `chosen`: numbers of responses that somebody chose, as the dangerous misses of Triage; goes before all others. Since they were chosen for what a judge
    says of them, their labels stand for no others: the verdicts are volunteered, without a probability, enter no estimate, and may be drawn later; then
    the read counts as drawn. Others are drawn to be read among them (`_companions`), unless `alone`: then readers may guess why. `n_items`: how many are
    drawn; None: all. `blind`: conversations that wait for whoever assigns: filters on items, and words that are searched for, leave them out, since how
    many fit would tell what was said there. `make_blind`: set the study to show readers no verdict on what they have not read. `practice`: readers begin
    with a practice round, on responses that are set apart for each of them (`practice_for`).
    `extends`: the assignment of which this draws more (`amending.extend`).
    """

    ask: Ask = Ask.RUBRIC
    filters: Filters = field(default_factory=Filters)
    plan: tuple[Planned, ...] = ()
    drawn: Drawn | None = None
    chosen: tuple[int, ...] = ()
    alone: bool = False
    n_items: int | None = None
    readers: tuple[str, ...] = ()
    specialty: str | None = None
    n_readers: int = READERS_EACH
    seed: int | None = None
    reserve_minutes: int = RESERVE_MINUTES
    blind: frozenset[int] = frozenset()
    make_blind: bool = False
    practice: bool = False
    extends: int | None = None


@dataclass(frozen=True)
class Assigned:
    """What was assigned, and what was not.

    `assignment_id`: None for a dry run. `n_waiting`: left out since they are assigned already. `n_too_few`: items that fewer readers than wanted can read,
    by language, or since they have seen verdicts on it. `exposed`: who has seen others' verdicts on how many items, and is left out of those. `leading`:
    who is left out as lead or researcher. `n_companions`: drawn to be read among the chosen ones; `n_alone`: so many more such were wanted. `practising`: who
    begins with a practice round; `without_practice`: who does not, since fewer responses than it takes, so many, are settled and new to them.
    """

    assignment_id: int | None
    n_items: int
    n_population: int
    n_waiting: int
    n_too_few: int
    languages_missing: tuple[str, ...]
    readers: tuple[str, ...]
    seed: int
    exposed: tuple[tuple[str, int], ...] = ()
    leading: tuple[str, ...] = ()
    n_companions: int = 0
    n_alone: int = 0
    practising: tuple[str, ...] = ()
    without_practice: tuple[tuple[str, int], ...] = ()

    def sentences(self) -> list[str]:
        """The report in words."""
        said = [
            f"{self.n_items:,} of {self.n_population:,} items that fit, in random order (seed {self.seed})",
            f"readers: {', '.join(self.readers)}",
        ]
        if self.n_waiting:
            said.append(f"{self.n_waiting:,} more are assigned already and were left out")
        if self.n_companions:
            drawn = f"{self.n_companions:,} of them were drawn at random to be read among the chosen ones"
            said.append(f"{drawn}, so that no reader can tell which were chosen")
        if self.n_alone:
            fewer = "fewer than wanted could be drawn to be read among the chosen ones: a reader may guess which were chosen"
            said.append(f"{counted(self.n_alone, 'item')} {fewer}")
        said += [
            f"{name} has seen others' verdicts on {n:,} of {counted(self.n_items, 'item')}, and is left out there"
            for name, n in self.exposed
        ]
        if self.practising:
            said.append(f"begin with a practice round of {PRACTICE} responses: {', '.join(self.practising)}")
        said += [
            f"{name} begins without practice: expected at least {PRACTICE} settled responses that are new to {name}, got {n}"
            for name, n in self.without_practice
        ]
        if self.leading:
            said.append(f"left out, since leads and researchers do not read in this study: {', '.join(self.leading)}")
        if self.n_too_few:
            have = "has" if self.n_too_few == 1 else "have"
            said.append(f"{counted(self.n_too_few, 'item')} {have} fewer readers left than are wanted")
        if self.languages_missing:
            said.append(
                f"no selected reader reads {listed((LANGUAGES.get(code, code) for code in self.languages_missing), 'or')}"
            )
        return said


def assign(engine: Engine, choice: Choice, *, actor: Viewer, dry_run: bool = False) -> Assigned:
    """Choose items and readers, draw, order, and write it down."""
    _check(choice)
    seed = choice.seed if choice.seed is not None else int(np.random.default_rng().integers(MAX_SEED))
    if choice.filters.search or choice.filters.language:
        store.index_texts(engine)  # notes, and what an import that was broken off left, wait for it
    with writing(engine) as session:
        allow(session, actor, check_can_assign)
        store.wait_for_others(session)  # two leads at once: what the first assigned is no longer free for the second
        rules = contents.rules(session)
        if choice.practice:
            check_can_give_practice(actor, choice.ask, rules.mode)
        is_blind = rules.mode is ReadingMode.BLIND
        if choice.extends is not None:
            check_can_amend(actor, is_cancelled=assignment_of(session, choice.extends).cancelled_at is not None)
        readers, leading = able_readers(contents.people(session), choice, rules)
        fitting, shares = _fitting(session, choice)
        waiting = assignment_queries.assigned(session, choice.ask, drawn=not choice.chosen)
        free = [item for item in fitting if item not in waiting]
        if not free:
            why = (
                ", or all that fit are assigned already." if fitting else "." + _data_set_meant(session, choice.filters)
            )
            raise OverreadError("Nothing is left to assign: no item fits" + why)
        beside, n_alone = _companions(session, choice, free, readers, seed=seed) if is_blind else ([], 0)
        n_waiting = len(fitting) - len(free)
        free += beside
        drawn = draw(free, choice.n_items, seed=seed)
        n_population = choice.drawn.n_population if choice.drawn is not None else len(free)
        languages = assignment_queries.languages(session, {example for example, _ in drawn})
        able = {
            code: [r for r in readers if code is None or code in queries.languages_of(r)]
            for code in set(languages.values())
        }
        people = [reader.person_id for reader in readers]
        seen = queries.exposed_among(session, people, set(languages), None if is_blind else Seen.PRACTICE)
        of_item = {item: able[languages[item[0]]] for item in drawn}
        n_left = {item: sum(item[0] not in seen.get(r.person_id, ()) for r in who) for item, who in of_item.items()}
        if not any(n_left.values()) and any(able.values()):
            msg = "Nobody is left to read blind: everybody chosen has seen others' verdicts on these items. Choose other items or readers."
            raise OverreadError(msg)
        n_exposed = {r.name: sum(example in seen.get(r.person_id, ()) for example, _ in drawn) for r in readers}
        practice, without = practice_for(session, readers, drawn, seed=seed) if choice.practice else ({}, [])
        if choice.practice and not practice:
            refuse(
                f"practice: expected at least {PRACTICE} responses with a settled label for every criterion that are new to a reader, "
                f"got {max(n for _, n in without)}: settle more on Adjudicate, choose readers who have not met them, or assign without practice"
            )
        report = Assigned(
            assignment_id=None,
            n_items=len(drawn),
            n_population=n_population,
            n_waiting=n_waiting,
            n_too_few=sum(n < choice.n_readers for item, n in n_left.items() if able[languages[item[0]]]),
            languages_missing=tuple(sorted(code for code, who in able.items() if code and not who)),
            readers=tuple(sorted(reader.name for reader in readers)),
            seed=seed,
            exposed=tuple(sorted((name, n) for name, n in n_exposed.items() if n)),
            leading=tuple(leading),
            n_companions=len(beside),
            n_alone=n_alone,
            practising=tuple(sorted(reader.name for reader in readers if reader.person_id in practice)),
            without_practice=tuple(without),
        )
        if dry_run:
            return report
        if choice.make_blind:
            store.set_rules(session, msgspec.structs.replace(rules, blind=True), actor=actor.signature)
        for person, items in practice.items():  # from now on: what they may learn from feedback is never theirs to read
            reading_store.add_exposures(session, person, Seen.PRACTICE, [example for example, _ in items])
        selection, chosen_by = _origin(choice)
        number = reading_store.add_assignment(
            session,
            [(*item, shares.get(item, len(drawn) / len(free))) for item in drawn],
            ask=choice.ask,
            readers=people,
            n_readers=choice.n_readers,
            seed=seed,
            reserve_minutes=choice.reserve_minutes,
            selection=selection,
            chosen_by=chosen_by,
            judge=rules.judge,
            n_population=n_population,
            practice=_stored(practice),
            actor=actor.signature,
        )
        store.refresh_statistics(session)
        return replace(report, assignment_id=number)


def _data_set_meant(session: Session, filters: Filters) -> str:
    wanted = filters.dataset
    meant = [] if wanted is None else assignment_queries.datasets_answered_for(session, wanted)
    if not meant or wanted in meant:
        return ""
    return f" Data set: expected {listed(meant, 'or')} ({wanted} is an evaluation of it), got {wanted}."


def draw(items: Sequence[Item], n_items: int | None, *, seed: int) -> list[Item]:
    """So many of them (None: all) at random, in random order; the same seed gives the same."""
    order = np.random.default_rng(seed).permutation(len(items))
    return [items[place] for place in order[: len(items) if n_items is None else n_items]]


def assignment_of(session: Session, assignment_id: int) -> Assignment:
    """An assignment by its number."""
    found = session.get(Assignment, assignment_id)
    if found is None:
        msg = f"assignment: expected the number of one of this study (`overread assignments list`), got {assignment_id}"
        raise NotFound(msg)
    return found


def readers_of(people: Iterable[Viewer]) -> list[Viewer]:
    """Those of some people who may be asked to read."""
    return [person for person in people if allows(check_can_read, person)]


def _check(choice: Choice) -> None:
    wanted = {"items": choice.n_items, "readers": choice.n_readers, "minutes": choice.reserve_minutes}
    for name, number in wanted.items():
        if number is not None and number < 1:
            refuse(f"{name}: expected at least 1, got {number}")
    if choice.reserve_minutes > MAX_MINUTES:
        refuse(f"minutes: expected at most {MAX_MINUTES:,}, which is thirty days, got {choice.reserve_minutes:,}")
    if (choice.plan or choice.drawn is not None or choice.chosen) and choice.n_items is not None:
        refuse("items: a plan says itself which items are read; leave the number out")
    if choice.chosen and choice.ask is Ask.GOLD_ACUITY:
        msg = "responses: expected another question: what a case itself needs is asked without any response, got a response"
        raise OverreadError(msg)
    if choice.seed is not None and not 0 <= choice.seed <= MAX_SEED:
        refuse(f"seed: expected 0 to {MAX_SEED}, got {choice.seed}")


def able_readers(people: Sequence[Viewer], choice: Choice, rules: Rules) -> tuple[list[Viewer], list[str]]:
    """Who may read, and which leads and researchers were left out: they read blind only where the study says so."""
    able = readers_of(people)
    if unknown := sorted(set(choice.readers) - {person.name for person in able}):
        msg = f"readers: expected reviewers or adjudicators of this study: {', '.join(p.name for p in able)}, got {', '.join(unknown)}"
        raise OverreadError(msg)
    able = [p for p in able if (p.name in choice.readers if choice.readers else Role.REVIEWER in p.roles)]
    if choice.specialty is not None:
        able = [person for person in able if choice.specialty.casefold() in map(str.casefold, person.specialties)]
    apart = rules.mode is ReadingMode.BLIND and not rules.leads_read
    leading = sorted(person.name for person in able if apart and person.roles & STUDY)
    if named := sorted(set(leading) & set(choice.readers)):
        refuse(
            f"readers: expected people who are neither lead nor researcher, got {', '.join(named)}. "
            "To let them read all the same, set so under Rules of the study; their reads are stored as not blind."
        )
    able = [person for person in able if person.name not in leading]
    if len(able) < choice.n_readers:
        with_specialty = f" with the specialty {choice.specialty}" if choice.specialty else ""
        msg = f"readers: expected at least {choice.n_readers}, as many as read an item, got {len(able)}{with_specialty}"
        if leading:
            rule = "Leads and researchers do not read here unless the rules of the study say so"
            msg += f". {rule}: {', '.join(leading)}"
        raise OverreadError(msg)
    return able, leading


def _fitting(session: Session, choice: Choice) -> tuple[list[Item], dict[Item, float]]:
    if choice.chosen:
        examples = assignment_queries.chosen(session, choice.chosen)
        rubrics = assignment_queries.having_rubric(session)
        for number in choice.chosen:
            if number not in examples:
                refuse(f"expected one of this study with a text to read, got response {number}", NotFound)
            if choice.ask is Ask.RUBRIC and examples[number] not in rubrics:
                msg = f"expected a response with a rubric to read, got response {number}, which has no criteria"
                raise NotFound(msg)
        return [(examples[number], number) for number in choice.chosen], {}
    if choice.drawn is not None:
        return list(choice.drawn.shares), choice.drawn.shares
    if choice.plan:
        shares = dict(assignment_queries.planned(session, choice.plan, ask=choice.ask))
        return list(shares), shares
    left_out = choice.blind if choice.filters.on_what_was_said() else frozenset()
    fitting: list[Item]
    if choice.ask is Ask.GOLD_ACUITY:
        fitting = [(int(example), None) for example in browse.examples(session, choice.filters)["example_id"]]
    else:
        with_rubric = choice.ask is Ask.RUBRIC
        fitting = assignment_queries.responses(session, choice.filters, with_rubric=with_rubric)
    return [item for item in fitting if item[0] not in left_out], {}


def _companions(
    session: Session, choice: Choice, chosen: Sequence[Item], readers: Sequence[Viewer], *, seed: int
) -> tuple[list[Item], int]:
    """Others to be read among chosen responses, and how many fewer there are than wanted.

    As many as were chosen, and at least `COMPANIONS`, at random of the responses to the same evaluations that nobody was asked about yet, that every
    reader reads and on which none has seen verdicts: of any item the odds are even at best that it was chosen. They count as chosen, not as drawn:
    together they are no random part of anything.
    """
    if choice.alone or not choice.chosen:
        return [], 0
    n_wanted = max(COMPANIONS, len(chosen))
    taken = assignment_queries.assigned(session, choice.ask) | set(chosen)
    numbers = [number for _, number in chosen if number is not None]
    alike = assignment_queries.alike(session, numbers, with_rubric=choice.ask is Ask.RUBRIC)
    rest = [item for item in alike if item not in taken]
    languages = assignment_queries.languages(session, {example for example, _ in rest})
    people = [reader.person_id for reader in readers]
    seen = set().union(*queries.exposed_among(session, people, set(languages)).values())
    common = set.intersection(*(set(queries.languages_of(reader)) for reader in readers))
    fitting = [item for item in rest if item[0] not in seen and languages[item[0]] in {None, *common}]
    companions = draw(fitting, n_wanted, seed=seed)
    return companions, n_wanted - len(companions)


def practice_for(
    session: Session, readers: Sequence[Viewer], drawn: Collection[Item], *, seed: int
) -> tuple[dict[int, list[Item]], list[tuple[str, int]]]:
    """What each reader practises on, by person_id; and for whom there is too little, with how many.

    Settled responses in a random order, the same for all, of which each reader gets the first that are to conversations new to them, in a language of theirs,
    and not in this assignment either.
    """
    taken, disputed = {example for example, _ in drawn}, practice_queries.disputed(session)
    settled = [item for item in practice_queries.settled(session) if item[0] not in taken and item not in disputed]
    order = dict(draw(settled, None, seed=seed))
    languages = assignment_queries.languages(session, set(order))
    practice, without = {}, []
    for reader in readers:
        met, reads = practice_queries.met(session, reader, set(order)), (None, *queries.languages_of(reader))
        if Role.ADJUDICATOR in reader.roles:  # they may be asked to settle the rest of such a conversation
            met |= {example for example, _ in disputed}
        fitting = [item for item in order.items() if item[0] not in met and languages[item[0]] in reads]
        if len(fitting) >= PRACTICE:
            practice[reader.person_id] = fitting[:PRACTICE]
        else:
            without.append((reader.name, len(fitting)))
    return practice, sorted(without)


def _stored(practice: dict[int, list[Item]]) -> str | None:
    practised = {who: [response for _, response in items] for who, items in practice.items()}
    return json.dumps(practised) if practice else None


def _origin(choice: Choice) -> tuple[Selection, dict[str, Any]]:
    if choice.chosen:
        return Selection.VOLUNTEERED, {"chosen": len(choice.chosen), **({"alone": True} if choice.alone else {})}
    if choice.drawn is not None:
        return choice.drawn.selection, {"plan": len(choice.drawn.shares), **choice.drawn.how}
    if choice.plan:
        return Selection.IMPORTANCE, {"plan": len(choice.plan)}
    filters = asdict(choice.filters).items()
    by = {name: value for name, value in filters if value is not None and value is not False and value != ""}
    return Selection.RANDOM, by | ({} if choice.extends is None else {EXTENDS: choice.extends})


def read_plan(content: bytes) -> tuple[Planned, ...]:
    """A plan from CSV: prompt_id, inclusion_probability, and model, sample_index, dataset where they are needed to tell."""
    try:
        lines = csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline=""))
        rows = [(lines.line_num, row) for row in lines]
    except (UnicodeDecodeError, csv.Error) as error:
        msg = f"plan: {error}, expected CSV in UTF-8"
        raise OverreadError(msg) from error
    if not set(PLAN_COLUMNS) <= set(lines.fieldnames or ()):
        came = ", ".join(lines.fieldnames or ()) or "nothing"
        refuse(f"plan line 1: expected the columns {' and '.join(PLAN_COLUMNS)}, got {came}")
    if not rows:
        refuse("plan line 2: expected an item below the names of the columns, got nothing")
    return tuple(_planned(row, number) for number, row in rows)


def _planned(row: dict[str, str | None], number: int) -> Planned:
    prompt_id, model, dataset = (unguarded(row.get(name) or "") for name in ("prompt_id", "model", "dataset"))
    if max(map(len, (prompt_id, model, dataset))) > MAX_NAME:
        msg = f"plan line {number}: prompt_id, model, dataset: expected names of at most {MAX_NAME:,} characters, got a longer one"
        raise OverreadError(msg)
    if not prompt_id or not all(map(store.is_storable, (prompt_id, model, dataset))):
        refuse(f"plan line {number}: prompt_id: expected how the study names the conversation, got {prompt_id!r}")
    share, sample = row["inclusion_probability"] or "", row.get("sample_index") or "0"
    try:
        probability = float(share)
    except ValueError:
        probability = math.nan
    if not 0 < probability <= 1:
        refuse(f"plan line {number}: inclusion_probability: expected a number above 0 and at most 1, got {share!r}")
    if not (sample.isascii() and sample.isdigit() and len(sample) <= MAX_DIGITS and int(sample) <= MAX_SAMPLE):
        refuse(f"plan line {number}: sample_index: expected a whole number, 0 or more, got {sample!r}")
    return Planned(prompt_id, model or None, int(sample), probability, dataset or None, line=number)
