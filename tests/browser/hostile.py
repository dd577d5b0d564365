"""A study whose every text would run, load or link something, served beside a server that hears what is asked for."""

import json
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, expect

from evalcore.importing import import_file
from evalcore.reading import overriding
from evalcore.reading.reviewing import Decision
from evalcore.study import contents, store
from evalcore.study.db import open_study, reading, writing
from evalcore.study.schema import Administrator, Cause, Label, Role, Severity
from tests.browser import steps
from tests.browser.canary import Canary
from tests.browser.server import AppServer

# Elements and attributes that the browser could load from, run, or lead to; every tree, shadow roots too.
FOUND = """
canary => {
  const found = [];
  const walk = root => {
    for (const element of root.querySelectorAll("*")) {
      if (element.shadowRoot) walk(element.shadowRoot);
      for (const { name, value } of element.attributes) {
        if (/^on/i.test(name)) found.push(`${element.tagName} ${name}`);
        const words = ["title", "aria-label", "alt", "placeholder", "value", "content", "data-unformatted"].includes(name);
        if (value.includes(canary) && !words) found.push(`${element.tagName} ${name}=${value.slice(0, 80)}`);
        if (/^\\s*(javascript|vbscript):/i.test(value) && !words) found.push(`${element.tagName} ${name}=${value.slice(0, 80)}`);
      }
      if (["IFRAME", "OBJECT", "EMBED", "MARQUEE", "BASE", "VIDEO", "AUDIO"].includes(element.tagName)) found.push(element.tagName);
      if (element.matches("a, form, button") && element.textContent.trim() === "CANARY-LINK") found.push(element.tagName);
      if (element.matches(".katex, .hostile-class, #hostile-id, .stMarkdownColoredText")) found.push(element.className);
      if (element.tagName === "STYLE" && !element.sheet?.cssRules?.length && element.textContent.includes(canary)) found.push("STYLE");
    }
  };
  walk(document);
  for (const sheet of document.styleSheets) {
    for (const rule of sheet.cssRules) if (rule.cssText.includes(canary)) found.push(rule.cssText.slice(0, 80));
  }
  if (window.__pwned) found.push("window.__pwned = " + window.__pwned);
  return found;
}
"""


def vectors(canary: str, field: str) -> list[str]:
    """Ways to make a page load, run or link; each names its field, so that a request tells where it came from."""
    at = f"{canary}/{field}"
    run = "window.__pwned=1;alert(1)"
    return [
        f"![inline]({at}/md.png) ![reference][{field}]",
        f"[{field}]: {at}/reference.png",
        f"[CANARY-LINK]({at}/link) [CANARY-LINK](javascript:{run}) <{at}/angle> {at}/bare www.{field}.example",
        f'<img src="{at}/img.png" onerror="{run}"><img srcset="{at}/set.png 1x"><a href="{at}/a">CANARY-LINK</a>',
        f"<script>{run}</script><script src={at}/script.js></script>",
        f'<svg onload="{run}"><image href="{at}/svg.png"/><use href="{at}/use.svg#x"/></svg>',
        f"<style>@import url({at}/import.css); body{{background:url({at}/background.png);display:none}}</style>",
        f'<link rel=stylesheet href="{at}/style.css"><base href="{at}/"><meta http-equiv=refresh content="0;url={at}/refresh">',
        f'<iframe src="{at}/frame"></iframe><object data="{at}/object"></object><embed src="{at}/embed">',
        f'<video src="{at}/video.mp4" autoplay poster="{at}/poster.png"></video><audio src="{at}/audio.mp3" autoplay></audio>',
        f'<form action="{at}/form"><button autofocus onfocus="{run}">CANARY-LINK</button></form>',
        f'<details open ontoggle="{run}"><summary>CANARY-LINK</summary></details><marquee onstart="{run}">',
        f"</div></div></section></details></style></title></textarea><img src=x onerror={run}>",
        f"\"'`><b class=hostile-class id=hostile-id style='position:fixed;inset:0;background:url({at}/style.png)'>over all</b>",
        ':red[red] :material/home: :heart: :blue-background[blue] :color[x]{background="url(' + at + '/color.png)"}',
        f"costs $5, or $x^2$ and $$\\includegraphics{{{at}/tex.png}}$$ $\\href{{{at}/tex}}{{CANARY-LINK}}$",
        "# Heading\n\n| a | b |\n|---|---|\n| 1 -> 2 | 3 >= 2 -- ok |",
        f"<a href=data:text/html,<script>{run}</script>>CANARY-LINK</a> ![d](data:image/svg+xml;base64,PHN2Zy8+)",
        f'```mermaid\ngraph TD; A["<img src={at}/mermaid.png>"]-->B\n```',
        "\u202egnp.evil\u202c \u2066isolated\u2069 \u200fright-to-left",
        "W" * 2_000,
        "Z\u0310\u0324\u035a\u0361a\u0329\u0346\u0354l\u0332\u0301g\u0347\u030eo\u0353\u0307" * 20,
        "{{constructor.constructor('alert(1)')()}} ${alert(1)} %{y} <%= 1 %> %s {0}",
    ]


def text_of(canary: str, field: str) -> str:
    """All of it in one long text."""
    return "\n\n".join(vectors(canary, field))


