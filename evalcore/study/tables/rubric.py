"""What is read: conversations with their rubrics, the answers of models, and the index of their words."""

from sqlalchemy import CheckConstraint, Index, UniqueConstraint
from sqlmodel import Field, SQLModel

from evalcore.study.schema import MAX_POINTS, MIN_POINTS
from evalcore.study.tables.columns import text_column


class Example(SQLModel, table=True):
    """A conversation with its tags. `messages` and `tags` are JSON; `provisional`: known only from results on it."""

    __table_args__ = (UniqueConstraint("dataset", "prompt_id"), Index("ix_example_theme", "theme"))

    id: int | None = Field(default=None, primary_key=True)
    dataset: str
    prompt_id: str
    messages: str = text_column()
    n_turns: int
    first_words: str
    language: str | None = None
    theme: str | None = None
    category: str | None = None
    tags: str = "[]"
    ideal_completions: str | None = text_column(nullable=True)
    canary: str | None = None
    provisional: bool = False


class ExampleSubset(SQLModel, table=True):
    """Membership of an example in a part of its data set: oss_eval, hard, consensus."""

    __tablename__ = "example_subset"

    example_id: int = Field(foreign_key="example.id", primary_key=True)
    subset: str = Field(primary_key=True)


class Criterion(SQLModel, table=True):
    """One line of a rubric; `position` counts from 1."""

    __table_args__ = (
        UniqueConstraint("example_id", "position"),
        CheckConstraint(f"points BETWEEN {MIN_POINTS} AND {MAX_POINTS} AND points <> 0", name="ck_points"),
    )

    id: int | None = Field(default=None, primary_key=True)
    example_id: int = Field(foreign_key="example.id")
    position: int
    text: str = text_column()
    points: int | None = None
    axis: str | None = None
    level: str | None = None
    cluster: str | None = None
    tags: str = "[]"


class Model(SQLModel, table=True):
    """A language model that answers."""

    id: int | None = Field(default=None, primary_key=True)
    name: str = Field(unique=True)


class Response(SQLModel, table=True):
    """One model's answer to one example.

    Attributes:
        dataset: The evaluation it was made for, e.g. healthbench_hard.
        sample_index: 0, 1, ... for repeats.
        sent_messages: JSON of what was sent to the model, where it is not the example's conversation.
        n_criteria: How many criteria a judge is asked on it; with fewer verdicts there is no score.
    """

    __table_args__ = (UniqueConstraint("example_id", "model_id", "dataset", "sample_index"),)

    id: int | None = Field(default=None, primary_key=True)
    example_id: int = Field(foreign_key="example.id")
    model_id: int = Field(foreign_key="model.id")
    dataset: str
    sample_index: int = 0
    text: str = text_column()
    completion_id: str | None = None
    sent_messages: str | None = text_column(nullable=True)
    n_criteria: int | None = None


class SearchEntry(SQLModel, table=True):
    """What a row of the full-text index belongs to; its text lives in the index alone."""

    __tablename__ = "search_entry"

    id: int | None = Field(default=None, primary_key=True)
    example_id: int = Field(foreign_key="example.id")


class SearchPending(SQLModel, table=True):
    """Text that waits to enter the full-text index; `store.index_texts` moves it there.

    Attributes:
        is_example: It is the example's own text, so the example's language is to be told as well.
    """

    __tablename__ = "search_pending"

    id: int | None = Field(default=None, primary_key=True)
    example_id: int = Field(foreign_key="example.id")
    body: str = text_column()
    is_example: bool = False
