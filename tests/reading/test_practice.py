"""A practice round before the first real read: on settled responses that are never assigned to who practised on them, and counted nowhere."""

import json

import pytest
from hypothesis import given, settings, strategies as st
from typer.testing import CliRunner

from evalcore.__main__ import app
from evalcore.errors import NotAllowed, OverreadError
from evalcore.export import methods, tables as exports
from evalcore.reading import practice, practice_queries, queries, reviewing
from evalcore.reading.assigning import PRACTICE, Choice, assign
from evalcore.reading.queries import Draft
from evalcore.study import frames
from evalcore.study.audit.chain import verify
from evalcore.study.db import open_study, reading
from evalcore.study.schema import PRACTISED, Administrator, Ask, CannotReason, Label, ReadingMode, Role, Stage
from tests import world
from tests.assigning_steps import LEAD, refused
from tests.reading_steps import IMANI, THIRD, TOVE, plan_of, use

N = 8  # conversations of two criteria, one response each
SETTLER = "Dr. Settler"
TOO_FEW = (
    "practice: expected at least 3 responses with a settled label for every criterion that are new to a reader, got {}: settle more on Adjudicate, "
    "choose readers who have not met them, or assign without practice"
)


def _made(url, languages=None):
    made = world.made(url, points=((7, -4),) * N, judged="+-" * N, languages=languages)
    world.add_researcher(made.engine, THIRD, Role.REVIEWER)
    return made


@pytest.fixture
def study(database_url):
    made = _made(database_url)
    yield made
    made.engine.dispose()


@pytest.fixture
def quick(sqlite_database_url):
    made = _made(sqlite_database_url)
    yield made
    made.engine.dispose()


def agreed(made, *examples, label=Label.MET):
    """Two readers say the same of both criteria of these conversations, by their place."""
    for example in examples:
        for name in (IMANI, TOVE):
            for criterion in (0, 1):
                world.said(made, label, name=name, example=example, criterion=criterion, blinded=True)


def settle(made, label, *, example, criterion, **more):
    """An adjudicator's word, without the judge in view unless told otherwise."""
    how = {"name": SETTLER, "stage": Stage.ADJUDICATED, "blinded": True, "explanation": "As the guideline says."} | more
    world.said(made, label, example=example, criterion=criterion, **how)


def hand_over(made, *examples, readers=(THIRD,), practice=True, **choice):
    """Assign these conversations, by their place."""
    plan = plan_of(*((f"prompt-{example}", 1.0) for example in examples))
    how = {"plan": plan, "readers": readers, "n_readers": 1, "seed": 1, "practice": practice} | choice
    return assign(made.engine, Choice(**how), actor=Administrator(name=LEAD))


def rounds(made, name=THIRD):
    with reading(made.engine) as session:
        return practice_queries.rounds(session, made.viewer(name))


def place(made, response):
    """Of which conversation, from 0, a response is."""
    return made.responses.index(response)


def drafts(desk, labels):
    reason = CannotReason.CONTEXT_MISSING
    return {
        key: Draft(world.LABELS[label], reason if label == "?" else None, None)
        for key, label in zip(desk.keys, labels, strict=True)
    }


def practised(made, response, labels, name=THIRD, number=1):
    viewer = made.viewer(name)
    desk = practice.open_practice(made.engine, viewer, number, response)
    return practice.practise(made.engine, viewer, number, response, drafts(desk, labels))


def practised_all(made, labels="++", name=THIRD, number=1):
    for response in rounds(made, name)[number].left:
        practised(made, response, labels, name, number)


# ---------------------------------------------------------------- what a round is made of


SAID = st.sampled_from(["nothing", "one read", "two alike", "two apart", "settled", "half settled"])


