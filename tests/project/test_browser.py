"""Law: xpgrad does what it can where Python has no threads and no processes, as in a browser.

`tests/browser` runs it in a browser's Python. Here this Python lacks what that one lacks.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections import namedtuple
from typing import Any

import numpy as np
import pytest

import xpgrad as xp
from xpgrad_numpy._kernels import widened

#: Modules that Pyodide or other WebAssembly builds of Python lack, or have without their functions.
ABSENT = ("ctypes", "mmap", "multiprocessing", "resource", "pwd", "fcntl", "select", "socket", "subprocess", "signal", "_posixsubprocess")


@pytest.fixture
def no_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no thread start, with the error of WebAssembly builds of Python."""

    def refuse(*args: Any, **kwargs: Any) -> None:
        msg = "can't start new thread"
        raise RuntimeError(msg)

    for name in ("_start_new_thread", "_start_joinable_thread"):  # up to Python 3.12, and later
        monkeypatch.setattr(threading, name, refuse, raising=False)
    with pytest.raises(RuntimeError, match="start new thread"):
        threading.Thread(target=print).start()


@xp.enable_grad()
def nested(levels: int) -> Any:
    """Return the gradient of `x**2` at 3, computed by a pass inside of `levels` others."""
    if levels == 0:
        x = xp.tensor(3.0, requires_grad=True)
        return xp.autograd.grad(x * x, x)[0]
    found: list[Any] = []
    y = xp.tensor(1.0, requires_grad=True)
    z = y * 2.0
    z.register_hook(lambda g: found.append(nested(levels - 1)))
    z.backward()
    return found[0]


@pytest.mark.usefixtures("no_threads")
def test_passes_inside_of_passes_stay_on_the_one_stack() -> None:
    assert nested(30).item() == 6.0


@pytest.mark.usefixtures("no_threads")
def test_an_error_of_a_nested_pass_is_its_own() -> None:
    """Law: an error inside a deeply nested pass is reported without the failed start of a thread."""

    @xp.enable_grad()
    def fail(levels: int) -> None:
        y = xp.tensor(1.0, requires_grad=True)
        z = y * 2.0
        z.register_hook(lambda g: fail(levels - 1 // (levels > 0)))
        z.backward()

    with pytest.raises(ZeroDivisionError) as caught:
        fail(30)
    assert caught.value.__context__ is None


@pytest.mark.usefixtures("no_threads")
def test_too_many_passes_inside_of_passes_are_an_error() -> None:
    with pytest.raises(RecursionError):
        nested(1000)
    assert nested(30).item() == 6.0


@pytest.mark.usefixtures("no_threads")
@pytest.mark.parametrize("emitter", ["numpy", None])
def test_compiled_functions_run_without_threads(emitter: str | None) -> None:
    if emitter is None:
        pytest.importorskip("llvmlite", reason="machine code needs it")

    def loss(x: Any) -> Any:
        return xp.sum(xp.sin(x) * xp.exp(-x))

    x = xp.asarray(np.linspace(0.0, 1.0, 200_000))
    fast = xp.compile(loss, threads=2, emitter=emitter)
    np.testing.assert_allclose(xp.func.grad(fast)(x).numpy(), xp.func.grad(loss)(x).numpy(), rtol=1e-12, atol=1e-15)


def test_the_first_gradient_needs_no_module_that_a_browser_lacks() -> None:
    """Law: importing xpgrad, a gradient, a compiled function and a Jacobian import no module for processes, sockets or foreign code."""
    code = (
        "import array_api_compat.numpy, importlib.metadata, pluggy, sys\n"  # they have builds for browsers, whatever they import
        f"for name in {ABSENT!r}:\n"
        "    sys.modules.pop(name, None)\n"
        f"class Refuse:\n"
        f"    def find_spec(self, name, path=None, target=None):\n"
        f"        if name in {ABSENT!r}:\n"
        f"            raise ModuleNotFoundError(name, name=name)\n"
        "sys.meta_path.insert(0, Refuse())\n"
        "import xpgrad as xp\n"
        "x = xp.tensor([1.0, 2.0], requires_grad=True)\n"
        "xp.sum(x**2).backward()\n"
        "f = xp.compile(lambda x: xp.sum(xp.sin(x)), emitter='numpy')\n"
        "print(x.grad.tolist(), xp.func.grad(f)(xp.zeros(1)).tolist(), xp.func.jacfwd(xp.sin)(xp.zeros(1)).tolist())\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout == "[2.0, 4.0] [1.0] [[1.0]]\n"


#: A program that finds NumPy's indices to have 32 bits, as far as xpgrad asks; NumPy's own index functions keep their 64.
NARROW = """
import numpy as np
from xpgrad_numpy import _kernels
_kernels.HAS_WIDE_INDICES = False
native = _kernels.native

def narrow(name):
    function = native(name)
    if name not in ("argmax", "searchsorted"):
        return function

    def call(*args, sorter=None, **options):
        if sorter is not None:
            if sorter.dtype != np.int32:
                raise ValueError("could not parse sorter argument")
            options["sorter"] = sorter
        return np.asarray(function(*args, **options)).astype(np.int32)

    return call

_kernels.native = narrow
import xpgrad as xp
x = xp.asarray([4.0, 3.0])
order = xp.argsort(x)
print(order.dtype, xp.argmax(x).dtype, xp.searchsorted(x, xp.asarray([3.5]), sorter=order))
for read in (lambda i: x[i], lambda i: xp.take(x, i), xp.compile(lambda i: x[i])):
    try:
        read(xp.asarray([2**32]))
    except IndexError as error:
        print(error)
"""


def test_positions_are_int64_where_numpys_indices_have_32_bits() -> None:
    """Law: positions have the default dtype of indices, which a NumPy with 32 bits neither returns nor accepts as a `sorter`; and the core
    checks indices, which this NumPy wraps: element 2**32 of an array would be element 0."""
    run = subprocess.run([sys.executable, "-c", NARROW], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    kinds, *errors = run.stdout.splitlines()
    assert kinds == "int64 int64 tensor([1])"
    assert errors == ["index 4294967296 is out of range for axis 0 of length 2: indices are -2 to 1"] * 3


@pytest.mark.parametrize("name", ["nonzero", "unique_all", "unique_counts", "unique_inverse"])
def test_several_results_keep_their_names(name: str) -> None:
    values, places = np.asarray([1], np.int32), np.asarray([0], np.int32)
    form = namedtuple("form", ["values", "counts"])
    out = widened(name, lambda x: (places, places) if name == "nonzero" else form(values, places))(values)
    assert [part.dtype for part in out] == [np.int64 if name == "nonzero" else np.int32, np.int64]
    assert name == "nonzero" or isinstance(out, form)
