"""All numbers of one analysis: scores, differences, what each holds for, what they find. Models, `compare`, methods and bundle take theirs from here."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from evalcore.errors import OverreadError
from evalcore.rubric import parts
from evalcore.rubric.corrected import (
    DefaultClaim,
    Surveyed,
    claim_sentence,
    corrected_differences,
    corrected_scores,
    default_claim,
    rank_intervals,
    surveyed,
)
from evalcore.rubric.data import RubricData
from evalcore.rubric.finding import chance_words, claim_words, difference_words, finding, turned
from evalcore.stats.margins import Verdict, against_margin, margin_words
from evalcore.stats.wording import listed
from evalcore.study.analysis import Analysis, StatedAnalysis, when_words
from evalcore.study.schema import Claim, Physicians

CLAIMS = tuple(
    (claim, physicians)
    for claim in (Claim.NEW_EXAMPLES, Claim.BENCHMARK)
    for physicians in (Physicians.IN_GENERAL, Physicians.THESE)
)
"""What an interval may hold for, the widest first."""
NO_THEMES = "Weighted: expected examples with themes of the full benchmark, the same for every model, found others"
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
        scores: As `corrected_scores` gives them for the claim of `spec`.
        differences: As `corrected_differences` gives them for the same claim; only pairs that have one.
        claims: `scores` for each of `CLAIMS`, with place (of the claim, from 0), claim and physicians before; claims in their order, models by name.
        difference_claims: `differences` for each of `CLAIMS`, with place, claim and physicians before.
        ranks: As `rank_intervals` gives them from `differences`; no row without a difference.
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
    def is_usual_claim(self) -> bool:
        """Whether the intervals hold for what they hold for by default."""
        return (self.claim, self.physicians) == (self.usual.claim, self.usual.physicians)

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
        return self.usual.why if self.is_usual_claim else ""

    @property
    def means(self) -> str:
        """What the intervals mean, a sentence."""
        return claim_sentence(self.claim, self.physicians)

    @property
    def finding(self) -> str:
        """Who is ahead, a sentence with its claim."""
        return finding(self.scores, self.differences, self.where)


def usual(spec: Analysis, known: pd.DataFrame) -> Analysis:
    """The specification with data set and judges filled in: the judged data set with most responses, the judge with most labels on it.

    Args:
        spec: What was stated or asked for.
        known: As `parts.evaluations` gives them.

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


def taken(rubric_data: RubricData, spec: Analysis, example_ids: Collection[int] | None = None) -> RubricData:
    """The part of the study that an analysis is about.

    Args:
        rubric_data: Of the whole study.
        spec: With data set and judges, as `usual` gives it.
        example_ids: Members of its subset; None where it names none.
    """
    return parts.part(
        rubric_data,
        evaluation=spec.evaluation or "",
        judges=spec.judges,
        example_ids=example_ids,
        clusters_only=spec.subset == parts.CONSENSUS,
    )


def weights_of(part: RubricData, spec: Analysis) -> pd.Series | None:
    """The weights of the examples, of those alone that have one above 0: what has no theme of the benchmark is left out and counted. None: all alike.

    Raises:
        OverreadError: Weights are asked for, and the examples have no themes to weight by.
    """
    if not spec.weighted:
        return None
    weighting = parts.common_weighting(part)
    if weighting is None:
        raise OverreadError(NO_THEMES)
    return weighting.weights.loc[weighting.weights > 0]


def results(part: RubricData, spec: Analysis) -> Results:
    """All numbers of an analysis.

    What the judges and reads of each model tell is gathered once for all claims (`surveyed`); only variances differ between them.

    Args:
        part: As `taken` gives it.
        spec: With data set and judges, as `usual` gives it; claim and physicians may be None.

    Raises:
        OverreadError: Weights are asked for, and the examples have no themes to weight by.
    """
    weights = weights_of(part, spec)
    known = list(surveyed(part, judges=spec.judges, settled=spec.settled, weights=weights))
    by_default = default_claim(known)
    chosen = spec.claim or by_default.claim, spec.physicians or by_default.physicians
    spec = replace(spec, claim=chosen[0], physicians=chosen[1])
    scores = {which: corrected_scores(part, claim=which[0], physicians=which[1], known=known) for which in CLAIMS}
    differences = {which: _differences(part, *which, known, scores[which]) for which in CLAIMS}
    primary = _primary(differences[chosen], spec)
    return Results(
        spec=spec,
        usual=by_default,
        scores=scores[chosen],
        differences=differences[chosen],
        claims=_by_claim(scores),
        difference_claims=_by_claim(differences),
        ranks=rank_intervals(differences[chosen]),
        primary=primary,
        held=None
        if primary is None or spec.margin is None
        else against_margin(primary["difference"], primary["se"], primary["df"], spec.margin),
    )


