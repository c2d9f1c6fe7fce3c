"""Law: a selective checkpoint has the gradients of the plain function for every policy, and recomputes what PyTorch recomputes.

The tests see which results were kept by a function that reads a number that changes between the runs: kept results use the first number.
"""

from __future__ import annotations

import functools
import gc
import importlib
import itertools
import operator
import random
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import xpgrad as xp
import xpgrad.fft
import xpgrad.linalg
from memory.test_saved_tensors import assert_same, draw
from support.central_differences import loss, numbers, values
from transforms.test_func import FUNCTIONS
from xpgrad import func
from xpgrad._operations import watching
from xpgrad._rows.namespace import COMPOSITE, NONDIFFERENTIABLE, PRIMITIVES, RULES
from xpgrad._rows.row import ROWS
from xpgrad.utils import _selective
from xpgrad.utils.checkpoint import (
    CheckpointError,
    CheckpointPolicy,
    SelectiveCheckpointContext,
    checkpoint,
    create_selective_checkpoint_contexts,
    set_checkpoint_debug_enabled,
)


def selective(function: Callable[..., Any], policy: Any, *args: Any, allow: bool = False, **options: Any) -> Any:
    contexts = functools.partial(create_selective_checkpoint_contexts, policy, allow_cache_entry_mutation=allow)
    return checkpoint(function, *args, use_reentrant=False, context_fn=contexts, **options)


def random_policy(seed: int) -> Callable[..., CheckpointPolicy]:
    """Return a policy with random answers."""
    draws = random.Random(seed)
    return lambda ctx, op, *args: draws.choice(list(CheckpointPolicy))


POLICIES: list[Callable[[int], Any]] = [
    lambda seed: lambda *args: True,
    lambda seed: [xp.multiply, xp.matmul, xp.exp, xp.sum],
    random_policy,
]


@pytest.mark.slow(one_in=4)
@pytest.mark.parametrize("kind", range(len(POLICIES)))
def test_of_random_programs(kind: int, xpgrad_device: str) -> None:
    """Programs that write into results of their products raise an error if the policy kept one, and otherwise have right gradients."""
    points = [numbers((3, 3)), numbers((3, 3), 2.0)]
    errors = 0
    for seed in range(40):
        program = draw(seed)
        leaves = [xp.tensor(p, device=xpgrad_device, requires_grad=True) for p in points]
        outs = [o for o in program(*leaves) if o.dtype.differentiable]
        expected = xp.autograd.grad(sum(xp.sum(o * o) for o in outs), leaves, allow_unused=True)
        outs = [o for o in selective(program, POLICIES[kind](seed), *leaves) if o.dtype.differentiable]
        try:
            found = xp.autograd.grad(sum(xp.sum(o * o) for o in outs), leaves, allow_unused=True)
        except RuntimeError as exc:
            assert "has been mutated" in str(exc)  # noqa: PT017 (some succeed)
            errors += 1
            continue
        assert_same([None if g is None else values(g) for g in found], [None if g is None else values(g) for g in expected])
    assert 0 < errors < 35


def outputs(out: Any) -> list[Any]:
    return list(out) if isinstance(out, (tuple, list)) else [out]


@pytest.mark.slow(one_in=2)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_of_every_function(name: str, xpgrad_device: str) -> None:
    function, at = FUNCTIONS[name]
    for seed, policy in enumerate(POLICIES):
        x, y = (xp.tensor(at, device=xpgrad_device, requires_grad=True) for _ in range(2))
        expected = xp.autograd.grad(loss(outputs(function(x))), x)[0]
        found = xp.autograd.grad(loss(outputs(selective(function, policy(seed), y))), y)[0]
        np.testing.assert_allclose(values(found), values(expected), rtol=1e-12, atol=1e-14)


# -- compared with PyTorch -----------------------------------------------------------------------------------------------


NAMES = {
    "mm": xp.matmul, "exp": xp.exp, "tanh": xp.tanh, "mul": xp.multiply, "sum": xp.sum, "sub": xp.subtract, "neg": xp.negative,
}  # fmt: skip


def changing(ns: Any, number: list[float], x: Any, w: Any) -> Any:
    a = (x @ w) * number[0]
    b = ns.exp(a) - number[0]
    c = -ns.tanh(b * number[0])
    d = (c @ b) * number[0]
    return ns.sum(d * b * ns.sum(c))


