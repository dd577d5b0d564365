"""Corrected scores and differences by theme, axis, category, language or level, and whether they differ between these groups.

Each group's number is the whole study's estimator (`estimator`) on that group alone. As HealthBench defines scores, a group of examples (theme,
category, language) has their whole scores; a group of criteria (axis, level, cluster) has the same formula on its criteria alone.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import fdtrc

from evalcore.rubric.claims import MIN_EXAMPLES_READ
from evalcore.rubric.corrected import COLUMNS as SCORE_COLUMNS
from evalcore.rubric.corrected import (
    CORRECTED,
    JUDGE,
    EstimatorInputs,
    corrected_differences,
    corrected_scores,
    estimates_of,
    estimator_inputs,
    on_examples,
)
from evalcore.rubric.corrected import DIFFERENCE_COLUMNS as PAIR_COLUMNS
from evalcore.rubric.data import RubricData
from evalcore.rubric.finding import CLEAR_BELOW
from evalcore.rubric.scores import OF_CRITERIA, OF_EXAMPLES
from evalcore.stats.arrays import Floats, Numbers
from evalcore.stats.intervals import NO_VALUE
from evalcore.stats.pair_tests import adjusted, holm
from evalcore.stats.wording import chance_words, counted, listed
from evalcore.study.schema import Claim, Physicians

GROUPINGS = (*OF_EXAMPLES, *OF_CRITERIA)
DIFFERENCE, JUDGE_ERROR = "difference", "judge_error"
TEST_COLUMNS = [
    "evaluation", "about", "model_1", "model_2", "n_groups", "n_left_out", "f", "df_1", "df_2", "p", "p_holm",
]  # fmt: skip
NEVER = np.iinfo(np.int32).max
"""More criteria than any response has: it is then not whole."""
PLURALS = {"category": "categories", "axis": "axes"}

Groups = Mapping[str, Sequence[EstimatorInputs]]


def by_group(
    rubric_data: RubricData,
    grouping: str,
    *,
    judges: Sequence[str] | None = None,
    settled: bool = False,
    weights: pd.Series | None = None,
) -> Groups:
    """The `estimator_inputs` of each group, by name; what carries no tag is in none.

    A response that the whole study leaves out (a criterion or a label is missing) is left out of every group.

    Raises:
        ValueError: There is no such grouping, or a judge is not in the study.
    """
    if grouping not in GROUPINGS:
        msg = f"grouping: expected one of {', '.join(GROUPINGS)}, got {grouping}"
        raise ValueError(msg)
    if judges is not None and not set(judges) - set(rubric_data.judges):
        rubric_data = rubric_data.by(list(judges))
    codes, names = pd.factorize(rubric_data.items[grouping], sort=True)
    if grouping in OF_CRITERIA:
        rubric_data = _asked_group_by_group(rubric_data, codes)
    return {
        str(name): estimator_inputs(rubric_data.where(codes == code), judges=judges, settled=settled, weights=weights)
        for code, name in enumerate(names)
    }


def _asked_group_by_group(rubric_data: RubricData, groups: Numbers) -> RubricData:
    """With the criteria of its group as all that a response is asked, where it has all that the whole rubric asks."""
    items = rubric_data.items
    responses = pd.factorize(items["response_id"])[0]
    n = int(responses.max()) + 1 if len(responses) else 0
    missing = items["points"].isna().to_numpy() | rubric_data.judged.isna().to_numpy().any(axis=1)
    n_known = np.bincount(responses, ~missing, minlength=n)[responses]
    whole = n_known >= items["n_expected"].to_numpy(dtype=np.float64)
    _, cells = np.unique(np.column_stack([responses, groups]), axis=0, return_inverse=True)
    in_group = np.bincount(cells)[cells] if len(cells) else np.empty(0, dtype=np.int64)
    return replace(rubric_data, items=items.assign(n_expected=np.where(whole, in_group, NEVER)))


def group_corrected_scores(groups: Groups, *, claim: Claim, physicians: Physicians) -> pd.DataFrame:
    """Each model's scores in each group, by the judge only, by physicians only, and corrected.

    Returns:
        One row a group, model and evaluation: group, and the columns of `corrected_scores`. A group of which too little was read says what
        lacks (`needed`), and has no corrected score.
    """
    tables = {group: corrected_scores(inputs, claim=claim, physicians=physicians) for group, inputs in groups.items()}
    return _joined(tables, SCORE_COLUMNS)


def group_differences(groups: Groups, *, claim: Claim, physicians: Physicians) -> pd.DataFrame:
    """The differences of every two models' corrected scores in each group.

    Returns:
        One row a group, pair and evaluation: group, and the columns of `corrected_differences`; p_holm is Holm's over all groups and pairs of the
        evaluation that have a p.
    """
    tables = {
        group: corrected_differences(inputs, claim=claim, physicians=physicians) for group, inputs in groups.items()
    }
    return _holm_within(_joined(tables, PAIR_COLUMNS), ["evaluation"])


def interactions(groups: Groups, grouping: str) -> pd.DataFrame:
    """Whether differences of models, and errors of the judge, are the same in all groups: a test of each.

    It is for new examples and these physicians. What is compared is, of each group g, the difference of two models' corrected scores, or a model's
    score by the judge only less its corrected one. With its estimate t_g, variance v_g and degrees of freedom d_g of each of G groups:

        groups of examples     Welch's test of equal means, weights w_g = 1/v_g, W = sum w_g, L = sum (1 - w_g/W)^2 / d_g
                               F = sum w_g (t_g - sum w t/W)^2 / (G-1) / (1 + 2 (G-2)/(G^2-1) L)      on G-1 and (G^2-1)/(3 L)
        groups of criteria     they share examples, so the estimates are correlated: V from the examples' joint influence values, C the
                               G-1 contrasts with the first group, T2 = (C t)' (C V C')^-1 C t, d the smallest of d_g
                               F = T2 (d - G + 2) / (d (G-1))      on G-1 and d - G + 2  (Hotelling)

    Groups of which too little was read of either model are left out and counted. A p that is not small does not say that groups are alike.

    Returns:
        One row an evaluation and pair of models (about `difference`), and one an evaluation and model (about `judge_error`, model_2 empty):
        evaluation, about, model_1, model_2, n_groups, n_left_out (groups), f, df_1, df_2, p, and p_holm (Holm's, over the rows of the evaluation about the
        same). NaN with fewer than two groups, too few degrees of freedom, or a group without any variance.

    References:
        Welch 1951; Hotelling 1931.
    """
    rows = []
    members = [{(model.evaluation, model.model): model for model in inputs} for inputs in groups.values()]
    models = sorted({key for group in members for key in group})
    for evaluation in dict.fromkeys(name for name, _ in models):
        names = [model for name, model in models if name == evaluation]
        for one, other in [*combinations(names, 2), *((name, "") for name in names)]:
            effects = []
            for group in members:
                first, second = group.get((evaluation, one)), group.get((evaluation, other))
                if first is not None and (second is not None or not other):
                    effects.append(_effect(first, second))
            known = [effect for effect in effects if effect is not None]
            test = _hotelling(known) if grouping in OF_CRITERIA else _welch(known)
            rows.append(
                {
                    "evaluation": evaluation,
                    "about": DIFFERENCE if other else JUDGE_ERROR,
                    "model_1": one,
                    "model_2": other,
                    "n_groups": len(known),
                    "n_left_out": len(members) - len(known),
                    **dict(zip(("f", "df_1", "df_2", "p"), test, strict=True)),
                }
            )
    return _holm_within(pd.DataFrame(rows, columns=TEST_COLUMNS[:-1]), ["evaluation", "about"])[TEST_COLUMNS]


@dataclass(frozen=True)
class _Effect:
    """One group's estimate, its variance and degrees of freedom, and what each example adds to its error."""

    value: float
    variance: float
    freedom: float
    example_ids: Numbers
    adds: Floats


