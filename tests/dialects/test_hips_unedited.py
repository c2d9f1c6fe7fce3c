"""Law: programs and tests for HIPS autograd run on the dialect without an edited line, where it is installed in autograd's place."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

theirs = pytest.importorskip("autograd", reason="HIPS autograd is what is compared with; the extra `bench` brings it")
from dialects.libraries import OURS, V, W  # noqa: E402 (behind the skip)
from dialects.test_hips import HIPS, assert_same  # noqa: E402 (behind the skip)
from dialects.test_hips_extended import second_derivative_of_a_cube, unbox  # noqa: E402 (behind the skip)
from xpgrad.dialects import hips as ours  # noqa: E402 (behind the skip)

PROGRAM = """
import sys
import autograd
import autograd.numpy as np
import autograd.numpy.random as npr
from autograd import grad
from autograd.core import VJPNode, backward_pass, make_vjp
from autograd.tracer import isbox, trace
from autograd.misc.flatten import flatten

assert sys.modules["autograd.numpy"] is autograd.numpy is np
assert sys.modules["xpgrad.dialects.hips.numpy"] is np
assert autograd.__spec__.name == "xpgrad.dialects.hips"
classes = []
grad(lambda x: classes.append(type(x)) or x)(1.0)
assert f"{classes[0].__module__}.{classes[0].__qualname__}" == "autograd.numpy.numpy_boxes.ArrayBox"
value, end = trace(VJPNode.new_root(), lambda x: np.sin(x) * x, np.array([1.0, 2.0]))
print(sys.argv[1:], grad(lambda x: x**3)(2.0), backward_pass(np.ones(2), end).round(3).tolist())
"""


def run(*arguments: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run Python in a process of its own, with warnings as errors."""
    return subprocess.run([sys.executable, "-W", "error", *arguments], capture_output=True, text=True, cwd=folder, timeout=120, check=False)


