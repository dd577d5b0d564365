"""The reading part of the Study page: assign items, follow and change what is read, write the guideline, choose the rules."""

import json
from dataclasses import fields
from typing import Any

import pandas as pd
import streamlit as st

from evalcore.reading import amending, assignment_queries, exposing, pace, practice_queries, queries, registering
from evalcore.reading.assigning import MAX_SEED, READERS_EACH, RESERVE_MINUTES, Choice, assign, read_plan, readers_of
from evalcore.reading.pace import BRIEFLY
from evalcore.reading.threads import MAX_LINE
from evalcore.stats.intervals import NO_VALUE
from evalcore.stats.wording import counted, decimal
from evalcore.study import acting, contents
from evalcore.study.browse import Filters
from evalcore.study.policies import allows, check_can_assign, check_can_give_practice, reason
from evalcore.study.schema import Ask, ReadingMode, Role, Rules, Viewer
from evalcore.study.tables import now
from evalcore.team.provider import provider
from evalcore.team.studies import review_link
from pages.shared import common, filters as shared_filters, glossary, html, tables
from pages.study import lines

ASKS = {
    Ask.RUBRIC: "Each criterion of the rubric",
    Ask.RESPONSE_ACUITY: "The level of care that the response recommends",
    Ask.GOLD_ACUITY: "The level of care that the case needs",
}
SLIPS = (
    "Slips: answers that a reader corrected after the lock and before anything of the judge was shown, out of all "
    "answers given here. The later answer counts; both are kept."
)
PRACTICE_HELP = (
    "Before the first real response each reader reads three whose labels are settled, and sees after each where they "
    "differ. These reads are not counted, and nobody is ever assigned what they practised on."
)
PRACTICES = (
    "Practice: responses read, of those set apart. Labels agreed: with what physicians settled, at the first read of "
    "each response; practice that is repeated changes nothing here."
)
ON_ONE_CRITERION = (
    "Conditions on criteria, judges and physicians must all hold for one and the same criterion of a response. "
    "A response whose text is not known is never assigned."
)
NOT_YOURS = " With such conditions, and in a search for words, conversations that wait for your own read or decision are left out."
SHARED = (
    "Could take: waiting responses that this reader may get. Readers share them, so the days left are at most these. "
    "Pace: locked reads a day, over the last seven days. The link opens Review for whoever signs in; it holds no "
    "secret."
)
REASON_HELP = "Readers who have begun something see this line. They may read blind: no model, no judge."
QUEUE_HELP = (
    "Before the first read: puts the hash of the items, their order, probabilities and seed into the audit trail, to "
    "register it. `overread assignments freeze` also writes the file that the hash is of."
)
EXTEND_HELP = (
    "Drawn with the same filters among what fits now and is not assigned yet, with a seed that follows from the "
    "first. Estimates treat all as if they had been drawn at once."
)
MODES = {
    ReadingMode.BLIND: "Blind: the judge's verdict is shown after the first read is locked",
    ReadingMode.OPEN: "Open: the judge's verdict is in view from the start",
}

FEW_NAMES = 2
HIDE = "Readers see no verdict on what they have not read"
HIDE_HELP = (
    "Without this a reviewer may open any verdict in Browse or Export; that takes the conversation out of the "
    "reviewer's blind reads. With it nothing is shown to reviewers before their own read, unless a lead releases them."
)


def show(viewer: Viewer, hidden: frozenset[int]) -> None:
    """Everything that a lead says about the reading; others see how far it is."""
    why_not = reason(check_can_assign, viewer)
    if why_not:
        st.html(html.notice(why_not))
    else:
        lines.show(viewer)
        _assign(viewer, hidden)
    _assignments(viewer, hidden)
    if not why_not:
        _slips(hidden)
        _practice()
    with st.expander("Guideline for the readers", icon=":material/menu_book:"):
        _guideline(viewer, disabled=bool(why_not))
    with st.expander("Rules of the study", icon=":material/gavel:"):
        _rules(viewer, disabled=bool(why_not))


