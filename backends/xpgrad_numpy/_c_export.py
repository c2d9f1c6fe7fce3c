"""Print a function in C as a source and a header: its documentation, its constants, and a test."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator
from typing import Any

import numpy as np

from xpgrad.programs.c.c_text import CSource, c_source
from xpgrad.programs.c.compiler import preamble
from xpgrad.programs.c.identifiers import Identifiers
from xpgrad.programs.c.layout import comment_text
from xpgrad.programs.c.numbers import PARTS, TYPES, number_text
from xpgrad.programs.captured import CapturedGradients
from xpgrad.programs.lowering import lower
from xpgrad.programs.native.parts import can_lower
from xpgrad.programs.program import Operation, Program, Variable, change_inner
from xpgrad.programs.regions import Unsupported
from xpgrad.programs.scalars import SIZES
from xpgrad.programs.simplify import with_numbers, without_dead_code
from xpgrad_numpy._c_testing import as_reals, test_text

__all__ = ["elements_text", "export_c"]

_LARGEST = 4096  # elements of a constant that a text can hold
_USE = """\
Arrays have their rows one after the other. Results must not share memory with arguments or each other. The function returns 0, or 1 if an
index is out of bounds, or 2 if there is no memory; the results are then undefined. Several threads may call it at once.

Compile, and link with -lm:
    cc -O3 -march=native -fno-math-errno -c STEM.c

-fopenmp-simd makes sums faster, -fopenmp divides loops over large arrays between threads, and -DXPGRAD_BLAS multiplies matrices by
cblas_dgemm, with cblas.h and the BLAS that you link with. With GCC on x86-64 and glibc 2.35 or newer, -DXPGRAD_LIBMVEC -lmvec computes
functions such as exp for vectors of numbers.

