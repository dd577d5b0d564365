"""Every clause of the methods stands where its count is above 0, with that count; every place that the checklist names holds what it names."""

import io
import re
import shutil
import zipfile
from collections import Counter, defaultdict
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as some

from evalcore.export import methods, reporting
from evalcore.export.bundle import bundle
from evalcore.reading import reviewing
from evalcore.study import store
from evalcore.study.db import writing
from evalcore.study.schema import Label, Selection, Stage
from evalcore.triage.data import described
from tests import world
from tests.invented import study
from tests.triage_cases import drawn as cases_drawn

KNOWN, OTHER, FOREIGN = "Dr. Imani Noor", "Dr. Tove Lind", "Dr. From A File"
POINTS = ((7, -4), (5,), (3,))
ITEMS = [(example, place) for example, rubric in enumerate(POINTS) for place in range(len(rubric))]
DRAWN = (Selection.RANDOM, Selection.IMPORTANCE)

READ = some.fixed_dictionaries(
    {
        "label": some.sampled_from(list(Label)),
        "stage": some.sampled_from([Stage.FIRST, Stage.FIRST, Stage.OPEN, Stage.ADJUDICATED]),
        "selection": some.sampled_from([*DRAWN, Selection.VOLUNTEERED, None]),
        "blinded": some.sampled_from([True, True, None, False]),
        "guideline_version": some.sampled_from([None, None, 1, 2]),
    }
)
READS = some.dictionaries(
    some.tuples(some.sampled_from((KNOWN, OTHER, FOREIGN)), some.sampled_from(ITEMS)), READ, max_size=12
)


class Told(NamedTuple):
    """What the methods say of a study, by clause, and what its tables hold."""

    said: dict[str, list[str]]
    verdicts: list[Any]
    tasks: list[Any]


def told(template: Path, drawn: dict[Any, dict[str, Any]], n_assigned: int, n_read: int) -> Told:
    """A study with these reads from a file, and an assignment that is read to some place."""
    with TemporaryDirectory() as folder:
        path = shutil.copyfile(template, Path(folder) / "overread.db")
        small = world.made(f"sqlite:///{path}", points=POINTS, judged="+-++")
        with writing(small.engine) as session:
            for text in ("The first version.", "The second."):
                store.set_guideline(session, text, actor="set-up")
        for (name, (example, place)), read in drawn.items():
            chance = {"inclusion_probability": 0.5} if read["selection"] in DRAWN else {}
            world.said(small, name=name, example=example, criterion=place, **read, **chance)
        if n_assigned:
            world.assigned(small, n_items=n_assigned, n_readers=1, readers=(KNOWN,), seed=17)
        viewer = small.viewer(KNOWN)
        for _ in range(n_read):
            if (desk := reviewing.take(small.engine, viewer, at=world.START)) is None:
                break
            number = world.answer(small, viewer, desk, "+" * len(desk.keys))
            state = world.lock(small.engine, viewer, number, at=world.START)
            if state != "done":
                break  # the next one waits for decisions on this one
        said = defaultdict(list)
        for clause in methods.clauses(methods.facts(small.engine)):
            said[clause.key].append(clause.text)
        verdicts = world.rows(
            small.engine,
            "SELECT v.response_id, v.criterion_id, v.example_id, r.name, v.stage, v.label, v.selection, v.blinded, v.guideline_version, "
            "r.person_id FROM verdict v JOIN rater r ON r.id = v.rater_id WHERE r.kind = 'reviewer' "
            "AND v.id NOT IN (SELECT supersedes FROM verdict WHERE supersedes IS NOT NULL)",
        )
        tasks = world.rows(
            small.engine,
            "SELECT t.response_id, (SELECT count(*) FROM reading g WHERE g.task_id = t.id AND g.state <> 'reading') FROM task t",
        )
        small.engine.dispose()
    return Told(said, verdicts, tasks)


def numbers(text: str) -> list[int]:
    """The whole numbers of a sentence, in order."""
    return [int(found.replace(",", "")) for found in re.findall(r"(?<![\d.\w-])\d[\d,]*(?![\d.]*\d|-)", text)]


