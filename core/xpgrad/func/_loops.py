"""`scan`, `fori_loop`, `while_loop` and `cond`: loops and branches with JAX's names and meaning, on every backend."""

from __future__ import annotations

from collections.abc import Callable
from types import CellType, FunctionType
from typing import Any

from xpgrad._basics.arguments import as_flag, as_size, check_callable, shown
from xpgrad._basics.scalars import as_scalar, is_scalar
from xpgrad._modes import state, switches
from xpgrad._modes.captures import as_captured
from xpgrad._operations.lift import is_constant, lift_leaves, lift_like
from xpgrad._tensor.tensor import Tensor
from xpgrad.backend import ControlFlow
from xpgrad.errors import CaptureError, DeviceMismatchError
from xpgrad.func._branches import choose
from xpgrad.func._loop_lowering import bottom
from xpgrad.func._loop_writes import check_unwritten, closed_over, refusing_writes, separate, versions_of
from xpgrad.func._scans import run_scan, scan_in_python
from xpgrad.func._tree import Structure, flatten, unflatten
from xpgrad.func._whiles import repeat_while
from xpgrad.rules.creation import arange, full, zeros
from xpgrad.rules.elementwise import where
from xpgrad.rules.reduction import any as any_of

__all__ = ["cond", "fori_loop", "scan", "while_loop"]


# -- trees ------------------------------------------------------------------------------------------------------------------------


class _Tree:
    """A structure of Tensors, in which None stays None.

    Attributes
    ----------
    structure : Structure
    present : list of bool
        Whether each leaf is a Tensor, not None.
    """

    def __init__(self, structure: Structure, leaves: list[Any]) -> None:
        self.structure = structure
        self.present = [x is not None for x in leaves]

    def build(self, tensors: Any) -> Any:
        """Return the tree with these Tensors."""
        given = iter(tensors)
        return unflatten(self.structure, [next(given) if p else None for p in self.present])

    def leaves_like(self, tree: Any) -> list[Any] | None:
        """Return the leaves, other than None, of a tree of this structure, in which dicts may have another order; None if it differs."""
        leaves, structure = flatten(tree)
        if structure != self.structure:
            numbers: list[int] | None = _reordered(structure, self.structure, iter(range(len(leaves))))
            if numbers is None:
                return None
            leaves = [leaves[k] for k in numbers]
        if [x is not None for x in leaves] != self.present:
            return None
        return [x for x in leaves if x is not None]

    def __str__(self) -> str:
        leaves = iter(["*" if p else "None" for p in self.present])
        return _text(self.structure, leaves)


def _reordered(found: Structure, wanted: Structure, numbers: Any) -> list[int] | None:
    """Return the numbers of the leaves of `found` in the order of `wanted`; None if they differ in more than the order of keys."""
    if found.is_leaf or wanted.is_leaf:
        return [next(numbers)] if found.is_leaf and wanted.is_leaf else None
    if found.container is not wanted.container or len(found.children) != len(wanted.children) or set(found.keys) != set(wanted.keys):
        return None
    order = {key: k for k, key in enumerate(wanted.keys)}
    parts: list[Any] = [None] * len(found.children)
    for k, child in enumerate(found.children):
        place = order[found.keys[k]] if found.keys else k
        part = _reordered(child, wanted.children[place], numbers)
        if part is None:
            return None
        parts[place] = part
    return [number for part in parts for number in part]


def _text(structure: Structure, leaves: Any) -> str:
    if structure.is_leaf:
        return str(next(leaves))
    inside = [_text(child, leaves) for child in structure.children]
    if structure.keys:
        inside = [f"{key!r}: {part}" for key, part in zip(structure.keys, inside)]
    return f"{structure.container.__name__}({', '.join(inside)})"


def _tensors(name: str, what: str, leaves: list[Any], beside: list[Any] | None = None) -> list[Any]:
    """Return the leaves that are not None as Tensors: arrays and numbers are converted.

    Raises
    ------
    TypeError
        A leaf is something else.
    """
    leaves = [x for x in leaves if x is not None]
    for x in leaves:
        if not (isinstance(x, Tensor) or is_constant(x) or is_scalar(x)):
            msg = f"{name}: {what} must consist of Tensors, arrays and numbers in tuples, lists, dicts and dataclasses, but has {shown(x)}"
            raise TypeError(msg)
    return [as_captured(x if x.is_inference() else x._stand_in()) for x in lift_leaves(name, leaves, beside or (), numbers=True)]


