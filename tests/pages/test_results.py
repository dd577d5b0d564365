"""One analysis has one set of numbers: on Models, from `compare`, in the bundle; and each says what it holds for."""

import io
import math
import zipfile
from dataclasses import asdict, replace
from datetime import UTC, datetime

import numpy as np
import orjson
import pandas as pd
import pytest
from hypothesis import HealthCheck, Phase, given, settings, strategies as some

from evalcore.cli import compare as cli_compare
from evalcore.errors import OverreadError
from evalcore.export import methods
from evalcore.export.bundle import bundle
from evalcore.export.tables import CODEBOOK
from evalcore.rubric import judge_only, queries as opinions_query
from evalcore.rubric.results import (
    departures,
    evaluations,
    part_of,
    primary_words,
    results,
    stated_words,
    with_defaults,
)
from evalcore.study import store
from evalcore.study.analysis import Analysis, StatedAnalysis
from evalcore.study.db import reading, writing
from evalcore.study.schema import Claim, Label, Physicians
from tests import world
from tests.population import drawn

MODELS, JUDGES = ("Alder", "Briar"), {"Magpie": 0.85, "Wren": 0.7}
READERS = ("A", "B", "C", "D")


def study(seed: int, **wanted: object):
    """A drawn study of two models and two judges, and its data sets."""
    made, _ = drawn(
        np.random.default_rng(seed),
        **{"n_examples": 25, "models": {"Alder": 0.8, "Briar": 0.0}, "judges": JUDGES, "readers": READERS, "share_read": 0.4}
        | wanted,
    )  # fmt: skip
    return made, evaluations(made)


USUAL = Analysis()


def found_in(made, spec=USUAL):
    known = evaluations(made)
    spec = with_defaults(spec, known)
    return results(part_of(made, spec), spec)


# ---------------------------------------------------------------- the same numbers everywhere


@pytest.fixture(scope="module")
def shell(tmp_path_factory):
    """A study in a database whose labels are drawn anew: it has the models and judges that an analysis may name."""
    made = world.made(str(tmp_path_factory.mktemp("results") / "study.db"), models=MODELS)
    world.judged(made, "Wren", Label.MET)
    yield made
    made.engine.dispose()


specs = some.builds(
    Analysis,
    judges=some.sampled_from([(), ("Magpie",), ("Wren",), ("Magpie", "Wren")]),
    claim=some.none() | some.sampled_from(Claim),
    physicians=some.none() | some.sampled_from(Physicians),
    settled=some.booleans(),
    weighted=some.booleans(),
    primary=some.just(("Briar", "Alder")),
    margin=some.sampled_from([None, 0.05]),
)
WORTH_COMPARING = ["judge_only", "physicians_only", "corrected", "corrected_low", "corrected_high", "n_read", "worth"]


