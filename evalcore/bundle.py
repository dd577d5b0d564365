"""Everything that stands behind the numbers of a paper, as one file: labels, codebooks, methods, and a manifest of hashes."""

import hashlib
import io
import zipfile
from importlib.metadata import version

import orjson
import pandas as pd
from sqlalchemy import Engine

from evalcore import export, methods
from evalcore.db import reading
from evalcore.export import Part
from evalcore.metrics.agreement import agreement
from evalcore.metrics.agreement_labels import labels_of
from evalcore.metrics.corrected import corrected_scores
from evalcore.queries import opinions, study

TABLES = ("labels", "verdicts", "scores")
MANIFEST = "manifest.json"
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the same study gives the same bytes


def bundle(engine: Engine, *, blind: frozenset[int] = frozenset()) -> tuple[bytes, int]:
    """A zip file with labels, verdicts and scores as CSV, their codebooks, corrected scores, agreement, the methods paragraph and `manifest.json`.

    The manifest names the state of the audit trail (number of events, newest hash), the version of Overread, and each file's size and SHA-256.
    The same state of the study gives the same bytes. Returns them with the number of labels.

    Args:
        engine: The study.
        blind: Conversations that wait for the viewer's own first read: nothing on them is in the bundle.
    """
    part = Part(blind=blind)
    files: dict[str, bytes] = {}
    n_rows = 0
    for what in TABLES:
        table = export.table(engine, what, part)
        n_rows = len(table) if what == "labels" else n_rows
        files[f"{what}.csv"] = export.to_csv(table)
        files[f"{what}-codebook.md"] = export.codebook_text(what).encode()
    with reading(engine) as session:
        known = opinions.load(session).without(blind)
        trail = study.trail_head(session)
    files["corrected-scores.csv"] = export.to_csv(corrected_scores(known) if known.judges else pd.DataFrame())
    files["agreement.csv"] = export.to_csv(agreement(labels_of(known)))
    files["methods.md"] = f"# Methods\n\n{methods.paragraph(methods.facts(engine, blind=blind))}\n".encode()
    files[MANIFEST] = _manifest(files, trail)
    return _zipped(files), n_rows


def _manifest(files: dict[str, bytes], trail: tuple[int, str]) -> bytes:
    listed = {
        name: {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        for name, content in sorted(files.items())
    }
    said = {"overread": version("overread"), "audit_events": trail[0], "audit_hash": trail[1], "files": listed}
    return orjson.dumps(said, option=orjson.OPT_INDENT_2)


def _zipped(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in sorted(files.items()):
            packed.writestr(zipfile.ZipInfo(name, _EPOCH), content, compress_type=zipfile.ZIP_DEFLATED)
    return buffer.getvalue()
