"""Corrected scores and differences by theme, axis, category, language or level (groups as in `scores`), and whether these groups differ."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import fdtrc

from evalcore.rubric.corrected import (
    CORRECTED,
    JUDGE,
    KINDS,
    MIN_EXAMPLES_READ,
    EstimatorInputs,
    corrected_differences,
    corrected_scores,
    estimates_of,
    estimator_inputs,
)
from evalcore.rubric.data import Responses, RubricData
from evalcore.rubric.finding import CLEAR_BELOW, difference_words, score_words
from evalcore.rubric.scores import OF_CRITERIA, OF_EXAMPLES
from evalcore.stats.arrays import Floats, Numbers, codes_of
from evalcore.stats.intervals import NO_VALUE
from evalcore.stats.pair_tests import adjusted, holm
from evalcore.stats.wording import chance_words, counted, listed
from evalcore.study.schema import TASK_TAGS, Claim, Physicians

GROUPINGS = (*OF_EXAMPLES, *OF_CRITERIA)
DIFFERENCE, JUDGE_ERROR = "difference", "judge_error"
SHOWN = JUDGE, CORRECTED  # what the Models page shows of a group, and a test compares
TEST_COLUMNS = ["evaluation", "about", "model_1", "model_2", "n_groups", "n_left_out", "f", "df_1", "df_2", "p"]
NEEDED = ("example_id", "n_expected", "model", "evaluation", "reachable", "n_chars")  # of responses
NEVER = np.iinfo(np.int32).max  # more criteria than any response has: it is then not whole
PLURALS = {"category": "categories", "axis": "axes", "difficulty": "difficulties", "specialty": "specialties"}
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
    """
    if judges is not None:
        rubric_data = rubric_data.by(list(judges))
    if grouping in TASK_TAGS and grouping not in rubric_data.items:
        return {}
    (codes, names), of_items = codes_of(rubric_data.items[grouping]), rubric_data.responses
    table, items = of_items.table[list(NEEDED)], rubric_data.items[["points"]]
    if grouping in OF_CRITERIA:  # a response is asked the criteria of one group after the other
        known = items["points"].notna().to_numpy()
        for judge in rubric_data.judges:
            known = known & rubric_data.judged[judge].notna().to_numpy()
        whole = of_items.n_of(known) >= table["n_expected"].to_numpy(dtype=np.float64)
        table = table.assign(n_expected=np.where(whole, 0, NEVER))
    rubric_data = replace(rubric_data, items=items, repeats=pd.DataFrame())
    rubric_data.kept["responses"] = Responses(items, of_items.codes, table)
    return {
        str(name): estimator_inputs(part, judges=judges, settled=settled, weights=weights)
        for name, part in zip(names, rubric_data.parts(codes, len(names)), strict=True)
        if len(part.items)
    }


def group_corrected_scores(
    groups: Groups, *, claim: Claim, physicians: Physicians, kinds: Sequence[str] = KINDS
) -> pd.DataFrame:
    """Group, and the columns of `corrected_scores`: one row a group, model and evaluation."""
    return _joined(groups, lambda inputs: corrected_scores(inputs, claim=claim, physicians=physicians, kinds=kinds))


def group_differences(groups: Groups, *, claim: Claim, physicians: Physicians) -> pd.DataFrame:
    """The columns of `corrected_differences` in each group, with group; p_holm is Holm's over all groups and pairs of the evaluation that have a p."""
    table = _joined(groups, lambda inputs: corrected_differences(inputs, claim=claim, physicians=physicians))
    return _holm_within(table, ["evaluation"])


def _joined(groups: Groups, table_of: Callable[[Sequence[EstimatorInputs]], pd.DataFrame]) -> pd.DataFrame:
    tables = {group: table_of(inputs) for group, inputs in groups.items()} or {"": table_of([])}
    whole = pd.concat([table.assign(group=group) for group, table in tables.items()], ignore_index=True)
    return whole[["group", *(name for name in whole.columns if name != "group")]]


def _holm_within(table: pd.DataFrame, of: list[str]) -> pd.DataFrame:
    p_holm = np.full(len(table), np.nan)
    for rows in table.groupby(of, sort=False, observed=True).indices.values():
        p_holm[rows] = adjusted(table["p"].to_numpy(dtype=np.float64)[rows], holm)
    return table.assign(p_holm=p_holm)


