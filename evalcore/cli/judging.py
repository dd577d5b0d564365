"""Judges, juries and physicians beside one another, and the levels that the judges within Overread read, by the command line."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pandas as pd
from typer import Argument, Exit, Option

from evalcore.cli import console
from evalcore.errors import OverreadError, refuse
from evalcore.judges.record import OVERALL, Reads, reads_words
from evalcore.rubric import queries
from evalcore.rubric.blind_read_queries import blind_reads
from evalcore.rubric.data import first_reads
from evalcore.stats.intervals import interval_words, share_words
from evalcore.stats.wording import counted, listed
from evalcore.study import acting, contents, families as family_tables
from evalcore.study.csv_cells import text_of
from evalcore.study.db import reading
from evalcore.study.frames import records
from evalcore.triage.acts import read_levels
from evalcore.triage.levels import recommended_level
from evalcore.triage.levels.answer import stated_level

JUDGE = "This judge; again for another. Default: every judge of the study, and their jury."
GROUPS = "Groups of sensitivity and specificity: some of overall, sign, axis, theme, language."
BY = "Some of overall, theme, axis, category, cluster, joined by commas."
RATERS = "Judges to count as raters too: names joined by commas, or all. Default: physicians alone."
COEFFICIENTS = "Names joined by commas. Default: agreement, ac1, alpha_nominal."
EVERY_ONE = "All coefficients that differ from one another with two categories."
ANCHORED = "Some of overall, axis, sign, kind, rater, joined by commas."
REPEATS_OF = "A judge that was asked several times: each time is a vote."
TEXT = "Show what is made of this text, and change nothing; - reads standard input."
AGAIN = "Read all responses once more, also those whose level came with a file."
FROM = "The earlier judge or version; NAME#2: the judge when it was asked again."
PROMPT = "A judge and its prompt version, as this command lists them."
DRIFTED = "Some of overall, category, axis, sign, theme, joined by commas."
FAMILIES = "CSV with the columns pattern and family; leave it out to list."
READS = "drawn (each weighted by 1 / probability) or all (each counts once); default: drawn, where any was."
ReadsIn = Annotated[Reads | None, console.chosen("--reads", Reads, READS)]
BAD_INPUT = 2  # exit status of judge-check where the check could not be made; 1: it was made, and the judge failed


def judges(
    judge: Annotated[list[str] | None, Option(help=JUDGE)] = None,
    by: Annotated[str, Option(help=GROUPS)] = "overall,sign,axis,theme,language",
    min_pairs: Annotated[int, Option(min=0, help="Physicians with more pairs than this enter the percentile.")] = 50,
    jury: Annotated[bool, Option("--jury/--no-jury", help="Add the judges' majority and mean.")] = True,
    reads: ReadsIn = None,
    db: console.Db = None,
    as_json: console.Json = False,
) -> None:
    """How well judges say what physicians say: balanced F1 as in HealthBench's meta-evaluation, percentile, sensitivity, specificity.

    Each blind first read is a pair with the judge's label. Drawn reads enter, weighted by one over the probability with which their item was drawn; --reads
    all shows every one, unweighted. Intervals are 95 %, clustered by example.
    """
    from evalcore.judges import quality as metric, record as judge_reads
    from evalcore.stats import majority as juries

    wanted = console.some_of("--by", by, metric.ERROR_GROUPINGS)
    rubric_data = console.rubric_data_of(db)
    chosen = list(dict.fromkeys(judge or rubric_data.judges))
    for name in chosen:
        console.one_of("--judge", name, rubric_data.judges)
    rubric_data = rubric_data.by(chosen)
    firsts = judge_reads.assessed(rubric_data.reads)
    shown = reads or judge_reads.usual_reads(firsts)
    quality = metric.balanced_f1(rubric_data, jury=jury, reads=shown)
    values = metric.standings(quality, metric.theme_of_categories(rubric_data.items))
    ranks = metric.percentiles(values, min_pairs=min_pairs)
    errors = metric.error_rates(rubric_data, by=wanted, jury=jury, reads=shown)
    is_jury = jury and len(rubric_data.voters) >= juries.MIN_JUDGES
    decided = juries.decisions(rubric_data.judged[rubric_data.voters]) if is_jury else None
    selection = judge_reads.reads_words(firsts, shown)
    if as_json:
        tables = {"balanced_f1": quality, "percentiles": ranks, "error_rates": errors}
        console.print_json(
            {name: records(table) for name, table in tables.items()}
            | {"jury": decided and msgspec.to_builtins(decided), "reads": shown.value}
            | {"n_reads": len(judge_reads.weighted_reads(firsts, shown)), "selection": selection}
        )
        return
    if not quality["rater_kind"].eq(metric.JUDGE).any():
        console.say("No blind first read beside a judge yet: assign items, or import physicians' first reads.")
        return
    console.say(selection, *(metric.finding(quality, ranks, name, min_pairs=min_pairs) for name in chosen))
    groups = quality.loc[quality["rater_kind"].ne(metric.PHYSICIAN)]
    worth, n_bare = _worth_listing(groups)
    console.show(metric.f1_columns(worth, ranks))
    if n_bare:
        bare = f"{counted(n_bare, 'row has', 'rows have')} a value and no interval"
        console.say(f"{bare}, since too few conversations hold both labels: --json lists them.")
    console.say(*metric.undefined_words(groups))
    console.show(metric.error_columns(errors))
    if decided:
        console.say(juries.words(decided))


def _worth_listing(quality: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """Rows with an interval, and what is pooled in any case; and how many have a value alone."""
    valued = quality.loc[quality["balanced_f1"].notna()]
    worth = valued.loc[valued["low"].notna() | valued["grouping"].eq("overall")]
    return worth, len(valued) - len(worth)


def agreement(
    by: Annotated[str, Option(help=BY)] = "overall,theme,axis,category",
    judges: Annotated[str | None, Option(help=RATERS)] = None,
    coefficients: Annotated[str | None, Option(help=COEFFICIENTS)] = None,
    everything: Annotated[bool, Option("--all", help=EVERY_ONE)] = False,
    db: console.Db = None,
    as_json: console.Json = False,
) -> None:
    """How far physicians agree with one another on the criteria that they have read blind, together and by pair.

    First reads count, as they were locked, and none that somebody chose to read. There are two intervals: for these physicians, leaving out one example at a
    time; and for physicians in general, of whom these are a sample, leaving out one example and one reader at a time, from three effective readers on.
    Coefficients: agreement (share), ac1 (Gwet), alpha_nominal (Krippendorff); with --all also kappa (Cohen; of all raters together Conger) and fleiss_kappa;
    by name kappa_linear, kappa_quadratic, alpha_ordinal, alpha_interval, ac2_linear, ac2_quadratic, which with met and not met equal the plain ones.
    """
    from evalcore.judges import agreement as metric
    from evalcore.stats.agreement_sums import Coefficient

    groupings = console.some_of("--by", by, metric.GROUPINGS)
    wanted: tuple[Coefficient, ...] = metric.OF_TWO_CATEGORIES if everything else metric.SHOWN
    if coefficients is not None:
        wanted = tuple(map(Coefficient, console.some_of("--coefficients", coefficients, list(Coefficient))))
    rubric_data = console.rubric_data_of(db)
    named = [] if judges is None else rubric_data.judges
    if judges not in (None, "all"):
        named = console.some_of("--judges", judges, rubric_data.judges)
    labels = metric.labels_of(rubric_data, judges=named)
    pooled = metric.agreement(labels, by=groupings, coefficients=wanted)
    by_pair = metric.pair_agreement(labels, coefficients=wanted)
    if as_json:
        console.print_json({"pooled": records(pooled), "by_pair": records(by_pair)})
        return
    if by_pair.empty:
        nothing = "No criterion has been read blind by two physicians yet"
        console.say(f"{nothing}: assign items to two readers, or import their first reads.")
        return
    whom = "raters" if named else "physicians"
    shown = pooled.loc[pooled["n_items"].gt(0)]
    for prefix, title in ((metric.GENERAL, f"{whom} in general"), (metric.THESE, f"these {whom}")):
        if not shown[f"{prefix}reason"].eq(metric.TOO_FEW_RATERS).all():
            console.say(f"95 % intervals for {title}")
            console.show(metric.columns(shown, {"group": "Group"}, prefix=prefix))
    console.say(f"By pair, for these {whom}")
    console.show(metric.columns(by_pair, {"rater_1": "Rater", "rater_2": "and rater"}))
    overall = pooled.loc[pooled["grouping"].eq(OVERALL)]
    for row in overall.loc[overall["bound_low"].notna() & overall["n_cannot_assess"].gt(0)].to_dict(orient="records"):
        between = metric.bounds_words(row["coefficient"], row["bound_low"], row["bound_high"])
        could_not = counted(row["n_cannot_assess"], "label was", "labels were")
        name = metric.NAMES[row["coefficient"]].lower()
        console.say(f"\n{could_not} cannot assess; whatever each had been, {name} over all reads is {between}.")
    console.say(*metric.reasons(overall))


def anchoring(
    judge: Annotated[str | None, Option(help="By this judge only; default: each judge of the study.")] = None,
    by: Annotated[str, Option(help=ANCHORED)] = "overall,axis,sign,kind",
    db: console.Db = None,
    as_json: console.Json = False,
) -> None:
    """How many first reads physicians changed after they had seen the judge's label, toward it and away from it."""
    from evalcore.judges import anchoring as metric

    wanted = console.some_of("--by", by, metric.GROUPINGS)
    with console.study(db) as engine, reading(engine) as session:
        if judge is not None:
            console.one_of("--judge", judge, contents.judges(session))
        reads = blind_reads(session, judge)
        table = metric.anchoring(reads, by=wanted)
    beside = {str(name): metric.effect(of_judge) for name, of_judge in reads.groupby("judge", sort=True)}
    effects = {name: effect for name, effect in beside.items() if effect is not None}
    if as_json:
        shown = pd.DataFrame({"judge": name, **msgspec.structs.asdict(effect)} for name, effect in effects.items())
        console.print_json({"movements": records(table), "effects": records(shown)})
        return
    if table.empty:
        console.say("No blind first read beside a judge yet: assign items, or import physicians' first reads.")
        return
    moved = table.loc[table["n"].gt(0)]
    if len(moved):
        console.show(
            {
                "judge": moved["judge"],
                "group": moved["group"],
                "movement": moved["movement"] + " (of " + moved["denominator"] + ")",
                "share": map(share_words, moved["n_moved"], moved["n"], moved["share"]),
                "95 % interval": map(interval_words, moved["low"], moved["high"]),
                "for physicians": moved["physicians"].str.replace("_", " "),
                "examples": moved["n_examples"],
            }
        )
    has_any = table.groupby("judge", sort=False)["n"].transform("sum").gt(0)
    for name, of_judge in table.loc[has_any].groupby("judge", sort=False):
        said = [metric.population_words(of_judge.head(len(metric.MOVEMENTS)))]
        n_without = int(of_judge["n"].eq(0).sum())
        if n_without:
            rows = "1 row has" if n_without == 1 else f"{n_without:,} rows have"
            said.append(f"{rows} no first read and {'is' if n_without == 1 else 'are'} not listed.")
        if str(name) in effects:
            said.append(metric.effect_words(effects[str(name)]))
        console.say(f"{name}: {' '.join(said)}")
    if nothing := list(table.loc[~has_any, "judge"].unique()):
        console.say(f"No first read was followed by a reveal of {listed(nothing)}.")


