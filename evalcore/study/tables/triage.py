"""Triage: what is known of each case, the votes of its panel, published matrices, and what the study has chosen."""

from sqlalchemy import CheckConstraint, UniqueConstraint
from sqlmodel import Field, SQLModel

from evalcore.study.schema import Acuity, ConfidenceMeaning, Format, MappingMethod
from evalcore.study.tables.columns import text_column, word


class AcuityCase(SQLModel, table=True):
    """An example whose patient needs some level of care.

    Attributes:
        source: The data set that the case comes from, e.g. semigran.
        source_id: Its name there; the example's prompt_id is `{source}_{source_id}`.
        mapped_label: What the source's label map made of it: a level, a boundary, or "panel".
        gold: A level or boundary as the file gives it; None where it gives none.
        method: How the file came to it.
        uncertainty: Physicians' uncertainty as the file states it, in [0, 1].
    """

    __tablename__ = "acuity_case"
    __table_args__ = (CheckConstraint("uncertainty BETWEEN 0 AND 1", name="ck_uncertainty"),)

    example_id: int = Field(foreign_key="example.id", primary_key=True)
    source: str
    source_id: str
    original_label: str | None = None
    mapped_label: str | None = None
    gold: str | None = word(Acuity, nullable=True)
    method: str = word(MappingMethod)
    is_edge_case: bool = False
    uncertainty: float | None = None
    notes: str | None = text_column(nullable=True)


class PanelVote(SQLModel, table=True):
    """One physician's vote on a case, before and outside this study; `place` counts from 1."""

    __tablename__ = "panel_vote"
    example_id: int = Field(foreign_key="example.id", primary_key=True)
    place: int = Field(primary_key=True)
    rater: str | None = None
    vote: str = word(Acuity)


class PublishedMatrix(SQLModel, table=True):
    """One row of a finished confusion matrix: of cases with this gold, how many were given each level. There are no cases behind it."""

    __tablename__ = "published_matrix"
    __table_args__ = (
        UniqueConstraint("model", "format", "gold"),
        CheckConstraint("a >= 0 AND b >= 0 AND c >= 0 AND d >= 0", name="ck_counts"),
    )

    id: int | None = Field(default=None, primary_key=True)
    model: str
    format: str = word(Format)
    gold: str = word(Acuity)
    a: int
    b: int
    c: int
    d: int


class LabelMapping(SQLModel, table=True):
    """One row of the study's own label map of a source: what a label of the source stands for.

    Attributes:
        meaning: A level or boundary, "panel" (physicians have to decide), or "information X" (X is kept, and never the gold).
    """

    __tablename__ = "label_mapping"

    source: str = Field(primary_key=True)
    label: str = Field(primary_key=True)
    meaning: str


class TriageChoice(SQLModel, table=True):
    """One row: the study's settings of triage, as YAML."""

    __tablename__ = "triage_choice"

    id: int = Field(default=1, primary_key=True)
    text: str = text_column()


class JudgeConfidence(SQLModel, table=True):
    """What the confidence of a judge's verdicts means, as whoever imported them said."""

    __tablename__ = "judge_confidence"
    judge: str = Field(primary_key=True)
    meaning: str = word(ConfidenceMeaning)
