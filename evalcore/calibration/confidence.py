"""Judges' and models' own confidences: what they mean, and how right they are beside blind reads or a clear gold.

A judge states P(met) or P(my label is right) (`schema.ConfidenceMeaning`); before that is known nothing is computed
from it.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from evalcore.calibration.reliability import Calibrated, calibrated, judge_finding
from evalcore.rubric.data import RubricData, first_reads, votes
from evalcore.stats.intervals import percent_words, signed_points
from evalcore.stats.majority import MIN_VOTERS, jury_names, most
from evalcore.stats.wording import counted, listed
from evalcore.study.schema import PARSER, Ask, ConfidenceMeaning, Format
from evalcore.triage.data import LEVELS, NO_LEVEL, Kind, TriageData
from evalcore.triage.predictions import votes as level_votes
from evalcore.triage.words import Row

Meanings = Mapping[str, ConfidenceMeaning]
BY_MODEL = ("model", "format")

MEANINGS = {ConfidenceMeaning.MET: "that the criterion is met", ConfidenceMeaning.RIGHT: "that its own label is right"}
HALF = 0.5
CHANCE_OF_LEVELS = 0.25
"""A reader that guesses among four levels is right this often; with two labels it is `HALF`."""
FEWEST_LABELS = 10
OF_LEVELS = ["judge", "meaning", "n", "mean_confidence"]
OF_COUNTS = [*OF_LEVELS[:3], "n_met", "share_met", "mean_confidence", "mean_confidence_met", "mean_confidence_not_met"]


def criteria_meanings(counts: pd.DataFrame, meanings: Meanings) -> pd.DataFrame:
    """Each judge's stated confidences beside its labels, and whether they can mean what they are said to mean.

    P(met) is contradicted where more than half of the labels "not met" come with a confidence above 0.5, or of the
    labels "met" with one below; P(right) where more than half of the labels of one kind come with less than a guess
    would have, 0.5. Of a kind with fewer than `FEWEST_LABELS` labels nothing is concluded. `counts`: of
    `queries.stated`.

    Gives a row a judge, by name: `OF_COUNTS` (meaning: None where nobody has said; shares in [0, 1], means NaN
    without a label), contradicted, usable (known, and not contradicted), why (not; else ""), against_met and
    against_right (what the labels say against that meaning, or "").
    """
    rows, against = [], []
    for judge, mine in counts.groupby("judge", sort=True, observed=True):
        sums = mine.set_index("label").reindex([1.0, 0.0]).fillna({"n": 0, "n_above": 0, "n_below": 0})
        n, means, total = sums["n"], sums["mean_confidence"], int(sums["n"].sum())
        row = {"judge": str(judge), "n": total, "n_met": int(n[1.0]), "share_met": n[1.0] / total if total else np.nan}
        row["mean_confidence"] = (means.fillna(0) * n).sum() / total if total else np.nan
        rows.append(row | {"mean_confidence_met": means[1.0], "mean_confidence_not_met": means[0.0]})
        against.append({word: _against(word, sums) for word in ConfidenceMeaning})
    return _checked(pd.DataFrame(rows, columns=OF_COUNTS), against, meanings)


def _against(meaning: ConfidenceMeaning, sums: pd.DataFrame) -> str:
    of_met = meaning is ConfidenceMeaning.MET
    for label, row in zip(("met", "not met"), sums.to_dict(orient="records"), strict=True):
        side = "above" if of_met and label == "not met" else "below"
        n, n_contrary = int(row["n"]), int(row[f"n_{side}"])
        if n < FEWEST_LABELS or n_contrary <= n * HALF:
            continue
        labels = f'{n_contrary:,} of {n:,} labels "{label}" come with a confidence {side} 0.5'
        mean = f"their mean is {row['mean_confidence']:.3f}"
        if of_met:
            met = f"{100 * sums['n'].iloc[0] / sums['n'].sum():.1f} % of the labels are met"
            return f"{met}, and {labels} ({mean}): so it is not the probability that the criterion is met."
        return f"{labels} ({mean}), less than a guess between two labels: so it is not the probability that its own label is right."
    return ""


def level_meanings(triage_data: TriageData, meanings: Meanings, *, of_parser: bool = False) -> pd.DataFrame:
    """The same for judges that read levels of care: a level is neither met nor not met, so only P(right) can be meant.

    It is contradicted where more than half of the confidences lie below a guess among four, 0.25. Gives `OF_LEVELS`
    and the further columns. `of_parser`: of what models state themselves, which the parser reads (one row, or
    none).
    """
    stated = stated_levels(triage_data)
    rows, against = [], []
    for judge, mine in stated.loc[stated["judge"].eq(PARSER).eq(of_parser)].groupby("judge", sort=True, observed=True):
        n, low = len(mine), int(mine["confidence"].lt(CHANCE_OF_LEVELS).sum())
        less = f"{judge} states less than 0.25 with {low:,} of {n:,} levels, less than a guess among four"
        is_less = n >= FEWEST_LABELS and low > n * HALF
        neither = f"A level of care is neither met nor not met: the confidence of {judge} can only be the probability that its own level is right."
        right = f"{less}: so it is not the probability that its own level is right." if is_less else ""
        against.append({ConfidenceMeaning.MET: neither, ConfidenceMeaning.RIGHT: right})
        rows.append({"judge": str(judge), "n": n, "mean_confidence": float(mine["confidence"].mean())})
    return _checked(pd.DataFrame(rows, columns=OF_LEVELS), against, meanings)


def _checked(table: pd.DataFrame, against: Sequence[Mapping[Any, str]], meanings: Meanings) -> pd.DataFrame:
    known = [meanings.get(judge) for judge in table["judge"]]
    # as objects: a column of texts would turn the meanings into texts, and None into NaN
    table["meaning"] = pd.Series(known, index=table.index, dtype=object)
    objections = [row.get(meaning, "") for row, meaning in zip(against, known, strict=True)]
    why = [
        _unasked(judge) if meaning is None else objection
        for judge, meaning, objection in zip(table["judge"], known, objections, strict=True)
    ]
    table["contradicted"] = np.array([bool(objection) for objection in objections], dtype=bool)
    table["usable"] = np.array([not sentence for sentence in why], dtype=bool)
    table["why"] = pd.Series(why, dtype=object)
    return table.assign(**{f"against_{word.value}": [row[word] for row in against] for word in ConfidenceMeaning})


def _unasked(judge: str) -> str:
    return f"What the confidence of {judge} refers to is not specified: say it on the Calibration page, or import its file again and say it there."


def takes_stated(meaning: pd.DataFrame) -> bool:
    """Whether a confidence that a model states may count as its own."""
    return len(meaning) > 0 and bool(meaning["usable"].all())


def as_right(frame: pd.DataFrame, checked: pd.DataFrame) -> pd.DataFrame:
    """Confidences as the probability that the judge's own label is right: of P(met), 1 - P(met) under "not met".

    NaN, with the sentence that says why (refused), for a judge whose meaning is not known or contradicted. `frame`
    holds a label a row: judge, label (1 met, 0 not met; for P(met) alone), confidence. `checked`: of
    `criteria_meanings` or `level_meanings`.
    """
    by_judge = checked.set_index("judge")
    judge = frame["judge"].astype(object)
    usable = judge.map(by_judge["usable"]).eq(True).to_numpy()  # noqa: FBT003 - a judge that is missing is neither
    of_met = judge.map(by_judge["meaning"]).eq(ConfidenceMeaning.MET).to_numpy()
    confidence = frame["confidence"].to_numpy(dtype=float)
    not_met = frame["label"].eq(0).to_numpy() if "label" in frame else np.zeros(len(frame), dtype=bool)
    turned = np.where(of_met & not_met, 1 - confidence, confidence)
    sentences = {name: _unasked(str(name)) for name in judge.unique()} | by_judge["why"].to_dict()
    refused = pd.Categorical(judge.map(sentences).astype(object).to_numpy())
    return frame.assign(confidence=np.where(usable, turned, np.nan), refused=refused)


def stated_words(row: Row) -> str:
    """What a judge states, before anybody says what it means: a row of `criteria_meanings` or `level_meanings`.

    >>> row = {"judge": "Wren", "n": 1000, "share_met": 0.004, "mean_confidence": 0.903}
    >>> stated_words(row | {"mean_confidence_met": 0.81, "mean_confidence_not_met": 0.9034})
    'Wren states a confidence with 1,000 labels on criteria, 0.903 on average: 0.4 % are met (mean 0.810), the others not met (mean 0.903).'
    """
    mean = f"{row['mean_confidence']:.3f} on average"
    if "share_met" not in row:
        return (
            f"{row['judge']} states a confidence with {counted(row['n'], 'level of care', 'levels of care')}, {mean}."
        )
    means = (row[f"mean_confidence_{word}"] for word in ("met", "not_met"))
    met, others = ("" if math.isnan(value) else f" (mean {value:.3f})" for value in means)
    labels = counted(row["n"], "label on a criterion", "labels on criteria")
    return f"{row['judge']} states a confidence with {labels}, {mean}: {100 * row['share_met']:.1f} % are met{met}, the others not met{others}."


FEWEST = 2
DIGITS = 9
"""Means of stated confidences are rounded, so that 0.8 three times is 0.8 again, and not below it."""
NO_CONFIDENCE = "No model has a confidence of its own on a clear case: none is stated, and no case has two valid samples of a model."
NAMED = 3


def who(row: Row) -> str:
    """A model in a format: "Alder-2 in conversation"."""
    return f"{row['model']} in {row['format']}"


def own_confidence(predictions: pd.DataFrame, *, stated: bool = True) -> pd.DataFrame:
    """Predictions with the model's own confidence: the one that it states itself, else the share of its samples.

    What the parser reads of a confidence is the model's own. Without `stated` the share alone counts. confidence is
    in [0, 1] (a share from two valid samples on), or NaN.
    """
    is_stated = predictions["stated"].notna() & stated
    share = predictions["share"].where(predictions["n_valid"].ge(FEWEST))
    confidence = predictions["stated"].where(is_stated, share).round(DIGITS)
    return predictions.assign(confidence=confidence, is_stated=is_stated)


def model_items(own: pd.DataFrame) -> pd.DataFrame:
    """How sure the model was of each prediction on a clear case, and whether it was right, for `reliability`."""
    kept = own.loc[own["kind"].eq(Kind.CLEAR) & own["predicted"].notna()].reset_index(drop=True)
    items = kept.assign(cluster=kept["row"], right=kept["predicted"].eq(kept["gold"]).astype(float))
    return items[[*BY_MODEL, "cluster", "confidence", "is_stated", "right", "gold", "predicted"]]


def models_confidence(own: pd.DataFrame) -> tuple[Calibrated, pd.DataFrame]:
    """Models' own confidence against whether they are right, by model and format; and where it comes from."""
    items = model_items(own)
    without = items["confidence"].isna()
    marked = items.assign(n_stated=items["is_stated"], n_shares=~items["is_stated"] & ~without, n_without=without)
    groups = marked.groupby(list(BY_MODEL), observed=True)
    return calibrated(items, BY_MODEL), groups[["n_stated", "n_shares", "n_without"]].sum().astype(int).reset_index()


