"""Which responses to read next, and how many: from what somebody wants to know to a drawing for assigning."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

import numpy as np

from evalcore.errors import refuse
from evalcore.planning.pilot_estimates import N_MODELS, Target, measured, population
from evalcore.planning.sample_size import DESIGNS, FLOOR, UNIFORM, Answer, inclusion_probabilities
from evalcore.reading import assignment_queries, read_queries
from evalcore.reading.assigning import MAX_SEED, Drawn
from evalcore.reading.assignment_queries import Item
from evalcore.rubric import queries as rubric_queries
from evalcore.rubric.corrected import default_claim, estimator_inputs
from evalcore.rubric.data import RubricData, votes
from evalcore.rubric.drawings import Goal, drawing_sizes
from evalcore.rubric.results import evaluations
from evalcore.stats.arrays import Floats, Numbers
from evalcore.study import frames
from evalcore.study.analysis import Analysis
from evalcore.study.csv_cells import guarded
from evalcore.study.db import Session
from evalcore.study.schema import Ask, Claim, Physicians, Selection

MOST_WITHIN = 0.5
LEAST_POWER, POWER = 0.5, 0.8
NEXT = 100  # hours, or reads where no time is known, that the next reading is priced for
SECONDS_AN_HOUR = 3600
ROUNDING = 1e-6


@dataclass(frozen=True)
class Plan:
    """Responses that were drawn, as `assigning.assign` takes them; with the study as it is now the seed gives the same again. `n_items`: criteria on them."""

    design: str
    seed: int
    drawn: Drawn
    n_items: int


OF_MODELS = ("no model", "one model", "two different models")


def target_of(words: str, known: RubricData, *, evaluation: str | None = None, judges: Sequence[str] = ()) -> Target:
    """A target from `score:MODEL:0.03`, `difference:A:B:0.03` or `judge-error:0.03`; names may hold colons. Errors and the rest as of `target`."""
    goal, _, rest = words.partition(":")
    if goal not in list(Goal):
        _refuse("target", "score:MODEL:0.03, difference:MODEL:MODEL:0.03 or judge-error:0.03", repr(words))
    names, _, width = rest.rpartition(":")
    try:
        within = float(width)
    except ValueError:
        _refuse("target", "a width at the end, for example 0.03", repr(width))
    models = [names] if names else []
    if goal == Goal.DIFFERENCE:  # the place is taken at which both sides are models of the study
        models_known, pieces = set(known.items["model"].cat.categories), names.split(":")
        splits = [[":".join(pieces[:n]), ":".join(pieces[n:])] for n in range(1, len(pieces))]
        models = next((pair for pair in splits if set(pair) <= models_known), splits[0] if splits else [names])
    return target(Goal(goal), within, models, known, evaluation=evaluation, judges=judges)


def target(
    goal: Goal,
    within: float,
    models: Sequence[str],
    known: RubricData,
    *,
    evaluation: str | None = None,
    judges: Sequence[str] = (),
) -> Target:
    """A target of this study, by default of the evaluation with most responses (errors: all) and its judge with most labels; else an `OverreadError`."""
    if not 0 < within <= MOST_WITHIN:
        _refuse("target", f"a width of more than 0 and at most {MOST_WITHIN}", within)
    parts = evaluations(known)
    judged = parts.loc[parts["judges"].map(len).gt(0)]
    if judged.empty:
        refuse("Nothing can be planned yet: no judge has labelled a response. Import a file of results first.")
    if evaluation is not None or goal is not Goal.JUDGE_ERROR:
        chosen = judged["evaluation"].iloc[0] if evaluation is None else evaluation
        _check("evaluation", [chosen], list(judged["evaluation"]))
        evaluation = str(chosen)
        labelled = judged.loc[judged["evaluation"].eq(evaluation), "judges"].iloc[0]
    else:
        labelled = known.judges
    _check("judges", judges, labelled)
    wanted = tuple(dict.fromkeys(judges)) or (labelled[0],)
    if goal is Goal.JUDGE_ERROR and len(wanted) > 1:
        _refuse("judges", "one, since a judge's errors are its own", ", ".join(wanted))
    _check("models", models, list(known.items["model"].cat.categories))
    if len(set(models)) != N_MODELS[goal]:
        _refuse("models", f"{OF_MODELS[N_MODELS[goal]]} for {goal}", ", ".join(models) or "none")
    return Target(goal, within, tuple(models), wanted, evaluation)


def _check(name: str, chosen: Sequence[str], known: Sequence[str]) -> None:
    if unknown := [word for word in chosen if word not in known]:
        _refuse(name, f"some of {', '.join(known)}", ", ".join(map(repr, unknown)))


def _refuse(place: str, expected: str, got: object) -> NoReturn:
    refuse(f"{place}: expected {expected}, got {got}")


def claimed(
    known: RubricData, wanted: Target, *, spec: Analysis | None, claim: Claim | None, physicians: Physicians | None
) -> tuple[Target, str]:
    """A target with what it is to hold for: as asked, else as stated, else the widest that the reads can carry; and a sentence on whence that is."""
    if wanted.goal is Goal.JUDGE_ERROR:
        return wanted, ""
    why = ""
    if spec is not None and (spec.claim or spec.physicians) and not (claim and physicians):
        claim, physicians, why = claim or spec.claim, physicians or spec.physicians, "As the stated analysis says."
    if claim is None or physicians is None:
        default = default_claim(estimator_inputs(population(known, wanted).rubric_data))
        claim, physicians, why = claim or default.claim, physicians or default.physicians, default.why
    return replace(wanted, claim=claim, physicians=physicians), why


def powered(wanted: Target, power: float | None) -> Target:
    """The target of a difference that is to be found with this probability; an `OverreadError` where it is none, or no such probability."""
    if power is None:
        return wanted
    if wanted.goal is not Goal.DIFFERENCE:
        _refuse("power", "a difference of two models as the target", wanted.goal)
    if not LEAST_POWER < power < 1:
        _refuse("power", f"more than {LEAST_POWER} and less than 1", power)
    return replace(wanted, power=power)


def taken(session: Session) -> frozenset[int]:
    """Numbers of the responses that are assigned already."""
    assigned = assignment_queries.assigned(session, Ask.RUBRIC)
    return frozenset(response for _, response in assigned if response is not None)


def seconds_each(session: Session) -> float | None:
    """Median time that a physician takes over a criterion, in seconds; None where no reading has been timed yet."""
    times = read_queries.reading_times(session)
    return float((times["seconds"] / times["n_criteria"]).median()) if len(times) else None


def next_reads(answer: Answer, seconds: float | None) -> tuple[float, str]:
    """How many further reads of a response the next 100 hours are, and these in words; where nothing has been timed, the next 100 reads."""
    if seconds is None or not answer.components.is_known:
        return NEXT, f"the next {NEXT} reads of a response"
    n_more = NEXT * SECONDS_AN_HOUR / (seconds * answer.components.n_items)
    return n_more, f"the next {NEXT} hours (about {n_more:,.0f} reads of a response)"


def hours(n_items: float, n_readers: int, seconds: float | None) -> float | None:
    """How long the reading takes, all readers together; None where nothing has been timed."""
    return None if seconds is None else n_items * n_readers * seconds / SECONDS_AN_HOUR


def draw(
    session: Session, wanted: Target, *, n_units: int, design: str, seed: int | None, known: RubricData | None = None
) -> Plan:
    """Draw further responses (for a difference: examples) of those that nobody was given yet. An `OverreadError` where fewer are left.

    Conversations that wait for the blind read of whoever plans take part untold: what is left out of a drawing could never stand in its estimate.
    """
    if design not in DESIGNS:
        _refuse("design", f"one of {', '.join(DESIGNS)}", repr(design))
    if seed is not None and not 0 <= seed <= MAX_SEED:
        _refuse("seed", f"0 to {MAX_SEED}", seed)
    study = rubric_queries.load(session) if known is None else known
    of_target = population(study, wanted)
    read = votes(of_target.rubric_data.reads)["row"].to_numpy(dtype=np.int64)
    gone = taken(session) | frozenset(of_target.items["response_id"].to_numpy()[read].tolist())
    free = of_target.where(~of_target.items["response_id"].isin(list(gone)).to_numpy())
    if not 0 < n_units <= free.n_units:
        wide = f"1 to {free.n_units:,}, as many as are neither read nor assigned yet"
        _refuse("responses", wide, f"{n_units:,}")
    seed = int(np.random.default_rng().integers(MAX_SEED)) if seed is None else seed
    correlation = measured(study, wanted, of_target).correlation
    floor = 1.0 if design == UNIFORM else FLOOR
    probabilities = inclusion_probabilities(drawing_sizes(free, correlation), n_units, floor=floor)
    places = drawn_systematically(probabilities.of_units, rng=np.random.default_rng(seed))
    rank = np.full(free.n_units, -1)
    rank[places] = np.arange(len(places))
    rows = np.flatnonzero(rank[free.unit] >= 0)
    rows = rows[np.argsort(rank[free.unit[rows]], kind="stable")]  # in the order of the drawing
    items = zip(*(free.items[name].to_numpy()[rows].tolist() for name in ("example_id", "response_id")), strict=True)
    shares: dict[Item, float] = dict(zip(items, probabilities.of_units[free.unit[rows]].tolist(), strict=True))
    how = {
        "design": design,
        "goal": wanted.goal.value,
        "within": wanted.within,
        "models": list(wanted.models),
        "evaluation": wanted.evaluation,
        "judges": list(wanted.judges),
        "voters": list(map(str, study.votes)),
        "correlation": float(correlation),
        "scale": probabilities.scale,
        "floor": probabilities.floor,
    }
    selection = Selection.RANDOM if design == UNIFORM else Selection.IMPORTANCE
    n_population = int(free.items["response_id"].nunique())
    return Plan(design, seed, Drawn(shares, selection, n_population, how), len(rows))


def drawn_systematically(probabilities: Floats, *, rng: np.random.Generator) -> Numbers:
    """Places of a systematic drawing (Madow 1949), in random order: each with exactly its probability, in a fixed number."""
    order = rng.permutation(len(probabilities))
    ends = np.cumsum(probabilities[order])
    whole = round(float(ends[-1])) if len(ends) else 0
    if len(ends) and abs(ends[-1] - whole) < ROUNDING:  # so that rounding errors neither add nor lose one
        ends *= whole / ends[-1]
        ends[-1] = whole
    n_points = int(np.ceil(ends[-1])) if len(ends) else 0
    points = rng.random() + np.arange(n_points)
    places = np.searchsorted(ends, points[points < (ends[-1] if len(ends) else 0)], side="right")
    return np.asarray(order[rng.permutation(np.unique(places))])


def csv_of(session: Session, plan: Plan) -> bytes:
    """A plan as CSV that `overread assign --plan` reads; it does not say from how many was drawn: assign straight from the plan where you can."""
    examples = {example for example, _ in plan.drawn.shares}
    named = frames.responses(session, example_ids=examples).set_index("response_id")
    stream = io.StringIO()
    lines = csv.writer(stream, lineterminator="\n")
    lines.writerow(("prompt_id", "model", "sample_index", "dataset", "inclusion_probability"))
    for (_, response), share in plan.drawn.shares.items():
        row = named.loc[response]
        prompt_id, model, dataset = (guarded(str(row[column])) for column in ("prompt_id", "model", "dataset"))
        lines.writerow([prompt_id, model, row["sample_index"], dataset, repr(share)])
    return stream.getvalue().encode()
