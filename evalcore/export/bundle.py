"""The numbers of a paper, as one file: the stated analysis, labels, scores, differences, agreement, codebooks, methods, and a manifest of hashes."""

import hashlib
import io
import zipfile
from dataclasses import asdict
from importlib.metadata import version
from typing import Any

import orjson
import pandas as pd

from evalcore.export import methods, tables as export_tables
from evalcore.export.tables import Part
from evalcore.judges.agreement import agreement, labels_of
from evalcore.rubric import queries as rubric_queries
from evalcore.rubric.results import ComputedAnalysis, compute, evaluations, missing, primary_words, stated_words
from evalcore.study import contents, freezing
from evalcore.study.audit.trail import trail_head
from evalcore.study.db import Engine, reading

TABLES = ("labels", "verdicts", "scores")
NUMBERS = ("corrected-scores", "corrected-differences", "sensitivity", "agreement")
MANIFEST, ANALYSIS = "manifest.json", "analysis.json"
FILES = (*(f"{what}.csv" for what in (*TABLES, *NUMBERS)), ANALYSIS, MANIFEST)  # besides codebooks and the methods
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the same study gives the same bytes


def bundle(engine: Engine, *, blind: frozenset[int] = frozenset()) -> tuple[bytes, int]:
    """A zip file of what a paper rests on, with the number of labels; the same state of the study gives the same bytes.

    Corrected scores and differences are those of the stated analysis, for every claim; its sensitivity: if the missing reads had all spoken for the model,
    or all against it. `blind`: conversations that wait for the viewer's own first read: nothing on them is in it.
    """
    with reading(engine) as session:
        known = rubric_queries.load(session).without(blind)
        trail, stated = trail_head(session), contents.stated_analysis(session)
        versions = freezing.versions(session)
        is_judged = bool(evaluations(known)["judges"].map(len).any())
        done = compute(session, rubric_data=known) if is_judged else None
        tried = None if done is None else missing(session, done.everything, done.part, done.results.spec)
    judge = done.results.spec.judges[0] if done else None
    tables = {
        what: export_tables.table(engine, what, Part(blind=blind, judge=judge if what == "labels" else None))
        for what in TABLES
    }
    names = ("version", "stated_at", "n_reads_before")
    said = None if stated is None else {name: getattr(stated, name) for name in names} | asdict(stated.spec)
    computed = None
    if done is not None:
        found = done.results
        computed = asdict(found.spec) | {
            "is_stated": stated_words(done.stated, done.otherwise),
            "claim_by_default": found.usual.why,
            "means": found.means,
            "finding": found.finding,
            "primary_comparison": primary_words(found, done.stated),
        }
    analysis = {"stated": said, "computed": computed}
    mended = export_tables.mended(engine)
    texts, reported = methods.documents(methods.facts(engine, blind=blind, found=done), FILES)
    files = {ANALYSIS: orjson.dumps(analysis, option=orjson.OPT_INDENT_2)}
    files |= {name: text.encode() for name, text in texts.items()}
    for what, table in (tables | numbers(done, tried) | reported).items():
        files[f"{what}.csv"] = export_tables.to_csv(table)
        files[f"{what}-codebook.md"] = export_tables.codebook_text(what, said=mended).encode()
    listed = {
        name: {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        for name, content in sorted(files.items())
    }
    # how many acts there were tells a blind reader how many reads were revised
    number = {} if blind else {"audit_events": trail[0]}
    manifest: dict[str, Any] = {"overread": version("overread"), **number, "audit_hash": trail[1], "files": listed}
    if versions:
        manifest["frozen"] = [asdict(one) if not blind else asdict(one) | {"n_events": None} for one in versions]
    manifest |= {"mended": mended} if mended else {}
    files[MANIFEST] = orjson.dumps(manifest, option=orjson.OPT_INDENT_2)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in sorted(files.items()):
            packed.writestr(zipfile.ZipInfo(name, _EPOCH), content, compress_type=zipfile.ZIP_DEFLATED)
    return buffer.getvalue(), len(tables["labels"])


def numbers(done: ComputedAnalysis | None, tried: pd.DataFrame | None) -> dict[str, pd.DataFrame]:
    """The tables of numbers, with the columns of the codebook: each row names its data set, examples and judges. `tried`: as `missing` gives it."""
    if done is None or tried is None:
        return {name: pd.DataFrame(columns=export_tables.columns_of(name)) for name in NUMBERS}
    found, spec = done.results, done.results.spec
    whose = {"dataset": spec.evaluation, "examples": spec.subset or "all", "judge": " + ".join(spec.judges)}
    tried = tried.assign(claim=found.claim.value, physicians=found.physicians.value)
    made = (found.claims, found.difference_claims, tried, agreement(labels_of(done.part)))
    tables = {}
    for name, table in zip(NUMBERS, made, strict=True):
        columns = export_tables.columns_of(name)
        rows = table.drop(columns=["place", "evaluation"], errors="ignore").assign(**whose)
        if "is_analysis" in columns:
            rows["is_analysis"] = rows["claim"].eq(found.claim) & rows["physicians"].eq(found.physicians)
        first = [column for column in columns if column in rows]
        tables[name] = rows[[*first, *(column for column in rows if column not in first)]]
    return tables
