"""Keys beyond Streamlit's own shortcuts: `?`, `N`, the row in view, and a voice for screen readers."""

from collections.abc import Sequence
from pathlib import Path

import streamlit as st

_HTML = """
<div class="live" role="status" aria-live="polite"></div>
<dialog aria-label="Keys"><div><b>Keys</b><button class="close" type="button">Close</button></div><dl></dl>
<p>Keys rest while you type; Escape leaves the note.</p></dialog>
"""
_CSS = """
.live { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
dialog { position: fixed; inset: auto 1.5rem 1.5rem auto; margin: 0; z-index: 1000; width: 23rem; max-height: 80vh; overflow: auto;
  border: 1px solid var(--st-border-color); border-radius: 5px; padding: 0.8rem 1rem; box-shadow: 0 4px 24px rgb(0 0 0 / 18%);
  background: var(--st-background-color); color: var(--st-text-color); font-family: var(--st-font); font-size: 0.95rem; }
dialog > div { display: flex; justify-content: space-between; align-items: baseline; }
button { font: inherit; border: 1px solid var(--st-border-color); border-radius: 4px; background: none; color: inherit;
  cursor: pointer; padding: 0.1rem 0.6rem; }
button:focus-visible { outline: 2px solid var(--st-primary-color); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0.25rem 1rem; margin: 0.6rem 0; }
dt { font-weight: 600; } dd { margin: 0; } p { margin: 0; opacity: 0.8; font-size: 0.88rem; }
"""

_component = st.components.v2.component(
    "overread_keys", html=_HTML, css=_CSS, js=(Path(__file__).parent / "keys.js").read_text(encoding="utf-8")
)


def listen(key: str, keys: Sequence[tuple[str, str]], status: str, *, arrows: bool = False) -> int | None:
    """Listen on this page. Returns the row that was just clicked, counted from 0, or None.

    Args:
        keys: The map: keys and what they do.
        status: What a screen reader says when it changes.
        arrows: The arrows up and down press the page's buttons `back` and `next`, which have other keys of their own.
    """
    clicked = _component(
        key=key,
        data={"keys": [list(pair) for pair in keys], "status": status, "arrows": arrows},
        on_row_change=lambda: None,
    ).row
    return int(clicked) if isinstance(clicked, int | float) else None
