"""`xpgrad backends new NAME`: a complete plugin project, which works as it is and is changed part by part."""

from __future__ import annotations

import importlib.util
import re
from importlib.metadata import version
from pathlib import Path

from xpgrad import registry
from xpgrad.backend import API_VERSION

__all__ = ["new_project"]

FILES = {
    "pyproject.toml": """[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "xpgrad-@NAME@"
version = "0.1.0"
description = "@NAME@ arrays as a backend of xpgrad"
readme = "README.md"
requires-python = ">=3.11"
license = "BSD-3-Clause" # or what you choose; say it in README.md too
dependencies = [
    "xpgrad>=@VERSION@",         # the engine
    "numpy>=2.1",            # replace by your array library
    "array-api-compat>=1.11", # levels NumPy's namespace; without it if your library's own is that of the standard
]

[project.optional-dependencies]
test = ["xpgrad[conformance]"] # pytest and Hypothesis

# The name of the entry point is the name of the backend.
[project.entry-points."xpgrad.backends"]
@NAME@ = "xpgrad_@NAME@"

[tool.hatch.build.targets.wheel]
packages = ["xpgrad_@NAME@"]
""",
    "README.md": """# xpgrad-@NAME@

@NAME@ arrays as a backend of xpgrad.

    pip install -e '.[test]'
    python -m pytest
    xpgrad backends check @NAME@ --import

```python
import xpgrad as xp

x = xp.tensor([1.0, 2.0], requires_grad=True, device="@NAME@")
xp.sum(x * x).backward()
print(x.grad)
```

## Changing it

It begins as a backend around NumPy arrays. Replace, in `xpgrad_@NAME@/backend.py`, one method after another by your library's, and
say in `capabilities` what it can do; everything that is not defined there has a default in Array API calls.
The page "Writing a backend" of xpgrad's documentation tells the rest.

## Licence

BSD-3-Clause.
""",
    "xpgrad_@NAME@/__init__.py": '''"""@NAME@ as a backend of xpgrad: the light module that the entry point names.

It must not import the array library: that is done when the backend is used.
"""

from __future__ import annotations

from xpgrad.backend import Backend, BackendInfo
from xpgrad.hookspecs import hookimpl


def _load(variant: str | None) -> Backend:
    from xpgrad_@NAME@.backend import @CLASS@

    return @CLASS@()


@hookimpl
def xpgrad_backend() -> BackendInfo:
    """Describe the backend."""
    return BackendInfo(
        name="@NAME@",
        load=_load,
        # The top-level modules of your library's arrays, e.g. ("mylib",). NumPy's arrays belong to the backend `numpy`.
        array_modules=("xpgrad_@NAME@",),
        api_version=@API@,
        install="pip install xpgrad-@NAME@",
    )
''',
    "xpgrad_@NAME@/backend.py": '''"""The table: what xpgrad asks of the array library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import array_api_compat.numpy as namespace
import numpy as np
from xpgrad import Device
from xpgrad.backend import Backend, Capabilities

DEVICE = Device("@NAME@")


class @CLASS@(Backend):
    """NumPy arrays, to begin with."""

    name = "@NAME@"
    capabilities = Capabilities()

    def namespace(self) -> Any:
        return namespace

    def array_types(self) -> tuple[type, ...]:
        return (np.ndarray,)

    def from_host(self, array: Any, device: Device) -> Any:
        return np.array(array, copy=True)

    def to_host(self, x: Any) -> Any:
        return np.asarray(x)

    def device_of(self, x: Any) -> Device:
        return DEVICE

    def to_device(self, x: Any, device: Device) -> Any:
        return x

    def devices(self) -> Sequence[Device]:
        return (DEVICE,)

    # NumPy's reductions return scalars that cannot be viewed or written to; delete this if your library's do not.
    def own(self, tensor: Any) -> Any:
        tensor._array = array = np.asarray(tensor._array)
        return array
''',
    "tests/test_@NAME@.py": '''"""The backend gives NumPy's gradients."""

from __future__ import annotations

import numpy as np
import pytest
import xpgrad as xp

PROGRAMS = {
    "elementwise": lambda x: xp.sum(xp.sin(x) * xp.exp(-x)),
    "broadcasting": lambda x: xp.sum(x * xp.sum(x, axis=0)),
    "matmul": lambda x: xp.sum(xp.tanh(x @ xp.matrix_transpose(x))),
    "slices": lambda x: xp.sum(x[1:] * x[:-1]),
    "gather": lambda x: xp.sum(xp.take(x, xp.asarray([0, 2, 0], device=x.device), axis=0) ** 2),
    "reductions": lambda x: xp.max(x) + xp.var(x) + xp.prod(x[0]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients(name: str) -> None:
    data = np.asarray([[0.3, -0.7], [1.1, 0.9], [0.2, -0.4]])
    found = []
    for device in ("numpy", "@NAME@"):
        x = xp.tensor(data, requires_grad=True, device=device)
        PROGRAMS[name](x).backward()
        found.append(x.grad.numpy())
    np.testing.assert_allclose(found[1], found[0], rtol=1e-9, atol=1e-12)


def test_writes() -> None:
    x = xp.tensor([1.0, 2.0, 3.0], requires_grad=True, device="@NAME@")
    y = x * 1.0
    y[1:] = x[:-1] * 2.0
    y *= 3.0
    xp.sum(y).backward()
    assert x.grad.tolist() == [9.0, 6.0, 0.0]
''',
    "tests/test_conformance.py": '''"""The backend keeps the contracts of PyTorch's documentation, but for what `known` says."""

from __future__ import annotations

from xpgrad_conformance.suite import ConformanceTests


class TestConformance(ConformanceTests):
    backend = "@NAME@"
    known = []  # TOML files of expected failures, each with its reason
''',
}


def new_project(name: str, directory: str) -> Path:
    """Write a plugin project.

    Parameters
    ----------
    name : str
        The backend's name: a lower-case identifier.
    directory : str
        Where the folder ``xpgrad-NAME`` is made.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    ValueError
        For a name that is none, or that another backend or package has.
    FileExistsError
        If the folder is there.
    """
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        msg = f"{name!r} cannot name a backend: use lower-case letters, digits and underscores, beginning with a letter"
        raise ValueError(msg)
    taken = registry.providers(name)
    if taken or importlib.util.find_spec(f"xpgrad_{name}") is not None:
        where = "; ".join(p.origin for p in taken) or f"a package `xpgrad_{name}`"
        raise ValueError(f"{name!r} is taken: there is {where}; choose another name")
    root = Path(directory) / f"xpgrad-{name}"
    if root.exists():
        msg = f"{root} is there already; choose another name or --directory"
        raise FileExistsError(msg)
    values = {"@NAME@": name, "@CLASS@": "".join(p.capitalize() for p in name.split("_")) + "Backend", "@API@": str(API_VERSION)}
    values["@VERSION@"] = version("xpgrad")
    for path, text in FILES.items():
        for key, value in values.items():
            path, text = path.replace(key, value), text.replace(key, value)
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    return root
