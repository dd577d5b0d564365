"""Runs: what models and judges are asked, how far that is, and a form to start more. A tab of the Study page."""

from collections.abc import Mapping
from typing import Any

import msgspec
import streamlit as st

from evalcore.errors import RunRefused
from evalcore.judges.splits import sets_written
from evalcore.runs import acts as runs, queries
from evalcore.runs.acts import MAX_CONCURRENCY, Planned
from evalcore.runs.prompts import own_prompt, spec_for
from evalcore.runs.queries import RunRow
from evalcore.runs.spec import ModelSettings, RunSpec, example_models, key_of, known_models, model_named, models_file
from evalcore.runs.summary import dollars, duration, how_words, told
from evalcore.runs.worker import alive
from evalcore.stats.wording import counted
from evalcore.study.policies import check_can_run, reason
from evalcore.study.schema import CASES, Format, RunKind, RunState, Viewer
from evalcore.team.provider import provider
from pages.shared import common, html
from pages.shared.html import escaped
from pages.study import run
from pages.study.run import LIVE_SECONDS, OPENED

TITLE = "Runs"
ON_A_PAGE, OPEN_WIDTH = 15, 130
BEGINNING = (
    "A run asks a model for answers, or a judge for verdicts, question by question, and saves each answer as it comes. It can be stopped and started "
    "again at any moment: only what is missing is asked."
)
STEPS = (
    "Bring in what is to be asked about: a file of examples or cases for answers, a file of responses for verdicts.",
    "Say which models and judges there are: put a file models.toml like the one below into the folder where Overread is started. "
    "A model without a key can also be named in the form, by its address.",
    "Put keys into environment variables before Overread is started. A key is never typed, stored or shown here.",
    "Choose in the form what is asked, look at the estimate, and start. The run goes on when you close the browser.",
)
KINDS = {
    RunKind.JUDGE: "Verdicts of a judge",
    RunKind.RESPOND: "Answers of a model",
    RunKind.TRIAGE: "Answers to cases of triage",
}
LACKING = {
    RunKind.JUDGE: "The study has no responses to judge yet: import some, or ask a model for answers first.",
    RunKind.RESPOND: "The study has no conversations to answer yet: import a file of examples first.",
    RunKind.TRIAGE: "The study has no cases of triage yet: import a file of cases first.",
}
FORMATS = {Format.QA: "qa: asked for a level", Format.CONVERSATION: "conversation: as the patient would write it"}
SAMPLES = {RunKind.RESPOND: 1, RunKind.TRIAGE: 5}
AT_ONCE, MOST_SAMPLES = 20, 1_000
TEMPERATURE = 1.0
"""Sampled answers to cases, unless another is given, as in the command: without chance all samples are alike."""
NO_KEY = (
    "A model that needs a key has to stand in the file of models, which names the variable that holds the key. No key is typed here, and none is sent to an "
    "address that is typed here."
)
OWN = (
    "The file's text is the question. It names {conversation}, {response} and {criterion} once each, and {points} if wanted; each is replaced by "
    "that part. How to reply is said before it. Its version is the file's name with a hash. Say which exported sets it was made with: it is never "
    "tested on them."
)
PLANNED = "run_planned"


def show(viewer: Viewer) -> None:
    """The list with the form, or the run that the address names."""
    number = common.row_number(st.query_params.get(OPENED, ""))
    if number is not None:
        run.show(viewer, number)
        return
    rows = common.ask(queries.rows)
    why_not = reason(check_can_run, viewer)
    if why_not:
        st.html(html.notice(why_not))
    else:
        icon = ":material/play_arrow:"
        with st.expander("Start a run", icon=icon, expanded=not rows, key="run_form", on_change="rerun") as fold:
            if fold.open:
                _form(viewer)
    if rows:
        _list(viewer, rows)
        return
    st.html(html.notice(f"Nothing has run yet. {BEGINNING}"))
    if not why_not:
        st.html(html.items(STEPS))
        with st.expander("An example of models.toml", icon=":material/description:"):
            st.code(example_models(), language="toml", wrap_lines=True)


