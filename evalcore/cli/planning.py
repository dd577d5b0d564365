"""Planning by the command line: how much has to be read, which responses, and who reads them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evalcore.cli.console import Db, Json, actor, one_of, out, print_json, study, write_whole
from evalcore.errors import OverreadError
from evalcore.stats.wording import counted

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from evalcore.planning.acts import Plan
    from evalcore.planning.sample_size import Answer


def plan(  # noqa: PLR0913, PLR0917 - one option each
    target: Annotated[
        str,
        typer.Option(
            help="score:MODEL:0.03, difference:MODEL:MODEL:0.03 or judge-error:0.03: what is to be known within what."
        ),
    ],
    judges: Annotated[
        str, typer.Option(help="Whose labels, joined by commas; default: the judge with most labels.")
    ] = "",
    evaluation: Annotated[
        str | None, typer.Option(help="The data set; default: the one with most responses, for a judge's errors all.")
    ] = None,
    claim: Annotated[
        str | None,
        typer.Option(
            help="What it is to hold for: benchmark or new_examples; default: the stated analysis, else the widest that the reads can carry."
        ),
    ] = None,
    physicians: Annotated[
        str | None, typer.Option(help="Whose reading it is to hold for: these or in_general; default: the same.")
    ] = None,
    power: Annotated[
        float | None,
        typer.Option(
            help="Of a difference: find one of this size (or show non-inferiority within it) so often, e.g. 0.8."
        ),
    ] = None,
    design: Annotated[str, typer.Option(help="uniform or importance: how --draw and --assign draw.")] = "importance",
    responses: Annotated[
        int | None, typer.Option(help="Draw so many (of a difference: examples); default: as many as are needed.")
    ] = None,
    draw: Annotated[
        Path | None, typer.Option(help="Write the responses drawn, with their probabilities, to this CSV.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Of the drawing; default: drawn, and stored.")] = None,
    assign: Annotated[bool, typer.Option("--assign", help="Hand what is drawn to readers.")] = False,
    n_readers: Annotated[int, typer.Option("--readers", help="How many readers a response gets.")] = 2,
    reader: Annotated[
        list[str] | None, typer.Option(help="Who may read; may be repeated. Default: every reviewer.")
    ] = None,
    specialty: Annotated[str | None, typer.Option(help="Only readers with this specialty.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="With --assign: report what would be assigned and change nothing.")
    ] = False,
    db: Db = None,
    as_json: Json = False,
) -> None:
    """How many responses physicians still have to read until a number is as exact as wanted; draws them and assigns them.

    With --json: target (goal, models, judges, evaluation, within, claim, physicians, power) and why_claim (whence its claim is);
    basis (drawn, not_drawn, others or assumed: where the
    expectations come from) and n_pilot (criteria read that they come from), correlation of errors on one response, share_wrong (of a judge's
    labels, else null); n_responses, n_items (criteria) that the number is about, of those n_responses_read, n_items_read (drawn and read blind)
    and n_responses_waiting (assigned); half_width_now (expected; null where nothing is read) and half_width_all (with everything read);
    seconds_each (a criterion, as measured, or null); disagreement: n_items (criteria that two judges or one judge several times have labelled),
    n_disagreed of them, times (how many times as often these are drawn by importance, or null); designs,
    a list of uniform and importance: reachable, n_units, n_responses, n_items (further ones
    needed), half_width, hours (all readers together, or null), n_same and half_width_same (with as many units as uniform needs);
    claims: a list of every claim and population of physicians, half_width_now and half_width (with what uniform needs), null where it cannot be told;
    n_readers (physicians who have read) and n_readers_needed (with whom reading everything is enough, null where none are); components (the
    variances of_examples, of_units, of_readers, of_rest, and n_examples, n_all, n_units, n_reads, loads, n_double, n_items, clipped; null where too
    little is read) and options, a list: option, n_reads, n_units, n_readers, effective_readers, standard_error, for the next hours or reads of next;
    detectable (of a difference: the least that what is read finds with the power, by default 0.8);
    sentences; drawn (with --draw or --assign): design, seed, n_responses, n_items,
    n_population; assigned (with --assign): as `overread assign --json`.
    """
    from evalcore.planning import acts as planning_acts
    from evalcore.planning.sample_size import answer
    from evalcore.rubric import queries as rubric_queries
    from evalcore.study import contents
    from evalcore.study.db import reading
    from evalcore.study.schema import Claim, Physicians

    chosen = [word.strip() for word in judges.split(",") if word.strip()]
    with study(db) as engine:
        with reading(engine) as session:
            known = rubric_queries.load(session)
            wanted = planning_acts.powered(
                planning_acts.target_of(target, known, evaluation=evaluation, judges=chosen), power
            )
            stated = contents.stated_analysis(session)
            wanted, why = planning_acts.claimed(
                known,
                wanted,
                spec=stated.spec if stated else None,
                claim=None if claim is None else Claim(one_of("--claim", claim, list(Claim))),
                physicians=None
                if physicians is None
                else Physicians(one_of("--physicians", physicians, list(Physicians))),
            )
            found = answer(known, wanted, taken=planning_acts.taken(session), n_each=n_readers)
            seconds = planning_acts.seconds_each(session)
            drawn = None
            if draw is not None or assign:
                number = responses if responses is not None else _needed(found, design)
                drawn = planning_acts.draw(session, wanted, n_units=number, design=design, seed=seed, known=known)
                if draw is not None:
                    write_whole(draw, planning_acts.csv_of(session, drawn))
        said = _said(found, why, seconds, n_readers)
        report = _report(found, seconds, n_readers) | {"why_claim": why, "sentences": said}
        if drawn is not None:
            report["drawn"] = _drawn(drawn)
            said = [*said, _drawn_words(drawn)]
        if assign and drawn is not None:
            handed = _assigned(engine, drawn, n_readers, reader or [], specialty, dry_run=dry_run)
            report["assigned"] = handed["report"]
            said += handed["sentences"]
    if as_json:
        print_json(report)
        return
    for sentence in said:
        out.print(sentence, markup=False)


def _needed(found: "Answer", design: str) -> int:
    from evalcore.planning.sample_size import DESIGNS

    if design not in DESIGNS:
        msg = f"--design: expected one of {', '.join(DESIGNS)}, got {design!r}"
        raise OverreadError(msg)
    needed = found.designs[design].n_units if found.n_units else 0
    if not needed:
        msg = "Nothing more has to be read for this, so nothing was drawn: say how many with --responses."
        raise OverreadError(msg)
    return needed


def _said(found: "Answer", why: str, seconds: float | None, n_readers: int) -> list[str]:
    from evalcore.planning import words as planning_words
    from evalcore.planning.acts import POWER, hours, next_reads
    from evalcore.planning.pilot_estimates import options
    from evalcore.planning.sample_size import IMPORTANCE

    sentences = [planning_words.finding(found), why]
    if found.n_units:
        n_items = found.designs[IMPORTANCE].n_items
        if n_items:
            sentences.append(planning_words.hours_words(hours(n_items, n_readers, seconds), n_readers, seconds))
        sentences += [
            planning_words.basis_words(found),
            planning_words.so_far_words(found),
            planning_words.disagreement_words(found),
            planning_words.claims_words(found),
            planning_words.detectable_words(found, found.target.power or POWER),
            planning_words.components_words(found),
        ]
        n_more, amount = next_reads(found, seconds)
        sentences.append(
            planning_words.options_words(options(found.components, found.target, n_more=n_more), found.target, amount)
        )
    return [sentence for sentence in sentences if sentence]


def _report(found: "Answer", seconds: float | None, n_readers: int) -> dict[str, Any]:
    from dataclasses import asdict

    from evalcore.planning.acts import POWER, hours, next_reads
    from evalcore.planning.pilot_estimates import options
    from evalcore.planning.targets import detectable
    from evalcore.rubric.drawings import Goal

    n_more, amount = next_reads(found, seconds)
    parts, target = found.components, found.target
    is_difference = target.goal is Goal.DIFFERENCE
    least = detectable(found.half_width_now, target.power or POWER) if is_difference else None
    designs = [asdict(row) | {"hours": hours(row.n_items, n_readers, seconds)} for row in found.designs.values()]
    return {
        "target": asdict(found.target),
        "basis": found.pilot.basis,
        "n_pilot": found.pilot.n_reads,
        "correlation": float(found.pilot.correlation),
        "share_wrong": _known(found.pilot.share_wrong),
        "n_responses": found.n_responses,
        "n_items": found.n_items,
        "n_responses_read": found.n_responses_read,
        "n_items_read": found.n_items_read,
        "n_responses_waiting": found.n_responses_waiting,
        "half_width_now": _known(found.half_width_now),
        "half_width_all": _known(found.half_width_all),
        "seconds_each": seconds,
        "disagreement": {name: _known(value) for name, value in asdict(found.disagreement).items()},
        "designs": [_row(row) for row in designs],
        "claims": [_row(row) for row in found.claims.to_dict(orient="records")],
        "n_readers": len(parts.loads),
        "n_readers_needed": found.n_readers_needed,
        "components": _row(asdict(parts)) if parts.is_known else None,
        "next": amount,
        "options": [_row(row) for row in options(parts, target, n_more=n_more).to_dict(orient="records")],
        "detectable": _known(least),
    }


def _row(row: dict[Any, Any]) -> dict[str, Any]:
    return {str(name): _known(value) for name, value in row.items()}


def _known(value: Any) -> Any:
    """JSON has neither infinity nor NaN."""
    import math

    return None if isinstance(value, float) and not math.isfinite(value) else value


def _drawn(plan: "Plan") -> dict[str, Any]:
    return {
        "design": plan.design,
        "seed": plan.seed,
        "n_responses": len(plan.drawn.shares),
        "n_items": plan.n_items,
        "n_population": plan.drawn.n_population,
    }


def _drawn_words(plan: "Plan") -> str:
    from evalcore.planning.words import DESIGN_WORDS

    n, of = len(plan.drawn.shares), plan.drawn.n_population
    return f"{n:,} of {of:,} responses {DESIGN_WORDS[plan.design]} (seed {plan.seed}), {counted(plan.n_items, 'criterion', 'criteria')}"


def _assigned(
    engine: "Engine", plan: "Plan", n_readers: int, readers: list[str], specialty: str | None, *, dry_run: bool
) -> dict[str, Any]:
    from dataclasses import asdict

    from evalcore.reading.assigning import Choice, assign

    choice = Choice(drawn=plan.drawn, readers=tuple(readers), specialty=specialty, n_readers=n_readers, seed=plan.seed)
    report = assign(engine, choice, actor=actor(engine), dry_run=dry_run)
    last = "Nothing was changed." if dry_run else f"Assignment {report.assignment_id}."
    return {"report": asdict(report), "sentences": [*report.sentences(), last]}
