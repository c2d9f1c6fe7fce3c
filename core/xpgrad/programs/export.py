"""`xpgrad.export`: write a function and its gradients as a module that needs only NumPy, or in C."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from xpgrad._basics.arguments import check_callable
from xpgrad.emitter import EmitterInfo
from xpgrad.programs.emitters import emitter_for, emitter_names

__all__ = ["export"]


_PATH = "gradients.py"


def export(
    function: Callable[..., Any], /, *args: Any, path: str | os.PathLike[str] | None = _PATH, command: str = "", target: str = "python",
    **kwargs: Any,
) -> str:  # fmt: skip
    """Write a function and its gradients as a module that depends on NumPy alone, or in C.

    Parameters
    ----------
    function : callable
        A function as for `compile`. If it returns one real number, the exported function returns it and the gradients.
    *args, **kwargs
        Example arguments, which set shapes and dtypes: Tensors on NumPy, or NumPy arrays. Gradients are computed for the Tensors that
        require grad or, if there are none, for all floating-point and complex ones. The self-test takes arguments in the ranges of the
        examples. Other arguments are constants of the exported function.
    path : str, path or None
        The file to write; None only returns the text. In C it ends with ``.c``, by default ``gradients.c``, and the header is written
        beside it.
    command : str
        The command that makes the file, for its first lines. Default: this call.
    target : str
        The language: ``"python"``, or the name of an emitter that exports, such as ``"c"``. That one writes C99 that needs only the C
        library: a function of pointers to arrays in row-major order, which returns a status. A complex number is its real and its imaginary
        part, in turns. It is for complex128, complex64, float64, float32, int64, int32 and bool, and for elementwise functions, reductions,
        products of real matrices, views, indexing, writes, loops and branches.

    Returns
    -------
    str
        The source. It tests itself: ``python gradients.py`` compares the gradients with central differences; so does the program that
        ``cc -DXPGRAD_MAIN gradients.c -lm`` makes, which also compares the results with stored ones.

    Raises
    ------
    CaptureError
        The function depends on values, other than by `while_loop`, `fori_loop` and `cond`, which stay loops and branches.
    TypeError
        No argument is an array, or a parameter has a wrong type.
    ValueError
        The function uses large arrays that are not arguments, functions without a form in the language, or arrays of another library;
        `target` is unknown; or, for C, `path` does not end with ``.c``.

    Examples
    --------
    >>> import numpy as np, xpgrad as xp
    >>> text = xp.export(lambda w, x: xp.mean((x @ w) ** 2), np.ones(3), np.ones((5, 3)), path=None)
    >>> text.splitlines()[0]
    '\"\"\"The value of `function` and its gradients, in NumPy alone.'
    >>> text = xp.export(lambda w, x: xp.mean((x @ w) ** 2), np.ones(3), np.ones((5, 3)), target="c", path=None)
    >>> text.splitlines()[2]
    '       int function_and_gradients(const double *w, const double *x, double *function, double *grad_w,'
    """

    check_callable(function, "export", "function")
    if not isinstance(command, str):
        msg = f"export needs a string as `command`, but got {type(command).__name__}"
        raise TypeError(msg)
    if path is not None and not isinstance(path, (str, os.PathLike)):
        msg = f"export needs a path or None as `path`, but got {type(path).__name__}"
        raise TypeError(msg)
    if not isinstance(target, str) or (target != "python" and target not in emitter_names()):
        msg = f"export needs 'python' or the name of an emitter that exports, such as 'c', as `target`, but got {target!r}"
        raise ValueError(msg)
    file = None if path is None else os.fspath(path)
    if target != "python":
        return _export_by(emitter_for(target), function, args, kwargs, command, file)

    from xpgrad.programs.exporting import export_text  # loads late: few programs export anything

    text = export_text(function, args, kwargs, command, None if file is None else os.path.basename(file))
    if file is not None:
        _write(file, text)
    return text


def _export_by(
    emitter: EmitterInfo, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], command: str, file: str | None
) -> str:  # fmt: skip
    """Write the files of an emitter unless `file` is None; return the text of the main one.

    Raises
    ------
    ValueError
        The emitter exports nothing, `file` has another suffix than its main file, or the function has no form in its language.
    """
    from xpgrad.programs.exporting import export_files  # loads late: as above

    if emitter.export is None:
        msg = f"the emitter {emitter.name!r} exports no files; use target='python' or target='c'"
        raise ValueError(msg)
    stem, suffix = os.path.splitext(_PATH if file is None else file)
    name = None if file is None or file is _PATH else os.path.basename(file)
    files = export_files(function, args, kwargs, command, emitter, os.path.basename(stem), name)
    main = next(iter(files))
    if name is not None and suffix != main:
        msg = f"export needs a path that ends with {main} for target={emitter.name!r}, but got {file!r}"
        raise ValueError(msg)
    for ending, text in files.items() if file is not None else ():
        _write(f"{stem}{ending}", text)
    return files[main]


def _write(file: str, text: str) -> None:
    with open(file, "w", encoding="utf-8") as stream:
        stream.write(text)
