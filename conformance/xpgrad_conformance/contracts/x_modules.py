"""Group X: calls of objects with other Tensors in place of their own, and stacks of the Tensors of several objects."""

from __future__ import annotations

from typing import Any

import numpy as np

from xpgrad_conformance.contract import contract

W, B = np.asarray([[0.4, -0.3, 0.9], [0.7, 0.6, -0.7]]), np.asarray([0.2, -0.1, 0.3])
X = np.asarray([0.5, -1.5])


def classes(lib: Any) -> tuple[type, type]:
    """Return a layer class and the class of an object with two layers, both with PyTorch's base class if the library is PyTorch."""
    base: Any = lib.ns.nn.Module if lib.oracle else object

    class Layer(base):  # type: ignore[misc]
        def __init__(self, w: Any, b: Any) -> None:
            super().__init__()
            if lib.oracle:
                self.w = lib.ns.nn.Parameter(lib.constant(w))
                self.register_buffer("b", lib.constant(b))
            else:
                self.w, self.b = lib.tensor(w), lib.constant(b)

        def __call__(self, x: Any, *, power: int = 1, fail: bool = False) -> Any:
            if fail:
                raise KeyError("in the call")
            return lib.xp.tanh(x @ self.w + self.b) ** power

    class Pair(base):  # type: ignore[misc]
        def __init__(self, k: float) -> None:
            super().__init__()
            self.first, self.second = Layer(W * k, B * k), Layer(W.T * k, B[:2] * k)
            self.number = k

        def __call__(self, x: Any, **more: Any) -> Any:
            return self.second(self.first(x), **more)

    return Layer, Pair


def reference(x: Any, *parts: Any) -> Any:
    w, b, v, c = parts
    return np.tanh(np.tanh(x @ w + b) @ v + c)


