"""Drawn cases of triage for the statistics, with models, judges and physicians that err as they are told to; and how to store them."""

import json
import math
from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np
import pandas as pd
from sqlalchemy import insert
from sqlmodel import Session

from evalcore.study import store
from evalcore.study.schema import CASES, PARSER, Acuity, Ask, Format, Label, MappingMethod, RaterKind, Stage
from evalcore.study.tables import TABLES, AcuityCase, Model, Response, now
from evalcore.triage.corrected import USUAL, Held, answered
from evalcore.triage.data import LEVELS, NO_LEVEL, USUAL_RULE, AmbiguityRule, TriageData
from evalcore.triage.settings import Ambiguous, ErrorWeights, TriageSettings

SOURCES = ("clinic", "hotline", "vignettes")
QA, CONVERSATION = Format.QA.value, Format.CONVERSATION.value
WORDS = {value: label for label, value in LEVELS.items() if not np.isnan(value)}
"""The label of each level."""


def drawn(
    rng: np.random.Generator,
    *,
    n_cases: int = 60,
    models: Mapping[str, Mapping[str, float]] | Sequence[str] = ("Alder-2", "Briar-1"),
    judges: Mapping[str, float] | None = None,
    readers: Sequence[str] = ("Dr. Noor", "Dr. Brandt"),
    n_samples: int = 5,
    n_votes: int = 5,
    share_panel: float = 0.5,
    share_read: float = 0.2,
    invalid: float = 0.05,
    noise: float = 0.5,
    confidence: bool = False,
) -> tuple[TriageData, pd.Series]:
    """Cases and the level that each response truly recommends (1..4).

    Args:
        rng: Chance.
        n_cases: About a quarter of each level; some lie between two.
        models: By name the lean of each format in levels, e.g. {"Alder-2": {"qa": 0.5, "conversation": -0.3}}; names alone: 0.
        judges: Who reads conversations, with their accuracy, e.g. {"Magpie": 0.9}; qa is read by the parser, which is never wrong.
        readers: Physicians; each response with text is read by one with probability `share_read`, each case likewise.
        n_samples: Responses a case, model and format; the first has a text.
        n_votes: Votes a panel.
        share_panel: Of the cases; the others have a gold from their source.
        share_read: Of the responses with text.
        invalid: Share of samples without a level.
        noise: Standard deviation of a response's level.
        confidence: With a stated confidence on every valid level.
    """
    leans = models if isinstance(models, Mapping) else {name: {} for name in models}
    severity = rng.uniform(0.6, 4.4, n_cases)
    has_panel = rng.random(n_cases) < share_panel
    gold = np.clip(np.rint(severity), 1, 4)
    numbers = np.arange(1, n_cases + 1)
    source = np.take(SOURCES, rng.integers(0, len(SOURCES), n_cases))
    cases = pd.DataFrame(
        {
            "example_id": numbers,
            "case_id": [f"{name}_{number}" for name, number in zip(source, numbers, strict=True)],
            "source": pd.Categorical(source),
            "original_label": None,
            "mapped_label": None,
            "file_gold": np.where(has_panel, np.nan, gold),
            "method": pd.Categorical(np.where(has_panel, MappingMethod.MEDIAN, MappingMethod.DIRECT)),
            "is_edge_case": False,
            "uncertainty": np.nan,
            "language": "en",
            "first_words": [f"Case {number}: I do not feel well." for number in numbers],
        }
    )
    voted = np.repeat(np.flatnonzero(has_panel), n_votes)
    said = np.clip(severity[voted] + rng.normal(0, 0.6, len(voted)), 1, 4)
    vote = np.where(rng.random(len(voted)) < 0.2, np.rint(said * 2) / 2, np.rint(said))
    vote = np.where(rng.random(len(voted)) < 0.05, np.nan, vote)
    votes = pd.DataFrame(
        {"row": voted, "place": np.tile(np.arange(1, n_votes + 1), has_panel.sum()), "rater": "P", "vote": vote}
    )
    grid = pd.MultiIndex.from_product(
        [range(n_cases), list(leans), [QA, CONVERSATION], range(n_samples)], names=["row", "model", "format", "sample_index"]
    ).to_frame(index=False)  # fmt: skip
    lean = np.array([leans[m].get(f, 0.0) for m, f in zip(grid["model"], grid["format"], strict=True)], dtype=float)
    truth = pd.Series(np.clip(np.rint(severity[grid["row"]] + lean + rng.normal(0, noise, len(grid))), 1, 4))
    samples = grid.assign(
        response_id=np.arange(1, len(grid) + 1),
        has_text=grid["sample_index"].eq(0),
        model=pd.Categorical(grid["model"], categories=list(leans)),
        format=pd.Categorical(grid["format"], categories=[QA, CONVERSATION]),
    )
    none = rng.random(len(grid)) < invalid
    levels = {PARSER: np.where(grid["format"].eq(QA), np.where(none, NO_LEVEL, truth), np.nan)}
    for judge, accuracy in (judges or {"Magpie": 0.9}).items():
        wrong = np.clip(truth + rng.choice([-1, 1], len(grid)), 1, 4)
        told = np.where(rng.random(len(grid)) < accuracy, truth, wrong)
        levels[judge] = np.where(grid["format"].eq(CONVERSATION), np.where(none, NO_LEVEL, told), np.nan)
    judged = pd.DataFrame(levels, dtype=np.float32)
    stated = [(place, judge) for judge in judged for place in np.flatnonzero(judged[judge] > 0)] if confidence else []
    return (
        TriageData(
            cases=cases,
            votes=votes,
            samples=samples[["response_id", "row", "model", "format", "sample_index", "has_text"]],
            levels=judged,
            confidence=pd.DataFrame(
                {
                    "sample": np.array([place for place, _ in stated], dtype=np.int64),
                    "rater": [judge for _, judge in stated],
                    "confidence": np.round(rng.uniform(0.3, 1, len(stated)), 3),
                }
            ),
            reads=_reads(rng, samples, truth, np.clip(np.rint(severity), 1, 4), readers, share_read),
            published=pd.DataFrame(columns=["model", "format", "gold", "A", "B", "C", "D"]),
        ),
        truth,
    )


