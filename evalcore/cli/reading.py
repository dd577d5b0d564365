"""Assigned reading by the command line: assign items, write the guideline."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from evalcore.cli.console import Db, Json, actor, chosen, content, one_of, print_json, say, study
from evalcore.errors import OverreadError
from evalcore.study.schema import Acuity, Ask, Format, Label

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
ALONE = "Chosen responses without others among them: readers may guess why."


def assign(  # noqa: PLR0913, PLR0917 - one option each
    n_items: Annotated[int | None, Option("--items", help="How many are drawn; default: all that fit.")] = None,
    n_readers: Annotated[int, Option("--readers", help="How many readers an item gets.")] = 2,
    reader: Annotated[list[str] | None, Option(help="Who may read; may be repeated. Default: every reviewer.")] = None,
    specialty: Annotated[str | None, Option(help="Only readers with this specialty.")] = None,
    seed: Annotated[int | None, Option(help="Of the drawing and the order; default: drawn, and stored.")] = None,
    minutes: Annotated[int, Option(help="For how long an opened item is kept for its reader.")] = 45,
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
    response: Annotated[list[int] | None, Option(help=RESPONSE)] = None,
    alone: Annotated[bool, Option("--alone", help=ALONE)] = False,
    dry_run: Annotated[bool, Option("--dry-run", help="Report what would be assigned and change nothing.")] = False,
    db: Db = None,
    as_json: Json = False,
) -> None:
    """Assign responses (or cases) to readers, drawn at random with a stored seed and a known probability.

    What is asked of criteria, judges and physicians has to hold on one and the same criterion of a response.
    """
    from dataclasses import asdict

    from evalcore.reading import assigning
    from evalcore.study.browse import READ_STATES, Filters

    if reads is not None:
        one_of("--reads", reads, READ_STATES)
    filters = Filters(
        search=search, dataset=dataset, subset=subset, theme=theme, category=category, language=language, axis=axis, model=model, judge=judge,
        label=label, reads=reads, judges_differ=judges_differ, points_from=points_from, points_to=points_to, source=source, format=asked_as, level=level,
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
    )
    with study(db) as engine:
        report = assigning.assign(engine, choice, actor=actor(engine), dry_run=dry_run)
    if as_json:
        print_json(asdict(report))
    else:
        say(*report.sentences(), "Nothing was changed." if dry_run else f"Assignment {report.assignment_id}.")


def guideline(
    path: Annotated[Path | None, Argument(help="Markdown; leave it out to print the newest version.")] = None,
    db: Db = None,
) -> None:
    """Write a new version of what readers are told, or print the newest."""
    from evalcore.study import acting, contents
    from evalcore.study.db import reading

    with study(db) as engine:
        if path is None:
            with reading(engine) as session:
                found = contents.guideline(session)
            say(found.text if found else "No guideline yet: overread guideline FILE.md")
            return
        try:
            text = content(path).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            msg = f"{path}: byte {error.start + 1}: expected UTF-8"
            raise OverreadError(msg) from error
        version = acting.set_guideline(engine, text, actor=actor(engine))
    say(f"Guideline version {version}.")
