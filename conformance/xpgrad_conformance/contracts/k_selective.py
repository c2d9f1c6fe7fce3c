"""Group K: selective checkpoints, which keep the results that a policy chooses.

The functions read a number that changes between their two runs, which shows what was computed again.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from xpgrad_conformance.contract import contract

V, U = np.array([[0.1, 0.2], [0.3, 0.4]]), np.array([[0.5, -0.1], [0.2, 0.3]])
NAMES = ("matmul", "exp", "multiply")


def operation(lib: Any, name: str) -> Any:
    """Return the operation that a policy receives for a public function."""
    if not lib.oracle:
        return getattr(lib.xp, name)
    aten = lib.ns.ops.aten
    return {
        "matmul": aten.mm.default,
        "exp": aten.exp.default,
        "multiply": aten.mul.Tensor,
        "sum": aten.sum.default,
        "concat": aten.cat.default,
    }[name]


def run_selective(lib: Any, function: Callable[..., Any], policy: Any, *args: Any, **options: Any) -> Any:
    """Call a function under a checkpoint with a policy, and return its result."""
    module = lib.module("utils.checkpoint")
    contexts = functools.partial(module.create_selective_checkpoint_contexts, policy, **options)
    return module.checkpoint(function, *args, use_reentrant=False, context_fn=contexts)


def changing(lib: Any, number: list[float], x: Any, w: Any) -> Any:
    k = number[0]
    b = lib.xp.exp(lib.xp.matmul(x - k, w) * k)
    return lib.xp.sum(b * b)


def expected(kept: Any) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the gradients of `changing` if `kept` is kept: the second run has k = 3, but a node keeps the factor of the first run, 1."""
    first = (V - 1.0) @ U
    product = first if "matmul" in kept else (V - 3.0) @ U
    product = first if "multiply" in kept else product * 3.0
    b = np.exp(first if "exp" in kept else product)
    return 2 * b * b @ U.T, (V - 3.0).T @ (2 * b * b)


@contract("SAV-20")
def kept_by_a_policy(lib: Any) -> None:
    policies = lib.module("utils.checkpoint").CheckpointPolicy
    kinds = ("SAVE",) if lib.oracle else ("SAVE", "CPU_OFFLOAD")  # PyTorch documents offloading, and recomputes outside of `torch.compile`
    answers = [(f"{how}_{kind}", f"{how}_RECOMPUTE") for how in ("MUST", "PREFER") for kind in kinds]
    for save, again in (*answers, (True, False)):
        for n in range(len(NAMES) + 1):
            for some in itertools.combinations(NAMES, n):
                kept, number = [operation(lib, name) for name in some], [1.0]

                def policy(ctx: Any, op: Any, *args: Any, kept: Any = kept, pair: Any = (save, again), **kwargs: Any) -> Any:
                    answer = pair[0] if op in kept else pair[1]
                    return answer if isinstance(answer, bool) else policies[answer]

                x, w = lib.tensor(V), lib.tensor(U)
                y = run_selective(lib, functools.partial(changing, lib, number), policy, x, w)
                number[0] = 3.0
                with lib.case(f"{save} {some}"):
                    y.backward()
                    for found, wanted in zip((x.grad, w.grad), expected(some), strict=True):
                        lib.equal(found, wanted)
    # An operation on a list of Tensors.
    concat, number = operation(lib, "concat"), [1.0]
    for kept in ([concat], []):
        number[0] = 1.0
        x = lib.tensor(V)
        y = run_selective(lib, lambda t: lib.xp.sum(lib.xp.exp(lib.xp.concat([t * number[0], t]))), kept, x)
        number[0] = 3.0
        with lib.case(len(kept)):
            lib.equal(lib.grad(y, x)[0], np.exp(V if kept else 3 * V) + np.exp(V))
    if not lib.oracle:  # PyTorch does not notice that the second run has another number of operands
        y = run_selective(lib, lambda t: lib.xp.sum(lib.xp.exp(lib.xp.concat([t] * int(number[0])))), [concat], x)
        number[0] = 2.0
        with lib.raises(RuntimeError, "operands of other shapes"):
            y.backward()
    # Several calls of one operation: each gets back its own value.
    number[0] = 1.0
    x, exp = lib.tensor(V), operation(lib, "exp")
    y = run_selective(lib, lambda t: lib.xp.sum(lib.xp.sin(sum(lib.xp.exp(t * k * number[0]) * k for k in (1.0, 2.0, 3.0)))), [exp], x)
    number[0] = 3.0
    lib.equal(lib.grad(y, x)[0], np.cos(sum(np.exp(k * V) * k for k in (1, 2, 3))) * sum(np.exp(k * V) * k * k for k in (1, 2, 3)))
    # One policy within another: each keeps what it says.
    for outer, inner in itertools.product((True, False), repeat=2):
        number[0] = 1.0

        def product(t: Any) -> Any:
            return lib.xp.exp(t * number[0]) * lib.xp.exp(t)

        def nested(t: Any, inner: bool = inner) -> Any:
            return lib.xp.sum(lib.xp.sin(run_selective(lib, product, [exp] * inner, t)))

        x = lib.tensor(V)
        y = run_selective(lib, nested, [exp] * outer, x)
        number[0] = 3.0
        with lib.case((outer, inner)):
            lib.equal(lib.grad(y, x)[0], np.cos(np.exp((2 if outer else 4) * V)) * 2 * np.exp((2 if inner else 4) * V))