# -- in autograd's place -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["file", "module", "install"])
def test_a_program_runs_as_it_stands(how: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    calls = {
        "file": ("-m", "xpgrad.dialects.hips", "program.py", "a", "-b"),
        "module": ("-m", "xpgrad.dialects.hips", "-m", "program", "a", "-b"),
        "install": ("-c", f"from xpgrad.dialects.hips import install\ninstall()\ninstall()\n{PROGRAM}", "a", "-b"),
    }
    found = run(*calls[how], folder=tmp_path)
    assert found.stdout == "['a', '-b'] 12.0 [1.382, 0.077]\n", found.stderr


def test_tests_run_as_they_stand(tmp_path: Path) -> None:
    text = 'import autograd\n\n\ndef test_it():\n    assert autograd.__name__ == "xpgrad.dialects.hips"\n'
    (tmp_path / "test_theirs.py").write_text(text, encoding="utf-8")
    assert run("-m", "pytest", "-q", "-p", "xpgrad_hips", "-p", "no:cacheprovider", folder=tmp_path).returncode == 0
    assert run("-m", "pytest", "-q", "-p", "no:cacheprovider", folder=tmp_path).returncode == 1


def test_autograd_itself_must_not_be_imported_before() -> None:
    found = run("-W", "default", "-c", "import autograd.numpy\nfrom xpgrad.dialects.hips import install\ninstall()")
    assert "RuntimeError: `autograd` has been imported already" in found.stderr
    assert "python -m xpgrad.dialects.hips PROGRAM" in found.stderr


def test_a_module_that_the_dialect_lacks() -> None:
    for name in ("autograd.nothing", "autograd.numpy.nothing"):
        found = run("-c", f"from xpgrad.dialects.hips import install\ninstall()\nimport {name}")
        assert f"ModuleNotFoundError: No module named '{name}': `xpgrad.dialects.hips`" in found.stderr


def test_the_command_says_how_it_is_used(tmp_path: Path) -> None:
    for arguments, code in (((), 2), (("-m",), 2), (("nothing.py",), 2), (("--help",), 0)):
        found = run("-m", "xpgrad.dialects.hips", *arguments, folder=tmp_path)
        assert found.returncode == code
        assert "usage: python -m xpgrad.dialects.hips" in found.stdout + found.stderr
    (tmp_path / "fails.py").write_text("raise SystemExit(5)", encoding="utf-8")
    assert run("-m", "xpgrad.dialects.hips", "fails.py", folder=tmp_path).returncode == 5


#: Modules of autograd that only its own functions use.
INTERNAL = {"autograd.numpy.numpy_jvps"}


def test_every_module_is_there() -> None:
    names = [m.name for m in pkgutil.walk_packages(theirs.__path__, "autograd.")]
    assert len(names) > 30
    for name in set(names) - INTERNAL:
        importlib.import_module(name.replace("autograd", "xpgrad.dialects.hips", 1))


# -- names that programs import --------------------------------------------------------------------------------------------


def both(name: str, attribute: str) -> tuple[Any, Any]:
    """Return an attribute of a module of HIPS autograd, and that of the dialect."""
    return tuple(getattr(importlib.import_module(f"{p.__name__}{name}"), attribute) for p in (theirs, ours))  # type: ignore[return-value]


def test_products_by_hand() -> None:
    back, forth = both(".core", "make_vjp"), both(".core", "make_jvp")
    assert_same(back[1](lambda x: OURS.np.sin(x) * x, V)[0](W), back[0](lambda x: HIPS.np.sin(x) * x, V)[0](W))
    assert_same(forth[1](lambda x: OURS.np.sin(x) * x, V)(W), forth[0](lambda x: HIPS.np.sin(x) * x, V)(W))
    results = []
    for p, lib in ((theirs, HIPS), (ours, OURS)):
        core, tracer = (importlib.import_module(f"{p.__name__}.{part}") for part in ("core", "tracer"))
        value, end = tracer.trace(core.VJPNode.new_root(), lambda x, lib=lib: lib.np.sum(x**2) * x, V)
        forward, tangent = tracer.trace(core.JVPNode.new_root(W), lambda x, lib=lib: lib.np.exp(x), V)
        results.append([value, core.backward_pass(W, end), forward, tangent.g])
        with pytest.warns(UserWarning, match="independent"):
            assert tracer.trace(core.VJPNode.new_root(), lambda x: 3.0, V)[1] is None
    assert_same(results[1], results[0])
    with pytest.raises(TypeError, match="VJPNode or JVPNode"):
        importlib.import_module("xpgrad.dialects.hips.tracer").trace(object(), lambda x: x, V)
    with pytest.raises(TypeError, match="Mine: nodes of a program's own class are not supported"):
        type("Mine", (importlib.import_module("xpgrad.dialects.hips.tracer").Node,), {})


def test_sums_of_gradients() -> None:
    for p in (theirs, ours):
        core = importlib.import_module(f"{p.__name__}.core")
        total, is_own = core.add_outgrads(core.add_outgrads(None, V), W)
        np.testing.assert_allclose(total, V + W)
        assert is_own
        np.testing.assert_allclose(core.sum_outgrads([V, W, V]), 2 * V + W)


def test_tools() -> None:
    for attribute, args in (("subvals", ([1, 2, 3], [(0, 9), (2, 7)])), ("subval", ([1, 2, 3], 1, 5))):
        a, b = both(".util", attribute)
        assert tuple(a(*args)) == tuple(b(*args))

    class Node:
        def __init__(self, *parents: Any) -> None:
            self.parents = parents

    root = Node()
    left, right = Node(root), Node(root)
    order = list(both(".util", "toposort")[1](Node(left, right, left)))
    assert len(order) == 4
    assert order[-1] is root
    wraps = both(".wrap_util", "wraps")[1]
    made = wraps(np.sum, "{op}_of_{fun}", "About {fun}.", op="grad")(lambda x: x)
    assert (made.__name__, made.__doc__) == ("grad_of_sum", "About sum.")


def test_const_graph_follows_new_arguments() -> None:
    maker = both(".misc.tracers", "const_graph")
    a = maker[0](HIPS.grad(lambda s, x: HIPS.np.sum(HIPS.np.sin(x) * s), 1), 2.0)
    b = maker[1](OURS.grad(lambda s, x: OURS.np.sum(OURS.np.sin(x) * s), 1), 2.0)
    for x in (V, W):
        assert_same(b(x), a(x))
    assert_same(b(V[:2]), 2.0 * np.cos(V[:2]))
    counts: list[int] = []
    once = OURS.misc.const_graph(lambda x: counts.append(1) or OURS.np.sum(x**2))
    assert [float(once(x)) for x in (V, W, W)] == [float((x**2).sum()) for x in (V, W, W)]
    assert len(counts) == 1
    np.testing.assert_allclose(ours.grad(once)(V), 2 * V)


# -- lists, generators, keywords ---------------------------------------------------------------------------------------------

CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "stack of values": lambda np, x: np.stack({"a": x, "b": x * 2}.values()),
    "stack of a map": lambda np, x: np.stack(map(abs, [x, 2.0 * x])),
    "concatenate of a generator": lambda np, x: np.concatenate(k * x for k in (1, 2)),
    "vstack of a generator": lambda np, x: np.vstack(k * x for k in (1, 2)),
    "list - x": lambda np, x: [1.0, 2.0, 3.0, 4.0, 5.0] - x,
    "x * list": lambda np, x: x * [1.0, 2.0, 3.0, 4.0, 5.0],
    "list of one * x": lambda np, x: [2.0] * x,
    "tuple / x": lambda np, x: (1.0, 2.0, 3.0, 4.0, 5.0) / x,
    "x > list": lambda np, x: x * (x > [0.0, 0.1, 0.0, 0.1, 0.0]),
    "norm of a list": lambda np, x: np.linalg.norm([x[0], x[1] + 2.0]),
    "append of lists": lambda np, x: np.append([x[0]], [x[1] * 2]),
    "where by keywords": lambda np, x: np.where(condition=x > 0, x=x, y=x**2),
    "vectorize": lambda np, x: np.vectorize(lambda a, b: a * b + 1.0)(x, 2.0),
    "dtype ==": lambda np, x: x * (2.0 if x.dtype == np.float64 else 0.0),
    "dtype in": lambda np, x: x * (2.0 if x.dtype in (np.float32, np.float64) else 0.0),
}


