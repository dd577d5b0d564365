"""Confusion matrices by judge, by physicians, or corrected, and what the Triage page says of them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import streamlit as st

from evalcore.settings import settings
from evalcore.study.analysis import Analysis
from evalcore.study.schema import Claim, Physicians, Viewer
from evalcore.triage import bases as triage_bases
from evalcore.triage import words as triage_words
from evalcore.triage.bases import PUBLISHED, Basis, Held, Matrices, Ranked, Weights
from evalcore.triage.cases import flip_counts
from evalcore.triage.corrected import Answers, answered, claim_words
from evalcore.triage.data import Kind, TriageData
from evalcore.triage.rates import accounted
from evalcore.triage.reads import read_counts, response_levels, transitions
from pages.shared import common, html, page_cache, tables, triage_choice
from pages.shared.models_choice import CLAIMS, READERS
from pages.shared.triage_choice import FORMATS, About, Chosen, Gold, Read

NOT_READ = (
    "No physician here has read an answer to a clear case yet. Assign responses on Study, or from the dangerous misses; what is read in Review enters "
    "at once."
)
WHY = {
    "unsettled": "readers conflict: an adjudicator settles it",
    "cannot_assess": "cannot be assessed",
    "remove": "removed: cannot be triage_data",
}
"""Why a case has no level here, in words."""


@dataclass(frozen=True)
class Counted:
    """The matrices of all models, and what the page says of them.

    Attributes:
        basis: Who says which level an answer gives.
        read_by: By format, who read the levels.
        flips: As `triage_formats.flip_counts`, where they belong to these levels.
        caution: What must be said before anything is read off; empty: nothing.
    """

    basis: Basis
    matrices: Matrices
    counts: str
    read_by: Mapping[str, str]
    flips: pd.DataFrame | None = None
    caution: str = ""

    @property
    def cells(self) -> pd.DataFrame:
        """As `Matrices.cells`."""
        return self.matrices.cells

    @property
    def rates(self) -> pd.DataFrame:
        """As `Matrices.rates`."""
        return self.matrices.rates

    @property
    def is_known(self) -> bool:
        """Whether any cell has a share."""
        return bool(self.cells["share"].notna().any())

    def cells_of(self, model: str, word: str) -> pd.DataFrame:
        """The sixteen cells of a model and format; none where it has no answers."""
        return self.cells.loc[_mine(self.cells, model, word)]

    def findings(self, model: str) -> list[str]:
        """What stands out as sentences: of all models with cases the missed emergencies, of the chosen one the rest."""
        is_mine = self.rates["model"].astype(str).eq(model)
        if not is_mine.any() or self.rates["value"].isna().all():
            return []
        together = self.rates.loc[is_mine] if model.endswith(PUBLISHED) else triage_bases.with_cases(self.rates)
        by_physicians = self.basis is Basis.PHYSICIANS
        return triage_words.findings(together, self.flips, about=model, by_physicians=by_physicians)

    def rates_of(self, model: str, word: str) -> dict[str, dict[Any, Any]]:
        """By measure its row."""
        rows = self.rates.loc[_mine(self.rates, model, word)].to_dict(orient="records")
        return {str(row["measure"]): row for row in rows}

    def summary_of(self, model: str, word: str) -> dict[Any, Any]:
        """The coefficients; none where there are none."""
        if self.matrices.summary.empty:
            return {}
        rows = self.matrices.summary.loc[_mine(self.matrices.summary, model, word)].to_dict(orient="records")
        return rows[0] if rows else {}


def _mine(table: pd.DataFrame, model: str, word: str) -> "pd.Series[bool]":
    return table["model"].astype(str).eq(model) & table["format"].astype(str).eq(word)


class _Surveyed(NamedTuple):
    """What was chosen, and what physicians have read of it; None where they are not asked beside the judge."""

    read: Read
    known: list[Answers] | None


@st.cache_resource(max_entries=4, show_spinner=False)
def _answers(
    location: str,  # noqa: ARG001 - the key
    version: triage_choice.Key,  # noqa: ARG001 - the key
    hidden: frozenset[int],  # noqa: ARG001 - the key
    chosen: Chosen,
    claim: Claim,
    settled: bool,  # noqa: FBT001 - the key
    _triaged: TriageData,
) -> list[Answers]:
    """What cells, rates and harm are corrected by: the same whatever the weights."""
    return answered(_triaged, dict(chosen.judges), claim, settled=settled)


def _surveyed(viewer: Viewer, chosen: Chosen, basis: Basis, held: Held) -> _Surveyed:
    read = triage_choice.read(viewer, chosen)
    if basis is Basis.JUDGE:
        return _Surveyed(read, None)
    key = (settings().db, common.version(), common.blind(viewer))
    return _Surveyed(read, _answers(*key, chosen, held.claim, held.settled, read.triage_data))


def _by_judge(read: Read) -> dict[str, Any]:
    return {"matrices": triage_bases.by_judge(read.triage_data, read.found), "flips": flip_counts(read.found)}


def _by_physicians(read: Read, settled: bool) -> Matrices:  # noqa: FBT001 - as it is kept
    return triage_bases.by_physicians(read.triage_data, settled=settled)


def _corrected(surveyed: _Surveyed, judges: tuple[tuple[str, str], ...], held: Held) -> Matrices:
    read, known = surveyed
    return triage_bases.corrected(read.triage_data, read.found, dict(judges), held, known=known)


def of(viewer: Viewer, chosen: Chosen, basis: Basis, held: Held) -> Counted:
    """The matrices of all models by the chosen basis."""
    read_by = {word: f"read by {judge}" for word, judge in chosen.judges}
    if basis is Basis.PHYSICIANS:
        made: Matrices = triage_choice.computed(_by_physicians, viewer, chosen, held.settled)
        by_them = dict.fromkeys(FORMATS, "read by physicians")
        return Counted(basis, made, "responses", by_them, caution="" if made.cells["n"].any() else NOT_READ)
    if basis is Basis.CORRECTED:
        of_what = partial(_surveyed, viewer, chosen, basis, held)
        made = page_cache.computed(_corrected, viewer, of_what, chosen.judges, held, about=chosen)
        caution = "" if made.rates["value"].notna().any() else f"Nothing can be corrected yet: {_needed(made.rates)}"
        return Counted(
            basis, made, "cases", {word: f"{said}, corrected" for word, said in read_by.items()}, caution=caution
        )
    found = triage_choice.computed(_by_judge, viewer, chosen)
    return Counted(basis, found["matrices"], "cases", read_by, flips=found["flips"])


def _harm(
    surveyed: _Surveyed, judges: tuple[tuple[str, str], ...], basis: Basis, held: Held, weights: Weights
) -> pd.DataFrame:
    read, known = surveyed
    return triage_bases.harm(basis, read.triage_data, read.found, weights, judges=dict(judges), held=held, known=known)


def harm(viewer: Viewer, chosen: Chosen, basis: Basis, held: Held, weights: Weights) -> pd.DataFrame:
    """Expected harm of all models by the chosen basis; model and format are plain words, in order."""
    of_what = partial(_surveyed, viewer, chosen, basis, held)
    found = page_cache.computed(_harm, viewer, of_what, chosen.judges, basis, held, weights, about=chosen)
    return triage_choice.in_order(found)


def _ranked(
    surveyed: _Surveyed, judges: tuple[tuple[str, str], ...], basis: Basis, held: Held, weights: Weights
) -> Ranked:
    read, known = surveyed
    return triage_bases.ranked(
        basis, read.triage_data, read.found, weights, judges=dict(judges), held=held, known=known
    )


def ranked(viewer: Viewer, chosen: Chosen, basis: Basis, held: Held, weights: Weights) -> Ranked:
    """The models' harm on the same cases, and how they differ there."""
    of_what = partial(_surveyed, viewer, chosen, basis, held)
    found: Ranked = page_cache.computed(_ranked, viewer, of_what, chosen.judges, basis, held, weights, about=chosen)
    return found


