"""What is required and missing fails; what is merely missing skips and says why."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.debateweb.sites import PROJECT

SKIPS_BY_ITSELF = """
import pytest

@pytest.mark.realdata
def test_of_data(real_data):
    pytest.skip("one file is not there")

def test_of_nothing():
    pytest.skip("another reason")
"""


@pytest.mark.parametrize(
    ("required", "data", "passed", "said"),
    [
        ("", "nowhere", True, "2 skipped"),
        ("realdata", "nowhere", False, "1 skipped, 1 error"),
        ("realdata", ".", False, "1 failed, 1 skipped"),
        ("browser", ".", True, "2 skipped"),
        ("data", ".", False, "DEBATEWEB_REQUIRE names unknown things"),
    ],
)
def test_a_skip_cannot_hide_what_is_required(
    tmp_path: Path, required: str, data: str, *, passed: bool, said: str
) -> None:
    (tmp_path / "test_inner.py").write_text(SKIPS_BY_ITSELF)
    (tmp_path / "conftest.py").write_text((PROJECT / "tests" / "conftest.py").read_text())
    result = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:django"),
            *("-o", "markers=realdata", str(tmp_path)),
        ],
        env={**os.environ, "DEBATEWEB_REQUIRE": required, "DEBATEWEB_REAL_DATA": data},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (result.returncode == 0) is passed, result.stdout
    assert said in result.stdout + result.stderr