@contract("SAV-21")
def kept_by_a_list(lib: Any) -> None:
    create = lib.module("utils.checkpoint").create_selective_checkpoint_contexts
    for n in range(len(NAMES) + 1):
        for some in itertools.combinations(NAMES, n):
            x, w, number = lib.tensor(V), lib.tensor(U), [1.0]
            y = run_selective(lib, functools.partial(changing, lib, number), [operation(lib, name) for name in some], x, w)
            number[0] = 3.0
            with lib.case(str(some)):
                for found, wanted in zip(lib.grad(y, [x, w]), expected(some), strict=True):
                    lib.equal(found, wanted)
    for wrong in (["exp"], [3], [np.exp]):
        with lib.case(str(wrong)), lib.raises(ValueError):
            create(wrong)
    with lib.raises(TypeError, "policy_fn_or_list must be either a function or a list of ops"):
        create(3)


@contract("SAV-22")
def what_a_policy_is_asked(lib: Any) -> None:
    module = lib.module("utils.checkpoint")
    exp, multiply = operation(lib, "exp"), operation(lib, "multiply")
    asked: list[Any] = []
    alive: list[Any] = []

    def policy(ctx: Any, op: Any, *args: Any, **kwargs: Any) -> Any:
        assert isinstance(ctx, module.SelectiveCheckpointContext)
        assert ctx.is_recompute is False
        asked.append((op, lib.value(args[0]).copy(), lib.value(ctx.op_output).copy()))
        if op is exp:
            alive.append(lib.watch_memory(ctx.op_output))
        return module.CheckpointPolicy.MUST_SAVE if len(alive) == 1 and op is exp else module.CheckpointPolicy.PREFER_RECOMPUTE

    x = lib.tensor(V)
    y = run_selective(lib, lambda t: lib.xp.exp(lib.xp.exp(t * t)) * 1.0, policy, x)
    assert [op for op, _, _ in asked] == [multiply, exp, exp, multiply]
    values = [V, V * V, np.exp(V * V), np.exp(np.exp(V * V))]
    for (_, given, out), a, b in zip(asked, values, [*values[1:], values[-1]], strict=True):
        lib.equal(lib.constant(given), a)
        lib.equal(lib.constant(out), b)
    # The kept value lives until the backward; the others are freed.
    if not lib.capabilities["lazy"]:
        assert [still() for still in alive] == [True, False]
    y.backward(lib.constant(np.ones_like(V)))
    assert len(asked) == 4, "asked again in the run that recomputes"
    if not lib.capabilities["lazy"]:
        assert not alive[0]()
    lib.equal(x.grad, np.exp(np.exp(V * V)) * np.exp(V * V) * 2 * V)
    with lib.ns.no_grad():
        run_selective(lib, lib.xp.exp, policy, x)
    assert len(asked) == 4, "asked where nothing is recorded"
    module.SelectiveCheckpointContext(is_recompute=False)
    names = ["MUST_SAVE", "PREFER_SAVE", "MUST_RECOMPUTE", "PREFER_RECOMPUTE", "MUST_CPU_OFFLOAD", "PREFER_CPU_OFFLOAD"]
    assert [p.name for p in module.CheckpointPolicy] == names


@contract("SAV-23")
def kept_values_that_are_written_to(lib: Any) -> None:
    def f(t: Any) -> Any:
        y = t * t
        z = y * 3.0
        y.mul_(2.0)
        return lib.xp.sum(lib.xp.exp(z) + y)

    exp, wanted = operation(lib, "exp"), np.exp(3 * V * V) * 6 * V + 4 * V
    x = lib.tensor(V)
    lib.equal(lib.grad(run_selective(lib, f, [exp], x), x)[0], wanted)
    count = [0]

    def first_product(ctx: Any, op: Any, *args: Any, **kwargs: Any) -> bool:
        count[0] += op is operation(lib, "multiply")
        return op is operation(lib, "multiply") and count[0] == 1

    y = run_selective(lib, f, first_product, x)
    with lib.raises(RuntimeError, "Tensor cached during selective activation checkpoint has been mutated"):
        y.backward()
    assert x.grad is None
    # A write after the call: with the check disabled, the kept value is the new one.
    for allow in (False, True):
        x = lib.tensor(V)
        out = run_selective(lib, lambda t: lib.xp.exp(t * 1.0) * 1.0, [exp], x, allow_cache_entry_mutation=allow)
        lib.equal(lib.grad(lib.xp.sum(out), x)[0], np.exp(V))
        kept: list[Any] = []

        def keeping(t: Any, kept: list[Any] = kept) -> Any:
            kept.append(lib.xp.exp(t * 1.0))
            return lib.xp.sin(kept[-1])

        total = lib.xp.sum(run_selective(lib, keeping, [exp], x, allow_cache_entry_mutation=allow))
        with lib.ns.no_grad():
            kept[0].mul_(2.0)
        if allow:
            lib.grad(total, x)
        else:
            with lib.raises(RuntimeError, "has been mutated"):
                total.backward()


@contract("SAV-24")
def debugging_by_a_context(lib: Any) -> None:
    module = lib.module("utils.checkpoint")
    runs: list[int] = []

    def different(t: Any) -> Any:
        runs.append(1)
        return lib.xp.sum(lib.xp.sin(t) * lib.xp.cos(t)) if len(runs) % 2 else lib.xp.sum(lib.xp.sin(t))

    told = {}
    for enabled, own in itertools.product((True, False, None), (True, False)):
        runs.clear()
        x = lib.tensor(V)
        with module.set_checkpoint_debug_enabled(enabled):
            y = module.checkpoint(different, x, use_reentrant=False, debug=own)
        with lib.case(f"{enabled}, {own}"), lib.raises(module.CheckpointError) as caught:
            y.backward()
        told[enabled, own] = "debugging_by_a_context" in str(caught[0]) or "aten" in str(caught[0])
    assert told == {(e, o): o if e is None else e for e, o in told}
