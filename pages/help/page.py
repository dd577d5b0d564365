"""Help: the docs, readable without a network. Nothing of a study stands here, so that nobody has to be chosen first."""

import streamlit as st

from evalcore.stats.wording import counted
from pages.help import docs
from pages.shared import html

MOST_FOUND = 20

titles = {name: title for pages in docs.contents().values() for name, title in pages.items()}
name = st.query_params.get("doc", docs.FIRST)
if name not in titles:
    name = docs.FIRST
words = st.text_input("Search", key="help_search", placeholder="Search", label_visibility="collapsed", width=320)
with st.container(key="help_columns"):
    left, right = st.columns([1, 4], gap="large")
with left:
    for heading, pages in docs.contents().items():
        st.html(html.help_list(heading, pages, current="" if words.strip() else name))
with right:
    if words.strip():
        sections = docs.found(words)
        st.html(html.heading("Help", f"{counted(len(sections), 'section')} with: {words}"))
        for section in sections[:MOST_FOUND]:
            with st.expander(f"{titles[section.page]}: {section.heading}"):
                st.html(html.help_page(section.text))
    else:
        for text, about, picture in docs.pieces(name):
            st.html(html.help_page(text))
            if picture is not None:
                st.image(str(picture), alt=about)
                st.html(html.quiet(about))
