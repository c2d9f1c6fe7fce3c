"""Capture a function: run it once on symbols, whose kernels append operations to a program.

Capture is a backend, as `vmap` is: a special class of Tensors holds symbols, and rules, the tape and the engine treat them like others. A
symbol also has its value in the first call, from which the backend below derives shapes and dtypes. Nothing else may depend on the value:
reading it raises a `CaptureError`. Results that do not depend on the function's arguments are computed immediately, and are constants.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from types import SimpleNamespace
from typing import Any, cast
from weakref import ref

from xpgrad._array.kernels import DefaultKernels
from xpgrad._basics.device import Device
from xpgrad._basics.dtypes import DTYPES, DType
from xpgrad._modes import state
from xpgrad._operations.lift import is_movable
from xpgrad._rows.kernels import kernel_of
from xpgrad._rows.row import ROWS
from xpgrad._tensor.missing import MissingAttributes
from xpgrad._tensor.tensor import Tensor
from xpgrad.backend import Backend, Capabilities, ControlFlow
from xpgrad.errors import CaptureError, missing
from xpgrad.programs.evaluation import kernel_for
from xpgrad.programs.program import Inner, Passes, Program, Steps, Variable
from xpgrad.programs.recorder import Recorder, left_error, refusal, user_line
from xpgrad.programs.refusals import device_error, outside_error
from xpgrad.programs.selected_kernels import WATCHED, compute_selected, has_selection
from xpgrad.programs.selections import Length, Selected, is_mask, selection_error
from xpgrad.programs.symbols import Symbol

__all__ = ["capture", "capture_class"]


class CaptureBackend(Backend):
    """The backend of symbols for one class of Tensors; it lacks the capabilities that depend on values and memory."""

    inner: Any
    below: Any
    name: str
    variant: str | None
    is_host: bool
    array_type: type | None
    raw: type[Any]
    selected: type[Any]

    checks_indices = True  # the kernels below do, when the program runs

    def __init__(self, inner: Any) -> None:
        below = inner.backend
        self.inner, self.below = inner, below
        self.device: Device = inner.device
        self.weak_scalars: bool = below.weak_scalars
        self.name, self.variant, self.is_host = below.name, below.variant, below.is_host
        self.capabilities: Capabilities = replace(
            below.capabilities, mutable=False, view_aliases=False, strides=False, boolean_indexing=False, data_dependent_shapes=True,
            streams=False, jit=False, dlpack=False, lazy=False, negative_step=True,
        )  # fmt: skip
        super().__init__()
        self.table_name: str = f"compiling for {below.table_name}"
        self.array_type = self.raw = type("Symbol", (Symbol,), {"__slots__": (), "backend": self})
        self.selected = type("Selected", (Selected,), {"__slots__": (), "backend": self})
        self._namespace = SimpleNamespace(asarray=self._scalar)
        self.cls: Any = None

    # -- the table -----------------------------------------------------------------------------------------------------------

    def namespace(self) -> Any:
        return self._namespace

    def _scalar(self, value: Any, dtype: Any = None) -> Any:
        return self.raw(self.inner.scalar(value, dtype)._array)

    def array_types(self) -> tuple[type, ...]:
        return (self.raw, self.selected)

    def from_host(self, array: Any, device: Device) -> Any:
        return self.raw(self.below.from_host(array, device))

    def to_host(self, x: Any) -> Any:
        if x.recorder is None:
            return self.below.to_host(x.value)
        raise refusal(
            "a value was asked for (`.item()`, `.numpy()`, `float(x)`, `if x:`, `for` over indices)",
            "use `xpgrad.where` instead of a branch, return the Tensor and read it outside, or compile with `fallback=True`",
        )

    def text(self, x: Any, indent: int) -> str:
        known = x.__class__ is self.raw and x.recorder is None
        return str(self.below.text(x.value, indent)) if known else f"compiling, shape={x.shape}"

    def device_of(self, x: Any) -> Device:
        return self.device

    def to_device(self, x: Any, device: Device) -> Any:
        return x

    def devices(self) -> Sequence[Device]:
        return (self.device,)

    def default_dtype(self, kind: str, device: Device) -> DType:
        return self.below.default_dtype(kind, device)

    def creation_options(self, device: Device) -> dict[str, Any]:
        return self.below.creation_options(device)

    def raw_dtype(self, dtype: DType) -> Any:
        self.below.raw_dtype(dtype)  # raises if the library has none
        return dtype

    def find_dtype(self, name: str) -> Any:
        return DTYPES[name] if self.below.find_dtype(name) is not None else None

    def dtype_of(self, raw: Any) -> DType:
        return raw if isinstance(raw, DType) else self.below.dtype_of(raw)

    def is_complex(self, x: Any) -> bool:
        return x.dtype.is_complex

    def is_traced(self, x: Any) -> bool:
        return True  # nothing may depend on the value

    def strides(self, x: Any) -> tuple[int, ...] | None:
        return self.below.strides(x.value) if x.__class__ is self.raw else None

    def may_alias(self, x: Any, y: Any) -> bool:
        """Return whether two arrays would share memory outside of the capture, where `reshape` copies some."""
        if x.__class__ is not self.raw or y.__class__ is not self.raw or math.prod(x.shape) == 1:  # the value may be a scalar
            return True
        recorder = current_recorder()
        if recorder is not None:
            recorder.asked_layout = True
        return self.below.may_alias(x.value, y.value)

    def ones(self, shape: tuple[int, ...], dtype: DType, device: Device) -> Any:
        return self.kernels.ones(shape, dtype=dtype, **self.creation_options(device))

    def operand_shape(self, x: Any) -> tuple[int, ...]:
        return x.shape if x.__class__ is self.selected else self.below.operand_shape(x.value)

    def wrap(self, raw: Any) -> Any:
        return self.cls._wrap(raw)

    # -- kernels -------------------------------------------------------------------------------------------------------------

    def kernel(self, name: str) -> Any:
        found = self._kernel(name)
        if found is None and name in WATCHED and name in ROWS:
            found = partial(cast("Any", ROWS[name].kernel), self.kernels)
        if found is None or name not in WATCHED:
            return found

        def kernel(*args: Any, **options: Any) -> Any:
            return compute_selected(self, name, args, options) if has_selection(self, name, args) else found(*args, **options)

        return kernel

    def _kernel(self, name: str) -> Any:
        """Return a kernel for symbols, or None; see `kernel`, whose kernels also take selections by masks."""
        facts = kernel_of(name)
        if facts.kind == "copy":  # a program does not overwrite what it computes, so no copy of that is needed
            return self._copied(kernel_for(self.below, name))
        if name == "surely_nonzero":  # it would read values
            return lambda x: False
        if name in DTYPES:
            return DTYPES[name]
        if name == "wide":  # composed: rules ask whether it is its operand that comes back, which a recorded call would hide
            return None
        if name == "asarray":
            return self._asarray
        below = self.below
        row = ROWS.get(name)
        if name.startswith("special_") and not (row is not None and row.composed):  # whole: who computes it is asked as the program runs
            return self.primitive(name, getattr(below.kernels, name))
        found = below.kernel(name)
        if found is None and not facts.whole:
            if (row is not None and row.kernel is not None) or hasattr(DefaultKernels, name):
                return None  # composed of others, here as there
            found = getattr(below.namespace(), name, None)
        if found is None and not facts.whole:
            return None
        resolved = kernel_for(below, name)  # with what the backend wraps around it
        if not callable(resolved):
            return _Extension(self, name, resolved) if name in ("linalg", "fft") else resolved
        return self._static(name, resolved) if facts.kind == "static" else self.primitive(name, resolved)

    def _copied(self, function: Any) -> Any:
        """Return a kernel for a copy: the variable is the same, but the value has the layout of a copy.

        A constant is copied, because the caller may write to its array later, e.g. to that of indices.
        """

        def copied(x: Any, *args: Any, **options: Any) -> Any:
            if x.__class__ is not self.raw or not self.below.capabilities.view_aliases:
                return x
            return self.raw(function(x.value, *map(self._value, args), **options), x.variable, x.recorder)

        return copied

    def _asarray(self, value: Any, dtype: Any = None, copy: bool | None = None, device: Any = None) -> Any:
        if value.__class__ is self.raw or value.__class__ is self.selected:
            return value
        return self.raw(self.inner.scalar(value, dtype)._array)

    def _static(self, name: str, function: Any) -> Any:
        """Wrap a function of dtypes and shapes, which is not recorded; the dtype that `result_type` returns becomes a `DType`."""

        def known(*args: Any, **options: Any) -> Any:
            out = function(*[self._value(a) for a in args], **options)
            return self.below.dtype_of(out) if name == "result_type" else out

        return known

    def _value(self, x: Any) -> Any:
        """Convert an argument for the backend below."""
        cls = x.__class__
        if cls is self.raw:
            return x.value
        if cls is DType:
            return self.below.raw_dtype(x)
        if cls is tuple or cls is list:
            return cls([self._value(item) for item in x])
        if cls is self.selected or cls is Length:
            raise selection_error("part of a list or a key, or given by name")
        return x

    def _recorder(self, x: Any) -> Any:
        """Return the innermost recorder of the symbols in an argument; None if they are constants."""
        cls = x.__class__
        if cls is self.raw:
            return x.recorder
        found = None
        if cls is tuple or cls is list:
            for item in x:
                found = _inner(found, self._recorder(item))
        return found

    def _to_operation(self, recorder: Recorder, x: Any) -> Any:
        """Convert an argument for an operation of the program: symbols become variables."""
        cls = x.__class__
        if cls is self.raw:
            return recorder.variable(x)
        if cls is tuple or cls is list:
            return cls([self._to_operation(recorder, item) for item in x])
        if isinstance(x, self.below.array_types()) and not isinstance(x, (int, float, complex)):
            return recorder.variable(self.raw(x))  # a static that is an array, such as a key of the user's
        return x

    def primitive(self, name: str, function: Any) -> Any:
        """Wrap a kernel of the backend below for symbols: it runs on their values, and is recorded.

        It raises a `CaptureError` if the shape of its result depends on values.
        """
        raw, selected, below = self.raw, self.selected, self.below
        unknown = (selected, Length)
        facts = kernel_of(name)
        writes, picks, grows, by_value = facts.writes, facts.keyed, facts.grows, facts.by_value
        fills = facts.kind == "fill"
        stand_in = below.stand_in

        def kernel(*args: Any, **options: Any) -> Any:
            recorder = None
            values: list[Any] = []
            for a in args:
                cls = a.__class__
                if cls is raw:
                    recorder = _inner(recorder, a.recorder)
                    values.append(a.value)
                elif cls is float or cls is int or a is None:
                    values.append(a)
                elif cls is selected or cls is Length or ((cls is tuple or cls is list) and any(n.__class__ in unknown for n in a)):
                    return compute_selected(self, name, args, options)
                else:
                    recorder = _inner(recorder, self._recorder(a))
                    values.append(self._value(a))
            given = {k: self._value(v) for k, v in options.items()} if options else options
            if options:
                recorder = _inner(recorder, self._recorder(tuple(options.values())))
            if recorder is None and grows:
                recorder = current_recorder()
            if recorder is not None:
                if by_value or (name == "repeat" and len(args) > 1 and self._recorder(args[1]) is not None):
                    raise refusal(f"`{name}`, the shape of whose result depends on values, was called", "call it outside, or use masks")
                if picks and any(is_mask(part, raw) for part in _parts(args)):
                    raise refusal(
                        f"`x[mask]` was given to `{name}`", "use `xpgrad.where(mask, x, 0)`, or turn the mask into positions outside"
                    )
            if writes:
                values[0] = below.kernels.copy(values[0])
            out = function(*values, **given)
            if recorder is None:
                return self._constant(out)
            if fills:
                value = args[1] if len(args) > 1 else options.get("fill_value")
                return self._record_fill(recorder, name.partition("_")[0], out, value)
            several = isinstance(out, (tuple, list))
            arrays = out if several else (out,)
            results = []
            variables = []
            for array in arrays:
                shape = tuple(array.shape)
                if any(n.__class__ is not int for n in shape):
                    shape = tuple(_length(n, name) for n in shape)
                variable = Variable(shape, below.dtype_of(array.dtype))
                variables.append(variable)
                results.append(raw(stand_in(array), variable, recorder))
            recorded = tuple([self._to_operation(recorder, a) for a in args])
            recorder.record(
                name,
                recorded,
                {k: self._to_operation(recorder, v) for k, v in options.items()} if options else {},
                tuple(variables),
                several,
            )
            if not several:
                return results[0]
            return type(out)(*results) if hasattr(out, "_fields") else type(out)(results)

        return kernel

    # -- loops ---------------------------------------------------------------------------------------------------------------

    def control_flow(self, arrays: Sequence[Any]) -> ControlFlow | None:
        recorder = current_recorder()
        if recorder is None or not recorder.loops:
            return None
        if all(x.recorder is None for x in arrays):  # Python runs them on values that are known
            return ControlFlow(self._scan, None, None)
        return ControlFlow(self._scan, self._while, self._branch, self._unwind)

    def _inside(self, parent: Recorder, function: Any, inputs: Sequence[tuple[Any, Any]]) -> tuple[Program, list[Any], tuple[Any, ...]]:
        """Record a function that a loop or a branch runs.

        Parameters
        ----------
        parent : Recorder
        function : callable
            Takes a tuple of symbols, and returns one.
        inputs : sequence of pairs
            Each symbol, and a value that its input has.

        Returns
        -------
        Program
            The inputs are followed by those for what it reads besides them.
        list
            The results, symbols.
        tuple of Variable
            What it reads besides its inputs.
        """
        raw, below = self.raw, self.below
        inside = Recorder(below, parent)
        symbols = []
        for x, value in inputs:
            name = x.variable.name if x.variable is not None else None
            symbols.append(raw(below.stand_in(value), inside.add_input(tuple(value.shape), x.dtype, name), inside))
        parent.open.append(inside)
        try:
            results = list(function(tuple(symbols)))
            outputs = [inside.variable(x) for x in results]
        finally:
            parent.open.pop()
            inside.closed = True
        shared = list(inside.shared.values())
        program = inside.program([*inside.inputs, *(v for _, v in shared)], outputs)
        return program, results, tuple([parent.variable(symbol) for symbol, _ in shared])

    def _add_inner(self, parent: Recorder, name: str, args: tuple[Any, ...], inner: Inner, values: Sequence[Any]) -> list[Any]:
        """Record a loop or a branch; return the symbols of its results, whose values are copies of those given, which may be views."""
        if self.below.capabilities.view_aliases:
            values = [kernel_for(self.below, "clone")(x) for x in values]
        variables = tuple([Variable(tuple(x.shape), self.below.dtype_of(x.dtype)) for x in values])
        parent.record(name, args, {"inner": inner}, variables, True)
        return [self.raw(self.below.stand_in(x), v, parent) for x, v in zip(values, variables)]

    def _scan(self, step: Any, init: tuple[Any, ...], xs: tuple[Any, ...], *, length: int, reverse: bool, unroll: Any) -> Any:
        """Record a loop as one operation, whose steps are a program; return the last carry and the stacked results."""
        below, count = self.below, len(init)
        parent: Recorder = current_recorder().open[-1]
        inputs = [*((c, c.value) for c in init), *((x, below.kernels.index_basic(x.value, (0,))) for x in xs)]

        def flat(symbols: Any) -> Any:
            carry, ys = step(symbols[:count], symbols[count:])
            return *carry, *ys

        program, found, shared = self._inside(parent, flat, inputs)
        args = (*(tuple([parent.variable(x) for x in group]) for group in (init, xs)), shared)
        values = [x.value for x in found[:count]] + [_stack_of(below, y.value, length) for y in found[count:]]
        results = tuple(self._add_inner(parent, "scan", args, Steps(program, count, length, reverse), values))
        return results[:count], results[count:]

    def _while(self, test: Any, step: Any, init: tuple[Any, ...]) -> Any:
        """Record a loop whose number of steps is not known; return the last carry."""
        parent: Recorder = current_recorder().open[-1]
        programs, found, read = self._test_and_step(parent, test, step, init)
        args = (tuple([parent.variable(x) for x in init]), *read)
        return tuple(self._add_inner(parent, "while", args, Inner(programs), [x.value for x in found]))

    def _test_and_step(self, parent: Recorder, test: Any, step: Any, init: tuple[Any, ...]) -> tuple[Any, ...]:
        """Record the test and the step of a loop; return their programs, the results of a step, and what each reads besides the carry."""
        inputs = [(c, c.value) for c in init]
        tested, _, read = self._inside(parent, lambda carry: (test(carry),), inputs)
        program, found, shared = self._inside(parent, step, inputs)
        return (tested, program), found, (read, shared)

    def _unwind(self, test: Any, step: Any, init: tuple[Any, ...], passes: Sequence[tuple[Any, tuple[Any, ...], bool]]) -> Any:
        """Record a loop whose number of steps is not known, and passes over its steps; return the last state of each pass."""
        parent: Recorder = current_recorder().open[-1]
        two, _, read = self._test_and_step(parent, test, step, init)
        programs, args = list(two), [tuple([parent.variable(x) for x in init]), *read]
        row = [(x, x.value) for x in init]
        for function, start, _ in passes:
            count, own = len(start), [(x, x.value) for x in start]

            def flat(symbols: Any, function: Any = function, count: int = count) -> Any:
                state, others = function(symbols[:count], symbols[count:])
                return *state, *others

            program, results, used = self._inside(parent, flat, [*own, *row])
            programs.append(program)
            args += [tuple([parent.variable(x) for x in start]), used]
            row += [*own, *((x, x.value) for x in results[count:])]
        counts = tuple([len(start) for _, start, _ in passes])
        inner = Passes(tuple(programs), counts, tuple([reverse for *_, reverse in passes]))
        last = iter(self._add_inner(parent, "unwind", tuple(args), inner, [x.value for _, start, _ in passes for x in start]))
        return [tuple([next(last) for _ in range(count)]) for count in counts]

    def _branch(self, holds: Any, first: Any, second: Any) -> Any:
        """Record a choice between two functions; return its results."""
        parent: Recorder = current_recorder().open[-1]
        one, found, shared = self._inside(parent, lambda _: first(), ())
        other, _, read = self._inside(parent, lambda _: second(), ())
        args = (parent.variable(holds), shared, read)
        return tuple(self._add_inner(parent, "branch", args, Inner((one, other)), [x.value for x in found]))

    def _record_fill(self, recorder: Recorder, name: str, out: Any, value: Any) -> Any:
        """Record the creation of an array with one value from its shape and dtype; return its symbol."""
        below = self.below
        variable = Variable(tuple(out.shape), below.dtype_of(out.dtype))
        options = {"dtype": variable.dtype, **below.creation_options(self.device)}
        filled = (variable.shape, self._to_operation(recorder, value)) if name == "full" else (variable.shape,)
        recorder.record(name, filled, options, (variable,), False)
        return self.raw(out, variable, recorder)

    def _constant(self, out: Any) -> Any:
        """Wrap a result that does not depend on the function's arguments as a constant symbol; other objects stay unchanged."""
        if isinstance(out, (tuple, list)):
            items = [self.raw(o) for o in out]
            return type(out)(*items) if hasattr(out, "_fields") else out.__class__(items)  # pyright: ignore[reportArgumentType]
        return self.raw(out) if isinstance(out, self.below.array_types()) or hasattr(out, "shape") else out