@given(drawn=READS, n_assigned=some.integers(0, 3), n_read=some.integers(0, 2))
def test_a_clause_stands_where_its_count_is_above_0_with_that_count(sqlite_template, drawn, n_assigned, n_read):
    found = told(sqlite_template, drawn, n_assigned, n_read)
    said = found.said
    firsts = [row for row in found.verdicts if row[4] == "first" and row[7] in (1, None)]
    by_item = {key: list(rows) for key, rows in groupby(sorted(firsts, key=lambda row: row[:2]), lambda row: row[:2])}
    n_cannot = sum(row[5] == "cannot_assess" for row in firsts)
    n_twice = sum(len(rows) > 1 for rows in by_item.values())
    assert ("reads" in said) == bool(firsts) == ("no_reads" not in said)
    if firsts:
        names = {row[3] for row in firsts}
        expected = [
            len(names),
            len(by_item),
            len({row[2] for row in firsts}),
            *([n_twice] if n_twice else []),
            len(firsts),
        ]
        assert numbers(said["reads"][0]) == [*expected, *([n_cannot] if n_cannot else [])]
        unknown = len(names - {KNOWN, OTHER})
        assert ("readers_unknown" in said) == bool(unknown)

    versions = Counter(row[8] for row in firsts)
    expected = [number for key in (1, 2) if versions[key] for number in (versions[key], key)]
    assert ("guideline" in said) == bool(firsts)
    if expected:
        assert numbers(said["guideline"][0]) == [*expected, *([versions[None]] if versions[None] else [])]
    elif firsts:
        assert "no first read" in said["guideline"][0]

    n_blind = sum(row[7] == 1 for row in firsts)
    assert ("blinding" in said) == bool(firsts)
    if 0 < n_blind < len(firsts):
        assert numbers(said["blinding"][0]) == [n_blind]

    selections = Counter(row[6] or "" for row in firsts)
    assert ("selection" in said) == bool(firsts)
    if len(selections) > 1:
        assert numbers(said["selection"][0]) == [len(firsts), *(selections[name] for name in sorted(selections))]

    n_open = sum(row[4] == "open" for row in found.verdicts)
    assert [numbers(text) for text in said["open_reads"]] == ([[n_open]] if n_open else [])

    differing = {key for key, rows in by_item.items() if len({row[5] for row in rows}) > 1}
    adjudications = [row for row in found.verdicts if row[4] == "adjudicated"]
    n_settled = len(differing & {row[:2] for row in adjudications})
    assert ("settled" in said) == bool(differing)
    if differing:
        by_whom = [len({row[3] for row in adjudications})] if n_settled else []
        share = round(100 * n_settled / len(differing))
        assert numbers(said["settled"][0])[0] == len(differing)
        assert f"({n_settled}/{len(differing)})" in said["settled"][0]
        assert not by_whom or f"by {by_whom[0]} adjudicator" in said["settled"][0], share

    n_done = sum(n > 0 for _, n in found.tasks)
    is_used = bool(n_done)
    assert [numbers(text)[:3] + numbers(text)[-1:] for text in said["drawings"]] == (
        [[len(found.tasks), 3, 17, n_done]] if is_used else []
    )
    n_missing = len(found.tasks) - n_done
    assert [numbers(text) for text in said["missing_reads"]] == ([[len(found.tasks), n_missing]] if n_missing else [])
    n_brought = sum(row[6] in DRAWN for row in firsts) - sum(
        n_rows
        for response, n in found.tasks
        if n
        for n_rows in [sum(row[0] == response and row[3] == KNOWN for row in firsts)]
    )
    assert [numbers(text) for text in said["drawn_elsewhere"]] == ([[n_brought]] if n_brought else [])


def test_what_did_not_happen_has_no_clause(sqlite_template):
    said = told(sqlite_template, {}, 3, 0).said
    assert (
        not {"reads", "guideline", "drawings", "selection", "agreement", "settled", "estimator", "claim", "open_reads"}
        & said.keys()
    )
    assert said["missing_reads"] == ["Of 3 assigned reads of a response, 3 have not been made."]


@pytest.fixture(scope="module")
def nothing(sqlite_template) -> methods.Facts:
    with TemporaryDirectory() as folder:
        path = shutil.copyfile(sqlite_template, Path(folder) / "overread.db")
        with study(f"sqlite:///{path}") as engine:
            return methods.facts(engine)


