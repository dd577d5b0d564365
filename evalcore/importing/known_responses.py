"""What is known of a response while its rows are joined."""

import msgspec

from evalcore.importing.examples import KnownExample
from evalcore.importing.formats.records import Graded
from evalcore.importing.rubrics import KnownCriterion


class KnownResponse(msgspec.Struct, eq=False, gc=False):
    """A response of the study, or one about to be added (without a number yet)."""

    model: str
    dataset: str
    sample_index: int
    text: str
    completion_id: str | None
    sent_messages: str | None = None
    n_criteria: int | None = None
    number: int | None = None

    def row(self, example_id: int, model_id: int) -> dict[str, object]:
        """As its table holds it."""
        return {
            "example_id": example_id,
            "model_id": model_id,
            "dataset": self.dataset,
            "sample_index": self.sample_index,
            "text": self.text,
            "completion_id": self.completion_id,
            "sent_messages": self.sent_messages,
            "n_criteria": self.n_criteria,
        }


class Joined(msgspec.Struct, eq=False, gc=False):
    """A row of the file with what it belongs to; `criteria` are those of its verdicts, None where there is no such one."""

    record: Graded
    example: KnownExample
    criteria: list[KnownCriterion | None]
    response: KnownResponse | None = None
