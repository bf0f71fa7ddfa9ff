"""Keys: read from the environment or a file, and sent to their provider's hosts alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from runs.providers.catalog import ModelConfig, api_key, missing, resolve
from runs.providers.keys import KEY_HOSTS, host_refusal, read_key, unlisted
from runs.providers.models_yaml import load_models_yaml

ELSEWHERE = "https://models.example.org/v1"


def entry(variable: str, base_url: str) -> ModelConfig:
    text = f"models: {{m: {{base_url: '{base_url}', api_key_env: {variable}, free: true}}}}"
    return load_models_yaml(text)["m"]


def test_a_providers_key_goes_to_no_other_address_and_the_line_says_who_may_allow_it() -> None:
    config, environ = entry("OPENAI_API_KEY", ELSEWHERE), {"OPENAI_API_KEY": "secret"}
    assert api_key(config, environ) == ""
    assert missing(config, environ) == [
        "model m: the key OPENAI_API_KEY is not sent to models.example.org; who runs the site may "
        "allow it with DEBATEWEB_KEY_HOSTS=OPENAI_API_KEY=models.example.org"
    ]


@pytest.mark.parametrize(
    "listed",
    ["OPENAI_API_KEY=models.example.org", "A=b, openai_api_key=Models.Example.org ,C=d"],
)
def test_who_runs_the_site_lets_a_key_go_to_a_host(listed: str) -> None:
    environ = {"OPENAI_API_KEY": "secret", KEY_HOSTS: listed}
    config = entry("OPENAI_API_KEY", ELSEWHERE)
    assert (api_key(config, environ), missing(config, environ)) == ("secret", [])


@pytest.mark.parametrize(
    "listed",
    ["models.example.org", "OPENAI_API_KEY=example.org", "GROQ_API_KEY=models.example.org"],
)
def test_what_is_listed_for_another_key_or_host_allows_nothing(listed: str) -> None:
    assert host_refusal("OPENAI_API_KEY", ELSEWHERE, {KEY_HOSTS: listed})


@pytest.mark.parametrize(
    ("variable", "base_url", "is_sent"),
    [
        ("OPENAI_API_KEY", "https://api.openai.com/v1", True),
        ("OPENAI_API_KEY", "https://eu.api.openai.com/v1", True),
        ("OPENAI_API_KEY", "http://api.openai.com/v1", False),
        ("OPENAI_API_KEY", "https://api.openai.com.example.org/v1", False),
        ("OPENAI_API_KEY", "https://evilapi.openai.com@example.org/", False),
        ("OPENAI_API_KEY", "https://example.org/?https://api.openai.com", False),
        ("OPENAI_API_KEY", "https://api.groq.com/openai/v1", False),
        ("OPENAI_API_KEY", "https://[bad", False),
        ("ANTHROPIC_API_KEY", "https://api.anthropic.com", True),
        ("ANTHROPIC_API_KEY", ELSEWHERE, False),
        ("AZURE_API_KEY", "https://team.openai.azure.com", True),
        ("NOVITA_API_KEY", ELSEWHERE, False),
        ("TEAM_KEY", ELSEWHERE, True),
        ("ANTHROPIC_API_KEY", "", True),
    ],
)
def test_a_providers_key_knows_its_hosts(variable: str, base_url: str, is_sent: bool) -> None:
    assert (host_refusal(variable, base_url, {}) == "") is is_sent


def test_the_address_that_the_environment_gives_the_sdk_is_the_providers() -> None:
    environ = {"OPENAI_API_KEY": "secret", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    config = resolve("openai/gpt-4.1-mini", {}, environ)
    assert (api_key(config, environ), missing(config, environ)) == ("secret", [])
    azure = {"AZURE_API_BASE": ELSEWHERE}
    assert host_refusal("AZURE_API_KEY", ELSEWHERE, azure) == ""


def test_a_key_of_another_name_needs_the_list_only_where_it_is_asked_for() -> None:
    assert "TEAM_KEY is not sent to models.example.org" in unlisted("TEAM_KEY", ELSEWHERE, {})
    allowed = {KEY_HOSTS: "TEAM_KEY=models.example.org"}
    assert unlisted("TEAM_KEY", ELSEWHERE, allowed) == ""


def test_a_key_file_that_gives_no_key_is_one_line_that_names_it(tmp_path: Path) -> None:
    empty, binary = tmp_path / "empty", tmp_path / "binary"
    empty.write_text(" \n")
    binary.write_bytes(b"\xff\xfe")
    for file, words in (
        (tmp_path / "none", "cannot be read: No such file or directory"),
        (tmp_path, "cannot be read: Is a directory"),
        (empty, "is empty"),
        (binary, "is no text in UTF-8"),
    ):
        environ = {"OPENAI_API_KEY_FILE": str(file)}
        key, what = read_key("OPENAI_API_KEY", environ)
        assert (key, what) == ("", f"no key; OPENAI_API_KEY_FILE={str(file)!r} {words}")
        (line,) = missing(resolve("openai/gpt-4.1-mini", {}), environ)
        assert line == f"model openai/gpt-4.1-mini: {what}"