@pytest.mark.parametrize("name", CALLS)
def test_spellings_that_autograd_takes(name: str) -> None:
    call = CALLS[name]
    found = [lib.grad(lambda x, lib=lib: lib.np.sum(call(lib.np, x) ** 2))(V) for lib in (HIPS, OURS)]
    assert_same(found[1], found[0])
    second = [lib.jacobian(lib.grad(lambda x, lib=lib: lib.np.sum(call(lib.np, x) ** 2)))(V) for lib in (HIPS, OURS)]
    assert_same(second[1], second[0])


def test_lists_beside_matrices_and_as_exponents() -> None:
    """Where HIPS autograd's rules fail for some of them."""
    numbers = [1.0, 2.0, 3.0, 4.0, 5.0]
    np.testing.assert_array_equal(ours.grad(lambda x: x @ numbers)(V), numbers)
    np.testing.assert_array_equal(ours.grad(lambda x: numbers @ x)(V), numbers)
    np.testing.assert_allclose(ours.grad(lambda x: OURS.np.sum(x ** [[1.0], [2.0]]))(V), 1.0 + 2.0 * V)


def test_the_value_without_one_level() -> None:
    """`_value` has no derivative in the innermost run on which the value depends, and all the others, as in HIPS autograd."""
    for lib in (HIPS, OURS):
        grad, box, jacobian = lib.grad, lib.extend.Box, lib.jacobian
        assert grad(lambda x, box=box: x * unbox(x, box))(2.0) == 2.0
        found = grad(lambda d, box=box: d["a"] * unbox(d["a"] * d["b"], box))({"a": 2.0, "b": 3.0})
        assert found == {"a": 6.0, "b": 0.0}
        # the inner value depends on the inner argument only, or on the outer one only
        assert grad(lambda a, g=grad, box=box: a * g(lambda b: b * b * unbox(b, box))(2.0))(3.0) == 8.0
        assert grad(lambda a, g=grad, box=box: a * g(lambda b: b * unbox(a, box))(2.0))(3.0) == 3.0
        assert grad(grad(lambda x: x * x * x._value))(2.0) == 8.0  # (2 x) x
        assert grad(lambda a, g=grad: g(lambda b: b * (a * b)._value)(2.0))(3.0) == 2.0
        assert grad(grad(lambda x, box=box: x * x * unbox(x, box)))(2.0) == 4.0
        # a run that has ended is no level
        ended = grad(lambda a, g=grad, box=box: a * unbox(g(lambda b: b * b * a)(1.0), box))(3.0)
        assert ended == 6.0
        np.testing.assert_array_equal(jacobian(jacobian(lambda x, lib=lib: lib.np.sum(x * x._value * V)))(V), np.diag(V))
        # a pass of the run may be asked for later, and again
        pull, _ = lib.make_vjp(grad(lambda x: x * x * x._value))(2.0)
        assert (pull(1.0), pull(2.0)) == (8.0, 16.0)
    for nested in (
        lambda: ours.make_jvp(lambda x: x * x._value)(2.0)(1.0),
        lambda: ours.make_jvp(ours.grad(lambda x: x * x * x._value))(2.0)(1.0),
    ):
        with pytest.raises(AttributeError, match="getval"):
            nested()


