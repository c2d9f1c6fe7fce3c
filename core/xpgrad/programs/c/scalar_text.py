"""Print scalar operations as expressions of C."""

from __future__ import annotations

from typing import Any

from xpgrad.programs.c.expressions import ATOM, CHOICE, COMPARISON, PRODUCT, SUM, UNARY, Block, Value
from xpgrad.programs.c.numbers import SUFFIXES, UNSIGNED, VALUE_TYPES, number_text
from xpgrad.programs.regions import Advance
from xpgrad.programs.scalars import FLOATS, SCALARS

__all__ = ["ScalarWriter", "literal_value"]

_SYMBOLS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "and": "&", "or": "|", "xor": "^"}
_RELATIONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
#: Comparisons of truths; as numbers they would get warnings.
_TRUTHS = {"lt": "(!{}) & {}", "le": "(!{}) | {}", "gt": "{} & (!{})", "ge": "{} | (!{})"}


class ScalarWriter:
    """The scalar operations of the dialect of C: values are expressions.

    Parameters
    ----------
    helpers, called : dict of str to str
        The definitions of functions that the text calls, and the declarations of those of C's library for vectors, by name.
    advance : Advance
        The numbers that are arguments.
    """

    helpers: dict[str, str]
    called: dict[str, str]
    advance: Advance
    position: int  # of the next number among the operands
    block: Block
    wish: str | None  # what the user called the result of the next statement

    def __init__(self, helpers: dict[str, str], called: dict[str, str], advance: Advance) -> None:
        self.helpers, self.called, self.advance = helpers, called, advance
        self.operands: dict[int, tuple[Value, str]] = {}
        self.position = 0
        self.block = Block()
        self.wish = None

    def operand(self, value: Any, dtype: str) -> Value:
        """Return the next number among the operands of statements: a literal or an argument."""
        position = self.position
        self.position += 1
        if position not in self.advance.literals:
            return self.number(value, dtype)
        self.operands[position] = Value(()), dtype
        return self.operands[position][0]

    def used_operands(self) -> list[tuple[int, str]]:
        """Return the positions of numbers among the operands that are arguments, with their dtypes, in order."""
        return [(position, dtype) for position, (argument, dtype) in self.operands.items() if argument.uses]

    def value(self, *parts: Any, level: int = ATOM, kind: str) -> Value:
        """Add an expression to the block, and return it."""
        found: Value = self.block.add(Value(parts, level, kind))
        return found

    def name_of(self, helper: str, dtype: str, text: str) -> str:
        """Return the name of a helper for a dtype, which is defined by `text` if it is new."""
        name = f"{helper}{SUFFIXES[dtype]}"
        if name not in self.helpers:
            text = text.replace("UNSIGNED", UNSIGNED.get(dtype, "")).replace("TYPE", VALUE_TYPES[dtype])
            self.helpers[name] = f"static inline {VALUE_TYPES[dtype]} {name}{text}"
        return name

    def number(self, value: Any, dtype: str) -> Value:
        """Return the literal of a number."""
        return literal_value(number_text(value, dtype))

    def compute(self, op: str, dtype: str, args: list[Any], kinds: list[Any]) -> Value:
        """Return the result of a scalar operation."""
        found = self.computed(op, dtype, args, kinds)
        if self.wish is not None and found.wish is None and found.kind and not found.is_free:
            found.wish, self.wish = self.wish, None
        return found

    def computed(self, op: str, dtype: str, args: list[Any], kinds: list[Any]) -> Value:
        if op == "cast":
            return self.cast(args[0], kinds[0], dtype)
        scalar = SCALARS[op]
        kind = dtype if scalar.makes == "same" else next(k for k in kinds if k is not None)
        if op == "pow" and kinds[1] is None and args[1] in _POWERS:
            self.position += 1
            return _POWERS[args[1]](self, kind, args)
        a = [x if k is not None else self.operand(x, kind) for x, k in zip(args, kinds)]
        if scalar.form == "arithmetic":
            return self.arithmetic(scalar.code, kind, a[0], a[1])
        if scalar.form == "comparison":
            return self.compare(scalar.code, kind, a[0], a[1])
        if scalar.form == "bits":
            return self.value((a[0], ATOM), f" {_SYMBOLS[scalar.code]} ", (a[1], ATOM), level=CHOICE, kind=VALUE_TYPES[kind])
        if scalar.form == "function":
            t, name = VALUE_TYPES[kind], f"{scalar.code}{SUFFIXES[kind]}"
            self.called[name] = f'__attribute__((simd("notinbranch"))) {t} {name}({", ".join([t] * len(a))});'
        if scalar.form == "precise":
            return self.precise(scalar.code, kind, a)
        if scalar.form in ("function", "rounding"):
            return self.call(scalar.code.replace("roundeven", "nearbyint"), kind, *a)
        return _SPECIAL[scalar.code](self, kind, a)

    def arithmetic(self, code: str, kind: str, a: Value, b: Value) -> Value:
        """Return a sum, difference, product or quotient; integers wrap around."""
        symbol = _SYMBOLS[code]
        if kind in FLOATS:
            level = SUM if code in ("add", "sub") else PRODUCT
            return self.value((a, level), f" {symbol} ", (b, level + 1), level=level, kind=VALUE_TYPES[kind])
        text = f"(TYPE a, TYPE b)\n{{\n    return (TYPE)((UNSIGNED)a {symbol} (UNSIGNED)b);\n}}\n"
        return self.helper(self.name_of(f"wrapping_{code}", kind, text), kind, a, b)

    def helper(self, name: str, kind: str, *a: Value) -> Value:
        """Return the call of a function by its name."""
        parts: list[Any] = []
        for x in a:
            parts += [", " if parts else "", (x, 0)]
        return self.value(f"{name}(", *parts, ")", kind=VALUE_TYPES[kind])

    def call(self, name: str, kind: str, *a: Value) -> Value:
        """Return the call of a function of C's library, whose name gets the dtype's suffix."""
        return self.helper(name + SUFFIXES[kind], kind, *a)

    def precise(self, code: str, kind: str, a: list[Value]) -> Value:
        """Return the call of a function of C's library that is not computed for vectors."""
        name, t = f"precise_{code}{SUFFIXES[kind]}", VALUE_TYPES[kind]
        self.helpers[name] = (
            "#ifdef __GNUC__\n__attribute__((noinline)) /* not for vectors, which have larger errors */\n#endif\n"
            f"static {t} {name}({t} a)\n{{\n    return {code}{SUFFIXES[kind]}(a);\n}}\n"
        )
        return self.helper(name, kind, *a)

    def compare(self, code: str, kind: str, a: Value, b: Value) -> Value:
        """Return whether a comparison holds; with nan only "ne" does."""
        if kind == "bool" and code in _TRUTHS:
            first, middle, last = _TRUTHS[code].split("{}")
            return self.value(first, (a, ATOM), middle, (b, ATOM), last, level=CHOICE, kind="bool")
        level = ATOM if kind == "bool" else SUM
        return self.value((a, level), f" {_RELATIONS[code]} ", (b, level), level=COMPARISON, kind="bool")

    def choose(self, condition: Value, a: Value, b: Value, kind: str) -> Value:
        """Return `a` if a condition holds, else `b`."""
        return self.value((condition, CHOICE + 1), " ? ", (a, CHOICE + 1), " : ", (b, CHOICE), level=CHOICE, kind=VALUE_TYPES[kind])

    def cast(self, value: Value, source: str, dtype: str) -> Value:
        """Return a value in another dtype."""
        if source == dtype:
            return value
        if dtype == "bool":
            return self.compare("ne", source, value, self.number(0, source))
        return self.value(f"({VALUE_TYPES[dtype]})", (value, UNARY), level=UNARY, kind=VALUE_TYPES[dtype])


