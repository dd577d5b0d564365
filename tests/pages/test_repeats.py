"""A judge that was asked again has its say once: every number is the same with its repeats in the study and without them."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

from evalcore.calibration import queries as calibration_queries
from evalcore.calibration.confidence import majority_items
from evalcore.export import tables as export_tables
from evalcore.judges import drift
from evalcore.planning import acts as planning_acts
from evalcore.planning.sample_size import IMPORTANCE, answer
from evalcore.planning.words import disagreement_words, often_words
from evalcore.reading import queries as reading_queries, read_queries
from evalcore.reading.assigning import Choice, assign
from evalcore.reading.queries import Asked
from evalcore.reading.read_queries import open_example
from evalcore.rubric import queries as rubric_queries
from evalcore.rubric.blind_read_queries import blind_reads, read_marks
from evalcore.rubric.drawings import by_recipe
from evalcore.rubric.queries import response_sums
from evalcore.study import browse, contents, frames, store
from evalcore.study.browse import OVERRIDDEN, Filters
from evalcore.study.db import open_study, reading, writing
from evalcore.study.schema import (
    Acuity,
    Administrator,
    Ask,
    Label,
    RaterKind,
    Selection,
    Stage,
    Verdict,
    repeat_version,
    version_and_repeat,
)
from evalcore.study.tables import Criterion
from evalcore.triage import queries as triage_queries
from evalcore.triage.queries import one_case, told
from pages.judges import versions
from tests import world
from tests.triage_cases import CONVERSATION, drawn, stored

PROMPT = "judge@1a2b3c4d"
POINTS = ((7, -4), (5, 3))
OTHER = {Label.MET: Label.NOT_MET, Label.NOT_MET: Label.MET}


@given(st.text("abc@0123456789", min_size=1), st.integers(0, 40))
def test_a_repeats_version_is_read_back(version, repeat):
    assert version_and_repeat(repeat_version(version, repeat)) == (version, repeat)


def given_by(small, judge, repeat, labels, *, items, prompt=PROMPT, confidence=0.9):
    """A judge's labels on some items, at one of the times that it was asked."""
    with writing(small.engine) as session:
        rater = store.ensure_rater(session, RaterKind.JUDGE, judge, prompt_version=repeat_version(prompt, repeat))
        verdicts = [
            Verdict(
                example_id=example + 1, rater_id=rater, stage=Stage.JUDGE, label=label, confidence=confidence,
                explanation=f"Time {repeat}.", **small.item(example, criterion),
            )
            for (example, criterion), label in zip(items, labels, strict=True)
        ]  # fmt: skip
        store.add_verdicts(session, verdicts, actor="set-up", action="answers saved")


ITEMS = [(0, 0), (0, 1), (1, 0), (1, 1)]
OWN = [Label.MET, Label.NOT_MET, Label.MET, Label.MET]


@pytest.fixture
def small(database_url):
    """A judge with a prompt, Wren, beside one whose labels came with a file, and physicians who have read three of the four items blind."""
    made = world.made(database_url, points=POINTS, judged="+--+")
    given_by(made, "Wren", 0, OWN, items=ITEMS)
    more = {"blinded": True, "selection": "random", "inclusion_probability": 0.5}
    for (example, criterion), label in zip(ITEMS[:3], (Label.MET, Label.MET, Label.NOT_MET), strict=True):
        world.said(made, label, example=example, criterion=criterion, **more)
    yield made
    made.engine.dispose()


def asked_again(small):
    """Twice more, and it says the contrary of everything."""
    for repeat in (1, 2):
        given_by(small, "Wren", repeat, [OTHER[label] for label in OWN], items=ITEMS, confidence=0.2)


