"""Small functions of the study, an example each: words, cells, names of versions."""

from datetime import UTC, datetime

import pytest

from evalcore.serving import local_path, page_address, served_hosts
from evalcore.study import csv_cells, languages
from evalcore.study.analysis import Analysis, StatedAnalysis, when_words, words
from evalcore.study.audit.row_hashes import runs_told
from evalcore.study.contents import holdings
from evalcore.study.families import family_of, mentions
from evalcore.study.schema import repeat_version, tag, version_and_repeat
from evalcore.study.store import is_storable


def test_a_pattern_fits_the_whole_name_in_upper_and_lower_case():
    assert family_of("openai/GPT-4.1-mini", [("*gpt-4*", "OpenAI")]) == "OpenAI"


def test_a_text_mentions_a_model_by_whole_words():
    assert mentions("As ChatGPT told you before ...", ["gpt-4.1"], [("gpt-4*", "OpenAI"), ("*chatgpt*", "OpenAI")])
    assert not mentions("A meta-analysis of egypt", ["llama-3", "gpt-4"], [("*llama*", "Meta"), ("gpt*", "OpenAI")])


def test_a_tag_is_what_follows_its_kind():
    assert tag(("level:example", "axis:accuracy"), "axis") == "accuracy"


def test_each_repeat_of_a_judge_has_a_version_of_its_own():
    assert [repeat_version("judge@1a2b3c4d", repeat) for repeat in (0, 1)] == ["judge@1a2b3c4d", "judge@1a2b3c4d#2"]
    assert version_and_repeat("judge@1a2b3c4d") == ("judge@1a2b3c4d", 0)
    assert version_and_repeat("judge@1a2b3c4d#2") == ("judge@1a2b3c4d", 1)


@pytest.mark.parametrize(
    ("examples", "cases", "responses", "samples", "said"),
    [
        (31, 1, 100, 10, "90 responses of 3 models to 30 conversations and 10 answers to 1 case of triage"),
        (1, 1, 10, 10, "10 answers of 3 models to 1 case of triage"),
        (0, 0, 0, 0, "0 responses of 0 models to 0 conversations"),
    ],
)
def test_what_a_study_does_not_hold_is_not_named(examples, cases, responses, samples, said):
    models = 3 if examples else 0
    counts = {"examples": examples, "cases": cases, "responses": responses, "samples": samples, "models": models}
    assert holdings(counts) == said


def test_languages_are_told_of_texts_that_are_long_enough():
    assert languages.language_of("I have had a headache for three days and the light hurts my eyes.") == "en"
    assert languages.language_of("45y F") is None


def test_words_are_folded_and_signs_are_spaces():
    assert languages.words_only("SpO2<92% (see a.b/C), Café").split() == ["spo2", "92", "see", "a", "b", "c", "cafe"]
    assert languages.indexable("胸痛 and Fever") == " 胸  痛  and Fever"
    assert languages.query_phrases('chest-pain 胸痛 "x') == ["chest pain", "胸 痛", "x"]
    assert languages.postgresql_vector("Chest pain, chest") == "'chest':1 'pain':2 'chest':3"


def test_a_guarded_cell_loses_one_quote_again():
    assert [csv_cells.guarded(cell) for cell in ("=1+1", "met", "'=1+1", "'tis")] == ["'=1+1", "met", "''=1+1", "'tis"]
    assert [csv_cells.unguarded(cell) for cell in ("'=1+1", "''=1+1", "'tis")] == ["=1+1", "'=1+1", "'tis"]


def test_neither_nul_nor_half_a_surrogate_pair_can_be_stored():
    assert [is_storable(text) for text in ("fièvre 38 °C", "a\x00b", "a\ud83d")] == [True, False, False]


def test_a_statement_is_told_in_words():
    assert words(Analysis(judges=("Magpie",)))["Judges"] == "Magpie"
    assert words(Analysis())["Holds for"] == "the widest possible"
    stated = StatedAnalysis(2, Analysis(), "Dr. A", datetime(2026, 3, 1, tzinfo=UTC), 1_200)
    assert when_words(stated) == "stated on 2026-03-01, after 1,200 reads"


def test_the_hosts_of_a_server_are_its_own_and_those_that_are_allowed():
    own = ["127.0.0.1:8501", "[::1]:8501", "localhost:8501", "localhost:9000"]
    assert sorted(served_hosts("127.0.0.1", 8501, ["localhost:9000"])) == own
    assert page_address("::1", 8501) == "http://[::1]:8501"
    wanted = ("/browse?q=x", "///evil.example/x", "https://evil.example")
    assert [local_path(path) for path in wanted] == ["/browse?q=x", "/", "/"]


def test_an_event_tells_rows_as_runs_of_numbers():
    assert runs_told("1-200,205") == [(1, 200), (205, 205)]
