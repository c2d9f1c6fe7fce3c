"""Law: pint's quantities compute with the Tensors that they hold, on either side of an operator, and gradients flow."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xpgrad as xp
from support import DEVICES
from support.central_differences import check, numbers

pint = pytest.importorskip("pint", reason="pint is not installed (the extra `friends`)")

u = pint.UnitRegistry()
START = numbers((3, 4)) + 2.0
ARRAY = numbers((3, 4), 2.0) + 2.0
SQUARE = numbers((3, 3), 4.0)
Q = u.Quantity(ARRAY, "m")


def quantity(x: Any) -> Any:
    """Return a length in metres."""
    return u.Quantity(x, "m")


def written(x: Any) -> Any:
    a = quantity(x * 1.0)
    a[0] = u.Quantity(1.0, "km")
    a[1] = quantity(x)[0].to("km")
    a += Q
    return a


@u.wraps("m", "s")
def wrapped(t: Any) -> Any:
    return xp.sin(t) * t


#: The units of the results, and the functions.
CALLS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "Tensor * unit": ("m", lambda x: x * u.m),
    "unit * Tensor": ("m", lambda x: u.m * x),
    "unit / Tensor": ("m", lambda x: u.m / x),
    "Tensor * (1 / unit)": ("1/s", lambda x: x * (1 / u.s)),
    "Tensor * Quantity": ("m", lambda x: x * Q),
    "Quantity * Tensor": ("m", lambda x: Q * x),
    "Tensor / Quantity": ("1/m", lambda x: x / Q),
    "Quantity / Tensor": ("m", lambda x: Q / x),
    "0-d Tensor * Quantity": ("m", lambda x: xp.sum(x) * Q),
    "Tensor * Quantity of a number": ("km", lambda x: x * u.Quantity(2.0, "km")),
    "Tensor * Quantity of a Tensor": ("m", lambda x: x * quantity(x)),
    "Tensor + dimensionless": ("", lambda x: x + u.Quantity(ARRAY, "")),
    "Tensor - dimensionless": ("", lambda x: x - u.Quantity(ARRAY, "m/km")),
    "dimensionless ** 2": ("", lambda x: u.Quantity(x, "m/km").to("") ** 2),
    "Quantity + kilometres": ("m", lambda x: quantity(x) + u.Quantity(2.0, "km")),
    "kilometres - Quantity": ("km", lambda x: u.Quantity(2.0, "km") - quantity(x)),
    "Quantity ** 0.5": ("m**0.5", lambda x: quantity(x) ** 0.5),
    "Tensor @ Quantity": ("m", lambda x: x @ Q.T),
    "Quantity @ Tensor": ("m", lambda x: Q.T @ x),
    "to": ("km", lambda x: quantity(x).to("km")),
    "to_base_units": ("m", lambda x: u.Quantity(x, "km").to_base_units()),
    "an offset": ("K", lambda x: u.Quantity(x, "degC").to("kelvin")),
    "spectroscopy": ("THz", lambda x: u.Quantity(x, "nm").to("THz", "spectroscopy")),
    "sum": ("m", lambda x: np.sum(quantity(x), axis=0)),
    "a method": ("m", lambda x: quantity(x).mean()),
    "cumsum": ("m", lambda x: quantity(x).cumsum()),
    "cumsum of an axis": ("m", lambda x: quantity(x).cumsum(axis=1)),
    "var": ("m**2", lambda x: np.var(quantity(x))),
    "sin of degrees": ("", lambda x: np.sin(u.Quantity(x, "deg"))),
    "exp": ("", lambda x: np.exp(quantity(x) / u.Quantity(1.0, "km"))),
    "np.multiply": ("m", lambda x: np.multiply(x, Q)),
    "np.matmul": ("m", lambda x: np.matmul(x, Q.T)),
    "np.where": ("m", lambda x: np.where(ARRAY > 2.0, quantity(x), Q)),
    "np.where of all": ("m", lambda x: np.where(quantity(x) > u.Quantity(2.0, "m"), quantity(x), Q)),
    "np.maximum": ("m", lambda x: np.maximum(quantity(x), u.Quantity(2.0, "m"))),
    "np.concatenate": ("m", lambda x: np.concatenate([quantity(x), Q])),
    "np.stack": ("m", lambda x: np.stack([Q, quantity(x).to("km")])),
    "np.trapezoid": ("m*s", lambda x: np.trapezoid(quantity(x), dx=u.Quantity(0.5, "s"))),
    "np.interp": ("m", lambda x: np.interp(u.Quantity([0.5, 1.5], "s"), u.Quantity([0.0, 1.0, 2.0, 3.0], "s"), quantity(x)[0])),
    "np.clip": ("m", lambda x: np.clip(quantity(x), u.Quantity(1.5, "m"), u.Quantity(2.5, "m"))),
    "np.linalg.norm": ("m", lambda x: np.linalg.norm(quantity(x), axis=1)),
    "np.einsum": ("m**2", lambda x: np.einsum("ij,ij->i", quantity(x), Q)),
    "an index": ("m", lambda x: quantity(x)[0, 1:]),
    "a mask": ("m", lambda x: quantity(x)[ARRAY > 2.0]),
    "written into": ("m", written),
    "wraps": ("m", lambda x: wrapped(u.Quantity(x, "ms"))),
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", CALLS)
def test_gradients_flow_and_units_are_right(name: str, device: str) -> None:
    if device == "strict" and "dimensionless" in name and ("+" in name or "-" in name):
        pytest.skip("pint adds bools, which the standard does not have")
    unit, call = CALLS[name]
    made: list[Any] = []

    def function(x: Any) -> Any:
        made.append(call(x))
        return made[-1].magnitude

    check(function, [START], device)
    assert {str(q.units) for q in made} == {str(u.Quantity(1.0, unit).units)}


def test_values_are_those_with_numpy_arrays() -> None:
    for name, (_, call) in CALLS.items():
        if name not in ("written into", "wraps", "to_base_units"):
            found, expected = call(xp.asarray(START)), call(START)
            np.testing.assert_allclose(found.magnitude.numpy(), expected.m_as(found.units), rtol=1e-12, err_msg=name)


def test_a_power_of_a_tensor_is_a_tensor() -> None:
    check(lambda x: x ** u.Quantity(2.0, ""), [START])


@pytest.mark.parametrize("name", ["sin", "add", "matmul", "mean", "where", "maximum", "sum", "concat"])
def test_functions_of_xpgrad_drop_no_unit(name: str) -> None:
    """Quantities have every attribute of the Tensor that they hold, so that a function might take one for a Tensor."""
    q, x = quantity(xp.asarray(START)), xp.asarray(START)
    first = {"where": (q > u.Quantity(2.0, "m"), q, q), "concat": ([q, q],), "matmul": (q, x.T)}.get(name, (q, x))
    arguments = first if name not in ("sin", "mean", "sum") else (q,)
    with pytest.raises(TypeError, match=rf"`{name}` got pint\.Quantity"):
        getattr(xp, name)(*arguments)


def test_a_product_keeps_the_order_of_its_operands() -> None:
    """pint's reflected method exchanges them."""
    x, b = START[:, :3], SQUARE
    np.testing.assert_allclose((xp.asarray(x) @ u.Quantity(b, "m")).magnitude.numpy(), x @ b)
    np.testing.assert_allclose((u.Quantity(b, "m") @ xp.asarray(x)).magnitude.numpy(), b @ x)


