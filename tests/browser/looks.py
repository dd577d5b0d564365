"""What a screen must not have, in light or dark, at any width: faults of accessibility, and what scrolls sideways."""

from importlib.resources import files
from typing import Literal

from playwright.sync_api import Page, ViewportSize, expect

from tests.browser.steps import settled

AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")

# Streamlit's own fault, which no page can mend: the sections of its navigation stand as blocks between list and items.
NOT_OURS = "[data-testid=stSidebarNavItems]"

DARK_WIDTH = 1600

# In the dark only colours differ, so there only their contrast is looked at: each screen is looked at in light too.
LOOK = """where => axe.run(where, {
    resultTypes: ["violations"],
    ...(matchMedia("(prefers-color-scheme: dark)").matches ? { runOnly: ["color-contrast"] } : {}),
})"""


def looked_at(page: Page, where: str, *, dark_width: int = DARK_WIDTH) -> list[str]:
    """What is wrong with a screen as it stands, and then in the dark, on a wider screen unless told; it is left as it was.

    Streamlit's client follows the browser from light to dark. Words inside figures keep their ink until the script runs again, but axe-core does
    not look at that in either theme: tests of the figures do.
    """
    found = _faults_and_widths(page, where)
    size = page.viewport_size
    assert size is not None
    _turn(page, "dark", {**size, "width": dark_width})
    found += _faults_and_widths(page, f"{where}, dark")
    _turn(page, "light", size)
    return found


def _faults_and_widths(page: Page, where: str) -> list[str]:
    return faults(page, where) + [f"{where}: {wide}" for wide in too_wide(page)]


def _turn(page: Page, scheme: Literal["light", "dark"], size: ViewportSize) -> None:
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size(size)
    expect(page.get_by_test_id("stApp")).to_have_css("color-scheme", scheme)


def faults(page: Page, where: str) -> list[str]:
    """Serious and critical violations by axe-core, each with its first elements, once the screen is drawn."""
    settled(page)
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE)  # through the debugger: the policy lets no script in by an element
    result = page.evaluate(LOOK, {"include": [["html"]], "exclude": [[NOT_OURS]]})
    return [
        f"{where}: {rule['id']} ({rule['impact']}) at {node['html'][:160]} {node['failureSummary'][:200]}"
        for rule in result["violations"]
        if rule["impact"] in ("serious", "critical")
        for node in rule["nodes"][:3]
    ]


def too_wide(page: Page) -> list[str]:
    """What scrolls sideways and should not."""
    return page.evaluate(
        """() => [document.documentElement, ...document.querySelectorAll("[data-testid=stMain], .st-key-reading, .st-key-rubric, .st-key-rows, .st-key-desk, .stButtonGroup [role=radiogroup]")]
            .filter(e => e.scrollWidth > e.clientWidth).map(e => `${e.className || e.tagName}: ${e.scrollWidth} > ${e.clientWidth}`)"""
    )


def small_targets(page: Page) -> list[str]:
    """What is pressed on this page and too small for a finger: below 44 pixels. What Streamlit draws inside its fields and above its tables is left out."""
    return page.evaluate(
        """() => [...document.querySelectorAll("[data-testid=stMain] :is(button, [role=tab], [role=radio], summary)")]
            .filter(e => e.checkVisibility() && !e.closest("[data-testid=stElementToolbar], [data-testid=stMultiSelect], [data-testid=stTooltipHoverTarget], .or-fold, .or-foot"))
            .filter(e => e.getBoundingClientRect().height < 43.5)
            .map(e => `${e.closest("[data-testid]").dataset.testid} ${e.innerText.slice(0, 40)}: ${e.getBoundingClientRect().height} high`)"""
    )
