"""Law: backends are found, and loaded at first use and not earlier; each way in which one can fail is explained.

Tests that depend on the environment or on installed packages run in a separate process.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xpgrad as xp
from xpgrad.backend import API_VERSION, Backend, BackendInfo
from xpgrad.registry import backend_for, register_backend

ROOT = Path(__file__).resolve().parents[2]
ARRAY_LIBRARIES = ("numpy", "jax", "jaxlib", "cupy", "torch", "dask", "cubed", "array_api_compat", "array_api_strict", "sparse", "mlx")


def run(code: str, path: Path | None = None, **environment: str | None) -> Any:
    """Return the value that `code` assigns to `out` in a new process; environment variables that are None are unset there."""
    program = textwrap.dedent(code) + "\nimport json as _json\nprint('RESULT', _json.dumps(out))\n"
    variables = {k: v for k, v in {**os.environ, "XPGRAD_BACKENDS": None, "XPGRAD_DEVICE": None, **environment}.items() if v is not None}
    if path is not None:
        variables["PYTHONPATH"] = os.pathsep.join(filter(None, [str(path), os.environ.get("PYTHONPATH", "")]))
    done = subprocess.run([sys.executable, "-c", program], env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.rpartition("RESULT ")[2])


MESSAGE = """
def message(call):
    try:
        call()
    except Exception as exc:
        return [[c.__name__ for c in type(exc).__mro__], str(exc)]
"""


# -- imports -----------------------------------------------------------------------------------------------------------------------


def test_import_loads_nothing_that_can_wait() -> None:
    heavy = (*ARRAY_LIBRARIES, "importlib.metadata", "pluggy")
    assert run(f"import sys, xpgrad\nout = [m for m in {heavy!r} if m in sys.modules]") == []


def test_the_compatibility_namespace_is_not_loaded_for_arithmetic() -> None:
    code = """
    import sys, xpgrad as xp
    x = xp.tensor([1.0, 2.0], requires_grad=True)
    xp.sum(x * x).backward()
    out = ["array_api_compat" in sys.modules, x.grad.tolist()]
    """
    assert run(code) == [False, [2.0, 4.0]]


#: Files of the core that may import NumPy: HIPS autograd's interface takes and returns NumPy's arrays, and `xpgrad.testing` computes the
#: expected results with them. Only users of these modules import NumPy.
ITS_DATA = {
    ROOT / "core" / "xpgrad" / "dialects" / "hips" / "_arrays.py": {"numpy"},
    ROOT / "core" / "xpgrad" / "testing" / "_host.py": {"numpy"},
}


def test_the_core_imports_no_array_library() -> None:
    found = [f"{file.relative_to(ROOT)}:{line}" for file in (ROOT / "core").rglob("*.py") for line in _refused_imports(file)]
    assert found == []


def _refused_imports(file: Path) -> Iterator[int]:
    """Yield the lines of a file that import an array library."""
    refused = {*ARRAY_LIBRARIES, "xpgrad_numpy"} - ITS_DATA.get(file, set())
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        elif isinstance(node, ast.Call) and isinstance(node.func, (ast.Name, ast.Attribute)):
            called = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
            if called in ("import_module", "__import__"):
                names = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
        if {n.partition(".")[0] for n in names} & refused:
            yield getattr(node, "lineno", 0)


# -- discovery ---------------------------------------------------------------------------------------------------------------------


def test_numpy_is_found_through_its_entry_point() -> None:
    code = """
    import sys, xpgrad as xp
    out = [xp.backend_names(), "numpy" in sys.modules]
    from xpgrad._backends import loading
    found = loading.discover()["numpy"]
    out += [len(found), found[0].entry.value]
    """
    names, loaded, count, module = run(code)
    assert {"cupy", "jax", "numpy"} <= set(names)
    assert (loaded, count, module) == (False, 1, "xpgrad_numpy")


def test_an_unknown_backend_names_those_that_exist() -> None:
    with pytest.raises(xp.BackendNotFoundError, match=r"no such backend: 'nowhere'.*numpy") as caught:
        xp.ones(2, device="nowhere")
    assert "pip install" not in str(caught.value)  # a package of that name may come from anyone
    assert isinstance(caught.value, LookupError)
    assert isinstance(caught.value, xp.XpgradError)


def test_an_unknown_variant_and_an_unknown_device_name_those_that_exist() -> None:
    with pytest.raises(xp.BackendNotFoundError, match=r"no variant 'other'.*'numpy\+readonly'"):
        xp.ones(2, device="numpy+other")
    with pytest.raises(ValueError, match="no device 'numpy:gpu'; its devices: 'numpy'"):
        xp.ones(2, device="numpy:gpu")


@pytest.mark.slow(one_in=2)
@pytest.mark.parametrize(("value", "names", "works"), [
    (None, None, True), ("", None, True), (" , ", None, True),
    ("numpy", ["numpy"], True), (" numpy , other", ["numpy"], True), ("other", [], False),
])  # fmt: skip
def test_the_environment_disables_backends(value: str | None, names: list[str] | None, works: bool) -> None:
    code = MESSAGE + "import xpgrad as xp\nout = [xp.backend_names(), message(lambda: xp.tensor([1.0]))]"
    found, failure = run(code, XPGRAD_BACKENDS=value)
    assert found == names or (names is None and "numpy" in found)
    if works:
        assert failure is None
    else:
        assert "BackendNotFoundError" in failure[0]
        assert f"backend 'numpy' is disabled by XPGRAD_BACKENDS={value!r}" in failure[1]


def test_python_data_is_read_and_printed_for_others_where_numpy_is_disabled() -> None:
    code = (
        MESSAGE
        + """
