"""Give a verdict and take it back, in a word; Dr. Imani Noor unless told otherwise."""

from evalcore.reading import overriding
from evalcore.study import frames
from evalcore.study.db import reading
from evalcore.study.schema import RaterKind
from tests import world

SAID = ("label", "cause", "severity", "right_for_wrong_reason", "explanation")


def press(small, said, *, seen=None, item=None, name="Dr. Imani Noor", judge=world.JUDGE):
    return overriding.give_verdict(
        small.engine, small.viewer(name), **(item or small.item()), decision=said, judge=judge, seen=seen
    )


def take_back(small, seen, *, item=None, name="Dr. Imani Noor"):
    return overriding.undo(small.engine, small.viewer(name), **(item or small.item()), seen=seen)


def standing(small):
    """What physicians' verdicts now stand: label by reviewer."""
    with reading(small.engine) as session:
        found = frames.verdicts(session, kind=RaterKind.REVIEWER, texts=True)
    return dict(zip(found["rater"], found["label"], strict=True))


def labels(small):
    return [row["label"] for row in small.history()]
