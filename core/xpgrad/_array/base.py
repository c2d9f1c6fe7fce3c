"""`TensorBase`: the part of a Tensor that the engine, the rules and the rows use: its array, shape, dtype, device and class.

The slots of the autograd state are here; the methods that users call are defined in `Tensor`, a subclass.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar, Self

from xpgrad._basics.device import Device
from xpgrad._basics.dtypes import DType

#: Attributes that the layers below use. Generated texts name them, so they have no underscore, but `dir` does not show them.
OF_THE_LAYERS = frozenset(("align", "backend", "buffer", "default_dtype", "depth", "fresh", "inner", "lift", "normal", "scalar", "stage"))


class TensorBase:
    """A raw array in a class that determines its backend and device. The trampolines of all operations are set here.

    Attributes
    ----------
    device : Device
    backend : Backend
    normal : type or None
        Of the class of inference tensors, the normal class.
    fresh : type or None
        The class that a stale view returns to when it is renewed (`_aliasing.stale`).
    depth : int
        The number of nested batches that contain it as an element (`_transforms.batch`).
    stage : int
        The number of interpreters around it: batches, and a capture (`programs.capture`). Operands are lifted to the highest.
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
    normal: ClassVar[Any] = None
    depth: ClassVar[int] = 0
    stage: ClassVar[int] = 0
    inner: ClassVar[Any] = None
    # The engine reads `buffer` of nodes and of constant operands alike; a Tensor is never part of a pass.
    buffer: ClassVar[None] = None

    def __dir__(self) -> list[str]:
        return sorted(set(super().__dir__()) - OF_THE_LAYERS)

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
        """Lengths of the axes.

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
        """Number of axes.

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
        """Number of elements.

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
        """Number of bytes per element.

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
        """Number of bytes of all elements.

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
        """Return whether this Tensor was created in inference mode.

        Returns
        -------
        bool
            Whether it was created in inference mode.

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
        """Return this Tensor, or for an inference tensor its stand-in of the normal class."""
        return self

    def _is_view(self) -> bool:
        return self._alias is not None and self._alias.parent is not None

    @property
    def _base(self) -> Any:
        """The Tensor at the start of a chain of views; None for a Tensor that is not a view."""
        tensor = self
        while tensor._alias is not None and tensor._alias.parent is not None:
            tensor = tensor._alias.parent
        return None if tensor is self else tensor

    # -- making Tensors ----------------------------------------------------------------------------------------

    @classmethod
    def _wrap(cls, raw: Any) -> Self:
        """Wrap a raw array as a constant of this class."""
        out = object.__new__(cls)
        out._array = raw
        out._node = out._alias = None
        return out

    @classmethod
    def scalar(cls, value: complex, dtype: DType) -> Self:
        """Return a 0-d constant of this class."""
        backend = cls.backend
        raw = backend.namespace().asarray(value, dtype=backend.raw_dtype(dtype))
        return cls._wrap(raw if backend.is_host else backend.to_device(raw, cls.device))

    @classmethod
    def default_dtype(cls, kind: str) -> DType:
        """Return the default dtype of a kind on this class's device."""
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
        def _move_to(self, device: Device) -> Any: ...

    # -- batches -----------------------------------------------------------------------------------------------

    def _from_sequence(self, x: Any) -> Any:
        """Return a Tensor for a list or tuple that meets this one as an operand; None if it is refused, as in PyTorch."""
        return None

    @classmethod
    def align(cls, tensors: list[Any]) -> list[Any]:
        """Convert Tensors of different stages to this class, which belongs to the highest stage among them."""
        return tensors

    @classmethod
    def lift(cls, x: Any) -> Any:
        """Convert a Tensor of a class below to this class; it has the same value for all elements of a batch."""
        return x
