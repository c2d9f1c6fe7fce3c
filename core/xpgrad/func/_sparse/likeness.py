"""Likeness: what arguments must have in common with those for which a derivative was prepared."""

from __future__ import annotations

from typing import Any

from xpgrad._array.base import TensorBase
from xpgrad._basics.scalars import NOT_SCALAR, as_scalar
from xpgrad._operations.lift import is_constant
from xpgrad._rows.namespace import operations
from xpgrad.func._sparse.tracing import Call
from xpgrad.func._tree import flatten, unflatten


class Likeness:
    """Structure, shapes, dtypes and devices of a call's arguments, and the values of those that are neither arrays nor floats.

    Parameters
    ----------
    call : Call
        Call for which the derivative is prepared.
    fixed : bool
        Whether floats must have the same values as well.
    """

    def __init__(self, call: Call, fixed: bool) -> None:
        self.name, self.fixed = call.name, fixed
        leaves, self.structure = flatten((call.args, call.kwargs))
        self.kinds = [self._kind(x) for x in leaves]

    def check(self, call: Call) -> Call:
        """Check that a call has similar arguments, and return it with its raw arrays moved to the devices of the original Tensors.

        Raises
        ------
        ValueError
            If the arguments differ.
        """
        leaves, structure = flatten((call.args, call.kwargs))
        if structure != self.structure:
            msg = f"{self.name}: prepared for other arguments: their number or nesting differs; prepare it for these, with `prepare(...)`"
            raise ValueError(msg)
        moved = False
        for i, (x, was) in enumerate(zip(leaves, self.kinds)):
            now = self._kind(x)
            if not _alike(was, now):
                otherwise = "" if was[0] == "array" else ", or pass what varies as a Tensor"
                msg = (
                    f"{self.name}: prepared for {_text(was)}, but called with {_text(now)}; prepare it for these arguments, with "
                    f"`prepare(...)`{otherwise}"
                )
                raise ValueError(msg)
            if was[0] == "array" and was[3] is not None and now[3] is None:
                leaves[i], moved = operations.asarray(x, device=was[3]), True
        if not moved:
            return call
        args, kwargs = unflatten(structure, leaves)
        return call._replace(args=args, kwargs=kwargs)

    def _kind(self, x: Any) -> tuple[Any, ...]:
        if isinstance(x, TensorBase):
            return "array", tuple(x.shape), str(x.dtype), str(x.device)
        if is_constant(x):
            return "array", tuple(x.shape), str(x.dtype).rpartition(".")[2], None
        number = as_scalar(x)
        if isinstance(number, (float, complex)) and not self.fixed:
            return "number", type(number)
        return "value", x if number is NOT_SCALAR else number


def _alike(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    if a[0] != b[0]:
        return False
    if a[0] == "array":
        return bool(a[1:3] == b[1:3]) and (a[3] == b[3] or b[3] is None)
    if a[0] == "value":
        return a[1] is b[1] or (type(a[1]) is type(b[1]) and bool(a[1] == b[1]))
    return bool(a == b)


def _text(kind: tuple[Any, ...]) -> str:
    if kind[0] == "array":
        where = "" if kind[3] is None else f" on {kind[3]}"
        return f"{kind[2]}[{', '.join(map(str, kind[1]))}]{where}"
    return f"{kind[1]!r:.60}" if kind[0] == "value" else f"a {kind[1].__name__}"
