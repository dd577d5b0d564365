"""Whoever is to read blind finds nowhere what the judge said, which model answered, or what others read: every page, address, file and log."""

import io
import logging
import re
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import PropertyMock

import pandas as pd
import pytest
from sqlalchemy import Engine
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.context import ContextProxy
from streamlit.runtime.media_file_manager import MediaFileManager
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.local_script_runner import LocalScriptRunner

from evalcore import export
from evalcore.db import open_study
from evalcore.queries import browse
from evalcore.schema import Ask
from pages import _common, _filters
from tests import leaks
from tests.leaks import BLIND, EVERY_ROLE, MODEL, OPEN_EYES, REVIEWER, SECRETS, WALKERS, Hand
from tests.test_pages import ROOT, _no_cache, cookie_of, location, open_page

__all__ = ["_no_cache", "location", "open_page"]  # fixtures

Query = dict[str, str]
PAGES = (
    "overview", "study", "browse", "review", "my_reads", "models", "judges", "triage", "calibration", "adjudicate", "audit", "export",
)  # fmt: skip
N_EXAMPLES, N_READINGS = 7, 7


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
    """What one visit brings to the browser.

    Attributes:
        everything: All messages (elements, titles, the navigation, set addresses), and the files that its buttons make.
        steady: The same without the numbers that Streamlit draws anew each time.
    """

    everything: bytes
    steady: tuple[bytes, ...]
    app: AppTest = field(compare=False)


