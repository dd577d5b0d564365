"""Models against each other, by the command line."""

from typing import TYPE_CHECKING, Annotated, Any

import pandas as pd
import typer
from rich.markup import escape
from rich.table import Table

from evalcore.cli.console import Db, Json, one_of, out, print_json, some_of, study
from evalcore.errors import OverreadError

if TYPE_CHECKING:
    from sqlmodel import Session

    from evalcore.rubric.results import ComputedAnalysis

SEED = 20


def compare(  # noqa: PLR0913, PLR0917 - one an option
    dataset: Annotated[
        str | None, typer.Option(help="Which data set; default: as stated, else the one with most responses.")
    ] = None,
    subset: Annotated[
        str | None, typer.Option(help="Only this part of it, e.g. hard or consensus; default: as stated.")
    ] = None,
    judges: Annotated[
        str | None,
        typer.Option(
            help="Judges, joined by commas, that correct together; default: as stated, else the one with most labels on the data set."
        ),
    ] = None,
    claim: Annotated[
        str | None,
        typer.Option(
            help="What the intervals hold for: benchmark or new_examples; default: as stated, else the widest that can be had."
        ),
    ] = None,
    physicians: Annotated[
        str | None, typer.Option(help="Whose reading they hold for: these or in_general; default: likewise.")
    ] = None,
    by: Annotated[
        str, typer.Option(help="Some of overall, theme, axis, category, language, level, cluster, joined by commas.")
    ] = "theme,axis",
    weighted: Annotated[
        bool | None,
        typer.Option(
            "--weighted/--unweighted",
            help="Weight the examples to the themes of the full benchmark; default: as stated.",
            show_default=False,
        ),
    ] = None,
    settled: Annotated[
        bool | None,
        typer.Option(
            "--settled/--unsettled",
            help="Adjudicated labels in place of the readers' votes; default: as stated.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of chance, for resampling and flips.")] = SEED,
    db: Db = None,
    as_json: Json = False,
) -> None:
    """Scores of models by the judge only, by physicians only and corrected, and which model is better.

    The numbers are those of the analysis that the study states (`overread analysis`); an option looks at another one, and the output says so.

    With --json an object: dataset, subset (null: all examples), judges, claim, physicians, settled, weighted (what was computed); analysis (whether that
    is the stated analysis, a sentence), stated (version, stated_at, n_reads_before; null where nothing is), otherwise (what differs from it);
    means (what the intervals mean, a sentence), why (why they hold for that by default, a sentence),
    seed, finding (a sentence with its claim), unreached (which responses no drawing could have taken, a sentence, else empty), n_examples, n_responses, and
    scores: a row a model: model, n_examples, n_responses, n_items, n_left_out (responses without a score, or without every judge's label
    on every criterion), n_unreached (responses that no drawing could have taken),
    n_read (items), n_reads, n_readers, n_effective_readers (as many who read alike would know as much), n_cannot_assess, n_units; judge_only,
    physicians_only and corrected, each with
    _low, _high (95 %) and _se; corrected_any_low, corrected_any_high (for looks at any time);
    worth, worth_low, worth_high (reads that the judge saved; null where not known); enough
    (whether enough is read for a corrected score) and n_needed (further criteria to be read until it is; corrected is null until then);
    claims: the scores for everything that an interval may hold for, the widest first: place (of the claim, from 0), claim, physicians, and the columns
    of scores;
    differences: a row a pair of models of which enough is read, after correction, for the same claim as the scores: model_1, model_2, n_examples,
    difference (of the first minus the second), low and high (95 %), se, df, sim_low and sim_high (all pairs at once), p, p_holm;
    difference_claims: the same for every claim;
    ranks: a row a model of which a difference is known: model, n_models, rank_low and rank_high (1 the best; all models' at once);
    primary: the stated primary comparison: model_1, model_2, margin, difference (of the first less the second), low, high, se, df, p, n_examples,
    held (against the margin; null without one) and words (sentences); null where none is stated;
    judge_only: warning (that these are a judge's opinion), differences (a row a pair: model_1, model_2, n_examples, n_left_out, difference, low,
    high, p by sign flips, p_holm, p_bh, p_max_t, small);
    corrected_groups: a row a grouping (of --by, without overall), group and model, for the same claim as the scores: grouping, group, and the columns of
    scores; enough, n_needed and null as there, of the group alone;
    interactions: a row a grouping and pair of models (about difference), and a grouping and model (about judge_error, model_2 empty): grouping, about,
    model_1, model_2, n_groups, n_left_out (groups of which too little is read), f, df_1, df_2, p, p_holm (over the rows of the grouping about the same;
    for new examples and these physicians, whatever the claim) and words (a sentence, of a difference; else null);
    group_words: by grouping, whether the primary (else the best two models') difference and the judge's error depend on it, in words;
    sensitivity: the corrected scores if the missing reads had all spoken for the model or all against it, a row a model and scenario, for the same claim:
    model, scenario, n_taken, n_of, corrected, corrected_low, corrected_high, shift (from as_estimated); sensitivity_words: what they could do at most;
    groups: a row a grouping, group and model in the judge's opinion alone, not corrected: grouping, group, tag, model, n_examples, n_responses,
    n_left_out, n_without_positive, n_undefined, raw_mean, raw_low, raw_high, score, low, high, small.
    Values that are undefined are null.
    """
    from evalcore.rubric.scores import GROUPINGS
    from evalcore.study.db import reading
    from evalcore.study.schema import Claim, Physicians

    wanted = some_of("--by", by, GROUPINGS)
    given = {
        "evaluation": dataset,
        "subset": subset,
        "judges": judges,
        "claim": None if claim is None else Claim(one_of("--claim", claim, list(Claim))),
        "physicians": None if physicians is None else Physicians(one_of("--physicians", physicians, list(Physicians))),
        "settled": settled,
        "weighted": weighted,
    }
    with study(db) as engine, reading(engine) as session:
        done = _analysed(session, {name: value for name, value in given.items() if value is not None})
        found = _said(session, done, by=wanted, seed=seed)
    if as_json:
        print_json(found)
    else:
        _print(found)


