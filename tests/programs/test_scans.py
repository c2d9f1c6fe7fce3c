"""Law: compiled loops and branches are operations, which do not grow with the number of steps, and compute what eager ones compute."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import xpgrad as xp
from support import DEVICES
from support.central_differences import SINGLE, numbers, values
from xpgrad import func
from xpgrad.errors import CaptureError
from xpgrad.func._tree import flatten
from xpgrad.programs.emission import Operation, unroll_scans
from xpgrad.programs.emitters import emitter_for
from xpgrad.programs.evaluation import evaluate_program

pytestmark = pytest.mark.slow(one_in=3)

EMITTERS = [None, "array-api", "native", "c"]


def _available(emitter: str | None) -> str | None:
    """Skip the test if an emitter needs what is not installed."""
    if emitter in ("native", "c"):
        try:
            xp.compile(lambda x: x * 2.0, emitter=emitter)(xp.ones(3, device="numpy"))
        except ImportError as exc:
            pytest.skip(str(exc))
    return emitter


def _close(a: Any, b: Any) -> None:
    mine, others = flatten(a)[0], flatten(b)[0]
    assert len(mine) == len(others)
    for x, y in zip(mine, others):
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        tolerance = SINGLE if x.dtype in (xp.float32, xp.complex64) else 1e-9
        np.testing.assert_allclose(values(x), values(y), rtol=tolerance, atol=tolerance if tolerance == SINGLE else 1e-12)


def _agrees(function: Any, args: list[np.ndarray], device: str, emitter: str | None = None) -> Any:
    """Compare values, gradients and second ones with those of the function that is not compiled; return the compiled one."""
    compiled = xp.compile(function, emitter=emitter)
    found = []
    for f in (compiled, function):
        leaves = [xp.asarray(a, device=device) for a in args]
        leaves = [x.requires_grad_() if x.dtype.differentiable else x for x in leaves]
        wanted = [x for x in leaves if x.requires_grad]
        outs = flatten(f(*leaves))[0]
        if not wanted or not any(y.requires_grad for y in outs):
            found.append(outs)
            continue
        total = sum((xp.sum(xp.real(y * y)) for y in outs if y.requires_grad), start=xp.zeros((), device=device))
        first = xp.autograd.grad(total, wanted, create_graph=True, allow_unused=True, materialize_grads=True)
        norm = sum((xp.sum(xp.real(g * g)) for g in first), start=xp.zeros((), device=device))
        found.append([*outs, *first, *xp.autograd.grad(norm, wanted, allow_unused=True, materialize_grads=True)])
    _close(*found)
    return compiled


def _recurrence(w: Any, h: Any, xs: Any) -> Any:
    half = 0.5 * w

    def step(c: Any, x: Any) -> Any:
        h = xp.tanh(half @ c["h"] + x + w[0])
        return {"count": c["count"] + 1, "h": h}, (xp.sum(h * h), c["count"])

    return func.scan(step, {"h": h, "count": 0}, xs)


ARGS = [numbers(s, k) for k, s in enumerate([(3, 3), (3,), (5, 3)])]

FUNCTIONS: dict[str, Any] = {
    "several results": _recurrence,
    "one number": lambda w, h, xs: xp.sum(_recurrence(w, h, xs)[0]["h"]) + xp.sum(_recurrence(w, h, xs)[1][0]),
    "reversed": lambda w, h, xs: func.scan(lambda c, x: (xp.sin(w @ c) * x, c), h, xs, reverse=True),
    "nested": lambda w, h, xs: func.scan(
        lambda c, x: (func.scan(lambda d, y: (xp.sin(d * y + x + w[1]), d), c, w)[0], func.scan(lambda d, y: (d, d * y), x, w)[1]), h, xs
    ),
    "counted": lambda w, h, xs: func.fori_loop(0, 4, lambda i, v: xp.tanh(v * i + w[2]) + xs[0], h),
    "with indices": lambda w, h, xs: func.fori_loop(1, 4, lambda i, v: v * xp.take(xs, xp.reshape(i, (1,)), axis=0)[0] + w[0], h),
    "of constants": lambda w, h, xs: func.scan(lambda c, _: (c + w[0] * h, xs[0]), xp.zeros(3, device=h.device), length=3),
    "passing on": lambda w, h, xs: func.scan(lambda c, x: ((c[1], c[0]), c[0]), (h, w[0]), xs),
    "unused": lambda w, h, xs: func.scan(lambda c, x: ((c[0] + x, c[1] * w[0]), (c[1], x)), (h, h), xs)[0][0],
    "twice": lambda w, h, xs: (func.scan(lambda c, x: (c * x, None), h, xs)[0], func.scan(lambda c, x: (c + x, None), h, xs)[0]),
    "in a batch": lambda w, h, xs: func.vmap(lambda h: _recurrence(w, h, xs)[1][0])(xp.stack([h, 2.0 * h])),
    "gradient inside": lambda w, h, xs: func.grad(lambda w: xp.sum(_recurrence(w, h, xs)[0]["h"]))(w),
    "tangents inside": lambda w, h, xs: func.jvp(lambda x: func.scan(lambda c, y: (c * y, c), 2.0 * x, xs.detach())[0], (h,), (w[0],))[1],
    "of matrices": lambda w, h, xs: func.scan(
        lambda c, x: (c @ w + x[:, None] * x, xp.linalg.inv(4.0 * xp.eye(3, device=w.device) + 0.1 * c)), w, xs
    ),
    "recomputing": lambda w, h, xs: func.scan(lambda c, x: (xp.sin(w @ c + x), c), h, xs, checkpoint=True),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_on_every_device(name: str, xpgrad_device: str) -> None:
    compiled = _agrees(FUNCTIONS[name], ARGS, xpgrad_device)
    if xp.registry.backend_for(xp.Device(xpgrad_device).table).capabilities.jit:
        return
    made, _ = compiled.captured([xp.asarray(a, device=xpgrad_device) for a in ARGS], {})
    assert name == "tangents inside" or any(o.name == "scan" for o in made.forward.program.operations)


@pytest.fixture(params=DEVICES)
def xpgrad_device(request: Any) -> str:
    """Return a device."""
    return str(request.param)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("emitter", EMITTERS[1:])
def test_by_every_emitter(name: str, emitter: str | None) -> None:
    _agrees(FUNCTIONS[name], ARGS, "numpy", _available(emitter))


@settings(max_examples=25, deadline=None)
@given(
    length=st.integers(0, 4), reverse=st.booleans(), dtype=st.sampled_from(["float32", "float64", "complex128", "int64"]),
    shape=st.sampled_from([(), (1,), (2, 3)]), emitter=st.sampled_from([None, "array-api"]),
)  # fmt: skip
def test_any_length_and_dtype(length: int, reverse: bool, dtype: str, shape: Any, emitter: str | None) -> None:
    kind = "float64" if dtype == "int64" else dtype
    xs, start = ((2 * numbers(s, k, kind)).astype(dtype) for k, s in enumerate([(length, *shape), shape]))
    _agrees(lambda c, x: func.scan(lambda c, x: (c * x - x, (c, c + 1)), c, x, reverse=reverse), [start, xs], "numpy", emitter)


@pytest.mark.parametrize("emitter", EMITTERS)
def test_text_and_program_do_not_depend_on_the_number_of_steps(emitter: str | None) -> None:
    compiled = xp.compile(lambda *args: xp.sum(_recurrence(*args)[0]["h"]), emitter=_available(emitter))
    lengths, counts = [], []
    for n in (10, 90):
        args = [xp.asarray(a, device="numpy").requires_grad_() for a in (*ARGS[:2], numbers((n, 3)))]
        lengths.append(len(compiled.source(*args)))
        counts.append(_count(compiled.program(*args)))
        compiled(*args).backward()
    assert counts[0] == counts[1]
    assert abs(lengths[0] - lengths[1]) < 10 * lengths[0] // 100


def _count(program: Any) -> int:
    """Return the number of operations, including those that loops run."""
    return sum(1 + (sum(map(_count, o.options["inner"].programs)) if "inner" in o.options else 0) for o in program.operations)


def test_what_no_result_needs_is_left_out() -> None:
    program = xp.compile(lambda *args: _recurrence(*args)[0]["h"]).program(*(xp.asarray(a, device="numpy") for a in ARGS))
    (scan,) = [o for o in program.operations if o.name == "scan"]
    assert len(scan.results) == 2  # the carry
    assert "reduce_sum" not in str(program)


@pytest.mark.parametrize("name", ["several results", "nested", "reversed", "of constants", "of matrices"])
def test_unrolled_programs_compute_the_same(name: str) -> None:
    backend = xp.registry.backend_for("numpy")
    compiled = xp.compile(lambda *args: sum(xp.sum(y) for y in flatten(FUNCTIONS[name](*args))[0] if y.dtype.differentiable))
    args = [xp.asarray(a, device="numpy").requires_grad_() for a in ARGS]
    program = compiled.program(*args)
    unrolled = unroll_scans(program)
    assert all(o.name != "scan" for o in unrolled.operations)
    assert _count(unrolled) > _count(program)
    assert unroll_scans(unrolled) is unrolled
    found = [evaluate_program(p, backend, ARGS) for p in (program, unrolled)]
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_other_emitters_get_no_loops() -> None:
    seen: list[Operation] = []
    numpy = emitter_for("numpy")

    def function(program: Any, backend: Any, threads: Any) -> Any:
        seen.extend(program.operations)
        return numpy.function(program, backend, threads)

    info = xp.emitter.EmitterInfo("without-loops", function, numpy.source)
    if "without-loops" not in xp.registry.emitter_names():
        xp.registry.register_emitter(info)
    else:
        return
    _agrees(FUNCTIONS["several results"], ARGS, "numpy", "without-loops")
    assert seen
    assert all(o.name != "scan" for o in seen)


@pytest.mark.parametrize("threads", [None, 2])
def test_large_arrays_are_divided_inside_steps(threads: int | None) -> None:
    def function(c: Any, xs: Any) -> Any:
        return func.scan(lambda c, x: (xp.sin(c * x) + xp.cos(c) * x, xp.sum(c * c, axis=1)), c, xs)

    args = [xp.asarray(numbers(s, k), device="numpy") for k, s in enumerate([(600, 300), (3, 600, 300)])]
    compiled = xp.compile(function, threads=threads)
    _close(compiled(*args), function(*args))
    assert "block" in compiled.source(*args)


def test_a_step_that_reads_a_value_is_an_error() -> None:
    x = xp.ones(3, device="numpy")
    with pytest.raises(CaptureError, match=r"a value was asked for .* inside of a compiled function"):
        xp.compile(lambda x: func.scan(lambda c, y: (c * y.item(), None), x, x)[0])(x)
    kept: list[Any] = []

    def leaking(x: Any) -> Any:
        def step(c: Any, y: Any) -> Any:
            kept.append(c * y)
            return c, None

        return func.scan(step, x, x)[0] + kept[-1]

    with pytest.raises(CaptureError, match="a Tensor left"):
        xp.compile(leaking)(x)


def test_steps_that_change_are_noticed() -> None:
    factor = [2.0]
    compiled = xp.compile(lambda x: func.scan(lambda c, y: (c * y * factor[0], None), xp.ones((), device="numpy"), x)[0])
    x = xp.asarray([1.0, 2.0, 3.0], device="numpy").requires_grad_()
    (slope,) = xp.autograd.grad(compiled(x), x, create_graph=True)
    assert slope.tolist() == [48.0, 24.0, 16.0]
    factor[0] = 3.0
    with pytest.raises(CaptureError, match="would compute something else"):
        xp.autograd.grad(compiled(x), x, create_graph=True)


def test_exports_have_loops(tmp_path: Any) -> None:
    path = tmp_path / "exported.py"
    args = [xp.asarray(a, device="numpy") for a in ARGS]
    xp.export(lambda *a: xp.sum(_recurrence(*a)[1][0]), *args, path=path)
    space: dict[str, Any] = {"__name__": "exported"}
    assert "for k in range(5):" in path.read_text(encoding="utf-8")
    exec(path.read_text(encoding="utf-8"), space)  # noqa: S102 (what was just written)
    found = space["function_and_gradients"](*ARGS)
    np.testing.assert_allclose(found[0], values(xp.sum(_recurrence(*args)[1][0])), rtol=1e-12)


# -- on values of the arguments ---------------------------------------------------------------------------------------------------


def _root(a: Any) -> Any:
    return func.while_loop(lambda x: xp.abs(x * x - a) > 1e-9, lambda x: 0.5 * (x + a / x), a)


def _powers(w: Any, h: Any, xs: Any) -> Any:
    """Multiply until a norm is large: the carry has an integer, an array that nothing changes, and one of which the steps read a part."""

    def step(c: Any) -> Any:
        return {"n": c["n"] + 1, "same": c["same"], "v": w @ c["v"] * 1.5 + c["same"]}

    return func.while_loop(lambda c: (xp.sum(c["v"] * c["v"]) < 40.0) & (c["n"] < 9), step, {"n": 0, "same": xs[0], "v": h})


def _branch(w: Any, h: Any, xs: Any) -> Any:
    return func.cond(xp.sum(w) > 0.0, lambda h: (xp.sin(w @ h) * xs[0], h), lambda h: (h * h * xp.sum(xs), w[0] * h), h)


ON_VALUES: dict[str, Any] = {
    "powers": _powers,
    "no step": lambda w, h, xs: func.while_loop(lambda v: xp.sum(v * v) < 0.0, lambda v: w @ v, h),
    "no step of a view": lambda w, h, xs: func.while_loop(lambda v: xp.sum(v[0] * v[0]) < 0.0, lambda v: (v[1], v[0]), (w[0], w[0])),
    "passing on": lambda w, h, xs: func.while_loop(lambda c: xp.sum(c[0]) < xp.sum(c[1]), lambda c: (c[1], c[0]), (h, w[0])),
    "the test reads": lambda w, h, xs: func.while_loop(lambda v: xp.sum(v) < xp.sum(xp.abs(xs)), lambda v: v + w[0] * w[0] + 0.1, h),
    "in steps": lambda w, h, xs: func.scan(
        lambda c, x: (func.while_loop(lambda v: v[0] < 2.0, lambda v: v * v + w[0] ** 2 + 0.5, c), x), h, xs
    ),
    "in a branch": lambda w, h, xs: func.cond(xp.sum(h) < 9.0, lambda: _powers(w, h, xs)["v"], lambda: h),
    "in a loop": lambda w, h, xs: func.while_loop(
        lambda v: xp.sum(v) < 5.0,
        lambda v: func.while_loop(lambda u: u[0] < xp.abs(v[1]), lambda u: u + 1.0 + w[0] ** 2, v + xs[0] ** 2 + 1.0),
        h,
    ),
    "in a batch": lambda w, h, xs: func.vmap(lambda x: func.while_loop(lambda v: xp.sum(v * v) < 9.0, lambda v: v * (1.5 + w[0] ** 2), x))(
        xs * xs + 0.1
    ),
    "gradient inside": lambda w, h, xs: func.grad(lambda w: xp.sum(_powers(w, h, xs)["v"]))(w),
    "gradients of a batch": lambda w, h, xs: func.vmap(func.grad(_root))(xs[0] * xs[0] + 1.0),
    "Jacobian inside": lambda w, h, xs: func.jacrev(lambda h: _powers(w, h, xs)["v"])(h),
    "Jacobian by what steps read": lambda w, h, xs: func.jacrev(lambda w: _powers(w, h, xs)["v"])(w),
    "Jacobians of a batch": lambda w, h, xs: func.vmap(func.jacrev(lambda x: _powers(w, x, xs)["v"]))(xs * xs),
    "tangents inside": lambda w, h, xs: func.jvp(lambda h: _powers(w, h, xs)["v"], (h,), (w[0],))[1],
    "Jacobian in forward mode": lambda w, h, xs: func.jacfwd(lambda h: _powers(w, h, xs)["v"])(h),
    "Hessian inside": lambda w, h, xs: func.hessian(lambda h: xp.sum(_powers(w, h, xs)["v"] ** 2))(h),
    "up to a number": lambda w, h, xs: func.fori_loop(0, xp.astype(xp.sum(xp.abs(h)), "int64"), lambda i, v: v * 1.1 + i * w[0], h),
}  # fmt: skip
#: JAX's own have reverse mode.
BRANCHES: dict[str, Any] = {
    "branch": _branch,
    "branches in steps": lambda w, h, xs: func.scan(lambda c, x: (func.cond(x[0] > 0.0, xp.sin, lambda c: c * w[0] + x, c), c), h, xs),
    "of nothing": lambda w, h, xs: func.cond(h[0] > 0.0, lambda: w[0], lambda: h) * 2.0,
    "of the argument": lambda w, h, xs: func.cond(h[0] > 0.0, lambda h: (h, h), lambda h: (h, w[0]), h),
    "of a batch": lambda w, h, xs: func.vmap(lambda x: func.cond(x[0] > 0.0, xp.sin, lambda x: w @ x, x))(xs),
    "hessian inside": lambda w, h, xs: func.hessian(lambda h: xp.sum(_branch(w, h, xs)[0]))(h),
    "tangents inside": lambda w, h, xs: func.jvp(lambda h: _branch(w, h, xs), (h.detach(),), (w[0].detach(),))[1],
}  # fmt: skip


@pytest.mark.slow(one_in=24)
@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("name", [*ON_VALUES, *(f"branch: {name}" for name in BRANCHES)])
def test_on_values_on_every_device(name: str, sign: float, xpgrad_device: str) -> None:
    function = BRANCHES[name[8:]] if name[:8] == "branch: " else ON_VALUES[name]
    if xp.registry.backend_for(xp.Device(xpgrad_device).table).capabilities.jit and function not in BRANCHES.values():
        pytest.skip("the library's own loop has no reverse mode")
    _agrees(function, [sign * a for a in ARGS], xpgrad_device)


@pytest.mark.slow(one_in=12)
@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("name", [*ON_VALUES, *(f"branch: {name}" for name in BRANCHES)])
@pytest.mark.parametrize("emitter", EMITTERS[1:])
def test_on_values_by_every_emitter(name: str, sign: float, emitter: str | None) -> None:
    function = BRANCHES[name[8:]] if name[:8] == "branch: " else ON_VALUES[name]
    _agrees(function, [sign * a for a in ARGS], "numpy", _available(emitter))


@settings(max_examples=25, deadline=None)
@given(
    count=st.integers(0, 5), dtype=st.sampled_from(["float32", "float64", "complex128", "int64"]),
    shape=st.sampled_from([(), (1,), (2, 3)]), emitter=st.sampled_from([None, "array-api"]),
)  # fmt: skip
def test_any_number_of_steps_and_dtype(count: int, dtype: str, shape: Any, emitter: str | None) -> None:
    kind = "float64" if dtype == "int64" else dtype
    start, factor = ((2 * numbers(shape, k, kind)).astype(dtype) for k in (1, 2))

    def function(n: Any, start: Any, factor: Any) -> Any:
        _, v = func.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * factor - c[1]), (xp.zeros_like(n), start))
        return v, func.cond(n > 2, lambda: v + factor, lambda: start)

    _agrees(function, [np.asarray(count), start, factor], "numpy", emitter)


def _rebinding(w: Any, h: Any, xs: Any) -> Any:
    """Assign the results of loops and branches to variables that their functions read."""
    v = h * h + 1.0

    def double() -> Any:
        return v + w[1]

    v, _ = func.scan(lambda c, x: (c * xp.cos(v) + x, None), h, xs)
    v = func.fori_loop(0, 2, lambda i, c: c * xp.sin(v) + i, w[0])
    v = func.while_loop(lambda c: xp.sum(c * c) < 30.0 + xp.sum(v), lambda c: c * 1.5 + v * v + 0.5, v)
    v = func.fori_loop(0, xp.astype(xp.sum(h * h) + 1.0, "int64"), lambda i, c: c * xp.sin(v) + i, v)
    v = func.cond(v[0] > 0.0, lambda: v * v, lambda: v + w[0])
    return func.cond(v[0] > 0.0, double, lambda: v)


@pytest.mark.parametrize("emitter", EMITTERS)
def test_functions_keep_the_values_of_their_free_variables(emitter: str | None) -> None:
    _agrees(_rebinding, ARGS, "numpy", _available(emitter))


def test_one_program_serves_all_values() -> None:
    compiled = xp.compile(_root)
    for a in (2.0, 9.0, 1e4):
        x = xp.tensor(a, requires_grad=True, device="numpy")
        y = compiled(x)
        y.backward()
        np.testing.assert_allclose([y.item(), x.grad.item()], [a**0.5, 0.5 * a**-0.5])
    assert [o.name for o in compiled.program(xp.tensor(2.0, requires_grad=True)).operations][:2] == ["while", "unwind"]
    assert "while test(*carry, a)[0]:" in compiled.source(xp.tensor(2.0))


@pytest.mark.parametrize("emitter", EMITTERS)
def test_results_share_no_memory_with_the_arguments(emitter: str | None) -> None:
    x = np.asarray([1.0, 2.0])
    for function in (ON_VALUES["no step"], ON_VALUES["no step of a view"], BRANCHES["of the argument"]):
        args = [xp.asarray(a, device="numpy") for a in (np.stack([x, x]), x, np.stack([x, x]))]
        outs = flatten(xp.compile(function, emitter=_available(emitter))(*args))[0]
        assert not any(np.shares_memory(values(y), values(a)) for y in outs for a in args)
        assert not any(np.shares_memory(values(y), values(z)) for k, y in enumerate(outs) for z in outs[:k])


_AT_ZERO = np.asarray([0.0, 1.0, 2.0])
#: Functions of `a` that take the root of constants, some of which are 0: there a tangent of 0 would give nan.
FLAT: dict[str, Any] = {
    "slices": lambda a: func.scan(lambda c, v: (xp.sqrt(v) + c * a, xp.sqrt(v)), a, xp.asarray(_AT_ZERO)),
    "slices, recomputed": lambda a: func.scan(lambda c, v: (xp.sqrt(v) + c * a, xp.sqrt(v)), a, xp.asarray(_AT_ZERO), checkpoint=True),
    "carry": lambda a: func.scan(lambda c, v: ((c[0] * v + a, c[1] * 0.0), xp.sqrt(c[1] * v)), (a, xp.zeros(())), xp.asarray(_AT_ZERO)),
    "carry that gets a tangent": lambda a: func.scan(
        lambda c, v: ((c[1], c[2], a * c[2] + v), c[0] + xp.sqrt(v)), (xp.ones(()), xp.ones(()), xp.ones(())), xp.asarray(_AT_ZERO)
    ),
    "stacked results": lambda a: xp.sqrt(func.scan(lambda c, v: (c * a, v), a, xp.asarray(_AT_ZERO))[1]) * a,
    "while": lambda a: func.while_loop(lambda c: c[0] < 50.0, lambda c: (c[0] * a + 1.0 + xp.sqrt(c[1]), c[1] * 1.0), (a, xp.zeros(()))),
    "branch": lambda a: xp.sqrt(func.cond(a > 0.0, lambda: xp.zeros(()), lambda: xp.ones(()))) + a * a,
}
MODES: dict[str, Any] = {
    "jvp": lambda f: lambda a: func.jvp(f, (a,), (a,)),
    "jvp of jvp": lambda f: lambda a: func.jvp(lambda a: func.jvp(f, (a,), (a,)), (a,), (a,)),
    "hessian": lambda f: func.hessian(lambda a: sum(xp.sum(xp.sin(x)) for x in flatten(f(a))[0])),
    "vmap": lambda f: lambda a: func.vmap(lambda a: func.jvp(f, (a,), (a,)))(xp.stack([a, 2.0 * a])),
    "jacfwd of vmap": lambda f: lambda a: func.jacfwd(lambda a: tuple(flatten(func.vmap(f)(a))[0]))(xp.stack([a, 2.0 * a])),
}


@pytest.mark.slow(one_in=5)
@pytest.mark.parametrize("emitter", EMITTERS)
@pytest.mark.parametrize("mode", list(MODES))
@pytest.mark.parametrize("name", list(FLAT))
@pytest.mark.filterwarnings("ignore")
def test_constants_have_no_tangents_where_slopes_are_infinite(name: str, mode: str, emitter: str | None) -> None:
    """What does not depend on the argument has no tangent in a compiled loop, as in Python's."""
    function, a = MODES[mode](FLAT[name]), xp.asarray(1.5, dtype="float64", device="numpy")
    found, expected = (flatten(f(a))[0] for f in (xp.compile(function, emitter=_available(emitter)), function))
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_allclose(values(x), values(y), rtol=1e-12)


