"""A walk over the pages as the server draws them: every page, address and file, with all that comes to the browser."""

import io
import re
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from unittest.mock import PropertyMock

import pandas as pd
import pytest
from sqlalchemy import Engine
from streamlit.elements import spinner
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.context import ContextProxy
from streamlit.runtime.media_file_manager import MediaFileManager
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.local_script_runner import LocalScriptRunner

from evalcore.export import tables as export_tables
from evalcore.reading import adjudication, exposing
from evalcore.study.db import open_study
from evalcore.study.schema import Ask
from pages.shared import common, filters
from tests import leaks, world
from tests.leaks import EVERY_ROLE, MODEL, OPEN_EYES, REVIEWER, Hand
from tests.page_steps import at_address, cookie_of

Query = dict[str, str]
PAGES = (
    "overview", "study", "browse", "review", "my_reads", "models", "judges", "triage", "calibration", "adjudicate", "audit", "export",
)  # fmt: skip
N_EXAMPLES, N_READINGS = 10, 8


@dataclass(frozen=True)
class Visit:
    """An address, with what is chosen on the page and pressed there.

    Attributes:
        chosen: Values of widgets by key.
        pressed: Buttons by key (the number of the read behind it left out), one after the other.
    """

    page: str
    query: Query = field(default_factory=dict)
    chosen: dict[str, Any] = field(default_factory=dict)
    pressed: tuple[str, ...] = ()

    def __str__(self) -> str:
        return " ".join(str(part) for part in (self.page, self.query, self.chosen, self.pressed) if part)


@dataclass(frozen=True)
class Sent:
    """What one visit brings to the browser: messages (elements, titles, the navigation, set addresses), and files that its buttons make.

    The files are made when they are first looked at. Each leaves an event, after which the server reads everything anew: so look at them
    after the walk.
    """

    app: AppTest
    messages: list[ForwardMsg]
    offered: list[Callable[[], bytes] | bytes]

    @cached_property
    def files(self) -> list[bytes]:
        """The files, as words."""
        return [as_words(each() if callable(each) else each) for each in self.offered]

    @property
    def everything(self) -> bytes:
        """All of it."""
        return b"\n".join([*(message.SerializeToString() for message in self.messages), *self.files])

    @property
    def steady(self) -> tuple[bytes, ...]:
        """The same without the numbers that Streamlit draws anew each time."""
        return (*map(_steady, self.messages), *self.files)


