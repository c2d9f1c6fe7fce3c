"""Print nests, checks and products as functions in LLVM's language.

Each is ``i32 name(ptr pointers, ptr numbers)`` in a separate module. The addresses of its arrays, and lengths and strides that are not
small, are arguments, so that arrays of other shapes often use the same function. It returns 0, or 1 if an index is out of bounds.

Floating-point arithmetic is as written, as in NumPy: only additions of a sum within a chunk may be reordered. So each elementwise result
has NumPy's bits, except those of functions such as ``exp``.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any

from xpgrad.programs.native.functions import has_function, own_function
from xpgrad.programs.nests import SMALL, write_nest
from xpgrad.programs.regions import Advance, Check, Lowered, Nest, Product, Region, Statement
from xpgrad.programs.scalars import FLOATS, SCALARS, SIZES
from xpgrad.programs.views import Buffer, View

__all__ = ["Kernel", "Target", "region_kernel"]

_TYPES = {"float64": "double", "float32": "float", "int64": "i64", "int32": "i32", "bool": "i1"}
#: The types in memory.
_STORED = {**_TYPES, "bool": "i8"}
_PIECE = ("%start", "%stop", "%piece")
_PURE = "nounwind willreturn memory(none)"


@dataclass(frozen=True, slots=True)
class Target:
    """Properties of the processor and the C library that the text depends on.

    Attributes
    ----------
    vector_bits : int
        The width of vectors.
    vector_functions : dict
        The vector variants of C's functions, as ``vector-function-abi-variant`` lists them, with the functions' types.
    own_functions : bool
        Whether functions without vector variants are the ones of `functions` instead of C's.
    fuses : bool
        Whether the processor multiplies and adds in one instruction.
    """

    vector_bits: int
    vector_functions: dict[str, list[tuple[int, str]]]
    own_functions: bool = False
    fuses: bool = False


@dataclass(frozen=True, slots=True)
class Kernel:
    """The text of one function, and its arguments for one region.

    Attributes
    ----------
    text : str
        A module, in which ``@NAME`` stands for the function.
    pointers : list of (Buffer, int)
        Buffers, and the offsets in elements.
    numbers : list of list of int
        For each piece of a nest the numbers with which the function is called; for other regions one list.
    literals : list of (int, str)
        The numbers among operands that are arguments, after the others: their positions among these numbers, and their dtypes.
    """

    text: str
    pointers: list[tuple[Buffer, int]]
    numbers: list[list[int]]
    literals: list[tuple[int, str]] = field(default_factory=list)

    def numbers_of(self, advance: Advance, step: int) -> list[list[int]]:
        """Return the numbers of one step of a loop."""
        last = [_bits(advance.literals[position][step], dtype) for position, dtype in self.literals]
        return [[*(n + step * advance.numbers.get(n, 0) for n in piece), *last] for piece in self.numbers]


def region_kernel(lowered: Lowered, region: Region, target: Target, advance: Advance | None = None) -> Kernel:
    """Print a region as a function, with its arguments.

    Parameters
    ----------
    lowered : Lowered
    region : Region
    target : Target
    advance : Advance or None
        How the region changes, if it is part of a loop.
    """
    if isinstance(region, Product):
        return _product(region)
    writer = _Writer(target, frozenset() if advance is None else frozenset(advance.literals))
    if isinstance(region, Check):
        return writer.kernel(_check(region, writer))
    assert isinstance(region, Nest)  # machine code has no loops and branches of programs
    writer.count_pieces = region.pieces
    write_nest(lowered, region, writer)
    return writer.kernel("0")


class _Writer:
    """The dialect that writes LLVM IR: values are its names or literals."""

    def __init__(self, target: Target, changing: frozenset[int]) -> None:
        self.target = target
        self.changing = changing  # the positions of numbers among operands that are arguments
        self.position = 0
        self.literals: dict[int, str] = {}  # the dtypes of these arguments, by position
        self.lines: list[str] = []
        self.variables: list[str] = []
        self.declared: dict[str, str] = {}  # functions of LLVM and C
        self.vectors: dict[str, str] = {}  # variants for vectors
        self.attributes: dict[str, str] = {}  # of C's functions
        self.pointers: dict[tuple[Buffer, int], str] = {}
        self.written: set[Buffer] = set()
        self.lengths: list[int] = []
        self.strides: dict[int, str] = {}
        self.pieces: list[list[int]] = [[]]
        self.loops: list[tuple[str, str, str, int, str, bool]] = []
        self.count = 0
        self.count_pieces = 1

    # -- the function --------------------------------------------------------------------------------------------------------

    def kernel(self, result: str) -> Kernel:
        """Return the function, whose body ends with a result of type i32."""
        buffers = [buffer for buffer, _ in self.pointers]
        alone = [b not in self.written or buffers.count(b) == 1 for b in buffers]
        names = [*self.pointers.values()]
        numbers = [*_PIECE[: len(self.pieces[0])], *(f"%n{i}" for i in range(len(self.lengths))), *self.strides.values()]
        numbers += [f"%l{position}" for position in self.literals]
        parameters = [f"ptr {'noalias ' if a else ''}{p}" for p, a in zip(names, alone)] + [f"i64 {n}" for n in numbers]
        arguments = [f"ptr {p}" for p in names] + [f"i64 {n}" for n in numbers]
        loads = []
        for kind, array, values in (("ptr", "%pointers", names), ("i64", "%numbers", numbers)):
            for i, value in enumerate(values):
                at = f"%at.{value[1:]}"
                loads += [f"  {at} = getelementptr {kind}, ptr {array}, i64 {i}", f"  {value} = load {kind}, ptr {at}"]
        text = [
            *self.declared.values(),
            *self.vectors.values(),
            *self.kept(),
            f"define internal i32 @NAME.body({', '.join(parameters)}) #0 {{",
            "entry:",
            *self.variables,
            *self.lines,
            f"  ret i32 {result}",
            "}",
            "define i32 @NAME(ptr %pointers, ptr %numbers) {",
            *loads,
            f"  %result = call i32 @NAME.body({', '.join(arguments)})",
            "  ret i32 %result",
            "}",
            f'attributes #0 = {{ nounwind noinline "prefer-vector-width"="{self.target.vector_bits}" }}',
            *(f"attributes #{k} = {{ {a} }}" for k, a in enumerate(self.attributes.values(), 1)),
            "!0 = distinct !{}",
            '!1 = !{!"llvm.loop.parallel_accesses", !0}',
            *(f"!{k} = distinct !{{!{k}, !1}}" for k in range(2, 2 + self.vector_loops())),
        ]
        given = [[*piece, *self.lengths, *self.strides] for piece in self.pieces]
        return Kernel("\n".join(text) + "\n", list(self.pointers), given, list(self.literals.items()))

    def kept(self) -> list[str]:
        """Return the lines that make LLVM keep vector variants of functions, which are unused until loops are vectorised."""
        names = ", ".join(f"ptr @{name}" for name in self.vectors)
        array = f"@llvm.compiler.used = appending global [{len(self.vectors)} x ptr] [{names}]"
        return [f'{array}, section "llvm.metadata"'] if self.vectors else []

    def vector_loops(self) -> int:
        return sum("!llvm.loop" in line for line in self.lines)

    def new(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def put(self, line: str) -> None:
        self.lines.append(f"  {line}")

    def emit(self, right: str) -> str:
        """Add an instruction with a result; return its name."""
        name = self.new()
        self.lines.append(f"  {name} = {right}")
        return name

    # -- loops ---------------------------------------------------------------------------------------------------------------

    def begin_statement(self, statement: Statement) -> None:
        """Do nothing: this text does not use the user's names."""

    def variable(self, kind: str, value: str) -> str:
        """Return a new variable on the stack with an initial value."""
        name = self.new()
        self.variables.append(f"  {name} = alloca {kind}")
        self.put(f"store {kind} {value}, ptr {name}")
        return name

    def extent(self, length: int) -> str:
        """Return a length: a number if it is small, else the name of an argument."""
        if length <= SMALL:
            return str(length)
        self.lengths.append(length)
        return f"%n{len(self.lengths) - 1}"

    def piece(self, length: int) -> tuple[str, str, str]:
        """Plan pieces of a loop of this length; return the LLVM names of a piece's start, its end and its number, which are arguments."""
        count = self.count_pieces
        self.pieces = [[length * k // count, length * (k + 1) // count, k] for k in range(count)]
        return _PIECE

    def open_loop(self, start: str, end: str, step: int, *, vector: bool) -> str:
        """Begin a loop; return its counter."""
        slot = self.variable("i64", start)
        self.count += 1
        head, body, after = f"head{self.count}", f"body{self.count}", f"after{self.count}"
        self.put(f"br label %{head}")
        self.lines.append(f"{head}:")
        counter = self.emit(f"load i64, ptr {slot}")
        more = self.emit(f"icmp slt i64 {counter}, {end}")
        self.put(f"br i1 {more}, label %{body}, label %{after}")
        self.lines.append(f"{body}:")
        self.loops.append((head, after, slot, step, counter, vector))
        return counter

    def close_loop(self) -> None:
        """End the innermost loop."""
        head, after, slot, step, counter, vector = self.loops.pop()
        following = self.emit(f"add nuw nsw i64 {counter}, {step}")
        self.put(f"store i64 {following}, ptr {slot}")
        self.put(f"br label %{head}" + (f", !llvm.loop !{2 + self.vector_loops()}" if vector else ""))
        self.lines.append(f"{after}:")

    def chunk_end(self, start: str, chunk: int, end: str) -> str:
        """Return where a chunk ends: `chunk` after `start`, or at `end` if that comes first."""
        full = self.emit(f"add nuw nsw i64 {start}, {chunk}")
        inside = self.emit(f"icmp slt i64 {full}, {end}")
        return self.emit(f"select i1 {inside}, i64 {full}, i64 {end}")

    # -- memory --------------------------------------------------------------------------------------------------------------

    def address(self, buffer: Buffer, offset: int, terms: list[tuple[str, int]]) -> str:
        """Return a pointer to an element."""
        odd = offset % 2 if buffer.is_paired else 0  # NB: one base for both parts, so that LLVM sees that they are neighbours
        base = self.pointers.setdefault((buffer, offset - odd), f"%p{len(self.pointers)}")
        index = "0"
        for counter, stride in terms:
            step = counter
            if stride != 1:
                step = self.emit(f"mul nsw i64 {counter}, {self.stride(stride)}")
            index = step if index == "0" else self.emit(f"add nsw i64 {index}, {step}")
        address = self.emit(f"getelementptr inbounds {_STORED[buffer.dtype]}, ptr {base}, i64 {index}")
        return self.emit(f"getelementptr inbounds {_STORED[buffer.dtype]}, ptr {address}, i64 1") if odd else address

    def stride(self, stride: int) -> str:
        """Return a stride: a number if it is small, else the name of an argument."""
        return str(stride) if abs(stride) <= SMALL else self.strides.setdefault(stride, f"%s{len(self.strides)}")

    def access(self) -> str:
        return ", !llvm.access.group !0" if self.loops and self.loops[-1][-1] else ""

    def load(self, buffer: Buffer, offset: int, terms: list[tuple[str, int]]) -> str:
        """Return the value of an element; a bool as i1."""
        value = self.emit(f"load {_STORED[buffer.dtype]}, ptr {self.address(buffer, offset, terms)}{self.access()}")
        return self.emit(f"icmp ne i8 {value}, 0") if buffer.dtype == "bool" else value

    def store(self, buffer: Buffer, offset: int, terms: list[tuple[str, int]], value: str) -> None:
        """Write an element."""
        self.written.add(buffer)
        address = self.address(buffer, offset, terms)
        if buffer.dtype == "bool":
            value = self.emit(f"zext i1 {value} to i8")
        self.put(f"store {_STORED[buffer.dtype]} {value}, ptr {address}{self.access()}")

    def wrap_index(self, index: str, dtype: str, length: int) -> str:
        """Return an index as an i64; the length is added if it is negative."""
        if dtype != "int64":
            index = self.emit(f"sext {_TYPES[dtype]} {index} to i64")
        negative = self.emit(f"icmp slt i64 {index}, 0")
        from_end = self.emit(f"add i64 {index}, {self.stride(length)}")
        return self.emit(f"select i1 {negative}, i64 {from_end}, i64 {index}")

    # -- accumulators ----------------------------------------------------------------------------------------------------------

    def new_accumulator(self, dtype: str, value: str) -> str:
        """Return a new accumulator with an initial value."""
        return self.variable(_TYPES[dtype], value)

    def accumulate(self, accumulator: str, op: str, dtype: str, value: str) -> None:
        """Update an accumulator with a value, by the reduction `op`; additions may be reordered."""
        old = self.accumulated(accumulator, dtype)
        if op == "sum" and dtype in FLOATS:
            new = self.emit(f"fadd reassoc {_TYPES[dtype]} {old}, {value}")
        else:
            new = self.compute(
                {"sum": "add", "prod": "multiply", "max": "maximum", "min": "minimum"}[op], dtype, [old, value], [dtype, dtype]
            )
        self.put(f"store {_TYPES[dtype]} {new}, ptr {accumulator}")

    def accumulated(self, accumulator: str, dtype: str) -> str:
        """Return the value of an accumulator."""
        return self.emit(f"load {_TYPES[dtype]}, ptr {accumulator}")

    # -- scalars -------------------------------------------------------------------------------------------------------------

    def number(self, value: Any, dtype: str) -> str:
        """Return a number as LLVM writes it."""
        if dtype in FLOATS:
            value = float(value)
            if dtype == "float32":
                value = _to_single(value)
            return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"
        if dtype == "bool":
            return "true" if value else "false"
        return str(int(value))

    def operand(self, value: Any, dtype: str) -> str:
        """Return the next number among the operands of statements: as LLVM writes it, or an argument."""
        position = self.position
        self.position += 1
        if position not in self.changing:
            return self.number(value, dtype)
        self.literals[position] = dtype
        bits = self.emit(f"add i64 %l{position}, 0")
        if SIZES[dtype] == 4:
            bits = self.emit(f"trunc i64 {bits} to i32")
        if dtype == "bool":
            return self.emit(f"icmp ne i64 {bits}, 0")
        return self.emit(f"bitcast i{8 * SIZES[dtype]} {bits} to {_TYPES[dtype]}")

    def compute(self, op: str, dtype: str, args: list[Any], kinds: list[Any]) -> str:
        """Return the result of a scalar operation."""
        if op == "cast":
            return self.cast(args[0], kinds[0], dtype)
        scalar = SCALARS[op]
        kind = dtype if scalar.makes == "same" else next(k for k in kinds if k is not None)
        if op == "pow" and kinds[1] is None and args[1] in _POWERS:
            self.position += 1
            return _POWERS[args[1]](self, kind, args)
        a = [x if k is not None else self.operand(x, kind) for x, k in zip(args, kinds)]
        t, floating = _TYPES[kind], kind in FLOATS
        if scalar.form == "arithmetic":
            return self.emit(f"{'f' if floating else ''}{scalar.code} {t} {a[0]}, {a[1]}")
        if scalar.form == "comparison":
            return self.compare(scalar.code, kind, a[0], a[1])
        if scalar.form == "bits":
            return self.emit(f"{scalar.code} {t} {a[0]}, {a[1]}")
        if scalar.form in ("function", "precise"):
            return self.call(scalar.code, kind, a, precise=scalar.form == "precise")
        if scalar.form == "rounding":
            return self.intrinsic(f"llvm.{scalar.code}.f{32 if kind == 'float32' else 64}", t, [f"{t} {x}" for x in a])
        return _SPECIAL[scalar.code](self, kind, a)

    def compare(self, predicate: str, kind: str, a: str, b: str) -> str:
        """Return the result of a comparison; with nan only "ne" is true."""
        if kind in FLOATS:
            return self.emit(f"fcmp {'u' if predicate == 'ne' else 'o'}{predicate} {_TYPES[kind]} {a}, {b}")
        sign = "" if predicate in ("eq", "ne") else "u" if kind == "bool" else "s"
        return self.emit(f"icmp {sign}{predicate} {_TYPES[kind]} {a}, {b}")

    def is_nan(self, kind: str, a: str) -> str:
        """Return the result of the test whether a number is nan."""
        return self.emit(f"fcmp uno {_TYPES[kind]} {a}, {a}")

    def select(self, condition: str, a: str, b: str, kind: str) -> str:
        """Return `a` if a condition holds, else `b`."""
        return self.emit(f"select i1 {condition}, {_TYPES[kind]} {a}, {_TYPES[kind]} {b}")

    def intrinsic(self, name: str, t: str, args: list[str]) -> str:
        """Return the result of an intrinsic function of LLVM."""
        self.declared[name] = f"declare {t} @{name}({', '.join(x.split(' ')[0] for x in args)})"
        return self.emit(f"call {t} @{name}({', '.join(args)})")

    def call(self, name: str, dtype: str, args: list[str], *, precise: bool = False) -> str:
        """Return the result of a function of C's library, or of our own if C's has no variants for vectors and the target has ours.

        If `precise` is true, the variants of C's are not used.
        """
        t, count, base = _TYPES[dtype], len(args), name
        name = f"{name}f" if dtype == "float32" else name
        variants = [] if precise else self.target.vector_functions.get(name, [])
        if not variants and self.target.own_functions and has_function(base):
            symbol, texts, variants_of_texts = own_function(base, dtype, count, self.target.vector_bits)
            self.declared.update(texts)
            self.vectors.update(variants_of_texts)
            return self.emit(f"call {t} @{symbol}({', '.join(f'{t} {x}' for x in args)})")
        self.declared[name] = f"declare {t} @{name}({', '.join([t] * count)})"
        attributes = _PURE
        if variants:
            listed = ",".join(f"_ZGV_LLVM_N{n}{'v' * count}_{name}({symbol})" for n, symbol in variants)
            attributes += f' "vector-function-abi-variant"="{listed}"'
            for n, symbol in variants:
                vector = f"<{n} x {t}>"
                self.vectors[symbol] = f"declare {vector} @{symbol}({', '.join([vector] * count)}) {_PURE}"
        key = f"precise {name}" if precise else name
        self.attributes[key] = attributes
        number = 1 + list(self.attributes).index(key)
        return self.emit(f"call {t} @{name}({', '.join(f'{t} {x}' for x in args)}) #{number}")

    def cast(self, value: str, source: str, dtype: str) -> str:
        """Return a value in another dtype."""
        if source == dtype:
            return value
        s, t = _TYPES[source], _TYPES[dtype]
        if dtype == "bool":
            return self.compare("ne", source, value, self.number(0, source))
        if source in FLOATS:
            return self.emit(f"{'fptrunc' if dtype == 'float32' else 'fpext'} {s} {value} to {t}")
        if dtype in FLOATS:
            return self.emit(f"{'uitofp' if source == 'bool' else 'sitofp'} {s} {value} to {t}")
        return self.emit(f"{'zext' if source == 'bool' else 'sext' if dtype == 'int64' else 'trunc'} {s} {value} to {t}")


def _bits(value: Any, dtype: str) -> int:
    """Return the bits of a number as an integer."""
    if dtype not in FLOATS:
        return int(value)
    if dtype == "float32":
        return int(struct.unpack("<i", struct.pack("<f", _to_single(float(value))))[0])
    return int(struct.unpack("<q", struct.pack("<d", value))[0])


def _to_single(value: float) -> float:
    """Return a number in single precision; infinity beyond its range."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


# -- scalar operations that are more than one instruction -----------------------------------------------------------------


def _square(w: _Writer, kind: str, a: list[str]) -> str:
    return w.emit(f"{'fmul' if kind in FLOATS else 'mul'} {_TYPES[kind]} {a[0]}, {a[0]}")


def _cube(w: _Writer, kind: str, a: list[str]) -> str:
    return w.emit(f"fmul {_TYPES[kind]} {_square(w, kind, a)}, {a[0]}")


def _reciprocal(w: _Writer, kind: str, a: list[str]) -> str:
    return w.emit(f"fdiv {_TYPES[kind]} {w.number(1, kind)}, {a[0]}")


def _multiply_add(w: _Writer, kind: str, a: list[str]) -> str:
    t = _TYPES[kind]
    if w.target.fuses:
        return w.intrinsic(f"llvm.fma.f{32 if kind == 'float32' else 64}", t, [f"{t} {x}" for x in a])
    return w.emit(f"fadd {t} {w.emit(f'fmul {t} {a[0]}, {a[1]}')}, {a[2]}")


def _root(w: _Writer, kind: str, a: list[str]) -> str:
    return w.compute("sqrt", kind, a[:1], [kind])


def _absolute(w: _Writer, kind: str, a: list[str]) -> str:
    t = _TYPES[kind]
    if kind in FLOATS:
        return w.intrinsic(f"llvm.fabs.f{32 if kind == 'float32' else 64}", t, [f"{t} {a[0]}"])
    return w.intrinsic(f"llvm.abs.{t}", t, [f"{t} {a[0]}", "i1 false"])


def _larger(w: _Writer, kind: str, a: list[str], predicate: str = "gt") -> str:
    """Return the first of two numbers if `predicate` holds or it is nan, else the second, as NumPy does for zeros of both signs."""
    first = w.compare(predicate, kind, a[0], a[1])
    if kind in FLOATS:
        first = w.emit(f"or i1 {first}, {w.is_nan(kind, a[0])}")
    return w.select(first, a[0], a[1], kind)


def _negative(w: _Writer, kind: str, a: list[str]) -> str:
    return w.emit(f"fneg {_TYPES[kind]} {a[0]}" if kind in FLOATS else f"sub {_TYPES[kind]} 0, {a[0]}")


def _sign(w: _Writer, kind: str, a: list[str]) -> str:
    zero = w.number(0, kind)
    value = w.select(w.compare("eq", kind, a[0], zero), zero, a[0], kind)
    value = w.select(w.compare("lt", kind, a[0], zero), w.number(-1, kind), value, kind)
    return w.select(w.compare("gt", kind, a[0], zero), w.number(1, kind), value, kind)


def _share(w: _Writer, kind: str, a: list[str]) -> str:
    half = w.emit(f"fmul {_TYPES[kind]} {a[0]}, {w.number(0.5, kind)}")
    shared = w.select(w.compare("eq", kind, a[1], a[2]), half, a[0], kind)
    return w.select(w.compare("lt", kind, a[1], a[2]), w.number(0, kind), shared, kind)


def _is_infinite(w: _Writer, kind: str, a: list[str], predicate: str = "eq") -> str:
    return w.compare(predicate, kind, _absolute(w, kind, a), w.number(float("inf"), kind))


def _signbit(w: _Writer, kind: str, a: list[str]) -> str:
    bits = "i32" if kind == "float32" else "i64"
    number = w.emit(f"bitcast {_TYPES[kind]} {a[0]} to {bits}")
    return w.emit(f"icmp slt {bits} {number}, 0")


_SPECIAL: dict[str, Any] = {
    "abs": _absolute,
    "copy": lambda w, kind, a: a[0],
    "fma": _multiply_add,
    "gt": _larger,
    "isfinite": lambda w, kind, a: _is_infinite(w, kind, a, "lt"),
    "isinf": _is_infinite,
    "isnan": lambda w, kind, a: w.is_nan(kind, a[0]),
    "keep": lambda w, kind, a: w.select(a[0], a[1], w.number(0, kind), kind),
    "lt": lambda w, kind, a: _larger(w, kind, a, "lt"),
    "neg": _negative,
    "not": lambda w, kind, a: w.emit(f"xor i1 {a[0]}, true"),
    "reciprocal": _reciprocal,
    "share": _share,
    "sign": _sign,
    "signbit": _signbit,
    "square": _square,
    "where": lambda w, kind, a: w.select(*a, kind),
}
#: The powers that NumPy's operator computes by other means than a power.
_POWERS: dict[float, Any] = {1: lambda w, kind, a: a[0], 2: _square, 3: _cube, 0.5: _root, -1: _reciprocal}


# -- checks and products -------------------------------------------------------------------------------------------------------


def _check(check: Check, w: _Writer) -> str:
    """Write the test that all elements of an array are valid indices of an axis; return the name of its result, true if one is not."""
    key = check.key
    bad = w.variable("i1", "false")
    length = w.extent(check.length)
    least = w.emit(f"sub i64 0, {length}")
    terms = []
    for n, stride in zip(key.shape, key.strides):
        terms.append((w.open_loop("0", w.extent(n), 1, vector=False), stride))
    index = w.cast(w.load(key.buffer, key.offset, terms), key.buffer.dtype, "int64")
    outside = w.emit(f"or i1 {w.compare('lt', 'int64', index, least)}, {w.compare('ge', 'int64', index, length)}")
    before = w.emit(f"load i1, ptr {bad}")
    w.put(f"store i1 {w.emit(f'or i1 {outside}, {before}')}, ptr {bad}")
    for _ in key.shape:
        w.close_loop()
    found = w.emit(f"load i1, ptr {bad}")
    return w.emit(f"zext i1 {found} to i32")


def _product(product: Product) -> Kernel:
    """Print a product of matrices as calls of BLAS."""
    (count, strides), parts = _stack(product), (product.a, product.b, product.target)
    (m, k), n = product.a.shape[-2:], product.b.shape[-1]
    orders = [_order(view) for view in (product.a, product.b)]
    numbers = [m, n, k, orders[0][0], orders[1][0], orders[0][1], orders[1][1], max(n, 1), int(product.adds), count, *strides]
    single = product.out.dtype.name == "float32"
    text = _PRODUCT.replace("TYPE", "float" if single else "double").replace("GEMM", "xpgrad_sgemm" if single else "xpgrad_dgemm")
    return Kernel(text, [(view.buffer, view.offset) for view in parts], [numbers])


def _stack(product: Product) -> tuple[int, list[int]]:
    """Return the number of products, and the strides between them in bytes."""
    count, strides = 1, []
    for view in (product.a, product.b, product.target):
        if len(view.shape) == 3:
            count = view.shape[0]
            strides.append(view.strides[0] * view.buffer.itemsize)
        else:
            strides.append(0)
    return count, strides


def _order(view: View) -> tuple[int, int]:
    """Return 0 for a row-major or 1 for a column-major matrix, and the distance between its rows or columns."""
    (m, n), (s, t) = view.shape[-2:], view.strides[-2:]
    return (0, max(s, n, 1)) if t == 1 or n == 1 else (1, max(t, m, 1))


#: BLAS has matrices in columns: it multiplies the transposes in the other order. The numbers are those of `_product`.
_PRODUCT = """\
@NAME.letters = internal constant [2 x i8] c"NT"
@NAME.one = internal constant TYPE 1.0
declare void @GEMM(ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr)
define i32 @NAME(ptr %pointers, ptr %numbers) {
entry:
  %ints = alloca [9 x i32]
  %beta = alloca TYPE
  br label %copy
copy:
  %i = phi i64 [0, %entry], [%j, %copy]
  %from = getelementptr i64, ptr %numbers, i64 %i
  %to = getelementptr i32, ptr %ints, i64 %i
  %long = load i64, ptr %from
  %short = trunc i64 %long to i32
  store i32 %short, ptr %to
  %j = add i64 %i, 1
  %more = icmp slt i64 %j, 9
  br i1 %more, label %copy, label %ready
ready:
  %n = getelementptr i32, ptr %ints, i64 1
  %k = getelementptr i32, ptr %ints, i64 2
  %lda = getelementptr i32, ptr %ints, i64 5
  %ldb = getelementptr i32, ptr %ints, i64 6
  %ldc = getelementptr i32, ptr %ints, i64 7
  %at.ta = getelementptr i64, ptr %numbers, i64 3
  %ta = load i64, ptr %at.ta
  %at.tb = getelementptr i64, ptr %numbers, i64 4
  %tb = load i64, ptr %at.tb
  %letter.a = getelementptr i8, ptr @NAME.letters, i64 %ta
  %letter.b = getelementptr i8, ptr @NAME.letters, i64 %tb
  %at.adds = getelementptr i64, ptr %numbers, i64 8
  %adds = load i64, ptr %at.adds
  %factor = sitofp i64 %adds to TYPE
  store TYPE %factor, ptr %beta
  %at.count = getelementptr i64, ptr %numbers, i64 9
  %count = load i64, ptr %at.count
  %at.sa = getelementptr i64, ptr %numbers, i64 10
  %sa = load i64, ptr %at.sa
  %at.sb = getelementptr i64, ptr %numbers, i64 11
  %sb = load i64, ptr %at.sb
  %at.sc = getelementptr i64, ptr %numbers, i64 12
  %sc = load i64, ptr %at.sc
  %a0 = load ptr, ptr %pointers
  %at.b = getelementptr ptr, ptr %pointers, i64 1
  %b0 = load ptr, ptr %at.b
  %at.c = getelementptr ptr, ptr %pointers, i64 2
  %c0 = load ptr, ptr %at.c
  br label %multiply
multiply:
  %p = phi i64 [0, %ready], [%q, %multiply]
  %a = phi ptr [%a0, %ready], [%a1, %multiply]
  %b = phi ptr [%b0, %ready], [%b1, %multiply]
  %c = phi ptr [%c0, %ready], [%c1, %multiply]
  call void @GEMM(ptr %letter.b, ptr %letter.a, ptr %n, ptr %ints, ptr %k, ptr @NAME.one,
                  ptr %b, ptr %ldb, ptr %a, ptr %lda, ptr %beta, ptr %c, ptr %ldc)
  %a1 = getelementptr i8, ptr %a, i64 %sa
  %b1 = getelementptr i8, ptr %b, i64 %sb
  %c1 = getelementptr i8, ptr %c, i64 %sc
  %q = add i64 %p, 1
  %again = icmp slt i64 %q, %count
  br i1 %again, label %multiply, label %done
done:
  ret i32 0
}
"""
