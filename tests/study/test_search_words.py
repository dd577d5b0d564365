"""What a search finds, the same on SQLite and PostgreSQL."""

import random
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st
from sqlalchemy import make_url, text

from evalcore.study.db import writing
from evalcore.study.languages import (
    holds,
    index_parts,
    indexable,
    postgresql_query,
    query_phrases,
    sqlite_query,
    words_only,
)
from evalcore.study.store import Bulk
from tests.conftest import plain, run
from tests.invented import study

TEXTS = [
    "Chest pain that spreads to the left arm; ask about breathlessness.",
    "chest-pain unit, SpO2<92%, see guideline (NICE/2016) or a.b/c.d",
    "Café au lait, naïve Übelkeit, École, ĐẶNG, Straße, İstanbul",
    "胸痛と発熱があります。AND NEAR OR NOT",
    "我父亲从今天早上开始胸痛，发烧。",
    "ألم في الصدر منذ يومين، مع ضيق في التنفس",
    "मेरे पिता को सीने में दर्द है",
    "ปวดหัวและมีไข้",
    "Take 5mg, then 1e5 units, 12abc, x_y, don’t stop – 3.5 µg/kg",
    "Pain😀relief 👨‍👩‍👧 family; pain\u2060free",
    "Ünïcödé ﬁne words and ǅ, Ω and ω",
    "aspirin* \"quoted words\" 'single' back\\slash semi;colon {brace} ^caret",
]


@pytest.fixture(scope="module")
def engines(postgres_url, tmp_path_factory):
    """A study on each kind of database, for all tests of this file; each of TEXTS is an example of its own."""
    name = f"overread_{uuid4().hex}"
    run(plain(make_url(postgres_url)), f"CREATE DATABASE {name}")
    url = make_url(postgres_url).set(database=name).render_as_string(hide_password=False)
    with study(f"sqlite:///{tmp_path_factory.mktemp('search') / 'study.db'}") as sqlite, study(url) as postgresql:
        for engine in (sqlite, postgresql):
            index(engine, TEXTS)
        yield sqlite, postgresql
    run(plain(make_url(postgres_url)), f"DROP DATABASE {name} WITH (FORCE)")


def both(engines, query):
    """What each database finds among TEXTS."""
    hits = [found(engine, query) for engine in engines]
    return tuple(None if one is None else [at for at in one if at < len(TEXTS)] for one in hits)


def index(engine, texts):
    with writing(engine) as session:
        bulk = Bulk(session)
        blank = {"dataset": "d", "messages": "[]", "n_turns": 1, "first_words": "", "tags": "[]", "provisional": False}
        start = session.connection().execute(text("SELECT count(*) FROM example")).scalar_one()
        numbers = bulk.insert("example", [blank | {"prompt_id": f"{start + at}"} for at in range(len(texts))])
        bulk.index(zip(numbers, ([words] for words in texts), strict=True))
    return numbers


def found(engine, query):
    if engine.dialect.name == "sqlite":
        asked, match = sqlite_query(query), "rowid IN (SELECT rowid FROM search_text WHERE search_text MATCH :asked)"
    else:
        asked, match = (
            postgresql_query(query),
            "rowid IN (SELECT rowid FROM search_text WHERE body @@ CAST(:asked AS tsquery))",
        )
    if not asked:
        return None
    statement = f"SELECT DISTINCT example_id FROM search_entry WHERE {match.replace('rowid IN', 'id IN', 1)} ORDER BY 1"
    with engine.connect() as connection:
        return [row[0] - 1 for row in connection.execute(text(statement), {"asked": asked})]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("chest pain", [0, 1]),
        ("CHEST", [0, 1]),
        ("chest-pain", [0, 1]),
        ("pain chest", [0, 1]),
        ("pain-chest", []),
        ("breath", [0]),
        ("breathlessness arm", [0]),
        ("breat arm", []),
        ('"', None),
        ("", None),
        ("   ", None),
        ("😀", None),
        ("* ^ - + ( )", None),
        ("cafe", [2]),
        ("CAFÉ", [2]),
        ("ecole", [2]),
        ("dang", []),
        ("đang", [2]),
        ("straße", [2]),
        ("istanbul", [2]),
        ("胸痛", [3, 4]),
        ("胸痛 发烧", [4]),
        ("痛胸", []),
        ("胸", [3, 4]),
        ("الصدر", [5]),
        ("ضيق التنفس", [5]),
        ("दर्द", [6]),
        ("सीने में", [6]),
        ("ไข้", [7]),
        ("AND", [3, 10]),
        ("NEAR", [3]),
        ("NOT chest", []),
        ("NEAR(chest pain)", []),
        ("body:chest", []),
        ("aspirin*", [11]),
        ('"quoted words"', [11]),
        ("back\\slash", [11]),
        ("'single'", [11]),
        ("pain relief", [9]),
        ("3.5", [8]),
        ("1e5", [8]),
        ("12abc", [8]),
        ("don't", [8]),
        ("don’t", [8]),
        ("spo2<92%", [1]),
        ("a.b/c", [1]),
        ("ω", [10]),
        ("& | ! <-> :*", None),
        ("x\x00y", [8]),
    ],
)
def test_both_databases_find_the_same(engines, query, expected):
    assert both(engines, query) == (expected, expected)


