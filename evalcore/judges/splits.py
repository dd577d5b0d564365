"""Which conversations a judge may be made with and which test it: the set of a conversation follows from its own words, and nothing else."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from evalcore.errors import OverreadError, refuse
from evalcore.stats.wording import counted

SETS = ("train", "dev", "test")
SPLIT_WHAT = "split"  # how the audit trail names what was taken out
SHARES = (60, 20, 20)  # in percent, of SETS
_WHOLE, _ROOM = 100, 1 << 64


class Split(msgspec.Struct, frozen=True):
    """How conversations are shared out.

    Each has a place in [0, 100) drawn by the SHA-256 of the seed and its words, and the shares cut that line: so the share of a set holds on average, the same
    conversation under another name or in another data set is in the same set, and none moves when more is read or imported.
    """

    seed: int
    shares: tuple[int, int, int] = SHARES

    def set_of(self, messages: str) -> str:
        """The set of a conversation, which is given as the tables hold it."""
        drawn = hashlib.sha256(f"{self.seed}\n{self.key(messages)}".encode("utf-8", "surrogatepass")).digest()
        place = int.from_bytes(drawn[:8]) * _WHOLE / _ROOM
        train, dev, _ = self.shares
        return SETS[0] if place < train else SETS[1] if place < train + dev else SETS[2]

    @staticmethod
    def key(messages: str) -> str:
        """A conversation's words, whatever white space stands between them."""
        return "\n".join(f"{turn['role']}: {' '.join(str(turn['content']).split())}" for turn in json.loads(messages))


class MadeWith(msgspec.Struct, frozen=True):
    """A set that somebody says a judge's prompt was made with, as the trail of the study knows its file."""

    sha256: str
    seed: int
    shares: tuple[int, int, int]
    set: str

    @property
    def words(self) -> str:
        """As people read it."""
        return f"{self.set} of seed {self.seed} ({', '.join(map(str, self.shares))} %)"

    def holds(self, messages: str) -> bool:
        """Whether a conversation belongs to this set, as far as the seed says: also one that was labelled only after the file was written."""
        return Split(self.seed, self.shares).set_of(messages) == self.set


def parse_shares(said: str) -> tuple[int, int, int]:
    """Three whole percentages that add up to 100, e.g. "60,20,20"; 0: the set stays empty."""
    parts = [part.strip() for part in said.split(",")]
    if len(parts) != len(SETS) or not all(part.isascii() and part.isdigit() for part in parts):
        refuse(f"shares: expected three whole percentages of {', '.join(SETS)}, such as 60,20,20, got {said!r}")
    return check_shares([int(part) for part in parts])


def check_shares(shares: Sequence[int]) -> tuple[int, int, int]:
    """The shares, where they add up to 100; else an OverreadError."""
    train, dev, test = shares
    if min(shares) < 0 or sum(shares) != _WHOLE:
        msg = f"shares: expected percentages from 0 that add up to {_WHOLE}, got {' + '.join(map(str, shares))} = {sum(shares)}"
        refuse(msg)
    return train, dev, test


def made_with(content: bytes, name: str, written: Iterable[Mapping[str, object]]) -> MadeWith:
    """The set that a file holds, by its hash; `written`: what the trail says of each split that was written (seed, shares, files)."""
    sha256 = hashlib.sha256(content).hexdigest()
    for known in sets_written(written):
        if known.sha256 == sha256:
            return known
    msg = f"--made-with: expected a file as `overread split` of this study wrote it, got {name}, which the audit trail does not know"
    raise OverreadError(msg)


def sets_written(written: Iterable[Mapping[str, object]]) -> list[MadeWith]:
    """Every set that was ever written, the newest first, each content once."""
    found: dict[str, MadeWith] = {}
    for detail in written:
        split = msgspec.convert(detail, Split)
        files = msgspec.convert(detail.get("files", {}), dict[str, str])
        for name, sha256 in files.items():
            found.setdefault(sha256, MadeWith(sha256, split.seed, split.shares, name.removesuffix(".jsonl")))
    return list(found.values())


def check_unseen(conversations: Iterable[str], statements: Mapping[str, Sequence[MadeWith]], judge: str) -> None:
    """OverreadError where a judge is tested on a set that one of its prompts (version to sets) was made with."""
    distinct = {Split.key(messages): messages for messages in conversations}
    for version, sets in statements.items():
        for one in sets:
            n_seen = sum(map(one.holds, distinct.values()))
            if n_seen:
                refuse(
                    f"{judge}: expected conversations that it was not made with, got {n_seen:,} of {counted(len(distinct), 'conversation')} "
                    f"that belong to {one.words}, with which prompt {version} was made: test it on another set"
                )
