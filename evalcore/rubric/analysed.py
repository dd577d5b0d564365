"""The study's analysis, read and computed in one go: for commands, the methods and the bundle. Pages keep frames, and call the same functions on them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd
from sqlmodel import Session

from evalcore.rubric import drawings, parts
from evalcore.rubric import queries as labels
from evalcore.rubric.data import RubricData
from evalcore.rubric.results import Results, departures, results, taken, usual, weights_of
from evalcore.rubric.sensitivity import sensitivity
from evalcore.study import browse, contents
from evalcore.study.analysis import Analysis, StatedAnalysis


@dataclass(frozen=True)
class Analysed:
    """An analysis of a study.

    Attributes:
        everything: The whole study.
        part: What it is about.
        known: The data sets of the study, as `parts.evaluations` gives them.
        stated: The statement in force; None where there is none.
        results: The numbers.
        otherwise: What was chosen otherwise than stated, in words; empty where nothing is stated.
    """

    everything: RubricData
    part: RubricData
    known: pd.DataFrame
    stated: StatedAnalysis | None
    results: Results
    otherwise: tuple[str, ...]


def analysed(
    session: Session,
    changes: Mapping[str, Any] | None = None,
    *,
    rubric_data: RubricData | None = None,
    hidden: frozenset[int] = frozenset(),
) -> Analysed:
    """The numbers of the stated analysis, or of another one for looking.

    Args:
        session: Where to read.
        changes: Fields of `analysis.Analysis` that are chosen otherwise than stated.
        rubric_data: Of the whole study, where they are at hand; then `hidden` is no more asked for.
        hidden: Conversations that are left out.

    Raises:
        OverreadError: No judge has labelled anything, or not what the analysis names.
    """
    everything = labels.load(session).without(hidden) if rubric_data is None else rubric_data
    known, stated = parts.evaluations(everything), contents.stated_analysis(session)
    spec = usual(changed(Analysis() if stated is None else stated.spec, changes or {}), known)
    part = taken(everything, spec, example_ids(session, spec))
    found = results(part, spec)
    otherwise = () if stated is None else departures(found, stated.spec, known)
    return Analysed(everything, part, known, stated, found, otherwise)


def missing(session: Session, done: Analysed) -> pd.DataFrame:
    """Its corrected scores if the missing reads had all spoken for the model or all against it, as `sensitivity` gives them.

    Args:
        session: Where to read.
        done: The analysis.
    """
    found, spec = done.results, done.results.spec
    return sensitivity(
        done.part,
        drawings.unread(session, known=done.everything),
        judges=spec.judges,
        claim=found.claim,
        physicians=found.physicians,
        settled=spec.settled,
        weights=weights_of(done.part, spec),
    )


def changed(spec: Analysis, changes: Mapping[str, Any]) -> Analysis:
    """The specification with these fields instead; another data set brings its own usual judge, unless judges are among the fields."""
    own = {"judges": ()} if changes.get("evaluation", spec.evaluation) != spec.evaluation else {}
    return replace(spec, **{**own, **changes})


def example_ids(session: Session, spec: Analysis) -> list[int] | None:
    """The members of the part of the data set that a specification names; None where it names none."""
    if spec.subset is None:
        return None
    return list(browse.examples(session, browse.Filters(subset=spec.subset))["example_id"])
