"""Law: if a length is unknown, a function gives NumPy's results, forward and backward, or its error says how to make the length known."""

from __future__ import annotations

from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest

import xpgrad as xp
from xpgrad.errors import CapabilityError

RAW = np.random.default_rng(0).random((6, 4)) + 0.5
OTHER = RAW[::-1].copy() * 2

# In these, x and y have shape (unknown, 4), v and w (unknown,), all in three chunks; x, v and the scalar b depend on the leaf `x0`. k has
# length 4, s 3.

#: Expressions that are computed and differentiated.
WORKS = (
    "x + y", "x * k", "2 * v", "v + xp.sum(v)", "x * v[:, None]", "xp.where(x > 1, x, y)", "xp.maximum(x, y)", "xp.clip(x, 0.7, 1.2)",
    "xp.clip(x, y, None)", "xp.astype(x, 'float32')", "x.clone()", "-xp.sin(x) / y", "xp.sum(x)", "xp.sum(x, axis=0)",
    "xp.sum(v, keepdims=True)", "xp.max(v)", "xp.min(x, axis=0)", "xp.max(x, axis=1)", "xp.mean(x, axis=1)", "xp.var(x, axis=1)",
    "xp.std(x, axis=1)", "xp.prod(x, axis=1)", "xp.sort(x, axis=1)", "xp.cumulative_sum(x, axis=1)", "xp.concat([x, y], axis=1)",
    "xp.stack([x, y])", "xp.stack([v, w], axis=1)", "xp.roll(x, 1, axis=1)", "xp.flip(x, axis=1)", "xp.diff(x, axis=1)", "x[:, 1]",
    "x[:, ::-1]", "x[:, 1:3]", "v[None]", "v[v.detach() > 1]", "xp.unstack(x, axis=1)", "xp.expand_dims(v, axis=0)",
    "xp.squeeze(v[None], axis=0)", "xp.squeeze(x[:, :1], axis=1)", "x.mT", "xp.moveaxis(x, 0, 1)", "x @ k",
    "x @ xp.stack([k, k], axis=1)", "x @ x.mT", "xp.vecdot(x, y)", "xp.fft.fft(x, axis=1)", "xp.real(xp.fft.rfft(x, axis=-1))",
    "x.to_device('numpy')", "xp.sum(x + b, axis=1)", "xp.mean(x * b + k, axis=1)", "x.softmax(-1)", "v.logsumexp(0)", "xp.max(x)",
)  # fmt: skip

#: Expressions that are computed; their gradients, if they have any, raise an error.
FORWARD = (
    "xp.mean(v)", "xp.mean(x, axis=0)", "xp.var(x)", "xp.std(x, axis=0)", "xp.std(v)", "xp.prod(x, axis=0)", "xp.concat([v, w])",
    "xp.cumulative_sum(v)", "xp.cumulative_prod(x, axis=1)", "xp.take_along_axis(x, xp.argsort(x, axis=1), axis=1)",
    "xp.argmax(x, axis=1)", "xp.argsort(x, axis=1)", "xp.searchsorted(s, x)", "xp.searchsorted(s, v)", "xp.any(v > 1)",
    "xp.count_nonzero(v)", "xp.isclose(x, y)", "xp.allclose(x, y)", "x < y",
    "xp.cumulative_prod(x.detach(), axis=0)", "xp.var(x, axis=0, correction=1, keepdims=True)", "xp.var(x * 1j)",
)  # fmt: skip

#: Expressions that raise an error, because they need the length, or positions along the axis.
REFUSED = (
    "xp.zeros_like(x)", "xp.ones_like(v)", "xp.full_like(x, 2.0)", "xp.empty_like(x)", "len(v)", "range(v.shape[0])", "v.shape[0] * 2",
    "v.shape[0] > 3", "x.shape[0] == y.shape[0]", "xp.reshape(v, (-1,))", "xp.reshape(v, (-1, 1))", "xp.reshape(x, (-1, 2, 2))",
    "xp.reshape(x, x.shape)", "v[0]", "v[-1]", "v[1:]", "v[::-1]", "v[i]", "x[:, i]", "xp.take(v, i)", "xp.flip(v)", "xp.roll(v, 1)",
    "xp.sort(v)", "xp.argsort(v)", "xp.argmax(v)", "xp.argmin(x)", "xp.diff(v)", "xp.nonzero(v)", "xp.unique_values(x.detach())",
    "xp.unique_all(x.detach())", "xp.isin(x, y[:, 0])", "xp.pad(x, 1)", "xp.tile(v, (2,))", "xp.repeat(v, 2)", "xp.unstack(x)",
    "xp.meshgrid(v, w)", "v @ w", "x.mT @ y", "xp.tensordot(x, y, axes=2)", "xp.vecdot(v, w)", "xp.linalg.outer(v, w)",
    "xp.einsum('ij,j->i', x, k)", "xp.tril(x)", "xp.broadcast_to(x[None], (2, *x.shape))", "xp.broadcast_arrays(x, k)",
    "xp.concat([x, y], axis=None)", "xp.linalg.svdvals(x)", "xp.linalg.diagonal(x)", "xp.linalg.trace(x)", "xp.linalg.vector_norm(x)",
    "xp.linalg.matrix_rank(x)", "xp.fft.fft(x, axis=0)", "xp.fft.fftshift(x)", "x.__setitem__(0, 0.0)",
    "x.__setitem__((slice(None), 0), 0.0)", "x.__setitem__(i, 0.0)",
    "xp.concat([v[:, None], x0.detach()[x0.detach() > 9][:, None]], axis=1)",
)  # fmt: skip

