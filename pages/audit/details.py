"""What an act recorded, in words."""

import json
from typing import Any

from evalcore.stats.wording import counted
from evalcore.study.audit.row_hashes import VERDICT, runs_told

_DIGITS = 12  # of a hash: as many as the column of hashes shows
_LONGEST_HASH = 64


def words(detail: str) -> str:
    """The detail of an event, which is JSON, as words; the digests of the rows that it wrote as their number."""
    told: dict[str, Any] = json.loads(detail)
    rows = told.pop("wrote", {})
    parts = [f"{_named(key)}: {said}" for key, value in told.items() if (said := _said(value))]
    for table, one in rows.items():
        n = sum(last - first + 1 for first, last in runs_told(one["rows"]))
        parts.append(f"{counted(n, 'verdict' if table == VERDICT else 'row')} written")
    return "; ".join(parts)


def _named(key: str) -> str:
    return key.removeprefix("n_").replace("_", " ")


def _said(value: Any) -> str:
    if value is None or value in ("", [], {}):
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{_named(key)} {said}" for key, one in value.items() if (said := _said(one)))
    if isinstance(value, list):
        between = "; " if any(isinstance(one, dict) for one in value) else ", "
        return between.join(filter(None, map(_said, value)))
    text = str(value)
    if len(text) == _LONGEST_HASH and set(text) <= set("0123456789abcdef"):
        return text[:_DIGITS]
    return text