class Walker:
    """Visits pages of one study, as one person after the other, as one server does: what it keeps for one, the next may be shown."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.path = path
        self._patch = monkeypatch
        self._messages: list[ForwardMsg] = []
        self._files: list[Callable[[], bytes] | bytes] = []
        self._parts = (
            AppTest.from_file(str(ROOT / "app.py")).run()._bidi_component_manager
        )  # to find it takes longer than a run
        ran, made, later = LocalScriptRunner.run, MediaFileManager.add, MediaFileManager.add_deferred

        def kept(runner: LocalScriptRunner, *arguments: Any, **named: Any) -> Any:
            self._files.clear()
            tree = ran(runner, *arguments, **named)
            self._messages += runner.forward_msgs()
            return tree

        def kept_file(files: MediaFileManager, content: bytes, *arguments: Any, **named: Any) -> str:
            self._files.append(content)
            return made(files, content, *arguments, **named)

        def kept_maker(files: MediaFileManager, maker: Callable[[], bytes], *arguments: Any, **named: Any) -> str:
            self._files.append(maker)
            return later(files, maker, *arguments, **named)

        monkeypatch.setattr(LocalScriptRunner, "run", kept)
        monkeypatch.setattr(MediaFileManager, "add", kept_file)
        monkeypatch.setattr(MediaFileManager, "add_deferred", kept_maker)

    def come(self, name: str) -> None:
        """Somebody takes the chair."""
        self._patch.setattr(ContextProxy, "cookies", PropertyMock(return_value=cookie_of(str(self.path), name)))
        app = self._app().run()
        self._hashes = {page: app.switch_page(f"pages/{page}.py")._page_hash for page in PAGES}

    @property
    def engine(self) -> Engine:
        """The study that the pages have open."""
        return _common.engine()

    def blind(self, name: str) -> frozenset[int]:
        """Numbers of the conversations that wait for somebody."""
        return leaks.blind(self.engine, name)

    def flip(self, which: str, *, but: int | None = None) -> int:
        """Turn verdicts round before anybody looks."""
        engine = open_study(str(self.path))
        n_flipped = leaks.flip(engine, which, but=but)
        engine.dispose()
        return n_flipped

    def makers(self) -> list[Callable[[], bytes]]:
        """What makes the files of the last visit, once it is asked for them."""
        return [each for each in self._files if callable(each)]

    def _app(self) -> AppTest:
        app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=30)
        app._bidi_component_manager = self._parts
        return app

    def see(self, visit: Visit, *, with_files: bool = True) -> Sent:
        """Go there, and give back all that comes, with the files that are offered; a file leaves an event, and so ends what is kept."""
        app = self._app()
        app._page_hash = self._hashes[visit.page]
        for key, value in visit.query.items():
            app.query_params[key] = value
        for key, value in visit.chosen.items():
            app.session_state[key] = value
        self._messages.clear()
        app.run()
        for key in visit.pressed:
            next(button for button in app.button if re.fullmatch(rf"{key}(_\d+)?", str(button.key))).click().run()
        assert not app.exception, (str(visit), [error.value for error in app.exception])
        offered = self._files if with_files else []
        messages, files = self._messages, [_read(each() if callable(each) else each) for each in offered]
        steady = [_steady(message) for message in messages]
        everything = b"\n".join([*(message.SerializeToString() for message in messages), *files])
        return Sent(everything, (*steady, *files), app)


def _read(content: bytes) -> bytes:
    """A file as words: Parquet is packed, and so is a bundle."""
    if content[:4] == b"PK\x03\x04":
        with zipfile.ZipFile(io.BytesIO(content)) as packed:
            words = b"\n".join(packed.read(name) for name in packed.namelist())
        return re.sub(rb'"audit_hash": "\w+"', b"", words)  # holds the time of the newest event
    return pd.read_parquet(io.BytesIO(content)).to_csv().encode() if content[:4] == b"PAR1" else content


def _steady(message: ForwardMsg) -> bytes:
    same = ForwardMsg()
    same.CopyFrom(message)
    same.ClearField("hash")
    if same.delta.new_element.HasField("download_button"):
        same.delta.new_element.download_button.deferred_file_id = same.delta.new_element.download_button.url = ""
    return same.SerializeToString(deterministic=True)


def test_the_walk_knows_every_page():
    listed = re.findall(r'"pages/(\w+)\.py"', (ROOT / "app.py").read_text())
    assert sorted(listed) == sorted(PAGES)


# ---------------------------------------------------------------- where one may go

JUDGES = ("Against physicians", "Criteria", "Between physicians", "Versions and families")
MODELS = ("By theme and axis", "Who is better", "Head to head", "More")
ADDRESSES: tuple[Visit, ...] = (
    Visit("overview"),
    *(Visit("overview", {"made_of": words}) for words in ("Model", "Length of responses")),
    *(Visit("study", chosen={"study_tab": tab}) for tab in ("Import", "Plan", "Reading", "People")),
    Visit("browse"),
    *(Visit("browse", {"reads": words}) for words in _filters.READS.values()),
    *(Visit("browse", {"label": words, "theme": "hedging"}) for words in ("met", "not met")),
    *(Visit("browse", {"sign": words}) for words in _filters.SIGNS.values()),
    *(Visit("browse", {key: words}) for key, words in (("dataset", "invented"), ("category", "other"), ("subset", "hard"))),
    *(Visit("browse", {key: words}) for key, words in (("axis", "accuracy"), ("language", "English"), ("judge", leaks.JUDGE))),
    *(Visit("browse", {key: words}) for key, words in (("model", leaks.SEEN_MODEL), ("differ", "true"))),
    *(Visit("browse", {"example": str(number)}) for number in range(1, N_EXAMPLES + 2)),
    *(Visit("browse", {"example": str(number), "shown": MODEL}) for number in range(1, N_EXAMPLES + 1)),
    *(Visit("browse", {"example": str(number), "shown": f"{MODEL} · conversation · 1"}) for number in range(5, N_EXAMPLES + 1)),
    *(Visit("browse", {key: words}) for key, words in (("source", leaks.SOURCE), ("format", "conversation"), ("level", "A"), ("level", "D"))),
    *(Visit("browse", {"example": "1", **more}) for more in ({"label": "not met", "only": "true"}, {"reads": "differ from the judge"})),
    Visit("review"),
    *(Visit("review", chosen=chosen) for chosen in ({"formatted": True}, {"guideline_open": True})),
    *(Visit("review", pressed=pressed) for pressed in (("next",), ("next", "next", "back"))),
    Visit("my_reads"),
    *(Visit("my_reads", {"read": str(number)}) for number in range(1, N_READINGS + 2)),
    Visit("judges"),
    Visit("judges", {"judges_judge": leaks.JUDGE}),
    *(Visit("judges", {"judges_show": section}) for section in JUDGES),
    *(Visit("models", {"models_show": section}) for section in MODELS),
    *(Visit("calibration", {"calibration_about": words}) for words in ("criteria", "levels of care")),
    Visit("models", {"models_claim": "new examples too", "models_readers": "physicians in general"}),
    *(Visit("adjudicate", chosen={"adjudicate_view": view}) for view in ("waiting", "settled", "faults")),
    *(Visit("adjudicate", {"case": word}) for word in ("r1", "r5", "r6", "r7", "r9", "e1", "e4")),
    Visit("audit"),
    *(Visit("audit", {"audit_person": name}) for name in (OPEN_EYES, *leaks.PEOPLE_AT_READING)),
    *(Visit("audit", {"audit_act": act}) for act in ("judge overridden", "first read submitted", "file imported")),
    *(Visit("export", chosen={"export_what": what}) for what in (*export.WHAT, "meta-eval")),
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
    Visit("study", chosen={"study_tab": "Reading"}),
    Visit("browse", {"example": "1"}),
    Visit("adjudicate", chosen={"adjudicate_view": "faults"}),
    Visit("adjudicate", {"case": "r5"}),
    *(Visit("my_reads", {"read": str(number)}) for number in range(1, N_READINGS + 1)),
    *(Visit("export", chosen={"export_what": what}) for what in (*export.WHAT, "meta-eval")),
)
"""Every page as it opens, and what is opened from it."""


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


# ---------------------------------------------------------------- the study, in the three phases of a read


@dataclass(frozen=True)
class Phase:
    """The study on disk, and what each walker has in hand."""

    path: Path
    hands: dict[str, Hand]


@pytest.fixture(scope="module")
def phases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Phase]:
    folder = tmp_path_factory.mktemp("blind")
    path = folder / "waiting.db"
    leaks.make(str(path), folder).dispose()
    made = {"waiting": Phase(path, {})}
    for phase, act in (("in_hand", leaks.take_in_hand), ("locked", leaks.lock)):
        path = leaks.copied(path, folder / f"{phase}.db")
        engine = open_study(str(path))
        made[phase] = Phase(path, {name: act(engine, name) for name in WALKERS})
        engine.dispose()
    return made


@pytest.fixture
def walker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, open_page: object) -> Callable[[Path], Walker]:
    """A server on a copy of a study; `open_page` is asked for since it opens pages as the launcher does."""

    def start(path: Path, *, name: str = "study") -> Walker:
        copy = leaks.copied(path, tmp_path / f"{name}.db")
        monkeypatch.setenv("OVERREAD_DB", str(copy))
        monkeypatch.setattr(ContextProxy, "cookies", PropertyMock(return_value={}))
        return Walker(copy, monkeypatch)

    return start


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> Callable[[], bytes]:
    """All that was logged and printed; everything is logged but SQL, which the database's own module logs where it is told to."""
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.WARNING, "sqlalchemy")

    def collected() -> bytes:
        printed = capfd.readouterr()
        assert caplog.text
        return "\n".join((caplog.text, printed.out, printed.err)).encode()

    return collected