def interactions(groups: Groups, grouping: str) -> pd.DataFrame:
    """Whether differences of models, and errors of the judge, are the same in all groups: a test of each.

    It is for new examples and these physicians. What is compared is, of each group g, the difference of two models' corrected scores, or a model's
    score by the judge only less its corrected one. With its estimate t_g, variance v_g and degrees of freedom d_g of each of G groups:

        groups of examples     Welch's test of equal means, weights w_g = 1/v_g, W = sum w_g, L = sum (1 - w_g/W)^2 / d_g
                               F = sum w_g (t_g - sum w t/W)^2 / (G-1) / (1 + 2 (G-2)/(G^2-1) L)      on G-1 and (G^2-1)/(3 L)
        groups of criteria     they share examples, so the estimates are correlated: V from the examples' joint influence values, C the
                               G-1 contrasts with the first group, T2 = (C t)' (C V C')^-1 C t, d the smallest of d_g
                               F = T2 (d - G + 2) / (d (G-1))      on G-1 and d - G + 2  (Hotelling)

    Returns:
        `TEST_COLUMNS` and p_holm (over the rows of the evaluation about the same), one row an evaluation and pair of models (about `difference`), and one an
        evaluation and model (about `judge_error`, model_2 empty); n_left_out: groups of which too little was read of either model. NaN with fewer than two
        groups, too few degrees of freedom, or a group without variance (Welch 1951; Hotelling 1931).
    """
    rows = []
    members = [{(model.evaluation, model.model): model for model in inputs} for inputs in groups.values()]
    models = sorted({key for group in members for key in group})
    test_of = _hotelling if grouping in OF_CRITERIA else _welch
    for evaluation in dict.fromkeys(name for name, _ in models):
        names = [model for name, model in models if name == evaluation]
        for one, other in [*combinations(names, 2), *((name, "") for name in names)]:
            effects = []
            for group in members:
                first, second = group.get((evaluation, one)), group.get((evaluation, other))
                if first is not None and (second is not None or not other):
                    effects.append(_effect(first, second))
            known = [effect for effect in effects if effect is not None]
            test = (np.nan,) * 3
            if len(known) > 1 and all(effect.variance > 0 for effect in known):
                test = test_of(known, *(np.array([effect[place] for effect in known]) for place in range(3)))
            about = DIFFERENCE if other else JUDGE_ERROR
            p = float(fdtrc(test[1], test[2], test[0]))
            rows.append((evaluation, about, one, other, len(known), len(members) - len(known), *test, p))
    return _holm_within(pd.DataFrame(rows, columns=TEST_COLUMNS), ["evaluation", "about"])


class _Effect(NamedTuple):
    """One group's estimate, its variance and degrees of freedom, and what each example adds to its error."""

    value: float
    variance: float
    freedom: float
    example_ids: Numbers
    adds: Floats


def _effect(one: EstimatorInputs, other: EstimatorInputs | None) -> _Effect | None:
    """A difference of two models, or without another one a model's judge-only less its corrected score; None where too little was read."""
    estimates = estimates_of(one, kinds=SHOWN).of_kind
    corrected = estimates[CORRECTED]
    freedom, unseen = corrected.freedom, corrected.unseen
    if other is not None:
        second = estimates_of(other, kinds=SHOWN).of_kind[CORRECTED]
        if corrected.made is None or second.made is None:
            return None
        if np.array_equal(one.example_ids, other.example_ids):
            example_ids, apart = one.example_ids, corrected.made.psi_on_all - second.made.psi_on_all
        else:
            of_both = one.example_ids, other.example_ids
            example_ids, *places = np.intersect1d(*of_both, assume_unique=True, return_indices=True)
            apart = corrected.made.psi_on(places[0]) - second.made.psi_on(places[1])
        freedom, unseen = min(freedom, second.freedom), unseen + second.unseen
    else:
        example_ids, apart = one.example_ids, estimates[JUDGE].psi - corrected.psi
    n = len(apart)
    freedom, value = min(freedom, n - 1), float(apart.mean()) if n else np.nan
    if not freedom > 0 or np.isnan(value):
        return None
    adds = (apart - value) / n
    return _Effect(value, float(adds @ adds) * n / (n - 1) + unseen, freedom, example_ids, adds)


Test = tuple[float, float, float]  # F, both degrees of freedom


def _welch(effects: list[_Effect], values: Floats, variances: Floats, freedoms: Floats) -> Test:
    n = len(effects)
    weights = 1 / variances
    parts = weights / weights.sum()
    lost = float(((1 - parts) ** 2 / freedoms).sum())
    between = float((weights * (values - parts @ values) ** 2).sum()) / (n - 1)
    f = between / (1 + 2 * (n - 2) / (n**2 - 1) * lost)
    return f, n - 1, (n**2 - 1) / (3 * lost)


