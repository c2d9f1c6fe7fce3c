"""The function of C that multiplies matrices, by BLAS or in blocks."""

from __future__ import annotations

from xpgrad.programs.c.numbers import SUFFIXES, TYPES
from xpgrad.programs.regions import Product

__all__ = ["product_text"]


def product_text(product: Product, helpers: dict[str, str]) -> str:
    """Return the call that multiplies matrices, with ``{}`` for the address of each; add the function that it calls to `helpers`."""
    dtype = product.out.dtype.name
    name = f"matmul{SUFFIXES[dtype]}"
    if name not in helpers:
        helpers[name] = _MATMUL.replace("NAME", name).replace("TYPE", TYPES[dtype]).replace("GEMM", _GEMMS[dtype])
    views = (product.a, product.b, product.target)
    (m, k), n = product.a.shape[-2:], product.b.shape[-1]
    count = max(v.shape[0] if len(v.shape) == 3 else 1 for v in views)
    places = []
    for view in views:
        terms = ["{}"]
        if count > 1 and len(view.shape) == 3 and view.strides[0]:
            terms.append(f"{view.strides[0]} * p")
        places.append(" + ".join(terms))
    a, b, c = places
    first, second = (", ".join(map(str, view.strides[-2:])) for view in views[:2])
    call = f"{name}({m}, {n}, {k}, {a}, {first}, {b}, {second}, {c}, {'true' if product.adds else 'false'});"
    return f"for (int64_t p = 0; p < {count}; p++)\n    {call}" if count > 1 else call


_GEMMS = {"float64": "cblas_dgemm", "float32": "cblas_sgemm"}
_MATMUL = """\
/* c = a b, or c += a b: a has m x k and b k x n elements, with the given steps between rows and columns; c is dense. */
static void NAME(int64_t m, int64_t n, int64_t k, const TYPE *restrict a, int64_t a_row, int64_t a_column,
    const TYPE *restrict b, int64_t b_row, int64_t b_column, TYPE *restrict c, bool adds)
{
#ifdef XPGRAD_BLAS
    const bool rows_a = a_column == 1 || k == 1, rows_b = b_column == 1 || n == 1;
    const int64_t lda = rows_a ? (a_row > k ? a_row : k) : (a_column > m ? a_column : m);
    const int64_t ldb = rows_b ? (b_row > n ? b_row : n) : (b_column > k ? b_column : k);

    GEMM(CblasRowMajor, rows_a ? CblasNoTrans : CblasTrans, rows_b ? CblasNoTrans : CblasTrans, (int)m, (int)n, (int)k,
        1, a, (int)lda, b, (int)ldb, adds ? 1 : 0, c, (int)n);
#else
    if (n == 1 && m > 1) { /* the transposes in the other order: long rows */
        NAME(1, m, k, b, b_column, b_row, a, a_column, a_row, c, adds);
        return;
    }
    for (int64_t i = 0; i < m * n && !adds; i++)
        c[i] = 0;
    if (m == 1 && b_row == 1) { /* products of vectors */
        for (int64_t j = 0; j < n; j++) {
            for (int64_t p = 0; p < k; p += 4096) {
                const int64_t end = p + 4096 < k ? p + 4096 : k;
                TYPE sum = 0;
#pragma omp simd reduction(+ : sum)
                for (int64_t q = p; q < end; q++)
                    sum += a[a_column * q] * b[q + b_column * j];
                c[j] += sum;
            }
        }
        return;
    }
    /* Blocks of b are copied in the order in which they are read. */
    TYPE block[64][128];
    for (int64_t j = 0; j < n; j += 128) {
        const int64_t width = j + 128 < n ? 128 : n - j;
        for (int64_t p = 0; p < k; p += 64) {
            const int64_t height = p + 64 < k ? 64 : k - p;
            for (int64_t q = 0; q < height; q++)
                for (int64_t l = 0; l < width; l++)
                    block[q][l] = b[b_row * (p + q) + b_column * (j + l)];
            for (int64_t i = 0; i < m; i++) {
                const TYPE *restrict row = a + a_row * i + a_column * p;
                TYPE *restrict to = c + n * i + j;
                int64_t q = 0;
                for (; q + 4 <= height; q += 4) {
                    const TYPE a0 = row[a_column * q], a1 = row[a_column * (q + 1)];
                    const TYPE a2 = row[a_column * (q + 2)], a3 = row[a_column * (q + 3)];
                    for (int64_t l = 0; l < width; l++)
                        to[l] += (a0 * block[q][l] + a1 * block[q + 1][l]) + (a2 * block[q + 2][l] + a3 * block[q + 3][l]);
                }
                for (; q < height; q++)
                    for (int64_t l = 0; l < width; l++)
                        to[l] += row[a_column * q] * block[q][l];
            }
        }
    }
#endif
}
"""
