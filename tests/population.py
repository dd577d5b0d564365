"""Drawn studies for the statistics: rubrics as real ones are built, judges and physicians that err as they are told to."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from evalcore.rubric import corrected
from evalcore.rubric.corrected import KINDS, estimates_of, estimator_inputs
from evalcore.rubric.data import READ_COLUMNS, RubricData
from evalcore.study.frames import ITEM_BASE

THEMES = ("global_health", "hedging", "communication", "context_seeking")
AXES = ("completeness", "accuracy", "context_awareness", "communication_quality")


def drawn(
    rng: np.random.Generator,
    *,
    n_examples: int = 200,
    models: Mapping[str, float] | Sequence[str] = ("Alder",),
    judges: Mapping[str, float] | None = None,
    readers: Sequence[str] = ("Dr. Noor", "Dr. Brandt"),
    n_readers: int = 1,
    reader_accuracy: float = 1.0,
    share_read: float = 0.2,
    whole_responses: bool = False,
    spread: float = 1.0,
    n_repeats: int = 1,
    importance: bool = False,
    leanings: Mapping[str, float] | None = None,
) -> tuple[RubricData, pd.Series]:
    """A study and the truth that it was drawn from.

    Args:
        rng: Chance.
        n_examples: Each with 3 to 12 criteria, a quarter of them undesirable.
        models: Names with the shift of their ability on the logit scale; names alone: 0.
        judges: Names with their accuracy on each label, e.g. {"judge": 0.8}.
        readers: Physicians; each item read goes to `n_readers` of them, drawn at random.
        n_readers: Reads an item.
        reader_accuracy: Of a read against the truth; 1.0: the truth itself.
        share_read: With this probability each unit is drawn.
        whole_responses: Units are responses; else items.
        spread: Standard deviation of the examples' difficulty on the logit scale, which makes criteria of one example alike.
        n_repeats: Responses of a model to an example.
        importance: Units are drawn with `mild_probabilities`; `share_read` is then their mean.
        leanings: By reader, the share of not met that they call met (above 0), or of met that they call not met (below 0); others: 0.

    Returns:
        The study, and the truth: met (1.0 or 0.0) of every item.
    """
    ability = models if isinstance(models, Mapping) else dict.fromkeys(models, 0.0)
    n_criteria = rng.integers(3, 13, n_examples)
    example = np.repeat(np.arange(1, n_examples + 1), n_criteria)
    position = np.concatenate([np.arange(1, n + 1) for n in n_criteria])
    points = np.where((position > 1) & (rng.random(len(example)) < 0.25), -1, 1) * rng.integers(1, 11, len(example))
    axis, theme = rng.integers(0, len(AXES), len(example)), rng.integers(0, len(THEMES), n_examples)
    difficulty = rng.normal(0, spread, n_examples)
    n_rubric = np.bincount(example, minlength=n_examples + 1)
    parts = []
    for number, (model, shift) in enumerate(ability.items()):
        for repeat in range(n_repeats):
            response = (number * n_repeats + repeat) * n_examples + example
            chance = 1 / (
                1 + np.exp(-(shift + difficulty[example - 1] + 0.3 * rng.normal(size=n_examples)[example - 1]))
            )
            parts.append(
                pd.DataFrame(
                    {
                        "item_id": response * ITEM_BASE + np.arange(1, len(example) + 1),
                        "response_id": response,
                        "criterion_id": np.arange(1, len(example) + 1),
                        "example_id": example,
                        "position": position,
                        "points": points.astype(float),
                        "model": model,
                        "evaluation": "invented",
                        "sample_index": repeat,
                        "n_expected": n_rubric[example],
                        "axis": np.take(AXES, axis),
                        "level": "example",
                        "cluster": None,
                        "theme": np.take(THEMES, theme[example - 1]),
                        "category": None,
                        "language": "en",
                        "n_chars": (400 + 200 * rng.random(n_examples))[example - 1].astype(int),
                        "reachable": True,
                        "truth": (rng.random(len(example)) < chance).astype(float),
                    }
                )
            )
    items = pd.concat(parts, ignore_index=True)
    truth = items.pop("truth")
    names = ("model", "evaluation", "axis", "level", "cluster", "theme", "category", "language")
    items = items.astype(dict.fromkeys(names, "category"))
    told = {
        judge: np.where(rng.random(len(items)) < accuracy, truth, 1 - truth).astype(np.float32)
        for judge, accuracy in (judges or {"Magpie": 0.8}).items()
    }
    unit = items["response_id"] if whole_responses else items["item_id"]
    numbers, codes = np.unique(unit, return_inverse=True)
    probabilities = np.full(len(numbers), share_read)
    if importance:
        possible = items["points"].clip(lower=0).groupby(items["response_id"]).transform("sum").to_numpy()
        mild = mild_probabilities(
            items["points"].to_numpy() / possible, np.column_stack(list(told.values())), share_read
        )
        probabilities = np.bincount(codes, mild) / np.bincount(codes)
    taken = np.flatnonzero((rng.random(len(numbers)) < probabilities)[codes])
    reads = []
    order = np.argsort(rng.random((len(numbers), len(readers))), axis=1)[codes[taken], :n_readers]
    for place in range(n_readers):
        right = rng.random(len(taken)) < reader_accuracy
        reads.append(
            pd.DataFrame(
                {
                    "row": taken,
                    "rater": np.take(list(readers), order[:, place]),
                    "met": np.where(right, truth.to_numpy()[taken], 1 - truth.to_numpy()[taken]),
                }
            )
        )
    read = pd.concat(reads, ignore_index=True)
    if leanings:
        lean = read["rater"].map(leanings).fillna(0.0).to_numpy()
        read["met"] = leaning(rng, read["met"].to_numpy(), lean)
    for column in ("item_id", "example_id", "response_id"):
        read[column] = items[column].to_numpy()[read["row"]]
    read = read.assign(
        stage="first",
        blinded=True,
        selection="importance" if importance else "random",
        inclusion_probability=probabilities[codes[read["row"]]],
        unit=unit.to_numpy()[read["row"]],
    )[list(READ_COLUMNS)]
    return RubricData(items, pd.DataFrame(told), read), truth


def mild_probabilities(moves: np.ndarray, labels: np.ndarray, share: float) -> np.ndarray:
    """The probabilities of a draw by importance: in proportion to |moves|, and to .5 where judges split, .3 where they agree.

    At least a fifth of their mean and at most 1; `share` is their mean.
    """
    sizes = np.abs(moves) * np.where(labels.min(axis=1) == labels.max(axis=1), 0.3, 0.5)
    sizes = np.maximum(sizes, sizes.mean() / 5)
    low, high = 0.0, 1e6 / sizes.mean()
    for _ in range(40):
        scale = (low + high) / 2
        low, high = (scale, high) if np.minimum(scale * sizes, 1).mean() < share else (low, scale)
    return np.minimum(high * sizes, 1)


def leaning(rng: np.random.Generator, met: np.ndarray, lean: np.ndarray) -> np.ndarray:
    """Votes of physicians who lean: of not met the share `lean` becomes met; below 0, of met the share -lean becomes not met."""
    return np.where(rng.random(len(met)) < np.abs(lean), (lean > 0).astype(float), met)


def example_terms(rubric_data: RubricData) -> pd.DataFrame:
    """What each example adds to each model's score: model, example_id, share, and the influence values psi_KIND."""
    tables = []
    for about in estimator_inputs(rubric_data):
        psi = {f"psi_{kind}": estimates_of(about).of_kind[kind].psi for kind in KINDS}
        columns = {"model": about.model, "example_id": about.example_ids, "share": about.population.shares, **psi}
        tables.append(pd.DataFrame(columns))
    return pd.concat(tables, ignore_index=True)


def corrected_scores(rubric_data: RubricData, *, judges=None, settled=False, weights=None, **claims) -> pd.DataFrame:
    """`corrected.corrected_scores` of a study."""
    return corrected.corrected_scores(
        corrected.estimator_inputs(rubric_data, judges=judges, settled=settled, weights=weights), **claims
    )


def corrected_differences(
    rubric_data: RubricData, *, judges=None, settled=False, weights=None, **claims
) -> pd.DataFrame:
    """`corrected.corrected_differences` of a study."""
    return corrected.corrected_differences(
        corrected.estimator_inputs(rubric_data, judges=judges, settled=settled, weights=weights), **claims
    )
