"""Choose what to take away, look at it, download it."""

import io
from collections.abc import Callable
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from evalcore.export import acts, judging_material as material, methods, report as reporting, tables as export_tables
from evalcore.export.bundle import FILES
from evalcore.export.reporting import GROUND, INK
from evalcore.export.tables import CODEBOOK
from evalcore.judges.splits import SETS, SHARES, Split, check_shares
from evalcore.reading import exposing
from evalcore.study.policies import allows, check_can_export, check_can_read, own_act
from pages.shared import common, filters, glossary, html, routes, theme as shared_theme

PREVIEW_ROWS = 50
LARGE = 300_000  # verdicts: with more the page does not make a whole table only to show its first rows
WHOLE = html.Fold(10_000, 200)
NOT_LABELLED = "Nothing has been labelled yet. Begin with a file of results."
WHAT = {
    "labels": "Labels",
    "verdicts": "Verdicts",
    "scores": "Scores",
    "criteria": "Criteria at fault",
    "acuity": "Acuity",
    "cases": "Cases of triage",
    "meta-eval": "Meta-evaluation rows",
    "inspect": "Scores for Inspect",
    "split": "Sets for a judge",
}
MEANING = export_tables.MEANING | {
    "verdicts": "One row per standing verdict of a judge or a physician. The file can be imported again.",
    "acuity": "One row per standing verdict on the level of care: of a response, or of a case itself. The file can be imported again.",
    "cases": "One row per case of triage, model and format: what the case needs, by whom, and what the model's samples answer.",
    "criteria": "One row per criterion that readers or adjudicators call wrong, ambiguous or unclear, for the rubric's authors. Nobody is named.",
    "meta-eval": "One row per item that physicians read, in the format of HealthBench's meta-evaluation; names are replaced by hashes.",
    "inspect": material.SCORES_HOW,
    "split": material.SPLIT_HOW,
}
FORMATS = {"csv": "CSV", "parquet": "Parquet", "jsonl": "JSON Lines", "zip": "Zip of JSON Lines"}
ONLY = {"meta-eval": ["jsonl"], "inspect": ["jsonl"], "split": ["zip"]}
MIME = {
    "csv": "text/csv",
    "parquet": "application/vnd.apache.parquet",
    "jsonl": "application/x-ndjson",
    "md": "text/markdown",
    "svg": "image/svg+xml",
    "html": "text/html",
    "zip": "application/zip",
}
FOR_A_PAPER = (
    "The methods are written from what was done in this study; what it cannot know stands as [to fill in]. The bundle holds them with every table, the "
    "codebooks, the stated analysis, the flow of the study, the checklist, and the hash of each file."
)
SEEN = "You see others' verdicts in these rows and in every download: those conversations are no longer among your blind reads."


@st.cache_data(max_entries=4, show_spinner="Making the table")
def table(location: str, version: common.Version, what: str, part: export_tables.Part) -> pd.DataFrame:  # noqa: ARG001 - the key
    """A table of the export, made anew as soon as anything in the study has changed."""
    return export_tables.table(common.engine(), what, part)


@st.cache_data(max_entries=4, show_spinner=False)
def paper(location: str, version: common.Version, hidden: frozenset[int]) -> dict[str, Any]:  # noqa: ARG001 - the key
    """What was done, for a paper, without conversations that wait for the viewer's own first read; items: how many have each status."""
    done = methods.facts(common.engine(), blind=hidden)
    texts, tables = methods.documents(done, files=FILES)
    items = tables["checklist"].drop_duplicates(["guideline", "item"])["status"].value_counts()
    return {
        "paragraph": methods.paragraph(done),
        "methods": texts["methods.md"],
        "checklist": texts["checklist.md"],
        "flow": texts.get("flow.svg", ""),
        "items": {str(status): int(n) for status, n in items.items()},
    }


def n_verdicts() -> int:
    """How many labels anybody has given."""
    counts = common.read("counts")
    return int(counts["judge_verdicts"] + counts["physician_verdicts"])


