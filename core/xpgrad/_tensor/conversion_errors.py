"""Messages for a Tensor that some call converts to a NumPy array: which call it was, and what to write instead.

NumPy, SciPy and Matplotlib convert their arguments by `__array__`, so that nobody has written ``.numpy()`` in the line that fails.
"""

from __future__ import annotations

import ast
import importlib
import linecache
import os
import sys
from types import FrameType, ModuleType
from typing import Any

from xpgrad._basics.frames import find_user_frame
from xpgrad._modes import state

#: Functions of NumPy that make an array of their first argument.
_CONVERSIONS = ("array", "asarray", "asanyarray", "ascontiguousarray", "asfortranarray")
#: What to write instead of calls of other libraries.
_LIBRARIES = {
    "sklearn": "call it inside `sklearn.config_context(array_api_dispatch=True)`, with SCIPY_ARRAY_API=1 in the environment, if it is one "
    "of the functions of scikit-learn that support array API inputs",
    "xarray": "use xarray's functions that compute with any array, or `xarray.apply_ufunc` with a function of xpgrad",
}
#: The most characters of a call that a message shows.
_LONGEST = 80


def describe_conversion(lost: str) -> str:
    """Describe the user's call that converts a Tensor to a NumPy array, and what to write instead; empty if its source is not available.

    Parameters
    ----------
    lost : str
        What the conversion would lose: "gradient" or "derivative".

    Returns
    -------
    str
        The end of a message.
    """
    inner = sys._getframe(1)
    frame = find_user_frame(inner)
    if frame is None:
        return ""
    text, library = _running_text(frame), _called_library(inner, frame)
    if not text and library not in _LIBRARIES:
        return ""
    if text:
        where = f"{os.path.basename(frame.f_code.co_filename)}, line {frame.f_lineno}"
        shown = f"`{text if len(text) <= _LONGEST else text[: _LONGEST - 3] + '...'}` ({where})"
    else:
        shown = library
    advice = _LIBRARIES.get(library) or _advice(text, frame)
    mode = state.current()
    if mode is not None and mode.numpy is not None and not mode.numpy.runs_module(frame.f_globals):
        advice += f"; or name the module {frame.f_globals.get('__name__')} in the argument `modules` of `numpy_code`"
    return f"{shown} converts it to a NumPy array, so the {lost} would be lost. To keep the {lost}, {advice}"


def _called_library(inner: FrameType, user: FrameType) -> str:
    """Return the name of the package that the user's frame called; `inner` is the frame of the conversion."""
    found = ""
    while inner is not user and inner.f_back is not None:
        found, inner = inner.f_globals.get("__name__", ""), inner.f_back
    return found.partition(".")[0]


def _running_text(frame: FrameType) -> str:
    """Return the source of the expression that a frame is running, on one line; empty without source."""
    code = frame.f_code
    first, last, start, end = list(code.co_positions())[frame.f_lasti // 2]
    if first is None or last is None:
        return linecache.getline(code.co_filename, frame.f_lineno, frame.f_globals).strip()
    lines = [linecache.getline(code.co_filename, n, frame.f_globals).encode() for n in range(first, last + 1)]
    lines[-1] = lines[-1][:end]
    lines[0] = lines[0][start:]
    return b" ".join(line.strip() for line in lines).decode()


def _advice(text: str, frame: FrameType) -> str:
    """Return what to write instead of a call whose derivative is wanted."""
    try:
        call = ast.parse(text, mode="eval").body
    except SyntaxError:
        call = None
    called = _evaluate(call.func, frame) if isinstance(call, ast.Call) else None
    name = getattr(called, "__name__", "")
    path = getattr(called, "__module__", None) or ""
    module = path.partition(".")[0]
    if type(getattr(called, "__self__", None)).__name__ in ("Generator", "RandomState"):
        return "transform standard random numbers instead, such as `mean + scale * xpgrad.asarray(rng.normal(size=n))`"
    if module == "numpy" and name in _CONVERSIONS:
        if isinstance(call, ast.Call) and call.args and isinstance(call.args[0], (ast.List, ast.Tuple, ast.ListComp)):
            return "put Tensors together with `xpgrad.stack([...])`"
        return "use the Tensor without the conversion"
    if module in ("numpy", "scipy") and (ours := _same_name(name, path)):
        # SciPy's Cholesky factor is the upper one, for instance.
        differs = module == "scipy" and ours.startswith("xpgrad.linalg.")
        return f"use `{ours}`" + (", whose arguments and results are the Array API's" if differs else "")
    return "use a function of xpgrad, or give the call a derivative with `xpgrad.autograd.custom_rule`"


def _evaluate(node: ast.expr, frame: FrameType) -> Any:
    """Return the object that a dotted name means in a frame, or None; only attributes of modules and methods are read."""
    if isinstance(node, ast.Name):
        code = frame.f_code
        # `f_locals` is read only if it is needed: it may keep the values of all local variables while the frame runs.
        is_local = node.id in (*code.co_varnames, *code.co_cellvars, *code.co_freevars)
        return frame.f_locals.get(node.id) if is_local else frame.f_globals.get(node.id)
    if isinstance(node, ast.Attribute):
        owner = _evaluate(node.value, frame)
        if isinstance(owner, ModuleType) or callable(getattr(type(owner), node.attr, None)):
            return getattr(owner, node.attr, None)
    return None


def _same_name(name: str, module: str) -> str | None:
    """Return the public function of xpgrad with the name of a function of a module, spelled in full; of the same part of SciPy first."""
    parts = [f"scipy.{part}" for part in importlib.import_module("xpgrad.scipy").__all__]
    spaces = ["", "linalg", "fft", *parts, "scipy.sparse.linalg"]
    for space in sorted(spaces, key=lambda space: space != ".".join(module.split(".")[:2])):
        path = f"xpgrad.{space}".rstrip(".")
        try:
            namespace = importlib.import_module(path)
        except ImportError:  # SciPy is not installed
            continue
        for ours in (name, name.replace("_matrix", "_array")):
            if ours in getattr(namespace, "__all__", ()):
                return f"{path}.{ours}"
    return None
