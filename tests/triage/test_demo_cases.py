"""The cases of triage in the demo study: sound in themselves, and erring as its README says that they do."""

import csv
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Engine

from evalcore.importing import demo
from evalcore.reading import assignment_queries
from evalcore.study import contents
from evalcore.study.db import open_study, reading
from evalcore.study.schema import Acuity, Ask, Claim, Format, MappingMethod, Physicians, Stage
from evalcore.triage import label_maps, queries as triage_queries
from evalcore.triage.bases import usual_held
from evalcore.triage.corrected import answered, corrected_rates
from evalcore.triage.data import LEVELS, Kind, TriageData, described
from evalcore.triage.levels.answer import stated_level
from evalcore.triage.predictions import joined, predictions, usual_judges
from tests.invented import seeded_study
from tests.triage_cases import put_right

A, B, C, D = (LEVELS[level] for level in (Acuity.A, Acuity.B, Acuity.C, Acuity.D))
MODELS = ("Alder-2", "Briar-1", "Clover-mini")
MAX_BYTES = 700_000


@pytest.fixture(scope="module")
def seeded(demo_file: Path) -> Iterator[Engine]:
    engine = open_study(str(demo_file))
    yield engine
    engine.dispose()


@pytest.fixture(scope="module")
def triage_data(seeded: Engine) -> TriageData:
    with reading(seeded) as session:
        return described(triage_queries.load(session))


