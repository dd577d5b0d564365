"""Rubrics: which criterion of a row is which of the study's, and what two rubrics of one example make together.

Real rubrics repeat texts, so a criterion is told by its text, points and cluster, and among equals by its place.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import lru_cache

import msgspec

from evalcore.errors import RowFault
from evalcore.study.schema import Criterion
from evalcore.study.store import as_json

_KINDS = ("level", "cluster", "axis")  # the order in which HealthBench writes them


class KnownCriterion(msgspec.Struct, eq=False, gc=False):
    """A criterion of the study, or one about to be added (without a number yet)."""

    text: str
    points: int | None
    tags: tuple[str, ...]
    position: int
    number: int | None = None
    changed: bool = False

    def row(self, example_id: int) -> dict[str, object]:
        """As its table holds it."""
        axis, level, cluster, tags = tag_columns(self.tags)
        return {
            "example_id": example_id,
            "position": self.position,
            "text": self.text,
            "points": self.points,
            "axis": axis,
            "level": level,
            "cluster": cluster,
            "tags": tags,
        }


@lru_cache(maxsize=4096)
def tag_columns(tags: tuple[str, ...]) -> tuple[str | None, str | None, str | None, str]:
    """Axis, level, cluster and the JSON list of a criterion's tags: real files hold a few dozen lists, thousands of times."""
    words = Criterion("", None, tags)
    return words.tag("axis"), words.tag("level"), words.tag("cluster"), as_json(tags)


def _cluster(criterion: Criterion | KnownCriterion) -> str | None:
    return tag_columns(criterion.tags)[2]


def match(wanted: Sequence[Criterion], rubric: Sequence[KnownCriterion]) -> list[KnownCriterion | None]:
    """For each criterion its partner in the known rubric, or None; of several that fit equally the k-th is the k-th's.

    Text, points and cluster decide. A source that gives no points or no cluster fits one that does; without points on
    one side, the only two criteria of a cluster fit even if they are worded differently.
    """
    if len(wanted) == len(rubric) and all(map(_same, wanted, rubric)):
        return list(rubric)
    partners: list[KnownCriterion | None] = [None] * len(wanted)
    by_text: defaultdict[str, list[KnownCriterion]] = defaultdict(list)
    for known in rubric:
        by_text[known.text].append(known)
    for fits in (_same, _same_cluster, _same_points, _same_text):
        for index, criterion in enumerate(wanted):
            if partners[index] is None:
                partners[index] = _taken(criterion, by_text[criterion.text], fits)
    free = [known for alike in by_text.values() for known in alike if _cluster(known)]
    for index, criterion in enumerate(wanted):
        if partners[index] is None and free and _alone(criterion, wanted) and _alone(criterion, rubric):
            partners[index] = _taken(criterion, free, _same_cluster)
    return partners


def _taken(
    criterion: Criterion, free: list[KnownCriterion], fits: Callable[[Criterion, KnownCriterion], bool]
) -> KnownCriterion | None:
    for index, known in enumerate(free):
        if fits(criterion, known):
            return free.pop(index)
    return None


def _same(one: Criterion, other: KnownCriterion) -> bool:
    same = one.text == other.text and one.points == other.points
    return same and (one.tags == other.tags or _cluster(one) == _cluster(other))


def _same_points(one: Criterion, other: KnownCriterion) -> bool:
    return one.points == other.points and _clusters_agree(one, other)


def _same_text(one: Criterion, other: KnownCriterion) -> bool:
    return (one.points is None or other.points is None) and _clusters_agree(one, other)


def _same_cluster(one: Criterion, other: KnownCriterion) -> bool:
    bare = one.points is None or other.points is None
    return bare and _cluster(one) is not None and _cluster(one) == _cluster(other)


def _clusters_agree(one: Criterion, other: KnownCriterion) -> bool:
    return _cluster(one) is None or _cluster(other) is None or _cluster(one) == _cluster(other)


def _alone(criterion: Criterion, rubric: Sequence[Criterion | KnownCriterion]) -> bool:
    """Whether the rubric has exactly one criterion of the criterion's cluster."""
    cluster = _cluster(criterion)
    return cluster is not None and sum(_cluster(other) == cluster for other in rubric) == 1


def complete(rubric: Sequence[Criterion], partners: Sequence[KnownCriterion | None]) -> bool:
    """Give known criteria the tags, points and wording that only the newcomers carry. Returns whether any was given."""
    changed = False
    for criterion, partner in zip(rubric, partners, strict=True):
        if partner is None or (partner.tags == criterion.tags and partner.points == criterion.points):
            continue
        if partner.points is None and criterion.points is not None:
            partner.text, partner.points, partner.changed = criterion.text, criterion.points, True
        tags = merged_tags(partner.tags, criterion.tags)
        if tags != partner.tags:
            partner.tags, partner.changed = tags, True
        changed |= partner.changed
    return changed


def merged_tags(one: tuple[str, ...], other: tuple[str, ...], kinds: Sequence[str] = _KINDS) -> tuple[str, ...]:
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


def arranged(
    known: Sequence[KnownCriterion],
    rubric: Sequence[Criterion],
    partners: Sequence[KnownCriterion | None],
    *,
    newer_order: bool,
) -> list[KnownCriterion]:
    """Both rubrics as one, newcomers included; criteria without points stand behind, by cluster and text.

    Args:
        newer_order: What came decides the order; else it follows what the study holds.
    """
    came = [
        partner or KnownCriterion(criterion.text, criterion.points, criterion.tags, 0)
        for criterion, partner in zip(rubric, partners, strict=True)
    ]
    first, second = (came, known) if newer_order else (known, came)
    both = list({id(criterion): criterion for criterion in (*first, *second)}.values())
    scored = [criterion for criterion in both if criterion.points is not None]
    bare = [criterion for criterion in both if criterion.points is None]
    return scored + sorted(bare, key=lambda criterion: (_cluster(criterion) or "", criterion.text))


def contradiction(prompt_id: str, criterion: Criterion | KnownCriterion, *, came: bool) -> RowFault:
    """The fault that two rubrics of one example differ in this criterion."""
    text = f"{criterion.text[:60]!r} ({criterion.points} points)"
    if came:
        return RowFault(
            f"rubrics: expected the rubric imported before for prompt_id {prompt_id!r}, got the criterion {text} too"
        )
    return RowFault(
        f"rubrics: expected the rubric imported before for prompt_id {prompt_id!r}, got it without the criterion {text}"
    )