def part(hidden: frozenset[int]) -> export_tables.Part:
    """Which part of the study."""
    choices = common.read("choices")
    judges = common.read("judges")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        judge = st.selectbox("Judge beside the physicians", judges, key="export_judge", placeholder="No judge yet")
        dataset = st.selectbox("Data set", choices["dataset"], index=None, placeholder="All", key="export_dataset")
        model = st.selectbox("Model", common.read("models", hidden), index=None, placeholder="All", key="export_model")
        look: dict[str, Any] = {"key": "export_theme", "format_func": filters.plain}
        theme = st.selectbox("Theme", choices["theme"], index=None, placeholder="All", **look)
        read_only = st.toggle("Only what a physician has read", key="export_read_only")
    return export_tables.Part(judge=judge, dataset=dataset, model=model, theme=theme, read_only=read_only, blind=hidden)


def preview(what: str, chosen: export_tables.Part) -> int:
    """The first rows as they will stand in the file, and how many there are."""
    if what == "split":
        material.check_split(common.engine(), viewer)
    if what in ONLY:
        shown, n_rows = outline(common.location(), common.version(), what, chosen, split() if what == "split" else None)
        if shown:
            st.html(shown)
        return n_rows
    rows = table(common.location(), common.version(), what, chosen)
    if rows.empty:
        st.html(html.notice("Nothing fits this part: choose a larger one." if n_verdicts() else NOT_LABELLED))
        if not n_verdicts():
            st.page_link(routes.STUDY, label="Import a file", icon=":material/database:")
        return 0
    exposing.preview(common.engine(), viewer, set(rows.head(PREVIEW_ROWS)["example_id"]), blind=chosen.blind)
    st.dataframe(rows.head(PREVIEW_ROWS), key="preview", hide_index=True, height=390, alt=f"First rows of {what}")
    return len(rows)


@st.cache_data(max_entries=16, show_spinner="Making the file")
def outline(
    location: str,  # noqa: ARG001 - the key
    version: common.Version,  # noqa: ARG001 - the key
    what: str,
    chosen: export_tables.Part,
    how: Split | None,
) -> tuple[str, int]:
    """What is shown of a file that is no table, as HTML, and how many rows it has; made anew as soon as anything in the study has changed."""
    if what == "meta-eval":
        content = export_tables.meta_eval_rows(common.engine(), chosen)
        if not content:
            return html.notice("No physician has read anything in this part."), 0
        lines = content.decode().splitlines()
        return html.verbatim("\n".join(line[:400] for line in lines[:2])), len(lines)
    if how is None:
        scores = material.inspect_scores(common.engine(), chosen)
        return html.quiet(scores.left_out) if scores.left_out else "", scores.n_rows
    sets = material.split_sets(common.engine(), how, chosen)
    return html.items(material.left_out_words(sets)), sets.n_rows


def split() -> Split:
    """The seed and the shares, as they stand in their fields."""
    seed, *shares = (int(st.session_state[f"export_{name}"]) for name in ("seed", *SETS))
    return Split(seed, check_shares(shares))


def make(what: str, file_format: str, chosen: export_tables.Part) -> bytes:
    """The file, once the button is pressed; it leaves an audit event."""
    if what == "split":
        return acts.take_split(common.engine(), split(), chosen, actor=viewer).packed
    file = io.BytesIO()
    acts.take(common.engine(), what, file_format, file, actor=viewer, part=chosen)
    return file.getvalue()


def text(name: str) -> bytes:
    """One of the texts for a paper, once the button is pressed: what may be taken out has changed since the page was drawn, perhaps."""
    export_tables.check(common.engine(), viewer)
    found: str = paper(common.location(), common.version(), common.blind(viewer))[name]
    return found.encode()


def for_a_paper(hidden: frozenset[int]) -> None:
    """Everything behind the numbers as one file; and, once it is opened, what was done: the methods, the flow of the study, the checklist."""
    st.subheader("For a paper", anchor=False, help=glossary.helps("reference label", "corrected score"))
    st.html(html.quiet(FOR_A_PAPER))
    with st.container(horizontal=True):
        whole = partial(make, "bundle", "zip", export_tables.Part())
        page = partial(make, "report", "html", export_tables.Part())
        look = {"icon": ":material/description:", "help": reporting.WHAT}
        download("Download the report", page, "report.html", "report", **look)
        download("Download the bundle", whole, "bundle.zip", "bundle", icon=":material/folder_zip:")
    icon = ":material/article:"
    with st.expander("Methods, flow of the study and checklist", icon=icon, key="paper", on_change="rerun") as fold:
        if fold.open:
            written(hidden)


