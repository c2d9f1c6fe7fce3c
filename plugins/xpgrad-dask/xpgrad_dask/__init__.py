"""The entry point of xpgrad's backend for dask arrays. Importing this module does not import dask; using the backend does."""

# mypy: allow-untyped-calls
# (dask has no type hints on most of its functions)

from __future__ import annotations

from typing import Any

from xpgrad import Tensor
from xpgrad.backend import Backend, BackendInfo
from xpgrad.hookspecs import hookimpl

__all__ = ["compute", "persist", "xpgrad_backend"]


def compute(*tensors: Tensor, **options: Any) -> tuple[Any, ...]:
    """Return the values of several Tensors as NumPy arrays, in one computation: shared work, such as reading the data, is done once.

    Parameters
    ----------
    *tensors : Tensor
        Tensors on the device ``dask``.
    **options
        Options of `dask.compute`, e.g. ``scheduler="threads"``.

    Raises
    ------
    TypeError
        If an argument is not a Tensor on the device ``dask``.
    """
    from dask.base import compute as compute_all

    values: tuple[Any, ...] = compute_all(*(_raw(t) for t in tensors), **options)
    return values


def persist(*tensors: Tensor, **options: Any) -> tuple[Tensor, ...]:
    """Compute Tensors into the workers' memory, and return leaves with their values and chunks.

    Parameters
    ----------
    *tensors : Tensor
        Tensors on the device ``dask``.
    **options
        Options of `dask.persist`.

    Returns
    -------
    tuple of Tensor
        New leaves without history. Each requires grad if its original does.

    Raises
    ------
    TypeError
        If an argument is not a Tensor on the device ``dask``.
    """
    from dask.base import persist as persist_all

    import xpgrad

    arrays = persist_all(*(_raw(t) for t in tensors), **options)
    return tuple(xpgrad.asarray(a).requires_grad_(t.requires_grad) for a, t in zip(arrays, tensors))


def _raw(t: Any) -> Any:
    """Return the dask array of a Tensor on the device ``dask``; raise TypeError for anything else."""
    if not isinstance(t, Tensor) or t.device.backend != "dask":
        what = f"a Tensor on {t.device}" if isinstance(t, Tensor) else type(t).__name__
        msg = f"expected Tensors on the device 'dask', but got {what}; move it with `x.to_device('dask')`"
        raise TypeError(msg)
    return t.detach().array


def _load(variant: str | None) -> Backend:
    from xpgrad_dask.backend import DaskBackend

    return DaskBackend()


@hookimpl
def xpgrad_backend() -> BackendInfo:
    """Return the description of the backend: lazy arrays in chunks, computed on threads, processes or a cluster."""
    return BackendInfo(name="dask", load=_load, array_modules=("dask",), install="pip install xpgrad-dask")
