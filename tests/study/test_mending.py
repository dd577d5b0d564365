"""An import is taken back and brought back, a response is marked as broken, names change: what each act does, refuses and tells the trail."""

import json

import pytest
import sqlalchemy as sa

from evalcore.errors import ImportFailed, NotAllowed, NotFound, OverreadError
from evalcore.export import tables as export
from evalcore.export.methods import facts, paragraph
from evalcore.study import browse, contents
from evalcore.study.acting import prepare_search
from evalcore.study.audit.chain import verify
from evalcore.study.browse import Filters
from evalcore.study.corrections import mending, renaming
from evalcore.study.corrections.renaming import Kind
from evalcore.study.db import reading
from evalcore.study.schema import Broken, Role, Viewer
from evalcore.study.tables import TABLES
from tests.invented import bring, entry, example, judged, lines, results, rows, write
from tests.mended import differences, shown
from tests.study.test_mending_histories import ANA, FILES, A, B, C, History, twin
from tests.world import tampered


@pytest.fixture
def history(sqlite_database_url, tmp_path):
    made = History(sqlite_database_url, tmp_path)
    for name in ("examples.jsonl", A, "judge.jsonl"):
        made.do("import", name)
    yield made
    made.engine.dispose()


def responses(history: History) -> list[tuple[str, int, str]]:
    """Model, sample index and text of what is shown."""
    with reading(history.engine) as session:
        from evalcore.study import frames

        found = frames.responses(session, texts=True)
    return sorted(zip(found["model"], found["sample_index"], found["response"], strict=True))


def test_what_leaves_is_said_before_and_nothing_is_changed_by_saying_it(history):
    history.do("read", "Dr. Vale")
    before = shown(history.engine)
    effect = mending.preview(history.engine, history._number(A), actor=ANA)
    # two responses with three criteria each by Judge A, three verdicts of Judge B on them, one read
    assert (effect.n_examples, effect.n_responses, effect.n_judge_verdicts, effect.n_reads) == (0, 2, 9, 1)
    assert effect.of_physicians == "1 verdict that physicians gave here"
    assert shown(history.engine) == before
    assert mending.withdraw(history.engine, history._number(A), reason="x", actor=ANA) == effect


def test_the_trail_says_who_withdrew_what_and_why(history):
    mending.withdraw(history.engine, history._number(A), reason="the wrong file", actor=ANA)
    actor, subject, detail = rows(
        history.engine, "SELECT actor, subject, detail FROM audit_event WHERE action = 'import withdrawn'"
    )[0]
    assert (actor, subject, json.loads(detail)["reason"]) == ("Ana Ruiz", A, "the wrong file")
    with reading(history.engine) as session:
        listed = mending.imports(session).set_index("file").loc[A]
    assert (listed["withdrawn_by"], listed["reason"], listed["n_responses"]) == ("Ana Ruiz", "the wrong file", 2)


@pytest.mark.parametrize("reason", ["", "  ", "x" * 1_001])
def test_a_withdrawal_has_a_reason(history, reason):
    with pytest.raises(OverreadError, match="reason: expected why it is withdrawn, in 1 to 1,000 characters"):
        mending.withdraw(history.engine, history._number(A), reason=reason, actor=ANA)


def test_readers_withdraw_mark_and_rename_nothing(history):
    reader = Viewer(person_id=1, name="Dr. Sol", roles=frozenset({Role.REVIEWER}))
    for act in (
        lambda: mending.withdraw(history.engine, 1, reason="x", actor=reader),
        lambda: mending.restore(history.engine, 1, actor=reader),
        lambda: mending.preview(history.engine, 1, actor=reader),
        lambda: mending.mark_broken(history.engine, 1, Broken.EMPTY, actor=reader),
        lambda: renaming.rename(history.engine, Kind.MODEL, "model-a", "M", actor=reader),
    ):
        with pytest.raises(NotAllowed, match="Only leads and researchers can"):
            act()