def _reads(
    rng: np.random.Generator, samples: pd.DataFrame, truth: pd.Series, gold: np.ndarray, readers: Sequence[str], share: float
) -> pd.DataFrame:  # fmt: skip
    texts = np.flatnonzero(samples["has_text"])
    read = texts[rng.random(len(texts)) < share]
    cases = np.flatnonzero(rng.random(len(gold)) < share)
    level = np.concatenate([truth.to_numpy()[read], gold[cases]])
    return pd.DataFrame(
        {
            "row": np.concatenate([samples["row"].to_numpy()[read], cases]),
            "sample": np.concatenate([read, np.full(len(cases), -1)]),
            "asked": [Ask.RESPONSE_ACUITY.value] * len(read) + [Ask.GOLD_ACUITY.value] * len(cases),
            "rater": rng.choice(list(readers), len(level)),
            "label": [WORDS[value].value for value in level],
            "stage": Stage.FIRST.value,
            "blinded": True,
            "selection": "random",
            "inclusion_probability": share,
            "verdict_id": np.arange(1, len(level) + 1),
        }
    )


def stored(session: Session, triage_data: TriageData, *, elsewhere: Collection[int] = ()) -> None:
    """Write drawn cases into an empty study, so that reading them gives them back; some responses, by number, as of an evaluation of something else."""
    connection = session.connection()
    tables = TABLES
    store.ensure_study(session)
    cases = triage_data.cases
    messages = [json.dumps([{"role": "user", "content": words}]) for words in cases["first_words"]]
    examples = zip(
        cases["example_id"], cases["case_id"], messages, cases["first_words"], cases["language"], strict=True
    )
    connection.execute(
        insert(tables["example"]),
        [
            {"id": int(number), "dataset": CASES, "prompt_id": name, "messages": body, "n_turns": 1, "first_words": words, "language": language,
             "tags": "[]", "provisional": False}
            for number, name, body, words, language in examples
        ],
    )  # fmt: skip
    for case in cases.to_dict(orient="records"):
        gold, unsure = case["file_gold"], case["uncertainty"]
        session.add(
            AcuityCase(
                example_id=case["example_id"],
                source=case["source"],
                source_id=case["case_id"].removeprefix(f"{case['source']}_"),
                original_label=case["original_label"],
                mapped_label=case["mapped_label"],
                gold=None if np.isnan(gold) else WORDS[gold],
                method=case["method"],
                is_edge_case=case["is_edge_case"],
                uncertainty=None if np.isnan(unsure) else unsure,
            )
        )
    session.flush()
    votes = [
        {"example_id": int(cases["example_id"][vote["row"]]), "place": vote["place"], "rater": vote["rater"],
         "vote": Acuity.REMOVE if np.isnan(vote["vote"]) else WORDS[vote["vote"]]}
        for vote in triage_data.votes.to_dict(orient="records")
    ]  # fmt: skip
    if votes:
        connection.execute(insert(tables["panel_vote"]), votes)
    names = list(triage_data.samples["model"].cat.categories)
    session.add_all([Model(id=number, name=name) for number, name in enumerate(names, start=1)])
    session.flush()
    for sample in triage_data.samples.to_dict(orient="records"):
        session.add(
            Response(
                id=sample["response_id"],
                example_id=int(cases["example_id"][sample["row"]]),
                model_id=names.index(sample["model"]) + 1,
                dataset="helpfulness" if sample["response_id"] in elsewhere else Format(sample["format"]).evaluation,
                sample_index=sample["sample_index"],
                text="Rest, drink, and see a doctor." if sample["has_text"] else "",
            )
        )
    session.flush()
    stated = {
        (row["sample"], row["rater"]): row["confidence"] for row in triage_data.confidence.to_dict(orient="records")
    }
    verdicts = []
    for judge in triage_data.levels:
        rater = store.ensure_rater(session, RaterKind.JUDGE, str(judge))
        for place, level in triage_data.levels[judge].dropna().items():
            label = Label.CANNOT_ASSESS if level == NO_LEVEL else WORDS[float(level)]
            verdicts.append(
                _verdict(triage_data, rater, place, Stage.JUDGE, label, confidence=stated.get((place, judge)))
            )
    for read in triage_data.reads.to_dict(orient="records"):
        rater = store.ensure_rater(session, RaterKind.REVIEWER, read["rater"])
        more = {name: read[name] for name in ("stage", "blinded", "selection", "inclusion_probability")}
        row = {"response_id": None} if read["sample"] < 0 else {}
        verdicts.append(
            _verdict(triage_data, rater, read["sample"], more.pop("stage"), read["label"], **more, **row)
            | {"example_id": int(cases["example_id"][read["row"]])}
        )
    keys = ("confidence", "blinded", "selection", "inclusion_probability")
    if verdicts:
        connection.execute(insert(tables["verdict"]), [dict.fromkeys(keys) | verdict for verdict in verdicts])
    store.append_event(session, actor="set-up", action="file imported", subject="drawn cases", detail={})


