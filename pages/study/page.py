"""Study set-up: import, cases, runs, analysis, plan, reading and people, a tab each."""

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from evalcore.errors import ImportFailed, NotAllowed
from evalcore.importing import Options, import_file, mapping, told_by_name
from evalcore.importing.formats import FORMATS, template
from evalcore.importing.uploads import path_of
from evalcore.runs.summary import duration
from evalcore.stats.wording import counted
from evalcore.study import lookups
from evalcore.study.acting import prepare_search
from evalcore.study.contents import holdings
from evalcore.study.policies import check_can_import, check_can_import_reads_of, reason
from evalcore.study.schema import ConfidenceMeaning, Viewer
from pages.shared import common, html, routes
from pages.study import analysis, assigning, cases, columns, mending, people, planning, runs

DETECT, OWN, MAPPING = "detect automatically", "columns of your own", "mapping: "
MEANINGS = {
    "not specified": None,
    "the criterion is met": ConfidenceMeaning.MET,
    "its own label is right": ConfidenceMeaning.RIGHT,
}
MEANS = "What a judge's confidence is the probability of, if the file has any. For a level of care it can only be that the judge's own label is right."
EVERY_SECONDS, MEGABYTE, NEARLY_ALL = 5, 1_000_000, 0.9


def _importing(viewer: Viewer) -> None:
    if why_not := reason(check_can_import, viewer):
        st.html(html.notice(why_not))
        return
    _under_way()
    uploads = st.file_uploader(
        "Files of examples, results, verdicts, or cases of triage",
        key="upload",
        accept_multiple_files=True,
        help="JSON Lines, JSON, CSV, XLSX, Parquet or a log of inspect_ai, plain or .gz. Several are imported one after the other.",
    )
    if not uploads:
        with st.expander("What can be imported", icon=":material/list:"):
            for name, one in FORMATS.items():
                st.html(f"<b>{html.escaped(one.title)}</b> <small>{html.escaped(name)}</small>")
                st.html(html.items(f"{column}: {meaning}" for column, meaning in one.columns.items()))
                file = template(name)
                st.download_button(f"Template {file.name}", file.read_bytes(), file.name, icon=":material/download:")
        return
    number, unsaid = uploads[0].file_id, "if the file does not say"
    by_name = told_by_name(uploads[0].name)
    evaluation, answered = by_name.evaluation if by_name.model else "", by_name.model or ""
    if len(uploads) > 1:  # what is filled in counts for all of them
        number, unsaid, evaluation, answered = "several", "as each file or its name says", "", ""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        mappings = common.ask(mapping.kept)
        ways = [DETECT, *([OWN] if len(uploads) == 1 else []), *(MAPPING + name for name in mappings), *FORMATS]
        way = st.selectbox("Format", ways, key="import_format")
        own = "For example healthbench, healthbench_hard, or a name of your own."
        dataset = st.text_input("Data set", evaluation, key=f"import_dataset_{number}", placeholder=unsaid, help=own)
        model = st.text_input("Model", answered, key=f"import_model_{number}", placeholder=unsaid)
        judge = st.text_input("Judge", key=f"import_judge_{number}", placeholder=unsaid)
        means = st.selectbox("Confidence refers to", list(MEANINGS), key=f"import_confidence_{number}", help=MEANS)
    unmapped = reason(check_can_import_reads_of, viewer)
    reads_of = st.multiselect(
        "Reads of people",
        [person.name for person in common.read("people")],
        key=f"import_reads_of_{number}",
        placeholder="only if the file holds reads that people of this study made elsewhere",
        disabled=bool(unmapped),
        help=unmapped
        or "Reads under the name of somebody with an account come in only if a lead names them here. The audit trail keeps it.",
    )
    names, choice = mappings.get(way.removeprefix(MAPPING)) if way.startswith(MAPPING) else None, None
    if len(uploads) == 1 and way in (DETECT, OWN):
        with _on_disk(uploads[0]) as path:
            unknown = "" if way == OWN else columns.why_unknown(path, uploads[0].name)
            if unknown:
                st.html(html.quiet(f"No known format fits: say below what each column is. {unknown}"))
            if way == OWN or unknown:
                told = Options(model=model.strip() or None, judge=judge.strip() or None)
                choice = columns.ask(path, uploads[0].name, number, told)
                if choice is None:
                    return
                names = choice.names
    lacks = choice.missing if choice is not None else ""
    with st.container(horizontal=True):
        go = st.button(
            "Import", type="primary", icon=":material/database_upload:", key="import", disabled=bool(lacks), help=lacks or None
        )  # fmt: skip
        check = st.button("Check only", key="check", disabled=bool(lacks), help=lacks or None)
    if go and choice is not None and choice.keep_as:
        with common.shown_errors():
            mapping.keep(common.engine(), choice.keep_as, choice.names, actor=viewer)
    if go or check:
        said = {"dataset": dataset, "model": model, "judge": judge}
        options: dict[str, Any] = {name: text.strip() or None for name, text in said.items()}
        options |= {"format_name": way if way in FORMATS else None, "names": names, "reads_of": reads_of}
        for place, upload in enumerate(uploads):
            _run(upload, place, actor=viewer, **options, confidence_means=MEANINGS[means], dry_run=check)


