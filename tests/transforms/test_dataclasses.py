"""Law: a dataclass of Tensors, frozen or not, is a container for the transforms and for `compile`, as a dict is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import FrozenInstanceError, dataclass, field
from typing import Any, ClassVar

import numpy as np
import pytest

import xpgrad as xp
from xpgrad.func import grad, hessian, jacfwd, jacrev, jvp, ravel_pytree, vjp, vmap


@dataclass
class Plain:
    w: Any
    b: Any
    name: str = "plain"
    scale: float = 2.0


@dataclass(frozen=True)
class Frozen:
    w: Any
    b: Any
    name: str = "frozen"
    scale: float = 2.0


@dataclass(slots=True)
class Slotted:
    w: Any
    b: Any
    name: str = "slotted"
    scale: float = 2.0


@dataclass
class Checked:
    """A dataclass whose constructor checks a field and computes another."""

    w: Any
    b: Any
    name: str = "checked"
    scale: float = 2.0
    made: str = field(init=False)
    shared: ClassVar[str] = "of the class"

    def __post_init__(self) -> None:
        if not isinstance(self.w, xp.Tensor):
            raise TypeError("a Tensor is needed")
        self.made = "here"


KINDS = [Plain, Frozen, Slotted, Checked]


def loss(p: Any, x: Any) -> Any:
    return xp.sum(xp.tanh(x @ p.w + p.b) * p.scale)


def model(kind: Any, rows: tuple[int, ...] = ()) -> tuple[Any, dict[str, Any], Any]:
    """Return an instance, a dict with the same Tensors, and an input."""
    rng = np.random.default_rng(1)
    w, b = xp.asarray(rng.normal(size=(*rows, 3, 2))), xp.asarray(rng.normal(size=(*rows, 2)))
    return kind(w, b), {"w": w, "b": b}, xp.asarray(rng.normal(size=(4, 3)))


def as_dict(p: Any) -> dict[str, Any]:
    return {"w": p.w, "b": p.b}


def assert_same(one: Any, other: Any) -> None:
    if isinstance(other, dict):
        one = one if isinstance(one, dict) else as_dict(one)
        for key, value in other.items():
            assert_same(one[key], value)
    else:
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-12, atol=1e-14)


class Bag:
    """An object with a dict's entries, and the field `scale`, as attributes."""

    def __init__(self, entries: dict[str, Any]) -> None:
        self.__dict__.update(entries, scale=2.0)


def of_dict(p: dict[str, Any], x: Any) -> Any:
    return loss(Bag(p), x)


TRANSFORMS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "grad": lambda f, p, x: grad(f)(p, x),
    "jacrev": lambda f, p, x: jacrev(f)(p, x),
    "jacfwd": lambda f, p, x: jacfwd(f)(p, x),
    "jvp": lambda f, p, x: jvp(lambda q: f(q, x), (p,), (p,))[1],
    "vjp": lambda f, p, x: vjp(lambda q: f(q, x), p)[1](xp.asarray(1.0))[0],
    "hessian": lambda f, p, x: hessian(f)(p, x),
    "compiled grad": lambda f, p, x: xp.compile(grad(f))(p, x),
    "grad of compiled": lambda f, p, x: grad(xp.compile(f))(p, x),
    "compiled": lambda f, p, x: xp.compile(f)(p, x),
    "flat": lambda f, p, x: ravel_pytree(p)[0],
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", TRANSFORMS)
def test_it_gives_what_a_dict_gives(name: str, kind: Any) -> None:
    p, d, x = model(kind)
    out = TRANSFORMS[name](loss, p, x)
    assert_same(out, TRANSFORMS[name](of_dict, d, x))
    if "grad" in name or name == "vjp":
        assert type(out) is kind
        assert (out.name, out.scale) == (kind.__name__.lower(), 2.0)
    if kind is Frozen and name == "grad":
        with pytest.raises(FrozenInstanceError):
            out.w = None
    if kind is Checked and name == "grad":
        assert (out.made, out.shared) == ("here", "of the class")


@pytest.mark.parametrize("kind", KINDS)
def test_vmap_maps_the_tensors(kind: Any) -> None:
    p, d, x = model(kind, (5,))
    assert_same(vmap(loss, in_dims=(0, None))(p, x), vmap(of_dict, in_dims=(0, None))(d, x))
    out = vmap(lambda q: q)(p)
    assert (type(out), out.name) == (kind, p.name)
    assert_same(out, d)
    doubled = vmap(lambda q: kind(q.w * 2, q.b))(p)
    assert_same(doubled, {"w": d["w"] * 2, "b": d["b"]})
    assert_same(vmap(lambda q: q.b, in_dims=({"w": None, "b": 0},))(kind(d["w"][0], d["b"])), d["b"])


def test_in_and_around_other_containers() -> None:
    p, d, x = model(Plain)
    nested = Frozen(w=[p, {"again": p}], b=xp.asarray([0.5, 1.0]))
    out = grad(lambda q: loss(q.w[0], x) + loss(q.w[1]["again"], x) * xp.sum(q.b))(nested)
    once = grad(of_dict)(d, x)
    assert_same(out.w[0], once)
    assert_same(out.w[1]["again"], {k: v * 1.5 for k, v in once.items()})
    assert out.w[1]["again"].name == "plain"


def test_fields_that_pass_through_are_no_part_of_the_arrangement() -> None:
    p, _, x = model(Plain)
    tangent = Plain(p.w, p.b, name="direction", scale=7.0)
    jvp(lambda q: loss(q, x), (p,), (tangent,))  # these fields may differ from the primal's
    with pytest.raises(RuntimeError, match="same python structure"):
        jvp(lambda q: loss(q, x), (p,), ({"w": p.w, "b": p.b},))


def test_a_compiled_function_returns_one_and_depends_on_what_passes_through() -> None:
    calls = []

    @xp.compile
    def scaled(p: Any) -> Any:
        calls.append(p.scale)
        return type(p)(p.w * p.scale, p.b, p.name, p.scale)

    for kind in KINDS:
        p, d, _ = model(kind)
        out = scaled(p)
        assert (type(out), out.name, out.scale) == (kind, p.name, 2.0)
        assert_same(out, {"w": d["w"] * 2, "b": d["b"]})
    before = len(calls)
    p, d, _ = model(Frozen)
    assert_same(scaled(Frozen(p.w, p.b, scale=3.0)), {"w": d["w"] * 3, "b": d["b"]})
    assert len(calls) > before
    p.w.requires_grad_()
    scaled(p).w.sum().backward()
    np.testing.assert_array_equal(p.w.grad.numpy(), np.full((3, 2), 2.0))


def test_one_without_tensors_is_a_value() -> None:
    @dataclass
    class Settings:
        rate: float
        names: list[str]

    @dataclass(eq=False)
    class Odd:
        names: set[str]

    @dataclass
    class Bad:
        names: set[str]
        w: Any

    x = xp.asarray([1.0, 2.0])
    scale = xp.compile(lambda x, s: x * s.rate)
    assert scale(x, Settings(3.0, ["a"])).tolist() == [3.0, 6.0]
    assert scale(x, Settings(4.0, ["a"])).tolist() == [4.0, 8.0]
    assert grad(lambda x, s: xp.sum(x * s.rate))(x, Settings(3.0, [])).tolist() == [3.0, 3.0]
    assert xp.compile(lambda x, s: x * len(s.names))(x, Odd({"a", "b"})).tolist() == [2.0, 4.0]
    with pytest.raises(TypeError, match="hashable"):
        xp.compile(lambda p: p.w)(Bad({"a"}, x))
