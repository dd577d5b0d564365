"""How one physician's reads stand to what the judge said and to what was settled."""

from typing import NamedTuple

import pandas as pd

from evalcore.reading.reference import current_reads
from evalcore.stats.wording import counted, listed
from evalcore.study.schema import RaterKind, Stage


def own_items(verdicts: pd.DataFrame, reader: str) -> pd.DataFrame:
    """One physician's items: first read, label now, adjudicated label.

    Args:
        verdicts: As `frames.verdicts` or `acuity_verdicts` gives them, of the examples that the physician read.

    Returns:
        One row an item that the physician read, index item_id: example_id, response_id, criterion_id (missing for acuity), first_label
        (missing where there is no first read), label (the standing one), final_label (missing where nobody has settled the item),
        changed (label differs from first_label), off_final (label differs from final_label).
    """
    mine = verdicts.loc[verdicts["rater"].eq(reader) & verdicts["rater_kind"].eq(RaterKind.REVIEWER)]
    now = current_reads(mine).set_index("item_id")
    first = mine.loc[mine["stage"].isin([Stage.FIRST, Stage.OPEN])].sort_values("verdict_id")
    settled = verdicts.loc[verdicts["stage"].eq(Stage.ADJUDICATED)].sort_values("verdict_id")
    table = now.reindex(columns=["example_id", "response_id", "criterion_id", "label"])
    table["first_label"] = first.drop_duplicates("item_id").set_index("item_id")["label"].reindex(table.index)
    table["final_label"] = (
        settled.drop_duplicates("item_id", keep="last").set_index("item_id")["label"].reindex(table.index)
    )
    table["changed"] = table["first_label"].notna() & table["label"].ne(table["first_label"])
    table["off_final"] = table["final_label"].notna() & table["label"].ne(table["final_label"])
    return table


class Totals(NamedTuple):
    """What one physician has read, counted.

    Attributes:
        n_items: Criteria of responses, levels of responses, and cases, each once, whatever became of the label since.
        n_responses: Responses of which any item was read, by their rubric or for their level.
        n_cases: Cases whose own level was read.
        n_changed: Items whose label is no more that of the first read.
        n_settled, n_off_final: Items that an adjudicator settled, and those settled with another label than the physician's.
    """

    n_items: int
    n_responses: int
    n_cases: int
    n_changed: int
    n_settled: int
    n_off_final: int


def read_words(n_items: int, n_responses: int, n_cases: int) -> str:
    """How much somebody has read.

    >>> read_words(14, 1, 2), read_words(1, 1, 0), read_words(0, 0, 0)
    ('1 response and 2 cases (14 items)', '1 response (1 item)', 'nothing')
    """
    parts = [counted(n, word) for n, word in ((n_responses, "response"), (n_cases, "case")) if n]
    return f"{listed(parts)} ({counted(n_items, 'item')})" if parts else "nothing"


def totals(items: pd.DataFrame) -> Totals:
    """Items of `own_items`, counted; `contents.readers` counts the same for everybody at once."""
    return Totals(
        n_items=len(items),
        n_responses=items["response_id"].nunique(),
        n_cases=items.loc[items["response_id"].isna(), "example_id"].nunique(),
        n_changed=int(items["changed"].sum()),
        n_settled=int(items["final_label"].notna().sum()),
        n_off_final=int(items["off_final"].sum()),
    )


TASK = ["ask", "example_id", "response_id"]


def by_task(items: pd.DataFrame) -> pd.DataFrame:
    """Items of `own_items`, with the column ask, counted by task: ask, example_id, response_id, n_items, n_changed, n_settled, n_off_final."""
    grouped = items.groupby(TASK, dropna=False)
    counts = pd.DataFrame(
        {
            "n_items": grouped.size(),
            "n_changed": grouped["changed"].sum(),
            "n_settled": grouped["final_label"].count(),
            "n_off_final": grouped["off_final"].sum(),
        }
    )
    return counts.reset_index()


def final_labels(items: pd.DataFrame, ask: str, example_id: int, response_id: int | None) -> dict[int | None, str]:
    """The adjudicated label by criterion_id (None for acuity), of one task's items of `own_items`, with the column ask, that were settled."""
    response = items["response_id"].isna() if response_id is None else items["response_id"].eq(response_id)
    mine = items["ask"].eq(ask) & items["example_id"].eq(example_id) & response
    settled = items.loc[mine & items["final_label"].notna()]
    criteria = [None if pd.isna(number) else int(number) for number in settled["criterion_id"]]
    return dict(zip(criteria, settled["final_label"], strict=True))