#: Writes to `x`, which has a history.
WRITES = ("x += y", "x *= 2", "x.zero_()", "x.fill_(2.0)", "x.copy_(y)", "x[...] = y", "x[x.detach()[:, 0] > 1] = 0.0")


def scope(device: str, columns: int = 3, gap: bool = False) -> dict[str, Any]:
    """Return the names that the expressions use; on dask, the lengths that result from masks are unknown.

    `columns` is the number of columns of a chunk. With `gap`, the chunk in the middle has no elements.
    """

    def made(array: Any, chunks: Any = -1) -> Any:
        return xp.asarray(array if device == "numpy" else da.from_array(array, chunks=chunks))

    leaf = made(RAW, (2, columns)).requires_grad_()
    mask = leaf.detach()[:, 0] > made(np.asarray([0.7, 0.7, 9.0, 9.0, 0.7, 0.7]) if gap else np.full(6, 0.7), 2)
    x, y = leaf[mask], made(OTHER, (2, columns))[mask]
    assert x.shape[0] != 6
    return {
        "xp": xp, "x0": leaf, "x": x, "y": y, "v": x[:, 0], "w": y[:, 1], "k": made(np.array([1.0, 2.0, 3.0, 4.0])),
        "b": xp.sum(leaf), "s": made(np.array([0.7, 1.0, 1.3])), "i": made(np.array([1, 0, 1])),
    }  # fmt: skip


def leaves(result: Any) -> list[Any]:
    return [leaf for part in result for leaf in leaves(part)] if isinstance(result, (tuple, list)) else [result]


def values(result: Any) -> list[Any]:
    return [part.detach().numpy() if isinstance(part, xp.Tensor) else part for part in leaves(result)]


def gradient(result: Any, names: dict[str, Any]) -> Any:
    """Return the gradient of the sum of squares of all results that have a history."""
    for part in leaves(result):
        if isinstance(part, xp.Tensor) and part.requires_grad:
            xp.sum(xp.real(part) ** 2).backward()
    return names["x0"].grad


def compare(expected: Any, found: Any, what: str) -> None:
    assert len(found) == len(expected)
    for e, f in zip(expected, found):
        np.testing.assert_allclose(f, e, rtol=1e-6, atol=1e-9, err_msg=what)


@pytest.mark.parametrize(("columns", "gap"), [(3, False), (4, True)])
@pytest.mark.parametrize("text", [*WORKS, *FORWARD])
def test_what_can_be_computed_is_numpys(text: str, columns: int, gap: bool) -> None:
    results, gradients = [], []
    for device in ("numpy", "dask"):
        names = scope(device, columns, gap)
        with dask.config.set(scheduler="synchronous"):
            result = eval(text, names)
            results.append(values(result))
            differentiable = any(isinstance(part, xp.Tensor) and part.requires_grad for part in leaves(result))
            if device == "dask" and text in FORWARD and differentiable:
                with pytest.raises(CapabilityError, match=r"compute_chunk_sizes\(\)"):
                    gradient(result, names)
                assert names["x0"].grad is None
            elif text in WORKS:
                gradients.append(gradient(result, names).numpy())
    compare(*results, text)
    if gradients:
        compare([gradients[0]], [gradients[1]], f"gradient of {text}")


