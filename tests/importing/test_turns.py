"""One import at a time a study, and how far it is."""

import os
import threading
import time
from contextlib import nullcontext

import pytest

from evalcore.errors import ImportFailed, NotAllowed
from evalcore.importing import import_file, staging
from evalcore.importing.files import opening
from evalcore.study import lookups, store
from evalcore.study.db import connect, importing_file, reading, writing
from evalcore.study.schema import Administrator
from evalcore.study.tables import ImportUnderWay, now
from tests import invented as made, world
from tests.invented import example, write
from tests.page_steps import words
from tests.part_steps import in_parts

ADMINISTRATOR = Administrator(name="Lena Holt")


def under_way(engine):
    with reading(engine) as session:
        return lookups.import_under_way(session)


@pytest.fixture
def file(tmp_path):
    return write(tmp_path / "oss_eval.jsonl", made.lines(*(example(f"n{number}") for number in range(20))))


def test_who_comes_second_is_told_who_is_at_it_and_how_far_and_may_come_after(small, file, monkeypatch):
    """The first import stands still while it reads its first row; another process, by an engine of its own, comes meanwhile."""
    monkeypatch.setattr(staging, "TOLD_SECONDS", -1.0)
    stands, may_go_on, came = threading.Event(), threading.Event(), []

    def wait(_done: int) -> None:
        stands.set()
        may_go_on.wait(20)

    other = connect(small.location)
    first = threading.Thread(
        target=lambda: came.append(import_file(small.engine, file, actor=ADMINISTRATOR, progress=wait))
    )
    first.start()
    try:
        assert stands.wait(20)
        with pytest.raises(
            ImportFailed, match=r"has been importing oss_eval\.jsonl since .* Nothing was imported"
        ) as refused:
            import_file(other, file, actor=ADMINISTRATOR)
        assert "Lena Holt" in str(refused.value)
    finally:
        may_go_on.set()
        first.join()
    assert came[0].rows == 20
    assert under_way(other) is None
    assert import_file(other, file, actor=ADMINISTRATOR).already_imported
    other.dispose()


def test_everybody_sees_how_far_an_import_is(small, file, monkeypatch):
    """On SQLite a large file, while it is checked in a copy: after that the parts are told."""
    monkeypatch.setattr(staging, "TOLD_SECONDS", -1.0)
    monkeypatch.setattr(opening, "TOLD_BYTES", 0)
    seen = []
    is_large = in_parts() if small.engine.dialect.name == "sqlite" else nullcontext()
    with is_large:
        import_file(
            small.engine, file, actor=ADMINISTRATOR, progress=lambda done: seen.append((done, under_way(small.engine)))
        )
    told = [found.megabytes for _, found in seen]
    assert told[-1] > 0
    assert told == sorted(told)
    assert all(found.name == file.name and "Lena Holt" in found.actor for _, found in seen)
    assert under_way(small.engine) is None


def test_who_may_not_import_takes_no_turn_and_a_file_with_faults_gives_it_back(small, tmp_path):
    broken = write(tmp_path / "x.jsonl", b'{"prompt_id": 3, "prompt": [], "rubrics": []}\n')
    with pytest.raises(NotAllowed):
        import_file(small.engine, broken, actor=small.viewer("Dr. Imani Noor"))
    assert under_way(small.engine) is None
    with pytest.raises(ImportFailed, match=r"x\.jsonl line 1"):
        import_file(small.engine, broken, actor=ADMINISTRATOR)
    assert under_way(small.engine) is None


def test_an_import_that_died_is_shown_no_longer_after_two_minutes_and_keeps_nobody_waiting(small, file, monkeypatch):
    def die(_done: int) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as killed:
        killed.setattr(staging.store, "end_import", lambda *_which: None)
        with pytest.raises(KeyboardInterrupt):
            import_file(small.engine, file, actor=ADMINISTRATOR, progress=die)
    assert under_way(small.engine) is not None
    with monkeypatch.context() as later:
        later.setattr(lookups, "now", lambda: now() + lookups.LOST)
        assert under_way(small.engine) is None
    assert import_file(small.engine, file, actor=ADMINISTRATOR).rows == 20


def test_the_page_shows_who_may_import_what_is_under_way_and_takes_a_large_upload_from_the_disk(
    location, open_page, file, monkeypatch
):
    small = world.made(location)
    with writing(small.engine) as session:
        store.begin_import(session, ImportUnderWay(name="all.jsonl", actor="Lena Holt"))
    app = open_page(small.location, "study", "Ana Ruiz")
    assert "Lena Holt has been importing all.jsonl since" in words(app)
    monkeypatch.setattr("evalcore.importing.uploads._kept", {"tab": {}})
    app.file_uploader(key="upload").upload("oss_eval.jsonl", b"stands for it").run()
    (upload,) = app.file_uploader(key="upload").value
    number = upload.file_id
    monkeypatch.setattr("evalcore.importing.uploads._kept", {"tab": {number: file}})
    app.run()
    app.button(key="import").click().run()
    assert "20 rows, imported" in words(app)
    small.engine.dispose()


def write_nothing(engine):
    with writing(engine):
        pass


def test_an_import_is_awaited_for_a_while_after_somebody_else_has_come_to_write(small):
    engine = small.engine
    if engine.dialect.name != "sqlite":
        pytest.skip("a large file is written in parts on SQLite alone")
    write_nothing(engine)  # nobody imports, so nothing is left behind
    touched = importing_file(engine)
    assert not touched.exists()
    with staging._lock(engine):
        write_nothing(engine)
        assert not staging._is_awaited(touched), "it is the import itself"
        other = threading.Thread(target=write_nothing, args=[engine])
        other.start()
        other.join()
        assert staging._is_awaited(touched)
        late = time.time() - staging.PAUSES_SECONDS - 1
        os.utime(touched, (late, late))
        assert not staging._is_awaited(touched), "they had their turn"
    assert staging._is_awaited(touched), "not known"
