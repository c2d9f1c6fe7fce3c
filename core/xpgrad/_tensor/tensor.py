"""`Tensor`: a backend's array that records how it was computed. Its autograd state is here; `methods` has its named methods.

There is one class per device, made at first use; all are named `Tensor`. So one comparison of classes tells whether two operands share a
backend and a device, and each class has the operators that were generated for its backend.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from xpgrad._aliasing.cells import Alias, DetachedCell, alias_of, note_sharing, share_inference, share_memory
from xpgrad._aliasing.sharing import replace_data
from xpgrad._array import classes
from xpgrad._array.base import TensorBase
from xpgrad._array.checks import need_tensor
from xpgrad._basics.arguments import as_flag
from xpgrad._basics.dtypes import DType, as_dtype
from xpgrad._modes import state
from xpgrad._rows import namespace
from xpgrad._tape import requests
from xpgrad._tape.hook_tables import RemovableHandle, add_hook, hooks_of
from xpgrad._tape.leaf import AccumulateGrad
from xpgrad._tape.node import Node
from xpgrad._tensor.methods import TensorMethods
from xpgrad._tensor.missing import MissingAttributes
from xpgrad._tensor.torch_functions import TorchFunctions
from xpgrad._tensor.torch_methods import TorchMethods
from xpgrad._tensor.torch_reductions import TorchReductions
from xpgrad.errors import missing
from xpgrad.rules.creation import cast

if TYPE_CHECKING:
    from xpgrad._tensor.declared import DeclaredMethods  # pyright: ignore[reportMissingModuleSource] (a stub alone)
else:
    DeclaredMethods = TensorBase  # on which the declarations set their methods (`_operations.methods`)

_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")
_LEAF_ONLY = (
    "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a subgraph that doesn't "
    "require differentiation use `x.detach()`"
)


class Tensor(TensorMethods, TorchMethods, TorchFunctions, TorchReductions, DeclaredMethods):
    """An array of a backend's library with a gradient. Make one with `xpgrad.tensor` or `xpgrad.asarray`.

    Parameters
    ----------
    *args, **kwargs : object
        Refused: the class cannot be called.

    Attributes
    ----------
    device : Device
        Device on which the array is.
    dtype : DType
        Data type of the elements.
    shape : tuple of int
        Lengths of the axes.
    requires_grad : bool
        Whether gradients flow to this Tensor.
    grad : Tensor or None
        Accumulated gradient.
    grad_fn : Node or None
        Node of the operation that made this Tensor.

    Raises
    ------
    TypeError
        Always: `xpgrad.tensor` and `xpgrad.asarray` make Tensors.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x = xp.tensor([1.0, 2.0], requires_grad=True)
    >>> isinstance(x, xp.Tensor)
    True
    >>> y = (x * x).sum()
    >>> y.backward()
    >>> x.grad
    tensor([2., 4.])
    """

    __module__ = "xpgrad"
    __slots__ = ()
    #: More than a DataFrame has: pandas leaves its operators with a Tensor to the Tensor, whose result has a gradient.
    __pandas_priority__ = 5000

    def __new__(cls, *args: Any, **kwargs: Any) -> Tensor:
        msg = "`Tensor` cannot be called; make one with `xpgrad.tensor(data)`, which copies, or `xpgrad.asarray(array)`"
        raise TypeError(msg)

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """Return the namespace of this Tensor's device: the package `xpgrad` for the default device; see `xpgrad.namespace`."""
        if api_version is not None and api_version not in _VERSIONS:
            msg = f"xpgrad supports versions {', '.join(_VERSIONS)} of the Array API standard, not {api_version!r}"
            raise ValueError(msg)
        return namespace.package.namespace(self.device)

    # The package `_numpy` loads at the first call, and replaces these two methods by its own.
    def __array_ufunc__(self, ufunc: Any, method: str, /, *inputs: Any, **kwargs: Any) -> Any:
        """Apply a NumPy ufunc, and record it (NEP 13)."""
        namespace.package._numpy_functions()
        return self.__array_ufunc__(ufunc, method, *inputs, **kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Apply a NumPy function that is not a ufunc, and record it (NEP 18)."""
        namespace.package._numpy_functions()
        return self.__array_function__(func, types, args, kwargs)

    # -- autograd ----------------------------------------------------------------------------------------------

    @property
    def requires_grad(self) -> bool:
        """Whether gradients flow to this Tensor; can be set on leaves.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([1.0, 4.0], requires_grad=True)
        >>> (x * 2.0).requires_grad
        True
        """
        node = self._node
        return node is not None and not (node.is_leaf and node.off)

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if not isinstance(value, bool):
            msg = f"requires_grad must be a bool, but got {type(value).__name__}"
            raise RuntimeError(msg)  # noqa: TRY004 (PyTorch's type, ACC-16)
        self.requires_grad_(value)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Set whether gradients flow to this leaf.

        Parameters
        ----------
        requires_grad : bool
            Whether to record operations on this Tensor.

        Returns
        -------
        Tensor
            This Tensor.

        Raises
        ------
        RuntimeError
            If a non-leaf is to stop requiring grad, if the dtype is neither floating-point nor complex, or for an inference tensor outside
            inference mode; also if a view of this Tensor exists, whose gradients would be lost.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([1.0, 4.0])
        >>> x.requires_grad_().requires_grad
        True
        """
        if requires_grad is not True and not as_flag(requires_grad, "requires_grad_", "requires_grad"):
            if not self.is_leaf:
                raise RuntimeError(_LEAF_ONLY)
            if self._node is not None:
                if not self.is_inference():
                    alias_of(self)  # nodes that saved this leaf look up its version through its node
                self._node.off = True
                self._dead_node = self._node
                self._node = None
            return self
        if self._node is not None:
            return self
        if not self.dtype.differentiable:
            msg = (
                f"Only Tensors of floating point and complex dtype can require gradients, but this one is {self.dtype}; leave "
                "`requires_grad` False, or convert it with `xpgrad.astype`"
            )
            raise RuntimeError(msg)
        if self.is_inference() and not state.is_inference_mode_enabled():
            msg = "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed; use a `clone()` of it"
            raise RuntimeError(msg)
        node = getattr(self, "_dead_node", None)
        if node is not None:
            node.off = False
            self._dead_node = None
        else:
            if self._alias is not None and self._alias.cell is not None and self._alias.parent is None:
                _refuse_lost_views(self)
            node = AccumulateGrad(self)
            node.grad = getattr(self, "_grad", None)
        self._node = node
        return self

    @property
    def is_leaf(self) -> bool:
        """Whether the user made this Tensor, or it does not require grad.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([1.0, 4.0], requires_grad=True)
        >>> x.is_leaf, (x * 2.0).is_leaf
        (True, False)
        """
        node = self._node
        return node is None or node.is_leaf or node.original.is_leaf

    @property
    def grad_fn(self) -> Node | None:
        """Node of the operation that made this Tensor; None for leaves.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([1.0, 4.0], requires_grad=True)
        >>> (x * 2.0).grad_fn.name()
        'MulBackward0'
        >>> x.grad_fn is None
        True
        """
        node = self._node
        if node is None or node.original.is_leaf:  # or a hook on saved values has unpacked a leaf
            return None
        self._note_meta()
        return node.owner

    def _note_meta(self) -> None:
        """Store this Tensor's shape, dtype and class in its node, when the user gets access to the node."""
        self._node.original._meta = (self.shape, self.dtype, type(self))

    @property
    def output_nr(self) -> int:
        """Position of this Tensor among the outputs of `grad_fn`; 0 if it has none.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([[2.0, 0.0], [0.0, 3.0]], requires_grad=True)
        >>> sign, logabsdet = xp.linalg.slogdet(x)
        >>> sign.output_nr, logabsdet.output_nr
        (0, 1)
        """
        return 0 if self._node is None else self._node.output_nr

    @property
    def grad(self) -> Tensor | None:
        """Accumulated gradient; None until a backward pass reaches this leaf.

        A non-leaf has one after `retain_grad()`; reading it before warns and gives None.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([1.0, 4.0], requires_grad=True)
        >>> x.grad is None
        True
        >>> (x**2).sum().backward()
        >>> x.grad
        tensor([2., 8.])
        """
        node = self._node
        if node is None:
            dead = getattr(self, "_dead_node", None)
            return getattr(self, "_grad", None) if dead is None else dead.grad
        if node.is_leaf:
            return node.grad
        node = node.original
        if node.is_leaf:  # a hook on saved values has unpacked this leaf
            return node.grad
        hooks = node.hooks
        if hooks is not None and hooks.retain:
            return hooks.retained
        warnings.warn(
            "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. It is not filled by backward(); call "
            "`retain_grad()` on it before, or read the gradient of the leaf that it was computed from",
            UserWarning,
            stacklevel=2,
        )
        return None

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None:
            check_assigned(self, value)
        node = self._node
        if node is None:
            dead = getattr(self, "_dead_node", None)
            if dead is None:
                self._grad = value
            else:
                dead.grad = value
        elif node.is_leaf:
            node.grad = value
        else:
            hooks_of(node).retained = value

    @grad.deleter
    def grad(self) -> None:
        self.grad = None

    @property
    def grad_dtype(self) -> DType | None:
        """Dtype that `.grad` of this leaf must have; None allows any.

        Reading it from a non-leaf raises RuntimeError.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([1.0, 4.0], requires_grad=True)
        >>> x.grad_dtype
        xpgrad.float64
        """
        if not self.is_leaf:
            msg = "grad_dtype can only be accessed on leaf tensors."
            raise missing(RuntimeError)(msg)
        return self.dtype if self._node is None else self._node.grad_dtype

    @grad_dtype.setter
    def grad_dtype(self, value: Any) -> None:
        if not self.is_leaf:
            msg = "grad_dtype can only be accessed on leaf tensors."
            raise missing(RuntimeError)(msg)
        if self._node is None:
            msg = "grad_dtype can only be set on Tensors that require grad; call `requires_grad_()` first"
            raise RuntimeError(msg)
        dtype = None if value is None else as_dtype(value)
        if dtype is not None and self.grad is not None and self.grad.dtype is not dtype:
            msg = f"cannot set grad_dtype to {dtype} while .grad has dtype {self.grad.dtype}; set `.grad = None` first"
            raise RuntimeError(msg)
        self._node.grad_dtype = dtype

    @property
    def retains_grad(self) -> bool:
        """Whether backward passes fill `.grad` of this non-leaf.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([1.0, 4.0], requires_grad=True)
        >>> y = x * 2.0
        >>> y.retain_grad()
        >>> y.retains_grad
        True
        """
        node = None if self._node is None else self._node.original
        return node is not None and not node.is_leaf and node.hooks is not None and node.hooks.retain

    def retain_grad(self) -> None:
        """Make backward passes fill `.grad` of this non-leaf; no effect on leaves.

        Raises
        ------
        RuntimeError
            If this Tensor does not require grad.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([1.0, 4.0], requires_grad=True)
        >>> y = x * 2.0
        >>> y.retain_grad()
        >>> (y**2).sum().backward()
        >>> y.grad
        tensor([ 4., 16.])
        """
        if self._node is None:
            msg = "can't retain_grad on Tensor that has requires_grad=False; call `requires_grad_()` on it or on its inputs"
            raise RuntimeError(msg)
        if not self._node.is_leaf:
            hooks_of(self._node).retain = True

    def backward(self, gradient: Any = None, retain_graph: bool | None = None, create_graph: bool = False, inputs: Any = None) -> None:
        """Differentiate this Tensor with respect to the leaves and add to their `.grad` (`torch.Tensor.backward`).

        Parameters
        ----------
        gradient : Tensor or None
            Vector of the vector-Jacobian product, of this Tensor's shape. None means 1, and needs a real Tensor with one element.
        retain_graph : bool or None
            Whether to keep the saved values for another pass. None means the value of `create_graph`.
        create_graph : bool
            Whether to record the backward pass, so that the gradients can be differentiated.
        inputs : Tensor, GradientEdge, or sequence or dict of them, or None
            The only ones whose `.grad` to add to. None means all leaves.

        Raises
        ------
        RuntimeError, TypeError
            As `xpgrad.autograd.backward`.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([1.0, 4.0], requires_grad=True)
        >>> (x**2).backward(xp.tensor([1.0, 10.0]))
        >>> x.grad
        tensor([ 2., 80.])
        """
        requests.backward(self, gradient, retain_graph, create_graph, inputs=inputs)

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> RemovableHandle:
        """Call ``hook(grad)`` each time this Tensor's gradient has been computed.

        Parameters
        ----------
        hook : callable
            Takes the gradient; the Tensor that it returns, if not None, replaces the gradient.

        Returns
        -------
        RemovableHandle
            Its `remove` method removes the hook.

        Raises
        ------
        RuntimeError
            If this Tensor does not require grad.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([1.0, 4.0], requires_grad=True)
        >>> handle = x.register_hook(lambda grad: 10.0 * grad)
        >>> (x**2).sum().backward()
        >>> x.grad
        tensor([20., 80.])
        """
        if self._node is None:
            msg = "cannot register a hook on a tensor that doesn't require gradient; call `requires_grad_()` first"
            raise RuntimeError(msg)
        return add_hook(hooks_of(self._node).tensor, hook)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> RemovableHandle:
        """Call ``hook(leaf)`` each time a backward pass has added to `.grad` of this leaf.

        Parameters
        ----------
        hook : callable
            Takes the leaf; what it returns is ignored.

        Returns
        -------
        RemovableHandle
            Its `remove` method removes the hook.

        Raises
        ------
        RuntimeError
            If this Tensor does not require grad or is not a leaf.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([1.0, 4.0], requires_grad=True)
        >>> handle = x.register_post_accumulate_grad_hook(lambda leaf: print("got", leaf.grad))
        >>> (x**2).sum().backward()
        got tensor([2., 8.])
        """
        if self._node is None:
            msg = "cannot register a hook on a tensor that doesn't require gradient; call `requires_grad_()` first"
            raise RuntimeError(msg)
        if not self.is_leaf:
            msg = "post accumulate grad hooks cannot be registered on non-leaf tensors; use `register_hook`"
            raise RuntimeError(msg)
        return add_hook(hooks_of(self._node).post_accumulate, hook)

    def detach(self) -> Tensor:
        """Return a Tensor with the same memory and version counter but without history.

        Returns
        -------
        Tensor
            Has the shape and dtype of this Tensor and does not require grad. It shares the memory: a write to one changes both.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([1.0, 4.0], requires_grad=True)
        >>> x.detach().requires_grad
        False
        """
        out = self._wrap(self.backend.own(self))
        if self.is_inference():
            share_inference(out, self)
        else:
            share_memory(out, self)
        return self._leaves("detach()", out)

    def detach_(self) -> Tensor:
        """Detach this Tensor from its history: it becomes a leaf that does not require grad.

        Returns
        -------
        Tensor
            This Tensor.

        Raises
        ------
        RuntimeError
            If this Tensor is a view.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([1.0, 4.0], requires_grad=True)
        >>> y = x * 2.0
        >>> y.detach_().requires_grad
        False
        """
        if self._alias is not None and self._alias.parent is not None:
            msg = "Can't detach views in-place. Use detach() instead."
            raise RuntimeError(msg)
        if self._node is not None and self._node.is_leaf:
            self.requires_grad_(False)
        elif self._node is not None:
            self._node._alias = DetachedCell(alias_of(self).cell)
        self._node = None
        mode = state.current()
        if mode is not None and mode.levels:
            mode.levels.forget(self)
        return self

    @property
    def data(self) -> Tensor:
        """A Tensor with the same memory but without history, and with its own version counter: autograd does not detect writes to it.

        A Tensor of the same shape, dtype and device may be assigned: its memory is shared from then on.

        Raises
        ------
        TypeError
            If the assigned object is not a Tensor.
        RuntimeError
            If the assigned Tensor has another shape, dtype or device, or this Tensor is a view or has views.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([1.0, 4.0], requires_grad=True)
        >>> x.data.requires_grad
        False
        >>> x.data -= 0.5
        >>> x
        tensor([0.5, 3.5], requires_grad=True)
        """
        out = self._wrap(self.backend.own(self))
        if self.is_inference():
            share_inference(out, self)
        else:
            alias = alias_of(self)
            cell = type(alias.cell)()
            cell.views = alias.cell.views  # if a write makes new arrays, all Tensors that share the memory get them
            out._alias = Alias(cell, alias.path, alias.memory)
            note_sharing(out)
        return self._leaves(".data", out)

    @data.setter
    def data(self, value: Tensor) -> None:
        need_tensor("data", value)
        replace_data(self, value)

    @property
    def _version(self) -> int:
        if self.is_inference():
            msg = "Inference tensors do not track version counter."
            raise missing(RuntimeError)(msg)
        if self._alias is None and self._node is not None and self._node._alias is not None:
            alias_of(self)  # a saved value that was read shares this memory
        return 0 if self._alias is None else self._alias.cell.version

    def _cast(self, dtype: DType) -> Tensor:
        """Convert this Tensor to another dtype, as a recorded operation; return it unchanged if it has that dtype."""
        if self.dtype is dtype:
            return self
        return cast(self, self.backend.raw_dtype(dtype))

    def _become_inference(self) -> None:
        """Mark a fresh result as made in inference mode."""
        from xpgrad._tensor.inference import inference_class  # loads late: inference mode

        self._node = None
        self.__class__ = inference_class(type(self))
        self._alias = Alias(None)
        self._alias.forbidden = "inference"


def is_inference(input: Tensor) -> bool:  # noqa: A002 (PyTorch's name)
    """Return whether a Tensor was made in inference mode, or is a view of one that was (`torch.is_inference`).

    Parameters
    ----------
    input : Tensor
        Tensor to ask.

    Returns
    -------
    bool
        True for an inference tensor.

    Raises
    ------
    TypeError
        If `input` is not a Tensor.

    Examples
    --------
    >>> import xpgrad as xp
    >>> with xp.inference_mode():
    ...     x = xp.zeros((2,))
    >>> xp.is_inference(x)
    True
    """
    need_tensor("is_inference", input)
    return input.is_inference()


def _refuse_lost_views(tensor: Tensor) -> None:
    """Raise RuntimeError for a Tensor with living views: one taken before `requires_grad_()` would never pass a gradient on (MUT-25)."""
    for ref in tensor._alias.cell.views:
        found = ref()
        if found is not None and found._alias.parent is tensor:
            msg = (
                "requires_grad_() was called on a Tensor with a living view: gradients through that view would be lost. Call "
                "`requires_grad_()` before taking the view, or delete the view, or view a `detach()` of the Tensor"
            )
            raise RuntimeError(msg)


def check_assigned(tensor: Any, value: Any) -> None:
    """Raise an error for a value that cannot be a `.grad` (ACC-19).

    Raises
    ------
    TypeError
        If it is not a Tensor.
    RuntimeError
        If it is the Tensor itself, or has another shape, dtype or device.
    """
    if not isinstance(value, Tensor):
        msg = f"assigned grad expected to be a Tensor or None but got grad of type {type(value).__name__}"
        raise TypeError(msg)
    if value is tensor:
        msg = "can't assign Variable as its own grad"
        raise RuntimeError(msg)
    if value.shape != tensor.shape:
        msg = f"attempting to assign a gradient of size '{list(value.shape)}' to a tensor of size '{list(tensor.shape)}'"
        raise RuntimeError(msg + "; the sizes must be equal")
    node = tensor._node
    wanted = node.grad_dtype if node is not None and node.is_leaf else tensor.dtype
    if wanted is not None and value.dtype is not wanted:
        msg = f"attempting to assign a gradient with dtype '{value.dtype}' to a tensor with grad_dtype '{wanted}'; use `xpgrad.astype`"
        raise RuntimeError(msg)
    if value.device != tensor.device:
        msg = (
            f"attempting to assign a gradient with device type '{value.device}' to a tensor with device type '{tensor.device}'; "
            "use `to_device`"
        )
        raise RuntimeError(msg)


classes.use(Tensor, MissingAttributes)
