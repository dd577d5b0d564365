"""Lines between a reader and the lead on a response."""

from evalcore.study.migrations.words import index, numbered

revision = "5"
down_revision = "4"


def upgrade() -> None:
    numbered(
        "response_note", "task_id int of task.id, person_id int of person.id, kind, text text, written_by, at time"
    )
    index("ix_response_note_thread", "response_note", "task_id, person_id")
