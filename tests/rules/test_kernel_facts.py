"""Laws: kernels do what rows and the kernel table say about them, and all users of these facts rely on them."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import xpgrad as xp
from xpgrad._rows.kernels import KERNELS, Kernel, kernel_of
from xpgrad._rows.row import ROWS
from xpgrad.backend import Domain, Elementwise, elementwise_functions
from xpgrad.func import sparse_jacobian
from xpgrad.programs import captured
from xpgrad.programs.evaluation import evaluator
from xpgrad.programs.program import Program, Variable
from xpgrad.registry import backend_for
from xpgrad_conformance.facade import open_library
from xpgrad_conformance.functions import all_cases, cases, elementwise_domains, scalar_loss

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
NUMPY = backend_for("numpy")
ELEMENTWISE = elementwise_domains()
UNARY = [name for name, (domains, _) in ELEMENTWISE.items() if len(domains) == 1]


# -- what kernels do ---------------------------------------------------------------------------------------------------------


def arrays_in(args: Any) -> list[Any]:
    """Return the arrays and NumPy scalars among arguments."""
    if isinstance(args, (tuple, list)):
        return [x for a in args for x in arrays_in(a)]
    return [args] if isinstance(args, (np.ndarray, np.generic)) else []


def check_memory(facts: Kernel, operands: list[Any], results: list[Any]) -> None:
    for out in results:
        if not isinstance(out, np.ndarray):
            continue  # NumPy's scalars cannot be written to
        shared = [i for i, x in enumerate(operands) if np.shares_memory(out, x)]
        if facts.memory in ("new", "scratch"):
            assert not shared
            assert out.flags.writeable
        elif facts.memory == "view":
            assert set(shared) <= {0}


def check_dtype(facts: Kernel, args: tuple[Any, ...], results: list[Any]) -> None:
    data = [np.asarray(x).dtype for x in args if isinstance(x, (np.ndarray, np.generic)) and np.asarray(x).dtype.kind in "fc"]
    found = np.asarray(results[0]).dtype
    if facts.dtype == "bool":
        assert found == np.bool_
    elif facts.dtype == "same" and data:
        assert found == np.result_type(*data, *(a for a in args if isinstance(a, complex)))
    elif facts.dtype == "real":
        assert found.kind != "c"
    elif facts.dtype == "index":
        assert found.kind == "i"


def _ends(domain: Domain) -> list[float]:
    """Return the finite ends of a domain."""
    return [end for end in (domain.low, domain.high) if np.isfinite(end)]


def check_kind(facts: Kernel, operands: list[Any], out: Any) -> None:
    """Assert that elements of the result depend on those of the first operand as the kernel's kind says."""
    x = np.asarray(operands[0]) if operands else None
    out = np.asarray(out)
    if facts.kind in ("elementwise", "cast", "copy", "part"):
        assert out.shape == np.broadcast_shapes(*(np.shape(o) for o in operands))
    elif facts.kind == "reshape":
        np.testing.assert_array_equal(out.reshape(-1), x.reshape(-1))
    elif facts.kind == "transpose":
        assert sorted(out.shape) == sorted(x.shape)
        np.testing.assert_array_equal(np.sort(out, axis=None), np.sort(x, axis=None))
    elif facts.kind == "expansion":
        assert set(out.reshape(-1).tolist()) == set(x.reshape(-1).tolist()) or not out.size
    elif facts.kind == "selection":
        known = {0.0, *(v for o in operands for v in o.reshape(-1).tolist())}
        assert facts.name in ("written", "put") or set(out.reshape(-1).tolist()) <= known
    elif facts.kind == "reduction" and x.size:
        assert out.size <= x.size
    elif facts.kind == "fill":
        assert len(set(out.reshape(-1).tolist())) <= 1


def programs_of(lib: Any, name: str, complex_too: bool, monkeypatch: pytest.MonkeyPatch) -> list[tuple[Program, list[Any]]]:
    """Return the programs of a case's value and gradients, captured and simplified, with their inputs."""
    case = dict(cases(lib, complex_too)).get(name)
    if case is None:
        pytest.skip("not a function of such numbers")
    found: list[Program] = []
    simplify = captured.simplify_program
    monkeypatch.setattr(captured, "simplify_program", lambda *args: found.extend((args[0], simplify(*args))) or found[-1])
    xs = [lib.tensor(p, True, lib.complex if p.dtype.kind == "c" else lib.real) for p in case.arrays(complex_too)]
    xp.compile(lambda *xs: scalar_loss(lib, case.call(lib, *xs)))(*xs).backward()
    assert found
    return [(program, [x.array for x in map(xp.Tensor.detach, xs)]) for program in found if len(program.inputs) == len(xs)]


