"""Cases of triage, what models answered on them, and what everybody says of that, as frames that fit in memory: the input of the statistics."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from evalcore.study.schema import Acuity

LEVELS = {
    Acuity.A: 1.0, Acuity.A_B: 1.5, Acuity.B: 2.0, Acuity.B_C: 2.5, Acuity.C: 3.0, Acuity.C_D: 3.5, Acuity.D: 4.0,
    Acuity.REMOVE: np.nan,
}  # fmt: skip
LETTERS = (Acuity.A, Acuity.B, Acuity.C, Acuity.D)
"""The levels 1, 2, 3, 4 by name."""
CASE_COLUMNS = (
    "example_id", "case_id", "source", "original_label", "mapped_label", "file_gold", "method", "is_edge_case", "uncertainty",
    "language", "first_words",
)  # fmt: skip
SAMPLE_COLUMNS = ("response_id", "row", "model", "format", "sample_index", "has_text")
VOTE_COLUMNS = ("row", "place", "rater", "vote")
READ_COLUMNS = (
    "row", "sample", "asked", "rater", "label", "stage", "blinded", "selection", "inclusion_probability", "verdict_id",
)  # fmt: skip
ELSEWHERE_COLUMNS = ("row", "model")
CONFIDENCE_COLUMNS = ("sample", "rater", "confidence")
NO_LEVEL = 0.0
"""In `TriageData.levels`: the rater looked and found no level, or conflicting ones. It is not a level, and is counted apart."""
MAX_SPREAD, MAX_UNCERTAINTY = 0.75, 0.7


@dataclass(frozen=True)
class AmbiguityRule:
    """When a case counts as ambiguous.

    Attributes:
        spread: A panel's spread above this, 0 to 9.
        uncertainty: Or physicians' stated uncertainty above this, 0 to 1. Infinity switches either off.
    """

    spread: float = MAX_SPREAD
    uncertainty: float = MAX_UNCERTAINTY


@dataclass(frozen=True)
class TriageData:
    """The cases of a study and everything said of them. Levels are 1 (A, home) to 4 (D, emergency now); boundaries 1.5, 2.5, 3.5.

    Attributes:
        cases: One row a case, numbered from 0: example_id, case_id, source, original_label, mapped_label, file_gold (a level as the file
            gives it, NaN where it gives none), method (`schema.MappingMethod`), is_edge_case, uncertainty (physicians', in [0, 1], NaN where
            not stated), language, first_words. `panels.described` adds what follows from the votes.
        votes: One row a panel vote: row (of `cases`), place (from 1), rater, vote (a level; NaN: Remove).
        samples: One row a response to a case, by case: response_id, row (of `cases`), model, format (qa, conversation), both
            categorical, sample_index (0, 1, ...), has_text (False: only its level is known).
        levels: The same rows, one column a judge (parser and rules are judges too): float32, a level, `NO_LEVEL`, or NaN where this
            judge has not looked.
        confidence: One row a stated confidence: sample (row of `samples`), rater (the judge), confidence in [0, 1].
        reads: One row a physician's standing verdict a stage: row (of `cases`), sample (row of `samples`; -1: of the case itself), asked (`Ask`),
            rater, label (`Acuity` or cannot_assess), stage, blinded, selection, inclusion_probability (NaN where not drawn), verdict_id.
        published: Finished confusion matrices, one row a model, format and gold: model, format, gold (a level), A, B, C, D (counts).
        elsewhere: Responses to these cases that are neither qa nor conversation, as another evaluation has them: row (of `cases`), model. They are no
            samples, and are counted apart.
        juries: Those of the judges that say what other judges say most often: they have no vote beside them.
    """

    cases: pd.DataFrame
    votes: pd.DataFrame
    samples: pd.DataFrame
    levels: pd.DataFrame
    confidence: pd.DataFrame
    reads: pd.DataFrame
    published: pd.DataFrame
    elsewhere: pd.DataFrame = field(default_factory=lambda: pd.DataFrame({name: [] for name in ELSEWHERE_COLUMNS}))
    juries: frozenset[str] = frozenset()

    def judges(self, asked: str) -> list[str]:
        """Who has looked at responses of one format, those who looked at most first."""
        of_format = self.samples["format"].eq(asked).to_numpy()
        looked = self.levels.loc[of_format].notna().sum()
        return [str(name) for name in looked[looked > 0].sort_values(ascending=False, kind="stable").index]

    def voters(self, asked: str) -> list[str]:
        """Those of them that say what they themselves have read: juries say again what others say."""
        return [name for name in self.judges(asked) if name not in self.juries]

    def where(self, kept: Any) -> "TriageData":
        """These cases alone, numbered anew, with all that belongs to them. Published matrices have no cases and stay.

        Args:
            kept: Truth values, one a case.
        """
        mask = np.asarray(kept, dtype=bool)
        if mask.all():
            return self
        numbers = np.cumsum(mask) - 1
        samples = mask[self.samples["row"].to_numpy()]
        places = np.append(np.cumsum(samples) - 1, -1)  # the last: of no sample
        samples_left = self.samples.loc[samples].reset_index(drop=True)
        votes = self.votes.loc[mask[self.votes["row"].to_numpy()]].reset_index(drop=True)
        reads = self.reads.loc[mask[self.reads["row"].to_numpy()]].reset_index(drop=True)
        confidence = self.confidence.loc[samples[self.confidence["sample"].to_numpy()]].reset_index(drop=True)
        elsewhere_rows = self.elsewhere["row"].to_numpy(dtype=np.int64)
        elsewhere = self.elsewhere.loc[mask[elsewhere_rows]].reset_index(drop=True)
        return replace(
            self,
            cases=self.cases.loc[mask].reset_index(drop=True),
            votes=votes.assign(row=numbers[votes["row"].to_numpy()]),
            samples=samples_left.assign(row=numbers[samples_left["row"].to_numpy()]),
            levels=self.levels.loc[samples].reset_index(drop=True),
            confidence=confidence.assign(sample=places[confidence["sample"].to_numpy()]),
            reads=reads.assign(row=numbers[reads["row"].to_numpy()], sample=places[reads["sample"].to_numpy()]),
            elsewhere=elsewhere.assign(row=numbers[elsewhere_rows[mask[elsewhere_rows]]]),
        )

    def without(self, example_ids: frozenset[int]) -> "TriageData":
        """Without the cases of these examples."""
        return self.where(~self.cases["example_id"].isin(list(example_ids))) if example_ids else self

    def of_models(self, models: Sequence[str]) -> "TriageData":
        """With the responses of these models alone."""
        kept = self.samples["model"].isin(list(models)).to_numpy()
        places = np.append(np.where(kept, np.cumsum(kept) - 1, -1), -1)
        confidence = self.confidence.loc[kept[self.confidence["sample"].to_numpy()]].reset_index(drop=True)
        reads = self.reads.assign(place=places[self.reads["sample"].to_numpy()])
        reads = reads.loc[reads["sample"].lt(0) | reads["place"].ge(0)].reset_index(drop=True)
        return replace(
            self,
            samples=self.samples.loc[kept].reset_index(drop=True),
            levels=self.levels.loc[kept].reset_index(drop=True),
            confidence=confidence.assign(sample=places[confidence["sample"].to_numpy()]),
            reads=reads.drop(columns="sample").rename(columns={"place": "sample"})[list(READ_COLUMNS)],
            elsewhere=self.elsewhere.loc[self.elsewhere["model"].isin(list(models))].reset_index(drop=True),
        )
