"""A study of triage of two million samples, written straight into its tables."""

from pathlib import Path

import numpy as np
import pandas as pd
from sqlalchemy import Engine
from sqlmodel import Session

from evalcore.study import store
from evalcore.study.db import open_study, writing
from evalcore.study.schema import CASES, PARSER, Format, Label
from evalcore.study.tables import now
from evalcore.triage.data import NO_LEVEL, TriageData
from tests.benchmarks._large import write
from tests.triage_cases import WORDS, drawn

JUDGE = "Magpie"
TEXT = "Thank you for telling me. Please see a doctor within the next two days, and sooner if the fever comes back or you feel faint."


def made(path: Path, *, n_cases: int, n_models: int) -> Engine:
    """Cases with panels, two formats and five samples a model; the first sample has a text, and a fiftieth of the texts is read."""
    models = [f"model-{number:02}" for number in range(1, n_models + 1)]
    triage_data, _ = drawn(
        np.random.default_rng(7), n_cases=n_cases, models=models, judges={JUDGE: 0.9}, share_read=0.02
    )
    engine = open_study(str(path))
    with writing(engine) as session:
        store.ensure_study(session)
        store.add_person(session, "Lea Lead", roles=["lead"], actor="benchmark")
        write(session, "model", [{"id": place, "name": name} for place, name in enumerate(models, start=1)])
        readers = sorted(set(triage_data.reads["rater"]))
        names = [(PARSER, "judge"), (JUDGE, "judge"), *((name, "reviewer") for name in readers)]
        raters = {name: number for number, (name, _) in enumerate(names, start=1)}
        kinds = dict(names)
        write(
            session,
            "rater",
            [{"id": raters[name], "kind": kinds[name], "name": name, "prompt_version": ""} for name in raters],
        )
        _cases(session, triage_data)
        samples, cases = triage_data.samples, triage_data.cases
        of_case = cases["example_id"].to_numpy()[samples["row"]]
        responses = pd.DataFrame(
            {
                "id": samples["response_id"],
                "example_id": of_case,
                "model_id": samples["model"].cat.codes.astype(int) + 1,
                "dataset": samples["format"].map({word.value: word.evaluation for word in Format}).astype(object),
                "sample_index": samples["sample_index"],
                "text": np.where(samples["has_text"], TEXT, ""),
            }
        )
        write(session, "response", responses.to_dict(orient="records"))
        at = now()
        for judge in triage_data.levels:
            looked = triage_data.levels[judge].dropna()
            words = {NO_LEVEL: Label.CANNOT_ASSESS.value} | {level: label.value for level, label in WORDS.items()}
            rows = {
                "example_id": of_case[looked.index],
                "response_id": samples["response_id"].to_numpy()[looked.index],
                "rater_id": raters[str(judge)],
                "stage": "judge",
                "label": looked.astype(float).map(words).to_numpy(dtype=object),
                "right_for_wrong_reason": False,
                "created_at": at,
            }
            write(session, "verdict", pd.DataFrame(rows).astype({"created_at": object}).to_dict(orient="records"))
        write(
            session,
            "verdict",
            [_read(triage_data, row, raters, at) for row in triage_data.reads.to_dict(orient="records")],
        )
        store.append_event(session, actor="benchmark", action="file imported", subject="drawn cases", detail={})
    return engine


def _cases(session: Session, triage_data: TriageData) -> None:
    cases = triage_data.cases
    rows = cases.to_dict(orient="records")
    same = {"messages": "[]", "n_turns": 1, "tags": "[]", "provisional": False, "dataset": CASES}
    write(session, "example", [
        {"id": row["example_id"], "prompt_id": row["case_id"], "first_words": row["first_words"], "language": "en", **same} for row in rows
    ])  # fmt: skip
    write(session, "acuity_case", [
        {"example_id": row["example_id"], "source": row["source"], "source_id": str(row["example_id"]), "method": row["method"],
         "gold": WORDS.get(row["file_gold"]), "is_edge_case": False}
        for row in rows
    ])  # fmt: skip
    numbers = cases["example_id"].to_numpy()
    write(session, "panel_vote", [
        {"example_id": int(numbers[vote["row"]]), "place": vote["place"], "rater": vote["rater"], "vote": WORDS.get(vote["vote"], "remove")}
        for vote in triage_data.votes.to_dict(orient="records")
    ])  # fmt: skip


def _read(triage_data: TriageData, read: dict[str, object], raters: dict[str, int], at: object) -> dict[str, object]:
    sample = int(str(read["sample"]))
    return {
        "example_id": int(triage_data.cases["example_id"].iloc[int(str(read["row"]))]),
        "response_id": None if sample < 0 else int(triage_data.samples["response_id"].iloc[sample]),
        "rater_id": raters[str(read["rater"])], "label": read["label"], "stage": read["stage"], "blinded": True, "selection": "random",
        "inclusion_probability": read["inclusion_probability"], "right_for_wrong_reason": False, "created_at": at,
    }  # fmt: skip