def jury(
    name: Annotated[str, Option(help="Name of the jury: a new one, or that of a jury to extend.")],
    members: Annotated[str, Option(help="Judges, joined by commas; each has one vote.")] = "",
    repeats_of: Annotated[str | None, Option("--repeats-of", help=REPEATS_OF)] = None,
    least: Annotated[int | None, Option(help="So many have to vote on an item; default: all.")] = None,
    dry_run: Annotated[bool, Option("--dry-run", help="Report what would be written and change nothing.")] = False,
    db: console.Db = None,
    as_json: console.Json = False,
) -> None:
    """Give each criterion and each level of care the verdict that most judges give it, with the share of three or more votes as confidence.

    The jury is a judge like any other. Run it again when its members have labelled more: only what is new or has changed is written. An even split on a
    criterion gives no verdict; of levels the most frequent counts, of equals the more severe; who could not assess does not vote.
    """
    from evalcore.judges.juries import convene

    wanted = members.split(",")
    with console.study(db) as engine, console.err.status("Counting votes") as status:
        report = convene(
            engine,
            name,
            members=wanted,
            repeats_of=repeats_of,
            least=least,
            actor=console.actor(engine),
            dry_run=dry_run,
            progress=lambda last: status.update(f"Counting votes: responses up to number {last:,}"),
        )
    console.tell(report.as_dict(), *report.sentences(), "Nothing was changed." if dry_run else "", as_json=as_json)


