"""Items of a run that were answered in another way since: with a file, or by another run."""

from hypothesis import HealthCheck, given, settings, strategies as some

from evalcore.runs.acts import retry
from evalcore.study.schema import Administrator, Outcome
from tests.run_steps import MET, Scripted
from tests.run_world import begun, judged, judging, planned, worked

N_ITEMS = 6


def answered_elsewhere(small, spec, run_id, *places):
    """Verdicts on the items of some questions of a run, by their places from 0, as a file brings them."""
    items = small.rows(
        "SELECT example_id, response_id, criterion_id FROM run_question WHERE run_id = :run ORDER BY id", run=run_id
    )
    for example, response, criterion in (items[place] for place in places):
        judged(small, spec, response, criterion, example=example)


def outcomes(small, run_id):
    return [
        word for (word,) in small.rows("SELECT outcome FROM run_question WHERE run_id = :run ORDER BY id", run=run_id)
    ]


def fails(*numbers):
    """A judge that declines at these calls, from 1."""
    return Scripted(lambda n, _request: Outcome.REFUSED if n in numbers else MET)


def test_what_failed_and_was_answered_elsewhere_is_there_and_not_failed(small_run):
    spec = judging()
    run_id = begun(small_run, spec, concurrency=1)
    worked(small_run, run_id, client=fails(1, 2), most=3)  # two fail, one is answered, three are not asked
    answered_elsewhere(small_run, spec, run_id, 0)
    found = planned(small_run, spec)
    # there: the one that was answered here, and the one elsewhere
    assert (found.n_all, found.n_there, found.n_failed, found.n_missing) == (N_ITEMS, 2, 1, 3)


@given(
    limit=some.none() | some.integers(1, N_ITEMS),
    n_asked=some.integers(1, N_ITEMS),
    failed=some.sets(some.integers(1, N_ITEMS)),
    elsewhere=some.sets(some.integers(0, N_ITEMS - 1)),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=6)
def test_what_is_planned_is_what_a_start_leaves_to_ask(small_run, limit, n_asked, failed, elsewhere):
    n_before = small_run.one("SELECT count(*) FROM run")
    spec = judging(limit=limit, model={"name": f"Magpie {n_before}"})
    run_id = begun(small_run, spec, concurrency=1)
    worked(small_run, run_id, client=fails(*failed), most=n_asked)
    states = outcomes(small_run, run_id)
    answered_elsewhere(
        small_run, spec, run_id, *(place for place in elsewhere if place < len(states) and states[place] != "answered")
    )
    found = planned(small_run, spec)
    assert begun(small_run, spec) == run_id
    left = outcomes(small_run, run_id)
    assert (found.n_missing, found.n_failed) == (left.count(None), left.count("refused"))


def test_a_retry_does_not_ask_what_was_answered_elsewhere(small_run):
    spec = judging()
    run_id = begun(small_run, spec, concurrency=1)
    worked(small_run, run_id, client=fails(1, 2))
    answered_elsewhere(small_run, spec, run_id, 0)
    assert retry(small_run.engine, run_id, actor=Administrator(name="Ana Ruiz"), outcomes=[Outcome.REFUSED]) == 1
    assert outcomes(small_run, run_id) == ["answered", None, *["answered"] * (N_ITEMS - 2)]
    assert small_run.events("run retried") == [{"run": run_id, "questions": 1, "outcomes": ["refused"]}]
    client = Scripted()
    assert worked(small_run, run_id, client=client).n_answered == len(client.asked) == 1
    assert set(small_run.verdicts().values()) == {1}


def test_where_everything_that_failed_was_answered_elsewhere_a_retry_asks_nothing(small_run):
    spec = judging()
    run_id = begun(small_run, spec, concurrency=1)
    worked(small_run, run_id, client=fails(1))
    answered_elsewhere(small_run, spec, run_id, 0)
    assert retry(small_run.engine, run_id, actor=Administrator(name="Ana Ruiz"), outcomes=[Outcome.REFUSED]) == 0
    assert outcomes(small_run, run_id) == ["answered"] * N_ITEMS
    assert small_run.progress(run_id).state == "done"
