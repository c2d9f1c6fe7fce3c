"""Say on which backends a name works: where its example was run, and printed what it says.

``python -m xpgrad_reference.backends numpy strict torch jax dask simstream mlx`` runs the examples on each and writes the failures to
`backends.json`. Numbers may differ in the fifth digit (a backend may compute in single precision), and the printed device is the
backend's own.
"""

from __future__ import annotations

import doctest
import io
import json
import re
import sys
import warnings
from contextlib import redirect_stdout
from functools import cache
from pathlib import Path

import xpgrad as xp
from xpgrad import registry
from xpgrad_reference.names import Name, public
from xpgrad_reference.sections import example

TABLE = Path(__file__).resolve().parent / "backends.json"
#: Where an example is about arrays, and not about one library, the command line, or errors.
_ABOUT_ARRAYS = ("", "linalg.", "fft.", "func.", "autograd.", "autograd.functional.", "Tensor.")
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?")


@cache
def table() -> tuple[list[str], dict[str, dict[str, str]]]:
    """Return the backends on which every example was run, and the failures by name and backend: ``differs`` or the name of the error."""
    found = json.loads(TABLE.read_text(encoding="utf-8"))
    return found["tried"], found["fails"]


def expected(name: Name) -> dict[str, str]:
    """Return what the table says of a name, by backend: ``ok``, ``differs`` or the name of the error; empty if it is not tried."""
    tried, fails = table()
    return {backend: fails.get(name.full, {}).get(backend, "ok") for backend in tried} if is_tried(name) else {}


def sentence(name: Name) -> str:
    """Where the example ran, and where it did not; empty if it was not tried."""
    row = expected(name)
    if not row:
        return ""
    works = ", ".join(f"``{backend}``" for backend, said in row.items() if said == "ok")
    fails = "; ".join(f"``{backend}``: {said}" for backend, said in row.items() if said != "ok")
    return f"the example runs on {works or 'none'}" + (f". Not on {fails}" if fails else "")


def is_tried(name: Name) -> bool:
    """Return whether a name has an example that is the same on every backend."""
    text = example(name).replace("import numpy as np", "")
    if name.kind not in {"function", "method", "property", "class"} or not text or "numpy" in text:
        return False
    home = name.full.removeprefix("xpgrad.").removesuffix(name.short)
    return home in _ABOUT_ARRAYS or name.full.startswith("xpgrad.scipy.")


class _Checker(doctest.OutputChecker):
    """Compares numbers as numbers, and leaves out the device."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        want, got = (re.sub(r",\s+device='[^']*'|,\s+dtype=\w+", "", text) for text in (want, got))
        if super().check_output(want, got, optionflags):
            return True
        theirs, ours = ([float(n) for n in _NUMBER.findall(text)] for text in (want, got))
        words = [re.sub(r"[\s.]+", "", _NUMBER.sub("#", text)) for text in (want, got)]
        return (
            words[0] == words[1]
            and len(theirs) == len(ours)
            and all(abs(a - b) <= 2e-4 * max(1.0, abs(a)) for a, b in zip(theirs, ours, strict=True))
        )


def run(name: Name, backend: str) -> str:
    """Run the example of a name with another backend as the default: ``ok``, ``differs``, or the name of the error."""
    globals_: dict[str, object] = {}
    test = doctest.DocTestParser().get_doctest(example(name) + "\n", globals_, name.full, None, 0)
    runner = doctest.DocTestRunner(_Checker(), verbose=False, optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    report: list[str] = []
    table = registry.backend_for(backend)
    if table.capabilities.lazy:  # such Tensors do not print their values
        table.text = lambda x, indent: table.host_text(table.to_host(x), indent)  # type: ignore[method-assign]
    with xp.default_device(backend), redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a library's own, at the edges of a domain
        try:
            runner.run(test, out=report.append)
        finally:
            vars(table).pop("text", None)
    if not runner.failures:
        return "ok"
    errors = re.findall(r"^ +(?:\w+\.)*(\w*(?:Error|Warning))\b", "".join(report), re.MULTILINE)
    return errors[0] if errors else "differs"


def main(chosen: list[str]) -> None:
    """Run the examples on the backends that are named, and write the table."""
    fails: dict[str, dict[str, str]] = {}
    names = [name for name in public() if is_tried(name)]
    for backend in chosen:
        for i, name in enumerate(names):
            print(f"\r{backend}: {i + 1} of {len(names)}", end="", file=sys.stderr)
            if (said := run(name, backend)) != "ok":
                fails.setdefault(name.full, {})[backend] = said
        print(file=sys.stderr)
    TABLE.write_text(json.dumps({"tried": chosen, "fails": fails}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