def _inner(one: Any, other: Any) -> Any:
    """Return the inner one of two recorders, each of which may be None."""
    if one is None:
        return other
    return other if other is not None and other.depth > one.depth else one


def _stack_of(below: Any, x: Any, length: int) -> Any:
    """Return a stack of copies of an array, which lies in memory as a stack of the results of steps does."""
    if not below.capabilities.strides:
        return below.kernels.broadcast_to(x, (length, *x.shape))
    out = below.kernels.stack([x])
    while out.shape[0] < length:
        out = below.kernels.concat([out, below.kernels.index_basic(out, (slice(0, length - out.shape[0]),))])
    return out


class _Extension:
    """An extension of the namespace (`linalg`, `fft`), whose functions are recorded."""

    def __init__(self, backend: CaptureBackend, name: str, namespace: Any) -> None:
        self._backend, self._name, self._namespace = backend, name, namespace

    def __getattr__(self, name: str) -> Any:
        found = self._backend.primitive(f"{self._name}.{name}", getattr(self._namespace, name))
        setattr(self, name, found)
        return found


def _parts(args: tuple[Any, ...]) -> list[Any]:
    """Return the arguments of a kernel, with the parts of keys in place of the keys."""
    return [part for a in args for part in (a if isinstance(a, tuple) else (a,))]


