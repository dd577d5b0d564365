"""What Export hands over for judges made elsewhere, a prompt of one's own in the form of runs, and two prompts on the Judges page."""

import pytest

from evalcore.study import store
from evalcore.study.db import open_study, writing
from evalcore.study.schema import Label, RaterKind, Stage, Verdict
from tests import world
from tests.page_steps import check, said


@pytest.fixture
def two_prompts(location):
    """Two models; the file's verdicts and those of strict@1a2b3c4d, which says met throughout; the first conversation is read."""
    small = world.made(location, models=("Alder-2", "Birch-1"))
    with writing(small.engine) as session:
        rater = store.ensure_rater(session, RaterKind.JUDGE, world.JUDGE, prompt_version="strict@1a2b3c4d")
        given = [
            Verdict(**small.item(0, place), example_id=1, rater_id=rater, stage=Stage.JUDGE, label=Label.MET) for place in (0, 1)
        ]  # fmt: skip
        store.add_verdicts(session, given, actor="set-up", action="verdicts made")
    for place in (0, 1):
        world.said(small, Label.MET, criterion=place)
    small.engine.dispose()
    return location


def exporting(open_page, location, name, what):
    app = open_page(location, "export", name)
    return app.segmented_control(key="export_what").set_value(what).run()


def test_export_hands_over_scores_for_inspect_and_sets_for_a_judge_to_a_lead(two_prompts, open_page):
    app = exporting(open_page, two_prompts, "Ana Ruiz", "inspect")
    assert "precomputed_scores" in said(app)
    (button,) = [each for each in app.get("download_button") if each.key == "download"]
    assert button.label == "Download 1 row"
    app = exporting(open_page, two_prompts, "Ana Ruiz", "split")
    assert "2 labelled items; conversations: train" in said(app)
    app.number_input(key="export_train").set_value(70).run()
    assert "shares: expected percentages from 0 that add up to 100, got 70 + 20 + 20 = 110" in check(app)


def test_a_reader_may_not_split(two_prompts, open_page):
    app = exporting(open_page, two_prompts, "Dr. Tove Lind", "split")
    assert "split conversations into sets for judges" in check(app)


def test_two_prompts_of_a_judge_are_compared_on_what_physicians_read(two_prompts, open_page):
    app = open_page(two_prompts, "judges", "Ana Ruiz", judges_show="Versions and families")
    shown = said(app)
    # the file says met, not met; the other prompt met, met, as the physician does
    assert "Magpie strict@1a2b3c4d less Magpie: +0.500 on 2 items in 1 conversation" in shown
    assert "Nobody has said which sets Magpie and" in shown


def test_a_conversation_that_waits_for_the_viewer_is_not_among_those_compared(two_prompts, open_page):
    engine = open_study(two_prompts)
    small = world.World(two_prompts, engine, [1, 2, 3, 4], [[1, 2], [3, 4]])
    world.assigned(small, n_readers=1, readers=("Dr. Tove Lind",))
    engine.dispose()
    shown = said(open_page(two_prompts, "judges", "Dr. Tove Lind", judges_show="Versions and families"))
    assert "on 2 items" not in shown


def test_a_prompt_that_lacks_a_field_is_one_sentence_and_cannot_be_estimated(
    two_prompts, open_page, tmp_path, monkeypatch
):
    (tmp_path / "models.toml").write_text('[models."Owl"]\nbase_url = "http://127.0.0.1:1/v1"\napi_model = "owl-1"\n')
    monkeypatch.setenv("OVERREAD_MODELS", str(tmp_path / "models.toml"))
    app = open_page(two_prompts, "study", "Ana Ruiz", study_tab="Runs")
    app.selectbox(key="run_name").set_value("Owl").run()
    app.file_uploader(key="run_prompt").upload("mine.txt", b"{conversation} {response}", "text/plain").run()
    assert (
        "prompt mine: expected {conversation}, {response}, {criterion} once each, and {points} if wanted; it lacks {criterion}"
        in check(app)
    )
    assert app.button(key="run_plan").disabled
    app.file_uploader(key="run_prompt").upload("mine.txt", b"{conversation} {response} {criterion}", "text/plain").run()
    check(app)
    assert not app.button(key="run_plan").disabled