def _assign(viewer: Viewer, hidden: frozenset[int]) -> None:
    st.subheader("Assign reading", anchor=False, help=glossary.helps("assignment", "drawn"))
    ask = st.segmented_control(
        "What readers are asked", list(Ask), default=Ask.RUBRIC, required=True, format_func=ASKS.__getitem__, key="assign_ask"
    )  # fmt: skip
    what = (
        "A plan instead of filters (CSV: prompt_id, inclusion_probability; model, sample_index, dataset where needed)"
    )
    plan = st.file_uploader(what, type="csv", key="assign_plan")
    filters = _which(hidden, disabled=plan is not None)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        n_items = st.number_input(
            "How many, drawn at random", min_value=1, value=None, step=1, placeholder="all that fit", key="assign_n", disabled=plan is not None
        )  # fmt: skip
        n_readers = st.number_input("Readers per response", 1, None, READERS_EACH, 1, key="assign_readers_each")
        words = "Reserve an opened response for (minutes)"
        minutes = st.number_input(words, min_value=1, value=RESERVE_MINUTES, step=5, key="assign_minutes")
        seed = st.number_input("Seed", 0, MAX_SEED, None, 1, placeholder="drawn", key="assign_seed")
    readers, specialty = who("assign")
    rules = common.ask(contents.rules)
    offers_blind = rules.mode is ReadingMode.BLIND and not rules.blind and not common.ask(queries.n_assignments)
    practice = practice_first("assign", viewer, ask or Ask.RUBRIC)
    make_blind = offers_blind and st.checkbox(HIDE, key="assign_blind", help=HIDE_HELP)
    with st.container(horizontal=True):
        go = st.button("Assign", type="primary", icon=":material/assignment_ind:", key="assign")
        check = st.button("Check only", key="assign_check")
    if go or check:
        with common.shown_errors():
            of: dict[str, Any] = {"filters": filters, "seed": seed, "blind": hidden, "make_blind": make_blind}
            of |= {"n_items": n_items} if plan is None else {"plan": read_plan(plan.getvalue())}
            of |= {"readers": tuple(readers), "specialty": specialty, "n_readers": int(n_readers)}
            choice = Choice(ask=ask or Ask.RUBRIC, **of, reserve_minutes=int(minutes), practice=practice)
            assign_now(choice, viewer, dry_run=check)


def assign_now(choice: Choice, viewer: Viewer, *, dry_run: bool, more: str = "") -> None:
    """Assign, or only check, and say what came of it; `more` is said of the items."""
    report = assign(common.engine(), choice, actor=viewer, dry_run=dry_run)
    done = "would be assigned; nothing was changed" if dry_run else "assigned"
    what = "case" if choice.ask is Ask.GOLD_ACUITY else "response"
    st.html(html.notice(f"{counted(report.n_items, what)}{more} {done}."))
    st.html(html.items(report.sentences()))


def _which(hidden: frozenset[int], *, disabled: bool) -> Filters:
    form = shared_filters.Fields(hidden, form="assign_", in_address=False, disabled=disabled)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        chosen: dict[str, Any] = {
            **form.choose("dataset", "theme", "language", "model"),
            **form.choose("reads", reads="Physicians so far"),
        }
    with st.expander("More filters", icon=":material/tune:", type="compact", key="assign_more"):
        with st.container(horizontal=True, vertical_alignment="bottom"):
            more: dict[str, Any] = {"search": form.search(), **form.choose("subset", "category", "axis")}
        with st.container(horizontal=True, vertical_alignment="bottom"):
            more |= form.choose("sign", "judge", "label") | {"judges_differ": form.judges_differ()}
        more |= shared_filters.points_of(more.pop("sign")) | form.of_tasks()
        more |= form.of_cases("source", "format", "level")
        st.html(html.quiet(ON_ONE_CRITERION + (NOT_YOURS if hidden else "")))
    if on := shared_filters.words(Filters(**more)):  # not in the label of what may be folded: a new label folds it
        st.html(html.chips(on))
    return Filters(**more, **chosen)


def who(form: str) -> tuple[list[str], str | None]:
    """The fields for readers and their specialty; `form` begins their keys."""
    people = readers_of(common.read("people"))
    specialties = sorted({word for person in people for word in person.specialties})
    with st.container(horizontal=True, vertical_alignment="bottom"):
        everybody = [person.name for person in people]
        readers = st.multiselect("Readers", everybody, placeholder="Every reviewer", key=f"{form}_people", width=420)
        look: dict[str, Any] = {"placeholder": "Any", "key": f"{form}_specialty", "width": 260}
        specialty = st.selectbox("Specialty", specialties, index=None, **look)
    return readers, specialty