def _length(n: Any, name: str) -> int:
    """Return the length of an axis as an int; raise a `CaptureError` if it is unknown."""
    try:
        return int(n.__index__())
    except (AttributeError, TypeError):
        raise refusal(f"the result of `{name}` has an axis of unknown length", "compute its chunks before the call") from None


class CapturedTensor(Tensor, MissingAttributes):
    """A Tensor inside a function that is being captured."""

    __slots__ = ()

    @property
    def array(self) -> Any:
        """Raise a `CaptureError`: there are no values."""
        raise missing(RuntimeError)(str(refusal("`.array` was read", "stay with Tensors, or read it outside")))

    @classmethod
    def taking(cls, recorder: Recorder) -> Taking:
        """Return the mode observer that turns constants into Tensors of this class."""
        return Taking(cls, recorder)

    @classmethod
    def align(cls, tensors: list[Any]) -> list[Any]:
        return [cls.lift(t) for t in tensors]

    @classmethod
    def lift(cls, x: Any) -> Any:
        if isinstance(x, CapturedTensor):
            return x
        mode = state.current()
        if mode is None or mode.capturing is None:
            raise left_error()
        if x._node is not None and state.is_grad_enabled() and not mode.capturing.detaching:
            raise outside_error(x)
        _watch(mode.capturing.recorder, x)
        if x.device != cls.device:
            if not is_movable(x):
                raise device_error(x, cls.device)
            x = x.to_device(cls.device)
            if isinstance(x, CapturedTensor):  # the mode has taken what is new here
                return x
        return cls._wrap(cls.backend.raw(x._stand_in()._array))


