"""Print the module that `export` writes: a function, its documentation, its constants, and a test of its gradients."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from typing import Any

from xpgrad._backends.classes import host_backend
from xpgrad._tensor.tensor import Tensor
from xpgrad.emitter import EmitterInfo
from xpgrad.programs.blocks import fuse_loops
from xpgrad.programs.captured import CapturedGradients
from xpgrad.programs.compiled import compile_function
from xpgrad.programs.literals import text_of
from xpgrad.programs.naming import Names
from xpgrad.programs.numpy_text import numpy_source
from xpgrad.programs.program import Operation, Program, Variable, change_inner
from xpgrad.programs.simplify import without_dead_code
from xpgrad.programs.source import Source
from xpgrad.programs.structure import arguments, describe
from xpgrad.programs.unrolling import unroll_scans
from xpgrad.rules.conversion import asarray, tensor

__all__ = ["call_text", "capture_gradients", "export_files", "export_text", "range_of"]

_SMALL = 64  # elements of a constant that a text can hold


def export_text(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], command: str, file: str | None) -> str:
    """Return the source of the module for a function and its arguments; `file` is the module's file name."""
    captured = capture_gradients(function, args, kwargs)
    program = without_dead_code(_in_blocks(captured.program))
    source = numpy_source(program, captured.name, docstring=_summary(captured.title, captured.made.scalar))
    origin = _origin(function, captured)
    command = command or call_text(captured, file)
    return module_text(source, program, captured.title, origin, captured.results, captured.flat, captured.made, command)


def _in_blocks(program: Program) -> Program:
    """Fuse the operations on large arrays of a program, and of those that its loops and branches run."""
    return change_inner(fuse_loops(program), _in_blocks)


def export_files(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    command: str,
    emitter: EmitterInfo,
    stem: str,
    file: str | None,
) -> dict[str, str]:
    """Return the texts of the files that an emitter exports, by their suffixes; `file` is the name of the main file."""
    captured = capture_gradients(function, args, kwargs, loops=emitter.loops)
    assert emitter.export is not None
    return emitter.export(captured, stem, [_origin(function, captured), f"    {command or call_text(captured, file, emitter.name)}"])


def capture_gradients(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], *, loops: bool = True
) -> CapturedGradients:  # fmt: skip
    """Capture a function and its gradients for example arguments, with its loops and branches, or with unrolled scans.

    Raises
    ------
    TypeError
        No argument is an array.
    ValueError
        The arguments are arrays of another library than NumPy.
    CaptureError
        There is a loop or a branch that depends on values, and `loops` is false.
    """
    flat: list[Any] = []
    template = describe((args, kwargs), flat, arrays=True)
    if not flat:
        given = ", ".join(type(a).__name__ for a in (*args, *kwargs.values())) or "nothing"
        msg = f"export needs an array or a Tensor among the arguments of the function, but got {given}"
        raise TypeError(msg)
    args, kwargs = arguments(template, _leaves(flat))
    made, flat = compile_function(function).captured(args, kwargs)  # type: ignore[attr-defined]
    if made.cls.backend is not host_backend():
        msg = (
            f"export writes code for NumPy's arrays, but the arguments are on {made.cls.device}; give NumPy's arrays, or Tensors made with "
            "device='numpy'"
        )
        raise ValueError(msg)
    names = [n or f"x{i}" for i, n in enumerate(made.forward.names)]
    title = getattr(function, "__name__", "function")
    title = title if title.isidentifier() and title != "<lambda>" else "function"
    program, results = _with_results(made, names, title, loops)
    return CapturedGradients(program, title, f"{title}_and_gradients" if made.scalar else title, names, results, flat, made)


def _leaves(flat: list[Any]) -> list[Any]:
    """Return the arguments; if none requires grad, all differentiable ones do."""
    if any(isinstance(x, Tensor) and x.requires_grad for x in flat):
        return flat
    tensors = [x if isinstance(x, Tensor) else asarray(x) for x in flat]
    return [tensor(t, requires_grad=True) if t.dtype.differentiable else t for t in tensors]