@contract("DER-27")
def calls_with_other_tensors(lib: Any) -> None:
    call = lib.module("func").functional_call
    layer_class, pair_class = classes(lib)
    pair, x = pair_class(1.0), lib.constant(X)
    own = [pair.first.w, pair.first.b, pair.second.w, pair.second.b]

    def assert_unchanged() -> None:
        assert all(a is b for a, b in zip(own, [pair.first.w, pair.first.b, pair.second.w, pair.second.b], strict=True))

    names = {"first.w": W * 2, "first.b": B * 3, "second.w": W.T * 4, "second.b": B[:2] * 5}
    given = {name: lib.tensor(a) for name, a in names.items()}
    y = call(pair, given, x)
    lib.equal(y, reference(X, *names.values()))
    assert_unchanged()
    total = lib.xp.sum(y)
    grads = lib.grad(total, list(given.values()))
    at = [np.asarray(a) for a in names.values()]
    for i, (g, a) in enumerate(zip(grads, at, strict=True)):
        for place in np.ndindex(a.shape):
            ends = []
            for s in (1, -1):
                moved = a.copy()
                moved[place] += s * 1e-5
                ends.append(float(reference(X, *at[:i], moved, *at[i + 1 :]).sum()))
            assert abs(float(lib.value(g)[place]) - (ends[0] - ends[1]) / 2e-5) < 1e-3
    assert all(p.grad is None for p in own)
    # Some of the names; several mappings; positional and keyword arguments; a name that the object does not have.
    lib.equal(call(pair, {"second.b": given["second.b"]}, (x,)), reference(X, W, B, W.T, B[:2] * 5))
    lib.equal(call(pair, ({"first.b": given["first.b"]}, {"second.b": given["second.b"]}), (x,), {"power": 2}),
              reference(X, W, B * 3, W.T, B[:2] * 5) ** 2)  # fmt: skip
    lib.equal(call(pair, [{}], args=None, kwargs={"x": x}), reference(X, W, B, W.T, B[:2]))
    lib.equal(call(pair, {"unknown": x}, x), reference(X, W, B, W.T, B[:2]))
    lib.equal(call(pair, given, x, strict=True), reference(X, *names.values()))
    for wrong, error, phrase in (
        ({"unknown": x, **given}, RuntimeError, "unknown"),
        ({"first.w": given["first.w"]}, RuntimeError, "second.b"),
        (({"first.w": given["first.w"]}, {"first.w": given["first.w"]}), ValueError, "multiple dictionaries"),
        (3, ValueError, "dict"),
    ):
        with lib.case(str(type(wrong))), lib.raises(error, phrase):
            call(pair, wrong, x, strict=True)
        assert_unchanged()
    # An error in the call or in a transform leaves the object unchanged.
    with lib.raises(KeyError, "in the call"):
        call(pair, given, (x,), {"fail": True})
    assert_unchanged()
    found = lib.module("func").grad(lambda p: lib.xp.sum(call(pair, p, x)))({k: v.detach() for k, v in given.items()})
    for name, g in zip(given, grads, strict=True):
        lib.equal(found[name], lib.value(g))
    assert_unchanged()

    # One Tensor under two names.
    class Tied(layer_class):  # type: ignore[misc, valid-type]
        def __init__(self) -> None:
            super().__init__(W[:, :2], B[:2])
            self.v = self.w

        def __call__(self, x: Any, **more: Any) -> Any:
            return x @ self.w + x @ self.v * 10

    tied, zero, one = Tied(), lib.constant(np.zeros((2, 2))), lib.constant(np.ones((2, 2)))
    for name in ("w", "v"):
        lib.equal(call(tied, {name: one}, x), np.full(2, X.sum() * 11))
    lib.equal(call(tied, {"w": zero}, x, tie_weights=False), X @ W[:, :2] * 10)
    lib.equal(call(tied, {"v": zero}, x, tie_weights=False), X @ W[:, :2])
    with lib.raises(ValueError, "tied"):
        call(tied, {"w": zero, "v": one}, x)
    lib.equal(call(tied, {"w": one, "v": one}, x), np.full(2, X.sum() * 11))

    # An attribute that is set during the call changes the mapping, and not the object.
    class Counting(layer_class):  # type: ignore[misc, valid-type]
        b: Any

        def __call__(self, x: Any, **more: Any) -> Any:
            self.b = self.b + 1
            return x * self.b[:2]

    counting = Counting(W, B)
    state = {"b": lib.constant(B * 2)}
    lib.equal(call(counting, state, x), X * (B * 2 + 1)[:2])
    lib.equal(counting.b, B)
    lib.equal(state["b"], B * 2 + 1)
    if not lib.oracle:
        check_checkpoint_inside(lib, layer_class)


def check_checkpoint_inside(lib: Any, layer_class: type) -> None:
    """Check that what runs again after the call has the Tensors of the call, which PyTorch's checkpoints do not."""
    checkpoint = lib.module("utils.checkpoint").checkpoint

    class Kept(layer_class):  # type: ignore[misc]
        def __call__(self, x: Any, **more: Any) -> Any:
            return checkpoint(lambda x: lib.xp.sin(x @ self.w) * self.w[0], x, use_reentrant=False)

    w = lib.tensor(W * 2)
    y = lib.module("func").functional_call(Kept(W, B), {"w": w}, lib.constant(X))
    inner = X @ W * 2
    wanted = np.outer(X, np.cos(inner) * W[0] * 2)
    wanted[0] += np.sin(inner)
    lib.equal(lib.grad(lib.xp.sum(y), w)[0], wanted)


