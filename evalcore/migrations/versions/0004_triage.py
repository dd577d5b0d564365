"""Cases of triage with their panels, published matrices, and what a study chooses about them."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

LEVELS = ("A", "A/B", "B", "B/C", "C", "C/D", "D", "remove")


def one_of(column: str, *words: str) -> sa.CheckConstraint:
    return sa.CheckConstraint(" OR ".join(f"{column} = '{word}'" for word in words), name=f"ck_{column}")


def upgrade() -> None:
    op.create_table(
        "acuity_case",
        sa.Column("example_id", sa.Integer(), sa.ForeignKey("example.id"), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("source_id", sa.String(), nullable=False),
        sa.Column("original_label", sa.String(), nullable=True),
        sa.Column("mapped_label", sa.String(), nullable=True),
        sa.Column("gold", sa.String(), nullable=True),
        sa.Column("method", sa.String(), nullable=False),
        sa.Column("is_edge_case", sa.Boolean(), nullable=False),
        sa.Column("uncertainty", sa.Float(), nullable=True),
        sa.Column("notes", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("example_id"),
        one_of("gold", *LEVELS),
        one_of("method", "direct", "median", "excluded_disagreement", "excluded_removed", "none"),
        sa.CheckConstraint("uncertainty BETWEEN 0 AND 1", name="ck_uncertainty"),
    )
    op.create_table(
        "panel_vote",
        sa.Column("example_id", sa.Integer(), sa.ForeignKey("example.id"), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("rater", sa.String(), nullable=True),
        sa.Column("vote", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("example_id", "place"),
        one_of("vote", *LEVELS),
    )
    op.create_table(
        "published_matrix",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("format", sa.String(), nullable=False),
        sa.Column("gold", sa.String(), nullable=False),
        *(sa.Column(level, sa.Integer(), nullable=False) for level in "abcd"),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("model", "format", "gold"),
        one_of("format", "qa", "conversation"),
        one_of("gold", *LEVELS),
        sa.CheckConstraint("a >= 0 AND b >= 0 AND c >= 0 AND d >= 0", name="ck_counts"),
    )
    op.create_table(
        "label_mapping",
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("label", sa.String(), nullable=False),
        sa.Column("meaning", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("source", "label"),
    )
    op.create_table(
        "triage_choice",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "judge_confidence",
        sa.Column("judge", sa.String(), nullable=False),
        sa.Column("meaning", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("judge"),
        one_of("meaning", "met", "right"),
    )