def _with_results(made: Any, names: list[str], title: str, loops: bool) -> tuple[Program, list[tuple[str, int | None]]]:
    """Return the program with a gradient per differentiable argument, and the names of its results with their arguments' positions."""
    program = made.forward.program if loops else unroll_scans(made.forward.program)
    values, gradients = made.forward.template
    operations, outputs = list(program.operations), [program.outputs[i] for i in values]
    fixed = {*program.inputs, *program.constants}
    results: list[tuple[str, int | None]] = [(title if len(values) == 1 else f"{title}_{i}", None) for i in range(len(values))]
    for v, (name, _) in zip(outputs, results):
        if v.name is None and v not in fixed:
            v.name = name
    for place, i in zip(made.places, gradients or ()):
        x = program.inputs[place]
        if i is None:  # the value does not depend on it
            v = Variable(x.shape, x.dtype)
            operations.append(Operation("zeros", (x.shape,), {"dtype": x.dtype}, (v,), backward=True))
        else:
            v = program.outputs[i]
        if v.name is None and v not in fixed:
            v.name = f"grad_{names[place]}"
        outputs.append(v)
        results.append((f"grad_{names[place]}", place))
    return Program(program.inputs, program.constants, operations, outputs), results


def _summary(title: str, scalar: bool) -> str:
    what = f"the value of `{title}` and its gradients" if scalar else f"the results of `{title}`"
    return f"Return {what}; see the module's docstring."


def _origin(function: Any, captured: CapturedGradients) -> str:
    """Return the line that says from which function, and which arguments that are no arrays, an export was made."""
    function = inspect.unwrap(function)
    code = getattr(function, "__code__", None)
    module = getattr(function, "__module__", None)
    parts = [f"Made from `{captured.title}`"]
    if module and module.isidentifier() and module != "__main__":
        parts.append(f" of module `{module}`")
    if code is not None:
        parts.append(f" ({code.co_filename.replace(os.sep, '/').rpartition('/')[2]}, line {code.co_firstlineno})")
    if statics := _statics(captured.made.template):
        parts.append(f", with {', '.join(statics)}")
    return "".join([*parts, ", by xpgrad:"])


def call_text(captured: CapturedGradients, file: str | None, target: str = "python") -> str:
    """Return the call of `export` that writes a file."""
    where = "" if target == "python" else f", target={target!r}"
    where += "" if file is None else f", path={file!r}"
    return f"xpgrad.export({captured.title}, {', '.join(captured.names)}{where})"


def module_text(
    source: Source, program: Program, title: str, origin: str, results: list[tuple[str, int | None]], flat: list[Any], made: Any,
    command: str,
) -> str:  # fmt: skip
    """Print the module around a function's source: docstring, constants and test.

    Parameters
    ----------
    source : Source
    program : Program
    title, origin : str
        The name of the user's function, and the line that says what the module was made from.
    results : list of (str, int or None)
        As in `CapturedGradients`.
    flat : list
        Example arguments.
    made : object
        The compiled function.
    command : str
        The command that makes the module.

    Raises
    ------
    ValueError
        The function needs more than NumPy, or its constants are too large.
    """
    if source.kernels:
        msg = (
            f"export: {', '.join(f'`{k}`' for k in source.kernels)}: no text in NumPy alone is known; compute it outside, and pass the "
            "result as an argument"
        )
        raise ValueError(msg)
    constants = [f"{name} = {_constant(name, raw)}\n" for name, raw in source.constants.items()]
    imports, _, functions = source.text.partition("\n")
    head = _docstring(source, program, title, origin, results, made, command)
    parts = [head, imports, "\n"]
    if constants:
        parts += ["\n", *constants]
    parts += [functions.rstrip("\n"), "\n\n\n", _example(program, flat)]
    parts.append(_check(source, [n for n, p in results if p is not None], [p for _, p in results if p is not None]))
    return "".join(parts)


