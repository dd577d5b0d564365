"""The long table of a judge's grades, one row a criterion, CSV, JSON Lines or Parquet: rows of one response may stand anywhere in it."""

from collections.abc import Sequence

from msgspec.structs import replace

from evalcore.importing.context import Cells, CriterionRef, FileFormat, Graded, Options, Rows, judged
from evalcore.importing.formats import own, values
from evalcore.importing.formats.values import refuse
from evalcore.importing.responses import of_response
from evalcore.study.schema import Criterion

MOST_GATHERED = 100
_GRADED, _NOTHING = ("criterion", "grade", "points"), ("", "", "")


def read_cells(cells: Cells, number: int, options: Options) -> tuple[Graded]:
    """One criterion of one response, with its grade where there is one."""
    asked = own.conversation(cells.get("question"), "question")
    which = own.response_of(cells, options)
    own.check_example(str(which["prompt_id"]), asked, "question")
    is_graded = any(map(str.strip, map(cells.get, _GRADED, _NOTHING)))
    text = own.needed(cells, "criterion", "the criterion's text") if is_graded else ""
    met = own.grade(cells.get("grade", ""), "grade")
    judge = values.name(cells, "judge") or options.judge
    if met is not None and judge is None:
        refuse("judge", "the judge's name here or as Judge", "nothing")
    verdict = None if met is None else judged(judge or "", values.words(cells, "reason"), is_met=met)
    row = Graded(
        line=number,
        messages=asked,
        rubric=(Criterion(text, own.points(cells.get("points", ""), "points")),) if is_graded else (),
        scored_rubric=not is_graded,
        is_row_of_table=True,
        text=own.needed(cells, "answer", "the response"),
        criteria=() if verdict is None else (CriterionRef(row=0, text=text),),
        verdicts=() if verdict is None else (verdict,),
        n_ungraded=int(is_graded and verdict is None),
        **which,  # type: ignore[arg-type]
    )
    return (row,)


def gathered(rows: Rows) -> Rows:
    """Rows of a table that follow one another, are of one response, and grade other criteria of it, made one."""
    together, texts, which = list[tuple[int, Graded]](), set[str](), tuple[object, ...]()

    def one() -> Rows:
        if together:
            yield together[0][0], [_as_one([row for _, row in together])]
            together.clear()
            texts.clear()

    for number, found in rows:
        row = found[0] if isinstance(found, list) and len(found) == 1 else None
        if row is None or not row.verdicts:
            yield from one()
            yield number, found
            continue
        text, before = row.rubric[0].text, which
        which = row.dataset, row.prompt_id, row.messages, of_response(row)
        if together and (text in texts or len(together) == MOST_GATHERED or which != before):
            yield from one()
        together.append((number, row))
        texts.add(text)
    yield from one()


def _as_one(rows: Sequence[Graded]) -> Graded:
    if len(rows) == 1:
        return rows[0]
    return replace(
        rows[0],
        rubric=tuple(row.rubric[0] for row in rows),
        criteria=tuple(CriterionRef(row=place, text=row.rubric[0].text) for place, row in enumerate(rows)),
        verdicts=tuple(row.verdicts[0] for row in rows),
        lines=tuple(row.line for row in rows),
    )


class TableRows(own.OwnRows):
    """Takes rows of one criterion each."""

    batch = 2_000
    most_kept = 100_000  # about 40 MB; in a file that goes model by model, each example comes again and again


FORMAT = FileFormat(
    name="grade-table",
    title="A judge's grades as a long table, one row a criterion: CSV, JSON Lines or Parquet",
    columns={
        "question": f"{own.CONVERSATION}; or example_id",
        "answer": "the response",
        "criterion": "the criterion's text; once for each response and judge; empty with the grade: an answer that nobody graded",
        "grade": own.GRADES,
        "points": f"{own.POINTS}; empty: the criterion can be read, and is never scored",
        "reason": "the judge's own words (optional)",
        "judge": "who graded; else fill in Judge. Physicians' grades are verdict-table",
        **own.OF_A_RESPONSE,
    },
    keys=frozenset({"answer", "criterion", "grade"}),
    one_of=(frozenset({"question", "example_id"}),),
    read_cells=read_cells,
    is_own=True,
    writer=TableRows,
    gathered=gathered,
    is_parquet=True,
    json_columns=frozenset({"question"}),
)
