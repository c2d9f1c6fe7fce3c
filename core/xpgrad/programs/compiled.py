"""`xpgrad.compile`: a compiled function of Tensors as one node of the tape.

If the function returns one real number, its gradients are computed together with it in one compiled call, and the backward pass scales
them. Otherwise a compiled backward recomputes the function. A backend without a compiler runs a captured program.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import warnings
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, overload

from xpgrad._backends.generators import repeat_draws
from xpgrad._basics.arguments import as_flag, check_callable
from xpgrad._basics.threads import can_start_threads
from xpgrad._modes import state
from xpgrad._modes.batch_levels import at_levels
from xpgrad._operations.coerce import unify
from xpgrad._operations.lift import lift_all
from xpgrad._tape.node import make_slot, walk
from xpgrad._tape.requests import grad
from xpgrad._tensor.tensor import Tensor
from xpgrad.emitter import EmitterInfo
from xpgrad.errors import CaptureError
from xpgrad.programs.compiled_node import new_node
from xpgrad.programs.emitters import chosen_emitter
from xpgrad.programs.program import Program
from xpgrad.programs.refusals import outside_error
from xpgrad.programs.structure import arguments, builder, describe, name_tensors

__all__ = ["compile_function"]

F = TypeVar("F", bound=Callable[..., Any])
_MANY = 8  # programs of one function, after which a warning says what varies


class _Compiled:
    """A function for arguments with one structure, one set of shapes and dtypes, and fixed `requires_grad`; compiled at its first call."""

    def __init__(self, function: Any, key: Any, options: Any) -> None:
        self.function, self.key, self.options = function, key, options
        template, cls, needs, recording, *_ = key
        backend = cls.backend
        self.template, self.cls, self.needs, self.recording = template, cls, needs, recording
        self.places = [i for i, need in enumerate(needs) if need]
        self.scale: Any
        if backend.capabilities.jit:
            self.function = repeat_draws(function)  # value and gradients are traced separately
            options.emitter_for(backend)
            self.inside = cls
            self.forward = backend.compile(self._traced_forward)
            self.backward = backend.compile(self._traced_backward)
            cast = backend.kernels.cast  # NB: a loss may have another precision than an argument
            self.scale = backend.compile(lambda g, *grads: tuple(None if v is None else cast(v * g, v.dtype) for v in grads))
        else:
            from xpgrad.programs.capture import capture, capture_class  # loads late: where the library has no compiler
            from xpgrad.programs.captured import Captured  # loads late: the same

            self.recorded = functools.partial(capture, loops=True)
            self.inside = capture_class(cls)
            emitter = options.emitter_for(backend)
            self.forward = Captured(backend, self._capture, options.names(template, len(needs)), options.threads, emitter)
            self.backward = Captured(backend, self._explain_failure, [], options.threads, emitter)
            self.scale = self._scale
        # What the first call finds out:
        self.out_template: Any = None
        self.build: Callable[[list[Any]], Any] = builder(None)
        self.requires: tuple[bool, ...] = ()
        self.metas: list[Any] = []
        self.scalar = False
        self.watched: list[tuple[Any, int, Any, Any]] = []  # Tensors from outside, with the versions, arrays and nodes that they had
        self.by_layout = False  # whether the program depends on the strides of the arguments: it writes, and a reshape copies some arrays
        self.direct: Callable[[Any], Any] | None = None
        self.failure: Exception | None = None  # what kept the backward from being captured

    def _scale(self, g: Any, *gradients: Any) -> tuple[Any, ...]:
        xp = self.cls.backend.kernels
        return tuple(None if v is None else xp.multiply(v, xp.cast(g, v.dtype)) for v in gradients)

    @property
    def is_outdated(self) -> bool:
        """Return whether a Tensor from outside was written to, or got another array or a history, since the capture."""
        return any(x._version != version or x._array is not array or x._node is not node for x, version, array, node in self.watched)

    def _capture(self, *raws: Any) -> None:
        """Capture value and gradients in one run of the function, so that both use the same constants and random numbers."""
        inputs: list[Any] = []

        def run(recorder: Any, *symbols: Any) -> Any:
            inputs[:] = recorder.inputs
            return self._forward(recorder, *symbols)

        program, (arrays, gradients, later), recorder = self.recorded(self.inside, run, raws, self.forward.names)
        count = 0 if later is None else sum(i is not None for i in later)
        outputs = program.outputs[: len(program.outputs) - count]
        self.watched = list(recorder.watched.values())
        self.by_layout = recorder.writes and recorder.asked_layout and any(len(x.shape) > 1 for x in raws)
        if later is not None:
            places = iter(range(count))
            template = tuple(None if i is None else next(places) for i in later)
            self.backward.take(Program(recorder.inputs, program.constants, program.operations, program.outputs[len(outputs) :]), template)
        self.forward.take(Program(inputs, program.constants, program.operations, outputs), (arrays, gradients))
        if True not in self.requires:  # nobody will ask what was captured
            self.forward.captured = self.forward.program

    def _explain_failure(self, *raws: Any) -> None:
        """Raise the error that prevented the capture of the backward pass."""
        assert self.failure is not None
        raise self.failure.with_traceback(None)

    def check_unchanged(self, raws: list[Any]) -> None:
        """Check that running the function again would compute what was captured, as gradients with a graph require.

        Raises
        ------
        CaptureError
            The function draws random numbers, or a value from outside has changed.
        """
        if self.inside is self.cls:
            return
        other = _Compiled(self.function, self.key, self.options)
        program, *_ = self.recorded(self.inside, lambda *args: tuple(o._array for o in other._call(*args)[1]), raws, self.forward.names)
        if not self.forward.is_like(program):
            msg = (
                f"the gradients of `{_title(self.function)}`, which is compiled, are to be differentiated, or computed in a batch or with "
                "tangents. For that it runs again, and would compute something else than when it was compiled: it draws random numbers, or "
                "what it closes over has changed. Pass these as arguments"
            )
            raise CaptureError(msg)

    def _call(self, recorder: Any, *raws: Any) -> tuple[list[Any], list[Any]]:
        """Run the function on Tensors of traced arrays or symbols; return these Tensors and the results.

        Raises
        ------
        RuntimeError
            The function changes an argument, calls `backward()`, or uses another Tensor that requires grad.
        """
        leaves = []
        for raw, need in zip(raws, self.needs):
            self.cls.backend.note_device(raw, self.cls.device)
            leaf = _around(self.inside, raw)
            if need:
                leaf.requires_grad_()
            leaves.append(leaf)
        nodes = [leaf._node for leaf in leaves]
        args, kwargs = arguments(self.template, list(leaves))
        with self._running(recorder):
            out = self.function(*args, **kwargs)
        for leaf, raw, node in zip(leaves, raws, nodes):
            if leaf._array is not raw or (leaf._alias is not None and leaf._version):
                msg = "a compiled function writes to one of its arguments, which would be lost; return the new value instead"
                raise RuntimeError(msg)
            if leaf._node is not node:
                msg = (
                    "a compiled function calls `requires_grad_()` or `detach_()` on one of its arguments, which would be lost; do so "
                    "before the call, or use `x.detach()`"
                )
                raise RuntimeError(msg)
            if leaf.grad is not None:
                msg = (
                    "a compiled function calls `backward()`, which would not reach the `.grad` of its arguments; return the gradients "
                    "of `xpgrad.autograd.grad` instead, or call `backward()` on what the function returns"
                )
                raise RuntimeError(msg)
        outs: list[Any] = []
        self.out_template = describe(out, outs)
        with self._running(recorder):
            outs = [self._own(o) for o in outs]
        own = set(nodes)
        for node in walk([o._node for o in outs if o._node is not None]):
            # NB: a leaf that the function made, as transforms do, is gone, or has an array that is traced.
            if node.is_leaf and node not in own and not node.is_spent and not node.cls.backend.is_traced(node.array):
                raise outside_error(node.variable)
        needed = True in self.needs  # NB: a result may depend on Tensors that a transform inside made, and on no argument that needs it
        self.requires = tuple([needed and o.requires_grad for o in outs])
        self.metas = [(o.shape, o.dtype, self.cls) for o in outs]
        return leaves, outs

    @contextlib.contextmanager
    def _running(self, recorder: Any) -> Iterator[None]:
        """Context manager that sets the mode in which the function runs.

        Raises
        ------
        CaptureError
            The function left another mode behind, which compiled code would not set at later calls.
        """
        before, mode = state.current(), self._mode(self.recording, recorder)
        try:
            state.put(mode)
            with at_levels(()):  # the capture of a backward pass may run inside a batch of gradients, which does not concern the function
                yield
            if not state.are_equal(state.current(), mode):  # forward mode ends in an equal one
                msg = (
                    f"`{_title(self.function)}`, which is compiled, changes the mode beyond its end, as by `set_grad_enabled(False)`; "
                    "write `with xpgrad.set_grad_enabled(...):` inside of it, or call it outside"
                )
                raise CaptureError(msg)
        finally:
            state.put(before)

    def _mode(self, recording: bool, recorder: Any) -> Any:
        if recorder is None:
            return None if recording else state.NO_GRAD
        return state.Mode(recording=recording, capturing=self.inside.taking(recorder))

    def _own(self, out: Any) -> Any:
        """Return a result, which may be a constant from outside, as a Tensor of the class that the function computes with.

        Raises
        ------
        RuntimeError
            It is on another device than the arguments.
        """
        if self.inside is self.cls or type(out) is self.inside:
            return out
        current = out._stand_in()  # renews a view whose base was written
        if type(current) is self.inside:
            return current
        if type(current) is not self.cls:
            msg = (
                f"a compiled function returned a Tensor on {out.device}, but its arguments are on {self.cls.device}; move it outside, or "
                "return what was computed of the arguments"
            )
            raise RuntimeError(msg)
        return self.inside.lift(out)

    def _traced_forward(self, *raws: Any) -> Any:
        return self._forward(None, *raws)

    def _traced_backward(self, *arrays: Any) -> tuple[Any, ...]:
        """Compute the gradients from the raw arguments, followed by one raw cotangent per result that requires grad."""
        count = len(self.needs)
        leaves, outs = self._call(None, *arrays[:count])
        seeds = [_around(self.inside, raw) for raw in arrays[count:]]
        return self._gradients(None, [o for o in outs if o.requires_grad], seeds, leaves)

    def _forward(self, recorder: Any, *raws: Any) -> tuple[Any, ...]:
        """Return the results and their gradients, which are None unless the result is one real number.

        For a capture, also return the gradients of other results, from cotangents that become inputs, or None.
        """
        leaves, outs = self._call(recorder, *raws)
        self.build = builder(self.out_template)
        self.scalar = len(outs) == 1 and self.requires[0] and outs[0].shape == () and not outs[0].dtype.is_complex
        arrays = tuple(o._array for o in outs)
        if not self.scalar:
            return (arrays, None) if recorder is None else (arrays, None, self._later(recorder, leaves, outs))
        if recorder is None:  # NB: made from the result, so that a tracing backend does not take it for a constant from outside
            one = self.cls.backend.kernels.ones_like(arrays[0])
        else:
            one = self.inside.backend.raw(self.cls.backend.seed(arrays[0].value, outs[0].dtype, self.cls.device))
        gradients = self._gradients(recorder, outs, [_around(self.inside, one)], leaves)
        return (arrays, gradients) if recorder is None else (arrays, gradients, None)

    def _later(self, recorder: Any, leaves: list[Any], outs: list[Any]) -> tuple[Any, ...] | None:
        """Return the gradients as symbols, from cotangents that become inputs; None if they cannot or need not be captured."""
        wanted = [o for o, requires in zip(outs, self.requires) if requires]
        if not wanted:
            return None
        backend = self.inside.backend
        try:
            seeds = []
            for o in wanted:
                one = self.cls.backend.kernels.ones_like(o._array.value)
                seeds.append(_around(self.inside, backend.raw(one, recorder.add_input(o.shape, o.dtype, None), recorder)))
            return self._gradients(recorder, wanted, seeds, leaves)
        except Exception as exc:  # noqa: BLE001 (a value may be all that is asked for: the user meets it in the backward pass)
            self.failure = exc.with_traceback(None)  # which holds arrays
            return None

    def _gradients(self, recorder: Any, outs: list[Any], seeds: list[Any] | None, leaves: list[Any]) -> tuple[Any, ...]:
        if not outs:
            return (None,) * len(self.places)
        before = state.current()
        try:
            if recorder is not None:
                recorder.backward = True
                state.put(self._mode(True, recorder))
            elif before is not None and before.profiling is not None:
                state.put(state.mode_with(profiling=None))  # nodes that are traced do not run
            with at_levels(()):
                grads = grad(outs, [leaves[i] for i in self.places], seeds, allow_unused=True)
        finally:
            state.put(before)
        return tuple(None if g is None else g._array for g in grads)


def _around(cls: Any, raw: Any) -> Any:
    """Wrap a raw array as a Tensor without history."""
    out = object.__new__(cls)
    out._array = raw
    out._node = out._alias = None
    return out


class _Options:
    """The options of a call of `compile`, and the parameter names of the function.

    Attributes
    ----------
    fallback : bool
    threads : int or None
    emitter : EmitterInfo or None
    is_named : bool
        Whether the call names the emitter.
    parameters : tuple of str
        The names of the function's positional parameters.
    """

    def __init__(self, function: Any, fallback: bool, threads: int | None, emitter: str | None) -> None:
        self.fallback, self.threads = fallback, threads
        self.emitter, self.is_named = chosen_emitter(emitter), emitter is not None
        try:
            parameters = list(inspect.signature(function).parameters.values())
        except (TypeError, ValueError):  # a callable without a signature
            parameters = []
        self.parameters = tuple(p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD))
        self.rest = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), None)

    def emitter_for(self, backend: Any) -> EmitterInfo | None:
        """Return the emitter for arrays of a backend; None if the backend itself makes functions.

        Raises
        ------
        ValueError
            The emitter that was asked for makes no functions of these arrays.
        """
        emitter = self.emitter
        if emitter is None or (not backend.capabilities.jit and (not emitter.backends or backend.table_name in emitter.backends)):
            return emitter
        if self.is_named:
            for_what = f"is for arrays of {', '.join(emitter.backends)}" if emitter.backends else "is for libraries without a compiler"
            msg = f"compile: emitter={emitter.name!r} {for_what}, but the arguments are on {backend.table_name!r}"
            raise ValueError(msg)
        return None

    def names(self, template: Any, count: int) -> list[str | None]:
        """Return a name for each Tensor argument: its parameter's name, with the path to the Tensor inside the argument."""
        found: list[str | None] = []
        if template is None:
            return [self._parameter(i) for i in range(count)]
        _, args, kwargs = template  # a tuple of both
        for i, t in enumerate(args[1:]):
            name_tensors(self._parameter(i), t, found)
        for key, t in zip(kwargs[1], kwargs[2:]):
            name_tensors(key, t, found)
        return found

    def _parameter(self, i: int) -> str | None:
        if i < len(self.parameters):
            return self.parameters[i]
        return None if self.rest is None else f"{self.rest}_{i - len(self.parameters)}"


