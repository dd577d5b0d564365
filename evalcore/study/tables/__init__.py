"""The tables. Rows are checked before they come here (importers, pages); constraints of the database are the last wall.

`verdict`, `row_hash`, `guideline`, `analysis`, `exposure` and `audit_event` are append-only: triggers in the database refuse UPDATE, DELETE
and REPLACE (`evalcore.study.triggers`).
"""

from sqlmodel import SQLModel

from evalcore.study.tables.columns import UtcDateTime, now
from evalcore.study.tables.reading import Assignment, AssignmentReader, Exposure, Mark, Reading, Task
from evalcore.study.tables.rubric import Criterion, Example, ExampleSubset, Model, Response, SearchEntry, SearchPending
from evalcore.study.tables.runs import Run, RunCall, RunQuestion, RunWorker, SuspectResponse
from evalcore.study.tables.study import (
    AnalysisVersion,
    Guideline,
    ImportedFile,
    ModelFamily,
    Person,
    Study,
    UnfinishedImport,
)
from evalcore.study.tables.triage import (
    AcuityCase,
    JudgeConfidence,
    LabelMapping,
    PanelVote,
    PublishedMatrix,
    TriageChoice,
)
from evalcore.study.tables.verdicts import AuditEvent, Rater, RowHash, Verdict

__all__ = [
    "TABLES",
    "AcuityCase",
    "AnalysisVersion",
    "Assignment",
    "AssignmentReader",
    "AuditEvent",
    "Criterion",
    "Example",
    "ExampleSubset",
    "Exposure",
    "Guideline",
    "ImportedFile",
    "JudgeConfidence",
    "LabelMapping",
    "Mark",
    "Model",
    "ModelFamily",
    "PanelVote",
    "Person",
    "PublishedMatrix",
    "Rater",
    "Reading",
    "Response",
    "RowHash",
    "Run",
    "RunCall",
    "RunQuestion",
    "RunWorker",
    "SearchEntry",
    "SearchPending",
    "Study",
    "SuspectResponse",
    "Task",
    "TriageChoice",
    "UnfinishedImport",
    "UtcDateTime",
    "Verdict",
    "now",
]

TABLES = SQLModel.metadata.tables
"""Every table by its name."""
