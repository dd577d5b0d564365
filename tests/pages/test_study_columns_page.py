"""The Study page takes a file with names of its own: it proposes, shows, says what is missing, imports, and keeps the mapping."""

from html import unescape

import pytest

from evalcore.importing import mapping
from evalcore.rubric.scores import mean_scores, scores_of_verdicts
from evalcore.study import frames, store
from evalcore.study.db import reading, writing
from evalcore.study.schema import RaterKind
from tests.importing.shapes import SCORES, long_table, workbook
from tests.invented import bring, entry, results, rows, verdicts, write
from tests.page_steps import LEAD, check


def scores(engine):
    with reading(engine) as session:
        table = mean_scores(scores_of_verdicts(frames.verdicts(session, kind=RaterKind.JUDGE), ["overall"]))
    return dict(zip(table["model"], table["raw_mean"], strict=True))


def field(widgets, name):
    return next(one for one in widgets if str(one.key).endswith(f"_{name}"))


def test_a_table_with_names_of_its_own_needs_one_word_explained(engine, location, open_page):
    shape = long_table()
    app = open_page(location, "study", LEAD)
    app.file_uploader(key="upload").upload(shape.name, shape.content).run()
    shown = unescape(check(app))
    assert "Still missing: whether 'trifft zu' means met or not met." in shown
    assert app.button(key="import").disabled
    assert verdicts(engine) == []
    field(app.multiselect, "met").set_value(["trifft zu"]).run()
    shown = unescape(check(app))
    assert "Nothing is missing" in shown
    assert "Can I swim with a cold?" in shown
    app.button(key="import").click().run()
    assert "8 new verdicts" in unescape(check(app))
    assert scores(engine) == SCORES
    with reading(engine) as session:
        known = mapping.kept(session)
    assert known["long"].met == ("trifft zu",)
    assert rows(engine, "SELECT action FROM audit_event WHERE action = 'mapping kept'") == [("mapping kept",)]
    app = open_page(location, "study", LEAD)
    app.file_uploader(key="upload").upload("again.csv", shape.content).run()
    app.selectbox(key="import_format").set_value("mapping: long").run()
    app.button(key="import").click().run()
    assert "This file was imported before" in unescape(check(app))


def test_a_workbook_with_grades_from_one_to_five_is_imported_as_it_is_proposed(engine, location, open_page):
    shape = workbook()
    app = open_page(location, "study", LEAD)
    app.file_uploader(key="upload").upload(shape.name, shape.content).run()
    assert "Nothing is missing" in unescape(check(app))
    assert field(app.number_input, "from").value == 4
    app.button(key="import").click().run()
    assert "8 new verdicts" in unescape(check(app))
    assert scores(engine) == SCORES


def test_what_the_file_does_not_say_is_typed(engine, location, open_page):
    content = b"question,answer,correct\nCan I swim?,With a light cold you can.,yes\n"
    app = open_page(location, "study", LEAD)
    app.file_uploader(key="upload").upload("mine.csv", content).run()
    shown = unescape(check(app))
    assert "closest format: " in shown
    assert "Still missing: which column is the criterion; who answered (Model); who graded (Judge)." in shown
    field(app.text_input, "criterion_typed").input("Is right.").run()
    next(one for one in app.text_input if one.label == "Model").input("wren").run()
    next(one for one in app.text_input if one.label == "Judge").input("Magpie").run()
    app.button(key="import").click().run()
    check(app)
    assert verdicts(engine)[0][1:] == ("wren", 0, 1, "Magpie", "met")
    assert rows(engine, "SELECT text FROM criterion") == [("Is right.",)]


def test_what_is_no_file_of_rows_is_told_in_a_sentence(engine, location, open_page):
    app = open_page(location, "study", LEAD)
    app.file_uploader(key="upload").upload("notes.xlsx", b"PK\x03\x04 no workbook").run()
    app.selectbox(key="import_format").set_value("columns of your own").run()
    shown = unescape(check(app))
    assert "notes.xlsx: expected CSV, JSON Lines, JSON, Parquet or XLSX, got a zip that is no workbook" in shown
    assert [button.key for button in app.button if button.key == "import"] == []


@pytest.mark.parametrize(("who", "is_told"), [(LEAD, True), ("Dr. Ines Vale", False)])
def test_how_an_answer_ended_is_told_to_a_lead_and_to_no_reader(engine, location, open_page, tmp_path, who, is_told):
    with writing(engine) as session:
        store.add_person(session, "Dr. Ines Vale", roles=["reviewer"], actor="set-up")
    path = tmp_path / "t.csv"
    path.write_text(
        "conversation,model,text,finish_reason,date\nCan I swim?,wren,With a light cold,length,2026-11-18\n"
    )
    bring(engine, path)
    shown = check(open_page(location, "browse", who, example="1"))
    assert "With a light cold" in shown
    assert ("made on 2026-11-18 · ended by length" in shown) is is_told


def test_labels_of_physicians_in_columns_of_their_own_are_imported_as_their_reads(
    engine, location, open_page, tmp_path
):
    bring(
        engine,
        write(tmp_path / "healthbench_wren_20260101_101010_allresults.json", results(entry("p1"))),
        judge="Magpie",
    )
    lines = [
        "case,system,item,doctor,verdict,why",
        "p1,wren,1,Dr. Vale,trifft zu,ja",
        "p1,wren,2,Dr. Vale,fehlt,",
        "p1,wren,1,Dr. Okri,fehlt,nein",
    ]
    app = open_page(location, "study", LEAD)
    app.file_uploader(key="upload").upload("labels.csv", "\n".join(lines).encode()).run()
    holds = next(one for one in app.segmented_control if str(one.key).endswith("_holds"))
    holds.set_value("verdict-table").run()
    wanted = {
        "example_id": "case",
        "model": "system",
        "criterion_position": "item",
        "rater": "doctor",
        "label": "verdict",
        "explanation": "why",
    }
    for name, column in wanted.items():
        field(app.selectbox, name).set_value(column).run()
    assert "Still missing: whether " in unescape(check(app))
    field(app.multiselect, "met").set_value(["trifft zu"]).run()
    field(app.multiselect, "not_met").set_value(["fehlt"]).run()
    shown = unescape(check(app))
    assert "Nothing is missing" in shown
    app.button(key="import").click().run()
    assert "3 new verdicts" in unescape(check(app))
    found = rows(
        engine,
        "SELECT r.name, v.label, v.stage FROM verdict v JOIN rater r ON r.id = v.rater_id WHERE r.kind = 'reviewer' ORDER BY v.id",
    )
    assert found == [("Dr. Vale", "met", "first"), ("Dr. Vale", "not_met", "first"), ("Dr. Okri", "not_met", "first")]
