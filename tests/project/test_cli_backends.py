"""Law: the command line lists what is registered, finds what is wrong with a plugin, and writes plugins that work."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, distribution, entry_points
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xpgrad as xp
from backends import test_registry
from backends.test_registry import HEAD, install
from support.central_differences import differences
from xpgrad.__main__ import main

ROOT = Path(__file__).resolve().parents[2]


def command(*args: str, path: Path | None = None) -> Any:
    environment = {k: v for k, v in os.environ.items() if k not in ("XPGRAD_BACKENDS", "XPGRAD_DEVICE")}
    if path is not None:
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(path), os.environ.get("PYTHONPATH")]))
    return subprocess.run([sys.executable, "-m", "xpgrad", *args], env=environment, capture_output=True, text=True, check=False)


def test_the_list_names_status_version_devices_and_origin(capsys: Any) -> None:
    assert main(["backends", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    numpy = rows["numpy"]
    assert (numpy["status"], numpy["devices"]) == ("ready", "numpy")
    assert numpy["version"].startswith("2.")
    assert "xpgrad_numpy" in numpy["origin"]
    assert {row["status"] for row in rows.values()} <= {"ready", "not installed", "broken", "incompatible", "disabled"}
    assert main(["backends"]) == 0
    assert capsys.readouterr().out.splitlines()[0].split() == ["name", "status", "version", "devices", "origin"]


def test_the_list_begins_with_what_works(tmp_path: Path) -> None:
    """Backends that are not ready come after those that are, and what is not installed is last; each group is sorted by name."""
    install(tmp_path, "absent", "absent_plugin", HEAD + ABSENT)
    install(tmp_path, "broken", "broken_plugin", "raise OSError('no driver')")
    run = command("backends", path=tmp_path)
    table = [re.split(r"\s{2,}", line)[:2] for line in run.stdout.partition("\n\n")[0].splitlines()[1:]]
    names = [name for name, _ in table]
    order = ("ready", "incompatible", "broken", "disabled", "not installed")
    assert table == sorted(table, key=lambda row: (order.index(row[1]), row[0]))
    assert ["absent", "not installed"] in table
    assert names.index("numpy") < names.index("broken") < names.index("absent")
    causes = [line.partition(":")[0] for line in run.stdout.splitlines() if ": backend '" in line or line.startswith("broken: ")]
    assert causes == [name for name, status in table if status != "ready"]


ABSENT = """
def load(variant):
    raise ModuleNotFoundError("no library", name="no_such_library")
@hookimpl
def xpgrad_backend(): return BackendInfo("absent", load)
"""


def test_without_a_command_the_help_is_printed(capsys: Any) -> None:
    assert main([]) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("usage: xpgrad [-h] [--version]")
    assert "conformance" in shown.out
    assert shown.err == ""


def test_one_is_shown_whole(capsys: Any) -> None:
    assert main(["backends", "show", "numpy"]) == 0
    out = capsys.readouterr().out
    for phrase in ("status: ready", "variants: readonly", "float64", "mutable: Arrays can be written to.", "scatter_add"):
        assert phrase in out
    assert main(["backends", "show", "numpy", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["capabilities"]["mutable"] is True
    assert main(["backends", "show", "nowhere"]) == 1
    assert "no such backend: 'nowhere'" in capsys.readouterr().out


def test_every_capability_is_explained() -> None:
    import dataclasses

    from xpgrad._cli.listing import capability_sentences

    found = capability_sentences()
    assert set(found) == {f.name for f in dataclasses.fields(xp.backend.Capabilities)}
    assert all(text.endswith(".") and len(text) > 10 for text in found.values())


def test_a_sound_backend_passes_every_check(capsys: Any) -> None:
    assert main(["backends", "check", "numpy", "--import"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) >= 12
    assert all(line.startswith("ok ") for line in lines)
    assert lines[-1] == "ok      numpy: a gradient equals NumPy's"


@pytest.mark.parametrize("table", ["numpy+readonly", "jax", "strict"])
def test_sound_variants_and_plugins_pass_too(table: str) -> None:
    """Installed backends pass the check; it runs in a separate process because tests register backends."""
    try:
        distribution({"jax": "jax", "strict": "xpgrad-strict"}.get(table, "numpy"))
    except PackageNotFoundError as exc:
        pytest.skip(f"{exc} is not installed")
    run = command("backends", "check", table, "--import")
    assert run.returncode == 0, run.stdout
    assert run.stdout.endswith("a gradient equals NumPy's\n")


def test_the_gradient_that_is_expected_is_that_of_central_differences() -> None:
    from xpgrad._cli.checking import _POINT, EXPECTED, _loss

    def loss(point: Any) -> float:
        return float(_loss(xp, xp.tensor(point)))

    np.testing.assert_allclose(differences(loss, np.asarray(_POINT)), EXPECTED, rtol=1e-8)


def test_a_variant_is_shown(capsys: Any) -> None:
    assert main(["backends", "show", "numpy+readonly", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["name"], facts["devices"]) == ("numpy+readonly", "numpy+readonly")
    assert "scatter_add" in facts["own kernels"]
    assert main(["backends", "show", "numpy+nonsense"]) == 1
    assert "nonsense" in capsys.readouterr().out


def test_the_static_check_imports_nothing(tmp_path: Path) -> None:
    install(tmp_path, "loud", "loud_plugin", "raise SystemExit('imported')")
    run = command("backends", "check", "loud", path=tmp_path)
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.count("ok ") == 5


TABLE = """
from xpgrad_numpy._backend import NumPyBackend
from xpgrad import Device
import numpy as np
class Table(NumPyBackend):
    name, device = "odd", Device("odd")
    _only_class = None
    {change}
