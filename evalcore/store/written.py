"""What a transaction has written, so that its event can vouch for it."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from typing import Any

from sqlalchemy import Connection, func, insert, select
from sqlmodel import Session, SQLModel

from evalcore.db import TRAIL_HEAD
from evalcore.row_hashes import CONTENT, LEDGER, VERDICT, Digest, hash_of, ledger_row, number_column

_CHUNK = 500  # bound variables in one statement


class Written:
    """Rows that no event names yet."""

    def __init__(self) -> None:
        self.verdicts = Digest()
        self._content: defaultdict[str, set[int]] = defaultdict(set)

    def __bool__(self) -> bool:
        return self.verdicts.n_rows > 0 or bool(self._content)

    def content(self, table: str, numbers: Iterable[int]) -> None:
        """Rows of a table that verdicts rest on were added or changed; of other tables nothing is kept."""
        if table in CONTENT and (found := set(numbers)):
            self._content[table] |= found

    def told(self, connection: Connection) -> dict[str, dict[str, str]]:
        """Write the hashes of the content, and tell by table which rows the act wrote; call it under the lock of the chain, and once."""
        told = {VERDICT: self.verdicts.told()} if self.verdicts.n_rows else {}
        content = Digest()
        for table, numbers in sorted(self._content.items()):
            add_to_ledger(connection, table, _found(connection, table, numbers), content)
        if content.n_rows:
            told[LEDGER] = content.told()
        return told


def written(session: Session) -> Written:
    """What this session has written since its last event."""
    found: Written = session.info.setdefault("written", Written())
    return found


def forget_written(session: Session) -> None:
    """It is undone, or an event tells it now."""
    session.info.pop("written", None)
    session.info.pop(TRAIL_HEAD, None)


def _found(connection: Connection, table: str, numbers: Collection[int]) -> Iterator[Any]:
    number = number_column(table)
    columns = [number, *(number.table.c[name] for name in CONTENT[table])]
    wanted = sorted(numbers)
    for start in range(0, len(wanted), _CHUNK):
        chosen = number.in_(wanted[start : start + _CHUNK])
        yield from connection.execute(select(*columns).where(chosen).order_by(number))


def add_to_ledger(connection: Connection, table: str, rows: Iterable[Any], digest: Digest) -> None:
    """Append the hashes of rows that verdicts rest on, as they are now.

    Args:
        connection: Of the writing transaction, which holds the lock of the chain.
        table: Whose rows they are.
        rows: Their number first, then the columns of `CONTENT`.
        digest: Takes them in.
    """
    ledger = SQLModel.metadata.tables[LEDGER]
    last = connection.execute(select(func.coalesce(func.max(ledger.c.id), 0))).scalar_one()
    remaining = iter(rows)
    while part := list(islice(remaining, _CHUNK)):
        added = []
        for place, row in enumerate(part, start=last + 1):
            content = hash_of(table, row._mapping)  # noqa: SLF001 - SQLAlchemy's public name
            digest.add(place, ledger_row(table, row[0], content))
            added.append({"id": place, "table_name": table, "row_id": row[0], "hash": content})
        last += len(added)
        connection.execute(insert(ledger), added)
