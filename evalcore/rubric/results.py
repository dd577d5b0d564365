"""All numbers of one analysis: scores, differences, what each holds for, what they find. Models, `compare`, methods and bundle take theirs from here.

Commands, methods and bundle read and compute in one go (`compute`); pages keep frames, and call the same functions on them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd
from sqlmodel import Session

from evalcore.rubric import drawings
from evalcore.rubric.claims import DefaultClaim, claim_sentence
from evalcore.rubric.corrected import (
    EstimatorInputs,
    corrected_differences,
    corrected_scores,
    default_claim,
    estimator_inputs,
    rank_intervals,
)
from evalcore.rubric.data import RubricData
from evalcore.rubric.finding import claim_words, difference_words, finding, pair_row
from evalcore.rubric.parts import evaluations, example_ids, part_of, weights_of, with_changes, with_defaults
from evalcore.rubric.sensitivity import sensitivity
from evalcore.stats.margins import Verdict, against_margin, margin_words
from evalcore.stats.wording import chance_words, listed
from evalcore.study import contents
from evalcore.study.analysis import Analysis, StatedAnalysis, when_words
from evalcore.study.schema import Claim, Physicians

CLAIMS = tuple(
    (claim, physicians)
    for claim in (Claim.NEW_EXAMPLES, Claim.BENCHMARK)
    for physicians in (Physicians.IN_GENERAL, Physicians.THESE)
)
"""What an interval may hold for, the widest first."""
FIELDS = {
    "evaluation": "data set", "subset": "examples", "judges": "judge", "claim": "claim", "physicians": "physicians",
    "settled": "adjudicated labels", "weighted": "weights",
}  # fmt: skip
"""What may be chosen otherwise for looking, in words."""


@dataclass(frozen=True)
class Results:
    """The numbers of one analysis.

    Attributes:
        spec: What was computed: data set, judges, claim and physicians are filled in.
        usual: What the intervals hold for where nobody has said it, and why.
        scores: `corrected_scores` for the claim of `spec`.
        differences: `corrected_differences` for the same claim; only pairs that have one.
        claims: `scores` for each of `CLAIMS`, with place (of the claim, from 0), claim and physicians before; claims in their order, models by name.
        difference_claims: `differences` for each of `CLAIMS`, likewise.
        ranks: `rank_intervals` of `differences`.
        primary: The row of the primary comparison, first model less second; None where none is stated or there is no difference.
        held: The primary comparison against the margin; None where none is stated.
    """

    spec: Analysis
    usual: DefaultClaim
    scores: pd.DataFrame
    differences: pd.DataFrame
    claims: pd.DataFrame
    difference_claims: pd.DataFrame
    ranks: pd.DataFrame
    primary: dict[str, float] | None
    held: Verdict | None

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
        return claim_words(self.claim, self.physicians)

    @property
    def because(self) -> str:
        """Why the intervals hold for that, a sentence; empty where somebody has chosen it."""
        is_usual = (self.claim, self.physicians) == (self.usual.claim, self.usual.physicians)
        return self.usual.why if is_usual else ""

    @property
    def means(self) -> str:
        """What the intervals mean, a sentence."""
        return claim_sentence(self.claim, self.physicians)

    @property
    def finding(self) -> str:
        """Who is ahead, a sentence with its claim."""
        return finding(self.scores, self.differences, self.where)


def results(part: RubricData, spec: Analysis) -> Results:
    """All numbers of an analysis, of the part and specification as `part_of` and `with_defaults` give them; claim and physicians may be open.

    Raises:
        OverreadError: Weights are asked for, and the examples have no themes to weight by.
    """
    inputs = estimator_inputs(part, judges=spec.judges, settled=spec.settled, weights=weights_of(part, spec))
    by_default = default_claim(inputs)
    chosen = spec.claim or by_default.claim, spec.physicians or by_default.physicians
    spec = replace(spec, claim=chosen[0], physicians=chosen[1])
    scores = {which: corrected_scores(inputs, claim=which[0], physicians=which[1]) for which in CLAIMS}
    differences = {which: _differences(inputs, *which, scores[which]) for which in CLAIMS}
    primary = _primary(differences[chosen], spec)
    held = None
    if primary is not None and spec.margin is not None:
        held = against_margin(primary["difference"], primary["se"], primary["df"], spec.margin)
    return Results(
        spec=spec,
        usual=by_default,
        scores=scores[chosen],
        differences=differences[chosen],
        claims=_by_claim(scores),
        difference_claims=_by_claim(differences),
        ranks=rank_intervals(differences[chosen]),
        primary=primary,
        held=held,
    )


def _differences(
    inputs: Sequence[EstimatorInputs], claim: Claim, physicians: Physicians, scores: pd.DataFrame
) -> pd.DataFrame:
    """Of the models of which enough is read for this claim."""
    differences = corrected_differences(inputs, claim=claim, physicians=physicians)
    enough = scores.loc[scores["enough"].astype(bool), "model"]
    kept = differences["difference"].notna() & differences[["model_1", "model_2"]].isin(list(enough)).all(axis=1)
    return differences.loc[kept].reset_index(drop=True)


def _by_claim(tables: dict[tuple[Claim, Physicians], pd.DataFrame]) -> pd.DataFrame:
    """One below the other, with place, claim and physicians before."""
    named = []
    for place, ((claim, physicians), table) in enumerate(tables.items()):
        columns = ["place", "claim", "physicians", *table.columns]
        named.append(table.assign(place=place, claim=claim.value, physicians=physicians.value)[columns])
    return pd.concat([table for table in named if len(table)] or named[:1], ignore_index=True)


def _primary(differences: pd.DataFrame, spec: Analysis) -> dict[str, float] | None:
    pair = None if spec.primary is None else pair_row(differences, *spec.primary)
    names = ("difference", "low", "high", "se", "df", "p", "n_examples")
    return None if pair is None else {name: float(pair[name]) for name in names}


def primary_words(numbers: Results, stated: StatedAnalysis | None) -> list[str]:
    """The primary comparison, in sentences: the difference with its claim, what it says against the margin, and when that was stated."""
    if numbers.spec.primary is None:
        return []
    first, second = numbers.spec.primary
    if numbers.primary is None:
        return [
            f"Primary comparison, {first} with {second}: too little has been read for a difference ({numbers.where})."
        ]
    row = numbers.primary
    words = difference_words(row["difference"], row["low"], row["high"])
    chance = chance_words(row["p"])
    sentences = [
        f"Primary comparison: {first} less {second} is {words} after correction ({numbers.where}; p {chance})."
    ]
    if numbers.held is not None:
        sentences.append(margin_words(numbers.held, first, second, "corrected score"))
    if stated is not None and stated.spec.primary == numbers.spec.primary and stated.spec.margin == numbers.spec.margin:
        what = "Comparison and margin" if numbers.held is not None else "The comparison"
        sentences.append(f"{what}: {when_words(stated)}.")
    return sentences


def departures(numbers: Results, stated: Analysis, data_sets: pd.DataFrame) -> tuple[str, ...]:
    """What was chosen otherwise than the study states, in words; empty where this is the stated analysis.

    What the statement leaves open is as `with_defaults` of these data sets (`parts.evaluations`).
    """
    planned = with_defaults(stated, data_sets)
    planned = replace(
        planned, claim=planned.claim or numbers.usual.claim, physicians=planned.physicians or numbers.usual.physicians
    )
    return tuple(words for name, words in FIELDS.items() if getattr(planned, name) != getattr(numbers.spec, name))


def stated_words(stated: StatedAnalysis | None, otherwise: Sequence[str]) -> str:
    """Whether these are the numbers of the analysis that the study states, a sentence.

    >>> stated_words(None, [])
    'No analysis is stated; these are the usual choices.'
    """
    if stated is None:
        return "No analysis is stated; these are the usual choices."
    if otherwise:
        verb = "differs" if len(otherwise) == 1 else "differ"
        return f"This is not the stated analysis (version {stated.version}): {listed(otherwise)} {verb}."
    return f"This is the stated analysis (version {stated.version}), {when_words(stated)}."


# ---------------------------------------------------------------- read and computed in one go


@dataclass(frozen=True)
class ComputedAnalysis:
    """An analysis of a study: its numbers, and what they are of.

    Attributes:
        everything: The whole study.
        part: What the analysis is about.
        known: The data sets of the study (`parts.evaluations`).
        stated: The statement in force; None where there is none.
        otherwise: What was chosen otherwise than stated, in words; empty where nothing is stated.
    """

    everything: RubricData
    part: RubricData
    known: pd.DataFrame
    stated: StatedAnalysis | None
    results: Results
    otherwise: tuple[str, ...]


def compute(
    session: Session,
    changes: Mapping[str, Any] | None = None,
    *,
    rubric_data: RubricData,
) -> ComputedAnalysis:
    """The numbers of the stated analysis of a whole study, or with these changes of its fields of another one for looking.

    Raises:
        OverreadError: No judge has labelled anything, or not what the analysis names.
    """
    known, stated = evaluations(rubric_data), contents.stated_analysis(session)
    spec = with_defaults(with_changes(Analysis() if stated is None else stated.spec, changes or {}), known)
    part = part_of(rubric_data, spec, example_ids(session, spec))
    numbers = results(part, spec)
    otherwise = () if stated is None else departures(numbers, stated.spec, known)
    return ComputedAnalysis(rubric_data, part, known, stated, numbers, otherwise)


def missing(session: Session, analysis: ComputedAnalysis) -> pd.DataFrame:
    """Its corrected scores if the missing reads had all spoken for the model or all against it, as `sensitivity` gives them."""
    numbers, spec = analysis.results, analysis.results.spec
    return sensitivity(
        analysis.part,
        drawings.unread(session, known=analysis.everything),
        judges=spec.judges,
        claim=numbers.claim,
        physicians=numbers.physicians,
        settled=spec.settled,
        weights=weights_of(analysis.part, spec),
    )
