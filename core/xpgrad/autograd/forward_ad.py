"""`xpgrad.autograd.forward_ad`: forward mode by dual Tensors, with the names of `torch.autograd.forward_ad`.

Inside a `dual_level`, a Tensor made by `make_dual` has a tangent, and so have the results computed from it.
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
    """The primal and tangent that `unpack_dual` returns.

    Attributes
    ----------
    primal : Tensor
        The values, without the tangent.
    tangent : Tensor or None
        None if the Tensor has no tangent.

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
    """Return the level that `enter_dual_level` entered; None outside one."""
    mode = state.current()
    return next((level for level in (() if mode is None else mode.levels) if level.user), None)


def enter_dual_level() -> int:
    """Enter a level of forward mode, in which Tensors can have tangents; `exit_dual_level` leaves it, and `dual_level` does both.

    Returns
    -------
    int
        The number of the level, always 0.

    Raises
    ------
    RuntimeError
        A level is active already: `forward_ad` does not nest, `xpgrad.func.jvp` does.

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
    state.put(state.mode_with(levels=Levels((*outer, Level(outer, user=True)))))
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """Leave the level of forward mode; all its tangents are dropped.

    Parameters
    ----------
    level : int, optional
        The number that `enter_dual_level` returned.

    Raises
    ------
    RuntimeError
        No level is active, or `level` is not its number.

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
    state.put(state.mode_with(levels=Levels(other for other in mode.levels if other is not current)))
    current.close()


class dual_level(contextlib.ContextDecorator):  # noqa: N801 (PyTorch's name)
    """Context manager and decorator for a level of forward mode, in which Tensors can have tangents.

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
    """Return a new Tensor with the values, memory and history of `tensor`, and a tangent; it is differentiable in both.

    Parameters
    ----------
    tensor : Tensor
        The primal, floating-point or complex.
    tangent : Tensor
        The direction in which results are differentiated; same shape as `tensor`.
    level : int, optional
        The number that `enter_dual_level` returned.

    Returns
    -------
    Tensor
        Same shape, dtype, device and memory as `tensor`.

    Raises
    ------
    RuntimeError
        No level is active, the shapes differ, or `tensor` already has a tangent.
    ValueError
        A dtype is neither floating-point nor complex.
    TypeError
        An argument is not a Tensor.

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
    """Split a Tensor into its primal and its tangent.

    Parameters
    ----------
    tensor : Tensor
        Any Tensor.
    level : int, optional
        The number that `enter_dual_level` returned.

    Returns
    -------
    UnpackedDualTensor
        The primal is a view of `tensor` with its history; outside a level it is `tensor` itself. The tangent is None outside a level and
        for constants.

    Raises
    ------
    RuntimeError
        `level` is not the number of the active level.
    TypeError
        `tensor` is not a Tensor.

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
