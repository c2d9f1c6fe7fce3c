"""Group V: the C++ API. For PyTorch, a C++ program calls its library; for xpgrad, the dialect `xpgrad.dialects.libtorch` is called.

Both report facts under the same names, and the same facts are expected of both.
"""

from __future__ import annotations

import functools
import gc
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from xpgrad_conformance.contract import contract
from xpgrad_conformance.libtorch import facts
from xpgrad_conformance.strategies import broadcastable, seeds, shapes

SCALARS = "grad can be implicitly created only for scalar outputs"
TWICE = "backward through the graph a second time"


def dialect(lib: Any) -> Any:
    """Return the dialect of xpgrad that follows C++."""
    return lib.module("dialects.libtorch")


def flatten(lib: Any, x: Any) -> list[float] | None:
    """Return the elements in the form that the C++ program prints; None stays None."""
    return None if x is None else lib.value(x).ravel().tolist()


def message_of(function: Callable[[], Any]) -> str | None:
    """Return the message of the RuntimeError that stands for C++'s c10::Error, or None if nothing is raised."""
    try:
        function()
    except RuntimeError as exc:
        return str(exc)
    return None


@contract("CPP-01")
def backward_s_signature(lib: Any) -> None:
    if lib.oracle:
        found = facts("CPP-01")
    else:
        cpp = dialect(lib)
        assert {n: p.default for n, p in inspect.signature(cpp.backward).parameters.items()} == {
            "tensors": inspect.Parameter.empty,
            "grad_tensors": (),
            "retain_graph": None,
            "create_graph": False,
            "inputs": (),
        }
        found, x = {}, lib.tensor([2.0])
        cpp.backward([x * x])
        found["tensors"] = flatten(lib, x.grad)
        cpp.backward([x * x], [None])
        found["undefined"] = flatten(lib, x.grad)
        cpp.backward([x * x, x * x], [None, lib.constant([10.0])], True, False, [x])
        found["all"] = flatten(lib, x.grad)
        y = x * x
        cpp.backward([y], (), None)
        found["again"] = message_of(lambda: cpp.backward([y]))
    assert found["tensors"] == [4.0]
    assert found["undefined"] == [8.0]
    assert found["all"] == [52.0]
    assert TWICE in found["again"]


@contract("CPP-02")
def undefined_gradients(lib: Any) -> None:
    if lib.oracle:
        found = facts("CPP-02")
    else:
        cpp, x, one = dialect(lib), lib.tensor([1.0, 2.0]), lib.tensor([[3.0]])
        found = {
            "many": message_of(lambda: cpp.backward([x * x])),
            "none": message_of(lambda: cpp.backward([x[:0] * 2], [None])),
            "grad": message_of(lambda: cpp.grad([x * x], [x])),
            "one": message_of(lambda: cpp.backward([one * one])),
        }
        if lib.capabilities["complex"]:
            z = lib.tensor(1.0, dtype=lib.complex)
            found["complex"] = message_of(lambda: cpp.backward([z * 2]))
    for name in ("many", "none", "grad"):
        with lib.case(name):
            assert SCALARS in (found[name] or "")
    if lib.capabilities["complex"]:
        name = {"complex128": "ComplexDouble", "complex64": "ComplexFloat"}[lib.complex]
        assert f"grad can be computed only for real scalar outputs but got {name}" in (found["complex"] or "")
    assert found["one"] is None


@contract("CPP-03")
def both_lengths_are_strict(lib: Any) -> None:
    if lib.oracle:
        found = facts("CPP-03")
    else:
        cpp, x, one = dialect(lib), lib.tensor([2.0]), lib.constant([1.0])
        found = {
            "many": message_of(lambda: cpp.backward([x * x], [one, one])),
            "few": message_of(lambda: cpp.backward([x * x, x * x], [one])),
            "undefined": message_of(lambda: cpp.backward([x * x], [None, None])),
            "grad": message_of(lambda: cpp.grad([x * x], [x], [one, one])),
            "x": flatten(lib, x.grad),
        }
        # In C++, the compiler rejects arguments that are not lists of Tensors.
        wrong = {
            "a number as gradient": lambda: cpp.backward([x * x], [3.0]),
            "a number as root": lambda: cpp.backward([3.0]),
            "no list": lambda: cpp.backward(x * x),
            "a gradient, no list": lambda: cpp.backward([x * x], one),
            "a number as input": lambda: cpp.grad([x * x], [3.0]),
        }
        for name, call in wrong.items():
            with lib.case(name), lib.raises(TypeError, "Tensor"):
                call()
    for name in ("many", "undefined", "grad"):
        with lib.case(name):
            assert "got 1 tensors and 2 gradients" in (found[name] or "")
    assert "got 2 tensors and 1 gradients" in (found["few"] or "")
    assert found["x"] is None