def models_findings(errors: pd.DataFrame) -> list[str]:
    """Which models are over-confident on clear cases, the most over-confident first, and which are under-confident."""
    known = errors.loc[errors["n"].gt(0)]
    if known.empty:
        return [NO_CONFIDENCE]
    over = known.loc[known["difference_low"].gt(0)].sort_values("difference", ascending=False, kind="stable")
    under = known.loc[known["difference_high"].lt(0)].sort_values("difference", kind="stable")
    sentences = []
    if len(over):
        row, *others = over.to_dict(orient="records")
        value, low, high = (signed_points(row[f"difference{end}"]).lstrip("+") for end in ("", "_low", "_high"))
        are = f". So {'is' if len(others) == 1 else 'are'} {_few(others)}" if others else ""
        sentences.append(
            f"{who(row)} is over-confident: {percent_words(row['mean_confidence'])} sure on average, right on "
            f"{percent_words(row['share_right'])} of {counted(row['n'], 'clear case')}, {value} [{low}, {high}] "
            f"percentage points too sure{are}."
        )
    elif known["difference_low"].isna().all():
        sentences.append(f"Whether models are over-confident cannot be said. {known['undefined'].iloc[0]}".rstrip())
    else:
        models = known["model"].astype(str).unique()
        nobody = "No model is" if len(models) > 1 else f"{models[0]} is not"
        most = known.iloc[int(known["difference_high"].fillna(-1.0).to_numpy().argmax())].to_dict()
        by = f"{signed_points(max(most['difference_high'], 0.0)).lstrip('+')} percentage points"
        sentences.append(
            f"{nobody} shown to be over-confident on clear cases; up to {by} too sure cannot be excluded ({who(most)}, {counted(most['n'], 'case')})."
        )
    if rows := under.to_dict(orient="records"):
        sentences.append(f"{_few(rows)} {'is' if len(rows) == 1 else 'are'} under-confident.")
    return sentences


