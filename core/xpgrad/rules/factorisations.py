"""Rows of the matrix factorisations (Cholesky, QR, eigenvalues, singular values, polar), and what gradients of matrices share.

Matrices are the last two axes; the axes before them are a batch. For complex matrices the gradients follow PyTorch's convention, and a
loss must not depend on the phases that a factorisation does not determine.
"""

from __future__ import annotations

from typing import Any

from xpgrad._operations.declare import rule
from xpgrad._rows.namespace import PRIMITIVES
from xpgrad.rules.elementwise import is_complex, nan_unless


def adjoint(x: Any, xp: Any) -> Any:
    """Return the conjugate transpose of matrices."""
    return xp.swap_last(xp.conj(x) if is_complex(x, xp) else x)


def identity_like(x: Any, xp: Any) -> Any:
    """Return identity matrices of the shape and dtype of `x`, without a gradient."""
    ones = xp.ones_like(x)
    return xp.lower(ones, 0) - xp.lower(ones, -1)


def zero_unless_finite(x: Any, xp: Any) -> tuple[Any, Any]:
    """Return which matrices are finite, and the matrices with zeros for the others, on which libraries raise, hang or return garbage."""
    finite = xp.all(xp.isfinite(x), axis=(-2, -1), keepdims=True)
    return finite, xp.where(finite, x, xp.zeros_like(x))


def halved_lower(x: Any, xp: Any) -> Any:
    """Return the lower triangle with the diagonal halved; adding its adjoint gives a symmetric matrix."""
    return (xp.lower(x, 0) + xp.lower(x, -1)) / 2


def skew(x: Any, xp: Any) -> Any:
    """Return ``x - x^H``."""
    return x - adjoint(x, xp)


def _gaps(values: Any, xp: Any) -> Any:
    """Return the matrix with ``values[j] - values[i]`` in row i and column j, and 1 on the diagonal."""
    difference = values[..., None, :] - values[..., :, None]
    return difference + identity_like(difference, xp)


def _check_phase(drift: Any, size: Any, name: str) -> None:
    size.backend.kernels.check_phase(drift._array, size._array, name)


PRIMITIVES["check_phase"] = _check_phase


# -- Cholesky -------------------------------------------------------------------------------------------------------------


def _cholesky_vjp(g: Any, out: Any, upper: bool, xp: Any) -> Any:
    # Murray, "Differentiation of the Cholesky decomposition" (2016), and symmetric, as the input is.
    if upper:
        g, out = adjoint(g, xp), adjoint(out, xp)
    phi = halved_lower(adjoint(out, xp) @ g, xp)
    middle = (phi + adjoint(phi, xp)) / 2
    left = adjoint(out, xp)
    return adjoint(xp.solve_matrix(left, adjoint(xp.solve_matrix(left, middle), xp)), xp)


@rule(_cholesky_vjp, conj=False, fresh=False, node="LinalgCholeskyExBackward0", batch="stacked", public="linalg.cholesky")
def cholesky_factor(xp: Any, x: Any, upper: bool) -> Any:
    """Return the triangular factors of positive definite matrices."""
    out = xp.linalg.cholesky(x, upper=upper)
    # NB: some libraries return the conjugate transpose of the lower factor, which has imaginary zeros of negative sign below the diagonal.
    return xp.upper(out, 0) if upper and is_complex(out, xp) else out


# -- symmetric eigenvalues --------------------------------------------------------------------------------------------------


def _eigh_vjp(g: Any, out: Any, xp: Any) -> Any:
    gvalues, gvectors = g
    values, vectors = out
    inner = None
    if gvectors is not None:
        turn = adjoint(vectors, xp) @ gvectors
        if is_complex(turn, xp):
            drift = xp.imag(xp.diagonal_view(turn, 0))
            xp.check_phase(drift, xp.abs(turn), "eigh: the phases of the eigenvectors")
        turn = skew(turn, xp) / 2
        off = turn - turn * identity_like(turn, xp)
        inner = vectors @ (off / _gaps(values, xp)) @ adjoint(vectors, xp)
    if gvalues is None:
        return inner
    outer = (vectors * gvalues[..., None, :]) @ adjoint(vectors, xp)
    return outer if inner is None else outer + inner


