"""Several judges as one, in a study: what is written, once, by whom; what is written anew, and what is taken back."""

import json

import numpy as np
import pytest

from evalcore.errors import OverreadError
from evalcore.judges import juries
from evalcore.rubric import queries as rubric_queries
from evalcore.study import frames, store
from evalcore.study.db import open_study, reading, writing
from evalcore.study.schema import (
    JURY_SAID,
    Administrator,
    CannotReason,
    Label,
    RaterKind,
    Stage,
    Verdict,
    repeat_version,
)
from evalcore.triage import queries as triage_queries
from tests import world
from tests.triage_cases import CONVERSATION, drawn, stored

MEMBERS = ("Magpie", "Wren", "Rook")
PROMPT = "judge@1a2b3c4d"
POINTS = ((7, -4), (5, 3, 2))


@pytest.fixture
def small(database_url):
    """Five items: Magpie says + - + + -."""
    made = world.made(database_url, points=POINTS, judged="+-++-")
    yield made
    made.engine.dispose()


def add(small, judge, labels, *, version="", from_item=0):
    """A judge's labels on the items in order; a letter replaces what it said before, a space says nothing."""
    with writing(small.engine) as session:
        rater = store.ensure_rater(session, RaterKind.JUDGE, judge, prompt_version=version)
        verdicts = []
        for number, letter in enumerate(labels, start=from_item):
            if letter == " ":
                continue
            item = small.item(*[(0, 0), (0, 1), (1, 0), (1, 1), (1, 2)][number])
            found = world.rows(
                small.engine,
                "SELECT max(id) FROM verdict WHERE rater_id = :rater AND response_id = :response_id AND criterion_id = :criterion_id",
                rater=rater,
                **item,
            )
            verdicts.append(
                Verdict(
                    example_id=1 if number < 2 else 2,
                    rater_id=rater,
                    stage=Stage.JUDGE,
                    label=world.LABELS[letter],
                    supersedes=found[0][0],
                    reason=CannotReason.CONTEXT_MISSING if letter == "?" else None,
                    **item,
                )
            )
        store.add_verdicts(session, verdicts, actor="set-up", action="verdicts made")


def three(small):
    add(small, "Wren", "++-+?")
    add(small, "Rook", "+--+ ")


def convene(small, **more):
    return juries.convene(
        small.engine, "Bench", **({"members": MEMBERS, "least": 2, "actor": Administrator(name="Ana Ruiz")} | more)
    )


def standing(small, name="Bench"):
    """What a jury says now, item by item: label, confidence, explanation."""
    statement = (
        "SELECT v.response_id, v.criterion_id, v.label, v.confidence, v.explanation, v.stage, r.kind FROM verdict v JOIN rater r ON r.id = v.rater_id "
        "WHERE r.name = :name AND v.id NOT IN (SELECT supersedes FROM verdict WHERE supersedes IS NOT NULL) ORDER BY 1, 2"
    )
    return world.rows(small.engine, statement, name=name)


def events(small):
    return [
        json.loads(row[0])
        for row in world.rows(small.engine, "SELECT detail FROM audit_event WHERE action = :act", act=JURY_SAID)
    ]


def judged_version(small):
    with reading(small.engine) as session:
        return frames.judged_version(session)


# ---------------------------------------------------------------- what is written


def test_each_item_gets_the_label_of_most_with_the_share_of_the_votes_and_who_said_what(small):
    three(small)
    before = judged_version(small)
    report = convene(small)
    # Magpie + - + + -, Wren + + - + ?, Rook + - - + .: the last has one vote
    assert [row[2:5] for row in standing(small)] == [
        ("met", 1.0, "3 of 3 say met: Magpie, Wren and Rook."),
        ("not_met", 2 / 3, "2 of 3 say not met: Magpie and Rook; met: Wren."),
        ("not_met", 2 / 3, "2 of 3 say not met: Wren and Rook; met: Magpie."),
        ("met", 1.0, "3 of 3 say met: Magpie, Wren and Rook."),
    ]
    assert {row[5:] for row in standing(small)} == {("judge", "judge")}
    assert (report.n_decided, report.n_split, report.n_too_few, report.n_new) == (4, 0, 1, 4)
    assert report.sentences() == [
        "Bench: the majority of Magpie, Wren and Rook",
        "4 items decided (2 met, 2 not met)",
        "1 item was labelled by fewer than 2 of 3: no verdict",
        "verdicts: 4 new",
    ]
    (event,) = events(small)
    assert (event["members"], event["n_new"], event["confidence"]) == (list(MEMBERS), 4, "right")
    assert judged_version(small) == before + 1
    meaning = world.rows(small.engine, "SELECT meaning FROM judge_confidence WHERE judge = 'Bench'")
    assert meaning == [("right",)]