def _safety(surveyed: _Surveyed, basis: Basis, held: Held) -> pd.DataFrame:
    read, known = surveyed
    return triage_bases.safety(basis, read.found, known=known or (), held=held)


def safety(viewer: Viewer, chosen: Chosen, basis: Basis, held: Held) -> pd.DataFrame:
    """Differences of under-triage and missed emergencies of every two models."""
    of_what = partial(_surveyed, viewer, chosen, basis, held)
    found: pd.DataFrame = page_cache.computed(_safety, viewer, of_what, basis, held, about=chosen)
    return found


def _needed(rates: pd.DataFrame) -> str:
    """What is lacking, in words."""
    exact = rates.loc[rates["measure"].eq("exact") & rates["reason"].ne("")]
    if exact.empty:
        return "no answer to a clear case has a level by these judges."
    row = exact.iloc[int(exact["n_needed"].to_numpy().argmin())]
    return f"{row['model']} in {row['format']} needs {row['reason']}, and is the nearest to it."


def physicians_read(read: Read) -> pd.DataFrame:
    """What became of the responses that physicians have read, by model and format."""
    return read_counts(read.triage_data)


def left_out(read: Read) -> pd.DataFrame:
    """What is counted and what left out, by model and format."""
    return accounted(read.triage_data, read.found)


