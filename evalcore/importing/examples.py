"""Examples and their rubrics: matched with those the study holds, completed where a part was known, refused where they contradict."""

import json
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import NoReturn

import msgspec

from evalcore.importing.context import ImportContext
from evalcore.importing.formats.values import refuse
from evalcore.study import lookups
from evalcore.study.schema import Criterion, Example, Message, tag
from evalcore.study.store import OWN_EVENT, as_json, bring, last_event

CONSENSUS = "consensus"
_TAG_KINDS = ("level", "cluster", "axis")  # the order in which HealthBench writes them
_EXAMPLE_TAG_KINDS = ("theme", "physician_agreed_category")


class KnownCriterion(msgspec.Struct, eq=False, gc=False):
    """A criterion of the study, or one about to be added (without a number yet)."""

    text: str
    points: int | None
    tags: tuple[str, ...]
    position: int
    number: int | None = None
    changed: bool = False
    is_brought: bool = False  # also by this file
    is_told: bool = False  # the study has been told so

    def row(self, example_id: int) -> dict[str, object]:
        """As its table holds it."""
        tagged = zip(("axis", "level", "cluster", "tags"), _tag_columns(self.tags), strict=True)
        own = {"position": self.position, "text": self.text, "points": self.points}
        return {"example_id": example_id, **own, **dict(tagged)}


@lru_cache(maxsize=4096)
def _tag_columns(tags: tuple[str, ...]) -> tuple[str | None, str | None, str | None, str]:
    """Axis, level, cluster and the JSON list of a criterion's tags: real files hold a few dozen lists, thousands of times."""
    return tag(tags, "axis"), tag(tags, "level"), tag(tags, "cluster"), as_json(tags)


@lru_cache(maxsize=4096)
def _tags(stored: str) -> tuple[str, ...]:
    return tuple(json.loads(stored))


def cluster_of(criterion: Criterion | KnownCriterion) -> str | None:
    """The cluster among its tags."""
    return _tag_columns(criterion.tags)[2]


class KnownExample(msgspec.Struct, eq=False, gc=False):
    """An example of the study, or one about to be added (without a number yet)."""

    prompt_id: str
    messages: str
    rubric: list[KnownCriterion]
    tags: tuple[str, ...]
    subsets: set[str]
    provisional: bool
    ideal_completions: str | None = None
    canary: str | None = None
    number: int | None = None
    former_messages: str | None = None  # before this batch, where a better one came
    changed: bool = False  # its row is to be written again
    moved: bool = False  # its criteria have other positions
    reworded: bool = False  # its text is to be indexed again
    new_subsets: set[str] = set()
    brought_subsets: set[str] = set()
    is_brought: bool = False  # also by this file
    is_told: bool = False  # the study has been told so

    @property
    def partial(self) -> bool:
        """Whether its rubric may be longer than what is known: from a result, or from the Consensus file alone."""
        if self.provisional:
            return True
        parts = self.subsets | self.new_subsets
        return parts == {CONSENSUS} or (not parts and all("level:cluster" in c.tags for c in self.rubric))

    def row(self, dataset: str) -> dict[str, object]:
        """As its table holds it."""
        messages = turns(self.messages)
        asked = [message.content for message in messages if message.role == "user"]
        as_it_is = ("prompt_id", "messages", "ideal_completions", "canary", "provisional")
        return {name: getattr(self, name) for name in as_it_is} | {
            "dataset": dataset,
            "n_turns": sum(message.role in ("user", "assistant") for message in messages),
            "first_words": first_words(asked[-1]),
            "theme": tag(self.tags, "theme"),
            "category": tag(self.tags, "physician_agreed_category"),
            "tags": as_json(self.tags),
        }