def _kind(x: Any) -> str:
    return f"{x.dtype.name}[{','.join(map(str, x.shape))}]"


class _Carry:
    """The variables of a loop: their structure, shapes and dtypes, which every step must keep.

    Attributes
    ----------
    name, body : str
        The loop and its function, for messages.
    tree : _Tree
    tensors : list of Tensor
        The initial values.
    weak : list of bool
        Whether each initial value was given as a Python number, whose dtype follows that of the first step's result.
    numbers : list
        These numbers; None for the other initial values.
    """

    def __init__(self, name: str, body: str, what: str, value: Any, among: list[Any]) -> None:
        self.name, self.body, self.what = name, body, what
        leaves, structure = flatten(value)
        self.tree = _Tree(structure, leaves)
        given = [x for x in leaves if x is not None]
        self.weak = [is_scalar(x) and not isinstance(x, Tensor) for x in given]
        self.numbers = [x if weak else None for x, weak in zip(given, self.weak)]
        self.tensors = _tensors(name, f"`{what}`", leaves, among)
        others = [*(x for x, weak in zip(self.tensors, self.weak) if not weak), *among]
        found = next((x for x in others if x.ndim), next(iter(others), None))
        if found is not None:
            self.move_numbers(found.device)

    def build(self, tensors: Any) -> Any:
        return self.tree.build(tensors)

    def finish(self, tensors: list[Any]) -> Any:
        """Return the last values, which share no memory with the first ones."""
        return self.build(separate(tensors, self.tensors))

    def check(self, out: Any) -> list[Any]:
        """Return the Tensors of the carry that a step returned.

        Raises
        ------
        TypeError
            Its structure, a shape, a dtype or a device changed.
        _Retyped
            A step returned another dtype or device for an initial value given as a number.
        """
        leaves = self.tree.leaves_like(out)
        if leaves is None:
            found, structure = flatten(out)
            msg = (
                f"{self.name}: `{self.body}` must return a carry of the structure of `{self.what}`: that is {self.tree}, but it returned "
                f"{_Tree(structure, found)}"
            )
            raise TypeError(msg)
        new = []
        for k, (x, like) in enumerate(zip(leaves, self.tensors)):
            if not isinstance(x, Tensor):
                if not is_scalar(x):
                    _tensors(self.name, f"the carry that `{self.body}` returned", [x])  # raises if it is no array
                x = lift_like(self.name, x, like)
            if self.weak[k] and x.shape == () and (x.dtype is not like.dtype or x.device != like.device) and _is_wider(x.dtype, like.dtype):
                raise _Retyped(k, x.dtype, x.device)
            if x.shape != like.shape or x.dtype is not like.dtype or x.device != like.device:
                where_is = f"on {x.device}, not {like.device}" if x.device != like.device else _kind(x)
                msg = (
                    f"{self.name}: the carry must have the same shapes and dtypes in every step, but leaf {k} of {self.tree} is "
                    f"{_kind(like)} in `{self.what}`, and `{self.body}` returned {where_is}; convert one of them, e.g. with "
                    "`xpgrad.astype`"
                )
                raise TypeError(msg)
            new.append(as_captured(x if x.is_inference() else x._stand_in()))
        self.weak = [False] * len(self.weak)
        return new

    def retype(self, change: _Retyped) -> None:
        """Give an initial value that is a number the dtype and the device that the first step returned for it."""
        self.tensors[change.place] = self.tensors[change.place]._cast(change.dtype).to_device(change.device)
        self.weak[change.place] = False

    def start(self, probe: Callable[[list[Any]], Any]) -> None:
        """Settle the dtypes of initial values that are numbers: run `probe`, a step that is not recorded, until they stay the same."""
        if True in self.weak:
            with switches.no_grad():
                self.settled(lambda: probe(self.tensors))

    def settled(self, run: Callable[[], Any], *functions: Any) -> Any:
        """Call a function that runs steps, which are `functions`; again if the first step gives a number another dtype or device.

        Raises
        ------
        RuntimeError
            It is to be called again, and has written to a Tensor from outside.
        """
        known = versions_of(closed_over(*functions)) if True in self.weak else []
        while True:
            try:
                return run()
            except _Retyped as change:
                check_unwritten(self.name, self.body, known)
                self.retype(change)

    def move_numbers(self, device: Any) -> None:
        """Move the initial values that are numbers to a device; Python's have the default dtypes there."""
        for k, (x, number) in enumerate(zip(self.tensors, self.numbers)):
            if self.weak[k] and x.device != device:
                is_python = type(number) in (bool, int, float, complex)
                self.tensors[k] = full((), number, device=device) if is_python else x.to_device(device)