def written(hidden: frozenset[int]) -> None:
    """The methods in sentences, the flow as a picture, the checklist, and each as a file."""
    found = paper(common.location(), common.version(), hidden)
    with st.container(horizontal=True):
        for name, label in (("methods", "Methods"), ("checklist", "Checklist"), ("flow", "Flow diagram")):
            if found[name]:
                download(label, partial(text, name), f"{name}.{'svg' if name == 'flow' else 'md'}", name)
    st.html(html.verbatim(found["paragraph"], WHOLE))
    if found["flow"]:
        drawn = found["flow"].replace(INK, shared_theme.ink()).replace(GROUND, "none")
        st.image(drawn, alt="Flow of the study, as flow.csv counts it")
    done = [f"{n:,} {status}" for status, n in found["items"].items()]
    with st.expander(f"Checklist of the reporting guidelines: {', '.join(done)}", icon=":material/checklist:"):
        st.markdown(found["checklist"])


def download(label: str, content: Callable[[], bytes] | str, name: str, key: str, **more: Any) -> None:
    """A button that hands over a file."""
    mime = MIME[name.rpartition(".")[2]]
    st.download_button(label, content, file_name=f"overread-{name}", mime=mime, key=key, **more)


viewer = common.require(check_can_export)
st.html(html.heading("Export", "Choose a table and a part of the study; the codebook says what each column means"))
look: dict[str, Any] = {"format_func": WHAT.__getitem__, "key": "export_what", "label_visibility": "collapsed"}
what = st.segmented_control("Table", list(WHAT), default="labels", required=True, **look) or "labels"
hidden = common.blind(viewer)
chosen = part(hidden)
if hidden:
    wait, are = ("conversation waits", "is") if len(hidden) == 1 else ("conversations wait", "are")
    left_out = f"for your {own_act(viewer)} and {are} left out until you have submitted it."
    st.html(html.notice(f"{len(hidden):,} {wait} {left_out}"))
st.html(html.quiet(MEANING[what]))
if what == "split":
    with st.container(horizontal=True):
        st.number_input("Seed", 0, None, 0, key="export_seed", width=160, help="The same seed gives the same sets")
        for name, label, share in zip(SETS, ("Train", "Development", "Test"), SHARES, strict=True):
            st.number_input(f"{label} (%)", 0, 100, share, key=f"export_{name}", width=160)
if allows(check_can_read, viewer):
    st.html(html.quiet(SEEN))
with common.shown_errors():
    is_shown = n_verdicts() <= LARGE or st.toggle(
        "Show the first rows (with so many verdicts that takes a while)", key="show"
    )
    n_rows = preview(what, chosen) if is_shown else None
    with st.container(horizontal=True, vertical_alignment="bottom"):
        formats = ONLY.get(what, ["csv", "parquet", "jsonl"])
        file_format = st.segmented_control(
            "File", formats, default=formats[0], required=True, format_func=FORMATS.__getitem__, key=f"export_format_{ONLY.get(what, [3])[0]}"
        ) or formats[0]  # fmt: skip
        label = "Download" if n_rows is None else f"Download {n_rows:,} {'row' if n_rows == 1 else 'rows'}"
        how = {"type": "primary", "icon": ":material/download:", "disabled": n_rows == 0}
        download(label, partial(make, what, file_format, chosen), f"{what}.{file_format}", "download", **how)
        if what in CODEBOOK:
            codebook = export_tables.codebook(common.engine(), what)
            download("Codebook", codebook, f"{what}-codebook.md", "codebook")
if what in CODEBOOK:
    with st.expander("What the columns mean", icon=":material/list:"):
        st.html(html.items(f"{column}: {meaning}" for column, meaning in CODEBOOK[what]))
if n_verdicts():
    for_a_paper(hidden)
st.html(
    html.foot(
        "In CSV, a text that begins with = + - @ (full-width forms too), a tab or a line end gets a quote in front, so that no spreadsheet runs it. "
        "Every download leaves an event in the audit trail."
    )
)