import xpgrad as xp
from support import plugin_backends
plugin_backends.register('strict')
x = xp.tensor([[1, 2.5]], device="strict")
out = [repr(x), x.tolist(), message(lambda: xp.tensor([1.0], device="numpy"))[0][0], xp.backend_names()]
"""
    )
    shown, listed, error, names = run(code, ROOT / "tests", XPGRAD_BACKENDS="strict")
    assert shown == "tensor([[1. , 2.5]], device='strict')"
    assert listed == [[1.0, 2.5]]
    assert error == "BackendNotFoundError"
    assert names == ["strict"]


# -- plugins that fail -------------------------------------------------------------------------------------------------------------


def install(path: Path, name: str, module: str, body: str, distribution: str | None = None) -> None:
    """Write a distribution into a folder: its metadata with one entry point, and the module that this names."""
    distribution = distribution or f"xpgrad-{name}"
    info = path / f"{distribution.replace('-', '_')}-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.2\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(f"[xpgrad.backends]\n{name} = {module}\n", encoding="utf-8")
    (path / f"{module}.py").write_text(textwrap.dedent(body), encoding="utf-8")


HEAD = """
from xpgrad.backend import Backend, BackendInfo
from xpgrad.hookspecs import hookimpl
"""
BROKEN = {
    "raises at import": ("raise OSError('no driver')", "BackendLoadError", [
        "'broken'", "entry point 'broken' = 'broken_plugin' of xpgrad-broken 1.2", "OSError: no driver", "Repair or uninstall"]),
    "misspelt hook": (HEAD + "@hookimpl\ndef xpgrad_backends(): pass", "BackendLoadError", ["xpgrad_backends", "broken"]),
    "no hook": ("x = 1", "BackendLoadError", ["must implement `xpgrad_backend` once and return a BackendInfo", "xpgrad-broken 1.2"]),
    "no BackendInfo": (HEAD + "@hookimpl\ndef xpgrad_backend(): return 'me'", "BackendLoadError", ["return a BackendInfo", "'me'"]),
    "newer interface": (
        HEAD + "@hookimpl\ndef xpgrad_backend(): return BackendInfo('broken', None, api_version=(1, 99))", "BackendLoadError",
        ["version 1.99 of xpgrad's plugin interface", "this is 1.0", "install a matching version"]),
    "another major": (
        HEAD + "@hookimpl\ndef xpgrad_backend(): return BackendInfo('broken', None, api_version=(0, 0))", "BackendLoadError",
        ["version 0.0 of xpgrad's plugin interface"]),
    "another name": (
        HEAD + "@hookimpl\ndef xpgrad_backend(): return BackendInfo('other', None)", "BackendLoadError",
        ["describes a backend named 'other'", "must be equal"]),
    "library missing": (
        HEAD + "def load(variant):\n    import no_such_library\n"
        "@hookimpl\ndef xpgrad_backend(): return BackendInfo('broken', load, install='pip install something')", "BackendLoadError",
        ["registered but not available", "No module named 'no_such_library'", "Install what it needs with `pip install something`"]),
}  # fmt: skip


@pytest.mark.slow(one_in=9)
@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_plugin_is_explained_and_harms_no_other(case: str, tmp_path: Path) -> None:
    body, error, phrases = BROKEN[case]
    install(tmp_path, "broken", "broken_plugin", body)
    code = (
        MESSAGE
        + """
