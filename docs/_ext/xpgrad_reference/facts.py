'''Read what the reference says beside the docstrings: `facts/*.toml`, one table for each name, and defaults for the names of a file.

::

    [defaults]
    parameters.axis = "int or tuple of int, optional : The axes; all of them by default."
    raises = "TypeError : An operand is neither a Tensor nor a number."

    ["xpgrad.add"]
    parameters.x1 = "Tensor or number : Any shape that broadcasts with that of `x2`; numeric."
    returns = "Tensor : Of the shape that both broadcast to, and of the dtype that both promote to."
    torch = "torch.add"
    differs = "No `alpha`: `Tensor.add` has it."
    example = """
    >>> xp.add(xp.tensor([1.0, 2.0]), 10.0)
    tensor([11., 12.])
    """

A docstring that has a section, or describes a parameter, is not told again here: a fact that it holds already is an error.
'''

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from xpgrad._rows.namespace import IN_PLACE, METHODS

FOLDER = Path(__file__).resolve().parent / "facts"
#: What every method in place raises.
_REFUSED = (
    "RuntimeError : It is a leaf that requires grad, and recording is on; or the result is of another shape, or of a kind that its dtype "
    "cannot hold.",
)
_KEYS = {"summary", "parameters", "returns", "raises", "example", "see", "torch", "differs", "internal"}


@dataclass(frozen=True)
class Facts:
    """What stands beside a docstring.

    Attributes
    ----------
    summary : str
        A sentence for what has no docstring: constants, and attributes.
    parameters : dict of str to str
        ``type : text`` by name.
    defaults : dict of str to str
        The same for all names of the file, for those that have such a parameter.
    returns : str
        ``type : text``.
    raises : tuple of str or None
        ``type : text`` each; empty: nothing of its own. None: not told.
    example : str
        A session of the interpreter, in which `xpgrad` is `xp` and NumPy is `np`.
    see : str
        Another public name, whose example shows this one, too.
    torch : str or None
        The name that PyTorch documents; empty: there is none. None: the same name, if PyTorch has it.
    differs : str
        In which ways it is not what PyTorch does.
    internal : str
        Why a name without an underscore is not for users: those are listed with their class, without a text of their own.
    """

    summary: str = ""
    parameters: dict[str, str] = field(default_factory=dict)
    defaults: dict[str, str] = field(default_factory=dict)
    returns: str = ""
    raises: tuple[str, ...] | None = None
    example: str = ""
    see: str = ""
    torch: str | None = None
    differs: str = ""
    internal: str = ""


@cache
def all_facts() -> dict[str, Facts]:
    """The facts by name, from all files.

    Raises
    ------
    ValueError
        If a name stands in two files, or a key is unknown.
    """
    found: dict[str, Facts] = {}
    for path in sorted(FOLDER.glob("*.toml")):
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
        defaults = tables.pop("defaults", {})
        for name, table in tables.items():
            if name in found:
                msg = f"{path.name}: {name} stands in another file, too"
                raise ValueError(msg)
            if unknown := table.keys() - _KEYS:
                msg = f"{path.name}: {name} has unknown keys {sorted(unknown)}; known are {sorted(_KEYS)}"
                raise ValueError(msg)
            found[name] = _read(table, defaults)
    return found


def facts(name: str) -> Facts:
    """What stands beside the docstring of a name; nothing, perhaps. A declared method has what it does not say from its function."""
    own = all_facts().get(name, Facts())
    short = name.removeprefix("xpgrad.Tensor.")
    function = METHODS.get(short) or IN_PLACE.get(short)
    if short == name or function is None:
        return own
    if short in IN_PLACE:
        return own if name in all_facts() else Facts(returns="Tensor : Itself.", raises=_REFUSED, see=f"xpgrad.{function.__name__}")
    told = facts(f"xpgrad.{function.__name__}")
    texts = told.defaults | told.parameters | own.defaults
    return (
        replace(own, defaults=texts)
        if name in all_facts()
        else replace(told, parameters={}, defaults=texts, example="", see=f"xpgrad.{function.__name__}", torch=None)
    )


def _read(table: dict[str, Any], defaults: dict[str, Any]) -> Facts:
    raises = table.get("raises", defaults.get("raises"))
    if isinstance(raises, str):
        raises = [raises] if raises else []
    return Facts(
        summary=table.get("summary", ""),
        parameters=table.get("parameters", {}),
        defaults=defaults.get("parameters", {}),
        returns=table.get("returns", defaults.get("returns", "")),
        raises=None if raises is None else tuple(raises),
        example=table.get("example", "").strip("\n"),
        see=table.get("see", ""),
        torch=table.get("torch"),
        differs=table.get("differs", ""),
        internal=table.get("internal", ""),
    )