def _effect(one: EstimatorInputs, other: EstimatorInputs | None) -> _Effect | None:
    """A difference of two models, or without another one a model's judge-only less its corrected score; None where too little was read."""
    estimates = estimates_of(one).of_kind
    corrected = estimates[CORRECTED]
    freedom, unseen = corrected.freedom, corrected.unseen
    if other is not None:
        second = estimates_of(other).of_kind[CORRECTED]
        example_ids, *places = np.intersect1d(one.example_ids, other.example_ids, True, return_indices=True)  # noqa: FBT003
        apart = on_examples(one, corrected, places[0]) - on_examples(other, second, places[1])
        freedom, unseen = min(freedom, second.freedom), unseen + second.unseen
    else:
        example_ids, apart = one.example_ids, estimates[JUDGE].psi - corrected.psi
    n = len(apart)
    freedom = min(freedom, n - 1)
    if not freedom > 0 or np.isnan(apart).any():
        return None
    value = float(apart.mean())
    return _Effect(value, float(apart.var(ddof=1)) / n + unseen, freedom, example_ids, (apart - value) / n)


Test = tuple[float, float, float, float]
"""F, both degrees of freedom, p."""


def _welch(effects: list[_Effect]) -> Test:
    n = len(effects)
    values, variances, freedoms = (np.array(column) for column in _columns(effects))
    if n < 2 or not (variances > 0).all():  # noqa: PLR2004
        return (np.nan,) * 4
    weights = 1 / variances
    parts = weights / weights.sum()
    lost = float(((1 - parts) ** 2 / freedoms).sum())
    between = float((weights * (values - parts @ values) ** 2).sum()) / (n - 1)
    f = between / (1 + 2 * (n - 2) / (n**2 - 1) * lost)
    return _with_p(f, n - 1, (n**2 - 1) / (3 * lost))