@pytest.mark.parametrize("text", REFUSED)
def test_what_needs_the_length_is_refused_and_works_when_it_is_known(text: str) -> None:
    with pytest.raises(CapabilityError, match=r"is not known before .* call `x.array.compute_chunk_sizes\(\)`"):
        eval(text, scope("dask"))
    if "> 9" in text or "empty" in text:
        return
    results = []
    for device in ("numpy", "dask"):
        names = scope(device)
        with dask.config.set(scheduler="synchronous"):
            if device == "dask":
                for name in "xyvw":
                    names[name].array.compute_chunk_sizes()
            result = eval(text, names)
            written = "__setitem__" in text
            results.append([*values(names["x"] if written else result), gradient(names["x"] if written else result, names)])
    if results[0][-1] is not None:
        results = [[*r[:-1], r[-1].numpy()] for r in results]
    else:
        results = [r[:-1] for r in results]
    if "unique" not in text:  # the order depends on the library
        compare(*results, text)


@pytest.mark.parametrize("text", WRITES)
def test_writes_that_need_no_length(text: str) -> None:
    results = []
    for device in ("numpy", "dask"):
        names = scope(device)
        with dask.config.set(scheduler="synchronous"):
            exec(text, names)  # noqa: S102 (our own text)
            xp.sum(names["x"] * names["x"]).backward()
            results.append([names["x"].detach().numpy(), names["x0"].grad.numpy()])
    compare(*results, text)


@pytest.mark.parametrize(("root", "seed"), [("x", "y"), ("x * y", "x.detach()"), ("v", "w"), ("xp.sum(xp.sin(x), axis=1)", "w * w")])
def test_a_root_of_unknown_length_takes_a_gradient_in_its_chunks(root: str, seed: str) -> None:
    results = []
    for device in ("numpy", "dask"):
        names = scope(device)
        with dask.config.set(scheduler="synchronous"):
            (g,) = xp.autograd.grad(eval(root, names), names["x0"], eval(seed, names), create_graph=True)
            results.append([g.detach().numpy()])
            if g.requires_grad:
                (h,) = xp.autograd.grad(xp.sum(g * g), names["x0"])
                results[-1].append(h.numpy())
    compare(*results, root)


def test_a_gradient_of_another_length_does_not_fit() -> None:
    """A length that cannot be checked before is checked when it is computed: a gradient of the wrong length is never used."""
    names = scope("dask")
    with pytest.raises(RuntimeError, match="Mismatch in shape"):
        names["x"].backward(xp.ones((5, 4), device="dask"))
    z = names["x0"].detach()
    names["x"].backward(z[z[:, 0] > 1.2] * 2.0)
    with pytest.raises(ValueError, match="a mask picks"):
        names["x0"].grad.numpy()


def test_shapes_show_what_is_not_known() -> None:
    x = scope("dask")["x"]
    assert repr(x.shape) == "(nan, 4)"
    assert np.isnan(x.shape[0])
    assert np.isnan(x.size)
    assert (x * 2).shape == x.shape
    assert x.shape != (5, 4)
    assert x.ndim == 2


@pytest.mark.parametrize("function", [lambda x, z: xp.concat([x, z], axis=1), lambda x, z: xp.stack([z, x])])
def test_unknown_lengths_in_other_chunks_are_not_joined(function: Any) -> None:
    """Dask would combine one chunk with each of the others, and fail when it computes."""
    z = xp.asarray(da.from_array(OTHER, chunks=(6, 4)))
    with pytest.raises(CapabilityError, match="in different chunks"):
        function(scope("dask")["x"], z[z[:, 0] > 1.5])


@pytest.mark.parametrize("name", ["unique_values", "unique_all", "unique_counts", "unique_inverse"])
def test_distinct_values_of_a_number_that_is_not_known_are_not_differentiated(name: str) -> None:
    x = xp.tensor([3.0, 1.0, 3.0], device="dask", requires_grad=True)
    with pytest.raises(CapabilityError, match=f"{name} of a Tensor that is differentiated"):
        getattr(xp, name)(x)
    assert not xp.unique_values(x.detach()).requires_grad


def test_equal_values_have_no_deviation() -> None:
    raw = np.full((6, 2), 0.1)
    x = xp.asarray(da.from_array(raw, chunks=(1, 2)))
    assert xp.std(x[x[:, 0] > 0], axis=0).tolist() == [0.0, 0.0]


def test_ranks_of_matrices() -> None:
    stack = np.stack([np.eye(3), np.ones((3, 3)), np.diag([1.0, 1e-3, 0.0])])
    x = xp.asarray(da.from_array(stack, chunks=(2, 3, 2)))
    assert xp.linalg.matrix_rank(x).tolist() == [3, 1, 2]
    assert xp.linalg.matrix_rank(x, rtol=1e-2).tolist() == [3, 1, 1]
    assert xp.linalg.matrix_rank(x, rtol=xp.asarray([2.0, 0.1, 1e-6], device="dask")).tolist() == [0, 1, 2]
