"""`xpgrad.export`: a function and its gradients as a module that needs NumPy only."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from xpgrad._basics.arguments import check_callable

__all__ = ["export"]


def export(
    function: Callable[..., Any], /, *args: Any, path: str | os.PathLike[str] | None = "gradients.py", command: str = "", **kwargs: Any
) -> str:
    """Write a function and its gradients as a module that depends on NumPy alone.

    Parameters
    ----------
    function : callable
        As `compile` takes it. If it returns one real number, the module's function returns it and the gradients.
    *args, **kwargs
        Arguments of the shapes and dtypes that the module is for: Tensors on NumPy, or NumPy's arrays. Gradients are those of the Tensors
        that require grad, or, if there are none, of all that are floating or complex. Of their values, the module's self-test keeps the
        ranges; those of other arguments are part of what it computes.
    path : str, path or None
        Where it is written; None only returns the text.
    command : str
        How it is made again, for the module's first lines; by default this call.

    Returns
    -------
    str
        The text. ``python gradients.py`` compares the gradients with central differences.

    Raises
    ------
    CaptureError
        If the function depends on values.
    TypeError
        If none of the arguments is an array.
    ValueError
        If it uses large arrays that are not arguments, functions that have no text in NumPy, or another library's arrays.

    Examples
    --------
    >>> import xpgrad as xp
    >>> import numpy as np, xpgrad as xp
    >>> text = xp.export(lambda w, x: xp.mean((x @ w) ** 2), np.ones(3), np.ones((5, 3)), path=None)
    >>> text.splitlines()[0]
    '\"\"\"The value of `function` and its gradients, in NumPy alone.'
    """
    from xpgrad.programs.exporting import exported  # loads late: few programs export anything

    check_callable(function, "export", "function")
    if not isinstance(command, str):
        msg = f"export needs a string as `command`, but got {type(command).__name__}"
        raise TypeError(msg)
    if path is not None and not isinstance(path, (str, os.PathLike)):
        msg = f"export needs a path or None as `path`, but got {type(path).__name__}"
        raise TypeError(msg)
    text = exported(function, args, kwargs, command, None if path is None else os.path.basename(os.fspath(path)))
    if path is not None:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    return text