@contextmanager
def _on_disk(upload: UploadedFile) -> Iterator[Path]:
    """The file of an upload: a large one is on the disk already."""
    if (kept := path_of(upload.file_id)) is not None:
        yield kept
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "upload"
        path.write_bytes(upload.getvalue())
        yield path


@partial(common.fragment, run_every=EVERY_SECONDS)
def _under_way() -> None:
    if (found := common.ask(lookups.import_under_way)) is not None:
        st.html(html.notice(f"{found.sentence} Another file can be imported when that is done."))


def _run(upload: UploadedFile, place: int, **options: Any) -> None:
    bar = st.progress(0.0, text="Reading")
    step, before, began = "Read", 0, time.monotonic()

    def progress(done: int) -> None:
        nonlocal step, before, began
        if done < before:  # a large file on SQLite is checked first, then written
            step, began = "Written" if before > NEARLY_ALL * size else step, time.monotonic()
        before, seconds = done, time.monotonic() - began
        is_known = MEGABYTE < done < size  # a packed file holds more than its size
        left = f", about {duration(seconds * (size - done) / done)} left" if is_known else ""
        of = f"{done / MEGABYTE:,.1f} of {max(size, done) / MEGABYTE:,.1f} MB"
        bar.progress(min(done / size, 1.0), text=f"{step} {of}{left}")

    with _on_disk(upload) as path:
        size = max(path.stat().st_size, 1)
        try:
            report = import_file(common.engine(), path, name=upload.name, progress=progress, **options)
        except (NotAllowed, ImportFailed) as refused:
            bar.empty()
            if isinstance(refused, NotAllowed):
                st.html(html.notice(str(refused), kind="error"))
                return
            faults = counted(refused.n_faults, "fault")
            st.html(html.notice(f"Nothing was imported: {faults} in {upload.name}.", kind="error"))
            st.html(html.items(refused.faults))
            return
    bar.progress(1.0, text="Preparing the search")
    prepare_search(common.engine())
    bar.empty()
    done = "would be imported; nothing was changed" if report.dry_run else "imported"
    st.html(html.notice(f"{report.file}: {report.format}, {counted(report.rows, 'row')}, {done}"))
    st.html(html.items([*report.sentences(), *report.named()]))
    if report.flow:
        flow = pd.DataFrame(report.flow)
        cases.drawn(flow, key=f"import_flow_{place}")
        cases.labels(flow, key=f"import_labels_{place}")
    if not report.dry_run and not report.adds_nothing:
        st.page_link(routes.BROWSE, label="Read it", icon=":material/menu_book:")


viewer = common.require()
hidden = common.blind(viewer)
counts = common.read("counts", hidden)
verdicts = f"{counts['judge_verdicts']:,} judges' and {counts['physician_verdicts']:,} physicians' verdicts so far"
st.html(html.heading("Study set-up", f"{holdings(counts)}, {verdicts}" if counts["examples"] else common.EMPTY))
import_tab, cases_tab, runs_tab, analysis_tab, plan_tab, reading_tab, people_tab, mend_tab = st.tabs(
    ["Import", "Cases", runs.TITLE, "Analysis", "Plan", "Reading", "People", mending.TITLE],
    key="study_tab",
    on_change="rerun",
    bind="query-params",
)
with import_tab:
    _importing(viewer)
    foot = (
        "A file is imported whole or not at all, and the same file twice adds nothing. Verdicts are never "
        "changed: a new one by the same rater on the same item is kept beside the old one and counts in its place."
    )
    st.html(html.foot(foot))
for tab, show in (
    (cases_tab, partial(cases.show, viewer, hidden)),
    (runs_tab, partial(runs.show, viewer)),
    (analysis_tab, partial(analysis.show, viewer, hidden)),
    (analysis_tab, partial(analysis.freeze, viewer)),
    (plan_tab, partial(planning.show, viewer)),
    (reading_tab, partial(assigning.show, viewer, hidden)),
    (mend_tab, partial(mending.show, viewer)),
):
    if tab.open:
        with tab:
            show()
with people_tab:
    people.show(viewer)