def test_the_same_operations_run_again_as_in_pytorch() -> None:
    torch = pytest.importorskip("torch", reason="the comparison runs on PyTorch")
    theirs = importlib.import_module("torch.utils.checkpoint")
    found = {}
    for some in itertools.chain.from_iterable(itertools.combinations(NAMES, n) for n in range(len(NAMES) + 1)):
        ways: list[Any] = [
            (xp, functools.partial(checkpoint), create_selective_checkpoint_contexts, [NAMES[n] for n in some]),
            (torch, theirs.checkpoint, theirs.create_selective_checkpoint_contexts, [_overload(torch, n) for n in some]),
        ]
        both = []
        for ns, run, contexts, kept in ways:
            number = [1.0]
            leaves = [ns.asarray(numbers((3, 3), k)).requires_grad_() for k in (1.0, 2.0)]
            y = run(functools.partial(changing, ns, number), *leaves, use_reentrant=False, context_fn=lambda c=contexts, k=kept: c(k))
            number[0] = 2.0
            y.backward()
            both.append([values(p.grad) if ns is xp else p.grad.numpy() for p in leaves])
        for a, b in zip(*both, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10)
        found[some] = both[0][0]
    assert len({v.tobytes() for v in found.values()}) > 20  # different policies keep different results


def _overload(torch: Any, name: str) -> Any:
    packet = getattr(torch.ops.aten, name)
    return packet.Tensor if name in ("mul", "sub") else packet.default


def test_which_operation_a_policy_is_asked_about(xpgrad_device: str) -> None:
    asked: list[Any] = []

    def policy(ctx: Any, op: Any, *args: Any) -> CheckpointPolicy:
        assert isinstance(ctx, SelectiveCheckpointContext)
        assert not ctx.is_recompute
        assert isinstance(ctx.op_output, xp.Tensor)
        asked.append((op, len(args), ctx.op_output.shape))
        xp.exp(ctx.op_output)  # the policy is not asked about this
        return CheckpointPolicy.PREFER_SAVE

    x = xp.tensor(numbers((2, 2)), device=xpgrad_device, requires_grad=True)
    y = selective(lambda x: xp.sum(xp.concat([x @ x, 2 / x.exp()])[1:], axis=0), policy, x)
    expected = [(xp.matmul, (2, 2)), (xp.exp, (2, 2)), (xp.divide, (2, 2)), (xp.concat, (4, 2)), (operator.getitem, (3, 2)), (xp.sum, (2,))]
    assert [(op, shape) for op, _, shape in asked] == expected
    xp.sum(y).backward()
    assert len(asked) == len(expected)  # the policy is only asked in the first run


# -- what is kept --------------------------------------------------------------------------------------------------------


def test_what_is_kept_lives_until_the_backward_and_nothing_else_does() -> None:
    alive: dict[str, Any] = {}

    def policy(ctx: Any, op: Any, *args: Any) -> bool:
        alive[op.__name__] = weakref.ref(ctx.op_output._array)
        return op is xp.exp

    x = xp.tensor(numbers((50,)), requires_grad=True)
    gc.disable()  # references alone decide
    try:
        y = selective(lambda x: xp.sin(xp.exp(xp.cos(x))) * 1.0, policy, x)
        assert {name: ref() is not None for name, ref in alive.items()} == {"cos": False, "exp": True, "sin": False, "multiply": True}
        y.backward(xp.ones((50,)))
        assert alive["exp"]() is None
        # The same if the graph is dropped.
        y = selective(lambda x: xp.sin(xp.exp(xp.cos(x))) * 1.0, policy, x)
        assert alive["exp"]() is not None
        del y
        assert alive["exp"]() is None
    finally:
        gc.enable()


def test_the_host_keeps_what_is_moved_there(xpgrad_device: str) -> None:
    x = xp.tensor(numbers((3,)), device=xpgrad_device, requires_grad=True)
    number = [1.0]
    for policy in (CheckpointPolicy.MUST_CPU_OFFLOAD, CheckpointPolicy.PREFER_CPU_OFFLOAD):
        number[0] = 1.0
        y = selective(lambda x: xp.sum(xp.exp(x * number[0]) * 1.0), lambda *args, policy=policy: policy, x)
        number[0] = 2.0
        np.testing.assert_allclose(values(xp.autograd.grad(y, x)[0]), np.exp(numbers((3,))))