def _watch(recorder: Recorder, x: Any) -> None:
    """Record a Tensor from outside with its version; raise a `CaptureError` for an inference tensor, whose writes are not counted."""
    if x._alias is not None and x._alias.forbidden == "inference":
        msg = (
            f"a compiled function uses a Tensor from outside that was made in inference mode (shape {tuple(x.shape)}): later writes to it "
            "would not be noticed. Pass it as an argument, or make a normal Tensor with `clone()` outside inference mode"
        )
        raise CaptureError(msg)
    x = x if x._base is None else x._base  # a view would keep the base from getting other memory (`x.data = y`)
    recorder.watched.setdefault(id(x), (x, x._version, x._array, x._node))


_classes: dict[Any, Any] = {}


def capture_class(inner: Any) -> Any:
    """Return the class of captured Tensors over the class `inner`."""
    found = _classes.get(inner)
    if found is None:
        backend = CaptureBackend(inner)
        body = {
            "__slots__": (), "backend": backend, "device": inner.device, "stage": inner.stage + 1, "inner": inner, "__module__": "xpgrad",
            "__qualname__": "Tensor",
        }  # fmt: skip
        backend.cls = backend.tensor_base = type("Tensor", (CapturedTensor,), body)
        found = _classes.setdefault(inner, backend.cls)  # another thread may have been faster
    return found


