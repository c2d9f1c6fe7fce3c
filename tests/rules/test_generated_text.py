"""Law: the generated text is what the documentation shows, and none of its own names can clash with an operation's argument.

The references are the examples in the generators' docstrings, and handwritten derivatives.
"""

from __future__ import annotations

import builtins
import dis
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from types import CodeType
from typing import Any

import numpy as np
import pytest

import xpgrad as xp
from support.central_differences import values
from support.rows import forgetting_rows
from xpgrad._operations import backward, forward
from xpgrad._operations.__main__ import main
from xpgrad._operations.backward import node_text
from xpgrad._operations.declare import elementwise, rule, view
from xpgrad._operations.dispatch import dispatcher_text
from xpgrad._operations.forward import forms
from xpgrad._rows.row import ROWS
from xpgrad.registry import backend_for

#: Names that generated text once used for its own locals and globals, except `cls`, which a node has as an attribute.
ONCE_RESERVED = [
    "View", "a", "alias_of", "ref", "self", "empty", "retain", "push", "mode", "new", "number", "kernel", "slow", "op", "sop", "srop",
    "own", "b", "c", "e", "m", "n", "o", "q", "r", "s", "v", "z", "K", "T", "B", "ROW", "ARRAY", "explain", "current_stream",
    "operand_shape", "into", "k", "t", "exc", "f0", "v0", "v1", "freed", "scale", "sum_to", "prod", "check_version", "TensorBase",
    "coerce", "public",
]  # fmt: skip

#: Three names for the three arguments of an operation; each name occurs in each position.
TRIPLES = list(zip(ONCE_RESERVED, ONCE_RESERVED[1:] + ONCE_RESERVED[:1], ONCE_RESERVED[2:] + ONCE_RESERVED[:2]))
PAIRS = [(first, second) for first, second, _ in TRIPLES]


# -- what developers are shown -----------------------------------------------------------------------------------------
def test_the_examples_in_the_docstrings_are_what_is_generated() -> None:
    numpy, multiply = backend_for("numpy"), ROWS["multiply"]
    operation = forms(numpy, multiply)[0].text.source
    node = node_text(numpy, multiply, "gc", False).source
    for module, source in ((forward, operation), (backward, node)):
        example = (module.__doc__ or "").partition("::\n\n")[2]
        assert textwrap.dedent(example) == source


def test_the_command_prints_what_is_generated(capsys: pytest.CaptureFixture[str]) -> None:
    command = [sys.executable, "-m", "xpgrad._operations", "multiply", "gc"]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    numpy, multiply = backend_for("numpy"), ROWS["multiply"]
    assert run.stdout == node_text(numpy, multiply, "gc", False).source
    assert main(["multiply", "gc", "--broadcast"]) == 0
    assert capsys.readouterr().out == node_text(numpy, multiply, "gc", True).source
    assert main(["multiply"]) == 0
    shown = capsys.readouterr().out
    assert [line for line in shown.splitlines() if line.startswith("def ")] == [
        "def public(x1, x2, /):", "def _op(_t_x1, _t_x2):", "def _sop(_t_x1, x2):", "def _srop(_t_x2, x1):",
    ]  # fmt: skip
    assert all(form.text.source in shown for form in forms(numpy, multiply))
    assert main(["join", "--backend", "numpy+readonly"]) == 0
    assert capsys.readouterr().out == dispatcher_text(ROWS["join"]).source


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("sum", "no row is named 'sum'; there is reduce_sum"),
        ("multply", "no row is named 'multply'; there is multiply"),
        ("multiply gs --broadcast", "no node class is generated for multiply gs --broadcast; those of multiply: cg, cg --broadcast, gc,"),
        ("exp c", "no node class is generated for exp c; those of exp: g\n"),
        ("join g", "no node class is generated for join g; those of join: none"),
        ("multiply --backend nowhere", "no such backend: 'nowhere'"),
    ],
)
def test_the_command_says_what_there_is_instead(arguments: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments.split()) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert message in shown.err