def rows_of_cell(
    viewer: Viewer, chosen: Chosen, basis: Basis, model: str, word: str, gold: int, predicted: int
) -> pd.DataFrame:
    """The predictions behind one cell, those first that more of the samples agree on.

    By physicians: the responses that they gave this level, or a boundary with it, each with `sample` and `read_level`.
    """
    read: Read = triage_choice.read(viewer, chosen)
    found = read.found
    mine = found.loc[
        found["kind"].eq(Kind.CLEAR) & found["gold"].eq(gold) & found["model"].eq(model) & found["format"].eq(word)
    ]
    if basis is not Basis.PHYSICIANS:
        return mine.loc[mine["predicted"].eq(predicted)].sort_values("share", ascending=False, kind="stable")
    levels = response_levels(read.triage_data)
    samples = read.triage_data.samples.iloc[levels["sample"].to_numpy()]
    fits = (np.floor(levels["level"]).eq(predicted) | np.ceil(levels["level"]).eq(predicted)).to_numpy()
    fits = fits & samples["model"].eq(model).to_numpy() & samples["format"].eq(word).to_numpy()
    kept = levels.loc[fits, ["row", "sample", "level"]].rename(columns={"level": "read_level"})
    kept_rows: pd.DataFrame = kept.merge(mine, on="row").sort_values("sample", kind="stable", ignore_index=True)
    return kept_rows


def _usual_held(surveyed: _Surveyed, judges: tuple[tuple[str, str], ...], spec: Analysis) -> tuple[Held, str]:
    read, known = surveyed
    return triage_bases.usual_held(read.triage_data, dict(judges), spec, known=known)


def basis_control(viewer: Viewer, chosen: Chosen, known: About) -> tuple[Basis, Held, str]:
    """Who says which level an answer gives, what corrected intervals hold for, and why that by default; published matrices alone leave nothing to choose."""
    spec = triage_choice.analysis()
    if not known.judges:
        return Basis.JUDGE, Held(), ""
    basis = Basis(triage_choice.one_of("Levels of answers", list(Basis), "triage_basis", width=140))
    if basis is not Basis.CORRECTED:
        return basis, Held(settled=spec.settled), ""
    of_what = partial(_surveyed, viewer, chosen, basis, Held(settled=spec.settled))
    usual, why = page_cache.computed(_usual_held, viewer, of_what, chosen.judges, spec, about=chosen)
    claims, readers = list(Claim), list(Physicians)
    claim = triage_choice.one_of(
        "Holds for", claims, "triage_claim", width=160, usual=claims.index(usual.claim), words=CLAIMS.__getitem__
    )
    physicians = triage_choice.one_of(
        "As read by", readers, "triage_readers_of", width=175, usual=readers.index(usual.physicians), words=READERS.__getitem__
    )  # fmt: skip
    held = Held(Claim(claim), Physicians(physicians), spec.settled)
    return basis, held, why if held == usual else ""


def held_words(basis: Basis, held: Held, *, value: str = "share") -> str:
    """What intervals of what was read hold for; empty by judge, whose intervals leave out how often it is wrong."""
    return "" if basis is Basis.JUDGE else claim_words(held.claim, held.physicians, value=value)


def model_names(known: About) -> list[str]:
    """The models with cases, then the published ones."""
    return [*known.models, *(f"{name}{PUBLISHED}" for name in known.published)]


def changes(read: Read) -> pd.DataFrame:
    """What physicians here say of the cases' needs, beside the gold that they came with."""
    return transitions(read.triage_data).drop(columns="rows")


def show_transitions(viewer: Viewer, chosen: Chosen) -> None:
    """How the gold of cases changes by what physicians here have read; nothing that came with the cases is overwritten."""
    table = triage_choice.computed(changes, viewer, replace(chosen, gold=Gold.FILE))
    st.subheader("How the gold changes", anchor=False)
    if table.empty:
        st.html(
            html.quiet(
                "No physician here has judged what a case itself needs: the gold stands as it came. Assign cases on Study."
            )
        )
        return
    tables.show(
        {
            "As it came": [_gold_words(row["old_kind"], row["old_gold"]) for row in table.to_dict(orient="records")],
            "As read here": [
                _gold_words(row["new_kind"], row["new_gold"]) if not row["why"] else WHY.get(row["why"], row["why"])
                for row in table.to_dict(orient="records")
            ],
            "Cases": table["n"],
            "The gold": ["changes" if changed else "stays" for changed in table["changed"]],
        },
        key="triage_transitions",
        alt="The gold as it came, and as physicians here have read it",
    )


def _gold_words(kind: str, gold: float) -> str:
    return triage_words.level_letter(gold) if not math.isnan(gold) else str(kind)
