"""The part of a study that a comparison of models is about: a data set, some of its examples, some of the judges."""

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from evalcore.rubric.benchmark import THEMES, Weighting, weighting
from evalcore.rubric.data import RubricData
from evalcore.stats.wording import listed

CONSENSUS = "consensus"
"""The subset whose examples are scored on the criteria of the level cluster alone."""
CLUSTER = "cluster"
"""The level of criteria on which physicians agreed beforehand; a Consensus example is scored on these alone (HealthBench)."""


def evaluations(rubric_data: RubricData) -> pd.DataFrame:
    """The data sets of a study.

    Returns:
        One row a data set, most responses first: evaluation, n_examples, n_responses, n_models, n_repeats (most responses of one model
        to one example), judges (tuple of those with a label on it, most labels first).
    """
    rows = []
    codes = rubric_data.items["evaluation"].cat.codes.to_numpy()
    labelled = {judge: column.notna().to_numpy() for judge, column in rubric_data.judged.items()}
    for code, name in enumerate(rubric_data.items["evaluation"].cat.categories):
        inside = codes == code
        responses = rubric_data.items.loc[inside, ["response_id", "example_id", "model"]].drop_duplicates("response_id")
        if responses.empty:
            continue
        counts = {str(judge): int(np.count_nonzero(known & inside)) for judge, known in labelled.items()}
        rows.append(
            {
                "evaluation": name,
                "n_examples": responses["example_id"].nunique(),
                "n_responses": len(responses),
                "n_models": responses["model"].nunique(),
                "n_repeats": int(responses.groupby(["model", "example_id"], observed=True).size().max()),
                "judges": tuple(sorted((j for j, n in counts.items() if n), key=lambda judge: -counts[judge])),
            }
        )
    columns = ["evaluation", "n_examples", "n_responses", "n_models", "n_repeats", "judges"]
    return pd.DataFrame(rows, columns=columns).sort_values(
        "n_responses", ascending=False, ignore_index=True, kind="stable"
    )


def part(
    rubric_data: RubricData,
    *,
    evaluation: str,
    judges: Sequence[str] | None = None,
    example_ids: Collection[int] | None = None,
    clusters_only: bool = False,
) -> RubricData:
    """One data set, or some of its examples.

    Args:
        rubric_data: Of the whole study.
        evaluation: The data set.
        judges: These alone; None: all.
        example_ids: These alone; None: all.
        clusters_only: Only criteria of the level cluster, which are then all that a response is asked: how a Consensus example is scored.

    Returns:
        The items of that part with what was said of them; models, themes and the like that do not occur in it are no categories any more.
    """
    kept = rubric_data.items["evaluation"].eq(evaluation).to_numpy()
    if example_ids is not None:
        kept = kept & rubric_data.items["example_id"].isin(list(example_ids)).to_numpy()
    if clusters_only:
        kept = kept & rubric_data.items["level"].eq(CLUSTER).to_numpy()
    found = rubric_data.where(kept)
    items = found.items
    if clusters_only:
        items = items.assign(n_expected=items.groupby("response_id", sort=False)["item_id"].transform("size"))
    names = [name for name in items.columns if isinstance(items[name].dtype, pd.CategoricalDtype)]
    items = items.assign(**{name: items[name].cat.remove_unused_categories() for name in names})
    return replace(found, items=items, judged=found.judged if judges is None else found.judged[list(judges)])


def jury(rubric_data: RubricData, judges: Sequence[str]) -> tuple[RubricData, str]:
    """Several judges as one: the mean of their labels, where each of them gave one.

    Returns:
        The study with the judge that speaks for all, and its name; with one judge that judge.
    """
    chosen = list(judges)
    if len(chosen) == 1:
        return rubric_data.by(chosen), chosen[0]
    name = jury_name(chosen)
    mean = rubric_data.judged[chosen].mean(axis=1, skipna=False)
    return RubricData(rubric_data.items, mean.to_frame(name), rubric_data.reads), name


def jury_name(judges: Sequence[str]) -> str:
    """How several judges are named together.

    >>> jury_name(["Magpie"]), jury_name(["Magpie", "Wren"]), jury_name(["A", "B", "C"])
    ('Magpie', 'Magpie and Wren', 'A, B and C')
    """
    return listed(judges)


def common_weighting(rubric_data: RubricData) -> Weighting | None:
    """Weights that give each theme its share of the full benchmark; None where no example has one of its themes, or models answered different examples.

    Args:
        rubric_data: Of one data set.
    """
    examples = rubric_data.items[["example_id", "model", "theme"]].drop_duplicates(["example_id", "model"])
    n_examples, n_models = examples["example_id"].nunique(), examples["model"].nunique()
    if not examples["theme"].isin(list(THEMES)).any() or len(examples) != n_examples * n_models:
        return None
    return weighting(examples)