def _few(rows: Sequence[Row]) -> str:
    names, more = [who(row) for row in rows], len(rows) - NAMED
    return listed(names if more <= 1 else [*names[:NAMED], f"{more:,} more"])


TOO_FEW_VOTES = "Fewer than three votes: two that agree would always be sure."
TIED = "The judges are evenly split, so there is no majority."


class Held(NamedTuple):
    """Judges' confidences against physicians' reads: what they mean, and whether the reads are drawn ones."""

    meanings: pd.DataFrame
    calibrated: Calibrated
    is_drawn: bool


def held_against_reads(
    triage_data: TriageData,
    meanings: Meanings,
    counts: pd.DataFrame,
    beside: pd.DataFrame,
    rubric_data: RubricData | None,
    *,
    drawn: bool = True,
) -> dict[str, Held]:
    """Of criteria and of levels; `counts` and `beside` are of `queries`. Where no read was drawn, all count."""
    of_criteria, of_levels = criteria_meanings(counts, meanings), level_meanings(triage_data, meanings)
    make: dict[str, tuple[pd.DataFrame, Callable[..., Calibrated]]] = {
        "criteria": (of_criteria, partial(judges_on_criteria, beside, of_criteria, rubric_data)),
        "levels": (of_levels, partial(judges_on_levels, triage_data, of_levels)),
    }
    return {name: Held(table, *on_reads(of_reads, drawn=drawn)) for name, (table, of_reads) in make.items()}


