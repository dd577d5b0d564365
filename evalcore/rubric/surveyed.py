"""Each model's items and what was read of them, as the formulas of `survey` take them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from evalcore.rubric.items import DRAWN, Opinions, coefficients, first_reads, is_scored, votes
from evalcore.stats.over_physicians import effective_readers, reading_loads
from evalcore.stats.survey import Fit, Floats, Numbers, Population, Sample, Truths, by_physicians, corrected


@dataclass(frozen=True)
class Surveyed:
    """One model in one evaluation.

    Attributes:
        model: Its name.
        evaluation: The data set.
        population: Its items that count.
        sample: What was read of them.
        example_ids: By number of the example in `population`.
        judges: Whose labels they are.
        readers: By number of the physician in `sample`, the name.
        counts: n_examples, n_responses, n_items, n_left_out and n_unreached (responses), n_read, n_reads, n_readers, n_cannot_assess, n_units,
            n_effective_readers.
    """

    model: str
    evaluation: str
    population: Population
    sample: Sample
    example_ids: Numbers
    judges: tuple[str, ...]
    readers: tuple[str, ...]
    counts: dict[str, float]

    @cached_property
    def alone(self) -> Fit:
        """The estimate by physicians only; of a model of which something was read. Made once for all claims, which differ in its variance."""
        return by_physicians(self.population, self.sample)

    @cached_property
    def helped(self) -> Fit:
        """The corrected estimate, likewise."""
        return corrected(self.population, self.sample)

    @cached_property
    def kept(self) -> dict[Any, Any]:
        """What was made of it already, by what it was made for: scores and differences of one view ask for the same."""
        return {}

    @property
    def n_examples_read(self) -> int:
        """Examples of which an item was read."""
        return len(np.unique(self.population.example[self.sample.rows]))


def surveyed(
    opinions: Opinions,
    *,
    judges: Sequence[str] | None = None,
    settled: bool = False,
    weights: pd.Series | None = None,
) -> Iterator[Surveyed]:
    """Every model of every evaluation, by name.

    Args:
        opinions: The study, or a part of it.
        judges: Whose labels are used; None: all.
        settled: An adjudicated label takes the place of the readers' votes.
        weights: By example_id, 0 or more; examples without one are left out.

    Raises:
        ValueError: A judge is not in the study.
    """
    chosen = list(dict.fromkeys(opinions.judges if judges is None else judges))
    if unknown := sorted(set(chosen) - set(opinions.judges)):
        msg = f"judges: {', '.join(unknown)} came, expected some of {', '.join(opinions.judges) or 'none: the study has no judge'}"
        raise ValueError(msg)
    opinions = opinions.by(chosen)
    all_codes, names = _models(opinions.items)
    responses = pd.factorize(opinions.items["response_id"])[0]
    counted = _counts(opinions, responses, weights)
    is_first = ~opinions.items["response_id"].duplicated().to_numpy()
    n_left_out = np.bincount(all_codes[is_first & ~counted], minlength=len(names))
    known, codes = opinions.where(counted), all_codes[counted]
    beyond = ~known.items["reachable"].to_numpy(dtype=bool)
    moves = coefficients(known.items, weights).to_numpy()
    reads = _drawn_reads(known.reads)
    voted = votes(known.reads, settled=settled)
    own = votes(known.reads).set_index("row")["vote"] if settled else None
    for code, (model, evaluation) in enumerate(names):
        rows = np.flatnonzero(codes == code)
        example_ids, example = np.unique(known.items["example_id"].to_numpy()[rows], return_inverse=True)
        undesirable = known.items["points"].to_numpy()[rows] < 0
        labels = known.judged.to_numpy()[rows].astype(np.float64)
        of_model = codes[voted["row"].to_numpy()] == code
        given = reads.loc[codes[reads["row"].to_numpy()] == code]
        sample, readers = _sample(rows, voted.loc[of_model], given, own)
        counts: dict[str, float] = {
            "n_examples": len(example_ids),
            "n_responses": int(is_first[counted][rows].sum()),
            "n_items": len(rows),
            "n_left_out": int(n_left_out[code]),
            "n_unreached": int((is_first[counted][rows] & beyond[rows]).sum()) if len(sample.rows) else 0,
            "n_read": len(sample.rows),
            "n_reads": int(given["met"].notna().sum()),
            "n_readers": sample.n_readers,
            "n_effective_readers": effective_readers(
                reading_loads(sample.probabilities, sample.places, sample.readers)
            ),
            "n_cannot_assess": int(given["met"].isna().sum()),
            "n_units": sample.n_units,
        }
        population = Population(moves[rows], undesirable, labels, example)
        yield Surveyed(model, evaluation, population, sample, example_ids, tuple(chosen), readers, counts)


def _models(items: pd.DataFrame) -> tuple[Numbers, list[tuple[str, str]]]:
    """By item the number of its model in its evaluation, and what these numbers mean, by name."""
    models, model_names = _numbered(items["model"])
    evaluations, evaluation_names = _numbered(items["evaluation"])
    present, codes = np.unique(models * max(len(evaluation_names), 1) + evaluations, return_inverse=True)
    pairs = (divmod(int(code), len(evaluation_names)) for code in present)
    return codes, [(model_names[model], evaluation_names[evaluation]) for model, evaluation in pairs]


def _numbered(column: pd.Series) -> tuple[Numbers, list[str]]:
    """By item the number of its name, and the names in order; a category's own order is that of its making."""
    codes, names = pd.factorize(column)
    order = sorted(range(len(names)), key=lambda place: str(names[place]))
    return np.argsort(order).astype(np.int64)[codes], [str(names[place]) for place in order]