class Walker:
    """Visits pages of one study, as one person after the other, as one server does: what it keeps for one, the next may be shown."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.path = path
        self._patch = monkeypatch
        self._messages: list[ForwardMsg] = []
        self._files: list[Callable[[], bytes] | bytes] = []
        self._bundles: list[Callable[[], bytes]] = []
        self._is_bundled = False
        ran, made, later = LocalScriptRunner.run, MediaFileManager.add, MediaFileManager.add_deferred

        def kept(runner: LocalScriptRunner, *arguments: Any, **named: Any) -> Any:
            self._files.clear()
            self._bundles.clear()
            tree = ran(runner, *arguments, **named)
            self._messages += runner.forward_msgs()
            return tree

        def kept_file(files: MediaFileManager, content: bytes, *arguments: Any, **named: Any) -> str:
            self._files.append(content)
            return made(files, content, *arguments, **named)

        def kept_maker(files: MediaFileManager, maker: Callable[[], bytes], *arguments: Any, **named: Any) -> str:
            (self._bundles if str(named["file_name"]).endswith((".zip", "report.html")) else self._files).append(maker)
            return later(files, maker, *arguments, **named)

        # "Reading the cases" comes where that takes long: on a busy machine.
        monkeypatch.setattr(spinner, "DELAY_SECS", 600.0)
        # Who sits down leaves an event with the time: two walks are compared byte by byte.
        monkeypatch.setattr(exposing, "choose_reader", lambda *_: None)
        for writes in ("study.store", "reading.store"):  # so does who opens a conversation
            monkeypatch.setattr(f"evalcore.{writes}.now", lambda: world.START)
        monkeypatch.setattr(LocalScriptRunner, "run", kept)
        monkeypatch.setattr(MediaFileManager, "add", kept_file)
        monkeypatch.setattr(MediaFileManager, "add_deferred", kept_maker)

    def come(self, name: str) -> None:
        """Somebody takes the chair."""
        self._patch.setattr(ContextProxy, "cookies", PropertyMock(return_value=cookie_of(str(self.path), name)))
        self._is_bundled = False

    @property
    def engine(self) -> Engine:
        """The study that the pages have open."""
        return common.engine()

    def blind(self, name: str) -> frozenset[int]:
        """Numbers of the conversations that wait for somebody."""
        return leaks.blind(self.engine, name)

    def settling(self) -> list[int]:
        """Numbers of the responses that wait for the adjudicator."""
        waiting = adjudication.cases(self.engine, leaks.viewer(self.engine, leaks.SETTLER)).waiting
        return [each.key[1] for each in waiting if each.key[1] is not None]

    def flip(self, which: str, *, but: int | None = None) -> int:
        """Turn verdicts round before anybody looks."""
        engine = open_study(str(self.path))
        n_flipped = leaks.flip(engine, which, but=but)
        engine.dispose()
        return n_flipped

    def makers(self) -> list[Callable[[], bytes]]:
        """What makes the files of the last visit, once it is asked for them."""
        return [*(each for each in self._files if callable(each)), *self._bundles]

    def see(self, visit: Visit, *, with_files: bool = True) -> Sent:
        """Go there, and give back all that comes, with the files that are offered.

        The bundle and the report, which are the same whatever is chosen on the page, are asked for where somebody first meets them.
        """
        app = at_address(visit.page)
        for key, value in visit.query.items():
            app.query_params[key] = value
        for key, value in visit.chosen.items():
            app.session_state[key] = value
        self._messages.clear()
        app.run()
        for key in visit.pressed:
            next(button for button in app.button if re.fullmatch(rf"{key}(_\d+)?", str(button.key))).click().run()
        assert not app.exception, (str(visit), [error.value for error in app.exception])
        offered: list[Callable[[], bytes] | bytes] = []
        if with_files:
            offered = [*self._files, *([] if self._is_bundled else self._bundles)]
            self._is_bundled = self._is_bundled or bool(self._bundles)
        return Sent(app, [*self._messages], offered)


def as_words(content: bytes) -> bytes:
    """A file as words: Parquet is packed, and so is a bundle."""
    if content[:4] == b"PK\x03\x04":
        with zipfile.ZipFile(io.BytesIO(content)) as packed:
            words = b"\n".join(packed.read(name) for name in packed.namelist())
        return re.sub(rb'"audit_hash": "\w+"', b"", words)  # holds the time of the newest event
    if content[:4] == b"PAR1":
        return pd.read_parquet(io.BytesIO(content)).to_csv().encode()
    return re.sub(rb"Last hash of the audit trail: \w+|Made on [\d-]+ [\d:]+ UTC", b"", content)


def _steady(message: ForwardMsg) -> bytes:
    same = ForwardMsg()
    same.CopyFrom(message)
    same.ClearField("hash")
    if same.delta.new_element.HasField("download_button"):
        same.delta.new_element.download_button.deferred_file_id = same.delta.new_element.download_button.url = ""
    return same.SerializeToString(deterministic=True)


JUDGES = ("Against physicians", "Criteria", "Between physicians", "Versions and families")
MODELS = ("By theme and axis", "Comparison", "Head to head", "More")
MODELS_FOLDS = {"models_groups_opinion": True, "models_groups_apart": True}
TRIAGE = ("Dangerous misses", "Groups", "Boundary", "Ambiguous", "Flips", "Harm", "Level readers", "Guide")
CALIBRATION = ("Models' confidence", "Ambiguous cases", "Routing")
SECTIONS = {"judges": JUDGES, "models": MODELS, "triage": TRIAGE, "calibration": CALIBRATION}
"""By page, all that its control offers but the one that it begins with."""
BY_LEVEL: tuple[Visit, ...] = (
    *(Visit(page, {f"{page}_show": section}) for page in ("triage", "calibration") for section in SECTIONS[page]),
    *(Visit("triage", {"triage_basis": words}) for words in ("by physicians", "corrected")),
    *(Visit("triage", {"triage_cell": f"{word}: needs C, answers {level}"}) for word, level in (("qa", "C"), ("conversation", "A"))),
)  # fmt: skip
"""All that is shown of cases of triage beyond the sections with which their pages begin."""
RUNS = (Visit("study", {"study_tab": "Runs"}), Visit("study", {"study_tab": "Runs", "run": "1"}))
"""The list of runs, and a run on what waits, all of whose questions failed."""
OVERVIEW = Visit("overview", chosen={"made_of_fold": True})
ADDRESSES: tuple[Visit, ...] = (
    OVERVIEW,
    *(Visit("overview", {"made_of": words}) for words in ("Model", "Length of responses")),
    *(Visit("study", chosen={"study_tab": tab}) for tab in ("Import", "Runs", "Plan", "Reading", "People")),
    *RUNS,
    Visit("browse"),
    *(Visit("browse", {"reads": words}) for words in filters.READS.values()),
    *(Visit("browse", {"label": words, "theme": "hedging"}) for words in ("met", "not met")),
    *(Visit("browse", {"sign": words}) for words in filters.SIGNS.values()),
    *(Visit("browse", {key: words}) for key, words in (("dataset", "invented"), ("category", "other"), ("subset", "hard"))),
    *(Visit("browse", {key: words}) for key, words in (("axis", "accuracy"), ("language", "English"), ("judge", leaks.JUDGE))),
    *(Visit("browse", {key: words}) for key, words in (("model", leaks.SEEN_MODEL), ("differ", "true"))),
    *(Visit("browse", {"example": str(number)}) for number in range(1, N_EXAMPLES + 2)),
    *(Visit("browse", {"example": str(number), "shown": MODEL}) for number in range(1, N_EXAMPLES + 1)),
    *(Visit("browse", {"example": str(number), "shown": f"{MODEL} · conversation · 1"}) for number in range(5, N_EXAMPLES + 1)),
    *(Visit("browse", {key: words}) for key, words in (("source", leaks.SOURCE), ("format", "conversation"), ("level", "A"), ("level", "C"))),
    *(Visit("browse", {"miss": words}) for words in filters.MISSES.values()),
    Visit("browse", {"kind": filters.KINDS["clear"]}),
    *(Visit("browse", {"example": "1", **more}) for more in ({"label": "not met", "only": "true"}, {"reads": "differ from the judge"})),
    Visit("review"),
    *(Visit("review", chosen=chosen) for chosen in ({"source_text": True}, {"guideline_open": True})),
    *(Visit("review", pressed=pressed) for pressed in (("next",), ("next", "next", "back"))),
    Visit("my_reads"),
    *(Visit("my_reads", {"read": str(number)}) for number in range(1, N_READINGS + 2)),
    Visit("judges"),
    Visit("judges", {"judges_judge": leaks.JUDGE}),
    *(Visit("judges", {"judges_show": section}) for section in JUDGES),
    *(Visit("models", {"models_show": section}, chosen=MODELS_FOLDS) for section in MODELS),
    *(Visit("calibration", {"calibration_about": words}) for words in ("criteria", "levels of care")),
    *BY_LEVEL,
    *(Visit("triage", {"triage_show": "Groups", "triage_by": words}) for words in ("Level", "Panel", "Language")),
    Visit("triage", {"triage_show": "Flips", "triage_crossing": "true"}),
    Visit("triage", {"triage_gold": "as read by physicians here"}),
    Visit("models", {"models_claim": "new examples too", "models_readers": "physicians in general"}),
    *(Visit("adjudicate", chosen={"adjudicate_view": view}) for view in ("waiting", "settled", "faults")),
    *(Visit("adjudicate", {"case": word}) for word in ("r1", "r5", "r6", "r7", "r9", "e1", "e6", "e7")),
    Visit("audit"),
    *(Visit("audit", {"audit_person": name}) for name in (OPEN_EYES, *leaks.PEOPLE_AT_READING)),
    *(Visit("audit", {"audit_act": act}) for act in ("judge overridden", "first read submitted", "file imported")),
    *(Visit("export", chosen={"export_what": what, "paper": True}) for what in (*export_tables.WHAT, "meta-eval", "inspect", "split")),
    *(
        Visit("export", chosen={"export_what": what, "export_format_3": file_format})
        for what in ("labels", "verdicts")
        for file_format in ("parquet", "jsonl")
    ),
    Visit("export", chosen={"export_what": "labels", "export_read_only": True}),
    Visit("export", chosen={"export_what": "verdicts", "export_model": leaks.SEEN_MODEL, "export_theme": "hedging"}),
    Visit("export", chosen={"export_what": "meta-eval", "export_read_only": True}),
)  # fmt: skip
BRIEF: tuple[Visit, ...] = (
    *(Visit(page) for page in PAGES if page != "export"),
    *RUNS,
    Visit("study", chosen={"study_tab": "Reading"}),
    Visit("browse", {"example": "1"}),
    Visit("adjudicate", chosen={"adjudicate_view": "faults"}),
    Visit("adjudicate", {"case": "r5"}),
    *(Visit("my_reads", {"read": str(number)}) for number in range(1, N_READINGS + 1)),
    *(
        Visit("export", chosen={"export_what": what, "paper": True})
        for what in (*export_tables.WHAT, "meta-eval", "inspect", "split")
    ),
)
"""Every page as it opens, and what is opened from it."""
FEW: tuple[Visit, ...] = (
    OVERVIEW,
    *(Visit(page) for page in ("review", "judges", "triage", "audit")),
    RUNS[1],
    Visit("browse", {"example": "1"}),
    Visit("adjudicate", {"case": "r5"}),
    Visit("my_reads", {"read": "1"}),
    *(Visit("export", chosen={"export_what": what, "paper": True}) for what in ("verdicts", "acuity")),
)
"""Of these as many as the everyday run has time for: where verdicts stand by themselves, as numbers, and as a file."""


def allowed(visit: Visit, name: str, hand: Hand | None, *, locked: bool) -> set[str]:
    """What may stand there all the same, and why."""
    words: set[str] = set()
    if visit.page in ("review", "my_reads") and hand is not None:
        words.add(hand.conversation)  # it is what the walker reads
        if locked:
            words.add(hand.own)  # the judge on this very response: shown once the first read is locked
    if visit.page == "study" or (visit.page == "audit" and name == EVERY_ROLE):
        words.update(leaks.PEOPLE_AT_READING)  # who is in the study is no secret; what they have read is
    return words


def can_go(visit: Visit, name: str, phase: str) -> bool:
    """Whether a visit can be made: a reader's look at Review takes an item, and only a lead has what assigns."""
    if visit.page == "review":
        return phase != "waiting"
    return not visit.pressed or name != REVIEWER


@dataclass(frozen=True)
class Phase:
    """The study on disk, and what each walker has in hand."""

    path: Path
    hands: dict[str, Hand]


ASSIGNED = {"study_tab": "Reading", "assign_ask": Ask.RESPONSE_ACUITY, "assign_seed": 1, "assign_n": 1}