def test_all_members_have_to_vote_unless_told_otherwise_and_an_even_split_is_counted(small):
    three(small)
    assert convene(small, least=None, dry_run=True).n_decided == 4
    add(small, "Rook", "?", from_item=0)
    report = convene(small, least=None, dry_run=True)  # the first item has two votes left
    assert (report.least, report.n_decided, report.n_too_few) == (3, 3, 2)
    two = convene(small, members=("Magpie", "Wren"), dry_run=True)
    assert (two.n_decided, two.n_split, two.n_too_few) == (2, 2, 1)
    assert "2 items were split evenly: no verdict" in two.sentences()


def test_a_dry_run_reports_the_same_and_writes_nothing(small):
    three(small)
    n_events, n_raters = world.count(small.engine, "audit_event"), world.count(small.engine, "rater")
    dry = convene(small, dry_run=True)
    assert (world.count(small.engine, "audit_event"), world.count(small.engine, "rater")) == (n_events, n_raters)
    assert standing(small) == []
    assert dry.as_dict() == convene(small).as_dict()


def test_the_second_time_nothing_is_written_and_later_only_what_is_new_or_changed(small):
    three(small)
    convene(small)
    n_verdicts, n_events = world.count(small.engine, "verdict"), world.count(small.engine, "audit_event")
    again = convene(small)
    assert (again.n_written, again.n_unchanged) == (0, 4)
    assert (world.count(small.engine, "verdict"), world.count(small.engine, "audit_event")) == (n_verdicts, n_events)
    add(small, "Rook", "-", from_item=4)  # Magpie - and Rook -: now two votes
    add(small, "Magpie", "+", from_item=1)  # the second item turns: + + -
    later = convene(small)
    assert (later.n_new, later.n_changed, later.n_taken_back, later.n_unchanged) == (1, 1, 0, 3)
    assert [row[2] for row in standing(small)] == ["met", "met", "not_met", "met", "not_met"]
    assert len(events(small)) == 2


def test_a_verdict_that_has_lost_its_majority_is_taken_back_and_counts_nowhere(small):
    add(small, "Wren", "++-+-")
    convene(small, members=("Magpie", "Wren"))
    assert [row[2] for row in standing(small)] == ["met", "met", "not_met"] or len(standing(small)) == 3
    add(small, "Wren", "-", from_item=0)
    report = convene(small, members=("Magpie", "Wren"))
    assert (report.n_split, report.n_taken_back, report.n_unchanged) == (3, 1, 2)
    assert standing(small)[0][2] is None
    with reading(small.engine) as session:
        known = rubric_queries.load(session)
    assert known.judged["Bench"].notna().sum() == 2
    assert known.juries == {"Bench"}
    assert known.voters == ["Magpie", "Wren"]
    assert convene(small, members=("Magpie", "Wren")).n_written == 0
    add(small, "Wren", "+", from_item=0)
    assert convene(small, members=("Magpie", "Wren")).n_changed == 1


def test_other_members_under_the_same_name_leave_one_verdict_an_item(small):
    three(small)
    first = convene(small)
    add(small, "Jay", "--+")
    second = convene(small, members=("Magpie", "Wren", "Jay"), least=3)
    assert first.version != second.version
    assert (
        first.version == convene(small, members=("Wren", "Rook", "Magpie"), dry_run=True).version
    )  # in whatever order
    # Magpie + - +, Wren + + -, Jay - - +: 2 to 1 throughout; the fourth has no Jay and is taken back
    assert [(row[2], row[3]) for row in standing(small)] == [
        ("met", pytest.approx(2 / 3)), ("not_met", pytest.approx(2 / 3)), ("met", pytest.approx(2 / 3)), (None, None),
    ]  # fmt: skip
    assert (second.n_changed, second.n_taken_back) == (3, 1)