@hookimpl
def xpgrad_backend(): return BackendInfo("odd", lambda variant: Table(), array_modules=("odd_library",){options})
"""


def method(name: str, attempt: str, otherwise: str, result: str) -> str:
    """Return the source of a method that writes, for a plugin whose table claims to check indices."""
    return f"def {name}(self, x, key, value):\n        try: {attempt}\n        {otherwise}\n        {result}"


def kernel(name: str, function: str) -> str:
    """Return the source of a kernel for such a table."""
    return f"overrides = {{**NumPyBackend.overrides, {name!r}: lambda {function}}}"


WRAPS = kernel("gather", "x, key: np.take(x, key[0], axis=0, mode='wrap') if len(key) == 1 and key[0].dtype != bool else x[key]")
LOSES = kernel("scatter_add", "values, key, shape: (out := np.zeros(shape), out.__setitem__(key, values))[0]")
#: Arrays that were joined remember it, and are joined wrongly with others, as in a library whose chunks are those of the first operand.
DIVIDED = """
def lacks(what):
    raise __import__("xpgrad").CapabilityError(f"there are no {what}")
joined_before = []
def joined(arrays, axis):
    known = [any(a is b for b in joined_before) for a in arrays]
    out = np.concatenate(arrays, axis=axis)
    if any(known) and not all(known):
        out = out[::-1].copy()
    joined_before.append(out)
    return out
