"""People who sign in: whether they are active, what their provider calls them, invitations, and sessions in browsers."""

import sqlalchemy as sa

from evalcore.study.migrations.words import add, numbered

revision = "2"
down_revision = "1"


def upgrade() -> None:
    add("person", "active bool = true")
    numbered(
        "identity",
        "person_id int of person.id, issuer, subject, created_at time",
        sa.UniqueConstraint("issuer", "subject"),
    )
    numbered(
        "invitation",
        "token_hash unique, person_id int of person.id, created_by, created_at time, expires_at time, used_at time null",
    )
    numbered(
        "sign_in", "token_hash unique, issuer, subject, name, groups, created_at time, seen_at time, ended_at time null"
    )
