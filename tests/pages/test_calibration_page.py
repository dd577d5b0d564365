"""The Calibration page: what it asks before it draws anything, what each section says, and what it says where there is nothing yet."""

import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from urllib.parse import parse_qs

import numpy as np
import pytest
from sqlalchemy import Engine
from streamlit.testing.v1 import AppTest

from evalcore.calibration import case_spread, confidence, routing
from evalcore.calibration.confidence import own_confidence
from evalcore.reading.assigning import Choice, assign
from evalcore.study import store
from evalcore.study.db import open_study, reading, writing
from evalcore.study.schema import PARSER, Administrator, Ask, ConfidenceMeaning, Label, RaterKind, Role
from evalcore.triage import queries as stored_triage, setting_queries, store as triage_store
from evalcore.triage.data import AmbiguityRule, described
from evalcore.triage.predictions import joined, predictions, usual_judges
from pages.shared import tables
from tests import world
from tests.page_steps import Open, said as words
from tests.triage_cases import drawn, settings_with, stored

LEAD, RESEARCHER, READER, NEWCOMER = "Mina Castell", "Ines Roth", "Dr. Noor", "Dr. Imani Lund"
JUDGES, MODELS, AMBIGUOUS, ROUTING = SECTIONS = (
    "Judges' confidence",
    "Models' confidence",
    "Ambiguous cases",
    "Routing",
)
HOSTILE = "![](http://canary.invalid/x) <b>$1$</b> :red[x]"
RULE = AmbiguityRule(spread=0.3)
RIGHT = ConfidenceMeaning.RIGHT
Look = Callable[..., AppTest]


