"""Responses without grades, one a row, CSV, JSON Lines or Parquet: to be judged or read here, or graded by a later file."""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime

from evalcore.importing.context import MAX_NAMED, Cells, FileFormat, Graded, ImportContext, Options, shown
from evalcore.importing.formats import own, values
from evalcore.importing.formats.values import refuse


def read_cells(cells: Cells, number: int, options: Options) -> Iterator[Graded]:
    """One response."""
    asked = own.conversation(cells.get("conversation"), "conversation")
    which = own.response_of(cells, options)
    own.check_example(str(which["prompt_id"]), asked, "conversation")
    date = values.name(cells, "date")
    try:
        day = date and datetime.fromisoformat(date).date().isoformat()
    except ValueError:
        refuse("date", "a day or time such as 2026-11-20 or 2026-11-20T10:00:00+00:00", shown(date))
    yield Graded(
        line=number,
        messages=asked,
        sent=own.conversation(cells.get("sent"), "sent", is_asked=False),
        scored_rubric=True,
        text=own.needed(cells, "text", "the response"),
        criteria=(),
        verdicts=(),
        finish_reason=values.name(cells, "finish_reason"),
        made_on=day,
        **which,  # type: ignore[arg-type]
    )


class Responses(own.OwnRows):
    """Takes responses; how they ended and when they were made is counted for the report."""

    def __init__(self, context: ImportContext) -> None:
        super().__init__(context)
        self._ended: Counter[str] = Counter()
        self._days: tuple[str, str] | None = None

    def _prepared(self, row: Graded) -> Graded:
        if row.finish_reason is not None:
            is_named = row.finish_reason in self._ended or len(self._ended) < MAX_NAMED
            self._ended[row.finish_reason if is_named else "another reason"] += 1
        if row.made_on is not None:
            first, last = self._days or (row.made_on, row.made_on)
            self._days = min(first, row.made_on), max(last, row.made_on)
        return super()._prepared(row)

    def finish(self) -> None:
        """Say how the responses ended, and when they were made."""
        if self._ended:
            told = ", ".join(f"{reason} {n:,}" for reason, n in self._ended.most_common())
            self._report.notes.append(f"How the responses ended, by the file: {told}")
        if self._days:
            self._report.notes.append(f"The responses were made from {self._days[0]} to {self._days[1]}, by the file")


FORMAT = FileFormat(
    name="responses",
    title="Responses without grades, CSV, JSON Lines or Parquet",
    columns={
        "text": "the response",
        "conversation": f"{own.CONVERSATION}; or example_id",
        **own.OF_A_RESPONSE,
        "sent": "what was sent to the model, where that is not the conversation alone: a list of {role, content}",
        "finish_reason": "how the response ended, such as stop or length",
        "date": "when it was made, such as 2026-11-20; the day is kept",
    },
    keys=frozenset({"text"}),
    one_of=(frozenset({"example_id", "conversation"}),),
    read_cells=read_cells,
    is_own=True,
    writer=Responses,
    is_parquet=True,
    json_columns=frozenset({"conversation", "sent"}),
)
