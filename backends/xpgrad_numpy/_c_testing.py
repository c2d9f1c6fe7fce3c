"""Print the ``main`` of an exported source: the results for stored arguments, and central differences."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np

from xpgrad.programs.c.c_text import CSource
from xpgrad.programs.c.numbers import PARTS, TYPES, number_text
from xpgrad.programs.evaluation import evaluate_program
from xpgrad.programs.exporting import range_of
from xpgrad.programs.program import Program, Variable
from xpgrad.programs.scalars import FLOATS

__all__ = ["as_reals", "test_text"]

_STORED = 1024  # elements of an argument that the text holds; a larger one is drawn
_COMPARED = 64  # elements of a result that the text holds
_GAMMA = 0x9E3779B97F4A7C15


def as_reals(raw: Any, dtype: str) -> tuple[Any, str]:
    """Return a flat array of the elements as C has them, and their dtype; complex numbers are their parts in turns."""
    flat = np.ascontiguousarray(raw).ravel()
    return (flat.view(PARTS[dtype]), PARTS[dtype]) if dtype in PARTS else (flat, dtype)


def _kind(v: Variable) -> tuple[str, int]:
    """Return the dtype and the number of the elements of a variable as C has them."""
    dtype = v.dtype.name
    return (PARTS[dtype], 2 * v.size) if dtype in PARTS else (dtype, v.size)


def test_text(program: Program, source: CSource, name: str, flat: list[Any], gradients: list[tuple[int, int]], backend: Any) -> str:
    """Print the test.

    Parameters
    ----------
    program : Program
    source : CSource
    name : str
        The name of the function.
    flat : list
        Example arguments.
    gradients : list of (int, int)
        The positions of gradients among the results, and those of their arguments. The first result is the value.
    backend : Backend
        NumPy's.
    """
    inputs, outputs = source.parameters[: len(program.inputs)], source.parameters[len(program.inputs) :]
    arguments = [_Argument(v, raw, k, called) for k, (v, raw, called) in enumerate(zip(program.inputs, flat, inputs))]

    def call(moved: _Argument | None = None) -> str:
        given = ["x" if a is moved else a.array for a in arguments]
        return f"{name}({', '.join([*given, *(f'out_{o}' for o in outputs)])})"

    lines = [x for a in arguments for x in a.declaration()]
    kinds = [_kind(v) for v in program.outputs]
    lines += [f"static {TYPES[dtype]} out_{called}[{max(size, 1)}];" for (dtype, size), called in zip(kinds, outputs)]
    wanted, allowed = _results(program, [a.value for a in arguments], backend)
    checks: list[str] = []
    for (dtype, _), called, array, most in zip(kinds, outputs, wanted, allowed):
        count = min(array.size, _COMPARED)
        places = np.arange(count) * array.size // max(count, 1)
        lines.append(_array(f"want_{called}", dtype, array[places]))
        at = "i" if count == array.size else f"i * {array.size} / {count}"
        checks += [
            f"    for (int64_t i = 0; i < {count}; i++)",
            f"        if (!is_close((double)out_{called}[{at}], (double)want_{called}[i], {number_text(most, 'float64')}))",
            f'            return failed("{called}", {at}, (double)out_{called}[{at}], (double)want_{called}[i]);',
        ]
    functions = []
    for k, place in gradients:
        (dtype, size), called, argument = kinds[k], outputs[k], arguments[place]
        value = f"out_{outputs[0]}"
        functions.append(
            _MOVED.format(
                argument=inputs[place], type=TYPES[dtype], size=max(size, 1), n=size, array=argument.array, value=value,
                seed=7 + k, call=call(argument),
            )
        )  # fmt: skip
        eps = max(float(np.finfo(name).eps) for name in (dtype, kinds[0][0]))
        checks += [
            f"    slope = 0, state = {7 + k};", f"    for (int64_t i = 0; i < {size}; i++)",
            f"        slope += (double)saved_{called}[i] * (2 * draw(&state) - 1);",
            f"    if (!has_slope(slope, moved_{inputs[place]}, {eps!r}, value))",
            f'        return failed("{called}, along a direction,", 0, slope, difference(moved_{inputs[place]}, cbrt({eps!r})));',
        ]  # fmt: skip
        lines.append(f"static {TYPES[dtype]} saved_{called}[{max(size, 1)}];")
    needs_draw = bool(gradients) or any(a.is_drawn for a in arguments)
    main = ["int main(void)", "{"]
    if gradients:
        main.append("    double slope, value;")
    if needs_draw:
        main += ["    uint64_t state;", ""]
    main += [x for a in arguments for x in a.drawing()]
    main += [f"    if ({call()} != 0)", '        return failed("the status", 0, 1, 0);']
    main += checks[: 3 * len(outputs)]
    if gradients:
        main.append(f"    value = (double)out_{outputs[0]}[0];")
        for k, _ in gradients:
            main.append(f"    memcpy(saved_{outputs[k]}, out_{outputs[k]}, sizeof saved_{outputs[k]});")
    main += checks[3 * len(outputs) :]
    plural = "" if len(gradients) == 1 else "s"
    differences = f", {len(gradients)} gradient{plural} as by central differences" if gradients else ""
    main.append(f'    puts("ok: {len(outputs)} result{"" if len(outputs) == 1 else "s"} as stored{differences}");')
    main += ["    return 0;", "}"]
    head = [_HEAD, *([_DRAW] if needs_draw else []), _CLOSE, *([_SLOPE] if gradients else [])]
    return "\n".join([*head, *lines, "", *functions, *main, "#endif", ""])


class _Argument:
    """An argument of the test: near the example, in its range; small ones are stored, and larger ones drawn."""

    def __init__(self, v: Variable, raw: Any, position: int, called: str) -> None:
        self.seed, self.array = 1000 + position, f"in_{called}"
        self.dtype, self.size = _kind(v)
        self.is_drawn = self.size > _STORED
        (raw, dtype), size = as_reals(raw, v.dtype.name), self.size
        self.low, self.high = (0.0, 1.0)
        if dtype in FLOATS and size:
            self.low, self.high = range_of(raw)
        elif size and dtype != "bool":
            self.low, self.high = int(raw.min()), int(raw.max())
        uniform = _draw(self.seed, size)
        if dtype in FLOATS:
            value = self.low + (self.high - self.low) * uniform
            if not self.is_drawn and np.isfinite(raw).all():  # near the example, but at no kink where it may be
                value = raw + 0.05 * (value - raw)
        elif dtype == "bool":
            value = uniform < 0.5 if self.is_drawn else raw
        else:
            value = self.low + np.floor(uniform * (self.high - self.low + 1)).astype(np.int64) if self.is_drawn else raw
        self.elements: Any = np.asarray(value).astype(dtype)
        self.value: Any = self.elements.view(v.dtype.name).reshape(v.shape)

    def declaration(self) -> list[str]:
        if self.is_drawn:
            return [f"static {TYPES[self.dtype]} {self.array}[{self.size}];"]
        return [_array(self.array, self.dtype, self.elements)]

    def drawing(self) -> list[str]:
        """Return the lines that draw its elements; none if they are stored."""
        if not self.is_drawn:
            return []
        dtype = self.dtype
        if dtype in FLOATS:
            low, width = number_text(self.low, "float64"), number_text(self.high - self.low, "float64")
            element = f"({TYPES[dtype]})({low} + {width} * draw(&state))"
        elif dtype == "bool":
            element = "draw(&state) < 0.5"
        else:
            element = f"({TYPES[dtype]})({number_text(self.low, 'int64')} + (int64_t)(draw(&state) * {float(self.high - self.low + 1)!r}))"
        return [f"    state = {self.seed};", f"    for (int64_t i = 0; i < {self.size}; i++)", f"        {self.array}[i] = {element};"]


def _draw(seed: int, count: int) -> Any:
    """Return the numbers that ``draw`` in the printed text returns for a seed."""
    with np.errstate(over="ignore"):
        z = np.uint64(seed) + np.uint64(_GAMMA) * np.arange(1, count + 1, dtype=np.uint64)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((z ^ (z >> np.uint64(31))) >> np.uint64(11)).astype(np.float64) / 2.0**53


def _results(program: Program, arguments: list[Any], backend: Any) -> tuple[list[Any], list[float]]:
    """Return the elements of the results, and by how much others may differ: what small relative errors of arguments lead to."""

    def run(given: list[Any]) -> list[Any]:
        return [as_reals(x, v.dtype.name)[0] for x, v in zip(evaluate_program(program, backend, given), program.outputs)]

    with np.errstate(all="ignore"):
        wanted = run(arguments)
        moved = []
        for seed in (1, 2):
            signs = [np.where(_draw(seed + 10 * k, v.size) < 0.5, -4, 4).reshape(v.shape) for k, v in enumerate(program.inputs)]
            others = [
                (x * (1 + s * np.finfo(x.dtype).eps)).astype(x.dtype) if x.dtype.kind in "fc" else x for x, s in zip(arguments, signs)
            ]
            moved.append(run(others))
        kinds = [dtype for v in (*program.inputs, *program.outputs) if (dtype := _kind(v)[0]) in FLOATS]
        eps = max((float(np.finfo(kind).eps) for kind in kinds), default=0.0)
        allowed = []
        for k, x in enumerate(wanted):
            if x.dtype.name not in FLOATS:
                allowed.append(0.0)
                continue
            largest = np.abs(x[np.isfinite(x)]).max(initial=0.0)
            spread = max(np.nan_to_num(np.abs(other[k].astype(float) - x), posinf=0.0).max(initial=0.0) for other in moved)
            allowed.append(float(f"{100 * spread + 10 * eps ** (2 / 3) * float(largest):.2g}"))
    return wanted, allowed


def _array(name: str, dtype: str, elements: Any) -> str:
    """Print an array with its elements."""
    text = ", ".join(number_text(x, dtype) for x in elements.tolist()) or "0"
    if len(text) > 70:
        text = "\n" + textwrap.fill(text, 110, initial_indent="    ", subsequent_indent="    ") + "\n"
    return f"static const {TYPES[dtype]} {name}[{max(elements.size, 1)}] = {{{text}}};"


_HEAD = """\
#ifdef XPGRAD_MAIN
#include <stdio.h>
#include <string.h>
"""
_DRAW = """\
/* A number between 0 and 1 from the generator "splitmix64". */
static double draw(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);

    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return (double)((z ^ (z >> 31)) >> 11) / 9007199254740992.0;
}
"""
_CLOSE = """\
static bool is_close(double found, double wanted, double allowed)
{
    return found == wanted || (isnan(found) && isnan(wanted)) || fabs(found - wanted) <= allowed;
}

static int failed(const char *what, int64_t place, double found, double wanted)
{
    printf("FAILED: element %ld of %s is %.17g instead of %.17g\\n", (long)place, what, found, wanted);
    return 1;
}
"""
_SLOPE = """\
static double difference(double (*moved)(double), double step)
{
    return (moved(step) - moved(-step)) / (2 * step);
}

/* Whether central differences of a function agree with its slope. */
static bool has_slope(double slope, double (*moved)(double), double eps, double value)
{
    const double step = cbrt(eps), once = difference(moved, step), twice = difference(moved, 2 * step);

    return fabs(slope - once) <= fabs(once - twice) + 100 * eps / step * (fabs(value) + 1) + 1e-6 * fabs(once);
}
"""
_MOVED = """\
/* The value where `{argument}` has moved by steps along a random direction. */
static double moved_{argument}(double step)
{{
    static {type} x[{size}];
    uint64_t state = {seed};

    for (int64_t i = 0; i < {n}; i++)
        x[i] = ({type})((double){array}[i] + step * (2 * draw(&state) - 1));
    return {call} == 0 ? (double){value}[0] : NAN;
}}
"""
