"""The Models page: what each section says, to whom, and what it says where there is nothing yet."""

import json
import re
from collections.abc import Iterator
from functools import partial
from html import unescape
from typing import Any

import numpy as np
import pytest
from sqlalchemy import text
from streamlit.testing.v1 import AppTest

from evalcore.rubric import data as opinions_module, queries as opinions_query
from evalcore.study import store
from evalcore.study.analysis import Analysis
from evalcore.study.db import open_study, writing
from evalcore.study.schema import Label
from pages.models import scores
from tests import world
from tests.page_steps import Open, few, said as words
from tests.population import drawn

LEAD, IMANI = "Ana Ruiz", "Dr. Imani Noor"
SECTIONS = ("Scores", "By theme and axis", "Comparison", "Head to head", "More")


@pytest.fixture
def small(location: str) -> Iterator[world.World]:
    """Two models on two conversations: 7 of 7 points, and 5 of 8."""
    made = world.made(location, judged="+-+-", models=("Alder-2", "Briar-1"))
    yield made
    made.engine.dispose()


@pytest.fixture
def opened(location: str, open_page: Open) -> Open:
    """Opens the page as somebody; `alone`: its file without app.py."""
    return partial(open_page, location, "models")


@pytest.fixture
def read(location: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the place of what is stored: 120 examples, three models, two judges, a third of all criteria read."""
    models = {"Alder-2": 1.6, "Briar-1": 0.2, "Clover": -1.0}
    judges = {"Magpie": 0.85, "Wren": 0.75}
    study_made, _ = drawn(
        np.random.default_rng(5),
        n_examples=120,
        models=models,
        judges=judges,
        share_read=0.35,
        readers=("A", "B", "C", "D"),
        n_repeats=2,
    )
    empty = study_made.reads.iloc[:0]
    without = opinions_module.RubricData(study_made.items, study_made.judged, empty)
    monkeypatch.setattr(opinions_query, "judged", lambda session: without)
    monkeypatch.setattr(opinions_query, "with_reads", lambda session, judged, given: study_made)
    world.made(location, models=tuple(models)).engine.dispose()


def test_what_all_models_lack_for_a_corrected_score_is_said_once_above_the_figure(small: world.World, opened: Open):
    app = opened(LEAD)
    (said,) = re.findall(r"For a corrected score, of each model: (\d+ more criteria to be read[^\n]*)\.", words(app))
    (figure,) = app.get("plotly_chart")
    assert {"Alder-2", "Briar-1"} <= set(re.findall(r"Alder-2|Briar-1", figure.proto.spec))
    assert "to be read" in said
    assert "to be read" not in figure.proto.spec


def title(app: AppTest) -> str:
    """The page's heading."""
    found = [element.proto.body for element in app.get("html") if "or-heading" in element.proto.body]
    return unescape(re.sub(r"<[^>]*>", " ", found[0]))


# ---------------------------------------------------------------- who may see it, and empty states


def test_the_page_alone_shows_nothing_to_somebody_unknown(small: world.World, opened: Open):
    assert words(opened(None, alone=True)).strip() == "Choose who is reading first: open the start page."


def test_an_empty_study_says_what_to_begin_with(location: str, opened: Open):
    engine = open_study(location)
    with writing(engine) as session:
        store.ensure_study(session)
        store.add_person(session, LEAD, roles=["lead"], actor="set-up")
    engine.dispose()
    app = opened(LEAD)
    assert "No model has answered anything yet." in words(app)
    assert [link.proto.label for link in app.get("page_link")] == ["Import a file"]


def test_responses_without_a_judge_say_that_a_score_needs_labels(location: str, opened: Open):
    world.made(location, judged="    ").engine.dispose()
    assert "No judge has labelled the responses yet" in words(opened(LEAD))


def test_without_reads_the_finding_says_that_it_is_the_judges_opinion_and_how_much_must_be_read(
    small: world.World, opened: Open
):
    app = opened(LEAD)
    shown = words(app)
    assert "all scores here are the judge's opinion" in shown
    assert re.search(r"About \d+ more criteria of each model's responses must be read", shown)
    assert "Assign reads on Study" in [link.proto.label for link in app.get("page_link")]
    assert "after correction" not in shown


def test_a_reader_whose_blind_reads_wait_sees_no_number_of_those_conversations(small: world.World, opened: Open):
    world.assigned(small)
    shown = words(opened(IMANI))
    assert "All that is judged here waits for your own first read" in shown
    assert "Alder-2" not in shown
    assert "0.81" in words(opened(LEAD))


# ---------------------------------------------------------------- sections


@pytest.mark.parametrize("section", SECTIONS)
def test_every_section_opens_by_its_address_with_and_without_reads(section: str, small: world.World, opened: Open):
    app = opened(LEAD, models_show=section)
    assert "Judge: Magpie" in words(app)
    if section == "By theme and axis":  # without reads there is nothing corrected to draw
        assert "No axis has a corrected score" in words(app)
        assert "'s opinion alone, not corrected" in app.expander[0].label
    else:
        assert app.get("plotly_chart")


@pytest.mark.parametrize("section", few(SECTIONS, 2))
def test_every_section_opens_on_a_study_that_was_read(section: str, read: None, opened: Open):
    app = opened(LEAD, models_show=section)
    assert "3 models to 120 examples" in title(app)
    assert len(app.get("plotly_chart")) >= 1


def test_tables_behind_a_fold_are_drawn_once_it_is_opened(read: None, opened: Open):
    app = opened(LEAD, models_show="By theme and axis")
    n_folded = len(app.dataframe)
    app.session_state["models_groups_opinion"] = app.session_state["models_groups_apart"] = True
    app.run()
    folded = [set(one.value.columns) for one in app.dataframe[n_folded:]]
    assert {"Axis", "Models", "Difference", "p, Holm"} in folded
    assert any("Alder-2, judge only" in columns for columns in folded)


def models_in(figure: Any) -> set[str]:
    """The models that have marks in a figure; what the kinds of marks mean stands in its legend alone."""
    return {trace["name"] for trace in json.loads(figure.proto.spec)["data"] if trace["x"] != [None]}


def test_of_many_models_the_best_are_drawn_and_the_others_once_their_fold_is_opened(
    read: None, opened: Open, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(scores, "MOST_DRAWN", 2)
    app = opened(LEAD, models_show="By theme and axis")
    assert app.expander[0].label == "1 more model (drawn above: the 2 best, by the mean over groups)"
    (drawn,) = app.get("plotly_chart")
    app.session_state["models_groups_more"] = True
    best, others = app.run().get("plotly_chart")
    names = [models_in(one) for one in (best, others)]
    assert best.proto.spec == drawn.proto.spec
    assert sorted(map(len, names)) == [1, 2]
    assert set.union(*names) == {"Alder-2", "Briar-1", "Clover"}


def test_the_models_of_the_primary_comparison_are_drawn_among_the_best(
    read: None, location: str, opened: Open, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(scores, "MOST_DRAWN", 1)
    engine = open_study(location)
    with writing(engine) as session:
        store.state_analysis(session, Analysis(judges=("Magpie",), primary=("Clover", "Alder-2")), actor=LEAD)
    engine.dispose()
    app = opened(LEAD, models_show="By theme and axis")
    (figure,) = app.get("plotly_chart")
    assert models_in(figure) == {"Alder-2", "Clover"}
    assert app.expander[0].label.endswith("best, by the mean over groups, and the primary comparison)")


def test_what_is_read_is_corrected_with_its_finding_and_the_worth_of_the_judge(read: None, opened: Open):
    app = opened(LEAD)
    shown = words(app)
    assert re.search(
        r"Alder-2 is ahead of Briar-1 by 0\.\d{3} \[0\.\d{3}, 0\.\d{3}\] after correction \(for new examples like these, physicians in general\)\.",
        shown,
    )
    table = app.dataframe[0].value.set_index("Model")
    for model in ("Alder-2", "Briar-1", "Clover"):
        assert re.fullmatch(r"0\.\d{3} \[0\.\d{3}, 0\.\d{3}\]", table.loc[model, "Corrected"])
        assert table.loc[model, "Criteria read"] > 100


def test_the_claim_of_the_address_is_said_and_narrows_the_interval_and_none_stands_alone(read: None, opened: Open):
    widest = opened(LEAD)
    here = opened(LEAD, models_claim="this benchmark", models_readers="these physicians")
    assert "on ever more examples of the same kind, read by physicians in general" in words(widest)
    assert "effective readers: the interval holds for physicians in general." in words(widest)
    assert "if these physicians read every criterion of this benchmark" in words(here)
    assert "(for this benchmark, these physicians)" in words(here)
    assert width(here) < width(widest)
    for app in (widest, here):
        columns = list(app.dataframe[1].value.columns)
        assert columns[1:] == [
            "New examples, in general",
            "New examples, these",
            "This benchmark, in general",
            "This benchmark, these",
            "Anytime-valid",
        ]


def test_the_stated_analysis_is_shown_and_what_departs_from_it_is_said(read: None, location: str, opened: Open):
    spec = Analysis(judges=("Magpie",), primary=("Briar-1", "Alder-2"), margin=0.05)
    engine = open_study(location)
    with writing(engine) as session:
        store.state_analysis(session, spec, actor=LEAD)
    engine.dispose()
    shown = words(opened(LEAD))
    assert "This is the stated analysis (version 1), stated on" in shown
    assert "Primary comparison: Briar-1 less Alder-2 is −" in shown
    assert "inferior to Alder-2" in shown  # against the margin, one way or the other
    assert "Comparison and margin: stated on" in shown
    looking = words(opened(LEAD, models_judges="Wren", models_claim="this benchmark"))
    assert "This is not the stated analysis (version 1): judge and claim differ." in looking
    assert "No analysis is stated; these are the usual choices." not in shown


def width(app: AppTest) -> float:
    """Of the interval of the first model's corrected score."""
    low, high = re.findall(r"0\.\d{3}", app.dataframe[0].value["Corrected"].iloc[0])[1:]
    return float(high) - float(low)


def test_two_judges_are_named_together_and_change_the_score(read: None, opened: Open):
    one, both = opened(LEAD), opened(LEAD, models_judges=["Magpie", "Wren"])
    assert "judged by Magpie and Wren" in title(both)
    assert one.dataframe[0].value["Judge only"].tolist() != both.dataframe[0].value["Judge only"].tolist()


def test_a_judge_or_section_that_is_not_there_is_left_out_of_the_address(small: world.World, opened: Open):
    app = opened(LEAD, models_judges="Rook", models_show="Nothing", models_data="other", models_claim="all")
    assert "judged by Magpie" in title(app)


def test_a_subset_without_a_member_says_so(small: world.World, opened: Open):
    with small.engine.begin() as connection:
        connection.execute(text("INSERT INTO example_subset (example_id, subset) VALUES (1, 'consensus')"))
    for section in SECTIONS:  # no criterion is of the level cluster
        assert "No response of this part" in words(opened(LEAD, models_subset="consensus", models_show=section))


def test_judge_only_differences_stand_below_the_sentence_that_they_are_its_opinion(read: None, opened: Open):
    app = opened(LEAD, models_show="Comparison", models_seed="7")
    shown = words(app)
    assert shown.index("the opinion of the judge Magpie alone") > shown.index("after correction")
    assert "Seed 7." in shown
    corrected, claims, judged = (table.value for table in app.dataframe[:3])
    assert claims["Pair"].tolist() == corrected["Pair"].tolist()
    assert "How likely each place" not in shown
    assert corrected["Pair"].iloc[0] == "Alder-2 − Clover"
    assert {"Pair", "Difference", "p, Holm", "p, max-T"} <= set(judged.columns)
    assert len(judged) == 3


def test_pairs_can_be_those_with_one_model(read: None, opened: Open):
    app = opened(LEAD, models_show="Comparison", models_against="Briar-1")
    for table in app.dataframe:
        assert all(pair.startswith("Briar-1 − ") for pair in table.value["Pair"])
        assert len(table.value) == 2


def test_one_model_alone_cannot_be_compared(location: str, opened: Open):
    world.made(location).engine.dispose()
    for section in ("Comparison", "Head to head"):
        assert "Only one model has responses in this part." in words(opened(LEAD, models_show=section))


def test_head_to_head_lists_the_conversations_farthest_apart_first(read: None, opened: Open):
    table = opened(LEAD, models_show="Head to head", models_first="Clover", models_second="Alder-2").dataframe[0].value
    apart = table["Apart"].abs().tolist()
    assert apart == sorted(apart, reverse=True)
    gaps = table["score Clover"] - table["score Alder-2"]
    assert np.allclose(gaps, table["Apart"])


def test_published_scores_are_marked_as_another_judges_with_their_citation(small: world.World, opened: Open):
    shown = words(opened(LEAD, models_show="More"))
    assert "given by another judge" in shown
    assert "arXiv 2505.08775" in shown


def test_without_repeats_there_is_no_curve_and_with_them_there_is(small: world.World, opened: Open):
    assert "Each model answered each example once." in words(opened(LEAD, models_show="More"))


def test_what_missing_reads_could_change_is_of_the_weights_and_the_claim_that_are_shown(
    read: None, monkeypatch: pytest.MonkeyPatch, opened: Open
):
    whole = opinions_query.with_reads(None, None, None)
    unknown = whole.reads.assign(met=whole.reads["met"].mask(np.arange(len(whole.reads)) % 9 == 0))
    study = opinions_module.RubricData(whole.items, whole.judged, unknown)
    monkeypatch.setattr(opinions_query, "with_reads", lambda session, judged, given: study)
    plain, weighted = (
        opened(LEAD, models_show="More", models_weighted=on).dataframe[0].value["As estimated"].tolist()
        for on in ("false", "true")
    )
    assert plain != weighted
    scores = opened(LEAD, models_weighted="true").dataframe[0].value["Corrected"]
    assert weighted == [cell.split()[0] for cell in scores]


def test_with_repeats_the_worst_of_two_is_below_the_mean(read: None, opened: Open):
    table = opened(LEAD, models_show="More").dataframe[0].value
    first = {(row["Model"], row["k"]): float(row["Worst of k"].split()[0]) for _, row in table.iterrows()}
    assert first["Alder-2", 2] < first["Alder-2", 1]


def test_models_named_like_columns_or_markup_stay_text(small: world.World, opened: Open):
    with small.engine.begin() as connection:
        connection.execute(text("UPDATE model SET name = 'Examples' WHERE name = 'Alder-2'"))
        connection.execute(text("UPDATE model SET name = '<b>![x](http://x)' WHERE name = 'Briar-1'"))
    for section in SECTIONS:
        app = opened(LEAD, models_show=section)
        words(app)
        assert not [element for element in app.get("html") if "<b>![" in element.proto.body]
        assert not app.markdown


def test_models_that_one_judge_has_not_both_labelled_are_not_compared_in_its_opinion(small: world.World, opened: Open):
    for criterion in (0, 1):
        world.judged(small, "Wren", Label.MET, criterion=criterion)
    shown = words(opened(LEAD, models_show="Comparison", models_judges="Wren"))
    assert "The models share no example, so they cannot be compared." in shown
    assert "No response of Briar-1 is labelled by every chosen judge on every criterion." in shown
    assert "share no example on which both have a score" in words(
        opened(LEAD, models_show="Head to head", models_judges="Wren")
    )
