"""Answers are written in lots: what a transaction asks of the database."""

from sqlalchemy import event

from evalcore.runs import queries, store
from evalcore.runs.spec import Call
from evalcore.runs.store import Answer, save_answers
from evalcore.study.db import writing
from evalcore.study.schema import Outcome
from tests.run_world import begun, responding


def test_the_model_of_a_lot_of_answers_is_looked_up_once(small_run):
    run_id = begun(small_run, responding())
    with writing(small_run.engine) as session:
        worker = store.add_worker(session, run_id, pid=1)
        taken = store.take(session, run_id, worker, 3)[0]
    answers = [
        Answer(asked, (Call(question_id=asked.question_id, outcome=Outcome.ANSWERED),), Outcome.ANSWERED, "Rest.")
        for asked in taken
    ]
    said = []

    def hear(_connection, _cursor, statement, *_rest):
        said.append(" ".join(statement.split()))

    event.listen(small_run.engine, "before_cursor_execute", hear)
    with writing(small_run.engine) as session:
        assert save_answers(session, queries.run(session, run_id), worker, answers) == 0
    assert len([statement for statement in said if statement.startswith("SELECT model.id FROM model")]) == 1
    assert small_run.rows(
        "SELECT r.text, count(*) FROM response r JOIN model m ON m.id = r.model_id WHERE m.name = 'Magpie' GROUP BY r.text"
    ) == [("Rest.", 3)]
