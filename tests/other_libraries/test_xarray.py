"""Law: xarray's objects compute with the Tensors that they hold, on either side of an operator, and gradients flow."""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xpgrad as xp
from support import DEVICES
from support.central_differences import check, numbers

xr = pytest.importorskip("xarray", reason="xarray is not installed (the extra `friends`)")

START = numbers((3, 4)) + 2.0
C = xr.DataArray(numbers((3, 4), 2.0) + 2.0, dims=("t", "s"))
ROW = xr.DataArray(numbers((4,), 3.0) + 2.0, dims=("s",))
T = [0.0, 1.0, 3.0]


def array(x: Any) -> Any:
    """Return a DataArray that holds the Tensor `x`."""
    return xr.DataArray(x, dims=("t", "s"), coords={"t": T})


def written(x: Any) -> Any:
    d = array(x * 1.0)
    d[0, 1] = 5.0
    d.loc[{"t": 1.0}] = d.loc[{"t": 3.0}] * 2.0
    d += C
    return d


CALLS: dict[str, Callable[[Any], Any]] = {
    "DataArray * DataArray": lambda x: array(x) * C,
    "constant / DataArray": lambda x: C / array(x),
    "broadcast by names": lambda x: ROW - array(x),
    "Tensor + DataArray": lambda x: x + C,
    "DataArray - Tensor": lambda x: C - x,
    "Tensor / DataArray": lambda x: x / C,
    "Tensor ** DataArray": lambda x: x**C,
    "DataArray of a Tensor * Tensor": lambda x: array(x) * x,
    "Tensor * DataArray of a Tensor": lambda x: x * array(x),
    "0-d Tensor * DataArray": lambda x: xp.sum(x) * C,
    "Tensor * Dataset": lambda x: (xp.sum(x) * xr.Dataset({"a": array(x), "b": C}))["a"],
    "Dataset": lambda x: (xr.Dataset({"a": array(x), "b": C}) * 2.0 + 1.0).sum("t")["a"],
    "np.multiply, a Tensor first": lambda x: np.multiply(x, C),
    "np.hypot": lambda x: np.hypot(C, array(x)),
    "np.exp": lambda x: np.exp(array(x)),
    "sum": lambda x: array(x).sum(),
    "sum over dims": lambda x: array(x).sum(dim=["t", "s"]),
    "mean": lambda x: array(x).mean("t"),
    "std": lambda x: array(x).std("t", ddof=1),
    "max": lambda x: array(x).max("s"),
    "median": lambda x: array(x).median("s"),
    "quantile": lambda x: array(x).quantile(0.3, "s"),
    "cumsum": lambda x: array(x).cumsum("t"),
    "diff": lambda x: array(x).diff("t"),
    "integrate": lambda x: array(x).integrate("t"),
    "isel": lambda x: array(x).isel(t=slice(0, 2), s=[0, 2]),
    "sel": lambda x: array(x).sel(t=1.2, method="nearest"),
    "loc": lambda x: array(x).loc[0.0:1.0],
    "a mask": lambda x: array(x)[np.array([True, False, True])],
    "where with other": lambda x: array(x).where(C > 2.0, array(x) * 2.0),
    "xr.where": lambda x: xr.where(array(x) > 2.0, array(x) * 3.0, array(x) ** 2),
    "fillna": lambda x: C.where(C > 2.0).fillna(x),
    "clip": lambda x: array(x).clip(1.5, 2.5),
    "concat": lambda x: xr.concat([array(x), array(x) ** 2], dim="k"),
    "merge": lambda x: xr.merge([array(x).rename("a"), ROW.rename("b")])["a"],
    "stack": lambda x: array(x).stack(z=("t", "s")),
    "transpose": lambda x: array(x).transpose("s", "t"),
    "dot": lambda x: xr.dot(array(x), C, dim="t"),
    "apply_ufunc": lambda x: xr.apply_ufunc(lambda a, b: xp.sin(a) * b, array(x), C),
    "apply_ufunc, a core dim in front": lambda x: xr.apply_ufunc(lambda a: xp.sum(a * a, axis=-1), array(x), input_core_dims=[["t"]]),
    "interpolation by apply_ufunc": lambda x: xr.apply_ufunc(
        lambda y: np.stack([np.interp([0.5, 2.0], T, row) for row in y]), array(x), input_core_dims=[["t"]], output_core_dims=[["new"]]
    ),
    "groupby": lambda x: array(x).assign_coords(g=("t", [0, 0, 1])).groupby("g").mean(),
    "groupby, subtracted": lambda x: (lambda d: d.groupby("g") - d.groupby("g").mean())(array(x).assign_coords(g=("t", [0, 0, 1]))),
    "coarsen": lambda x: array(x).coarsen(s=2).mean(),
    "weighted": lambda x: C.weighted(array(x)).sum("s"),
    "shift": lambda x: array(x).shift(t=1, fill_value=0.0),
    "pad": lambda x: array(x).pad(t=1, constant_values=0.0),
    "reindex": lambda x: array(x).reindex(t=[1.0, 5.0], fill_value=0.0),
    "written into": written,
    # these make deep copies
    "copy": lambda x: array(x).copy(deep=True),
    "copy of a computed one": lambda x: array(x * 2.0).copy(deep=True),
    "sortby": lambda x: array(x).sortby("t", ascending=False),
    "align": lambda x: xr.align(array(x), C)[0],
    "deepcopy": lambda x: copy.deepcopy(array(x)),
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", CALLS)
def test_gradients_flow(name: str, device: str) -> None:
    made: list[Any] = []

    def function(x: Any) -> Any:
        made.append(CALLS[name](x))
        return made[-1].data

    check(function, [START], device)
    assert all(isinstance(d, xr.DataArray) for d in made)


def test_dimensions_are_kept() -> None:
    out = xp.tensor(START, requires_grad=True) * C
    assert out.dims == ("t", "s")
    assert (ROW * array(xp.tensor(START))).dims == ("s", "t")


def test_transforms_go_through() -> None:
    x = xp.asarray(START)
    slope = xp.func.grad(lambda x: (array(x) * C).sum().data)
    assert xp.all(slope(x) == xp.asarray(C.values))
    assert xp.all(xp.compile(lambda x: (array(x) * C).sum("t").data)(x) == xp.sum(x * C.values, axis=0))
    rows = xp.func.vmap(lambda r: (xr.DataArray(r, dims="s") * ROW).sum().data)
    assert xp.all(xp.isclose(rows(x), xp.sum(x * ROW.values, axis=1)))


def test_deep_copies_outside_of_xarray_are_leaves() -> None:
    x = xp.tensor(START, requires_grad=True)
    assert copy.deepcopy([x])[0].is_leaf
    with pytest.raises(RuntimeError, match="deepcopy"):
        copy.deepcopy(x * 2.0)


REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "a function of xpgrad": (lambda x: xp.sin(array(x)), r"`sin` got xarray\..*DataArray.*`x\.data`"),
    "a function of two operands": (lambda x: xp.add(x, C), r"`add` got xarray\..*DataArray.*its operators"),
    "np.where": (lambda x: np.where(C > 0.0, x, 0.0), r"`np\.where` got xarray\..*its operators and functions"),
    "in place": (lambda x: operator.imul(x * 1.0, C), "in-place multiply` got xarray"),
    "a product of matrices": (lambda x: x @ C, "generalized ufuncs"),
    "interp": (lambda x: array(x).interp(t=[0.5]), r"To keep the gradient, use xarray's .* or `xarray\.apply_ufunc`"),
    "missing values": (lambda x: array(x).where(C > 2.0), "must be one of an extension array dtype or numpy dtype"),
    "rolling": (lambda x: array(x).rolling(s=2).mean(), "no attribute 'lib'"),
    "differentiate": (lambda x: array(x).differentiate("t"), "no attribute 'gradient'"),
    "vectorized indexing": (
        lambda x: array(x).isel(t=xr.DataArray([0, 1], dims="k"), s=xr.DataArray([1, 2], dims="k")), "Vectorized indexing",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_work_raises(name: str) -> None:
    function, message = REFUSED[name]
    with pytest.raises((TypeError, RuntimeError, AttributeError, NotImplementedError), match=message):
        function(xp.tensor(START, requires_grad=True))
