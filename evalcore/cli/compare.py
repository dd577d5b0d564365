"""Models against each other, by the command line."""

from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pandas as pd
from msgspec.structs import asdict
from typer import Option

from evalcore.cli.console import Claimed, Db, Json, WhoseReads, one_of, print_json, say, show, some_of, study
from evalcore.errors import refuse
from evalcore.rubric import queries as rubric_queries, scores
from evalcore.rubric.scores import GROUPINGS
from evalcore.stats.wording import listed
from evalcore.study import contents
from evalcore.study.db import Session, reading
from evalcore.study.frames import records

if TYPE_CHECKING:
    from evalcore.rubric.results import ComputedAnalysis

DATASET = "Which data set; default: as stated, else the one with most responses."
SUBSET = "Only this part of it, e.g. hard or consensus; default: as stated."
JUDGES = "Judges, joined by commas, that correct together; default: as stated, else the one with most labels on the data set."
BY = "Some of overall, theme, axis, category, language, level, cluster, use_case, type, difficulty, specialty, joined by commas."
WEIGHTED = "Weight the examples to the themes of the full benchmark; default: as stated."
SETTLED = "Adjudicated labels in place of the readers' votes; default: as stated."


def compare(  # noqa: PLR0913, PLR0917 - one an option
    dataset: Annotated[str | None, Option(help=DATASET)] = None,
    subset: Annotated[str | None, Option(help=SUBSET)] = None,
    judges: Annotated[str | None, Option(help=JUDGES)] = None,
    claim: Claimed = None,
    physicians: WhoseReads = None,
    by: Annotated[str, Option(help=BY)] = "theme,axis",
    weighted: Annotated[bool | None, Option("--weighted/--unweighted", help=WEIGHTED, show_default=False)] = None,
    settled: Annotated[bool | None, Option("--settled/--unsettled", help=SETTLED, show_default=False)] = None,
    seed: Annotated[int, Option(min=0, help="Of chance, for resampling and flips.")] = 20,
    db: Db = None,
    as_json: Json = False,
) -> None:
    """Scores of models by the judge only, by physicians only and corrected, and which model is better.

    The numbers are those of the analysis that the study states (`overread analysis`); an option looks at another one, and the output says so.
    """
    wanted = some_of("--by", by, GROUPINGS)
    given: dict[str, Any] = {"evaluation": dataset, "subset": subset, "judges": judges}
    given |= {"claim": claim, "physicians": physicians, "settled": settled, "weighted": weighted}
    with study(db) as engine, reading(engine) as session:
        done = analysed(session, {name: value for name, value in given.items() if value is not None})
        tables = computed(session, done, by=wanted, seed=seed)
    if as_json:
        print_json(as_object(done, tables, seed=seed))
    else:
        _print(done, tables)


def analysed(session: Session, changes: dict[str, Any]) -> "ComputedAnalysis":
    """The analysis with the options that were given, each checked by its own name."""
    from evalcore.rubric.results import compute, evaluations, judges_of

    everything = rubric_queries.load(session)
    of = judges_of(evaluations(everything))
    if not of:
        refuse("No judge has labelled a response yet: overread import a file of results first")
    stated = contents.stated_analysis(session)
    usual = next(iter(of)) if stated is None else stated.spec.evaluation or next(iter(of))
    evaluation = one_of("--dataset", changes.get("evaluation", usual), of)
    if "judges" in changes:
        changes["judges"] = tuple(some_of("--judges", changes["judges"], of[evaluation]))
    if "subset" in changes:
        one_of("--subset", changes["subset"], contents.choices(session)["subset"])
    done = compute(session, changes, rubric_data=everything)
    if done.part.items.empty:
        refuse(f"--subset: no judged response of {evaluation} belongs to {done.results.spec.subset}")
    return done


def computed(
    session: Session, done: "ComputedAnalysis", *, by: list[str], seed: int
) -> dict[str, "dict[str, pd.DataFrame]"]:
    """What the analysis itself does not hold: in the judge's opinion, corrected by grouping with the tests, and with the missing reads."""
    from evalcore.rubric import corrected_groups as groups, judge_only, results

    numbers, spec = done.results, done.results.spec
    claims: Any = {"claim": numbers.claim, "physicians": numbers.physicians}
    how = results.correcting(done.part, spec)
    one, judge = results.jury(done.part, spec.judges)
    judged = scores.group_scores(one, judge, by=by)
    inputs = {grouping: groups.by_group(done.part, grouping, **how) for grouping in by if grouping in groups.GROUPINGS}
    return {
        "judge_only": {
            "differences": judge_only.differences(scores.example_scores(one, judge), rng=np.random.default_rng(seed))
        },
        "missing": {"scores": results.missing(session, done.everything, done.part, spec)},
        "corrected_groups": {name: groups.group_corrected_scores(of, **claims) for name, of in inputs.items()},
        "interactions": {name: groups.interactions(of, name) for name, of in inputs.items()},
        "groups": {str(name): table for name, table in judged.groupby("grouping", sort=False)},
    }


