"""The part of a study that a comparison of models is about: a data set, some of its examples, some of the judges."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from sqlmodel import Session

from evalcore.errors import OverreadError
from evalcore.rubric.benchmark import THEMES, Weighting, weighting
from evalcore.rubric.data import RubricData
from evalcore.stats.wording import listed
from evalcore.study import browse
from evalcore.study.analysis import Analysis

CONSENSUS = "consensus"
"""The subset whose examples are scored on the criteria of the level cluster alone."""
CLUSTER = "cluster"
"""The level of criteria on which physicians agreed beforehand; a Consensus example is scored on these alone (HealthBench)."""
NO_THEMES = "Weighted: expected examples with themes of the full benchmark, the same for every model, found others"


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


def jury(rubric_data: RubricData, judges: Sequence[str]) -> tuple[RubricData, str]:
    """The study with several judges as one, the mean of their labels where each of them gave one, and its name; with one judge that judge."""
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
    """Weights that give each theme its share of the full benchmark; None where no example has one of its themes, or models answered different examples."""
    examples = rubric_data.items[["example_id", "model", "theme"]].drop_duplicates(["example_id", "model"])
    n_examples, n_models = examples["example_id"].nunique(), examples["model"].nunique()
    if not examples["theme"].isin(list(THEMES)).any() or len(examples) != n_examples * n_models:
        return None
    return weighting(examples)


# ---------------------------------------------------------------- what an analysis names


def with_changes(spec: Analysis, changes: Mapping[str, Any]) -> Analysis:
    """The specification with these fields instead; another data set brings its own usual judge, unless judges are among the fields."""
    own = {"judges": ()} if changes.get("evaluation", spec.evaluation) != spec.evaluation else {}
    return replace(spec, **{**own, **changes})


def example_ids(session: Session, spec: Analysis) -> list[int] | None:
    """The members of the part of the data set that a specification names; None where it names none."""
    if spec.subset is None:
        return None
    return list(browse.examples(session, browse.Filters(subset=spec.subset))["example_id"])


def with_defaults(spec: Analysis, known: pd.DataFrame) -> Analysis:
    """The specification with data set and judges filled in: the judged data set with most responses, the judge with most labels on it (by `evaluations`).

    Raises:
        OverreadError: No judge has labelled anything, or not what the specification names.
    """
    of = {row["evaluation"]: tuple(row["judges"]) for row in known.to_dict(orient="records") if row["judges"]}
    if not of:
        msg = "No judge has labelled a response yet: import a file of results first"
        raise OverreadError(msg)
    evaluation = next(iter(of)) if spec.evaluation is None else spec.evaluation
    if evaluation not in of:
        msg = f"Data set: expected one of {', '.join(of)}, found {evaluation!r}"
        raise OverreadError(msg)
    if unknown := [judge for judge in spec.judges if judge not in of[evaluation]]:
        msg = f"Judges: expected some of {', '.join(of[evaluation])}, found {unknown[0]!r}"
        raise OverreadError(msg)
    return replace(spec, evaluation=evaluation, judges=spec.judges or of[evaluation][:1])


def part_of(rubric_data: RubricData, spec: Analysis, example_ids: Collection[int] | None = None) -> RubricData:
    """The part of the whole study that an analysis with data set and judges is about; `example_ids` are the members of its subset, None where it names none.

    Of the subset Consensus only criteria of the level cluster are left, which are then all that a response is asked. Models, themes and the like that
    do not occur in the part are no categories any more.
    """
    kept = rubric_data.items["evaluation"].eq(spec.evaluation or "")
    if example_ids is not None:
        kept &= rubric_data.items["example_id"].isin(list(example_ids))
    if spec.subset == CONSENSUS:
        kept &= rubric_data.items["level"].eq(CLUSTER)
    chosen = rubric_data.where(kept).by(spec.judges).with_used_names()
    if spec.subset == CONSENSUS:
        n_asked = chosen.items.groupby("response_id", sort=False)["item_id"].transform("size")
        chosen = replace(chosen, items=chosen.items.assign(n_expected=n_asked))
    return chosen


def weights_of(part: RubricData, spec: Analysis) -> pd.Series | None:
    """The weights of the examples, of those alone that have one above 0: what has no theme of the benchmark is left out and counted. None: all alike.

    Raises:
        OverreadError: Weights are asked for, and the examples have no themes to weight by.
    """
    if not spec.weighted:
        return None
    common = common_weighting(part)
    if common is None:
        raise OverreadError(NO_THEMES)
    return common.weights.loc[common.weights > 0]