def _hotelling(effects: list[_Effect], values: Floats, variances: Floats, freedoms: Floats) -> Test:
    n, degrees = len(effects), float(freedoms.min())
    left = degrees - n + 2
    if left <= 0:
        return (np.nan,) * 3
    adds = np.zeros((n, 1 + max(int(effect.example_ids[-1]) for effect in effects)))
    for row, effect in zip(adds, effects, strict=True):
        size = len(effect.adds)
        row[effect.example_ids] = effect.adds * np.sqrt(size / (size - 1))
    together = adds @ adds.T
    np.fill_diagonal(together, variances)
    apart, first = values[1:] - values[0], together[0]
    of_contrasts = together[1:, 1:] - first[1:] - first[1:, None] + first[0]
    squared = float(apart @ np.linalg.pinv(of_contrasts, hermitian=True) @ apart)
    return squared * left / (degrees * (n - 1)), n - 1, left


def interaction_words(test: Mapping[Any, Any], grouping: str) -> str:
    """Whether something is the same in all groups, in a sentence, by a row of `interactions`."""
    subject = f"the difference between {test['model_1']} and {test['model_2']}"
    if test["about"] == JUDGE_ERROR:
        subject = f"the judge's error about {test['model_1']}"
    many = counted(test["n_groups"] + test["n_left_out"], grouping, PLURALS.get(grouping, grouping + "s"))
    if np.isnan(test["p_holm"]):
        return f"Whether {subject} depends on the {grouping} cannot be said: enough is read in {test['n_groups']} of {many}."
    p = f"p {chance_words(test['p_holm'])} by Holm"
    how = f"(F({test['df_1']:.0f}, {test['df_2']:.0f}) = {test['f']:.1f}, {p}; {test['n_groups']} of {many})"
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

    Without a stated primary comparison, or where its models are not here, the two models with the best scores, by the mean over groups, are compared.
    """
    if scores.empty:
        return f"Nothing here is tagged with a {grouping}: the tags come with the file of examples."
    if not scores["enough"].astype(bool).any():
        if (most := scores["n_examples"].max()) >= MIN_EXAMPLES_READ:
            return f"Too little is read for a corrected score by {grouping}; the table says what lacks. Assign more reads on Study."
        start = f"No {grouping} has a corrected score: at least {MIN_EXAMPLES_READ} examples must be read"
        return f"{start}, and the largest of these {PLURALS.get(grouping, grouping + 's')} has {most:,}."
    pairs = tests.loc[tests["about"].eq(DIFFERENCE)]
    means = scores.groupby("model", observed=True)["corrected"].mean().dropna().sort_values(ascending=False)
    sentences: list[str] = []
    for pair in filter(None, (primary, tuple(means.index[:2]))):
        rows = pairs.loc[pairs["model_1"].isin(pair) & pairs["model_2"].isin(pair)]
        if len(rows):
            sentences = [interaction_words(row, grouping) for row in rows.to_dict(orient="records")]
            break
    return " ".join([*sentences, error_words(tests.loc[tests["about"].eq(JUDGE_ERROR)], grouping)])


def group_columns(scores: pd.DataFrame, grouping: str) -> dict[str, Any]:
    """A row a group and a column a model, by `group_corrected_scores`: its corrected score, or what lacks for one."""
    words = []
    for row in scores.to_dict(orient="records"):
        if row["enough"]:
            words.append(score_words(row["corrected"], row["corrected_low"], row["corrected_high"]))
        elif not row["n_items"]:
            words.append(NO_VALUE)
        elif row["n_examples"] < MIN_EXAMPLES_READ:
            words.append(f"only {counted(int(row['n_examples']), 'example')}")
        else:
            words.append(f"needs {counted(int(row['n_needed']), 'more criterion', 'more criteria')}")
    columns = _by_model(scores.assign(words=words), grouping)
    return columns | {"Criteria read": scores.groupby("group", sort=False)["n_read"].sum()}


def judged_columns(judged: pd.DataFrame, grouping: str) -> dict[str, Any]:
    """The same of the judge's opinion, by `group_scores` of one grouping."""
    words = list(map(score_words, judged["score"], judged["low"], judged["high"]))
    return _by_model(judged.assign(words=words), grouping, ", judge only")


def group_difference_columns(differences: pd.DataFrame, grouping: str) -> dict[str, Any]:
    """The differences of models in each group, by `group_differences`."""
    return {
        grouping.capitalize(): differences["group"],
        "Models": differences["model_1"] + " − " + differences["model_2"],
        "Difference": list(map(difference_words, differences["difference"], differences["low"], differences["high"])),
        "p, Holm": differences["p_holm"].map(chance_words),
    }


def _by_model(table: pd.DataFrame, grouping: str, more: str = "") -> dict[str, Any]:
    cells = table.pivot(index="group", columns="model", values="words").reindex(table["group"].drop_duplicates())
    columns: dict[str, Any] = {grouping.capitalize(): cells.index}
    columns |= {f"{model}{more}": cells[model].fillna(NO_VALUE) for model in cells}
    return columns | {"Examples": table.groupby("group", sort=False)["n_examples"].max()}
