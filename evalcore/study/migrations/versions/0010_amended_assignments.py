"""An assignment may be cancelled or paused, and what somebody has begun may be taken out of their hands."""

from evalcore.study.migrations.words import add

revision = "10"
down_revision = "8"


def upgrade() -> None:
    add("assignment", "paused_at time null, cancelled_at time null, cancelled_because text null")
    add("reading", "freed_at time null")