ALPHABET = st.sampled_from("aAbZéÉßøđ09_-.'’\"*&|!():<>\\/ \t\n胸痛发あไข้दर्दأصπΩй😀–½²٣\u0301\u200d\u00a0")
WORDS = st.text(ALPHABET, max_size=12) | st.text(max_size=8)


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(query=WORDS | st.lists(st.sampled_from(" ".join(TEXTS).split()), max_size=3).map(" ".join))
def test_any_query_finds_the_same_on_both_and_breaks_neither(engines, query):
    query = query.replace("\x00", "")
    sqlite, postgresql = both(engines, query)
    assert sqlite == postgresql
    if sqlite is not None:  # a text that is looked through for what the index finds in it
        assert sqlite == [at for at, words in enumerate(TEXTS) if holds([words], query)]


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(WORDS, min_size=8, max_size=8), seed=st.integers(0, 9))
@example(texts=["1e5x", "1-2", "-5.3e2", "a@b.c", "http://a.b/c?d", "/usr/bin", "v1.2.3", "&amp;"], seed=1)
def test_any_text_can_be_indexed_and_its_own_words_find_it_on_both(engines, texts, seed):
    texts = [words.replace("\x00", "") for words in texts]
    for engine in engines:
        numbers = index(engine, texts)
        at = random.Random(seed).randrange(len(texts))
        hits = found(engine, texts[at])
        assert hits is None or numbers[at] - 1 in hits


def test_a_very_long_text_is_found_by_its_last_phrase_on_both(engines):
    different = " ".join(f"word{number}" for number in range(200_000))  # 1.9 MB: more than one PostgreSQL vector holds
    for engine in engines:
        (number,) = index(engine, [different + " the-very-end"])
        assert found(engine, "the-very-end") == [number - 1]
        assert found(engine, "word199999") == [number - 1]
        (number,) = index(engine, ["痛" * 40_000 + "終末"])
        assert found(engine, "終末") == [number - 1]
        (number,) = index(engine, ["q" * 100_000])  # one word, which PostgreSQL does not take
        assert found(engine, "q" * 99) == ([number - 1] if engine.dialect.name == "sqlite" else [])


@given(st.lists(st.text(max_size=200), max_size=5))
def test_parts_hold_every_word_and_nothing_else(texts):
    assert "".join(index_parts(texts)) == "\n".join(map(indexable, texts))


@given(st.text())
def test_words_only_holds_letters_marks_and_numbers_and_stays_as_it_is(words):
    once = words_only(words)
    assert words_only(once).split() == once.split()
    assert not set(once) & set("'\"*&|!():<>\\-")


@given(st.text())
def test_a_text_is_indexed_as_it_is_asked_for(words):
    assert words_only(indexable(words)).split() == words_only(words).split()


@given(st.text())
def test_a_query_has_at_most_32_phrases_of_plain_words(query):
    phrases = query_phrases(query)
    assert len(phrases) <= 32
    assert all(phrase == " ".join(words_only(phrase).split()) for phrase in phrases)