def acuity_rules(
    text: Annotated[str | None, Option(help=TEXT)] = None,
    again: Annotated[bool, Option("--again", help=AGAIN)] = False,
    db: console.Db = None,
    as_json: console.Json = False,
) -> None:
    """Give responses to cases their level of care: by the answer they state (qa), or by the rules (conversation)."""
    if text is not None:
        text = sys.stdin.read() if text == "-" else text
        recommended, stated = recommended_level(text), stated_level(text)
        if as_json:
            console.print_json({"recommended": asdict(recommended), "stated": asdict(stated)})
            return
        language = f" ({recommended.language})" if recommended.language else ""
        console.say(f"Recommended: {recommended.level or 'no level'}, {recommended.why}{language}")
        console.say(*(f"  characters {quote.begin} to {quote.end}: “{quote.words}”" for quote in recommended.quotes))
        words = f": “{stated.words}”" if stated.words else ""
        console.say(f"Stated: {stated.level or 'no level'}{f', {stated.why}' if stated.why else ''}{words}")
        return
    with console.study(db) as engine, console.err.status("Reading") as status:
        report = read_levels(
            engine,
            actor=console.actor(engine),
            again=again,
            progress=lambda done, most: status.update(f"Reading: {done:,} of at most {most:,} responses"),
        )
    console.tell(report.as_dict(), *report.sentences(), as_json=as_json)