def warmed(one: Walker) -> None:
    """Somebody who may see everything opens every page first: what the server keeps of that must not reach the next."""
    one.come(OPEN_EYES)
    for visit in BRIEF:
        one.see(visit, with_files=False)


def leaked(one: Walker, name: str, visits: Sequence[Visit], phase: str, hand: Hand | None) -> list[str]:
    """Visits that show a secret, each with the words."""
    one.come(name)
    shown = []
    for visit in visits:
        if can_go(visit, name, phase):
            words_hidden = (*SECRETS, *BLIND)
            words = leaks.found(words_hidden, one.see(visit).everything)
            said = [value.encode() for value in visit.query.values()]
            echoes = leaks.found(words_hidden, *said)  # what the address says itself: see below
            bad = words - allowed(visit, name, hand, locked=phase == "locked") - echoes
            shown += [f"{visit}: {', '.join(sorted(bad))}"] if bad else []
    return shown


def test_whoever_waits_for_nothing_finds_every_secret_on_the_same_walk(walker, phases):
    # The walks below prove something only where their eyes see: the same roles, the same addresses.
    one = walker(phases["in_hand"].path)
    one.come(OPEN_EYES)
    by_page: dict[str, set[str]] = {page: set() for page in PAGES}
    for visit in (*BRIEF, *(visit for visit in ADDRESSES if "example" in visit.query)):
        by_page[visit.page] |= leaks.found((*SECRETS, *BLIND), one.see(visit).everything)
    assert by_page["browse"] >= {*SECRETS, *BLIND}
    assert by_page["export"] >= {*SECRETS, *BLIND}
    assert by_page["audit"] >= {MODEL, *leaks.PEOPLE_AT_READING}
    assert by_page["adjudicate"] >= {BLIND[0], leaks.FIRST_NOTE, leaks.IMPORTED_NOTE, leaks.OPEN_NOTE}
    assert by_page["overview"] >= {leaks.IMPORTED_READER, leaks.READER}
    assert leaks.READER in by_page["judges"]
    assert MODEL in by_page["study"]


