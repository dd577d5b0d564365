"""The Triage page: what it says of each section, and what a cell opens."""

from itertools import product

import pandas as pd
from sqlalchemy import Engine

from evalcore.study.db import reading, writing
from evalcore.study.schema import Format
from evalcore.triage import queries as stored_triage
from evalcore.triage.cases import misses
from evalcore.triage.corrected import physicians_harm
from evalcore.triage.data import described
from evalcore.triage.predictions import JURY, joined, predictions, usual_judges, with_jury
from evalcore.triage.rates import confusion, rates
from evalcore.triage.reads import agreement, level_pairs
from evalcore.triage.settings import TriageSettings
from evalcore.triage.store import set_triage_settings
from pages.shared import triage_html
from pages.triage import cases, matrices as triage_cell, views
from tests.page_steps import said as words
from tests.triage_page_steps import HOSTILE, LEAD, SECTIONS, Look, cell

# ---------------------------------------------------------------- sections


def test_every_section_says_what_it_shows_and_names_stay_text(look_at_triage: Look):
    app = look_at_triage()
    for section in SECTIONS:
        app.segmented_control(key="triage_show").set_value(section).run()
        shown = words(app)
        assert "60 cases, 720 answers of 2 models" in shown
        assert len(app.get("html")) > 3, section  # more than the heading and the sidebar's foot
        assert not any("canary" in str(element.value) for kind in (app.markdown, app.caption) for element in kind)


def test_the_rates_of_a_model_stand_with_their_counts_intervals_and_denominators(
    look_at_triage: Look, drawn_triage: Engine
):
    with reading(drawn_triage) as session:
        triage_data = described(stored_triage.load(session))
    found = joined(triage_data, predictions(triage_data, usual_judges(triage_data)))
    made = rates(confusion(found))
    row = made.loc[made["model"].eq("Briar-1") & made["format"].eq("conversation") & made["measure"].eq("under")].iloc[
        0
    ]
    shown = words(look_at_triage(triage_model="Briar-1"))
    assert f"({row['k']}/{row['n']})" in shown
    assert row["denominator"].removeprefix("of ") in shown
    assert "Kappa" in shown


def test_a_cell_opens_its_cases_with_the_text_and_the_way_to_each_of_them(look_at_triage: Look, drawn_triage: Engine):
    with reading(drawn_triage) as session:
        triage_data = described(stored_triage.load(session))
    found = joined(
        triage_data, predictions(triage_data, usual_judges(triage_data)), ("gold", "kind", "case_id", "example_id")
    )
    mine = found.loc[
        found["kind"].eq("clear") & found["gold"].eq(3) & found["predicted"].eq(2) & found["model"].eq("Briar-1") & found["format"].eq("conversation")
    ]  # fmt: skip
    assert len(mine) > 2
    app = look_at_triage(triage_model="Briar-1", triage_cell=cell("conversation", 3, 2))
    shown = words(app)
    assert f"{len(mine)} cases that need C and are answered B" in shown
    listed = mine.sort_values("share", ascending=False, kind="stable").head(10)
    assert all(case in shown for case in listed["case_id"])
    assert "Rest, drink, and see a doctor." in shown
    addresses = [link.proto.query_string for link in app.get("page_link")]
    assert [
        f"example={number}" in address for number, address in zip(listed["example_id"], addresses, strict=False)
    ] == [True] * len(listed)


def test_a_published_matrix_stands_among_the_models_and_its_cells_do_not_open(look_at_triage: Look):
    shown = words(look_at_triage(triage_model="GPT-5.4 (published)"))
    assert "published without its cases" in shown
    assert "(235/262)" in shown


def test_the_dangerous_misses_are_counted_worst_first_and_can_be_narrowed(look_at_triage: Look, drawn_triage: Engine):
    with reading(drawn_triage) as session:
        triage_data = described(stored_triage.load(session))
    judges = usual_judges(triage_data)
    found = misses(triage_data, joined(triage_data, predictions(triage_data, judges)), judges=judges)
    found["case_id"] = triage_data.cases["case_id"].take(found["row"]).to_numpy()
    dangerous = found.loc[found["rank"].lt(4)]
    shown = words(look_at_triage(triage_show="Dangerous misses"))
    assert f"{len(dangerous)} dangerous misses" in shown
    about = [
        [row["model"], "·", row["format"], "·", row["case_id"]] for row in dangerous.head(10).to_dict(orient="records")
    ]
    shown = " ".join(shown.split())
    places = [shown.index(" ".join(words)) for words in about]
    assert places == sorted(places)
    one = dangerous.loc[dangerous["model"].eq("Alder-2")]
    narrowed = words(look_at_triage(triage_show="Dangerous misses", triage_model="Alder-2"))
    assert f"{len(one)} dangerous miss" in narrowed or "no dangerous miss in" in narrowed