def as_object(done: "ComputedAnalysis", tables: dict[str, "dict[str, pd.DataFrame]"], *, seed: int) -> dict[str, Any]:
    """What --json prints."""
    from evalcore.rubric import corrected_groups, finding, judge_only, results, sensitivity

    numbers, spec, stated = done.results, done.results.spec, done.stated
    primary = None
    if spec.primary is not None:
        pair = {"model_1": spec.primary[0], "model_2": spec.primary[1], "margin": spec.margin}
        held = None if numbers.held is None else asdict(numbers.held)
        primary = pair | (numbers.primary or {}) | {"held": held, "words": results.primary_words(numbers, stated)}
    tests = []
    for grouping, table in tables["interactions"].items():
        for row, test in zip(_records(table), table.to_dict(orient="records"), strict=True):
            is_difference = test["about"] == corrected_groups.DIFFERENCE
            words = corrected_groups.interaction_words(test, grouping.replace("_", " ")) if is_difference else None
            tests.append({"grouping": grouping, **row, "words": words})
    of_groups = tables["corrected_groups"].items()
    shown = ("scores", "claims", "differences", "difference_claims", "ranks")
    judged = _records(tables["judge_only"]["differences"])
    return {
        "dataset": spec.evaluation,
        **{name: getattr(spec, name) for name in ("subset", "judges", "claim", "physicians", "settled", "weighted")},
        "analysis": results.stated_words(stated, done.otherwise),
        "stated": stated and {name: getattr(stated, name) for name in ("version", "stated_at", "n_reads_before")},
        "otherwise": list(done.otherwise),
        "means": numbers.means,
        "why": numbers.usual.why,
        "seed": seed,
        "finding": numbers.finding,
        "unreached": finding.unreached_words(numbers.scores),
        "n_examples": done.part.items["example_id"].nunique(),
        "n_responses": done.part.items["response_id"].nunique(),
        **{name: _records(getattr(numbers, name)) for name in shown},
        "primary": primary,
        "judge_only": {"warning": judge_only.judge_only_warning(listed(spec.judges)), "differences": judged},
        "corrected_groups": [{"grouping": name, **row} for name, table in of_groups for row in _records(table)],
        "interactions": tests,
        "group_words": _group_words(done, tables),
        "sensitivity": _records(tables["missing"]["scores"]),
        "sensitivity_words": sensitivity.sensitivity_sentence(tables["missing"]["scores"]),
        "groups": [row for table in tables["groups"].values() for row in _records(table)],
    }


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    return records(table.drop(columns="evaluation", errors="ignore"))


def _group_words(done: "ComputedAnalysis", tables: dict[str, "dict[str, pd.DataFrame]"]) -> dict[str, str]:
    from evalcore.rubric.corrected_groups import group_words

    primary, tests = done.results.spec.primary, tables["interactions"]
    of = tables["corrected_groups"].items()
    return {name: group_words(scores, tests[name], name.replace("_", " "), primary) for name, scores in of}


def _print(done: "ComputedAnalysis", tables: dict[str, "dict[str, pd.DataFrame]"]) -> None:
    from evalcore.rubric import corrected_groups, finding, judge_only, length_adjusted, results, sensitivity

    numbers, spec = done.results, done.results.spec
    judge = listed(spec.judges)
    scores = finding.best_first(numbers.scores)
    where = f", {spec.subset}" if spec.subset else ""
    analysis, primary = results.stated_words(done.stated, done.otherwise), results.primary_words(numbers, done.stated)
    say(f"{spec.evaluation}{where}, judged by {judge}", analysis, numbers.finding, *primary)
    say(finding.unreached_words(scores), numbers.usual.why, numbers.means)
    show(columns := finding.score_columns(scores))
    if length_adjusted.NAME in columns:
        say(length_adjusted.help_words(length_adjusted.penalty_of(spec.evaluation, spec.subset)))
    if scores["n_read"].any():
        show(finding.claim_columns(numbers.claims, scores))
        say(finding.claim_notes(numbers.where))
    say(finding.rank_words(numbers.ranks))
    judged = tables["judge_only"]["differences"]
    judged = judged.loc[judged["n_examples"].gt(0)]
    for title, pairs in (("After correction", numbers.differences), ("In the judge's opinion", judged)):
        if len(pairs):
            say(title)
            show(finding.pair_columns(pairs))
    say(sensitivity.sensitivity_sentence(tables["missing"]["scores"]))
    for grouping, words in _group_words(done, tables).items():
        say(f"By {grouping}, corrected: {words}")
        of_groups = tables["corrected_groups"][grouping]
        if of_groups["enough"].any():
            show(corrected_groups.group_columns(of_groups, grouping))
    for grouping, table in tables["groups"].items():
        say(f"By {grouping}, in the opinion of {judge} alone, not corrected")
        show(corrected_groups.judged_columns(table, grouping))
    say(judge_only.judge_only_warning(judge))