def criteria(
    judge: Annotated[str | None, Option(help="Whose labels; default: the judge with the most.")] = None,
    by: Annotated[str, Option(help="category, axis, theme or criterion")] = "category",
    reads: ReadsIn = None,
    everything: Annotated[bool, Option("--all", help="Also groups that no physician has read.")] = False,
    db: console.Db = None,
    as_json: console.Json = False,
) -> None:
    """Whether judge and physicians mean the same by each group of criteria, with alarms."""
    from evalcore.judges import criterion_health as metric

    console.one_of("--by", by, metric.GROUPINGS)
    rubric_data = console.rubric_data_of(db)
    usual = next(iter(rubric_data.judges), "")
    chosen = console.one_of("--judge", usual if judge is None else judge, rubric_data.judges)
    table = metric.criterion_health(rubric_data, chosen, by=by, reads=reads)
    kept = table if everything else table.loc[table["n_reads"].gt(0)]
    kept = kept.sort_values(["n_alarms", "n_reads"], ascending=False, kind="stable")
    if as_json:
        renamed = {f"judge{end}": f"judge_met{end}" for end in ("", "_low", "_high")}
        console.print_json(records(kept.rename(columns=renamed).assign(judge=chosen)))
        return
    console.say(f"{chosen}: {metric.finding(table)}")
    console.say(reads_words(first_reads(rubric_data.reads), reads))
    if len(kept):
        names = [str(group) for group in kept["group"]]
        console.show(metric.columns(kept, names))
        console.say(*(f"{name}: {why}" for name, why in zip(names, kept["reasons"], strict=True) if why))