class Taking:
    """A mode observer that turns constants made during a capture into captured Tensors, which the function may overwrite.

    Attributes
    ----------
    cls : type
        The class of captured Tensors.
    recorder : Recorder
        The recorder of the running capture.
    detaching : bool
        Treat Tensors from outside that require grad as constants. If False they are refused, since their gradient would be lost.
    """

    cls: Any
    recorder: Recorder
    detaching: bool

    def __init__(self, cls: Any, recorder: Recorder, detaching: bool = False) -> None:
        self.cls, self.recorder, self.detaching = cls, recorder, detaching

    def take(self, x: Any) -> None:
        """Turn a new Tensor of the class below into a captured one, unless it is a view or has a graph node."""
        if type(x) is self.cls.inner and x._alias is None and x._node is None:
            x._array = self.cls.backend.raw(x._array)
            x.__class__ = self.cls
        if type(x) is self.cls and x._array.__class__ is self.cls.backend.raw and x._array.recorder is None:
            self.recorder.kept.append(ref(x))

    def watch(self, operands: tuple[Any, ...]) -> None:
        """Record the Tensors from outside among the operands of an operation, whose result is a constant if all of them are."""
        for x in operands:
            if x.__class__ is list:
                self.watch(tuple(x))
            elif type(x) is self.cls.inner:
                _watch(self.recorder, x)

    def check_writable(self, x: Any) -> None:
        """Raise a `CaptureError` for a Tensor from outside."""
        if type(x) is self.cls.inner:
            msg = (
                f"a compiled function writes to a Tensor from outside{user_line()}: that would happen only once, when it is compiled; "
                "return the new value and write it outside, or write into a `clone()`"
            )
            raise CaptureError(msg)

    def wrote(self) -> None:
        """Record that the function writes in place."""
        self.recorder.writes = True