def _list(viewer: Viewer, rows: list[RunRow]) -> None:
    ordered = sorted(rows, key=lambda row: (row.state is not RunState.OPEN, -row.run_id))
    n_pages = -(-len(ordered) // ON_A_PAGE)
    place = st.session_state.get("runs_page", 1) if n_pages > 1 else 1
    first = (min(place, n_pages) - 1) * ON_A_PAGE
    titles, is_live = {}, False
    for row in ordered[first : first + ON_A_PAGE]:
        at = run.progress(row)
        titles[row.run_id] = run.title(viewer, row, at.n_questions)
        is_live |= at.n_workers > 0
    common.fragment(_rows, run_every=LIVE_SECONDS if is_live else None)(viewer, titles, is_live=is_live)
    if n_pages > 1:
        st.pagination(n_pages, key="runs_page")
    foot = (
        "A question has failed when no answer came of it after all tries; it is counted nowhere else, and it can be asked again. Cost: what the server "
        "counted in tokens, by the prices in the file of models; unknown where there are none. Time left: at the rate of the last half minute."
    )
    st.html(html.foot(foot))


def _rows(viewer: Viewer, titles: Mapping[int, str], *, is_live: bool) -> None:
    """The rows of some runs, each with its title, kept: this is drawn often, and to know which models may be named is slow."""
    found = {row.run_id: row for row in common.ask(queries.rows, run_ids=titles)}
    is_still_live = False
    rows = st.container(gap=None)
    for number, title in titles.items():
        row = found[number]
        at = run.progress(row)
        is_still_live |= at.n_workers > 0
        with rows, st.container(horizontal=True, wrap=False, vertical_alignment="center", key=f"run_row_{number}"):
            state = run.state(viewer, at)
            more = f'<span dir="auto">{escaped(state.more)}</span>' if state.more else ""
            numbers = "".join(f"<span>{escaped(words)}</span>" for words in told(at))
            st.html(
                f'<div class="or-run"><div class="or-run-what"><b dir="auto">{escaped(title)}</b>'
                f'<div class="or-run-state"><em>{escaped(state.word)}</em>{more}</div></div>'
                f'<div class="or-run-far">{run.bar(at)}<div class="or-run-figures">{numbers}</div></div></div>'
            )
            if st.button(
                f"Open run {number}", icon=":material/chevron_right:", key=f"run_open_{number}", type="tertiary", width=OPEN_WIDTH
            ):  # fmt: skip
                run.open_(number)
    if is_live and not is_still_live:
        st.rerun()  # drawn without a clock


@common.fragment
def _form(viewer: Viewer) -> None:
    """What is asked, of whom, about what; what it would take; then the start. A change in it draws nothing else anew."""
    chosen = st.segmented_control(
        "Kind of run", list(KINDS), default=RunKind.JUDGE, required=True, format_func=KINDS.__getitem__, key="run_kind"
    )  # fmt: skip
    kind = RunKind(chosen or RunKind.JUDGE)
    datasets = [name for name in common.read("run_datasets") if (name == CASES) is (kind is RunKind.TRIAGE)]
    if kind is RunKind.JUDGE:
        judged = (name for name in common.read("run_datasets") if common.read("models_to_judge", name))
        # criteria first: of levels only conversations are judged
        datasets = sorted(judged, key=lambda name: name == CASES)
    if not datasets:
        st.html(html.notice(LACKING[kind]))
        return
    model = _who(kind)
    about = _judged(viewer, datasets) if kind is RunKind.JUDGE else _answered(kind, datasets)
    has_prices = model is not None and model.has_prices
    with st.container(horizontal=True, vertical_alignment="bottom"):
        at_once = st.number_input("Questions at once", 1, MAX_CONCURRENCY, AT_ONCE, key="run_concurrency", width=150)
        so_many = "Question limit"
        limit = st.number_input(so_many, 1, None, None, key="run_limit", width=200, placeholder="all")
        max_cost = st.number_input(
            "Cost limit (US dollars)", 0.0, None, None, 1.0, "%.10g", key="run_cost", width=200, disabled=not has_prices,
            placeholder="no limit" if has_prices else "no prices known",
        )  # fmt: skip
    spec, file = None, about.pop("file", None)
    with common.shown_errors():
        if file is not None:
            about["own"] = own_prompt(file.getvalue(), file.name)
        if model is not None:
            spec = spec_for(kind, model, limit=limit, **about)
    off = spec is None
    is_asked = st.button("Estimate", icon=":material/calculate:", key="run_plan", disabled=off)
    if spec is None:
        return
    if is_asked:
        st.session_state.pop(PLANNED, None)
        with common.shown_errors():
            st.session_state[PLANNED] = (spec, common.ask(runs.plan, spec))
    asked, planned = st.session_state.get(PLANNED, (None, None))
    if planned is not None and asked == spec:
        _take(viewer, spec, planned, concurrency=int(at_once), max_cost=max_cost if has_prices else None)


def _who(kind: RunKind) -> ModelSettings | None:
    path, known = models_file(), None
    with common.shown_errors():
        known = known_models(path) if path is not None else {}
    if known is None:
        return None
    whom, may_type = "Judge" if kind is RunKind.JUDGE else "Model", provider() is None
    with st.container(horizontal=True, vertical_alignment="bottom"):
        name = st.selectbox(
            whom, list(known), index=None, key="run_name", accept_new_options=may_type, width=320,
            placeholder=("Choose, or type a name" if known else "Type a name") if may_type else "Choose",
        )  # fmt: skip
        model = known.get(name or "")
        if name and model is None and may_type:
            model = _elsewhere(name.strip())
    if model is None:
        words = "There is no file of models (models.toml) here: type a name, and say where the model is."
        if path is not None:
            words = f"{path.name} has {counted(len(known), 'model')}{'; another one can be named by its address' if may_type else ''}."
        st.html(html.quiet(NO_KEY if name else words))
        return None
    if kind is RunKind.TRIAGE and model.temperature is None:
        model = msgspec.structs.replace(model, temperature=TEMPERATURE)
    st.html(html.quiet(how_words(model) + (f". {NO_KEY}" if model.name not in known else ".")))
    try:
        key_of(model)
    except RunRefused as error:
        st.html(html.notice(f"{error}. Set it, then start Overread again.", kind="warning"))
        return None
    return model


def _elsewhere(name: str) -> ModelSettings | None:
    address = st.text_input("Base URL", placeholder="http://127.0.0.1:8000/v1", key="run_base_url", width=300)
    api_model = st.text_input("Name at the server", placeholder=name, key="run_api_model", width=200)
    look: dict[str, Any] = {"key": "run_temperature", "width": 170, "placeholder": "not sent"}
    temperature = st.number_input("Temperature", 0.0, 2.0, None, 0.1, "%.2g", **look)
    price_in, price_out = (
        st.number_input(
            f"US dollars per million tokens {way}", 0.0, None, None, key=f"run_price_{way}", width=210, placeholder="unknown"
        )
        for way in ("in", "out")
    )  # fmt: skip
    if not address.strip():
        return None
    with common.shown_errors():
        return model_named(
            name, path=None, base_url=address.strip(), api_model=api_model.strip() or None, temperature=temperature,
            price_in=price_in, price_out=price_out,
        )  # fmt: skip
    return None


def _judged(viewer: Viewer, datasets: list[str]) -> dict[str, Any]:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        dataset = st.selectbox("Data set", datasets, key="run_dataset_judge", width=200)
        unnamed = run.unnamed(viewer)  # not those behind conversations alone that wait for the viewer
        models = [name for name in common.read("models_to_judge", dataset) if name not in unnamed]
        of_models = st.multiselect("Responses by", models, key=f"run_of_{dataset}", placeholder="all models", width=320)
        n_repeats = st.number_input("Verdicts per item", 1, MOST_SAMPLES, 1, key="run_repeats", width=140)
    with st.container(horizontal=True):
        with_points = dataset == CASES or st.checkbox("The judge sees the points", value=True, key="run_points")
        with_confidence = st.checkbox("The judge states its confidence", key="run_confidence")
    with st.expander("A prompt of your own", icon=":material/edit_note:"):
        st.html(html.quiet(OWN))
        file = st.file_uploader("Prompt (a text file)", type=["txt", "md"], key="run_prompt", max_upload_size=1)
        sets = sets_written(common.ask(queries.splits_written))
        none = "no set was exported yet" if not sets else "not said"
        made = st.multiselect("Made with", sets, format_func=lambda of: of.words, key="run_made_with", placeholder=none)
    asked = {"with_points": with_points, "with_confidence": with_confidence, "n_repeats": int(n_repeats)}
    return {"dataset": dataset, "of_models": of_models, "made_with": tuple(made), "file": file, **asked}


def _answered(kind: RunKind, datasets: list[str]) -> dict[str, Any]:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        dataset = st.selectbox("Data set", datasets, key=f"run_dataset_{kind}", width=200)
        formats: list[Format] = []
        if kind is RunKind.TRIAGE:
            formats = st.pills(
                "Formats", list(Format), selection_mode="multi", default=list(Format), format_func=FORMATS.__getitem__, key="run_formats"
            )  # fmt: skip
        what = "Answers per case and format" if kind is RunKind.TRIAGE else "Answers per conversation"
        n_samples = st.number_input(what, 1, MOST_SAMPLES, SAMPLES[kind], key=f"run_samples_{kind}", width=220)
    return {"dataset": dataset, "formats": formats, "n_samples": int(n_samples)}


def _take(viewer: Viewer, spec: RunSpec, planned: Planned, *, concurrency: int, max_cost: float | None) -> None:
    seconds = planned.seconds(concurrency)
    sizes = {"questions in all": planned.n_all, "answered already": planned.n_there}
    sizes |= {"failed before": planned.n_failed} if planned.n_failed else {}
    sizes |= {"to ask": planned.n_missing, "tokens in": planned.prompt_tokens, "tokens out": planned.completion_tokens}
    figures = {name: f"{n:,}" for name, n in sizes.items()} | {"cost": dollars(planned.cost)}
    time = "not known yet" if seconds is None else f"about {duration(seconds)}"
    st.html(html.facts(figures | {"time": time}))
    expected = "Expected from the lengths of the texts, about four characters to a token; how long it takes is known once the first answers are there."
    if planned.n_before:
        before = counted(planned.n_before, "question")
        expected = f"Expected from {before} that this model was asked with this prompt before."
    st.html(html.quiet(expected))
    # the run that asks just this, where there is one
    same = next((row.run_id for row in common.ask(queries.rows, fingerprint=spec.fingerprint)), None)
    n_workers = len(common.ask(alive, same)) if same is not None else 0
    if n_workers:
        st.html(html.quiet(f"This is run {same}, which is running now: open it in the list."))
    elif same is not None:
        failed_before = " Questions that failed can be asked again on its page." if planned.n_failed else ""
        st.html(html.quiet(f"This is run {same}, which Start resumes.{failed_before}"))
    if not planned.n_missing:
        st.html(html.notice("Nothing is left to ask."))
    start = st.button(
        "Start", type="primary", icon=":material/play_arrow:", key="run_start", disabled=not planned.n_missing or n_workers > 0
    )  # fmt: skip
    if start:
        with common.shown_errors(), st.spinner("Writing down the questions and starting the process"):
            run_id = run.start(viewer, spec, concurrency=concurrency, max_cost=max_cost)
            st.session_state.pop(PLANNED, None)
            run.open_(run_id)