# ---------------------------------------------------------------- repeats


def test_a_judge_that_was_asked_several_times_is_a_jury_of_its_own_answers(small):
    for repeat, labels in enumerate(("+-++ ", "+++- ", "-++  ")):
        add(small, "Wren", labels, version=repeat_version(PROMPT, repeat))
    report = juries.convene(
        small.engine, "Wren thrice", repeats_of="Wren", least=2, actor=Administrator(name="Ana Ruiz")
    )
    assert report.members == ("Wren", "Wren#2", "Wren#3")
    # + + -: met; - + +: met; + + +: met; + -: split
    assert [row[2:5] for row in standing(small, "Wren thrice")] == [
        ("met", pytest.approx(2 / 3), "2 of 3 say met: Wren and Wren#2; not met: Wren#3."),
        ("met", pytest.approx(2 / 3), "2 of 3 say met: Wren#2 and Wren#3; not met: Wren."),
        ("met", 1.0, "3 of 3 say met: Wren, Wren#2 and Wren#3."),
    ]
    assert report.n_split == 1
    both = convene(small, members=("Magpie", "Wren"), repeats_of="Wren", dry_run=True)
    assert both.members == ("Magpie", "Wren", "Wren#2", "Wren#3")  # the first time is one vote, not two


def test_of_a_members_prompts_the_newest_votes_and_of_repeats_those_of_the_newest_prompt(small):
    add(small, "Wren", "-----", version="judge@00000000")
    add(small, "Wren", "-----", version=repeat_version("judge@00000000", 1))
    add(small, "Wren", "++ +", version=PROMPT)
    report = convene(small, members=("Magpie", "Wren"))
    # Magpie + - + + -; Wren + + - + -: the newest on the first, second and fourth
    assert [row[2] for row in standing(small)] == ["met", "met", "not_met"]
    assert report.n_split == 2
    add(small, "Wren", "+-", version=repeat_version(PROMPT, 1))
    of_repeats = juries.convene(
        small.engine, "Twice", repeats_of="Wren", actor=Administrator(name="Ana Ruiz"), dry_run=True
    )
    assert (of_repeats.n_decided, of_repeats.n_split, of_repeats.n_too_few) == (1, 1, 1)


# ---------------------------------------------------------------- who may be a member


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ({"members": ["Magpie", "Heron", "Gull"]}, "--members: expected some of Magpie, Wren, Rook, got 'Heron', 'Gull'"),
        ({"members": ["Magpie"]}, "--members: expected two judges or more, or --repeats-of a judge that was asked several times, got Magpie"),
        ({"members": ["Magpie", " Magpie "]}, "--members: expected two judges or more, or --repeats-of a judge that was asked several times, got Magpie"),
        ({"members": []}, "--members: expected two judges or more, or --repeats-of a judge that was asked several times, got nobody"),
        ({"repeats_of": "Magpie", "members": []}, "--repeats-of: expected one of none, no judge was asked several times, got 'Magpie'"),
        ({"members": ["Magpie", "Bench"]}, "--members: 'Bench' is a jury itself; name the judges that it is made of"),
        ({"name": "Second", "members": ["Magpie", "Bench"]}, "--members: 'Bench' is a jury itself"),
        ({"members": ["Magpie", "Wren"], "least": 3}, "--least: expected 2 to 2, as many as have a vote, got 3"),
        ({"members": ["Magpie", "Wren"], "least": 1}, "--least: expected 2 to 2, as many as have a vote, got 1"),
        ({"name": "Wren"}, "--name: 'Wren' is the name of a judge; give the jury another name"),
        ({"name": "parser"}, "--name: 'parser' is the name of a judge"),
        ({"name": " "}, "--name: expected 1 to 100 printable characters, got ' '"),
        ({"name": "a\nb"}, "--name: expected 1 to 100 printable characters, got 'a\\nb'"),
        ({"name": "x" * 101}, "expected 1 to 100 printable characters"),
    ],
)  # fmt: skip
def test_what_cannot_be_a_jury_is_refused_in_one_sentence_and_nothing_is_written(small, how, sentence):
    three(small)
    convene(small)
    n_verdicts = world.count(small.engine, "verdict")
    wanted = {"name": "Bench", "members": MEMBERS, "actor": Administrator(name="Ana Ruiz")} | how
    with pytest.raises(OverreadError) as refused:
        juries.convene(small.engine, wanted.pop("name"), **wanted)
    assert sentence in str(refused.value)
    assert world.count(small.engine, "verdict") == n_verdicts


