"""Group N: batches of gradient outputs, and the vectorising map."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from hypothesis import strategies as st

from xpgrad_conformance.contract import contract
from xpgrad_conformance.strategies import seeds, shapes, size

EYE = np.eye(2)


def batched_grad(lib: Any, outputs: Any, inputs: Any, gradients: Any, **options: Any) -> Any:
    """Call `autograd.grad` with a batch of gradients."""
    return lib.grad(outputs, inputs, gradients, is_grads_batched=True, **options)


def loop(lib: Any, outputs: Any, inputs: Any, gradients: Any) -> list[Any]:
    """Return the gradients of `batched`, computed one by one and stacked."""
    rows = []
    for b in range(gradients[0].shape[0]):
        found = lib.grad(outputs, inputs, [lib.constant(lib.value(g)[b]) for g in gradients], retain_graph=True)
        rows.append([lib.value(g) for g in found])
    return [np.stack(column) for column in zip(*rows, strict=True)]


@contract("BAT-01", draw={"shape": shapes(), "batch": st.integers(1, 4), "seed": seeds})
def stacked_products(lib: Any, shape: Any, batch: int, seed: int) -> None:
    x, w = lib.random(shape, seed), lib.random((), seed + 1)
    y, total = lib.xp.sin(x * x) * w, lib.xp.sum(x * w)
    v, u = lib.random((batch, *shape), seed + 2, rg=False), lib.random((batch,), seed + 3, rg=False)
    found = batched_grad(lib, [y, total], [x, w], [v, u], retain_graph=True)
    assert type(found) is tuple
    assert [tuple(g.shape) for g in found] == [(batch, *shape), (batch,)]
    expected = loop(lib, [y, total], [x, w], [v, u])
    for g, e in zip(found, expected, strict=True):
        lib.equal(g, e)
    # A batch of the rows of the identity gives the Jacobian.
    n = size(shape)
    eye = np.eye(n).reshape(n, *shape)
    (jacobian,) = batched_grad(lib, y, x, lib.constant(eye))
    slope = (2 * lib.value(x) * np.cos(lib.value(x) ** 2) * lib.value(w)).reshape(n)
    lib.equal(jacobian, np.diag(slope).reshape(n, *shape))
    assert x.grad is None
    assert w.grad is None
    x = lib.tensor([1.0, 2.0])
    named = batched_grad(lib, x * x, {"x": x}, lib.constant(EYE))
    assert list(named) == ["x"]
    lib.equal(named["x"], [[2.0, 0.0], [0.0, 4.0]])
    # From the edge of a leaf, the gradients are those that are given.
    lib.equal(batched_grad(lib, lib.graph.get_gradient_edge(x), x, lib.constant([[3.0, 4.0]]))[0], [[3.0, 4.0]])
    with lib.raises(RuntimeError, "does not require grad"):
        batched_grad(lib, x.detach() * 2, x, lib.constant(EYE))
    with lib.raises(RuntimeError):
        batched_grad(lib, x * x, x.detach(), lib.constant(EYE))
    # With tangents, in inference mode and with anomaly detection.
    fw = lib.module("autograd.forward_ad")
    with fw.dual_level():
        d = fw.make_dual(x, lib.constant([3.0, 4.0]))
        (g,) = batched_grad(lib, d * d * d, x, lib.constant(EYE))
        lib.equal(fw.unpack_dual(g).primal, np.diag([3.0, 12.0]))
        lib.equal(fw.unpack_dual(g).tangent, np.diag([18.0, 48.0]))
    y = x * x
    with lib.ns.inference_mode():
        (g,) = batched_grad(lib, y, x, lib.constant(EYE))
    assert g.is_inference()
    lib.equal(g, np.diag([2.0, 4.0]))
    if not lib.oracle and not lib.capabilities["lazy"]:  # PyTorch cannot look for nan in a batch
        x = lib.tensor([0.0, 4.0])
        with lib.module("autograd.anomaly_mode").set_detect_anomaly(True):
            y = lib.xp.sqrt(x) * 0.0
            with warnings.catch_warnings(), np.errstate(all="ignore"), lib.raises(RuntimeError, "SqrtBackward0", "nan"):
                warnings.simplefilter("ignore")
                batched_grad(lib, y, x, lib.constant(EYE))


@contract("BAT-02", draw={"pair": st.tuples(shapes(empty=True), shapes(1, empty=True)).filter(lambda p: p[0] != p[1][1:] and p[1][0] > 0)})
def the_other_axes_match_exactly(lib: Any, pair: Any) -> None:
    phrase = "If `is_grads_batched=True`, we interpret the first dimension"
    for root, seed in [pair, ((2,), (2,)), ((2,), (2, 3)), ((2,), (3, 1)), ((2, 1), (4, 2)), ((), (2, 1))]:
        x = lib.tensor(np.ones(root))
        with lib.case((root, seed)), lib.raises(RuntimeError, phrase):
            batched_grad(lib, x * x, x, lib.ones(*seed))
    x = lib.tensor([1.0, 2.0])
    for seed in [(), (0, 2)]:
        with lib.case(seed), lib.raises(IndexError):
            batched_grad(lib, x * x, x, lib.ones(*seed))
    with lib.raises(IndexError):
        batched_grad(lib, lib.xp.sum(x), x, lib.ones())


@contract("BAT-03", draw={"pair": st.tuples(st.integers(1, 4), st.integers(1, 4)).filter(lambda p: p[0] != p[1])})
def one_batch_size(lib: Any, pair: Any) -> None:
    for m, n in [pair, (1, 2)]:
        x = lib.tensor([1.0, 2.0])
        y, z = x * x, lib.xp.sum(x)
        with lib.case((m, n)), lib.raises(ValueError, "same size in the mapped dimension", f"got sizes [{m}, {n}]"):
            batched_grad(lib, [y, z], x, [lib.ones(m, 2), lib.ones(n)])


@contract("BAT-04")
def none_is_no_batch(lib: Any) -> None:
    x = lib.tensor([1.0, 2.0])
    with lib.raises(ValueError, "of dimensionality 0"):
        batched_grad(lib, lib.xp.sum(x), x, None)
    with lib.raises(ValueError, "of dimensionality 0"):
        batched_grad(lib, [x * x, lib.xp.sum(x)], x, [lib.constant(EYE), None])


@contract("BAT-05", draw={"shape": shapes(), "batch": st.integers(1, 4)})
def unused_inputs(lib: Any, shape: Any, batch: int) -> None:
    x, u = lib.tensor([1.0, 2.0]), lib.tensor(np.ones(shape))
    seed = lib.ones(batch, 2)
    with lib.raises(RuntimeError, "The differentiated Tensor at index 1 appears to not have been used"):
        batched_grad(lib, x * x, [x, u], seed)
    found = batched_grad(lib, x * x, [x, u], seed, allow_unused=True)
    assert found[1] is None
    lib.equal(found[0], [[2.0, 4.0]] * batch)
    found = batched_grad(lib, x * x, [x, u], seed, materialize_grads=True)
    lib.equal(found[0], [[2.0, 4.0]] * batch)
    lib.equal(found[1], np.zeros((batch, *shape)))
    for create in (False, True):
        zero = batched_grad(lib, x * x, [x, u], seed, materialize_grads=True, create_graph=create)[1]
        assert zero.requires_grad == create


@contract("BAT-06", draw={"batch": st.integers(1, 3), "seed": seeds})
def differentiable_again(lib: Any, batch: int, seed: int) -> None:
    x, v = lib.random((2,), seed), lib.random((batch, 2), seed + 1)
    a, b = lib.value(x), lib.value(v)
    (j,) = batched_grad(lib, x * x * x, x, v, create_graph=True)
    assert j.requires_grad
    lib.equal(j, 3 * a * a * b)
    gx, gv = lib.grad(lib.xp.sum(j), [x, v], create_graph=True)
    lib.equal(gx, 6 * a * b.sum(axis=0))
    lib.equal(gv, np.broadcast_to(3 * a * a, b.shape))
    # Compute a Hessian row by row, and differentiate it.
    (g,) = lib.grad(lib.xp.sum(x * x * x * x), x, create_graph=True)
    (hessian,) = batched_grad(lib, g, x, lib.constant(EYE), create_graph=True)
    lib.equal(hessian, np.diag(12 * a * a))
    lib.equal(lib.grad(lib.xp.sum(hessian), x)[0], 24 * a)
    (j,) = batched_grad(lib, x * x, x, lib.constant(EYE))
    assert not j.requires_grad
    # The Hessian of a function that writes in place.
    p, q = a
    t = x * 1
    t[0] = x[0] * x[1]
    (g,) = lib.grad(lib.xp.sum(t * t), x, create_graph=True)
    (hessian,) = batched_grad(lib, g, x, lib.constant(EYE))
    lib.equal(hessian, [[2 * q * q, 4 * p * q], [4 * p * q, 2 * p * p + 2]])
    # The written value is broadcast.
    t = lib.xp.stack([x, x])
    t[0] = x[0] * x[1]
    (g,) = lib.grad(lib.xp.sum(t * t), x, create_graph=True)
    (hessian,) = batched_grad(lib, g, x, lib.constant(EYE))
    lib.equal(hessian, [[4 * q * q + 2, 8 * p * q], [8 * p * q, 4 * p * p + 2]])


@contract("BAT-07")
def hooks_see_one_sample(lib: Any) -> None:
    x = lib.tensor([1.0, 2.0])
    seen: list[tuple[Any, ...]] = []
    y = x * x
    y.register_hook(lambda g: seen.append(("tensor", tuple(g.shape))))
    y.grad_fn.register_prehook(lambda go: seen.append(("before", tuple(go[0].shape))))
    y.grad_fn.register_hook(lambda gi, go: seen.append(("after", tuple(gi[0].shape), tuple(go[0].shape))))
    (g,) = batched_grad(lib, y * 1, x, lib.ones(3, 2))
    assert set(seen) == {("tensor", (2,)), ("before", (2,)), ("after", (2,), (2,))}
    shared = lib.tensor([1.0, 2.0])
    calls: list[Any] = []
    lib.module("func").vmap(lambda v: (shared.register_hook(calls.append).remove(), v)[1])(lib.ones(2, 2))
    lib.xp.sum(shared * 2).backward()
    assert not calls
    lib.equal(g, [[2.0, 4.0]] * 3)
    y = x * x
    y.register_hook(lambda g: g * 10)
    (g,) = batched_grad(lib, y * 1, x, lib.constant(EYE))
    lib.equal(g, [[20.0, 0.0], [0.0, 40.0]])
    # A hook or a Function that returns the same gradient for all samples.
    for name, replace in {
        "tensor": lambda y, c: y.register_hook(lambda g: c),
        "before": lambda y, c: y.grad_fn.register_prehook(lambda go: (c,)),
        "after": lambda y, c: (y * 1).grad_fn.next_functions[0][0].register_hook(lambda gi, go: (c * 2, c * 0)),
    }.items():
        with lib.case(name):
            x = lib.tensor([1.0, 2.0])
            y = x * lib.constant([3.0, 4.0]) if name != "after" else x * (x * 1)
            replace(y, lib.constant([5.0, 6.0]))
            (g,) = batched_grad(lib, y * 1, x, lib.constant(EYE))
            lib.equal(g, [[15.0, 24.0]] * 2 if name != "after" else [[10.0, 12.0]] * 2)
    constant = lib.fn(lambda ctx, x: x * 2, lambda ctx, g: lib.constant([7.0, 8.0]))
    x = lib.tensor([1.0, 2.0])
    lib.equal(batched_grad(lib, constant.apply(x * 3), x, lib.constant(EYE))[0], [[21.0, 24.0]] * 2)


@contract("BAT-08")
def decisions_on_values(lib: Any) -> None:
    programs = {
        "item": lambda ctx, g: g * float(lib.xp.sum(g).item()),
        "if": lambda ctx, g: g * 2 if lib.xp.sum(g) > 2 else g,
    }
    rows = np.array([[1.0, 0.0], [2.0, 3.0]])
    expected = {"item": [[1.0, 0.0], [10.0, 15.0]], "if": [[1.0, 0.0], [4.0, 6.0]]}
    for name, backward in programs.items():
        with lib.case(name):
            x = lib.tensor([1.0, 2.0])
            y = lib.fn(lambda ctx, x: x * 2, backward).apply(x)
            said = ""
            try:
                (found,) = batched_grad(lib, y, x, lib.constant(rows))
            except RuntimeError as exc:
                found, said = None, str(exc)
            # A program that cannot be batched must be refused; a result must be right for each sample.
            if found is None:
                assert "Batching rule not implemented" in said
            else:
                lib.equal(found, expected[name])
            assert x.grad is None
            lib.equal(lib.grad(lib.xp.sum(lib.xp.sin(x)), x)[0], np.cos([1.0, 2.0]))


@contract("BAT-09")
def vmap_over_grad(lib: Any) -> None:
    vmap = lib.module("func").vmap
    x = lib.tensor([1.0, 2.0])
    y = x * x
    lib.equal(vmap(lambda v: lib.grad(y, x, v, retain_graph=True)[0])(lib.constant(EYE)), [[2.0, 0.0], [0.0, 4.0]])
    lib.equal(vmap(lambda v: lib.grad(y, x, v, retain_graph=True)[0], in_dims=1, out_dims=1)(lib.ones(2, 3)), [[2.0] * 3, [4.0] * 3])
    whole = lib.tensor([[1.0, 2.0], [3.0, 4.0]])
    squares = whole * whole
    for name, program in {
        "inputs": lambda: vmap(lambda i: lib.grad(lib.xp.sum(squares), i, retain_graph=True)[0])(whole),
        "outputs": lambda: vmap(lambda o: lib.grad(lib.xp.sum(o), whole, retain_graph=True)[0])(squares),
        "outputs made inside": lambda: vmap(lambda i: lib.grad(lib.xp.sum(i * i), i)[0])(whole),
        "both": lambda: vmap(lambda o, i: lib.grad(lib.xp.sum(o), i, retain_graph=True)[0])(squares, whole),
    }.items():
        with lib.case(name), lib.raises(RuntimeError, "does not require grad"):
            program()


#: Steps from (2, 3) to (2, 3) of many kinds: elementwise, along an axis, with a matrix, with a key, with a shape.
STEPS: dict[str, Any] = {
    "sin": lambda lib, x: lib.xp.sin(x),
    "square": lambda lib, x: x * x,
    "sum": lambda lib, x: x - lib.xp.sum(x, axis=1, keepdims=True) * 0.5,
    "mean": lambda lib, x: x / (1 + lib.xp.mean(x * x, axis=0)),
    "max": lambda lib, x: x * lib.xp.max(x, axis=0),
    "cumulative": lambda lib, x: lib.xp.cumulative_sum(x, axis=1),
    "matmul": lambda lib, x: lib.xp.matmul(x, lib.xp.matmul(lib.xp.matrix_transpose(x), x)) * 0.1,
    "permute": lambda lib, x: lib.xp.reshape(lib.xp.permute_dims(x, (1, 0)), (2, 3)),
    "slice": lambda lib, x: lib.xp.concat([x[:, 1:], x[:, :1] * 2], axis=1),
    "flip": lambda lib, x: lib.xp.flip(x, axis=1),
    "where": lambda lib, x: lib.xp.where(x > 0, x * 3, x * 0.5),
    "sort": lambda lib, x: lib.xp.sort(x, axis=1),
    "stack": lambda lib, x: lib.xp.sum(lib.xp.stack([x, x * 2], axis=0), axis=0),
    "roll": lambda lib, x: lib.xp.roll(x, 1, axis=1),
    "write": lambda lib, x: overwrite(x),
}


def overwrite(x: Any) -> Any:
    """Return a copy in which a row and some columns are overwritten."""
    y = x * 1
    y[0] = x[1] * 2
    y[:, 1:] *= x[:, :1]
    return y


@contract("BAT-10", draw={"program": st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=4), "seed": seeds})
def batches_equal_loops(lib: Any, program: Any, seed: int) -> None:
    x = lib.random((2, 3), seed)
    y = x
    for name in program:
        y = STEPS[name](lib, y)
    v = lib.random((3, 2, 3), seed + 1, rg=False)
    (found,) = batched_grad(lib, y, x, v, retain_graph=True)
    (expected,) = loop(lib, [y], [x], [v])
    near = 1e-3 if lib.real == "float32" else 1e-9
    lib.equal(found, expected, rtol=near, atol=near * max(1.0, float(np.max(np.abs(expected)))))
