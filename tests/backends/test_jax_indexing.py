"""Law: on JAX a random key reads, adds and writes as in NumPy, eager and traced; what is out of range is an error."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xpgrad as xp

jax = pytest.importorskip("jax", reason="JAX is not installed")
pytestmark = pytest.mark.usefixtures("x64")


def draw(rng: np.random.Generator) -> tuple[tuple[int, ...], tuple[Any, ...]]:
    """Return a random shape and a key for it of NumPy arrays, slices and integers."""
    shape = tuple(int(n) for n in rng.integers(1, 4, size=rng.integers(1, 4)))
    common = (1, 3) if rng.random() < 0.5 else (2,)
    key: list[Any] = []
    axis = 0
    mask = rng.random() < 0.3
    while axis < len(shape):
        kind = rng.choice(("array", "array", "slice", "integer", "new", "rest"))
        n = shape[axis]
        if kind == "rest":
            key.append(...)
            break
        if mask and kind == "array":
            width = int(rng.integers(1, len(shape) - axis + 1))
            key.append(rng.random(shape[axis : axis + width]) < 0.7)
            mask, axis = False, axis + width
            if not any(isinstance(k, np.ndarray) and k.dtype != bool for k in key):
                key.append(...)
                break
            continue
        if kind == "array":
            key.append(rng.integers(-n, n, size=common).astype(rng.choice(("int8", "int32", "int64"))))
        elif kind == "slice":
            key.append(slice(int(rng.integers(-n, n)), None, int(rng.choice((1, 2, -1)))))
        else:
            key.append(int(rng.integers(-n, n)) if kind == "integer" else None)
        axis += kind != "new"
    return shape, tuple(key)


def on_jax(key: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(xp.asarray(k, device="jax") if isinstance(k, np.ndarray) else k for k in key)


def results(x: Any, key: Any, weight: Any, new: Any) -> tuple[Any, Any, Any, Any]:
    """Return the values read, their gradient, the array after a write, and the gradients of the old and the new values."""
    part = x[key]
    (added,) = xp.autograd.grad(xp.sum(part * weight), x)
    y = x * 1.0
    y[key] = new
    kept, written = xp.autograd.grad(xp.sum(y * y), (x, new))
    return part.detach(), added, y.detach(), (kept, written)


@pytest.mark.parametrize("block", range(4))
def test_random_keys(block: int) -> None:
    tried = 0
    for seed in range(block * 8, (block + 1) * 8):
        rng = np.random.default_rng(seed)
        shape, key = draw(rng)
        host = rng.standard_normal(shape)
        try:
            expected = host[key]
        except IndexError:  # a mask and arrays of another length
            continue
        tried += 1
        weight, new = rng.standard_normal(expected.shape), rng.standard_normal(expected.shape)
        added = np.zeros(shape)
        np.add.at(added, key, weight)
        written = host.copy()
        written[key] = new
        order = np.full(shape, -1)  # the number of the value at each place: the last one written
        order[key] = np.arange(new.size).reshape(new.shape)
        to_new = np.where(order[key] == np.arange(new.size).reshape(new.shape), 2.0 * new, 0.0)
        leaves = [xp.tensor(v, requires_grad=True, device="jax") for v in (host, new)]
        constant = xp.tensor(weight, device="jax")
        found = [results(leaves[0], on_jax(key), constant, leaves[1])]
        if not any(isinstance(k, np.ndarray) and k.dtype == bool for k in key):
            arrays = [k for k in key if isinstance(k, np.ndarray)]

            def traced(x: Any, new: Any, arrays: list[Any], key: Any = key, constant: Any = constant) -> Any:
                rest = iter(arrays)
                return results(x, tuple(next(rest) if isinstance(k, np.ndarray) else k for k in key), constant, new)

            if seed % 8 == 0:  # compilation takes most of the time
                found.append(jax.jit(traced)(*leaves, [xp.asarray(k, device="jax") for k in arrays]))
        for part, gradient, after, (kept, of_new) in found:
            for a, b in (
                (part, expected),
                (gradient, added),
                (after, written),
                (kept, np.where(order < 0, 2.0 * host, 0.0)),
                (of_new, to_new),
            ):
                np.testing.assert_allclose(a.numpy(), b, rtol=1e-12, atol=1e-12, err_msg=f"seed {seed}, shape {shape}, key {key}")
    assert tried >= 5


OUT_OF_RANGE: list[tuple[tuple[int, ...], Any]] = [
    ((3,), np.asarray([0, 3])), ((3,), np.asarray([-4, 0])), ((3, 2), (0, np.asarray([2]))), ((3, 2), (3, np.asarray([0]))),
    ((3, 2), (np.asarray([True, False]),)), ((3,), (np.asarray([0]), 0)), ((3, 2), (np.asarray([0]), slice(None), np.asarray([0]))),
    ((3,), np.asarray([3], dtype="uint8")),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "key"), OUT_OF_RANGE, ids=repr)
def test_what_is_out_of_range_is_an_error(shape: tuple[int, ...], key: Any) -> None:
    x = xp.ones(shape, dtype=xp.float64, device="jax")
    key = on_jax(key if isinstance(key, tuple) else (key,))
    with pytest.raises(IndexError, match=r"out of range|too many|does not fit"):
        x[key]
    with pytest.raises(IndexError, match=r"out of range|too many|does not fit"):
        x[key] = 0.0


def test_small_indices_of_long_axes() -> None:
    """A negative int8 index counts from the end of an axis that is longer than int8 can express."""
    x = xp.tensor(np.arange(300.0), requires_grad=True, device="jax")
    part = x[xp.asarray(np.asarray([-1, 5], dtype="int8"), device="jax")]
    assert part.tolist() == [299.0, 5.0]
    xp.sum(part).backward()
    assert x.grad is not None
    assert [i for i, g in enumerate(x.grad.tolist()) if g] == [5, 299]
    along = xp.take_along_axis(x, xp.asarray(np.asarray([-1, 5], dtype="int8"), device="jax"))
    assert along.tolist() == [299.0, 5.0]


def _writes(key: Any, value: Any) -> Any:
    def function(x: Any) -> Any:
        x = x * 1.0
        x[key()] = value() if callable(value) else value
        return x

    return function


def _constant(values: Any) -> Any:
    """Return a constant (a key or a value) made inside the transform."""
    return xp.asarray(np.asarray(values), device="jax")


CONSTANTS = {
    "integers": lambda x: x[_constant([0, 1, 1])],
    "a mask": lambda x: x[_constant([True, False, True])],
    "positions of a mask": lambda x: x[xp.nonzero(_constant([True, False, True]))],
    "write at integers": _writes(lambda: _constant([0, 1, 1]), lambda: _constant([4.0, 5.0, 6.0])),
    "write at a mask": _writes(lambda: _constant([True, False, True]), lambda: _constant([4.0, 5.0])),
    "write one number at a mask": _writes(lambda: _constant([True, False, True]), 4.0),
    "repeat": lambda x: xp.repeat(x, _constant([1, 2, 0])),
    "a value": lambda x: x * _constant(3.0).item(),
}


@pytest.mark.parametrize("name", list(CONSTANTS))
def test_constants_have_values_inside_transforms(name: str) -> None:
    """A key computed from constants has known values inside a transform, so it is checked and the result has a shape."""
    function = CONSTANTS[name]
    host = np.asarray([1.5, 2.5, 3.5])
    expected = function(_constant(host))

    def total(raw: Any) -> Any:
        leaf = xp.asarray(raw)
        leaf.requires_grad_()
        out = function(leaf)
        return out.detach().array, xp.autograd.grad(xp.sum(out * out), leaf)[0].array

    eager = total(jax.numpy.asarray(host))
    for found in (eager, jax.jit(total)(host), [v[0] for v in jax.vmap(total)(host[None])]):
        np.testing.assert_allclose(np.asarray(found[0]), expected.numpy())
        np.testing.assert_allclose(np.asarray(found[1]), np.asarray(eager[1]))
    through = jax.grad(lambda raw: xp.sum(function(xp.asarray(raw)) ** 2).array)(jax.numpy.asarray(host))
    np.testing.assert_allclose(np.asarray(through), np.asarray(eager[1]))


@pytest.mark.parametrize("transform", [jax.jit, jax.vmap, lambda f: jax.grad(lambda x: xp.sum(f(x)).array)])
@pytest.mark.parametrize("function", [
    lambda x: x[..., _constant([3])], _writes(lambda: (..., _constant([-4])), 1.0), lambda x: xp.take(x, _constant([5]), axis=-1),
    lambda x: xp.take_along_axis(x, _constant([5]) if x.ndim == 1 else _constant([[5]]), axis=-1),
])  # fmt: skip
def test_constants_out_of_range_are_errors_inside_transforms(function: Any, transform: Any) -> None:
    with pytest.raises(IndexError, match="out of range"):
        transform(function)(_constant([[1.0, 2.0, 3.0]]))
