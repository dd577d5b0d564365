"""Models against each other, by the command line."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import pandas as pd
import typer
from rich.markup import escape
from rich.table import Table

from evalcore.console import Db, Json, one_of, out, print_json, some_of, study
from evalcore.errors import OverreadError

if TYPE_CHECKING:
    from evalcore.metrics.corrected import Claim, Physicians
    from evalcore.opinions import Opinions

SEED = 20


def compare(  # noqa: PLR0913, PLR0917 - one an option
    dataset: Annotated[str | None, typer.Option(help="Which data set; default: the one with most responses.")] = None,
    subset: Annotated[str | None, typer.Option(help="Only this part of it, e.g. hard or consensus.")] = None,
    judges: Annotated[
        str | None,
        typer.Option(
            help="Judges, joined by commas, that correct together; default: the one with most labels on the data set."
        ),
    ] = None,
    claim: Annotated[str, typer.Option(help="What the intervals hold for: benchmark or new_examples.")] = "benchmark",
    physicians: Annotated[str, typer.Option(help="Whose reading they hold for: these or in_general.")] = "these",
    by: Annotated[
        str, typer.Option(help="Some of overall, theme, axis, category, language, level, cluster, joined by commas.")
    ] = "theme,axis",
    weighted: Annotated[
        bool, typer.Option("--weighted", help="Weight the examples to the themes of the full benchmark.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Of chance, for resampling and flips.")] = SEED,
    db: Db = None,
    as_json: Json = False,
) -> None:
    """Scores of models by the judge only, by physicians only and corrected, and which model is better.

    With --json an object: dataset, subset (null: all examples), judges, claim, physicians, means (what the intervals mean, a sentence), weighted,
    seed, finding (a sentence), unreached (which responses no drawing could have taken, a sentence, else empty), n_examples, n_responses, and
    scores: a row a model: model, n_examples, n_responses, n_items, n_left_out (responses without a score, or without every judge's label
    on every criterion), n_unreached (responses that no drawing could have taken),
    n_read (items), n_reads, n_readers, n_effective_readers, n_cannot_assess, n_units; judge_only, physicians_only and corrected, each with
    _low, _high (95 %) and _se; corrected_any_low, corrected_any_high (for looks at any time);
    worth, worth_low, worth_high (further reads that the judge was worth; null where not known); enough
    (whether enough is read for a corrected score) and n_needed (further criteria to be read until it is; corrected is null until then);
    differences: a row a pair of models of which enough is read, after correction: model_1, model_2, n_examples, difference (of the first
    minus the second), low and high (95 %, for the claim and the physicians that were asked for), se, df, sim_low and sim_high (all pairs at once), p, p_holm;
    judge_only: warning (that these are a judge's opinion), differences (a row a pair: model_1, model_2, n_examples, n_left_out, difference, low,
    high, p by sign flips, p_holm, p_bh, p_max_t, small) and rank_probabilities (a row a model and rank: model, rank, probability, n_examples, n_left_out);
    groups: a row a grouping, group and model in the judge's opinion: grouping, group, tag, model, n_examples, n_responses,
    n_left_out, n_without_positive, n_undefined, raw_mean, raw_low, raw_high, score, low, high, small.
    Values that are undefined are null.
    """
    from evalcore.metrics.corrected import Claim, Physicians
    from evalcore.metrics.group_scores import GROUPINGS

    wanted = some_of("--by", by, GROUPINGS)
    claimed = Claim(one_of("--claim", claim, list(Claim)))
    read_by = Physicians(one_of("--physicians", physicians, list(Physicians)))
    part = _part(db, dataset, subset, judges)
    found = _compared(part, claimed, read_by, weighted=weighted, by=wanted, seed=seed)
    if as_json:
        print_json(found)
    else:
        _print(found)


@dataclass(frozen=True)
class _Part:
    """The part of the study that is compared."""

    opinions: "Opinions"
    dataset: str
    subset: str | None
    judges: list[str]


def _compared(
    part: _Part, claim: "Claim", physicians: "Physicians", *, weighted: bool, by: list[str], seed: int
) -> dict[str, Any]:
    import numpy as np

    from evalcore.metrics import comparison, parts
    from evalcore.metrics.corrected import Claim, claim_sentence, corrected_scores
    from evalcore.metrics.corrected_differences import corrected_differences
    from evalcore.metrics.finding import finding, unreached_words
    from evalcore.metrics.group_scores import group_scores

    taken = part.opinions
    weighting = parts.common_weighting(taken) if weighted else None
    if weighted and weighting is None:
        msg = "--weighted: the examples have no themes of the full benchmark, or the models answered different examples"
        raise OverreadError(msg)
    how: dict[str, Any] = {"judges": part.judges, "weights": None if weighting is None else weighting.weights}
    scores = corrected_scores(taken, claim=claim, physicians=physicians, **how)
    differences = corrected_differences(taken, claim=claim, physicians=physicians, **how)
    differences = differences.loc[differences["difference"].notna()]
    one, judge = parts.jury(taken, part.judges)
    examples = comparison.example_scores(one, judge)
    rng = np.random.default_rng(seed)
    judged = comparison.differences(examples, rng=rng)
    ranks = comparison.rank_probabilities(examples, rng=rng)
    where = "on this benchmark" if claim == Claim.BENCHMARK else "on examples like these"
    return {
        "dataset": part.dataset,
        "subset": part.subset,
        "judges": part.judges,
        "claim": claim,
        "physicians": physicians,
        "means": claim_sentence(claim, physicians),
        "weighted": weighted,
        "seed": seed,
        "finding": finding(scores, differences, where),
        "unreached": unreached_words(scores),
        "n_examples": taken.items["example_id"].nunique(),
        "n_responses": taken.items["response_id"].nunique(),
        "scores": _records(scores.drop(columns="evaluation")),
        "differences": _records(differences.drop(columns="evaluation")),
        "judge_only": {
            "warning": comparison.judge_only_warning(judge),
            "differences": _records(judged),
            "rank_probabilities": _records(ranks),
        },
        "groups": _records(group_scores(one, judge, by=by).drop(columns="evaluation")),
    }


def _part(db: str | None, dataset: str | None, subset: str | None, judges: str | None) -> _Part:
    from evalcore.db import reading
    from evalcore.metrics import parts
    from evalcore.queries import browse, opinions
    from evalcore.queries import study as queries

    with study(db) as engine, reading(engine) as session:
        everything = opinions.load(session)
        known = parts.evaluations(everything)
        of = {row["evaluation"]: list(row["judges"]) for row in known.to_dict(orient="records") if row["judges"]}
        if not of:
            msg = "No judge has labelled a response yet: overread import a file of results first"
            raise OverreadError(msg)
        evaluation = next(iter(of)) if dataset is None else one_of("--dataset", dataset, of)
        example_ids = None
        if subset is not None:
            one_of("--subset", subset, queries.choices(session)["subset"])
            example_ids = list(browse.examples(session, browse.Filters(subset=subset))["example_id"])
    chosen = of[evaluation][:1] if judges is None else some_of("--judges", judges, of[evaluation])
    taken = parts.part(
        everything,
        evaluation=evaluation,
        judges=chosen,
        example_ids=example_ids,
        clusters_only=subset == parts.CONSENSUS,
    )
    if taken.items.empty:
        msg = f"--subset: no judged response of {evaluation} belongs to {subset}"
        raise OverreadError(msg)
    return _Part(taken, evaluation, subset, chosen)


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    rows = table.astype(object).where(table.notna(), None).to_dict(orient="records")
    return [{str(name): value for name, value in row.items()} for row in rows]


def _print(found: dict[str, Any]) -> None:
    from evalcore.metrics.finding import chance_words, difference_words, score_words, worth_words

    judges = ", ".join(found["judges"])
    out.print(escape(f"{found['dataset']}{', ' + found['subset'] if found['subset'] else ''}, judged by {judges}"))
    for name in ("finding", "unreached", "means"):
        if found[name]:
            out.print(escape(found[name]))
    table = Table(
        "model",
        "judge only",
        "physicians only",
        "corrected",
        "criteria read",
        "judge worth, in reads",
        box=None,
        padding=(0, 2),
    )
    for row in found["scores"]:
        values = {name: float("nan") if value is None else value for name, value in row.items()}
        cells = [
            score_words(*(values[name + end] for end in ("", "_low", "_high")))
            for name in ("judge_only", "physicians_only", "corrected")
        ]
        worth = worth_words(values["worth"], values["worth_low"], values["worth_high"])
        if not row["enough"]:
            cells[2], worth = row["needed"] if row["n_items"] else "–", "–"
        table.add_row(*map(escape, (row["model"], *cells, str(row["n_read"]), worth)))
    out.print(table)
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
    out.print(escape(found["judge_only"]["warning"]))