import numpy as np, xpgrad as xp
out = [message(lambda: xp.ones(2, device="broken")), xp.asarray(np.ones(2)).tolist(), xp.backend_names()]
from xpgrad.registry import survey
out.append([[r["name"], r["status"]] for r in survey()])
"""
    )
    failure, values, names, rows = run(code, tmp_path)
    assert failure[0][0] == error
    assert "ImportError" in failure[0]
    for phrase in phrases:
        assert phrase in failure[1]
    assert values == [1.0, 1.0]
    assert {"broken", "numpy"} <= set(names)
    status = {"library missing": "not installed", "another major": "incompatible", "newer interface": "incompatible"}.get(case, "broken")
    assert ["broken", status] in rows
    assert ["numpy", "ready"] in rows


def test_two_providers_of_one_name_are_refused_on_use(tmp_path: Path) -> None:
    body = HEAD + "@hookimpl\ndef xpgrad_backend(): return BackendInfo('twice', None)"
    install(tmp_path, "twice", "first_plugin", body, "first-one")
    install(tmp_path, "twice", "second_plugin", body, "second-one")
    code = MESSAGE + "import xpgrad as xp\nout = [message(lambda: xp.ones(2, device='twice')), xp.tensor([1.0]).tolist()]"
    failure, values = run(code, tmp_path)
    assert failure[0][0] == "BackendLoadError"
    for phrase in ("'twice' has 2 providers", "first-one 1.2", "second-one 1.2", "uninstall all but one"):
        assert phrase in failure[1]
    assert values == [1.0]


def test_the_identical_entry_twice_is_not_a_conflict(tmp_path: Path) -> None:
    body = HEAD + "from xpgrad_numpy import _load\n@hookimpl\ndef xpgrad_backend(): return BackendInfo('twice', _load)"
    install(tmp_path, "twice", "one_plugin", body, "first-one")
    install(tmp_path, "twice", "one_plugin", body, "second-one")
    code = "from xpgrad._backends.loading import load_info\nout = load_info('twice', None).name"
    assert run(code, tmp_path) == "twice"


# -- registering by hand -----------------------------------------------------------------------------------------------------------


def _load(variant: str | None) -> Backend:
    raise OSError(f"variant {variant!r} is broken")


def test_a_registered_backend_is_loaded_on_use_only() -> None:
    info = BackendInfo("by_hand", _load, variants=("odd",))
    register_backend(info)
    register_backend(info)  # registering the same again is not a conflict
    assert "by_hand" in xp.backend_names()
    for device, variant in (("by_hand", "None"), ("by_hand+odd", "'odd'")):
        with pytest.raises(xp.BackendLoadError, match=f"OSError: variant {variant} is broken") as caught:
            xp.ones(2, device=device)
        assert isinstance(caught.value.__cause__, OSError)
    with pytest.raises(ValueError, match="'by_hand' is registered already"):
        register_backend(BackendInfo("by_hand", _load))


def test_registrations_that_are_refused() -> None:
    with pytest.raises(ValueError, match="'numpy' is registered already"):
        register_backend(BackendInfo("numpy", _load))
    with pytest.raises(TypeError, match="needs a BackendInfo, but got str"):
        register_backend("numpy")  # type: ignore[arg-type]
    with pytest.raises(xp.BackendLoadError, match="plugin interface"):
        register_backend(BackendInfo("late", _load, api_version=(API_VERSION[0], API_VERSION[1] + 1)))


def test_backends_are_made_once() -> None:
    assert backend_for("numpy") is backend_for("numpy")
    assert backend_for("numpy") is not backend_for("numpy+readonly")
    assert type(xp.ones(1)) is type(xp.asarray(np.ones(3)))
    assert type(xp.ones(1, device="strict")) is not type(xp.ones(1, device="strict:device1"))


def test_a_function_that_no_backend_has_is_named() -> None:
    with pytest.raises(xp.CapabilityError, match="backend 'strict' has no function `frobnicate`"):
        backend_for("strict").kernels.frobnicate


def test_a_dtype_that_a_backend_lacks_is_named() -> None:
    with pytest.raises(xp.CapabilityError, match=r"backend 'strict' has no dtype float16; it has bool, .*float64"):
        xp.ones(2, dtype=xp.float16, device="strict")
    with pytest.raises(xp.CapabilityError, match="bfloat16"):
        xp.ones(2, dtype=xp.bfloat16)