@pytest.fixture(scope="module")
def drawn_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Cases that two models answered, all with stated confidences of which nobody has said what they mean."""
    path = tmp_path_factory.mktemp("calibration") / "drawn.db"
    models = {"Alder-2": {"qa": 0.4}, "Briar-1": {"conversation": -0.9}}
    triage_data, _ = drawn(
        np.random.default_rng(3), n_cases=60, models=models, n_samples=3, confidence=True, share_read=0.4
    )
    triage_data.cases["first_words"] = [f"{HOSTILE} case {number}" for number in range(len(triage_data.cases))]
    engine = open_study(str(path))
    with writing(engine) as session:
        stored(session, triage_data)
        triage_store.set_triage_settings(session, settings_with(rule=RULE), actor="set-up")
        people(session)
    with engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    engine.dispose()
    return path


def people(session: object) -> None:
    store.add_person(session, LEAD, roles=[Role.LEAD], actor="set-up")
    store.add_person(session, RESEARCHER, roles=[Role.RESEARCHER], actor="set-up")
    for name in (READER, NEWCOMER):
        store.add_person(session, name, roles=[Role.REVIEWER], actor="set-up")


@pytest.fixture
def engine(location: str, drawn_file: Path) -> Iterator[Engine]:
    shutil.copyfile(drawn_file, location)
    made = open_study(location)
    yield made
    made.dispose()


def mean(engine: Engine, *judges: str, meaning: ConfidenceMeaning = RIGHT) -> None:
    """Somebody has said what these confidences mean."""
    with writing(engine) as session:
        for judge in judges:
            triage_store.set_confidence_meaning(session, judge, meaning, actor=LEAD)


@pytest.fixture
def look(engine: Engine, location: str, open_page: Open) -> Look:
    """Opens a section of the page."""

    def looked(section: str, name: str = LEAD, **query: str) -> AppTest:
        return open_page(location, "calibration", name, calibration_show=section, **query)

    return looked


@pytest.fixture
def opened(location: str, open_page: Open) -> Open:
    return partial(open_page, location, "calibration")


def figures(app: AppTest) -> list[str]:
    return [chart.proto.spec for chart in app.get("plotly_chart")]


def links(app: AppTest) -> list[str]:
    return [link.proto.label for link in app.get("page_link")]


# ---------------------------------------------------------------- what a confidence means is asked first


def test_nothing_is_drawn_before_somebody_has_said_what_a_judges_confidence_means(engine: Engine, look: Look):
    app = look(JUDGES, RESEARCHER)
    shown = words(app)
    assert "Magpie states a confidence with" in shown
    assert "What is it the probability of? Until this is specified, nothing is drawn from these confidences." in shown
    assert "parser" not in shown  # what comes with its levels is the models' own
    assert not figures(app)
    assert "sure on average" not in shown
    (radio,) = app.radio
    keep = next(button for button in app.button if button.label == "Keep this meaning")
    assert keep.disabled  # nothing is chosen yet
    app = radio.set_value(RIGHT).run()
    app = next(button for button in app.button if button.label == "Keep this meaning").click().run()
    with reading(engine) as session:
        assert setting_queries.confidence_meanings(session) == {"Magpie": RIGHT}
    shown = words(app)
    assert "Magpie states the probability that its own level is right" in shown
    assert "Magpie in conversation is" in shown
    assert len(figures(app)) == 1


def test_a_reader_is_told_who_can_say_it(look: Look):
    app = look(JUDGES, READER)
    shown = words(app)
    assert "Only leads and researchers can say what a confidence refers to; you are a reviewer in this study." in shown
    assert all(control.disabled for control in (*app.radio, *app.button))
    assert not figures(app)


def test_a_meaning_that_the_data_contradict_is_said_and_nothing_is_drawn(engine: Engine, look: Look):
    mean(engine, "Magpie", meaning=ConfidenceMeaning.MET)
    app = look(JUDGES)
    assert "A level of care is neither met nor not met" in words(app)
    assert "Nothing is drawn from these confidences." in words(app)
    assert not figures(app)
    assert len(app.radio) == 1


def test_criteria_without_confidences_are_shown_by_the_majority_of_several_judges(location: str, opened: Open):
    small = world.made(location, judged="+-++")
    for place, label in enumerate((Label.MET, Label.MET, Label.NOT_MET, Label.MET)):
        example, criterion = divmod(place, 2)
        world.judged(small, "Wren", label, example=example, criterion=criterion)
        if place in (0, 3):
            world.judged(small, "Rook", label, example=example, criterion=criterion)
    app = opened("Ana Ruiz")
    assert "No physician has read blind a criterion" in words(app)
    assert "Assign items to readers" in links(app)
    for place, label in enumerate((Label.MET, Label.NOT_MET, Label.MET, Label.NOT_MET)):
        example, criterion = divmod(place, 2)
        world.said(small, label, example=example, criterion=criterion)
    small.engine.dispose()
    app = opened("Ana Ruiz")
    shown = words(app)
    # All three judges say met of the first and the last, and two alone have labelled the others; the physician says met of the first alone.
    assert (
        "The majority of 3 judges is carried by 100 % of the votes on average and right on 50 % of 2 criteria in 2 conversations"
        in shown
    )
    assert "2 left out, without a majority of three votes or more" in shown
    assert "No item here was drawn with a known probability, so all blind reads count" in shown
    assert "Judges that say so (share)" in figures(app)[0]


def test_a_judge_with_confidences_on_criteria_is_drawn_as_p_right(location: str, opened: Open):
    small = world.made(location, judged="    ")
    for place, (label, stated) in enumerate(
        ((Label.MET, 0.8), (Label.NOT_MET, 0.3), (Label.MET, 0.6), (Label.NOT_MET, 0.1))
    ):
        example, criterion = divmod(place, 2)
        world.judged(small, "Heron", label, example=example, criterion=criterion, confidence=stated)
        world.said(small, Label.MET, example=example, criterion=criterion)
    mean(small.engine, "Heron", meaning=ConfidenceMeaning.MET)
    small.engine.dispose()
    app = opened("Ana Ruiz")
    # P(right) is .8, .7, .6, .9; physicians say met throughout, so two of four labels are right.
    assert "Heron is 75 % sure on average and right on 50 % of 4 criteria in 2 conversations" in words(app)
    assert "Heron states the probability that the criterion is met." in words(app)
    assert [button.label for button in app.button].count("Keep this meaning") == 1  # it can be changed


# ---------------------------------------------------------------- models, ambiguous cases, routing


@pytest.mark.parametrize("section", SECTIONS)
def test_every_section_opens_for_a_reader_with_a_figure_and_its_foot(section: str, engine: Engine, look: Look):
    mean(engine, "Magpie", PARSER)
    app = look(section, READER)
    shown = words(app)
    assert figures(app)
    assert "Seed 19" in shown or "seed 19" in shown
    assert HOSTILE not in "".join(figures(app))


def found_in(engine: Engine, *, stated: bool) -> tuple[object, object, dict[str, str]]:
    """The cases of the study and its predictions, from storage."""
    with reading(engine) as session:
        triage_data = described(stored_triage.load(session), RULE)
    judges = usual_judges(triage_data)
    found = joined(triage_data, predictions(triage_data, judges))
    return triage_data, own_confidence(found, stated=stated), judges


def test_the_models_own_confidence_waits_for_its_meaning_and_the_share_of_samples_stands_in(engine: Engine, look: Look):
    app = look(MODELS, RESEARCHER)
    shown = words(app)
    assert "Models state a confidence themselves: the parser reads a confidence with" in shown
    assert "What is it the probability of?" in shown
    assert "calibration_confidence" not in {box.key for box in app.selectbox}
    parts = confidence.models_confidence(found_in(engine, stated=False)[1])
    for sentence in confidence.models_findings(parts[0].errors):
        assert sentence in shown
    mean(engine, PARSER)
    app = look(MODELS, RESEARCHER)
    parts = confidence.models_confidence(found_in(engine, stated=True)[1])
    for sentence in confidence.models_findings(parts[0].errors):
        assert sentence in words(app)
    assert "stated" in words(app)
    app = app.selectbox(key="calibration_confidence").select("share of samples").run()
    assert "share of samples" in words(app)


def test_ambiguous_cases_lead_to_browse_in_the_order_of_the_surest(engine: Engine, look: Look):
    app = look(AMBIGUOUS)
    shown = words(app)
    triage_data, own, judges = found_in(engine, stated=False)
    parts = case_spread.on_ambiguous(triage_data, own, judges)
    for sentence in case_spread.spread_findings(parts.summary):
        assert sentence in shown
    listed = next(table.value for table in app.dataframe if "Concentration (bits)" in table.value)
    assert listed["Case"].tolist() == triage_data.cases["case_id"].iloc[parts.cases["row"]].tolist()
    assert "Open the case" in links(app)
    assert "article's calibration error" not in shown
    assert "http://canary.invalid/x" in shown  # the patient's words, letter for letter
    one = look(AMBIGUOUS, calibration_of_model="Briar-1", calibration_of_format="qa")
    listed = next(table.value for table in one.dataframe if "Concentration (bits)" in table.value)
    assert set(listed["Model"] + listed["Format"]) == {"Briar-1qa"}


def test_a_long_name_of_a_model_takes_several_lines_in_the_list_of_ambiguous_cases(engine: Engine, look: Look):
    world.tampered(
        engine,
        "UPDATE model SET name = :name WHERE name = 'Alder-2'",
        name="Alder, fine-tuned on " + "triage notes " * 12,
    )
    (listed,) = [table for table in look(AMBIGUOUS).dataframe if "Panel's entropy" in table.value]
    pixels = listed.proto.row_height
    assert pixels == tables.row_pixels(listed.value, ("Model",)) > tables.ROW_PIXELS


def test_routing_is_chosen_by_a_share_or_by_a_confidence(engine: Engine, look: Look):
    _, own, _ = found_in(engine, stated=False)
    app = look(ROUTING)
    assert routing.routing_finding(routing.chosen(own, 0.9), 0.9) in words(app)
    app = app.slider(key="calibration_wanted").set_value(0.6).run()
    assert routing.routing_finding(routing.chosen(own, 0.6), 0.6) in words(app)
    app = look(ROUTING, calibration_by="confidence")
    shown = words(app)
    assert "Where cases with a confidence below 80 % go to a human" in shown
    assert "at the threshold that was set here" in shown


def test_the_triage_page_says_of_routing_what_this_page_says(engine: Engine, location: str, open_page: Open):
    _, own, _ = found_in(engine, stated=False)
    rows = routing.chosen(own, routing.WANTED)
    shown = words(open_page(location, "triage", LEAD, triage_show="Guide"))
    assert routing.routing_finding(rows, routing.WANTED) in shown


def test_the_triage_page_leads_to_the_section_that_a_link_names(engine: Engine, location: str, open_page: Open):
    app = open_page(location, "triage", LEAD, triage_show="Guide")
    leads_to = {link.proto.label: parse_qs(link.proto.query_string) for link in app.get("page_link")}
    assert leads_to["Calibration: what would go to a human"] == {"calibration_show": [ROUTING]}
    assert leads_to["Calibration: models' confidence"] == {"calibration_show": [MODELS]}


# ---------------------------------------------------------------- who may see what


def test_the_page_alone_shows_nothing_to_somebody_unknown(engine: Engine, opened: Open):
    assert words(opened(None, alone=True)).strip() == "Choose who is reading first: open the start page."


def test_what_waits_for_the_viewers_own_blind_read_is_in_no_number(engine: Engine, look: Look):
    mean(engine, "Magpie", PARSER)
    choice = Choice(ask=Ask.GOLD_ACUITY, n_items=60, n_readers=1, readers=(NEWCOMER,), seed=1)
    assign(engine, choice, actor=Administrator(name=LEAD))
    for section in SECTIONS[1:]:
        app = look(section, NEWCOMER)
        assert "Go to Review" in links(app), section
        assert "waits for your own first read" in words(app)
        assert not figures(app)
    assert "Magpie" not in words(look(JUDGES, NEWCOMER))
    assert figures(look(MODELS))


def test_a_judge_of_the_name_of_a_tag_stays_a_word(location: str, opened: Open):
    small = world.made(location, judged="+-++")
    for example in (0, 1):
        world.judged(small, HOSTILE, Label.MET, example=example, confidence=0.7)
        world.said(small, Label.MET, example=example, kind=RaterKind.REVIEWER)
    small.engine.dispose()
    app = opened("Ana Ruiz")
    assert HOSTILE in words(app)
    assert all(HOSTILE not in (radio.label or "") for radio in app.radio)
    mean(open_study(location), HOSTILE)
    app = opened("Ana Ruiz")
    assert f"{HOSTILE} is 70 % sure on average" in words(app)
    assert "<b>$1$" not in "".join(figures(app))