Test, against stored results and central differences:
    cc -O3 -march=native -fno-math-errno -DXPGRAD_MAIN STEM.c -lm -o STEM_test && ./STEM_test"""
_SMALL = 64  # elements from which a constant of equal numbers is a fill


def export_c(captured: CapturedGradients, stem: str, origin: list[str]) -> dict[str, str]:
    """Return the source and the header of a function, by the suffixes of their files.

    Parameters
    ----------
    captured : CapturedGradients
    stem : str
        The name of the files without a suffix.
    origin : list of str
        Lines that say what the files were made from.

    Raises
    ------
    ValueError
        An operation or a dtype has no C, or a constant is too large.
    """
    program = _prepared(captured.program)
    _check_operations(program)
    try:
        lowered = lower(program, loops=True)
    except Unsupported as exc:
        msg = f"export: no C is known for {exc}; export with target='python'"
        raise ValueError(msg) from None
    constants = {v: elements_text(_checked(v, raw), v.dtype.name) for v, raw in every_constant(program).items()}
    name = Identifiers().new(captured.name)
    source = c_source(lowered, name, [name for name, _ in captured.results], constants)
    about = _about(captured, program, source, stem, origin)
    gradients = [(k, place) for k, (_, place) in enumerate(captured.results) if place is not None]
    test = test_text(program, source, name, captured.flat, gradients, captured.made.cls.backend)
    text = f"{about}\n{preamble()}\n{source.prototype};\n\n{source.text}\n{test}"
    guard = f"XPGRAD_{Identifiers().new(stem).upper()}_H"
    header = (
        f"{about}\n#ifndef {guard}\n#define {guard}\n\n#include <stdint.h>\n\n#ifdef __cplusplus\nextern \"C\" {{\n#endif\n\n"
        f"{source.prototype};\n\n#ifdef __cplusplus\n}}\n#endif\n\n#endif\n"
    )  # fmt: skip
    return {".c": text, ".h": header}


def _prepared(program: Program) -> Program:
    """Return a program, and programs of its loops and branches, in which constants are numbers and fills where possible."""
    return change_inner(with_numbers(without_dead_code(_with_fills(program))), _prepared)


def every_program(program: Program) -> Iterator[Program]:
    """Yield a program and those that its loops and branches run."""
    yield program
    for o in program.operations:
        for inside in o.options["inner"].programs if "inner" in o.options else ():
            yield from every_program(inside)


def every_constant(program: Program) -> dict[Variable, Any]:
    """Return the constants of a program and of those that its loops and branches run."""
    return {v: raw for p in every_program(program) for v, raw in p.constants.items()}


def _with_fills(program: Program) -> Program:
    """Return a program in which large constants of equal numbers are fills, and large ranges of integers are sums of short ones."""
    constants: dict[Variable, Any] = {}
    made: list[Operation] = []
    for v, raw in program.constants.items():
        array = np.asarray(raw)
        is_known = array.size > _SMALL and (v.dtype.is_complex or v.dtype.name in SIZES)
        if is_known and array.tobytes() == array.flat[0].tobytes() * array.size:
            made.append(Operation("full", (v.shape, array.flat[0].item()), {"dtype": v.dtype}, (v,)))
        elif is_known and array.ndim == 1 and array.dtype.kind == "i" and (np.diff(array) == 1).all():
            made += _range(v, int(array[0]), array.dtype, constants)
        else:
            constants[v] = raw
    return Program(program.inputs, constants, [*made, *program.operations], program.outputs)


def _range(v: Variable, start: int, dtype: Any, constants: dict[Variable, Any]) -> list[Operation]:
    """Return the operations that make a range of integers, as the numbers of the steps of a loop are; add what they add to `constants`."""
    width = math.isqrt(v.size - 1) + 1
    rows = -(-v.size // width)
    first, second = Variable((rows, 1), v.dtype), Variable((1, width), v.dtype)
    constants[first] = (start + width * np.arange(rows)).astype(dtype).reshape(rows, 1)
    constants[second] = np.arange(width).astype(dtype).reshape(1, width)
    grid, flat = Variable((rows, width), v.dtype), Variable((rows * width,), v.dtype)
    return [
        Operation("add", (first, second), {}, (grid,)),
        Operation("reshape", (grid, flat.shape), {}, (flat,)),
        Operation("index_basic", (flat, (slice(0, v.size),)), {}, (v,)),
    ]


def _check_operations(program: Program) -> None:
    """Raise ValueError if an operation or an array has no C."""
    unknown: dict[str, None] = {}
    for p in every_program(program):
        for v in (*p.inputs, *p.constants, *(v for o in p.operations for v in o.results)):
            if not v.dtype.is_complex and v.dtype.name not in SIZES:
                msg = (
                    f"export: C has no arrays of {v.dtype}, but of {', '.join(SIZES)}, complex128 and complex64; export with "
                    "target='python', or convert arrays outside"
                )
                raise ValueError(msg)
        unknown.update((o.name, None) for o in p.operations if "inner" not in o.options and not can_lower(o))
    if unknown:
        msg = (
            f"export: {', '.join(f'`{name}`' for name in unknown)}: no C is known; compute it outside, and pass the result as an "
            "argument, or export with target='python'"
        )
        raise ValueError(msg)


def _checked(v: Variable, raw: Any) -> Any:
    if v.size > _LARGEST:
        msg = (
            f"export: the function uses an array of shape {v.shape} and dtype {v.dtype} that is not an argument, and too large for a text "
            f"(more than {_LARGEST} elements); pass it as an argument"
        )
        raise ValueError(msg)
    return np.asarray(raw)


def elements_text(raw: Any, dtype: str) -> str:
    """Print the elements of an array as C initialises one; a complex number is its two parts."""
    raw, dtype = as_reals(raw, dtype)
    elements = ", ".join(number_text(x, dtype) for x in raw.ravel().tolist()) or "0"
    if len(elements) <= 80:
        return f"{{{elements}}}"
    return "{\n" + textwrap.fill(elements, 110, initial_indent="        ", subsequent_indent="        ") + "\n    }"


def _about(captured: CapturedGradients, program: Program, source: CSource, stem: str, origin: list[str]) -> str:
    """Print what both files begin with."""
    title, scalar = captured.title, captured.made.scalar
    lines = [f"{f'The value of `{title}` and its gradients' if scalar else f'The results of `{title}`'}, in C99.", ""]
    lines += [f"    {line}" for line in f"{source.prototype};".split("\n")]
    lines += ["", "Arguments"]
    count = len(program.inputs)
    lines += [f"    {name} : {_kind(v)}" for name, v in zip(source.parameters, program.inputs)]
    lines += ["", "Results, for which the caller has memory"]
    for name, v, (_, place) in zip(source.parameters[count:], program.outputs, captured.results):
        lines.append(f"    {name} : {_kind(v)}" + ("" if place is None else f", the gradient with respect to `{source.parameters[place]}`"))
    lines += ["", *_USE.replace("STEM", stem).split("\n"), "", *origin]
    return "/* " + "\n".join(f"   {comment_text(line)}".rstrip() for line in lines).lstrip() + "\n*/\n"


def _kind(v: Variable) -> str:
    count = "one number" if not v.shape else f"shape {v.shape}"
    if v.dtype.is_complex:
        return f"{TYPES[PARTS[v.dtype.name]]}, {count}, complex: a real and an imaginary part in turns"
    return f"{TYPES[v.dtype.name] if v.dtype.name != 'bool' else 'uint8_t, 0 or 1'}, {count}"
