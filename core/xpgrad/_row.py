"""Rows: one declaration per operation, holding its kernel (forward) and its gradient formulas; and the two namespaces they run in.

A formula names what it reads and nothing else: ``g`` (the gradient of the output), the operands, ``out``, ``x_shape``, ``x_dtype``,
static arguments, ``xp``. What a node saves, and which gradients are computed, follow from those names. On a plain backward ``xp`` is
the backend's raw namespace, under ``create_graph`` it is xpgrad's own: a formula never learns which.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["COMPOSITE", "NONDIFFERENTIABLE", "ROWS", "RULES", "Row", "composite", "elementwise", "front", "nondifferentiable", "rule",
           "tensor_namespace", "view"]  # fmt: skip

F = TypeVar("F", bound=Callable[..., Any])
Formula = Callable[..., Any] | str | None

ROWS: dict[str, Row] = {}
#: Public functions by how they differentiate: every function of the standard is in exactly one of the three.
RULES: dict[str, Callable[..., Any]] = {}
NONDIFFERENTIABLE: dict[str, Callable[..., Any]] = {}
COMPOSITE: dict[str, Callable[..., Any]] = {}


# Names that the generated text uses for itself: an argument of this name would be overwritten there.
_RESERVED = frozenset((
    "View", "a", "alias_of", "ref", "self", "g", "out", "xp", "empty", "retain", "push", "cls", "mode", "new", "number", "kernel",
    "slow", "op", "sop", "srop", "own", "b", "c", "e", "m", "n", "o", "q", "r", "s", "v", "z", "K", "T", "B", "ROW", "ARRAY", "explain",
    "current_stream", "operand_shape", "into",
))  # fmt: skip


class Row:
    """What xpgrad knows about one operation.

    Parameters
    ----------
    name : str
        Its name in both namespaces, and of its kernel.
    tensors, statics : tuple of str
        Its Tensor operands and, behind them, its other arguments.
    formulas : tuple
        One per operand; None where the operation does not differentiate. One of operators only may be a string: it becomes part of the
        generated text, which saves a call, and ``"g * x"`` may overwrite a large gradient that nobody else needs.
    kernel : callable or None
        ``kernel(xp, *operands, *statics)`` in Array API calls on raw arrays; None: the namespace's function of this name.
    elementwise : bool
        Operands broadcast and promote, and Python scalars are operands too.
    op : str or None
        The Python operator that computes it.
    fresh : tuple of bool
        Per formula: its result is memory that nobody else holds, so that the engine may add into it.
    conj : bool
        The formulas are those of a holomorphic function, linear in g: for complex g the engine conjugates around them.
    outputs : int or None
        None for one output; else that many, and ``g`` is a list with None where undefined.
    is_view : bool
        The result shares its operand's memory on backends whose views alias.
    varargs : bool
        The single operand is a list of Tensors, and the single formula returns a list.
    jvp : callable or None
        The tangent of the output, for forward mode, where the formulas do not give it as directly (`_transforms.jvps`). It reads what
        a formula may read, except ``g``, and for an operand ``x`` its tangent ``d_x``, None where there is none; None is no tangent.
    """

    def __init__(
        self, name: str, tensors: tuple[str, ...], statics: tuple[str, ...], formulas: tuple[Formula, ...], kernel: Any, *,
        node: str | None = None, elementwise: bool = False, op: str | None = None, fresh: Any = False, conj: bool = True,
        outputs: int | None = None, nondiff: tuple[int, ...] = (), is_view: bool = False, varargs: bool = False,
        into: str | None = None, guard: str | None = None, slow: Any = None, promotes: bool = True, multi_view: bool = False,
        jvp: Callable[..., Any] | None = None,
    ) -> None:  # fmt: skip
        self.name = name
        self.tensors = tensors
        self.statics = statics
        self.texts = tuple(f if isinstance(f, str) else None for f in formulas)
        self.formulas: tuple[Any, ...] = tuple(_compiled(f) if isinstance(f, str) else f for f in formulas)
        self.reads = tuple(() if f is None else _parameters(f) for f in self.formulas)
        self.kernel = kernel
        self.node = node or "".join(part.capitalize() for part in name.split("_")) + "Backward0"
        self.elementwise = elementwise
        self.op = op
        self.fresh = fresh if isinstance(fresh, tuple) else (fresh,) * len(formulas)
        self.conj = conj
        self.outputs = outputs
        self.nondiff = nondiff
        self.is_view = is_view
        self.multi_view = multi_view
        self.varargs = varargs
        self.into = into
        self.guard = guard
        self.slow = slow
        self.jvp = jvp
        self.jvp_reads = () if jvp is None else _parameters(jvp)
        # Which operands meet in one dtype: those that differentiate, or all where none does.
        places = tuple(i for i, f in enumerate(formulas) if f is not None) or tuple(range(len(formulas)))
        self.mixing = places if promotes else ()
        known = {"g", "xp", "out", *tensors, *statics, *(f"{t}_{k}" for t in tensors for k in ("shape", "dtype")), "out_shape"}
        for reads in (*self.reads, self.jvp_reads):
            unknown = set(reads) - known - ({f"d_{t}" for t in tensors} if reads is self.jvp_reads else set())
            if unknown:
                msg = f"the formula of {name!r} reads {sorted(unknown)}, but a formula can read {sorted(known)} only"
                raise TypeError(msg)
        taken = _RESERVED.intersection((*tensors, *statics)) | ({"k"} & set(statics) if outputs else set())
        if taken:
            msg = f"arguments of {name!r} are named {sorted(taken)}, which the generated text uses itself; choose other names"
            raise ValueError(msg)
        if name in ROWS:
            msg = f"two rows are named {name!r}"
            raise ValueError(msg)
        ROWS[name] = self

    @property
    def method(self) -> str:
        """The name of its specialised implementation on a backend's Tensor class."""
        return f"_op_{self.name}"

    @property
    def differentiable(self) -> bool:
        """Whether any formula exists."""
        return any(f is not None for f in self.formulas)