@rule(_eigh_vjp, outputs=2, node="LinalgEighBackward0", batch="stacked", public=("linalg.eigh", "linalg.eigvalsh"))
def eigen_pairs(xp: Any, x: Any) -> Any:
    """Return the eigenvalues, ascending, and eigenvectors of Hermitian matrices."""
    return tuple(xp.linalg.eigh(x))


@rule(_eigh_vjp, outputs=2, node="LinalgEighBackward0", batch="stacked", public="linalg.eigh")
def eigen_pairs_by_upper(xp: Any, x: Any) -> Any:
    """Return what `eigen_pairs` does, with the signs of the vectors that a library gives them when it reads the upper triangle."""
    return tuple(xp.linalg.eigh(x))


# -- eigenvalues of any matrix ---------------------------------------------------------------------------------------------


def _eig_vjp(g: Any, out: Any, x_dtype: Any, xp: Any) -> Any:
    # Giles, "An extended collection of matrix derivative results ..." (2008), section 3.1, for eigenvectors that are kept at length 1:
    # with its length fixed, a vector can change along itself only in phase, on which a loss must not depend.
    gvalues, gvectors = g
    values, vectors = out
    rows = adjoint(vectors, xp)
    if gvectors is None:
        if gvalues is None:
            return None
        inner = gvalues[..., :, None] * rows
    else:
        turn = rows @ gvectors
        along = xp.diagonal_view(turn, 0)
        xp.check_phase(xp.imag(along), xp.abs(turn), "eig: the phases of the eigenvectors")
        turn = turn - (rows @ vectors) * xp.real(along)[..., None, :]
        identity = identity_like(turn, xp)
        inner = (turn - turn * identity) / xp.conj(_gaps(values, xp))
        if gvalues is not None:
            inner = inner + identity * gvalues[..., None, :]
        inner = inner @ rows
    result = xp.solve_matrix(rows, inner)
    return result if xp.isdtype(x_dtype, "complex floating") else xp.real(result)


@rule(_eig_vjp, outputs=2, node="LinalgEigBackward0", batch="stacked", public=("linalg.eig", "linalg.eigvals"))
def general_eigen_pairs(xp: Any, x: Any) -> Any:
    """Return the eigenvalues, in no order, and eigenvectors of length 1 of square matrices; both are complex."""
    return xp.general_eigen(x)


# -- singular values ----------------------------------------------------------------------------------------------------------


def _svd_vjp(g: Any, out: Any, x_shape: Any, xp: Any) -> Any:
    (gu, gs, gvh), (u, s, vh) = g, out
    rows, columns = x_shape[-2:]
    k = min(rows, columns)
    # Only the first columns of full matrices are determined; the gradient of the others is ignored, as in PyTorch.
    if u.shape[-1] != k:
        u, gu = (None if a is None else a[..., :, :k] for a in (u, gu))
    if vh.shape[-2] != k:
        vh, gvh = (None if a is None else a[..., :k, :] for a in (vh, gvh))
    if gu is None and gvh is None:
        return None if gs is None else (u * gs[..., None, :]) @ vh
    uh, v = adjoint(u, xp), adjoint(vh, xp)
    gv = None if gvh is None else adjoint(gvh, xp)
    left = None if gu is None else skew(uh @ gu, xp)
    right = None if gv is None else skew(vh @ gv, xp)
    across, down = s[..., None, :], s[..., :, None]
    gaps = (across - down) * (across + down)
    gaps = gaps + identity_like(gaps, xp)
    inner: Any = None
    for turn, scale in ((left, across), (right, down)):
        if turn is not None:
            off = (turn - turn * identity_like(turn, xp)) / gaps * scale
            inner = off if inner is None else inner + off
    if is_complex(u, xp):
        total = left if right is None else right if left is None else left + right
        xp.check_phase(xp.imag(xp.diagonal_view(total, 0)) / 2, xp.abs(total), "svd: the common phases of singular vectors")
        phases, sign = (left, 2) if left is not None else (right, -2)
        inner = inner + phases * identity_like(phases, xp) / (sign * across)
    if gs is not None:
        inner = inner + identity_like(inner, xp) * gs[..., None, :]
    result = u @ inner @ vh
    if gu is not None and rows > k:
        part = gu / across
        result = result + (part - u @ (uh @ part)) @ vh
    if gvh is not None and columns > k:
        part = gvh / down
        result = result + u @ (part - (part @ v) @ vh)
    return result


