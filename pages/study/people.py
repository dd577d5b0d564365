"""Who is in the study: a lead adds people and, where people sign in, invites them and says what they may do."""

import streamlit as st

from evalcore.study.acting import add_person
from evalcore.study.languages import LANGUAGES
from evalcore.study.policies import allows, check_can_add_people, check_can_follow, reason
from evalcore.study.schema import Role, Viewer
from evalcore.team import people
from evalcore.team.provider import provider
from evalcore.team.studies import invitation_link
from pages.shared import common, html

ROLES = [role.value for role in Role]
KEYS = (
    "With a key a notebook or a dashboard reads labels, scores, agreement and progress over HTTP (Help: Follow a "
    "study with a program). It reads what the chosen person may, writes nothing, and is in the audit trail."
)


def show(viewer: Viewer) -> None:
    """Everybody, and below them what a lead may do."""
    everybody = common.read("everybody")
    table = {
        "Name": [person.name for person, _, _ in everybody],
        "Roles": [", ".join(sorted(person.roles)) for person, _, _ in everybody],
        "Specialties": [", ".join(person.specialties) for person, _, _ in everybody],
        "Languages": [", ".join(LANGUAGES.get(code, code) for code in person.languages) for person, _, _ in everybody],
    }
    if provider() is not None:
        table["Sign-in"] = [
            ("signs in" if signs_in else "not yet") if is_active else "access removed"
            for _, is_active, signs_in in everybody
        ]
    st.dataframe(table, key="people", hide_index=True, alt="People of this study")
    why_not = reason(check_can_add_people, viewer)
    if why_not:
        st.html(html.notice(why_not))  # not as the button's help: that is Markdown, and the sentence holds a name
    _add(viewer, off=bool(why_not))
    if not why_not:
        _keys(viewer)
    if provider() is not None and not why_not and everybody:
        _change(viewer, {person.name: (person, is_active) for person, is_active, _ in everybody})


def _add(viewer: Viewer, *, off: bool) -> None:
    """A form that is empty again once somebody was added, and keeps what was typed where that was refused."""
    if "person_name" not in st.session_state or st.session_state.pop("person_added", False):
        empty = {"person_name": "", "person_languages": [], "person_specialties": ""}
        st.session_state.update(empty, person_roles=[Role.REVIEWER.value])
    with st.form("add person", clear_on_submit=False):
        with st.container(horizontal=True, vertical_alignment="bottom"):
            name = st.text_input("Name", key="person_name", disabled=off)
            roles = st.multiselect("Roles", ROLES, key="person_roles", disabled=off)
            languages = st.multiselect(
                "Languages", list(LANGUAGES), format_func=LANGUAGES.__getitem__, key="person_languages", disabled=off
            )
            commas = "separated by commas"
            specialties = st.text_input("Specialties", placeholder=commas, key="person_specialties", disabled=off)
        if st.form_submit_button("Add person", disabled=off):
            given = {"roles": roles, "specialties": specialties.split(","), "languages": languages}
            with common.shown_errors():
                add_person(common.engine(), name, **given, actor=viewer)
                st.session_state["person_added"] = True
                st.rerun()


def _change(viewer: Viewer, everybody: dict[str, tuple[Viewer, bool]]) -> None:
    signing_in = provider()
    name = st.selectbox("Person", list(everybody), key="person_chosen")
    person, is_active = everybody[name]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        roles = st.multiselect("Their roles", ROLES, default=sorted(person.roles), key=f"roles_{person.person_id}")
        is_changed = set(roles) != set(person.roles)
        if st.button("Change roles", key="change_roles", disabled=not is_changed):
            common.act(people.set_roles, name, map(Role, roles), actor=viewer)
        act = "Remove access" if is_active else "Restore access"
        if st.button(act, key="set_active"):
            common.act(people.set_active, name, active=not is_active, actor=viewer)
        if st.button("Invite", key="invite", type="primary", disabled=not is_active) and signing_in:
            with common.shown_errors():
                token = people.invite(common.engine(), name, actor=viewer)
                st.session_state["invited"] = name, invitation_link(signing_in.public_url, common.location(), token)
    invited, link = st.session_state.get("invited", ("", ""))
    if invited == name:
        st.html(html.quiet(f"Send this link to {name}. It works once, for 14 days, and is not shown again."))
        st.code(link, language=None, wrap_lines=True)


def _keys(viewer: Viewer) -> None:
    with st.expander("Access keys for programs", icon=":material/key:"):
        st.html(html.quiet(KEYS))
        able = [person.name for person in common.read("people") if allows(check_can_follow, person)]
        with st.form("access key"), st.container(horizontal=True, vertical_alignment="bottom"):
            name = st.selectbox("Reads as", able, key="key_person", placeholder="No researcher or lead yet")
            purpose = st.text_input("What it is for", key="key_purpose", max_chars=people.MOST_PURPOSE)
            days = st.number_input("Valid for days", 1, people.MOST_DAYS, people.KEY_DAYS, key="key_days", width=160)
            if st.form_submit_button("Make a key", disabled=not able):
                with common.shown_errors():
                    made = people.make_key(common.engine(), name, purpose=purpose, days=int(days), actor=viewer)
                    st.html(html.quiet("Copy this key now: it is not shown again."))
                    st.code(made, language=None, wrap_lines=True)
        with common.shown_errors():
            known = people.keys(common.engine(), actor=viewer)
            table = {
                "Number": [key.number for key in known],
                "Reads as": [key.person for key in known],
                "For": [key.purpose for key in known],
                "State": [key.state for key in known],
                "Until": [common.local_day(key.expires_at) for key in known],
                "Made by": [key.created_by for key in known],
            }
            if known:
                st.dataframe(table, key="access_keys", hide_index=True, alt="Access keys of this study")
            valid = [key.number for key in known if key.state == "valid"]
            if valid:
                number = st.selectbox("Key", valid, key="key_number")
                if st.button("Revoke", key="revoke_key"):
                    common.act(people.revoke_key, number, actor=viewer)