@contract("CPP-04")
def constants_are_no_roots(lib: Any) -> None:
    if lib.oracle:
        found = facts("CPP-04")
    else:
        cpp, x, c = dialect(lib), lib.tensor([2.0]), lib.constant([1.0, 2.0])
        found = {
            "second": message_of(lambda: cpp.backward([x * x, c], [None, None])),
            "first": message_of(lambda: cpp.backward([c, x * x], [None, None])),
            "given": message_of(lambda: cpp.backward([x * x, c], [None, lib.ones(2)])),
            "grad": message_of(lambda: cpp.grad([x * x, c], [x], [None, None])),
            "x": flatten(lib, x.grad),
        }
    for name, i in [("second", 1), ("first", 0), ("given", 1), ("grad", 1)]:
        with lib.case(name):
            assert f"element {i} of tensors does not require grad and does not have a grad_fn" in (found[name] or "")
    assert found["x"] is None


@contract("CPP-05", draw={"pair": broadcastable(), "seed": seeds, "more": shapes(0, 2)})
def expandable_gradients_are_summed(lib: Any, pair: Any, seed: int, more: Any) -> None:
    if lib.oracle:
        found = facts("CPP-05")
    else:
        cpp, x, y, s = dialect(lib), lib.tensor([1.0, 2.0]), lib.tensor([[1.0], [2.0]]), lib.tensor(3.0)
        cpp.backward([x * 2], [lib.ones(3, 2)])
        cpp.backward([y * 2], [lib.ones(4, 2, 5)])
        cpp.backward([s * 2], [lib.constant([1.0, 2.0, 3.0])])
        found = {"rows": flatten(lib, x.grad), "sides": flatten(lib, y.grad), "scalar": flatten(lib, s.grad)}
        found["by_grad"] = flatten(lib, cpp.grad([x * 2], [x], [lib.ones(3, 2)])[0])
        for name, g in [("other", lib.ones(3)), ("smaller", lib.ones(1)), ("axes", lib.ones()), ("transposed", lib.ones(2, 3))]:
            found[name] = message_of(functools.partial(cpp.backward, [x * 2], [g]))
        for create in (False, True):
            with lib.case(create):
                _check_expandable(lib, cpp, pair, seed, more, create)
    assert found["rows"] == found["by_grad"] == [6.0, 6.0]
    assert found["sides"] == [40.0, 40.0]
    assert found["scalar"] == [12.0]
    for name, shape in [("other", [3]), ("smaller", [1]), ("axes", []), ("transposed", [2, 3])]:
        with lib.case(name):
            assert f"invalid gradient at index 0 - got {shape} but expected shape compatible with [2]" in (found[name] or "")


def _check_expandable(lib: Any, cpp: Any, pair: Any, seed: int, more: Any, create: bool) -> None:
    """Check roots with gradients of any shape to which they can be expanded, and the gradient's own gradient if it is recorded."""
    root, shape = pair[0], (*more, *np.broadcast_shapes(*pair))
    x, v = lib.random(root, seed), lib.random(shape, seed + 1)
    (g,) = cpp.grad([x * x], [x], [v], create_graph=create)
    full = lib.value(v).reshape(-1, *shape[len(shape) - len(root) :]).sum(axis=0) if len(shape) > len(root) else lib.value(v)
    summed = full.sum(axis=tuple(i for i, side in enumerate(root) if side == 1), keepdims=True).reshape(root)
    lib.equal(g, 2 * lib.value(x) * summed)
    assert g.requires_grad is create
    if create:
        lib.equal(lib.grad(lib.xp.sum(g), v)[0], np.broadcast_to(2 * lib.value(x), shape))
    elif tuple(shape) != tuple(root):  # the Python API refuses it
        with lib.raises(RuntimeError, "Mismatch in shape"):
            lib.backward([x * x], [v])