class _Retyped(Exception):
    """Raised if a step gives a number of the initial carry another dtype or device."""

    def __init__(self, place: int, dtype: Any, device: Any) -> None:
        super().__init__()
        self.place, self.dtype, self.device = place, dtype, device


_ORDER = {"bool": 0, "unsigned integer": 1, "signed integer": 1, "real floating": 2, "complex floating": 3}


def _is_wider(dtype: Any, than: Any) -> bool:
    """Return whether a Python number whose default dtype is `than` can be of another dtype: of the same kind or a later one."""
    return _ORDER[dtype.category] >= _ORDER[than.category]


def _own_flow(tensors: list[Any], kind: str) -> ControlFlow | None:
    """Return the loops of the backend that computes with some Tensors if it has that kind of loop; None if Python's is to run.

    Raises
    ------
    DeviceMismatchError
        Another backend has some of the Tensors, and cannot compute with what this one traces.
    """
    found = [bottom(x) for x in tensors]
    backends = list(dict.fromkeys(x.backend for x in found))
    for backend in backends:
        flow: ControlFlow | None = backend.control_flow([x._array for x in found if x.backend is backend])
        if flow is not None and getattr(flow, kind) is not None:
            if len(backends) > 1:
                devices = " and ".join(dict.fromkeys(str(x.device) for x in found))
                msg = f"a `{kind}` inside a function that is traced got Tensors on {devices}; move them to one device with `x.to_device`"
                raise DeviceMismatchError(msg)
            return flow
    return None


def _with_present_values(function: Any, known: dict[Any, Any] | None = None) -> Any:
    """Return a copy of a function whose free variables keep their present values; other callables are returned unchanged.

    A backend's loop runs the function again in backward passes, when ``x = while_loop(lambda v: v < x, ...)`` has changed `x`. Functions
    among the values of free variables are copied in the same way; `known` has the copies so far.
    """
    known = {} if known is None else known
    if not isinstance(function, FunctionType) or not function.__closure__:
        return function
    if function not in known:
        cells = [CellType() if _has_value(cell) else cell for cell in function.__closure__]
        copy = FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__, tuple(cells))
        copy.__kwdefaults__, copy.__qualname__ = function.__kwdefaults__, function.__qualname__
        known[function] = copy
        for new, old in zip(cells, function.__closure__):
            if new is not old:
                new.cell_contents = _with_present_values(old.cell_contents, known)
    return known[function]


