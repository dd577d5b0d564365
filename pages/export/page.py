"""Choose what to take away, look at it, download it."""

from collections.abc import Callable
from dataclasses import replace

import streamlit as st

from evalcore.export import tables as export_tables
from evalcore.export.bundle import bundle
from evalcore.export.codebook import CODEBOOK
from evalcore.export.flow_diagram import GROUND, INK
from evalcore.reading import exposing
from evalcore.study import trail
from evalcore.study.db import reading
from evalcore.study.policies import allows, check_can_export, check_can_read, own_act
from pages.export import exports
from pages.shared import common, filters, html, routes
from pages.shared import theme as shared_theme

PREVIEW_ROWS = 50
LARGE = 300_000
"""Verdicts: with more the page does not make a whole table only to show its first rows."""
WHOLE = html.Fold(10_000, 200)
"""The paragraph for a paper is shown whole."""
NOT_LABELLED = "Nothing has been labelled yet. Begin with a file of results."
WHAT = {
    "labels": "Labels",
    "verdicts": "Verdicts",
    "scores": "Scores",
    "criteria": "Criteria at fault",
    "acuity": "Acuity",
    "cases": "Cases of triage",
    "meta-eval": "Meta-evaluation rows",
}
MEANING = {
    "labels": "One row an item (one criterion of one response): the judge's label, the physicians', and the label to use.",
    "verdicts": "One row a standing verdict of a judge or a physician. The file can be imported again.",
    "scores": "One row a response and judge: points and score.",
    "acuity": "One row a standing verdict on the level of care: of a response, or of a case itself. The file can be imported again.",
    "cases": "One row a case of triage, model and format: what the case needs, by whom, and what the model's samples answer.",
    "criteria": "One row a criterion that readers or adjudicators call wrong, ambiguous or unclear, for the rubric's authors. Nobody is named.",
    "meta-eval": "One row an item that physicians read, in the format of HealthBench's meta-evaluation; names are replaced by hashes.",
}
FORMATS = {"csv": "CSV", "parquet": "Parquet", "jsonl": "JSON Lines"}
MIME = {
    "csv": "text/csv",
    "parquet": "application/vnd.apache.parquet",
    "jsonl": "application/x-ndjson",
    "md": "text/markdown",
    "svg": "image/svg+xml",
    "zip": "application/zip",
}


SEEN = "You see others' verdicts in these rows and in every download: those conversations are no longer among your blind reads."


def is_labelled() -> bool:
    """Whether anybody has labelled anything."""
    counts = common.read("counts")
    return bool(counts["judge_verdicts"] or counts["physician_verdicts"])


def part(hidden: frozenset[int]) -> export_tables.Part:
    """Which part of the study."""
    choices = common.read("choices")
    judges = common.read("judges")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        judge = st.selectbox("Judge beside the physicians", judges, key="export_judge", placeholder="No judge yet")
        dataset = st.selectbox("Data set", choices["dataset"], index=None, placeholder="All", key="export_dataset")
        model = st.selectbox("Model", common.read("models", hidden), index=None, placeholder="All", key="export_model")
        theme = st.selectbox(
            "Theme", choices["theme"], index=None, placeholder="All", key="export_theme", format_func=filters.plain
        )
        read_only = st.toggle("Only what a physician has read", key="export_read_only")
    return export_tables.Part(judge=judge, dataset=dataset, model=model, theme=theme, read_only=read_only, blind=hidden)


def preview(what: str, chosen: export_tables.Part) -> int:
    """The first rows as they will stand in the file, and how many there are."""
    if what == "meta-eval":
        content = export_tables.meta_eval_rows(common.engine(), chosen)
        st.html(
            html.verbatim("\n".join(line[:400] for line in content.decode().splitlines()[:2]))
            if content
            else html.notice("No physician has read anything in this part.")
        )
        return int(content.count(b"\n"))
    table = exports.table(what, chosen)
    if table.empty:
        st.html(html.notice("Nothing fits this part: choose a larger one." if is_labelled() else NOT_LABELLED))
        if not is_labelled():
            st.page_link(routes.STUDY, label="Import a file", icon=":material/database:")
        return 0
    exposing.preview(common.engine(), viewer, set(table.head(PREVIEW_ROWS)["example_id"]), blind=chosen.blind)
    st.dataframe(table.head(PREVIEW_ROWS), key="preview", hide_index=True, height=390, alt=f"First rows of {what}")
    return len(table)


def is_large() -> bool:
    """Whether a table takes so long to make that it is not made unasked."""
    counts = common.read("counts")
    return bool(counts["judge_verdicts"] + counts["physician_verdicts"] > LARGE)


def maker(what: str, file_format: str, chosen: export_tables.Part) -> Callable[[], bytes]:
    """Makes the file when the button is pressed, and leaves the audit event."""
    engine, actor = common.engine(), viewer

    def make() -> bytes:
        export_tables.check(engine, actor)
        now = replace(chosen, blind=common.blind(viewer))  # what was assigned since the page was drawn waits too
        named = None
        if what == "meta-eval":
            content = export_tables.meta_eval_rows(engine, now)
            n_rows = content.count(b"\n")
        else:
            table = export_tables.table(engine, what, now)
            content, n_rows = export_tables.WRITERS[file_format](table), len(table)
            named = set(table["example_id"])
        export_tables.record(
            engine, actor=actor, what=what, file_format=file_format, n_rows=n_rows, part=now, named=named
        )
        return content

    return make


