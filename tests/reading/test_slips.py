"""A slip of the hand in a locked read: told before anything of the judge is shown, kept beside what it corrects, and never more than that."""

import pytest

from evalcore.errors import AlreadyChanged, NotAllowed, OverreadError
from evalcore.export.tables import table
from evalcore.reading import exposing, queries, reviewing
from evalcore.study import frames
from evalcore.study.audit.chain import verify
from evalcore.study.db import reading
from evalcore.study.schema import CannotReason, Label, ReadingState, Seen
from tests import world
from tests.reading_steps import IMANI, TOVE, at_desk, mark, only_the_first, take
from tests.world import answer, assigned

READ = "first read submitted"


def locked(small, labels="++", name=IMANI):
    """A read of the first response, locked and nothing shown; the judge says + -."""
    desk = take(small, name)
    number = answer(small, small.viewer(name), desk, labels)
    return number, reviewing.submit(small.engine, small.viewer(name), number, at=world.START)


def slip(small, number, label, *, item=0, name=IMANI, seen=None, **how):
    key = small.criteria[0][item]
    stands = at_desk(small, number, name).first[key].verdict_id
    return reviewing.slip(small.engine, small.viewer(name), number, key, label, seen=seen or stands, **how)


def firsts(small):
    """Label and what it replaces, of every first read, by time."""
    given = "SELECT label, supersedes FROM verdict WHERE stage = 'first' ORDER BY id"
    return [tuple(row) for row in world.rows(small.engine, given)]


@pytest.mark.parametrize("labels", ["+-", "++", "--"], ids=["as the judge", "one differs", "all differ"])
def test_a_lock_shows_nothing_of_the_judge_whatever_it_says(small, labels):
    only_the_first(small)
    number, state = locked(small, labels)
    desk = at_desk(small, number)
    assert state is ReadingState.LOCKED
    assert (desk.judge, desk.judged, desk.control, desk.differing) == (None, {}, (), [])
    assert take(small).reading.id == number  # after a reload, a sign-out, a crash
    with reading(small.engine) as session:
        assert queries.blind_examples(session, small.viewer()) == {1}
    wanted = ReadingState.DONE if labels == "+-" else ReadingState.REVEALED
    assert [reviewing.reveal(small.engine, small.viewer(), number) for _ in range(2)] == [wanted] * 2
    assert at_desk(small, number).judge == world.JUDGE


def test_both_answers_are_kept_the_later_counts_and_the_trail_tells_it(small):
    only_the_first(small)
    number, _ = locked(small)
    mark_of = at_desk(small, number).first[small.criteria[0][1]]
    slip(small, number, Label.NOT_MET, item=1)
    assert firsts(small) == [("met", None), ("met", None), ("not_met", mark_of.verdict_id)]
    desk = at_desk(small, number)
    assert [desk.first[key].label for key in desk.keys] == ["met", "not_met"]
    assert desk.slipped == {desk.keys[1]: "met"}
    assert small.events()[-1] == (IMANI, "slip corrected")
    assert reviewing.reveal(small.engine, small.viewer(), number) is ReadingState.DONE  # as the judge, now
    verdicts = table(small.engine, "verdicts")
    slipped = verdicts.loc[verdicts["slipped_from"].notna(), ["rater", "criterion_position", "label", "slipped_from"]]
    assert slipped.to_numpy().tolist() == [[IMANI, 2, "not_met", "met"]]
    labels = table(small.engine, "labels")
    assert labels.loc[labels["n_reads"].gt(0), "n_slips"].tolist() == [0, 1]
    with reading(small.engine) as session:
        assert verify(session).holds
        (of_imani,) = queries.slips_by_reader(session).to_dict(orient="records")
    assert of_imani == {"reader": IMANI, "n_answers": 2, "n_slips": 1}


def test_a_corrected_answer_keeps_its_place_among_the_others(small):
    only_the_first(small)
    number, _ = locked(small, "-+")  # the judge: + -
    slip(small, number, Label.CANNOT_ASSESS, reason=CannotReason.LANGUAGE)
    reviewing.reveal(small.engine, small.viewer(), number)
    assert at_desk(small, number).differing == at_desk(small, number).keys


