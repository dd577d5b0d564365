"""What an import found and did."""

from dataclasses import asdict, dataclass, field
from typing import Any

MAX_NAMED = 20


@dataclass
class ImportReport:
    """Counts of what came, what was joined, what had no partner, and where the sent prompt differs.

    Attributes:
        source_hash: SHA-256 of the content, unpacked: every verdict of the file keeps it.
        reads_of: People with an account here whose reads, made elsewhere, the file brings, as a lead said.
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
        cases_new, cases_completed, cases_known: Cases of triage; completed: votes came for one that had none.
        texts_new: Responses to cases that came with their text, or got it.
        levels_new, levels_superseding, levels_known: Levels of care that judges read out of responses; superseding: the judge said something else before.
        without_level: Of the levels that are new: the judge found none.
        matrices_new, matrices_known: Published confusion matrices, one a model and format.
        different: Cases whose file says something else than their votes by the rule, or than the label map; the first are named.
        flow: What became of the file's cases: rows as `case_flow` gives them.
        confident_judges: Judges whose verdicts came with a confidence.
        meanings_set: Of how many of them it was said what the confidence means.
        meanings_missing: Those of whom nobody has said it.
        levels_read: What was read out of the new texts, in sentences.
        samples_left_out: Samples of a log that are no responses: with an error, without an answer.
        notes: What else the file says of itself, and what of it was passed over, in sentences.
    """

    file: str = ""
    format: str = ""
    dataset: str = ""
    dry_run: bool = False
    source_hash: str = ""
    reads_of: list[str] = field(default_factory=list)
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
    cases_new: int = 0
    cases_completed: int = 0
    cases_known: int = 0
    votes_new: int = 0
    votes_known: int = 0
    texts_new: int = 0
    levels_new: int = 0
    levels_superseding: int = 0
    levels_known: int = 0
    without_level: int = 0
    matrices_new: int = 0
    matrices_known: int = 0
    different: int = 0
    different_named: list[str] = field(default_factory=list)
    flow: list[dict[str, Any]] = field(default_factory=list)
    confident_judges: list[str] = field(default_factory=list)
    meanings_set: int = 0
    meanings_missing: list[str] = field(default_factory=list)
    levels_read: list[str] = field(default_factory=list)
    samples_left_out: int = 0
    notes: list[str] = field(default_factory=list)

    def no_partner(self, line: int, reason: str) -> None:
        """Count a row that fits nothing in the study, and name it while there is room."""
        self.without_partner += 1
        if len(self.without_partner_named) < MAX_NAMED:
            self.without_partner_named.append(f"line {line}: {reason}")

    def differs(self, line: int, sentence: str) -> None:
        """Count a case of which the file says something else than what counts or is known, and name it while there is room."""
        self.different += 1
        if len(self.different_named) < MAX_NAMED:
            self.different_named.append(f"line {line}: {sentence}")

    def confident(self, judge: str) -> None:
        """Note that this judge's verdicts came with a confidence."""
        if judge not in self.confident_judges:
            self.confident_judges.append(judge)

    @property
    def adds_nothing(self) -> bool:
        """Whether the study is as it was before."""
        added = self.examples_new + self.examples_completed + self.memberships_new + self.responses_new
        added += self.verdicts_new + self.verdicts_superseding + self.cases_new + self.votes_new + self.texts_new
        return added + self.levels_new + self.levels_superseding + self.matrices_new + self.meanings_set == 0

    def as_dict(self) -> dict[str, Any]:
        """For --json."""
        return asdict(self)

    def for_audit(self) -> dict[str, Any]:
        """For the audit event: without what counted nothing, without the flow, which has a row a label, and without golds of single cases."""
        left_out = ("flow", "different_named")
        return {key: value for key, value in self.as_dict().items() if value and key not in left_out}

    def named(self) -> list[str]:
        """The rows that are named one by one."""
        return [*self.different_named, *self.without_partner_named]

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
            *self._counted_of_triage(),
            (self.without_partner, "rows left out, because the study has nothing that they belong to"),
        ]
        lines = [f"{count:,} {words}" for count, words in counted if count] + self.levels_read + self.notes
        if self.meanings_missing:
            judges = ", ".join(self.meanings_missing)
            lines.append(
                f"Confidences came of {judges}, and nobody has said what they are the probability of: import again and say it."
            )
        if self.already_imported:
            return ["This file was imported before. It adds nothing."]
        if self.adds_nothing:
            lines.append("Nothing new: the study is as it was.")
        return lines

    def _counted_of_triage(self) -> list[tuple[int, str]]:
        return [
            (self.cases_new, "new cases of triage"),
            (self.cases_completed, "cases completed with their panel's votes"),
            (self.cases_known, "cases that were here already"),
            (self.votes_new, "new votes of panels"),
            (self.votes_known, "votes of panels that were here already"),
            (self.texts_new, "texts of responses to cases"),
            (self.levels_new, "new levels of care, read by judges"),
            (
                self.levels_superseding,
                "levels that replace an earlier one of the same judge; the earlier one is kept in the history",
            ),
            (self.without_level, "times a judge found no level: counted apart, and never taken for a level"),
            (self.levels_known, "levels that were here already"),
            (self.matrices_new, "new published confusion matrices"),
            (self.matrices_known, "published confusion matrices that were here already"),
            (
                self.different,
                "cases of which the file says something else than their votes by the rule, or than the label map of their source",
            ),
            (self.meanings_set, "judges of whom it is now known what their confidence means"),
        ]