@rule(_svd_vjp, outputs=3, node="LinalgSvdBackward0", batch="stacked", public=("linalg.svd", "linalg.svdvals"))
def singular_triples(xp: Any, x: Any, full: bool) -> Any:
    """Return left singular vectors, singular values (descending) and adjoint right singular vectors."""
    return tuple(xp.linalg.svd(x, full_matrices=full))


# -- equations of matrices, the polar decomposition, and the nuclear norm -----------------------------------------------------------------


def _lyapunov_left(g: Any, p: Any, out: Any, xp: Any) -> Any:
    back, out_t = xp.solve_lyapunov(xp.swap_last(p), g), xp.swap_last(out)
    return -(back @ out_t + out_t @ back)


@rule(_lyapunov_left, lambda g, p, xp: xp.solve_lyapunov(xp.swap_last(p), g), fresh=True, batch="stacked")
def solve_lyapunov(xp: Any, p: Any, q: Any) -> Any:
    """Solve the Lyapunov equation ``p @ x + x @ p == q`` for Hermitian `p`; nan if two eigenvalues of `p` sum to 0."""
    finite, p = zero_unless_finite(p, xp)
    if 0 in q.shape:
        return xp.zeros_like(q)
    values, vectors = xp.linalg.eigh(p)
    sums = values[..., None, :] + values[..., :, None]
    regular = xp.abs(sums) > xp.max(xp.abs(values), axis=-1)[..., None, None] * (float(xp.finfo(values.dtype).eps) * p.shape[-1])
    inner = adjoint(vectors, xp) @ q @ vectors
    inner = nan_unless(regular, inner / xp.where(regular, sums, xp.ones_like(sums)), xp)
    return nan_unless(finite, vectors @ inner @ adjoint(vectors, xp), xp)


def _stein_left(g: Any, a: Any, b: Any, out: Any, xp: Any) -> Any:
    return xp.solve_stein(xp.swap_last(a), xp.swap_last(b), g) @ xp.swap_last(out @ b)


def _stein_right(g: Any, a: Any, b: Any, out: Any, xp: Any) -> Any:
    return xp.swap_last(a @ out) @ xp.solve_stein(xp.swap_last(a), xp.swap_last(b), g)


@rule(
    _stein_left, _stein_right, lambda g, a, b, xp: xp.solve_stein(xp.swap_last(a), xp.swap_last(b), g),
    fresh=True, batch="stacked",
)  # fmt: skip
def solve_stein(xp: Any, a: Any, b: Any, c: Any) -> Any:
    """Solve the Stein equation ``x - a @ x @ b == c`` for Hermitian `a` and `b`; infinite or nan if two eigenvalues have the product 1."""
    (left, u), (right, v) = xp.linalg.eigh(a), xp.linalg.eigh(b)
    inner = adjoint(u, xp) @ c @ v
    return u @ (inner / (1 - left[..., :, None] * right[..., None, :])) @ adjoint(v, xp)


def _polar_vjp(g: Any, out: Any, xp: Any) -> Any:
    """Return the cotangent of the matrix of a polar decomposition."""
    # ``p @ p == x^H @ x``. The tangent of u is u times a skew matrix plus a part orthogonal to u. Only sums of singular values are divided
    # by, so equal singular values do no harm.
    (gu, gp), (u, p) = g, out
    total = None
    if gp is not None:
        half = xp.solve_lyapunov(p, (gp + adjoint(gp, xp)) / 2)
        total = u @ p @ (half + adjoint(half, xp))
    if gu is not None:
        part = u @ xp.solve_lyapunov(p, skew(adjoint(u, xp) @ gu, xp))
        if u.shape[-2] > u.shape[-1]:
            regular = xp.sign_and_log(p)[0][..., None, None] != 0
            beside = adjoint(xp.solve_matrix(xp.where(regular, p, identity_like(p, xp)), adjoint(gu, xp)), xp)
            part = nan_unless(regular, part + beside - u @ (adjoint(u, xp) @ beside), xp)
        total = part if total is None else total + part
    return total