@pytest.mark.parametrize("name", WALKERS)
def test_no_page_address_or_file_shows_a_secret_while_an_item_is_half_marked(name, walker, phases, said):
    one, phase = walker(phases["in_hand"].path), phases["in_hand"]
    warmed(one)
    shown = leaked(one, name, ADDRESSES, "in_hand", phase.hands[name])
    assert not shown, "\n".join(shown)
    assert leaks.found((*SECRETS, *BLIND), said()) == set()


@pytest.mark.parametrize("name", WALKERS)
def test_nor_does_any_while_all_waits_or_one_is_locked_but_the_judge_on_that_very_response(name, walker, phases):
    for phase in ("waiting", "locked"):
        one, hand = walker(phases[phase].path, name=phase), phases[phase].hands.get(name)
        shown = leaked(one, name, BRIEF, phase, hand)
        assert not shown, f"{phase}: " + "\n".join(shown)
    assert hand is not None
    revealed = one.see(Visit("review")).everything
    assert leaks.found(SECRETS, revealed) == {hand.own}


def test_a_conversation_that_waits_has_no_verdict_on_its_page_and_one_that_does_not_has(walker, phases):
    one = walker(phases["in_hand"].path)
    for name in WALKERS:
        one.come(name)
        for number in range(1, N_EXAMPLES + 1):
            shown = one.see(Visit("browse", {"example": str(number)}))
            is_blind = number in one.blind(name)
            assert (b'class="or-verdict' in shown.everything) is not is_blind
            assert bool(shown.app.get("button_group")) is not is_blind
            assert (b"waits for your first read" in shown.everything) is is_blind


def test_a_read_that_belongs_to_somebody_else_opens_no_more_than_one_that_is_not_there(walker, phases):
    one = walker(phases["locked"].path)
    one.come(REVIEWER)

    def main(number: int) -> list[bytes]:
        shown = one.see(Visit("my_reads", {"read": str(number)})).app.main
        return [
            element.proto.SerializeToString().replace(f"item {number} in".encode(), b"item N in")
            for element in shown.get("html")
        ]

    numbers, own = {*range(1, N_READINGS + 1)}, phases["locked"].hands[REVIEWER].number
    assert {number for number in numbers if main(number) == main(9)} == numbers - {own}


# ---------------------------------------------------------------- words that somebody tries in an address