def practice_first(form: str, viewer: Viewer, ask: Ask) -> bool:
    """Whether readers begin with a practice round; `form` as of `who`."""
    why_not = reason(check_can_give_practice, viewer, ask, common.ask(contents.rules).mode)
    key, is_off = f"{form}_practice", bool(why_not)
    return st.checkbox("Practice round first", key=key, disabled=is_off, help=why_not or PRACTICE_HELP) and not is_off


def _assignments(viewer: Viewer, hidden: frozenset[int]) -> None:
    found = common.ask(assignment_queries.assignments)
    st.subheader("Assignments", anchor=False)
    if found.empty:
        st.html(html.notice("Nothing is assigned yet. Choose above what is read, and by whom."))
        return
    state = found["paused_at"].notna().map({True: "paused", False: ""})
    columns = {
        "Number": found["assignment_id"],
        "Assigned": [common.local_time(moment)[:10] for moment in found["created_at"]],  # the trail has the time
        "Question": [BRIEFLY[Ask(ask)] for ask in found["ask"]],
        "Drawn": _of(found["n_tasks"], found["n_population"]),
        "Reads done": _of(found["n_reads"], found["n_wanted"]),
        "State": state.mask(found["cancelled_at"].notna(), "cancelled"),
        "Being read": found["n_open"],
        "Skipped": found["n_skipped"],
    }
    if allows(check_can_assign, viewer):
        columns["Readers"] = [_few(names) for names in found["readers"]]
        if not hidden:  # the filters may name a model or a label: for leads who read nothing blind
            columns["Chosen by"] = [_chosen(json.loads(words)) for words in found["chosen_by"]]
    columns |= {"Seed": [str(seed) for seed in found["seed"]], "By": found["created_by"]}
    names, optional = ("Chosen by",), ("Being read", "Skipped", "State")
    tables.show(columns, key="assignments", alt="Assignments", optional=optional, names=names)
    st.html(html.quiet("Drawn: out of all that fitted. Reads done: out of all that were asked for."))
    if allows(check_can_assign, viewer):
        _change(viewer, found, hidden)
        _readers(hidden)


def _readers(hidden: frozenset[int]) -> None:
    at = now()
    locked = common.ask(assignment_queries.locked_reads, hidden)
    found = pace.by_reader(common.ask(assignment_queries.readers, at), locked, at)
    if found.empty:
        return
    st.subheader("Readers", anchor=False)
    columns: dict[str, Any] = {"Reader": found["reader"], "Locked": found["n_reads"], "Begun": found["n_open"]}
    columns |= {"Skipped": found["n_skipped"], "Could take": found["n_waiting"]}
    columns |= {"Pace": [NO_VALUE if pd.isna(a_day) else f"{decimal(a_day, 1)} a day" for a_day in found["pace"]]}
    columns |= {"Days left": [NO_VALUE if pd.isna(days) else f"{days:,.0f}" for days in found["days"]]}
    tables.show(columns, key="readers", alt="Progress by reader", optional=("Begun", "Skipped"), names=("Reader",))
    st.html(html.quiet(SHARED))
    signing_in = provider()
    with common.shown_errors():
        base = signing_in.public_url if signing_in else str(st.context.url or "").split("/study")[0]
        st.code(review_link(base, common.location() if signing_in else None), language=None, wrap_lines=True)