def _has_value(cell: CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018 (it raises an error)
    except ValueError:
        return False
    return True


# -- predicates -------------------------------------------------------------------------------------------------------------------


def _predicate(name: str, what: str, value: Any, numbers: bool) -> Any:
    """Return a predicate as a bool if it is a Python or NumPy scalar, else as a 0-d boolean Tensor.

    A Tensor that all elements of a batch share is taken out of the batch. With `numbers`, real numbers are allowed, and true if not 0.

    Raises
    ------
    TypeError
        It is no such scalar.
    """
    scalar = as_scalar(value)
    if isinstance(scalar, bool) or (numbers and isinstance(scalar, (int, float))):
        return bool(scalar)
    if is_constant(value):
        (value,) = lift_leaves(name, [value])
    if not isinstance(value, Tensor) or value.shape != () or (value.dtype.category != "bool" and not numbers) or value.dtype.is_complex:
        got = f"a Tensor {_kind(value)}" if isinstance(value, Tensor) else shown(value)
        msg = f"{name}: {what} must be a boolean scalar, but is {got}; reduce it with `xpgrad.any` or `xpgrad.all`"
        raise TypeError(msg)
    if value.dtype.category != "bool":
        value = value != 0
    while value.depth and value._array.level is None:  # all elements share it
        value = value._array.value
    return value


def _known(name: str, instead: str, holds: Any) -> bool:
    """Return the value of the predicate `holds` of the function `name`.

    Raises
    ------
    CaptureError
        It depends on the arguments of a function that is being captured. The message ends with `instead`, what to write.
    """
    try:
        return bool(holds)
    except CaptureError as exc:
        from xpgrad.programs.recorder import refusal  # loads late: only captures need it

        raise refusal(f"the predicate of `{name}` depends on the arguments", instead) from exc


# -- the four functions -----------------------------------------------------------------------------------------------------------


def scan(
    f: Callable[..., Any], init: Any, xs: Any = None, length: int | None = None, reverse: bool = False, unroll: int | bool = 1, *,
    checkpoint: bool = False,
) -> tuple[Any, Any]:  # fmt: skip
    """Apply a function to the slices of arrays along their first axis one after the other, carrying values from step to step.

    It computes what this loop does, for `xs` and results that may be nested tuples, lists, dicts and dataclasses of Tensors::

        carry, ys = init, []
        for x in xs:
            carry, y = f(carry, x)
            ys.append(y)
        return carry, xpgrad.stack(ys)

    Python runs the loop, and each step is recorded as usual, so that all transforms apply to it. In a compiled function it stays a loop, so
    that neither the time to compile nor the size of the code depends on the number of steps: the library's own where it traces the function
    (`jax.jit`, or `xpgrad.compile` on JAX), else a loop in the code that `xpgrad.compile` writes. A backward pass through such a loop is a
    loop in the other direction, which computes each step again from the saved carry.

    Parameters
    ----------
    f : callable
        ``f(carry, x)`` returns ``(carry, y)``, and has no side effects. The carry has the same structure, shapes and dtypes in every step.
        It may use Tensors from outside, and is differentiated with respect to them.
    init : Tensor, array or number, or nested containers of them
        The first carry. None is an empty container. A number takes the dtype that the first step returns for it.
    xs : Tensor or array of shape ``(n, ...)``, or nested containers of them, optional
        `f` gets the slices of shape ``(...)``; None if `xs` is None.
    length : int, optional
        The number of steps; needed without `xs`.
    reverse : bool
        Start with the last slices. Results are stacked in the order of `xs`.
    unroll : int or bool
        The number of steps in one iteration of a library's own loop; other loops ignore it.
    checkpoint : bool
        Save the carries only, and compute the steps again in the backward pass. Compiled loops always do so. Steps that run again draw the
        same numbers from the global random generators of NumPy and of the devices in use, but not from others.

    Returns
    -------
    carry : Tensor or nested containers of Tensors
        The last carry, of the structure of `init`.
    ys : Tensor or nested containers of Tensors
        The second results of `f`, each of shape ``(n, ...)``; None where `f` returns None.

    Raises
    ------
    TypeError
        If `f` is not callable or returns no pair, a step changes the structure, a shape or a dtype of the carry, or a leaf is no array.
    ValueError
        If first axes differ from each other or from `length`, or neither `xs` nor `length` is given.

    Notes
    -----
    The semantics are those of `jax.lax.scan <https://docs.jax.dev/en/latest/_autosummary/jax.lax.scan.html>`_. Without steps, `f` runs once
    on zeros, to see which results it has.

    Examples
    --------
    >>> import xpgrad as xp
    >>> carry, ys = xp.func.scan(lambda total, x: (total + x, total * x), 0.0, xp.tensor([1.0, 2.0, 3.0]))
    >>> carry, ys
    (tensor(6.), tensor([0., 2., 9.]))
    >>> xp.func.grad(lambda a: xp.func.scan(lambda c, _: (a * c, None), 1.0, length=3)[0])(xp.tensor(2.0))
    tensor(12.)
    """
    check_callable(f, "scan", "f")
    reverse, checkpoint = as_flag(reverse, "scan", "reverse"), as_flag(checkpoint, "scan", "checkpoint")
    return _scan("scan", f, "f", init, "init", xs, length, reverse, unroll, checkpoint)


def _scan(
    name: str, f: Any, body: str, init: Any, what: str, xs: Any, length: Any, reverse: bool, unroll: Any, checkpoint: bool
) -> tuple[Any, Any]:  # fmt: skip
    """Implement `scan` and `fori_loop`, `name`; `body` and `what` are the names of their arguments for `f` and `init`, for messages."""
    leaves, structure = flatten(xs)
    slices = _Tree(structure, leaves)
    columns = _tensors(name, "`xs`", leaves, flatten(init)[0])
    carry = _Carry(name, body, what, init, columns)
    n = _length(name, columns, length)
    found: list[Any] = []  # the structure of the results of a step

    def step(values: list[Any], x: list[Any]) -> tuple[list[Any], list[Any]]:
        out = f(carry.build(values), slices.build(x))
        if not (isinstance(out, tuple) and len(out) == 2):
            msg = f"{name}: `{body}` must return a pair (carry, y), but returned {shown(out)}"
            raise TypeError(msg)
        new = carry.check(out[0])
        results, tree = flatten(out[1])
        if not found:
            found.append(_Tree(tree, results))
        same = found[0].leaves_like(out[1])
        if same is None:
            msg = f"{name}: `{body}` must return results of one structure, but returned {_Tree(tree, results)} after {found[0]}"
            raise TypeError(msg)
        return new, _tensors(name, f"the results of `{body}`", same, carry.tensors)

    guarded = refusing_writes(name, body, step, [f])
    if not n:
        zero = [zeros(x.shape[1:], dtype=x.dtype, device=x.device) for x in columns]
        with switches.no_grad():
            carry.start(lambda values: guarded(values, zero))
            _, ys = guarded(carry.tensors, zero)
            ys = [zeros((0, *y.shape), dtype=y.dtype, device=y.device) for y in ys]
        return carry.finish(carry.tensors), found[0].build(ys)

    def run() -> tuple[list[Any], list[Any]]:
        nonlocal f
        flow = _own_flow([*carry.tensors, *columns], "scan")
        if flow is None or flow.scan is None:
            f = _with_present_values(f) if checkpoint else f
            last, ys = scan_in_python(guarded if checkpoint else step, carry.tensors, columns, n, reverse, checkpoint)
            return separate(last, [*carry.tensors, *columns]), ys
        edge = n - 1 if reverse else 0
        carry.start(lambda values: guarded(values, [x[edge] for x in columns]))
        f = _with_present_values(f)
        return run_scan(flow.scan, guarded, carry.tensors, columns, n, reverse, unroll)

    last, ys = carry.settled(run, f)
    return carry.build(last), found[0].build(ys)


def _length(name: str, columns: list[Any], length: Any) -> int:
    """Return the number of steps.

    Raises
    ------
    TypeError
        `length` is no integer.
    ValueError
        A leaf is 0-d, the lengths differ, or there are neither leaves nor `length`.
    """
    sizes = []
    for x in columns:
        if not x.ndim:
            msg = f"{name}: `xs` must have a first axis to go along, but a leaf is 0-d"
            raise ValueError(msg)
        sizes.append(x.shape[0])
    if length is not None:
        sizes.append(as_size(length, name, "length"))
    if not sizes:
        msg = f"{name}: give `xs`, or the number of steps as `length`"
        raise ValueError(msg)
    if len(set(sizes)) > 1:
        given = "" if length is None else f" and length={length}"
        msg = f"{name}: the leaves of `xs` must have the same length along their first axis{given}, but have {sizes[: len(columns)]}"
        raise ValueError(msg)
    return int(sizes[0])


def fori_loop(
    lower: Any, upper: Any, body_fun: Callable[..., Any], init_val: Any, *, unroll: int | bool | None = None, checkpoint: bool = False
) -> Any:
    """Apply a function to the numbers from `lower` up to, but not including, `upper`, carrying values from step to step.

    It computes what this loop does::

        val = init_val
        for i in range(lower, upper):
            val = body_fun(i, val)
        return val

    Parameters
    ----------
    lower, upper : int, or 0-d Tensor of an integer dtype
        With ints, the loop is a `scan`. If a Tensor is traced, or an element of a batch, it is a `while_loop`, whose derivatives it has.
    body_fun : callable
        ``body_fun(i, val)`` returns the next value, of the same structure, shapes and dtypes; `i` is a 0-d Tensor of the default integer
        dtype.
    init_val : Tensor, array or number, or nested containers of them
        The first value. A number takes the dtype that the first step returns for it.
    unroll : int or bool, optional
        As in `scan`; 1 by default.
    checkpoint : bool
        As in `scan`.

    Returns
    -------
    Tensor or nested containers of Tensors
        The last value; `init_val` if ``upper <= lower``.

    Raises
    ------
    TypeError
        If `body_fun` is not callable, a bound is no integer, or a step changes the structure, a shape or a dtype of the value.
    CaptureError
        If a bound depends on the arguments of a function that is compiled or exported for an emitter without loops.

    Notes
    -----
    The semantics are those of `jax.lax.fori_loop <https://docs.jax.dev/en/latest/_autosummary/jax.lax.fori_loop.html>`_.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.func.fori_loop(0, 4, lambda i, val: val * 2.0 + i, xp.tensor(1.0))
    tensor(27.)
    >>> xp.func.grad(lambda x: xp.func.fori_loop(0, 3, lambda i, val: val * x, xp.tensor(1.0)))(xp.tensor(2.0))
    tensor(12.)
    """
    check_callable(body_fun, "fori_loop", "body_fun")
    checkpoint = as_flag(checkpoint, "fori_loop", "checkpoint")
    bounds = [_bound(value, what) for value, what in ((lower, "lower"), (upper, "upper"))]
    device = next((x.device for x in flatten(init_val)[0] if isinstance(x, Tensor)), None)
    if all(isinstance(b, int) for b in bounds):
        first, last = bounds
        numbers = arange(first, max(first, last), device=device)
        unroll = 1 if unroll is None else unroll
        return _scan(
            "fori_loop", lambda val, i: (body_fun(i, val), None), "body_fun", init_val, "init_val", numbers, None, False, unroll, checkpoint
        )[0]
    place = next(b.device for b in bounds if not isinstance(b, int))
    first, last = (full((), b, device=place) if isinstance(b, int) else b for b in bounds)
    index = arange(1, device=place).dtype
    first, last = first._cast(index), last._cast(index)
    carried = _while(
        "fori_loop", lambda v: v[0] < last, "the comparison of `lower` and `upper`", lambda v: (v[0] + 1, body_fun(v[0], v[1])), "body_fun",
        (first, init_val), "init_val",
    )  # fmt: skip
    return carried[1]


def _bound(value: Any, what: str) -> Any:
    """Return a bound as an int, or as a 0-d Tensor that is traced or differs between the elements of a batch.

    Raises
    ------
    TypeError
        It is no integer.
    CaptureError
        It depends on the arguments of a function that is being captured.
    """
    scalar = as_scalar(value)
    if isinstance(scalar, int) and not isinstance(scalar, bool):
        return scalar
    if is_constant(value):
        (value,) = lift_leaves("fori_loop", [value])
    if not isinstance(value, Tensor) or value.shape != () or value.dtype.category not in ("signed integer", "unsigned integer"):
        got = f"a Tensor {_kind(value)}" if isinstance(value, Tensor) else shown(value)
        msg = f"fori_loop: `{what}` must be an int or a 0-d Tensor of an integer dtype, but is {got}"
        raise TypeError(msg)
    while value.depth and value._array.level is None:
        value = value._array.value
    if value.depth or _own_flow([value], "while_loop") is not None:
        return value
    try:
        return int(value)
    except CaptureError as exc:
        from xpgrad.programs.recorder import refusal  # loads late: only captures need it

        instead = "pass it as an int, for each of which the function is compiled again, or compile with `fallback=True`"
        raise refusal(f"`{what}` of `fori_loop` depends on the arguments", instead) from exc


def while_loop(cond_fun: Callable[..., Any], body_fun: Callable[..., Any], init_val: Any) -> Any:
    """Apply a function again and again while a condition holds.

    It computes what this loop does::

        val = init_val
        while cond_fun(val):
            val = body_fun(val)
        return val

    Python runs the loop and records each step, so that all transforms apply to it, in reverse mode as well. Inside `vmap`, if the condition
    differs between the elements, the loop runs until it holds for none, and `xpgrad.where` keeps the values of elements that are done.
    Where a library traces the function (`jax.jit`, or `xpgrad.compile` on JAX), the library's own loop runs, which has no reverse mode.
    In a function that `xpgrad.compile` compiles for other libraries, a condition that depends on its arguments makes it a loop of the
    compiled code. Its backward pass runs the loop again, saves the carries, and goes back through the steps; the derivative of that pass
    consists of further passes over the steps. All modes and orders are possible inside the function.

    Parameters
    ----------
    cond_fun : callable
        ``cond_fun(val)`` returns a bool or a 0-d boolean Tensor.
    body_fun : callable
        ``body_fun(val)`` returns the next value, of the same structure, shapes and dtypes.
    init_val : Tensor, array or number, or nested containers of them
        The first value. A number takes the dtype that the first step returns for it.

    Returns
    -------
    Tensor or nested containers of Tensors
        The last value.

    Raises
    ------
    TypeError
        If a function is not callable, the condition is no boolean scalar, or a step changes the structure, a shape or a dtype.
    CaptureError
        If the condition depends on the arguments of a function that is compiled or exported for an emitter without loops.
    RuntimeError
        In a backward pass through a loop that a library traced.

    Notes
    -----
    The semantics are those of `jax.lax.while_loop <https://docs.jax.dev/en/latest/_autosummary/jax.lax.while_loop.html>`_.

    Examples
    --------
    >>> import xpgrad as xp
    >>> def root(a):
    ...     return xp.func.while_loop(lambda x: xp.abs(x * x - a) > 1e-6, lambda x: 0.5 * (x + a / x), a)
    >>> root(xp.tensor(2.0))
    tensor(1.4142)
    >>> xp.func.vmap(root)(xp.tensor([1.0, 4.0, 9.0]))
    tensor([1., 2., 3.])
    """
    check_callable(cond_fun, "while_loop", "cond_fun")
    check_callable(body_fun, "while_loop", "body_fun")
    return _while("while_loop", cond_fun, "the result of `cond_fun`", body_fun, "body_fun", init_val, "init_val")


def _while(name: str, test: Any, what_is_tested: str, body: Any, body_name: str, init: Any, what: str) -> Any:
    carry = _Carry(name, body_name, what, init, [])
    instead = (
        "use `xpgrad.func.scan`, or `fori_loop` with ints, for a number of steps that suffices, with `xpgrad.where` to stop changing the "
        "values, call it outside, or compile with `fallback=True`"
    )

    def holds(values: list[Any]) -> Any:
        return _predicate(name, what_is_tested, test(carry.build(values)), numbers=False)

    def step(values: list[Any]) -> list[Any]:
        return carry.check(body(carry.build(values)))

    def tested(values: list[Any]) -> Any:
        held = holds(values)
        if isinstance(held, bool):  # NB: a library's loop needs an array
            held = full((), held, device=values[0].device)
        return held

    guarded = refusing_writes(name, body_name, step, [test, body])

    def stepped(values: list[Any]) -> list[Any]:
        held = holds(values)
        new = guarded(values)
        return [where(held, x, old) for x, old in zip(new, values)] if isinstance(held, Tensor) and held.depth else new

    mode = state.current()
    capturing = mode is not None and mode.capturing is not None  # steps of a capture are recorded one by one while the condition is known
    first: Any = None
    if True in carry.weak:
        first = holds(carry.tensors)
        if isinstance(first, Tensor):
            carry.move_numbers(first.device)
    values = carry.tensors
    while True:
        flow = None if capturing else _own_flow(values, "while_loop")
        held: Any = None if flow is not None else holds(values)
        if flow is None and isinstance(held, Tensor):
            flow = _own_flow([held], "while_loop")
        if flow is not None or (isinstance(held, Tensor) and held.depth):
            if True in carry.weak and _may_run(first):
                carry.start(guarded)
                values = carry.tensors
                continue
            if flow is not None:
                test, body = _with_present_values(test), _with_present_values(body)
                return carry.build(repeat_while(flow, tested, stepped, values))
            if not _known(name, instead, any_of(bottom(held))):
                return carry.finish(values)
            values = [where(held, x, old) for x, old in zip(guarded(values), values)]
        elif _known(name, instead, held):
            values = carry.settled(lambda: step(carry.tensors), body) if True in carry.weak else step(values)
        else:
            return carry.finish(values)


def _may_run(held: Any) -> bool:
    """Return whether a loop with this first condition may run a step."""
    if isinstance(held, bool):
        return held
    below = bottom(held)
    return bool(below.backend.is_traced(below._array)) or bool(any_of(below))


def cond(pred: Any, true_fun: Callable[..., Any], false_fun: Callable[..., Any], *operands: Any) -> Any:
    """Call one of two functions, chosen by a condition.

    It returns ``true_fun(*operands)`` if `pred` is true, else ``false_fun(*operands)``. The other function does not run, except inside
    `vmap`: if the condition differs between the elements, both run on all of them, and `xpgrad.where` chooses. A derivative that is not
    finite in the branch that was not chosen then makes the gradient NaN, as in JAX. Where a library traces the function (`jax.jit`, or
    `xpgrad.compile` on JAX) and `pred` depends on its arguments, the library's own branch runs; in a function that is compiled for another
    library it is a branch of the compiled code.

    Parameters
    ----------
    pred : bool or number, or real 0-d Tensor
        A number is true if it is not 0.
    true_fun, false_fun : callable
        They return the same structure, shapes and dtypes; that is checked if both run or are traced.
    *operands : object
        Their arguments.

    Returns
    -------
    object
        What the function returns: Tensors, or nested containers of them.

    Raises
    ------
    TypeError
        If a function is not callable, `pred` is no scalar, or both run and their results differ in structure, shapes or dtypes.
    CaptureError
        If `pred` depends on the arguments of a function that is compiled or exported for an emitter without loops.

    Notes
    -----
    The semantics are those of `jax.lax.cond <https://docs.jax.dev/en/latest/_autosummary/jax.lax.cond.html>`_.

    Examples
    --------
    >>> import xpgrad as xp
    >>> def f(x):
    ...     return xp.func.cond(x > 0.0, lambda x: x * x, lambda x: -x, x)
    >>> f(xp.tensor(3.0)), xp.func.grad(f)(xp.tensor(-3.0))
    (tensor(9.), tensor(-1.))
    >>> xp.func.vmap(f)(xp.tensor([-1.0, 2.0]))
    tensor([1., 4.])
    """
    check_callable(true_fun, "cond", "true_fun")
    check_callable(false_fun, "cond", "false_fun")
    held = _predicate("cond", "`pred`", pred, numbers=True)
    flow = _own_flow([held], "cond") if isinstance(held, Tensor) and not held.depth else None
    if flow is None and not (isinstance(held, Tensor) and held.depth):
        instead = "use `xpgrad.where` on the results of both functions, call it outside, or compile with `fallback=True`"
        function = true_fun if _known("cond", instead, held) else false_fun
        out = function(*operands)
        if isinstance(out, Tensor):
            return separate([out], closed_over(function, operands))[0]
        leaves, structure = flatten(out)
        places = [k for k, x in enumerate(leaves) if isinstance(x, Tensor)]
        found = separate([leaves[k] for k in places], closed_over(function, operands))
        for k, x in zip(places, found):
            leaves[k] = x
        return unflatten(structure, leaves)
    trees: list[_Tree] = []

    def branch(function: Any, name: str) -> list[Any]:
        leaves, structure = flatten(function(*operands))
        tree = _Tree(structure, leaves)
        if not trees:
            trees.append(tree)
        same = trees[0].leaves_like(unflatten(structure, leaves))
        if same is None:
            msg = f"cond: both functions must return the same structure, but `true_fun` returned {trees[0]} and `{name}` {tree}"
            raise TypeError(msg)
        return _tensors("cond", f"the result of `{name}`", same, list(flatten(operands)[0]))

    given = [x for x in flatten(operands)[0] if isinstance(x, Tensor)]
    first = refusing_writes("cond", "true_fun", lambda: branch(true_fun, "true_fun"), [true_fun], given)
    second = refusing_writes("cond", "false_fun", lambda: branch(false_fun, "false_fun"), [false_fun], given)

    if flow is not None:
        true_fun, false_fun = _with_present_values(true_fun), _with_present_values(false_fun)
        with switches.no_grad():
            _check_branches(first(), second())
        assert flow.cond is not None
        return trees[0].build(choose(flow.cond, held, [first, second]))
    one, other = first(), second()
    _check_branches(one, other)
    return trees[0].build([where(held, a, b) for a, b in zip(one, other)])


def _check_branches(one: list[Any], other: list[Any]) -> None:
    for k, (a, b) in enumerate(zip(one, other)):
        if a.shape != b.shape or a.dtype is not b.dtype:
            msg = (
                f"cond: both functions must return the same shapes and dtypes, but leaf {k} is {_kind(a)} from `true_fun` and {_kind(b)} "
                "from `false_fun`; convert one of them, e.g. with `xpgrad.astype`"
            )
            raise TypeError(msg)