def on_reads(make: Callable[..., Calibrated], *, drawn: bool) -> tuple[Calibrated, bool]:
    """What `make` gives of the drawn reads, where these are wanted and there are any, else of all; and which it is."""
    found = make(drawn=drawn)
    is_drawn = drawn and bool(found.errors["n"].any())
    return found if is_drawn or not drawn else make(drawn=False), is_drawn


UNITS = {"criteria": ("criterion", "conversation"), "levels": ("level", "case")}
"""Of `held_against_reads`: what a label is of, and what its intervals are clustered by."""


def held_words(held: Mapping[str, Held]) -> list[str]:
    """Why confidences cannot be used, and what comes of those that can, a sentence a judge or majority."""
    sentences = [str(why) for one in held.values() for why in one.meanings["why"] if why]
    for name, one in held.items():
        label, cluster = UNITS[name]
        errors, majorities = one.calibrated.errors, one.calibrated.majorities
        for row in errors.loc[errors["n"].gt(0)].to_dict(orient="records"):
            group = str(row["group"])
            is_majority = group in majorities
            sentences.append(judge_finding(row, group, label=label, cluster=cluster, is_majority=is_majority))
    return sentences


def judges_on_criteria(
    beside: pd.DataFrame, checked: pd.DataFrame, rubric_data: RubricData | None, *, drawn: bool
) -> Calibrated:
    """Judges' stated confidences on criteria against blind reads, a group a judge; and the majority of several.

    A judge whose meaning `checked` does not know, or finds contradicted, has no value, and the sentence why.
    `rubric_data`: None where not several judges have labelled criteria. With `drawn` only reads of items that were
    drawn with a known probability count, by its inverse.
    """
    stated = criterion_items(as_right(beside, checked), drawn=drawn)
    return _with_majority(stated, None if rubric_data is None else majority_items(rubric_data, drawn=drawn))


def _with_majority(stated: pd.DataFrame, agreed: pd.DataFrame | None) -> Calibrated:
    names = ["group", "cluster", "confidence", "right", "weight", "refused"]
    kinds, parts = {"group": object, "refused": object}, (stated, agreed)
    tables = [table[names].astype(kinds) for table in parts if table is not None]
    majorities = frozenset() if agreed is None else frozenset(map(str, agreed["group"]))
    return calibrated(pd.concat(tables, ignore_index=True))._replace(majorities=majorities)