def test_of_an_import_from_before_its_rows_were_kept_the_verdicts_leave_and_the_rest_stays(history):
    with history.engine.begin() as connection:  # as the migration leaves it
        connection.exec_driver_sql("DELETE FROM brought_rows")
        connection.exec_driver_sql("UPDATE file_import SET keeps_rows = 0, key = 'older ' || source_hash")
    effect = mending.withdraw(history.engine, history._number(A), reason="x", actor=ANA)
    assert (effect.n_responses, effect.n_judge_verdicts) == (0, 6)  # the other three are Judge B's, of another file
    assert len(responses(history)) == 2
    assert mending.restore(history.engine, history._number(A), actor=ANA) == effect


def test_the_same_file_is_restored_and_not_imported_again(history):
    history.do("withdraw", A)
    with pytest.raises(ImportFailed, match=r"Ana Ruiz withdrew it on .*restore-import 2"):
        bring(history.engine, write(history.folder / A, FILES[A]))


def test_a_corrected_file_with_the_same_names_takes_the_place_of_a_withdrawn_one_until_that_is_withdrawn(history):
    history.do("withdraw", "examples.jsonl")
    history.do("withdraw", A)
    right = write(
        history.folder / "right.jsonl", lines(example("p1", prompt=[{"role": "user", "content": "My ear hurts."}]))
    )
    assert bring(history.engine, right).examples_new == 1
    answer = write(history.folder / B.replace("model-b", "model-a"), results(entry("p1", answer="Look in the ear.", prompt=[{"role": "user", "content": "My ear hurts."}])))  # fmt: skip
    assert bring(history.engine, answer).responses_new == 1
    assert responses(history) == [("model-a", 0, "Look in the ear.")]
    before = shown(history.engine)
    with pytest.raises(OverreadError, match="came again with a later import"):
        mending.restore(history.engine, history._number("examples.jsonl"), actor=ANA)
    assert shown(history.engine) == before
    with reading(history.engine) as session:
        assert verify(session).holds


def test_another_text_of_the_same_sample_takes_the_place_of_a_withdrawn_one_that_nobody_read(history):
    history.do("withdraw", A)
    other = write(history.folder / "again.csv", b"example_id,model,text,sample_index\np1,model-a,Rest.,0\n")
    assert bring(history.engine, other, judge=None).responses_new == 1
    assert responses(history) == [("model-a", 0, "Rest.")]


def test_another_text_is_refused_where_physicians_read_the_withdrawn_one(history):
    history.do("read", "Dr. Vale")
    history.do("withdraw", A)
    other = write(history.folder / "again.csv", b"example_id,model,text,sample_index\np1,model-a,Rest.,0\n")
    with pytest.raises(OverreadError, match="withdrawn after physicians had read it"):
        bring(history.engine, other, judge=None)


def test_a_broken_response_is_in_no_number_and_is_counted(history):
    (number,) = rows(history.engine, "SELECT min(id) FROM response")[0]
    mending.mark_broken(history.engine, number, Broken.CUT_OFF, actor=ANA)
    assert [model for model, *_ in responses(history)] == ["model-a"]
    with reading(history.engine) as session:
        assert contents.counts(session)["judge_verdicts"] == 4  # of p2: three by Judge A, one by Judge B
        assert mending.broken(session)[["model", "prompt_id", "reason"]].to_numpy().tolist() == [
            ["model-a", "p1", "cut_off"]
        ]
    assert export.mended(history.engine) == ["1 response marked as broken (cut off 1): in no row and no number."]
    assert "1 further response was broken (cut off 1) and enters no number." in paragraph(facts(history.engine))
    before_it = shown(history.engine)
    mending.mark_broken(history.engine, number, None, actor=ANA)
    prepare_search(history.engine)
    assert shown(history.engine) != before_it
    assert shown(history.engine) == twin(history, history.folder, {})


