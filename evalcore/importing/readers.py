"""Whose verdicts a file may bring: a read stays its reader's, whatever name a file writes beside a label."""

import unicodedata
from collections.abc import Collection

from sqlalchemy import RowMapping
from sqlmodel import Session

from evalcore.errors import ImportFailed
from evalcore.importing.faults import Faults
from evalcore.study import contents
from evalcore.study.schema import RaterKind, Source, Stage
from evalcore.study.store import ensure_rater


class Readers:
    """The raters of one file, by number.

    A name is that of a person with an account however it is spelt in capitals, blanks or widths: one person is one rater.

    Args:
        faults: Takes one sentence a name that may not come.
        reads_of: Names of people with an account whose reads, made elsewhere, the file brings.

    Raises:
        ImportFailed: There is nobody of such a name.
    """

    def __init__(self, session: Session, faults: Faults, *, reads_of: Collection[str]) -> None:
        self._session = session
        self._faults = faults
        self._people = {_folded(person.name): person.name for person in contents.people(session)}
        self._mapped = {_folded(name) for name in reads_of}
        self._raters: dict[tuple[RaterKind, str], int] = {}
        self._names: dict[int, str] = {}
        self._told: set[tuple[str, bool]] = set()
        if unknown := [name for name in reads_of if _folded(name) not in self._people]:
            raise ImportFailed([f"Reads of people: expected people of this study, found {', '.join(unknown)}"])

    def number(self, kind: RaterKind, name: str) -> int:
        """The number of a rater."""
        if (kind, name) not in self._raters:
            known = self._people.get(_folded(name)) if kind is RaterKind.REVIEWER else None
            number = self._raters[kind, name] = ensure_rater(self._session, kind, known or name)
            if known is not None:
                self._names[number] = known
        return self._raters[kind, name]

    def check(self, rater_id: int, line: int, *, has_own: bool) -> None:
        """Note a fault where a verdict that is not in the study yet may not come under this name.

        Args:
            line: Of the file; 0: unknown.
            has_own: The person has verdicts of their own on the item.
        """
        name = self._names.get(rater_id)
        if name is None or (not has_own and _folded(name) in self._mapped) or (name, has_own) in self._told:
            return
        self._told.add((name, has_own))
        if has_own:
            sentence = "has read this item in Overread, and no file replaces a person's own reads. Leave these rows out"
        else:
            sentence = (
                "has an account here, so reads under this name are made in Overread. If these were made elsewhere, a lead imports the file "
                "and names the person under Reads of people (--reads-of); else give the rater another name"
            )
        self._faults.add(f"rater: {name} {sentence}", line)


def is_own(row: RowMapping) -> bool:
    """Whether a read in the study is its reader's own: given here, or perhaps given here before this was kept."""
    return bool(row["stage"] != Stage.JUDGE and row["source"] != Source.IMPORT)


def _folded(name: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())