@overload
def compile_function(function: F) -> F: ...
@overload
def compile_function(
    function: None = None, *, fallback: bool = ..., threads: int | None = ..., emitter: str | None = ...
) -> Callable[[F], F]: ...
@overload
def compile_function(function: F, *, fallback: bool = ..., threads: int | None = ..., emitter: str | None = ...) -> F: ...
def compile_function(function: Any = None, *, fallback: bool = False, threads: int | None = None, emitter: str | None = None) -> Any:
    """Compile a function of Tensors and its gradients, as `torch.compile` and `jax.jit` do.

    JAX and CuPy compile the function themselves. For other libraries it is run once on symbols, and its operations and gradients become a
    program of the library's calls; for NumPy, readable source code.

    Parameters
    ----------
    function : callable
        It takes and returns Tensors, and tuples, lists and dicts of them. Raw arrays among its arguments become constant Tensors. Other
        arguments must be hashable; the function is compiled again for each of their values, and for each combination of shapes and
        dtypes. It must not depend on values, write to its arguments, call `backward()` on results that depend on them, or use Tensors
        that require grad and are not arguments. Other Tensors and arrays from outside, and random numbers that the function draws, are
        constants with their values at the first call.
    fallback : bool
        If True, a function that depends on values runs uncompiled, with one warning.
    threads : int, optional
        For NumPy, the number of threads that share the blocks of large arrays and independent products of large matrices. Default: 1.
        NumPy's BLAS has its own threads: set ``OMP_NUM_THREADS=1``. Where Python cannot start threads, as in a browser, there is one.
    emitter : {'numpy', 'native', 'array-api'} or str, optional
        What makes a function of the captured program: NumPy source, machine code for NumPy arrays (``pip install 'xpgrad[native]'``), calls
        of the library's kernels, or the emitter of a plugin. Default: the environment variable ``XPGRAD_EMITTER``; else for NumPy machine
        code if llvmlite is installed on Linux with an x86-64 processor, otherwise source; for other libraries what the backend does.

    Returns
    -------
    callable
        A function whose call is one node of the tape; without `function`, a decorator. For libraries without a compiler,
        ``compiled.source(*args)`` returns the source that runs for such arguments, or for machine code what it computes;
        ``compiled.program(*args)`` returns the program, and ``compiled.explain(*args)`` says what becomes of it as machine code: which
        operations share a loop, what stays a call of NumPy and why, the bytes that each step moves, and what bounds its time.

    Raises
    ------
    CaptureError
        When called: the function depends on values.
    TypeError, RuntimeError
        When called: an argument is not allowed, or the function does something that is excluded above.
    ValueError
        No emitter has that name; or, when called, it makes no functions of such arrays.
    ImportError
        When called: the emitter needs a package that is not installed.

    Examples
    --------
    >>> import xpgrad as xp
    >>> @xp.compile
    ... def loss(w, x):
    ...     return xp.mean((x @ w) ** 2)
    """
    if function is None:
        return functools.partial(compile_function, fallback=fallback, threads=threads, emitter=emitter)
    check_callable(function, "compile", "function")
    fallback = as_flag(fallback, "compile", "fallback")
    if threads is not None and (isinstance(threads, bool) or not isinstance(threads, int) or threads < 1):
        msg = f"compile needs a positive number of `threads`, but got {threads!r}"
        raise ValueError(msg)
    if threads is not None and threads > 1 and not can_start_threads():
        threads = 1
    options = _Options(function, fallback, threads, emitter)
    programs: dict[Any, Any] = {}
    renewals: list[Any] = []  # keys of programs that were captured again

    def find_program(args: Any, kwargs: Any) -> Any:
        """Return the compiled function for some arguments, the Tensors among them, and the arguments.

        The first is None or `_AS_IS` if the function must run uncompiled.
        """
        flat: Any = args
        template: Any = None
        if kwargs or not all(isinstance(a, Tensor) for a in args):
            flat = []
            template = describe((args, kwargs), flat, arrays=True)
            if not all(isinstance(a, Tensor) for a in flat):
                flat = lift_all("compile", flat)
                args, kwargs = arguments(template, flat)
        if not flat:
            return None, flat, args, kwargs
        cls = flat[0].__class__
        if cls.fresh is not None or any(t.__class__ is not cls for t in flat):
            if any(t.is_inference() for t in flat):
                return None, flat, args, kwargs
            flat = unify("compile", flat)
            cls = flat[0].__class__
        mode = state.current()
        arrays = [t._array for t in flat]
        # Inside `vmap` it is the operations that are vectorised; inside of a transform of JAX they are traced.
        if cls.stage or (cls.backend.capabilities.jit and any(map(cls.backend.is_traced, arrays))):
            return None, flat, args, kwargs
        if flat[0].is_inference() or (mode is not None and (mode.anomaly or mode.levels or mode.auditing or mode.numpy or mode.replaced)):
            return None, flat, args, kwargs
        recording = state.records(mode)
        needs = tuple([t._node is not None for t in flat]) if recording else (False,) * len(flat)
        key: tuple[Any, ...] = (template, cls, needs, recording, tuple([(a.shape, a.dtype) for a in arrays]))
        program = programs.get(key)
        if program is not None and program is not _AS_IS and program.by_layout:
            key = (*key, _layout(cls, arrays))
            program = programs.get(key)
        if program is None or (program is not _AS_IS and program.watched and program.is_outdated):
            program = _Compiled(function, key, options)
        return program, flat, args, kwargs

    direct: Any = None  # the function of `_direct` for the last program
    known: dict[Any, Any] = {}  # programs by what is cheap to ask of Tensors given by position, where no mode is on

    @functools.wraps(function)
    def compiled(*args: Any, **kwargs: Any) -> Any:
        nonlocal direct
        mode = state.current()
        quick: Any = None
        if direct is not None and mode is None and not kwargs:
            out = direct(args)
            if out is not NotImplemented:
                return out
        if mode is None and not kwargs:
            try:
                quick = tuple([(a.__class__, (r := a._array).__class__, r.shape, r.dtype, a._node is None) for a in args])
                program = known.get(quick)
            except (AttributeError, TypeError):  # not a Tensor, or shapes that are not hashable
                quick = program = None
            if program is not None and not (program.watched and program.is_outdated):
                direct = program.direct
                arrays = [a._array for a in args]
                raws, gradients = program.forward(*arrays)
                return _result(program, arrays, raws, gradients, args, None)
        if mode is not None and mode.profiling is not None:
            return mode.call(_title(function), call_in_any_mode, args, kwargs, mode, None)
        return call_in_any_mode(args, kwargs, mode, quick)

    def call_in_any_mode(args: Any, kwargs: Any, mode: Any, quick: Any) -> Any:
        """Call the function with any arguments, in any mode; `quick` is the key of the fast path, or None."""
        program, flat, args, kwargs = find_program(args, kwargs)
        if program is None or program is _AS_IS:
            return function(*args, **kwargs)
        arrays = [t._array for t in flat]
        try:
            raws, gradients = program.forward(*arrays)
        except CaptureError as exc:
            if not fallback:
                raise
            programs[program.key] = _AS_IS
            warnings.warn(f"`{_title(function)}` runs as it is, not compiled: {exc}", UserWarning, stacklevel=3)
            return function(*args, **kwargs)
        if program.by_layout and len(program.key) == 5:
            programs.setdefault(program.key, program)  # from now on, the layout is part of the key
            program.key = (*program.key, _layout(program.cls, arrays))
        former = programs.get(program.key)
        if former is not program:
            programs[program.key] = program  # not before it has been seen to work
            if former is None:
                if len(programs) == _MANY:
                    warnings.warn(_varying(_title(function), list(programs)), UserWarning, stacklevel=3)
            elif former is not _AS_IS and former.is_outdated:  # else another thread has compiled it at the same time
                renewals.append(program.key)
                if len(renewals) == _MANY:
                    warnings.warn(_recapture_warning(_title(function)), UserWarning, stacklevel=3)
        if (
            quick is not None
            and program.template is None
            and not program.by_layout
            and all(a is b for a, b in zip(args, flat, strict=True))
        ):
            known[quick] = program
            program.direct = _direct(program)
        return _result(program, arrays, raws, gradients, flat, mode)

    def program_for(*args: Any, **kwargs: Any) -> Program:
        """Return the forward program for such arguments; it includes the gradients if the function returns one real number."""
        found: Program = captured_for(args, kwargs)[0].forward.program
        return found

    def source_for(*args: Any, **kwargs: Any) -> str:
        """Return the source that runs for such arguments."""
        found: str = captured_for(args, kwargs)[0].forward.source()
        return found

    def captured_for(args: Any, kwargs: Any) -> tuple[Any, list[Any]]:
        """Return the captured function for such arguments, and the raw arrays among them.

        Raises
        ------
        ValueError
            There is no program, because the function runs uncompiled or the backend compiles it itself.
        """
        made, flat, *_ = find_program(args, kwargs)
        if made is None or made is _AS_IS or made.inside is made.cls:
            why = "runs as it is" if made is None or made is _AS_IS else f"is compiled by {made.cls.backend.name!r} itself"
            msg = f"there is no program: for these arguments `{_title(function)}` {why}"
            raise ValueError(msg)
        arrays = [t._array for t in flat]
        if made.forward.captured is None:
            made.forward.capture(*arrays)
        return made, arrays

    def explain(*args: Any, **kwargs: Any) -> str:
        """Return what becomes of the forward program for such arguments as machine code."""
        from xpgrad.programs.explanation import explain_program  # loads late: few programs are explained

        return explain_program(program_for(*args, **kwargs))

    compiled.explain = explain  # type: ignore[attr-defined]
    compiled.captured = captured_for  # type: ignore[attr-defined]
    compiled.program, compiled.source = program_for, source_for  # type: ignore[attr-defined]
    return compiled