@given(data=st.data())
def test_a_round_is_made_of_wholly_settled_responses_that_are_never_the_readers_own_to_read(data, tmp_path_factory):
    """Whatever was said before, whoever said it, and whatever is assigned before and after."""
    made = _made(f"sqlite:///{tmp_path_factory.mktemp('practice') / 'study.db'}")
    history = data.draw(st.lists(SAID, min_size=N, max_size=N), "history")
    mine = data.draw(st.sets(st.integers(0, N - 1), max_size=2), "spoken on by the reader")
    earlier, now = data.draw(st.permutations(range(N)), "order")[:2]
    for example, kind in enumerate(history):
        for criterion in (0, 1):
            labels = {"one read": "+", "two alike": "++", "two apart": "+-", "settled": "+-", "half settled": "+-"}.get(
                kind, ""
            )
            for name, label in zip((IMANI, TOVE), labels, strict=False):
                world.said(made, world.LABELS[label], name=name, example=example, criterion=criterion, blinded=True)
            if kind == "settled" or (kind == "half settled" and criterion):
                settle(made, Label.MET, example=example, criterion=criterion)
        if example in mine:
            world.said(made, Label.MET, name=THIRD, example=example, criterion=0, blinded=True)
    hand_over(made, earlier, practice=False)
    whole = {place for place, kind in enumerate(history) if kind in ("two alike", "settled")} - mine - {earlier, now}
    if len(whole) < PRACTICE:
        with pytest.raises(OverreadError, match=f"got {len(whole)}:"):
            hand_over(made, now)
        return
    hand_over(made, now)
    (chosen,) = (own.responses for own in rounds(made).values())
    assert len({place(made, response) for response in chosen}) == PRACTICE
    assert {place(made, response) for response in chosen} <= whole
    # all that is free goes to the reader; what was set apart never comes
    assign(made.engine, Choice(readers=(THIRD,), n_readers=1, seed=2), actor=Administrator(name=LEAD))
    practised_all(made, number=2)
    use(made, mode=data.draw(st.sampled_from(ReadingMode), "mode"))
    came = set()
    while (desk := reviewing.take(made.engine, made.viewer(THIRD))) is not None:
        came.add(desk.asked.response_id)
        world.lock(made.engine, made.viewer(THIRD), world.answer(made, made.viewer(THIRD), desk, "++"))
        if reviewing.open_review(made.engine, made.viewer(THIRD), desk.reading.id).state != "done":
            break  # as far as one read goes without decisions
    assert not came & set(chosen)
    with reading(made.engine) as session:
        assert queries.blind_examples(session, made.viewer(THIRD)).isdisjoint(
            {place(made, response) + 1 for response in chosen}
        )
    made.engine.dispose()


def test_what_is_disputed_or_in_a_language_that_the_reader_does_not_read_is_no_practice(sqlite_database_url):
    made = _made(sqlite_database_url, languages={4: "tr"})
    agreed(made, 0, 1, 2, 3, 4)
    use(made, check_share=0.0)
    world.said(
        made, Label.NOT_MET, name=IMANI, stage=Stage.REVISED, example=3, criterion=0, cause="judge_misread_answer", severity="severe",
        supersedes=None,
    )  # fmt: skip
    hand_over(made, 6)
    assert {place(made, response) for response in rounds(made)[1].responses} == {0, 1, 2}
    made.engine.dispose()


