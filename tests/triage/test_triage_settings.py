"""Settings of triage as a YAML file: what is written is read, and what is wrong is one sentence with line and key."""

import math

import pytest
from hypothesis import given, strategies as st

from evalcore.errors import OverreadError
from evalcore.study.schema import Format
from evalcore.triage import settings as triage_settings
from evalcore.triage.data import AmbiguityRule
from evalcore.triage.rates import Measure
from evalcore.triage.settings import METRICS, LevelNames, TriageSettings, parse, to_yaml
from tests.triage_cases import settings_with

PLAIN = "abcdefghijklmnopqrstuvwxyzABCD 0123456789:#'\"-{}[]&*!|>%@`,?~é日"
names = st.lists(
    st.text(PLAIN, min_size=1, max_size=30).map(str.strip).filter(bool) | st.sampled_from(["yes", "null", "1:30", "2001-01-01", "0x1", "<<", "=", "1e3"]),
    min_size=4, max_size=4, unique_by=str.casefold,
)  # fmt: skip
weights = st.floats(0, 1000)
drawn_settings = st.builds(
    settings_with,
    level_names=names.map(lambda words: LevelNames(*words)),
    formats=st.permutations(list(Format)).flatmap(lambda words: st.sampled_from([tuple(words), tuple(words[:1])])),
    metrics=st.lists(st.sampled_from(list(METRICS)), min_size=1, unique=True).map(tuple),
    under=weights,
    over=st.floats(1e-9, 1000),
    rule=st.builds(
        AmbiguityRule, spread=st.floats(0, 9) | st.just(math.inf), uncertainty=st.floats(0, 1) | st.just(math.inf)
    ),
)


@given(drawn_settings)
def test_settings_are_the_same_after_writing_and_reading(settings):
    assert parse(to_yaml(settings), "s.yaml") == settings
    assert parse("\ufeff" + to_yaml(settings).replace("\n", "\r\n"), "s.yaml") == settings


def test_the_defaults_are_those_of_the_benchmark():
    defaults = TriageSettings()
    assert (defaults.weights.under, defaults.weights.over) == (5.0, 1.0)
    assert (defaults.rule.spread, defaults.rule.uncertainty) == (0.75, 0.7)
    assert defaults.formats == (Format.QA, Format.CONVERSATION)
    assert defaults.level_names.__struct_fields__ == ("A", "B", "C", "D")


def test_every_rate_can_be_chosen():
    assert {measure.value for measure in Measure} <= set(METRICS)


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "{}\n"])
def test_what_is_left_out_keeps_its_default(text):
    assert parse(text, "s.yaml") == TriageSettings()


def test_one_key_alone_changes_one_thing():
    found = parse("weights:\n  under: 10\n", "s.yaml")
    assert found == settings_with(under=10.0)
    found = parse("level_names: {D: Notaufnahme}\n", "s.yaml")
    assert found.level_names == LevelNames(D="Notaufnahme")


