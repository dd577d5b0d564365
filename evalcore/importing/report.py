"""What an import found and did."""

from dataclasses import asdict, dataclass, field, fields
from typing import Any

MAX_NAMED = 20


def _count(words: str, *, adds: bool = False) -> Any:
    return field(default=0, metadata={"words": words, "adds": adds})


@dataclass
class ImportReport:
    """Counts of what came, what was joined, what had no partner, and where the sent prompt differs.

    `source_hash`: of the content, unpacked; every verdict of the file keeps it. `reads_of`: people with an account here whose reads it brings, as a lead said.
    `flow`: rows as `case_flow` gives them. `samples_left_out`: of a log, with an error or without an answer. What is `named` are the first of those rows.
    """

    file: str = ""
    format: str = ""
    dataset: str = ""
    dry_run: bool = False
    source_hash: str = ""
    reads_of: list[str] = field(default_factory=list)
    already_imported: bool = False
    rows: int = 0
    examples_new: int = _count("new examples", adds=True)
    examples_completed: int = _count("examples completed that were known in part", adds=True)
    examples_known: int = _count("examples that were here already")
    memberships_new: int = _count("examples newly marked as part of their subset", adds=True)
    responses_new: int = _count("new responses", adds=True)
    responses_known: int = _count("responses that were here already")
    responses_joined: int = _count("responses joined with their example")
    responses_without_example: int = _count(
        "responses whose example is not imported: kept with what the file says, without theme"
    )
    prompts_with_system_message: int = _count(
        "responses were given to the conversation with a system message before it"
    )
    prompts_other: int = _count("responses were given to another prompt than the example's conversation")
    criteria_without_points: int = _count("criteria came without points: they can be read and are never scored")
    verdicts_new: int = _count("new verdicts", adds=True)
    verdicts_known: int = _count("verdicts that were here already")
    verdicts_superseding: int = _count(
        "verdicts that replace an earlier one of the same rater; the earlier one is kept in the history", adds=True
    )
    without_partner: int = _count("rows left out, because the study has nothing that they belong to")
    without_partner_named: list[str] = field(default_factory=list)
    cases_new: int = _count("new cases of triage", adds=True)
    cases_completed: int = _count("cases completed with their panel's votes")
    cases_known: int = _count("cases that were here already")
    votes_new: int = _count("new votes of panels", adds=True)
    votes_known: int = _count("votes of panels that were here already")
    texts_new: int = _count("texts of responses to cases", adds=True)
    levels_new: int = _count("new levels of care, read by judges", adds=True)
    levels_superseding: int = _count(
        "levels that replace an earlier one of the same judge; the earlier one is kept in the history", adds=True
    )
    levels_known: int = _count("levels that were here already")
    without_level: int = _count("times a judge found no level: counted apart, and never taken for a level")
    matrices_new: int = _count("new published confusion matrices", adds=True)
    matrices_known: int = _count("published confusion matrices that were here already")
    different: int = _count(
        "cases of which the file says something else than their votes by the rule, or than the label map of their source"
    )
    different_named: list[str] = field(default_factory=list)
    flow: list[dict[str, Any]] = field(default_factory=list)
    confident_judges: list[str] = field(default_factory=list)
    meanings_set: int = _count("judges of whom it is now known what their confidence means", adds=True)
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
        return not any(getattr(self, one.name) for one in fields(self) if one.metadata.get("adds"))

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
        if self.already_imported:
            return ["This file was imported before. It adds nothing."]
        counted = [(getattr(self, one.name), one.metadata["words"]) for one in fields(self) if one.metadata]
        lines = [f"{count:,} {words}" for count, words in counted if count] + self.levels_read + self.notes
        if self.meanings_missing:
            judges = ", ".join(self.meanings_missing)
            unsaid = "nobody has said what they are the probability of"
            lines.append(f"Confidences came of {judges}, and {unsaid}: import again and say it.")
        if self.adds_nothing:
            lines.append("Nothing new: the study is as it was.")
        return lines