_AS_IS: Any = object()


def _layout(cls: Any, arrays: list[Any]) -> tuple[Any, ...]:
    """Return the strides of raw arrays with several axes; what a function computes of other arrays lies in row-major order."""
    return tuple([cls.backend.strides(x) if len(x.shape) > 1 else None for x in arrays])


def _title(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def _varying(title: str, keys: list[Any]) -> str:
    """Return the warning for a function that was compiled many times, which names the arguments that vary."""
    varying = []
    shapes = [key[4] for key in keys]
    if len({len(s) for s in shapes}) == 1:
        varying = [f"Tensor {i} has had {', '.join(sorted({str(tuple(s[i][0])) for s in shapes})[:3])}, ..." for i in range(len(shapes[0]))
                   if len({s[i] for s in shapes}) > 1]  # fmt: skip
    if len({key[0] for key in keys}) > 1:
        varying.append("an argument that is not a Tensor varies")
    return (
        f"`{title}` was compiled {len(keys)} times, which takes time and memory: {'; '.join(varying) or 'its arguments vary'}. Give it "
        "arguments of fewer different shapes and values, or Tensors instead of numbers"
    )


def _recapture_warning(title: str) -> str:
    """Return the warning for a function that was captured again many times."""
    return (
        f"`{title}` was compiled again {_MANY} times, which takes time, since a Tensor that it closes over was written to each time; "
        "pass it as an argument"
    )


def _direct(program: _Compiled) -> Callable[[Any], Any] | None:
    """Return a function that runs a program on Tensors for which it was made, and returns NotImplemented for others.

    It asks only for what machine code does not check itself: the classes of the Tensors, and whether they require grad. None if the program
    is not all machine code, or uses Tensors from outside.
    """
    exact = getattr(getattr(program.forward, "run", None), "exact", None)
    if exact is None or program.watched:
        return None
    names = [f"a{k}" for k in range(len(program.needs))]
    tests = [f"{a}.__class__ is not cls or {a}._node is {'' if need else 'not '}None" for a, need in zip(names, program.needs)]
    arrays = ", ".join(f"{a}._array" for a in names)
    lines = [
        "def direct(args):",
        f"    if len(args) != {len(names)}:",
        "        return NotImplemented",
        f"    {', '.join(names)}, = args",
        f"    if {' or '.join(tests)}:",
        "        return NotImplemented",
        f"    found = exact({arrays})",
        "    if found is NotImplemented or found is False:",
        "        return NotImplemented",
    ]
    if True not in program.requires:
        outs = [f"t{k}" for k in range(len(program.requires))]
        for out, place in zip(outs, program.forward.template[0]):
            lines += [f"    {out} = new(cls)", f"    {out}._array = found[{place}]", f"    {out}._node = {out}._alias = None"]
        lines.append("    return t0" if program.out_template is None else f"    return build(({''.join(f'{out}, ' for out in outs)}))")
    else:
        lines += ["    raws, gradients = arranged(found)", f"    return result(program, [{arrays}], raws, gradients, args, None)"]
    space: dict[str, Any] = {
        "cls": program.cls, "exact": exact, "new": object.__new__, "arranged": program.forward.arranged, "result": _result,
        "program": program, "build": program.build,
    }  # fmt: skip
    exec("\n".join(lines), space)  # noqa: S102 (our own text)
    found: Callable[[Any], Any] = space["direct"]
    return found


def _result(program: _Compiled, arrays: list[Any], raws: Any, gradients: Any, flat: Any, mode: Any) -> Any:
    """Build the results of a call, attached to one node if a result requires grad."""
    cls = program.cls
    node = new_node(program, cls, arrays, gradients, flat) if True in program.requires else None
    if program.out_template is None:
        out = object.__new__(cls)
        out._array, out._alias = raws[0], None
        out._node = node if program.scalar or node is None else make_slot(node, 0)
        outs = [out]
    else:
        outs = [cls._wrap(raw) for raw in raws]
        for k, requires in enumerate(program.requires):
            if requires:
                outs[k]._node = node if program.scalar else make_slot(node, k)
    if node is not None and mode is not None and mode.packing is not None:
        node.pack(mode.packing, flat)
    if node is not None and mode is not None:
        mode.note_node(node)
    if mode is not None and mode.inference:
        for out in outs:
            out._become_inference()
    return program.build(outs)