WRITTEN: dict[str, Any] = {
    "a stack": lambda x: func.scan(lambda c, v: (c, c * v), x, x)[1],
    "a stack of transposed arrays": lambda x: func.scan(lambda c, v: (c, (c * v).T), xp.stack([x, x, x]), x)[1],
    "a carry": lambda x: func.scan(lambda c, v: (c * v, None), xp.broadcast_to(x, (3, 3)), x)[0],
    "a carry that stays": lambda x: func.scan(lambda c, v: (c, None), xp.broadcast_to(x, (3, 3)), x)[0],
    "while": lambda x: func.while_loop(lambda c: xp.sum(c) < 100, lambda c: c * 2, xp.broadcast_to(x, (3, 3))),
    "a branch": lambda x: func.cond(xp.sum(x) > 0, lambda: xp.stack([x, x]).T * x[:, None], lambda: xp.ones((3, 2))),
}


@pytest.mark.parametrize("emitter", EMITTERS)
@pytest.mark.parametrize("name", list(WRITTEN))
def test_results_can_be_written_to(name: str, emitter: str | None) -> None:
    """Views of results lie in memory as those of Python's loops do."""

    def function(x: Any) -> Any:
        found = WRITTEN[name](x)
        found[0] = 50.0
        xp.reshape(found, (-1,))[1:] *= 2.0
        xp.reshape(xp.matrix_transpose(found), (-1,))[1:] *= 3.0
        return found

    x = xp.asarray([1.0, 2.0, 3.0], device="numpy")
    assert xp.compile(function, emitter=_available(emitter))(x).tolist() == function(x).tolist()


def test_known_conditions_stay_pythons() -> None:
    """A loop whose condition does not depend on the arguments is recorded step by step, and can be differentiated twice."""
    compiled = _agrees(
        lambda w, h, xs: func.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, xp.sin(w @ c[1])), (0, h))[1], ARGS, "numpy"
    )  # fmt: skip
    program = compiled.program(*(xp.asarray(a, device="numpy") for a in ARGS))
    assert not any("inner" in o.options for o in program.operations)


def test_programs_with_branches_are_not_unrolled() -> None:
    program = xp.compile(_root).program(xp.tensor(2.0, device="numpy"))
    with pytest.raises(CaptureError, match="a loop that depends on values"):
        unroll_scans(program)
    backend = xp.registry.backend_for("numpy")
    np.testing.assert_allclose(evaluate_program(program, backend, [np.asarray(2.0)]), [2**0.5])
