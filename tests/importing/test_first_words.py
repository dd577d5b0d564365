"""The first words of a conversation end with a word, in any script with a whole character."""

import unicodedata

import pytest
from hypothesis import given, strategies as st

from evalcore.importing.examples import CUT, LONGEST, first_words


def test_what_fits_stays_whole_and_what_is_longer_ends_with_a_word():
    assert first_words("a" * LONGEST) == "a" * LONGEST
    assert first_words(f"{'word ' * 32}behind") == "word " * 31 + "word" + CUT
    assert first_words(f"{'x' * (LONGEST - 3)} longer words") == "x" * (LONGEST - 3) + CUT


@pytest.mark.parametrize("letter", ["e\u0301", "क\u093f", "👩\u200d⚕\ufe0f", "👍🏽", "🇩🇪"])
def test_without_spaces_a_letter_keeps_its_marks(letter):
    for before in range(len(letter)):
        found = first_words("痛" * before + letter * LONGEST)
        assert found.removesuffix(CUT).removeprefix("痛" * before).replace(letter, "") == ""


@given(st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from("  \n"), max_size=400))
def test_the_first_words_are_the_beginning_on_one_line_and_say_where_something_is_left_out(text):
    found, whole = first_words(text), " ".join(text.split())
    assert len(found) <= LONGEST + 1
    if len(whole) <= LONGEST:
        assert found == whole
        return
    kept = found.removesuffix(CUT)
    assert found.endswith(CUT)
    assert whole.startswith(kept)
    assert len(kept) >= LONGEST // 2 - 1
    if " " in whole[LONGEST // 2 : LONGEST + 1]:
        assert whole[len(kept)] == " "
    elif len(kept) > LONGEST // 2:
        assert not unicodedata.category(whole[len(kept)]).startswith("M")