def literal_value(text: str) -> Value:
    return Value((text,), UNARY if text[0] == "-" else ATOM)


def _square(w: ScalarWriter, kind: str, a: list[Any]) -> Value:
    return w.arithmetic("mul", kind, a[0], a[0])


def _cube(w: ScalarWriter, kind: str, a: list[Any]) -> Value:
    return w.arithmetic("mul", kind, _square(w, kind, a), a[0])


def _reciprocal(w: ScalarWriter, kind: str, a: list[Any]) -> Value:
    return w.arithmetic("div", kind, w.number(1, kind), a[0])


def _multiply_add(w: ScalarWriter, kind: str, a: list[Any]) -> Value:
    name = f"fma{SUFFIXES[kind]}"
    body = f"#ifdef FP_FAST_{name.upper()}\n    return {name}(a, b, c);\n#else\n    return a * b + c;\n#endif"
    text = f"(TYPE a, TYPE b, TYPE c)\n{{\n{body}\n}}\n"
    return w.helper(w.name_of("multiply_add", kind, text), kind, *a)


def _absolute(w: ScalarWriter, kind: str, a: list[Any]) -> Value:
    if kind in FLOATS:
        return w.call("fabs", kind, a[0])
    return w.choose(w.compare("lt", kind, a[0], w.number(0, kind)), _negative(w, kind, a), a[0], kind)


