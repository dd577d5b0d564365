"""The Study page takes anybody's own data, and says before and after what of a file is not read."""

import re
from html import unescape

from streamlit.delta_generator import DeltaGenerator

from evalcore.importing import staging
from tests.invented import verdicts
from tests.page_steps import LEAD, check
from tests.part_steps import in_parts

TABLE = (
    "question,answer,model,criterion,points,grade,judge,seed\n"
    "Can I swim with a cold?,With a fever no.,wren,Says not to swim with a fever.,6,yes,Magpie,7\n"
    "Can I swim with a cold?,With a fever no.,wren,Recommends a medicine.,-4,no,Magpie,\n"
)
UNREAD = "1 field is not read, with the number of rows that hold something there: seed (1)"


def test_a_long_table_is_checked_then_imported_and_its_unread_column_is_told_both_times(engine, location, open_page):
    app = open_page(location, "study", LEAD)
    shown = unescape(check(app))
    assert "A judge's grades as a long table, one row a criterion: CSV, JSON Lines or Parquet" in shown
    assert "Template grade-table.csv" in [button.label for button in app.get("download_button")]
    app.file_uploader(key="upload").upload("mine.csv", TABLE.encode()).run()
    app.button(key="check").click().run()
    shown = unescape(check(app))
    assert "mine.csv: grade-table, 2 rows, would be imported; nothing was changed" in shown
    assert UNREAD in shown
    assert verdicts(engine) == []
    app.button(key="import").click().run()
    shown = unescape(check(app))
    assert "2 new verdicts" in shown
    assert UNREAD in shown
    assert [label for *_, label in verdicts(engine)] == ["met", "not_met"]


def test_an_import_says_how_far_it_is_and_how_long_it_takes_while_it_is_checked_and_while_it_is_written(
    engine, location, open_page, monkeypatch
):
    texts: list[str] = []
    monkeypatch.setattr(DeltaGenerator, "progress", lambda bar, _value, text: (texts.append(text), bar)[1])
    monkeypatch.setattr(
        staging, "TOLD_SECONDS", 60.0
    )  # else told beside the copy, which stands as a second connection here
    rows = (f"Question {n}?,{'Rest. ' * 3_000},wren,Says to rest.,5,yes,Magpie,\n" for n in range(200))
    content = TABLE.partition("\n")[0] + "\n" + "".join(rows)
    app = open_page(location, "study", LEAD)
    app.file_uploader(key="upload").upload("mine.csv", content.encode()).run()
    with in_parts():
        app.button(key="import").click().run()
    assert "200 new verdicts" in unescape(check(app))
    size = f"{len(content) / 1e6:.1f}"
    begun = [text for text in texts if re.fullmatch(rf"Read \d\.\d of {size} MB, about \d+ s left", text)]
    written = [text for text in texts if re.fullmatch(rf"Written \d\.\d of {size} MB(, about \d+ s left)?", text)]
    assert begun
    assert written
    assert texts.index(begun[-1]) < texts.index(written[0])