class Examples:
    """The examples that an import meets, by their prompt_id, within one batch of rows.

    `most_kept`: of the last batches' examples those with so many criteria together need not be fetched again, unless somebody else has written meanwhile.
    """

    def __init__(self, context: ImportContext, *, most_kept: int = 0) -> None:
        self._context, self._session = context, context.session
        self._bulk = context.bulk
        self._report = context.report
        self._seen: dict[str, tuple[int, int]] = {}  # prompt_id to line and hash of the content, in this file
        self._met: set[str] = set()  # examples of which the report tells already
        self.known: dict[str, KnownExample] = {}
        self._most_kept, self._n_kept, self._newest_event = most_kept, 0, ""
        self._kept: dict[tuple[str, str], KnownExample] = {}

    def load(self, dataset: str, prompt_ids: Collection[str]) -> None:
        """Start a batch: fetch what the study holds of these examples."""
        self._called, self._dataset = dataset, self._context.stored("dataset", dataset)
        # what is kept is of use while nobody else has acted, and nothing of a batch was left unwritten for a fault
        newest = last_event(self._session)
        if self._context.faults.count or newest not in (self._newest_event, self._session.info.get(OWN_EVENT)):
            self._forget()
        self._newest_event = newest
        kept = [one for name in prompt_ids if (one := self._kept.get((dataset, name))) is not None]
        self.known = {one.prompt_id: one for one in sorted(kept, key=lambda one: one.number or 0)}
        wanted = set(prompt_ids).difference(self.known)
        rows = lookups.rows(self._session, lookups.EXAMPLES, wanted, dataset=dataset)
        numbers = [row["id"] for row in rows]
        criteria, subsets = defaultdict(list), defaultdict(set)
        for example, said, points, tags, position, number in lookups.tuples(self._session, lookups.CRITERIA, numbers):
            criteria[example].append(KnownCriterion(said, points, _tags(tags), position, number))
        for row in lookups.rows(self._session, lookups.SUBSETS, numbers):
            subsets[row["example_id"]].add(row["subset"])
        for row in rows:
            number, tags = row["id"], _tags(row["tags"])
            held = {name: row[name] for name in ("prompt_id", "messages", "provisional", "ideal_completions", "canary")}
            held |= {"rubric": criteria[number], "tags": tags, "subsets": subsets[number]}
            self.known[row["prompt_id"]] = KnownExample(number=number, **held)

    def _forget(self) -> None:
        self._kept.clear()
        self._n_kept = 0

    def _keep(self) -> None:
        for example in self.known.values() if self._most_kept else ():
            if self._n_kept >= self._most_kept:
                self._forget()
            if (named := (self._called, example.prompt_id)) not in self._kept:
                self._kept[named] = example
                self._n_kept += len(example.rubric)

    def add_row(self, example: Example, line: int) -> None:
        """Add a row of an examples file."""
        first, content = self._seen.setdefault(example.prompt_id, (line, hash(example)))
        if content != hash(example):
            refuse("prompt_id", "it once", f"{example.prompt_id!r} again with other content (first on line {first})")
        self.add(example)

    def add(self, example: Example) -> KnownExample:
        """Add an example or complete a known one; a fault where the study holds other content under this prompt_id."""
        known = self.known.get(example.prompt_id)
        if known is None:
            known = self.known[example.prompt_id] = _new(example)
            self._report.examples_new += 1
            self._met.add(example.prompt_id)
            return known
        known.brought_subsets |= example.subsets & known.subsets
        was_changed, n_subsets = known.changed, len(known.new_subsets)
        _merge(known, example)
        self._report.memberships_new += len(known.new_subsets) - n_subsets if known.number is not None else 0
        self.meet(known, is_completed=known.number is not None and known.changed and not was_changed)
        return known

    def meet(self, known: KnownExample, *, is_completed: bool = False) -> None:
        """Tell that the file brings an example that is there already."""
        known.is_brought = True
        is_first = known.prompt_id not in self._met
        self._report.examples_completed += is_completed and is_first
        self._report.examples_known += is_first and not is_completed
        self._met.add(known.prompt_id)

    def flush(self) -> None:
        """Write what is new or changed."""
        restated = [e for e in self.known.values() if e.former_messages is not None]
        self._bulk.restate_prompts((e.number or 0, e.former_messages or "", e.messages) for e in restated)
        self._bring()
        fresh = [example for example in self.known.values() if example.number is None]
        stale = [example for example in self.known.values() if example.number is not None and example.changed]
        self._bulk.update("example", [{"id": e.number, **e.row(self._dataset)} for e in stale])
        numbers = self._bulk.insert("example", [e.row(self._dataset) for e in fresh])
        for example, number in zip(fresh, numbers, strict=True):
            example.number = number
        self._write_criteria(stale)
        memberships = [(e.number, subset) for e in self.known.values() for subset in sorted(e.new_subsets)]
        self._bulk.insert_only("example_subset", [{"example_id": e, "subset": subset} for e, subset in memberships])
        worded = (*fresh, *(e for e in stale if e.reworded))
        said = ([*(turn.content for turn in turns(e.messages)), *(c.text for c in e.rubric)] for e in worded)
        texts = zip((e.number or 0 for e in worded), said, strict=True)
        self._bulk.await_index(texts, are_examples=True)
        for example in self.known.values():
            example.subsets |= example.new_subsets
            example.new_subsets, example.former_messages = set(), None
            example.changed = example.moved = example.reworded = False
        self._keep()

    def _bring(self) -> None:
        """What the study has already, and the file brings as well."""
        brought = [one for one in self.known.values() if one.is_brought and one.number is not None]
        criteria = [c for one in brought for c in one.rubric if c.is_brought and not c.is_told and c.number is not None]
        untold = [one for one in brought if not one.is_told]
        for table, rows in (("example", untold), ("criterion", criteria)):
            bring(self._session, table, (row.number or 0 for row in rows))
            for row in rows:
                row.is_told = True
        for one in brought:
            for subset in one.brought_subsets:
                bring(self._session, f"example_subset:{subset}", [one.number or 0])
            one.brought_subsets = set()

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
            criterion.number, criterion.changed = number, False
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
    """The data set's conversation counts; of several that were sent, while it is unknown, the plainest."""
    is_known_better = known.provisional and not example.provisional
    messages = as_stored(example.messages)
    if messages != known.messages and (known.provisional or not example.provisional):
        if not known.provisional:
            refuse("prompt", f"the conversation imported before for prompt_id {example.prompt_id!r}", "another")
        if not example.provisional or _plainness(messages) < _plainness(known.messages):
            known.former_messages = known.former_messages or known.messages
            known.messages, known.changed, known.reworded = messages, True, True
    _merge_rubric(known, example)
    theme, former = tag(example.tags, "theme"), tag(known.tags, "theme")
    if theme and former and theme != former:
        expected = f"theme:{former} for prompt_id {known.prompt_id!r} as imported before"
        refuse("example_tags", expected, f"theme:{theme}")
    tags = _merged_tags(known.tags, example.tags, _EXAMPLE_TAG_KINDS)
    if tags != known.tags:
        known.tags, known.changed = tags, True
    known.new_subsets |= example.subsets - known.subsets
    for name in ("ideal_completions", "canary"):
        given, held = getattr(example, name), getattr(known, name)
        if given is not None and (held is None or (given != held and is_known_better)):
            setattr(known, name, given)
            known.changed = True
    if is_known_better:
        known.provisional, known.changed = False, True


