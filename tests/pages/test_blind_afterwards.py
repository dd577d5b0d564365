"""What is kept or still open when a conversation becomes blind shows nothing of it."""

from streamlit.testing.v1 import AppTest

from tests import leaks
from tests.blind_walks import Visit, as_words
from tests.leaks import BLIND, MODEL, OPEN_EYES, SECRETS


def test_a_file_that_is_made_after_the_study_was_set_to_blind_leaves_it_out(walker, phases):
    one = walker(phases["waiting"].path)
    one.come(OPEN_EYES)
    one.see(Visit("export", chosen={"export_what": "verdicts", "paper": True}))
    table, report, *texts, bundle = one.makers()
    assert len(texts) == 3
    for maker in (table, report, bundle):
        assert leaks.found(SECRETS, as_words(maker())) >= {MODEL}
    leaks.make_blind(one.engine)
    for maker in (table, report, bundle, *texts):
        assert leaks.found((*SECRETS, *BLIND), as_words(maker())) == set()


def test_a_rubric_that_is_redrawn_after_the_study_was_set_to_blind_shows_nothing(walker, phases):
    one = walker(phases["waiting"].path)
    one.come(OPEN_EYES)

    def rubric(person, example):
        from pages.shared import rubric as shared_rubric

        shared_rubric.panel(person, example, [example], "Magpie", None)

    def drawn() -> bytes:
        app = AppTest.from_function(rubric, kwargs={"person": leaks.viewer(one.engine, OPEN_EYES), "example": 1}).run()
        assert not app.exception
        return b"\n".join(element.proto.SerializeToString() for element in app.get("html"))

    assert leaks.found(SECRETS, drawn())
    leaks.make_blind(one.engine)
    assert leaks.found(SECRETS, drawn()) == set()