@rule(_polar_vjp, outputs=2, conj=False, batch="stacked")
def polar_factors(xp: Any, x: Any) -> Any:
    """Return the factors of ``x == u @ p`` for matrices with at least as many rows as columns.

    The columns of u are orthonormal, and p is Hermitian without negative eigenvalues.
    """
    finite, x = zero_unless_finite(x, xp)
    if 0 in x.shape:
        return x, xp.swap_last(x) @ x
    u, s, vh = xp.linalg.svd(x, full_matrices=False)
    p = (adjoint(vh, xp) * s[..., None, :]) @ vh
    return nan_unless(finite, u @ vh, xp), nan_unless(finite, (p + adjoint(p, xp)) / 2, xp)


def _nuclear_vjp(g: Any, x: Any, out: Any, xp: Any) -> Any:
    (gsum, gu), u = g, out[1]
    total = None if gsum is None else gsum[..., None, None] * u
    if gu is None:
        return total
    p = adjoint(u, xp) @ x
    part = _polar_vjp((gu, None), (u, (p + adjoint(p, xp)) / 2), xp)
    return part if total is None else total + part


@rule(_nuclear_vjp, outputs=2, conj=False, node="SumBackward1", batch="stacked")
def nuclear_norm(xp: Any, x: Any) -> Any:
    """Return the sums of the singular values of matrices with at least as many rows as columns, and the gradients of these sums.

    The gradient is a polar factor, which has derivatives where singular values are equal; singular vectors have none there.
    """
    u, s, vh = xp.linalg.svd(x, full_matrices=False)
    return xp.sum(s, axis=-1), u @ vh


# -- QR -----------------------------------------------------------------------------------------------------------------------


def _qr_vjp(g: Any, out: Any, x_shape: Any, form: str, xp: Any) -> Any:
    (gq, gr), (q, r) = g, out
    rows, columns = x_shape[-2:]
    if form == "complete" and rows > columns:
        msg = (
            f"qr: the QR decomposition is not differentiable when mode='complete' and nrows > ncols (here {rows} > {columns}); use "
            "mode='reduced'"
        )
        raise NotImplementedError(msg)
    if gq is None and gr is None:
        return None
    rest = None
    if columns > rows:
        # The columns after the square part only enter as R2 = Q^H A2.
        if gr is not None:
            rest = q @ gr[..., :, rows:]
            more = q @ r[..., :, rows:] @ adjoint(gr[..., :, rows:], xp)
            gq = more if gq is None else gq + more
            gr = gr[..., :, :rows]
        r = r[..., :, :rows]
    weights = None if gr is None else gr @ adjoint(r, xp)
    if gq is not None:
        turn = adjoint(q, xp) @ gq
        weights = -turn if weights is None else weights - turn
    above = adjoint(halved_lower(adjoint(weights, xp), xp), xp)
    total = q @ (above + adjoint(above, xp))
    if gq is not None:
        total = gq + total
    # If a column depends on those before it, no gradient exists: it is nan, as in PyTorch, rather than an error.
    regular = xp.all(xp.diagonal_view(r, 0) != 0, axis=-1, keepdims=True)[..., None]
    result = adjoint(xp.solve_matrix(xp.where(regular, r, identity_like(r, xp)), adjoint(total, xp)), xp)
    result = nan_unless(regular, result, xp)
    if columns > rows:
        blank = rest if rest is not None else xp.zeros_like((q @ out[1])[..., :, rows:])
        result = xp.join([result, blank], len(x_shape) - 1)
    return result


@rule(_qr_vjp, outputs=2, node="LinalgQrBackward0", batch="stacked", public="linalg.qr")
def orthogonal_triangular(xp: Any, x: Any, form: str) -> Any:
    """Return the factors Q and R; `form` is the `mode` of `qr`."""
    return tuple(xp.linalg.qr(x, mode=form))
