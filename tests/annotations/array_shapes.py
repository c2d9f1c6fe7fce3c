"""Annotations of shapes and dtypes by jaxtyping, which beartype checks when a function is called."""

from beartype import beartype
from jaxtyping import Bool, Complex128, Float, Float32, Int, Shaped, TypeCheckError, jaxtyped  # pyright: ignore[reportUnknownVariableType]

import xpgrad as xp
from xpgrad import Tensor


@jaxtyped(typechecker=beartype)
def predict(w: Float[Tensor, "inputs outputs"], x: Float[Tensor, "batch inputs"]) -> Float[Tensor, "batch outputs"]:
    return x @ w


@jaxtyped(typechecker=beartype)
def describe(
    single: Float32[Tensor, "n"],
    index: Int[Tensor, "n"],
    mask: Bool[Tensor, "n"],
    z: Complex128[Tensor, "... 3"],
    number: Shaped[Tensor, ""],
) -> int:
    return single.ndim + index.ndim + mask.ndim + z.ndim + number.ndim


w = xp.ones((3, 2), requires_grad=True)
xp.sum(predict(w, xp.ones((4, 3)))).backward()
assert w.grad is not None
assert w.grad.tolist() == [[4.0, 4.0]] * 3
index = xp.arange(2)
assert describe(xp.ones(2, dtype=xp.float32), index, index > 0, xp.ones((5, 3), dtype=xp.complex128), xp.asarray(1.0)) == 5

refused = 0
for parameters, data in [(w, xp.ones((4, 2))), (w, xp.ones(3)), (w, xp.ones((4, 3), dtype=xp.int64)), (xp.ones(3), xp.ones((4, 3)))]:
    try:
        predict(parameters, data)
    except TypeCheckError:
        refused += 1
assert refused == 4