@contract("CPP-06")
def no_inputs_are_all_leaves(lib: Any) -> None:
    if lib.oracle:
        found = facts("CPP-06")
    else:
        cpp, x, w, u, v = dialect(lib), *(lib.tensor([n]) for n in (2.0, 5.0, 2.0, 5.0))
        cpp.backward([x * w], inputs=[])
        cpp.backward([u * v], inputs=[v])
        found = {name: flatten(lib, leaf.grad) for name, leaf in [("x", x), ("w", w), ("left", u), ("chosen", v)]}
    assert found["x"] == [5.0]
    assert found["w"] == [2.0]
    assert found["left"] is None
    assert found["chosen"] == [2.0]
    x = lib.tensor([2.0])
    with lib.raises(RuntimeError, "cannot be empty"):
        lib.backward([x * x], inputs=[])


@contract("CPP-07")
def inputs_require_grad(lib: Any) -> None:
    if lib.oracle:
        found = facts("CPP-07")
    else:
        cpp, x, c = dialect(lib), lib.tensor([2.0]), lib.constant([5.0])
        found = {"said": message_of(lambda: cpp.backward([x * c], inputs=[x, c])), "x": flatten(lib, x.grad)}
    assert "can't retain_grad on Tensor that has requires_grad=False" in (found["said"] or "")
    assert found["x"] is None


@contract("CPP-08")
def retain_graph_follows_create_graph(lib: Any) -> None:
    found = facts("CPP-08") if lib.oracle else _flags(lib)
    for name in ("freed", "not_retained"):
        with lib.case(name):
            assert TWICE in (found[name] or "")
    for name in ("retained", "default", "backward_default"):
        with lib.case(name):
            assert found[name] is None
    assert found["second"] == [18.0]
    assert found["tracked"] is found["accumulated"] is True
    assert found["untracked"] is False


def _flags(lib: Any) -> dict[str, Any]:
    cpp, x, u = dialect(lib), lib.tensor([3.0]), lib.tensor([3.0])
    found: dict[str, Any] = {}
    y = x * x * x
    cpp.backward([y])
    found["freed"] = message_of(lambda: cpp.backward([y]))
    kept = x * x * x
    cpp.backward([kept], (), True)
    found["retained"] = message_of(lambda: cpp.backward([kept]))
    recorded = x * x * x
    (g,) = cpp.grad([recorded], [x], (), None, True)
    found["default"] = message_of(lambda: cpp.grad([recorded], [x], (), True))
    found["second"] = flatten(lib, cpp.grad([g], [x])[0])
    found["tracked"], found["untracked"] = g.requires_grad, cpp.grad([x * x], [x])[0].requires_grad
    freed = x * x * x
    cpp.grad([freed], [x], (), False, True)
    found["not_retained"] = message_of(lambda: cpp.backward([freed]))
    z = u * u * u
    cpp.backward([z], (), None, True)
    found["backward_default"] = message_of(lambda: cpp.grad([z], [u]))
    found["accumulated"] = u.grad.requires_grad
    u.grad = None
    return found


@contract("CPP-09")
def grad_in_cpp(lib: Any) -> None:
    if lib.oracle:
        found = facts("CPP-09")
    else:
        cpp, x, w = dialect(lib), lib.tensor([2.0]), lib.tensor([5.0])
        assert {n: p.default for n, p in inspect.signature(cpp.grad).parameters.items()} == {
            "outputs": inspect.Parameter.empty,
            "inputs": inspect.Parameter.empty,
            "grad_outputs": (),
            "retain_graph": None,
            "create_graph": False,
            "allow_unused": False,
        }
        found = {"found": flatten(lib, cpp.grad([x * x], [x])[0]), "x": flatten(lib, x.grad)}
        found["unused"] = message_of(lambda: cpp.grad([x * x], [x, w]))
        used, unused = cpp.grad([x * x], [x, w], (), None, False, True)
        found["used"], found["allowed"] = flatten(lib, used), flatten(lib, unused)
        found["empty"] = message_of(lambda: cpp.grad([x * x], []))
        found["constant"] = message_of(lambda: cpp.grad([x * x], [x, lib.constant([5.0])]))
        found["constant_allowed"] = message_of(lambda: cpp.grad([x * x], [x, lib.constant([5.0])], allow_unused=True))
    assert found["found"] == found["used"] == [4.0]
    assert found["x"] is None
    assert found["allowed"] is None
    assert "element 1of the differentiated Tensors appears to not have been used" in (found["unused"] or "")
    assert "grad requires non-empty inputs." in (found["empty"] or "")
    for name in ("constant", "constant_allowed"):
        with lib.case(name):
            assert "element 1 of the input tensors does not require grad" in (found[name] or "")


