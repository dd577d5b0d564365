"""The bundle of a paper: whole, hashed, the same for the same study, and without what its reader may not see."""

import hashlib
import io
import json
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from sqlalchemy import Engine
from typer.testing import CliRunner

from evalcore.__main__ import app
from evalcore.export import methods, tables as export_tables
from evalcore.export.bundle import MANIFEST, bundle
from evalcore.study import store
from evalcore.study.analysis import Analysis
from evalcore.study.audit import trail
from evalcore.study.db import reading, writing
from evalcore.study.schema import Claim
from tests.invented import study


@pytest.fixture
def seeded(sqlite_demo_url: str) -> Iterator[Engine]:
    with study(sqlite_demo_url) as engine:
        yield engine


@pytest.fixture(scope="module")
def bundled(demo_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Engine, bytes, int]]:
    """The demo study, which nothing changes, with its bundle and the rows in it."""
    path = shutil.copyfile(demo_file, tmp_path_factory.mktemp("bundle") / "overread.db")
    with study(str(path)) as engine:
        yield engine, *bundle(engine)


def unpacked(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as packed:
        assert packed.testzip() is None
        return {name: packed.read(name) for name in packed.namelist()}


def test_the_manifest_names_every_file_with_its_hash_and_the_state_of_the_trail(bundled):
    engine, content, _ = bundled
    files = unpacked(content)
    manifest = json.loads(files.pop(MANIFEST))
    assert manifest["files"] == {
        name: {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()} for name, content in files.items()
    }
    with reading(engine) as session:
        assert (manifest["audit_events"], manifest["audit_hash"]) == trail.trail_head(session)
    assert manifest["audit_events"] > 0


def test_it_holds_the_labels_as_the_export_writes_them_and_the_methods(bundled):
    engine, content, n_rows = bundled
    files = unpacked(content)
    labels = export_tables.table(engine, "labels")
    assert n_rows == len(labels)
    assert files["labels.csv"] == export_tables.to_csv(labels)
    assert files["labels-codebook.md"].decode() == export_tables.codebook_text("labels")
    assert files["methods.md"].decode() == methods.documents(methods.facts(engine))[0]["methods.md"]
    scores = pd.read_csv(io.BytesIO(files["corrected-scores.csv"]))
    assert sorted(scores.loc[scores["is_analysis"], "model"]) == ["Alder-2", "Briar-1", "Clover-mini"]
    assert set(pd.read_csv(io.BytesIO(files["agreement.csv"]))["coefficient"]) >= {"agreement", "kappa", "ac1"}


def test_every_table_names_its_judge_and_has_a_codebook_and_the_analysis_stands_beside_them(seeded):
    with writing(seeded) as session:
        store.state_analysis(session, Analysis(judges=("Wren",), claim=Claim.BENCHMARK), actor="Mina Castell")
    files = unpacked(bundle(seeded)[0])
    tables = [name.removesuffix(".csv") for name in files if name.endswith(".csv")]
    assert len(tables) >= 7
    for name in tables:
        header = files[f"{name}.csv"].decode().split("\r\n", 1)[0].split(",")
        assert {"judge", "rater"} & set(header) or name == "checklist", name
        book = files[f"{name}-codebook.md"].decode()
        assert not [column for column in header if f"| {column} |" not in book]
    analysis = json.loads(files["analysis.json"])
    assert (analysis["stated"]["version"], analysis["stated"]["judges"]) == (2, ["Wren"])  # after the demo's own
    assert analysis["stated"]["n_reads_before"] > 0
    assert analysis["computed"]["judges"] == ["Wren"]
    scores = pd.read_csv(io.BytesIO(files["corrected-scores.csv"]))
    assert set(scores["judge"]) == {"Wren"}  # not both judges of the study together
    assert set(scores.loc[scores["is_analysis"], "claim"]) == {"benchmark"}
    assert set(pd.read_csv(io.BytesIO(files["labels.csv"]))["judge"].dropna()) == {"Wren"}
    tried = pd.read_csv(io.BytesIO(files["sensitivity.csv"]))
    assert (set(tried["judge"]), set(tried["claim"])) == ({"Wren"}, {"benchmark"})
    estimated = tried.loc[tried["scenario"].eq("as_estimated")].set_index("model")
    mine = scores.loc[scores["is_analysis"]].set_index("model").loc[estimated.index]
    for column in ("corrected", "corrected_low", "corrected_high"):
        assert estimated[column].to_list() == pytest.approx(mine[column].to_list(), nan_ok=True)


def test_the_same_study_gives_the_same_bytes(bundled):
    engine, *before = bundled
    assert bundle(engine) == tuple(before)


def test_conversations_that_wait_for_a_blind_read_are_in_no_file(seeded):
    labels = export_tables.table(seeded, "labels")
    ids = labels["example_id"].unique()[:2]
    with seeded.connect() as connection:
        numbers = connection.exec_driver_sql(
            f"SELECT id FROM example WHERE prompt_id IN {tuple(ids)}"  # our own ids
        ).scalars()
        hidden = frozenset(numbers)
    assert len(hidden) == len(ids)
    files = unpacked(bundle(seeded, blind=hidden)[0])
    assert not [name for name, content in files.items() for prompt_id in ids if prompt_id.encode() in content]


def test_the_command_writes_it_and_leaves_an_event(seeded, sqlite_demo_url, tmp_path):
    path = tmp_path / "paper.zip"
    done = CliRunner().invoke(app, ["bundle", str(path), "--db", sqlite_demo_url])
    assert done.exit_code == 0, done.output
    assert MANIFEST in unpacked(path.read_bytes())
    with seeded.connect() as connection:
        action, subject = connection.exec_driver_sql("SELECT action, subject FROM audit_event ORDER BY id DESC").first()
    assert (action, subject) == ("labels exported", "bundle as zip")


def test_an_empty_study_has_a_bundle_too(sqlite_database_url):
    with study(sqlite_database_url) as engine:
        files = unpacked(bundle(engine)[0])
    assert "Nothing has been labelled yet." in files["methods.md"].decode()
