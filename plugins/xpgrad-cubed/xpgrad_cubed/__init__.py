"""The entry point of xpgrad's backend for cubed arrays. Importing this module does not import cubed; using the backend does."""

from __future__ import annotations

from typing import Any

from xpgrad import Tensor
from xpgrad.backend import Backend, BackendInfo
from xpgrad.hookspecs import hookimpl

__all__ = ["cut", "set_spec", "xpgrad_backend"]


def cut(x: Tensor) -> Tensor:
    """Return `x` computed, with its history: the plans of what follows start here, and so do those of the backward pass.

    In a chain of hundreds of operations each operation copies the plan of all before it. With a `cut` after every few of them it copies a
    short one. The values are computed at once, and so are those of the gradient when the backward pass arrives here.

    Parameters
    ----------
    x : Tensor
        A Tensor on the device ``cubed``.

    Raises
    ------
    TypeError
        If `x` is not a Tensor on the device ``cubed``.
    """
    import xpgrad
    from xpgrad_cubed.storage import store_arrays

    _raw(x)

    class Cut(xpgrad.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return xpgrad.asarray(store_arrays(_raw(x))[0])

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            return cut(g)

    found: Tensor = Cut.apply(x)
    return found


def set_spec(spec: Any) -> None:
    """Set the `cubed.Spec` of all arrays that xpgrad makes: constants, zeros, gradients.

    cubed combines only arrays of equal Specs, so call this before anything else, with the Spec of your own arrays.

    Parameters
    ----------
    spec : cubed.Spec or None
        The working directory, the allowed memory and the executor; None for those of cubed's configuration.
    """
    from xpgrad_cubed import storage

    storage.current_spec = spec


def _raw(t: Any) -> Any:
    """Return the cubed array of a Tensor on the device ``cubed``; raise TypeError for anything else."""
    if not isinstance(t, Tensor) or t.device.backend != "cubed":
        what = f"a Tensor on {t.device}" if isinstance(t, Tensor) else type(t).__name__
        msg = f"expected Tensors on the device 'cubed', but got {what}; move it with `x.to_device('cubed')`"
        raise TypeError(msg)
    return t.detach().array


def _load(variant: str | None) -> Backend:
    from xpgrad_cubed.backend import CubedBackend

    return CubedBackend()


@hookimpl
def xpgrad_backend() -> BackendInfo:
    """Return the description of the backend: lazy arrays in chunks, each computed within an allowed memory."""
    return BackendInfo(name="cubed", load=_load, array_modules=("cubed",), install="pip install xpgrad-cubed")
