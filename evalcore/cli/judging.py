"""Judges, juries, and the levels of care that the judges within Overread read, by the command line."""

import sys
from typing import Annotated

import msgspec
import pandas as pd
from typer import Option

from evalcore.cli.console import Db, Json, actor, err, one_of, print_json, records, say, show, some_of, study
from evalcore.stats.wording import listed

GROUPINGS = "Some of overall, axis, sign, kind, rater, joined by commas."
REPEATS_OF = "A judge that was asked several times: each time is a vote."
DRY_RUN = "Report what would be written and change nothing."
TEXT = "Show what is made of this text, and change nothing; - reads standard input."
AGAIN = "Read all responses once more, also those whose level came with a file."


def anchoring(
    judge: Annotated[str | None, Option(help="By this judge only; default: each judge of the study.")] = None,
    by: Annotated[str, Option(help=GROUPINGS)] = "overall,axis,sign,kind",
    db: Db = None,
    as_json: Json = False,
) -> None:
    """How many first reads physicians changed after they had seen the judge's label, toward it and away from it.

    With --json an object. movements: three rows a judge and group: judge; grouping (overall, axis, sign, kind or rater); group; movement:
    changed (of all first reads that were followed by a reveal), toward (of those that differed from the judge: those that took
    its label), away (of those that agreed with it: those that left its label); denominator (revealed, differed, agreed); n and
    n_moved; share in 0..1 with its 95 % interval low, high (null where n is 0); physicians (whom it is for: in_general, clustered by
    example and reader, from 3 effective readers on; else these, clustered by example); n_examples, n_readers, n_effective_readers; and
    the first reads left out: n_without_label, n_not_revealed, n_undecided, n_control. effects: where a
    study sends a share of criteria to a second look without the label, what seeing the label changes, a row a judge: judge; n_shown and n_changed_shown
    (first reads that differed from it and whose readers saw its label; those of them that were changed), n_control and n_changed_control (the same on a
    second look without it); share_shown, share_control; difference with its 95 % interval low, high (null where reason says why), for physicians.
    """
    from evalcore.judges import anchoring as metric
    from evalcore.rubric.blind_read_queries import blind_reads
    from evalcore.stats.intervals import interval_words, share_words
    from evalcore.study import contents
    from evalcore.study.db import reading

    wanted = some_of("--by", by, metric.GROUPINGS)
    with study(db) as engine, reading(engine) as session:
        if judge is not None:
            one_of("--judge", judge, contents.judges(session))
        reads = blind_reads(session, judge)
        table = metric.anchoring(reads, by=wanted)
    beside = {str(name): metric.effect(of_judge) for name, of_judge in reads.groupby("judge", sort=True)}
    effects = {name: effect for name, effect in beside.items() if effect is not None}
    if as_json:
        shown = pd.DataFrame({"judge": name, **msgspec.structs.asdict(effect)} for name, effect in effects.items())
        print_json({"movements": records(table), "effects": records(shown)})
        return
    if table.empty:
        say("No blind first read beside a judge yet: assign items, or import physicians' first reads.")
        return
    counted = table.loc[table["n"].gt(0)]
    if len(counted):
        show({
            "judge": counted["judge"],
            "group": counted["group"],
            "movement": counted["movement"] + " (of " + counted["denominator"] + ")",
            "share": map(share_words, counted["n_moved"], counted["n"], counted["share"]),
            "95 % interval": map(interval_words, counted["low"], counted["high"]),
            "for physicians": counted["physicians"].str.replace("_", " "),
            "examples": counted["n_examples"],
        })  # fmt: skip
    has_any = table.groupby("judge", sort=False)["n"].transform("sum").gt(0)
    for name, of_judge in table.loc[has_any].groupby("judge", sort=False):
        said = [metric.population_words(of_judge.head(len(metric.MOVEMENTS)))]
        n_without = int(of_judge["n"].eq(0).sum())
        if n_without:
            rows = "1 row has" if n_without == 1 else f"{n_without:,} rows have"
            said.append(f"{rows} no first read and {'is' if n_without == 1 else 'are'} not listed.")
        if str(name) in effects:
            said.append(metric.effect_words(effects[str(name)]))
        say(f"{name}: {' '.join(said)}")
    if nothing := list(table.loc[~has_any, "judge"].unique()):
        say(f"No first read was followed by a reveal of {listed(nothing)}.")


def jury(
    name: Annotated[str, Option(help="What the jury is called; that of a jury to go on with it.")],
    members: Annotated[str, Option(help="Judges, joined by commas; each has one vote.")] = "",
    repeats_of: Annotated[str | None, Option("--repeats-of", help=REPEATS_OF)] = None,
    least: Annotated[int | None, Option(help="So many have to vote on an item; default: all.")] = None,
    dry_run: Annotated[bool, Option("--dry-run", help=DRY_RUN)] = False,
    db: Db = None,
    as_json: Json = False,
) -> None:
    """Give each criterion and each level of care the verdict that most judges give it, with the share of three or more votes as confidence.

    The jury is a judge like any other. Run it again when its members have labelled more: only what is new or has changed is written. An even
    split on a criterion gives no verdict; of levels the most frequent counts, of equals the more severe; who could not assess does not vote.
    With --json: name, version, members (as they vote), least; n_decided, n_split, n_too_few (items that any member labelled); n_new, n_changed,
    n_taken_back (verdicts that its members no longer give), n_unchanged; labels (how many items have each).
    """
    from evalcore.judges.juries import convene

    wanted = members.split(",")
    with study(db) as engine, err.status("Counting votes") as status:
        report = convene(
            engine,
            name,
            members=wanted,
            repeats_of=repeats_of,
            least=least,
            actor=actor(engine),
            dry_run=dry_run,
            progress=lambda last: status.update(f"Counting votes: responses up to number {last:,}"),
        )
    if as_json:
        print_json(report.as_dict())
    else:
        say(*report.sentences(), "Nothing was changed." if dry_run else "")


def acuity_rules(
    text: Annotated[str | None, Option(help=TEXT)] = None,
    again: Annotated[bool, Option("--again", help=AGAIN)] = False,
    db: Db = None,
    as_json: Json = False,
) -> None:
    """Give responses to cases their level of care: by the answer they state (qa), or by the rules (conversation).

    With --json: n_read (responses with a new verdict), n_unchanged, labels (by judge, how many of each label), other_language (by
    ISO 639-1 code, how many are in a language that the rules do not read). With --text as well: recommended (level or null, why,
    language or null, quotes: a list with begin, end, words) by the rules, and stated (level or null, why, words) by the parser.
    """
    if text is not None:
        _read_text(sys.stdin.read() if text == "-" else text, as_json=as_json)
        return
    from evalcore.triage.acts import read_levels

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
        say(*report.sentences())


def _read_text(text: str, *, as_json: bool) -> None:
    from dataclasses import asdict

    from evalcore.triage.levels import recommended_level
    from evalcore.triage.levels.answer import stated_level

    recommended, stated = recommended_level(text), stated_level(text)
    if as_json:
        print_json({"recommended": asdict(recommended), "stated": asdict(stated)})
        return
    language = f" ({recommended.language})" if recommended.language else ""
    say(f"Recommended: {recommended.level or 'no level'}, {recommended.why}{language}")
    say(*(f"  characters {quote.begin} to {quote.end}: “{quote.words}”" for quote in recommended.quotes))
    words = f": “{stated.words}”" if stated.words else ""
    say(f"Stated: {stated.level or 'no level'}{f', {stated.why}' if stated.why else ''}{words}")
