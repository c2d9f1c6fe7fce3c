"""Law: a pickle outlives the version that wrote it: no private path is part of the format, and files of earlier versions load.

`pickles/` has files that 0.1.0 wrote; `WRITTEN` has the call that wrote each of them.
"""

from __future__ import annotations

import pickle
import pickletools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import xpgrad as xp

FOLDER = Path(__file__).parent / "pickles"


def _leaf() -> Any:
    x = xp.tensor([[1.0, -2.5], [0.0, 4.0]], dtype=xp.float32, requires_grad=True)
    (x * x).sum().backward()
    return x


#: The contents of each file.
WRITTEN: dict[str, Callable[[], Any]] = {
    "leaf-0.1.0": _leaf,
    "dtypes-0.1.0": lambda: [xp.bool, xp.int8, xp.uint64, xp.float16, xp.bfloat16, xp.float64, xp.complex128, xp.finfo(xp.float32)],
    "devices-0.1.0": lambda: {"host": xp.Device("numpy"), "other": xp.Device("jax:cpu:1"), "constant": xp.asarray([1, 2, 3])},
}


def _plain(value: Any) -> Any:
    """Convert a value to one that `==` can compare."""
    if isinstance(value, xp.Tensor):
        grad = value.grad
        return value.detach().tolist(), value.dtype, value.device, value.requires_grad, None if grad is None else grad.tolist()
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    return [_plain(v) for v in value] if isinstance(value, list) else value


@pytest.mark.parametrize("name", WRITTEN)
def test_files_of_earlier_versions_load(name: str) -> None:
    found = pickle.loads((FOLDER / f"{name}.pickle").read_bytes())
    assert _plain(found) == _plain(WRITTEN[name]())


@pytest.mark.parametrize("name", WRITTEN)
@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_no_private_path_is_written(name: str, protocol: int) -> None:
    written = pickle.dumps(WRITTEN[name](), protocol)
    strings = [arg for _, arg, _ in pickletools.genops(written) if isinstance(arg, str)]
    modules = {s.split(" ")[0] for s in strings if s.split(" ")[0].startswith("xpgrad")}
    assert modules == {"xpgrad"}, modules
    assert _plain(pickle.loads(written)) == _plain(WRITTEN[name]())


def test_a_dtype_is_the_same_object_again() -> None:
    for name in xp.__array_namespace_info__().dtypes():
        dtype = getattr(xp, name)
        assert pickle.loads(pickle.dumps(dtype)) is dtype
