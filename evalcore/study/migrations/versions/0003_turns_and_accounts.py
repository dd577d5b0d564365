"""Who is importing just now; accounts that are nobody's any more; roles that groups of the provider gave."""

from evalcore.study.migrations.words import add, numbered

revision = "3"
down_revision = "2"


def upgrade() -> None:
    numbered("import_under_way", "name, actor, started_at time, seen_at time, megabytes float")
    add("identity", "unbound_at time null")
    add("person", "group_roles = []")
