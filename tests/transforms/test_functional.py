"""Law: `autograd.functional` gives PyTorch's value or error for every function, option and vector of a table."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import xpgrad as xp
from xpgrad.autograd import functional

POINTS = (np.asarray([0.7, 1.2, 0.9]), np.asarray([1.4, 0.6, 1.1]))
#: Functions of one or two Tensors in the namespace `n`, and the number of Tensors.
FUNCTIONS: dict[str, tuple[Any, int]] = {
    "elementwise": (lambda n, x: x * x, 1),
    "sum of cubes": (lambda n, x: n.sum(x**3), 1),
    "linear": (lambda n, x: n.sum(2 * x), 1),
    "shape (1, 1)": (lambda n, x: n.reshape(n.sum(x**3), (1, 1)), 1),
    "two results": (lambda n, x, y: (x * y, n.sum(x)), 2),
    "two inputs": (lambda n, x, y: n.sum(x * x * y) * n.sum(y), 2),
    "ignores one": (lambda n, x, y: n.sum(x**2), 2),
    "constant": (lambda n, x: n.sum(x.detach()), 1),
    "complex values": (lambda n, x: x * x * 1j, 1),
    "one complex value": (lambda n, x: n.sum(x * x) * 1j, 1),
}
FLAGS = [dict(zip(("create_graph", "strict"), flags, strict=True)) for flags in itertools.product((False, True), repeat=2)]
WHOLE = [*FLAGS, {"vectorize": True}, {"vectorize": True, "strict": True}, {"vectorize": True, "create_graph": True}]
VECTORS = [None, [(3,)], [(3,), (3,)], [(3,), ()], [(2,)], [()], [(1, 1)]]


def outcome(module: Any, namespace: Any, tensor: Any, name: str, function: str, vector: Any, options: Any) -> Any:
    """Return the values, or the error's type and message."""
    body, count = FUNCTIONS[function]
    points = tuple(tensor(p) for p in POINTS[:count])
    v = None if vector is None else tuple(tensor(np.full(shape, 0.7)) for shape in vector)
    arguments = () if v is None else (v if len(v) > 1 else v[0],)
    try:
        found = getattr(module, name)(lambda *x: body(namespace, *x), points if count > 1 else points[0], *arguments, **options)
    except Exception as exc:  # noqa: BLE001 (errors are compared, too)
        return type(exc), str(exc)
    return values(found)


def values(found: Any) -> Any:
    return tuple(map(values, found)) if isinstance(found, tuple) else (found.detach().numpy(), found.requires_grad)


def agree(ours: Any, theirs: Any, where: Any) -> None:
    if isinstance(theirs, tuple) and isinstance(theirs[0], type):
        assert isinstance(ours[0], type), f"{where}: PyTorch raises {theirs}, we give {ours}"
        assert issubclass(ours[0], theirs[0]) or theirs[0] is ours[0], where
    elif isinstance(theirs, tuple) and len(theirs) == 2 and isinstance(theirs[1], bool):
        assert not isinstance(ours[0], type), f"{where}: we raise {ours}"
        np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-12, atol=1e-12, err_msg=str(where))
        assert ours[0].shape == theirs[0].shape, where
        # A gradient that does not depend on the inputs may or may not have a history.
        assert ours[1] <= theirs[1], where
    else:
        assert isinstance(ours, tuple), where
        assert len(ours) == len(theirs), where
        for one, other in zip(ours, theirs, strict=True):
            agree(one, other, where)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("name", functional.__all__)
def test_as_pytorch(name: str, function: str) -> None:
    torch = pytest.importorskip("torch", reason="the oracle")
    import array_api_compat.torch as namespace

    whole = name in ("jacobian", "hessian")
    for options, vector in itertools.product(WHOLE if whole else FLAGS, [None] if whole else VECTORS):
        where = (name, function, options, vector)
        theirs = outcome(torch.autograd.functional, namespace, torch.tensor, name, function, vector, options)
        agree(outcome(functional, xp, xp.tensor, name, function, vector, options), theirs, where)


def test_results_are_differentiable_where_asked_for() -> None:
    x = xp.tensor([0.5, 2.0], requires_grad=True)
    (third,) = xp.autograd.grad(xp.sum(functional.hessian(lambda x: xp.sum(x**4), x, create_graph=True)), x)
    assert third.tolist() == [12.0, 48.0]
    assert x.grad is None
    v = xp.tensor([1.0, 3.0], requires_grad=True)
    _, product = functional.jvp(lambda x: x**3, x, v, create_graph=True)
    by_x, by_v = xp.autograd.grad(xp.sum(product), (x, v))
    assert by_x.tolist() == [3.0, 36.0]
    assert by_v.tolist() == [0.75, 12.0]


@pytest.mark.parametrize("name", functional.__all__)
def test_what_is_not_a_tensor_is_refused(name: str) -> None:
    """Inputs and outputs that are not Tensors raise TypeError (FNL-04); of two mistakes PyTorch reports another one first."""
    x, one = xp.tensor([1.0]), (xp.tensor([1.0]),)
    v = () if name in ("jacobian", "hessian") else one
    with pytest.raises(TypeError, match="must be either a Tensor or a tuple of Tensors but the given outputs has type <class 'list'>"):
        getattr(functional, name)(lambda x: [x], x, *v)
    with pytest.raises(TypeError, match="must be either a Tensor or a tuple of Tensors but the given inputs has type <class 'list'>"):
        getattr(functional, name)(lambda x: x, [x], *v)


def test_an_empty_output_has_an_empty_jacobian() -> None:
    """The Jacobian of an empty output is empty (PyTorch 2.13 fails in its own `stack`)."""
    assert functional.jacobian(lambda x: x[:0], xp.tensor([1.0, 2.0])).shape == (0, 2)
