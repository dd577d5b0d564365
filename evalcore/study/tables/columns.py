"""The kinds of columns that the tables share."""

from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import Column, DateTime, String, Text, TypeDecorator
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeEngine
from sqlmodel import Field


class UtcDateTime(TypeDecorator[datetime]):
    """Times are stored in UTC and come back with their zone; SQLite itself forgets it."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002 - SQLAlchemy's signature
        """To UTC; a time without a zone is a mistake of ours."""
        if value is None:
            return None
        if value.tzinfo is None:
            msg = f"time without a zone: {value!r}"
            raise ValueError(msg)
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002 - SQLAlchemy's signature
        """In UTC again: SQLite gives no zone back, PostgreSQL that of its session."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class Word(TypeDecorator[str]):
    """A word of a vocabulary, checked when it is written: the database itself takes any, so that a new word needs no migration."""

    impl = String
    cache_ok = True

    def __init__(self, *kinds: type[StrEnum]) -> None:
        super().__init__()
        self.kinds = kinds
        self.words = tuple(str(word) for kind in kinds for word in kind)

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002 - SQLAlchemy's signature
        """As text.

        Raises:
            ValueError: It is no word of them.
        """
        if value is None:
            return None
        if value not in self.words:
            msg = f"expected one of {', '.join(self.words)}, got {value!r}"
            raise ValueError(msg)
        return str(value)

    def coerce_compared_value(self, op: Any, value: Any) -> TypeEngine[Any]:  # noqa: ARG002 - the same
        """What is compared with is not written: any text."""
        return String()


def now() -> datetime:
    """The present time in UTC."""
    return datetime.now(tz=UTC)


def word(
    *kinds: type[StrEnum], nullable: bool = False, default: StrEnum | None = None, server_default: StrEnum | None = None
) -> Any:
    """A word of one of these vocabularies."""
    column: Column[str | None] = Column(Word(*kinds), nullable=nullable, server_default=server_default)
    return Field(default=default, sa_column=column) if nullable or default is not None else Field(sa_column=column)


def moment() -> Any:
    """A time, the present one by default."""
    return Field(default_factory=now, sa_column=Column(UtcDateTime(), nullable=False))


def moment_or_none() -> Any:
    """A time, or none yet."""
    return Field(default=None, sa_column=Column(UtcDateTime(), nullable=True))


def text_column(*, nullable: bool = False) -> Any:
    """Text of any length."""
    return Field(default=None, sa_column=Column(Text, nullable=nullable))
