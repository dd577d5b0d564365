"""Points of a criterion may lie beyond -10..10: those of HealthBench Professional do."""

from alembic import op

revision = "7"
down_revision = "6"

NARROW = "points BETWEEN -10 AND 10 AND points <> 0"
WIDE = "points BETWEEN -1000 AND 1000 AND points <> 0"


def upgrade() -> None:
    connection = op.get_bind()
    if connection.dialect.name != "sqlite":
        op.drop_constraint("ck_points", "criterion", type_="check")
        op.create_check_constraint("ck_points", "criterion", WIDE)
        return
    # SQLite changes no constraint, and a table that is written anew breaks the verdicts' keys to it. What a constraint says may be
    # written into the schema itself: it touches no row (sqlite.org/lang_altertable.html, section 7).
    version = connection.exec_driver_sql("PRAGMA schema_version").scalar_one()
    for statement in (
        "PRAGMA writable_schema = ON",
        f"UPDATE sqlite_master SET sql = replace(sql, '{NARROW}', '{WIDE}') WHERE name = 'criterion'",  # noqa: S608 - our own words
        f"PRAGMA schema_version = {version + 1}",
        "PRAGMA writable_schema = OFF",
    ):
        connection.exec_driver_sql(statement)
