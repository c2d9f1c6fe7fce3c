"""Named methods of a Tensor: conversions to Python, NumPy and DLPack, indexing and writing, the standard's attributes."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from xpgrad._array.base import TensorBase
from xpgrad._array.checks import need_tensor
from xpgrad._basics.docstrings import shares
from xpgrad._modes import state
from xpgrad._modes.running import transform_inputs, transforming
from xpgrad._operations.documents import IN_PLACE_ERROR, IN_PLACE_REFUSAL, IN_PLACE_RESULT
from xpgrad._operations.lift import lift, scale
from xpgrad._operations.methods import as_in_numpy_code, call_numpys
from xpgrad._tape.node import walk
from xpgrad._tensor import turning, writing
from xpgrad.errors import missing
from xpgrad.rules import elementwise, linear_algebra, manipulation
from xpgrad.rules.indexing import add_slices, getitem
from xpgrad.rules.transfer import to_device

if TYPE_CHECKING:
    from xpgrad._tensor.tensor import Tensor


# -- what docstrings have in common --------------------------------------------------------------------------------------

_document_in_place = shares(returns=IN_PLACE_RESULT, raises=f"RuntimeError\n    {IN_PLACE_REFUSAL}.")
_document_fill = shares(
    parameters="""\
value : number, Tensor or raw array
    New value of all elements; a Tensor broadcasts to the shape of this one.""",
    raises=f"""\
TypeError
    If this Tensor's dtype cannot hold a value of that kind.
ValueError
    If `value` does not broadcast to the shape of this Tensor.
RuntimeError
    {IN_PLACE_REFUSAL}.""",
)
_document_arithmetic = shares(
    parameters="""\
other : Tensor, raw array or number
    Second operand, of a shape that broadcasts to that of this Tensor.
