"""The table of families: the default, a study's own, and a table that cannot be used."""

import pytest

from evalcore.errors import OverreadError
from evalcore.study import contents, families, store
from evalcore.study.db import reading, writing
from tests import world
from tests.drift_steps import ran, told


def test_families_lists_names_with_what_fits_them(three_conversations):
    found = told(three_conversations, "families")
    assert found["is_own"] is False
    assert {row["name"]: (row["kind"], row["family"]) for row in found["names"]} == {
        "claude-sonnet": ("model", "Anthropic"), "gpt-4.1": ("model", "OpenAI"), "Magpie": ("judge", None),
    }  # fmt: skip
    assert "– (no pattern fits)" in ran(three_conversations, "families").stdout


def test_a_table_of_the_study_takes_the_place_of_the_default_and_leaves_one_event(three_conversations, tmp_path):
    path = tmp_path / "families.csv"
    path.write_text("\ufeffpattern,family\nmag*,Birds\n GPT*  , Birds\n", encoding="utf-8")
    found = told(three_conversations, "families", path)
    assert found["is_own"] is True
    assert found["patterns"] == [{"pattern": "mag*", "family": "Birds"}, {"pattern": "GPT*", "family": "Birds"}]
    assert {row["name"]: row["family"] for row in found["names"]} == {
        "claude-sonnet": None, "gpt-4.1": "Birds", "Magpie": "Birds"
    }  # fmt: skip
    told(three_conversations, "families", path)  # nothing changes, so nothing is written
    assert [action for _, action in three_conversations.events()].count("families set") == 1
    assert told(three_conversations, "families", "--reset")["is_own"] is False
    assert [action for _, action in three_conversations.events()].count("families set") == 2


def test_a_table_that_is_no_utf8_is_refused_with_its_place_and_nothing_is_stored(three_conversations, tmp_path):
    path = tmp_path / "families.csv"
    path.write_bytes("pattern,family\nalder*,Bäume\n".encode("latin-1"))
    with pytest.raises(OverreadError, match=r"^families.csv line 2: byte 24: expected UTF-8, got e4$"):
        ran(three_conversations, "families", path)
    assert "families set" not in [action for _, action in three_conversations.events()]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name,maker\na,b\n", "f.csv line 1: expected the columns pattern, family, got name, maker"),
        ("", "f.csv line 1: expected the columns pattern, family, got nothing"),
        ("pattern,family\n", "f.csv: expected 1 to 500 rows, got 0"),
        ("pattern,family\ngpt*,\n", "f.csv line 2: family: expected 1 to 200 printable characters, got ''"),
        (
            "pattern,family\ngpt*,A\nGPT*,B\n",
            "f.csv line 3: pattern: expected each pattern once, got 'GPT*', which f.csv line 2 has already",
        ),
    ],
)
def test_a_table_that_cannot_be_used_is_refused_with_its_place(text, said):
    with pytest.raises(OverreadError) as refused:
        families.parse(text, "f.csv")
    assert str(refused.value) == said


def test_the_table_that_comes_with_overread_knows_the_makers():
    table = families.default()
    known = {
        "gpt-4.1": "OpenAI", "openai/o3-mini": "OpenAI", "o1": "OpenAI", "o4-mini-2025-04-16": "OpenAI", "chatgpt-4o-latest": "OpenAI",
        "Claude 3.7 Sonnet": "Anthropic", "us.anthropic.claude-opus-4": "Anthropic", "gemini-2.5-pro": "Google", "medgemma-27b": "Google",
        "Meta-Llama-3.1-70B": "Meta", "deepseek-r1-distill-llama-70b": "DeepSeek", "grok-3": "xAI", "Qwen3-235B": "Alibaba",
        "mixtral-8x7b": "Mistral AI",
    }  # fmt: skip
    assert dict(families.families_of([*known, "Magpie", "foo1", "solo1"], table)) == known
    assert families.parse(families.to_csv(table), "again") == table


def test_the_families_of_a_study_are_kept_on_both_databases(database_url):
    made = world.made(database_url)
    with writing(made.engine) as session:
        assert store.set_families(session, [("b*", "B"), ("a*", "A")], actor="Ana Ruiz")
    with reading(made.engine) as session:
        assert contents.family_table(session) == [("b*", "B"), ("a*", "A")]
    with writing(made.engine) as session:
        assert store.set_families(session, [], actor="Ana Ruiz")
    with reading(made.engine) as session:
        assert contents.own_families(session) == []
        assert contents.family_table(session) == families.default()
    made.engine.dispose()
