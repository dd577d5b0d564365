"""The Triage page: what physicians' reads change, what can be corrected by them, who reads what, and what waits to be read."""

import re

import numpy as np
from sqlalchemy import Engine

from evalcore.reading import assignment_queries, queries as reading_queries
from evalcore.reading.assigning import COMPANIONS, Choice, assign
from evalcore.study import contents, store
from evalcore.study.browse import Filters
from evalcore.study.db import reading, writing
from evalcore.study.schema import Acuity, Administrator, Ask, Claim, Physicians, RaterKind, Selection, Stage, Verdict
from evalcore.triage import queries as stored_triage
from evalcore.triage.corrected import Held, corrected_harm, corrected_rates
from evalcore.triage.data import described
from evalcore.triage.harm import Weights
from evalcore.triage.predictions import usual_judges
from tests.page_steps import Open, said as words
from tests.triage_cases import drawn, put_right, stored
from tests.triage_page_steps import ADJUDICATOR, LEAD, NEWCOMER, Look, cell


def test_a_physicians_read_enters_the_matrix_by_physicians_at_once(look_at_triage: Look, drawn_triage: Engine):
    with reading(drawn_triage) as session:
        triage_data = described(stored_triage.load(session))
    texts = triage_data.samples.loc[
        triage_data.samples["has_text"]
        & triage_data.samples["model"].eq("Alder-2")
        & triage_data.samples["format"].eq("qa")
    ]
    clear = triage_data.cases["kind"].eq("clear").to_numpy() & triage_data.cases["gold"].eq(4).to_numpy()
    unread = texts.loc[clear[texts["row"].to_numpy()] & ~texts.index.isin(triage_data.reads["sample"])]
    sample = unread.iloc[0]
    before = words(look_at_triage(triage_basis="by physicians"))
    with writing(drawn_triage) as session:
        rater = store.ensure_rater(session, RaterKind.REVIEWER, "Dr. Brandt")
        verdict = Verdict(
            example_id=int(triage_data.cases["example_id"][sample["row"]]), response_id=int(sample["response_id"]), criterion_id=None, rater_id=rater,
            stage=Stage.FIRST, label=Acuity.A, blinded=True, selection=Selection.RANDOM, inclusion_probability=0.2,
        )  # fmt: skip
        store.add_verdicts(session, [verdict], actor="test", action="verdicts")
    after = words(look_at_triage(triage_basis="by physicians", triage_cell=cell("qa", 4, 1)))
    assert after != before
    assert "Physicians here  read  A" in after or "Physicians here read A" in " ".join(after.split())


def test_a_list_of_cases_takes_them_out_of_blind_reads_and_says_so(
    drawn_triage: Engine, location: str, open_page: Open
):
    shown = open_page(location, "triage", NEWCOMER, triage_show="Dangerous misses")
    assert "no longer among your blind reads" in words(shown)
    with reading(drawn_triage) as session:
        reader = next(person for person in contents.people(session) if person.name == NEWCOMER)
        examples = {int(number) for number in stored_triage.load(session).cases["example_id"]}
        seen = reading_queries.exposed_among(session, [reader.person_id], examples)[reader.person_id]
    opened = {
        int(button.proto.query_string.partition("example=")[2].partition("&")[0]) for button in shown.get("page_link")
    }
    assert seen == opened
    assert seen


def test_a_cell_that_holds_only_what_somebody_chose_to_read_opens_it(look_at_triage: Look, drawn_triage: Engine):
    with reading(drawn_triage) as session:
        triage_data = described(stored_triage.load(session))
    samples = triage_data.samples
    clear = triage_data.cases["kind"].eq("clear").to_numpy() & triage_data.cases["gold"].eq(1).to_numpy()
    unread = (
        samples["has_text"]
        & samples["format"].eq("qa")
        & samples["model"].eq("Alder-2")
        & ~samples.index.isin(triage_data.reads["sample"])
    )
    sample = samples.loc[unread & clear[samples["row"].to_numpy()]].iloc[0]
    with writing(drawn_triage) as session:
        verdict = Verdict(
            example_id=int(triage_data.cases["example_id"][sample["row"]]), response_id=int(sample["response_id"]), criterion_id=None,
            rater_id=store.ensure_rater(session, RaterKind.REVIEWER, "Dr. Brandt"), stage=Stage.OPEN, label=Acuity.D, blinded=False,
            selection=Selection.VOLUNTEERED,
        )  # fmt: skip
        store.add_verdicts(session, [verdict], actor="test", action="verdicts")
    app = look_at_triage(triage_basis="by physicians", triage_model="Alder-2")
    app.selectbox(key="triage_cell").set_value(cell("qa", 1, 4)).run()
    assert "one response to a case that needs A, read as D by physicians" in words(app)