def _compiled(text: str) -> Callable[..., Any]:
    """The function of a formula that was given as text: its parameters are the names in it."""
    code = compile(text, "<formula>", "eval")
    return eval(f"lambda {', '.join(code.co_names)}: {text}")  # our own text, as dataclasses does


def _parameters(func: Callable[..., Any]) -> tuple[str, ...]:
    """The names of a function's parameters. NB: `inspect` would cost as much to import as this whole package may."""
    return func.__code__.co_varnames[: func.__code__.co_argcount]


def _public_name(func: Callable[..., Any]) -> str:
    """A public function's key in the tables: those of the extensions carry their namespace, e.g. ``"linalg.cholesky"``."""
    namespace = func.__module__.removeprefix("xpgrad.")
    return f"{namespace}.{func.__name__}" if namespace in ("linalg", "fft") else func.__name__


def elementwise(*formulas: Formula, op: str | None = None, node: str | None = None, fresh: Any = True, conj: bool = True,
                kernel: Any = None, guard: str | None = None, slow: Any = None,
                jvp: Callable[..., Any] | None = None) -> Callable[[F], F]:  # fmt: skip
    """Declare a public elementwise function of the standard: the decorated function gives its signature and docstring."""

    def declare(func: F) -> F:
        from xpgrad._dispatch import dispatcher

        row = Row(func.__name__, _parameters(func), (), formulas, kernel, elementwise=True, op=op, node=node, fresh=fresh, conj=conj,
                  guard=guard, slow=slow, jvp=jvp)  # fmt: skip
        public: Any = dispatcher(row, func)
        RULES[row.name] = public
        return public

    return declare


def nondifferentiable(*, op: str | None = None, kernel: Any = None, primitive: bool = False) -> Callable[[F], F]:
    """Declare a public function whose results never require grad.

    Elementwise ones need no body; with ``primitive=True`` the body is the public function itself, written with rows.
    """

    def declare(func: F) -> F:
        from xpgrad._dispatch import dispatcher

        public: Any = func
        if not primitive:
            names = _parameters(func)
            row = Row(func.__name__, names, (), (None,) * len(names), kernel, elementwise=True, op=op)
            public = dispatcher(row, func)
        NONDIFFERENTIABLE[_public_name(func)] = public
        return public

    return declare


def rule(*formulas: Formula, **options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare a primitive: the decorated function ``f(xp, *operands, *statics)`` is its kernel in Array API calls on raw arrays.

    What remains is the primitive on Tensors, ``f(*operands, *statics)``: all positional, nothing normalised.
    """

    def declare(func: Callable[..., Any]) -> Callable[..., Any]:
        from xpgrad._dispatch import dispatcher

        names = _parameters(func)[1:]
        count = len(formulas)
        row = Row(func.__name__, names[:count], names[count:], formulas, func, **options)
        PRIMITIVES[row.name] = primitive = dispatcher(row, func)
        return primitive

    return declare


def view(*formulas: Formula, **options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare a primitive whose result shares its operand's memory where the backend's views alias."""
    return rule(*formulas, is_view=True, **({"conj": False} | options))


def front(func: F) -> F:
    """Register a public function that normalises its arguments and calls primitives that have rules."""
    RULES[_public_name(func)] = func
    return func


def composite(func: F) -> F:
    """Register a public function that is written in other public functions: its gradient is theirs."""
    COMPOSITE[_public_name(func)] = func
    return func


class _TensorNamespace:
    """What ``xp`` is in a formula that runs on Tensors: the public functions and the primitives, by name."""

    def __getattr__(self, name: str) -> Any:
        import xpgrad

        found: Any = None
        for table in (PRIMITIVES, RULES, NONDIFFERENTIABLE, COMPOSITE):
            found = found or table.get(name)
        if found is None:
            found = getattr(xpgrad, name)
        setattr(self, name, found)
        return found


PRIMITIVES: dict[str, Callable[..., Any]] = {}
tensor_namespace: Any = _TensorNamespace()
