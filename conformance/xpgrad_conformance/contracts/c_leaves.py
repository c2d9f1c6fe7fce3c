"""Group C: leaves, and how gradients accumulate in their `.grad`."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from xpgrad_conformance.contract import contract
from xpgrad_conformance.strategies import seeds, shapes

NOT_A_LEAF = "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed"
FLAGS = "you can only change requires_grad flags of leaf variables"


def without_gradient(lib: Any) -> Any:
    """Return a custom Function that computes 2x and whose backward returns None."""
    return lib.fn(lambda ctx, x: x * 2, lambda ctx, g: None)


# -- .grad -------------------------------------------------------------------------------------------------------------


@contract("ACC-01", draw={"shape": shapes(empty=True), "seed": seeds})
def grad_begins_as_none(lib: Any, shape: Any, seed: int) -> None:
    x = lib.random(shape, seed)
    assert x.grad is None
    y = lib.xp.sum(x * x)
    assert x.grad is None
    lib.grad(y, x, retain_graph=True)
    assert x.grad is None
    y.backward()
    assert isinstance(x.grad, lib.ns.Tensor)
    lib.equal(x.grad, 2 * lib.value(x))


@contract("ACC-02", draw={"shape": shapes(), "factors": st.lists(st.integers(-3, 3), min_size=2, max_size=4), "seed": seeds})
def passes_add_up(lib: Any, shape: Any, factors: Any, seed: int) -> None:
    for program in (factors, [1, 2, 3]):
        x, total = lib.random(shape, seed), np.zeros(shape)
        for k in program:
            lib.xp.sum(x * x * k).backward()
            total = total + 2 * k * lib.value(x)
            with lib.case(program):
                lib.equal(x.grad, total)
    x.grad.zero_()
    lib.xp.sum(x * 3).backward()
    lib.equal(x.grad, np.full(shape, 3.0))
    x.grad = None
    lib.xp.sum(x * 5).backward()
    lib.equal(x.grad, np.full(shape, 5.0))


@contract("ACC-03")
def resetting(lib: Any) -> None:
    x = lib.tensor([3.0, 4.0])

    def step() -> None:
        lib.xp.sum(x * x).backward()

    step()
    first = x.grad
    assert first.zero_() is first
    lib.equal(x.grad, [0.0, 0.0])
    step()
    assert x.grad is first
    lib.equal(first, [6.0, 8.0])
    x.grad = None
    assert x.grad is None
    step()
    assert x.grad is not first
    lib.equal(x.grad, [6.0, 8.0])
    del x.grad
    assert x.grad is None
    del x.grad  # a second deletion does nothing
    step()
    lib.equal(x.grad, [6.0, 8.0])
    lib.equal(first, [6.0, 8.0])


@contract("ACC-04", draw={"flags": st.lists(st.booleans(), min_size=1, max_size=4)})
def only_leaves_that_require_grad(lib: Any, flags: Any) -> None:
    for case in [flags, [True], [True, False], [False, True, False]]:
        operands = [lib.tensor([2.0, 3.0], rg=flag) for flag in case]
        x = lib.tensor([5.0, 7.0])
        partial = []
        y = x * 1
        for t in operands:
            y = y * t
            partial.append(y)
        lib.xp.sum(y).backward()
        with lib.case(case):
            assert x.grad is not None
            assert [t.grad is not None for t in operands] == case
            for t in partial:
                with lib.warns(UserWarning, NOT_A_LEAF):
                    assert t.grad is None


@contract("ACC-05")
def leaves_that_are_not_reached(lib: Any) -> None:
    x, unused, elsewhere, cut, compared, quiet = (lib.tensor([2.0, 3.0]) for _ in range(6))
    _ = elsewhere * x
    with lib.ns.no_grad():
        constant = quiet * 2
    y = lib.xp.sum(lib.xp.where(compared > 2, x, x * 2) * cut.detach() * constant)
    y.backward()
    lib.equal(x.grad, [16.0, 18.0])
    for name, t in [("unused", unused), ("elsewhere", elsewhere), ("cut", cut), ("compared", compared), ("quiet", quiet)]:
        with lib.case(name):
            assert t.grad is None


@contract("ACC-06", draw={"shape": shapes(1), "seed": seeds})
def zeros_for_a_gradient_that_is_zero(lib: Any, shape: Any, seed: int) -> None:
    xp = lib.xp
    cases = {
        "times zero": lambda x: x * 0,
        "difference": lambda x: x - x,
        "floor": xp.floor,
        "sign": xp.sign,
        "round": xp.round,
        "other branch": lambda x: xp.where(x > 100, x, lib.ones(*shape)),
        "empty part": lambda x: x[:0],
    }
    for name, function in cases.items():
        for dtype in (lib.real, lib.narrow):
            x = lib.random(shape, seed, dtype=dtype)
            with lib.case((name, dtype)):
                xp.sum(lib.cast(function(x), dtype)).backward()
                assert x.grad is not None
                assert x.grad.dtype == lib.dtype(dtype)
                lib.equal(x.grad, np.zeros(shape))


@contract("ACC-07")
def undefined_gradients_change_nothing(lib: Any) -> None:
    cases = {"custom": without_gradient(lib).apply}
    if lib.capabilities["linalg"]:
        cases["vector_norm"] = lambda x: lib.xp.linalg.vector_norm(x, ord=0)
    for name, function in cases.items():
        with lib.case(name):
            x = lib.tensor([3.0, 4.0])
            lib.xp.sum(function(x)).backward()
            assert x.grad is None
            x.grad = old = lib.constant([5.0, 6.0])
            lib.xp.sum(function(x)).backward()
            assert x.grad is old
            assert old._version == 0
            lib.equal(old, [5.0, 6.0])
            # The gradient that arrives through another path is still accumulated.
            (lib.xp.sum(function(x)) + lib.xp.sum(x * 2)).backward()
            lib.equal(x.grad, [7.0, 8.0])


# -- leaves ------------------------------------------------------------------------------------------------------------


@contract("ACC-08")
def leaves(lib: Any) -> None:
    x, const = lib.tensor([1.0, 2.0]), lib.constant([1.0, 2.0])
    with lib.ns.no_grad():
        quiet = x * 2
    lib.xp.sum(x * x).backward()
    cases = {
        "made with requires_grad": (x, True),
        "made without": (const, True),
        "an integer": (lib.constant([1], dtype="int32"), True),
        "turned on": (lib.constant(1.0).requires_grad_(), True),
        "an operation on constants": (const * 2, True),
        "a view of a constant": (const[:1], True),
        "a cast constant": (lib.cast(const, lib.narrow), True),
        "a cast of constants, turned on": (lib.cast(const, lib.narrow).requires_grad_(), True),
        "an operation": (x * 2, False),
        "an operation with a constant": (const * x, False),
        "a view": (x[:1], False),
        "a clone": (x.clone(), False),
        "a cast": (lib.cast(x, lib.narrow), False),
        "a cast to its own dtype": (lib.cast(x, lib.real), True),
        "detached": (x.detach(), True),
        "a detached result, turned on": ((x * 2).detach().requires_grad_(), True),
        "under no_grad": (quiet, True),
        "a comparison": (x > 1, True),
        "a gradient": (x.grad, True),
    }
    for name, (t, expected) in cases.items():
        with lib.case(name):
            assert t.is_leaf is expected
            assert (t.grad_fn is None) is expected
    assert lib.cast(x, lib.real) is x


@contract("ACC-09")
def is_leaf_cannot_be_set(lib: Any) -> None:
    x = lib.tensor(1.0)
    y = x * 2
    for name in ("is_leaf", "grad_fn"):
        for t in (x, y):
            before = getattr(t, name)
            for value in (before, None, True):
                with lib.case((name, value)), lib.raises(AttributeError, name):
                    setattr(t, name, value)
            assert getattr(t, name) is before


@contract("ACC-10")
def reading_the_grad_of_a_result_warns(lib: Any) -> None:
    x = lib.tensor([3.0, 4.0])
    y = x * 2
    for _ in range(2):
        with lib.warns(UserWarning, NOT_A_LEAF, times=1):
            assert y.grad is None
        lib.xp.sum(y * y).backward(retain_graph=True)
    with lib.warns(UserWarning, NOT_A_LEAF):
        assert x[0].grad is None
    kept = x * 3
    kept.retain_grad()
    with lib.silent():
        assert kept.grad is None
        assert lib.constant(1.0).grad is None
        assert (lib.constant(1.0) * 2).grad is None
        assert x.detach().grad is None
        lib.equal(x.grad, [48.0, 64.0])


# -- retain_grad -------------------------------------------------------------------------------------------------------


@contract("ACC-11", draw={"shape": shapes(), "seed": seeds})
def retain_grad(lib: Any, shape: Any, seed: int) -> None:
    x = lib.random(shape, seed)
    y = x * 2
    assert y.retains_grad is False
    assert y.retain_grad() is None
    assert y.retains_grad is True
    assert y.grad is None
    lib.xp.sum(y * y).backward()
    lib.equal(y.grad, 4 * lib.value(x))
    lib.equal(x.grad, 8 * lib.value(x))
    assert not y.grad.requires_grad
    before = x.grad
    x.retain_grad()
    assert x.retains_grad is False
    assert x.grad is before
    lib.xp.sum(x * 1).backward()
    assert x.grad is before
    lib.equal(x.grad, 8 * lib.value(x) + 1)


@contract("ACC-12")
def retain_grad_needs_requires_grad(lib: Any) -> None:
    const = lib.constant(1.0)
    for name, t in [
        ("constant", const),
        ("result", const * 2),
        ("integer", lib.constant(1, "int32")),
        ("detached", lib.tensor(1.0).detach()),
    ]:
        with lib.case(name):
            with lib.raises(RuntimeError, "can't retain_grad on Tensor that has requires_grad=False"):
                t.retain_grad()
            assert t.retains_grad is False


@contract("ACC-13", draw={"passes": st.integers(2, 4)})
def retained_gradients_accumulate_out_of_place(lib: Any, passes: int) -> None:
    x = lib.tensor([3.0, 4.0])
    y = x * x
    y.retain_grad()
    y.retain_grad()
    z = lib.xp.sum(y * 2)
    z.retain_grad()  # z is the root
    held = []
    for n in range(1, passes + 1):
        z.backward(retain_graph=True)
        held.append(y.grad)
        lib.equal(y.grad, [2.0 * n, 2.0 * n])
        lib.equal(z.grad, 1.0 * n)
    assert len({id(g) for g in held}) == passes
    for n, g in enumerate(held, 1):
        lib.equal(g, [2.0 * n, 2.0 * n])


# -- requires_grad -----------------------------------------------------------------------------------------------------


@contract("ACC-14")
def requires_grad_is_off_unless_asked_for(lib: Any) -> None:
    xp, real = lib.xp, lib.dtype(lib.real)
    one = lib.constant([1.0])
    made = {
        "asarray": xp.asarray([1.0]),
        "tensor": lib.ns.tensor([1.0]),
        "ones": xp.ones((2,)),
        "zeros": xp.zeros((2,), dtype=real),
        "empty": xp.empty((2,)),
        "full": xp.full((2,), 3.0),
        "arange": xp.arange(3, dtype=real),
        "linspace": xp.linspace(0.0, 1.0, 3),
        "eye": xp.eye(2),
        "ones_like": xp.ones_like(lib.tensor([1.0])),
        "zeros_like": xp.zeros_like(lib.tensor([1.0])),
        "an operation on constants": one * one,
    }
    for name, t in made.items():
        with lib.case(name):
            assert t.requires_grad is False
            assert t.is_leaf is True
    assert lib.ns.tensor([1.0], requires_grad=True).requires_grad is True
    assert lib.ns.tensor([1.0], requires_grad=False).requires_grad is False
    if lib.oracle:  # only PyTorch has modules
        assert lib.ns.nn.Parameter(one).requires_grad is True


@contract("ACC-15")
def requires_grad_changes_on_leaves_only(lib: Any) -> None:
    x = lib.constant([3.0, 4.0])
    assert x.requires_grad_() is x
    assert x.requires_grad is True
    x.requires_grad = False
    assert x.requires_grad is False
    x.requires_grad = True
    for name, y in [("result", x * x), ("view", x[:1]), ("custom", without_gradient(lib).apply(x))]:
        with lib.case(name):
            node = y.grad_fn
            assert y.requires_grad_(True) is y
            assert y.requires_grad_() is y
            with lib.raises(RuntimeError, FLAGS):
                y.requires_grad = False
            with lib.raises(RuntimeError, FLAGS):
                y.requires_grad_(False)
            assert y.requires_grad is True
            assert y.is_leaf is False
            assert y.grad_fn is node
    y = x * x
    y.requires_grad_(True)
    lib.xp.sum(y).backward()
    lib.equal(x.grad, [6.0, 8.0])
    # A result computed from constants is a leaf, so its `requires_grad` may change.
    z = (lib.constant([1.0]) * 2).requires_grad_()
    (z * z).backward()
    lib.equal(z.grad, [4.0])


@contract("ACC-16")
def requires_grad_is_a_bool(lib: Any) -> None:
    for before in (False, True):
        for value in (0, 1, 1.0, "True", None, [True]):
            x = lib.tensor(1.0, rg=before)
            with lib.case((before, value)):
                with lib.raises(RuntimeError, "requires_grad must be a bool"):
                    x.requires_grad = value
                assert x.requires_grad is before


@contract("ACC-17", draw={"off": st.lists(st.booleans(), min_size=2, max_size=4)})
def switched_off_between_forward_and_backward(lib: Any, off: Any) -> None:
    for case in [off, [True, False], [True, True]]:
        leaves = [lib.tensor(float(k + 2)) for k in range(len(case))]
        y = leaves[0] * 1
        for t in leaves[1:]:
            y = y * t
        product = float(np.prod([k + 2.0 for k in range(len(case))]))
        y.backward(retain_graph=True)
        held = [t.grad for t in leaves]
        for t, flag in zip(leaves, case, strict=True):
            t.requires_grad = not flag
        y.backward()
        with lib.case(case):
            for k, (t, flag) in enumerate(zip(leaves, case, strict=True)):
                assert t.grad is held[k]
                lib.equal(t.grad, product / (k + 2) * (1 if flag else 2))
    x, w = lib.tensor(3.0), lib.tensor(2.0)
    y = x * w
    w.requires_grad_(False)
    y.backward()
    lib.equal(x.grad, 2.0)
    assert w.grad is None
    # After `requires_grad_` it is the same leaf: its `.grad` was kept, and graphs recorded earlier accumulate into it again.
    w.grad = lib.constant(5.0)
    lib.equal(w.grad, 5.0)
    w.requires_grad_()
    lib.equal(w.grad, 5.0)
    (x * w * w).backward()
    lib.equal(w.grad, 17.0)
    for _ in range(2):
        w.requires_grad_(False)
        w.requires_grad_()
    assert w.is_leaf
    (x * w).backward()
    lib.equal(w.grad, 20.0)


@contract("ACC-18", draw={"flags": st.lists(st.booleans(), min_size=1, max_size=4)})
def what_is_recorded(lib: Any, flags: Any) -> None:
    xp = lib.xp
    functions = {
        "add": lambda ts: sum(ts[1:], ts[0] + 0),
        "multiply": product_of,
        "stack": xp.stack,
        "concat": lambda ts: xp.concat(ts, axis=0),
        "where": lambda ts: xp.where(lib.constant([True, False], "bool"), ts[0], ts[-1]),
        "custom": lambda ts: lib.fn(lambda ctx, *ts: product_of([t + 0 for t in ts]), lambda ctx, g: (g,) * len(flags)).apply(*ts),
    }
    for name, function in functions.items():
        operands = [lib.tensor([2.0, 3.0], rg=flag) for flag in flags]
        expected = any(flags) if name != "where" else flags[0] or flags[-1]
        with lib.case(name):
            y = function(operands)
            assert y.requires_grad is expected
            assert (y.grad_fn is not None) is expected
            with lib.ns.no_grad():
                y = function(operands)
                assert y.requires_grad is False
                assert y.grad_fn is None
                with lib.ns.enable_grad():
                    assert function(operands).requires_grad is expected
            assert function([t.detach() for t in operands]).grad_fn is None


def product_of(factors: Any) -> Any:
    """Return the product of all factors."""
    y = factors[0] * 1
    for t in factors[1:]:
        y = y * t
    return y


# -- assigning .grad ---------------------------------------------------------------------------------------------------


@contract("ACC-19")
def assigning_grad(lib: Any) -> None:
    x, matrix = lib.tensor(3.0), lib.tensor([[1.0, 2.0]])
    size, dtype = "attempting to assign a gradient of size", "attempting to assign a gradient with dtype"
    kind = "assigned grad expected to be a Tensor or None but got grad of type"
    cases: list[tuple[Any, Any, type[BaseException], tuple[str, ...]]] = [
        (x, 1.0, TypeError, (kind,)),
        (x, "text", TypeError, (kind,)),
        (x, np.ones(()), TypeError, (kind,)),
        (x, x, RuntimeError, ("can't assign Variable as its own grad",)),
        (x, lib.ones(2), RuntimeError, (size, "'[2]'", "'[]'")),
        (x, lib.ones(1), RuntimeError, (size, "'[1]'", "'[]'")),
        (matrix, lib.ones(2, 1), RuntimeError, (size, "'[2, 1]'", "'[1, 2]'")),
        (matrix, lib.ones(2), RuntimeError, (size,)),
        (x, lib.constant(1.0, lib.narrow), RuntimeError, (dtype,)),
        (x, lib.constant(1, "int32"), RuntimeError, (dtype,)),
        (x, lib.on_other_device(1.0), RuntimeError, ("attempting to assign a gradient with device type",)),
    ]
    if lib.capabilities["complex"]:
        cases.append((x, lib.constant(1.0, lib.complex), RuntimeError, (dtype,)))
    for t, value, error, phrases in cases:
        for old in (None, lib.ones(*t.shape)):
            t.grad = old
            with lib.case((tuple(t.shape), str(value))):
                with lib.raises(error, *phrases):
                    t.grad = value
                assert t.grad is old
    mine = lib.constant(5.0)
    x.grad = mine
    assert x.grad is mine
    x.grad = None
    assert x.grad is None
    # The same rules hold for leaves that do not require grad.
    const = lib.constant([1.0, 2.0])
    with lib.raises(RuntimeError, size):
        const.grad = lib.ones(3)
    const.grad = lib.ones(2)
    lib.equal(const.grad, [1.0, 1.0])
    const.requires_grad_()
    lib.equal(const.grad, [1.0, 1.0])
    (const * 2).backward(lib.ones(2))
    lib.equal(const.grad, [3.0, 3.0])


@contract("ACC-20", draw={"shape": shapes(), "seed": seeds, "passes": st.integers(1, 3)})
def into_the_users_own_gradient(lib: Any, shape: Any, seed: int, passes: int) -> None:
    x, mine = lib.random(shape, seed), lib.random(shape, seed + 1, rg=False)
    alias, before = mine.detach(), np.array(lib.value(mine))
    x.grad = mine
    version = mine._version
    for n in range(1, passes + 1):
        lib.xp.sum(x * x).backward()
        assert x.grad is mine
        assert mine._version == version + n
        lib.equal(mine, before + n * 2 * lib.value(x))
        lib.equal(alias, before + n * 2 * lib.value(x))


@contract("ACC-21", draw={"shape": shapes(), "seed": seeds, "passes": st.integers(1, 3)})
def in_place_without_create_graph(lib: Any, shape: Any, seed: int, passes: int) -> None:
    x, w = lib.random(shape, seed), lib.random(shape, seed + 1)
    (lib.xp.sum(x * w)).backward()
    held, alias, version = x.grad, x.grad.detach(), x.grad._version
    for n in range(1, passes + 1):
        lib.xp.sum(x * w).backward()
        assert x.grad is held
        assert held._version == version + n
        lib.equal(held, (n + 1) * lib.value(w))
        lib.equal(alias, (n + 1) * lib.value(w))


@contract("ACC-22", draw={"shape": shapes(), "seed": seeds})
def replaced_with_create_graph(lib: Any, shape: Any, seed: int) -> None:
    for start in ("graph", "plain", "mine"):
        x = lib.random(shape, seed)
        v = np.array(lib.value(x))
        if start == "mine":
            x.grad = lib.constant(3 * v * v)
        else:
            lib.xp.sum(x * x * x).backward(create_graph=start == "graph")
        first, version = x.grad, x.grad._version
        with lib.case(start):
            lib.xp.sum(x * x * x).backward(create_graph=True)
            second = x.grad
            assert second is not first
            assert second.requires_grad
            lib.equal(first, 3 * v * v)
            lib.equal(second, 6 * v * v)
            assert first._version == version
            lib.equal(lib.grad(lib.xp.sum(second), x)[0], (12 if start == "graph" else 6) * v)
        x.grad = None


@contract("ACC-23")
def a_plain_pass_after_one_with_create_graph(lib: Any) -> None:
    x = lib.tensor(2.0)
    (x * x * x).backward(create_graph=True)
    held = x.grad
    (x * x).backward()
    assert x.grad is held
    assert held.requires_grad
    assert held.grad_fn is not None
    lib.equal(held, 16.0)
    x.grad = None


@contract("ACC-24", draw={"through": st.lists(st.sampled_from(["real", "narrow"]), max_size=3), "create": st.booleans()})
def grad_has_the_leafs_dtype(lib: Any, through: Any, create: bool) -> None:
    for dtype in (lib.real, lib.narrow, *lib.half_dtypes()):
        for path in (through, ["real"], ["narrow"]):
            x = lib.tensor([1.0, 2.0], dtype=dtype)
            with lib.case((dtype, path)):
                for n in (1, 2):
                    y = x
                    for name in path:
                        y = lib.cast(y, lib.real if name == "real" else lib.narrow) * 2
                    lib.xp.sum(y).backward(create_graph=create)
                    assert x.grad.dtype == lib.dtype(dtype)
                    assert x.grad.tolist() == [2.0 ** len(path) * n] * 2
                # Gradients of two dtypes meet at one leaf.
                x.grad = None
                lib.xp.sum(lib.cast(x, lib.real) * lib.cast(x, lib.narrow)).backward()
                assert x.grad.dtype == lib.dtype(dtype)
                assert x.grad.tolist() == [2.0, 4.0]
    # A backward that returns a gradient of another dtype.
    other = lib.fn(lambda ctx, x: x * 2, lambda ctx, g: lib.cast(g * 2, lib.narrow))
    x = lib.tensor([1.0, 2.0])
    lib.xp.sum(other.apply(x)).backward(create_graph=create)
    assert x.grad.dtype == lib.dtype(lib.real)
    x.grad = None


@contract("ACC-25")
def grad_dtype(lib: Any) -> None:
    real, narrow = lib.dtype(lib.real), lib.dtype(lib.narrow)
    for leaf, other in [(lib.real, lib.narrow), (lib.narrow, lib.real)]:
        with lib.case((leaf, other)):
            x = lib.tensor([1.0, 2.0], dtype=leaf)
            assert x.grad_dtype == lib.dtype(leaf)
            x.grad_dtype = lib.dtype(other)
            assert x.grad_dtype == lib.dtype(other)
            for n in (1, 2):
                lib.xp.sum(x * x).backward()
                assert x.grad.dtype == lib.dtype(other)
                lib.equal(x.grad, [2.0 * n, 4.0 * n])
            x.grad = None
            for n in (1, 2):
                lib.xp.sum(x * x).backward(create_graph=True)
                assert x.grad.dtype == lib.dtype(other)
                lib.equal(x.grad, [2.0 * n, 4.0 * n])
            x.grad = None
            with lib.raises(RuntimeError, "attempting to assign a gradient with dtype"):
                x.grad = lib.constant([1.0, 1.0], leaf)
            x.grad = lib.constant([1.0, 1.0], other)
    x = lib.tensor([1.0, 2.0])
    x.grad_dtype = None
    assert x.grad_dtype is None
    for create in (True, False):
        x.grad = None
        for n in (1, 2):
            lib.xp.sum(x * x).backward(create_graph=create)
            assert x.grad.dtype == real
            assert x.grad.requires_grad == create
            lib.equal(x.grad, [2.0 * n, 4.0 * n])
    for dtype in (lib.narrow, lib.real):
        x.grad = lib.constant([1.0, 1.0], dtype)
    # With `grad_dtype=None` the gradient keeps the dtype in which it arrives.
    answer = lib.fn(lambda ctx, x: x * 2, lambda ctx, g: lib.cast(g * 2, lib.narrow))
    x = lib.tensor([1.0, 2.0])
    x.grad_dtype = None
    lib.xp.sum(answer.apply(x)).backward()
    assert x.grad.dtype == narrow
    y = x * x
    with lib.raises(RuntimeError, "grad_dtype can only be accessed on leaf tensors"):
        _ = y.grad_dtype
    with lib.raises(RuntimeError, "grad_dtype can only be"):
        y.grad_dtype = narrow


@contract("ACC-26")
def grad_of_a_plain_pass_has_no_history(lib: Any) -> None:
    w = lib.tensor([5.0, 7.0])
    double = lib.fn(lambda ctx, x: x * 2, lambda ctx, g: g * 2 + w)

    def hooked(x: Any, hook: Any) -> Any:
        y = x * 1
        y.register_hook(hook)
        return y

    cases = {
        "product": lambda x: x * w,
        "leaf": lambda x: x,
        "custom": double.apply,
        "a hook that computes": lambda x: hooked(x, lambda g: g * w),
        "a hook that returns a leaf": lambda x: hooked(x, lambda g: w),
        "a hook that returns a result": lambda x, early=w * 2: hooked(x, lambda g: early),
    }
    for name, function in cases.items():
        x = lib.tensor([1.0, 2.0])
        with lib.case(name):
            for _ in range(2):
                function(x).backward(w * 1)
                assert x.grad.requires_grad is False
                assert x.grad.grad_fn is None
                assert x.grad.is_leaf
    lib.equal(w, [5.0, 7.0])


@contract("ACC-27")
def leaves_do_not_share_a_gradient(lib: Any) -> None:
    cases = {
        "add": lambda x, y: x + y,
        "subtract": lambda x, y: x - (-y),
        "one and a view": lambda x, y: x[:] + y,
        "concat and sum": lambda x, y: lib.xp.sum(lib.xp.stack([x, y]), axis=0),
    }
    for name, function in cases.items():
        x, y, seed = lib.tensor([1.0, 2.0]), lib.tensor([3.0, 4.0]), lib.ones(2)
        with lib.case(name):
            function(x, y).backward(seed)
            if lib.sees_memory:
                assert not lib.same_memory(x.grad, y.grad)
                assert not lib.same_memory(x.grad, seed)
                assert not lib.same_memory(y.grad, seed)
            x.grad.mul_(10)
            lib.equal(x.grad, [10.0, 10.0])
            lib.equal(y.grad, [1.0, 1.0])
            lib.equal(seed, [1.0, 1.0])
            function(x, y).backward(seed)
            lib.equal(x.grad, [11.0, 11.0])
            lib.equal(y.grad, [2.0, 2.0])