def test_an_adjudicator_practises_on_no_conversation_of_which_something_may_wait_for_them(sqlite_database_url):
    made = world.made(sqlite_database_url, points=((7, -4),) * N, judged="+-" * N, models=("Alder-2", "Birch-1"))
    world.add_researcher(made.engine, THIRD, Role.REVIEWER)
    world.add_researcher(made.engine, SETTLER, Role.REVIEWER, Role.ADJUDICATOR)
    for example in range(4):
        for name in (IMANI, TOVE):
            for criterion in (0, 1):
                at = {"response_id": made.responses[2 * example], "criterion_id": made.criteria[example][criterion]}
                world.said(made, Label.MET, name=name, example=example, **at)
    other = {
        "response_id": made.responses[1],
        "criterion_id": made.criteria[0][0],
    }  # Birch-1's answer to the first conversation
    world.said(made, Label.MET, name=IMANI, example=0, **other)
    world.said(made, Label.NOT_MET, name=TOVE, example=0, **other)
    hand_over(made, 6, readers=(THIRD, SETTLER))
    assert {made.responses.index(response) // 2 for response in rounds(made, SETTLER)[1].responses} == {1, 2, 3}
    made.engine.dispose()


def test_who_has_too_few_new_responses_begins_without_and_the_report_says_so(study):
    agreed(study, 0, 1, 2, 3)
    report = hand_over(study, 6, 7, readers=(IMANI, THIRD))
    assert report.practising == (THIRD,)
    assert report.without_practice == ((IMANI, 0),)
    assert f"begin with a practice round of 3 responses: {THIRD}" in report.sentences()
    assert (
        f"{IMANI} begins without practice: expected at least 3 settled responses that are new to {IMANI}, got 0"
        in report.sentences()
    )
    assert rounds(study, IMANI) == {}
    assert reviewing.take(study.engine, study.viewer(IMANI)) is not None


def test_with_too_few_for_everybody_nothing_is_assigned_and_one_sentence_says_why(study):
    agreed(study, 0, 1)
    settle(study, Label.MET, example=2, criterion=0)  # of its second criterion nothing is settled
    choice = Choice(plan=plan_of(("prompt-6", 1.0)), readers=(THIRD,), n_readers=1, practice=True)
    refused(study, choice, TOO_FEW.format(2))


def test_levels_of_care_and_open_reads_have_no_practice(study):
    agreed(study, 0, 1, 2)
    levels = Choice(ask=Ask.RESPONSE_ACUITY, readers=(THIRD,), n_readers=1, practice=True)
    refused(study, levels, "A practice round is for criteria alone")
    use(study, mode=ReadingMode.OPEN)
    refused(study, Choice(readers=(THIRD,), n_readers=1, practice=True), "A practice round is for blind reads")


def test_without_the_choice_nothing_is_set_apart(study):
    agreed(study, 0, 1, 2, 3)
    report = hand_over(study, 6, practice=False)
    assert (report.practising, report.without_practice) == ((), ())
    assert world.rows(study.engine, "SELECT practice FROM assignment") == [(None,)]
    assert world.count(study.engine, "exposure") == 0


# ---------------------------------------------------------------- the round


def test_practice_comes_before_the_first_real_response_and_never_twice(study):
    agreed(study, 0, 1, 2)
    hand_over(study, 6)
    reader = study.viewer(THIRD)
    for n_left in (3, 2, 1):
        waiting = practice.waiting(study.engine, reader)
        assert len(waiting.left) == n_left
        with pytest.raises(NotAllowed, match="Practise first"):
            reviewing.take(study.engine, reader)
        practised(study, waiting.left[0], "+-")
    assert practice.waiting(study.engine, reader) is None
    assert reviewing.take(study.engine, reader).asked.response_id == study.responses[6]


def test_what_is_in_hand_and_what_other_assignments_ask_first_comes_before_the_practice(study):
    agreed(study, 0, 1, 2)
    hand_over(study, 5, practice=False)
    hand_over(study, 6)
    reader = study.viewer(THIRD)
    assert practice.waiting(study.engine, reader) is None
    desk = reviewing.take(study.engine, reader)
    assert practice.waiting(study.engine, reader) is None
    world.lock(study.engine, reader, world.answer(study, reader, desk, "+-"))
    assert practice.waiting(study.engine, reader).assignment_id == 2


def test_feedback_compares_each_label_with_the_settled_one_and_a_reason_is_shown_only_where_no_judge_was_in_view(study):
    agreed(study, 0, 1)
    settle(study, Label.NOT_MET, example=2, criterion=0, explanation="It names no sign.")
    settle(study, Label.CANNOT_ASSESS, example=2, criterion=1, explanation="Magpie is right here.", blinded=False)
    hand_over(study, 6)
    of_settled = practised(study, study.responses[2], "-+")
    first, second = study.criteria[2]
    assert of_settled.labels == {first: "not_met", second: "met"}
    assert of_settled.score == (1, 2)
    assert (of_settled.settled[first].label, of_settled.settled[first].rationale) == ("not_met", "It names no sign.")
    assert (of_settled.settled[second].label, of_settled.settled[second].rationale) == ("cannot_assess", None)
    assert all(each.by_adjudicator for each in of_settled.settled.values())
    of_agreed = practised(study, study.responses[0], "+?")
    assert of_agreed.score == (1, 2)
    assert not any(each.by_adjudicator or each.rationale for each in of_agreed.settled.values())


def test_what_is_not_settled_any_more_is_not_compared(study):
    agreed(study, 0, 1, 2)
    hand_over(study, 6)
    world.said(study, Label.NOT_MET, name="Dr. Fourth", example=0, criterion=1, blinded=True)
    feedback = practised(study, study.responses[0], "++")
    assert set(feedback.settled) == {study.criteria[0][0]}
    assert feedback.score == (1, 1)


def test_the_practice_desk_shows_nothing_of_judge_or_others_and_no_act_finds_it(study):
    agreed(study, 0, 1, 2)
    hand_over(study, 6)
    reader = study.viewer(THIRD)
    desk = practice.open_practice(study.engine, reader, 1, study.responses[0])
    assert (desk.judge, desk.judged, desk.first, desk.drafts) == (None, {}, {}, {})
    with pytest.raises(OverreadError, match="There is no item"):
        reviewing.mark(study.engine, reader, desk.reading.id, desk.keys[0], Label.MET)
    assert world.count(study.engine, "reading") == 0


def test_one_practises_on_ones_own_responses_alone_and_answers_every_criterion(study):
    agreed(study, 0, 1, 2)
    hand_over(study, 6)
    for name, number, response in (
        (IMANI, 1, study.responses[0]),
        (THIRD, 1, study.responses[6]),
        (THIRD, 2, study.responses[0]),
    ):
        with pytest.raises(NotAllowed, match=f"Response {response} is not set apart for your practice."):
            practice.open_practice(study.engine, study.viewer(name), number, response)
    reader, (first, second) = study.viewer(THIRD), study.criteria[0]
    met, unsaid = Draft("met", None, None), Draft("cannot_assess", None, None)
    for given_, sentence in (
        ({first: met}, "1 of 2 still need an answer"),
        ({first: met, second: unsaid}, "1 of 2 still need an answer"),
        ({first: met, second: Draft("D", None, None)}, "label: expected one of"),
    ):
        with pytest.raises(OverreadError, match=sentence):
            practice.practise(study.engine, reader, 1, study.responses[0], given_)
    assert PRACTISED not in {action for _, action in study.events()}


def test_the_lead_reads_how_much_agreed_at_the_first_read_of_each_response(study):
    agreed(study, 0, 1, 2)
    hand_over(study, 6)

    def told():
        with reading(study.engine) as session:
            (row,) = practice_queries.progress(session).to_dict(orient="records")
        return [row[name] for name in ("reader", "n_responses", "n_read", "n_agreed", "n_compared")]

    assert told() == [THIRD, 3, 0, 0, 0]
    first, *rest = rounds(study)[1].responses
    practised(study, first, "+-")
    assert told() == [THIRD, 3, 1, 1, 2]
    practised(study, first, "++")  # again, knowing the labels
    assert told() == [THIRD, 3, 1, 1, 2]
    for response in rest:
        practised(study, response, "++")
    assert told() == [THIRD, 3, 3, 5, 6]


# ---------------------------------------------------------------- what it leaves


def counted(made):
    """All that statistics and files are made of."""
    with reading(made.engine) as session:
        version, verdicts = frames.data_version(session), frames.verdicts(session, history=True).to_csv()
    files = {what: exports.to_csv(exports.table(made.engine, what)) for what in exports.WHAT}
    meta = exports.meta_eval_rows(made.engine)
    sizes = [world.count(made.engine, table) for table in ("verdict", "reading", "mark", "rater", "task", "exposure")]
    return version, verdicts, files, meta, sizes


@pytest.fixture(scope="module")
def before_practice(tmp_path_factory):
    """A study in which a round waits for its reader, and all that is counted in it."""
    made = _made(str(tmp_path_factory.mktemp("practice") / "study.db"))
    agreed(made, 0, 1, 2, 3)
    settle(made, Label.NOT_MET, example=4, criterion=0)
    hand_over(made, 6)
    before = counted(made)
    return world.at_rest(made), before


@settings(max_examples=2)
@given(labels=st.lists(st.text("+-?", min_size=2, max_size=2), min_size=3, max_size=3), again=st.booleans())
def test_a_practice_round_changes_no_number_and_no_byte_of_a_file(labels, again, before_practice, tmp_path_factory):
    at_rest, before = before_practice
    made = world.copied(at_rest, str(tmp_path_factory.mktemp("practice") / "study.db"))
    for _ in range(1 + again):
        for response, given_ in zip(rounds(made)[1].responses, labels, strict=True):
            practised(made, response, given_)
    assert counted(made) == before
    made.engine.dispose()


@pytest.mark.slow
def test_the_commands_of_results_say_the_same_before_and_after_a_practice_round(sqlite_demo_url):
    def told():
        done = [
            CliRunner().invoke(app, [*command, "--json", "--db", sqlite_demo_url], catch_exceptions=False)
            for command in (("compare",), ("judges",), ("agreement",), ("anchoring",), ("methods",))
        ]
        assert [each.exit_code for each in done] == [0] * len(done)
        return [each.stdout for each in done]

    engine = open_study(sqlite_demo_url)
    world.add_researcher(engine, THIRD, Role.REVIEWER)
    who = (
        "--reader",
        THIRD,
        "--readers",
        "1",
        "--items",
        "2",
        "--reads",
        "unread",
        "--language",
        "en",
        "--practice",
        "--json",
    )
    handed = CliRunner().invoke(app, ["assign", *who, "--db", sqlite_demo_url], catch_exceptions=False)
    assert json.loads(handed.stdout)["practising"] == [THIRD]
    made = world.World(sqlite_demo_url, engine, [], [])
    before = told()
    ((number, own),) = rounds(made).items()
    for response in own.responses:
        desk = practice.open_practice(engine, made.viewer(THIRD), number, response)
        feedback = practised(made, response, "+-" * (len(desk.keys) // 2) + "+" * (len(desk.keys) % 2), number=number)
        assert feedback.score[1] == len(desk.keys)
    assert told() == before
    engine.dispose()


def test_the_methods_name_practice_once_who_practised_has_read(quick):
    agreed(quick, 0, 1, 2)
    hand_over(quick, 6)
    practised_all(quick)
    sentence = "1 physician went through a practice round with feedback on settled responses, which enters no number."
    assert sentence not in methods.paragraph(methods.facts(quick.engine))
    world.submitted(quick, THIRD, "+-")
    assert sentence in methods.paragraph(methods.facts(quick.engine))


def test_the_trail_keeps_how_many_agreed_and_no_label_and_it_holds(study):
    agreed(study, 0, 1, 2)
    hand_over(study, 6)
    practised_all(study, "+-")
    rows = world.rows(study.engine, f"SELECT actor, subject, detail FROM audit_event WHERE action = '{PRACTISED}'")
    assert [actor for actor, *_ in rows] == [THIRD] * 3
    responses = rounds(study)[1].responses
    assert [subject for _, subject, _ in rows] == [f"response {response}" for response in responses]
    assert [json.loads(detail) for *_, detail in rows] == [
        {"assignment": 1, "response": response, "agreed": 1, "compared": 2} for response in responses
    ]
    with reading(study.engine) as session:
        assert verify(session).holds
    world.tampered(study.engine, "UPDATE assignment SET practice = NULL")
    with reading(study.engine) as session:
        assert not verify(session).holds