def test_null_switches_a_rule_off():
    found = parse("ambiguous:\n  spread_above: null\n", "s.yaml")
    assert found.rule == AmbiguityRule(spread=math.inf, uncertainty=0.7)
    assert "spread_above: null" in to_yaml(found)
    assert triage_settings.rule_words(found.rule) == "stated uncertainty above 0.7"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("weight:\n  under: 5\n", r"^s.yaml: expected level_names, formats, metrics, weights, ambiguous, got 'weight'$"),
        ("weights:\n  under: 5\n  more: 1\n", r"^s.yaml: weights: expected under, over, got 'more'$"),
        ("weights:\n  under: 5\n  under: 6\n", r"^s.yaml line 2: cannot be read as YAML: expected each key once$"),
        ("formats: [qa]\nmetrics: [exact]\nformats: [qa]\n", r"^s.yaml line 1: cannot be read as YAML: expected each key once$"),
        ("weights:\n  under: -1\n", r"^s.yaml: weights.under: expected a number >= 0.0$"),
        ("weights:\n  over: 1001\n", r"^s.yaml: weights.over: expected a number <= 1000.0$"),
        ("weights:\n  over: '1'\n", r"^s.yaml: weights.over: expected a number, got text$"),
        ("weights:\n  over: true\n", r"^s.yaml: weights.over: expected a number, got true or false$"),
        ("weights:\n  over: null\n", r"^s.yaml: weights.over: expected a number, got nothing$"),
        ("weights:\n  over: .nan\n", r"^s.yaml: weights.over: expected a number >= 0.0$"),
        ("weights:\n  over: .inf\n", r"^s.yaml: weights.over: expected a number <= 1000.0$"),
        ("weights:\n  over: [1]\n", r"^s.yaml: weights.over: expected a number, got a list$"),
        ("weights:\n  over: 2001-01-01\n", r"^s.yaml: weights.over: expected a number, got a date$"),
        ("weights:\n  over: 2001-99-99\n", r"^s.yaml: cannot be read as YAML: month must be in 1..12$"),
        ("weights: 5\n", r"^s.yaml: weights: expected keys with values, got a whole number$"),
        ("weights: {under: 0, over: 0.0}\n", r"^s.yaml: weights: expected under or over above 0, got 0 for both$"),
        ("ambiguous:\n  spread_above: 9.5\n", r"^s.yaml: ambiguous.spread_above: expected a number <= 9.0$"),
        ("ambiguous:\n  uncertainty_above: 1.01\n", r"^s.yaml: ambiguous.uncertainty_above: expected a number <= 1.0$"),
        ("ambiguous: null\n", r"^s.yaml: ambiguous: expected keys with values, got nothing$"),
        ("formats: qa\n", r"^s.yaml: formats: expected a list, got text$"),
        ("formats: []\n", r"^s.yaml: formats: expected a list of length >= 1$"),
        ("formats:\n  - qa\n  - chat\n", r"^s.yaml: formats\[1\]: expected qa, conversation, got 'chat'$"),
        ("formats:\n  - qa\n  - qa\n", r"^s.yaml: formats: expected each word once, got qa, qa$"),
        ("metrics: [exact, {a: 1}]\n", r"^s.yaml: metrics\[1\]: expected text, got keys with values$"),
        ("metrics: [accuracy]\n", r"^s.yaml: metrics: expected some of exact, .*, got 'accuracy'$"),
        ("level_names:\n  A: no\n", r"^s.yaml: level_names.A: expected text, got true or false$"),
        ("level_names:\n  A: ''\n", r"^s.yaml: level_names.A: expected text of length >= 1$"),
        ("level_names:\n  A: '" + "x" * 61 + "'\n", r"^s.yaml: level_names.A: expected text of length <= 60$"),
        ('level_names:\n  A: "a\\nb"\n', r"^s.yaml: level_names.A: expected printable characters, got 'a\\nb'$"),
        ("level_names: {A: home, B: Home}\n", r"^s.yaml: level_names: expected four different names, got home, Home, .*$"),
        ("level_names: {E: soon}\n", r"^s.yaml: level_names: expected A, B, C, D, got 'E'$"),
        ("? [a]\n: b\n", r"^s.yaml line 1: cannot be read as YAML: found unhashable key$"),
        ("- qa\n", r"^s.yaml: expected keys with values, got a list$"),
        ("words\n", r"^s.yaml: expected keys with values, got text$"),
        ("formats: *x\n", r"^s.yaml line 1: cannot be read as YAML: found undefined alias"),
        ("formats: !!python/object/apply:os.system [ls]\n", r"^s.yaml line 1: cannot be read as YAML: could not determine a constructor for the tag"),
        ("{}\n---\n{}\n", r"^s.yaml line 2: cannot be read as YAML: but found another document$"),
        ("formats: [qa\nweights: 1\n", r"^s.yaml line \d: cannot be read as YAML"),
        ("formats:\n\t- qa\n", r"^s.yaml line 2: cannot be read as YAML"),
        ("a: \x07\n", r"^s.yaml: cannot be read as YAML: unacceptable character"),
        ("[" * 5000, r"^s.yaml: cannot be read as YAML: maximum recursion depth exceeded"),
        ("#" * 70_000, r"^s.yaml: expected a file of settings of at most 65,536 bytes, got more$"),
    ],
)  # fmt: skip
def test_a_fault_is_one_sentence_with_its_place(text, said):
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
    assert refusal.startswith("s.yaml") if found is None else 0 <= found.weights.under <= 1000


def test_settings_made_in_code_are_held_to_the_same_rules():
    with pytest.raises(OverreadError, match=r"weights.under: expected a number >= 0.0"):
        triage_settings.parse(triage_settings.to_yaml(settings_with(under=-1)), "made in code")
    made = triage_settings.to_yaml(TriageSettings())
    assert triage_settings.parse(made, "made in code") == TriageSettings()
