"""Run the examples of pages in this process and compare what they print: `python tests/browser/examples.py [PAGE ...]`.

It needs only what the examples need, so that it also runs in builds of Python for WebAssembly. The first line that it prints is the time
to the first gradient: importing NumPy and xpgrad, and one backward pass.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
#: The pages whose examples have a "Run" button on the site.
PAGES = ("start.md", "tutorial.md")
#: Libraries that parts of the pages are about and that Pyodide has.
LIBRARIES = ("matplotlib", "scipy")


def blocks(text: str) -> list[tuple[int, str, str]]:
    """Return the line, the further library ("" if none) and the code of each example of a page."""
    found = re.finditer(r"^```python(?: needs=(\w+))?\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return [(text.count("\n", 0, match.start()) + 1, match[1] or "", match[2]) for match in found]


def expected(code: str) -> list[str]:
    """Return what the comments next to each `print` say."""
    return [shown[1] for line in code.splitlines() if re.match(r"\s*print\(", line) and (shown := re.search(r"\)  # (.+)$", line))]


def run(text: str, libraries: Iterable[str]) -> list[tuple[int, str]]:
    """Run the examples of a page, which are one program, with warnings as errors.

    Returns
    -------
    list of tuple
        For each example its line and what is wrong: "" if it printed what it says, "needs NAME" if it was not run.
    """
    names: dict[str, object] = {"__name__": "__main__"}
    outcomes = []
    for line, needs, code in blocks(text):
        if needs and needs not in libraries:
            outcomes.append((line, f"needs {needs}"))
            continue
        shown = io.StringIO()
        try:
            with contextlib.redirect_stdout(shown), warnings.catch_warnings():
                warnings.simplefilter("error")
                exec(compile(code, f"<line {line}>", "exec"), names)  # noqa: S102 (the page's own code)
        except BaseException:  # noqa: BLE001 (reported, whatever it is)
            outcomes.append((line, traceback.format_exc(limit=-3)))
        else:
            printed, promised = shown.getvalue().splitlines(), expected(code)
            outcomes.append((line, "" if printed == promised else f"printed {printed}, the page says {promised}"))
    return outcomes


def first_gradient() -> str:
    """Import NumPy and xpgrad, take a gradient, and say how long it took."""
    start = time.perf_counter()
    import numpy as np

    numpy = time.perf_counter()
    import xpgrad as xp

    x = xp.tensor([1.0, 2.0, 3.0], requires_grad=True)
    xp.sum(x**2).backward()
    assert x.grad is not None
    assert x.grad.tolist() == [2.0, 4.0, 6.0]
    end = time.perf_counter()
    where = f"Python {sys.version.split()[0]} on {sys.platform}, {8 * np.intp(0).itemsize} bits, NumPy {np.__version__}"
    return f"first gradient: {end - start:.2f} s, of which NumPy {numpy - start:.2f} s ({where})"


def main(pages: Iterable[str] = PAGES) -> int:
    """Print the time to the first gradient and a line for each page; return the number of examples that failed."""
    print(first_gradient())
    libraries = [name for name in LIBRARIES if find_spec(name)]
    os.environ.setdefault("MPLBACKEND", "agg")
    before, failed = Path.cwd(), 0
    print(f"{'page':12} {'passed':>6} {'failed':>6} {'not run':>7} {'seconds':>7}")
    with tempfile.TemporaryDirectory() as folder:
        for page in pages:
            text = (DOCS / page).read_text(encoding="utf-8")
            os.chdir(folder)
            start = time.perf_counter()
            outcomes = run(text, libraries)
            seconds = time.perf_counter() - start
            os.chdir(before)
            wrong = [(line, what) for line, what in outcomes if what and not what.startswith("needs ")]
            skipped = sum(what.startswith("needs ") for _, what in outcomes)
            print(f"{page:12} {len(outcomes) - len(wrong) - skipped:6} {len(wrong):6} {skipped:7} {seconds:7.2f}")
            for line, what in wrong:
                print(f"  line {line}: {what}")
            failed += len(wrong)
    return failed


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:] or PAGES), 1))
