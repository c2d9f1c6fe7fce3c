"""`xpgrad.autograd.forward_ad`: forward mode by dual Tensors, with the names of `torch.autograd.forward_ad` (group M).

Inside a `dual_level`, a Tensor made by `make_dual` carries a tangent, and so does all that is computed from it.
"""

from __future__ import annotations

import contextlib
from typing import Any, NamedTuple

from xpgrad._basics.arguments import as_int
from xpgrad._basics.faces import public_names
from xpgrad._modes import state
from xpgrad._rows.namespace import PRIMITIVES
from xpgrad._tensor.tensor import Tensor
from xpgrad._transforms.forward.levels import Level, Levels

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]


def __dir__() -> list[str]:
    return public_names(__name__)


class UnpackedDualTensor(NamedTuple):
    """The pair that `unpack_dual` returns.

    Attributes
    ----------
    primal : Tensor
        The values, without the tangent.
    tangent : Tensor or None
        None if there is none (FWD-08).

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.autograd import forward_ad
    >>> with forward_ad.dual_level():
    ...     dual = forward_ad.make_dual(xp.tensor([1.0, 2.0]), xp.tensor([1.0, 0.0]))
    ...     pair = forward_ad.unpack_dual(dual**2)
    ...     print(isinstance(pair, forward_ad.UnpackedDualTensor))
    ...     print(pair.primal, pair.tangent)
    True
    tensor([1., 4.]) tensor([2., 0.])
    """

    primal: Tensor
    tangent: Tensor | None


def _current() -> Level | None:
    """The level that `enter_dual_level` entered, if there is one."""
    mode = state.current()
    return next((level for level in (() if mode is None else mode.levels) if level.user), None)


def enter_dual_level() -> int:
    """Enter a level, at which Tensors carry tangents; leave it with `exit_dual_level`. `dual_level` does both.

    Returns
    -------
    int
        The level's number, 0.

    Raises
    ------
    RuntimeError
        Inside another one: `forward_ad` does not nest; `xpgrad.func.jvp` does (FWD-06).

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.autograd import forward_ad
    >>> level = forward_ad.enter_dual_level()
    >>> dual = forward_ad.make_dual(xp.tensor(3.0), xp.tensor(1.0))
    >>> forward_ad.unpack_dual(dual**2).tangent
    tensor(6.)
    >>> forward_ad.exit_dual_level()
    """
    if _current() is not None:
        msg = "Nested forward mode AD is not supported at the moment; use `xpgrad.func.jvp`, which nests"
        raise RuntimeError(msg)
    mode = state.current()
    outer = () if mode is None else mode.levels
    state.put(state.replaced(levels=Levels((*outer, Level(outer, user=True)))))
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """Leave the level; all its tangents are gone (FWD-07).

    Parameters
    ----------
    level : int, optional
        What `enter_dual_level` returned.

    Raises
    ------
    RuntimeError
        If there is no level, or another one.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.autograd import forward_ad
    >>> level = forward_ad.enter_dual_level()
    >>> dual = forward_ad.make_dual(xp.tensor(3.0), xp.tensor(1.0))
    >>> forward_ad.exit_dual_level(level=level)
    >>> print(forward_ad.unpack_dual(dual).tangent)
    None
    """
    level = None if level is None else as_int(level, "exit_dual_level", "level")
    current = _current()
    if current is None:
        msg = "Dual level must be a positive number. There is none to leave; enter one with `enter_dual_level()`"
        raise RuntimeError(msg)
    if level not in (None, 0):
        msg = (
            "Trying to exit a forward AD level that was not the last one that was created. This is not supported. Got level "
            f"{level}, but the current one is 0"
        )
        raise RuntimeError(msg)
    mode: Any = state.current()
    state.put(state.replaced(levels=Levels(other for other in mode.levels if other is not current)))
    current.close()