# -- names -------------------------------------------------------------------------------------------------------------
def _names(code: CodeType) -> Iterator[tuple[CodeType, str]]:
    """Yield each function in a piece of code with each of its local and global names."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
    if code.co_flags & 0x01:  # only functions have arguments to clash with
        yield from ((code, name) for name in code.co_varnames)
        yield from ((code, i.argval) for i in dis.get_instructions(code) if i.opname == "LOAD_GLOBAL")


@pytest.mark.slow
@pytest.mark.parametrize("device", ["numpy", "strict"])
def test_every_name_of_the_generator_begins_with_an_underscore(device: str) -> None:
    pytest.importorskip(f"xpgrad_{device}")
    backend = backend_for(device)
    for row in ROWS.values():
        made = [] if row.varargs else forms(backend, row)
        nodes = [node_text(backend, row, mask, broad) for form in made for mask, broad in form.patterns]
        arguments = {"g", "out", "out_shape", *row.tensors, *row.statics}
        arguments.update(f"{name}_{quality}" for name in row.tensors for quality in ("shape", "dtype"))
        for text in (dispatcher_text(row), *(form.text for form in made), *nodes):
            for code, name in _names(compile(text.source, "<text>", "exec")):
                own = name.startswith("_") or hasattr(builtins, name) or (name in ("is_complex", "dtype_of") and row.guard)
                assert own or name in arguments, (row.name, code.co_name, name)


@pytest.fixture
def declared() -> Iterator[None]:
    """Remove the rows that a test declared after it."""
    with forgetting_rows():
        yield


def _function(text: str) -> Any:
    """Run `text` and return what it defines as ``made_for_test``."""
    scope: dict[str, Any] = {}
    exec(text, scope)  # noqa: S102 (our own text: the names are what is tested)
    return scope["made_for_test"]


def _variable(numbers: list[float]) -> xp.Tensor:
    return xp.tensor(numbers, dtype=xp.float64, requires_grad=True)


X, Y = np.array([0.3, 0.7]), np.array([2.0, -1.0])


@pytest.mark.slow(one_in=2)
@pytest.mark.usefixtures("declared")
@pytest.mark.parametrize(("p", "q", "c"), TRIPLES)
def test_arguments_of_a_rule_may_have_any_name(p: str, q: str, c: str) -> None:
    """The arguments of a rule for ``sin(p) * q * c`` may have any names."""
    operation = rule(
        _function(f"made_for_test = lambda g, {p}, {q}, {c}, xp: g * xp.cos({p}) * {q} * {c}"),
        _function(f"made_for_test = lambda g, {p}, {c}, xp: g * xp.sin({p}) * {c}"),
    )(_function(f"def made_for_test(xp, {p}, {q}, {c}): return xp.sin({p}) * {q} * {c}"))
    x, y = _variable([0.3, 0.7]), _variable([2.0, -1.0])
    z = operation(x, y, 3.0)
    np.testing.assert_allclose(values(z), 3.0 * np.sin(X) * Y)
    (dx,) = xp.autograd.grad(xp.sum(z), [x], create_graph=True)
    np.testing.assert_allclose(values(dx), 3.0 * np.cos(X) * Y)
    (ddx,) = xp.autograd.grad(xp.sum(dx), [x])
    np.testing.assert_allclose(values(ddx), -3.0 * np.sin(X) * Y)
    xp.sum(operation(x.detach(), y, 3.0)).backward()
    np.testing.assert_allclose(values(y.grad), 3.0 * np.sin(X))


@pytest.mark.slow(one_in=3)
@pytest.mark.usefixtures("declared")
@pytest.mark.parametrize(("p", "q"), PAIRS)
def test_operands_of_an_elementwise_function_may_have_any_name(p: str, q: str) -> None:
    """The operands of a product may have any names: for Tensors of equal or different shapes, constants and scalars."""
    declare = elementwise(f"g * {q}", f"g * {p}", op="*", kernel=lambda xp, x1, x2: x1 * x2)
    product = declare(_function(f"def made_for_test({p}, {q}, /): pass"))
    x, y, matrix = _variable([0.3, 0.7]), _variable([2.0, -1.0]), xp.ones((3, 2), dtype=xp.float64)
    xp.sum(product(x, y)).backward()
    np.testing.assert_allclose(values(x.grad), Y)
    np.testing.assert_allclose(values(y.grad), X)
    xp.sum(product(x, matrix)).backward()
    xp.sum(product(matrix, x)).backward()
    xp.sum(product(x, 4.0)).backward()
    xp.sum(product(5.0, x)).backward()
    np.testing.assert_allclose(values(x.grad), Y + 3.0 + 3.0 + 4.0 + 5.0)
    with pytest.raises(TypeError, match="made_for_test"):
        product(object(), object())


@pytest.mark.usefixtures("declared")
@pytest.mark.parametrize(("p", "shape"), PAIRS)
def test_arguments_of_a_view_may_have_any_name(p: str, shape: str) -> None:
    """The arguments of a view may have any names, and a write through the view reaches the operand."""
    formula = _function(f"made_for_test = lambda g, {p}_shape, xp: xp.reshape_to(g, {p}_shape)")
    reshaped = view(formula)(_function(f"def made_for_test(xp, {p}, {shape}): return xp.reshape({p}, {shape})"))
    x = _variable([0.3, 0.7])
    base = x * 1.0
    part = reshaped(base, (2, 1))
    part += 1.0
    xp.sum(base * base).backward()
    np.testing.assert_allclose(values(x.grad), 2.0 * (X + 1.0))


@pytest.mark.usefixtures("declared")
@pytest.mark.parametrize(("p", "c"), PAIRS)
def test_arguments_of_an_operation_with_two_results_may_have_any_name(p: str, c: str) -> None:
    """The arguments of ``sin(c * p), cos(c * p)``, one of whose formulas reads the results, may have any names."""
    formula = _function(f"made_for_test = lambda g, out, {c}: {c} * (g[0] * out[1] - g[1] * out[0])")
    both = rule(formula, outputs=2, conj=False)(
        _function(f"def made_for_test(xp, {p}, {c}): return xp.sin({c} * {p}), xp.cos({c} * {p})"),
    )
    x = _variable([0.3, 0.7])
    sine, cosine = both(x, 3.0)
    (dx,) = xp.autograd.grad(xp.sum(sine + 2.0 * cosine), [x], create_graph=True)
    np.testing.assert_allclose(values(dx), 3.0 * (np.cos(3.0 * X) - 2.0 * np.sin(3.0 * X)))
    xp.sum(dx).backward()
    np.testing.assert_allclose(values(x.grad), 9.0 * (-np.sin(3.0 * X) - 2.0 * np.cos(3.0 * X)))


@pytest.mark.usefixtures("declared")
def test_arguments_named_like_a_quality_of_another_are_themselves() -> None:
    """``pad_shape`` and ``to_dtype`` are not taken for the shape or dtype of an operand named `x`."""
    formula = _function("made_for_test = lambda g, pad_shape, to_dtype: g * pad_shape * to_dtype")
    scaled = rule(formula)(_function("def made_for_test(xp, x, pad_shape, to_dtype): return x * pad_shape * to_dtype"))
    x = _variable([0.3, 0.7])
    (dx,) = xp.autograd.grad(xp.sum(scaled(x, 2.0, 3.0)), [x], create_graph=True)
    np.testing.assert_allclose(values(dx), [6.0, 6.0])


@pytest.mark.usefixtures("declared")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("g", "an argument of 'made_for_test' is named 'g', which is also something else that a formula reads; choose another name"),
        ("x, out", "is named 'out', which is also something else that a formula reads"),
        ("x, x_shape", "is named 'x_shape', which is also something else that a formula reads"),
        ("x, _raw", "is named '_raw', which is how the generated text names what is its own"),
        ("x, len", "is named 'len', which would hide Python's own from the generated text"),
    ],
)
def test_a_name_that_means_two_things_is_refused(arguments: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rule(None)(_function(f"def made_for_test(xp, {arguments}): pass"))


@pytest.mark.usefixtures("declared")
@pytest.mark.parametrize("name", ["cls", "seq", "step", "row", "slots", "e_x", "c_x", "b_x"])
def test_a_saved_value_may_not_take_the_place_of_a_node_s_attribute(name: str) -> None:
    """A formula that reads an argument named like a node's attribute raises; if no formula reads it, it is not saved."""
    kernel = _function(f"def made_for_test(xp, x, {name}): return x * {name}")
    with pytest.raises(ValueError, match=rf"formulas of 'made_for_test' read \['{name}'\], but a node has attributes of these names"):
        rule(_function(f"made_for_test = lambda g, {name}: g * {name}"))(kernel)
    del ROWS["made_for_test"]
    x = _variable([0.3, 0.7])
    xp.sum(rule(lambda g: g * 2.0)(kernel)(x, 2.0)).backward()
    np.testing.assert_allclose(values(x.grad), [2.0, 2.0])
