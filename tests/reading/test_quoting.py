"""A quotation of a response: found at its place however the text was shown, and never of what the response does not say."""

import html
import re
from collections.abc import Sequence

import pytest
from hypothesis import assume, given, strategies as st

from evalcore.errors import NotFound, OverreadError
from evalcore.reading.quoting import MARKS, MAX_QUOTED, MAX_SELECTED, Selected, quotation, with_quotation
from pages.shared.html import formatted

WORDS = [
    "see",
    "a",
    "doctor",
    "5",
    "mg",
    "-5",
    "(daily)",
    "don’t",
    "e.g.",
    "3.5%",
    "休息",
    "नमस्ते",
    "ألم",
    "1.5-2",
    "[sic]",
]
HIDDEN, SHOWN = False, True
Part = tuple[str, bool]


def letters(text: str) -> str:
    return "".join(character for character in text if not character.isspace() and character not in MARKS)


def parsed(said: str) -> tuple[str, int, int]:
    """The words of a quotation and its place, as offsets from 0."""
    found = re.fullmatch(r"“(.*)” \(response, characters ([\d,]+)–([\d,]+)\)", said)
    assert found, said
    return found[1], int(found[2].replace(",", "")) - 1, int(found[3].replace(",", ""))


def shown_text(text: str) -> str:
    """What a browser takes from the formatted text when somebody selects it."""
    return html.unescape(re.sub(r"<[^>]*>", "", formatted(text)))


def around(word: str, before: str, after: str) -> list[Part]:
    return [(before, HIDDEN), (word, SHOWN), (after, HIDDEN)]


word = st.sampled_from(WORDS)
inline = st.one_of(
    word.map(lambda one: [(one, SHOWN)]),
    st.builds(around, word, st.just("**"), st.just("**")),
    st.builds(around, word, st.just("*"), st.just("*")),
    st.builds(around, word, st.just("~~"), st.just("~~")),
    st.builds(around, word, st.just("`"), st.just("`")),
    word.map(lambda one: [("[", HIDDEN), (one, SHOWN), ("](", HIDDEN), ("http://x.org/a", SHOWN), (")", HIDDEN)]),
    st.just([("&lt;", HIDDEN), ("5", SHOWN)]),
)
line = st.lists(inline, min_size=1, max_size=5).map(
    lambda all_: [part for one in all_ for part in (*one, (" ", HIDDEN))]
)
plain_line = st.lists(word, min_size=1, max_size=5).map(lambda words: [(" ".join(words), SHOWN)])
block = st.one_of(
    line,
    line.map(lambda parts: [("## ", HIDDEN), *parts]),
    st.lists(line, min_size=1, max_size=3).map(lambda lines: [part for one in lines for part in [("- ", HIDDEN), *one, ("\n", HIDDEN)]]),
    st.lists(line, min_size=1, max_size=3).map(
        lambda lines: [part for n, one in enumerate(lines, start=1) for part in [(f"{n}. ", HIDDEN), *one, ("\n", HIDDEN)]]
    ),
    line.map(lambda parts: [("> ", HIDDEN), *parts]),
    st.tuples(line, line).map(lambda cells: [("| ", HIDDEN), *cells[0], ("| ", HIDDEN), *cells[1], ("|\n|:--|--:|\n", HIDDEN)]),
    plain_line.map(lambda parts: [("```python\n", HIDDEN), *parts, ("\n```", HIDDEN)]),
)  # fmt: skip


def test_a_mark_that_is_stored_as_an_entity_is_quoted_whole():
    assert quotation("Take &lt; 5 mg.", Selected("Take <", 0, formatted=True)) == "“Take <” (response, characters 1–9)"