def everything(small):
    """What every page and command reads of judges."""
    found = {}
    with reading(small.engine) as session:
        known = rubric_queries.load(session)
        asked = Asked(1, 1, Ask.RUBRIC, 1, small.responses[0], 1.0, Selection.RANDOM, 1, 45)
        found = {
            "judges": contents.judges(session),
            "counts": contents.counts(session),
            "items": known.items,
            "judged": known.judged,
            "reads": known.reads,
            "sums": response_sums(session).sort_values(["response_id", "judge"], ignore_index=True),
            "stated": calibration_queries.stated(session),
            "beside": calibration_queries.beside_reads(session, calibration_queries.stated(session)),
            "blind reads": blind_reads(session),
            "blind reads of one": blind_reads(session, "Wren"),
            "marks": read_marks(session).sort_values(["verdict_id", "judge"], ignore_index=True),
            "verdicts": frames.verdicts(session, texts=True),
            "judge shown": reading_queries.judge_on(session, asked.target, "Wren"),
            "usual judge shown": reading_queries.judge_on(session, asked.target, None),
            "item": [dict(read_queries.item(session, **small.item(*where), judge="Wren")) for where in ITEMS],
            "conversation": open_example(session, 1).verdicts,
            **{
                str(filters): browse.examples(session, filters)["example_id"].tolist()
                for filters in (
                    Filters(judge="Wren", label=Label.MET), Filters(judge="Wren", label=Label.NOT_MET), Filters(label=Label.NOT_MET, points_to=-1),
                    Filters(judges_differ=True), Filters(judge="Wren", reads=OVERRIDDEN), Filters(reads=OVERRIDDEN, judge="Magpie"),
                )
            },
            **{f"matching {n}": browse.matching_items(session, Filters(judges_differ=True), n) for n in (1, 2)},
        }  # fmt: skip
    for what in ("labels", "scores", "criteria"):
        for judge in (None, "Wren"):
            found[f"export {what} {judge}"] = export_tables.to_csv(
                export_tables.table(small.engine, what, export_tables.Part(judge=judge))
            )
    return found


def assert_same(before, after):
    assert before.keys() == after.keys()
    for name, value in before.items():
        if isinstance(value, pd.DataFrame):
            pd.testing.assert_frame_equal(value, after[name], obj=name)
        else:
            assert value == after[name], name


def test_every_number_is_the_same_with_and_without_repeats(small):
    before = everything(small)
    assert before["judges"] == ["Magpie", "Wren"]
    assert before["counts"]["judges"] == 2
    assert before["counts"]["judge_verdicts"] == 8
    assert before["judged"]["Wren"].tolist() == [1, 0, 1, 1]
    asked_again(small)
    assert_same(before, everything(small))


def test_the_export_of_verdicts_keeps_repeats_and_says_with_which_version(small):
    asked_again(small)
    table = export_tables.table(small.engine, "verdicts")
    of_wren = table.loc[table["rater"].eq("Wren")]
    assert of_wren["prompt_version"].value_counts().to_dict() == {PROMPT: 4, f"{PROMPT}#2": 4, f"{PROMPT}#3": 4}
    assert set(table.loc[table["rater"].ne("Wren"), "prompt_version"]) == {""}


def test_of_two_prompts_of_one_judge_the_newer_ones_label_counts_once_an_item(small):
    given_by(small, "Wren", 0, [Label.NOT_MET], items=ITEMS[:1], prompt="judge@99999999")
    with reading(small.engine) as session:
        assert rubric_queries.load(session).judged["Wren"].tolist() == [0, 0, 1, 1]
        verdicts = frames.verdicts(session, kind=RaterKind.JUDGE)
        assert read_queries.item(session, **small.item(0, 0), judge="Wren")["judge_label"] == Label.NOT_MET
        assert contents.counts(session)["judges"] == 2
        sums = response_sums(session)
        marks = read_marks(session)
        shown = blind_reads(session, "Wren")
    # the newer prompt has labelled one of two criteria of the first response: the whole of the older counts there
    assert sums.loc[sums["judge"].eq("Wren")].sort_values("response_id")[
        ["achieved", "n_judged"]
    ].to_numpy().tolist() == [[7, 2], [8, 2]]
    assert marks.loc[marks["judge"].eq("Wren"), "judge_label"].tolist() == ["not_met", "not_met", "met"]
    assert shown["judge_label"].tolist() == ["not_met", "not_met", "met"]
    assert len(verdicts) == 8
    labels = export_tables.table(small.engine, "labels", export_tables.Part(judge="Wren"))
    assert labels["judge_label"].tolist() == ["not_met", "not_met", "met", "met"]
    assert len(export_tables.table(small.engine, "verdicts").query("rater == 'Wren'")) == 5


def test_the_newer_prompt_counts_also_where_the_older_one_labelled_the_item_later(small):
    """As where one run is gone on with after another, with a newer prompt, was done."""
    given_by(small, "Lark", 0, [Label.NOT_MET], items=ITEMS[1:2], prompt="judge@00000001")
    given_by(small, "Lark", 0, [Label.MET], items=ITEMS[:1], prompt="judge@00000002")
    given_by(small, "Lark", 0, [Label.NOT_MET], items=ITEMS[:1], prompt="judge@00000001")
    at_first = small.item(*ITEMS[0])
    item_id = at_first["response_id"] * frames.ITEM_BASE + at_first["criterion_id"]
    with reading(small.engine) as session:
        item = read_queries.item(session, **at_first, judge="Lark")["judge_label"]
        marks = read_marks(session).query("judge == 'Lark'").set_index(["response_id", "criterion_id"])
        shown = blind_reads(session, "Lark").set_index("item_id")["judge_label"]
        stated = (
            calibration_queries.beside_reads(session, calibration_queries.stated(session))
            .query("judge == 'Lark'")
            .set_index("item_id")["label"]
        )
        overall = frames.verdicts(session, kind=RaterKind.JUDGE).query("rater == 'Lark'").set_index("item_id")["label"]
    found = [
        item,
        marks.loc[tuple(at_first.values()), "judge_label"],
        shown[item_id],
        stated[item_id],
        overall[item_id],
    ]
    assert found == [Label.MET, Label.MET, Label.MET, 1.0, Label.MET]


