"""The statement of what a study analyses: checked, kept in versions, never changed, and with the reads that existed before it."""

import pytest
from hypothesis import given, strategies as some
from sqlalchemy import text

from evalcore.errors import NotAllowed, OverreadError
from evalcore.study import analysis, contents, store
from evalcore.study.analysis import Analysis
from evalcore.study.db import reading, writing
from evalcore.study.policies import check_can_state_analysis
from evalcore.study.schema import Claim, Physicians
from tests import world
from tests.storage_steps import refused

ALDER, BRIAR = "Alder-2", "Briar-1"
KNOWN = {"evaluations": ["invented"], "judges": ["Magpie"], "subsets": ["hard"], "models": [ALDER, BRIAR]}


@pytest.fixture
def small(database_url):
    """Two models on two conversations, one judge."""
    made = world.made(database_url, judged="+-+-", models=(ALDER, BRIAR))
    yield made
    made.engine.dispose()


def stated(small, spec):
    with writing(small.engine) as session:
        return store.state_analysis(session, spec, actor="Ana Ruiz")


def in_force(small):
    with reading(small.engine) as session:
        return contents.stated_analysis(session)


def test_nothing_is_stated_until_somebody_does(small):
    assert in_force(small) is None
    assert stated(small, Analysis()) is None  # the usual choices need no statement
    assert small.events()[-1][1] != "analysis stated"


def test_a_statement_is_kept_in_versions_with_the_reads_before_it(small):
    first = Analysis(judges=("Magpie",), claim=Claim.NEW_EXAMPLES, primary=(ALDER, BRIAR), margin=0.05)
    assert stated(small, first) == 1
    assert stated(small, first) is None
    world.assigned(small)
    world.submitted(small, "Dr. Imani Noor", "+-")  # two criteria: two first reads
    assert stated(small, Analysis(judges=("Magpie",), physicians=Physicians.THESE)) == 2
    with reading(small.engine) as session:
        newest, oldest = contents.stated_analyses(session)
    assert (oldest.spec, oldest.n_reads_before, oldest.stated_by) == (first, 0, "Ana Ruiz")
    assert (newest.version, newest.n_reads_before) == (2, 2)
    assert newest.spec.primary is None
    assert newest == in_force(small)
    assert small.events()[-1] == ("Ana Ruiz", "analysis stated")
    assert analysis.when_words(oldest).endswith("before the first read")
    assert analysis.when_words(newest).endswith("after 2 reads")


@pytest.mark.parametrize("statement", ["UPDATE analysis SET n_reads_before = 0", "DELETE FROM analysis"])
def test_a_statement_is_never_changed(small, statement):
    stated(small, Analysis(judges=("Magpie",)))
    assert "analysis is append-only" in refused(small.engine, statement)
    with small.engine.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM analysis")).scalar_one() == 1


def test_a_bare_shell_of_sqlite_cannot_replace_a_statement(sqlite_database_url):
    small = world.made(sqlite_database_url)
    stated(small, Analysis(judges=("Magpie",)))
    assert "analysis is append-only" in refused(small.engine, "REPLACE INTO analysis SELECT * FROM analysis")
    small.engine.dispose()


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (Analysis(evaluation="other"), "Data set: expected one of invented, got 'other'"),
        (Analysis(judges=("Wren",)), "Judges: expected one of Magpie, got 'Wren'"),
        (Analysis(judges=("Magpie", "Magpie")), "Judges: expected each once"),
        (Analysis(subset="easy"), "Examples: expected one of hard, got 'easy'"),
        (Analysis(primary=(ALDER, "Clover")), "Primary comparison: expected some of Alder-2, Briar-1, got 'Clover'"),
        (Analysis(primary=(ALDER, ALDER)), "expected two different models"),
        (Analysis(margin=0.05), "Margin of the corrected score: expected a primary comparison"),
        (Analysis(primary=(ALDER, BRIAR), margin_missed=0.0), "Margin of the rate of missed emergencies: expected a number above 0"),
        (Analysis(primary=(ALDER, BRIAR), margin=float("nan")), "expected a number above 0 and at most 1, got nan"),
    ],
)  # fmt: skip
def test_a_statement_that_the_study_cannot_hold_is_refused(spec, said):
    with pytest.raises(OverreadError, match="expected") as refusal:
        analysis.check(spec, **KNOWN)
    assert said in str(refusal.value)


def test_the_store_checks_before_it_writes(small):
    with pytest.raises(OverreadError, match="Judges: expected one of Magpie, got 'Wren'"):
        stated(small, Analysis(judges=("Wren",)))
    assert in_force(small) is None


def test_only_leads_and_researchers_state_it(small):
    check_can_state_analysis(small.viewer("Ana Ruiz"))
    with pytest.raises(NotAllowed, match="Only leads and researchers can state the analysis"):
        check_can_state_analysis(small.viewer())


names = some.text(max_size=9)
specs = some.builds(
    Analysis,
    evaluation=some.none() | names,
    judges=some.lists(names, max_size=3).map(tuple),
    subset=some.none() | names,
    claim=some.none() | some.sampled_from(Claim),
    physicians=some.none() | some.sampled_from(Physicians),
    settled=some.booleans(),
    weighted=some.booleans(),
    primary=some.none() | some.tuples(names, names),
    margin=some.none() | some.floats(0.001, 1),
)


@given(specs)
def test_what_is_stored_comes_back(spec):
    assert analysis.of_json(analysis.to_json(spec)) == spec