def _plainness(messages: str) -> tuple[int, int, str]:
    return messages.count('"role":"system"') + messages.count('"role":"developer"'), len(messages), messages


def _merge_rubric(known: KnownExample, example: Example) -> None:
    """A full rubric holds every part of it, two parts make a longer one, anything else is a contradiction; without points, criteria stand behind."""
    partners = match(example.rubric, known.rubric)
    for partner in filter(None, partners):
        partner.is_brought = True
    met = set(map(id, partners))
    added = [c for c, partner in zip(example.rubric, partners, strict=True) if partner is None]
    missing = [c for c in known.rubric if id(c) not in met and c.points is not None]
    is_part = example.provisional or _new(example).partial
    new = [c for c in added if c.points is not None]
    parts = known.subsets | known.new_subsets
    is_consensus_again = not example.provisional and example.subsets == {CONSENSUS} and CONSENSUS in parts
    if new and (not known.partial or is_consensus_again):
        _contradict(known.prompt_id, "the criterion {} too", new[0])
    lost = [c for c in missing if not is_part or (is_consensus_again and "level:cluster" in c.tags)]
    if lost:
        _contradict(known.prompt_id, "it without the criterion {}", lost[0])
    known.reworded |= any(p is not None and p.text != c.text for c, p in zip(example.rubric, partners, strict=True))
    known.changed |= complete(example.rubric, partners)
    newer_order = known.partial and not missing and (bool(new) or not is_part)
    came = [p or KnownCriterion(c.text, c.points, c.tags, 0) for c, p in zip(example.rubric, partners, strict=True)]
    first, second = (came, known.rubric) if newer_order else (known.rubric, came)
    both = list({id(criterion): criterion for criterion in (*first, *second)}.values())
    scored, bare = ([c for c in both if (c.points is None) is is_bare] for is_bare in (False, True))
    rubric = scored + sorted(bare, key=lambda criterion: (cluster_of(criterion) or "", criterion.text))
    if added or rubric != known.rubric:
        known.rubric, known.changed, known.reworded = rubric, True, known.reworded or bool(added)
        for position, criterion in enumerate(rubric, 1):
            known.moved |= criterion.number is not None and criterion.position != position
            criterion.position = position