def test_a_file_with_a_broken_response_meets_it_and_does_not_bring_it_back(history):
    (number,) = rows(history.engine, "SELECT min(id) FROM response")[0]
    mending.mark_broken(history.engine, number, Broken.EMPTY, actor=ANA)
    again = write(history.folder / A, results(entry("p1", (False, False, False))))
    assert bring(history.engine, again, judge="Judge D").responses_new == 0
    assert len(responses(history)) == 1


def test_what_is_not_there_cannot_be_marked(history):
    with pytest.raises(NotFound, match="expected the number of a response of the study, got 99"):
        mending.mark_broken(history.engine, 99, Broken.EMPTY, actor=ANA)
    with pytest.raises(NotFound, match="expected the number of a response that is marked as broken, got 1"):
        mending.mark_broken(history.engine, 1, None, actor=ANA)


CALLED = {"model-a": "Alder", "Judge A": "Magpie", "Judge B": "Jay", "healthbench": "hb"}


def renamed(history: History) -> None:
    for kind, was in (
        (Kind.MODEL, "model-a"),
        (Kind.JUDGE, "Judge A"),
        (Kind.JUDGE, "Judge B"),
        (Kind.DATASET, "healthbench"),
    ):
        renaming.rename(history.engine, kind, was, CALLED[was], actor=ANA)


def test_a_renamed_study_agrees_with_one_that_always_had_the_names_of_now(history):
    renamed(history)
    for name in ("judge_again.jsonl", "reads.csv"):  # with the old names
        history.do("import", name)
    prepare_search(history.engine)
    found, expected = shown(history.engine), twin(history, history.folder, CALLED)
    assert found == expected, differences(found, expected)
    with reading(history.engine) as session:
        assert renaming.changed(session)["name"].tolist() == ["Alder", "Magpie", "Jay", "hb"]
        assert verify(session).holds


def test_a_file_with_the_new_names_meets_what_has_them_now(history):
    renamed(history)
    row = judged("p1", position=3, judge="Jay", model="Alder")
    report = bring(history.engine, write(history.folder / "new.jsonl", lines(row)), dataset="hb", judge=None)
    assert (report.verdicts_new, report.without_partner) == (1, 0)
    assert rows(history.engine, "SELECT count(*) FROM model") == [(1,)]


def test_a_name_comes_back(history):
    before = shown(history.engine)
    renaming.rename(history.engine, Kind.MODEL, "model-a", "Alder", actor=ANA)
    renaming.rename(history.engine, Kind.MODEL, "Alder", "Alder-2", actor=ANA)
    renaming.rename(history.engine, Kind.MODEL, "Alder-2", "model-a", actor=ANA)
    assert shown(history.engine) == before


def test_two_names_become_one_as_if_there_had_never_been_two(history, tmp_path):
    third = write(tmp_path / B, results(entry("p3", answer="Wait.")))
    bring(history.engine, third)
    renaming.rename(history.engine, Kind.MODEL, "model-b", "model-a", merge=True, actor=ANA)
    renaming.rename(history.engine, Kind.JUDGE, "Judge B", "Judge C", actor=ANA)
    assert [model for model, *_ in responses(history)] == ["model-a"] * 3
    with reading(history.engine) as session:
        assert contents.models(session) == ["model-a"]
        assert verify(session).holds
    bring(history.engine, write(tmp_path / "more.csv", b"example_id,model,text\np2,model-b,Come back.\n"), judge=None)
    assert {model for model, *_ in responses(history)} == {"model-a"}


def test_two_names_that_stand_beside_each_other_are_not_made_one(history):
    history.do("import", B)
    with pytest.raises(
        OverreadError, match=r"1 response of 'model-b' cannot be told from one of 'model-a': to the same example"
    ):
        renaming.rename(history.engine, Kind.MODEL, "model-b", "model-a", merge=True, actor=ANA)
    with pytest.raises(OverreadError, match=r"3 verdicts of 'Judge B' cannot be told from those of 'Judge A'"):
        renaming.rename(history.engine, Kind.JUDGE, "Judge B", "Judge A", merge=True, actor=ANA)