def _differences(
    part: RubricData, claim: Claim, physicians: Physicians, known: Sequence[Surveyed], scores: pd.DataFrame
) -> pd.DataFrame:
    """Of the models of which enough is read for this claim."""
    found = corrected_differences(part, claim=claim, physicians=physicians, known=known)
    enough = scores.loc[scores["enough"].astype(bool), "model"]
    kept = found["difference"].notna() & found["model_1"].isin(enough) & found["model_2"].isin(enough)
    return found.loc[kept].reset_index(drop=True)


def _by_claim(tables: dict[tuple[Claim, Physicians], pd.DataFrame]) -> pd.DataFrame:
    """One below the other, with place, claim and physicians before."""
    named = []
    for place, ((claim, physicians), table) in enumerate(tables.items()):
        made = table.copy()
        for number, (name, value) in enumerate(
            (("place", place), ("claim", claim.value), ("physicians", physicians.value))
        ):
            made.insert(number, name, value)
        named.append(made)
    filled = [table for table in named if len(table)]
    return pd.concat(filled, ignore_index=True) if filled else named[0]


def _primary(differences: pd.DataFrame, spec: Analysis) -> dict[str, float] | None:
    if spec.primary is None:
        return None
    for row in differences.to_dict(orient="records"):
        if spec.primary in {(row["model_1"], row["model_2"]), (row["model_2"], row["model_1"])}:
            pair = row if spec.primary[0] == row["model_1"] else turned(row)
            return {name: float(pair[name]) for name in ("difference", "low", "high", "se", "df", "p", "n_examples")}
    return None


def primary_words(found: Results, stated: StatedAnalysis | None) -> list[str]:
    """The primary comparison, in sentences: the difference with its claim, what it says against the margin, and whether that was stated before the reads.

    Args:
        found: The numbers.
        stated: The statement in force; None: there is none.
    """
    if found.spec.primary is None:
        return []
    first, second = found.spec.primary
    if found.primary is None:
        return [
            f"Primary comparison, {first} with {second}: too little has been read for a difference ({found.where})."
        ]
    row = found.primary
    words = difference_words(row["difference"], row["low"], row["high"])
    chance = chance_words(row["p"])
    said = [f"Primary comparison: {first} less {second} is {words} after correction ({found.where}; p {chance})."]
    if found.held is not None:
        said.append(margin_words(found.held, first, second, "corrected score"))
    if stated is not None and stated.spec.primary == found.spec.primary and stated.spec.margin == found.spec.margin:
        what = "Comparison and margin" if found.held is not None else "The comparison"
        said.append(f"{what}: {when_words(stated)}.")
    return said


def departures(found: Results, stated: Analysis, known: pd.DataFrame) -> tuple[str, ...]:
    """What was chosen otherwise than the study states, in words; empty where this is the stated analysis.

    Args:
        found: What was computed.
        stated: What the study states; what it leaves open is as usual.
        known: As `parts.evaluations` gives them.
    """
    planned = usual(stated, known)
    planned = replace(
        planned, claim=planned.claim or found.usual.claim, physicians=planned.physicians or found.usual.physicians
    )
    return tuple(words for name, words in FIELDS.items() if getattr(planned, name) != getattr(found.spec, name))


def stated_words(stated: StatedAnalysis | None, otherwise: Sequence[str]) -> str:
    """Whether these are the numbers of the analysis that the study states, a sentence.

    Args:
        stated: The statement in force.
        otherwise: As `departures` gives it.

    >>> stated_words(None, [])
    'No analysis is stated; these are the usual choices.'
    """
    if stated is None:
        return "No analysis is stated; these are the usual choices."
    if otherwise:
        verb = "differs" if len(otherwise) == 1 else "differ"
        return f"This is not the stated analysis (version {stated.version}): {listed(otherwise)} {verb}."
    return f"This is the stated analysis (version {stated.version}), {when_words(stated)}."