def test_a_note_stays_with_the_corrected_answer_and_cannot_assess_needs_its_reason(small):
    only_the_first(small)
    desk = take(small)
    number = answer(small, small.viewer(), desk, "++")
    mark(small, desk, Label.MET, note="It names the sign.")
    reviewing.submit(small.engine, small.viewer(), number, at=world.START)
    with pytest.raises(OverreadError, match="Expected the reason why it cannot be assessed"):
        slip(small, number, Label.CANNOT_ASSESS)
    with pytest.raises(AlreadyChanged, match="your answer already"):
        slip(small, number, Label.MET)
    slip(small, number, Label.CANNOT_ASSESS, reason=CannotReason.LANGUAGE)
    given = at_desk(small, number).first[desk.keys[0]]
    assert (given.label, given.reason, given.explanation) == ("cannot_assess", "language", "It names the sign.")


def test_no_slip_once_the_judge_was_shown_nor_after_others_verdicts_were_seen_nor_by_another(small):
    assigned(small)
    number, _ = locked(small)
    with pytest.raises(OverreadError, match="in your hands"):
        reviewing.slip(small.engine, small.viewer(TOVE), number, small.criteria[0][0], Label.NOT_MET, seen=None)
    with pytest.raises(AlreadyChanged, match="in another tab"):
        slip(small, number, Label.NOT_MET, seen=99)
    with pytest.raises(NotAllowed, match="waits for your first read"):  # to this reader every door is closed still
        exposing.expose(small.engine, small.viewer(), Seen.CONVERSATION, {1})
    of_tove, _ = locked(small, name=TOVE)
    reviewing.reveal(small.engine, small.viewer(TOVE), of_tove)
    with pytest.raises(NotAllowed, match="this is no slip any more"):
        slip(small, of_tove, Label.NOT_MET, name=TOVE)
    assert all(supersedes is None for _, supersedes in firsts(small))


def test_where_no_judge_is_the_read_is_done_and_a_slip_can_be_told_until_the_next_answer(database_url):
    made = world.made(database_url, judged="    ")
    assigned(made, readers=(IMANI,), n_readers=1)
    engine, viewer = made.engine, made.viewer()

    def last():
        with reading(engine) as session:
            return queries.last_read(session, viewer.person_id)

    desk = take(made)
    assert last() is None
    number = answer(made, viewer, desk, "++")
    assert reviewing.submit(engine, viewer, number, at=world.after(1)) is ReadingState.DONE
    after = take(made, at=world.after(2))
    assert (last(), after.reading.id == number) == (number, False)
    seen = at_desk(made, number).first[desk.keys[0]].verdict_id
    again = reviewing.slip(engine, viewer, number, desk.keys[0], Label.NOT_MET, seen=seen, at=world.after(3))
    assert last() == number  # two keys may have been wrong
    mark(made, after, at=world.after(4))
    assert last() is None
    with pytest.raises(NotAllowed, match="answered another response since"):
        reviewing.slip(engine, viewer, number, desk.keys[0], Label.MET, seen=again)
    made.engine.dispose()


def test_who_has_opened_others_verdicts_since_tells_no_slip_any_more(database_url):
    made = world.made(database_url, judged="    ")
    only_the_first(made, n_readers=1)
    number, _ = locked(made)
    exposing.expose(made.engine, made.viewer(), Seen.CONVERSATION, {1})
    with pytest.raises(NotAllowed, match="this is no slip any more"):
        slip(made, number, Label.NOT_MET)
    assert [label for label, _ in firsts(made)] == ["met", "met"]
    made.engine.dispose()


def test_a_slip_moves_agreement_as_if_the_later_answer_had_been_locked(small):
    assigned(small)
    plain, slipped = [], []
    for labels, corrected, into in (("++", None, plain), ("-+", "+", slipped)):
        name = IMANI if into is plain else TOVE
        number, _ = locked(small, labels, name)
        if corrected:
            slip(small, number, Label.MET, name=name)
    with reading(small.engine) as session:
        verdicts = frames.verdicts(session)
    reads = verdicts.loc[verdicts["stage"].eq("first")]
    assert reads.groupby("rater")["label"].apply(list).to_dict() == {IMANI: ["met", "met"], TOVE: ["met", "met"]}