def test_written_values(xpgrad_device: str) -> None:
    def f(x: Any) -> Any:
        y = xp.sin(x)
        z = y * 3.0
        y.mul_(2.0)
        return xp.sum(xp.exp(y) + z)

    x = xp.tensor(numbers((3,)), device=xpgrad_device, requires_grad=True)
    y = selective(f, [xp.sin], x)
    with pytest.raises(RuntimeError, match="cached during selective activation checkpoint has been mutated"):
        y.backward()
    selective(f, [xp.multiply, xp.exp, xp.sum], x).backward()
    s, c = np.sin(numbers((3,))), np.cos(numbers((3,)))
    np.testing.assert_allclose(values(x.grad), np.exp(2 * s) * 2 * c + 3 * c)
    # With the check switched off the user is responsible, but no other memory is written to.
    kept: list[Any] = []

    def policy(ctx: Any, op: Any, *args: Any) -> bool:
        if op is xp.sin:
            kept.append(ctx.op_output)
        return op is xp.sin

    y = selective(f, policy, x, allow=True)
    y.backward()
    np.testing.assert_allclose(values(kept[0]), 2 * s)


def test_arguments_are_checked() -> None:
    for wrong in (["exp"], [xp.einsum], [xp.zeros], [np.exp], [xp.exp, 3]):
        with pytest.raises(ValueError, match="expected operations in the list, but got"):
            create_selective_checkpoint_contexts(wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="either a function or a list of ops, but got"):
        create_selective_checkpoint_contexts(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="allow_cache_entry_mutation"):
        create_selective_checkpoint_contexts([], 3)  # type: ignore[arg-type]
    x = xp.tensor([1.0], requires_grad=True)
    with pytest.raises(TypeError, match="must return a CheckpointPolicy or a bool, but returned"):
        selective(xp.exp, lambda *args: "save", x)
    assert xp.is_grad_enabled()
    assert values(xp.exp(x) * 1).shape == (1,)


def test_every_operation_has_a_name_and_every_function_an_operation() -> None:
    known = [*RULES.values(), *NONDIFFERENTIABLE.values(), operator.getitem]
    extensions = {name for name in ROWS if name.startswith("special_")}  # of `xpgrad.scipy`, if another test has loaded it
    nameless = {name for name, row in ROWS.items() if _selective.operation_of(row) not in known} - extensions
    # These compute gradients, writes and copies; `x.detach()` and `x.clone()` are methods. `matrix_norm` and `polar` call several.
    assert nameless == {
        "index_basic_transpose", "scatter_add", "scatter_along", "put", "put_zero", "take_written", "wins", "put_through",
        "written_through", "zero_through", "keep", "share", "phase", "expand_reduced", "sum_to", "alias", "clone", "clone_contiguous",
        "clone_laid_out",
        "running_sum_back", "ordered_back", "cofactors", "cofactors_along", "count_nonzero_norm", "diagonal_transpose", "scale_inner",
        "solve_lyapunov", "solve_stein", "polar_factors", "nuclear_norm",
    }  # fmt: skip
    assert all(_selective.operation_of(ROWS[name]) is PRIMITIVES[name] for name in nameless)
    refused = set()
    for name, function in RULES.items():
        try:
            create_selective_checkpoint_contexts([function])
        except ValueError:
            refused.add(name)
    assert refused == {"asarray", "__getitem__", "unstack", "pad"}
    create_selective_checkpoint_contexts([operator.getitem])
    assert not any(f in COMPOSITE.values() for f in map(_selective.operation_of, ROWS.values()))


# -- runs that differ, end early, or run concurrently --------------------------------------------------------------------------


def test_a_function_that_calls_something_else() -> None:
    runs: list[int] = []

    def more(x: Any) -> Any:
        runs.append(1)
        return xp.sum(xp.exp(xp.exp(x) if len(runs) % 2 == 0 else x) ** 2)

    def others(x: Any) -> Any:
        runs.append(1)
        return xp.sum(xp.exp(xp.cos(x) if len(runs) % 2 == 0 else x) ** 2)

    def shorter(x: Any) -> Any:
        runs.append(1)
        return xp.sum(xp.exp(xp.sum(x[:1]) if len(runs) % 2 == 0 else xp.sum(x[:1], axis=0, keepdims=True)) ** 2)

    x = xp.tensor([1.0, 2.0], requires_grad=True)
    for function, message in ((more, "number 2 of `exp`"), (others, "number 1 of `cos`"), (shorter, "of other shapes")):
        runs.clear()
        y = selective(function, [xp.exp], x)
        with pytest.raises(RuntimeError, match=message):
            y.backward()
    assert x.grad is None
    assert not any(watching._WATCHERS.values())


