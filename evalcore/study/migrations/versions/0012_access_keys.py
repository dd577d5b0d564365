"""Keys with which a program reads the study over HTTP."""

from evalcore.study.migrations.words import numbered

revision = "12"
down_revision = "11"


def upgrade() -> None:
    numbered(
        "access_key",
        "key_hash unique, person_id int of person.id, purpose, created_by, created_at time, expires_at time, "
        "revoked_at time null",
    )