def _verdict(
    triage_data: TriageData, rater: int, place: int, stage: str, label: str, **more: object
) -> dict[str, object]:
    sample = triage_data.samples.iloc[place]
    row = {
        "example_id": int(triage_data.cases["example_id"][sample["row"]]),
        "response_id": int(sample["response_id"]),
        "criterion_id": None,
        "rater_id": rater,
        "stage": str(stage),
        "label": str(label),
        "right_for_wrong_reason": False,
        "created_at": now(),
    }
    return row | more


def put_right(
    make: Callable[..., pd.DataFrame],
    triage_data: TriageData,
    judges: Mapping[str, str],
    *more: object,
    held: Held = USUAL,
) -> pd.DataFrame:
    """What a function of `triage.corrected` gives of what judges say of all responses and physicians of those that they read."""
    return make(answered(triage_data, judges, held.claim, settled=held.settled), *more, held)


def settings_with(
    *, rule: AmbiguityRule = USUAL_RULE, under: float = 5.0, over: float = 1.0, **more: object
) -> TriageSettings:
    """Settings of triage that differ in this from the usual ones."""
    limits = (None if math.isinf(limit) else limit for limit in (rule.spread, rule.uncertainty))
    return TriageSettings(weights=ErrorWeights(under, over), ambiguous=Ambiguous(*limits), **more)