@contract("CPP-10")
def hooks_have_indices(lib: Any) -> None:
    found = facts("CPP-10") if lib.oracle else _hooks(lib)
    assert found["indices"] == [0, 1]
    assert found["third"] == 2
    assert found["seen"] == [3.0]
    assert found["replaced"] == [30.0]
    assert found["removed"] == [3.0]
    assert found["unseen"] is None
    assert found["untouched"] == [3.0]
    assert "no hook at position 7" in (found["beyond"] or "")
    assert found["next"] == 3
    assert found["other"] == 0
    assert found["inner"] == [400.0]
    assert "cannot register a hook on a variable that doesn't require gradient" in (found["constant"] or "")


def _hooks(lib: Any) -> dict[str, Any]:
    cpp, x, w = dialect(lib), lib.tensor([2.0]), lib.tensor([2.0])
    seen: list[Any] = []

    def run() -> Any:
        seen.clear()
        x.grad = None
        cpp.backward([x * 3])
        return flatten(lib, x.grad)

    # NB: a list's `append` returns None, which keeps the gradient.
    found: dict[str, Any] = {"indices": [cpp.register_hook(x, seen.append), cpp.register_hook(x, lambda g: g * 10)]}
    found["third"] = cpp.register_hook(x, lambda g: None)
    found["replaced"] = run()
    found["seen"] = flatten(lib, seen[0])
    cpp.remove_hook(x, 1)
    found["removed"] = run()
    assert len(seen) == 1
    cpp.remove_hook(x, 0)
    found["untouched"] = run()
    found["unseen"] = flatten(lib, seen[0]) if seen else None
    cpp.remove_hook(x, 0)  # a second removal does nothing
    found["beyond"] = message_of(lambda: cpp.remove_hook(x, 7))
    assert message_of(lambda: cpp.remove_hook(x, -1)) is not None
    found["next"] = cpp.register_hook(x, lambda g: None)
    y = w * w
    found["other"] = cpp.register_hook(y, lambda g: g * 100)
    cpp.backward([y])
    found["inner"] = flatten(lib, w.grad)
    found["constant"] = message_of(lambda: cpp.register_hook(lib.constant([1.0]), lambda g: None))
    del y
    gc.collect()
    assert cpp.register_hook(w * 2, lambda g: None) == 0  # hooks on another Tensor are not counted
    return found


@contract("CPP-11")
def no_grad_before_the_first_backward(lib: Any) -> None:
    if lib.oracle:
        found = facts("CPP-11")
    else:
        x, w = lib.tensor([2.0]), lib.tensor([3.0])
        found = {"before": flatten(lib, x.grad), "defined": x.grad is not None}
        dialect(lib).backward([x * x])
        found |= {"after": flatten(lib, x.grad), "other": flatten(lib, w.grad)}
    assert found["before"] is None
    assert found["defined"] is False
    assert found["after"] == [4.0]
    assert found["other"] is None


@contract("CPP-12")
def the_layouts_of_the_one_engine(lib: Any) -> None:
    if lib.oracle:
        found = facts("CPP-12")
    else:
        x = lib.ones(3, 2).mT.detach().requires_grad_()
        s = lib.ones(4, 6)[:, ::2].detach().requires_grad_()
        cpp = dialect(lib)
        cpp.backward([lib.xp.sum(x * x)])
        cpp.backward([lib.xp.sum(s * s)])
        lib.equal(s.grad, np.full((4, 3), 2.0))
        found = {"value": flatten(lib, x.grad)}
        if lib.capabilities["strides"]:
            found |= {"dense": list(x.grad.stride()), "sparse": list(s.grad.stride())}
    assert found["value"] == [2.0] * 6
    if lib.capabilities["strides"]:
        assert found["dense"] == [1, 2]
        assert found["sparse"] == [3, 1]
