"""Logs that are damaged, hostile or of another shape: one clear sentence or an import, never another error, and the study as it was."""

import copy
import json
import struct
import zlib

import pytest
from hypothesis import example as tried, given, strategies as st

from evalcore.errors import ImportFailed
from evalcore.importing import missing_options
from evalcore.importing.context import Options
from evalcore.importing.files import streams
from tests.inspect_zips import LOGS, ZSTANDARD, as_json, document, header, item, log, packed, rubric, sample
from tests.invented import bring, dump, study, write

NESTED = b"[" * 5_000 + b"]" * 5_000


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    with study(str(tmp_path_factory.mktemp("study") / "study.db")) as engine:
        bring(engine, LOGS / "rubric.eval", judge=None)
        yield engine


def refused(engine, path, content, **told):
    """The one sentence with which a log is refused; the study is as it was."""
    before = dump(engine)
    with pytest.raises(ImportFailed) as caught:
        bring(engine, write(path, content), **({"judge": None} | told))
    assert dump(engine) == before
    (sentence,) = caught.value.faults
    assert "\n" not in sentence
    return sentence


WHOLE = log(sample())
MEMBERS = {"header.json": as_json(header()), "samples/q1_epoch_1.json": as_json(sample())}


def with_method(method: int) -> bytes:
    """A zip whose list says that its members are packed in a way that nobody knows."""
    content = bytearray(packed(MEMBERS, method=0))
    for place in range(len(content) - 4):
        if content[place : place + 4] == b"PK\x01\x02":
            struct.pack_into("<H", content, place + 10, method)
    return bytes(content)


