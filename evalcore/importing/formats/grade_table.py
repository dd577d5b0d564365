"""The long table of a judge's grades, one row a criterion, CSV, JSON Lines or Parquet: rows of one response may stand anywhere in it."""

from evalcore.importing.context import Cells, CriterionRef, FileFormat, Graded, Options, judged
from evalcore.importing.formats import own, values
from evalcore.importing.formats.values import refuse
from evalcore.study.schema import Criterion

_GRADED = ("criterion", "grade", "points")


def read_cells(cells: Cells, number: int, options: Options) -> tuple[Graded]:
    """One criterion of one response, with its grade where there is one."""
    asked = own.conversation(cells.get("question"), "question")
    which = own.response_of(cells, options)
    own.check_example(str(which["prompt_id"]), asked, "question")
    is_graded = any(cells.get(column, "").strip() for column in _GRADED)
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
    writer=own.TableRows,
    is_parquet=True,
    json_columns=frozenset({"question"}),
)