@contract("DER-28")
def stacks_of_objects(lib: Any) -> None:
    func = lib.module("func")
    layer_class, pair_class = classes(lib)
    pairs = [pair_class(k) for k in (1.0, -0.5, 2.0)]
    params, buffers = func.stack_module_state(pairs)
    assert (sorted(params), sorted(buffers)) == (["first.w", "second.w"], ["first.b", "second.b"])
    for name, held in (*params.items(), *buffers.items()):
        part, _, which = name.partition(".")
        lib.equal(held, np.stack([lib.value(getattr(getattr(p, part), which)) for p in pairs]))
        assert held.requires_grad == (which == "w")
        assert held.is_leaf
    x = lib.constant(X)
    y = func.vmap(lambda p, b, x: func.functional_call(pairs[0], (p, b), (x,)), in_dims=(0, 0, None))(params, buffers, x)
    lib.equal(y, np.stack([reference(X, W * k, B * k, W.T * k, B[:2] * k) for k in (1.0, -0.5, 2.0)]))
    lib.backward(lib.xp.sum(y * y))
    for k, one in enumerate(pairs):
        z = one(x)
        lib.backward(lib.xp.sum(z * z))
        lib.equal(params["first.w"].grad[k], lib.value(one.first.w.grad))
        lib.equal(params["second.w"].grad[k], lib.value(one.second.w.grad))
    with lib.raises(RuntimeError, "got 0"):
        func.stack_module_state([])
    with lib.raises(RuntimeError, "same class"):
        func.stack_module_state([pairs[0], layer_class(W, B)])
    other = layer_class(W, B)
    other.w.requires_grad_(False)
    with lib.raises(RuntimeError):
        func.stack_module_state([layer_class(W, B), other])
    if lib.oracle:
        return

    # Mappings, lists, slots, frozen objects and cycles: PyTorch supports only modules.
    class Slots:
        __slots__ = ("inner", "missing", "w")

        def __init__(self) -> None:
            self.w, self.inner = lib.tensor(X), [lib.constant(X), {"deep": lib.tensor(X)}, (pairs[0].first, lib.constant(X), 3)]

        def __call__(self) -> Any:
            return self.w * self.inner[0] * self.inner[1]["deep"] + self.inner[2][0].b[:2]

    slots = Slots()
    slots.inner.append(slots)
    two, deep = lib.constant([2.0, 2.0]), slots.inner[1]["deep"]
    lib.equal(func.functional_call(slots, {"w": two, "inner.0": two, "inner.1.deep": two, "inner.2.0.b": lib.constant(B)}, ()), 8 + B[:2])
    lib.equal(func.functional_call(slots, {"inner.1.deep": two}), X * X * 2 + B[:2])
    assert slots.inner[1]["deep"] is deep
    params, buffers = func.stack_module_state([slots])
    assert (sorted(params), sorted(buffers)) == (["inner.1.deep", "inner.2.0.w", "w"], ["inner.0", "inner.2.0.b"])
    lib.equal(func.functional_call(lambda p, x: p["w"] * x, {"w": two}, x), X * 2)
    lib.equal(func.functional_call(pairs[0].first.__call__, {"w": lib.constant(W * 0)}, x), np.tanh(B))
    params, buffers = func.stack_module_state([{"v": lib.tensor(X), "w": two}, {"v": lib.tensor(X * 2), "w": two}])
    lib.equal(params["v"], np.stack([X, X * 2]))
    lib.equal(buffers["w"], np.full((2, 2), 2.0))
    refused: Any = ((3, TypeError), ("text", TypeError), ([{"v": two}, {"w": two}], RuntimeError))
    for wrong, error in refused:
        with lib.case(str(wrong)), lib.raises(error, "stack_module_state"):
            func.stack_module_state(wrong)
    misused: Any = (
        (({"w": "text"}, x), TypeError), (({"w": two}, x, 3), TypeError), (({"w": two}, x, {3: 4}), TypeError), ((["w"], x), ValueError),
    )  # fmt: skip
    for arguments, error in misused:
        with lib.case(str(arguments)), lib.raises(error, "functional_call"):
            func.functional_call(pairs[0], *arguments)
    with lib.raises(TypeError, "functional_call"):
        func.functional_call(3, {})
