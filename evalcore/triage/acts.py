"""What people do about triage: label maps, settings, meanings of confidence, and levels read by rules."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from time import sleep
from typing import Any, NamedTuple

from evalcore.stats.wording import counted
from evalcore.study import schema, store
from evalcore.study.acting import allow
from evalcore.study.db import Engine, Session, reading, writing
from evalcore.study.languages import LANGUAGES
from evalcore.study.policies import check_can_import, check_can_set_meaning, check_can_set_triage
from evalcore.study.tables import now
from evalcore.triage import label_maps, queries, store as triage_store
from evalcore.triage.data import LETTERS
from evalcore.triage.queries import ResponseText
from evalcore.triage.settings import TriageSettings


def set_label_map(engine: Engine, source: str, table: label_maps.Table, *, actor: schema.Viewer) -> bool:
    """`store.set_label_map`, by a lead."""
    with writing(engine) as session:
        allow(session, actor, check_can_set_triage)
        return triage_store.set_label_map(session, source, table, actor=actor.signature)


def set_triage_settings(engine: Engine, settings: TriageSettings | None, *, actor: schema.Viewer) -> bool:
    """`store.set_triage_settings`, by a lead."""
    with writing(engine) as session:
        allow(session, actor, check_can_set_triage)
        return triage_store.set_triage_settings(session, settings, actor=actor.signature)


def set_confidence_meaning(
    engine: Engine, judge: str, meaning: schema.ConfidenceMeaning | None, *, actor: schema.Viewer
) -> bool:
    """`store.set_confidence_meaning`, by a researcher or a lead."""
    with writing(engine) as session:
        allow(session, actor, check_can_set_meaning)
        return triage_store.set_confidence_meaning(session, judge, meaning, actor=actor.signature)


BATCH = 500
PART = 2_000
"""So many levels are written in one transaction, so that nobody waits for it long."""
PAUSE_SECONDS = 0.15
"""Between two parts, for whoever waits: longer than SQLite lets them sleep before they try again."""
MAX_QUOTE = 300  # characters of a quotation in an explanation
FROM_FILE = ""
"""The version of a judge whose levels came with a file."""


class Level(NamedTuple):
    """What a judge makes of one text; language: the ISO 639-1 code of a text that it does not read."""

    label: schema.Acuity | schema.Label
    explanation: str
    language: str | None = None


@dataclass(frozen=True)
class Judge:
    """One of the judges that ship; `version` is the prompt_version of its rater."""

    name: str
    version: str
    asked: schema.Format
    level: Callable[[str], Level]


@dataclass
class LevelsRead:
    """What a run has read: by judge its labels; and the languages of what cannot be assessed."""

    labels: dict[str, Counter[str]] = field(default_factory=dict)
    other_language: Counter[str] = field(default_factory=Counter)
    n_unchanged: int = 0

    @property
    def n_read(self) -> int:
        """Responses that have a new verdict."""
        return sum(counts.total() for counts in self.labels.values())

    def add(self, part: "LevelsRead") -> None:
        """Take in what a part of the run has read."""
        for judge, counts in part.labels.items():
            self.labels.setdefault(judge, Counter()).update(counts)
        self.other_language.update(part.other_language)
        self.n_unchanged += part.n_unchanged

    def sentences(self) -> list[str]:
        """The run in words."""
        said = []
        for judge, counts in self.labels.items():
            levels = ", ".join(f"{letter} {counts[letter]:,}" for letter in LETTERS if counts[letter])
            none = counts[schema.Label.CANNOT_ASSESS]
            said.append(
                f"{judge}: {counted(counts.total(), 'response')} read: {levels or 'no level'}; without a level {none:,}"
            )
        if self.other_language:
            listed = ", ".join(f"{LANGUAGES.get(code, code)} {n:,}" for code, n in self.other_language.most_common())
            said.append(f"Of those without a level, not in English: {listed}")
        if self.n_unchanged:
            said.append(
                f"{counted(self.n_unchanged, 'response')} {'was' if self.n_unchanged == 1 else 'were'} read again, and nothing changed"
            )
        return said or ["No response waits to be read."]

    def as_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "n_read": self.n_read,
            "n_unchanged": self.n_unchanged,
            "labels": {judge: dict(sorted(counts.items())) for judge, counts in self.labels.items()},
            "other_language": dict(self.other_language),
        }


def stated(text: str) -> Level:
    """What the parser makes of a qa answer."""
    from evalcore.triage.levels import answer  # noqa: PLC0415 - as in `judges`

    found = answer.stated_level(text)
    words = [found.words] if found.words else []
    return _explained(found.level, found.why or "the level that the answer states", words)


def recommended(text: str) -> Level:
    """What the rules make of a response to a conversation."""
    from evalcore.triage import levels  # noqa: PLC0415 - as in `judges`

    found = levels.recommended_level(text)
    return _explained(found.level, found.why, [quote.words for quote in found.quotes], found.language)


def _explained(level: schema.Acuity | None, why: str, words: Sequence[str], language: str | None = None) -> Level:
    quoted = " … ".join(f"“{' '.join(said.split())[:MAX_QUOTE]}”" for said in words)
    if level is not None:
        return Level(level, f"{quoted}: {why}.")
    said = f"{why[:1].upper()}{why[1:]}"
    return Level(schema.Label.CANNOT_ASSESS, f"{said}: {quoted}." if quoted else f"{said}.", language)


def judges() -> Sequence[Judge]:
    """The parser of qa answers, and the rules for conversations."""
    from evalcore.triage import levels  # noqa: PLC0415 - the rules take as long to load as a page of triage
    from evalcore.triage.levels import answer  # noqa: PLC0415 - likewise

    parser = Judge(schema.PARSER, answer.VERSION, schema.Format.QA, stated)
    return parser, Judge(schema.RULES, levels.VERSION, schema.Format.CONVERSATION, recommended)


def read_levels(
    engine: Engine, *, actor: schema.Viewer, again: bool = False, progress: Callable[[int, int], None] | None = None
) -> LevelsRead:
    """Give every response to a case that has a text its level: the parser in qa, the rules in conversations.

    Left out are responses that this version of the judge has read, and those whose level by this judge came with a
    file; `again`: read all of them once more. A new version's verdict supersedes that of the version before it. What is
    read is written at the end, some thousand levels at a time, each time with an audit event: whoever stops it midway
    finds whole parts, and the next run reads what is left. `progress`: Told how many responses have been read, and how
    many there are at most.
    """
    read: list[tuple[Judge, ResponseText, Level]] = []
    shipped = judges()
    with reading(engine) as session:
        allow(session, actor, check_can_import)
        most = sum(queries.n_texts(session, judge.asked) for judge in shipped)
        for judge in shipped:
            versions = None if again else (judge.version, FROM_FILE)
            for batch in queries.texts(session, judge.asked, judge=judge.name, versions=versions, batch=BATCH):
                read += [(judge, found._replace(text=""), judge.level(found.text)) for found in batch]
                if progress is not None:
                    progress(len(read), most)
    report = LevelsRead()
    for start in range(0, len(read), PART):
        if start:
            sleep(PAUSE_SECONDS)
        written = LevelsRead()
        with writing(engine, patient=True) as session:
            allow(session, actor, check_can_import)
            store.wait_for_others(session)
            for judge, levels in groupby(read[start : start + PART], key=lambda one: one[0]):
                _write(session, judge, [(found, level) for _, found, level in levels], written)
            if written.n_read:
                by_judge = {judge.name: judge.version for judge in shipped if judge.name in written.labels}
                detail = written.as_dict() | {"versions": by_judge, "again": again}
                subject = counted(written.n_read, "response")
                told: dict[str, Any] = {"action": schema.LEVELS_READ, "subject": subject, "detail": detail}
                store.append_event(session, actor=actor.signature, **told)
        report.add(written)
    return report


def _write(session: Session, judge: Judge, levels: Sequence[tuple[ResponseText, Level]], report: LevelsRead) -> None:
    """Write what is new; what somebody else has written in the meantime is seen here, under the lock."""
    rater_id = store.ensure_rater(session, schema.RaterKind.JUDGE, judge.name, prompt_version=judge.version)
    standing = queries.standing(session, [found.response_id for found, _ in levels], judge=judge.name)
    verdicts, at = [], now()
    for found, level in levels:
        before = standing.get(found.response_id, [])
        own = next((one for one in before if one.version == judge.version), None)
        if own is not None and (own.label, own.explanation) == (level.label.value, level.explanation):
            report.n_unchanged += 1
            continue
        replaced = own or next(iter(before), None)
        verdict = schema.Verdict(
            example_id=found.example_id,
            response_id=found.response_id,
            criterion_id=None,
            rater_id=rater_id,
            stage=schema.Stage.JUDGE,
            label=level.label,
            explanation=level.explanation,
            reason=schema.CannotReason.LANGUAGE if level.language else None,
            created_at=at,
            supersedes=replaced.verdict_id if replaced is not None else None,
        )
        verdicts.append(verdict)
        report.labels.setdefault(judge.name, Counter())[level.label.value] += 1
        if level.language:
            report.other_language[level.language] += 1
    store.Bulk(session).verdicts(verdicts)
