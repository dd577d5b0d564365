"""How one physician's reads stand to what the judge said and to what was settled."""

import pandas as pd

from evalcore.metrics.reference import current_reads
from evalcore.schema import RaterKind, Stage


def own_items(verdicts: pd.DataFrame, reader: str) -> pd.DataFrame:
    """One physician's items: first read, label now, adjudicated label.

    Args:
        verdicts: As `queries.frames.verdicts` gives them, of the examples that the physician read.
        reader: The physician's name.

    Returns:
        One row an item that the physician read, index item_id: response_id, criterion_id, first_label (missing where there is no first
        read), label (the standing one), final_label (missing where nobody has settled the item), changed (label differs
        from first_label), off_final (label differs from final_label).
    """
    mine = verdicts.loc[verdicts["rater"].eq(reader) & verdicts["rater_kind"].eq(RaterKind.REVIEWER)]
    now = current_reads(mine).set_index("item_id")
    first = mine.loc[mine["stage"].isin([Stage.FIRST, Stage.OPEN])].sort_values(["created_at", "verdict_id"])
    settled = verdicts.loc[verdicts["stage"].eq(Stage.ADJUDICATED)].sort_values(["created_at", "verdict_id"])
    table = now[["response_id", "criterion_id", "label"]].copy()
    table["first_label"] = first.drop_duplicates("item_id").set_index("item_id")["label"].reindex(table.index)
    table["final_label"] = (
        settled.drop_duplicates("item_id", keep="last").set_index("item_id")["label"].reindex(table.index)
    )
    table["changed"] = table["first_label"].notna() & table["label"].ne(table["first_label"])
    table["off_final"] = table["final_label"].notna() & table["label"].ne(table["final_label"])
    return table


def by_response(items: pd.DataFrame) -> pd.DataFrame:
    """Items of `own_items` counted by response: n_items, n_changed, n_settled, n_off_final; index response_id."""
    grouped = items.groupby("response_id")
    return pd.DataFrame(
        {
            "n_items": grouped.size(),
            "n_changed": grouped["changed"].sum(),
            "n_settled": grouped["final_label"].count(),
            "n_off_final": grouped["off_final"].sum(),
        }
    )


def final_labels(items: pd.DataFrame, response_id: int) -> dict[int, str]:
    """The adjudicated label by criterion_id, of one response's items of `own_items` that were settled."""
    settled = items.loc[items["response_id"].eq(response_id) & items["final_label"].notna()]
    return dict(zip(settled["criterion_id"].tolist(), settled["final_label"].tolist(), strict=True))