ASSIGNED = {"study_tab": "Reading", "assign_ask": Ask.RESPONSE_ACUITY, "assign_seed": 1, "assign_n": 1}
TRIED = (MODEL, leaks.EXPLANATIONS[0], leaks.FIRST_NOTE, leaks.RATIONALE, leaks.IMPORTED_READER, BLIND[1])
ECHOES: dict[str, tuple[tuple[str, Query], ...]] = {
    REVIEWER: (
        ("browse", {"q": "{}"}), ("browse", {"model": "{}"}), ("browse", {"example": "1", "shown": "{}"}), ("judges", {"judges_judge": "{}"}),
    ),
    EVERY_ROLE: (("browse", {"q": "{}"}), ("audit", {"audit_search": "{}"}), ("audit", {"audit_person": "{}"}), ("adjudicate", {"case": "{}"})),
}  # fmt: skip
"""By walker: addresses into which somebody may put a word."""


@pytest.mark.parametrize("name", WALKERS)
def test_a_secret_word_in_an_address_opens_no_more_than_any_other_word(name, walker, phases):
    one = walker(phases["in_hand"].path)
    one.come(name)
    for page, query in ECHOES[name]:
        in_vain: dict[str, tuple[bytes, ...]] = {}
        for word in TRIED:
            other = "x" * len(word)
            for said in {word, other} - {*in_vain}:
                in_vain[said] = one.see(Visit(page, {key: value.format(said) for key, value in query.items()})).steady
            masked = tuple(part.replace(word.encode(), other.encode()) for part in in_vain[word])
            assert masked == in_vain[other], (page, query, word)


def test_a_secret_word_by_which_items_would_be_assigned_finds_no_more_than_any_other_word(walker, phases):
    one = walker(phases["in_hand"].path)

    def assigned(word: str) -> Sent:
        return one.see(Visit("study", chosen={**ASSIGNED, "assign_q": word}, pressed=("assign_check",)))

    one.come(EVERY_ROLE)
    for word in TRIED:
        other = "x" * len(word)
        masked = tuple(part.replace(word.encode(), other.encode()) for part in assigned(word).steady)
        assert masked == assigned(other).steady, word
    one.come(OPEN_EYES)
    assert b"items would be assigned" in assigned(leaks.EXPLANATIONS[0]).everything


# ---------------------------------------------------------------- what cannot be looked for by a word: labels

NOT_MET = {"assign_judge": leaks.JUDGE, "assign_label": "not_met", "assign_sign": "desirable"}  # once turned round
FLIPPED: tuple[Visit, ...] = (
    *(visit for visit in BRIEF if "read" not in visit.query),
    *(Visit("browse", {"reads": _filters.READS[state]}) for state in (browse.OVERRIDDEN, browse.CONFLICTING)),
    Visit("browse", {"label": "met"}),
    Visit("study", chosen={**ASSIGNED, **NOT_MET}, pressed=("assign_check",)),
    *(Visit("study", chosen={**ASSIGNED, "assign_reads": state}, pressed=("assign_check",)) for state in (browse.OVERRIDDEN, browse.CONFLICTING)),
)  # fmt: skip


def changed(
    walker: Callable[..., Walker], phase: Phase, name: str, visits: Sequence[Visit], spared: int | None
) -> dict[str, list[str]]:
    """Visits that look otherwise once verdicts are turned round, by what is turned round."""
    seen = {}
    for which in ("nothing", *leaks.FLIPS):
        one = walker(phase.path, name=f"{phase.path.stem} {which}")
        if which != "nothing":
            assert one.flip(which, but=spared if which == "judge" else None) > 0
        one.come(name)
        seen[which] = [one.see(visit).steady for visit in visits]
    before = seen.pop("nothing")
    return {
        which: [str(v) for v, *both in zip(visits, before, after, strict=True) if both[0] != both[1]]
        for which, after in seen.items()
    }