def _contradict(prompt_id: str, got: str, criterion: Criterion | KnownCriterion) -> NoReturn:
    which = got.format(f"{criterion.text[:60]!r} ({criterion.points} points)")
    refuse("rubrics", f"the rubric imported before for prompt_id {prompt_id!r}", which)


def match(wanted: Sequence[Criterion], rubric: Sequence[KnownCriterion]) -> list[KnownCriterion | None]:
    """For each criterion its partner in the known rubric, or None; of several that fit equally the k-th is the k-th's.

    Text, points and cluster decide, since real rubrics repeat texts. A source that gives no points or no cluster fits one that does; without points on
    one side, the only two criteria of a cluster fit even if they are worded differently.
    """
    if len(wanted) == len(rubric) and not any(map(_unlikeness, wanted, rubric)):
        return list(rubric)
    partners: list[KnownCriterion | None] = [None] * len(wanted)
    by_text: dict[str, list[KnownCriterion]] = {criterion.text: [] for criterion in wanted}
    for known in rubric:
        if known.text in by_text:
            by_text[known.text].append(known)
    for rank in range(4):
        for index, criterion in enumerate(wanted):
            if partners[index] is None and by_text[criterion.text]:
                partners[index] = _taken(criterion, by_text[criterion.text], rank)
    open_ = [index for index, criterion in enumerate(wanted) if partners[index] is None and cluster_of(criterion)]
    if open_:
        taken, free_by_text = set(map(id, partners)), defaultdict(list)
        for known in rubric:
            if id(known) not in taken and cluster_of(known):
                free_by_text[known.text].append(known)
        free = [known for alike in free_by_text.values() for known in alike]
        for index in open_:
            if free and _alone(wanted[index], wanted) and _alone(wanted[index], rubric):
                partners[index] = _taken(wanted[index], free, 1)
    return partners


def _taken(criterion: Criterion, free: list[KnownCriterion], rank: int) -> KnownCriterion | None:
    return next((free.pop(index) for index, known in enumerate(free) if _unlikeness(criterion, known) == rank), None)


def _unlikeness(one: Criterion, other: KnownCriterion) -> int:
    """0: the same; 1: of one cluster, one of them without points; 2: of the same text and points; 3: of the same text; 4: another."""
    is_bare, has_points = one.points is None or other.points is None, one.points == other.points
    mine, its = (None, None) if one.tags == other.tags else (cluster_of(one), cluster_of(other))
    if one.text == other.text and has_points and mine == its:
        return 0
    if is_bare and cluster_of(one) is not None and cluster_of(one) == cluster_of(other):
        return 1
    if not (is_bare or has_points) or not (mine is None or its is None or mine == its):
        return 4
    return 2 if has_points else 3