TWICE = packed(MEMBERS | {"samples/other.json": MEMBERS["samples/q1_epoch_1.json"]})
DAMAGED = {
    "the end is cut off": (WHOLE[:-30], "not readable as zip"),
    "the beginning alone": (b"PK\x03\x04", "not readable as zip"),
    "a member is cut short": (packed(MEMBERS)[: len(packed(MEMBERS)) // 3], "not readable as zip"),
    "a wrong checksum": (packed(MEMBERS, spoilt=True), "its content is not what its checksum says"),
    "a wrong checksum, stored": (packed(MEMBERS, method=0, spoilt=True), "'header.json' is damaged"),
    "encrypted": (packed(MEMBERS, flags=1), "expected members without encryption, got 'header.json', which is encrypted"),
    "an unknown packing": (with_method(97), "expected members packed by deflate or zstandard, got 'header.json' by method 97"),
    "no header": (packed({"samples/q1_epoch_1.json": as_json(sample())}), "a.eval: expected a log of inspect_ai, got a zip without header.json and _journal/start.json"),
    "another zip": (packed({"[Content_Types].xml": b"<x/>"}, method=8), "a zip without header.json"),
    "an empty zip": (packed({}), "a zip without header.json"),
    "no sample": (packed({"header.json": MEMBERS["header.json"]}), "expected at least one, got no sample; the log's status is 'success'"),
    "a header of another shape": (packed({"header.json": b'{"eval": 3}'}), "header.json: eval: expected an object, got 3"),
    "a header without eval": (packed({"header.json": b"{}"}), "header.json: eval: expected a value, got nothing"),
    "a header that is no JSON": (packed({"header.json": b"eval"}), "header.json: not valid JSON"),
    "a header nested deeply": (packed({"header.json": b'{"eval": {}, "x": ' + NESTED + b"}"}), "nested too deeply"),
    "a name of two lines": (log(sample(), model="a\nb"), "a.eval: eval.model: expected a name of at most 200 printable characters, got 'a\\nb'"),
    "a grader of two lines": (log(sample(), model_roles={"grader": {"model": "a\nb"}}), "eval.model_roles.grader"),
    "a sample that is no JSON": (packed(MEMBERS | {"samples/q1_epoch_1.json": b'{"id":'}), "sample 1: not valid JSON"),
    "a sample that is a list": (packed(MEMBERS | {"samples/q1_epoch_1.json": b"[]"}), "sample 1: the row: expected an object, got []"),
    "a sample nested deeply": (packed(MEMBERS | {"samples/q1_epoch_1.json": b'{"events": ' + NESTED + b"}"}), "sample 1: nested too deeply"),
    "a sample without an id": (packed(MEMBERS | {"samples/q1_epoch_1.json": b"{}"}), "a.eval sample 1: id: expected a value, got nothing"),
    "half a sign": (packed(MEMBERS | {"samples/q1_epoch_1.json": as_json(sample()).replace(b"thirsty", b"\\ud83d")}), "sample 1: not valid JSON"),
    "the same sample twice": (TWICE, "a.eval sample 2: id: expected sample 'q1' once in epoch 1, got it again"),
    "epoch 0": (log(sample(epoch=0)), "a.eval sample 1: epoch: expected a whole number >= 1, got 0"),
    "an epoch without end": (log(sample(epoch=10**30)), "a.eval sample 1: epoch: expected a whole number <= 10000, got 1e+30"),
    "a truth value as id": (log(sample(True)), "a.eval sample 1: id: expected a whole number | text, got true"),
    "an id of two lines": (log(sample("a\nb")), "a.eval sample 1: id: expected a name of at most 200 printable characters, got 'a\\nb'"),
    "content that is a number": (log(sample(input=[{"role": "user", "content": 3}])), "sample 1: content: expected text or a list of parts, got 3"),
    "NUL in the answer": (log(sample(answer="a\x00b")), "a.eval sample 1: output: expected text that a database can hold, got the character NUL"),
    "NUL in the input": (log(sample(input="a\x00b")), "a.eval sample 1: input: expected text that a database can hold, got the character NUL"),
    "scores in a list": (log(sample(scores=[])), "a.eval sample 1: scores: expected an object or nothing, got []"),
    "a list in JSON": (b'{"version": 2, "status": "success", "eval": {"task": "t", "model": "m"}, "samples": {}}', "a.eval: samples: expected a list or nothing, got {}"),
    "a document cut off": (document(sample())[:-40], "not valid JSON"),
    "bytes that are no UTF-8": (document(sample()).replace(b"thirsty", b"\xff\xfe"), "expected UTF-8"),
}  # fmt: skip


@pytest.mark.parametrize(("content", "expected"), DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_log_is_refused_with_one_sentence(engine, tmp_path, content, expected):
    assert expected in refused(engine, tmp_path / "a.eval", content)


def test_a_zip_that_unpacks_without_end_is_refused_before_it_is_held(engine, tmp_path, monkeypatch):
    bomb = packed(MEMBERS | {"samples/q1_epoch_1.json": as_json(sample(answer="a" * 3_000_000))})
    assert len(bomb) < 10_000
    monkeypatch.setattr(streams, "MAX_MEMBER", 1_000_000)
    assert "expected at most 1,000,000 bytes unpacked, got more" in refused(engine, tmp_path / "a.eval", bomb)
    monkeypatch.undo()
    many = packed(MEMBERS | {f"samples/{n}.json": as_json(sample(f"n{n}", answer="a" * 400_000)) for n in range(4)})
    monkeypatch.setattr(streams, "MAX_UNPACKED", 1_000_000)
    assert "unpacks to more than" in refused(engine, tmp_path / "b.eval", many)
    assert "it unpacks to more than 1,000,000 bytes" in refused(
        engine, tmp_path / "c.eval.gz", packed({"x": bytes(2_000_000)}, method=0)
    )


def test_a_zip_of_too_many_members_and_a_document_too_long_are_refused(engine, tmp_path, monkeypatch):
    monkeypatch.setattr(streams, "MAX_MEMBERS", 3)
    assert "a.eval: expected a zip of at most 3 members, got more" in refused(
        engine, tmp_path / "a.eval", packed({str(n): b"" for n in range(4)})
    )
    monkeypatch.setattr(streams, "MAX_DOCUMENT", 500)
    assert "a.json: expected a JSON document of at most 500 bytes, got a longer one" in refused(
        engine, tmp_path / "a.json", document(sample())
    )


def test_names_of_members_are_never_places_and_of_two_the_last_counts(engine, tmp_path):
    (tmp_path / "in").mkdir()
    first, last = (
        as_json(sample("z1", input="Where?", answer="Old.")),
        as_json(sample("z1", input="Where?", answer="New.")),
    )
    content = packed([
        ("header.json", as_json(header())), ("samples/../../../escaped.json", first), ("/samples/escaped.json", first), ("samples/../../../escaped.json", last),
    ])  # fmt: skip
    path = write(tmp_path / "in" / "a.eval", content)
    assert bring(engine, path, judge=None).responses_new == 1
    assert sorted(found.name for found in tmp_path.rglob("*")) == ["a.eval", "in"]
    with engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT text FROM response ORDER BY id DESC LIMIT 1").scalar_one() == "New."


# ---- whatever comes


HOSTILE = st.sampled_from([
    None, True, 0, -1, 10**40, 1e308, "", "a", "A", "C", "a\nb", "a\x00b", "../x", "attachment://x", [], {}, [[]], ["x"], {"x": {}}, {"": None},
    [{"role": "user", "content": None}], [{"role": "tool", "content": "x"}], [{"role": "assistant", "content": [{"type": "text"}]}],
    [{"criterion": "x", "criteria_met": True}], {"rubric_items": [{"criterion": "x", "criteria_met": None}]}, "x" * 500, "\u202e\ufeff", [0] * 300,
])  # fmt: skip


def places(value, path=()):
    """Every place in a JSON value."""
    yield path
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(inner, (*path, key))


SAMPLE = sample(
    "h1",
    2,
    scores={"rubric": rubric(item(), judge="Wren"), "level": {"value": "C", "answer": "B"}, "value": {"value": "D"}},
    attachments={"x": "y"},
)
SEED = header(dataset={"sample_ids": ["h1"]}, config={"epochs": 2}) | {
    "samples": [SAMPLE, sample("clinic_1", input="I am ill.")]
}
PLACES = [path for path in places(SEED) if path]


def changed(document, path, value, *, drop):
    """The document with something else at one place, if that is still there."""
    at = document
    for key in path[:-1]:
        try:
            at = at[key]
        except (KeyError, IndexError, TypeError):
            return
    try:
        at[path[-1]] = value
        if drop:
            del at[path[-1]]
    except (IndexError, TypeError):
        return


def ends_well(engine, path, content):
    """An import, or one refusal in sentences; after a refusal the study is as it was."""
    before = dump(engine)
    path.write_bytes(content)
    report, faults = None, []
    try:
        report = bring(engine, path, judge=None, format_name="inspect-log", dry_run=True)
    except ImportFailed as failed:
        faults = failed.faults
    if report is None:
        assert faults
        assert all(sentence.startswith(path.name) and "\n" not in sentence for sentence in faults)
    else:
        assert report.rows or report.already_imported
        assert all("\n" not in sentence for sentence in report.sentences())
    assert dump(engine) == before
    try:
        assert set(missing_options(path, format_name="inspect-log", options=Options())) <= {"model", "judge"}
    except ImportFailed:
        assert report is None
    return report


@given(st.lists(st.tuples(st.sampled_from(PLACES), HOSTILE, st.booleans()), min_size=1, max_size=3), st.booleans())
def test_a_log_with_anything_in_any_place_ends_in_an_import_or_a_refusal(engine, tmp_path_factory, changes, is_zip):
    told = copy.deepcopy(SEED)
    for path, value, drop in changes:
        changed(told, path, value, drop=drop)
    content = json.dumps(told).encode()
    if is_zip:
        samples = told.pop("samples", [])
        inner = samples.values() if isinstance(samples, dict) else samples if isinstance(samples, list) else []
        content = packed(
            {"header.json": as_json(told)} | {f"samples/{n}.json": as_json(row) for n, row in enumerate(inner)}
        )
    ends_well(engine, tmp_path_factory.getbasetemp() / "drawn", content)


def test_the_seed_of_the_drawn_logs_is_a_good_log(engine, tmp_path):
    assert ends_well(engine, tmp_path / "seed", json.dumps(SEED).encode()).responses_new == 2


@given(
    st.sampled_from(sorted(path.name for path in LOGS.glob("*.eval"))),
    st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), max_size=4),
    st.floats(0, 1),
)
@tried("rubric.eval", [], 1.0)
@tried("rubric.eval", [], 0.9999)
def test_a_log_with_spoilt_bytes_ends_in_an_import_or_a_refusal(engine, tmp_path_factory, name, spoilt, kept):
    content = bytearray((LOGS / name).read_bytes())
    for place, byte in spoilt:
        content[min(int(place * len(content)), len(content) - 1)] = byte
    cut = bytes(content[: max(int(kept * len(content)), 1)])
    ends_well(engine, tmp_path_factory.getbasetemp() / "spoilt", cut)


@given(st.binary(max_size=300))
def test_zstandard_of_any_bytes_is_damage_and_no_other_error(engine, tmp_path_factory, body):
    content = packed([("header.json", b"")], method=ZSTANDARD)
    at = content.index(b"PK\x01\x02")
    local, listed = bytearray(content[:at]), bytearray(content[at:])
    facts = struct.pack("<III", zlib.crc32(body), len(body), len(body))
    local[14:26], listed[16:28] = facts, facts
    struct.pack_into("<I", listed, len(listed) - 6, at + len(body))
    assert ends_well(engine, tmp_path_factory.getbasetemp() / "any", bytes(local + body + listed)) is None