# ---------------------------------------------------------------- what repeats are for


def known(small):
    with reading(small.engine) as session:
        return rubric_queries.load(session)


def test_repeats_stand_apart_and_a_judge_can_be_held_against_itself(small):
    given_by(small, "Wren", 1, OWN[:3], items=ITEMS[:3])
    given_by(small, "Wren", 2, [OTHER[OWN[0]]], items=ITEMS[:1])
    found = known(small)
    assert list(found.repeats) == ["Wren#2", "Wren#3"]
    assert found.repeats["Wren#2"].tolist()[:3] == [1, 0, 1]
    assert np.isnan(found.repeats["Wren#2"][3])
    assert found.asked_again("Wren").judges == ["Wren", "Wren#2", "Wren#3"]
    assert found.asked_again("Magpie").judges == ["Magpie"]
    assert found.with_repeats().judges == [*found.judges, "Wren#2", "Wren#3"]
    flips = drift.flips(found.with_repeats(), "Wren", "Wren#3", by=(drift.OVERALL,))
    assert (flips["n"].item(), flips["n_flips"].item()) == (1, 1)
    assert drift.flips(found.with_repeats(), "Wren", "Wren#2", by=(drift.OVERALL,))["n_flips"].item() == 0


def test_repeats_keep_their_rows_where_items_are_left_out_or_added(small):
    given_by(small, "Wren", 1, OWN, items=ITEMS)
    found = known(small)
    part = found.where([False, True, True, False])
    assert part.repeats["Wren#2"].tolist() == part.judged["Wren"].tolist() == [0, 1]
    assert versions._others(found, "Wren") == ["Magpie", "Wren#2"]
    # a fifth item that a physician alone has labelled comes between the others
    with writing(small.engine) as session:
        session.add(Criterion(example_id=1, position=3, text="Says when.", points=2, tags="[]"))
    number = world.rows(small.engine, "SELECT max(id) FROM criterion")[0][0]
    world.said(small, Label.MET, criterion_id=number, blinded=True)
    more = known(small)
    assert more.items["criterion_id"].tolist()[2] == number
    assert more.repeats["Wren#2"].fillna(-1).tolist() == more.judged["Wren"].fillna(-1).tolist() == [1, 0, -1, 1, 1]


def test_repeats_of_an_older_prompt_are_no_repeats_of_what_a_newer_one_said(small):
    asked_again(small)
    given_by(small, "Wren", 0, [Label.NOT_MET, Label.MET], items=ITEMS[:2], prompt="judge@99999999")
    given_by(small, "Wren", 1, [Label.NOT_MET], items=ITEMS[:1], prompt="judge@99999999")
    found = known(small)
    assert found.judged["Wren"].tolist() == [0, 1, 1, 1]
    assert found.repeats["Wren#2"].fillna(-1).tolist() == [0, -1, 0, 0]
    assert found.repeats["Wren#3"].fillna(-1).tolist() == [-1, -1, 0, 0]


def test_the_share_of_a_judges_own_answers_is_a_confidence_and_two_judges_are_none(small):
    asked_again(small)
    given_by(small, "Wren", 3, OWN, items=ITEMS)
    table = majority_items(known(small))
    assert set(table["group"]) == {"Wren, asked 4 times"}  # of two judges the majority would always be sure
    assert set(table["refused"]) == {"The judges are evenly split, so there is no majority."}  # 2 of 4, throughout
    given_by(small, "Wren", 4, OWN, items=ITEMS)
    five = majority_items(known(small)).query("group == 'Wren, asked 5 times'")
    assert five["label"].tolist() == [1, 0, 1]
    assert five["confidence"].tolist() == [pytest.approx(0.6)] * 3
    assert five["right"].tolist() == [1, 0, 0]  # physicians say met, met, not met


