"""The way from the examples of a study to the reads that a corrected score rests on: how many go on at each step, and how many leave and why."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from evalcore.rubric.data import DRAWN, RubricData, first_reads, is_scored, votes
from evalcore.study.schema import Stage

STAGE, LEFT, BESIDE = "stage", "left", "beside"
COLUMNS = ["place", "kind", "what", "n_examples", "n_responses", "n_items", "n_reads"]
UNITS = ("n_examples", "n_responses", "n_items")
_READ = 2
"""The place of what was read among the steps that count items."""

Truths = npt.NDArray[np.bool_]


def study_flow(
    part: RubricData,
    *,
    examples: pd.DataFrame,
    responses: pd.DataFrame,
    assigned: pd.DataFrame,
    enough: Sequence[str],
    judges: Sequence[str],
    settled: bool = False,
    weights: pd.Series | None = None,
) -> pd.DataFrame:
    """Who goes on and who leaves, from the examples to the estimate, as the flow diagrams of STARD and CONSORT tell it.

    Args:
        part: What is analysed: one data set, these judges.
        examples: Every example with a rubric: example_id.
        responses: Every response to one of them in the analysed data set: response_id, example_id.
        assigned: Responses that were drawn here to be read: response_id, selection.
        enough: Models of which enough is read for a corrected score.
        settled: An adjudicated label takes the place of the readers' votes.
        weights: By example_id, as in `corrected_scores`.

    Returns:
        place (from 1, the order of the diagram), kind, what (in words), n_examples, n_responses, n_items (missing where a step does not
        count them), n_reads (physicians' first reads; missing before anything is read). Of kind stage: what goes on. Of kind left: what leaves
        between the stage above and the stage below it, so that stage = next stage + left wherever both are counted; an example or a response leaves
        with the last of its items. Of kind beside: parts of the stage above, and reads that enter no estimate; nothing leaves by them.
    """
    items = part.items
    reads = part.reads
    drawn_reads = first_reads(reads)
    drawn_reads = drawn_reads.loc[drawn_reads["selection"].isin(DRAWN) & drawn_reads["inclusion_probability"].notna()]
    voted = votes(reads, settled=settled)["row"].to_numpy(dtype=np.int64)

    judged = _judged(part, judges, weights)
    here = assigned.loc[assigned["selection"].isin(DRAWN), "response_id"]
    drawn = judged & (items["response_id"].isin(here).to_numpy() | _rows(items, drawn_reads["row"]))
    read = judged & _rows(items, drawn_reads["row"])
    labelled = judged & _rows(items, voted)
    estimated = labelled & items["model"].isin(list(enough)).to_numpy()

    table = _Table()
    n_answered = responses["example_id"].nunique()
    table.add(STAGE, "Examples with a rubric", n_examples=len(examples))
    table.add(LEFT, "no response in the analysed data set", n_examples=len(examples) - n_answered)
    table.add(STAGE, "Responses to them", n_examples=n_answered, n_responses=len(responses))
    table.add(
        LEFT,
        "no score: not judged on every criterion, no points, or outside the analysed examples",
        n_examples=n_answered - items.loc[judged, "example_id"].nunique(),
        n_responses=len(responses) - items.loc[judged, "response_id"].nunique(),
    )
    steps = [
        ("Judged on every criterion", judged, "not drawn to be read"),
        ("Drawn to be read by physicians", drawn, "drawn and not read yet"),
        ("Read blind by a physician", read, "could not be assessed"),
        ("With a physician's label", labelled, "too few reads of the model for a corrected score"),
        ("In the corrected scores", estimated, ""),
    ]
    for number, (what, kept, why) in enumerate(steps):
        table.add(STAGE, what, **_counts(items, kept), **_read(drawn_reads, kept, number))
        if what == "Read blind by a physician":
            for words, beside in _beside(part, drawn_reads, kept).items():
                table.add(BESIDE, words, **_counts(items, beside))
            outside = ~_rows(items, drawn_reads["row"]) & _rows(items, reads["row"])
            table.add(
                BESIDE,
                "read only by choice, for an adjudication or with the judge in view: in no estimate",
                **_counts(items, outside),
            )
        if why:
            after = steps[number + 1][1]
            gone = _read(drawn_reads, kept, number), _read(drawn_reads, after, number + 1)
            n_gone = {"n_reads": gone[0]["n_reads"] - gone[1]["n_reads"]} if gone[0] else {}
            table.add(LEFT, why, **_left(items, kept, after), **n_gone)
    return table.frame()


class _Table:
    """Rows one after the other."""

    def __init__(self) -> None:
        self._rows: list[dict[str, object]] = []

    def add(self, kind: str, what: str, **counts: int) -> None:
        self._rows.append({"place": len(self._rows) + 1, "kind": kind, "what": what, **counts})

    def frame(self) -> pd.DataFrame:
        found = pd.DataFrame(self._rows, columns=COLUMNS)
        return found.astype(dict.fromkeys((*UNITS, "n_reads"), "Int64"))


def _judged(part: RubricData, judges: Sequence[str], weights: pd.Series | None) -> Truths:
    """Items of responses that have a score and every judge's label on every item: the population of `estimator_inputs`."""
    items = part.items
    whole = is_scored(items) & part.judged[list(judges)].notna().all(axis=1)
    if weights is not None:
        whole &= items["example_id"].map(weights).notna()
    return np.asarray(whole.groupby(items["response_id"], sort=False).transform("all"), dtype=bool)


def _rows(items: pd.DataFrame, rows: pd.Series | npt.NDArray[np.int64]) -> Truths:
    """These rows as truth values."""
    found = np.zeros(len(items), dtype=bool)
    found[np.asarray(rows, dtype=np.int64)] = True
    return found


def _counts(items: pd.DataFrame, kept: Truths) -> dict[str, int]:
    these = items.loc[kept]
    return {
        "n_examples": these["example_id"].nunique(),
        "n_responses": these["response_id"].nunique(),
        "n_items": len(these),
    }


def _left(items: pd.DataFrame, before: Truths, after: Truths) -> dict[str, int]:
    """Items that leave; responses and examples of which nothing is left."""
    first, then = _counts(items, before), _counts(items, after)
    return {name: first[name] - then[name] for name in UNITS}


def _read(drawn_reads: pd.DataFrame, kept: Truths, number: int) -> dict[str, int]:
    """First reads at a step: all of them, then those that could assess their item."""
    if number < _READ:
        return {}
    counted = kept[drawn_reads["row"].to_numpy(dtype=np.int64)]
    return {"n_reads": int((counted & (drawn_reads["met"].notna().to_numpy() | (number == _READ))).sum())}


def _beside(part: RubricData, drawn_reads: pd.DataFrame, read: Truths) -> dict[str, Truths]:
    """Of what was read: by several, with different labels, settled."""
    rows = drawn_reads.groupby("row")
    n_readers = rows["rater"].nunique()
    labels = rows["met"].agg(lambda met: met.nunique(dropna=False))
    settled = part.reads.loc[part.reads["stage"].eq(Stage.ADJUDICATED), "row"]
    differing = read & _rows(part.items, labels.index[labels.gt(1)].to_numpy())
    return {
        "read by two physicians or more": read & _rows(part.items, n_readers.index[n_readers.gt(1)].to_numpy()),
        "first reads differ": differing,
        "of those that differ, settled by an adjudicator": differing & _rows(part.items, settled),
    }