@pytest.mark.parametrize("name", WALKERS)
def test_other_labels_where_somebody_is_blind_change_no_byte_of_what_they_see(name, walker, phases):
    # No page is left out, and no total: what a blind reader is told of the whole study is counted without what waits for them.
    none: dict[str, list[str]] = {which: [] for which in leaks.FLIPS}
    own = phases["locked"].hands[name].number
    visits = [visit for visit in (*FLIPPED, Visit("my_reads", {"read": str(own)})) if can_go(visit, name, "locked")]
    assert changed(walker, phases["locked"], name, visits, own) == none
    visits = [Visit("review"), Visit("review", pressed=("next",)), Visit("my_reads")]
    assert changed(walker, phases["in_hand"], name, visits, None) == none


def test_other_labels_are_seen_by_whoever_is_not_blind(walker, phases):
    visits = [Visit("overview"), Visit("browse"), Visit("judges"), Visit("export"), Visit("adjudicate"), FLIPPED[-2]]
    found = changed(walker, phases["in_hand"], OPEN_EYES, visits, None)
    assert found["judge"] == list(map(str, visits))
    assert found["readers"] == list(map(str, visits))


# ---------------------------------------------------------------- what is kept or still open when a conversation becomes blind


def test_a_file_that_is_made_after_a_conversation_was_assigned_leaves_it_out(walker, phases):
    one = walker(phases["waiting"].path)
    one.come(OPEN_EYES)
    one.see(Visit("export", chosen={"export_what": "verdicts"}))
    table, bundle = one.makers()
    for maker in (table, bundle):
        assert leaks.found(SECRETS, _read(maker())) >= {MODEL}
    leaks.assign_to(one.engine, OPEN_EYES)
    for maker in (table, bundle):
        assert leaks.found((*SECRETS, *BLIND), _read(maker())) == set()


def test_a_rubric_that_is_redrawn_after_its_conversation_was_assigned_shows_nothing(walker, phases):
    one = walker(phases["waiting"].path)
    one.come(OPEN_EYES)

    def rubric(person, example):
        from pages import _rubric

        _rubric.panel(person, example, [example], "Magpie", None)

    def drawn() -> bytes:
        app = AppTest.from_function(rubric, kwargs={"person": leaks.viewer(one.engine, OPEN_EYES), "example": 1}).run()
        assert not app.exception
        return b"\n".join(element.proto.SerializeToString() for element in app.get("html"))

    assert leaks.found(SECRETS, drawn())
    leaks.assign_to(one.engine, OPEN_EYES)
    assert leaks.found(SECRETS, drawn()) == set()


# ---------------------------------------------------------------- files, on both databases


@pytest.fixture
def engine(database_url: str, tmp_path: Path) -> Iterator[Engine]:
    made = leaks.make(database_url, tmp_path)
    for name in WALKERS:
        leaks.take_in_hand(made, name)
    yield made
    made.dispose()


def files(engine: Engine, part: export.Part) -> dict[str, bytes]:
    tables = {what: export.table(engine, what, part) for what in export.WHAT}
    made = {
        f"{what}.{kind}": _read(write(table))
        for what, table in tables.items()
        for kind, write in export.WRITERS.items()
    }
    return made | {"meta-eval": export.meta_eval_rows(engine, part)}


def test_files_for_a_blind_reader_hold_no_secret_and_do_not_change_with_what_is_hidden(engine):
    parts = [export.Part(blind=leaks.blind(engine, name)) for name in WALKERS]
    assert parts[0] == parts[1]
    before, whole = files(engine, parts[0]), files(engine, export.Part())
    assert leaks.found((*SECRETS, *BLIND), *whole.values()) == {*SECRETS, *BLIND}
    assert leaks.found((*SECRETS, *BLIND), *before.values()) == set()
    assert leaks.OPEN.encode() in before["labels.csv"]
    for which in leaks.FLIPS:
        assert leaks.flip(engine, which) > 0
        assert files(engine, parts[0]) == before
        assert files(engine, export.Part()) != whole