@pytest.mark.filterwarnings("ignore:Output seems independent of input")
@given(st.data())
def test_values_without_levels_in_generated_programs(data: Any) -> None:
    """A random expression of two or three nested arguments, some of its parts without a level: the derivatives of all levels agree."""
    depth = data.draw(st.integers(2, 3))
    kinds = st.sampled_from(("mul", "add", "sin", "value", "unbox"))
    indices = [st.integers(0, depth + n - 1) for n in range(data.draw(st.integers(3, 8)))]
    steps = [(data.draw(index), data.draw(index), data.draw(kinds)) for index in indices]
    point = data.draw(st.floats(0.5, 1.5))

    def program(lib: Any, args: Any) -> Any:
        values = list(args)
        for i, j, what in steps:
            x, y = values[i], values[j]
            if what == "value":
                values.append(x._value if isinstance(x, lib.extend.Box) else x)
            elif what == "unbox":
                values.append(unbox(x, lib.extend.Box))
            else:
                values.append(lib.np.sin(x) if what == "sin" else x * y if what == "mul" else x + y)
        return sum(values)

    def nest(lib: Any, args: Any) -> Any:
        """The function of one argument whose result is the derivative in the next one, and so on."""
        if len(args) == depth - 1:
            return lambda x: program(lib, (*args, x))
        return lambda x: lib.grad(nest(lib, (*args, x)))(x * 1.25)

    found, expected = (lib.grad(nest(lib, ()))(point) for lib in (OURS, HIPS))
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("nested", [False, True])
def test_values_without_a_level_in_a_rule(nested: bool) -> None:
    np.testing.assert_allclose(second_derivative_of_a_cube(OURS, nested), second_derivative_of_a_cube(HIPS, nested), rtol=1e-12)


INDEPENDENT: dict[str, Callable[[Any], Any]] = {
    "grad": lambda lib: lib.grad(lambda x: 1.0)(2.0),
    "grad of another argument": lambda lib: lib.value_and_grad(lambda x, y: y)(2.0, 3.0),
    "jacobian": lambda lib: lib.jacobian(lambda x: lib.np.ones(2))(V),
    "make_vjp": lambda lib: lib.make_vjp(lambda x: x > 1.0)(V)[0](V),
    "make_jvp": lambda lib: lib.make_jvp(lambda x: lib.np.ones(2))(V)(V),
    "deriv": lambda lib: lib.deriv(lambda x: 3.0)(1.0),
    "elementwise_grad": lambda lib: lib.elementwise_grad(lambda x: lib.np.ones(2))(V),
    "hessian": lambda lib: lib.hessian(lambda x: lib.np.sum(3.0 * x))(V),
    "make_hvp": lambda lib: lib.make_hvp(lib.np.sum)(V)[0](V),
    "dependent": lambda lib: lib.grad(lambda x: lib.np.sum(0.0 * x))(V),
}


@pytest.mark.parametrize("case", INDEPENDENT)
def test_a_value_without_history_is_warned_of(case: str) -> None:
    """With their words, and once; ours at the user's line."""
    with warnings.catch_warnings(record=True) as expected:
        warnings.simplefilter("always")
        INDEPENDENT[case](HIPS)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        INDEPENDENT[case](OURS)
    assert [str(w.message) for w in found] == [str(w.message) for w in expected]
    assert {w.filename for w in found} <= {__file__}


# -- classes of a program's own --------------------------------------------------------------------------------------------


def test_runs_of_a_programs_own() -> None:
    """Values of `new_box` and what depends on them have the run as `_trace`, in the run and after it; derivatives pass through them."""
    for lib in (HIPS, OURS):
        tracer, root = lib.tracer, lib.extend.VJPNode.new_root()

        def depends(f: Any, *args: Any, tracer: Any = tracer, root: Any = root) -> bool:
            with tracer.trace_stack.new_trace() as run:
                start = tracer.new_box(args, run, root)
                end = f(*start)
            return bool(tracer.isbox(end) and end._trace == start._trace)

        assert depends(lambda x, np=lib.np: np.sin(x) * 2.0, 1.0)
        assert depends(lambda x, y: y[0], V, V)
        assert not depends(lambda x: 2.0, 1.0)
        assert lib.grad(lambda x, depends=depends: x * depends(lambda y: y * x, 1.0) + x * depends(lambda y: x, 1.0))(2.0) == 1.0
        with tracer.trace_stack.new_trace() as run:
            box = tracer.new_box(2.0, run, root)
            assert (box * 3.0)._value == 6.0
    assert ours.grad(lambda x: OURS.tracer.new_box(x, run, root) * 3.0)(2.0) == 3.0
    with pytest.raises(TypeError, match="new_box: the node must be"), OURS.tracer.trace_stack.new_trace() as run:
        OURS.tracer.new_box(1.0, run, OURS.extend.JVPNode.new_root(1.0))
    with pytest.raises(AttributeError, match="depends on no run"):
        OURS.extend.Box(2.0)._trace