def name_of(canary: str, field: str) -> str:
    """The worst of it in one line, for a name."""
    chosen = vectors(canary, field)
    return f"{field} " + " ".join(chosen[index] for index in (0, 3, 4, 14, 13, 15)).replace("\n", " ")


@dataclass(frozen=True)
class Hostile:
    """A server on a study whose every text is hostile."""

    server: AppServer
    canary: Canary

    def name(self, field: str) -> str:
        """A hostile name."""
        return name_of(self.canary.url, field).strip()


def write_study(folder: Path, canary: str) -> None:
    """Two conversations, three models' answers to each, two judges' verdicts, two physicians' verdicts; then people."""
    engine = open_study(str(folder / "overread.db"))

    def name(field: str) -> str:
        return name_of(canary, field)

    def text(field: str) -> str:
        return text_of(canary, field)

    with writing(engine) as session:
        store.ensure_study(session)
        for number, roles in enumerate(([Role.LEAD, Role.REVIEWER], [Role.REVIEWER], [Role.RESEARCHER])):
            store.add_person(
                session,
                name(f"person{number}"),
                roles=roles,
                specialties=[name(f"specialty{number}")],
                languages=["en", name("language")],
                actor=name("actor"),
            )
    criteria = [
        {
            "criterion": text(f"criterion{n}"),
            "points": points,
            "tags": [f"axis:{name('axis')}", f"cluster:{name('cluster')}"],
        }
        for n, points in enumerate((7, -4))
    ]
    prompts = [
        [
            {"role": "user", "content": text(f"prompt{n}")},
            {"role": "assistant", "content": text(f"turn{n}")},
            {"role": "user", "content": text(f"last{n}")},
        ]
        for n in range(2)
    ]
    tags = [f"theme:{name('theme')}", f"physician_agreed_category:{name('category')}"]
    examples = [
        {
            "prompt_id": name(f"prompt_id{n}"),
            "prompt": prompt,
            "rubrics": criteria,
            "example_tags": tags,
            "canary": name("canary"),
        }
        for n, prompt in enumerate(prompts)
    ]
    path = folder / "written"
    path.write_text("\n".join(json.dumps(example) for example in examples))
    asked = {"actor": Administrator(name=name("importer")), "dataset": name("dataset")}
    import_file(engine, path, name=name("file") + ".jsonl", **asked)
    for model in range(3):
        entries = [
            {
                "prompt_id": example["prompt_id"],
                "prompt": [{"role": "system", "content": text("system")}, *example["prompt"]],
                "completion": [{"role": "assistant", "content": text(f"answer{model}")}],
                "rubric_items": [
                    {**item, "criteria_met": model != 0, "explanation": text(f"explanation{model}")}
                    for item in criteria
                ],
            }
            for example in examples
        ]
        path.write_text(json.dumps({"score": 0, "metrics": {}, "metadata": {"example_level_metadata": entries}}))
        for judge in ("judge0", "judge1"):
            import_file(
                engine, path, name=name("file") + ".json", model=name(f"model{model}"), judge=name(judge), **asked
            )
    path.unlink()
    with reading(engine) as session:
        judge = contents.judges(session)[0]
        readers = [person for person in contents.people(session) if Role.REVIEWER in person.roles]
    for reader, label in zip(readers, (Label.MET, Label.CANNOT_ASSESS), strict=True):
        said = Decision(label=label, cause=Cause.OTHER, severity=Severity.MILD, note=text("note"))
        overriding.give_verdict(engine, reader, response_id=1, criterion_id=1, decision=said, judge=judge, seen=None)
    engine.dispose()


class Visit:
    """A walk through the pages; `look` judges what is on the screen."""

    def __init__(self, browser: Browser, hostile: Hostile, *, width: int = 1280) -> None:
        self.hostile = hostile
        self.context = steps.new_context(browser, width=width)
        self.complaints = steps.Complaints()
        self.complaints.hear(self.context)
        self.page = self.context.new_page()
        self.asked = len(hostile.canary.requests)

    def look(self, where: str, *shown: str) -> None:
        """Nothing ran, loaded or links; the texts are on the screen, letter for letter."""
        for text in shown:
            expect(self.page.locator("body"), where).to_contain_text(text, use_inner_text=True)
        assert self.page.evaluate(FOUND, self.hostile.canary.url) == [], where
        assert self.hostile.canary.requests[self.asked :] == [], where
        assert self.complaints.all == [], where

    def hover_tooltips(self) -> None:
        """The mouse rests on everything that explains itself."""
        for target in self.page.locator(
            "[data-testid=stTooltipHoverTarget]:visible, [data-testid=stTooltipIcon]:visible"
        ).all():
            target.hover(force=True)
            self.page.wait_for_timeout(250)  # a tooltip comes after a moment, and may never come: nothing to wait for

    def choose(self, field: str, path: str = "/") -> None:
        """Become a person by the card."""
        self.page.goto(self.hostile.server.url + path)
        cards = self.page.locator("a.or-profile")
        expect(cards).to_have_count(3)
        self.look("welcome", self.hostile.name("person0"), self.hostile.name("specialty1"))
        cards.filter(has_text=f"{field} ").first.click()
        expect(self.page.locator(".or-signed b")).to_contain_text(field)