@settings(max_examples=3)
@given(
    seed=some.integers(0, 9_999),
    n_cases=some.integers(0, 6),
    panels=some.sampled_from([0.0, 0.5]),
    read=some.sampled_from([0.0, 0.3]),
)
def test_a_clause_on_triage_stands_where_its_count_is_above_0_with_that_count(nothing, seed, n_cases, panels, read):  # fmt: skip
    chance = np.random.default_rng(seed)
    triage_data = described(cases_drawn(chance, n_cases=n_cases, n_samples=2, share_panel=panels, share_read=read)[0])
    done = methods.Facts(**(vars(nothing) | {"triage": methods.triage_facts(triage_data)}))
    said = {clause.key: clause.text for clause in methods.clauses(done)}
    assert ("triage_cases" in said) == bool(n_cases) == ("nothing" not in said)
    assert not {"material", "reads", "score"} & said.keys()
    if n_cases:
        kinds = Counter(triage_data.cases["kind"])
        assert numbers(said["triage_cases"]) == [n_cases, *(kinds[kind] for kind in methods.KINDS if kinds[kind])]
        asked = Counter(triage_data.samples["format"])
        assert numbers(said["triage_answers"])[-len(asked) :] == [
            asked[word] for word in methods.FORMATS if asked[word]
        ]
        looked = {judge: int(n) for judge, n in triage_data.levels.notna().sum().items() if n}
        assert all(f"{judge} {n}" in said["triage_levels"] for judge, n in looked.items())
    assert ("triage_panels" in said) == bool(len(triage_data.votes))
    if len(triage_data.votes):
        assert numbers(said["triage_panels"]) == [len(set(triage_data.votes["row"])), len(triage_data.votes)]
    firsts = triage_data.reads.query("stage == 'first'")
    for key, reads, column in (
        ("triage_reads", firsts.query("sample >= 0"), "sample"),
        ("triage_case_reads", firsts.query("sample < 0"), "row"),
    ):
        assert (key in said) == bool(len(reads))
        if len(reads):
            assert numbers(said[key]) == [len(set(reads["rater"])), len(set(reads[column])), len(reads)]


@pytest.fixture(scope="module")
def packed(demo_file):
    with study(f"sqlite:///{demo_file}") as engine, zipfile.ZipFile(io.BytesIO(bundle(engine)[0])) as files:
        yield {name: files.read(name).decode() for name in files.namelist()}, methods.clauses(methods.facts(engine))


def test_every_place_of_the_checklist_is_in_the_bundle_and_holds_its_clause(packed):
    files, clauses = packed
    sections = {part.partition("\n")[0]: part for part in files["methods.md"].split("\n## ")[1:]}
    texts = defaultdict(list)
    for clause in clauses:
        texts[clause.key].append((clause.section, clause.text))
    table = pd.read_csv(io.StringIO(files["checklist.csv"]), keep_default_na=False)
    named = table.loc[table["file"].ne("")]
    assert set(named["file"]) <= files.keys()
    for row in named.loc[named["clause"].ne("")].itertuples():
        assert any(section == row.section and text in sections[section] for section, text in texts[row.clause])
    assert {"flow.svg", "flow.csv", "checklist.md"} <= files.keys()


def test_an_item_is_reported_only_where_no_blank_stands_for_it(packed):
    files, clauses = packed
    blank = {clause.key for clause in clauses if clause.is_blank}
    table = pd.read_csv(io.StringIO(files["checklist.csv"]), keep_default_na=False)
    for _, item in table.groupby(["guideline", "item"]):
        told = [row.file != "methods.md" or row.clause not in blank for row in item.itertuples() if row.file]
        status = item["status"].iloc[0]
        expected = {"reported": told and all(told), "partly": any(told) and not all(told), "to fill in": not any(told)}
        assert status == "for the authors" or expected[status]
    assert table.loc[table["item"].eq("12c"), "status"].tolist() == [
        "to fill in"
    ]  # nobody but the authors knows of their ethics approval


def test_an_item_has_a_number_only_where_its_guideline_s_list_was_checked():
    for item in reporting.ITEMS:
        is_checked = item.guideline in {"CHART 2025", "GRRAS 2011", "STARD 2015"}
        assert is_checked or not item.item[0].isdigit()
        assert is_checked or "not checked" in reporting.SOURCES[item.guideline]
    assert {item.guideline for item in reporting.ITEMS} == set(reporting.SOURCES)
