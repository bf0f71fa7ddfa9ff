from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from runs.engine.ledger import Price
from runs.engine.types import PromptMessage
from runs.protocols.yaml12 import FileFaultError
from runs.providers.base import ProviderRequest
from runs.providers.catalog import (
    ModelConfig,
    adapted,
    api_key,
    base_url_faults,
    missing,
    price_table_version,
    resolve,
)
from runs.providers.errors import ModelSpecError, UnknownModelError
from runs.providers.models_yaml import load_models_yaml


def test_a_well_known_prefix_takes_the_thin_path_with_its_price() -> None:
    config = resolve("openai/gpt-4.1-mini", {})
    assert (config.path, config.base_url) == ("openai_compatible", "https://api.openai.com/v1")
    assert (config.upstream_name, config.api_key_env) == ("gpt-4.1-mini", "OPENAI_API_KEY")
    assert config.price == Price(400_000, 100_000, 1_600_000)
    assert config.context_tokens == 1_047_576
    assert config.json_schema
    assert config.supports_seed


def test_a_bare_name_of_openai_is_the_same_model() -> None:
    bare, prefixed = resolve("gpt-4.1-mini", {}), resolve("openai/gpt-4.1-mini", {})
    assert replace(bare, name=prefixed.name) == prefixed


@pytest.mark.parametrize(
    ("name", "base_url", "key"),
    [
        ("openrouter/qwen/qwen3-8b", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
        ("groq/llama-3.1-8b-instant", "https://api.groq.com/openai/v1", "GROQ_API_KEY"),
        ("mistral/mistral-small-latest", "https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
        ("together/Qwen/Qwen3-8B", "https://api.together.xyz/v1", "TOGETHER_API_KEY"),
        ("deepseek/deepseek-chat", "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
        ("ollama/qwen3", "http://localhost:11434/v1", ""),
        ("vllm/Qwen/Qwen3-8B", "http://localhost:8000/v1", ""),
        ("llamacpp/any", "http://localhost:8080/v1", ""),
    ],
)
def test_endpoints_of_the_openai_protocol_are_known(name: str, base_url: str, key: str) -> None:
    config = resolve(name, {})
    assert (config.path, config.base_url, config.api_key_env) == (
        "openai_compatible",
        base_url,
        key,
    )
    assert config.upstream_name == name.partition("/")[2]


def test_the_environment_overrides_a_base_url() -> None:
    environ = {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    assert resolve("openai/gpt-4.1-mini", {}, environ).base_url == "http://127.0.0.1:9/v1"


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("claude-sonnet-4-5", "ANTHROPIC_API_KEY"),
        ("anthropic/claude-of-tomorrow", "ANTHROPIC_API_KEY"),
        ("gemini/gemini-2.5-flash", "GEMINI_API_KEY"),
        ("bedrock/some.model-v1", ""),
    ],
)
def test_all_else_that_litellm_knows_takes_its_path(name: str, key: str) -> None:
    config = resolve(name, {})
    assert (config.path, config.upstream_name, config.api_key_env) == ("litellm", name, key)


def test_an_unknown_model_is_said_with_a_suggestion() -> None:
    with pytest.raises(UnknownModelError, match=r"unknown model 'gpt-4\.1-mni'; did you mean"):
        resolve("gpt-4.1-mni", {})
    with pytest.raises(UnknownModelError, match="unknown model 'nobody/nothing'"):
        resolve("nobody/nothing", {})


def test_simulated_and_recorded_models_are_free_and_marked() -> None:
    config = resolve("simulated:accuracy=0.6,seed=7", {})
    assert (config.path, config.marked, config.price) == ("simulated", "simulated", Price.free())
    log = resolve("recorded:gsm", {})
    assert (log.path, log.upstream_name, log.marked) == ("recorded", "gsm", "recorded")
    assert missing(config, {}) == missing(log, {}) == []
    for bad in ("simulated:x=1", "recorded:"):
        with pytest.raises(ModelSpecError):
            resolve(bad, {})


def test_the_table_comes_first() -> None:
    own = ModelConfig("openai/gpt-4.1-mini", "litellm", price=Price.free())
    assert resolve("openai/gpt-4.1-mini", {own.name: own}) is own


def test_a_missing_key_and_a_missing_price_are_each_a_line(tmp_path: Path) -> None:
    config = resolve("openai/gpt-4.1-mini", {})
    assert missing(config, {}) == [
        "model openai/gpt-4.1-mini: no key; set OPENAI_API_KEY or OPENAI_API_KEY_FILE"
    ]
    assert missing(config, {"OPENAI_API_KEY": "k"}) == []
    (tmp_path / "key").write_text("from-file\n")
    environ = {"OPENAI_API_KEY_FILE": str(tmp_path / "key")}
    assert missing(config, environ) == []
    assert api_key(config, environ) == "from-file"
    assert api_key(config, {"OPENAI_API_KEY_FILE": str(tmp_path / "none")}) == ""
    (line,) = missing(resolve("ollama/qwen3", {}), {})
    assert line.startswith("model ollama/qwen3: no price is known")


def test_a_local_model_is_free_only_where_the_table_says_so() -> None:
    assert resolve("ollama/llama3", {}).price is None
    table = load_models_yaml("models: {ollama/llama3: {free: true}}")
    config = resolve("ollama/llama3", table)
    assert config.price == Price.free()
    assert config.base_url == "http://localhost:11434/v1"
    assert config.upstream_name == "llama3"


@pytest.mark.parametrize(
    "base_url",
    ["", "ftp://x/v1", "http://", "localhost:8000", "http://x:99999/v1", "http://a b/v1"],
)
def test_an_unusable_base_url_is_said(base_url: str) -> None:
    (line,) = base_url_faults(base_url)
    assert line.endswith("is no http or https address")
    assert base_url_faults("https://user:pw@host/v1") == [
        "base_url holds a user or a password; give keys through api_key_env"
    ]


def test_a_request_is_cut_to_what_the_model_takes() -> None:
    request = ProviderRequest(
        "slot", (PromptMessage("user", "?"),), 10, 1.0, seed=3, response_schema={"type": "object"}
    )
    plain = ModelConfig("m", "openai_compatible", upstream_name="up")
    assert adapted(request, plain) == replace(request, model="up", seed=None, response_schema=None)
    able = replace(plain, json_schema=True, supports_seed=True, upstream_name="slot")
    assert adapted(request, able) is request


def test_the_price_table_has_a_version() -> None:
    a = ModelConfig("a", "litellm", price=Price(1, 1, 2))
    b = ModelConfig("b", "litellm", price=Price.free())
    assert price_table_version([a, b]) == price_table_version([b, a])
    assert price_table_version([a]) != price_table_version([replace(a, price=Price(1, 1, 3))])
    assert price_table_version([a]) == price_table_version([replace(a, max_concurrency=3)])


FULL = """\
models:
  # A server in the next room.
  local-qwen:
    base_url: http://10.0.0.7:8000/v1
    upstream_name: openai/gpt-oss-20b
    api_key_env: ROOM_KEY
    price: {input_microusd_per_mtok: 100000, output_microusd_per_mtok: 400000}
    context_tokens: 32768
    max_concurrency: 16
    requests_per_minute: 600
    tokens_per_minute: 100000
    json_schema: true
    supports_seed: true
  openai/gpt-4.1-mini: {max_concurrency: 4}
  cheap: {upstream_name: openai/gpt-4.1-mini, price: {input_microusd_per_mtok: 1,
    cached_input_microusd_per_mtok: 0, output_microusd_per_mtok: 2}}
  sonnet: {upstream_name: claude-sonnet-4-5}
"""


def test_a_models_file_gives_configurations() -> None:
    models = load_models_yaml(FULL)
    assert models["local-qwen"] == ModelConfig(
        name="local-qwen",
        path="openai_compatible",
        base_url="http://10.0.0.7:8000/v1",
        upstream_name="openai/gpt-oss-20b",
        api_key_env="ROOM_KEY",
        price=Price(100_000, 100_000, 400_000),
        context_tokens=32_768,
        max_concurrency=16,
        requests_per_minute=600,
        tokens_per_minute=100_000,
        json_schema=True,
        supports_seed=True,
    )
    limited = resolve("openai/gpt-4.1-mini", models)
    assert limited == replace(resolve("openai/gpt-4.1-mini", {}), max_concurrency=4)
    assert models["cheap"].price == Price(1, 0, 2)
    assert models["cheap"].upstream_name == "gpt-4.1-mini"
    assert (models["sonnet"].path, models["sonnet"].upstream_name) == (
        "litellm",
        "claude-sonnet-4-5",
    )
    assert load_models_yaml("") == {}


def test_another_address_does_not_get_the_usual_key_or_price() -> None:
    entry = "models: {openai/gpt-4.1-mini: {base_url: 'http://127.0.0.1:9/v1'}}"
    config = load_models_yaml(entry)["openai/gpt-4.1-mini"]
    assert (config.api_key_env, config.price) == ("", None)
    assert config.upstream_name == "gpt-4.1-mini"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("models:\n  a: {free: true}\n  a: {free: true}\n", "models.yaml:3: duplicate key 'a'"),
        ("models:\n  a:\n    path: magic\n", "models.yaml:3: models.a.path: expected one of"),
        ("models:\n  a:\n    max_concurrency: 0\n", "models.yaml:3: models.a.max_concurrency: "),
        ("models:\n  a:\n    json_schema: yes\n", "models.yaml:3: models.a.json_schema: "),
        ("models:\n  a:\n    speed: 3\n", "models.yaml:3: models.a.speed: unknown field"),
        ("models:\n  a:\n    price: 3\n", "models.yaml:3: models.a.price: expected input"),
        ("models:\n  a: {}\n", "models.yaml:2: models.a: unknown model: give its base_url"),
        ("models:\n  a: 3\n", "models.yaml:2: models.a: expected fields"),
        ("models: [a]\n", "models.yaml:1: expected `models:`"),
        ("other: 1\n", "models.yaml:1: other: unknown key"),
        ("models:\n  a: {base_url: 'ftp://x'}\n", "models.yaml:2: models.a.base_url: base_url "),
        ("models:\n  'simulated:x': {}\n", "models.yaml:2: models.simulated:x: this name is"),
        (
            "models:\n  a: {free: true, price: {output_microusd_per_mtok: 1}}\n",
            "models.yaml:2: models.a.price: a free model has no price",
        ),
        (
            "models:\n  a:\n    price:\n      input_microusd_per_mtok: 0.5\n"
            "      output_microusd_per_mtok: 1\n",
            "models.yaml:4: models.a.price.input_microusd_per_mtok: expected a whole number",
        ),
    ],
)
def test_a_fault_in_the_file_is_a_line_that_says_where(text: str, line: str) -> None:
    with pytest.raises(FileFaultError) as caught:
        load_models_yaml(text)
    assert caught.value.lines[0].startswith(line)
    assert all("\n" not in each for each in caught.value.lines)
