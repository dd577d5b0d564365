"""The Judges page in a browser: every section is drawn, an alarm leads to its conversation; and the bundle of Export is a zip with a manifest."""

import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from evalcore.export import tables as export_tables
from evalcore.importing import demo, import_file
from evalcore.study.db import open_study
from evalcore.study.schema import Administrator
from tests.browser import steps
from tests.browser.server import AppServer, running_app

LEAD, CONTRARY = "Mina Castell", "Contrary"
SECTIONS = {
    "Record": "Record of the judge",
    "Against physicians": "Judges against physicians",
    "Criteria": "Criteria: judge against physicians",
    "Between physicians": "Agreement between physicians",
    "Versions and families": "Judge versions and model families",
}


@pytest.fixture(scope="module")
def contrary(demo_folder: Path) -> Iterator[AppServer]:
    """The demo study with a third judge, which says the opposite of the first: it reads every criterion the wrong way round."""
    engine = open_study(str(demo_folder / "overread.db"))
    verdicts = export_tables.table(engine, "verdicts", export_tables.Part(judge=demo.JUDGE))
    labels = verdicts.loc[verdicts["rater_kind"].eq("judge")]
    opposite = labels["label"].map({"met": "not_met", "not_met": "met"})
    path = demo_folder / "contrary.csv"
    path.write_bytes(export_tables.to_csv(labels.assign(rater=CONTRARY, label=opposite)))
    import_file(engine, path, actor=Administrator(name=LEAD))
    engine.dispose()
    with running_app(demo_folder) as server:
        yield server


def show(page: Page, section: str) -> None:
    """Another section, drawn to its foot."""
    steps.keyed(page, "judges_show").get_by_role("radio", name=section, exact=True).click()
    expect(page.locator(".or-heading h1")).to_contain_text(SECTIONS[section])
    expect(page.locator(".or-foot").last).to_be_visible()


@pytest.mark.slow
def test_every_section_shows_a_finding_with_its_figure_and_the_judge_is_kept_over_them(page: Page, contrary: AppServer):
    steps.choose_reader(page, contrary, LEAD, path="/judges?judges_judge=Wren")
    for section in SECTIONS:
        show(page, section)
        expect(page.locator(".or-finding").first).not_to_be_empty()
        if section != "Record":  # no label has been shown after a blind read in the demo study
            expect(page.locator(".stPlotlyChart .main-svg").first).to_be_visible()
        chosen = steps.keyed(page, "judges_judge").get_by_role("combobox")
        if section == "Between physicians":
            expect(chosen).to_have_count(0)
        else:
            expect(chosen).to_have_value("Wren")


@pytest.mark.slow
def test_a_row_with_an_alarm_lists_its_items_and_leads_to_the_conversation(page: Page, contrary: AppServer):
    query = f"?judges_show=Criteria&judges_judge={CONTRARY}&criteria_by=Axis"
    steps.choose_reader(page, contrary, LEAD, path=f"/judges{query}")
    expect(page.locator(".or-finding")).to_contain_text("raise an alarm")
    steps.table(page).click(position={"x": 150, "y": steps.ROW_PIXELS * 1.5})
    expect(page.locator(".or-warning")).to_contain_text("they go opposite ways")
    judged = page.locator(".or-judge").first
    expect(judged).to_contain_text(CONTRARY)
    model = judged.locator("small").inner_text().removeprefix("on the response of ")
    page.get_by_role("link", name="Open the conversation").first.click()
    expect(page.locator(".or-response h3 span")).to_have_text(model)
    assert f"judge={CONTRARY}" in page.url
    steps.settled(page)
    page.go_back()
    expect(page.locator(".or-heading h1")).to_contain_text(SECTIONS["Criteria"])
    expect(page.locator(".or-heading p")).to_contain_text(CONTRARY)
    expect(page.locator(".or-warning")).to_contain_text("they go opposite ways")


@pytest.mark.slow
def test_the_bundle_is_a_zip_with_a_manifest_of_its_files(page: Page, contrary: AppServer):
    steps.choose_reader(page, contrary, LEAD, path="/export")
    page.get_by_text("Methods, flow of the study and checklist").click()
    expect(page.get_by_text("We studied 90 responses")).to_be_visible()
    with page.expect_download() as downloading:
        steps.keyed(page, "bundle").get_by_role("button").click()
    path = downloading.value.path()
    with zipfile.ZipFile(io.BytesIO(Path(path).read_bytes())) as bundle:
        names = set(bundle.namelist())
        manifest = json.loads(bundle.read("manifest.json"))
    assert set(manifest["files"]) == names - {"manifest.json"}
    assert {"labels.csv", "methods.md", "agreement.csv", "corrected-scores.csv"} <= names