def _change(viewer: Viewer, found: pd.DataFrame, hidden: frozenset[int]) -> None:
    if said := st.session_state.pop("amended", None):
        st.html(html.notice("Changed."))
        st.html(html.items(said))
    going_on = found.loc[found["cancelled_at"].isna()]
    if going_on.empty:
        return
    rows = {int(row["assignment_id"]): row for row in going_on.to_dict(orient="records")}
    with st.expander("Change an assignment", icon=":material/edit:"):
        number = st.selectbox(
            "Assignment", list(rows), key="amend_number",
            format_func=lambda one: f"{one}: {BRIEFLY[Ask(rows[one]['ask'])]}, {common.local_time(rows[one]['created_at'])[:10]}",
        )  # fmt: skip
        if number is None:
            return
        row = rows[number]
        names = [person.name for person in readers_of(common.read("people"))]
        numbers = common.ask(assignment_queries.readers_of, number)
        present = [person.name for person, _, _ in common.read("everybody") if person.person_id in numbers]
        is_paused = not pd.isna(row["paused_at"])
        act, verb, icon = (amending.resume, "Resume", "play_arrow") if is_paused else (amending.pause, "Pause", "pause")
        st.html(html.quiet(f"Readers: {', '.join(present)}"))
        with st.container(horizontal=True, vertical_alignment="center"):
            if st.button(verb, key=f"amend_pause_{number}", icon=f":material/{icon}:"):
                common.act(act, number, actor=viewer)
            kept = common.ask(registering.registered).get(number)
            if kept is not None:
                when = f"Queue frozen before the first read, on {common.local_day(kept.at)} by {kept.by}"
                st.html(html.quiet(f"{when}. SHA-256 of its items, order, probabilities and seed: {kept.sha256}"))
            elif st.button("Freeze the queue", key=f"amend_queue_{number}", icon=":material/ac_unit:", help=QUEUE_HELP):
                common.act(registering.freeze_queue, number, actor=viewer)
        _form(f"hand_{number}", "Hand over", lambda: _hand_over(viewer, number, present, names))
        others = [name for name in names if name not in present]
        _form(f"add_{number}", "Add readers", lambda: _add(viewer, number, others))
        _form(f"extend_{number}", "Draw more", lambda: _extend(viewer, number, hidden))
        _form(f"cancel_{number}", "Cancel the assignment", lambda: _cancel(viewer, number))


def _form(key: str, verb: str, fields: Any) -> None:
    """A form of one row, whose fields give what is done when it is sent; what came of it is told below."""
    with (
        st.form(f"amend_{key}", border=False, enter_to_submit=False),
        st.container(horizontal=True, vertical_alignment="bottom"),
    ):
        done = fields()
        pressed = st.form_submit_button(verb, key=f"amend_{key}_go")
    if pressed:
        with common.shown_errors():
            st.session_state["amended"] = done()
            st.rerun()


def _hand_over(viewer: Viewer, number: int, present: list[str], names: list[str]) -> Any:
    giver = st.selectbox(
        "Hand over unlocked reads of", present, index=None, key=f"hand_from_{number}", placeholder="Choose"
    )
    taker = st.selectbox("To", names, index=None, key=f"hand_to_{number}", placeholder="Choose")
    whom = giver or "", taker or ""
    return lambda: amending.hand_over(common.engine(), *whom, number=number, actor=viewer).sentences()


def _add(viewer: Viewer, number: int, names: list[str]) -> Any:
    chosen = st.multiselect("Further readers", names, key=f"add_readers_{number}", placeholder="Choose")
    return lambda: amending.add_readers(common.engine(), number, chosen, actor=viewer).sentences()


def _extend(viewer: Viewer, number: int, hidden: frozenset[int]) -> Any:
    n = st.number_input("How many more", min_value=1, value=10, step=1, key=f"extend_n_{number}", help=EXTEND_HELP)
    return lambda: amending.extend(common.engine(), number, int(n), blind=hidden, actor=viewer).sentences()


def _cancel(viewer: Viewer, number: int) -> Any:
    because = st.text_input("Reason that readers see", key=f"cancel_why_{number}", max_chars=MAX_LINE, help=REASON_HELP)
    return lambda: [amending.cancel(common.engine(), number, because or "", actor=viewer).sentence]


def _few(names: str) -> str:
    """Readers of an assignment, on one line: the form below names them all."""
    return names if names.count(", ") < FEW_NAMES else f"{names.count(', ') + 1:,} readers"


def _slips(hidden: frozenset[int]) -> None:
    found = common.ask(queries.slips_by_reader, hidden)
    if not found["n_slips"].sum():
        return
    shares = [f"{decimal(100 * share, 1)} %" for share in found["n_slips"] / found["n_answers"]]
    columns = {"Reader": found["reader"], "Slips": _of(found["n_slips"], found["n_answers"]), "Share": shares}
    tables.show(columns, key="slips", alt="Slips by reader", names=("Reader",))
    st.html(html.quiet(SLIPS))


