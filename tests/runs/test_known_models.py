"""The file of known models: what it says is what is asked, what is wrong is named by file and key, and no key is ever in it or in a message."""

import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, strategies as st

from evalcore.errors import RunRefused
from evalcore.runs.spec import ModelSettings, key_of, known_models, model_named, storable

ROOT = Path(__file__).resolve().parents[2]
URL = "http://127.0.0.1:8000/v1"
SECRET = "sk-proj-4f5A77c2b19"


@pytest.fixture
def models(tmp_path):
    """Writes a file of models and gives its path."""
    path = tmp_path / "models.toml"

    def written(text: str) -> Path:
        path.write_text(text, "utf-8")
        return path

    return written


def test_the_example_file_can_be_read():
    known = known_models(ROOT / "data" / "models.example.toml")
    first = next(iter(known.values()))
    assert (first.name, first.api_model, first.price_out) == ("gpt-4.1", "gpt-4.1-2025-04-14", 8.0)
    assert [model.key_variable for model in known.values()] == ["OPENAI_API_KEY", None]


def test_what_a_table_leaves_out_keeps_its_default(models):
    known = known_models(models(f'[models."m 1"]\nbase_url = "{URL}/"\ntemperature = 1\n'))
    assert known == {"m 1": ModelSettings(name="m 1", base_url=URL, api_model="m 1", temperature=1)}


words = st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S")), min_size=1, max_size=30)


@given(
    names=st.lists(words, min_size=1, max_size=3, unique=True),
    given=st.fixed_dictionaries(
        {},
        optional={
            "api_model": words,
            "temperature": st.floats(0, 2),
            "max_tokens": st.integers(1, 100_000),
            "price_in": st.floats(0, 1000),
            "price_out": st.integers(0, 1000),
            "family": words,
            "key_variable": st.from_regex(r"[A-Z][A-Z0-9_]{0,20}", fullmatch=True),
            "structured": st.booleans(),
            "timeout_seconds": st.floats(0.1, 1000),
        },
    ),
)
def test_a_file_says_what_was_written_into_it(tmp_path_factory, names, given):
    path = tmp_path_factory.mktemp("models") / "models.toml"
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in ({"base_url": URL} | given).items()]
    tables = [f"[models.{json.dumps(name, ensure_ascii=False)}]" for name in names]  # a string of JSON is one of TOML
    path.write_text("\n".join(line for table in tables for line in (table, *lines)), "utf-8")
    known = known_models(path)
    assert list(known) == names
    for name in names:
        assert known[name] == ModelSettings(**{"name": name, "base_url": URL, "api_model": name} | given)
        assert model_named(name, path=path) == known[name]


def test_options_win_over_the_file(models):
    path = models(f'[models.m]\nbase_url = "{URL}"\ntemperature = 0.5\nprice_in = 2.0\nkey_variable = "M_KEY"\n')
    found = model_named("m", path=path, temperature=0.0, api_model="m-2", price_in=None, structured=False)
    assert (found.temperature, found.api_model, found.price_in, found.structured) == (0.0, "m-2", 2.0, False)
    assert found.key_variable == "M_KEY"


def test_a_model_without_a_table_is_made_of_the_options(models):
    assert model_named("new", path=None, base_url=URL) == ModelSettings(name="new", base_url=URL, api_model="new")
    assert model_named("new", path=models(""), base_url=URL, max_tokens=9).max_tokens == 9


def test_the_files_key_is_not_sent_to_another_host(models):
    path = models('[models.m]\nbase_url = "https://api.example/v1"\nkey_variable = "M_KEY"\n')
    assert model_named("m", path=path, base_url="https://api.example/v2").key_variable == "M_KEY"
    assert model_named("m", path=path, base_url="https://elsewhere.example/v1").key_variable is None
    assert (
        model_named("m", path=path, base_url="http://api.example/v1").key_variable is None
    )  # the same, and not encrypted
    with pytest.raises(RunRefused, match="base_url"):
        model_named("m", path=path, base_url="http://[::1/v1")
    assert model_named("m", path=path, base_url=URL, key_variable="OTHER").key_variable == "OTHER"


def test_a_model_that_nobody_places_is_refused_with_the_names_that_are_known(models):
    with pytest.raises(RunRefused, match=r"c: expected this model in a file.*models\.toml has a, b"):
        model_named("c", path=models(f'[models.a]\nbase_url = "{URL}"\n[models.b]\nbase_url = "{URL}"\n'))
    with pytest.raises(RunRefused, match="no file of models was named"):
        model_named("c", path=None)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("temprature = 1", r"expected base_url, api_model.*, got temprature$"),
        ('temperature = "hot"', r"temperature: expected a number, got text$"),
        ("temperature = true", r"temperature: expected a number, got true or false$"),
        ("temperature = nan", r"temperature: expected a number >= 0.0$"),
        ("temperature = 2.1", r"temperature: expected a number <= 2.0$"),
        ("max_tokens = 0", r"max_tokens: expected a whole number >= 1$"),
        ("max_tokens = 1.5", r"max_tokens: expected a whole number, got a number$"),
        ("price_in = -1", r"price_in: expected a number >= 0.0$"),
        ("price_out = inf", r"price_out: expected a number <= 1000000000.0$"),
        ("timeout_seconds = 0", r"timeout_seconds: expected a number >= 0.001$"),
        ("structured = 1", r"structured: expected true or false, got a whole number$"),
        ("family = []", r"family: expected text, got a list$"),
        ("family = 2026-01-01", r"family: expected text, got a date$"),
        ('api_model = ""', r"api_model: expected text of length >= 1$"),
        ('api_model = "a\\nb"', r"api_model: expected printable characters without blanks around them$"),
    ],
)
def test_a_wrong_value_is_named_by_file_and_key(models, line, said):
    with pytest.raises(RunRefused, match=r'^models\.toml: models\."m"(\.|: )' + said):
        known_models(models(f'[models.m]\nbase_url = "{URL}"\n{line}\n'))


