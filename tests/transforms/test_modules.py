"""Law: an object that holds Tensors can be called with others in their place, as PyTorch's layers can, and then has its own again."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import xpgrad as xp
from support.central_differences import differences
from xpgrad import func
from xpgrad.func import functional_call, grad, stack_module_state, vmap
from xpgrad.utils.checkpoint import checkpoint


class Layer:
    def __init__(self, rng: np.random.Generator, n: int, m: int) -> None:
        self.weight = xp.tensor(rng.normal(size=(n, m)), requires_grad=True)
        self.bias = xp.tensor(rng.normal(size=m), requires_grad=True)
        self.scale = xp.asarray(2.0)

    def __call__(self, x: Any) -> Any:
        return xp.tanh(x @ self.weight + self.bias) * self.scale


class Net:
    def __init__(self, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.layers = [Layer(rng, 3, 4), Layer(rng, 4, 2)]
        self.named = {"last": xp.tensor(rng.normal(size=2), requires_grad=True)}
        self.pair = (Layer(rng, 2, 2), "text")
        self.itself = self  # a reference cycle
        self.number = 3

    def __call__(self, x: Any, *, power: int = 1) -> Any:
        for layer in (*self.layers, self.pair[0]):
            x = layer(x)
        return xp.sum(x * self.named["last"]) ** power

    def twice(self, x: Any) -> Any:
        return self(x) * 2


NAMES = {f"{prefix}.{name}" for prefix in ("layers.0", "layers.1", "pair.0") for name in ("weight", "bias", "scale")} | {"named.last"}
X = np.random.default_rng(9).normal(size=(5, 3))


def state(net: Any) -> dict[str, Any]:
    params, buffers = stack_module_state([net])
    return {k: v[0].detach() for k, v in {**params, **buffers}.items()}


def test_names_follow_attributes_lists_and_dicts() -> None:
    params, buffers = stack_module_state([Net(), Net(1)])
    assert {*params, *buffers} == NAMES
    assert all(name.endswith("scale") for name in buffers)
    assert all(p.requires_grad and p.is_leaf and p.shape[0] == 2 for p in params.values())
    assert not any(b.requires_grad for b in buffers.values())


def test_the_call_sees_the_given_tensors_and_the_object_has_its_own_again() -> None:
    net, other, x = Net(), Net(1), xp.asarray(X)
    own = [net.layers[0].weight, net.named["last"], net.pair[0].bias]
    before, expected = net(x).item(), other(x).item()
    assert functional_call(net, state(other), x).item() == pytest.approx(expected)
    assert functional_call(net.twice, state(other), x).item() == pytest.approx(expected * 2)
    assert functional_call(net, state(other), (x,), {"power": 2}).item() == pytest.approx(expected**2)
    split = state(other)
    first = {k: split.pop(k) for k in list(split)[:3]}
    assert functional_call(net, (first, split), x, strict=True).item() == pytest.approx(expected)
    assert all(a is b for a, b in zip(own, [net.layers[0].weight, net.named["last"], net.pair[0].bias]))
    assert net(x).item() == before
    with pytest.raises(TypeError):
        functional_call(net, {"named.last": xp.zeros(2)}, "text")
    assert net(x).item() == before


def test_transforms_of_a_call() -> None:
    net, x = Net(), xp.asarray(X)
    got = grad(lambda p: functional_call(net, p, x))(state(net))
    net(x).backward()
    np.testing.assert_allclose(got["layers.0.weight"].numpy(), net.layers[0].weight.grad.numpy())
    np.testing.assert_allclose(got["pair.0.bias"].numpy(), net.pair[0].bias.grad.numpy())
    nets = [Net(seed) for seed in range(4)]
    params, buffers = stack_module_state(nets)
    out = vmap(lambda p, b, x: functional_call(nets[0], (p, b), x), (0, 0, None))(params, buffers, x)
    np.testing.assert_allclose(out.detach().numpy(), [n(x).item() for n in nets])
    out.sum().backward()
    nets[2](x).backward()
    np.testing.assert_allclose(params["layers.1.weight"].grad[2].numpy(), nets[2].layers[1].weight.grad.numpy())


def test_functions_frozen_objects_and_slots() -> None:
    @dataclass(frozen=True)
    class Frozen:
        w: Any

        def __call__(self, x: Any) -> Any:
            return self.w * x

    class Slotted:
        __slots__ = ("inner", "w")

        def __init__(self) -> None:
            self.w, self.inner = xp.asarray(2.0), Frozen(xp.asarray(3.0))

        def __call__(self, x: Any) -> Any:
            return self.w * self.inner(x)

    three, five = xp.asarray(3.0), xp.asarray(5.0)
    assert functional_call(Frozen(three), {"w": five}, three).item() == 15
    assert functional_call(Slotted(), {"inner.w": five}, three).item() == 30
    for function in (lambda p, x: p["w"] * x, functools.partial(lambda k, p, x: p["w"] * x * k, 1)):
        assert functional_call(function, {"w": five}, three).item() == 15
    params, buffers = stack_module_state([{"w": three, "v": xp.tensor(1.0, requires_grad=True)}] * 2)
    assert (list(params), list(buffers)) == (["v"], ["w"])


class Tied:
    def __init__(self) -> None:
        self.w = self.v = xp.ones(2)
        self.count = xp.zeros(())

    def __call__(self, x: Any) -> Any:
        self.count = self.count + 1
        return self.w * x + self.v


def test_tied_tensors_and_assignments() -> None:
    net, x, zero = Tied(), xp.ones(2), xp.zeros(2)
    assert functional_call(net, {"w": zero}, x).tolist() == [0, 0]
    assert functional_call(net, {"v": zero}, x).tolist() == [0, 0]
    assert functional_call(net, {"w": zero}, x, tie_weights=False).tolist() == [1, 1]
    with pytest.raises(ValueError, match="tied"):
        functional_call(net, {"w": zero, "v": x}, x)
    assert functional_call(net, {"w": zero, "v": x}, x, tie_weights=False).tolist() == [1, 1]
    given = {"count": xp.asarray(7.0)}
    net = Tied()
    functional_call(net, given, x)
    assert (given["count"].item(), net.count.item()) == (8, 0)


def test_what_does_not_fit_is_refused() -> None:
    net, x = Tied(), xp.ones(2)
    assert functional_call(net, {"unknown": x}, x).tolist() == [2, 2]  # as in PyTorch
    for given, error, match in (
        ({"unknown": x}, RuntimeError, "unexpected.*unknown"), ({"w": x}, RuntimeError, r"missing \['count', 'v'\]"),
        (({"w": x}, {"w": x}), ValueError, "multiple dictionaries"), (3, ValueError, "must be a dict"),
        ({"w": "text"}, TypeError, "Tensor"),
    ):  # fmt: skip
        with pytest.raises(error, match=match):
            functional_call(net, given, x, strict=True)
    with pytest.raises(TypeError, match="callable"):
        functional_call({"w": x}, {"w": x}, x)
    for models, match in (
        ([], "at least one"), ([net, Net()], "same class"), ([{"a": x}, {"b": x}], "different names"),
        ([{"a": x}, {"a": xp.ones(2, requires_grad=True)}], "requires grad in some"),
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match=match):
            stack_module_state(models)


class Rerun:
    """A layer whose method runs again later, or has been compiled."""

    def __init__(self, kind: str) -> None:
        self.w, self.kind = xp.asarray([1.0, 2.0]), kind

    def body(self, x: Any) -> Any:
        return xp.sin(x * self.w) * self.w

    @xp.compile
    def compiled(self, x: Any) -> Any:
        return self.body(x)

    def __call__(self, x: Any) -> Any:
        calls: dict[str, Any] = {
            "plain": lambda: self.body(x),
            "plain scan": lambda: func.scan(lambda c, a: (self.body(c) * a, None), x, x)[0],
            "checkpoint": lambda: checkpoint(self.body, x),
            "scan": lambda: func.scan(lambda c, a: (self.body(c) * a, None), x, x, checkpoint=True)[0],
            "compiled method": lambda: self.compiled(x),
            "compiled": lambda: xp.compile(self.body)(x),
            "compiled scan": lambda: xp.compile(lambda x: func.scan(lambda c, a: (self.body(c) * a, None), x, x)[0])(x),
            "checkpoint of compiled": lambda: checkpoint(lambda y: self.compiled(y), x),
        }
        return xp.sum(calls[self.kind]() ** 2)


@pytest.mark.parametrize("kind", ["checkpoint", "scan", "compiled method", "compiled", "compiled scan", "checkpoint of compiled"])
def test_what_runs_again_after_the_call_sees_the_given_tensors(kind: str) -> None:
    layer, plain = Rerun(kind), Rerun("plain scan" if "scan" in kind else "plain")
    points = [np.array([0.5, 1.5]), np.array([0.3, 0.7])]
    layer(xp.asarray(points[1]))  # compiles for its own Tensors

    def call(w: Any, x: Any, layer: Any = layer) -> Any:
        return functional_call(layer, {"w": w}, (x,))

    assert float(call(*map(xp.asarray, points))) == pytest.approx(float(call(*map(xp.asarray, points), plain)))
    for k, point in enumerate(points):

        def value(p: np.ndarray, k: int = k) -> float:
            return float(call(*(xp.asarray(p if n == k else q) for n, q in enumerate(points)), plain))

        expected = differences(value, point)
        leaves = [xp.tensor(p, requires_grad=n == k) for n, p in enumerate(points)]
        call(*leaves).backward()
        slope, given = grad(call, argnums=k), [xp.asarray(p) for p in points]
        for found in (slope(*given), leaves[k].grad, xp.compile(slope)(*given)):
            np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6, atol=1e-8)
        assert layer.w.tolist() == plain.w.tolist()
