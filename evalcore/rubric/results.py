"""All numbers of one analysis; commands, methods and bundle read and compute in one go (`compute`), pages keep frames and call the same functions."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pandas as pd

from evalcore.errors import refuse
from evalcore.rubric import corrected, queries
from evalcore.rubric.benchmark import Weighting, weighting
from evalcore.rubric.data import RubricData
from evalcore.rubric.finding import difference_words, finding, pair_row
from evalcore.rubric.length_adjusted import penalty_of
from evalcore.rubric.sensitivity import sensitivity
from evalcore.stats.pair_tests import Verdict, against_margin, margin_words
from evalcore.stats.wording import chance_words, listed
from evalcore.study import browse, contents
from evalcore.study.analysis import CLAIM_WORDS, PHYSICIANS_WORDS, Analysis, StatedAnalysis, when_words
from evalcore.study.schema import Claim, Physicians

if TYPE_CHECKING:
    from evalcore.study.db import Session

# a subset, and the level of criteria on which physicians agreed beforehand: its examples are scored on these alone (HealthBench)
CONSENSUS, CLUSTER = "consensus", "cluster"
CLAIMS = (  # what an interval may hold for, the widest first
    (Claim.NEW_EXAMPLES, Physicians.IN_GENERAL),
    (Claim.NEW_EXAMPLES, Physicians.THESE),
    (Claim.BENCHMARK, Physicians.IN_GENERAL),
    (Claim.BENCHMARK, Physicians.THESE),
)
FIELDS = {  # what may be chosen otherwise for looking, in words
    "evaluation": "data set", "subset": "examples", "judges": "judge", "claim": "claim", "physicians": "physicians",
    "settled": "adjudicated labels", "weighted": "weights",
}  # fmt: skip


def evaluations(rubric_data: RubricData) -> pd.DataFrame:
    """The data sets of a study, a row each, most responses first: n_repeats (most of one model to one example), judges (those with a label, most first)."""
    of_items, responses = rubric_data.responses, rubric_data.responses.table
    counts = {"n_examples": ("example_id", "nunique"), "n_responses": ("response_id", "size")}
    table = responses.groupby("evaluation", observed=True).agg(**counts, n_models=("model", "nunique"))
    n_answers = responses.groupby(["evaluation", "model", "example_id"], observed=True).size()
    table["n_repeats"] = n_answers.groupby("evaluation", observed=True).max()
    n_of = {judge: of_items.n_of(column.notna().to_numpy()) for judge, column in rubric_data.judged.items()}
    n_labels = pd.DataFrame(n_of).groupby(responses["evaluation"], observed=True).sum()
    table["judges"] = [
        tuple(sorted((str(judge) for judge, n in row.items() if n), key=lambda judge: -row[judge]))
        for _, row in n_labels.reindex(table.index).iterrows()
    ]
    table = table.sort_values("n_responses", ascending=False, kind="stable").reset_index()
    return table.astype({"evaluation": "str", "judges": object})


def jury(rubric_data: RubricData, judges: Sequence[str]) -> tuple[RubricData, str]:
    """The study with several judges as one, the mean of their labels where each of them gave one, and its name; with one judge that judge."""
    chosen = list(judges)
    if len(chosen) == 1:
        return rubric_data.by(chosen), chosen[0]
    name = listed(chosen)
    mean = rubric_data.judged[chosen].mean(axis=1, skipna=False)
    return RubricData(rubric_data.items, mean.to_frame(name), rubric_data.reads), name


def common_weighting(rubric_data: RubricData) -> Weighting | None:
    """The `weighting` of a part; None also where its models answered different examples."""
    examples = rubric_data.responses.table[["example_id", "model", "theme"]].drop_duplicates(["example_id", "model"])
    n_examples, n_models = examples["example_id"].nunique(), examples["model"].nunique()
    return weighting(examples) if len(examples) == n_examples * n_models else None


def example_ids(session: "Session", spec: Analysis) -> list[int] | None:
    """The members of the part of the data set that a specification names; None where it names none."""
    if spec.subset is None:
        return None
    return list(browse.examples(session, browse.Filters(subset=spec.subset))["example_id"])


def with_defaults(spec: Analysis, known: pd.DataFrame) -> Analysis:
    """The specification with data set and judges filled in: the judged data set with most responses, the judge with most labels on it (by `evaluations`)."""
    of = judges_of(known)
    if not of:
        refuse("No judge has labelled a response yet: import a file of results first")
    evaluation = next(iter(of)) if spec.evaluation is None else spec.evaluation
    if evaluation not in of:
        refuse(f"Data set: expected one of {', '.join(of)}, got {evaluation!r}")
    if unknown := [judge for judge in spec.judges if judge not in of[evaluation]]:
        refuse(f"Judges: expected some of {', '.join(of[evaluation])}, got {unknown[0]!r}")
    return replace(spec, evaluation=evaluation, judges=spec.judges or of[evaluation][:1])


def judges_of(known: pd.DataFrame) -> dict[str, tuple[str, ...]]:
    """The judges of each judged data set, by `evaluations`."""
    return {row["evaluation"]: row["judges"] for row in known.to_dict(orient="records") if row["judges"]}


def part_of(rubric_data: RubricData, spec: Analysis, example_ids: Collection[int] | None = None) -> RubricData:
    """The part of the whole study that an analysis with data set and judges is about; `example_ids` are the members of its subset, None where it names none."""
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
    """The weights of the examples, of those alone that have one above 0: what has no theme of the benchmark is left out and counted. None: all alike."""
    if not spec.weighted:
        return None
    common = common_weighting(part)
    if common is None:
        refuse("Weighted: expected examples with themes of the full benchmark, the same for every model, got others")
    return common.weights.loc[common.weights > 0]


def correcting(part: RubricData, spec: Analysis) -> dict[str, Any]:
    """Whose labels are corrected, by which reads, with which weights: for every statistic of corrected scores."""
    return {"judges": spec.judges, "settled": spec.settled, "weights": weights_of(part, spec)}


@dataclass(frozen=True)
class Results:
    """The numbers of one analysis."""

    spec: Analysis  # what was computed: data set, judges, claim and physicians are filled in
    usual: corrected.DefaultClaim  # what the intervals hold for where nobody has said it, and why
    scores: pd.DataFrame  # `corrected_scores` for the claim of `spec`
    differences: pd.DataFrame  # `corrected_differences` for the same claim; only pairs that have one
    claims: pd.DataFrame  # `scores` for each of `CLAIMS`, in order, with place (from 0), claim, physicians before
    difference_claims: pd.DataFrame  # `differences` for each of `CLAIMS`, likewise
    ranks: pd.DataFrame  # `rank_intervals` of `differences`
    primary: dict[str, float] | None  # the stated pair's row, first less second; None where there is none
    held: Verdict | None  # the primary comparison against the margin; None where none is stated

    @property
    def claim(self) -> Claim:
        """What the intervals hold for."""
        return self.spec.claim or self.usual.claim

    @property
    def physicians(self) -> Physicians:
        """Whose judgement they hold for."""
        return self.spec.physicians or self.usual.physicians

    @property
    def where(self) -> str:
        """What the intervals hold for, in a few words."""
        return f"for {CLAIM_WORDS[self.claim]}, {PHYSICIANS_WORDS[self.physicians]}"

    @property
    def because(self) -> str:
        """Why the intervals hold for that, a sentence; empty where somebody has chosen it."""
        is_usual = (self.claim, self.physicians) == (self.usual.claim, self.usual.physicians)
        return self.usual.why if is_usual else ""

    @property
    def means(self) -> str:
        """What the intervals mean, a sentence."""
        return corrected.claim_sentence(self.claim, self.physicians)

    @property
    def finding(self) -> str:
        """Who is ahead, a sentence with its claim."""
        return finding(self.scores, self.differences, self.where)


def results(part: RubricData, spec: Analysis) -> Results:
    """All numbers of an analysis, of the part and specification as `part_of` and `with_defaults` give them; claim and physicians may be open."""
    penalty = penalty_of(spec.evaluation, spec.subset)
    inputs = corrected.estimator_inputs(part, **correcting(part, spec), penalty=penalty)
    by_default = corrected.default_claim(inputs)
    chosen = spec.claim or by_default.claim, spec.physicians or by_default.physicians
    spec = replace(spec, claim=chosen[0], physicians=chosen[1])
    scores = {which: corrected.corrected_scores(inputs, claim=which[0], physicians=which[1]) for which in CLAIMS}
    differences = corrected.differences_by_claim(inputs, CLAIMS)
    for which, table in scores.items():
        pairs = differences[which]
        enough = table.loc[table["enough"].astype(bool), "model"]
        kept = pairs["difference"].notna() & pairs[["model_1", "model_2"]].isin(list(enough)).all(axis=1)
        differences[which] = pairs.loc[kept].reset_index(drop=True)
    pair = None if spec.primary is None else pair_row(differences[chosen], *spec.primary)
    names = ("difference", "low", "high", "se", "df", "p", "n_examples")
    primary = None if pair is None else {name: float(pair[name]) for name in names}
    held = None
    if primary is not None and spec.margin is not None:
        held = against_margin(primary["difference"], primary["se"], primary["df"], spec.margin)
    ranks = corrected.rank_intervals(differences[chosen])
    by_claim = _by_claim(scores), _by_claim(differences)
    return Results(spec, by_default, scores[chosen], differences[chosen], *by_claim, ranks, primary, held)


def _by_claim(tables: dict[tuple[Claim, Physicians], pd.DataFrame]) -> pd.DataFrame:
    named = []
    for place, ((claim, physicians), table) in enumerate(tables.items()):
        keys = {"place": place, "claim": claim.value, "physicians": physicians.value}
        named.append(table.assign(**keys)[[*keys, *table]])
    return pd.concat([table for table in named if len(table)] or named[:1], ignore_index=True)


def primary_words(numbers: Results, stated: StatedAnalysis | None) -> list[str]:
    """The primary comparison, in sentences: the difference with its claim, what it says against the margin, and when that was stated."""
    if numbers.spec.primary is None:
        return []
    first, second = numbers.spec.primary
    if numbers.primary is None:
        start = f"Primary comparison, {first} with {second}"
        return [f"{start}: too little has been read for a difference ({numbers.where})."]
    row = numbers.primary
    words = difference_words(row["difference"], row["low"], row["high"])
    where = f"{numbers.where}; p {chance_words(row['p'])}"
    sentences = [f"Primary comparison: {first} less {second} is {words} after correction ({where})."]
    if numbers.held is not None:
        sentences.append(margin_words(numbers.held, first, second, "corrected score"))
    if stated is not None and stated.spec.primary == numbers.spec.primary and stated.spec.margin == numbers.spec.margin:
        what = "Comparison and margin" if numbers.held is not None else "The comparison"
        sentences.append(f"{what}: {when_words(stated)}.")
    return sentences


def departures(numbers: Results, stated: Analysis, data_sets: pd.DataFrame) -> tuple[str, ...]:
    """What was chosen otherwise than the study states, in words; what the statement leaves open is as `with_defaults` of these data sets."""
    planned = with_defaults(stated, data_sets)
    usual = {name: getattr(planned, name) or getattr(numbers.usual, name) for name in ("claim", "physicians")}
    planned = replace(planned, **usual)
    return tuple(words for name, words in FIELDS.items() if getattr(planned, name) != getattr(numbers.spec, name))


def stated_words(stated: StatedAnalysis | None, otherwise: Sequence[str]) -> str:
    """Whether these are the numbers of the analysis that the study states, a sentence."""
    if stated is None:
        return "No analysis is stated; these are the usual choices."
    if otherwise:
        verb = "differs" if len(otherwise) == 1 else "differ"
        return f"This is not the stated analysis (version {stated.version}): {listed(otherwise)} {verb}."
    return f"This is the stated analysis (version {stated.version}), {when_words(stated)}."


@dataclass(frozen=True)
class ComputedAnalysis:
    """An analysis of a study: its numbers, and what they are of."""

    everything: RubricData  # the whole study
    part: RubricData  # what the analysis is about
    known: pd.DataFrame  # the data sets of the study (`evaluations`)
    stated: StatedAnalysis | None  # the statement in force; None where there is none
    results: Results
    otherwise: tuple[str, ...]  # what was chosen otherwise than stated, in words; empty where nothing is stated


def compute(
    session: "Session", changes: Mapping[str, Any] | None = None, *, rubric_data: RubricData
) -> ComputedAnalysis:
    """The numbers of the stated analysis, or with these changes of its fields; another data set brings its usual judge, unless judges are changed."""
    known, stated = evaluations(rubric_data), contents.stated_analysis(session)
    spec, changes = Analysis() if stated is None else stated.spec, changes or {}
    own: dict[str, Any] = {"judges": ()} if changes.get("evaluation", spec.evaluation) != spec.evaluation else {}
    spec = with_defaults(replace(spec, **{**own, **changes}), known)
    part = part_of(rubric_data, spec, example_ids(session, spec))
    numbers = results(part, spec)
    otherwise = () if stated is None else departures(numbers, stated.spec, known)
    return ComputedAnalysis(rubric_data, part, known, stated, numbers, otherwise)


def missing(session: "Session", everything: RubricData, part: RubricData, spec: Analysis) -> pd.DataFrame:
    """The `sensitivity` of an analysis with claim and physicians about `part` of the study."""
    unread = queries.unread(session, known=everything)
    claims: Any = {"claim": spec.claim, "physicians": spec.physicians}
    return sensitivity(part, unread, **claims, **correcting(part, spec))
