"""Runs: what is asked of models, who asks it now, and what came of it. The answers themselves are responses and verdicts."""

from datetime import datetime

from sqlalchemy import Index, UniqueConstraint, func
from sqlmodel import Field, SQLModel

from evalcore.study.run_states import STREAK, Outcome, RunKind, RunState
from evalcore.study.tables.columns import moment, moment_or_none, text_column, word


class Run(SQLModel, table=True):
    """One run; the same questions by the same model with the same prompt are the same run.

    Attributes:
        name: Of the model or judge that is asked.
        spec: `RunSpec` as JSON. It holds no key.
        reason: Why it was stopped, one sentence.
        max_cost: US dollars at which it stops; None: no limit.
        max_failures: Failures in a row, of one worker, that stop it.
    """

    id: int | None = Field(default=None, primary_key=True)
    kind: str = word(RunKind)
    name: str
    fingerprint: str = Field(unique=True)
    spec: str = text_column()
    state: str = word(RunState, default=RunState.OPEN)
    reason: str | None = text_column(nullable=True)
    max_cost: float | None = None
    max_failures: int = Field(default=STREAK, sa_column_kwargs={"server_default": str(STREAK)})
    concurrency: int
    started_by: str
    created_at: datetime = moment()
    ended_at: datetime | None = moment_or_none()


class RunWorker(SQLModel, table=True):
    """A process that works on a run. It says every few seconds that it lives; what a dead one held is free again.

    Attributes:
        host, pid: Of the process, so that on the same machine its death is known at once.
        stop_asked: It shall finish what is in flight and end.
    """

    __tablename__ = "run_worker"

    id: int | None = Field(default=None, primary_key=True)
    run_id: int = Field(foreign_key="run.id", index=True)
    host: str
    pid: int
    started_at: datetime = moment()
    seen_at: datetime = moment()
    ended_at: datetime | None = moment_or_none()
    stop_asked: bool = False


class RunQuestion(SQLModel, table=True):
    """One question of a run (`run_states.Question`).

    Attributes:
        outcome: Of its last call; None: not asked yet, or to be asked again.
        worker_id: Who holds it; None: nobody.
    """

    __tablename__ = "run_question"
    id: int | None = Field(default=None, primary_key=True)
    run_id: int = Field(foreign_key="run.id")
    example_id: int = Field(foreign_key="example.id")
    response_id: int | None = Field(default=None, foreign_key="response.id")
    criterion_id: int | None = Field(default=None, foreign_key="criterion.id")
    format: str = ""
    sample_index: int = 0
    repeat: int = 0
    outcome: str | None = word(Outcome, nullable=True)
    worker_id: int | None = Field(default=None, foreign_key="run_worker.id")


class RunCall(SQLModel, table=True):
    """What came of a question (`run_states.Call`), one row a call; at most one of a question's is answered.

    Attributes:
        worker_id: Who called, a row of `run_worker`; None: before that was kept.
    """

    __tablename__ = "run_call"
    id: int | None = Field(default=None, primary_key=True)
    run_id: int = Field(foreign_key="run.id")
    question_id: int = Field(foreign_key="run_question.id")
    outcome: str = word(Outcome)
    status: int | None = None
    error: str | None = text_column(nullable=True)
    reply: str | None = text_column(nullable=True)
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost: float | None = None
    attempts: int = 1
    seconds: float = 0.0
    at: datetime = moment()
    worker_id: int | None = None


class SuspectResponse(SQLModel, table=True):
    """A response that holds text which speaks to the judge: its verdicts are flagged for physicians.

    Attributes:
        reasons: JSON array of sentences, each with the words quoted.
    """

    __tablename__ = "suspect_response"
    __table_args__ = (UniqueConstraint("response_id"),)

    id: int | None = Field(default=None, primary_key=True)
    response_id: int = Field(foreign_key="response.id")
    reasons: str = text_column()


_question = SQLModel.metadata.tables["run_question"].c
Index(
    "ix_run_question_item",
    _question.run_id,
    _question.example_id,
    func.coalesce(_question.response_id, 0),
    func.coalesce(_question.criterion_id, 0),
    _question.format,
    _question.sample_index,
    _question.repeat,
    unique=True,
)
Index(
    "ix_run_question_open",
    _question.run_id,
    _question.id,
    sqlite_where=_question.outcome.is_(None),
    postgresql_where=_question.outcome.is_(None),
)
_call = SQLModel.metadata.tables["run_call"].c
Index("ix_run_call_run", _call.run_id, _call.outcome)
Index(
    "ix_run_call_answered",
    _call.question_id,
    unique=True,
    sqlite_where=_call.outcome == Outcome.ANSWERED.value,
    postgresql_where=_call.outcome == Outcome.ANSWERED.value,
)