def criterion_items(beside: pd.DataFrame, *, drawn: bool = False) -> pd.DataFrame:
    """A row a judge and item that physicians have read: how sure the judge is that its label is right, and how right.

    `beside`: `as_right(queries.beside_reads(...), checked)`; right: the share of the blind first reads that say the
    same.
    """
    kept = beside.loc[beside["is_drawn"] & beside["inclusion_probability"].notna()] if drawn else beside
    return kept.assign(
        right=_share_alike(kept["label"], kept["reference_drawn" if drawn else "reference"]),
        cluster=kept["example_id"],
        group=kept["judge"],
        weight=1 / kept["inclusion_probability"] if drawn else 1.0,
    ).reset_index(drop=True)


def _share_alike(label: pd.Series, share_met: pd.Series) -> pd.Series:
    return share_met.where(label.eq(1), 1 - share_met).where(label.notna())


def majority(labels: pd.DataFrame) -> pd.DataFrame:
    """What most of several judges, or of one asked repeatedly, say of each item, and the share of them that does.

    `labels` has a row an item, a column a judge or repeat: 1 met, 0 not met, or NaN. refused: why there is neither
    label nor confidence (the share, in (0.5, 1]): fewer than three votes (two that agree are always sure), or a
    tie.
    """
    n = labels.notna().to_numpy().sum(axis=1)
    label, share = most(np.nansum(labels.to_numpy(dtype=float), axis=1), n)
    refused = np.select([n < MIN_VOTERS, np.isnan(label)], [TOO_FEW_VOTES, TIED], "")
    columns = {"n_votes": n, "label": label, "confidence": share, "refused": refused}
    table = pd.DataFrame(columns, index=labels.index)
    table.loc[refused != "", ["label", "confidence"]] = np.nan
    return table


def majority_items(rubric_data: RubricData, *, drawn: bool = False) -> pd.DataFrame:
    """A row an item that physicians have read and a judge has labelled: what most judges say, and the share of them.

    Likewise of each judge that was asked several times. Juries have no vote. Groups are "majority of 3 judges",
    "Magpie, asked 3 times"; none where no item has three votes.
    """
    parts = [_majority_items(rubric_data, jury_names(rubric_data.voters)[0], drawn=drawn)]
    for judge in rubric_data.voters:
        again = rubric_data.asked_again(judge)
        if len(again.judges) >= MIN_VOTERS:
            parts.append(_majority_items(again, f"{judge}, asked {len(again.judges)} times", drawn=drawn))
    kept = [part for part in parts if len(part)] or parts[:1]
    return pd.concat(kept, ignore_index=True)


def _majority_items(rubric_data: RubricData, name: str, *, drawn: bool) -> pd.DataFrame:
    read = votes(rubric_data.reads, drawn=drawn)
    rows = read["row"].to_numpy(dtype=np.int64)
    majorities = majority(rubric_data.judged[rubric_data.voters].iloc[rows]).reset_index(drop=True)
    items = rubric_data.items.iloc[rows]
    table = majorities.assign(item_id=items["item_id"].to_numpy(), cluster=items["example_id"].to_numpy(), group=name)
    table = table.assign(right=_share_alike(majorities["label"], read["vote"]))
    table = table.assign(weight=1 / read["inclusion_probability"].to_numpy(dtype=float) if drawn else 1.0)
    kept = table.loc[table["n_votes"].gt(0)]
    return kept.reset_index(drop=True) if kept["n_votes"].ge(MIN_VOTERS).any() else kept.iloc[:0]


def judges_on_levels(triage_data: TriageData, checked: pd.DataFrame, *, drawn: bool) -> Calibrated:
    """As `judges_on_criteria`, for levels that judges read; a group a judge or majority, and format."""
    items = level_items(triage_data, drawn=drawn)
    items = items.loc[items["judge"].ne(PARSER)].reset_index(drop=True)
    return _with_majority(as_right(items, checked), level_vote_items(triage_data, drawn=drawn))


