"""All tables of the code, and the full-text index.

What a later migration adds is there already in a study that this one makes: it adds only what is missing.
"""

from alembic import op

from evalcore.study.tables import Row

revision = "12"
down_revision = None


def upgrade() -> None:
    connection = op.get_bind()
    if connection.dialect.name == "postgresql":
        for index in (index for table in Row.metadata.tables.values() for index in table.indexes):
            index.dialect_options["postgresql"]["where"] = index.dialect_options["sqlite"]["where"]
    Row.metadata.create_all(connection, checkfirst=False)
    if connection.dialect.name == "sqlite":
        # contentless: the index holds words, the texts stay in their own tables
        op.execute(
            "CREATE VIRTUAL TABLE search_text USING fts5(body, content='', tokenize=\"unicode61 categories 'L* M* N* Co'\")"
        )
        op.execute("INSERT INTO search_text (search_text, rank) VALUES ('hashsize', 8388608)")  # fewer pieces to merge
        return
    op.execute(
        "CREATE TABLE search_text (rowid integer PRIMARY KEY REFERENCES search_entry(id), body tsvector NOT NULL)"
    )
    op.execute("CREATE INDEX ix_search_text ON search_text USING gin(body)")
    # acts take the numbers of kept hashes side by side
    op.execute("CREATE SEQUENCE row_hash_number AS integer OWNED BY row_hash.id")
