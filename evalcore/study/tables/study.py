"""The study itself: its rules and its people, what readers are told and what is analysed, and which files came in."""

from datetime import datetime

from sqlalchemy import CheckConstraint, false
from sqlmodel import Field, SQLModel

from evalcore.study.schema import ReadingMode
from evalcore.study.tables.columns import moment, text_column, word


class Study(SQLModel, table=True):
    """One row: what this database is.

    Attributes:
        key: Random and secret. Its start names the cookie with the browser's choice of person, so that two studies on one machine
            do not share it; the whole keys the hashes that stand for names in meta-evaluation rows.
    """

    __table_args__ = (CheckConstraint("check_share BETWEEN 0 AND 1", name="ck_check_share"),)

    id: int = Field(default=1, primary_key=True)
    key: str
    created_at: datetime = moment()
    reading_mode: str = word(ReadingMode, default=ReadingMode.BLIND, server_default=ReadingMode.BLIND)
    judge: str | None = None
    check_share: float = Field(default=0.0, sa_column_kwargs={"server_default": "0"})
    control_share: float = Field(default=0.0, sa_column_kwargs={"server_default": "0"})
    both_against_judge: bool = Field(default=False, sa_column_kwargs={"server_default": false()})
    blind: bool = Field(default=False, sa_column_kwargs={"server_default": false()})
    leads_read: bool = Field(default=False, sa_column_kwargs={"server_default": false()})


class Person(SQLModel, table=True):
    """Somebody who uses this study. Lists are JSON arrays."""

    id: int | None = Field(default=None, primary_key=True)
    name: str = Field(unique=True)
    roles: str
    specialties: str = "[]"
    languages: str = "[]"
    created_at: datetime = moment()


class Guideline(SQLModel, table=True):
    """One version of what readers are told, in Markdown; append-only by its use: each verdict names its version."""

    version: int | None = Field(default=None, primary_key=True)
    text: str = text_column()
    created_by: str
    created_at: datetime = moment()


class AnalysisVersion(SQLModel, table=True):
    """One statement of what is analysed; append-only, the newest is in force.

    Attributes:
        n_reads_before: Physicians' blind first reads of items that existed when it was stated.
    """

    __tablename__ = "analysis"

    version: int | None = Field(default=None, primary_key=True)
    text: str = text_column()
    stated_by: str
    stated_at: datetime = moment()
    n_reads_before: int


class ModelFamily(SQLModel, table=True):
    """One row of the study's own table of families: the first pattern, by place, that fits a model's or judge's name."""

    __tablename__ = "model_family"

    place: int = Field(primary_key=True)
    pattern: str
    family: str


class ImportedFile(SQLModel, table=True):
    """A file that was imported: the same content with the same meaning adds nothing again."""

    __tablename__ = "imported_file"

    id: int | None = Field(default=None, primary_key=True)
    content_hash: str = Field(unique=True)
    name: str
    format: str
    created_at: datetime = moment()


class UnfinishedImport(SQLModel, table=True):
    """The import that is being written in parts, or was broken off between two of them; one at a time, and none where all are whole.

    Attributes:
        asked: What the file was to be imported as, as JSON.
        n_rows, n_done: Rows of the file, and those of them that are in the study.
        report: What came of the rows that are in the study, as JSON.
    """

    __tablename__ = "unfinished_import"

    id: int = Field(default=1, primary_key=True)
    name: str
    source_hash: str
    actor: str
    started_at: datetime = moment()
    asked: str = text_column()
    n_rows: int
    n_done: int = 0
    report: str = text_column()