"""
MASKED = "\ndef masked(key):\n    return any(getattr(k, 'dtype', None) == bool for k in key)\n"
DECLARED = "capabilities = __import__('dataclasses').replace(NumPyBackend.capabilities, {})"
WRONG = {
    "raises at import": ("raise OSError('no driver')", "FAILED  it implements the hook `xpgrad_backend`"),
    "misspelt hook": (HEAD + "@hookimpl\ndef xpgrad_backends(): pass", "FAILED  it implements the hook `xpgrad_backend`"),
    "newer interface": (HEAD + TABLE.format(change="", options=", api_version=(1, 99)"), "written for version 1.99"),
    "imports a library": (
        "import array_api_strict\n" + HEAD + TABLE.format(change="", options="").replace("odd_library", "array_api_strict"),
        "FAILED  describing it imports no array library",
    ),
    "from_host shares": (
        HEAD + TABLE.format(change="from_host = lambda self, array, device: array", options=""), "FAILED  arrays from the host are copies",
    ),
    "wrong values": (
        HEAD + TABLE.format(change="overrides = {**NumPyBackend.overrides, 'sin': lambda x: np.cos(x)}", options=""),
        "FAILED  odd: a gradient equals NumPy's",
    ),
    "wrong dtype": (
        HEAD + TABLE.format(change="overrides = {**NumPyBackend.overrides, 'cos': lambda x: np.cos(x).astype('f4')}", options=""),
        "given float64 operands, `cos` returned float32",
    ),
    "gives up": ("raise SystemExit('no licence')", "SystemExit: no licence"),
    "the array modules are a string": (
        HEAD + TABLE.format(change="", options="").replace('("odd_library",)', '"odd_library"'),
        "array_modules='odd_library', expected a tuple of strings",
    ),
    "version is text": (HEAD + TABLE.format(change="", options=", api_version='1'"), "must be two integers"),
    "loads nothing": (
        HEAD + TABLE.format(change="", options="").replace("Table(),", "None,"), "returned None, expected a Backend named 'odd'",
    ),
    "loads another": (
        HEAD + TABLE.format(change="", options="").replace('name, device = "odd"', 'name, device = "even"'),
        "returned one named 'even', expected a Backend named 'odd'",
    ),
    "devices raise": (
        HEAD + TABLE.format(change="devices = lambda self: 1 / 0", options=""), "FAILED  it has a device",
    ),
    "another's devices": (
        HEAD + TABLE.format(change="devices = lambda self: [Device('numpy')]", options=""), "must return Devices of 'odd'",
    ),
    "declares too little": (
        HEAD + TABLE.format(change=DECLARED.format("float64=False"), options=""),
        "FAILED  `float64` is False, and that is true",
    ),
    "declares too much": (
        HEAD + TABLE.format(change=DECLARED.format("jit=True"), options=""),
        "FAILED  `jit` is declared, and `compile` is implemented",
    ),
    "writes elsewhere": (
        HEAD + TABLE.format(change="update = lambda self, x, key, value: NumPyBackend.update(self, x.copy(), key, value)", options=""),
        "FAILED  `mutable` is True, and writes agree",
    ),
    "a write out of range does nothing": (
        HEAD + TABLE.format(change=method("update", "x[key] = value", "except IndexError: pass", "return x"), options=""),
        "`x[2] = 7.0` gave nothing, expected IndexError",
    ),
    "a write out of range goes elsewhere": (
        HEAD + TABLE.format(change=method("update", "x[key] = value", "except IndexError: x[0, 0] = value", "return x"), options=""),
        "`x[an array of 2] = 7.0` changed x from [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]] to [[7.0, 2.0, 3.0], [4.0, 5.0, 6.0]]",
    ),
    "a write out of range is refused after it was done": (
        HEAD + TABLE.format(change=method("update", "x[key] = value", "except IndexError: x[...] = 0; raise", "return x"), options=""),
        "`x[1, 3] = 7.0` changed x",
    ),
    "another error": (
        HEAD + TABLE.format(change=method("update", "x[key] = value", "except IndexError: raise KeyError(key)", "return x"), options=""),
        "`x[2] = 7.0` raised KeyError, expected IndexError",
    ),
    "a step of 0 is taken": (
        HEAD + TABLE.format(change=kernel("index_basic", "x, key: x[0] if slice(None, None, 0) in np.atleast_1d(np.asarray(key, object)) "
        "else np.asarray(x[key])"), options=""),
        "`x[::0]` gave [1.0, 2.0, 3.0], expected IndexError",
    ),
    "a read wraps around": (
        HEAD + TABLE.format(change=WRAPS, options=""),
        "FAILED  odd: reads with invalid keys are errors",
    ),
    "take_along_axis gives garbage": (
        HEAD + TABLE.format(change=kernel("gather_along", "x, i, axis: np.take_along_axis(x, i % x.shape[axis], axis)"), options=""),
        "`take_along_axis(3, axis=1)` gave [[1.0, 1.0], [4.0, 4.0]], expected IndexError",
    ),
    "duplicates are lost": (
        HEAD + TABLE.format(change=LOSES, options=""),
        "FAILED  odd: the gradient of `x[[0, 0, -1], [1, 1, 2]]` adds\n        got [[0.0, 2.0, 0.0], [0.0, 0.0, 2.0]], "
        "expected [[0.0, 4.0, 0.0], [0.0, 0.0, 2.0]]",
    ),
    "from_host narrows": (
        HEAD + TABLE.format(change="from_host = lambda self, a, device: np.array(a, {'d': 'f', 'D': 'F'}.get(a.dtype.char))", options=""),
        "it cannot make its default dtype: `from_host` made float32 of float64; override `default_dtype`",
    ),
    "from_host narrows what is no default": (
        HEAD + TABLE.format(change="from_host = lambda self, a, device: np.array(a, {'H': 'h'}.get(a.dtype.char))", options=""),
        "FAILED  odd: arrays keep their dtype on the way\n        `from_host` must keep the dtype, or raise the CapabilityError of "
        "`self.raw_dtype(...)` for one that there is not: uint16 became int16, and int16 on the way out",
    ),
    "complex128 is there": (
        HEAD + TABLE.format(change=DECLARED.format("complex128=False"), options=""),
        "FAILED  `complex128` is False, and that is true\n        declare complex128=True, as its namespace says",
    ),
    "no default dtype": (
        HEAD + TABLE.format(change="default_dtype = lambda self, kind, device: __import__('xpgrad').bfloat16", options=""),
        "numbers exists\n        it cannot make its default dtype: override `default_dtype`",
    ),
    "masks are refused": (
        HEAD + TABLE.format(change=kernel("gather", "x, key: 1 / 0 if masked(key) else x[key]"), options="") + MASKED,
        "FAILED  `boolean_indexing` is True, and that is true\n        declare boolean_indexing=False, or implement `x[x > 2]`: expected ",
    ),
    "masks are missing": (
        HEAD + DIVIDED + TABLE.format(change=kernel("gather", "x, key: lacks('masks') if masked(key) else x[key]"), options="") + MASKED,
        "        declare boolean_indexing=False, or implement `x[x > 2]`: there are no masks",
    ),
    "shapes that depend on values are wrong": (
        HEAD + TABLE.format(change=kernel("nonzero", "x: (np.arange(x.size),)"), options=""),
        "        declare data_dependent_shapes=False, or implement `nonzero(x)`: got [[0, 1, 2]], expected [[1, 2]]",
    ),
    "negative steps are ignored": (
        HEAD + TABLE.format(change=kernel("index_basic", "x, key: x if '-1' in str(key) else np.asarray(x[key])"), options=""),
        "FAILED  `negative_step` is True, and that is true",
    ),
    "transposes are copies": (
        HEAD + TABLE.format(change=kernel("swap_last", "x: np.swapaxes(x, -2, -1).copy()"), options=""),
        "declare view_aliases=False, or implement what shares the memory of `x`; these are copies: got ['x.mT'], expected []",
    ),
    "diagonals are copies": (
        HEAD + TABLE.format(change=kernel("diagonal_view", "x, offset: np.diagonal(x, offset, -2, -1).copy()"), options=""),
        "these are copies: got ['linalg.diagonal(x)'], expected []",
    ),
    "concat takes the division of its first operand": (
        HEAD + DIVIDED + TABLE.format(change=kernel("concat", "arrays, axis=0: joined(arrays, axis)"), options=""),
        "FAILED  odd: `concat` joins operands that are divided differently, axis 0\n        got [[[",
    ),
    "kernel raises": (
        HEAD + TABLE.format(change="overrides = {**NumPyBackend.overrides, 'cos': lambda x: 1 / 0}", options=""), "ZeroDivisionError",
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_found(case: str, tmp_path: Path) -> None:
    body, phrase = WRONG[case]
    install(tmp_path, "odd", "odd_plugin", body)
    run = command("backends", "check", "odd", "--import", path=tmp_path)
    assert run.returncode == 1, run.stdout + run.stderr
    assert phrase in run.stdout, run.stdout


WRONG_TAKE = "x, key: x[tuple(np.sort(k) if isinstance(k, np.ndarray) else k for k in key)]"


def test_what_is_missing_hides_nothing_that_is_wrong(tmp_path: Path) -> None:
    """Each check has its own outcome: `take_along_axis` is missing, and `take` is wrong."""
    overrides = f"'gather': lambda {WRONG_TAKE}, 'gather_along': lambda x, i, axis: lacks('elements by row')"
    change = f"overrides = {{**NumPyBackend.overrides, {overrides}}}"
    install(tmp_path, "odd", "odd_plugin", HEAD + DIVIDED + TABLE.format(change=change, options=""))
    run = command("backends", "check", "odd", "--import", path=tmp_path)
    assert run.returncode == 1, run.stderr
    wrong = "got [[2.0, 1.0, 3.0, 3.0], [5.0, 4.0, 6.0, 6.0]], expected [[3.0, 1.0, 2.0, 3.0], [6.0, 4.0, 5.0, 6.0]]"
    assert f"FAILED  odd: `take` reads columns in any order\n        {wrong}\n" in run.stdout, run.stdout
    assert "lacks   odd: `take_along_axis` reads by row\n        there are no elements by row\n" in run.stdout
    assert "lacks   odd: `take_along_axis` refuses indices out of range\n" in run.stdout
    assert "ok      odd: `concat` joins pieces of different lengths\n" in run.stdout


@pytest.mark.slow
def test_tracebacks_are_shown_on_request(tmp_path: Path) -> None:
    body, _ = WRONG["kernel raises"]
    install(tmp_path, "odd", "odd_plugin", body)
    short = command("backends", "check", "odd", "--import", path=tmp_path).stdout
    long = command("backends", "check", "odd", "--import", "--traceback", path=tmp_path).stdout
    assert "ZeroDivisionError: division by zero (" in short  # and the line that raised it
    assert "1 / 0" in short
    assert "Traceback" not in short
    assert "        Traceback (most recent call last):\n" in long
    assert [line for line in long.splitlines() if line[:2] in ("ok", "FA")] == [
        line for line in short.splitlines() if line[:2] in ("ok", "FA")
    ]


SHADOWED = {
    "an elementwise function": (kernel("sin", "x: np.cos(x)"), "the first kernel that differs: `sin("),
    "a kernel that no other check looks at": (kernel("sinh", "x: np.sinh(x) * 1.01"), "the first kernel that differs: `sinh("),
    "a kernel within another": (kernel("take", "x, i, axis: np.take(x, np.sort(i), axis=axis)") + "\n    kernel = composed", "`take("),
    "a shape": (kernel("sum_to", "x, shape: np.zeros((7,))"), "the first kernel that differs: `sum_to("),
    "a buffer": (kernel("written", "x, key, value: x"), "the first kernel that differs: `written("),
}


@pytest.mark.slow(one_in=5)
@pytest.mark.parametrize("case", SHADOWED)
def test_the_first_kernel_that_differs_is_named(case: str, tmp_path: Path) -> None:
    change, phrase = SHADOWED[case]
    composed = """