def _hotelling(effects: list[_Effect]) -> Test:
    n = len(effects)
    values, variances, freedoms = (np.array(column) for column in _columns(effects))
    left = (freedoms.min() if n else 0) - n + 2
    if n < 2 or left <= 0 or not (variances > 0).all():  # noqa: PLR2004
        return (np.nan,) * 4
    all_ids = np.unique(np.concatenate([effect.example_ids for effect in effects]))
    adds = np.zeros((len(all_ids), n))
    for column, effect in enumerate(effects):
        size = len(effect.example_ids)
        adds[np.searchsorted(all_ids, effect.example_ids), column] = effect.adds * np.sqrt(size / (size - 1))
    together = adds.T @ adds
    np.fill_diagonal(together, variances)
    contrasts = np.column_stack([-np.ones(n - 1), np.eye(n - 1)])
    apart = contrasts @ values
    squared = float(apart @ np.linalg.pinv(contrasts @ together @ contrasts.T, hermitian=True) @ apart)
    degrees = float(freedoms.min())
    return _with_p(squared * left / (degrees * (n - 1)), n - 1, left)


def _columns(effects: list[_Effect]) -> Iterator[list[float]]:
    yield [effect.value for effect in effects]
    yield [effect.variance for effect in effects]
    yield [effect.freedom for effect in effects]


def _with_p(f: float, first: float, second: float) -> Test:
    return f, first, second, float(fdtrc(first, second, f))


def _joined(tables: Mapping[str, pd.DataFrame], columns: Sequence[str]) -> pd.DataFrame:
    if not tables:
        return pd.DataFrame(columns=["group", *columns])
    whole = pd.concat([table.assign(group=group) for group, table in tables.items()], ignore_index=True)
    return whole[["group", *(name for name in whole.columns if name != "group")]]


def _holm_within(table: pd.DataFrame, of: list[str]) -> pd.DataFrame:
    p_holm = np.full(len(table), np.nan)
    for rows in table.groupby(of, sort=False, observed=True).indices.values():
        p_holm[rows] = adjusted(table["p"].to_numpy(dtype=np.float64)[rows], holm)
    return table.assign(p_holm=p_holm)


