"""`numpy.vectorize` in code that was written for NumPy: the function gets the elements of Tensors one by one."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from xpgrad._modes import state
from xpgrad._numpy.semantics import first_tensor
from xpgrad._numpy.table import FUNCTIONS, LIKE
from xpgrad._tensor.tensor import Tensor
from xpgrad.func._tree import tree_map

__all__ = ["Vectorized"]

#: NumPy: `chapters` loaded it.
_np: Any = sys.modules["numpy"]


class Vectorized:
    """What stands for an object of the class `numpy.vectorize`.

    Parameters
    ----------
    numpys : numpy.vectorize
    convert : callable
        It turns NumPy's arrays into Tensors.
    """

    def __init__(self, numpys: Any, convert: Callable[[Any], Any]) -> None:
        self.numpys, self.convert = numpys, convert

    def __getattr__(self, name: str) -> Any:
        return getattr(self.numpys, name)

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Call the function with each element of the broadcast arguments, and put its results together.

        Raises
        ------
        TypeError
            If Tensors are among the arguments of a function with a signature.
        """
        mode = state.current()
        if mode is None or mode.numpy is None:
            return self.numpys(*args, **options)
        like = first_tensor((args, options))
        if like is None:
            out = self.numpys(*args, **options)
            return Vectorized(out, self.convert) if isinstance(out, _np.vectorize) else tree_map(self.convert, out)
        if self.numpys.signature is not None:
            msg = "np.vectorize with a signature has no rule in xpgrad; use `xpgrad.func.vmap`, or a loop over the first axis"
            raise TypeError(msg)
        spread = self._broadcast(like, {key: x for key, x in (*enumerate(args), *options.items()) if key not in self.numpys.excluded})
        shape = next(iter(spread.values())).shape if spread else ()
        found = []
        for place in _np.ndindex(*shape):
            parts = {key: x[place] if isinstance(x, Tensor) else x[place].item() for key, x in spread.items()}
            values = [parts.get(k, x) for k, x in enumerate(args)]
            found.append(self.numpys.pyfunc(*values, **{key: parts.get(key, x) for key, x in options.items()}))
        if not found:
            msg = "np.vectorize got an array without elements, from which the dtype of its result cannot be told"
            raise ValueError(msg)
        if isinstance(found[0], tuple):
            return tuple(self._put_together(like, k, [out[k] for out in found], shape) for k in range(len(found[0])))
        return self._put_together(like, 0, found, shape)

    @staticmethod
    def _broadcast(like: Any, given: dict[Any, Any]) -> dict[Any, Any]:
        """Return the arguments as arrays of a common shape."""
        arrays = {}
        for key, x in given.items():
            is_array = not isinstance(x, Tensor) and first_tensor(x) is None
            arrays[key] = _np.asarray(x) if is_array else LIKE["asarray"](like, x)
        shape = _np.broadcast_shapes(*(tuple(x.shape) for x in arrays.values()))
        return {key: _np.broadcast_to(x, shape) for key, x in arrays.items()}

    def _put_together(self, like: Any, k: int, values: list[Any], shape: tuple[int, ...]) -> Any:
        """Return an output as an array; as in NumPy, its dtype is that of the first value if `otypes` does not say it."""
        types = self.numpys.otypes
        first = values[0]
        dtype = _np.dtype(types[k]).name if types else str(first.dtype) if isinstance(first, Tensor) else _np.asarray(first).dtype.name
        if first_tensor(values) is None:
            return self.convert(_np.array(values, dtype=dtype).reshape(shape))
        return FUNCTIONS["reshape"].call(LIKE["array"](like, values, dtype=dtype), shape)
