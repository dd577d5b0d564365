"""Mappings that a study keeps, so that the next file of the same program needs no choices."""

from evalcore.errors import OverreadError
from evalcore.importing import store
from evalcore.importing.formats.values import LONGEST_NAME
from evalcore.importing.mapping import OwnNames, parse, to_yaml
from evalcore.study.acting import allow
from evalcore.study.db import Engine, Session, writing
from evalcore.study.policies import check_can_import
from evalcore.study.schema import Viewer


def mappings(session: Session) -> dict[str, OwnNames]:
    """Those of the study, by name."""
    return {name: parse(text, f"mapping {name}") for name, text in store.mappings(session).items()}


def keep(engine: Engine, name: str, names: OwnNames, *, actor: Viewer) -> bool:
    """Keep a mapping under a name, by a lead or researcher. Returns whether anything changed."""
    if not 0 < len(name) <= LONGEST_NAME or not name.isprintable() or name != name.strip():
        msg = f"Keep the mapping as: expected a name of 1 to {LONGEST_NAME} printable characters, got {name[:40]!r}"
        raise OverreadError(msg)
    text = to_yaml(names)
    parse(text, name)
    with writing(engine) as session:
        allow(session, actor, check_can_import)
        return store.set_mapping(session, name, text, actor=actor.signature)