def _analysed(session: "Session", changes: dict[str, Any]) -> "ComputedAnalysis":
    """The analysis with the options that were given, each checked by its own name."""
    from evalcore.rubric import parts
    from evalcore.rubric import queries as rubric_queries
    from evalcore.rubric.results import compute
    from evalcore.study import contents

    everything = rubric_queries.load(session)
    of = {
        row["evaluation"]: row["judges"]
        for row in parts.evaluations(everything).to_dict(orient="records")
        if row["judges"]
    }
    if not of:
        msg = "No judge has labelled a response yet: overread import a file of results first"
        raise OverreadError(msg)
    stated = contents.stated_analysis(session)
    usual = next(iter(of)) if stated is None else stated.spec.evaluation or next(iter(of))
    evaluation = one_of("--dataset", changes.get("evaluation", usual), of)
    if "judges" in changes:
        changes["judges"] = tuple(some_of("--judges", changes["judges"], of[evaluation]))
    if "subset" in changes:
        one_of("--subset", changes["subset"], contents.choices(session)["subset"])
    done = compute(session, changes, rubric_data=everything)
    if done.part.items.empty:
        msg = f"--subset: no judged response of {evaluation} belongs to {done.results.spec.subset}"
        raise OverreadError(msg)
    return done


def _said(session: "Session", done: "ComputedAnalysis", *, by: list[str], seed: int) -> dict[str, Any]:
    """What --json prints."""
    import numpy as np

    from evalcore.rubric import comparison, parts
    from evalcore.rubric.finding import unreached_words
    from evalcore.rubric.results import missing, primary_words, stated_words
    from evalcore.rubric.scores import example_scores, group_scores
    from evalcore.rubric.sensitivity import sensitivity_sentence

    found, spec, stated = done.results, done.results.spec, done.stated
    one, judge = parts.jury(done.part, spec.judges)
    judged = comparison.differences(example_scores(one, judge), rng=np.random.default_rng(seed))
    tried = missing(session, done)
    primary = None
    if spec.primary is not None:
        held = (
            None if found.held is None else {name: getattr(found.held, name) for name in found.held.__struct_fields__}
        )
        pair = {"model_1": spec.primary[0], "model_2": spec.primary[1], "margin": spec.margin}
        primary = pair | (found.primary or {}) | {"held": held, "words": primary_words(found, stated)}
    return {
        "dataset": spec.evaluation,
        "subset": spec.subset,
        "judges": list(spec.judges),
        "claim": spec.claim,
        "physicians": spec.physicians,
        "settled": spec.settled,
        "weighted": spec.weighted,
        "analysis": stated_words(stated, done.otherwise),
        "stated": None
        if stated is None
        else {name: getattr(stated, name) for name in ("version", "stated_at", "n_reads_before")},
        "otherwise": list(done.otherwise),
        "means": found.means,
        "why": found.usual.why,
        "seed": seed,
        "finding": found.finding,
        "unreached": unreached_words(found.scores),
        "n_examples": done.part.items["example_id"].nunique(),
        "n_responses": done.part.items["response_id"].nunique(),
        "scores": _records(found.scores.drop(columns="evaluation")),
        "claims": _records(found.claims.drop(columns="evaluation")),
        "differences": _records(found.differences.drop(columns="evaluation")),
        "difference_claims": _records(found.difference_claims.drop(columns="evaluation")),
        "ranks": _records(found.ranks.drop(columns="evaluation")),
        "primary": primary,
        "judge_only": {"warning": comparison.judge_only_warning(judge), "differences": _records(judged)},
        **_grouped(done, by),
        "sensitivity": _records(tried.drop(columns="evaluation")),
        "sensitivity_words": sensitivity_sentence(tried),
        "groups": _records(group_scores(one, judge, by=by).drop(columns="evaluation")),
    }