def current_recorder() -> Any:
    """Return the recorder of the capture that is running in this thread; None outside a capture."""
    mode = state.current()
    return None if mode is None or mode.capturing is None else mode.capturing.recorder


def capture(
    cls: Any, function: Callable[..., Any], arrays: Sequence[Any], names: Sequence[str | None], *, loops: bool = False
) -> tuple[Program, Any, Recorder]:  # fmt: skip
    """Run a function on symbols for arrays.

    Parameters
    ----------
    cls : type
        The class of captured Tensors.
    function : callable
        ``function(recorder, *symbols)`` returns symbols and None in nested tuples.
    arrays : sequence of array
        Raw arrays of the backend below.
    names : sequence of (str or None)
        The names of the arrays in the user's function; None if unknown.
    loops : bool
        Whether a scan may become a loop of the program. If False it is unrolled.

    Returns
    -------
    program : Program
    template : nested tuples of int or None
        The positions of the results among the outputs of the program.
    recorder : Recorder
    """
    backend = cls.backend
    recorder = Recorder(backend.below, loops=loops)
    symbols = []
    for array, name in zip_longest(arrays, names):
        variable = recorder.add_input(tuple(array.shape), backend.below.dtype_of(array.dtype), name)
        symbols.append(backend.raw(array, variable, recorder))
    try:
        out = function(recorder, *symbols)
        outputs: list[Variable] = []
        template = _collect(out, outputs, recorder)
    finally:
        recorder.closed = True
        for kept in recorder.kept:
            _give_back(cls, kept())
    return recorder.program(recorder.inputs, outputs), template, recorder


def _give_back(cls: Any, x: Any) -> None:
    """Undo `Taking.take` for a constant that outlives its capture, e.g. in a cache of the program's; `x` is None if it does not."""
    if type(x) is not cls or x._node is not None or x._is_view():
        return  # what remains of the capture raises at its next use beside other Tensors
    raw = x._array
    if raw.__class__ is cls.backend.raw and raw.recorder is None:  # a write may have made it depend on the arguments
        below = cls.backend.below
        x._array = below.kernels.copy(raw.value) if below.capabilities.mutable else raw.value  # several constants may share a value
        x._alias, x.__class__ = None, cls.inner


def _collect(out: Any, outputs: list[Variable], recorder: Recorder) -> Any:
    if out is None:
        return None
    if out.__class__ is tuple:
        return tuple([_collect(o, outputs, recorder) for o in out])
    outputs.append(recorder.variable(out))
    return len(outputs) - 1