def stated_levels(triage_data: TriageData, samples: pd.Series | None = None) -> pd.DataFrame:
    """The levels with a stated confidence: sample, judge, label, confidence; where named, of `samples` alone."""
    confidences = triage_data.confidence
    if samples is not None:
        confidences = confidences.loc[confidences["sample"].isin(samples)]
    place = confidences["sample"].to_numpy(dtype=np.int64)
    codes, names = pd.factorize(confidences["rater"])
    label = np.full(len(confidences), np.nan)
    for code, name in enumerate(names):
        if name in triage_data.levels:
            mine = codes == code
            label[mine] = triage_data.levels[name].to_numpy(dtype=float)[place[mine]]
    levels = confidences.rename(columns={"rater": "judge"}).assign(label=label)
    return levels.loc[levels["label"].gt(NO_LEVEL)].reset_index(drop=True)


def level_items(triage_data: TriageData, *, drawn: bool = False) -> pd.DataFrame:
    """A row a level with a stated confidence, where physicians have read the response blind.

    With `drawn` only responses that were drawn with a known probability, by its inverse. right: the share of the
    blind first reads whose level has a letter in common with it; reads that could not assess are left out.
    """
    reads = _response_reads(triage_data, drawn=drawn)
    return _beside(stated_levels(triage_data, reads["sample"]), reads, triage_data)


def level_vote_items(triage_data: TriageData, *, drawn: bool = False) -> pd.DataFrame:
    """The same for several judges as one: what most of them read, and the share of them that does as its confidence.

    A group a format in which three judges or more, without the parser, have read a level out of one of these
    responses; refused: fewer than three gave a level.
    """
    reads = _response_reads(triage_data, drawn=drawn)
    places = reads["sample"].drop_duplicates().to_numpy(dtype=np.int64)
    formats = triage_data.samples["format"].to_numpy()[places]
    parts = [stated_levels(triage_data).iloc[:0][["sample", "judge", "label", "confidence"]]]
    for word in Format:
        judges = [name for name in triage_data.voters(word) if name != PARSER]
        mine = places[formats == word.value]
        voted = level_votes(triage_data.levels[judges].iloc[mine])
        several = voted["n_votes"].ge(MIN_VOTERS)
        if several.any():
            level = voted["level"].where(voted["n_votes"].gt(0)).to_numpy()
            share = voted["share"].where(several).to_numpy()
            columns = {"sample": mine, "judge": jury_names(judges)[0], "label": level, "confidence": share}
            parts.append(pd.DataFrame(columns).dropna(subset="label"))
    items = _beside(pd.concat(parts[1:] or parts, ignore_index=True), reads, triage_data)
    return items.assign(refused=np.where(items["confidence"].isna(), TOO_FEW_VOTES, ""))


def _response_reads(triage_data: TriageData, *, drawn: bool) -> pd.DataFrame:
    kept = first_reads(triage_data.reads.loc[triage_data.reads["asked"].eq(Ask.RESPONSE_ACUITY)])
    if drawn:
        kept = kept.loc[kept["inclusion_probability"].notna()]
    weight = 1 / kept["inclusion_probability"] if drawn else 1.0
    table = kept[["sample"]].assign(level=kept["label"].map(LEVELS).astype(float), weight=weight)
    return table.loc[table["level"].notna()]


def _beside(levels: pd.DataFrame, reads: pd.DataFrame, triage_data: TriageData) -> pd.DataFrame:
    pairs = levels.merge(reads, on="sample")
    # half a level to either side for a boundary, which stands for both of its letters
    reach = (pairs["label"] % 1).clip(upper=0.5) + (pairs["level"] % 1).clip(upper=0.5)
    pairs["right"] = pairs["label"].sub(pairs["level"]).abs().le(reach)
    made = {"confidence": ("confidence", "first"), "label": ("label", "first"), "right": ("right", "mean")}
    made |= {"n_reads": ("right", "size"), "weight": ("weight", "min")}
    of_sample = pairs.groupby(["judge", "sample"], as_index=False, observed=True).agg(**made)
    samples = triage_data.samples.iloc[of_sample["sample"].to_numpy(dtype=np.int64)].reset_index(drop=True)
    group = of_sample["judge"].astype(str) + ", " + samples["format"].astype(str)
    found = of_sample.drop(columns="sample").join(samples[["model", "format", "response_id"]])
    example_id = triage_data.cases["example_id"].to_numpy()[samples["row"].to_numpy()]
    return found.assign(cluster=samples["row"], example_id=example_id, group=group.astype(object))
