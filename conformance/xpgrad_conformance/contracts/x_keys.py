"""Group X: keys that differ between the elements of a batch, and writes whose operands overlap the memory that is written to.

The contracts that go through these tables are in `x_transforms` (DER-23) and `x_methods` (DER-12).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xpgrad_conformance.contracts.x_functions import as_tensor, close, direction, exact

#: Keys for an array of shape (3, 4, 2), made of two lists of two indices (below 3 and below 2) and one index below 3.
KEYS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "i": lambda i, j, k: i,
    "(i,)": lambda i, j, k: (i,),
    "i, 1": lambda i, j, k: (i, 1),
    "1, i": lambda i, j, k: (1, i),
    "i, -1:": lambda i, j, k: (i, slice(-1, None)),
    "i, ::-2": lambda i, j, k: (i, slice(None, None, 2)),
    ":, i": lambda i, j, k: (slice(None), i),
    "1:, i": lambda i, j, k: (slice(1, None), i),
    "..., j": lambda i, j, k: (..., j),
    "i, ..., j": lambda i, j, k: (i, ..., j),
    "i, :, j": lambda i, j, k: (i, slice(None), j),
    "i, i": lambda i, j, k: (i, i),
    "i, i, j": lambda i, j, k: (i, i, j),
    "i, None": lambda i, j, k: (i, None),
    "None, i": lambda i, j, k: (None, i),
    "i, None, j": lambda i, j, k: (i, None, j),
    "i, None, i, j": lambda i, j, k: (i, None, i, j),
    "0, :, j": lambda i, j, k: (0, slice(None), j),
    "i[:, None], j": lambda i, j, k: (i[:, None], j),
    "i, 2:0": lambda i, j, k: (i, slice(2, 0)),
    "k": lambda i, j, k: k,
    "k, 1": lambda i, j, k: (k, 1),
    ":, k": lambda i, j, k: (slice(None), k),
    "k, i": lambda i, j, k: (k, i),
}
#: Keys with the single index k, which PyTorch does not support in a batch because it needs the index's value.
ONE = frozenset(("k", "k, 1", ":, k", "k, i"))
#: Keys by which PyTorch 2.13 writes correctly in batches; it mixes up the axes of others.
WRITTEN_BY_PYTORCH = frozenset(("i", "(i,)", "i, 1", "i, i", "i, i, j"))


def check_keys_in_batches(lib: Any) -> None:
    """Check that keys read and write in a batch as in a loop, with arrays, keys and values that differ between elements or are shared."""
    vmap = lib.module("func").vmap
    few = lib.capabilities["lazy"] or lib.capabilities["jit"]
    x = direction(np.zeros((3, 3, 4, 2)), 1.0)
    # No index occurs twice in one element, because the order of two writes to one position is unspecified.
    i, j, k = np.asarray([[2, 0], [-2, -1], [0, 1]]), np.asarray([[1, 0], [0, 1], [-1, 0]]), np.asarray([2, 0, -1])
    masks = {"all": (0, 0), "the keys": (None, 0), "the arrays": (0, None)}
    for at, (name, key) in enumerate(KEYS.items()):
        if (few and at % 6 != 2) or (lib.oracle and (name in ONE or name in ("i, 2:0", "0, :, j"))):
            continue
        for label, (of_x, of_keys) in masks.items():
            arrays = [x if of_x is not None else x[0], *(a if of_keys is not None else a[0] for a in (i, j, k))]
            with lib.case((name, label)):
                given = [lib.indices(a) for a in arrays[1:]]

                def each(b: int, arrays: Any = arrays, of_x: Any = of_x, of_keys: Any = of_keys) -> list[Any]:
                    return [a if d is None else a[b] for a, d in zip(arrays, (of_x, of_keys, of_keys, of_keys), strict=True)]

                rows = [each(b) for b in range(3)]
                t = lib.tensor(arrays[0])
                found = vmap(lambda v, *keys, key=key: v[key(*keys)], in_dims=(of_x, *(of_keys,) * 3))(t, *given)
                expected = np.stack([row[0][key(*row[1:])] for row in rows])
                close(lib, found, expected, exact(lib))
                if expected.size:
                    seed = direction(np.zeros(expected.shape), 2.0)
                    (g,) = lib.grad(found, t, as_tensor(lib, seed, False))
                    close(lib, g, grad_of_read(arrays[0].shape, of_x, rows, key, seed), exact(lib))
                if of_x is None or (lib.oracle and name not in WRITTEN_BY_PYTORCH):
                    continue
                v = direction(np.zeros(expected.shape), 3.0)
                t, w = lib.tensor(arrays[0]), lib.tensor(v)

                def written(y: Any, value: Any, *keys: Any, key: Any = key) -> Any:
                    y = y * 1
                    y[key(*keys)] = value
                    return y

                found = vmap(written, in_dims=(0, 0, *(of_keys,) * 3))(t, w, *given)
                wanted, untouched = [row[0].copy() for row in rows], [np.ones(row[0].shape) for row in rows]
                for b, row in enumerate(rows):
                    wanted[b][key(*row[1:])] = v[b]
                    untouched[b][key(*row[1:])] = 0
                close(lib, found, np.stack(wanted), exact(lib))
                seed = direction(np.zeros(x.shape), 4.0)
                gt, gw = lib.grad(found, [t, w], as_tensor(lib, seed, False))
                close(lib, gt, seed * np.stack(untouched), exact(lib))
                close(lib, gw, np.stack([seed[b][key(*row[1:])] for b, row in enumerate(rows)]), exact(lib))


def grad_of_read(shape: Any, of_x: Any, rows: Any, key: Any, seed: Any) -> Any:
    """Return the gradient of a read by key."""
    found = np.zeros(shape)
    for b, row in enumerate(rows):
        np.add.at(found if of_x is None else found[b], key(*row[1:]), seed[b])
    return found


#: Writes of one part of a matrix into another, and the same in NumPy with copies.
OVERLAPS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    **{f"y[1:] {name} y[:-1]": (lambda y, name=name: getattr(y[1:], f"__i{name}__")(y[:-1]),
                                lambda y, name=name: getattr(y[1:], f"__i{name}__")(y[:-1].copy()))
       for name in ("add", "sub", "mul", "truediv", "pow")},
    **{f"y {name} y.T": (lambda y, name=name: getattr(y, f"__i{name}__")(y.T), lambda y, name=name: getattr(y, f"__i{name}__")(y.T.copy()))
       for name in ("add", "mul")},
    **{f"y {name} y[0]": (lambda y, name=name: getattr(y, f"__i{name}__")(y[0]),
                          lambda y, name=name: getattr(y, f"__i{name}__")(y[0].copy()))
       for name in ("add", "mul", "truediv")},
    **{f"y {name} y": (lambda y, name=name: getattr(y, f"__i{name}__")(y), lambda y, name=name: getattr(y, f"__i{name}__")(y.copy()))
       for name in ("add", "mul", "sub", "truediv")},
    "y[:, 1:] = y[:, :-1]": (lambda y: y.__setitem__((slice(None), slice(1, None)), y[:, :-1]),
                             lambda y: y.__setitem__((slice(None), slice(1, None)), y[:, :-1].copy())),
    "y[...] = y.T": (lambda y: y.__setitem__(..., y.T), lambda y: y.__setitem__(..., y.T.copy())),
    "copy_(y.T)": (lambda y: y.copy_(y.T), lambda y: y.__setitem__(..., y.T.copy())),
    "y[0] = y.T[1]": (lambda y: y.__setitem__(0, y.T[1]), lambda y: y.__setitem__(0, y.T[1].copy())),
    "fill_(y[0, 1])": (lambda y: y.fill_(y[0, 1]), lambda y: y.fill(y[0, 1])),
}  # fmt: skip


def check_overlapping_writes(lib: Any) -> None:
    """Check that a write reads everything before it writes, with and without recording or a history."""
    if lib.oracle:  # PyTorch refuses most of them
        return
    m = np.cos(np.arange(9.0)).reshape(3, 3) + 1.5
    for name, (ours, theirs) in OVERLAPS.items():
        expected = m.copy()
        theirs(expected)
        with lib.case(name):
            for start in (lambda: lib.constant(m), lambda: lib.tensor(m) * 1, lambda: lib.constant(np.stack([m, m]))[1]):
                y = start()
                ours(y)
                close(lib, y, expected, exact(lib))
                with lib.ns.no_grad():
                    y = start()
                    ours(y)
                close(lib, y, expected, exact(lib))
            # Through the graph: the gradient along a direction equals the difference of NumPy's results.
            x, seed, d = lib.tensor(m), direction(np.zeros((3, 3)), 2.0), direction(np.zeros((3, 3)), 5.0)
            y = x * 1
            ours(y)
            (g,) = lib.grad(y, x, as_tensor(lib, seed, False))
            ends = []
            for step in (1e-5, -1e-5):
                z = m + step * d
                theirs(z)
                ends.append(z)
            rate = float(np.sum(seed * (ends[0] - ends[1]))) / 2e-5
            close(lib, float(np.sum(lib.value(g) * d)), rate, 5e-3 if lib.real == "float32" else 1e-6, 10.0)
