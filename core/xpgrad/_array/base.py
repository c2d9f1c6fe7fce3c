"""`TensorBase`: what the engine, the rules and the rows ask of a Tensor: its array, shape, dtype, device and class.

As PyTorch's `torch.Tensor` stands on `torch._C.TensorBase`: the autograd state's slots are here, what users do with them is above.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar, Self

from xpgrad._basics.device import Device
from xpgrad._basics.dtypes import DType

#: What the layers below ask of a Tensor or of its class; their names are in generated texts, so they have no underscore, but completion
#: does not show them.
_OF_THE_LAYERS = frozenset(("align", "backend", "buffer", "default_dtype", "depth", "fresh", "inner", "lift", "scalar", "stage"))


class TensorBase:
    """A backend's array in a class that says where it lives. The trampolines of all operations are set on this class.

    Attributes
    ----------
    device : Device
    backend : Backend
    fresh : type or None
        The class that a stale view returns to when it is renewed (`_aliasing.stale`).
    depth : int
        The number of batches it is an element of (`_transforms.batch`).
    stage : int
        The number of interpreters it is inside of: batches, and a capture (`programs.capture`). Where Tensors meet, the highest wins.
    inner : type or None
        The class of Tensors one stage below.
    """

    __slots__ = ("__weakref__", "_alias", "_array", "_dead_node", "_grad", "_node")

    _array: Any
    _node: Any
    _alias: Any
    _grad: Any
    _dead_node: Any

    device: ClassVar[Device]
    backend: ClassVar[Any]
    fresh: ClassVar[Any] = None
    depth: ClassVar[int] = 0
    stage: ClassVar[int] = 0
    inner: ClassVar[Any] = None
    # What the engine asks of a node and a constant operand alike: a Tensor is never part of a pass.
    buffer: ClassVar[None] = None

    def __dir__(self) -> list[str]:
        return sorted(set(super().__dir__()) - _OF_THE_LAYERS)

    # -- attributes of the standard ----------------------------------------------------------------------------

    @property
    def dtype(self) -> DType:
        """The data type.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([1.0, 4.0])
        >>> x.dtype
        xpgrad.float64
        """
        return self.backend.dtype_of(self._array.dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the axes.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> x.shape
        (2, 2)
        """
        return tuple(self._array.shape)

    @property
    def ndim(self) -> int:
        """The number of axes.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> x.ndim
        2
        """
        return len(self._array.shape)

    @property
    def size(self) -> int:
        """The number of elements.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> x.size
        4
        """
        return math.prod(self._array.shape)

    @property
    def itemsize(self) -> int:
        """Bytes per element.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([1.0, 4.0])
        >>> x.itemsize
        8
        """
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([1.0, 4.0])
        >>> x.nbytes
        16
        """
        return self.size * self.dtype.itemsize

    # -- views and stand-ins -----------------------------------------------------------------------------------

    def is_inference(self) -> bool:
        """Return whether this Tensor was made in inference mode (INF-01).

        Returns
        -------
        bool
            Whether it was made in inference mode.

        Examples
        --------
        >>> import xpgrad as xp
        >>> with xp.inference_mode():
        ...     x = xp.ones((2,))
        >>> x.is_inference()
        True
        """
        return False

    def _stand_in(self) -> Any:
        """This Tensor; an inference tensor's stand-in of the normal class."""
        return self

    def _is_view(self) -> bool:
        return self._alias is not None and self._alias.parent is not None

    @property
    def _base(self) -> Any:
        """The Tensor at the bottom of a chain of views; None for a Tensor that is not a view."""
        tensor = self
        while tensor._alias is not None and tensor._alias.parent is not None:
            tensor = tensor._alias.parent
        return None if tensor is self else tensor

    # -- making Tensors ----------------------------------------------------------------------------------------

    @classmethod
    def _wrap(cls, raw: Any) -> Self:
        """A constant of this class, or of this Tensor's, around a raw array."""
        out = object.__new__(cls)
        out._array = raw
        out._node = out._alias = None
        return out

    @classmethod
    def scalar(cls, value: complex, dtype: DType) -> Self:
        """A 0-d constant of this class."""
        backend = cls.backend
        raw = backend.namespace().asarray(value, dtype=backend.raw_dtype(dtype))
        return cls._wrap(raw if backend.is_host else backend.to_device(raw, cls.device))

    @classmethod
    def default_dtype(cls, kind: str) -> DType:
        """The default dtype of a kind on this class's device."""
        return cls.backend.default_dtype(kind, cls.device)

    # -- what `Tensor`, above, defines and the layers between ask of the object ----------------------------------

    if TYPE_CHECKING:

        @property
        def requires_grad(self) -> bool: ...
        def _cast(self, dtype: DType) -> Any: ...
        def clone(self) -> Any: ...
        def detach(self) -> Any: ...
        def numpy(self) -> Any: ...
        def to_device(self, device: Any, /, *, stream: Any = None) -> Any: ...
        def _moved_to(self, device: Device) -> Any: ...

    # -- batches -----------------------------------------------------------------------------------------------

    @classmethod
    def align(cls, tensors: list[Any]) -> list[Any]:
        """Tensors of different stages, all of this class, which is the highest among theirs."""
        return tensors

    @classmethod
    def lift(cls, x: Any) -> Any:
        """A Tensor of a class below as one of this class: the same value for all elements of a batch."""
        return x
