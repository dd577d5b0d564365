"""Examples: matched with those the study holds, completed where a part was known, refused where they contradict."""

import json
from collections import defaultdict
from collections.abc import Collection, Sequence

import msgspec
from sqlmodel import Session

from evalcore.errors import RowFault
from evalcore.importing.first_words import first_words
from evalcore.importing.report import ImportReport
from evalcore.importing.rubrics import KnownCriterion, arranged, complete, contradiction, match, merged_tags
from evalcore.study import lookups
from evalcore.study.schema import Example, Message
from evalcore.study.store import Bulk, as_json

CONSENSUS = "consensus"
_KINDS = ("theme", "physician_agreed_category")


class KnownExample(msgspec.Struct, eq=False, gc=False):
    """An example of the study, or one about to be added (without a number yet).

    Attributes:
        former_messages: What it was before this batch, where a better one came.
        changed: Its row is to be written again.
        reworded: Its text is to be indexed again.
    """

    prompt_id: str
    messages: str
    rubric: list[KnownCriterion]
    tags: tuple[str, ...]
    subsets: set[str]
    provisional: bool
    ideal_completions: str | None = None
    canary: str | None = None
    number: int | None = None
    former_messages: str | None = None
    changed: bool = False
    moved: bool = False
    reworded: bool = False
    new_subsets: set[str] = set()

    @property
    def partial(self) -> bool:
        """Whether its rubric may be longer than what is known: from a result, or from the Consensus file alone."""
        if self.provisional:
            return True
        parts = self.subsets | self.new_subsets
        return parts == {CONSENSUS} or (not parts and all("level:cluster" in c.tags for c in self.rubric))


class Examples:
    """The examples that an import meets, by their prompt_id, within one batch of rows."""

    def __init__(self, session: Session, bulk: Bulk, report: ImportReport) -> None:
        self._session = session
        self._bulk = bulk
        self._report = report
        self._seen: dict[str, tuple[int, int]] = {}  # prompt_id to line and hash of the content, in this file
        self.known: dict[str, KnownExample] = {}

    def load(self, dataset: str, prompt_ids: Collection[str]) -> None:
        """Start a batch: fetch what the study holds of these examples."""
        self._dataset = dataset
        rows = lookups.examples_named(self._session, dataset, set(prompt_ids))
        numbers = [row["id"] for row in rows]
        criteria, subsets = defaultdict(list), defaultdict(set)
        for row in lookups.criteria_of(self._session, numbers):
            tags = tuple(json.loads(row["tags"]))
            criteria[row["example_id"]].append(
                KnownCriterion(row["text"], row["points"], tags, row["position"], row["id"])
            )
        for row in lookups.subsets_of(self._session, numbers):
            subsets[row["example_id"]].add(row["subset"])
        self.known = {
            row["prompt_id"]: KnownExample(
                prompt_id=row["prompt_id"],
                messages=row["messages"],
                rubric=criteria[row["id"]],
                tags=tuple(json.loads(row["tags"])),
                subsets=subsets[row["id"]],
                provisional=row["provisional"],
                ideal_completions=row["ideal_completions"],
                canary=row["canary"],
                number=row["id"],
            )
            for row in rows
        }

    def add_row(self, example: Example, line: int) -> None:
        """Add a row of an examples file.

        Raises:
            RowFault: The file or the study holds other content under this prompt_id.
        """
        seen = self._seen.setdefault(example.prompt_id, (line, hash(example)))
        if seen[1] != hash(example):
            msg = f"prompt_id: expected it once, got {example.prompt_id!r} again with other content (first on line {seen[0]})"
            raise RowFault(msg)
        self.add(example)

    def add(self, example: Example) -> KnownExample:
        """Add an example or complete a known one.

        Raises:
            RowFault: The study holds other content under this prompt_id.
        """
        known = self.known.get(example.prompt_id)
        if known is None:
            known = self.known[example.prompt_id] = _new(example)
            self._report.examples_new += 1
            return known
        before = known.changed, len(known.new_subsets)
        _merge(known, example)
        self._report.memberships_new += len(known.new_subsets) - before[1] if known.number is not None else 0
        if known.number is not None and known.changed and not before[0]:
            self._report.examples_completed += 1
        else:
            self._report.examples_known += 1
        return known

    def flush(self) -> None:
        """Write what is new or changed."""
        self._bulk.restate_prompts(
            (example.number or 0, example.former_messages, example.messages)
            for example in self.known.values()
            if example.former_messages is not None
        )
        fresh = [example for example in self.known.values() if example.number is None]
        stale = [example for example in self.known.values() if example.number is not None and example.changed]
        self._bulk.update("example", [{"id": e.number, **_example_row(self._dataset, e)} for e in stale])
        for example, number in zip(
            fresh, self._bulk.insert("example", [_example_row(self._dataset, e) for e in fresh]), strict=True
        ):
            example.number = number
        self._write_criteria(stale)
        memberships = [(e.number, subset) for e in self.known.values() for subset in sorted(e.new_subsets)]
        self._bulk.insert_only("example_subset", [{"example_id": e, "subset": subset} for e, subset in memberships])
        worded = (*fresh, *(e for e in stale if e.reworded))
        self._bulk.await_index(((e.number or 0, _searchable(e)) for e in worded), are_examples=True)
        for example in self.known.values():
            example.subsets |= example.new_subsets
            example.new_subsets, example.former_messages = set(), None
            example.changed = example.moved = example.reworded = False

    def _write_criteria(self, stale: Sequence[KnownExample]) -> None:
        known = [(e, c) for e in stale for c in e.rubric if c.number is not None]
        self._bulk.move_criteria({c.number or 0: c.position for e, c in known if e.moved})
        changed = [(e, c) for e, c in known if c.changed]
        self._bulk.update("criterion", [{"id": c.number, **c.row(e.number or 0)} for e, c in changed])
        for _, criterion in changed:
            criterion.changed = False
        fresh = [(e, c) for e in self.known.values() for c in e.rubric if c.number is None]
        numbers = self._bulk.insert("criterion", [c.row(e.number or 0) for e, c in fresh])
        for (_, criterion), number in zip(fresh, numbers, strict=True):
            criterion.number = number
            self._report.criteria_without_points += criterion.points is None