def _practice() -> None:
    found = common.ask(practice_queries.progress)
    if found.empty:
        return
    columns: dict[str, Any] = {"Reader": found["reader"], "Assigned": found["assigned_at"].map(common.local_time)}
    columns |= {"Practice": _of(found["n_read"], found["n_responses"])}
    columns |= {"Labels agreed": _of(found["n_agreed"], found["n_compared"])}
    tables.show(columns, key="practice", alt="Practice rounds by reader", names=("Reader",))
    st.html(html.quiet(PRACTICES))


def _of(some: pd.Series, of: pd.Series) -> list[str]:
    return [f"{part:,} of {whole:,}" for part, whole in zip(some, of, strict=True)]


def _chosen(by: dict[str, Any]) -> str:
    names = {field.name for field in fields(Filters)}
    filters = Filters(**{name: value for name, value in by.items() if name in names})
    others = [f"{name} {value}" for name, value in by.items() if name not in names]
    return ", ".join([*shared_filters.words(filters), *others]) or "all"


def _guideline(viewer: Viewer, *, disabled: bool) -> None:
    found = common.ask(contents.guideline)
    version = "No version yet"
    if found:
        version = f"Version {found.version}, by {found.created_by}, {common.local_time(found.created_at)}"
    st.html(html.quiet(f"{version}. Every verdict keeps the version that its reader had at hand."))
    with st.form("guideline"):
        text = st.text_area(
            "Markdown", value=found.text if found else "", height=260, key=f"guideline_{found.version if found else 0}", disabled=disabled
        )  # fmt: skip
        if st.form_submit_button("Save as a new version", disabled=disabled):
            with common.shown_errors():
                if not found or text != found.text:
                    acting.set_guideline(common.engine(), text, actor=viewer)
                st.rerun()


def _rules(viewer: Viewer, *, disabled: bool) -> None:
    rules = common.ask(contents.rules)
    judges = common.read("judges")
    with st.form("rules"):
        mode = st.radio(
            "First reads", list(ReadingMode), index=list(ReadingMode).index(rules.mode), format_func=MODES.__getitem__, key="rules_mode",
            disabled=disabled,
        )  # fmt: skip
        judge = st.selectbox(
            "Whose verdict is revealed", judges, index=judges.index(rules.judge) if rules.judge in judges else None,
            placeholder="The judge with the most verdicts on the response", key="rules_judge", disabled=disabled,
        )  # fmt: skip
        share = st.slider(
            "Spot-check of unanimous items by an adjudicator, in %", 0, 100, round(rules.check_share * 100), key="rules_share", disabled=disabled,
        )  # fmt: skip
        against = "Physicians who agree against the judge on a criterion of 7 points or more go to adjudication"
        both = st.checkbox(against, value=rules.both_against_judge, key="rules_both", disabled=disabled)
        control = st.slider(
            "Criteria that readers look at again without the judge's verdict, in %", 0, 100, round(rules.control_share * 100), key="rules_control",
            disabled=disabled, help="Drawn at random when a blind read is locked, and asked before anything of the judge is shown. Their changes, "
            "beside those after seeing the verdict, tell what seeing it does. 0: no control.",
        )  # fmt: skip
        blind = st.checkbox(HIDE, value=rules.blind, key="rules_blind", disabled=disabled, help=HIDE_HELP)
        leads_read = st.checkbox(
            "Leads and researchers may be readers too; their reads are stored as not blind", value=rules.leads_read, key="rules_leads_read",
            disabled=disabled,
        )  # fmt: skip
        if st.form_submit_button("Save rules", disabled=disabled):
            chosen = Rules(mode or rules.mode, judge, share / 100, both, control / 100, blind, leads_read)
            common.act(acting.set_rules, chosen, actor=viewer)
    if rules.blind:
        _release(viewer, disabled=disabled)


def _release(viewer: Viewer, *, disabled: bool) -> None:
    readers = [person for person in common.read("people") if Role.REVIEWER in person.roles]
    with st.form("release"):
        chosen = st.selectbox(
            "Release a reader: they see every verdict, and read nothing blind any more", readers, index=None, placeholder="Choose",
            format_func=lambda person: person.name, key="release_person", disabled=disabled,
        )  # fmt: skip
        if st.form_submit_button("Release", disabled=disabled) and chosen is not None:
            with common.shown_errors():
                exposing.release(common.engine(), viewer, chosen.person_id)
                st.html(html.notice(f"{chosen.name} is released."))