def test_what_a_judge_contradicts_itself_on_is_drawn_more_often_and_its_voters_are_written_down(database_url):
    unread = world.made(database_url, points=((7,),) * 10, judged="+" * 10)
    words = "judge-error:0.1"
    found = known(unread)
    target = planning_acts.target_of(words, found)
    before = answer(found, target)
    assert (before.disagreement.n_items, before.disagreement.n_disagreed) == (0, 0)
    assert "No two judges have labelled these criteria" in disagreement_words(before)
    # asked again, it says the contrary on two of ten and the same on six
    items = [(place, 0) for place in range(8)]
    given_by(unread, world.JUDGE, 1, [Label.NOT_MET] * 2 + [Label.MET] * 6, items=items, prompt="")
    found = known(unread)
    after = answer(found, target)
    assert (after.disagreement.n_items, after.disagreement.n_disagreed) == (8, 2)
    # sizes .5, .5, six of .3, two of .4: 3.6 in all, none certain while fewer than 7.2 of ten are drawn
    with reading(unread.engine) as session:
        plan = planning_acts.draw(session, target, n_units=5, design=IMPORTANCE, seed=2)
    assert plan.drawn.how["voters"] == ["Magpie", "Magpie#2"]
    chances = {response: share for (_, response), share in plan.drawn.shares.items()}
    expected = dict(zip(unread.responses, [0.5, 0.5, *[0.3] * 6, 0.4, 0.4], strict=True))
    assert chances == {response: pytest.approx(5 * expected[response] / 3.6) for response in chances}
    assert len(chances) == 5
    words = disagreement_words(after)
    assert words.startswith(
        "Judges disagree on 2 of the 8 criteria that two judges or more, or one judge several times, have labelled: a draw by"
    )
    assert f"takes these {often_words(after.disagreement.times)} those on which they agree" in words
    report = assign(unread.engine, Choice(drawn=plan.drawn, seed=plan.seed), actor=Administrator(name="Ana Ruiz"))
    assert report.n_items == 5
    stored_shares = dict(world.rows(unread.engine, "SELECT response_id, inclusion_probability FROM task"))
    assert stored_shares == {response: pytest.approx(share) for response, share in chances.items()}
    # a judge that comes later does not change what the drawing's record gives
    (how,) = world.rows(unread.engine, "SELECT chosen_by FROM assignment")
    recipe = json.loads(how[0])
    world.judged(unread, "Rook", Label.NOT_MET, example=0)
    assert by_recipe(known(unread), recipe)[list(chances)].to_dict() == {
        response: pytest.approx(share) for response, share in chances.items()
    }
    unread.engine.dispose()


# ---------------------------------------------------------------- cases of triage


def of_cases(engine):
    with reading(engine) as session:
        known = triage_queries.load(session)
        one = one_case(session, 1)
        texts = told(session, known.samples["response_id"].tolist()[:40])
        judges = contents.judges(session)
        levels = browse.examples(session, Filters(level=Acuity.D, judge="Wren"))["example_id"].tolist()
    tables = {f"export {what}": export_tables.to_csv(export_tables.table(engine, what)) for what in ("cases",)}
    acuity = export_tables.table(engine, "acuity")
    own = acuity.loc[~acuity["prompt_version"].str.contains("#")].reset_index(drop=True)
    return {
        "levels": known.levels, "confidence": known.confidence, "samples": known.samples, "judges": judges, "one": one.levels,
        "one confidence": one.confidence, "texts": texts, "browse": levels, "by format": known.judges(CONVERSATION), "acuity": own, **tables,
    }  # fmt: skip


def test_every_level_is_the_same_with_and_without_repeats(database_url):
    triage_data, _ = drawn(
        np.random.default_rng(5), n_cases=6, n_samples=2, judges={"Magpie": 0.8, "Wren": 0.7}, confidence=True
    )
    engine = open_study(database_url)
    with writing(engine) as session:
        stored(session, triage_data)
    before = of_cases(engine)
    with writing(engine) as session:
        known = triage_queries.load(session)
        for repeat in (1, 2):
            rater = store.ensure_rater(session, RaterKind.JUDGE, "Wren", prompt_version=repeat_version("", repeat))
            verdicts = [
                Verdict(
                    example_id=int(known.cases["example_id"][known.samples["row"][place]]), response_id=int(known.samples["response_id"][place]),
                    criterion_id=None, rater_id=rater, stage=Stage.JUDGE, label=Acuity.D, confidence=0.11, explanation="Again.",
                )
                for place in np.flatnonzero(known.levels["Wren"].notna())
            ]  # fmt: skip
            store.add_verdicts(session, verdicts, actor="set-up", action="answers saved")
    assert_same(before, of_cases(engine))
    acuity = export_tables.table(engine, "acuity")
    assert (
        acuity["prompt_version"].value_counts()["#2"] == acuity["prompt_version"].value_counts()["#3"] == len(verdicts)
    )
    engine.dispose()