def _grouped(done: "ComputedAnalysis", by: list[str]) -> dict[str, Any]:
    """Corrected scores by group, and whether groups differ."""
    from evalcore.rubric import corrected_groups
    from evalcore.rubric.corrected_groups import DIFFERENCE, interaction_words
    from evalcore.rubric.parts import weights_of

    found, spec = done.results, done.results.spec
    how: dict[str, Any] = {"judges": spec.judges, "settled": spec.settled, "weights": weights_of(done.part, spec)}
    scores, tests, words = [], [], {}
    for grouping in by:
        if grouping not in corrected_groups.GROUPINGS:
            continue
        known = corrected_groups.by_group(done.part, grouping, **how)
        of_groups = corrected_groups.group_corrected_scores(known, claim=found.claim, physicians=found.physicians)
        test = corrected_groups.interactions(known, grouping)
        words[grouping] = corrected_groups.group_words(of_groups, test, grouping, spec.primary)
        scores += [{"grouping": grouping, **row} for row in _records(of_groups.drop(columns="evaluation"))]
        for row, told in zip(test.to_dict(orient="records"), _records(test.drop(columns="evaluation")), strict=True):
            said = interaction_words(row, grouping) if row["about"] == DIFFERENCE else None
            tests.append({"grouping": grouping, **told, "words": said})
    return {"corrected_groups": scores, "interactions": tests, "group_words": words}


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    rows = table.astype(object).where(table.notna(), None).to_dict(orient="records")
    return [{str(name): value for name, value in row.items()} for row in rows]


