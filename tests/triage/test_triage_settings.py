"""Settings of triage as a YAML file: what is written is read, and what is wrong is one sentence with line and key."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcore.errors import OverreadError
from evalcore.study.schema import Format
from evalcore.triage import settings as triage_settings
from evalcore.triage.data import AmbiguityRule
from evalcore.triage.rates import Measure
from evalcore.triage.settings import METRICS, TriageSettings, parse, to_yaml

PLAIN = "abcdefghijklmnopqrstuvwxyzABCD 0123456789:#'\"-{}[]&*!|>%@`,?~é日"
names = st.lists(
    st.text(PLAIN, min_size=1, max_size=30).map(str.strip).filter(bool) | st.sampled_from(["yes", "null", "1:30", "2001-01-01", "0x1", "<<", "=", "1e3"]),
    min_size=4, max_size=4, unique_by=str.casefold,
)  # fmt: skip
weights = st.floats(0, 1000)
drawn_settings = st.builds(
    TriageSettings,
    level_names=names.map(lambda words: dict(zip("ABCD", words, strict=True))),
    formats=st.permutations(list(Format)).flatmap(lambda words: st.sampled_from([tuple(words), tuple(words[:1])])),
    metrics=st.lists(st.sampled_from(list(METRICS)), min_size=1, unique=True).map(tuple),
    under_weight=weights,
    over_weight=st.floats(1e-9, 1000),
    rule=st.builds(
        AmbiguityRule,
        spread=st.floats(0, 9) | st.just(math.inf),
        uncertainty=st.floats(0, 1) | st.just(math.inf),
    ),
)


@given(drawn_settings)
def test_settings_are_the_same_after_writing_and_reading(settings):
    assert parse(to_yaml(settings), "s.yaml") == settings
    assert parse("\ufeff" + to_yaml(settings).replace("\n", "\r\n"), "s.yaml") == settings


def test_the_defaults_are_those_of_the_benchmark():
    defaults = TriageSettings()
    assert (defaults.under_weight, defaults.over_weight) == (5.0, 1.0)
    assert (defaults.rule.spread, defaults.rule.uncertainty) == (0.75, 0.7)
    assert defaults.formats == (Format.QA, Format.CONVERSATION)
    assert list(defaults.level_names) == ["A", "B", "C", "D"]


def test_every_rate_can_be_chosen():
    assert {measure.value for measure in Measure} <= set(METRICS)


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "{}\n"])
def test_what_is_left_out_keeps_its_default(text):
    assert parse(text, "s.yaml") == TriageSettings()


def test_one_key_alone_changes_one_thing():
    found = parse("weights:\n  under: 10\n", "s.yaml")
    assert found == replace(TriageSettings(), under_weight=10.0)
    found = parse("level_names: {D: Notaufnahme}\n", "s.yaml")
    assert found.level_names == TriageSettings().level_names | {"D": "Notaufnahme"}


def test_null_switches_a_rule_off():
    found = parse("ambiguous:\n  spread_above: null\n", "s.yaml")
    assert found.rule == AmbiguityRule(spread=math.inf, uncertainty=0.7)
    assert "spread_above: null" in to_yaml(found)
    assert triage_settings.rule_words(found.rule) == "stated uncertainty above 0.7"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("weight:\n  under: 5\n", r"^s.yaml line 1: the key 'weight' came, expected the keys level_names, formats, metrics, weights, ambiguous$"),
        ("weights:\n  under: 5\n  more: 1\n", r"^s.yaml line 3: weights: the key 'more' came, expected the keys under, over$"),
        ("weights:\n  under: 5\n  under: 6\n", r"^s.yaml line 3: weights.under: it came before, expected every key once$"),
        ("formats: [qa]\nmetrics: [exact]\nformats: [qa]\n", r"^s.yaml line 3: formats: it came before"),
        ("weights:\n  under: -1\n", r"^s.yaml line 2: weights.under: '-1' came, expected a number from 0 to 1000$"),
        ("weights:\n  over: 1001\n", r"^s.yaml line 2: weights.over: '1001' came"),
        ("weights:\n  over: '1'\n", r"^s.yaml line 2: weights.over: '1' came"),
        ("weights:\n  over: true\n", r"^s.yaml line 2: weights.over: 'true' came"),
        ("weights:\n  over: null\n", r"^s.yaml line 2: weights.over: 'null' came"),
        ("weights:\n  over: .nan\n", r"^s.yaml line 2: weights.over: '.nan' came"),
        ("weights:\n  over: .inf\n", r"^s.yaml line 2: weights.over: '.inf' came"),
        ("weights:\n  over: [1]\n", r"^s.yaml line 2: weights.over: a list came"),
        ("weights:\n  over: 2001-99-99\n", r"^s.yaml line 2: weights.over: '2001-99-99' came"),
        ("weights: 5\n", r"^s.yaml line 1: weights: '5' came, expected the keys under, over$"),
        ("weights: {under: 0, over: 0.0}\n", r"^s.yaml: weights: under and over are both 0"),
        ("ambiguous:\n  spread_above: 9.5\n", r"^s.yaml line 2: ambiguous.spread_above: '9.5' came, expected a number from 0 to 9$"),
        ("ambiguous:\n  uncertainty_above: 1.01\n", r"^s.yaml line 2: ambiguous.uncertainty_above: '1.01' came, expected a number from 0 to 1$"),
        ("ambiguous: null\n", r"^s.yaml line 1: ambiguous: 'null' came, expected the keys"),
        ("formats: qa\n", r"^s.yaml line 1: formats: 'qa' came, expected a list of some of qa, conversation$"),
        ("formats: []\n", r"^s.yaml line 1: formats: a list came"),
        ("formats:\n  - qa\n  - chat\n", r"^s.yaml line 3: formats: 'chat' came"),
        ("formats:\n  - qa\n  - qa\n", r"^s.yaml line 3: formats: 'qa' came twice"),
        ("metrics: [exact, {a: 1}]\n", r"^s.yaml line 1: metrics: keys with values came"),
        ("metrics: [accuracy]\n", r"^s.yaml line 1: metrics: 'accuracy' came"),
        ("level_names:\n  A: no\n", r"^s.yaml line 2: level_names.A: 'no' came, expected 1 to 60 printable characters, in quotation marks"),
        ("level_names:\n  A: ''\n", r"^s.yaml line 2: level_names.A: '' came"),
        ("level_names:\n  A: '" + "x" * 61 + "'\n", r"^s.yaml line 2: level_names.A: 'xxx"),
        ('level_names:\n  A: "a\\nb"\n', r"^s.yaml line 2: level_names.A: 'a\\nb' came"),
        ("level_names: {A: home, B: Home}\n", r"^s.yaml line 1: level_names: home, Home, .* came, expected four different names$"),
        ("level_names: {E: soon}\n", r"^s.yaml line 1: level_names: the key 'E' came, expected the keys A, B, C, D$"),
        ("? [a]\n: b\n", r"^s.yaml line 1: the key a list came"),
        ("- qa\n", r"^s.yaml line 1: a list came, expected the keys"),
        ("words\n", r"^s.yaml line 1: 'words' came, expected the keys"),
        ("formats: &x [qa]\n", r"^s.yaml line 1: an anchor, alias or tag"),
        ("formats: *x\n", r"^s.yaml line 1: an anchor, alias or tag|^s.yaml line 1: no YAML"),
        ("formats: !!python/object/apply:os.system [ls]\n", r"^s.yaml line 1: an anchor, alias or tag"),
        ("{}\n---\n{}\n", r"^s.yaml line 2: a second document"),
        ("formats: [qa\nweights: 1\n", r"^s.yaml line \d: no YAML"),
        ("formats:\n\t- qa\n", r"^s.yaml line 2: no YAML"),
        ("a: \x07\n", r"^s.yaml: no YAML"),
        ("[" * 5000, r"^s.yaml line 1: more than 8 lists within lists"),
        ("#" * 70_000, r"^s.yaml: more than 65,536 bytes came"),
    ],
)  # fmt: skip
def test_a_fault_is_one_sentence_with_line_and_key(text, said):
    with pytest.raises(OverreadError, match=said):
        parse(text, "s.yaml")


def tried(text):
    """The settings, or why they are none."""
    try:
        return parse(text, "s.yaml"), ""
    except OverreadError as refused:
        return None, str(refused)


@given(st.text(max_size=200) | st.text("[]{}:,-&*!|>?#'\"\n\t %@ab1.~<=", max_size=200))
def test_whatever_the_text_it_is_settings_or_a_sentence(text):
    found, refusal = tried(text)
    assert refusal.startswith("s.yaml") if found is None else parse(to_yaml(found), "s.yaml") == found


@given(st.from_regex(r"[-+.:_0-9a-fxobTZ]{1,14}", fullmatch=True))
def test_whatever_looks_like_a_number_is_one_in_its_range_or_a_sentence(word):
    found, refusal = tried(f"weights:\n  under: {word}\n")
    assert refusal.startswith("s.yaml line 2") if found is None else 0 <= found.under_weight <= 1000


def test_settings_made_in_code_are_held_to_the_same_rules():
    with pytest.raises(OverreadError, match=r"weights.under: '-1.0' came"):
        triage_settings.check(TriageSettings(under_weight=-1))
    assert triage_settings.check(TriageSettings()) == TriageSettings()


def test_an_empty_file_has_no_node():
    assert triage_settings.read("", "s.yaml") is None
