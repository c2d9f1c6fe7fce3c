"""`xpgrad.compile`: a function of Tensors as one node of the tape, around the forward and the backward as the backend compiles them.

Where the function returns one real number, the gradients are computed together with it, in one compiled call, and the backward pass
scales them; otherwise a compiled backward computes the function again. A backend without a compiler gets a captured program.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, overload

from xpgrad._basics.arguments import as_flag, check_callable
from xpgrad._modes import state, switches
from xpgrad._operations.coerce import unify
from xpgrad._operations.lift import is_constant, lift_all
from xpgrad._tape.node import ListNode, add_into, freed, new_slot, walk
from xpgrad._tape.requests import grad
from xpgrad._tape.saved import check_version, unpack, unpack_constant
from xpgrad._tensor.tensor import Tensor
from xpgrad.errors import CaptureError
from xpgrad.programs.array_api_text import array_api_function
from xpgrad.programs.capture import Taking, capture, capture_class, from_outside
from xpgrad.programs.evaluation import evaluator
from xpgrad.programs.program import Program
from xpgrad.programs.simplify import simplified
from xpgrad.rules.creation import zeros
from xpgrad.rules.elementwise import positive

__all__ = ["CompiledNode", "compile_function"]

F = TypeVar("F", bound=Callable[..., Any])
_MANY = 8  # programs of one function, after which a warning says what varies


class _Captured:
    """A function of raw arrays as a captured program: what `Backend.compile` is where the library has no compiler.

    Parameters
    ----------
    cls : type
        The class of captured Tensors.
    function : callable
        ``function(recorder, *raws)`` returns nested tuples of raw arrays and None.
    names : list of (str or None)
        What the user calls the arrays.
    """

    def __init__(self, cls: Any, function: Callable[..., Any], names: list[str | None], threads: int | None) -> None:
        self.cls, self.function, self.names, self.threads = cls, function, names, threads
        self.program: Program | None = None
        self.run: Any = None
        self.arranged: Any = None
        self.template: Any = None  # where the results are among the program's outputs

    def __call__(self, *raws: Any) -> Any:
        if self.run is None:
            self.capture(raws)
        return self.arranged(self.run(*raws))

    def capture(self, raws: Any) -> None:
        """Capture the function as it is for these arrays."""
        program, self.template, _ = capture(self.cls, self.function, raws, self.names)
        self.arranged = eval(f"lambda o: {_arrangement(self.template)}")  # our own text: a tuple's structure
        below = self.cls.backend.below
        self.program = program = simplified(program, evaluator(below))
        self.run = below.compile_program(program, threads=self.threads) or array_api_function(program, below)


def _arrangement(template: Any) -> str:
    """The text that puts the outputs ``o`` of a program where a function returned them."""
    if template is None:
        return "None"
    if template.__class__ is tuple:
        return f"({''.join(_arrangement(t) + ', ' for t in template)})"
    return f"o[{template}]"


class _Compiled:
    """A function for arguments of one structure, shapes and dtypes, of which some require grad; compiled when first called."""

    def __init__(self, function: Any, template: Any, cls: Any, needs: tuple[bool, ...], recording: bool, options: Any) -> None:
        backend = cls.backend
        self.function, self.template, self.cls, self.needs, self.recording = function, template, cls, needs, recording
        self.places = [i for i, need in enumerate(needs) if need]
        self.scale: Any
        if backend.capabilities.jit:
            self.inside = cls
            self.forward = backend.compile(self._traced_forward)
            self.backward = backend.compile(self._traced_backward)
            cast = backend.kernels.cast  # NB: a loss may have another precision than an argument
            self.scale = backend.compile(lambda g, *grads: tuple(None if v is None else cast(v * g, v.dtype) for v in grads))
        else:
            self.inside = capture_class(cls)
            self.forward = _Captured(self.inside, self._forward, options.names(template, len(needs)), options.threads)
            self.backward = _Captured(self.inside, self._backward, [], options.threads)
            self.scale = self._scaled
        # What the first call finds out:
        self.out_template: Any = None
        self.requires: tuple[bool, ...] = ()
        self.metas: list[Any] = []
        self.scalar = False

    def _scaled(self, g: Any, *gradients: Any) -> tuple[Any, ...]:
        xp = self.cls.backend.kernels
        return tuple(None if v is None else xp.multiply(v, xp.cast(g, v.dtype)) for v in gradients)

    def _call(self, recorder: Any, raws: Any) -> tuple[list[Any], list[Any]]:
        """Run the function on Tensors around raw arrays that are traced, or symbols; returns these Tensors and the results."""
        leaves = []
        for raw, need in zip(raws, self.needs):
            self.cls.backend.note_device(raw, self.cls.device)
            leaf = _around(self.inside, raw)
            if need:
                leaf.requires_grad_()
            leaves.append(leaf)
        nodes = [leaf._node for leaf in leaves]
        args, kwargs = _arguments(self.template, list(leaves))
        before = state.current()
        try:
            state.put(self._mode(self.recording, recorder))
            out = self.function(*args, **kwargs)
        finally:
            state.put(before)
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
        self.out_template = _described(out, outs)
        outs = [self._own(o) for o in outs]
        own = set(nodes)
        for node in walk([o._node for o in outs if o._node is not None]):
            # NB: a leaf that the function made, as transforms do, has an array that is traced.
            if node.is_leaf and node not in own and not node.cls.backend.is_traced(node.array):
                raise from_outside(node.variable)
        self.requires = tuple(o.requires_grad for o in outs)
        self.metas = [(o.shape, o.dtype, self.cls) for o in outs]
        return leaves, outs

    def _mode(self, recording: bool, recorder: Any) -> Any:
        if recorder is None:
            return None if recording else state.NO_GRAD
        return state.Mode(recording=recording, capturing=Taking(self.inside, recorder))

    def _own(self, out: Any) -> Any:
        """A result, which may be a constant from outside, as a Tensor of the class that the function computes with."""
        if self.inside is self.cls or type(out) is self.inside:
            return out
        if type(out._stand_in()) is not self.cls:
            msg = (
                f"a compiled function returned a Tensor on {out.device}, but its arguments are on {self.cls.device}; move it outside, or "
                "return what was computed of the arguments"
            )
            raise RuntimeError(msg)
        return self.inside.lift(out)

    def _traced_forward(self, *raws: Any) -> Any:
        return self._forward(None, *raws)

    def _traced_backward(self, *raws: Any) -> Any:
        return self._backward(None, *raws)

    def _forward(self, recorder: Any, *raws: Any) -> tuple[tuple[Any, ...], tuple[Any, ...] | None]:
        leaves, outs = self._call(recorder, raws)
        self.scalar = len(outs) == 1 and self.requires[0] and outs[0].shape == () and not outs[0].dtype.is_complex
        arrays = tuple(o._array for o in outs)
        if not self.scalar:
            return arrays, None
        # NB: made from the result, so that a tracing backend does not take it for a constant from outside
        one = arrays[0] if recorder is not None else self.cls.backend.kernels.ones_like(arrays[0])
        if recorder is not None:
            one = self.inside.backend.raw(self.cls.backend.seed(one.value, outs[0].dtype, self.cls.device))
        return arrays, self._gradients(recorder, outs, [_around(self.inside, one)], leaves)

    def _backward(self, recorder: Any, *arrays: Any) -> tuple[Any, ...]:
        """The gradients, given the raw arguments followed by one raw gradient for each result that requires grad."""
        count = len(self.needs)
        leaves, outs = self._call(recorder, arrays[:count])
        seeds = [_around(self.inside, raw) for raw in arrays[count:]]
        return self._gradients(recorder, [o for o in outs if o.requires_grad], seeds, leaves)

    def _gradients(self, recorder: Any, outs: list[Any], seeds: list[Any] | None, leaves: list[Any]) -> tuple[Any, ...]:
        if not outs:
            return (None,) * len(self.places)
        before = state.current()
        try:
            if recorder is not None:
                recorder.backward = True
                state.put(self._mode(True, recorder))
            grads = grad(outs, [leaves[i] for i in self.places], seeds, allow_unused=True)
        finally:
            state.put(before)
        return tuple(None if g is None else g._array for g in grads)


def _around(cls: Any, raw: Any) -> Any:
    """A Tensor without history."""
    out = object.__new__(cls)
    out._array = raw
    out._node = out._alias = None
    return out


class CompiledNode(ListNode):
    """The node of one call of a compiled function.

    Attributes
    ----------
    arrays : list or None
        The raw arguments.
    gradients : tuple or None
        For a function that returns one real number: its gradients.
    sources : list
        The origin of each argument: an edge, or the Tensor itself if it is a constant.
    """

    __slots__ = ("arrays", "cls", "gradients", "metas", "n_outputs", "packs", "program", "slots", "slotted", "sources")

    title = "CompiledBackward0"
    saves = True
    cls: Any
    program: _Compiled
    arrays: Any
    gradients: Any
    metas: Any
    slots: Any
    sources: list[Any]

    def _arguments(self) -> list[Any]:
        """The raw arguments, unpacked where hooks packed them, otherwise checked."""
        if self.arrays is None:
            raise freed(self)
        found = []
        for k, (array, source) in enumerate(zip(self.arrays, self.sources)):
            if self.packs:
                array = array.array()
            elif source._alias is not None:
                check_version(self, f"argument {k}", source._alias)
            found.append(array)
        return found

    def pack(self, hooks: Any, tensors: list[Any]) -> None:
        """Give the arguments and the gradients to hooks, and keep what they return in their place."""
        self.packs = True
        backend = self.cls.backend
        self.arrays = [hooks.packed(t) for t in tensors]
        self.sources = [None if isinstance(s, Tensor) else s for s in self.sources]
        if self.gradients is not None:
            self.gradients = tuple(None if v is None else hooks.packed(backend.wrap(v)) for v in self.gradients)

    def _seeds(self, g: Any, zeros: Callable[[Any], Any]) -> list[Any]:
        """One gradient for each result that requires grad."""
        given = g if self.slotted else [g]
        given = [None] * self.n_outputs if given is None else given
        return [zeros(m) if v is None else v for v, m, r in zip(given, self.metas, self.program.requires) if r]

    def step(self, g: Any, empty: Any, retain: bool) -> None:
        values = self._handed_out(g) if not retain and not self.packs else self.grads(g)
        for e, v in zip(self.edges(), values):
            first = e.buffer is empty
            add_into(e, v, empty)
            if first and v is not None:
                e.owned = True  # nobody else holds it
        if not retain:
            self.release()

    def grads(self, g: Any) -> list[Any]:
        backend, found = self.cls.backend, self._handed_out(g)
        if self.gradients is not None and backend.capabilities.mutable:  # what the node keeps is not written to
            found = [v if v is None or all(v is not kept for kept in self.gradients) else backend.kernels.copy(v) for v in found]
        return found

    def _handed_out(self, g: Any) -> list[Any]:
        """The gradients, which may be the arrays that the node keeps."""
        backend = self.cls.backend
        if self.gradients is not None:
            gradients = self.gradients
            if self.packs:
                gradients = [None if v is None else v.array() for v in gradients]
            return list(gradients if backend.is_unit(g) else self.program.scale(g, *gradients))
        return list(
            self.program.backward(*self._arguments(), *self._seeds(g, lambda m: backend.kernels.zeros(m[0], dtype=backend.raw_dtype(m[1]))))
        )

    def graph_grads(self, g: Any) -> list[Any]:
        """Run the function again, uncompiled and recorded, so that the gradients can be differentiated."""
        program, backend = self.program, self.cls.backend
        outs: list[Any] = []
        seeds = self._seeds(g, lambda m: zeros(m[0], dtype=m[1], device=self.cls.device))
        with switches.enable_grad():  # where Tensors have tangents, a pass runs on them without recording
            # NB: separate results, so that each argument has its own gradient where one is given twice, or computed from another.
            inputs = []
            for raw, s in zip(self._arguments(), self.sources):
                if isinstance(s, Tensor):
                    inputs.append(unpack_constant(backend, raw, s))
                else:  # no source: a constant that was packed
                    inputs.append(backend.wrap(raw) if s is None else positive(unpack(backend, raw, s)))
            args, kwargs = _arguments(program.template, inputs)
            wanted = [inputs[i] for i in program.places]
            _described(program.function(*args, **kwargs), outs)
            return list(grad([o for o in outs if o.requires_grad], wanted, seeds, create_graph=True, allow_unused=True))

    def held(self) -> list[Any]:
        return [] if self.packs else [*(self.arrays or ()), *(v for v in self.gradients or () if v is not None)]

    def release(self) -> None:
        self.arrays = self.gradients = None

    def released(self) -> bool:
        return self.arrays is None


def _described(x: Any, flat: list[Any], *, arrays: bool = False) -> Any:
    """The structure of nested tuples, lists and dicts, hashable; the Tensors in it, and if asked raw arrays, are appended to `flat`."""
    if isinstance(x, Tensor) or (arrays and is_constant(x)):
        flat.append(x)
        return None
    cls = x.__class__
    if cls is tuple or cls is list:
        return (cls, *[_described(item, flat, arrays=arrays) for item in x])
    if cls is dict:
        return (dict, tuple(x), *[_described(item, flat, arrays=arrays) for item in x.values()])
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return (cls, *[_described(item, flat, arrays=arrays) for item in x])
    try:
        hash(x)
    except TypeError:
        msg = (
            f"a compiled function takes and returns Tensors, hashable values, and tuples, lists and dicts of these, not {cls.__name__}; "
            "wrap an array with `xpgrad.asarray(x)`"
        )
        raise TypeError(msg) from None
    return ("static", cls, x, repr(x) if isinstance(x, (float, complex)) else None)  # 0.0 == -0.0


def _arguments(template: Any, tensors: list[Any]) -> Any:
    """Positional and keyword arguments; without a template the Tensors are the positional ones."""
    return (tensors, {}) if template is None else _rebuilt(template, iter(tensors))


def _rebuilt(template: Any, flat: Iterator[Any]) -> Any:
    if template is None:
        return next(flat)
    kind = template[0]
    if kind == "static":
        return template[2]
    if kind is dict:
        return dict(zip(template[1], [_rebuilt(t, flat) for t in template[2:]]))
    items = [_rebuilt(t, flat) for t in template[1:]]
    return kind(*items) if hasattr(kind, "_fields") else kind(items)


class _Options:
    """What `compile` was asked for, and what it tells programs of the function.

    Attributes
    ----------
    fallback : bool
    threads : int or None
    parameters : tuple of str
        The names of the function's positional parameters.
    """

    def __init__(self, function: Any, fallback: bool, threads: int | None) -> None:
        self.fallback, self.threads = fallback, threads
        try:
            parameters = list(inspect.signature(function).parameters.values())
        except (TypeError, ValueError):  # a callable that does not tell
            parameters = []
        self.parameters = tuple(p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD))
        self.rest = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), None)

    def names(self, template: Any, count: int) -> list[str | None]:
        """What the function calls the Tensors among its arguments: a parameter, with what leads from there to the Tensor."""
        found: list[str | None] = []
        if template is None:
            return [self._parameter(i) for i in range(count)]
        _, args, kwargs = template  # a tuple of both
        for i, t in enumerate(args[1:]):
            _name(self._parameter(i), t, found)
        for key, t in zip(kwargs[1], kwargs[2:]):
            _name(key, t, found)
        return found

    def _parameter(self, i: int) -> str | None:
        if i < len(self.parameters):
            return self.parameters[i]
        return None if self.rest is None else f"{self.rest}_{i - len(self.parameters)}"


def _name(name: str | None, template: Any, found: list[str | None]) -> None:
    """The names of the Tensors in one argument, by its structure."""
    if template is None:
        found.append(name if name is None or name.isidentifier() else None)
    elif template[0] is dict:
        for key, t in zip(template[1], template[2:]):
            _name(f"{name}_{key}", t, found)
    elif template[0] != "static":
        fields = getattr(template[0], "_fields", range(len(template) - 1))
        for key, t in zip(fields, template[1:]):
            _name(f"{name}_{key}", t, found)


@overload
def compile_function(function: F) -> F: ...
@overload
def compile_function(function: None = None, *, fallback: bool = ..., threads: int | None = ...) -> Callable[[F], F]: ...
@overload
def compile_function(function: F, *, fallback: bool = ..., threads: int | None = ...) -> F: ...
def compile_function(function: Any = None, *, fallback: bool = False, threads: int | None = None) -> Any:
    """Compile a function of Tensors, forward and backward (the counterpart of `torch.compile` and `jax.jit`).

    JAX and CuPy compile it themselves; everywhere else the function is run once on symbols, and what it does, with its gradients, becomes
    a straight program of the library's calls, on NumPy as source that one can read.

    Parameters
    ----------
    function : callable
        It takes and returns Tensors, and tuples, lists and dicts of them. Raw arrays among its arguments become Tensors, as constants.
        Other arguments must be hashable, and it is compiled again for each of their values, and for each combination of shapes and
        dtypes. It must not depend on values, write to its arguments, call `backward()` on what depends on them, or use Tensors that
        require grad and are not arguments. Tensors and arrays that are not arguments are constants, as they are at the first call;
        that includes whether they require grad, and random numbers that the function draws.
    fallback : bool
        A function that depends on values runs as it is, and a warning says so once.
    threads : int, optional
        On NumPy: the number of threads for large arrays. By default one.

    Returns
    -------
    callable
        The same function, whose call is one node of the tape. ``compiled.source(*args)`` is the text that runs for such arguments, and
        ``compiled.program(*args)`` what it was made from, where the library has no compiler of its own. Without a function, a decorator.

    Raises
    ------
    CaptureError
        When it is called and depends on values.
    TypeError, RuntimeError
        When it is called with, or does, what is excluded above.

    >>> import xpgrad as xp
    >>> @xp.compile
    ... def loss(w, x):
    ...     return xp.mean((x @ w) ** 2)
    """
    if function is None:
        return functools.partial(compile_function, fallback=fallback, threads=threads)
    check_callable(function, "compile", "function")
    fallback = as_flag(fallback, "compile", "fallback")
    if threads is not None and (isinstance(threads, bool) or not isinstance(threads, int) or threads < 1):
        msg = f"compile needs a positive number of `threads`, but got {threads!r}"
        raise ValueError(msg)
    options = _Options(function, fallback, threads)
    programs: dict[Any, Any] = {}

    def prepared(args: Any, kwargs: Any) -> Any:
        """The program for some arguments, with the Tensors among them; None where the function is to run as it is."""
        flat: Any = args
        template: Any = None
        if kwargs or not all(isinstance(a, Tensor) for a in args):
            flat = []
            template = _described((args, kwargs), flat, arrays=True)
            if not all(isinstance(a, Tensor) for a in flat):
                flat = lift_all("compile", flat)
                args, kwargs = _arguments(template, flat)
        if not flat:
            return None, flat, args, kwargs
        cls = flat[0].__class__
        if cls.fresh is not None or any(t.__class__ is not cls for t in flat):
            flat = unify("compile", flat)
            cls = flat[0].__class__
        mode = state.current()
        arrays = [t._array for t in flat]
        if cls.stage or any(map(cls.backend.is_traced, arrays)):  # inside `vmap` it is the operations that are vectorised
            return None, flat, args, kwargs
        if flat[0].is_inference() or (mode is not None and (mode.anomaly or mode.levels)):
            return None, flat, args, kwargs
        recording = state.records(mode)
        needs = tuple([t._node is not None for t in flat]) if recording else (False,) * len(flat)
        key = (template, cls, needs, recording, tuple([(a.shape, a.dtype) for a in arrays]))
        program = programs.get(key)
        if program is None:
            program = _Compiled(function, template, cls, needs, recording, options)
            program.key = key
        return program, flat, args, kwargs

    known: dict[Any, Any] = {}  # programs by what is cheap to ask of Tensors given by position, where no mode is on

    @functools.wraps(function)
    def compiled(*args: Any, **kwargs: Any) -> Any:
        mode = state.current()
        quick: Any = None
        if mode is None and not kwargs:
            try:
                quick = tuple([(a.__class__, (r := a._array).__class__, r.shape, r.dtype, a._node is None) for a in args])
                program = known.get(quick)
            except (AttributeError, TypeError):  # not a Tensor, or shapes that are not hashable
                quick = program = None
            if program is not None:
                arrays = [a._array for a in args]
                return _result(program, arrays, *program.forward(*arrays), args, None)
        program, flat, args, kwargs = prepared(args, kwargs)
        if program is None or program is _AS_IS:
            return function(*args, **kwargs)
        arrays = [t._array for t in flat]
        try:
            raws, gradients = program.forward(*arrays)
        except CaptureError as exc:
            if not fallback:
                raise
            programs[program.key] = _AS_IS
            warnings.warn(f"`{_title(function)}` runs as it is, not compiled: {exc}", UserWarning, stacklevel=2)
            return function(*args, **kwargs)
        if program.key not in programs:
            programs[program.key] = program  # not before it has been seen to work
            if len(programs) == _MANY:
                warnings.warn(_varying(_title(function), list(programs)), UserWarning, stacklevel=2)
        if quick is not None and program.template is None and all(a is b for a, b in zip(args, flat, strict=True)):
            known[quick] = program
        return _result(program, arrays, raws, gradients, flat, mode)

    def captured(*args: Any, **kwargs: Any) -> tuple[_Compiled, list[Any]]:
        """What was made for such arguments, captured, and the raw arrays among them."""
        made, flat, *_ = prepared(args, kwargs)
        if not isinstance(made, _Compiled) or not isinstance(made.forward, _Captured):
            why = "runs as it is" if not isinstance(made, _Compiled) else f"is compiled by {made.cls.backend.name!r} itself"
            msg = f"there is no program: for these arguments `{_title(function)}` {why}"
            raise ValueError(msg)
        arrays = [t._array for t in flat]
        if made.forward.program is None:
            made.forward.capture(arrays)
        return made, arrays

    def program_for(*args: Any, **kwargs: Any) -> Program:
        """The program of the forward, with the gradients where the function returns one real number, for such arguments."""
        found: Any = captured(*args, **kwargs)[0].forward.program
        return found  # type: ignore[no-any-return]

    compiled.captured = captured  # type: ignore[attr-defined]
    compiled.program = program_for  # type: ignore[attr-defined]
    return compiled


_AS_IS: Any = object()


def _title(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def _varying(title: str, keys: list[Any]) -> str:
    """The warning for a function that was compiled many times: which arguments vary."""
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


def _result(program: _Compiled, arrays: list[Any], raws: Any, gradients: Any, flat: Any, mode: Any) -> Any:
    """What a call returns: the results, with one node below them where one requires grad."""
    cls = program.cls
    node = _node(program, cls, arrays, gradients, flat) if True in program.requires else None
    if program.out_template is None:
        out = object.__new__(cls)
        out._array, out._alias = raws[0], None
        out._node = node if program.scalar or node is None else new_slot(node, 0)
        outs = [out]
    else:
        outs = [cls._wrap(raw) for raw in raws]
        for k, requires in enumerate(program.requires):
            if requires:
                outs[k]._node = new_slot(node, k)
    if node is not None and mode is not None and mode.packing is not None:
        node.pack(mode.packing, flat)
    return outs[0] if program.out_template is None else _rebuilt(program.out_template, iter(outs))


def _node(program: _Compiled, cls: Any, arrays: list[Any], gradients: Any, flat: list[Any]) -> Any:
    node: Any = CompiledNode.made_now()
    edges = [t._node for t in flat] if program.recording else [None] * len(flat)
    node.e = tuple([e for e in edges if e is not None])
    node.cls, node.program, node.arrays, node.gradients = cls, program, arrays, gradients
    node.sources = [t if e is None else e for t, e in zip(flat, edges)]
    node.packs = False
    node.n_outputs, node.slotted = len(program.requires), not program.scalar
    node.stream = (cls, cls.backend.current_stream(cls.device)) if cls.backend.capabilities.streams else None
    node.slots, node.metas = [None] * node.n_outputs, program.metas
    return node
