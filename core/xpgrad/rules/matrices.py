"""Rows of the linear algebra extension that are not factorisations: inverses, determinants, norms, diagonals and the cross product.

Matrices are the last two axes; the axes before them are a batch.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from xpgrad._array.base import TensorBase
from xpgrad._basics.arguments import as_int
from xpgrad._basics.dtypes import finfo
from xpgrad._basics.scalars import as_scalar
from xpgrad._operations.declare import rule, view
from xpgrad._operations.lift import as_tensor, lift
from xpgrad._rows.namespace import PRIMITIVES
from xpgrad._rows.row import Kink
from xpgrad.rules.elementwise import nan_unless, one_for_zero
from xpgrad.rules.factorisations import adjoint, identity_like, zero_unless_finite
from xpgrad.rules.reduction import ties

if TYPE_CHECKING:
    from xpgrad._tensor.tensor import Tensor


# -- inverses -----------------------------------------------------------------------------------------------------------------


def _inverse_vjp(g: Any, out: Any, xp: Any) -> Any:
    turned = xp.swap_last(out)
    return -(turned @ g @ turned)


@rule(_inverse_vjp, fresh=True, node="LinalgInvExBackward0", jvp=lambda d_x, out: -(out @ d_x @ out), batch="stacked", public="linalg.inv")
def inverse(xp: Any, x: Any) -> Any:
    """Return the inverses of square matrices."""
    return xp.linalg.inv(x)


def _solve_left(g: Any, x1: Any, out: Any, x1_shape: Any, xp: Any) -> Any:
    return xp.sum_to(-xp.solve_matrix(xp.swap_last(x1), g) @ xp.swap_last(out), x1_shape)  # the right side is mostly the smaller one


def _solve_jvp(d_x1: Any, d_x2: Any, x1: Any, out: Any, xp: Any) -> Any:
    if d_x1 is None:
        return xp.solve_matrix(x1, xp.broadcast_to(d_x2, out.shape))
    change = d_x1 @ out
    return xp.solve_matrix(x1, -change if d_x2 is None else d_x2 - change)


@rule(
    _solve_left, lambda g, x1, x2_shape, xp: xp.sum_to(xp.solve_matrix(xp.swap_last(x1), g), x2_shape),
    node="LinalgSolveExBackward0", jvp=_solve_jvp, batch="broadcast",
    public="linalg.solve",
)  # fmt: skip
def solve_matrix(xp: Any, x1: Any, x2: Any) -> Any:
    """Return the ``x`` with ``x1 @ x == x2``, for stacks of matrices that broadcast."""
    return xp.linalg.solve(x1, x2)


def truncates(rtol: Any, x: Any, xp: Any) -> bool:
    """Return whether singular values up to `rtol` times the largest one may be more than rounding errors."""
    return rtol is not None and 0 not in x.shape and not (isinstance(rtol, (int, float)) and rtol <= _noise_of_products(x, xp))


def _noise_of_products(x: Any, xp: Any) -> float:
    """Return what may be rounding errors in products of matrices like `x`, relative to the largest element."""
    return 10.0 * float(xp.finfo(x.dtype).eps) * max(x.shape[-2:])


def pseudoinverse_vjp(g: Any, x: Any, out: Any, rtol: Any, xp: Any) -> Any:
    """Return the cotangent of matrices from that of their pseudoinverses `out`."""
    # Golub and Pereyra, "The differentiation of pseudo-inverses ..." (1973), eq. 4.12.
    # In this order no product is larger than the square of the result, so that none overflows or underflows before it does.
    # The parts of `g` outside of the ranges are taken twice. If there are none, rounding errors of `out` remain the first time, which the
    # squares of a large result would multiply; the second time they are squared themselves.
    gh, outh = adjoint(g, xp), adjoint(out, xp)
    left, right = gh - x @ (out @ gh), gh - (gh @ out) @ x
    left, right = left - x @ (out @ left), right - (right @ out) @ x
    left, right = left @ (out @ outh), (outh @ out) @ right
    if truncates(rtol, x, xp):
        left, right = _turned_by_rest(left, right, x, out, xp)
    return left + right - outh @ g @ outh


def _turned_by_rest(left: Any, right: Any, x: Any, out: Any, xp: Any) -> tuple[Any, Any]:
    """Return the parts of the cotangent of `x` outside of the ranges of `out`, if small singular values that are not 0 count as 0.

    The formula for a constant rank is one for the matrix without these values, ``x - rest``, whose ranges a change of `x` turns. The
    tangents outside of the ranges are ``a == da + rest @ b^H @ out^H`` on the left and ``b == db + out^H @ a^H @ rest`` on the right, with
    those of `x`, da and db. The system for cotangents is the same.
    """
    rest = x - x @ out @ x
    noise = xp.max(xp.abs(x), axis=(-2, -1), keepdims=True) * _noise_of_products(x, xp)
    rest = xp.where(xp.max(xp.abs(rest), axis=(-2, -1), keepdims=True) > noise, rest, xp.zeros_like(rest))
    outh, resth = adjoint(out, xp), adjoint(rest, xp)
    left = left + rest @ adjoint(right, xp) @ outh
    # left == c + rest @ resth @ left @ out @ outh, solved for the smaller one of the products ``resth @ left`` and ``left @ out``.
    if x.shape[-2] >= x.shape[-1]:
        left = left + rest @ xp.solve_stein(resth @ rest, out @ outh, resth @ left) @ (out @ outh)
    else:
        left = left + rest @ resth @ xp.solve_stein(rest @ resth, outh @ out, left @ out) @ outh
    return left, right + outh @ adjoint(left, xp) @ rest


@rule(pseudoinverse_vjp, conj=False, fresh=True, node="LinalgPinvBackward0", public="linalg.pinv")
def pseudoinverse(xp: Any, x: Any, rtol: Any) -> Any:
    """Return the Moore-Penrose inverses of matrices whose rank does not change nearby."""
    return xp.linalg.pinv(x, rtol=rtol)


# -- determinants -------------------------------------------------------------------------------------------------------------


@rule(lambda g, x, xp: g[..., None, None] * xp.cofactors(x), fresh=True, node="LinalgDetBackward0", batch="stacked", public="linalg.det")
def determinant(xp: Any, x: Any) -> Any:
    """Return the determinants of square matrices."""
    return xp.linalg.det(x)


def _products_without(s: Any, axis: int, xp: Any) -> Any:
    """Return the product of all elements along the last axis except each one (``axis=1``), or except each pair (``axis=2``)."""
    count = s.shape[-1]
    places = xp.reshape(xp.count_up(s, 0, count, 1), (count,))
    left = places[:, None] == places[None, :]
    if axis == 2:
        left = left[:, None, :] | left[None, :, :]
        s = s[..., None, :]
    s = s[..., None, :]
    return xp.prod(xp.where(left, xp.ones_like(s), s), axis=-1)


def _svd_with_sign(x: Any, xp: Any) -> tuple[Any, Any, Any, Any]:
    """Return the singular value decomposition of `x`, and ``det(u) * det(vh)`` with two axes of length 1 appended."""
    u, s, vh = xp.linalg.svd(x, full_matrices=False)
    return u, s, vh, (xp.linalg.det(u) * xp.linalg.det(vh))[..., None, None]


def _conjugate(x: Any, xp: Any) -> Any:
    return xp.conj(x) if xp.isdtype(x.dtype, "complex floating") else x


# The derivatives of the determinant are sums of products of singular values, without divisions: they hold for singular matrices too.
# The jvps are formulas as well, because transposing a vjp would compute its own, which needs one derivative more.
@rule(lambda g, x, xp: xp.cofactors_along(x, g), fresh=True, jvp=lambda d_x, x, xp: xp.cofactors_along(x, d_x), batch="stacked")
def cofactors(xp: Any, x: Any) -> Any:
    """Return the derivative of the determinant: ``det(x) * inv(x).mT``, or its limit if `x` is singular."""
    finite, x = zero_unless_finite(x, xp)
    u, s, vh, sign = _svd_with_sign(x, xp)
    out = (_conjugate(u, xp) * _products_without(s, 1, xp)[..., None, :]) @ _conjugate(vh, xp) * sign
    return nan_unless(finite, out, xp)


def _along_vjp(g: Any, x: Any, along: Any, xp: Any) -> Any:
    # The third derivative of the determinant, by its inverse.
    finite, x = zero_unless_finite(x, xp)
    x = xp.where(finite, x, identity_like(x, xp))
    xp.check_regular(x)
    inverse = xp.inverse(x)
    a, b = inverse @ g, inverse @ along
    ta, tb, tab = (xp.linalg.trace(z)[..., None, None] for z in (a, b, a @ b))
    mixed = a @ b
    total = inverse * (ta * tb - tab) - (a * tb + b * ta - mixed - b @ a) @ inverse
    out = xp.swap_last(total) * xp.determinant(x)[..., None, None]
    return nan_unless(finite, out, xp)


def _along_jvp(d_x: Any, d_along: Any, x: Any, along: Any, xp: Any) -> Any:
    if d_x is None:
        return xp.cofactors_along(x, d_along)
    third = _along_vjp(d_x, x, along, xp)
    return third if d_along is None else xp.cofactors_along(x, d_along) + third


@rule(_along_vjp, lambda g, x, xp: xp.cofactors_along(x, g), fresh=True, jvp=_along_jvp, batch="stacked")
def cofactors_along(xp: Any, x: Any, along: Any) -> Any:
    """Return the derivative of `cofactors` in a direction: the second derivative of the determinant, which is symmetric."""
    finite, x = zero_unless_finite(x, xp)
    u, s, vh, sign = _svd_with_sign(x, xp)
    turned = xp.swap_last(_conjugate(u, xp)) @ along @ xp.swap_last(_conjugate(vh, xp))
    rest = _products_without(s, 2, xp)
    count = s.shape[-1]
    places = xp.reshape(xp.count_up(s, 0, count, 1), (count,))
    same = places[:, None] == places[None, :]
    zero = xp.zeros_like(turned)
    others = xp.where(same, zero, zero + rest)
    diagonal = xp.sum(xp.where(same, turned, zero), axis=-1)
    inner = xp.where(same, (others @ diagonal[..., None]), -(xp.swap_last(turned) * others))
    out = _conjugate(u, xp) @ inner @ _conjugate(vh, xp) * sign
    return nan_unless(finite, out, xp)


def _check_regular(x: Any) -> None:
    x.backend.kernels.check_regular(x._array)


PRIMITIVES["check_regular"] = _check_regular


def _surely_nonzero(x: Any) -> bool:
    return bool(x.backend.kernels.surely_nonzero(x._array))


PRIMITIVES["surely_nonzero"] = _surely_nonzero


def _slogdet_vjp(g: Any, x: Any, out: Any, xp: Any) -> Any:
    gsign, glog = g
    sign = out[0]
    scale = glog
    if xp.isdtype(x.dtype, "complex floating") and gsign is not None:
        # The sign of a complex determinant moves along the unit circle only.
        turn = xp.imag(xp.conj(gsign) * sign) * -1j
        scale = turn if glog is None else glog + turn
    if scale is None:
        return None if gsign is None else xp.zeros_like(x)
    if xp.surely_nonzero(sign):
        return scale[..., None, None] * adjoint(xp.inverse(x), xp)
    # The logarithm is -inf for a singular matrix and has no gradient: it is nan rather than an error (PyTorch: nan and infinities).
    regular = (xp.abs(sign) > 0)[..., None, None]
    inverse = xp.inverse(xp.where(regular, x, identity_like(x, xp)))
    # This is 0. By it higher derivatives are nan as well, which do not pass the mask of `inverse`; that of a sine depends on `x` again.
    hidden = xp.sin(xp.keep(~regular, x)) * 0
    inner = scale[..., None, None] * (adjoint(inverse, xp) + hidden)
    return nan_unless(regular, inner, xp)


@rule(_slogdet_vjp, outputs=2, node="LinalgSlogdetBackward0", batch="stacked", public="linalg.slogdet")
def sign_and_log(xp: Any, x: Any) -> Any:
    """Return the signs of determinants and the logarithms of their absolute values."""
    return tuple(xp.linalg.slogdet(x))


# -- norms ----------------------------------------------------------------------------------------------------------------------


def _norm_vjp(g: Any, x: Any, out: Any, x_shape: Any, order: float, axes: Any, keepdims: bool, xp: Any) -> Any:
    def spread(v: Any) -> Any:
        return xp.expand_reduced(v, x_shape, axes, keepdims)

    if order == 1:
        return spread(g) * xp.sign(x)
    if math.isinf(order):
        # NB: some libraries round the moduli in norms otherwise than `abs`, so that none might equal `out`.
        size = xp.abs(x)
        chosen = size == (xp.reduce_max if order > 0 else xp.reduce_min)(size, axes, True)
        wide = xp.wide(g)
        count, blank = ties(xp, chosen, wide, axes, keepdims)
        out = spread(wide / count) * (xp.keep(chosen, xp.sign(x)) + spread(blank))
        return out if wide is g else xp.cast(out, g.dtype)
    # The norm is not differentiable at 0, where the gradient is 0 (SUB-08), and its derivatives are nan up to order 2, as in PyTorch.
    if order == 2:
        return spread(g) * (x / spread(one_for_zero(out, xp)))
    positive, size = out != 0, xp.abs(x)
    safe = spread(xp.where(positive, out, xp.ones_like(out)))
    if order > 2:
        divisor = xp.where(size != 0, size, xp.ones_like(size))
        return x / divisor * (spread(xp.keep(positive, g)) * (size / safe) ** (order - 1))
    size = one_for_zero(size, xp)
    # A norm of negative order is 0 if one element is 0, however large the others are.
    scale = (size / safe) ** (order - 1) if order > 0 else (spread(out) / size) ** (1 - order)
    return xp.sign(x) * (spread(g) * scale)


@rule(
    _norm_vjp,
    conj=False, fresh=True, node="LinalgVectorNormBackward0", batch="stacked", public="linalg.vector_norm",
    kink=Kink("at the zero vector", lambda out: out == 0, (0.0, 0.0)),
)  # fmt: skip
def norm(xp: Any, x: Any, order: float, axes: Any, keepdims: bool) -> Any:
    """Return the norm over axes (a tuple, or None for all)."""
    return xp.linalg.vector_norm(x, axis=axes, keepdims=keepdims, ord=order)


@rule(
    lambda g: [None], conj=False, varargs=True, node="LinalgVectorNormBackward0", jvp=lambda out, xp: xp.zeros_like(out), batch="stacked"
)  # fmt: skip
def count_nonzero_norm(xp: Any, xs: Any, axes: Any, keepdims: bool) -> Any:
    """Return the number of nonzero elements; it has no gradient, so the operand receives none (ACC-07)."""
    return xp.linalg.vector_norm(xs[0], axis=axes, keepdims=keepdims, ord=0)


# -- diagonals and the cross product ----------------------------------------------------------------------------------------------


@view(
    lambda g, x_shape, offset, xp: xp.diagonal_transpose(g, x_shape, offset),
    node="DiagonalBackward0", batch="stacked", kind="selection", dtype="same", read_only=True, public="linalg.diagonal",
)  # fmt: skip
def diagonal_view(xp: Any, x: Any, offset: int) -> Any:
    """Return a diagonal of matrices."""
    return xp.linalg.diagonal(x, offset=offset)


@rule(
    lambda g, offset, xp: xp.diagonal_view(g, offset),
    conj=False, fresh=False, node="DiagonalBackwardBackward0", batch="stacked", kind="selection", memory="new", dtype="same", helper=True,
)  # fmt: skip
def diagonal_transpose(xp: Any, x: Any, shape: tuple[int, ...], offset: int) -> Any:
    """Return zeros of `shape` with `x` on a diagonal of its matrices."""
    rows, columns = shape[-2:]
    length = x.shape[-1]
    # In row-major order, each element of the diagonal is followed by `columns` zeros, up to the next one.
    first = offset if offset >= 0 else -offset * columns
    if length == 0:
        return xp.zeros_near(x, shape)
    gap = xp.broadcast_to(xp.zeros_like(x[..., None]), (*x.shape, columns))
    row = xp.reshape(xp.concat([x[..., None], gap], axis=-1), (*shape[:-2], length * (columns + 1)))
    before = xp.zeros_near(x, (*shape[:-2], first))
    after = xp.zeros_near(x, (*shape[:-2], max(rows * columns - first - length * (columns + 1), 0)))
    flat = xp.concat([before, row, after], axis=-1)
    return xp.reshape(flat[..., : rows * columns], shape)


@rule(
    lambda g, x2, axis, xp: xp.cross_product(x2, g, axis), lambda g, x1, axis, xp: xp.cross_product(g, x1, axis),
    fresh=True, node="LinalgCrossBackward0", batch="stacked",
    public="linalg.cross",
)  # fmt: skip
def cross_product(xp: Any, x1: Any, x2: Any, axis: int) -> Any:
    """Return the cross products of vectors along an axis of length 3; the operands have one shape."""
    return xp.linalg.cross(x1, x2, axis=axis)


# -- what the public functions check -----------------------------------------------------------------------------------------------


def need_floating(name: str, x: Any) -> Any:
    """Return `x` as a Tensor of a floating-point or complex dtype.

    Raises
    ------
    TypeError
        If `x` is neither a Tensor nor a raw array, or has another dtype.
    """
    x = as_tensor(name, x)
    if not x.dtype.differentiable:
        msg = f"{name} needs a floating or complex Tensor, but got dtype {x.dtype}; convert it with `xpgrad.astype(x, xpgrad.float64)`"
        raise TypeError(msg)
    return x


def need_matrices(name: str, x: Any, *, square: bool = False, floating: bool = True) -> Any:
    """Return `x` as a Tensor of (square) matrices.

    Raises
    ------
    TypeError
        If `x` is neither a Tensor nor a raw array, or, with `floating`, holds integers or bools.
    ValueError
        If the last two axes are not a (square) matrix.
    """
    x = need_floating(name, x) if floating else as_tensor(name, x)
    if x.ndim < 2:
        msg = f"{name} needs matrices, that is at least 2 axes, but got a Tensor of shape {x.shape}"
        raise ValueError(msg)
    if square and x.shape[-1] != x.shape[-2]:
        msg = f"{name} needs square matrices, but the last two axes of shape {x.shape} differ"
        raise ValueError(msg)
    return x


def tolerance_of_lapack(rcond: float, x: Tensor) -> float:
    """Return the tolerance with which LAPACK solves a least-squares problem: the dtype's eps for one outside of (0, 1)."""
    return rcond if 0 < rcond < 1 else float(finfo(x.dtype).eps)


