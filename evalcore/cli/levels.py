"""Levels of care read out of responses, by the command line."""

import sys
from typing import Annotated

import typer

from evalcore.cli.console import Db, Json, actor, err, out, print_json, study


def acuity_rules(
    text: Annotated[
        str | None, typer.Option(help="Show what is made of this text, and change nothing; - reads standard input.")
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Read all responses once more, also those whose level came with a file.")
    ] = False,
    db: Db = None,
    as_json: Json = False,
) -> None:
    """Give responses to cases their level of care: by the answer they state (qa), or by the rules (conversation).

    With --json: n_read (responses with a new verdict), n_unchanged, labels (by judge, how many of each label), other_language (by
    ISO 639-1 code, how many are in a language that the rules do not read). With --text as well: recommended (level or null, why,
    language or null, quotes: a list with begin, end, words) by the rules, and stated (level or null, why, words) by the parser.
    """
    if text is not None:
        _show(sys.stdin.read() if text == "-" else text, as_json=as_json)
        return
    from evalcore.triage.level_reading import read_levels

    with study(db) as engine, err.status("Reading") as status:
        report = read_levels(
            engine,
            actor=actor(engine),
            again=again,
            progress=lambda done, most: status.update(f"Reading: {done:,} of at most {most:,} responses"),
        )
    if as_json:
        print_json(report.as_dict())
    else:
        for sentence in report.sentences():
            out.print(sentence, markup=False)


def _show(text: str, *, as_json: bool) -> None:
    from dataclasses import asdict

    from evalcore.triage.levels import recommended_level
    from evalcore.triage.levels.answer import stated_level

    recommended, stated = recommended_level(text), stated_level(text)
    if as_json:
        print_json({"recommended": asdict(recommended), "stated": asdict(stated)})
        return
    language = f" ({recommended.language})" if recommended.language else ""
    out.print(f"Recommended: {recommended.level or 'no level'}, {recommended.why}{language}", markup=False)
    for quote in recommended.quotes:
        out.print(f"  characters {quote.begin} to {quote.end}: “{quote.words}”", markup=False)
    words = f": “{stated.words}”" if stated.words else ""
    out.print(f"Stated: {stated.level or 'no level'}{f', {stated.why}' if stated.why else ''}{words}", markup=False)
