"""Law: the program of the README's picture draws that picture and agrees with the README's text."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def test_the_pictures_program_prints_what_the_readme_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(sys, "argv", ["front.py", "--picture", str(tmp_path / "front.png")])
    runpy.run_path(str(ROOT / "examples" / "front.py"), run_name="__main__")
    printed = capsys.readouterr().out.strip()
    assert f"# {printed}" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert (tmp_path / "front.png").read_bytes().startswith(b"\x89PNG")
