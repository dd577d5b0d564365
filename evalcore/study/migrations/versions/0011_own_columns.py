"""Mappings of columns, by name; how a response ended, and when it was made."""

from evalcore.study.migrations.words import add, table

revision = "11"
down_revision = "10"


def upgrade() -> None:
    table("column_mapping", "name key, text text, kept_by, kept_at time")
    add("response", "finish_reason null, made_on null")
