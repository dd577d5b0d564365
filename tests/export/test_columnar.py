"""Labels and verdicts come as columns of Arrow: the same rows as the functions make that all pages use, on studies that have everything."""

import numpy as np
import pandas as pd
import pytest
from sqlalchemy import select

from evalcore.export import columnar, queries, tables as export_tables
from evalcore.export.tables import Part
from evalcore.reading.reference import item_labels
from evalcore.study import contents, frames, store
from evalcore.study.db import reading, writing
from evalcore.study.policies import visible_verdicts
from evalcore.study.schema import REPEAT, Label, RaterKind, Stage, Verdict
from evalcore.study.tables import STORED
from tests import world

CALLED = {"example_id": "example_number", "prompt_id": "example_id", "position": "criterion_position"}
TEXTS = ("", None, "two\x1ftexts in one", 'a "quotation", and more', "=1+1", "胸痛\r\nمرحبا")


@pytest.fixture
def judged(overridden):
    """Besides, newer and older prompts of a judge and a repeat of it, with explanations of all kinds."""
    rng = np.random.default_rng(3)
    with writing(overridden.engine) as session:
        for version in ("", "v2", f"v2{REPEAT}2"):
            rater = store.ensure_rater(session, RaterKind.JUDGE, "Owl", prompt_version=version)
            said = [
                Verdict(
                    **overridden.item(*place),
                    example_id=1 + place[0],
                    rater_id=rater,
                    stage=Stage.JUDGE,
                    label=rng.choice(list(Label)[:2]),
                    explanation=rng.choice(np.array(TEXTS, dtype=object)),
                )
                for place in ((0, 0), (0, 1), (1, 0), (1, 1))
                if version != "v2" or place != (1, 1)
            ]
            store.add_verdicts(session, said, actor="set-up", action="x")
    return overridden


@pytest.mark.parametrize("judge", [world.JUDGE, "Owl", "Wren"])
@pytest.mark.parametrize("blind", [frozenset(), frozenset({1})])
@pytest.mark.parametrize("at_once", [1, 1_000])
def test_labels_are_those_of_the_reference(judged, monkeypatch, judge, blind, at_once):
    monkeypatch.setattr(columnar, "_ITEMS", at_once)
    monkeypatch.setattr(columnar, "_RESPONSES", at_once)
    table = export_tables.table(judged.engine, "labels", Part(judge=judge, blind=blind))
    with reading(judged.engine) as session:
        verdicts = visible_verdicts(frames.verdicts(session, texts=True), None, blind)
    expected = item_labels(verdicts, judge).rename(columns=CALLED)
    of_history = {"first_read_at", "knows_model", "n_slips"}
    same = [name for name in table.columns if name not in of_history]
    pd.testing.assert_frame_equal(plain(table[same]), plain(expected[same]))


@pytest.mark.parametrize("judge", [None, "Owl"])
@pytest.mark.parametrize("at_once", [1, 1_000])
def test_verdicts_are_those_of_the_study(judged, monkeypatch, judge, at_once):
    monkeypatch.setattr(queries, "_VERDICTS", at_once)
    table = export_tables.table(judged.engine, "verdicts", Part(judge=judge))
    with reading(judged.engine) as session:
        assert "Owl" in contents.judges(session)
        expected = frames.verdicts(session, texts=True, every_prompt=True, origin=True)
    expected = expected.rename(columns={**CALLED, "created_at": "read_at"})
    if judge is not None:
        expected = expected.loc[expected["rater"].eq(judge) | expected["rater_kind"].eq(RaterKind.REVIEWER)]
    same = [name for name in table.columns if name in expected.columns]
    assert set(table.columns) - set(same) == {"second_look", "suspect", "knows_model", "slipped_from"}
    pd.testing.assert_frame_equal(plain(table[same]), plain(expected[same].reset_index(drop=True)))


def test_explanations_stand_in_the_order_that_is_asked_for_and_nobody_has_given_number_0(judged):
    with reading(judged.engine) as session:
        told = session.connection().execute(select(STORED["verdict"].c["id", "explanation"]))
        said = dict(told.all())
        asked = np.random.default_rng(5).permutation([0, 0, *said])
        assert queries.explanations(session, asked).to_pylist() == [said.get(number) for number in asked.tolist()]


def plain(table):
    """With Python's own values, None where there is none."""
    return table.astype(object).where(table.notna(), None)