def _docstring(
    source: Source, program: Program, title: str, origin: str, results: list[tuple[str, int | None]], made: Any, command: str
) -> str:
    scalar = made.scalar
    lines = [f'"""{f"The value of `{title}` and its gradients" if scalar else f"The results of `{title}`"}, in NumPy alone.', ""]
    lines.append(f"    {', '.join(name for name, _ in results)} = {source.name}({', '.join(source.parameters)})")
    lines += ["", "Arguments", "---------"]
    lines += [f"{name} : {_kind(v)}" for name, v in zip(source.parameters, program.inputs)]
    lines += ["", "Results", "-------"]
    for (name, place), v in zip(results, program.outputs):
        what = "" if place is None else f"    the gradient with respect to `{source.parameters[place]}`"
        lines.append(f"{name} : {_kind(v)}")
        if what:
            lines.append(what)
    lines += ["", origin, "", f"    {command}", ""]
    lines.append(
        "The function takes arrays of these shapes and dtypes, writes to none of them, and returns new ones. Run the module to test it."
    )
    return "\n".join(lines) + '\n"""\n\n'


def _statics(template: Any) -> list[str]:
    """Print the arguments that are not arrays, as in the call."""
    if template is None:
        return []
    _, args, kwargs = template
    found = [repr(t[2]) for t in args[1:] if t is not None and t[0] == "static"]
    return found + [f"{k}={t[2]!r}" for k, t in zip(kwargs[1], kwargs[2:]) if t is not None and t[0] == "static"]


def _kind(v: Variable) -> str:
    return f"{v.dtype}, shape {v.shape}"


def _constant(name: str, raw: Any) -> str:
    """Print a constant as a literal, or as a call that makes an equal array; raise ValueError if it has no such text."""
    dtype = _numpy_name(raw.dtype.name)
    if not raw.size:  # lists do not show all its lengths
        return f"np.zeros({tuple(raw.shape)}, np.{dtype})"
    if raw.size > _SMALL:
        first = raw.flat[0]
        if raw.tobytes() == first.tobytes() * raw.size:
            return f"np.full({tuple(raw.shape)}, {text_of(first.item(), repr)}, np.{dtype})"
        if raw.ndim == 1 and raw.dtype.kind in "iu" and (raw[1:] - raw[:-1] == 1).all():
            return f"np.arange({int(raw[0])}, {int(raw[-1]) + 1}, dtype=np.{dtype})"
        if raw.ndim == 2 and (raw.diagonal() == 1).all() and (raw != 0).sum() == min(raw.shape):
            return f"np.eye({raw.shape[0]}, {raw.shape[1]}, dtype=np.{dtype})"
        msg = (
            f"export: the function uses an array of shape {tuple(raw.shape)} and dtype {raw.dtype} that is not an argument, and too large "
            f"for a text (more than {_SMALL} elements); pass it as an argument"
        )
        raise ValueError(msg)

    def unknown(x: Any) -> str:
        msg = f"export: the constant {name!r} holds {x!r}, which has no text"
        raise ValueError(msg)

    return f"np.array({text_of(raw.tolist(), unknown)}, np.{dtype})"


def _example(program: Program, flat: list[Any]) -> str:
    """Print a function that draws arguments in the ranges of the examples."""
    doc = '    """Return random arguments, in the ranges of those with which this module was exported."""'
    lines = ["def _example(seed):", doc, "    rng = np.random.default_rng(seed)"]
    draws = [_draw(v, raw) for v, raw in zip(program.inputs, flat)]
    lines.append(f"    return [{draws[0]}]" if len(draws) == 1 else "    return [\n" + "".join(f"        {d},\n" for d in draws) + "    ]")
    return "\n".join(lines) + "\n\n\n"


