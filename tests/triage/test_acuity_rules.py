"""The deterministic judge: what a response recommends as the main course, by the words that say so; and what it must never take for that."""

import csv
import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import assume, example, given, strategies as st

from evalcore.triage import levels as reading
from evalcore.triage.levels import NOT_ENGLISH, recommended_level
from evalcore.triage.levels.phrases import Soon, _sections, one_of, times_in


def rows_of(name: str) -> list[dict[str, str]]:
    with Path(__file__).with_name(name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


SENTENCES, PARAGRAPHS, HELD_OUT = map(rows_of, ("acuity_sentences.csv", "acuity_paragraphs.csv", "acuity_held_out.csv"))
ENGLISH = [row["text"] for row in SENTENCES if row["why"] != "not in English" and len(row["text"]) > 4]
TEXTS = st.sampled_from(ENGLISH + [row["text"] for row in PARAGRAPHS if row["level"] != "none"])
CONDITIONS = st.sampled_from([row["text"] for row in SENTENCES if row["why"] == "condition"])
UNRELATED = st.sampled_from(
    [
        "The weather in March was pleasant.",
        "A cold is caused by a virus.",
        "I hope this helps.",
        "Vitamin C is found in oranges.",
        "Many things have more than one cause.",
    ]
)
CONDITIONAL_FRAMES = st.sampled_from(
    [
        "If it gets worse, {}.",
        "{} if it gets worse.",
        "Should you feel faint, {}.",
        "Whenever it hurts, {}.",
        "In case of fever, {}.",
        "{} for any trouble breathing.",
    ]
)
ORDER_FRAMES = st.sampled_from(
    [
        "Please {}.",
        "You should {}.",
        "You need to {}.",
        "I recommend that you {}.",
        "I'd {}.",
        "It's best to {}.",
        "You must {}.",
        "**Next step:** {}.",
        "My advice is to {}.",
    ]
)
WORDS = sorted({*" ".join(ENGLISH).split(), "-", "**", "(", ")", '"', ":", ";"})
ORDERS = {
    "D": ("go to the emergency room", "call 911", "go to A&E", "call an ambulance", "head to the nearest hospital"),
    "C": ("see a doctor within 24 hours", "go to urgent care", "visit a walk-in clinic today", "call your GP today"),
    "B": ("see your doctor this week", "make an appointment with your GP", "book a dermatologist appointment"),
}
ORDERED = st.sampled_from([(level, order) for level, orders in ORDERS.items() for order in orders])
ORDER_OF = " ABCD"


def level(text: str) -> str:
    found = recommended_level(text).level
    return found.value if found else " "


# ---------------------------------------------------------------- our own sentences and paragraphs


def test_there_are_enough_sentences_of_every_sort():
    assert len(SENTENCES) >= 200
    assert len({row["text"] for row in SENTENCES}) == len(SENTENCES)
    assert min(Counter(row["level"] for row in SENTENCES).values()) >= 30


@pytest.mark.parametrize("why", dict.fromkeys(row["why"] for row in SENTENCES))
def test_a_sentence_is_read_as_it_was_meant(why):
    rows = [row for row in SENTENCES if row["why"] == why]
    read = {row["text"]: level(row["text"]).replace(" ", "none") for row in rows}
    assert read == {row["text"]: row["level"] for row in rows}


def test_paragraphs_that_the_rules_were_made_with_are_read_as_they_were():
    """`read` is what the rules make of them: in seven of 138 they find no level where there is one, and in none a wrong one."""
    read = {row["text"]: level(row["text"]).replace(" ", "none") for row in PARAGRAPHS}
    assert read == {row["text"]: row["read"] for row in PARAGRAPHS}
    assert Counter(row["read"] == row["level"] for row in PARAGRAPHS) == {True: 131, False: 7}
    assert {row["read"] for row in PARAGRAPHS if row["read"] != row["level"]} == {"none"}


def test_the_confusion_on_paragraphs_written_after_the_rules():
    """Sixty responses that were written when the rules stood.

    At the first reading 38 of 43 given levels were right (88 %), and 17 texts got none, 10 of them needlessly. Three of the five wrong
    levels and one of the ten were mended since, by rules and not by the texts' own words; what follows flatters by that much. The two
    sets before it, now among the paragraphs above, were first read with 41 of 44 and 33 of 35 right, and 16 and 25 without a level.
    """
    pairs = Counter((row["level"], level(row["text"]).replace(" ", "none")) for row in HELD_OUT)
    assert len(HELD_OUT) == 60
    assert pairs == {
        ("A", "A"): 6, ("A", "B"): 1, ("A", "none"): 2,
        ("B", "B"): 9, ("B", "none"): 4,
        ("C", "B"): 1, ("C", "C"): 13, ("C", "none"): 1,
        ("D", "D"): 13, ("D", "none"): 2,
        ("none", "none"): 8,
    }  # fmt: skip
    given_ = sum(n for (_, read), n in pairs.items() if read != "none")
    right = sum(n for (meant, read), n in pairs.items() if meant == read != "none")
    abstained = sum(n for (_, read), n in pairs.items() if read == "none")
    assert (right, given_, abstained) == (41, 43, 17)  # 95 % right among given, 28 % without a level (8 of 17 rightly)


# ---------------------------------------------------------------- what must hold


@given(text=TEXTS, condition=CONDITIONS, gap=st.sampled_from([" ", "\n", "\n\n"]), is_first=st.booleans())
def test_a_conditional_sentence_never_raises_the_level(text, condition, gap, is_first):
    together = f"{condition}{gap}{text}" if is_first else f"{text}{gap}{condition}"
    assert ORDER_OF.index(level(together)) <= ORDER_OF.index(level(text))


@given(text=TEXTS, sentence=UNRELATED, gap=st.sampled_from([" ", "\n\n"]), is_first=st.booleans())
def test_an_unrelated_sentence_changes_nothing(text, sentence, gap, is_first):
    together = f"{sentence}{gap}{text}" if is_first else f"{text}{gap}{sentence}"
    assert level(together) == level(text)


@pytest.mark.parametrize("order", ORDERS["D"] + ORDERS["C"] + ORDERS["B"])
@pytest.mark.parametrize(
    "negation",
    [
        "Do not {}.", "Don't {}.", "You do not need to {}.", "You don't have to {}.", "There is no need to {}.", "It isn't necessary to {}.",
        "You shouldn't {}.", "I would not {}.", "I wouldn't {}.", "There's no reason to {}.", "I don't think you need to {}.",
        "You don't need to call anyone or {}.", "I'm not recommending that you {}.", "You never need to {}.",
    ],
)  # fmt: skip
def test_negating_the_deciding_sentence_never_keeps_the_level(negation, order):
    before = next(name for name, orders in ORDERS.items() if order in orders)
    assert level(f"Please {order}.") == before
    assert level(negation.format(order)) in (" ", "A")


@given(ordered=ORDERED, frame=CONDITIONAL_FRAMES)
def test_an_order_under_a_condition_is_none(ordered, frame):
    assert level(frame.format(ordered[1])) == " "


@given(ordered=ORDERED, frame=ORDER_FRAMES)
def test_an_order_without_a_condition_is_its_level(ordered, frame):
    assert level(frame.format(ordered[1])) == ordered[0]


@given(one=ORDERED, other=ORDERED)
def test_of_two_steps_of_one_course_the_more_severe_counts(one, other):
    together = f"Please {one[1]}. Then {other[1]}."
    assert level(together) == max(one[0], other[0], key=ORDER_OF.index)


@given(one=ORDERED, other=ORDERED)
def test_two_alternatives_of_which_one_is_the_emergency_department_are_no_level(one, other):
    assume((one[0] == "D") != (other[0] == "D"))
    assert level(f"Please {one[1]} or {other[1]}.") == " "


@given(text=TEXTS, blank=st.sampled_from(["  ", "\t", " \t ", "\u00a0"]))
def test_more_space_does_not_matter(text, blank):
    assume("\n" not in text)
    assert level(text.replace(" ", blank)) == level(text)


@given(text=st.sampled_from([text for text in ENGLISH if "\n" not in text]), change=st.sampled_from(["upper", "title"]))
def test_capitals_do_not_matter(text, change):
    changed = (
        text.upper() if change == "upper" else re.sub(r"(?<![’'])\b[a-z](?=[a-z])", lambda said: said[0].upper(), text)
    )
    assert level(changed) == level(text)


@given(
    ordered=ORDERED,
    wrap=st.sampled_from(["**{}**", "*{}*", "## {}", "- {}", "1. {}", "> {}", "`{}`", "__{}__", "\n\n{}\n\n"]),
)
def test_markdown_does_not_matter(ordered, wrap):
    found = recommended_level(wrap.format(f"Please {ordered[1]}."))
    assert found.level == ordered[0]


@given(ordered=ORDERED, data=st.data())
def test_bold_inside_the_words_does_not_matter(ordered, data):
    words = f"Please {ordered[1]} now.".split(" ")
    place = data.draw(st.integers(0, len(words) - 1))
    words[place] = f"**{words[place]}**"
    assert level(" ".join(words)) == level(f"Please {ordered[1]} now.")


@example("İf ﬁt gets worse, go to the ER now")
@example("((((( go to the ER )))")
@given(st.one_of(st.text(), st.lists(st.sampled_from([*WORDS, "\n"]), max_size=40).map(" ".join)))
def test_any_text_gives_a_level_or_the_reason_why_there_is_none_and_quotes_are_its_words(text):
    found = recommended_level(text)
    assert found.level is None or found.level in "ABCD"
    assert found.why
    assert found.level is None or found.quotes
    assert len(found.quotes) <= 3
    for quote in found.quotes:
        assert 0 <= quote.begin < quote.end <= len(text)
        assert text[quote.begin : quote.end] == quote.words
    assert (found.why == NOT_ENGLISH) == (found.language is not None)
    assert found == recommended_level(text)


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "piece",
    [
        "go to the er ", "call 911 or ", "if ", "not ", "you do not need to go to the ", "(", "((((a) ", '"', "within 24 hours ", "go ", "- x\n", "# h\n",
        "1. a:\n", "**a**\n", "see your doctor , ", "might want to ", "this is not like a ", "people who ", "is the ", "should you have ", "’", " \n",
        "a:\n\n", "(if a) ", "not , a , ", "I do not think , a , ", "er now ", "ask if a ", "~~a", "a. ",
    ],
)  # fmt: skip
@pytest.mark.parametrize("length", [pytest.param(1_400, marks=pytest.mark.slow), 20_000])
def test_long_hostile_text_takes_no_long_time(piece, length):
    text = (piece * (length // len(piece)) + ". ") * (20_000 // length)
    assert recommended_level(text).why


def test_paragraphs_that_end_with_a_colon_do_not_pile_up(monkeypatch):
    """Each would stand over all that follow: of n such lines n * n would be looked at."""
    looked_at = []
    standing = reading._standing

    def over(heads, block):
        kept = standing(heads, block)
        looked_at.append(len(kept))
        return kept

    monkeypatch.setattr(reading, "_standing", over)
    recommended_level("If so:\n\nThen:\n\n" * 500)
    assert len(looked_at) == 1_000
    assert max(looked_at) == 1


@given(depths=st.lists(st.integers(0, 3), max_size=8), is_conditional=st.booleans())
def test_a_condition_above_stays_under_the_lines_with_a_colon_that_follow(depths, is_conditional):
    head = "If it gets worse:" if is_conditional else "What I recommend:"
    lines = [f"{'  ' * depth}- Then do this:" for depth in depths]
    text = "\n".join([f"{head}\n", "Read this:\n", *lines, f"{'  ' * 4}- go to the emergency room now"])
    assert level(text) == (" " if is_conditional else "D")


# ---------------------------------------------------------------- parts


@pytest.mark.parametrize(
    ("text", "soon"),
    [
        ("within 24-48 hours", Soon.DAYS), ("in the next day or two", Soon.DAYS), ("within 72 hours", Soon.DAYS), ("within 73 hours", Soon.WEEKS),
        ("within four days", Soon.WEEKS), ("within a few weeks", Soon.WEEKS), ("this week", Soon.WEEKS), ("within 4 hours", Soon.TODAY),
        ("within 30 minutes", Soon.NOW), ("today", Soon.TODAY), ("right now", Soon.NOW), ("tomorrow morning", Soon.DAYS), ("non-urgent", Soon.WEEKS),
        ("within 1 to 2 days", Soon.DAYS), ("within a week or two", Soon.WEEKS), ("2-3 days", Soon.DAYS), ("as soon as possible", Soon.DAYS),
    ],
)  # fmt: skip
def test_a_time_is_as_long_as_it_allows(text, soon):
    assert [when.soon for when in times_in(text)] == [soon]


@pytest.mark.parametrize(
    "text",
    [
        "for two weeks",
        "in the past 24 hours",
        "more than 3 days ago",
        "since today",
        "for now",
        "now and then",
        "urgent care",
    ],
)
def test_how_long_it_lasts_is_no_time(text):
    assert times_in(text) == []


def test_the_deciding_words_are_quoted_with_what_they_were_taken_for():
    found = recommended_level("No need for the ER.\nPlease **see your GP** within two weeks.")
    assert [quote.words for quote in found.quotes] == ["see your GP** within two weeks"]
    assert found.why == "a doctor, without hurry, is the main course"


def test_a_conflict_quotes_both_sides():
    found = recommended_level("Go to the ER now. There's no need to go to the ER.")
    assert found.level is None
    assert [quote.words for quote in found.quotes] == ["Go to the ER now", "go to the ER"]
    assert found.why.startswith("conflicting advice")


def test_every_line_of_the_word_lists_is_a_pattern_of_its_own():
    for name, lines in _sections().items():
        assert lines, name
        assert len(set(lines)) == len(lines), name
        re.compile(one_of(name))
