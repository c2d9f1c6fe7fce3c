"""The smoke script, `python tests/smoke.py`: xpgrad with only its runtime dependencies, no pytest and no extra.

It takes gradients, and checks that unsupported calls raise an error that says what to do. Each function whose
name starts with ``check_`` is one check: add yours anywhere.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import xpgrad as xp
from xpgrad.errors import BackendNotFoundError

EXTRAS = ("array_api_strict", "autograd", "cupy", "hypothesis", "jax", "matplotlib", "pytest", "sklearn", "torch")


class NotRun(Exception):
    """A check that cannot be made on this platform."""


def need_processes() -> None:
    """Raise NotRun on WebAssembly, where Python starts no processes."""
    if sys.platform in ("emscripten", "wasi"):
        msg = f"Python starts no processes on {sys.platform}"
        raise NotRun(msg)


def close(actual: Any, expected: Any) -> None:
    """Raise AssertionError unless a Tensor has the expected values, up to rounding."""
    np.testing.assert_allclose(actual.numpy(), np.asarray(expected), rtol=1e-12, atol=1e-12)


def expect_error(kind: type[Exception], phrases: tuple[str, ...], attempt: Callable[[], object]) -> None:
    """Raise AssertionError unless the attempt raises `kind` with a message that contains each of the phrases."""
    message = None
    try:
        attempt()
    except kind as error:
        message = str(error)
    assert message is not None, f"{kind.__name__} was expected"
    missing = [phrase for phrase in phrases if phrase not in message]
    assert not missing, f"the message does not say {missing}: {message}"


def check_backward() -> None:
    x = xp.tensor([1.0, 2.0, 3.0], requires_grad=True)
    w = xp.tensor([[2.0], [3.0]], requires_grad=True)
    y = xp.sum(xp.sin(x) * w)  # broadcasts: the gradients are summed back to the shapes of x and w
    y.backward()
    close(x.grad, 5.0 * np.cos([1.0, 2.0, 3.0]))
    close(w.grad, np.full((2, 1), np.sin([1.0, 2.0, 3.0]).sum()))


def check_gradients_accumulate() -> None:
    x = xp.tensor([1.0, 2.0], requires_grad=True)
    for _ in range(2):
        xp.sum(x * x).backward()
    close(x.grad, [4.0, 8.0])


def check_matmul() -> None:
    rng = np.random.default_rng(0)
    a, b, seed = rng.normal(size=(2, 3)), rng.normal(size=(3, 4)), rng.normal(size=(2, 4))
    x, y = xp.tensor(a, requires_grad=True), xp.tensor(b, requires_grad=True)
    (x @ y).backward(xp.asarray(seed))
    close(x.grad, seed @ b.T)
    close(y.grad, a.T @ seed)


def check_second_derivative() -> None:
    x = xp.tensor(0.5, requires_grad=True)
    (first,) = xp.autograd.grad(x**4, x, create_graph=True)
    (second,) = xp.autograd.grad(first, x)
    close(first.detach(), 4 * 0.5**3)
    close(second, 12 * 0.5**2)


def check_descent_in_place() -> None:
    x = xp.tensor([3.0, -4.0], requires_grad=True)
    for _ in range(100):
        xp.sum((x - 1.0) ** 2).backward()
        with xp.no_grad():
            x -= 0.1 * x.grad
        x.grad = None
    np.testing.assert_allclose(x.detach().numpy(), [1.0, 1.0], atol=1e-6)


def check_the_namespace() -> None:
    x = xp.asarray([1.0])
    assert x.__array_namespace__() is xp
    assert xp.__array_api_version__ == "2025.12"
    missing = [name for name in xp.__all__ if not hasattr(xp, name)]
    assert not missing, f"listed in __all__, but not there: {missing}"


def check_no_extra_was_imported() -> None:
    need_processes()
    program = f"import sys, xpgrad; xpgrad.tensor([1.0]); print(*sorted({{*sys.modules}} & {{*{EXTRAS}}}))"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert not done.stdout.strip(), f"imported without being asked for: {done.stdout.strip()}"


def check_command_line() -> None:
    need_processes()
    command = [sys.executable, "-m", "xpgrad", "backends", "--json"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert {row["name"]: row["status"] for row in json.loads(done.stdout)}["numpy"] == "ready"


def check_refusal_of_an_implicit_gradient() -> None:
    x = xp.tensor([1.0, 2.0], requires_grad=True)
    expect_error(RuntimeError, ("grad can be implicitly created only for scalar outputs",), (x * x).backward)


def check_refusal_of_a_second_backward() -> None:
    x = xp.tensor(2.0, requires_grad=True)
    y = x * x
    y.backward()
    expect_error(RuntimeError, ("backward through the graph a second time", "retain_graph=True"), y.backward)


def check_refusal_of_a_changed_value() -> None:
    x = xp.tensor([1.0, 2.0], requires_grad=True)
    y = x * 1.0
    z = xp.sum(y * y)
    y += 1.0
    expect_error(RuntimeError, ("modified by an inplace operation", "version"), z.backward)


def check_refusal_of_writing_to_a_leaf() -> None:
    x = xp.tensor([1.0, 2.0], requires_grad=True)

    def write() -> None:
        x[0] = 5.0

    expect_error(RuntimeError, ("leaf Variable that requires grad", "in-place"), write)


def check_refusal_to_export_a_recorded_tensor() -> None:
    x = xp.tensor([1.0], requires_grad=True)
    expect_error(RuntimeError, ("requires grad", "detach()"), x.numpy)
    expect_error(RuntimeError, ("requires grad", "detach()"), lambda: np.asarray(x))


def check_raw_arrays_are_constants_and_not_gradients() -> None:
    x, raw = xp.tensor([1.0], requires_grad=True), np.asarray([2.0])
    assert xp.autograd.grad(xp.sum(x * raw + raw * x), x)[0].tolist() == [4.0]
    expect_error(TypeError, ("xpgrad.asarray",), lambda: (x * x).backward(raw))


def check_refusal_of_an_unknown_device() -> None:
    expect_error(BackendNotFoundError, ("nosuchlibrary", "numpy"), lambda: xp.zeros(1, device="nosuchlibrary"))
    expect_error(ValueError, ("two words", "numpy"), lambda: xp.zeros(1, device="two words"))
    expect_error(BackendNotFoundError, ("nosuchlibrary",), lambda: xp.set_default_device("nosuchlibrary"))
    assert str(xp.zeros(1).device) == os.environ.get("XPGRAD_DEVICE", "numpy"), "the default device changed"


def check_refusal_of_a_backend_whose_library_is_missing() -> None:
    for name in ("cupy", "jax"):
        if importlib.util.find_spec(name) is None:
            # LookupError while xpgrad has no such backend, ImportError once it has one; both name it.
            expect_error(xp.errors.XpgradError, (name, "install"), lambda name=name: xp.zeros(1, device=name))


def check_refusal_of_the_conformance_suite_without_its_extra() -> None:
    if importlib.util.find_spec("hypothesis") is None:
        need_processes()
        run = subprocess.run(
            [sys.executable, "-m", "xpgrad", "conformance", "--backend", "numpy"], capture_output=True, text=True, check=False
        )
        assert run.returncode == 2, run
        assert "pip install 'xpgrad[conformance]'" in run.stderr, run.stderr


def main() -> int:
    """Run every check; return the number of those that failed."""
    failed = 0
    for name, check in list(globals().items()):
        if name.startswith("check_"):
            title = name.removeprefix("check_").replace("_", " ")
            try:
                check()
            except NotRun as reason:
                print(f"not run {title}: {reason}")
            except Exception as error:  # noqa: BLE001 (every check is reported, whatever it raises)
                failed += 1
                print(f"FAILED  {title}: {type(error).__name__}: {error}")
            else:
                print(f"ok      {title}")
    print(f"smoke: {failed} failed" if failed else "smoke: all passed")
    return failed


if __name__ == "__main__":
    sys.exit(min(main(), 1))
