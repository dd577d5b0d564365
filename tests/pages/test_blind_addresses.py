"""A secret word that a blind reader tries in an address or a filter opens no more than any other word."""

import pytest

from tests import leaks
from tests.blind_walks import ASSIGNED, Query, Sent, Visit
from tests.leaks import BLIND, EVERY_ROLE, MODEL, OPEN_EYES, REVIEWER, WALKERS
from tests.page_steps import few

TRIED = (MODEL, leaks.EXPLANATIONS[0], leaks.IMPORTED_READER, leaks.FIRST_NOTE, leaks.RATIONALE, BLIND[1])
ALL_TRIED = pytest.mark.parametrize("words", few([(TRIED[:3],), (TRIED[3:],)], 1), ids=["some", "others"])
"""The everyday run tries a model, what the judge says, and who has read."""


ECHOES: dict[str, tuple[tuple[str, Query], ...]] = {
    REVIEWER: (
        ("browse", {"q": "{}"}), ("browse", {"model": "{}"}), ("browse", {"example": "1", "shown": "{}"}), ("judges", {"judges_judge": "{}"}),
    ),
    EVERY_ROLE: (("browse", {"q": "{}"}), ("audit", {"audit_search": "{}"}), ("audit", {"audit_person": "{}"}), ("adjudicate", {"case": "{}"})),
}  # fmt: skip
"""By walker: addresses into which somebody may put a word."""


@ALL_TRIED
@pytest.mark.parametrize("name", WALKERS)
def test_a_secret_word_in_an_address_opens_no_more_than_any_other_word(name, words, walker, phases):
    one = walker(phases["in_hand"].path)
    one.come(name)
    for page, query in ECHOES[name]:
        in_vain: dict[str, tuple[bytes, ...]] = {}
        for word in words:
            other = "x" * len(word)
            for said in {word, other} - {*in_vain}:
                in_vain[said] = one.see(Visit(page, {key: value.format(said) for key, value in query.items()})).steady
            masked = tuple(part.replace(word.encode(), other.encode()) for part in in_vain[word])
            assert masked == in_vain[other], (page, query, word)


@ALL_TRIED
def test_a_secret_word_by_which_items_would_be_assigned_finds_no_more_than_any_other_word(words, walker, phases):
    one = walker(phases["in_hand"].path)

    def assigned(word: str) -> Sent:
        return one.see(Visit("study", chosen={**ASSIGNED, "assign_q": word}, pressed=("assign_check",)))

    one.come(EVERY_ROLE)
    for word in words:
        other = "x" * len(word)
        masked = tuple(part.replace(word.encode(), other.encode()) for part in assigned(word).steady)
        assert masked == assigned(other).steady, word
    one.come(OPEN_EYES)
    assert b" would be assigned" in assigned(leaks.EXPLANATIONS[0]).everything