def test_second_derivatives_have_units_outside() -> None:
    found = xp.func.hessian(lambda x: ((x * u.m) ** 2).sum().to("cm**2").magnitude)(xp.ones((2,)))
    np.testing.assert_allclose(found.numpy(), 2e4 * np.eye(2))


REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "units that do not fit": (lambda x: x + Q, "Cannot convert from 'meter' to 'dimensionless'"),
    "a function of xpgrad": (lambda x: xp.sin(quantity(x)), r"`sin` got pint\.Quantity.*`x\.magnitude`"),
    "a function of two operands": (lambda x: xp.add(x, Q), r"`add` got pint\.Quantity.*its operators"),
    "in place": (lambda x: operator.imul(x * 1.0, Q), "in-place multiply` got pint"),
    "written": (lambda x: (x * 1.0).__setitem__(0, Q[0]), r"`x\[key\] = value` got pint"),
    "a conversion in place": (lambda x: quantity(x).ito("km"), "a leaf Variable that requires grad"),
    "Tensor / unit": (lambda x: x / u.s, "unsupported operand"),
    "a list": (lambda x: u.Quantity([x[0, 0], x[0, 1]], "m"), "NumPy array"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_work_raises(name: str) -> None:
    function, message = REFUSED[name]
    with pytest.raises((TypeError, RuntimeError, pint.DimensionalityError), match=message):
        function(xp.tensor(START, requires_grad=True))
