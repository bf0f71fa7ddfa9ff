"""A ``.pth`` file runs code in every Python process: malicious releases came with one."""

from __future__ import annotations

import site
import sys
from pathlib import Path

import pytest

#: What tools of ours install, by name or by how the name begins.
KNOWN = (
    "distutils-precedence.pth",
    "_virtualenv.pth",
    "easy-install.pth",
    "a1_coverage.pth",
    "coverage",
    "__editable__",
    "debateweb",
    "matplotlib-",
    "protobuf-",
)


def unexpected(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.glob("*.pth") if not file.name.startswith(KNOWN))


def folders() -> list[Path]:
    listed = [*site.getsitepackages(), *(p for p in sys.path if p.endswith("site-packages"))]
    return [folder for folder in dict.fromkeys(map(Path, listed)) if folder.is_dir()]


def test_no_unexpected_pth_file_lies_in_site_packages() -> None:
    assert folders()
    assert [name for folder in folders() for name in unexpected(folder)] == []


@pytest.mark.parametrize("name", ["litellm_init.pth", "zz.pth"])
def test_a_strange_pth_file_is_found(tmp_path: Path, name: str) -> None:
    (tmp_path / "distutils-precedence.pth").write_text("")
    (tmp_path / name).write_text("import os\n")
    assert unexpected(tmp_path) == [name]