def _alone(criterion: Criterion, rubric: Sequence[Criterion | KnownCriterion]) -> bool:
    cluster = cluster_of(criterion)
    return cluster is not None and sum(cluster_of(other) == cluster for other in rubric) == 1


def complete(rubric: Sequence[Criterion], partners: Sequence[KnownCriterion | None]) -> bool:
    """Give known criteria the tags, points and wording that only the newcomers carry. Returns whether any was given."""
    changed = False
    for criterion, partner in zip(rubric, partners, strict=True):
        if partner is None or (partner.tags == criterion.tags and partner.points == criterion.points):
            continue
        if partner.points is None and criterion.points is not None:
            partner.text, partner.points, partner.changed = criterion.text, criterion.points, True
        tags = _merged_tags(partner.tags, criterion.tags, _TAG_KINDS)
        if tags != partner.tags:
            partner.tags, partner.changed = tags, True
        changed |= partner.changed
    return changed


def _merged_tags(one: tuple[str, ...], other: tuple[str, ...], kinds: Sequence[str]) -> tuple[str, ...]:
    """The tags of both, in an order that does not depend on which came first."""
    if set(one) == set(other):
        return one
    tags = set(one) | set(other)
    if "level:cluster" in tags:  # a rebuilt file may call a cluster criterion an example's own
        tags.discard("level:example")
    if tags == set(one):
        return one
    rank = {kind: place for place, kind in enumerate(kinds)}
    return tuple(sorted(tags, key=lambda tag: (rank.get(tag.partition(":")[0], len(rank)), tag)))


def turns(messages: str) -> list[Message]:
    """A conversation as the tables hold it, read."""
    return msgspec.json.decode(messages, type=list[Message])


def share_question(one: Sequence[Message], other: Sequence[Message]) -> bool:
    """Whether the user's last turn of one conversation stands in the other, whatever a wrapper put around it."""
    return _last(one) in words_of(other) or _last(other) in words_of(one)


def _last(messages: Sequence[Message]) -> str:
    return next(" ".join(message.content.split()) for message in reversed(messages) if message.role == "user")


def words_of(messages: Sequence[Message]) -> str:
    """What is said in a conversation, however it is broken into lines."""
    return " ".join(" ".join(message.content.split()) for message in messages)


def as_stored(messages: Sequence[Message]) -> str:
    """A conversation as the tables hold it."""
    return _as_stored(tuple(messages))


@lru_cache(maxsize=16)  # rows of one conversation follow one another
def _as_stored(messages: tuple[Message, ...]) -> str:
    return msgspec.json.encode(messages).decode()


LONGEST = 160  # characters; the sign that something was left out comes behind them
CUT = "…"
_LEAST = LONGEST // 2  # a script without spaces may have its last one far back: then it is cut between two characters
_JOINERS = "\u200d\u200c"
_SKINS = range(0x1F3FB, 0x1F400)
_FLAGS = range(0x1F1E6, 0x1F200)


def first_words(text: str) -> str:
    r"""The beginning of a text on one line, cut at the end of a word; without spaces to cut at, between two characters as a reader sees them.

    >>> first_words("I have  had\na fever"), first_words("word " * 40)[-11:], len(first_words("痛" * 400))
    ('I have had a fever', ' word word…', 161)
    """
    words = " ".join(text.split())
    if len(words) <= LONGEST:
        return words
    place = words.rfind(" ", _LEAST, LONGEST + 1)
    if place < 0:
        place = LONGEST
        while place > _LEAST and _is_inside(words, place):
            place -= 1
    return words[:place].rstrip() + CUT


def _is_inside(text: str, place: int) -> bool:
    """Whether a cut here would part what is one character to the eye: a letter and its marks, the parts of an emoji, a flag."""
    before, after = text[place - 1], text[place]
    if after in _JOINERS or before in _JOINERS or unicodedata.category(after).startswith("M") or ord(after) in _SKINS:
        return True
    n_signs = next((n for n, letter in enumerate(reversed(text[:place])) if ord(letter) not in _FLAGS), place)
    return ord(after) in _FLAGS and n_signs % 2 == 1  # two signs are one flag