def test_what_raises_in_both_runs_is_not_counted() -> None:
    def f(x: Any) -> Any:
        with suppress(ValueError):
            x + xp.ones((3,))
        return xp.sum(xp.exp(x + x) + x)

    x = xp.tensor([1.0, 2.0], requires_grad=True)
    for policy in ([xp.add], [xp.exp], lambda *args: True):
        np.testing.assert_allclose(values(xp.autograd.grad(selective(f, policy, x), x)[0]), 2 * np.exp([2.0, 4.0]) + 1)


def test_several_passes() -> None:
    number = [1.0]

    def f(x: Any) -> Any:
        return xp.sum(xp.exp(x * number[0]) ** 3)

    x = xp.tensor([1.0, 2.0], requires_grad=True)
    y = selective(f, [xp.exp, xp.multiply], x)
    number[0] = 2.0  # which nothing reads
    for _ in range(2):
        np.testing.assert_allclose(values(xp.autograd.grad(y, x, retain_graph=True)[0]), 3 * np.exp([3.0, 6.0]))
    (slope,) = xp.autograd.grad(y, x, create_graph=True)
    np.testing.assert_allclose(values(xp.autograd.grad(xp.sum(slope), x)[0]), 9 * np.exp([3.0, 6.0]))


@pytest.mark.parametrize("mode", [xp.no_grad, xp.enable_grad, lambda: xp.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x)])
def test_modes_inside_of_the_function_do_not_hide_it(mode: Any) -> None:
    asked: list[Any] = []
    computed: list[int] = []

    def policy(ctx: Any, op: Any, *args: Any) -> bool:
        asked.append(op)
        return True

    def function(x: Any) -> Any:
        computed.append(1)
        with mode():
            y = xp.exp(x)
        return xp.sum(y * x)

    x = xp.tensor([1.0, 2.0], requires_grad=True)
    selective(function, policy, x).backward()
    assert asked == [xp.exp, xp.multiply, xp.sum]
    assert len(computed) == 2
    inner = np.exp([1.0, 2.0])
    np.testing.assert_allclose(x.grad.numpy(), inner if mode is xp.no_grad else inner * [2.0, 3.0])


def test_nothing_is_asked_where_nothing_is_recorded() -> None:
    asked: list[Any] = []
    with xp.no_grad():
        selective(xp.exp, lambda *args: bool(asked.append(args)), xp.tensor([1.0], requires_grad=True))
    assert not asked


@pytest.mark.parametrize("early", [True, False])
def test_nested(early: bool, xpgrad_device: str) -> None:
    def inner(x: Any) -> Any:
        return xp.tanh(xp.exp(x) * x)

    def outer(run: Any) -> Callable[[Any], Any]:
        return lambda x: xp.sum(xp.sin(run(inner, xp.exp(x)) * x))

    x = xp.tensor(numbers((3,)), device=xpgrad_device, requires_grad=True)
    expected = values(xp.autograd.grad(outer(lambda f, x: f(x))(x), x)[0])
    for a, b in itertools.product(([], [xp.exp], [xp.tanh, xp.multiply], lambda *args: True), repeat=2):
        for run in (lambda f, x, b=b: selective(f, b, x, early_stop=early), lambda f, x: checkpoint(f, x, early_stop=early)):
            y = selective(outer(run), a, x, early_stop=early)
            np.testing.assert_allclose(values(xp.autograd.grad(y, x)[0]), expected)