def drift(
    before: Annotated[str, Option("--from", help=FROM)],
    after: Annotated[str, Option("--to", help="The later one.")],
    by: Annotated[str, Option(help=DRIFTED)] = "overall,category,axis,sign",
    db: console.Db = None,
    as_json: console.Json = False,
) -> None:
    """What changes where one judge or version takes the place of another: labels that flip, and scores."""
    from evalcore.judges import drift as metric

    wanted = console.some_of("--by", by, metric.GROUPINGS)
    rubric_data = console.rubric_data_of(db).with_repeats()
    for option, judge in (("--from", before), ("--to", after)):
        console.one_of(option, judge, rubric_data.judges)
    flips = metric.flips(rubric_data, before, after, by=wanted)
    scores = metric.score_drift(rubric_data, before, after)
    if as_json:
        tables = {"flips": records(flips), "scores": records(scores)}
        console.print_json({"before": before, "after": after} | tables)
        return
    console.say(f"From {before} to {after}")
    console.show(metric.flips_columns(flips))
    console.show(metric.scores_columns(scores))


def self_preference(db: console.Db = None, as_json: console.Json = False) -> None:
    """Whether each judge labels its own family's responses in their favour more often than others', where physicians gave the same label."""
    from evalcore.judges import self_preference as metric

    with console.study(db) as engine, reading(engine) as session:
        rubric_data, patterns = queries.load(session), contents.family_table(session)
    names = [*rubric_data.items["model"].cat.categories, *rubric_data.judges]
    table = metric.self_preference(rubric_data, family_tables.families_of(names, patterns))
    if as_json:
        console.print_json(records(table))
    elif table.empty:
        console.say("No judge has labelled anything yet.")
    else:
        found: list[Any] = table.to_dict(orient="records")
        console.say(*map(metric.finding, found))


def families(
    path: Annotated[Path | None, Argument(help=FAMILIES)] = None,
    reset: Annotated[bool, Option("--reset", help="Back to the table that comes with Overread.")] = False,
    db: console.Db = None,
    as_json: console.Json = False,
) -> None:
    """List which family each model and judge belongs to, by which patterns; or write the study's own table of them.

    A pattern is a glob on the whole name, upper and lower case alike; the first that fits counts.
    """
    given = None if path is None else family_tables.parse(text_of(console.content(path), path.name), path.name)
    if reset and given:
        refuse("expected --reset or a file, got both")
    with console.study(db) as engine:
        if given or reset:
            acting.set_families(engine, given or [], actor=console.actor(engine))
        with reading(engine) as session:
            own, patterns = contents.own_families(session), contents.family_table(session)
            kinds = [("model", contents.models(session)), ("judge", contents.judges(session))]
    found = [(name, kind) for kind, of_kind in kinds for name in of_kind]
    names = [{"name": name, "kind": kind, "family": family_tables.family_of(name, patterns)} for name, kind in found]
    if as_json:
        listed = [{"pattern": pattern, "family": family} for pattern, family in patterns]
        console.print_json({"is_own": bool(own), "patterns": listed, "names": names})
        return
    whose = "the study's own table" if own else "the table that comes with Overread"
    console.say(f"{len(patterns)} patterns, {whose}")
    shown = ("name", "kind", "family")
    console.show({word.capitalize(): [row[word] or "– (no pattern fits)" for row in names] for word in shown})