def test_passes_by_hand() -> None:
    """A run has a number, and `x._node` is where a pass begins: so pymoo computes Jacobians of several results at once."""

    def jacobians(lib: Any, core: Any, x: Any) -> dict[str, Any]:
        tracer, np_ = lib.tracer, lib.np
        start = tracer.new_box(x, 0, core.VJPNode.new_root())
        out = {"F": np_.sin(start) * start, "G": np_.outer(start, start[::-1]).ravel()[:3], "H": np_.exp(start[1])}
        found = {}
        for name, value in out.items():
            assert value._trace == start._trace
            assert type(value._value) in (np.ndarray, np.float64)
            rows = []
            for seed in np.eye(np.size(value._value)).reshape(-1, *np.shape(value._value)):
                rows.append(core.backward_pass(tracer.new_box(seed, 0, core.VJPNode.new_root()), value._node))
                np.testing.assert_allclose(core.backward_pass(seed, value._node), rows[-1]._value)
            assert all(tracer.isbox(row) for row in rows)
            found[name] = np_.stack(rows, axis=0)._value
            assert type(found[name]) is np.ndarray
        return found

    x = np.array([1.0, 2.0, 3.0])
    core = importlib.import_module("xpgrad.dialects.hips.core")
    assert_same(jacobians(OURS, core, x), jacobians(HIPS, importlib.import_module("autograd.core"), x))

    def slope(x: Any) -> Any:
        with OURS.tracer.trace_stack.new_trace() as run:
            start = OURS.tracer.new_box(x, run, core.VJPNode.new_root())
            return core.backward_pass(1.0, (start**3 * x)._node)

    assert (slope(2.0), ours.grad(slope)(2.0), ours.grad(ours.grad(slope))(2.0)) == (24.0, 36.0, 36.0)  # of 3 x³
    both = OURS.tracer.new_box(x, 0, core.VJPNode.new_root()) * OURS.tracer.new_box(x, 0, core.VJPNode.new_root())
    with pytest.raises(TypeError, match="depends on 2 arguments"):
        core.backward_pass(x, both._node)
    end = (OURS.tracer.new_box(x, 0, core.VJPNode.new_root()) * 0.5)._node
    for unfit in (np.ones(2), 1.0, x * 1j):
        with pytest.raises(ValueError, match="give a cotangent with the shape of the value"):
            core.backward_pass(unfit, end)
    narrow = OURS.tracer.new_box(x.astype("float32"), 0, core.VJPNode.new_root())
    assert core.backward_pass(x, (narrow * 2)._node).dtype == "float32"
    for wrong in (core.VJPNode.new_root(), None):
        with pytest.raises(TypeError, match="no end of a run"):
            core.backward_pass(x, wrong)


def test_where_of_numbers_stays_a_number() -> None:
    for condition, x, y in ((True, 1, 2), (False, 1, 2.0), (True, [1, 2], [3, 4])):
        found = OURS.np.where(condition, x, y)
        assert type(found) is type(HIPS.np.where(condition, x, y))
        assert found == (x if condition else y)


# -- rules ---------------------------------------------------------------------------------------------------------------------


def test_a_rule_for_a_function_that_is_no_primitive() -> None:
    """HIPS autograd accepts it, and never uses it."""

    def double(x: Any) -> Any:
        return 2.0 * x

    with pytest.warns(UserWarning, match="not decorated with `@primitive`"):
        OURS.extend.defvjp(double, lambda ans, x: lambda g: 77.0 * g)
    HIPS.extend.defvjp(double, lambda ans, x: lambda g: 77.0 * g)
    assert ours.grad(double)(1.0) == theirs.grad(double)(1.0) == 2.0
    with pytest.warns(UserWarning, match="'sin' has xpgrad's derivative already, .*: your rule is not used"):
        OURS.extend.defvjp(np.sin, lambda ans, x: lambda g: g)
    assert ours.grad(OURS.np.sin)(0.0) == 1.0


def test_a_rule_whose_derivative_is_wrong_is_found() -> None:
    for lib in (HIPS, OURS):
        double = lib.primitive(lambda x: x * 2.0)
        same = lib.primitive(lambda x: x)
        lib.extend.defvjp(double, lambda ans, x, same=same: lambda g: same(g) * 2)
        lib.extend.defvjp(same, lambda ans, x: lambda g: g * 1.001)
        with pytest.raises(AssertionError, match=r"\(VJP\) check"):
            lib.test_util.check_grads(double, modes=["rev"])(1.0)