OF_ONE_MODEL = ("Matrices", "Groups", "Boundary", "Flips")
OF_ALL = ("Dangerous misses", "Ambiguous")


def test_the_chosen_model_is_the_same_in_every_section_under_one_name_in_the_address(look_at_triage: Look):
    app = look_at_triage()
    for section in (*OF_ONE_MODEL, *OF_ALL):  # nobody has chosen: the first model, or all
        app.segmented_control(key="triage_show").set_value(section).run()
        chosen = app.selectbox(key="triage_model")
        assert (chosen.value, chosen.placeholder) == (None, "all models" if section in OF_ALL else "Alder-2")
    app.selectbox(key="triage_model").set_value("Briar-1").run()
    for section in (*OF_ALL, "Harm", *OF_ONE_MODEL, *OF_ALL):
        app.segmented_control(key="triage_show").set_value(section).run()
        assert section == "Harm" or app.selectbox(key="triage_model").value == "Briar-1"
    for section in (OF_ALL[0], OF_ONE_MODEL[0]):
        opened = look_at_triage(triage_show=section, triage_model="Briar-1")
        assert opened.selectbox(key="triage_model").value == "Briar-1"


def test_a_published_matrix_stays_chosen_where_a_section_needs_cases_and_the_section_says_what_it_shows(
    look_at_triage: Look,
):
    published = "GPT-5.4 (published)"
    app = look_at_triage(triage_show="Groups", triage_model=published)
    assert f"{published} is a matrix without its cases, which this section needs. Alder-2 is shown." in words(app)
    app.segmented_control(key="triage_show").set_value("Dangerous misses").run()
    assert "All models are shown." in words(app)
    app.segmented_control(key="triage_show").set_value("Matrices").run()
    assert app.selectbox(key="triage_model").value == published
    assert "(235/262)" in words(app)
    nobody = look_at_triage(triage_show="Groups", triage_model="Nobody-9")
    assert nobody.selectbox(key="triage_model").value is None


def test_weights_of_harm_begin_as_the_settings_say_and_change_the_sentence(look_at_triage: Look):
    app = look_at_triage(triage_show="Harm")
    assert "with weights 5 for too low and 1 for too high" in words(app)
    app.slider(key="triage_under").set_value(2.0).run()
    assert "with weights 2 for too low and 1 for too high" in words(app)
    app.slider(key="triage_over").set_value(0.0).run()
    app.slider(key="triage_under").set_value(0.0).run()
    assert "Both weights are 0" in words(app)


def test_harm_is_told_by_judge_by_physicians_and_corrected(look_at_triage: Look, drawn_triage: Engine):
    with reading(drawn_triage) as session:
        triage_data = described(stored_triage.load(session))
    of_responses = physicians_harm(triage_data).iloc[0]
    shown = words(look_at_triage(triage_show="Harm"))
    assert "Two models on the same cases" in shown
    shown = words(look_at_triage(triage_show="Harm", triage_basis="by physicians"))
    assert f"{of_responses['harm']:.2f} [{of_responses['low']:.2f}, {of_responses['high']:.2f}]" in shown
    assert "clustered by case" in shown
    shown = words(look_at_triage(triage_show="Harm", triage_basis="corrected"))
    assert "Nothing can be corrected yet" in shown  # a fifth of 60 texts is fewer than 30
    assert "There is no" not in shown


def test_a_format_that_the_settings_leave_out_is_nowhere(look_at_triage: Look, drawn_triage: Engine):
    with writing(drawn_triage) as session:
        set_triage_settings(session, TriageSettings(formats=(Format.CONVERSATION,)), actor=LEAD)
    app = look_at_triage()
    assert "levels of conversation by" in words(app)
    assert "QA, read by" not in words(app)
    assert not any("published" in option for option in app.selectbox(key="triage_model").options)  # it has qa alone
    app.segmented_control(key="triage_show").set_value("Flips").run()
    assert "one format alone" in words(app)


def test_another_judge_is_taken_at_its_word_and_named(look_at_triage: Look):
    first = look_at_triage()
    assert "conversation by" in words(first)
    names = set(first.selectbox(key="triage_conversation_judge").options)
    assert names == {"Magpie", "acuity_rules", JURY}
    other = (names - {JURY, first.selectbox(key="triage_conversation_judge").value}).pop()
    assert f"conversation by {other}" in words(look_at_triage(triage_conversation_judge=other))


