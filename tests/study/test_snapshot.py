"""The files of what judges and physicians said never say anything else than the database, whatever happens to the study and to them."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import Phase, example as case, given, settings, strategies as st
from sqlalchemy import Engine, func, insert, select
from sqlmodel import Session

from evalcore.errors import OverreadError
from evalcore.study import deleting, snapshot, store
from evalcore.study.corrections import mending, renaming
from evalcore.study.corrections.renaming import Kind
from evalcore.study.db import connect, open_study, reading, writing
from evalcore.study.frames import not_superseded
from evalcore.study.schema import Acuity, Administrator, Broken, Label, RaterKind, Stage, Verdict
from evalcore.study.tables import TABLES, now
from tests import world
from tests.study.test_mending_histories import ANA, FILES, NAMES, History, imports

ROOT = Path(__file__).resolve().parents[2]
OTHERS = {was: (kind, name) for kind, was, name in NAMES} | {"Judge B": (Kind.JUDGE, "Jay")}
OF_READ = ("verdict_id", "example_id", "response_id", "criterion_id", "rater_id", "code", "stage", "selection")
READ_AS: tuple[dict[str, bool], ...] = ({}, {"with_broken": True}, {"every_row": True})


@pytest.fixture(autouse=True)
def every_row_is_worth_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(snapshot, "WORTH", 1)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def agrees(engine: Engine) -> None:
    """What the files give is what a plain query gives, whichever rows the session shows."""
    for how in READ_AS:
        with reading(engine, **how) as session:
            verdict, response = TABLES["verdict"].c, TABLES["response"].c
            of = select(verdict.response_id, verdict.rater_id, verdict.label, verdict.criterion_id, verdict.confidence)
            said = of.where(verdict.stage == Stage.JUDGE, verdict.label.is_not(None), not_superseded())
            said = said.where(verdict.response_id.is_not(None))
            rows = [tuple(row) for row in session.connection().execute(said)]
            on_criteria = sorted(row[:4] for row in rows if row[3] is not None)
            of_levels = sorted((*row[:3], -1.0 if row[4] is None else row[4]) for row in rows if row[3] is None)
            names = ("id", "example_id", "model_id", "sample_index")
            counted = (func.coalesce(response.n_criteria, -1), func.length(response.text), response.dataset)
            plain = select(*(response[name] for name in names), *counted).order_by(response.id)
            answered = [tuple(row) for row in session.connection().execute(plain)]
            assert told(snapshot.verdicts(session), "criterion_id") == on_criteria
            assert told(snapshot.verdicts(session, "level"), "confidence") == of_levels
            assert read(session) == read_plainly(session)
            found, evaluations = snapshot.responses(session)
            named = [evaluations[code] for code in found["evaluation"].tolist()]
            columns = (found[name].tolist() for name in (*names, "n_criteria", "n_chars"))
            assert list(zip(*columns, named, strict=True)) == answered


def read(session: Session) -> list[tuple[Any, ...]]:
    found = snapshot.reads(session)
    words = {"code": snapshot.SAID, "stage": snapshot.STAGES, "selection": snapshot.SELECTIONS}
    columns = [
        [(*words[name], None)[code] for code in found[name].tolist()] if name in words else found[name].tolist()
        for name in OF_READ
    ]
    blinded = [None if said < 0 else bool(said) for said in found["blinded"].tolist()]
    chance = [None if np.isnan(one) else one for one in found["inclusion_probability"].tolist()]
    return list(zip(*columns, blinded, chance, strict=True))


def read_plainly(session: Session) -> list[tuple[Any, ...]]:
    verdict = TABLES["verdict"].c
    named = {"verdict_id": "id", "code": "label"}
    columns = (verdict[named.get(name, name)] for name in (*OF_READ, "blinded", "inclusion_probability"))
    given = verdict.stage != Stage.JUDGE, verdict.label.is_not(None), verdict.criterion_id.is_not(None)
    rows = session.connection().execute(select(*columns).where(*given, not_superseded()).order_by(verdict.id))
    return [tuple(row) for row in rows]


def told(parts: Iterator[snapshot.Columns], last: str) -> list[tuple[Any, ...]]:
    rows = []
    for part in parts:
        words = [snapshot.SAID[code] for code in part["code"].tolist()]
        cells = (np.nan_to_num(part[name], nan=-1.0).tolist() for name in ("response_id", "rater_id", last))
        rows += [(response, rater, word, more) for word, response, rater, more in zip(words, *cells, strict=True)]
    return sorted(rows)


def files(engine: Engine) -> list[Path]:
    place = snapshot.folder(engine)
    return sorted(place.glob("*.arrow")) if place else []


def n_filed(engine: Engine, kind: str) -> int:
    """Rows in the files that the database vouches for."""
    with reading(engine) as session:
        return sum(file.table.num_rows for file in snapshot._files(session, kind))


class Watched(History):
    """A history in which the files are lost, torn and left half written as well."""

    def do(self, act: str, *what: str) -> None:
        super().do(act, *what)
        agrees(self.engine)

    def _name(self, was: str, *, merge: bool = False) -> None:
        kind, name = OTHERS[was]
        with reading(self.engine) as session:
            known = renaming.names(session, kind)
        name = next((other for other in known if other != was), "") if merge else name
        try:
            renaming.rename(self.engine, kind, was, name, merge=merge, actor=ANA)
        except OverreadError:  # there is none of the name, or they cannot be told apart
            return

    def _merge(self, was: str) -> None:
        self._name(was, merge=True)

    def _break(self) -> None:
        if (item := self._response()) is not None:
            mending.mark_broken(self.engine, item[1], reason=Broken.CUT_OFF, actor=ANA)

    def _run(self, name: str) -> None:
        """A judge says the other thing, in place of what it said before."""
        if (item := self._response()) is None:
            return
        said = dict(zip(("example_id", "response_id", "criterion_id"), item, strict=True))
        verdict = TABLES["verdict"].c
        with writing(self.engine) as session:
            rater = store.ensure_rater(session, RaterKind.JUDGE, name)
            mine = (verdict.rater_id == rater, verdict.response_id == item[1], verdict.criterion_id == item[2])
            before = (
                session.connection().execute(select(verdict.id, verdict.label).where(*mine, not_superseded())).first()
            )
            label = Label.NOT_MET if before is not None and before.label == Label.MET else Label.MET
            supersedes = None if before is None else before.id
            given = Verdict(
                rater_id=rater, stage=Stage.JUDGE, label=label, explanation="So.", supersedes=supersedes, **said
            )
            store.add_verdicts(session, [given], actor=name, action="answers saved")

    def _lose(self) -> None:
        snapshot.remove(self.engine)

    def _tear(self) -> None:
        for path in files(self.engine)[:1]:
            path.write_bytes(path.read_bytes()[:-9])

    def _spoil(self) -> None:
        for path in files(self.engine)[-1:]:
            content = bytearray(path.read_bytes())
            content[len(content) // 2] ^= 1
            path.write_bytes(content)

    def _kill(self) -> None:
        """As after a writer that was killed: what it had written lies there, and is nothing."""
        place = snapshot.folder(self.engine)
        assert place is not None
        for path in files(self.engine)[:1]:
            (place / ".unfinished-1").write_bytes(path.read_bytes()[:99])
            path.unlink()

    def _no_room(self) -> None:
        with patch.object(snapshot.os, "fsync", side_effect=OSError(28, "No space left on device")):
            snapshot.extend(self.engine)


@contextmanager
def history(url: str) -> Iterator[Watched]:
    with tempfile.TemporaryDirectory() as folder:
        watched = Watched(url or f"sqlite:///{folder}/study.db", Path(folder))
        try:
            yield watched
        finally:
            watched.engine.dispose()


FILE, NAME = st.sampled_from(list(FILES)), st.sampled_from(list(OTHERS))
STEPS = st.one_of(
    st.tuples(st.just("import"), FILE),
    st.tuples(st.sampled_from(["withdraw", "restore"]), FILE),
    st.tuples(st.sampled_from(["name", "merge"]), NAME),
    st.tuples(st.just("run"), st.sampled_from(["Judge A", "Judge B"])),
    st.tuples(st.just("read"), st.just("Dr. Vale")),
    st.tuples(st.sampled_from(["break", "lose", "tear", "spoil", "kill", "no_room"])),
)
MUCH = [
    *imports("examples.jsonl", *(name for name in FILES if "allresults" in name), "judge.jsonl", "cases.csv", "answers.csv"),
    ("run", "Judge A"), ("read", "Dr. Vale"), ("withdraw", "judge.jsonl"), ("name", "model-a"), ("merge", "model-b"), ("break",), ("tear",),
    ("restore", "judge.jsonl"), ("spoil",), ("import", "levels.csv"), ("kill",), ("merge", "Judge A"), ("lose",), ("run", "Judge B"),
]  # fmt: skip


@pytest.mark.slow  # the history below is one of these, on both databases
@case(MUCH)
@given(st.lists(STEPS, min_size=3, max_size=14).map(lambda steps: [*imports("examples.jsonl"), *steps]))
@settings(max_examples=25, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
def test_the_files_say_what_the_database_says_whatever_happens(steps):
    with history("") as watched:
        for step in steps:
            watched.do(*step)


@pytest.mark.slow_on_postgresql
def test_the_files_say_what_the_database_says_on_both_databases(database_url):
    with history(database_url) as watched:
        for step in MUCH:
            watched.do(*step)
        snapshot.extend(watched.engine)
        verdict = TABLES["verdict"].c
        with reading(watched.engine, every_row=True) as session:
            stored = select(func.count()).where(verdict.stage == Stage.JUDGE, verdict.label.is_not(None))
            n_on_criteria = session.connection().execute(stored.where(verdict.criterion_id.is_not(None))).scalar_one()
        assert n_filed(watched.engine, "verdict") == n_on_criteria > 5
        assert n_filed(watched.engine, "read") > 0


@pytest.fixture
def made(database_url: str) -> Iterator[world.World]:
    small = world.made(database_url)
    yield small
    small.engine.dispose()


def more(made: world.World, label: str = Label.MET) -> None:
    """A new judge says something of every item."""
    with writing(made.engine) as session:
        verdict = TABLES["verdict"].c
        rows = session.connection().execute(
            select(verdict.example_id, verdict.response_id, verdict.criterion_id).distinct()
        )
        name = f"judge {session.connection().execute(select(func.count()).select_from(TABLES['rater'])).scalar_one()}"
        rater = store.ensure_rater(session, RaterKind.JUDGE, name)
        said = [
            Verdict(example_id=e, response_id=r, criterion_id=c, rater_id=rater, stage=Stage.JUDGE, label=label)
            for e, r, c in rows
        ]
        store.add_verdicts(session, said, actor="judge", action="answers saved")


def test_what_is_new_goes_into_a_file_of_its_own_and_nothing_is_written_again(made):
    snapshot.extend(made.engine)
    first = {path: path.stat().st_mtime_ns for path in files(made.engine)}
    more(made)
    snapshot.extend(made.engine)
    second = {path: path.stat().st_mtime_ns for path in files(made.engine)}
    assert first.items() < second.items()
    assert n_filed(made.engine, "verdict") > 0
    agrees(made.engine)
    snapshot.extend(made.engine)
    assert set(files(made.engine)) == set(second)


def test_a_little_is_not_worth_a_file(made, monkeypatch):
    monkeypatch.setattr(snapshot, "WORTH", 20_000)
    snapshot.extend(made.engine)
    agrees(made.engine)
    place = snapshot.folder(made.engine)
    assert place is not None
    assert not place.exists()


def test_only_the_owner_can_read_the_files_and_they_hold_no_words_of_anybody(made):
    snapshot.extend(made.engine)
    place = snapshot.folder(made.engine)
    assert place is not None
    assert place.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in files(made.engine)} == {0o600}
    with writing(made.engine) as session:
        person = store.add_person(session, "Dr. Noor", roles=["reviewer"], actor="test")
        rater = store.ensure_rater(session, RaterKind.REVIEWER, person.name)
        item = (
            session.connection()
            .execute(select(*(TABLES["verdict"].c[name] for name in ("example_id", "response_id", "criterion_id"))))
            .first()
        )
        given = Verdict(**item._mapping, rater_id=rater, stage=Stage.FIRST, label=Label.MET, explanation="So.")
        store.add_verdicts(session, [given], actor="Dr. Noor", action="verdicts made")
    n_judged, n_read = (n_filed(made.engine, kind) for kind in ("verdict", "read"))
    snapshot.extend(made.engine)
    assert (n_filed(made.engine, "verdict"), n_filed(made.engine, "read")) == (n_judged, n_read + 1)
    assert {path.stat().st_mode & 0o777 for path in files(made.engine)} == {0o600}
    with reading(made.engine) as session:
        of_raters = [file.table for kind in ("verdict", "level", "read") for file in snapshot._files(session, kind)]
        judges = {
            number for file in snapshot._files(session, "verdict") for number in file.table["rater_id"].to_pylist()
        }
    assert rater not in judges
    assert not [
        name
        for table in of_raters
        for name, of in zip(table.column_names, table.schema.types, strict=True)
        if not (pa.types.is_integer(of) or pa.types.is_floating(of))
    ]


def test_a_copy_from_before_with_other_acts_since_is_not_read_from_the_files_of_now(tmp_path):
    study = world.made(str(tmp_path / "study.db"))
    with reading(study.engine) as session:
        session.connection()
    study.engine.dispose()
    shutil.copy(tmp_path / "study.db", tmp_path / "before.db")
    more(study)
    snapshot.extend(study.engine)
    agrees(study.engine)
    study.engine.dispose()
    for beside in ("study.db-wal", "study.db-shm"):
        (tmp_path / beside).unlink(missing_ok=True)
    shutil.copy(tmp_path / "before.db", tmp_path / "study.db")
    agrees(study.engine)
    more(study, Label.NOT_MET)  # as many events, and as many rows
    agrees(study.engine)
    snapshot.extend(study.engine)
    agrees(study.engine)
    study.engine.dispose()


def test_a_text_that_comes_later_counts(made):
    with reading(made.engine) as session:
        found, _ = snapshot.responses(session)
    number, n_chars = int(found["id"][0]), int(found["n_chars"][0])
    snapshot.extend(made.engine)
    with writing(made.engine) as session:
        store.Bulk(session).update("response", [{"id": number, "n_criteria": 99}])
        store.append_event(session, actor="test", action="file imported", subject="more", detail={})
    agrees(made.engine)
    with reading(made.engine) as session:
        found, _ = snapshot.responses(session)
    assert (found["n_criteria"][0], found["n_chars"][0]) == (99, n_chars)


KILLED = """
import os, signal, sys
from evalcore.study import snapshot
from evalcore.study.db import connect
snapshot.WORTH = 1
snapshot.os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)
snapshot.extend(connect(sys.argv[1]))
"""


def test_a_writer_that_is_killed_leaves_nothing_that_counts(tmp_path):
    study = world.made(str(tmp_path / "study.db"))
    snapshot.remove(study.engine)
    killed = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "study.db")], cwd=ROOT, check=False)
    assert killed.returncode == -signal.SIGKILL
    place = snapshot.folder(study.engine)
    assert place is not None
    (left,) = place.iterdir()
    assert left.name.startswith(".unfinished-")
    agrees(study.engine)
    assert left.exists()  # somebody may be at it
    os.utime(left, (0, 0))
    more(study)
    snapshot.extend(study.engine)
    assert not left.exists()
    agrees(study.engine)
    study.engine.dispose()


def test_a_number_that_was_taken_earlier_and_kept_later_is_not_missed(made):
    if made.engine.dialect.name != "postgresql":
        pytest.skip("on SQLite writers stand in line")
    verdict = TABLES["verdict"]
    with reading(made.engine) as session:
        item = (
            session.connection()
            .execute(select(*(verdict.c[name] for name in ("example_id", "response_id", "criterion_id"))))
            .first()
        )
    snapshot.extend(made.engine)
    before = set(files(made.engine))
    with writing(made.engine) as late:
        rater = store.ensure_rater(late, RaterKind.JUDGE, "late")
        row = {
            **item._mapping,
            "rater_id": rater,
            "stage": Stage.JUDGE,
            "label": Label.MET,
            "created_at": now(),
            "right_for_wrong_reason": False,
        }
        late.connection().execute(insert(verdict), row)
        more(made)
        snapshot.extend(made.engine)
        assert set(files(made.engine)) == before
        agrees(made.engine)
    agrees(made.engine)
    snapshot.extend(made.engine)
    assert set(files(made.engine)) > before
    agrees(made.engine)


def test_a_study_that_is_deleted_leaves_no_files(made, tmp_path):
    snapshot.extend(made.engine)
    place = snapshot.folder(made.engine)
    assert place is not None
    assert files(made.engine)
    certificate = tmp_path / "certificate.json"
    deleting.delete(made.engine, deleting.name_of(made.engine), certificate, actor=Administrator(name="Ana Ruiz"))
    assert not place.exists()
    assert str(place) in json.loads(certificate.read_text())["files"]


def test_where_the_files_lie(tmp_path, monkeypatch):
    engine = open_study(str(tmp_path / "study.db"))
    assert snapshot.folder(engine) == tmp_path / "study.db.cache"
    monkeypatch.setenv("OVERREAD_CACHE", str(tmp_path / "elsewhere"))
    place = snapshot.folder(engine)
    assert place is not None
    assert place.parent == tmp_path / "elsewhere"
    engine.dispose()
    assert snapshot.folder(connect("sqlite://")) is None


def test_every_label_has_its_code():
    assert set(snapshot.SAID) == {*Label, *Acuity}
