"""The Study page takes anybody's own data, and says before and after what of a file is not read."""

from html import unescape

from tests.invented import verdicts
from tests.page_steps import LEAD, check

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