def test_the_majority_of_the_judges_is_a_judge_to_choose_and_is_held_against_physicians_alone(
    look_at_triage: Look, drawn_triage: Engine
):
    with reading(drawn_triage) as session:
        triage_data = described(stored_triage.load(session))
    judges = {"qa": "parser", "conversation": JURY}
    several = with_jury(triage_data)
    made = rates(confusion(joined(several, predictions(several, judges)))).set_index(["model", "format", "measure"])
    row = made.loc[("Briar-1", "conversation", "under")]
    app = look_at_triage(triage_conversation_judge=JURY, triage_model="Briar-1")
    assert f"levels of qa by parser and conversation by {JURY}" in words(app)
    assert f"({row['k']}/{row['n']})" in words(app)
    app.segmented_control(key="triage_show").set_value("Level readers").run()
    options = app.selectbox(key="triage_beside").options
    assert f"conversation: {JURY} beside physicians here" in options
    assert not any(JURY in option and "physicians" not in option for option in options)


def test_readers_stand_beside_one_another_and_a_response_without_a_level_is_counted_apart(
    look_at_triage: Look, drawn_triage: Engine
):
    with reading(drawn_triage) as session:
        triage_data = described(stored_triage.load(session))
    agreed = agreement(level_pairs(triage_data, "acuity_rules", "Magpie", asked="conversation"))
    shown = words(look_at_triage(triage_show="Level readers"))
    assert f"({agreed.exact.n_hits}/{agreed.exact.n})" in shown
    assert str(int(triage_data.levels["Magpie"].eq(0).sum())) in shown.splitlines()


# ---------------------------------------------------------------- words


def test_a_cells_name_leads_back_to_the_cell():
    for word, gold, predicted in product(("qa", "conversation"), range(1, 5), range(1, 5)):
        assert triage_cell.CELLS[cell(word, gold, predicted)] == (word, gold, predicted)
    assert "something else" not in triage_cell.CELLS


def test_html_of_a_case_escapes_what_came():
    made = triage_html.case(HOSTILE, triage_html.needs_gives(4, 1), [HOSTILE, ""], triage_html.told(HOSTILE, HOSTILE))
    assert "<b>$1$" not in made
    assert "or-under" in made
    assert made.count("<bdi>") == 1  # an empty word is left out
    assert "or-under" not in triage_html.needs_gives(2.5, 1)  # a boundary has no single gold to be under


def test_groups_are_told_as_a_range_that_may_be_chance():
    found = pd.DataFrame(
        {
            "group": ["clinic", "hotline", "clinic"],
            "format": ["qa", "qa", "conversation"],
            "measure": "under",
            "k": [1, 3, 6],
            "n": [14, 17, 14],
            "value": [1 / 14, 3 / 17, 6 / 14],
            "low": [0.01, 0.06, 0.21],
            "high": [0.31, 0.41, 0.67],
            "reason": "",
            "is_small": False,
        }
    )
    words = {"clinic": "clinic", "hotline": "hotline"}
    assert cases.spread(found, words) == [
        "In qa under-triage runs from clinic, 7 % (1/14) [1 %, 31 %], to hotline, 18 % (3/17) [6 %, 41 %]. "
        "Their intervals meet, so this may be chance.",
        "In conversation under-triage: clinic, 43 % (6/14) [21 %, 67 %].",
    ]
    apart = found.assign(low=[0.01, 0.4, 0.21])
    assert "chance" not in cases.spread(apart, words)[0]
    assert cases.spread(found.assign(is_small=True), words)[0].startswith("Every group has fewer than 10 cases")


def test_nothing_below_a_boundary_says_what_it_cannot_exclude():
    rows = {
        "measure": "outside_low",
        "model": ["Alder-2", "Briar-1"],
        "format": "qa",
        "k": [0, 0],
        "n": [7, 7],
        "value": 0.0,
        "low": 0.0,
        "high": 0.354,
    }
    table = pd.DataFrame(rows)
    assert cases.boundary_words(table) == (
        "Of the 14 answers to boundary cases none lies below both letters; that cannot exclude up to 35 % of a model's."
    )
    some = table.assign(k=[0, 4], value=[0.0, 4 / 7], low=[0.0, 0.25], high=[0.354, 0.84], reason="")
    assert (
        cases.boundary_words(some)
        == "In qa Briar-1 answers below both letters on 57 % (4/7) [25 %, 84 %] of the boundary cases."
    )


def test_each_question_leads_to_the_views_that_it_needs():
    acting, informing, choosing, unclear = ([section for section, _ in ways] for *_, ways in views.QUESTIONS)
    assert acting == ["Flips", "Matrices", "Ambiguous"]
    assert informing == ["Matrices"]
    assert choosing == ["Matrices", "Models' confidence"]
    assert unclear == ["Ambiguous", "Routing"]
