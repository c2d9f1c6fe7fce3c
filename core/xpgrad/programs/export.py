"""`xpgrad.export`: write a function and its gradients as a module that needs only NumPy."""

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
        A function as for `compile`. If it returns one real number, the exported function returns it and the gradients.
    *args, **kwargs
        Example arguments, which set shapes and dtypes: Tensors on NumPy, or NumPy arrays. Gradients are computed for the Tensors that
        require grad or, if there are none, for all floating-point and complex ones. The self-test of the module draws arguments in the
        ranges of the examples. Other arguments are constants of the module.
    path : str, path or None
        The file to write; None only returns the text.
    command : str
        The command that makes the module, for its first lines. Default: this call.

    Returns
    -------
    str
        The source of the module. ``python gradients.py`` compares the gradients with central differences.

    Raises
    ------
    CaptureError
        The function depends on values.
    TypeError
        No argument is an array.
    ValueError
        The function uses large arrays that are not arguments, functions without a NumPy form, or arrays of another library.

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
