"""Assigned reading by the command line: assign items, write the guideline."""

from pathlib import Path
from typing import Annotated

import typer

from evalcore.cli.console import Db, Json, actor, content, out, print_json, study
from evalcore.errors import OverreadError


def assign(  # noqa: PLR0913, PLR0917 - one option each
    n_items: Annotated[int | None, typer.Option("--items", help="How many are drawn; default: all that fit.")] = None,
    n_readers: Annotated[int, typer.Option("--readers", help="How many readers an item gets.")] = 2,
    reader: Annotated[
        list[str] | None, typer.Option(help="Who may read; may be repeated. Default: every reviewer.")
    ] = None,
    specialty: Annotated[str | None, typer.Option(help="Only readers with this specialty.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of the drawing and the order; default: drawn, and stored.")] = None,
    minutes: Annotated[int, typer.Option(help="For how long an opened item is kept for its reader.")] = 45,
    ask: Annotated[str, typer.Option(help="rubric, response_acuity or gold_acuity")] = "rubric",
    plan: Annotated[
        Path | None, typer.Option(help="CSV with prompt_id, inclusion_probability, and model, sample_index, dataset.")
    ] = None,
    dataset: Annotated[str | None, typer.Option(help="Only this data set.")] = None,
    subset: Annotated[str | None, typer.Option(help="Only this part: oss_eval, hard, consensus.")] = None,
    theme: Annotated[str | None, typer.Option()] = None,
    category: Annotated[str | None, typer.Option()] = None,
    language: Annotated[str | None, typer.Option(help="ISO 639-1 code, e.g. en")] = None,
    axis: Annotated[str | None, typer.Option()] = None,
    model: Annotated[str | None, typer.Option(help="Only this model's responses.")] = None,
    judge: Annotated[str | None, typer.Option(help="Only criteria that this judge has labelled.")] = None,
    label: Annotated[str | None, typer.Option(help="What a judge says: met, not_met or cannot_assess")] = None,
    judges_differ: Annotated[
        bool, typer.Option("--judges-differ", help="Only criteria on which judges say different things.")
    ] = False,
    points_from: Annotated[int | None, typer.Option(help="Only criteria with at least so many points.")] = None,
    points_to: Annotated[
        int | None, typer.Option(help="Only criteria with at most so many points: -1 means undesirable ones.")
    ] = None,
    search: Annotated[str, typer.Option(help="Words that occur in the conversation or its verdicts.")] = "",
    reads: Annotated[str | None, typer.Option(help="unread, read, conflicting or overridden")] = None,
    source: Annotated[str | None, typer.Option(help="Only cases of triage from this source.")] = None,
    asked_as: Annotated[
        str | None, typer.Option("--format", help="Only responses to cases asked as qa or conversation.")
    ] = None,
    level: Annotated[
        str | None,
        typer.Option(
            help="Only responses in which a judge (--judge) reads this level: A to D, A/B, ..., cannot_assess"
        ),
    ] = None,
    response: Annotated[
        list[int] | None,
        typer.Option(
            help="The number of a response that you choose; may be repeated. It is read among as many others drawn at random, at least three, "
            "and enters no estimate."
        ),
    ] = None,
    alone: Annotated[
        bool, typer.Option("--alone", help="Chosen responses without others among them: readers may guess why.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Report what would be assigned and change nothing.")
    ] = False,
    db: Db = None,
    as_json: Json = False,
) -> None:
    """Assign responses (or cases) to readers, drawn at random with a stored seed and a known probability.

    What is asked of criteria, judges and physicians has to hold on one and the same criterion of a response.
    """
    from dataclasses import asdict

    from evalcore.reading import assigning
    from evalcore.study.browse import READ_STATES, Filters
    from evalcore.study.schema import Acuity, Ask, Format, Label

    words = (
        ("ask", ask, list(Ask)), ("reads", reads, list(READ_STATES)), ("label", label, list(Label)), ("format", asked_as, list(Format)),
        ("level", level, [*Acuity, Label.CANNOT_ASSESS]),
    )  # fmt: skip
    for word, value, allowed in words:
        if value is not None and value not in allowed:
            msg = f"--{word}: expected one of {', '.join(allowed)}, got {value!r}"
            raise OverreadError(msg)
    filters = Filters(
        search=search, dataset=dataset, subset=subset, theme=theme, category=category, language=language, axis=axis, model=model, judge=judge,
        label=label, reads=reads, judges_differ=judges_differ, points_from=points_from, points_to=points_to, source=source, format=asked_as, level=level,
    )  # fmt: skip
    choice = assigning.Choice(
        ask=Ask(ask),
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
        return
    for sentence in report.sentences():
        out.print(sentence, markup=False)
    out.print("Nothing was changed." if dry_run else f"Assignment {report.assignment_id}.")


def guideline(
    path: Annotated[Path | None, typer.Argument(help="Markdown; leave it out to print the newest version.")] = None,
    db: Db = None,
) -> None:
    """Write a new version of what readers are told, or print the newest."""
    from evalcore.study import acting, contents
    from evalcore.study.db import reading

    with study(db) as engine:
        if path is None:
            with reading(engine) as session:
                found = contents.guideline(session)
            out.print(found.text if found else "No guideline yet: overread guideline FILE.md", markup=False)
            return
        try:
            text = content(path).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            msg = f"{path}: byte {error.start + 1}: expected UTF-8"
            raise OverreadError(msg) from error
        version = acting.set_guideline(engine, text, actor=actor(engine))
    out.print(f"Guideline version {version}.")
