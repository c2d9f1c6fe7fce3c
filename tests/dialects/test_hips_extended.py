"""Law: rules and classes of arrays that a program adds to the dialect decide as its page says, without HIPS autograd, too."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dialects.libraries import OURS, V
from xpgrad.dialects import hips as ours

# -- rules --------------------------------------------------------------------------------------------------------------------


def unbox(x: Any, box: Any) -> Any:
    """Return a value without any level."""
    while isinstance(x, box):
        x = x._value
    return x


def second_derivative_of_a_cube(lib: Any, nested: bool) -> float:
    """Return the second derivative of sin(x³) at 1.25, with a rule for x³ that takes off a level what it closed over."""
    box = lib.extend.Box

    def cube(x: Any) -> Any:
        @lib.extend.primitive
        def cubed(y: Any, note: str) -> Any:
            return (y[0] if nested else y) ** 3

        def maker(ans: Any, y: Any, note: str) -> Any:
            slope = 3.0 * x**2
            part = slope._value if isinstance(slope, box) else slope
            return lambda g: lib.np.array([g * part]) if nested else g * part

        lib.extend.defvjp(cubed, maker, argnums=[0])
        return cubed(lib.list([x]) if nested else x, "a note")

    return unbox(lib.grad(lib.grad(lambda x: lib.np.sin(cube(x))))(1.25), box)


@pytest.mark.parametrize("nested", [False, True])
def test_values_without_a_level_in_a_rule(nested: bool) -> None:
    """A rule takes the level of its own run off a value that it closed over: the derivatives of the outer runs pass through it.

    The gradient of a list may be an array, with an element for each item.
    """
    expected = 6 * 1.25 * np.cos(1.25**3) - 9 * 1.25**4 * np.sin(1.25**3)
    assert second_derivative_of_a_cube(OURS, nested) == pytest.approx(expected, rel=1e-12)


def test_what_a_rule_returns_for_lists() -> None:
    """It may be an array in place of a list, but not of another length."""
    total = OURS.extend.primitive(sum)
    double = OURS.extend.primitive(lambda x: [x, 2.0 * x])
    double.__name__ = "double"
    for found, expected in ((np.ones(2), 3.0), ((1.0, 2.0), 5.0), (np.ones(3), None), (np.ones(()), None), ([1.0], None)):
        OURS.extend.defvjp(total, lambda ans, x, found=found: lambda g: found)
        OURS.extend.defjvp(double, lambda g, ans, x, found=found: found)
        if expected is not None:
            assert ours.grad(lambda x: total([x, 2.0 * x]))(1.0) == expected
            assert ours.make_jvp(lambda x: double(x)[0] + 2.0 * double(x)[1])(1.0)(1.0)[1] == expected
            continue
        with pytest.raises(TypeError, match="sum: the vjp of argument 0 returned something that is not arranged like the argument"):
            ours.grad(lambda x: total([x, 2.0 * x]))(1.0)
        with pytest.raises(TypeError, match="double: the jvp returned something that is not arranged like the value"):
            ours.make_jvp(double)(1.0)(1.0)


def test_a_value_with_integers() -> None:
    """Rules return derivatives for them, too, which count for nothing in either mode."""

    @ours.primitive
    def sorted_with_places(x: Any) -> tuple[Any, Any]:
        return np.sort(x), np.argsort(x)

    OURS.extend.defvjp(sorted_with_places, lambda ans, x: lambda g: g[0][np.argsort(ans[1])])
    OURS.extend.defjvp(sorted_with_places, lambda g, ans, x: (g[ans[1]], np.ones(len(x))))

    def f(x: Any) -> Any:
        values, places = sorted_with_places(x)
        return np.sum(values * np.array([1.0, 10.0, 100.0]) * (1 + places))

    x = np.array([3.0, 1.0, 2.0])
    expected = np.array([100.0, 2.0, 30.0])
    np.testing.assert_array_equal(ours.grad(f)(x), expected)
    for v in np.eye(3):
        assert ours.make_jvp(f)(x)(v)[1] == expected @ v


def test_rules_are_found_and_removed() -> None:
    from xpgrad.dialects.hips.core import primitive_vjps  # loads late: under test

    cube = ours.primitive(lambda x: x**3)
    assert cube not in primitive_vjps
    OURS.extend.defvjp(cube, lambda ans, x: lambda g: 3 * x**2 * g)
    assert primitive_vjps[cube] is not None
    assert cube in list(primitive_vjps)
    assert ours.grad(cube)(2.0) == 12.0
    rule = primitive_vjps.pop(cube)
    with pytest.raises(NotImplementedError, match="not defined"):
        ours.grad(cube)(2.0)
    primitive_vjps[cube] = rule
    assert ours.grad(cube)(2.0) == 12.0
    assert primitive_vjps.pop(np.sin, None) is None


def test_rules_of_functions_of_scipy() -> None:
    linalg = importlib.import_module("xpgrad.dialects.hips.scipy.linalg")
    a = np.eye(2) * 0.5
    np.testing.assert_allclose(ours.grad(lambda x: np.sum(linalg.expm(x)))(a), np.full((2, 2), np.exp(0.5)))
    with pytest.raises(NotImplementedError, match="VJP of hessenberg"):
        ours.grad(lambda x: np.sum(linalg.hessenberg(x)))(a)
    np.testing.assert_array_equal(linalg.block_diag(a, a).shape, (4, 4))
    OURS.extend.defvjp(linalg.block_diag, lambda ans, x, y: lambda g: g[:2, :2], lambda ans, x, y: lambda g: g[2:, 2:])
    np.testing.assert_array_equal(ours.grad(lambda x: np.sum(linalg.block_diag(x, 2 * x)))(a), np.full((2, 2), 3.0))
    assert linalg.LinAlgError is np.linalg.LinAlgError
    with pytest.raises(AttributeError):
        linalg.nothing


def test_a_rule_for_one_mode_leaves_the_other_as_it_is() -> None:
    """A program that adds a jvp to a function of SciPy keeps its vjp, and the other way round."""
    special = importlib.import_module("xpgrad.dialects.hips.scipy.special")
    expit, erfc = (getattr(special, name) for name in ("expit", "erfc"))
    OURS.extend.defjvp(expit, lambda g, ans, x: g * ans * (1 - ans) * 3)
    OURS.extend.defvjp(erfc, lambda ans, x: lambda g: 7.0 * g)
    try:
        assert ours.grad(expit)(0.0) == 0.25
        assert ours.make_jvp(expit)(0.0)(2.0)[1] == 1.5
        assert ours.grad(erfc)(0.0) == 7.0
        np.testing.assert_allclose(ours.make_jvp(erfc)(0.0)(1.0)[1], -2 / np.sqrt(np.pi))
    finally:
        expit._jvps = erfc._vjps = None


# -- classes of a program's own -----------------------------------------------------------------------------------------------


class Marked(np.ndarray):
    """An array that says whether it is to be differentiated, and keeps that through ufuncs."""

    marked = True

    def __array_finalize__(self, other: Any) -> None:
        self.marked = getattr(other, "marked", True)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        plain = [x.view(np.ndarray) if isinstance(x, Marked) else x for x in inputs]
        return np.asarray(super().__array_ufunc__(ufunc, method, *plain, **kwargs)).view(Marked)


def test_arrays_of_a_programs_own_class() -> None:
    """What is registered decides with respect to which of them one can differentiate; beside Tensors they are arrays like others.

    In HIPS autograd 1.9, ufuncs ask such a class before a box, and its gradients can be zero; PennyLane, which has such a class, needs 1.8.
    """
    boxes = importlib.import_module("xpgrad.dialects.hips.numpy.numpy_boxes")
    spaces = importlib.import_module("xpgrad.dialects.hips.numpy.numpy_vspaces")

    def boxed(x: Any, *rest: Any) -> Any:
        if not x.marked:
            raise ZeroDivisionError
        return boxes.ArrayBox(x, *rest)

    OURS.extend.Box.type_mappings[Marked] = boxed
    OURS.extend.VSpace.mappings[Marked] = spaces.ArrayVSpace
    x, c = np.array([1.0, 2.0]), np.array([2.0, 3.0])
    constant = c.view(Marked)
    cases: list[tuple[Callable[[Any], Any], Any]] = [
        (lambda x: np.sum(constant * x + x / constant - constant**2 * x), c + 1 / c - c**2),
        (lambda x: np.sum(np.multiply(constant, x) + np.maximum(constant, x)), c),
        (lambda x: np.exp(x) @ constant, np.exp(x) * c),
    ]
    for function, expected in cases:
        for kind in (Marked, np.ndarray):
            np.testing.assert_allclose(ours.grad(function)(x.view(kind)), expected, rtol=1e-12)
    refused = x.view(Marked)
    refused.marked = False
    with pytest.raises(ZeroDivisionError):
        ours.grad(cases[0][0])(refused)
    assert OURS.extend.vspace(constant) == OURS.extend.vspace(c)
    assert type(constant * c) is Marked
    np.testing.assert_array_equal(constant * c, c * c)


def test_only_arrays_are_registered() -> None:
    class Other(np.ndarray):
        pass

    assert OURS.extend.Box.register(Other) is Other
    np.testing.assert_array_equal(ours.grad(lambda x: np.sum(x * x))(V.view(Other)), 2 * V)
    with pytest.raises(TypeError, match=r"Box\.register: str is no subclass of `numpy.ndarray`"):
        OURS.extend.Box.register(str)
    with pytest.raises(TypeError, match="cannot differentiate with respect to str"):
        OURS.extend.Box.type_mappings[Other]("text")
    OURS.extend.VSpace.register(str, len)
    assert OURS.extend.vspace("text") == 4


def test_containers_inside_a_function() -> None:
    builtins = importlib.import_module("xpgrad.dialects.hips.builtins")
    assert isinstance([], builtins.SequenceBox)
    assert isinstance((), builtins.SequenceBox)
    assert isinstance({}, builtins.DictBox)
    assert not isinstance({}, builtins.SequenceBox)
    assert builtins.SequenceBox.__qualname__ == "SequenceBox"


# -- values -------------------------------------------------------------------------------------------------------------------


def test_a_comparison_has_a_vjp_of_zeros() -> None:
    for compare in (lambda x: x > 0.5, lambda x: x == 2.0):
        with pytest.warns(UserWarning, match="independent"):
            vjp, value = ours.make_vjp(compare)(V)
        np.testing.assert_array_equal(value, compare(V))
        np.testing.assert_array_equal(vjp(V), np.zeros_like(V))
        with pytest.raises(TypeError, match="no derivative"):
            ours.jacobian(compare)(V)


def test_the_values_of_eigh_are_numpys() -> None:
    """Whether a derivative is computed or not, and whichever triangle is read: also the signs of the eigenvectors."""
    a = np.random.default_rng(3).normal(size=(2, 6, 6))
    for triangle in ("L", "U"):
        for matrix in (a[0], a):
            values, vectors = np.linalg.eigh(matrix, triangle)
            seen: list[Any] = []
            ours.grad(lambda x, t=triangle, seen=seen: seen.append(OURS.np.linalg.eigh(x, t)) or OURS.np.sum(seen[0][1] ** 3))(matrix)
            np.testing.assert_array_equal(OURS.tracer.getval(seen[0][0]), values)
            np.testing.assert_array_equal(OURS.tracer.getval(seen[0][1]), vectors)
            ours.test_util.check_grads(lambda x, t=triangle: tuple(OURS.np.linalg.eigh(x, t)), modes=["rev"], order=1)(
                matrix + 8 * np.eye(6)
            )