def interaction_words(test: Mapping[Any, Any], grouping: str) -> str:
    """Whether something is the same in all groups, in a sentence, by a row of `interactions`.

    >>> test = {"about": "difference", "model_1": "A", "model_2": "B", "n_groups": 4, "n_left_out": 1}
    >>> interaction_words(test | {"f": 5.2, "df_1": 3, "df_2": 61.4, "p_holm": 0.003}, "theme")
    'The difference between A and B depends on the theme (F(3, 61) = 5.2, p 0.003 by Holm; 4 of 5 themes).'
    """
    subject = f"the difference between {test['model_1']} and {test['model_2']}"
    if test["about"] == JUDGE_ERROR:
        subject = f"the judge's error about {test['model_1']}"
    many, n = PLURALS.get(grouping, grouping + "s"), test["n_groups"] + test["n_left_out"]
    if np.isnan(test["p_holm"]):
        return f"Whether {subject} depends on the {grouping} cannot be said: enough is read in {test['n_groups']} of {counted(n, grouping, many)}."
    p = f"p {chance_words(test['p_holm'])} by Holm"
    how = f"(F({test['df_1']:.0f}, {test['df_2']:.0f}) = {test['f']:.1f}, {p}; {test['n_groups']} of {counted(n, grouping, many)})"
    if test["p_holm"] < CLEAR_BELOW:
        return f"{subject[0].upper()}{subject[1:]} depends on the {grouping} {how}."
    return f"Whether {subject} depends on the {grouping} is not clear {how}."


def error_words(tests: pd.DataFrame, grouping: str) -> str:
    """Of which models the judge errs differently between groups, in a sentence, by the rows of `interactions` about the judge's error."""
    known = tests.loc[tests["p_holm"].notna()]
    if known.empty:
        return f"Whether the judge's error depends on the {grouping} cannot be said yet."
    clear = known.loc[known["p_holm"] < CLEAR_BELOW]
    if clear.empty:
        lowest = chance_words(known["p_holm"].min())
        return f"Whether the judge's error depends on the {grouping} is not clear (smallest p {lowest} by Holm)."
    highest = chance_words(clear["p_holm"].max())
    p = f"p {highest}" if len(clear) == 1 else f"p at most {highest.removeprefix('< ')}"
    return f"The judge's error depends on the {grouping} for {listed(clear['model_1'])} ({p} by Holm)."


def group_words(
    scores: pd.DataFrame, tests: pd.DataFrame, grouping: str, primary: tuple[str, str] | None = None
) -> str:
    """Whether two models' difference depends on the group, and for which models the judge's error does; where no group has a score, what lacks.

    `scores` are `group_corrected_scores` of one evaluation, `tests` its `interactions`. Without a stated primary comparison, or where its models are
    not here, the two models with the best scores, by the mean over groups, are compared.
    """
    if not scores["enough"].astype(bool).any():
        return _nothing_yet(scores, grouping)
    pairs = tests.loc[tests["about"].eq(DIFFERENCE)]
    means = scores.groupby("model", observed=True)["corrected"].mean().dropna().sort_values(ascending=False)
    sentences: list[str] = []
    for pair in filter(None, (primary, tuple(means.index[:2]))):
        rows = pairs.loc[pairs["model_1"].isin(pair) & pairs["model_2"].isin(pair)]
        if len(rows):
            sentences = [interaction_words(row, grouping) for row in rows.to_dict(orient="records")]
            break
    return " ".join([*sentences, error_words(tests.loc[tests["about"].eq(JUDGE_ERROR)], grouping)])


def _nothing_yet(scores: pd.DataFrame, grouping: str) -> str:
    """Why no group has a corrected score, and what would change it."""
    if scores.empty:
        return f"Nothing here is tagged with a {grouping}: the tags come with the file of examples."
    most = scores["n_examples"].max()
    if most < MIN_EXAMPLES_READ:
        return (
            f"No {grouping} has a corrected score: at least {MIN_EXAMPLES_READ} examples must be read, and the largest of these "
            f"{PLURALS.get(grouping, grouping + 's')} has {most:,}."
        )
    return f"Too little is read for a corrected score by {grouping}; the table says what lacks. Assign more reads on Study."


def lacking_words(row: Mapping[Any, Any]) -> str:
    """What a group lacks for a corrected score, in the few words of a table's cell, by a row of `group_corrected_scores`.

    >>> lacking_words({"n_examples": 4, "n_items": 46, "n_read": 23, "n_needed": 115})
    'only 4 examples'
    >>> lacking_words({"n_examples": 24, "n_items": 400, "n_read": 22, "n_needed": 8})
    'needs 8 more criteria'
    """
    if not row["n_items"]:
        return NO_VALUE
    if row["n_examples"] < MIN_EXAMPLES_READ:
        return f"only {counted(int(row['n_examples']), 'example')}"
    return f"needs {counted(int(row['n_needed']), 'more criterion', 'more criteria')}"