def composed(self, name):
    return None if name == "gather" else NumPyBackend.kernel(self, name)
"""
    install(tmp_path, "odd", "odd_plugin", HEAD + composed + TABLE.format(change=change, options=""))
    run = command("backends", "check", "odd", "--shadow", path=tmp_path)
    assert run.returncode == 1, run.stdout + run.stderr
    assert phrase in run.stdout, run.stdout
    assert ", and NumPy's kernel gives " in run.stdout


@pytest.mark.slow(one_in=3)
@pytest.mark.parametrize("table", ["numpy", "numpy+readonly", "strict"])
def test_sound_backends_do_not_differ(table: str) -> None:
    if table == "strict" and not entry_points(group="xpgrad.backends", name="strict"):
        pytest.skip("its plugin is not installed")
    run = command("backends", "check", table, "--shadow")
    assert run.returncode == 0, run.stdout + run.stderr
    last = run.stdout.splitlines()[-1]
    assert re.fullmatch(r"ok      each of \d+ calls of kernels agrees with NumPy's kernel", last), run.stdout
    assert int(last.split()[3]) > 400


def test_a_kernel_that_cannot_be_compared_is_listed(tmp_path: Path) -> None:
    """For example, because its values cannot be read."""
    unread = "def to_host(self, x):\n        if x.dtype == bool: raise OSError('no driver')\n        return NumPyBackend.to_host(self, x)"
    install(tmp_path, "odd", "odd_plugin", HEAD + TABLE.format(change=unread, options=""))
    run = command("backends", "check", "odd", "--shadow", path=tmp_path)
    assert "lacks   all kernels that were called could be compared\n" in run.stdout, run.stdout
    assert "greater: its values cannot be read: OSError: no driver" in run.stdout.splitlines()[-1]


#: The faults that the core prevents if the backend does not claim to check indices itself.
PREVENTED = (
    "a write out of range does nothing", "a write out of range goes elsewhere", "a write out of range is refused after it was done",
    "another error", "a read wraps around", "take_along_axis gives garbage",
)  # fmt: skip


@pytest.mark.slow(one_in=6)
@pytest.mark.parametrize("case", PREVENTED)
def test_the_core_prevents_it(case: str, tmp_path: Path) -> None:
    body, _ = WRONG[case]
    install(tmp_path, "odd", "odd_plugin", body.replace("_only_class = None\n", "_only_class = None\n    checks_indices = False\n"))
    assert failures(tmp_path) == []


def failures(path: Path) -> list[str]:
    """Return the failures that a check reports for the plugin in `path`, except that it imports NumPy at once."""
    run = command("backends", "check", "odd", "--import", path=path)
    assert run.stdout.count("\nok ") > 20, run.stdout + run.stderr
    return [line for line in run.stdout.splitlines() if line.startswith("FAILED") and "imports no array library" not in line]


def test_without_float64_nothing_else_has_to_be_said(tmp_path: Path) -> None:
    """Law: `float64=False` makes the defaults float32 and complex64."""
    lacks = "find_dtype = lambda self, name: None if name in ('float64', 'complex128') else NumPyBackend.find_dtype(self, name)"
    refuses = "def from_host(self, a, device):\n        self.dtype_of(a.dtype)\n        return np.array(a)"
    init = "def __init__(self):\n        super().__init__()\n        self._raw_to_dtype.clear()\n        self._dtype_to_raw.clear()"
    known = "def dtype_of(self, raw): return __import__('xpgrad').backend.Backend.dtype_of(self, raw)"
    ones = "ones = __import__('xpgrad').backend.Backend.ones\n    host_array = __import__('xpgrad').backend.Backend.host_array"
    change = "\n    ".join([lacks, refuses, init, known, ones, DECLARED.format("float64=False")])
    install(tmp_path, "odd", "odd_plugin", HEAD + TABLE.format(change=change, options=""))
    assert failures(tmp_path) == []
    found = test_registry.run(
        "import xpgrad as xp\nimport numpy as np\nx = xp.tensor([1.0, 2j], device='odd')\n"
        "out = [str(xp.tensor([1.0], device='odd').dtype), str(x.dtype)]\n"
        "try:\n    xp.asarray(np.zeros(2), device='odd')\nexcept TypeError as exc:\n    out.append(str(exc))\n",
        tmp_path,
    )
    assert found[:2] == ["float32", "complex64"]
    assert found[2].startswith("backend 'odd' cannot hold dtype 'float64'; convert the array first, to one that it has: bool, ")
    assert "float64" not in found[2].partition(";")[2]


@pytest.mark.parametrize("case", ["kernel raises", "wrong dtype"])
def test_a_kernel_that_fails_halfway_leaves_every_gradient_whole(case: str, tmp_path: Path) -> None:
    """After a pass that failed, each `.grad` is the old or the new one, and the next pass works (BWD-38)."""
    body, _ = WRONG[case]
    install(tmp_path, "odd", "odd_plugin", body)
    code = """