def test_gold_as_read_here_shows_what_changes(look_at_triage: Look):
    shown = words(look_at_triage(triage_gold="as read by physicians here"))
    assert "Changes of the gold" in shown
    assert "stays" in shown


def test_corrected_says_what_is_lacking_where_too_little_was_read(look_at_triage: Look):
    app = look_at_triage(triage_basis="corrected")
    assert "to be read" in words(app)
    app.selectbox(key="triage_readers_of").set_value(Physicians.IN_GENERAL).run()
    assert "by 1 more physician" in words(app)


def test_corrected_shares_hold_for_what_was_chosen_and_a_cell_opens_the_judges_cases(
    people_alone: Engine, location: str, open_page: Open
):
    triage_data, _ = drawn(
        np.random.default_rng(2), n_cases=90, models={"Briar-1": {"conversation": -0.9}}, n_samples=1, share_panel=0, share_read=0.9,
        readers=("Dr. Noor", "Dr. Brandt", "Dr. Vega"),
    )  # fmt: skip
    with writing(people_alone) as session:
        stored(session, triage_data)
    known = described(triage_data)
    table = put_right(corrected_rates, known, usual_judges(known), held=Held(claim=Claim.BENCHMARK)).set_index(
        ["format", "measure"]
    )
    row = table.loc[("conversation", "under")]
    address = {"triage_basis": "corrected", "triage_model": "Briar-1", "triage_cell": cell("conversation", 3, 2)}
    app = open_page(location, "triage", LEAD, **address)
    assert "3.0 effective readers: the interval holds for physicians in general." in words(app)  # the widest possible
    app.selectbox(key="triage_readers_of").set_value(Physicians.THESE).run()
    assert "on ever more cases of the same kind, read by these physicians" in words(app)
    assert "effective readers" not in words(app)  # a choice needs no reason
    assert "these are the cases as the judge reads them" in words(app)
    app.selectbox(key="triage_claim").set_value(Claim.BENCHMARK).run()
    shown = words(app)
    assert "if these physicians read every response with a text of this benchmark" in shown
    assert not re.search(
        r"\[-|[-−]\d+ %|10[1-9] %", shown
    )  # a share is told between 0 and 1, though an estimate may lie outside
    assert (
        f"{100 * row['corrected']:.0f} % [{100 * row['corrected_low']:.0f} %, {100 * row['corrected_high']:.0f} %]"
        in shown
    )
    app.segmented_control(key="triage_show").set_value("Harm").run()
    harm = (
        put_right(corrected_harm, known, usual_judges(known), Weights(5, 1), held=Held(claim=Claim.BENCHMARK))
        .set_index("format")
        .loc["conversation"]
    )
    assert f"{harm['harm']:.2f} [{harm['low']:.2f}, {harm['high']:.2f}]" in words(app)


def test_a_case_that_waits_for_the_viewers_own_blind_read_is_in_no_number(
    location: str, drawn_triage: Engine, open_page: Open
):
    choice = Choice(
        ask=Ask.GOLD_ACUITY, filters=Filters(dataset="acuity"), n_items=10, n_readers=1, readers=(NEWCOMER,), seed=1
    )
    assign(drawn_triage, choice, actor=Administrator(name=LEAD))
    shown = words(open_page(location, "triage", NEWCOMER))
    assert "50 cases" in shown
    assert "are left out of all numbers here" in shown
    assert "60 cases" in words(open_page(location, "triage", LEAD))


def test_a_dangerous_miss_is_assigned_once_by_the_lead_alone(
    look_at_triage: Look, drawn_triage: Engine, location: str, open_page: Open
):
    app = look_at_triage(triage_show="Dangerous misses")
    app.button(key="triage_misses_0_assign").click().run()
    words(app)
    assert app.button(key="triage_misses_0_assign").label == "Assigned"
    assert app.button(key="triage_misses_0_assign").disabled
    with reading(drawn_triage) as session:
        assert len(assignment_queries.assigned(session, Ask.RESPONSE_ACUITY)) == 1 + COMPANIONS
    by_adjudicator = open_page(location, "triage", ADJUDICATOR, triage_show="Dangerous misses")
    assert by_adjudicator.button(key="triage_misses_1_assign").disabled