class dual_level(contextlib.ContextDecorator):  # noqa: N801 (PyTorch's name)
    """Context and decorator: a level of forward mode, at which Tensors carry tangents (FWD-01).

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.autograd import forward_ad
    >>> x, t = xp.tensor([1.0, 2.0]), xp.tensor([1.0, 0.0])
    >>> with forward_ad.dual_level():
    ...     y = forward_ad.make_dual(x, t) ** 2
    ...     forward_ad.unpack_dual(y).tangent.tolist()
    [2.0, 0.0]
    """

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *exc: object) -> None:
        exit_dual_level()


def _check_number(level: int | None, name: str) -> None:
    if level not in (None, 0):
        msg = f"Invalid level given to {name}: {level}; leave it out, or give what `enter_dual_level()` returned"
        raise RuntimeError(msg)


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """A new Tensor with the values, memory and history of `tensor`, and a tangent; differentiable in both (FWD-11).

    Parameters
    ----------
    tensor : Tensor
        Floating or complex, the point.
    tangent : Tensor
        Of the same shape: the direction in which results are differentiated.
    level : int, optional
        What `enter_dual_level` returned.

    Returns
    -------
    Tensor
        Of the shape, dtype, device and memory of `tensor`, with the tangent.

    Raises
    ------
    RuntimeError
        Outside a level (FWD-02), for another shape (FWD-04), or a `tensor` that has a tangent (FWD-06).
    ValueError
        For a dtype that has no derivative (FWD-03).
    TypeError
        For what is not a Tensor.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.autograd import forward_ad
    >>> with forward_ad.dual_level():
    ...     x = forward_ad.make_dual(xp.tensor([1.0, 2.0]), xp.tensor([1.0, 10.0]))
    ...     print(forward_ad.unpack_dual(x * x).tangent)
    tensor([ 2., 40.])
    """
    for name, t in (("primal", tensor), ("tangent", tangent)):
        if not isinstance(t, Tensor):
            msg = f"make_dual needs a Tensor as {name}, but got {type(t).__name__}; wrap an array with `xpgrad.asarray`"
            raise TypeError(msg)
    current = _current()
    level = None if level is None else as_int(level, "make_dual", "level")
    if current is None or (level is not None and level < 0):
        msg = (
            "make_dual: Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first. "
            "`with dual_level():` does this for a block"
        )
        raise RuntimeError(msg)
    _check_number(level, "make_dual")
    if state.is_inference_mode_enabled():
        return PRIMITIVES["alias"](tensor)  # inference mode stops forward mode (FWD-09)
    if current.tangent(tensor) is not None:
        msg = (
            "Making a dual Tensor based on a Tensor that already has a forward gradient at the same level 0 is not supported. Take "
            "`unpack_dual(tensor).primal`"
        )
        raise RuntimeError(msg)
    if current.tangent(tangent) is not None:
        msg = (
            "Setting a forward grad that itself has a forward gradient at the same level 0 is not supported. Take "
            "`unpack_dual(tangent).primal`"
        )
        raise RuntimeError(msg)
    return current.dual(tensor, tangent)


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """The values and the tangent of a Tensor; outside a level, and for constants, the tangent is None.

    Parameters
    ----------
    tensor : Tensor
    level : int, optional
        What `enter_dual_level` returned.

    Returns
    -------
    UnpackedDualTensor
        The primal is a view of `tensor` with its history; outside a level it is `tensor` itself.

    Raises
    ------
    TypeError
        For what is not a Tensor.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.autograd import forward_ad
    >>> with forward_ad.dual_level():
    ...     x = forward_ad.make_dual(xp.tensor(2.0), xp.tensor(1.0))
    ...     primal, tangent = forward_ad.unpack_dual(x**3)
    >>> primal, tangent
    (tensor(8.), tensor(12.))
    """
    if not isinstance(tensor, Tensor):
        msg = f"unpack_dual needs a Tensor, but got {type(tensor).__name__}"
        raise TypeError(msg)
    current = _current()
    level = None if level is None else as_int(level, "unpack_dual", "level")
    if current is None or (level is not None and level < 0):
        return UnpackedDualTensor(tensor, None)
    _check_number(level, "unpack_dual")
    return UnpackedDualTensor(current.primal(tensor), None if state.is_inference_mode_enabled() else current.tangent(tensor))