def _draw(v: Variable, raw: Any) -> str:
    shape = f"{v.shape}"
    if not v.size:
        return f"np.zeros({shape}, np.{_numpy_name(v.dtype.name)})"
    if v.dtype.name == "bool":
        return f"rng.integers(0, 2, {shape}).astype(np.bool_)"
    if v.dtype.is_complex:
        parts = [_uniform(raw.real, shape), _uniform(raw.imag, shape)]
        return f"({parts[0]} + 1j * {parts[1]}).astype(np.{v.dtype.name})"
    if not v.dtype.differentiable:
        return f"rng.integers({int(raw.min())}, {int(raw.max())}, {shape}, dtype=np.{v.dtype.name}, endpoint=True)"
    text = _uniform(raw, shape)
    return text if v.dtype.name == "float64" and v.shape else f"np.asarray({text}, np.{v.dtype.name})"


def _uniform(raw: Any, shape: str) -> str:
    low, high = range_of(raw)
    return f"rng.uniform({low:.4g}, {high:.4g}, {shape})"


def range_of(raw: Any) -> tuple[float, float]:
    """Return the range of an example, from which the test draws numbers.

    A range of one number is extended upwards; 0.1 to 1 replaces a range that is not finite.
    """
    low, high = float(raw.min()), float(raw.max())
    if low == high:  # the example has no range
        high = low + 0.1
    if not (abs(low) < 1e300 and abs(high) < 1e300):  # also nan
        low, high = 0.1, 1.0
    return low, high


def _numpy_name(dtype: str) -> str:
    return "bool_" if dtype == "bool" else dtype


def _check(source: Source, names: list[str], places: list[int]) -> str:
    """Print the test of the module: of the gradients, which have these names, by the arguments at these places, or of the results alone."""
    own = Names(*source.parameters, source.name)
    check = own.new("check")
    if not places:
        return f'''\
def {check}(seed=0):
    """Return whether the results are finite, and no argument is written to."""
    arguments = _example(seed)
    before = [x.copy() for x in arguments]
    results = {source.name}(*arguments)
    untouched = all(np.array_equal(x, y) for x, y in zip(arguments, before))
    return untouched and all(np.all(np.isfinite(r)) for r in results)


if __name__ == "__main__":
    good = {check}()
    print("ok" if good else "FAILED")
    raise SystemExit(not good)
'''
    return f'''\
def {check}(seed=0):
    """Compare each gradient with central differences along a random direction; return whether all agree."""
    arguments = _example(seed)
    value, *gradients = {source.name}(*arguments)
    rng = np.random.default_rng(seed + 1)
    good = True
    for name, place, gradient in zip({names!r}, {places!r}, gradients):
        x = arguments[place]
        direction = rng.uniform(-1, 1, x.shape)
        if x.dtype.kind == "c":
            direction = direction + 1j * rng.uniform(-1, 1, x.shape)
        eps = max(np.finfo(x.dtype).eps, np.finfo(value.dtype).eps)

        def slope(step):
            values = []
            for moved in (x + step * direction, x - step * direction):
                others = [*arguments[:place], moved.astype(x.dtype), *arguments[place + 1 :]]
                values.append(float({source.name}(*others)[0]))
            return (values[0] - values[1]) / (2 * step)

        step = float(eps ** (1 / 3))
        near, far = slope(step), slope(2 * step)
        found = float(np.sum(np.real(np.conj(gradient) * direction), dtype=float))
        allowed = abs(near - far) + 1e2 * eps / step * (abs(float(value)) + 1) + 1e-6 * abs(near)
        agrees = abs(found - near) <= allowed
        good = good and agrees
        print(f"{{name}}: {{found:.10g}}, by central differences {{near:.10g}}: {{'ok' if agrees else 'FAILED'}}")
    return good


if __name__ == "__main__":
    raise SystemExit(not {check}())
'''