import xpgrad as xp
a, b = (xp.tensor([1.0, 2.0], requires_grad=True, device="odd") for _ in range(2))
(a * b).sum().backward()
before = [a.grad.tolist(), b.grad.tolist()]
try:
    (xp.sin(a) * 2.0 + b * 3.0).sum().backward()
except ZeroDivisionError:
    pass
out = [before, a.grad.tolist() in ([1.0, 2.0], [1.0 + 2 * 0.5403023058681398, 2.0 - 2 * 0.4161468365471424]) or str(a.grad.dtype)]
out.append(b.grad.tolist() in ([1.0, 2.0], [4.0, 5.0]))
a.grad = b.grad = None
(a * b).sum().backward()
out += [a.grad.tolist(), str(a.grad.dtype)]
"""
    before, a, b, after, dtype = test_registry.run(code, tmp_path)
    assert before == [[1.0, 2.0], [1.0, 2.0]]
    assert a in (True, "float64")
    assert b is True
    assert (after, dtype) == ([1.0, 2.0], "float64")


#: An author's changes to the new project for a library without float64; array-api-strict without float64 plays that library.
SINGLE = {
    "import array_api_compat.numpy as namespace\n": "import array_api_strict as library\n",
    "from xpgrad.backend import Backend, Capabilities\n": "from xpgrad.backend import DTYPES, Backend, Capabilities\n",
    'DEVICE = Device("shiny")\n': """DEVICE = Device("shiny")