@pytest.fixture(scope="module")
def answers() -> list[dict[str, Any]]:
    lines = (demo.folder() / "acuity_predictions.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def rows() -> list[dict[str, str]]:
    with (demo.folder() / "acuity_cases.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


# ---------------------------------------------------------------- cases


def own_maps():
    return sorted((demo.folder() / demo.LABEL_MAPS).glob("*.csv"))


def test_there_are_cases_of_every_kind_and_level_from_three_sources(triage_data):
    cases = triage_data.cases
    assert Counter(cases["kind"]) == {Kind.CLEAR: 45, Kind.BOUNDARY: 7, Kind.AMBIGUOUS: 7, Kind.UNLABELLED: 1}
    clear = cases.loc[cases["kind"].eq(Kind.CLEAR)]
    assert Counter(clear["gold"]) == {A: 10, B: 12, C: 11, D: 12}
    assert set(cases.loc[cases["kind"].eq(Kind.BOUNDARY), "gold"]) == {1.5, 2.5, 3.5}
    assert set(clear["strength"]) == {"direct", "unanimous", "4-1", "3-2"}
    assert Counter(cases["source"]) == {"nightline": 23, "clinic-letters": 20, "triage-desk": 17}
    removed = cases.loc[cases["method"].eq(MappingMethod.REMOVED)]
    assert list(removed["kind"]) == [Kind.UNLABELLED]
    assert cases.loc[cases["kind"].eq(Kind.AMBIGUOUS), "n_removed"].gt(0).any()
    assert Counter(cases["language"]) == {"en": 54, "es": 3, "ar": 2, "hi": 1}


def test_the_sources_have_different_words_and_every_label_is_known_to_its_map(rows):
    maps = label_maps.maps({path.stem: label_maps.parse(path.read_text(), path.name) for path in own_maps()})
    maps = {**label_maps.maps(label_maps.default_tables()), **maps}
    words = {source: {row["original_label"] for row in rows if row["dataset"] == source} for source in {row["dataset"] for row in rows}}  # fmt: skip
    assert words == {
        "nightline": {"send", "see", "stay"},
        "clinic-letters": {"1", "2", "3", "4", "5", "6"},
        "triage-desk": {"A", "A/B", "B", "B/C", "C", "C/D", "D"},
    }
    for row in rows:
        meaning = label_maps.meaning_of(maps, row["dataset"], row["original_label"])
        if row["mapping_method"] == MappingMethod.DIRECT:
            assert label_maps.level_of(meaning) == row["normalized_label"].replace("|", "/")
        else:
            assert label_maps.level_of(meaning) is None  # the panel decides


def test_what_the_file_says_of_a_panel_is_what_its_votes_say(triage_data):
    cases = triage_data.cases
    panels = cases.loc[cases["n_votes"].gt(1)]
    assert set(panels["n_votes"] + panels["n_removed"]) == {5}
    assert panels["kind"].eq(Kind.AMBIGUOUS).equals(panels["method"].eq(MappingMethod.DISAGREEMENT))
    np.testing.assert_array_equal(
        panels["gold"], panels["file_gold"]
    )  # the votes decide the first, the file says the second
    assert cases["is_edge_case"].equals(cases["gold"] % 1 == 0.5)


def test_a_case_is_a_patients_letter_of_bearable_length(rows):
    prompts = [row["normalized_prompt_text"] or row["original_prompt_text"] for row in rows]
    assert len(set(prompts)) == len(prompts) == 60
    assert all(50 <= len(prompt) <= 1_200 for prompt in prompts)
    assert sum(len(prompt) > 600 for prompt in prompts) == 2
    assert not [prompt for prompt in prompts if re.search(r"\b(ACUITY|level [A-D])\b", prompt)]


# ---------------------------------------------------------------- answers


def test_every_model_answers_every_case_five_times_in_both_formats_and_the_first_in_full(answers, rows):
    names = {f"{row['dataset']}_{row['source_id']}" for row in rows}
    wanted = {
        (case, model, word, sample): sample == 0
        for case in names for model in MODELS for word in Format for sample in range(5)
    }  # fmt: skip
    given = {(one["case_id"], one["model"], one["format"], one["sample_index"]): "text" in one for one in answers}
    assert given == wanted
    assert {one["rater"] for one in answers if one["format"] == Format.CONVERSATION} == {demo.JUDGE}


def test_no_two_answers_are_alike_and_none_is_endless(answers):
    texts = [one["text"] for one in answers if "text" in one]
    assert len(set(texts)) == len(texts) == 60 * 3 * 2
    assert all(30 <= len(text) <= 700 for text in texts)
    files = [demo.folder() / name for name in demo.TRIAGE]
    assert sum(path.stat().st_size for path in files) < MAX_BYTES


def test_the_parser_reads_out_of_an_answer_the_level_that_the_file_says(answers):
    of_qa = [one for one in answers if one["format"] == Format.QA and "text" in one]
    assert [one["level"] for one in of_qa] == [stated_level(one["text"]).level or "" for one in of_qa]
    invalid = [one["text"] for one in of_qa if not one["level"]]
    assert any("ACUITY: " in text for text in invalid)  # two letters on one line
    assert any("ACUITY" not in text for text in invalid)


def test_a_conversation_names_no_level(answers):
    texts = [one["text"] for one in answers if one["format"] == Format.CONVERSATION and "text" in one]
    assert not [text for text in texts if re.search(r"acuity|triage|\blevel [A-D]\b|\([A-D]\)", text, re.IGNORECASE)]
    unread = [one for one in answers if one["format"] == Format.CONVERSATION and "text" in one and not one["level"]]
    assert len(unread) >= 2  # recommend nothing


# ---------------------------------------------------------------- how they err


def of(triage_data: TriageData, model: str, word: Format) -> tuple[int, int, int]:
    """Clear cases that a model puts too high, too low, and emergencies that it keeps at home."""
    found = joined(triage_data, predictions(triage_data, usual_judges(triage_data)))
    mine = found.loc[found["model"].eq(model) & found["format"].eq(word) & found["kind"].eq(Kind.CLEAR)]
    home = mine["gold"].eq(D) & mine["predicted"].eq(A)
    return int(mine["predicted"].gt(mine["gold"]).sum()), int(mine["predicted"].lt(mine["gold"]).sum()), int(home.sum())


def test_each_model_errs_in_its_own_direction(triage_data):
    over, under, _ = of(triage_data, "Briar-1", Format.QA)
    assert over >= 15 > under
    over, under, _ = of(triage_data, "Briar-1", Format.CONVERSATION)
    assert max(over, under) <= 6
    over, under, home = of(triage_data, "Clover-mini", Format.CONVERSATION)
    assert under >= 15 > over
    assert home >= 2
    over, under, home = of(triage_data, "Clover-mini", Format.QA)
    assert (max(over, under) <= 6, home) == (True, 0)
    for word in Format:
        over, under, home = of(triage_data, "Alder-2", word)
        assert (0 < over + under <= 5, home) == (True, 0)


def test_models_are_sure_where_physicians_are_not(triage_data):
    found = joined(triage_data, predictions(triage_data, usual_judges(triage_data)))
    ambiguous = found.loc[found["kind"].eq(Kind.AMBIGUOUS)]
    assert ambiguous["share"].mean() > 0.8


def test_some_samples_have_no_level_and_every_clear_case_has_a_prediction(triage_data):
    found = joined(triage_data, predictions(triage_data, usual_judges(triage_data)))
    assert found["n_invalid"].sum() > 10
    assert found.loc[found["kind"].eq(Kind.CLEAR), "predicted"].notna().all()


# ---------------------------------------------------------------- physicians


def test_physicians_correct_the_judge_and_change_golds(triage_data):
    reads = triage_data.reads.loc[triage_data.reads["stage"].eq(Stage.FIRST)]
    of_responses = reads.loc[reads["asked"].eq(Ask.RESPONSE_ACUITY)]
    drawn = of_responses.drop_duplicates("sample")
    samples = triage_data.samples.iloc[drawn["sample"]]
    assert Counter(samples["format"]) == {Format.CONVERSATION: 129, Format.QA: 10}
    assert Counter(samples.loc[samples["format"].eq(Format.CONVERSATION), "model"]) == dict.fromkeys(MODELS, 43)
    emergency = triage_data.cases["gold"].eq(D).to_numpy()[samples["row"].to_numpy()]
    stratum = np.where(samples["format"].eq(Format.QA), "qa", np.where(emergency, "emergencies", "others"))
    shares = drawn["inclusion_probability"].groupby(stratum).unique()
    assert {name: float(*value) for name, value in shares.items()} == pytest.approx(
        {"emergencies": 30 / 36, "others": 99 / 144, "qa": 10 / 180}, abs=1e-4
    )
    assert of_responses["sample"].duplicated().sum() >= 8  # two readers
    said = of_responses["label"].map(LEVELS.get).fillna(0).to_numpy(dtype=float)
    judged = triage_data.levels[demo.JUDGE].to_numpy()[of_responses["sample"]]
    assert (said < judged).sum() >= 4  # it heard an emergency where there was none
    of_cases = reads.loc[reads["asked"].eq(Ask.GOLD_ACUITY)]
    assert of_cases["row"].nunique() == 14
    gold = triage_data.cases["gold"].to_numpy()[of_cases["row"]]
    changed = of_cases.loc[of_cases["label"].map(LEVELS.get).to_numpy(dtype=float) != gold]
    assert changed["row"].nunique() >= 4
    settled = triage_data.reads.loc[triage_data.reads["stage"].eq(Stage.ADJUDICATED)]
    assert set(settled["asked"]) == {Ask.RESPONSE_ACUITY, Ask.GOLD_ACUITY}


def test_of_every_model_enough_conversations_were_read_for_corrected_rates_of_physicians_in_general(
    seeded, triage_data
):
    judges = usual_judges(triage_data)
    with reading(seeded) as session:
        stated = contents.stated_analysis(session)
    assert stated is not None
    held, _ = usual_held(answered(triage_data, judges, settled=stated.spec.settled), stated.spec)
    assert (held.claim, held.physicians) == (Claim.NEW_EXAMPLES, Physicians.IN_GENERAL)
    made = put_right(corrected_rates, triage_data, judges, held=held)
    made = made.loc[made["format"].eq(Format.CONVERSATION)]
    assert set(made["model"]) == set(MODELS)
    assert made["enough"].all()
    assert made["n_effective_readers"].ge(3).all()


def test_emergencies_and_ambiguous_cases_wait_in_review(seeded, triage_data):
    with reading(seeded) as session:
        assigned = assignment_queries.assignments(session).set_index("ask")["n_tasks"]
    assert assigned[Ask.RESPONSE_ACUITY] == demo.N_EMERGENCIES
    assert assigned[Ask.GOLD_ACUITY] == demo.N_AMBIGUOUS


@pytest.mark.slow
def test_the_demo_is_the_same_on_both_databases(database_url, triage_data):
    with seeded_study(database_url) as engine, reading(engine) as session:
        found = described(triage_queries.load(session))
    assert found.cases["case_id"].equals(triage_data.cases["case_id"])
    assert found.levels[demo.JUDGE].equals(triage_data.levels[demo.JUDGE])
    assert len(found.reads) == len(triage_data.reads)