def _print(found: dict[str, Any]) -> None:
    from evalcore.rubric.finding import (
        CLAIM_COLUMNS,
        claim_columns,
        difference_words,
        rank_words,
        readers_words,
        score_words,
        worth_words,
    )
    from evalcore.stats.wording import chance_words

    judges = ", ".join(found["judges"])
    out.print(escape(f"{found['dataset']}{', ' + found['subset'] if found['subset'] else ''}, judged by {judges}"))
    primary = found["primary"]["words"] if found["primary"] else []
    for sentence in (found["analysis"], found["finding"], *primary, found["unreached"], found["why"], found["means"]):
        if sentence:
            out.print(escape(sentence))
    table = Table(
        "model", "judge only", "physicians only", "corrected", "criteria read", "physicians", "reads saved by the judge", box=None, padding=(0, 2)
    )  # fmt: skip
    for row in found["scores"]:
        values = {name: float("nan") if value is None else value for name, value in row.items()}
        cells = [
            score_words(*(values[name + end] for end in ("", "_low", "_high")))
            for name in ("judge_only", "physicians_only", "corrected")
        ]
        worth = worth_words(values["worth"], values["worth_low"], values["worth_high"])
        if not row["enough"]:
            cells[2], worth = row["needed"] if row["n_items"] else "–", "–"
        readers = readers_words(row["n_readers"], values["n_effective_readers"])
        table.add_row(*map(escape, (row["model"], *cells, str(row["n_read"]), readers, worth)))
    out.print(table)
    by_claim = claim_columns(pd.DataFrame(found["claims"]).fillna(float("nan")))
    if any(cell != "–" for name, column in by_claim.items() if name != "Model" for cell in column):
        shown = Table("corrected", *list(by_claim)[1:], box=None, padding=(0, 2))
        for line in zip(*by_claim.values(), strict=True):
            shown.add_row(*map(escape, line))
        out.print(shown)
        out.print(escape(CLAIM_COLUMNS))
    if found["ranks"]:
        out.print(escape(rank_words(pd.DataFrame(found["ranks"]))))
    for title, rows in (
        ("After correction", found["differences"]),
        ("In the judge's opinion", found["judge_only"]["differences"]),
    ):
        if rows:
            shown = Table(title, "difference", "p, Holm", box=None, padding=(0, 2))
            for row in rows:
                values = {name: float("nan") if value is None else value for name, value in row.items()}
                if not row["n_examples"]:
                    continue
                words = difference_words(values["difference"], values["low"], values["high"])
                pair = f"{row['model_1']} − {row['model_2']}"
                shown.add_row(*map(escape, (pair, words, chance_words(values.get("p_holm", float("nan"))))))
            out.print(shown)
    out.print(escape(found["sensitivity_words"]))
    _print_groups(found)
    out.print(escape(found["judge_only"]["warning"]))


def _print_groups(found: dict[str, Any]) -> None:
    """Corrected scores of each group and whether groups differ; behind them the judge's opinion."""
    from evalcore.rubric.corrected_groups import lacking_words

    for grouping, words in found["group_words"].items():
        out.print(escape(f"By {grouping}, corrected: {words}"))
        rows = [row for row in found["corrected_groups"] if row["grouping"] == grouping]
        if any(row["enough"] for row in rows):
            cells = [_interval(row, "corrected", "corrected_") if row["enough"] else lacking_words(row) for row in rows]
            _print_cells(grouping, rows, cells)
    for grouping in dict.fromkeys(row["grouping"] for row in found["groups"]):
        out.print(escape(f"By {grouping}, in the opinion of {', '.join(found['judges'])} alone, not corrected"))
        rows = [row for row in found["groups"] if row["grouping"] == grouping]
        _print_cells(grouping, rows, [_interval(row, "score", "") for row in rows])


def _interval(row: dict[str, Any], value: str, before: str) -> str:
    from evalcore.rubric.finding import score_words

    names = (value, f"{before}low", f"{before}high")
    return score_words(*(float("nan") if row[name] is None else row[name] for name in names))


def _print_cells(grouping: str, rows: list[dict[str, Any]], cells: list[str]) -> None:
    """A row a group, a column a model."""
    words = {(row["group"], row["model"]): cell for row, cell in zip(rows, cells, strict=True)}
    models = dict.fromkeys(row["model"] for row in rows)
    shown = Table(grouping, *map(escape, models), box=None, padding=(0, 2))
    for group in dict.fromkeys(row["group"] for row in rows):
        shown.add_row(escape(group), *(escape(words.get((group, model), "–")) for model in models))
    out.print(shown)
