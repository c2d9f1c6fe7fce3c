"""Rows: one declaration per operation, with its kernel (forward) and its gradient formulas.

The parameters of a formula name what it reads: ``g`` (the gradient of the output), the operands, ``out``, ``x_shape``, ``x_dtype``,
static arguments and ``xp``. These names determine what a node saves and which gradients are computed. In a plain backward pass ``xp`` is
the raw namespace of the backend, under ``create_graph`` that of xpgrad; a formula works with either.
"""

from __future__ import annotations

import builtins
import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from xpgrad._rows.kernels import KERNELS, Kernel
from xpgrad._rows.operators import Operator, find_operator

Formula = Callable[..., Any] | str | None
ROWS: dict[str, Row] = {}
#: The values of a row's `batch`, which specifies its behaviour under `vmap` (see `Row`).
BATCHES = (None, "stacked", "broadcast")


@dataclass(frozen=True, slots=True)
class Domain:
    """The values of one operand for which an elementwise function is defined.

    Attributes
    ----------
    numbers : {"complex", "library", "real", "integer", "bool"}
        The largest set of numbers that it takes. "real" and "integer" (which includes bools): operands of other dtypes are a TypeError on
        every backend. "library" (real numbers) and "bool" (bools): the library decides about other dtypes.
    bools : bool
        Whether it takes bools.
    low, high : float
        The open interval of real numbers where it is finite and has a derivative.
    integers : {"floating", "exact", "truth"}
        How NumPy's function treats integers and bools. "floating": it converts them to floating numbers. "exact": it computes with them,
        and its result is an integer or a bool. "truth": it only tests whether each is not zero.

    Examples
    --------
    >>> from xpgrad.backend import Domain
    >>> Domain(low=0.0)
    Domain(numbers='complex', bools=True, low=0.0, high=inf, integers='floating')
    """

    numbers: str = "complex"
    bools: bool = True
    low: float = -math.inf
    high: float = math.inf
    integers: str = "floating"


@dataclass(frozen=True, slots=True)
class Kink:
    """The places where a function has no unique derivative; its formulas choose one, and an audit reports the place.

    Attributes
    ----------
    text : str
        A description of the places, such as ``"at 0"``.
    where : callable
        A function of NumPy arrays that returns True at such elements. Its parameters may be operands, static arguments and ``out``.
    at : tuple of float
        Operands at these places.
    tie : bool
        Whether the result is one of several equal values that compete.
    """

    text: str
    where: Callable[..., Any]
    at: tuple[float, ...]
    tie: bool = False


def zero_gradient(g: Any, xp: Any) -> Any:
    """Return zeros: the gradient of an operand with respect to which the result is piecewise constant."""
    return xp.zeros_like(g)


