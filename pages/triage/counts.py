"""Who says which level an answer gives (a judge, physicians, or both: corrected), and the numbers of the Triage page by that choice, which are kept."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import pandas as pd

from evalcore.study.analysis import Analysis
from evalcore.study.schema import Claim, Physicians
from evalcore.triage import bases
from evalcore.triage.bases import Basis, Matrices, Ranked, Weights
from evalcore.triage.corrected import Answers, Held, answered, claim_words
from pages.shared import page_cache, triage_choice
from pages.shared.models_choice import CLAIMS, READERS
from pages.shared.triage_choice import Here, Read

NOT_READ = (
    "No physician here has read an answer to a clear case yet. Assign responses on Study, or from the dangerous misses; what is read in Review enters "
    "at once."
)


class By(NamedTuple):
    """Who says which level an answer gives, what intervals hold for, and why that by default."""

    basis: Basis
    held: Held = Held()
    why: str = ""

    def words(self, value: str = "share") -> str:
        """What intervals of what was read hold for; empty by judge, whose intervals leave out how often it is wrong."""
        if self.basis is Basis.JUDGE:
            return ""
        return f"{claim_words(self.held.claim, self.held.physicians, value=value)} {self.why}".rstrip()


def basis_control(here: Here) -> By:
    """The controls; published matrices alone leave nothing to choose."""
    spec = triage_choice.analysis()
    if not here.known.judges:
        return By(Basis.JUDGE)
    basis = Basis(triage_choice.one_of("Levels of answers", list(Basis), "triage_basis", width=140))
    by = By(basis, Held(settled=spec.settled))
    if basis is not Basis.CORRECTED:
        return by
    usual, why = _kept(_usual_held, here, by, spec)
    claims, readers = list(Claim), list(Physicians)
    claim = triage_choice.one_of(
        "Holds for", claims, "triage_claim", width=160, usual=usual.claim, format_func=CLAIMS.__getitem__
    )
    physicians = triage_choice.one_of(
        "As read by", readers, "triage_readers_of", width=175, usual=usual.physicians, format_func=READERS.__getitem__
    )  # fmt: skip
    held = Held(Claim(claim), Physicians(physicians), spec.settled)
    return By(basis, held, why if held == usual else "")


def nearest_words(table: pd.DataFrame) -> str:
    """That nothing can be corrected yet, and what is lacking to the model and format that is nearest to it."""
    row = table.iloc[int(table["n_needed"].to_numpy().argmin())]
    return f"Nothing can be corrected yet: {row['model']} in {row['format']} needs {row['reason']}, and is the nearest to it."


# ---------------------------------------------------------------- numbers, kept


class _Answered(NamedTuple):
    """What was chosen, and what physicians have read of it (None by judge): the same whatever the weights."""

    read: Read
    judges: dict[str, str]
    known: list[Answers] | None

    @property
    def cases(self) -> tuple[Any, pd.DataFrame]:
        return self.read.triage_data, self.read.found


def _kept(make: Callable[..., Any], here: Here, by: By, *arguments: Any) -> Any:
    """What `make(answered, *arguments)` gives, kept."""
    return page_cache.computed(make, here.viewer, partial(_answered, here, by), *arguments, about=here.chosen)


def _answered(here: Here, by: By) -> _Answered:
    read, judges, held = here.read, dict(here.chosen.judges), by.held
    if by.basis is Basis.JUDGE:
        return _Answered(read, judges, None)
    about = ("answers", here.chosen, held.claim, held.settled)
    make = partial(answered, read.triage_data, judges, held.claim, settled=held.settled)
    return _Answered(read, judges, page_cache.shared(make, here.viewer, about))


def _usual_held(of: _Answered, spec: Analysis) -> tuple[Held, str]:
    return bases.usual_held(of.read.triage_data, of.judges, spec, known=of.known)


def _matrices(of: _Answered, basis: Basis, held: Held) -> Matrices:
    return bases.matrices(basis, *of.cases, judges=of.judges, held=held, known=of.known)


def _harm(of: _Answered, basis: Basis, held: Held, weights: Weights) -> pd.DataFrame:
    return bases.harm(basis, *of.cases, weights, judges=of.judges, held=held, known=of.known)


def _ranked(of: _Answered, basis: Basis, held: Held, weights: Weights) -> Ranked:
    return bases.ranked(basis, *of.cases, weights, judges=of.judges, held=held, known=of.known)


def _safety(of: _Answered, basis: Basis, held: Held) -> pd.DataFrame:
    return bases.safety(basis, of.read.found, known=of.known or (), held=held)


def matrices(here: Here, by: By) -> Matrices:
    """The matrices of all models."""
    kept: Matrices = _kept(_matrices, here, by, by.basis, by.held)
    return kept


def harm(here: Here, by: By, weights: Weights) -> pd.DataFrame:
    """Expected harm of all models; model and format are plain words, in order."""
    return triage_choice.in_order(_kept(_harm, here, by, by.basis, by.held, weights))


def ranked(here: Here, by: By, weights: Weights) -> Ranked:
    """The models' harm on the same cases, and how they differ there."""
    kept: Ranked = _kept(_ranked, here, by, by.basis, by.held, weights)
    return kept


def safety(here: Here, by: By) -> pd.DataFrame:
    """Differences of under-triage and missed emergencies of every two models."""
    kept: pd.DataFrame = _kept(_safety, here, by, by.basis, by.held)
    return kept
