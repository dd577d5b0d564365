"""What an adjudicator does in a test, in a word; Dr. Sol Adler unless told otherwise."""

from typing import Any

from evalcore.reading import adjudication
from evalcore.reading.adjudication import Settling
from evalcore.study.schema import ConflictCause, Label
from tests import world
from tests.world import World

SOL, RUNE = "Dr. Sol Adler", "Dr. Rune Okeke"
IMANI, TOVE = "Dr. Imani Noor", "Dr. Tove Lind"
WHY = ConflictCause.CLINICAL_DISAGREEMENT

Key = tuple[int, int | None]


def key_of(small: World, example: int = 0) -> Key:
    """The case of an example's response."""
    return example + 1, small.responses[example]


def opened(small: World, name: str = SOL, key: Key | None = None) -> Any:
    """The case as the adjudicator sees it."""
    return adjudication.open_case(small.engine, small.viewer(name), key or key_of(small))


def settle(small: World, *items: Settling, name: str = SOL, key: Key | None = None) -> Any:
    """Settle items of a case. Returns the numbers of the verdicts."""
    return adjudication.settle(small.engine, small.viewer(name), key or key_of(small), items)


def item(
    question: Any,
    label: Any = Label.MET,
    cause: ConflictCause | None = WHY,
    rationale: str = "It says so in its last line.",
) -> Settling:
    """What is settled on a question, by the verdicts that the screen showed."""
    return Settling(question.criterion_id, label, cause, rationale, question.seen)


def waiting(small: World, name: str = SOL) -> Any:
    """The adjudicator's queue."""
    return adjudication.cases(small.engine, small.viewer(name))


def settlements(small: World) -> list[dict[str, Any]]:
    """Every settlement ever given, oldest first."""
    return [row for row in small.history() if row["stage"] == "adjudicated"]


def reading_of(small: World, name: str) -> int:
    """The number of a reader's first reading."""
    person = small.viewer(name).person_id
    return int(world.rows(small.engine, "SELECT id FROM reading WHERE person_id = :person", person=person)[0][0])