@pytest.mark.parametrize(
    ("kind", "was", "name", "merge", "match"),
    [
        (Kind.MODEL, "nobody", "x", False, "model: expected one of model-a, got 'nobody'"),
        (Kind.MODEL, "model-a", " ", False, "name: expected 1 to 200 printable characters"),
        (Kind.MODEL, "model-a", "model-a", False, "expected another name"),
        (Kind.JUDGE, "Judge A", "Judge B", False, "merge them"),
        (Kind.JUDGE, "Judge A", "Judge Z", True, "nothing to merge with"),
        (Kind.JUDGE, "Judge A", "parser", False, "has a meaning in Overread"),
        (Kind.DATASET, "healthbench", "acuity", False, "has a meaning in Overread"),
    ],
)
def test_a_name_that_cannot_be_is_refused(history, kind, was, name, merge, match):
    with pytest.raises(OverreadError, match=match):
        renaming.rename(history.engine, kind, was, name, merge=merge, actor=ANA)


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO hidden_row (table_name, row_id, is_broken) VALUES ('response', 1, false)",
        "INSERT INTO other_name (kind, was, now) VALUES ('model', 'model-a', 'Best')",
        "INSERT INTO same_as (table_name, row_id, as_id) VALUES ('rater', 1, 2)",
    ],
)
def test_the_trail_finds_what_was_hidden_or_renamed_past_the_program(history, statement):
    history.do("withdraw", "judge.jsonl")
    with reading(history.engine) as session:
        assert verify(session).holds
    tampered(history.engine, statement)
    with reading(history.engine) as session:
        assert any("is not what the last act on it left" in fault for fault in verify(session).faults)


def test_a_query_that_groups_by_a_number_alone_goes_on_once_something_is_hidden(database_url, tmp_path):
    """PostgreSQL takes the name of a model, grouped by its number, from the table; not from the rows that are shown in its place."""
    history = History(database_url, tmp_path)
    for name in ("examples.jsonl", A, B):
        history.do("import", name)
    model, response = TABLES["model"].c, TABLES["response"].c
    counted = sa.select(model.id, model.name, sa.func.count(response.id)).join(
        response.id.table, response.model_id == model.id
    )
    statement = counted.group_by(model.id).order_by(model.name)
    for act, expected in ((("look",), {"model-a": 2, "model-b": 2}), (("withdraw", B), {"model-a": 2})):
        history.do(*act)
        with reading(history.engine) as session:
            assert {name: n for _, name, n in session.connection().execute(statement)} == expected
    history.engine.dispose()


def test_a_name_is_given_back_and_what_was_merged_is_two_again(history):
    history.do("import", C)
    before = shown(history.engine)
    renaming.rename(history.engine, Kind.MODEL, "model-c", "model-a", merge=True, actor=ANA)
    renaming.rename(history.engine, Kind.MODEL, "model-a", "Alder", actor=ANA)
    assert {model for model, *_ in responses(history)} == {"Alder"}
    renaming.take_back(history.engine, Kind.MODEL, "model-c", actor=ANA)
    assert {model for model, *_ in responses(history)} == {"Alder", "model-c"}
    renaming.take_back(history.engine, Kind.MODEL, "model-a", actor=ANA)
    assert shown(history.engine) == before
    (detail,) = rows(history.engine, "SELECT detail FROM audit_event ORDER BY id DESC LIMIT 1")[0]
    assert {key: json.loads(detail)[key] for key in ("kind", "was", "name")} == {
        "kind": "model",
        "was": "Alder",
        "name": "model-a",
    }
    with reading(history.engine) as session:
        assert verify(session).holds


