"""The trail: who, what, when, on which item."""

import math
from typing import Any

import streamlit as st

from evalcore.stats.wording import counted
from evalcore.study.audit import chain
from evalcore.study.policies import check_can_see_audit, own_act
from pages.audit import details
from pages.shared import common, html

PAGE_ROWS = 50
WITHHELD = "shown once nothing waits for you"  # details name labels; subjects name responses, and files named by models
LEFT_OUT = (
    "Acts of other physicians, numbers of events and hashes are left out while a conversation waits for your {act}: they would tell where somebody differs "
    "from the judge."
)
HOLDS = {
    True: "The audit trail holds.",
    False: "The audit trail does not hold. Somebody for whom nothing waits is told where.",
}

viewer = common.require(check_can_see_audit)
hidden = bool(common.blind(viewer))
engine = common.engine()
n_all = chain.events(engine, viewer, is_blind=hidden, limit=1)[1]
st.html(html.heading("Audit trail", f"{counted(n_all, 'event')}, newest first; none can be changed or removed"))
words = chain.words(engine, viewer, is_blind=hidden)
with st.container(horizontal=True, vertical_alignment="bottom"):
    hint = "Person, act, file, response"
    search = st.text_input("Search", key="audit_search", placeholder=hint, bind="query-params", width=320)
    look: dict[str, Any] = {"key": "audit_person", "bind": "query-params"}
    actor = st.selectbox("Person", words["actor"], index=None, placeholder="Anybody", **look)
    action = st.selectbox("Act", words["action"], index=None, placeholder="Any", key="audit_act", bind="query-params")
    check = st.button("Verify the chain", icon=":material/verified:", key="verify")
if check:
    report = common.ask(chain.verify)
    st.html(html.notice(HOLDS[report.holds] if hidden else report.sentence, kind="note" if report.holds else "error"))
wanted: dict[str, Any] = {"is_blind": hidden, "search": "" if hidden else search, "actor": actor, "action": action}
n_fitting = chain.events(engine, viewer, **wanted, limit=1)[1]
pages = max(math.ceil(n_fitting / PAGE_ROWS), 1)
number = st.pagination(pages, key=f"audit_page_{pages}") if pages > 1 else 1
trail = chain.events(engine, viewer, **wanted, limit=PAGE_ROWS, offset=(number - 1) * PAGE_ROWS)[0]
st.html(html.quiet(f"{n_fitting:,} of {counted(n_all, 'event')} {'matches' if n_fitting == 1 else 'match'}"))
if hidden:
    st.html(html.quiet(LEFT_OUT.format(act=own_act(viewer))))
if trail.empty:
    st.html(html.notice("No event matches. Clear the search or a filter."))
else:
    withheld = [WITHHELD] * len(trail)
    columns = {
        "When": [common.local_time(at) for at in trail["at"]],
        "Person": trail["actor"],
        "Act": trail["action"],
        "On": withheld if hidden else trail["subject"],
        "Details": withheld if hidden else [details.words(detail) for detail in trail["detail"]],
        **({} if hidden else {"Event": trail["event"], "Hash": trail["hash"].str[:12]}),
    }
    config = {
        "On": st.column_config.TextColumn(width=150, help="What the act was done on; a double click shows it whole"),
        "Details": st.column_config.TextColumn(width=330, help="What the act recorded; a double click shows it whole"),
        "Event": st.column_config.NumberColumn(width=70, help="The event's number; none is left out"),
        "Hash": st.column_config.TextColumn(help="The first 12 digits of the hash of this event and of all before it"),
    }
    height = min(560, 38 + 35 * len(trail))
    st.dataframe(columns, key="trail", hide_index=True, height=height, column_config=config, alt="Audit events")
foot = (
    "Every event carries the hash of the one before it, and of the rows that its act wrote. Verify recomputes them all and names the first that was "
    "changed, removed or put in. Note the last hash elsewhere now and then: it alone shows that a trail was cut off at its end or rewritten."
)
st.html(html.foot(foot))