def _counts(opinions: Opinions, responses: Numbers, weights: pd.Series | None) -> Truths:
    """Which items count: their response has a score, a weight, and every judge's label on every item."""
    missing = ~is_scored(opinions.items).to_numpy() | opinions.judged.isna().to_numpy().any(axis=1)
    if weights is not None:
        missing = missing | opinions.items["example_id"].map(weights).isna().to_numpy()
    return np.bincount(responses, missing)[responses] == 0 if len(responses) else missing


def _drawn_reads(reads: pd.DataFrame) -> pd.DataFrame:
    """The reads that `votes` is made from, one by one."""
    first = first_reads(reads)
    return first.loc[first["selection"].isin(DRAWN) & first["inclusion_probability"].notna()]


def _sample(
    rows: Numbers, voted: pd.DataFrame, reads: pd.DataFrame, own: pd.Series | None
) -> tuple[Sample, tuple[str, ...]]:
    """What was read of the items in these rows, and by whom; `own` is by row what the readers said where settled labels take the place of that.

    The probabilities are scaled so that the sum of 1/pi is the number of items: a drawing may be only partly read, and an item that
    nobody could assess is as if it had not been drawn.
    """
    read = voted["row"].to_numpy(dtype=np.int64)
    probabilities = voted["inclusion_probability"].to_numpy(dtype=np.float64)
    stands_for = (1 / probabilities).sum() / max(len(rows), 1)
    votes_given: Floats = voted["vote"].to_numpy(dtype=np.float64)
    is_settled = np.zeros(len(read), dtype=bool) if own is None else own.reindex(read).to_numpy() != votes_given
    said = reads.loc[reads["met"].notna() | reads["row"].isin(read[is_settled])]
    said = said.loc[said["row"].isin(read)]
    places = np.searchsorted(read, said["row"].to_numpy(dtype=np.int64))
    met = said["met"].to_numpy(dtype=np.float64)
    readers, names = pd.factorize(said["rater"], sort=True)
    sample = Sample(
        rows=np.searchsorted(rows, read),
        votes=votes_given,
        probabilities=(probabilities * stands_for).clip(max=1.0),
        units=pd.factorize(voted["unit"])[0].astype(np.int64),
        places=places,
        readers=readers.astype(np.int64),
        said=np.where(is_settled[places], votes_given[places], met),
        own=met,
    )
    return sample, tuple(map(str, names))