def _new(example: Example) -> KnownExample:
    return KnownExample(
        prompt_id=example.prompt_id,
        messages=as_stored(example.messages),
        rubric=[KnownCriterion(c.text, c.points, c.tags, position) for position, c in enumerate(example.rubric, 1)],
        tags=example.tags,
        subsets=set(),
        new_subsets=set(example.subsets),
        provisional=example.provisional,
        ideal_completions=example.ideal_completions,
        canary=example.canary,
    )


def _merge(known: KnownExample, example: Example) -> None:
    _merge_messages(known, example)
    _merge_rubric(known, example)
    _merge_tags(known, example)
    known.new_subsets |= example.subsets - known.subsets
    for name in ("ideal_completions", "canary"):
        given, former = getattr(example, name), getattr(known, name)
        if given is not None and (
            former is None or (given != former and known.provisional and not example.provisional)
        ):
            setattr(known, name, given)
            known.changed = True
    if known.provisional and not example.provisional:
        known.provisional, known.changed = False, True


def _merge_messages(known: KnownExample, example: Example) -> None:
    """The data set's conversation counts; of several that were sent, while it is unknown, the plainest."""
    messages = as_stored(example.messages)
    if messages == known.messages or (example.provisional and not known.provisional):
        return
    if not example.provisional and not known.provisional:
        msg = f"prompt: expected the conversation imported before for prompt_id {example.prompt_id!r}, got another"
        raise RowFault(msg)
    if not example.provisional or _plainness(messages) < _plainness(known.messages):
        known.former_messages = known.former_messages or known.messages
        known.messages, known.changed, known.reworded = messages, True, True


def _plainness(messages: str) -> tuple[int, int, str]:
    return messages.count('"role":"system"') + messages.count('"role":"developer"'), len(messages), messages


def _merge_tags(known: KnownExample, example: Example) -> None:
    theme, former = example.tag("theme"), Example("", (), (), known.tags).tag("theme")
    if theme and former and theme != former:
        msg = f"example_tags: expected theme:{former} for prompt_id {known.prompt_id!r} as imported before, got theme:{theme}"
        raise RowFault(msg)
    tags = merged_tags(known.tags, example.tags, _KINDS)
    if tags != known.tags:
        known.tags, known.changed = tags, True


def _merge_rubric(known: KnownExample, example: Example) -> None:
    """A full rubric holds every part of it; two parts make a longer one; anything else is a contradiction."""
    partners = match(example.rubric, known.rubric)
    met = set(map(id, partners))
    added = [c for c, partner in zip(example.rubric, partners, strict=True) if partner is None]
    missing = [c for c in known.rubric if id(c) not in met and c.points is not None]
    is_part = example.provisional or _new(example).partial
    new = [c for c in added if c.points is not None]
    if new and (not known.partial or _consensus_again(known, example)):
        raise contradiction(known.prompt_id, new[0], came=True)
    if missing and not is_part:
        raise contradiction(known.prompt_id, missing[0], came=False)
    if _consensus_again(known, example) and any("level:cluster" in c.tags for c in missing):
        raise contradiction(known.prompt_id, next(c for c in missing if "level:cluster" in c.tags), came=False)
    known.reworded |= any(p is not None and p.text != c.text for c, p in zip(example.rubric, partners, strict=True))
    known.changed |= complete(example.rubric, partners)
    newer_order = known.partial and not missing and (bool(new) or not is_part)
    rubric = arranged(known.rubric, example.rubric, partners, newer_order=newer_order)
    if added or rubric != known.rubric:
        known.rubric, known.changed, known.reworded = rubric, True, known.reworded or bool(added)
        for position, criterion in enumerate(rubric, 1):
            known.moved |= criterion.number is not None and criterion.position != position
            criterion.position = position


def _consensus_again(known: KnownExample, example: Example) -> bool:
    """Whether this is a Consensus row of an example whose Consensus row is known."""
    return not example.provisional and example.subsets == {CONSENSUS} and CONSENSUS in known.subsets | known.new_subsets


def _example_row(dataset: str, example: KnownExample) -> dict[str, object]:
    messages = turns(example.messages)
    words = Example(example.prompt_id, (), (), example.tags)
    asked = [message.content for message in messages if message.role == "user"]
    return {
        "dataset": dataset,
        "prompt_id": example.prompt_id,
        "messages": example.messages,
        "n_turns": sum(message.role in ("user", "assistant") for message in messages),
        "first_words": first_words(asked[-1]),
        "theme": words.tag("theme"),
        "category": words.tag("physician_agreed_category"),
        "tags": as_json(example.tags),
        "ideal_completions": example.ideal_completions,
        "canary": example.canary,
        "provisional": example.provisional,
    }


def _searchable(example: KnownExample) -> list[str]:
    return [*(turn.content for turn in turns(example.messages)), *(criterion.text for criterion in example.rubric)]


def turns(messages: str) -> list[Message]:
    """A conversation as the tables hold it, read."""
    return msgspec.json.decode(messages, type=list[Message])


def as_stored(messages: Sequence[Message]) -> str:
    """A conversation as the tables hold it."""
    return msgspec.json.encode(messages).decode()
