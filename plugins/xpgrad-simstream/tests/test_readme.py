"""Law: the README's example is true."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from xpgrad_simstream import streams


def test_the_example_prints_what_it_says(capsys: Any) -> None:
    streams.reset()
    text = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(code, {})  # noqa: S102 (our own text)
    assert capsys.readouterr().out == "[2.0, 4.0]\n"
