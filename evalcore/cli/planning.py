"""Reading by the command line: how much has to be read, which responses, who reads them."""

import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from evalcore.cli.console import Db, Json, actor, chosen, content, one_of, print_json, say, study, write_whole
from evalcore.errors import refuse
from evalcore.rubric import queries as rubric_queries
from evalcore.rubric.drawings import Goal
from evalcore.stats.wording import counted
from evalcore.study import contents
from evalcore.study.browse import READ_STATES, Filters
from evalcore.study.db import reading
from evalcore.study.schema import Acuity, Ask, Claim, Format, Label, Physicians

if TYPE_CHECKING:
    from evalcore.planning.sample_size import Answer

TARGET = "score:MODEL:0.03, difference:MODEL:MODEL:0.03 or judge-error:0.03: what is to be known within what."
EVALUATION = "The data set; default: the one with most responses, for a judge's errors all."
CLAIM = "What it is to hold for: benchmark or new_examples; default: the stated analysis, else the widest that the reads can carry."
PHYSICIANS = "Whose reading it is to hold for: these or in_general; default: the same."
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
    claim: Annotated[Claim | None, chosen("--claim", Claim, CLAIM)] = None,
    physicians: Annotated[Physicians | None, chosen("--physicians", Physicians, PHYSICIANS)] = None,
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
    db: Db = None,
    as_json: Json = False,
) -> None:
    """How many responses physicians still have to read until a number is as exact as wanted; draws them and assigns them."""
    from evalcore.planning import acts
    from evalcore.planning.sample_size import DESIGNS, answer
    from evalcore.planning.words import DESIGN_WORDS
    from evalcore.reading.assigning import Choice, assign as hand_over

    whose = [word.strip() for word in judges.split(",") if word.strip()]
    with study(db) as engine:
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
                one_of("--design", design, DESIGNS)
                number = responses if responses is not None else needed.n_units and needed.designs[design].n_units
                if responses is None and not number:
                    refuse("Nothing more has to be read for this, so nothing was drawn: say how many with --responses.")
                drawn = acts.draw(session, wanted, n_units=number, design=design, seed=seed, known=known)
                if draw is not None:
                    write_whole(draw, acts.csv_of(session, drawn))
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
            handed = hand_over(engine, choice, actor=actor(engine), dry_run=dry_run)
            report["assigned"] = asdict(handed)
            last = "Nothing was changed." if dry_run else f"Assignment {handed.assignment_id}."
            sentences += [*handed.sentences(), last]
    if as_json:
        print_json(report)
    else:
        say(*sentences)


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
    return _finite(report), sentences


def _finite(value: Any) -> Any:
    """JSON has neither infinity nor NaN."""
    if isinstance(value, dict):
        return {name: _finite(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def assign(  # noqa: PLR0913, PLR0917 - one option each
    n_items: Annotated[
        int | None, Option("--items", help="How many responses are drawn; default: all that fit.")
    ] = None,
    n_readers: Annotated[int, Option("--readers", help="Readers per response.")] = 2,
    reader: Annotated[list[str] | None, Option(help="Who may read; may be repeated. Default: every reviewer.")] = None,
    specialty: Annotated[str | None, Option(help="Only readers with this specialty.")] = None,
    seed: Annotated[int | None, Option(help="Of the drawing and the order; default: drawn, and stored.")] = None,
    minutes: Annotated[int, Option(help="For how many minutes an opened response is reserved for its reader.")] = 45,
    ask: Annotated[Ask, chosen("--ask", Ask, "rubric, response_acuity or gold_acuity")] = Ask.RUBRIC,
    plan: Annotated[Path | None, Option(help=PLAN)] = None,
    dataset: Annotated[str | None, Option(help="Only this data set.")] = None,
    subset: Annotated[str | None, Option(help="Only this part: oss_eval, hard, consensus.")] = None,
    theme: Annotated[str | None, Option()] = None,
    category: Annotated[str | None, Option()] = None,
    language: Annotated[str | None, Option(help="ISO 639-1 code, e.g. en")] = None,
    axis: Annotated[str | None, Option()] = None,
    model: Annotated[str | None, Option(help="Only this model's responses.")] = None,
    judge: Annotated[str | None, Option(help="Only criteria that this judge has labelled.")] = None,
    label: Annotated[str | None, chosen("--label", list(Label), LABEL)] = None,
    judges_differ: Annotated[bool, Option("--judges-differ", help=JUDGES_DIFFER)] = False,
    points_from: Annotated[int | None, Option(help="Only criteria with at least so many points.")] = None,
    points_to: Annotated[int | None, Option(help=POINTS_TO)] = None,
    search: Annotated[str, Option(help="Words that occur in the conversation or its verdicts.")] = "",
    reads: Annotated[str | None, Option(help="unread, read, conflicting or overridden")] = None,
    source: Annotated[str | None, Option(help="Only cases of triage from this source.")] = None,
    asked_as: Annotated[str | None, chosen("--format", list(Format), FORMAT)] = None,
    level: Annotated[str | None, chosen("--level", (*Acuity, Label.CANNOT_ASSESS), LEVEL)] = None,
    use_case: Annotated[str | None, Option(help=OF_TASK)] = None,
    task_type: Annotated[str | None, Option("--type", help=OF_TASK)] = None,
    difficulty: Annotated[str | None, Option(help=OF_TASK)] = None,
    task_specialty: Annotated[str | None, Option(help=f"{OF_TASK} --specialty is of readers.")] = None,
    response: Annotated[list[int] | None, Option(help=RESPONSE)] = None,
    alone: Annotated[bool, Option("--alone", help=ALONE)] = False,
    practice: Annotated[bool, Option("--practice", help=PRACTICE)] = False,
    dry_run: Annotated[bool, Option("--dry-run", help="Report what would be assigned and change nothing.")] = False,
    db: Db = None,
    as_json: Json = False,
) -> None:
    """Assign responses (or cases) to readers, drawn at random with a stored seed and a known probability.

    What is asked of criteria, judges and physicians has to hold on one and the same criterion of a response.
    """
    from evalcore.reading import assigning

    if reads is not None:
        one_of("--reads", reads, READ_STATES)
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
        plan=assigning.read_plan(content(plan)) if plan is not None else (),
        n_items=n_items,
        readers=tuple(reader or ()),
        specialty=specialty,
        n_readers=n_readers,
        seed=seed,
        reserve_minutes=minutes,
        practice=practice,
    )
    with study(db) as engine:
        report = assigning.assign(engine, choice, actor=actor(engine), dry_run=dry_run)
    if as_json:
        print_json(asdict(report))
    else:
        say(*report.sentences(), "Nothing was changed." if dry_run else f"Assignment {report.assignment_id}.")
