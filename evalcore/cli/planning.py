"""Reading by the command line: how much has to be read, which responses, who reads them; how far it is, and changes of it while it goes on."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from evalcore.cli import console
from evalcore.errors import refuse
from evalcore.reading import amending, assignment_queries, pace
from evalcore.reading.adjudication import hidden_examples
from evalcore.reading.registering import freeze_queue
from evalcore.rubric import queries as rubric_queries
from evalcore.rubric.drawings import Goal
from evalcore.settings import settings
from evalcore.stats.wording import counted
from evalcore.study import contents
from evalcore.study.browse import READ_STATES, Filters
from evalcore.study.db import reading
from evalcore.study.frames import records
from evalcore.study.schema import Acuity, Ask, Format, Label
from evalcore.study.tables import now
from evalcore.team.provider import provider
from evalcore.team.studies import review_link

if TYPE_CHECKING:
    from evalcore.planning.sample_size import Answer

TARGET = "score:MODEL:0.03, difference:MODEL:MODEL:0.03 or judge-error:0.03: what is to be known within what."
EVALUATION = "The data set; default: the one with most responses, for a judge's errors all."
POWER = "Of a difference: find one of this size (or show non-inferiority within it) so often, e.g. 0.8."
RESPONSES = "Draw so many (of a difference: examples); default: as many as are needed."
DRAW = "Write the responses drawn, with their probabilities, to this CSV."
SIZES = ("n_responses", "n_items", "n_responses_read", "n_items_read", "n_responses_waiting")
DRY_RUN = "With --assign: report what would be assigned and change nothing."
PLAN = "CSV with prompt_id, inclusion_probability, and model, sample_index, dataset."
LABEL = "What a judge says: met, not_met or cannot_assess"
JUDGES_DIFFER = "Only criteria on which judges say different things."
POINTS_TO = "Only criteria with at most so many points: -1 means undesirable ones."
FORMAT = "Only responses to cases asked as qa or conversation."
LEVEL = "Only responses in which a judge (--judge) reads this level: A to D, A/B, ..., cannot_assess"
RESPONSE = (
    "The number of a response that you choose; may be repeated. It is read among as many others drawn at random, at least three, "
    "and enters no estimate."
)
OF_TASK = "Only tasks of HealthBench Professional with this tag."
PRACTICE = "Each reader begins with a practice round: three responses with settled labels, with feedback, not counted."
ALONE = "Chosen responses without others among them: readers may guess why."


def plan(  # noqa: PLR0913, PLR0917 - one option each
    target: Annotated[str, Option(help=TARGET)],
    judges: Annotated[str, Option(help="Whose labels, joined by commas; default: the judge with most labels.")] = "",
    evaluation: Annotated[str | None, Option(help=EVALUATION)] = None,
    claim: console.Claimed = None,
    physicians: console.WhoseReads = None,
    power: Annotated[float | None, Option(help=POWER)] = None,
    design: Annotated[str, Option(help="uniform or importance: how --draw and --assign draw.")] = "importance",
    responses: Annotated[int | None, Option(help=RESPONSES)] = None,
    draw: Annotated[Path | None, Option(help=DRAW)] = None,
    seed: Annotated[int | None, Option(help="Of the drawing; default: drawn, and stored.")] = None,
    assign: Annotated[bool, Option("--assign", help="Hand what is drawn to readers.")] = False,
    n_readers: Annotated[int, Option("--readers", help="Readers per response.")] = 2,
    reader: Annotated[list[str] | None, Option(help="Who may read; may be repeated. Default: every reviewer.")] = None,
    specialty: Annotated[str | None, Option(help="Only readers with this specialty.")] = None,
    practice: Annotated[bool, Option("--practice", help=PRACTICE)] = False,
    dry_run: Annotated[bool, Option("--dry-run", help=DRY_RUN)] = False,
    db: console.Db = None,
    as_json: console.Json = False,
) -> None:
    """How many responses physicians still have to read until a number is as exact as wanted; draws them and assigns them."""
    from evalcore.planning import acts
    from evalcore.planning.sample_size import DESIGNS, answer
    from evalcore.planning.words import DESIGN_WORDS
    from evalcore.reading.assigning import Choice, assign as hand_over

    whose = [word.strip() for word in judges.split(",") if word.strip()]
    with console.study(db) as engine:
        with reading(engine) as session:
            known = rubric_queries.load(session)
            wanted = acts.powered(acts.target_of(target, known, evaluation=evaluation, judges=whose), power)
            stated = contents.stated_analysis(session)
            spec = None if stated is None else stated.spec
            wanted, why = acts.claimed(known, wanted, spec=spec, claim=claim, physicians=physicians)
            needed = answer(known, wanted, taken=acts.taken(session), n_each=n_readers)
            seconds = acts.seconds_each(session)
            drawn = None
            if draw is not None or assign:
                console.one_of("--design", design, DESIGNS)
                number = responses if responses is not None else needed.n_units and needed.designs[design].n_units
                if responses is None and not number:
                    refuse("Nothing more has to be read for this, so nothing was drawn: say how many with --responses.")
                drawn = acts.draw(session, wanted, n_units=number, design=design, seed=seed, known=known)
                if draw is not None:
                    console.write_whole(draw, acts.csv_of(session, drawn))
        report, sentences = _report(needed, why, seconds, n_readers)
        if drawn is not None:
            n, of = len(drawn.drawn.shares), drawn.drawn.n_population
            counts = {"n_responses": n, "n_items": drawn.n_items, "n_population": of}
            report["drawn"] = {"design": drawn.design, "seed": drawn.seed, **counts}
            criteria = counted(drawn.n_items, "criterion", "criteria")
            sentences.append(f"{n:,} of {of:,} responses {DESIGN_WORDS[drawn.design]} (seed {drawn.seed}), {criteria}")
        if assign and drawn is not None:
            who: dict[str, Any] = {"readers": tuple(reader or ()), "specialty": specialty, "n_readers": n_readers}
            choice = Choice(drawn=drawn.drawn, seed=drawn.seed, practice=practice, **who)
            handed = hand_over(engine, choice, actor=console.actor(engine), dry_run=dry_run)
            report["assigned"] = asdict(handed)
            last = "Nothing was changed." if dry_run else f"Assignment {handed.assignment_id}."
            sentences += [*handed.sentences(), last]
    console.tell(report, *sentences, as_json=as_json)


def _report(needed: "Answer", why: str, seconds: float | None, n_readers: int) -> tuple[dict[str, Any], list[str]]:
    from evalcore.planning import acts, pilot_estimates, sample_size, words

    parts, target = needed.components, needed.target
    n_more, amount = acts.next_reads(needed, seconds)
    spent = pilot_estimates.options(parts, target, n_more=n_more)
    power = target.power or acts.POWER
    sentences = [words.finding(needed), why]
    if needed.n_units:
        n_items = needed.designs[sample_size.IMPORTANCE].n_items
        sentences += [words.hours_words(acts.hours(n_items, n_readers, seconds), n_readers, seconds) if n_items else ""]
        sentences += [words.basis_words(needed), words.so_far_words(needed), words.disagreement_words(needed)]
        sentences += [words.claims_words(needed), words.detectable_words(needed, power), words.components_words(needed)]
        sentences += [words.options_words(spent, target, amount)]
    sentences = [sentence for sentence in sentences if sentence]
    is_difference = target.goal is Goal.DIFFERENCE
    report = {
        "target": asdict(target),
        "basis": needed.pilot.basis,
        "n_pilot": needed.pilot.n_reads,
        "correlation": float(needed.pilot.correlation),
        "share_wrong": needed.pilot.share_wrong,
        **{name: getattr(needed, name) for name in SIZES},
        "half_width_now": needed.half_width_now,
        "half_width_all": needed.half_width_all,
        "seconds_each": seconds,
        "disagreement": asdict(needed.disagreement),
        "designs": [
            asdict(one) | {"hours": acts.hours(one.n_items, n_readers, seconds)} for one in needed.designs.values()
        ],
        "claims": needed.claims.to_dict(orient="records"),
        "n_readers": len(parts.loads),
        "n_readers_needed": needed.n_readers_needed,
        "components": asdict(parts) if parts.is_known else None,
        "next": amount,
        "options": spent.to_dict(orient="records"),
        "detectable": pilot_estimates.detectable(needed.half_width_now, power) if is_difference else None,
        "why_claim": why,
        "sentences": sentences,
    }
    return report, sentences


def assign(  # noqa: PLR0913, PLR0917 - one option each
    n_items: Annotated[
        int | None, Option("--items", help="How many responses are drawn; default: all that fit.")
    ] = None,
    n_readers: Annotated[int, Option("--readers", help="Readers per response.")] = 2,
    reader: Annotated[list[str] | None, Option(help="Who may read; may be repeated. Default: every reviewer.")] = None,
    specialty: Annotated[str | None, Option(help="Only readers with this specialty.")] = None,
    seed: Annotated[int | None, Option(help="Of the drawing and the order; default: drawn, and stored.")] = None,
    minutes: Annotated[int, Option(help="For how many minutes an opened response is reserved for its reader.")] = 45,
    ask: Annotated[Ask, console.chosen("--ask", Ask, "rubric, response_acuity or gold_acuity")] = Ask.RUBRIC,
    plan: Annotated[Path | None, Option(help=PLAN)] = None,
    dataset: Annotated[str | None, Option(help="Only this data set.")] = None,
    subset: Annotated[str | None, Option(help="Only this part: oss_eval, hard, consensus.")] = None,
    theme: Annotated[str | None, Option()] = None,
    category: Annotated[str | None, Option()] = None,
    language: Annotated[str | None, Option(help="ISO 639-1 code, e.g. en")] = None,
    axis: Annotated[str | None, Option()] = None,
    model: Annotated[str | None, Option(help="Only this model's responses.")] = None,
    judge: Annotated[str | None, Option(help="Only criteria that this judge has labelled.")] = None,
    label: Annotated[str | None, console.chosen("--label", list(Label), LABEL)] = None,
    judges_differ: Annotated[bool, Option("--judges-differ", help=JUDGES_DIFFER)] = False,
    points_from: Annotated[int | None, Option(help="Only criteria with at least so many points.")] = None,
    points_to: Annotated[int | None, Option(help=POINTS_TO)] = None,
    search: Annotated[str, Option(help="Words that occur in the conversation or its verdicts.")] = "",
    reads: Annotated[str | None, Option(help="unread, read, conflicting or overridden")] = None,
    source: Annotated[str | None, Option(help="Only cases of triage from this source.")] = None,
    asked_as: Annotated[str | None, console.chosen("--format", list(Format), FORMAT)] = None,
    level: Annotated[str | None, console.chosen("--level", (*Acuity, Label.CANNOT_ASSESS), LEVEL)] = None,
    use_case: Annotated[str | None, Option(help=OF_TASK)] = None,
    task_type: Annotated[str | None, Option("--type", help=OF_TASK)] = None,
    difficulty: Annotated[str | None, Option(help=OF_TASK)] = None,
    task_specialty: Annotated[str | None, Option(help=f"{OF_TASK} --specialty is of readers.")] = None,
    response: Annotated[list[int] | None, Option(help=RESPONSE)] = None,
    alone: Annotated[bool, Option("--alone", help=ALONE)] = False,
    practice: Annotated[bool, Option("--practice", help=PRACTICE)] = False,
    dry_run: Annotated[bool, Option("--dry-run", help="Report what would be assigned and change nothing.")] = False,
    db: console.Db = None,
    as_json: console.Json = False,
) -> None:
    """Assign responses (or cases) to readers, drawn at random with a stored seed and a known probability.

    What is asked of criteria, judges and physicians has to hold on one and the same criterion of a response.
    """
    from evalcore.reading import assigning

    if reads is not None:
        console.one_of("--reads", reads, READ_STATES)
    filters = Filters(
        search=search, dataset=dataset, subset=subset, theme=theme, category=category, language=language, axis=axis, model=model, judge=judge,
        label=label, reads=reads, judges_differ=judges_differ, points_from=points_from, points_to=points_to, source=source, format=asked_as, level=level,
        use_case=use_case, type=task_type, difficulty=difficulty, specialty=task_specialty,
    )  # fmt: skip
    choice = assigning.Choice(
        ask=ask,
        filters=filters,
        chosen=tuple(dict.fromkeys(response or ())),
        alone=alone,
        plan=assigning.read_plan(console.content(plan)) if plan is not None else (),
        n_items=n_items,
        readers=tuple(reader or ()),
        specialty=specialty,
        n_readers=n_readers,
        seed=seed,
        reserve_minutes=minutes,
        practice=practice,
    )
    with console.study(db) as engine:
        report = assigning.assign(engine, choice, actor=console.actor(engine), dry_run=dry_run)
    last = "Nothing was changed." if dry_run else f"Assignment {report.assignment_id}."
    console.tell(asdict(report), *report.sentences(), last, as_json=as_json)


app = typer.Typer(help="What is assigned to be read, and changes of it.", no_args_is_help=True)
TITLES = {"n_tasks": "items", "n_wanted": "reads wanted", "n_reads": "locked", "n_open": "begun"}
Number = Annotated[int, Argument(metavar="NUMBER", help="Of an assignment, as `overread assignments list` prints it.")]


@app.command("list")
def list_(db: console.Db = None, as_json: console.Json = False) -> None:
    """List the assignments and their readers, each with the pace of the last seven days and the days left at most.

    With --json an object of two lists: assignments (assignment_id, ask, n_readers, seed, selection, chosen_by, n_population, created_by, created_at, paused_at,
    cancelled_at, n_tasks, n_wanted, n_reads, n_open, n_skipped, readers) and readers (reader, n_reads, n_open, n_skipped, n_waiting: what they could take now,
    pace: reads a day, days).
    """
    at = now()
    with console.study(db) as engine, reading(engine) as session:
        made = assignment_queries.assignments(session)
        people = pace.by_reader(assignment_queries.readers(session, at), assignment_queries.locked_reads(session), at)
    if as_json:
        console.print_json({"assignments": records(made), "readers": records(people)})
        return
    if made.empty:
        console.say("Nothing is assigned yet: overread assign")
        return
    paused = made["paused_at"].notna().map({True: "paused", False: "open"})
    state = paused.mask(made["cancelled_at"].notna(), "cancelled")
    counts = {title: made[name] for name, title in TITLES.items()}
    told = {"number": made["assignment_id"], "question": made["ask"], **counts}
    console.show(told | {"state": state, "readers": made["readers"]})
    console.show({"reader": people["reader"], "locked": people["n_reads"], "begun": people["n_open"], "could take": people["n_waiting"],
          "a day": people["pace"].round(1), "days left": people["days"]})  # fmt: skip
    if (signing_in := provider()) is not None:
        console.say(f"Review, for whoever signs in: {review_link(signing_in.public_url, db or settings().db)}")


@app.command()
def cancel(
    number: Number,
    reason: Annotated[str, Option(help="A line that readers who have begun something see: no model, no judge.")],
    db: console.Db = None,
) -> None:
    """Ask nobody for the rest of an assignment. What is locked stays and counts; what is unread may be assigned anew."""
    with console.study(db) as engine:
        console.say(amending.cancel(engine, number, reason, actor=console.actor(engine)).sentence)


@app.command()
def pause(number: Number, db: console.Db = None) -> None:
    """Hand nothing of an assignment out until it is resumed; what is in hand may be finished."""
    with console.study(db) as engine:
        amending.pause(engine, number, actor=console.actor(engine))


@app.command()
def resume(number: Number, db: console.Db = None) -> None:
    """Hand a paused assignment out again."""
    with console.study(db) as engine:
        amending.resume(engine, number, actor=console.actor(engine))


@app.command("hand-over")
def hand_over(
    giver: Annotated[str, Option("--from", help="A reader; may be one whose access was removed.")],
    taker: Annotated[str, Option("--to", help="Another reader.")],
    number: Annotated[
        int | None, Option("--assignment", help="Default: each that goes on.", show_default=False)
    ] = None,
    db: console.Db = None,
) -> None:
    """Give what a reader has not locked to another, in the same order; nobody gets what they have read or seen verdicts on."""
    with console.study(db) as engine:
        console.say(*amending.hand_over(engine, giver, taker, number=number, actor=console.actor(engine)).sentences())


@app.command("add-readers")
def add_readers(
    number: Number, name: Annotated[list[str], Argument(help="One person of the study or more.")], db: console.Db = None
) -> None:
    """Let more people take an assignment's items. As many read each item as before."""
    with console.study(db) as engine:
        console.say(*amending.add_readers(engine, number, name, actor=console.actor(engine)).sentences())