@settings(
    max_examples=2, deadline=None, phases=[Phase.explicit, Phase.generate], suppress_health_check=list(HealthCheck)
)
@given(spec=specs, seed=some.integers(0, 999), share=some.sampled_from([0.02, 0.3, 1.0]), readers=some.integers(1, 4))
def test_models_compare_methods_and_bundle_give_the_same_numbers_from_one_specification(
    shell, spec, seed, share, readers
):
    made, _ = study(seed, share_read=share, readers=READERS[:readers])
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(opinions_query, "load", lambda _session: made)
        # the judge's opinion: not compared here
        patched.setattr(judge_only, "differences", lambda *_, **__: pd.DataFrame())
        with writing(shell.engine) as session:
            store.state_analysis(session, spec, actor="Ana Ruiz")
        with reading(shell.engine) as session:
            done = cli_compare.analysed(session, {})
            tables = cli_compare.computed(session, done, by=["theme"], seed=1)
            of_command = cli_compare.as_object(done, tables, seed=1)
        told = methods.facts(shell.engine)
        with zipfile.ZipFile(io.BytesIO(bundle(shell.engine)[0])) as packed:
            files = {name: packed.read(name) for name in packed.namelist()}
    of_page = found_in(made, spec)

    assert of_command["otherwise"] == []
    enough = of_page.scores.loc[of_page.scores["enough"].astype(bool)]
    assert told.analysis == asdict(of_page.spec)
    assert told.otherwise == ()
    assert told.n_estimated == len(enough)
    assert told.n_compared == of_page.differences["p"].notna().sum()
    assert told.claim == (" ".join(filter(None, (of_page.means, of_page.because))) if len(enough) else "")
    if not spec.settled:  # else a settled item that cannot be assessed is read and has no label
        assert told.flow["n_items"].iloc[-1] == enough["n_read"].sum()
    assert orjson.loads(files["analysis.json"])["computed"]["finding"] == of_command["finding"] == of_page.finding
    for name, of_one in (("corrected-scores", of_page.scores), ("corrected-differences", of_page.differences)):
        table = pd.read_csv(io.BytesIO(files[f"{name}.csv"]))
        assert set(table.columns) == {column for column, _ in CODEBOOK[name]}
        assert table["judge"].eq(" + ".join(of_command["judges"])).all()
        mine = table.loc[table["is_analysis"].astype(bool)].reset_index(drop=True)
        columns = WORTH_COMPARING if name == "corrected-scores" else ["difference", "low", "high", "p_holm"]
        rows = pd.DataFrame(of_command[name.removeprefix("corrected-")], columns=of_one.columns)
        for column in columns:
            same = of_one[column].astype(float).to_numpy()
            assert mine[column].astype(float).to_numpy() == pytest.approx(same, nan_ok=True)
            assert rows[column].astype(float).to_numpy() == pytest.approx(same, nan_ok=True)
        if len(mine):
            assert set(mine["claim"]) == {of_command["claim"]}
            assert set(mine["physicians"]) == {of_command["physicians"]}


def test_the_flow_counts_in_the_scores_what_the_weights_let_in(shell):
    made, _ = study(9, share_read=1.0)
    themes = made.items["theme"].astype(object).where(made.items["example_id"] > 2, None)
    made = replace(made, items=made.items.assign(theme=pd.Categorical(themes)))
    spec = Analysis(judges=("Magpie",), weighted=True)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(opinions_query, "load", lambda _session: made)
        with writing(shell.engine) as session:
            store.state_analysis(session, spec, actor="Ana Ruiz")
        flow = methods.facts(shell.engine).flow
    last, scores = flow.iloc[-1], found_in(made, spec).scores
    assert last["what"] == "In the corrected scores"
    assert last["n_items"] == made.items["example_id"].gt(2).sum() == scores["n_read"].sum()
    assert last["n_examples"] == made.items["example_id"].nunique() - 2
    assert scores["n_left_out"].tolist() == [2, 2]  # they are no part of the scores, and are counted


# ---------------------------------------------------------------- what they hold for


def test_scores_and_differences_hold_for_the_same_and_say_so():
    made, _ = study(1, share_read=1.0)
    here, beyond = (
        found_in(made, Analysis(claim=claim, physicians=Physicians.THESE)) for claim in (Claim.BENCHMARK, Claim.NEW_EXAMPLES)
    )  # fmt: skip
    widths = [(found.differences["high"] - found.differences["low"]).item() for found in (here, beyond)]
    assert widths[0] < widths[1], (
        "the benchmark was read whole: its own difference is known better than that of new examples"
    )
    assert "(for this benchmark, these physicians)" in here.finding
    assert "(for new examples like these, these physicians)" in beyond.finding


def test_no_claim_stands_alone():
    found = found_in(study(2)[0])
    assert (found.claim, found.physicians) == (Claim.NEW_EXAMPLES, Physicians.IN_GENERAL)
    widths = found.claims.assign(width=found.claims["corrected_high"] - found.claims["corrected_low"])
    by_claim = widths.groupby(["claim", "physicians"])["width"].mean()
    assert len(by_claim) == 4
    assert by_claim["new_examples", "in_general"] == pytest.approx(by_claim.max())
    assert by_claim["benchmark", "these"] < by_claim["new_examples", "these"]