@given(st.lists(block, min_size=1, max_size=5), st.data())
def test_whatever_is_selected_of_a_formatted_response_is_found_at_its_place(
    blocks: list[list[Part]], data: st.DataObject
):
    text, places = written(blocks)
    shown = shown_text(text)
    assert letters(shown) == letters("".join(text[place] for place in places))  # the text was drawn as it is shown
    start = data.draw(st.integers(0, len(shown) - 1))
    end = data.draw(st.integers(start + 1, len(shown)))
    words, n_before = shown[start:end], len(letters(shown[:start]))
    assume(letters(words))
    quoted, first, last = parsed(quotation(text, Selected(words, n_before, formatted=True)))
    wanted = places[n_before], places[n_before + len(letters(words)) - 1] + 1
    assert not letters(html.unescape(text[first : wanted[0]]))  # marks that were selected too, as of "-5"
    assert not letters(html.unescape(text[wanted[1] : last]))
    assert first <= wanted[0] < wanted[1] <= last
    if " … " not in quoted:
        assert letters(quoted) == letters(words)


def written(blocks: Sequence[Sequence[Part]]) -> tuple[str, list[int]]:
    """The stored text of some blocks, and where in it each letter stands that is shown."""
    text, places = "", []
    for parts in blocks:
        for part, is_shown in parts:
            places += [len(text) + at for at, one in enumerate(part) if is_shown and letters(one)]
            text += part
        text += "\n\n"
    return text, places


@given(st.text("ab *5\n", min_size=1), st.data())
def test_whatever_is_selected_of_the_source_is_found_at_its_place(text: str, data: st.DataObject):
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    words = text[start:end].strip()
    assume(letters(words))
    start += text[start:end].index(words)
    quoted, first, last = parsed(quotation(text, Selected(words, len(letters(text[:start])), formatted=False)))
    assert (first, last) == (start, start + len(words))
    assert quoted == " ".join(words.split())


@given(st.text("ab.<>*&lt;1 \n"), st.text("ab.<>*&lt;1 \n"), st.integers(-5, 50), st.booleans())
def test_nothing_is_quoted_that_the_response_does_not_say(response: str, words: str, n_before: int, is_formatted: bool):
    try:
        quoted, first, last = parsed(quotation(response, Selected(words, n_before, is_formatted)))
    except OverreadError:
        return
    part = iter(html.unescape(response[first:last]) if is_formatted else response[first:last])
    assert all(character in part for character in quoted if character != " ")  # in this order


def test_words_that_differ_from_the_response_are_refused_with_what_to_do():
    with pytest.raises(NotFound, match="Switch on Source"):
        quotation("see a doctor soon", Selected("see no doctor soon", 0, formatted=True))
    assert quotation("take >5 mg", Selected("take <5 mg", 0, formatted=True)).startswith("“take 5 mg”")


@pytest.mark.parametrize("words", ["", " \n", "**", "- > |"])
def test_where_nothing_is_selected_the_sentence_says_so(words: str):
    with pytest.raises(OverreadError, match="Select words in the response first"):
        quotation("Rest.", Selected(words, 0, formatted=False))


def test_of_the_same_words_those_count_that_were_selected():
    text = "Rest. Rest. **Rest.**"
    starts = [parsed(quotation(text, Selected("Rest", n_before, formatted=True)))[1] for n_before in (0, 5, 10, 999)]
    assert starts == [0, 6, 14, 14]


def test_a_long_quotation_is_cut_in_its_middle_and_its_place_is_of_the_whole():
    text = "Begin. " + "word " * 200 + "End."
    quoted, first, last = parsed(quotation(text, Selected(text, 0, formatted=False)))
    assert (first, last) == (0, len(text))
    assert len(quoted) <= MAX_QUOTED
    assert quoted.startswith("Begin. word")
    assert quoted.endswith("word End.")
    with pytest.raises(OverreadError, match=f"at most {MAX_SELECTED:,}"):
        quotation(text, Selected("word " * MAX_SELECTED, 0, formatted=False))


def test_a_quotation_stands_behind_the_note_once():
    said = quotation("Rest.", Selected("Rest", 0, formatted=False))
    once = with_quotation("Too short.", said)
    assert once == "Too short. “Rest” (response, characters 1–4)"
    assert with_quotation(once, said) == once
    assert with_quotation("", said) == said
