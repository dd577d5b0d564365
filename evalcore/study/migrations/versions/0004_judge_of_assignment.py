"""Whose verdicts the readers of an assignment are shown."""

from evalcore.study.migrations.words import add

revision = "4"
down_revision = "3"


def upgrade() -> None:
    add("assignment", "judge null")
