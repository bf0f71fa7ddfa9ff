"""`models`: the table by command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from debateweb.errors import InputError, NegativeAnswer
from debateweb.models import AuditEvent
from runs.models import ModelEntry

pytestmark = pytest.mark.django_db

TABLE = """
models:
  mine/small:
    path: openai_compatible
    base_url: http://127.0.0.1:9/v1
    {price}
"""


def said(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    call_command("models", *words, "--json")
    return json.loads(capsys.readouterr().out)


def written(folder: Path, price: str = "free: true") -> str:
    path = folder / "models.yaml"
    path.write_text(TABLE.format(price=price))
    return str(path)


def test_the_same_file_twice_adds_nothing_and_a_change_adds_a_version(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said(capsys, "import", written(tmp_path))["changed"] == 1
    assert said(capsys, "import", written(tmp_path))["changed"] == 0
    priced = "price: {input_microusd_per_mtok: 5, output_microusd_per_mtok: 7}"
    assert said(capsys, "import", written(tmp_path, priced))["changed"] == 1
    assert list(ModelEntry.objects.order_by("version").values_list("version", flat=True)) == [1, 2]
    assert [row["output_microusd_per_mtok"] for row in said(capsys, "list")] == [7]
    assert AuditEvent.objects.filter(act="models.import").count() == 2


def test_a_model_that_lacks_a_key_is_a_negative_answer_that_names_the_variable(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(NegativeAnswer, match="OPENAI_API_KEY"):
        call_command("models", "check", "openai/gpt-4.1-mini")


def test_an_unknown_model_and_a_faulty_file_are_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="unknown model"):
        call_command("models", "check", "nobody-knows-this")
    with pytest.raises(InputError, match=r"models\.yaml:6"):
        call_command("models", "import", written(tmp_path, "fre: true"))
    assert not ModelEntry.objects.exists()


def test_a_log_that_nobody_imported_is_no_model() -> None:
    with pytest.raises(InputError, match="there is no imported debate set 'nope'"):
        call_command("models", "check", "recorded:nope")