class Row:
    """All facts about one operation.

    Parameters
    ----------
    name : str
        Its name in both namespaces, which is also that of its kernel.
    tensors, statics : tuple of str
        Its Tensor operands, and the arguments that follow them.
    formulas : tuple
        One per operand; None if the operation is not differentiable in it. A formula that consists of operators may be a string, which
        becomes part of the generated text and saves a call; ``"g * x"`` and ``"g * (1.0 / x)"`` may overwrite a large gradient that
        is not needed otherwise.
    kernel : callable or None
        ``kernel(xp, *operands, *statics)`` in Array API calls on raw arrays; None: the namespace's function of this name.
    elementwise : bool
        Whether operands broadcast and promote, and may be Python scalars.
    op : str or None
        The Python operator that computes it on raw arrays.
    owns_op : bool
        Whether the operator on Tensors calls this operation.
    fresh : tuple of bool
        For each formula, whether its result is in new memory, so that the engine may add to it in place.
    conj : bool
        Whether the formulas are those of a holomorphic function, linear in g: the engine then conjugates a complex g and the results.
    outputs : int or None
        The number of outputs, for which ``g`` is then a list with None for missing gradients, and a formula may return None if those
        that arrived do not depend on its operand; None for a single output.
    into : str or None
        The name of a kernel that adds a mostly zero gradient into a buffer.
    reuse : callable or None
        ``reuse(xp, g, *statics)``: the first operand's gradient in the memory of `g`, which it may overwrite.
    is_view : bool
        Whether the result shares its operand's memory on backends whose views alias.
    varargs : bool
        Whether the only operand is a list of Tensors, and the only formula returns a list.
    jvp : callable or None
        Computes the tangent of the output in forward mode, if the formulas give it less directly (`_transforms.forward.jvps`). It may
        read what a formula may read, except ``g``, and the tangent ``d_x`` of an operand ``x``, which may be None. It may return None.
    batch : {"stacked", "broadcast"} or None
        How it acts under `vmap`. ``"stacked"``: it treats arrays with additional first axes as a stack and acts on each; ``axis`` and
        ``axes`` are shifted by the batch axis, and its length is added to ``shape``. ``"broadcast"``: the first axes of its operands
        also broadcast. None: it is elementwise, has a batching rule of the same name, or its kernel is composed of other operations.
    composed : bool
        Whether no library has a kernel for it, so that a captured program contains the operations that it calls.
    domain : Domain or tuple of Domain
        Where it is defined, for all operands or for each. Only elementwise operations raise an error outside of it.
    kink : Kink or None
        Where it has no unique derivative.
    public : tuple of str
        The public functions that it computes, if they have other names; the first one stands for the row.
    **facts
        Facts about its kernel: fields of `Kernel`. Elementwise operations return new memory in the dtype of their operands by default.

    Attributes
    ----------
    facts : Kernel
    operator : Operator or None
        That of `op`.
    special_methods : (str, str or None) or None
        The special methods of a Tensor for its operator: ``("__add__", "__radd__")`` or ``("__neg__", None)``.
    """

    def __init__(
        self, name: str, tensors: tuple[str, ...], statics: tuple[str, ...], formulas: tuple[Formula, ...], kernel: Any, *,
        # identity
        node: str | None = None, public: str | tuple[str, ...] = (), op: str | None = None, owns_op: bool = True,
        # operands and results
        elementwise: bool = False, promotes: bool = True, varargs: bool = False, outputs: int | None = None,
        nondiff: tuple[int, ...] = (), domain: Domain | tuple[Domain, ...] = Domain(), guard: str | None = None, slow: Any = None,
        # derivative
        conj: bool = True, jvp: Callable[..., Any] | None = None, kink: Kink | None = None, batch: str | None = None,
        composed: bool = False,
        # memory
        fresh: Any = False, is_view: bool = False, multi_view: bool = False, into: str | None = None,
        reuse: Callable[..., Any] | None = None,
        **facts: Any,
    ) -> None:  # fmt: skip
        self.name = name
        self.tensors = tensors
        self.statics = statics
        self.texts = tuple(f if isinstance(f, str) else None for f in formulas)
        self.formulas: tuple[Any, ...] = tuple(_compile_formula(f) if isinstance(f, str) else f for f in formulas)
        self.reads = tuple(() if f is None else parameters(f) for f in self.formulas)
        self.domains = domain if isinstance(domain, tuple) else (domain,) * len(tensors)
        self.kink = kink
        self.public = (public,) if isinstance(public, str) else public or (name,)
        self.kernel = _of_real_numbers(name, kernel) if elementwise and self.domains[0].numbers == "real" and kernel is not None else kernel
        self.node = node or "".join(part.capitalize() for part in name.split("_")) + "Backward0"
        self.elementwise = elementwise
        self.op = op
        self.operator: Operator | None = find_operator(op, len(tensors))
        self.special_methods = self.operator[1:3] if self.operator is not None and owns_op else None
        self.fresh = fresh if isinstance(fresh, tuple) else (fresh,) * len(formulas)
        self.conj = conj
        self.outputs = outputs
        self.nondiff = nondiff
        self.is_view = is_view
        self.multi_view = multi_view
        self.varargs = varargs
        self.into = into
        self.reuse = reuse
        self.guard = guard
        self.slow = slow
        self.jvp = jvp
        self.batch = batch
        self.composed = composed
        self.origin = ""  # the file and line that declare it, for tracebacks
        self.declared: tuple[str, int] | None = None  # the same, with the whole path
        self.jvp_reads = () if jvp is None else parameters(jvp)
        # The operands that promote to one dtype: those with a formula, or all if none has one.
        places = tuple(i for i, f in enumerate(formulas) if f is not None) or tuple(range(len(formulas)))
        self.mixing = places if promotes else ()
        self._check_arguments()
        self._check_reads()
        if batch not in BATCHES:
            msg = f"`batch` of {name!r} must be one of {BATCHES}, but is {batch!r}"
            raise ValueError(msg)
        if name in ROWS:
            msg = f"two rows are named {name!r}"
            raise ValueError(msg)
        if elementwise:
            facts = {"kind": "elementwise", "memory": "new", "dtype": "same"} | facts
        elif is_view:
            facts = {"memory": "view"} | facts
        self.facts = Kernel(name, operator=self.operator, **facts)
        KERNELS[name] = self.facts
        ROWS[name] = self

    def traceback_title(self, title: str) -> str:
        """Return the file name of a generated text, for tracebacks: `title` with the file and line of the rule."""
        return f"{title}, rule: {self.origin}" if self.origin else title

    def _readable(self) -> list[str]:
        """Return the names that a formula can read: its own names, the arguments, and their shapes and dtypes."""
        told = (f"{name}_{quality}" for name in self.tensors for quality in ("shape", "dtype"))
        return ["g", "xp", "out", "out_shape", *self.tensors, *self.statics, *told]

    def _check_arguments(self) -> None:
        """Raise if an argument has a name with another meaning in the generated text or in formulas (`_operations.source`)."""
        readable = self._readable()
        for name in (*self.tensors, *self.statics):
            if readable.count(name) > 1:
                why = "is also something else that a formula reads"
            elif name.startswith("_"):
                why = "is how the generated text names what is its own"
            elif hasattr(builtins, name):
                why = "would hide Python's own from the generated text"
            else:
                continue
            msg = f"an argument of {self.name!r} is named {name!r}, which {why}; choose another name"
            raise ValueError(msg)

    def _check_reads(self) -> None:
        """Raise if a formula, or the jvp, reads an unknown name."""
        known = set(self._readable())
        for reads in (*self.reads, self.jvp_reads):
            unknown = set(reads) - known - ({f"d_{t}" for t in self.tensors} if reads is self.jvp_reads else set())
            if unknown:
                msg = f"the formula of {self.name!r} reads {sorted(unknown)}, but a formula can read {sorted(known)} only"
                raise TypeError(msg)

    @property
    def method(self) -> str:
        """The name of the implementation on a backend's Tensor class."""
        return f"_op_{self.name}"

    def saved(self, mask: str) -> list[str]:
        """Return the names that a node saves for this pattern of operands, in a fixed order (see `_operations.backward`)."""
        wanted = {name for reads, m in zip(self.reads, mask) if m == "g" for name in reads} - {"g", "xp"}
        order = [*self.tensors, "out", *(f"{t}_{k}" for t in self.tensors for k in ("shape", "dtype")), "out_shape", *self.statics]
        return [name for name in order if name in wanted]

    def freeable(self, mask: str) -> list[str]:
        """Return the saved names that hold arrays, which the node frees after its step."""
        kinds = dict(zip(self.tensors, mask))
        return [n for n in self.saved(mask) if n == "out" or kinds.get(n, "s") != "s"]

    @functools.cached_property
    def differentiable(self) -> bool:
        """Whether it has any formula."""
        return any(f is not None for f in self.formulas)

    @property
    def is_step(self) -> bool:
        """Whether its derivative is zero wherever it exists, as for `floor`."""
        return self.differentiable and all(f is zero_gradient for f in self.formulas)


def _compile_formula(text: str) -> Callable[..., Any]:
    """Return the function of a formula given as text; its parameters are the names in the text."""
    code = compile(text, "<formula>", "eval")
    return eval(f"lambda {', '.join(code.co_names)}: {text}")  # our own text, as dataclasses does


def parameters(func: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of a function's parameters, without importing `inspect`, which would take too long."""
    return func.__code__.co_varnames[: func.__code__.co_argcount]


def _of_real_numbers(name: str, kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a composed kernel to refuse complex operands, for which it would be wrong."""

    def checked(xp: Any, *operands: Any) -> Any:
        backend = xp._backend
        if any(isinstance(x, complex) or (hasattr(x, "dtype") and backend.is_complex(x)) for x in operands):
            msg = f"`{name}` is not defined for complex numbers"
            raise TypeError(msg)
        return kernel(xp, *operands)

    return checked