@app.command()
def extend(
    number: Number,
    items: Annotated[int, Option("--items", help="How many more are drawn.")],
    dry_run: Annotated[bool, Option("--dry-run", help="Report what would be assigned and change nothing.")] = False,
    db: console.Db = None,
) -> None:
    """Draw more with the filters and readers of an assignment, among what fits and is not assigned; its seed follows from the first.

    It is an assignment of its own. Estimates reckon with both as if all had been drawn at once.
    """
    with console.study(db) as engine:
        who = console.actor(engine)
        with reading(engine) as session:
            blind = hidden_examples(session, who)
        report = amending.extend(engine, number, items, blind=blind, actor=who, dry_run=dry_run)
    console.say(*report.sentences(), "Nothing was changed." if dry_run else f"Assignment {report.assignment_id}.")


@app.command()
def freeze(
    number: Number,
    file: Annotated[Path | None, Option("--file", help="Write the queue here: the hash is of this file.")] = None,
    db: console.Db = None,
) -> None:
    """Freeze a queue before the first read of it, to register it: print the SHA-256 of its items, order, probabilities and seed."""
    with console.study(db) as engine:
        kept, queue = freeze_queue(engine, number, actor=console.actor(engine))
    if file is not None:
        console.write_whole(file, queue)
    console.say(f"Assignment {number} is frozen: SHA-256 {kept.sha256}")
