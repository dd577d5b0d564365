"""What an import found and did."""

from dataclasses import asdict, dataclass, field
from typing import Any

MAX_NAMED = 20


@dataclass
class ImportReport:
    """Counts of what came, what was joined, what had no partner, and where the sent prompt differs.

    Attributes:
        rows: Rows (lines, entries) of the file.
        examples_new, examples_completed, examples_known: Examples by what they added; completed: known in part before.
        memberships_new: Examples that joined a part of the data set, such as hard.
        responses_joined: Responses whose example had been imported from the data set itself.
        responses_without_example: Responses whose example is known only from the result; kept, without theme.
        prompts_with_system_message: The example's conversation was sent with a system message before it.
        prompts_other: Something other than the example's conversation was sent.
        verdicts_superseding: New verdicts of a rater who had given another one on the same item.
        without_partner: Rows that were left out because nothing in the study fits them; the first are named.
        criteria_without_points: Criteria that came without points: read, never scored.
    """

    file: str = ""
    format: str = ""
    dataset: str = ""
    dry_run: bool = False
    already_imported: bool = False
    rows: int = 0
    examples_new: int = 0
    examples_completed: int = 0
    examples_known: int = 0
    memberships_new: int = 0
    responses_new: int = 0
    responses_known: int = 0
    responses_joined: int = 0
    responses_without_example: int = 0
    prompts_with_system_message: int = 0
    prompts_other: int = 0
    criteria_without_points: int = 0
    verdicts_new: int = 0
    verdicts_known: int = 0
    verdicts_superseding: int = 0
    without_partner: int = 0
    without_partner_named: list[str] = field(default_factory=list)

    def no_partner(self, line: int, reason: str) -> None:
        """Count a row that fits nothing in the study, and name it while there is room."""
        self.without_partner += 1
        if len(self.without_partner_named) < MAX_NAMED:
            self.without_partner_named.append(f"line {line}: {reason}")

    @property
    def adds_nothing(self) -> bool:
        """Whether the study is as it was before."""
        added = self.examples_new + self.examples_completed + self.memberships_new + self.responses_new
        return added + self.verdicts_new + self.verdicts_superseding == 0

    def as_dict(self) -> dict[str, Any]:
        """For the audit event and for --json."""
        return asdict(self)

    def sentences(self) -> list[str]:
        """The report in words; lines that would count nothing are left out."""
        counted = [
            (self.examples_new, "new examples"),
            (self.examples_completed, "examples completed that were known in part"),
            (self.examples_known, "examples that were here already"),
            (self.memberships_new, "examples newly marked as part of their subset"),
            (self.responses_new, "new responses"),
            (self.responses_known, "responses that were here already"),
            (self.responses_joined, "responses joined with their example"),
            (
                self.responses_without_example,
                "responses whose example is not imported: kept with what the file says, without theme",
            ),
            (
                self.prompts_with_system_message,
                "responses were given to the conversation with a system message before it",
            ),
            (self.prompts_other, "responses were given to another prompt than the example's conversation"),
            (self.criteria_without_points, "criteria came without points: they can be read and are never scored"),
            (self.verdicts_new, "new verdicts"),
            (
                self.verdicts_superseding,
                "verdicts that replace an earlier one of the same rater; the earlier one is kept in the history",
            ),
            (self.verdicts_known, "verdicts that were here already"),
            (self.without_partner, "rows left out, because the study has nothing that they belong to"),
        ]
        lines = [f"{count:,} {words}" for count, words in counted if count]
        if self.already_imported:
            return ["This file was imported before. It adds nothing."]
        if self.adds_nothing:
            lines.append("Nothing new: the study is as it was.")
        return lines