def prompts(
    before: Annotated[str | None, Option("--from", help=PROMPT)] = None,
    after: Annotated[str | None, Option("--to", help="The other one.")] = None,
    db: console.Db = None,
    as_json: console.Json = False,
) -> None:
    """List the prompts that judges were asked with; with --from and --to, which of two agrees with physicians more often.

    Compared are blind first reads of items that both have labelled, of conversations that neither was made with (`overread judge --made-with`); the
    difference is paired, with a 95 % interval clustered by conversation.
    """
    from evalcore.judges import prompts_compared as metric
    from evalcore.runs.queries import stated

    if (before is None) != (after is None):
        refuse("expected --from and --to, got one of them")
    with console.study(db) as engine, reading(engine) as session:
        known = metric.prompts(session)
        said = {rater.name: stated(session, rater.name) for rater in known.values()}
        found = None
        if before is not None and after is not None:
            found = metric.compare(session, before, after, stated=said)
    if found is not None:
        if as_json:
            console.print_json(asdict(found) | {"sentences": found.sentences})
        else:
            console.show(metric.columns(found))
            console.say(*found.sentences)
        return
    listed = [
        {"prompt": name, "judge": rater.name, "version": rater.version}
        | {"made_with": [one.words for one in said[rater.name].get(rater.version, ())]}
        for name, rater in known.items()
    ]
    if as_json:
        console.print_json(listed)
    else:
        made = ["; ".join(row["made_with"]) or "not said" for row in listed]
        console.show({"Prompt": [row["prompt"] for row in listed], "Made with": made})


def judge_check(  # noqa: PLR0913, PLR0917 - one option each
    gold: Annotated[
        Path,
        Option(help="CSV of labels, as `overread export labels.csv` writes it, or test.jsonl of `overread split`."),
    ],
    judge: Annotated[str, Option(help="Whose labels in this study are checked.")],
    source: Annotated[str, Option(help="Which gold labels count: adjudicated, agreed, single.")] = "adjudicated,agreed",
    min_f1: Annotated[float | None, Option(min=0, max=1, help="Least balanced F1.")] = None,
    min_accuracy: Annotated[float | None, Option(min=0, max=1)] = None,
    min_sensitivity: Annotated[float | None, Option(min=0, max=1)] = None,
    min_specificity: Annotated[float | None, Option(min=0, max=1)] = None,
    by_bound: Annotated[str, Option(help="point or low: the measure, or the lower end of its interval.")] = "point",
    max_missing: Annotated[int, Option(min=0, help="So many items may be without the judge's label.")] = 0,
    db: console.Db = None,
    as_json: console.Json = False,
) -> None:
    """Check a judge against gold labels; for the continuous integration of prompts.

    A judge is not checked on conversations of a set that its prompt was made with (`overread judge --made-with`); where that was not said, that is told.
    Exit status: 0 the judge reaches every bound, 1 it does not, 2 the check could not be made. Without a bound a balanced F1 of 0.6 is wanted.
    """
    try:
        from evalcore.judges import gold_check as metric
        from evalcore.runs.queries import stated

        values = (min_f1, min_accuracy, min_sensitivity, min_specificity)
        bounds = {name: bound for name, bound in zip(metric.MEASURES, values, strict=True) if bound is not None}
        bounds = bounds or {metric.F1: metric.DEFAULT_MIN_F1}
        sources = console.some_of("--source", source, metric.SOURCES)
        console.one_of("--by-bound", by_bound, (metric.POINT, metric.LOW))
        labels = metric.read_gold(console.content(gold), gold.name)
        with console.study(db) as engine, reading(engine) as session:
            report = metric.check_judge(
                session, labels, judge, name=gold.name, sources=sources, bounds=bounds, by=by_bound, max_missing=max_missing,
                stated=stated(session, judge),
            )  # fmt: skip
    except OverreadError as error:
        console.err.print(str(error), markup=False)
        raise Exit(BAD_INPUT) from error
    if as_json:
        numbers = {name: value for name, value in vars(report).items() if name.startswith("n_")}
        printed = {"judge": judge, "gold": str(gold), "passed": not report.failures, "failures": report.failures}
        printed |= {"sources": sources, "by_bound": by_bound, "bounds": bounds}
        printed |= {"measures": records(report.measures), **numbers}
        n_missing = report.n_not_in_study + report.n_not_labelled
        printed |= {"n_missing": n_missing, "max_missing": max_missing, "not_stated": report.not_stated}
        console.print_json(printed)
    else:
        console.show(metric.columns(report.measures, bounds))
        if sentence := metric.unstated_sentence(report, judge):
            console.say(sentence)
        console.say(f"{counted(report.n_used, 'item')} of {gold.name}", *report.failures)
    raise Exit(1 if report.failures else 0)