class Single:
    def __getattr__(self, name):
        if name in ("float64", "complex128"):
            raise AttributeError(name)
        return getattr(library, name)


namespace = Single()
""",
    "capabilities = Capabilities()": "capabilities = Capabilities(float64=False)",
    "return (np.ndarray,)": "return (type(library.asarray(0)),)",
    "return np.array(array, copy=True)": "return library.asarray(array, dtype=self.raw_dtype(DTYPES[array.dtype.name]), copy=True)",
    """
    # NumPy's reductions return scalars, which cannot be viewed or written to. Delete this method if your library returns arrays.
    def own(self, tensor: Any) -> Any:
        tensor._array = array = np.asarray(tensor._array)
        return array
""": "",
}


@pytest.mark.slow
@pytest.mark.parametrize("changes", [{}, SINGLE], ids=["as it is", "of a library without float64"])
def test_a_new_project_works(changes: dict[str, str], tmp_path: Path) -> None:
    """A generated project can be installed, its tests pass (of the contracts some groups), and `xpgrad backends check` accepts it."""
    assert main(["backends", "new", "shiny", "--directory", str(tmp_path)]) == 0
    project, site = tmp_path / "xpgrad-shiny", tmp_path / "site"
    table = project / "xpgrad_shiny" / "backend.py"
    text = table.read_text(encoding="utf-8")
    for old, new in changes.items():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    table.write_text(text, encoding="utf-8")
    contracts = project / "tests" / "test_conformance.py"
    text = contracts.read_text(encoding="utf-8").replace("    known = []", '    profile = "quick"\n    known = []')
    assert "quick" in text
    contracts.write_text(text, encoding="utf-8")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--target", str(site), str(project)]
    subprocess.run(pip, check=True, capture_output=True)
    environment = {**os.environ, "PYTHONPATH": str(site)}
    some = "not conformance or BWD or DER or RET or SUB"
    tests = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "tests", "-k", some]
    run = subprocess.run(tests, cwd=project, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    run = command("backends", "check", "shiny", "--import", path=site)
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.endswith("ok      shiny: a gradient equals NumPy's\n")


def test_a_new_project_requires_a_released_version(tmp_path: Path) -> None:
    """The newest version that the changelog dates, and not the one in development."""
    assert main(["backends", "new", "shiny", "--directory", str(tmp_path)]) == 0
    released = re.findall(r"^## \[(\S+)\] - \d{4}-", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    project = tomllib.loads((tmp_path / "xpgrad-shiny" / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert f"xpgrad>={released[0]}" in project["dependencies"]


def test_taken_names_are_refused(tmp_path: Path, capsys: Any) -> None:
    assert main(["backends", "new", "numpy", "--directory", str(tmp_path)]) == 1
    assert "'numpy' is taken" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["Upper", "1st", "a-b", "", "../x"])
def test_bad_names_are_refused(name: str, tmp_path: Path, capsys: Any) -> None:
    assert main(["backends", "new", name, "--directory", str(tmp_path)]) == 1
    assert "cannot name a backend" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_overwritten(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "xpgrad-mine").mkdir()
    assert main(["backends", "new", "mine", "--directory", str(tmp_path)]) == 1
    assert "already exists" in capsys.readouterr().err