def test_a_name_is_given_back_only_where_it_was_changed_and_nothing_else_gets_it_meanwhile(history):
    with pytest.raises(
        OverreadError, match=r"expected a first name that was changed \(none, nothing was renamed\), got 'model-a'"
    ):
        renaming.take_back(history.engine, Kind.MODEL, "model-a", actor=ANA)
    history.do("import", B)
    renaming.rename(history.engine, Kind.MODEL, "model-a", "Alder", actor=ANA)
    with pytest.raises(OverreadError, match="what came as 'model-a' is called 'Alder' now"):
        renaming.rename(history.engine, Kind.MODEL, "model-b", "model-a", actor=ANA)
    assert {model for model, *_ in responses(history)} == {"Alder", "model-b"}
    renaming.rename(history.engine, Kind.MODEL, "Alder", "model-a", actor=ANA)  # its own it may have
    assert {model for model, *_ in responses(history)} == {"model-a", "model-b"}


def test_what_was_merged_into_a_model_that_gets_its_name_back_keeps_the_common_name(history):
    history.do("import", C)
    other = write(history.folder / "again.csv", b"example_id,model,text,sample_index\np3,model-d,Rest.,1\n")
    bring(history.engine, other, judge=None)
    renaming.rename(history.engine, Kind.MODEL, "model-a", "Alder", actor=ANA)
    for name in ("model-c", "model-d"):
        renaming.rename(history.engine, Kind.MODEL, name, "Alder", merge=True, actor=ANA)
    renaming.take_back(history.engine, Kind.MODEL, "model-a", actor=ANA)
    assert [model for model, *_ in responses(history)] == ["Alder", "Alder", "model-a", "model-a"]
    with reading(history.engine) as session:
        assert contents.models(session) == ["Alder", "model-a"]


def test_a_merged_judge_whose_verdicts_were_replaced_since_stays_merged_until_that_import_is_withdrawn(history):
    def verdict(file: str, prompt_id: str, judge: str, *, met: bool = True) -> None:
        row = judged(prompt_id, position=3, judge=judge, met=met)
        bring(history.engine, write(history.folder / file, lines(row)), judge=None)

    verdict("c.jsonl", "p1", "Judge C")
    verdict("d.jsonl", "p2", "Judge E")
    renaming.rename(history.engine, Kind.JUDGE, "Judge C", "Judge E", merge=True, actor=ANA)
    verdict("e.jsonl", "p1", "Judge E", met=False)
    with pytest.raises(OverreadError, match="1 verdict of 'Judge C' was replaced since the merge"):
        renaming.take_back(history.engine, Kind.JUDGE, "Judge C", actor=ANA)
    history.kept.append(("import", "e.jsonl"))
    history.do("withdraw", "e.jsonl")
    renaming.take_back(history.engine, Kind.JUDGE, "Judge C", actor=ANA)
    with reading(history.engine) as session:
        assert {"Judge C", "Judge E"} <= set(contents.judges(session))


def test_a_search_finds_no_conversation_by_words_of_a_withdrawn_or_broken_answer(database_url, tmp_path):
    history = History(database_url, tmp_path)
    for name in ("examples.jsonl", A, B):
        history.do("import", name)
    prepare_search(history.engine)

    def found(words: str) -> list[str]:
        with reading(history.engine) as session:
            return list(browse.examples(session, Filters(search=words))["prompt_id"])

    assert (found("go today"), found("wait"), found("swea")) == (["p2"], ["p3"], ["p1", "p2", "p3"])
    history.do("withdraw", B)
    assert (found("go today"), found("wait"), found("swea")) == (["p2"], [], ["p1", "p2", "p3"])
    history.do("withdraw", A)
    assert (found("go today"), found("wait")) == ([], [])
    history.do("restore", A)
    assert (found("go today"), found("wait")) == (["p2"], [])
    history.engine.dispose()