def raw_tolerance(name: str, rtol: Any, x: Tensor) -> Any:
    """Convert a tolerance for the library: to None, a number, or a raw array that broadcasts to the batch of `x`.

    Raises
    ------
    TypeError, ValueError
        If `rtol` is not real, or does not broadcast.
    """
    rtol = lift(name, rtol, x)
    if isinstance(rtol, TensorBase):
        batch = x.shape[:-2]
        if (
            rtol.dtype.category != "real floating"
            or len(rtol.shape) > len(batch)
            or any(n not in (1, m) for n, m in zip(rtol.shape[::-1], batch[::-1]))
        ):
            wanted = f"a number, or a real floating Tensor that broadcasts to {batch}"
            msg = f"{name}: `rtol` must be {wanted}, but got {rtol.dtype} of shape {rtol.shape}"
            raise (ValueError if rtol.dtype.category == "real floating" else TypeError)(msg)
        return rtol._array
    if rtol is not None and not isinstance(as_scalar(rtol), (int, float)):
        msg = f"{name}: `rtol` must be a real number, a Tensor or None, but got {rtol!r:.80}"
        raise TypeError(msg)
    return rtol


def check_order(name: str, order: Any, known: tuple[Any, ...] | None, allowed: str) -> Any:
    """Check the order of a norm, and return it.

    Raises
    ------
    TypeError, ValueError
        If it is neither a number nor a name, or is not among `known`.
    """
    if isinstance(order, str) or order is None:
        if known is None or order not in known:
            msg = f"{name}: `ord` must be {allowed}, but got {order!r}"
            raise ValueError(msg)
        return order
    scalar = as_scalar(order)
    if isinstance(scalar, bool) or not isinstance(scalar, (int, float)):
        msg = f"{name}: `ord` must be {allowed}, but got {order!r}"
        raise TypeError(msg)
    try:
        scalar = scalar if -(2**53) <= scalar <= 2**53 or not isinstance(scalar, int) else float(scalar)
    except OverflowError:
        scalar = math.inf if scalar > 0 else -math.inf
    if math.isnan(scalar) or (known is not None and scalar not in known):
        msg = f"{name}: `ord` must be {allowed}, but got {order!r}"
        raise ValueError(msg)
    return scalar


def diagonal_offset(name: str, x: Tensor, offset: Any) -> int:
    """Return the number of a diagonal of `x`; any diagonal outside the matrix, which is empty, becomes the nearest such one."""
    rows, columns = x.shape[-2:]
    return max(-rows, min(columns, as_int(offset, name, "offset")))