# ---------------------------------------------------------------- cases of triage


def test_a_jury_of_levels_stands_beside_its_members_and_has_no_vote_in_their_majority(database_url):
    rng = np.random.default_rng(3)
    triage_data, _ = drawn(rng, n_cases=6, n_samples=2, judges={"Magpie": 0.8, "Wren": 0.7, "Rook": 0.6})
    engine = open_study(database_url)
    with writing(engine) as session:
        stored(session, triage_data)
    report = juries.convene(engine, "Bench", members=("Magpie", "Wren", "Rook"), actor=Administrator(name="Ana Ruiz"))
    with reading(engine) as session:
        found = triage_queries.load(session)
    from evalcore.triage.predictions import JURY, votes, with_jury

    names = ["Magpie", "Wren", "Rook"]
    expected = votes(found.levels[names])
    voted = expected["n_votes"].eq(3)
    assert voted.any()
    assert report.n_decided == voted.sum()
    assert np.array_equal(found.levels["Bench"].notna(), voted)
    assert (found.levels["Bench"][voted] == expected["level"][voted]).all()
    stated = found.confidence.loc[found.confidence["rater"].eq("Bench")].set_index("sample")["confidence"]
    assert stated.sort_index().to_numpy() == pytest.approx(expected["share"][voted].to_numpy())
    assert found.juries == {"Bench"}
    assert set(found.voters(CONVERSATION)) == set(names)
    conversations = found.samples["format"].eq(CONVERSATION)
    together = with_jury(found).levels[JURY]
    assert np.array_equal(together[conversations], expected["level"][conversations], equal_nan=True)
    assert juries.convene(engine, "Bench", members=names, actor=Administrator(name="Ana Ruiz")).n_written == 0
    engine.dispose()


def test_a_level_that_lost_its_votes_is_taken_back_also_where_nothing_else_was_ever_superseded(database_url):
    triage_data, _ = drawn(np.random.default_rng(4), n_cases=3, n_samples=1, judges={"Magpie": 0.8, "Wren": 0.7})
    engine = open_study(database_url)
    with writing(engine) as session:
        stored(session, triage_data)
    juries.convene(engine, "Bench", members=("Magpie", "Wren"), actor=Administrator(name="Ana Ruiz"))
    with writing(engine) as session:
        rater = store.ensure_rater(session, RaterKind.JUDGE, "Magpie", prompt_version="judge@99999999")
        (row,) = world.rows(
            engine,
            "SELECT v.example_id, v.response_id FROM verdict v JOIN rater r ON r.id = v.rater_id WHERE r.name = 'Bench' ORDER BY v.id LIMIT 1",
        )
        unsure = Verdict(
            example_id=row[0],
            response_id=row[1],
            criterion_id=None,
            rater_id=rater,
            stage=Stage.JUDGE,
            label=Label.CANNOT_ASSESS,
        )
        store.add_verdicts(session, [unsure], actor="set-up", action="file imported")
    with reading(engine) as session:
        before = triage_queries.load(session).levels["Bench"].notna().sum()
    assert (
        juries.convene(engine, "Bench", members=("Magpie", "Wren"), actor=Administrator(name="Ana Ruiz")).n_taken_back
        == 1
    )
    with reading(engine) as session:
        assert triage_queries.load(session).levels["Bench"].notna().sum() == before - 1
    engine.dispose()
