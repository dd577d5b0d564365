"""Who says which level an answer gives (judge, physicians, or corrected), and the page's numbers by that choice."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd

from evalcore.stats.wording import chance_words
from evalcore.study.schema import Claim, Physicians
from evalcore.triage.bases import Basis, LevelsBy, usual_held
from evalcore.triage.corrected import USUAL, Answers, Held, answered
from pages.shared import page_cache, tables, triage_choice
from pages.shared.models_choice import CLAIMS, READERS
from pages.shared.triage_choice import Here

NOT_READ = (
    "No physician here has read an answer to a clear case yet. Assign responses on Study, or from the dangerous "
    "misses; what is read in Review enters at once."
)


@dataclass(frozen=True)
class By:
    """Who says which level an answer gives, what intervals hold for, and why that by default."""

    here: Here
    basis: Basis
    held: Held = USUAL
    why: str = ""

    def words(self, value: str = "share") -> str:
        """What intervals of what was read hold for; empty by judge, whose intervals leave out how often it is wrong."""
        if self.basis is Basis.JUDGE:
            return ""
        return f"{self.held.words(value)} {self.why}".rstrip()

    def known(self) -> Sequence[Answers]:
        """What physicians have read of it, kept: the same whatever the weights; by judge nothing."""
        here, held = self.here, self.held
        if self.basis is Basis.JUDGE:
            return ()
        make = partial(answered, here.read.triage_data, dict(here.chosen.judges), held.claim, settled=held.settled)
        about = ("answers", here.chosen, held.claim, held.settled)
        kept: Sequence[Answers] = page_cache.shared(make, here.viewer, about)
        return kept

    def computed(self, make: Callable[..., Any], *arguments: Any) -> Any:
        """What `make(levels, *arguments)` gives, as `page_cache.computed` keeps it; `make` takes a `LevelsBy`."""
        here = self.here

        def levels() -> LevelsBy:
            return LevelsBy(self.basis, here.read.triage_data, here.read.found, self.held, self.known())

        about = (here.chosen, self.basis, self.held)
        return page_cache.computed(make, here.viewer, levels, *arguments, about=about)


def basis_control(here: Here) -> By:
    """The controls; published matrices alone leave nothing to choose."""
    spec = triage_choice.analysis()
    if not here.known.judges:
        return By(here, Basis.JUDGE)
    basis = Basis(triage_choice.one_of("Levels of answers", list(Basis), "triage_basis", width=140))
    by = By(here, basis, Held(settled=spec.settled))
    if basis is not Basis.CORRECTED:
        return by
    about = (here.chosen, spec.settled)
    usual, why = page_cache.computed(usual_held, here.viewer, by.known, spec, about=about)
    claims, readers = list(Claim), list(Physicians)
    claim = triage_choice.one_of(
        "Holds for", claims, "triage_claim", width=160, usual=usual.claim, format_func=CLAIMS.__getitem__
    )
    physicians = triage_choice.one_of(
        "As read by", readers, "triage_readers_of", width=175, usual=usual.physicians, format_func=READERS.__getitem__
    )
    held = Held(Claim(claim), Physicians(physicians), spec.settled)
    return By(here, basis, held, why if held == usual else "")


def show_pairs(known: pd.DataFrame, first: Mapping[str, Any], values: Mapping[str, Any], *, key: str, alt: str) -> None:
    """Two models a row, on the cases that both answered."""
    columns = {"Format": known["format"].astype(str), **first}
    columns |= {"First model": known["model_1"].astype(str), "Second model": known["model_2"].astype(str), **values}
    columns |= {"Cases of both": known["n"], "p (Holm)": known["p_holm"].map(chance_words)}
    tables.show(columns, key=key, alt=alt, names=("First model", "Second model"))


def nearest_words(table: pd.DataFrame) -> str:
    """That nothing can be corrected yet, and what is lacking to the model and format that is nearest to it."""
    row = table.iloc[int(table["n_needed"].to_numpy().argmin())]
    return f"Nothing can be corrected yet: {row['model']} in {row['format']} needs {row['reason']}, and is the nearest to it."