def _extremum(w: ScalarWriter, kind: str, a: list[Any], code: str) -> Value:
    """Return the first of two numbers if it is more extreme or nan, else the second, as NumPy does for zeros of both signs."""
    test = f"a {_RELATIONS[code]} b{' || a != a' if kind in FLOATS else ''}"
    name = "maximum" if code == "gt" else "minimum"
    return w.helper(w.name_of(name, kind, f"(TYPE a, TYPE b)\n{{\n    return {test} ? a : b;\n}}\n"), kind, a[0], a[1])


def _negative(w: ScalarWriter, kind: str, a: list[Any]) -> Value:
    if kind in FLOATS:
        return w.value("-", (a[0], ATOM), level=UNARY, kind=VALUE_TYPES[kind])
    return w.arithmetic("sub", kind, w.number(0, kind), a[0])


def _sign(w: ScalarWriter, kind: str, a: list[Any]) -> Value:
    text = "(TYPE a)\n{\n    return a > 0 ? 1 : a < 0 ? -1 : a == 0 ? 0 : a;\n}\n"
    return w.helper(w.name_of("sign", kind, text), kind, a[0])


def _share(w: ScalarWriter, kind: str, a: list[Any]) -> Value:
    """Return zero if the first of two numbers is smaller, half of a cotangent if they are equal, and otherwise all of it."""
    half = w.number(0.5, kind).spelled()
    text = f"(TYPE g, TYPE a, TYPE b)\n{{\n    return a < b ? 0 : a == b ? g * {half} : g;\n}}\n"
    return w.helper(w.name_of("share", kind, text), kind, *a)


def _test(w: ScalarWriter, a: list[Any], name: str) -> Value:
    """Return the test whether the macro `name` returns a number other than zero."""
    return w.value(f"{name}(", (a[0], 0), ") != 0", level=COMPARISON, kind="bool")


_SPECIAL: dict[str, Any] = {
    "abs": _absolute,
    "copy": lambda w, kind, a: a[0],
    "fma": _multiply_add,
    "gt": lambda w, kind, a: _extremum(w, kind, a, "gt"),
    "isfinite": lambda w, kind, a: _test(w, a, "isfinite"),
    "isinf": lambda w, kind, a: _test(w, a, "isinf"),
    "isnan": lambda w, kind, a: _test(w, a, "isnan"),
    "keep": lambda w, kind, a: w.choose(a[0], a[1], w.number(0, kind), kind),
    "lt": lambda w, kind, a: _extremum(w, kind, a, "lt"),
    "neg": _negative,
    "not": lambda w, kind, a: w.value("!", (a[0], ATOM), level=UNARY, kind="bool"),
    "reciprocal": _reciprocal,
    "share": _share,
    "sign": _sign,
    "signbit": lambda w, kind, a: _test(w, a, "signbit"),
    "square": _square,
    "where": lambda w, kind, a: w.choose(*a, kind),
}
#: The powers that NumPy's operator computes by other means than a power.
_POWERS: dict[float, Any] = {
    1: lambda w, kind, a: a[0],
    2: _square,
    3: _cube,
    0.5: lambda w, kind, a: w.call("sqrt", kind, a[0]),
    -1: _reciprocal,
}