def test_few_effective_readers_narrow_the_claim_and_say_why():
    made, _ = study(3, readers=("A", "B"))
    found = found_in(made)
    assert found.physicians is Physicians.THESE
    assert found.because.startswith("Fewer than 3 effective readers")
    assert found_in(made, Analysis(physicians=Physicians.THESE, claim=Claim.BENCHMARK)).because == ""


def test_the_judge_with_most_labels_is_corrected_where_none_is_named():
    made, known = study(4)
    made = replace(
        made, judged=made.judged.assign(Magpie=made.judged["Magpie"].where(np.arange(len(made.items)) % 2 == 0))
    )
    assert with_defaults(Analysis(), evaluations(made)).judges == ("Wren",)
    with pytest.raises(OverreadError, match="Judges: expected some of Magpie, Wren, got 'Rook'"):
        with_defaults(Analysis(judges=("Rook",)), known)
    with pytest.raises(OverreadError, match="Data set: expected one of invented, got 'other'"):
        with_defaults(Analysis(evaluation="other"), known)


def test_weights_that_cannot_be_had_are_refused():
    made, _ = study(5)
    themes = pd.Categorical([None] * len(made.items))
    with pytest.raises(OverreadError, match="expected examples with themes of the full benchmark"):
        found_in(replace(made, items=made.items.assign(theme=themes)), Analysis(weighted=True))


# ---------------------------------------------------------------- the statement


def stated(spec: Analysis, n_reads: int = 0) -> StatedAnalysis:
    return StatedAnalysis(3, spec, "Ana Ruiz", datetime(2026, 3, 1, tzinfo=UTC), n_reads)


def test_what_is_chosen_otherwise_is_named_and_what_is_left_open_is_as_usual():
    made, known = study(6)
    spec = Analysis(judges=("Wren",))
    as_stated = found_in(made, spec)
    assert departures(as_stated, spec, known) == ()
    assert departures(found_in(made, replace(spec, claim=Claim.NEW_EXAMPLES)), spec, known) == ()
    otherwise = departures(found_in(made, Analysis(physicians=Physicians.THESE, weighted=True)), spec, known)
    assert otherwise == ("judge", "physicians", "weights")
    assert (
        stated_words(stated(spec), otherwise)
        == "This is not the stated analysis (version 3): judge, physicians and weights differ."
    )
    assert (
        stated_words(stated(spec, 120), ())
        == "This is the stated analysis (version 3), stated on 2026-03-01, after 120 reads."
    )


def test_the_primary_comparison_is_held_against_its_margin_the_way_round_that_was_stated():
    made, _ = study(7)
    spec = Analysis(primary=("Briar", "Alder"), margin=0.02)
    found = found_in(made, spec)
    (row,) = found.differences.to_dict(orient="records")
    assert (row["model_1"], row["model_2"]) == MODELS
    assert found.primary["difference"] == pytest.approx(-row["difference"])
    assert (found.primary["low"], found.primary["high"]) == pytest.approx((-row["high"], -row["low"]))
    assert found.held.bound == pytest.approx(-row["high"])  # higher is better: how bad Briar may be
    said = " ".join(primary_words(found, stated(spec, 40)))
    assert "Primary comparison: Briar less Alder is −" in said
    assert "(for new examples like these, physicians in general; p" in said
    assert said.endswith("Comparison and margin: stated on 2026-03-01, after 40 reads.")
    assert primary_words(found_in(made), None) == []
    assert found_in(made, replace(spec, margin=None)).held is None


def test_a_primary_comparison_without_enough_reads_says_so():
    made, _ = study(8, share_read=0.0)
    found = found_in(made, Analysis(primary=MODELS, margin=0.02))
    assert found.held is None
    assert "too little has been read for a difference" in primary_words(found, None)[0]
    assert math.isnan(found.scores["corrected"].iloc[0])
