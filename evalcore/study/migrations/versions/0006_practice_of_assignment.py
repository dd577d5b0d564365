"""On which responses the readers of an assignment practise first."""

from evalcore.study.migrations.words import add

revision = "6"
down_revision = "5"


def upgrade() -> None:
    add("assignment", "practice text null")