def for_a_paper(hidden: frozenset[int]) -> None:
    """The methods, the flow of the study, the checklist, and everything behind the numbers as one file."""
    st.subheader("For a paper", anchor=False)
    paper = exports.paper(hidden)
    st.html(
        html.quiet(
            "Methods, written from what was done in this study; what it cannot know stands as [to fill in]. The bundle holds them with labels, verdicts, "
            "scores, corrected scores and differences, what missing reads could change, and agreement as CSV, the codebooks, the stated analysis, the flow "
            "diagram, the checklist, and a manifest with the hash of each file."
        )
    )
    st.html(html.verbatim(paper.paragraph, WHOLE))
    if paper.flow:
        with st.expander("Flow of the study", icon=":material/account_tree:", expanded=True):
            st.image(
                paper.flow.replace(INK, shared_theme.ink()).replace(GROUND, "none"),
                alt="Flow of the study, as flow.csv counts it",
            )
    done = [f"{n:,} {status}" for status, n in paper.items.items()]
    with st.expander(f"Checklist of the reporting guidelines: {', '.join(done)}", icon=":material/checklist:"):
        st.markdown(paper.checklist)
    with st.container(horizontal=True):
        st.download_button(
            "Download the bundle",
            bundle_maker(),
            file_name="overread-bundle.zip",
            mime=MIME["zip"],
            icon=":material/folder_zip:",
            key="bundle",
        )
        for key, label, part in (
            ("methods", "Methods", "page"),
            ("checklist", "Checklist", "checklist"),
            ("flow", "Flow diagram", "flow"),
        ):
            if getattr(paper, part):
                kind = "svg" if key == "flow" else "md"
                name = f"overread-{key}.{kind}"
                st.download_button(label, paper_maker(part), file_name=name, mime=MIME[kind], key=key)


def paper_maker(part: str) -> Callable[[], bytes]:
    """Writes one of the texts when the button is pressed: what may be taken out has changed since the page was drawn, perhaps."""
    engine, actor = common.engine(), viewer

    def make() -> bytes:
        export_tables.check(engine, actor)
        text: str = getattr(exports.paper(common.blind(actor)), part)
        return text.encode()

    return make


def bundle_maker() -> Callable[[], bytes]:
    """Makes the bundle when the button is pressed, and leaves the audit event."""
    engine, actor = common.engine(), viewer

    def make() -> bytes:
        export_tables.check(engine, actor)
        part = export_tables.Part(blind=common.blind(viewer))
        content, n_rows = bundle(engine, blind=part.blind)
        export_tables.record(engine, actor=actor, what="bundle", file_format="zip", n_rows=n_rows, part=part)
        return content

    return make


viewer = common.require(check_can_export)
st.html(html.heading("Export", "Choose a table and a part of the study; the codebook says what each column means"))
what = st.segmented_control(
    "Table",
    list(WHAT),
    default="labels",
    required=True,
    format_func=WHAT.__getitem__,
    key="export_what",
    label_visibility="collapsed",
)
what = what or "labels"
hidden = common.blind(viewer)
chosen = part(hidden)
if hidden:
    st.html(
        html.notice(
            f"{len(hidden):,} {'conversation waits' if len(hidden) == 1 else 'conversations wait'} for your {own_act(viewer)} and "
            f"{'is' if len(hidden) == 1 else 'are'} left out until you have submitted it."
        )
    )
st.html(html.quiet(MEANING[what]))
if allows(check_can_read, viewer):
    st.html(html.quiet(SEEN))
with common.shown_errors():
    is_shown = not is_large() or st.toggle("Show the first rows (with so many verdicts that takes a while)", key="show")
    n_rows = preview(what, chosen) if is_shown else None
    with st.container(horizontal=True, vertical_alignment="bottom"):
        formats = ["jsonl"] if what == "meta-eval" else list(FORMATS)
        file_format = (
            st.segmented_control(
                "File",
                formats,
                default=formats[0],
                required=True,
                format_func=FORMATS.__getitem__,
                key=f"export_format_{len(formats)}",
            )
            or formats[0]
        )
        st.download_button(
            "Download" if n_rows is None else f"Download {n_rows:,} {'row' if n_rows == 1 else 'rows'}",
            maker(what, file_format, chosen),
            file_name=f"overread-{what}.{file_format}",
            mime=MIME[file_format],
            type="primary",
            icon=":material/download:",
            disabled=n_rows == 0,
            key="download",
        )
        if what in CODEBOOK:
            with reading(common.engine()) as session:
                trail_hash = trail.trail_head(session)[1]
            st.download_button(
                "Codebook",
                export_tables.codebook_text(what, trail_hash),
                file_name=f"overread-{what}-codebook.md",
                mime=MIME["md"],
                key="codebook",
            )
if what in CODEBOOK:
    with st.expander("What the columns mean", icon=":material/list:"):
        st.html(html.items(f"{column}: {meaning}" for column, meaning in CODEBOOK[what]))
if is_labelled():
    for_a_paper(hidden)
st.html(
    html.foot(
        "In CSV a text that begins with = + - @ (full-width forms too), a tab or a line end has a quote before it, so that no spreadsheet runs it. "
        "Every download leaves an event in the audit trail."
    )
)