alpha : number
    Factor of `other`.""",
    returns=IN_PLACE_RESULT,
    raises=IN_PLACE_ERROR,
)


class TensorMethods(TensorBase):
    """The methods of `Tensor`; see there."""

    __slots__ = ()

    # -- leaving xpgrad ----------------------------------------------------------------------------------------

    def _has_tangent(self) -> bool:
        """Return whether an active level of forward mode has a tangent for this Tensor."""
        mode = state.current()
        return mode is not None and bool(mode.levels) and not mode.inference and mode.levels.have_tangents(self)

    def _refuse_export(self, call: str, recorded: bool = True, *, converted: bool = False) -> None:
        """Raise RuntimeError for a value that leaves the graph.

        Parameters
        ----------
        call : str
            What PyTorch's message names.
        recorded : bool
            Whether an operation would have been recorded.
        converted : bool
            Whether another library asked for the array, so that the message describes its call.
        """
        if self._node is not None and recorded:
            what, lost = "requires grad", "gradient"
        elif self._has_tangent():
            what, lost = "has a tangent", "derivative"
        else:
            return
        msg = f"Can't call {call} on Tensor that {what}. Use tensor.detach().{call} instead"
        if converted:
            from xpgrad._tensor.conversion_errors import describe_conversion  # loads late: only an error needs it

            if text := describe_conversion(lost):
                raise RuntimeError(f"{msg} for a constant: {text}")
        msg += f": whatever is computed outside xpgrad would be lost to the {lost}"
        raise RuntimeError(msg)

    def _transformed_by(self) -> str | None:
        """Return the name of the running transform if this Tensor carries a derivative that it computes, else None.

        A Tensor that does not depend on the function's arguments is a constant to the transform, even if it requires grad; so is every
        Tensor under `no_grad`.
        """
        name = transforming()
        if name is None or self._has_tangent():
            return name
        if self._node is None or not state.is_grad_enabled():
            return None
        inputs = {x._node for x in transform_inputs() if not x.depth}
        return name if any(node in inputs for node in walk([self._node])) else None

    def _leaves(self, call: str, value: Any) -> Any:
        """Report to a running audit that `value` leaves the graph through `call`; return it, or the audit's replacement."""
        mode = state.current()
        return value if mode is None or mode.auditing is None else mode.auditing.record_leaving(call, self, value)

    @property
    def array(self) -> Any:
        """Array of the backend's library, not a copy; autograd does not see writes to it.

        Inside a function that a transform of `xpgrad.func` runs, it raises RuntimeError for a Tensor that carries a derivative of the
        transform, or is an element of a batch: what is computed from the array would silently lose the derivative.

        Raises
        ------
        RuntimeError
            Inside a transform, if this Tensor carries a derivative that the transform computes, or is an element of a batch.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([1.0, 4.0])
        >>> type(x.array)
        <class 'numpy.ndarray'>
        """
        if (name := self._transformed_by()) is not None:
            msg = (
                f"Can't read `.array` inside of a function transformed by `{name}`: what is computed from it would be lost to the "
                "derivative. Stay with Tensors; wrap the computation in a `xpgrad.autograd.Function` or `custom_rule`; or read "
                "`x.detach().array`, which is a constant"
            )
            raise RuntimeError(msg)
        return self._leaves(".array", self.backend.own(self))

    def numpy(self) -> Any:
        """Return the values as a NumPy array.

        Returns
        -------
        ndarray
            Has the shape and dtype of this Tensor. It shares the memory if the backend's arrays are in the host's memory.

        Raises
        ------
        RuntimeError
            If this Tensor requires grad while operations are recorded, or has a tangent.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([1.0, 4.0])
        >>> x.numpy()
        array([1., 4.])
        """
        self._refuse_export("numpy()", state.is_grad_enabled())
        return self._leaves("numpy()", self.backend.to_host(self.backend.own(self)))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        caller = sys._getframe(1)
        if caller.f_code.co_name == "_matmul_dispatch" and caller.f_globals["__name__"].startswith("scipy.sparse"):
            # SciPy's ``sparse @ x`` leaves the product to `x` if that converts to an object.
            return sys.modules["numpy"].array(None, dtype=object)
        self._refuse_export("numpy()", state.is_grad_enabled(), converted=True)
        host = self._leaves("np.asarray(x)", self.backend.to_host(self.backend.own(self)))
        if dtype is not None and host.dtype != dtype:
            if copy is False:
                msg = f"np.asarray(copy=False) is not possible: converting {host.dtype} to {dtype} needs a copy"
                raise ValueError(msg)
            return host.astype(dtype)
        return host.copy() if copy else host

    # NB: there is no `__dlpack_c_exchange_api__`: its C functions (PyTorch 2.13 has them, NumPy 2.5 does not) take arrays of their own
    # library only, and nothing in C would refuse a Tensor that requires grad.
    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None) -> Any:
        self._refuse_export("__dlpack__()")
        if max_version is not None and max_version[0] < 1:
            max_version = None  # the consumer knows no versions, which some libraries understand only by None
        options = {"max_version": max_version, "dl_device": dl_device, "copy": copy}
        raw = self.backend.own(self)
        if self.depth:
            self.backend.to_host(raw)  # which refuses
        return raw.__dlpack__(stream=stream, **{k: v for k, v in options.items() if v is not None})

    def __dlpack_device__(self) -> Any:
        return self.backend.own(self).__dlpack_device__()

    @as_in_numpy_code
    def tolist(self) -> Any:
        """Return the values as Python scalars in nested lists.

        Returns
        -------
        list or number
            Lists nested as the axes are; a number for a 0-d Tensor.

        Raises
        ------
        RuntimeError
            Inside a function that a transform of `xpgrad.func` runs, if this Tensor carries a derivative that the transform computes.

        Warns
        -----
        UserWarning
            If this Tensor has a tangent, which the numbers do not have.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> x.tolist()
        [[1.0, 2.0], [3.0, 4.0]]
        """
        self._refuse_number("x.tolist()")
        self._warn_of_tangent("tolist()")
        return self._leaves("tolist()", self.backend.to_host(self._array).tolist())

    @as_in_numpy_code
    def item(self) -> Any:
        """Return the value of a Tensor with one element as a Python scalar.

        Returns
        -------
        number
            The only element, as a Python bool, int, float or complex.

        Raises
        ------
        ValueError
            If this Tensor does not have exactly one element.
        RuntimeError
            Inside a function that a transform of `xpgrad.func` runs, if this Tensor carries a derivative that the transform computes.

        Warns
        -----
        UserWarning
            If this Tensor has a tangent, which the number does not have.

        Examples
        --------
        >>> import xpgrad as xp
        >>> xp.tensor([2.5]).item()
        2.5
        """
        self._refuse_number("x.item()")
        self._warn_of_tangent("item()")
        return self._item("item()")

    def _item(self, call: str) -> Any:
        host = self.backend.to_host(self._array)
        if host.size != 1:
            msg = f"`item()` needs a Tensor with one element, but this one has shape {tuple(host.shape)}; index it first"
            raise ValueError(msg)
        return self._leaves(call, host.reshape(()).item())

    def _refuse_number(self, what: str) -> None:
        """Raise RuntimeError if a transform computes a derivative that a number would lose."""
        if (name := self._transformed_by()) is not None:
            msg = (
                f"Can't call {what} inside of a function transformed by `{name}` on a Tensor that carries a derivative: what is computed "
                "from the number would silently lose it. Stay with Tensors: write elements into one made by `xpgrad.zeros`, not into "
                "a NumPy array, put them together with `xpgrad.stack`; or use `x.detach()` first if a constant is meant"
            )
            raise RuntimeError(msg)

    def _item_in_numpy_code(self, what: str) -> Any:
        if self.size != 1:  # by this error programs find out that they have an array
            msg = f"{what} needs a Tensor with one element, but this one has shape {tuple(self.shape)}; index it first"
            raise TypeError(msg)
        return self._item(what)

    def _warned_item(self, what: str) -> Any:
        mode = state.current()
        numpy = None if mode is None else mode.numpy
        if numpy is not None and (self.size != 1 or numpy.is_formatting(sys._getframe(2))):
            return self._item_in_numpy_code(what)
        self._refuse_number(what)
        if self._node is not None:
            if numpy is not None and numpy.refuses_number(sys._getframe(2)):
                msg = (
                    "a Tensor that requires grad is written into an array of NumPy's, which would lose its gradient. Make the array inside "
                    "of the function, with `np.zeros`, `np.empty` or `np.array` of floating-point numbers (what is computed from integers "
                    "stays NumPy's), or pass it as an argument"
                )
                raise RuntimeError(msg)
            if numpy is not None and state.is_grad_enabled():
                msg = (
                    f"Can't call {what} on a Tensor that requires grad in code that `numpy_code` runs: a function outside of its modules "
                    "asked for the number, and what it computes would lose the gradient. Name the module in `modules` if it is written for "
                    "NumPy, use a function that xpgrad has, or `x.detach()` if a constant is meant"
                )
                raise RuntimeError(msg)
            warnings.warn(
                f"Converting a tensor with requires_grad=True to a scalar: {what} leaves the graph. Use `x.detach()` or `x.item()`",
                UserWarning,
                stacklevel=3,
            )
        else:
            self._warn_of_tangent(what)
        return self._item(what)

    def _warn_of_tangent(self, what: str) -> None:
        if self._has_tangent():
            warnings.warn(
                f"Converting a tensor with a tangent to a number: {what} leaves forward mode, and what is computed from the number has no "
                "tangent. Use `x.detach()` first where that is meant",
                UserWarning,
                stacklevel=3,
            )

    def _from_sequence(self, x: Any) -> Any:
        """Return a Tensor for a list or a tuple beside this one in code that was written for NumPy; None elsewhere, as in PyTorch."""
        mode = state.current()
        return None if mode is None or mode.numpy is None else mode.numpy.from_sequence(x)

    def __float__(self) -> float:
        value = self._warned_item("float(x)")
        if isinstance(value, complex):
            msg = "float() does not accept a complex Tensor; take `xpgrad.real(x)` first"
            raise TypeError(msg)
        return float(value)

    def __int__(self) -> int:
        mode = state.current()
        if mode is not None and mode.numpy is not None:
            value = self._item_in_numpy_code("int(x)")  # a step function, as the conversion of an array
        else:
            value = self._warned_item("int(x)")
        if isinstance(value, complex):
            msg = "int() does not accept a complex Tensor; take `xpgrad.real(x)` first"
            raise TypeError(msg)
        return int(value)

    def __complex__(self) -> complex:
        return complex(self._warned_item("complex(x)"))

    def __bool__(self) -> bool:
        if self.size != 1 and not self.depth:  # an element of a batch has no value, whatever its size
            what = f"{self.size} elements (shape {self.shape})" if self.size else f"no elements (shape {self.shape})"
            msg = f"the truth value of a Tensor with {what} is ambiguous; use `xpgrad.any(x)` or `xpgrad.all(x)`, or index one element"
            raise ValueError(msg)
        return bool(self._item("bool(x)"))

    def __index__(self) -> int:
        # NB: a TypeError, so that Python gives up: ``"a" * x`` calls this method after `x` has refused.
        if self.ndim or "integer" not in self.dtype.category:
            msg = f"only a 0-d integer Tensor can be used as an index, not shape {self.shape} of dtype {self.dtype}"
            raise TypeError(msg)
        return int(self._item("operator.index(x)"))

    def __hash__(self) -> int:
        mode = state.current()
        return object.__hash__(self) if mode is None or mode.numpy is None else int(mode.numpy.hash_of(self))

    def __format__(self, spec: str) -> str:
        if not spec:
            return repr(self)
        if self.size != 1:
            msg = (
                f"unsupported format string {spec!r} passed to a Tensor of shape {self.shape}: numbers are formatted, one at a time, and "
                "Tensors of one element; without a format, it is printed as a whole"
            )
            raise TypeError(msg)
        return format(self._item("format(x)"), spec)

    def __repr__(self) -> str:
        from xpgrad._tensor.printing import tensor_repr  # loads late: printing

        return tensor_repr(self)

    def __reduce__(self) -> Any:
        from xpgrad._tensor.copying import reduce_leaf  # loads late: pickles and copies

        return reduce_leaf(self)

    def __copy__(self) -> Tensor:
        from xpgrad._tensor.copying import shallow  # loads late: as above

        return shallow(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        from xpgrad._tensor.copying import deep  # loads late: as above

        return deep(self, memo)

    # -- Python's own functions; its operators are declared with the functions (`_operations.methods`) --------------

    def __abs__(self: Any) -> Tensor:
        return self._op_abs()

    def __rmatmul__(self: Any, other: Any, /) -> Tensor:
        first: Any = self._from_sequence(other) if other.__class__ in (list, tuple) else None
        return linear_algebra.matmul(other if first is None else first, self)

    def __iter__(self: Any) -> Iterator[Tensor]:
        if self.ndim == 0:
            msg = "a 0-d Tensor cannot be iterated over; use `x.item()` for its value"
            raise TypeError(msg)
        return (self[i] for i in range(self.shape[0]))

    def __contains__(self: Any, value: Any) -> bool:
        return bool((self == value).any())

    def __divmod__(self: Any, other: Any) -> Any:
        quotient = self // other
        return quotient if quotient is NotImplemented else (quotient, self % other)

    def __rdivmod__(self: Any, other: Any) -> Any:
        return other // self, other % self

    def __len__(self) -> int:
        if self.ndim == 0:
            msg = "a 0-d Tensor has no len()"
            raise TypeError(msg)
        return self.shape[0]

    # -- indexing and writing ------------------------------------------------------------------------------------

    __getitem__ = getitem  # no detour on the hot path

    if TYPE_CHECKING:

        def __setitem__(self, key: Any, value: Any) -> None: ...

    else:
        __setitem__ = writing.setitem

    # What the in-place methods of declared functions call (`_operations.methods`).
    _rewrite = writing.rewrite
    _update = writing.apply

    @_document_arithmetic
    def add_(self, other: Any, /, *, alpha: Any = 1) -> Tensor:
        """Add ``alpha * other`` in place.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([1.0, 4.0])
        >>> x.add_(1.0)
        tensor([2., 5.])
        """
        return writing.apply(self, "add", scale(self, other, alpha, "add_"))

    @_document_arithmetic
    def sub_(self, other: Any, /, *, alpha: Any = 1) -> Tensor:
        """Subtract ``alpha * other`` in place.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([1.0, 4.0])
        >>> x.sub_(1.0)
        tensor([0., 3.])
        """
        return writing.apply(self, "subtract", scale(self, other, alpha, "sub_"))

    @_document_in_place
    def clamp_(self, min: Any = None, max: Any = None) -> Tensor:  # noqa: A002 (PyTorch's names)
        """Limit the elements to ``[min, max]`` in place.

        Parameters
        ----------
        min, max : Tensor, raw array, int or float, optional
            Bounds, of shapes that broadcast to that of this Tensor; None means no bound.

        Raises
        ------
        TypeError
            If a bound is complex, or is floating-point and this Tensor is not.
        ValueError
            If the shape of a bound does not broadcast to that of this Tensor.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([-1.0, 0.5, 3.0])
        >>> x.clamp_(min=0.0)
        tensor([0. , 0.5, 3. ])
        """
        min, max = lift("clamp_", min, self), lift("clamp_", max, self)  # noqa: A001
        tensors = [b for b in (min, max) if isinstance(b, TensorBase)]
        return writing.rewrite(self, lambda x: elementwise.clip(x, min, max), *tensors)

    @_document_in_place
    def masked_fill_(self, mask: Tensor, value: Any) -> Tensor:
        """Replace the elements where `mask` is True by one value, in place.

        Parameters
        ----------
        mask : Tensor or raw array
            bool, of a shape that broadcasts to that of this Tensor.
        value : number or 0-d Tensor
            New value of these elements.

        Raises
        ------
        RuntimeError
            If `mask` does not hold bools, `value` has axes, or `mask` is larger than this Tensor; or if recording is on and this Tensor
            is a leaf that requires grad, or a view of such a leaf.
        TypeError
            If `mask` is not a Tensor or an array.
        ValueError
            If the shapes do not broadcast.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([1.0, 4.0])
        >>> x.masked_fill_(x > 2.0, 0.0)
        tensor([1., 0.])
        """
        mask, value = lift("masked_fill_", mask, self), lift("masked_fill_", value, self)
        need_tensor("masked_fill_", mask)
        if mask.dtype.category != "bool":
            msg = f"masked_fill_ only supports boolean masks, but got a mask of dtype {mask.dtype}; compare first, e.g. `mask != 0`"
            raise RuntimeError(msg)
        if getattr(value, "ndim", 0):
            msg = f"masked_fill_ only supports a 0-dimensional value Tensor, but got one of shape {value.shape}; use `xpgrad.where`"
            raise RuntimeError(msg)
        tensors = [t for t in (mask, value) if isinstance(t, TensorBase)]
        return writing.rewrite(self, lambda x: elementwise.where(mask, value, x), *tensors)

    @_document_in_place
    def index_add_(self, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1) -> Tensor:
        """Add slices of `source` at indices along an axis in place, duplicates included.

        Parameters
        ----------
        dim : int
            Axis to index.
        index : Tensor or raw array
            Integers, one-dimensional.
        source : Tensor or raw array
            Slices to add: the shape of this Tensor, with the length of `index` along the axis.
        alpha : number
            Factor of `source`.

        Raises
        ------
        RuntimeError
            If recording is on and this Tensor is a leaf that requires grad, or a view of such a leaf; or if the dtype of ``alpha *
            source`` cannot be cast to that of this Tensor.
        ValueError
            If the shape of `source` does not fit.
        IndexError
            If `dim` or an index is out of range, or `index` does not hold integers.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.zeros((3,))
        >>> x.index_add_(0, xp.asarray([2, 0, 2]), xp.tensor([1.0, 2.0, 3.0]))
        tensor([2., 0., 4.])
        """
        source = lift("index_add_", source, self)
        need_tensor("index_add_", source)
        source = scale(self, source, alpha, "index_add_")
        writing.refuse_kind(self, source.dtype, "index_add_: a `source` (times `alpha`) of dtype")
        return writing.rewrite(self, lambda x: add_slices(x, dim, index, source), source)

    @_document_in_place
    def zero_(self) -> Tensor:
        """Fill with zeros in place.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([1.0, 4.0])
        >>> x.zero_()
        tensor([0., 0.])
        """
        return writing.fill(self, 0)

    @_document_in_place
    @_document_fill
    def fill_(self, value: Any) -> Tensor:
        """Fill with one value in place.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([1.0, 4.0])
        >>> x.fill_(7.0)
        tensor([7., 7.])
        """
        return writing.fill(self, value)

    @_document_fill
    def fill(self, value: Any) -> None:
        """Fill with one value in place, as `fill_` does; NumPy's name, which returns nothing.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([1.0, 4.0])
        >>> x.fill(7.0)
        >>> x
        tensor([7., 7.])
        """
        writing.fill(self, value)

    @_document_in_place
    def copy_(self: Any, source: Any) -> Tensor:
        """Overwrite with the values of another Tensor in place; the gradient goes to `source`.

        Parameters
        ----------
        source : Tensor, raw array or number
            New values, of a shape that broadcasts to that of this Tensor.

        Raises
        ------
        TypeError
            If this Tensor's dtype cannot hold values of that kind.
        ValueError
            If `source` does not broadcast to the shape of this Tensor.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([1.0, 4.0])
        >>> x.copy_(xp.tensor([5.0, 6.0]))
        tensor([5., 6.])
        """
        if isinstance(source, (list, tuple)):
            msg = f"copy_: `source` must be a Tensor, an array or a number, but is {type(source).__name__} {source!r:.40}"
            raise TypeError(msg)
        writing.setitem(self, ..., source)
        return self

    def transpose_(self, dim0: int, dim1: int) -> Tensor:
        """Exchange two axes of this Tensor itself; no other Tensor may share its memory.

        Parameters
        ----------
        dim0, dim1 : int
            Axes to exchange.

        Returns
        -------
        Tensor
            This Tensor, with its new shape.

        Raises
        ------
        RuntimeError
            If this Tensor is a leaf that requires grad, or shares its memory with another Tensor.
        IndexError
            If an axis is out of range.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.ones((2, 3))
        >>> x.transpose_(0, 1).shape
        (3, 2)
        """
        return turning.turn(self, dim0, dim1)

    # -- shape -----------------------------------------------------------------------------------------------------

    @property
    def T(self: Any) -> Tensor:  # noqa: N802 (the standard's name)
        """Transpose of a matrix, as a view.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> x.T
        tensor([[1., 3.],
                [2., 4.]])
        """
        if self.ndim != 2:
            out: Any = call_numpys("T", self)
            if out is not NotImplemented:
                return out
            msg = f"`.T` is for matrices, but this Tensor has shape {self.shape}; use `.mT` or `xpgrad.permute_dims`"
            raise missing(ValueError)(msg)
        return manipulation.matrix_transpose(self)

    @property
    def mT(self: Any) -> Tensor:  # noqa: N802 (the standard's name)
        """View of this Tensor with its last two axes exchanged.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> x.mT
        tensor([[1., 3.],
                [2., 4.]])
        """
        if self.ndim < 2:
            msg = f"`.mT` (matrix_transpose) needs at least 2 axes, but this Tensor has shape {self.shape}"
            raise missing(ValueError)(msg)
        return manipulation.matrix_transpose(self)

    @property
    def real(self: Any) -> Tensor:
        """Real part: a view if this Tensor is complex, otherwise this Tensor.

        Examples
        --------
        >>> import xpgrad as xp
        >>> xp.tensor([1.0 + 2.0j]).real
        tensor([1.])
        """
        return elementwise.real(self)

    @real.setter
    def real(self: Any, value: Any) -> None:
        self.real[...] = value

    @property
    def imag(self: Any) -> Tensor:
        """Imaginary part of a complex Tensor, as a view.

        Examples
        --------
        >>> import xpgrad as xp
        >>> xp.tensor([1.0 + 2.0j]).imag
        tensor([2.])
        """
        if not self.dtype.is_complex:
            out: Any = call_numpys("imag", self)
            if out is not NotImplemented:
                return out
            msg = f"`.imag` needs a complex Tensor, but this one has dtype {self.dtype}; use `xpgrad.zeros_like(x)` for a real one"
            raise missing(TypeError)(msg)
        return elementwise.imag(self)

    @imag.setter
    def imag(self: Any, value: Any) -> None:
        if not self.dtype.is_complex:
            msg = f"a real Tensor has no imaginary part that can be written: it has dtype {self.dtype}; cast it with `xpgrad.astype` first"
            raise TypeError(msg)
        self.imag[...] = value

    def to_device(self, device: Any, /, *, stream: Any = None) -> Tensor:
        """Return this Tensor on another device, or itself if it is there; the gradient moves back.

        Parameters
        ----------
        device : Device or str
            Device of the result.
        stream : object, optional
            Accepted as the standard requires, and ignored.

        Returns
        -------
        Tensor
            Has the shape and dtype of this Tensor.

        Raises
        ------
        BackendNotFoundError, BackendLoadError, ValueError
            If there is no such device.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([1.0, 4.0])
        >>> x.to_device("numpy+readonly").device
        Device('numpy+readonly')
        """
        return to_device(self, device, stream=stream)  # type: ignore[arg-type]