def test_inside_and_around_transforms(xpgrad_device: str) -> None:
    w = xp.tensor(numbers((3, 3), 5.0), device=xpgrad_device)

    def f(x: Any) -> Any:
        return xp.sum(xp.exp(xp.sin(w @ x)) * x)

    def h(x: Any) -> Any:
        return func.grad(f)(x) * x

    def each(x: Any) -> Any:
        return func.vmap(f)(xp.stack([x, x * 0.5]))

    def along(x: Any) -> Any:
        return func.jvp(f, (x,), (x,))[1] + f(x)

    x = xp.tensor(numbers((3,)), device=xpgrad_device)
    batch = xp.stack([x, x * 0.5])
    for policy in ([xp.exp, xp.matmul], lambda *args: True, [xp.multiply, xp.sum]):
        for function in (f, h, each, along):
            leaf, other = x.detach().requires_grad_(), x.detach().requires_grad_()
            found = xp.autograd.grad(xp.sum(selective(function, policy, leaf)), leaf)[0]
            np.testing.assert_allclose(values(found), values(xp.autograd.grad(xp.sum(function(other)), other)[0]), rtol=1e-10)

        def g(x: Any, policy: Any = policy) -> Any:
            return selective(f, policy, x)

        for transform in (
            lambda k: func.grad(k)(x),
            lambda k: func.vmap(func.grad(k))(batch),
            lambda k: func.jvp(k, (x,), (x,))[1],
            lambda k: func.jvp(func.grad(k), (x,), (x,))[1],
        ):
            np.testing.assert_allclose(values(transform(g)), values(transform(f)), rtol=1e-10)
        both = []
        for k in (f, g):
            leaves = batch.detach().requires_grad_()
            out = func.vmap(k)(leaves)
            both.append(values(xp.autograd.grad(xp.sum(out * out), leaves)[0]))
        np.testing.assert_allclose(*both)


def test_a_compiled_function_is_computed_again_as_a_whole() -> None:
    compiled = xp.compile(lambda x: xp.exp(x) * 2.0)
    for _ in range(2):  # the first call captures the function
        x = xp.tensor([1.0, 2.0], requires_grad=True)
        selective(lambda x: xp.sum(xp.exp(compiled(x)) * xp.exp(x)), [xp.exp], x).backward()
        u = np.exp([1.0, 2.0])
        np.testing.assert_allclose(values(x.grad), np.exp(2 * u) * u * (2 * u + 1))


def test_other_threads_compute_for_themselves() -> None:
    """While one thread recomputes, operations of other threads are not answered by its mode and compute themselves."""
    x = xp.tensor([1.0, 2.0], requires_grad=True)
    found: list[Any] = []
    runs: list[int] = []

    def f(x: Any) -> Any:
        runs.append(1)
        if len(runs) == 2:
            assert len(watching._WATCHERS[ROWS["exp"]]) == 1
            thread = threading.Thread(target=lambda: found.append(values(xp.exp(xp.asarray([0.0])))))
            thread.start()
            thread.join()
        return xp.sum(xp.exp(x) ** 2)

    selective(f, [xp.exp], x).backward()
    np.testing.assert_allclose(values(x.grad), 2 * np.exp([2.0, 4.0]))
    np.testing.assert_allclose(found[0], [1.0])


def test_nothing_stays_on_the_operations() -> None:
    x = xp.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)

    def f(x: Any) -> Any:
        return xp.sum(xp.concat([x * 2, 2 - x @ x, xp.exp(x)]))

    f(x)
    names = [name for name in dir(type(x)) if name.startswith(("_op_", "_sop_", "_srop_", "__"))]
    before = {name: getattr(type(x), name) for name in names if callable(getattr(type(x), name))}
    selective(f, lambda *args: True, x).backward()
    assert [name for name, method in before.items() if getattr(type(x), name) != method] == []
    assert not any(watching._WATCHERS.values())
    # An operation that is first used while it is watched.
    with watching.Watching([ROWS["atan2"]]):
        made = xp.atan2(x, x)
        watched = type(x)._op_atan2
    assert type(x)._op_atan2 is not watched
    np.testing.assert_allclose(values(made), values(xp.atan2(x, x)))


def test_debug_by_a_context() -> None:
    runs: list[int] = []

    def f(x: Any) -> Any:
        runs.append(1)
        return xp.sum(xp.sin(x) * xp.cos(x)) if len(runs) % 2 else xp.sum(xp.sin(x))

    x = xp.tensor([1.0, 2.0], requires_grad=True)
    for enabled, own, shown in ((True, False, True), (False, True, False), (None, True, True), (None, False, False)):
        runs.clear()
        with set_checkpoint_debug_enabled(enabled):
            y = checkpoint(f, x, debug=own)
        with pytest.raises(CheckpointError) as caught:
            y.backward()
        assert ("Saved Tensor" in str(caught.value)) is shown
        assert ("Pass `debug=True`" in str(caught.value)) is not shown
    with pytest.raises(TypeError, match="enabled"):
        set_checkpoint_debug_enabled(3)  # type: ignore[arg-type]