@pytest.mark.slow(one_in=17)
@pytest.mark.parametrize("complex_too", [False, True], ids=["real", "complex"])
@pytest.mark.parametrize("name", list(all_cases()))
def test_each_operation_does_what_its_facts_say(name: str, complex_too: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluate = evaluator(NUMPY)
    for program, inputs in programs_of(open_library("numpy"), name, complex_too, monkeypatch):
        values: dict[Variable, Any] = {**program.constants, **dict(zip(program.inputs, inputs))}
        for operation in program.operations:
            facts = kernel_of(operation.name)
            args = tuple(values[x] if x.__class__ is Variable else x for x in operation.args)
            operands = arrays_in([values[v] for v in operation.operands()])
            results = evaluate(operation, values)
            values.update(zip(operation.results, results))
            try:
                check_memory(facts, operands, results)
                if not operation.several:
                    check_dtype(facts, args, results)
                    check_kind(facts, operands, results[0])
            except AssertionError as exc:
                raise AssertionError(f"{operation.name}: {facts}") from exc


@pytest.mark.parametrize("dtype", ["float64", "int64"])
@pytest.mark.parametrize("name", [*UNARY, *(row.public[0] for row in ROWS.values() if row.facts.kind == "reduction")])
def test_a_write_to_a_result_does_not_change_the_operand(name: str, dtype: str, xpgrad_device: str) -> None:
    for value in (1, [1]):
        x = xp.asarray(value, dtype=getattr(xp, dtype), device=xpgrad_device)
        try:
            out = getattr(xp, name)(x)
        except TypeError:
            pytest.skip("not a function of such numbers")
        if ROWS.get(name) is None or ROWS[name].facts.memory != "view":
            out[...] = xp.logical_not(out) if out.dtype is xp.bool else out + 4
            assert x.tolist() == value


def test_every_name_in_the_table_is_a_kernel() -> None:
    for name in KERNELS:
        if name in ("branch", "loop", "part", "products", "scan", "unwind", "while") or name.startswith("special_"):
            continue
        found: Any = NUMPY.kernels
        for part in name.split("."):
            found = getattr(found, part)
        assert callable(found), name


@pytest.mark.slow(one_in=3)
@pytest.mark.parametrize("name", sorted(name for name, facts in KERNELS.items() if facts.numpy is not None))
def test_numpy_has_what_it_is_said_to_have(name: str) -> None:
    found: Any = np
    for part in str(kernel_of(name).numpy).split("."):
        found = getattr(found, part)
    assert callable(found)
    facts = kernel_of(name)
    if facts.ufunc is not None and facts.takes_out and name not in ("clip", "round"):
        assert isinstance(found, np.ufunc)
        assert found.nin == len(ROWS[name].tensors)


# -- domains -----------------------------------------------------------------------------------------------------------------


def operand(kind: str) -> Any:
    return xp.asarray({"bool": [True, False], "integral": [3, 1], "real": [0.5, 0.25], "complex": [0.5 + 0.25j, 0.25j]}[kind])


@pytest.mark.parametrize("function", elementwise_functions(), ids=lambda f: f.name)
def test_operands_are_refused_exactly_where_the_domain_says(function: Elementwise, xpgrad_device: str) -> None:
    if function.name == "where":
        return
    numbers, bools = function.domains[0].numbers, function.domains[0].bools
    refused = {"real": ["complex"], "integer": ["real", "complex"]}.get(numbers, [])
    taken = {"complex": ["real", "complex"], "integer": ["integral", "bool"], "bool": ["bool"]}.get(numbers, ["real"])
    if "shift" in function.name:
        taken = ["integral"]
    for kind in refused + (["bool"] if not bools else []):
        xs = [operand(kind).to_device(xpgrad_device)] * len(function.domains)
        with pytest.raises(TypeError, match=f"`{function.name}` is not defined for"):
            getattr(xp, function.name)(*xs)
    for kind in taken:
        xs = [operand(kind).to_device(xpgrad_device)] * len(function.domains)
        assert getattr(xp, function.name)(*xs).shape == (2,)


@pytest.mark.parametrize("function", elementwise_functions(), ids=lambda f: f.name)
def test_integers_become_what_the_domain_says(function: Elementwise, xpgrad_device: str) -> None:
    domain = function.domains[0]
    if function.name == "where" or domain.numbers in ("bool", "integer"):
        return
    for dtype in (xp.int64, xp.int8):
        first, other = [2, 1, xp.iinfo(dtype).min], [2, 1, 0 if domain.integers == "floating" else 3]  # not every library divides by 0
        xs = [xp.asarray(x, dtype=dtype, device=xpgrad_device) for x in (first, *[other] * (len(function.domains) - 1))]
        try:
            out = getattr(xp, function.name)(*xs)
        except TypeError as exc:
            pytest.skip(f"the library refuses integers: {exc}")
        if domain.integers == "floating":
            assert "floating" in out.dtype.category
            expected = getattr(xp, function.name)(*[x.to(dtype=out.dtype) for x in xs])
            np.testing.assert_allclose(out.numpy(), expected.numpy(), rtol=1e-2 if out.dtype.itemsize == 2 else 1e-5, atol=1e-6)
        else:
            assert "floating" not in out.dtype.category


@pytest.mark.parametrize("name", UNARY)
def test_a_function_is_finite_inside_of_its_domain_alone(name: str) -> None:
    domain = ROWS[name].domains[0]
    function = getattr(xp, name)
    for bound, inwards in ((domain.low, 1.0), (domain.high, -1.0)):
        if np.isinf(bound):
            continue
        inside, outside = bound + inwards * 1e-3, bound - inwards * 1e-3
        x = xp.tensor([inside], requires_grad=True)
        function(x).backward()
        assert np.isfinite(x.grad.numpy()).all()
        if name != "tan":  # it continues beyond its pole
            assert not np.isfinite(function(xp.asarray([outside])).numpy()).any()


# -- domains -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", [f for f in elementwise_functions() if any(map(_ends, f.domains))], ids=lambda f: f.name)
def test_a_function_or_its_derivative_is_infinite_where_its_domain_ends(function: Elementwise) -> None:
    for i, domain in enumerate(function.domains):
        for end in _ends(domain):
            xs = [xp.tensor(end if i == j else 0.3, requires_grad=True) for j in range(len(function.domains))]
            with np.errstate(all="ignore"):
                y = getattr(xp, function.name)(*xs)
                (g,) = xp.autograd.grad(y, xs[i])
            assert max(abs(y.item()), abs(g.item())) > 1e10, f"operand {i} at {end}"


# -- kinks -------------------------------------------------------------------------------------------------------------------

#: Calls, with the operands of their kink, of rows that are private or that several public functions share.
CALLS: dict[str, Any] = {
    "clip_scalar": lambda x: xp.clip(x, 1.0, 2.0),
    "clip_below": lambda x: xp.clip(x, x.detach()),
    "clip_above": lambda x: xp.clip(x, None, x.detach()),
    "phase": lambda x: xp.sign(x + 0j),
    "norm": xp.linalg.vector_norm,
}
#: Rows that must be ties, whatever their rows say.
TIES = {"maximum", "minimum", "reduce_max", "reduce_min"}


@pytest.mark.parametrize("name", sorted(name for name, row in ROWS.items() if row.kink is not None))
def test_kinks_are_reported_at_their_points(name: str) -> None:
    row = ROWS[name]
    kink: Any = row.kink
    function = CALLS.get(name) or getattr(xp, row.public[0])
    if "axes" in row.statics:
        points = [np.asarray(kink.at)]
    elif name in CALLS:
        points = [np.asarray(kink.at[:1])]
    else:
        points = [np.asarray([a]) for a in kink.at]
    away = [(0.3,) * len(points)]
    if {"x1", "x2"} <= set(inspect.signature(kink.where).parameters):  # then one operand elsewhere is enough
        away += [(0.3, 0.0), (0.0, 0.3)]
    for shifts, reported in ((np.zeros(len(points)), True), *((shifts, False) for shifts in away)):
        xs = [
            xp.tensor(p + s * (1.0 + np.arange(p.size)) * (1 + 2 * i), requires_grad=True) for i, (p, s) in enumerate(zip(points, shifts))
        ]
        report = xp.audit(lambda *xs: xp.sum(xp.real(function(*xs))), *xs)
        found = [f for f in report.findings if f.kind == ("tie" if name in TIES or kink.tie else "kink") and kink.text in f.message]
        if reported or name not in ("clip_below", "clip_above"):
            assert bool(found) == reported, report


# -- compiled programs and sparsity ------------------------------------------------------------------------------------------


@pytest.mark.slow(one_in=3)
@pytest.mark.parametrize("function", [f for f in elementwise_functions() if len(f.domains) <= 2], ids=lambda f: f.name)
def test_elementwise_functions_are_fused(function: Elementwise) -> None:
    if function.name == "positive":
        return  # a program has no copies
    kind = {"integer": "integral", "bool": "bool"}.get(function.domains[0].numbers, "complex" if function.name == "conj" else "real")
    xs = [xp.asarray(np.resize(operand(kind).numpy(), 1 << 17)) for _ in function.domains]
    wide = xp.complex128 if kind == "complex" else xp.float64
    compiled = xp.compile(lambda *xs: xp.astype(getattr(xp, function.name)(*xs), wide) + 3.0)
    text = compiled.source(*xs)
    operator = ROWS[function.name].operator
    assert "for start in range(" in text
    assert f"np.{function.numpy}(" in text or (operator is not None and operator.symbol in text)


@pytest.mark.parametrize("name", list(ELEMENTWISE))
def test_elementwise_functions_have_diagonal_patterns(name: str) -> None:
    domains, _ = ELEMENTWISE[name]
    u = (np.arange(1.0, 6.0) * 0.618) % 1.0
    others = [xp.asarray(domain(u)) for domain in domains[1:]]
    prepared = sparse_jacobian(lambda x: getattr(xp, name)(x, *others) * x).prepare(xp.asarray(domains[0](u)))
    assert prepared.unresolved == []
    np.testing.assert_array_equal(prepared.pattern.toarray(), np.eye(5, dtype=bool))