@pytest.mark.parametrize("key", ["key", "api_key", "apikey", "token", "password", "secret", "Authorization", "bearer"])
def test_a_key_in_the_file_is_refused_and_not_repeated(models, key):
    with pytest.raises(RunRefused, match="never kept in this file: put it into an environment variable") as refused:
        known_models(models(f'[models.m]\nbase_url = "{URL}"\n{key} = "{SECRET}"\n'))
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize("pasted", [SECRET, "hf_AbCdEf0123456789", "gsk_0123456789abcdef", "lower_case"])
def test_a_key_where_the_name_of_its_variable_belongs_is_refused_and_not_repeated(models, pasted):
    with pytest.raises(
        RunRefused, match=r"key_variable: expected the name of an environment variable in capital letters"
    ) as refused:
        known_models(models(f'[models.m]\nbase_url = "{URL}"\nkey_variable = "{pasted}"\n'))
    assert pasted not in str(refused.value)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1:8000/v1",
        "ftp://host/v1",
        "http://",
        "http://host:port/v1",
        "http://host:70000/v1",
        f"https://user:{SECRET}@host/v1",
        f"https://host/v1?api-key={SECRET}",
        "https://host/v1#part",
        "https://host/v1?",
        "https://host/v1/chat/completions",
        "https://ho st/v1",
        "https://höst/v1",
        "",
    ],
)
def test_a_base_url_is_a_plain_address(models, address):
    with pytest.raises(RunRefused, match=r'models\."m"\.base_url: expected an address up to and without') as refused:
        known_models(models(f'[models.m]\nbase_url = "{address}"\n'))
    assert SECRET not in str(refused.value)
    with pytest.raises(RunRefused, match="expected an address"):
        model_named("m", path=None, base_url=address)


@pytest.mark.parametrize(
    "address", ["http://[::1]:8000/v1", "https://api.example", "http://localhost:1/v1/", "HTTP://Host/v1"]
)
def test_every_usual_address_is_taken(address):
    assert model_named("m", path=None, base_url=address).base_url == address.rstrip("/")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[models.m]\n", r'^models\.toml: models\."m": expected base_url, got nothing'),
        ("models = 1", r"^models\.toml: models: expected tables such as"),
        ("[models]\nm = 1", r'^models\.toml: models\."m": expected keys with values, got a whole number'),
        ("[model.m]\n", r"^models\.toml: expected models, got model$"),
        ('[models.""]\nbase_url = "http://h/v1"', r"expected a name of 1 to 200 printable characters"),
        ("[models.m\n", r"^models\.toml: cannot be read as TOML: .*line 1"),
        (f'[models.m]\nbase_url = "{URL}"\n[models.m]\n', r"^models\.toml: cannot be read as TOML: .*line 3"),
    ],
)
def test_what_is_no_file_of_models_is_refused(models, text, said):
    with pytest.raises(RunRefused, match=said):
        known_models(models(text))


def test_an_empty_file_knows_no_model(models):
    assert known_models(models("")) == {}


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(RunRefused, match=r"none\.toml: cannot be read: No such file"):
        known_models(tmp_path / "none.toml")
    (tmp_path / "latin.toml").write_bytes("# é".encode("latin-1"))
    with pytest.raises(RunRefused, match=r"latin\.toml: expected UTF-8"):
        known_models(tmp_path / "latin.toml")


def test_the_key_comes_from_the_environment(monkeypatch):
    settings = ModelSettings(name="m", base_url=URL, api_model="m", key_variable="M_KEY")
    monkeypatch.setenv("M_KEY", f" {SECRET}\n")
    assert key_of(settings) == SECRET
    assert key_of(msgspec.structs.replace(settings, key_variable=None)) is None
    for missing in ("", "  "):
        monkeypatch.setenv("M_KEY", missing)
        with pytest.raises(RunRefused, match="m: the environment variable M_KEY is not set"):
            key_of(settings)
    monkeypatch.delenv("M_KEY")
    with pytest.raises(RunRefused, match="M_KEY is not set"):
        key_of(settings)


def test_a_call_costs_its_tokens_in_and_out_and_is_unknown_without_a_count():
    model = ModelSettings(name="m", base_url="u", api_model="m", price_in=2.0, price_out=8.0)
    assert (model.cost(1_000_000, 500_000), model.cost(None, 5)) == (6.0, None)


def test_what_a_database_refuses_is_replaced():
    assert storable("half \ud83d and \x00") == "half \ufffd and \ufffd"
