"""The workloads: each as a user of any library writes it, and handwritten in NumPy, forward and backward.

``loss(m, *leaves, *constants)`` runs on every library: ``m`` has the library's own functions under NumPy's names (see `contestants`).
``hand(leaves, constants)`` returns the step that a careful person writes by hand: it computes only what is needed, keeps what
the backward pass reads, and accumulates in place.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

__all__ = ["WORKLOADS", "Workload"]

Step = Callable[[], tuple[Any, ...]]
Arrays = tuple[Any, ...]


@dataclass(frozen=True)
class Workload:
    """One thing to measure.

    Attributes
    ----------
    name, title : str
    target : float
        The ratio of xpgrad's time to the hand-written code's that it must not exceed.
    data : callable
        ``data(rng, size)`` returns (leaves, constants); size is one of `sizes`.
    loss, hand : callable
        Described in the module's docstring.
    plain : callable or None
        The simple version of `hand`: each operation makes a new array, and none is overwritten.
    sizes : (full, quick, smallest)
    kind : "gradient", "descent" or "hvp"
        The content of a step: loss and gradients; the same and a step of gradient descent; a Hessian-vector product with constants[0].
    without : dict
        Libraries that do not take part, with the reason.
    tolerance : float
        The relative tolerance of results, given the dtype of the leaves.
    memory : float or None
        The peak of allocated memory is reported as well, in arrays of the leaves' size; it must not exceed this.
    """

    name: str
    title: str
    target: float
    data: Callable[[Any, int], tuple[Arrays, Arrays]]
    loss: Callable[..., Any]
    hand: Callable[[Arrays, Arrays], Step]
    sizes: tuple[int, int, int]
    kind: str = "gradient"
    without: dict[str, str] = field(default_factory=dict)
    tolerance: float = 1e-8
    memory: float | None = None
    plain: Callable[[Arrays, Arrays], Step] | None = None


WORKLOADS: dict[str, Workload] = {}


def _add(**fields: Any) -> None:
    workload = Workload(**fields)
    WORKLOADS[workload.name] = workload


# -- a chain of small operations ---------------------------------------------------------------------------------------


def _chain_data(rng: Any, size: int) -> tuple[Arrays, Arrays]:
    return (rng.uniform(0.5, 1.5, 4), rng.uniform(0.5, 1.5, 4)), (size,)


def _chain(m: Any, x: Any, w: Any, size: int) -> Any:
    h = x
    for _ in range(size):
        h = m.sin(h * w) + x
    return m.sum(h)


def _chain_hand(leaves: Arrays, constants: Arrays) -> Step:
    x, w = leaves
    (size,) = constants

    def step() -> tuple[Any, ...]:
        tape = []
        h = x
        for _ in range(size):
            a = h * w
            tape.append((h, a))
            h = np.sin(a) + x
        loss = h.sum()
        g = np.ones(4)
        gx, gw = np.zeros(4), np.zeros(4)
        for h, a in reversed(tape):
            gx += g
            g = g * np.cos(a)
            gw += g * h
            g *= w
        gx += g
        return loss, gx, gw

    return step


_add(
    name="chain", title="small-op chain: 600 operations on 4 elements", target=2.5,
    data=_chain_data, loss=_chain, hand=_chain_hand, sizes=(200, 200, 5),
)  # fmt: skip


# -- a mixture of small operations -------------------------------------------------------------------------------------


def _mixed_data(rng: Any, size: int) -> tuple[Arrays, Arrays]:
    return (rng.uniform(0.1, 0.5, 4), rng.uniform(0.5, 1.0, 4), rng.uniform(0.5, 1.0, (3, 4))), (size,)


def _mixed(m: Any, a: Any, b: Any, matrix: Any, size: int) -> Any:
    for _ in range(size):
        t = m.exp(-a) + 1.0
        u = a * b / t
        v = m.tanh(u) - 0.5
        p = matrix * v
        q = m.sqrt(m.sum(p * p, axis=1) + 1.0)
        s = m.sum(m.log(q) * (v[1:] - v[:-1]))
        a = a * 0.9 + v * s
    return m.sum(a * a)


def _mixed_hand(leaves: Arrays, constants: Arrays) -> Step:
    a0, b, matrix = leaves
    (size,) = constants

    def step() -> tuple[Any, ...]:
        tape = []
        a = a0
        for _ in range(size):
            t = np.exp(-a) + 1.0
            u = a * b / t
            th = np.tanh(u)
            v = th - 0.5
            p = matrix * v
            q = np.sqrt((p * p).sum(axis=1) + 1.0)
            lq = np.log(q)
            d = v[1:] - v[:-1]
            s = (lq * d).sum()
            tape.append((a, t, u, th, v, p, q, lq, d, s))
            a = a * 0.9 + v * s
        loss = (a * a).sum()
        ga = 2.0 * a
        gb, gmatrix = np.zeros_like(b), np.zeros_like(matrix)
        for a, t, u, th, v, p, q, lq, d, s in reversed(tape):
            gv = ga * s
            gs = (ga * v).sum()
            gd = gs * lq
            gv[1:] += gd
            gv[:-1] -= gd
            gp = p * (gs * d / (q * q))[:, None]
            gmatrix += gp * v
            gv += (gp * matrix).sum(axis=0)
            gab = gv * (1.0 - th * th) / t
            gb += gab * a
            ga = ga * 0.9
            ga += gab * b
            ga += gab * u * (t - 1.0)
        return loss, ga, gb, gmatrix

    return step


_add(
    name="mixed", title="mixed small operations: broadcasting, sums, slices", target=3.0,
    data=_mixed_data, loss=_mixed, hand=_mixed_hand, sizes=(30, 30, 3),
)  # fmt: skip


# -- one step of learning digits ---------------------------------------------------------------------------------------


def _digits_data(rng: Any, size: int) -> tuple[Arrays, Arrays]:
    inputs, hidden, classes, batch = 64, size, 10, 64
    leaves = (
        rng.normal(0, inputs**-0.5, (inputs, hidden)), np.zeros(hidden),
        rng.normal(0, hidden**-0.5, (hidden, classes)), np.zeros(classes),
    )  # fmt: skip
    return leaves, (rng.uniform(0, 1, (batch, inputs)), np.eye(classes)[rng.integers(0, classes, batch)])


def _digits(m: Any, w1: Any, b1: Any, w2: Any, b2: Any, x: Any, y: Any) -> Any:
    z = m.tanh(x @ w1 + b1) @ w2 + b2
    z = z - m.row_max(z)
    logp = z - m.log(m.sum(m.exp(z), axis=1, keepdims=True))
    return -m.sum(logp * y) / 64


def _digits_hand(leaves: Arrays, constants: Arrays) -> Step:
    w1, b1, w2, b2 = (w.copy() for w in leaves)
    x, y = constants

    def step() -> tuple[Any, ...]:
        nonlocal w1, b1, w2, b2
        h = np.tanh(x @ w1 + b1)
        z = h @ w2 + b2
        z -= z.max(axis=1, keepdims=True)
        p = np.exp(z)
        total = p.sum(axis=1, keepdims=True)
        loss = -((z - np.log(total)) * y).sum() / 64
        p /= total
        p -= y
        p /= 64
        gw2 = h.T @ p
        gb2 = p.sum(axis=0)
        ga = p @ w2.T
        ga *= 1.0 - h * h
        gw1 = x.T @ ga
        gb1 = ga.sum(axis=0)
        w1 -= 0.1 * gw1
        b1 -= 0.1 * gb1
        w2 -= 0.1 * gw2
        b2 -= 0.1 * gb2
        return loss, gw1, gb1, gw2, gb2

    return step


_add(
    name="digits", title="digits MLP step: 64-128-10, batch 64, SGD", target=1.8, kind="descent",
    data=_digits_data, loss=_digits, hand=_digits_hand, sizes=(128, 128, 16),
)  # fmt: skip


# -- rectifiers and a cross-entropy of elementary functions -------------------------------------------------------------


def _relu_data(rng: Any, size: int) -> tuple[Arrays, Arrays]:
    inputs, classes, batch = 64, 10, size
    leaves = (
        rng.normal(0, inputs**-0.5, (inputs, size)), rng.normal(0, 0.1, size),
        rng.normal(0, size**-0.5, (size, classes)), np.zeros(classes),
    )  # fmt: skip
    return leaves, (rng.uniform(0, 1, (batch, inputs)), np.eye(classes)[rng.integers(0, classes, batch)])


def _relu_single(rng: Any, size: int) -> tuple[Arrays, Arrays]:
    leaves, constants = _relu_data(rng, size)
    return tuple(x.astype(np.float32) for x in leaves), tuple(x.astype(np.float32) for x in constants)


def _relu(m: Any, w1: Any, b1: Any, w2: Any, b2: Any, x: Any, y: Any) -> Any:
    z = m.above(x @ w1 + b1, 0.0) @ w2 + b2
    z = z - m.row_max(z)
    logp = z - m.log(m.sum(m.exp(z), axis=1, keepdims=True))
    return -m.mean(m.sum(logp * y, axis=1))


def _relu_hand(leaves: Arrays, constants: Arrays) -> Step:
    w1, b1, w2, b2 = leaves
    x, y = constants

    def step() -> tuple[Any, ...]:
        h = x @ w1
        h += b1
        np.maximum(h, 0.0, out=h)
        z = h @ w2
        z += b2
        z -= z.max(axis=1, keepdims=True)
        p = np.exp(z)
        total = p.sum(axis=1, keepdims=True)
        loss = -((z - np.log(total)) * y).sum() / len(x)
        p /= total
        p -= y
        p /= len(x)
        g = p @ w2.T
        g *= h > 0.0
        return loss, x.T @ g, g.sum(axis=0), h.T @ p, p.sum(axis=0)

    return step


_add(
    name="relu", title="MLP with maximum(x, 0) and composed cross-entropy: 64-128-10, batch 128", target=2.2,
    data=_relu_data, loss=_relu, hand=_relu_hand, sizes=(128, 128, 16),
)  # fmt: skip
_add(
    name="relu32", title="the same in float32", target=2.5,
    data=_relu_single, loss=_relu, hand=_relu_hand, sizes=(128, 128, 16), tolerance=1e-4,
)  # fmt: skip


# -- a recurrent network ---------------------------------------------------------------------------------------------


def _rnn_data(rng: Any, size: int) -> tuple[Arrays, Arrays]:
    inputs, hidden, batch = 32, 64, 16
    leaves = (
        rng.normal(0, inputs**-0.5, (inputs, hidden)),
        rng.normal(0, hidden**-0.5, (hidden, hidden)),
        rng.normal(0, 0.1, hidden),
    )
    return leaves, (np.zeros((batch, hidden)), *rng.normal(0, 1, (size, batch, inputs)))


def _rnn(m: Any, w: Any, u: Any, b: Any, h: Any, *xs: Any) -> Any:
    for x in xs:
        h = m.tanh(x @ w + h @ u + b)
    return m.sum(h * h)


def _rnn_hand(leaves: Arrays, constants: Arrays) -> Step:
    w, u, b = leaves
    h0, *xs = constants

    def step() -> tuple[Any, ...]:
        states = [h0]
        for x in xs:
            a = x @ w
            a += states[-1] @ u
            a += b
            states.append(np.tanh(a, out=a))
        h = states.pop()
        loss = (h * h).sum()
        gw, gu, gb = np.zeros_like(w), np.zeros_like(u), np.zeros_like(b)
        g = 2.0 * h
        for x in reversed(xs):
            g *= 1.0 - h * h
            h = states.pop()
            gw += x.T @ g
            gu += h.T @ g
            gb += g.sum(axis=0)
            g = g @ u.T
        return loss, gw, gu, gb

    return step


_add(
    name="rnn", title="tanh RNN: hidden 64, 50 steps, batch 16", target=1.7,
    data=_rnn_data, loss=_rnn, hand=_rnn_hand, sizes=(50, 50, 4),
)  # fmt: skip


# -- large arrays ------------------------------------------------------------------------------------------------------


def _elementwise_data(rng: Any, size: int) -> tuple[Arrays, Arrays]:
    return (rng.uniform(0.5, 1.5, size), rng.uniform(0.5, 1.5, size)), ()


def _elementwise(m: Any, x: Any, w: Any) -> Any:
    h = x * w + x
    f = h * h
    h = m.sqrt(f + 1.0) - w
    return m.sum(h / (f + x) * h)


def _elementwise_hand(leaves: Arrays, constants: Arrays) -> Step:
    x, w = leaves

    def step() -> tuple[Any, ...]:
        a = x * w
        a += x
        f = a * a
        root = f + 1.0
        np.sqrt(root, out=root)
        h = root - w
        d = f
        d += x
        q = h / d
        g = q * h
        loss = g.sum()
        g /= d  # - d loss / dd
        np.negative(g, out=g)
        q *= 2.0  # d loss / dh
        gw = -q
        q /= root
        q *= 0.5
        q += g  # d loss / df
        a *= q
        a *= 2.0  # d loss / d (x * w + x)
        gw += np.multiply(a, x, out=q)
        g += a
        a *= w
        g += a
        return loss, g, gw

    return step


def _elementwise_plain(leaves: Arrays, constants: Arrays) -> Step:
    x, w = leaves

    def step() -> tuple[Any, ...]:
        a = x * w + x
        f = a * a
        root = np.sqrt(f + 1.0)
        h = root - w
        q = h / (f + x)
        loss = np.sum(q * h)
        gh = 2.0 * q
        gd = -q * q
        gf = gd + gh / (2.0 * root)
        ga = 2.0 * a * gf
        return loss, gd + ga * w + ga, ga * x - gh

    return step


_add(
    name="elementwise", title="elementwise graph of 10 operations on 1e6 elements", target=1.6, memory=13.0,
    data=_elementwise_data, loss=_elementwise, hand=_elementwise_hand, plain=_elementwise_plain, sizes=(1_000_000, 1_000_000, 100),
)  # fmt: skip


def _functions(m: Any, x: Any, w: Any) -> Any:
    h = m.sin(x * w) + x
    h = m.tanh(h)
    f = m.exp(-(h * w))
    return m.sum(m.log(f + 2.0) * h)


def _functions_hand(leaves: Arrays, constants: Arrays) -> Step:
    x, w = leaves

    def step() -> tuple[Any, ...]:
        a = x * w
        h = np.sin(a)
        h += x
        np.tanh(h, out=h)
        f = h * w
        np.negative(f, out=f)
        np.exp(f, out=f)
        f2 = f + 2.0
        log = np.log(f2)
        loss = (log * h).sum()
        f *= h  # d loss / d (h * w) = -h f / (f + 2)
        f /= f2
        np.negative(f, out=f)
        gw = f * h
        f *= w
        f += log  # d loss / dh
        h *= h
        np.subtract(1.0, h, out=h)
        f *= h  # d loss / d (sin(a) + x)
        np.cos(a, out=a)
        a *= f
        gw += a * x
        a *= w
        f += a
        return loss, f, gw

    return step


def _functions_plain(leaves: Arrays, constants: Arrays) -> Step:
    x, w = leaves

    def step() -> tuple[Any, ...]:
        a = x * w
        t = np.tanh(np.sin(a) + x)
        f = np.exp(-(t * w))
        log = np.log(f + 2.0)
        loss = np.sum(log * t)
        gf = f * t / (f + 2.0)
        gh = (log - gf * w) * (1.0 - t * t)
        ga = gh * np.cos(a)
        return loss, gh + ga * w, ga * x - gf * t

    return step


# NB: the result depends mostly on each library's vector sine, exponential and so on; NumPy's are not the fastest on every machine.
_add(
    name="functions", title="the same with sin, tanh, exp, log", target=1.6, memory=13.0,
    data=_elementwise_data, loss=_functions, hand=_functions_hand, plain=_functions_plain, sizes=(1_000_000, 1_000_000, 100),
)  # fmt: skip


# NB: the normal distribution function is approximated with tanh, which all libraries have.
_ROOT, _CUBIC = (2.0 / math.pi) ** 0.5, 0.044715


def _options_data(rng: Any, size: int) -> tuple[Arrays, Arrays]:
    return (rng.uniform(80.0, 120.0, size), rng.uniform(80.0, 120.0, size), rng.uniform(0.1, 0.4, size)), ()


def _normal_cdf(m: Any, x: Any) -> Any:
    return m.tanh((x + x * x * x * _CUBIC) * _ROOT) * 0.5 + 0.5


def _options(m: Any, s: Any, k: Any, sigma: Any) -> Any:
    d1 = (m.log(s / k) + 0.02 + sigma * sigma * 0.5) / sigma  # one year at two per cent
    d2 = d1 - sigma
    return m.sum(s * _normal_cdf(m, d1) - k * _DISCOUNT * _normal_cdf(m, d2))


_DISCOUNT = math.exp(-0.02)


def _options_hand(leaves: Arrays, constants: Arrays) -> Step:
    s, k, sigma = leaves

    def cdf(x: Any) -> tuple[Any, Any]:
        """Return the cumulative distribution function and its derivative."""
        square = x * x
        t = square * _CUBIC
        t += 1.0
        t *= x
        t *= _ROOT
        np.tanh(t, out=t)
        square *= 3.0 * _CUBIC
        square += 1.0
        square *= 0.5 * _ROOT
        slope = t * t
        np.subtract(1.0, slope, out=slope)
        slope *= square
        t *= 0.5
        t += 0.5
        return t, slope

    def step() -> tuple[Any, ...]:
        ratio = s / k
        d1 = np.log(ratio, out=ratio)
        d1 += 0.02
        half = sigma * sigma
        half *= 0.5
        d1 += half
        d1 /= sigma
        d2 = d1 - sigma
        n1, slope1 = cdf(d1)
        n2, slope2 = cdf(d2)
        slope1 *= s
        slope2 *= k
        slope2 *= _DISCOUNT  # d loss / dd2 = -slope2
        n2 *= -_DISCOUNT  # d loss / dk, but for d1
        loss = np.dot(s, n1) + np.dot(k, n2)
        d1 /= sigma  # d d1 / d sigma = 1 - d1 / sigma
        np.subtract(1.0, d1, out=d1)
        gd = slope1
        gd -= slope2  # d loss / dd1
        d1 *= gd
        d1 += slope2
        gd /= sigma
        n1 += gd / s
        gd /= k
        n2 -= gd
        return loss, n1, n2, d1

    return step


def _options_plain(leaves: Arrays, constants: Arrays) -> Step:
    s, k, sigma = leaves

    def cdf(x: Any) -> tuple[Any, Any]:
        t = np.tanh(_ROOT * (x + _CUBIC * x * x * x))
        return 0.5 + 0.5 * t, 0.5 * _ROOT * (1.0 - t * t) * (1.0 + 3.0 * _CUBIC * x * x)

    def step() -> tuple[Any, ...]:
        d1 = (np.log(s / k) + 0.02 + 0.5 * sigma * sigma) / sigma
        n1, slope1 = cdf(d1)
        n2, slope2 = cdf(d1 - sigma)
        loss = np.sum(s * n1 - _DISCOUNT * k * n2)
        g1, g2 = s * slope1, -_DISCOUNT * k * slope2
        gd = (g1 + g2) / sigma
        return loss, n1 + gd / s, -_DISCOUNT * n2 - gd / k, (g1 + g2) * (1.0 - d1 / sigma) - g2

    return step


_add(
    name="options", title="Black-Scholes prices of 1e6 options, gradients in S, K and sigma", target=2.4,
    data=_options_data, loss=_options, hand=_options_hand, plain=_options_plain, sizes=(1_000_000, 1_000_000, 100),
)  # fmt: skip


def _matmul_data(rng: Any, size: int) -> tuple[Arrays, Arrays]:
    return tuple(rng.normal(0, size**-0.5, (size, size)) for _ in range(3)), ()


def _matmul(m: Any, a: Any, b: Any, c: Any) -> Any:
    return m.sum(a @ b @ c)


def _matmul_hand(leaves: Arrays, constants: Arrays) -> Step:
    a, b, c = leaves

    def step() -> tuple[Any, ...]:
        h = a @ b
        z = h @ c
        g = np.ones_like(z)
        gc = h.T @ g
        gh = g @ c.T
        return z.sum(), gh @ b.T, a.T @ gh, gc

    return step


_add(
    name="matmul", title="matmul chain: (A @ B) @ C of 1024 x 1024", target=1.05,
    data=_matmul_data, loss=_matmul, hand=_matmul_hand, sizes=(1024, 512, 8),
)  # fmt: skip


# -- messages along the edges of a graph -----------------------------------------------------------------------------


def _graph_data(rng: Any, size: int) -> tuple[Arrays, Arrays]:
    nodes, features = size // 10 + 2, 16
    ends = (rng.integers(0, nodes, size), rng.integers(0, nodes, size))
    return (rng.normal(0, 1, (nodes, features)), rng.normal(0, 1, features)), ends


def _graph(m: Any, x: Any, w: Any, source: Any, target: Any) -> Any:
    message = m.tanh(m.rows(x, source) * w - m.rows(x, target))
    return m.sum(message * message)


def _graph_hand(leaves: Arrays, constants: Arrays) -> Step:
    x, w = leaves
    source, target = constants
    width = x.shape[1]
    # The graph is fixed, so the place to which each number is added is computed once. NB: this is the fastest segment sum in NumPy >= 2.
    flat_source, flat_target = ((i[:, None] * width + np.arange(width)).reshape(-1) for i in (source, target))

    def step() -> tuple[Any, ...]:
        rows = x.take(source, axis=0)
        message = rows * w
        message -= x.take(target, axis=0)
        np.tanh(message, out=message)
        g = message * message
        loss = g.sum()
        np.subtract(1.0, g, out=g)
        g *= message
        g *= 2.0
        gx = np.zeros_like(x)
        flat = gx.reshape(-1)
        np.subtract.at(flat, flat_target, g.reshape(-1))
        gw = (g * rows).sum(axis=0)
        g *= w
        np.add.at(flat, flat_source, g.reshape(-1))
        return loss, gx, gw

    return step


_add(
    name="graph", title="gather and segment sums: 2e4 edges, 16 features", target=1.4,
    data=_graph_data, loss=_graph, hand=_graph_hand, sizes=(20_000, 20_000, 30),
)  # fmt: skip


# -- float32 embeddings ------------------------------------------------------------------------------------------------


def _embeddings_data(rng: Any, size: int) -> tuple[Arrays, Arrays]:
    words = size // 4 + 2
    return (rng.normal(0, 0.1, (words, 16)).astype(np.float32),), (rng.integers(0, words, size), rng.integers(0, words, size))


def _embeddings(m: Any, table: Any, word: Any, context: Any) -> Any:
    score = m.sum(m.rows(table, word) * m.rows(table, context), axis=1)
    return m.sum(m.log(m.exp(-score) + 1.0))


def _embeddings_hand(leaves: Arrays, constants: Arrays) -> Step:
    (table,) = leaves
    word, context = constants
    columns = np.arange(table.shape[1])

    def add(flat: Any, rows: Any, values: Any) -> None:
        np.add.at(flat, (rows[:, None] * columns.size + columns).reshape(-1), values.reshape(-1))

    def step() -> tuple[Any, ...]:
        a, b = table.take(word, axis=0), table.take(context, axis=0)
        p = (a * b).sum(axis=1)
        np.negative(p, out=p)
        np.exp(p, out=p)
        q = p + 1.0
        loss = np.log(q).sum()
        p /= q
        np.negative(p, out=p)  # d loss / d score
        g = np.zeros_like(table)
        flat = g.reshape(-1)
        a *= p[:, None]
        b *= p[:, None]
        add(flat, word, b)
        add(flat, context, a)
        return loss, g

    return step


_add(
    name="embeddings", title="gather of float32 embeddings: 2e4 pairs of words, 16 features", target=1.0,
    data=_embeddings_data, loss=_embeddings, hand=_embeddings_hand, sizes=(20_000, 20_000, 30), tolerance=1e-4,
)  # fmt: skip


# -- slices ------------------------------------------------------------------------------------------------------------


def _stencil_data(rng: Any, size: int) -> tuple[Arrays, Arrays]:
    return (rng.normal(0, 1, 2 * size + 100),), (size,)


def _stencil(m: Any, u: Any, size: int) -> Any:
    for _ in range(size):
        u = u[1:-1] + 0.2 * (u[2:] - 2.0 * u[1:-1] + u[:-2])
    return m.sum(u * u)


def _stencil_hand(leaves: Arrays, constants: Arrays) -> Step:
    (u0,) = leaves
    (size,) = constants

    def step() -> tuple[Any, ...]:
        u = u0
        for _ in range(size):
            u = u[1:-1] + 0.2 * (u[2:] - 2.0 * u[1:-1] + u[:-2])
        loss = (u * u).sum()
        g = 2.0 * u
        for _ in range(size):
            side = 0.2 * g
            g -= 2.0 * side
            gu = np.zeros(g.size + 2)
            gu[1:-1] = g
            gu[2:] += side
            gu[:-2] += side
            g = gu
        return loss, g

    return step


_add(
    name="stencil", title="1-d stencil by slices: 100 steps", target=4.0,
    data=_stencil_data, loss=_stencil, hand=_stencil_hand, sizes=(100, 100, 4),
)  # fmt: skip


# -- shapes of graph ---------------------------------------------------------------------------------------------------


def _fan_data(rng: Any, size: int) -> tuple[Arrays, Arrays]:
    return (rng.uniform(0.5, 1.5, 4),), (size,)


def _fan(m: Any, x: Any, size: int) -> Any:
    total = x * 0.5
    for k in range(size - 1):
        total = total + x * (k * 1e-3)
    return m.sum(total)


def _fan_hand(leaves: Arrays, constants: Arrays) -> Step:
    (x,) = leaves
    (size,) = constants

    def step() -> tuple[Any, ...]:
        total = x * 0.5
        for k in range(size - 1):
            total += x * (k * 1e-3)
        g = np.ones(4)
        gx = g * 0.5
        for k in range(size - 1):
            gx += g * (k * 1e-3)
        return total.sum(), gx

    return step


_LONG = "unrolled, so many operations do not compile in reasonable time and memory"
_add(
    name="fan", title="one leaf used 1e4 times", target=2.7,
    data=_fan_data, loss=_fan, hand=_fan_hand, sizes=(10_000, 10_000, 20), without={"jax": _LONG},
)  # fmt: skip


def _deep_data(rng: Any, size: int) -> tuple[Arrays, Arrays]:
    return (rng.uniform(0.5, 1.5, 4),), (size // 2,)


def _deep(m: Any, h: Any, size: int) -> Any:
    for _ in range(size):
        h = m.sin(h) * 1.01
    return m.sum(h)


def _deep_hand(leaves: Arrays, constants: Arrays) -> Step:
    (x,) = leaves
    (size,) = constants

    def step() -> tuple[Any, ...]:
        tape = []
        h = x
        for _ in range(size):
            tape.append(h)
            h = np.sin(h) * 1.01
        loss = h.sum()
        g = np.ones(4)
        while tape:
            g *= 1.01
            g *= np.cos(tape.pop())
        return loss, g

    return step


_SLOW = "more than ten seconds a run"
_add(
    name="deep5", title="deep chain of 1e5 operations", target=3.5,
    data=_deep_data, loss=_deep, hand=_deep_hand, sizes=(100_000, 100_000, 20),
    without={"jax": _LONG, "compiled": _LONG, "whole": _LONG, "native": _LONG},
)  # fmt: skip
_add(
    name="deep", title="deep chain of 1e6 operations", target=3.5,
    data=_deep_data, loss=_deep, hand=_deep_hand, sizes=(1_000_000, 200_000, 20),
    without={"jax": _LONG, "compiled": _LONG, "whole": _LONG, "native": _LONG, "mygrad": _SLOW, "autograd": _SLOW},
)  # fmt: skip


# -- second order ------------------------------------------------------------------------------------------------------


def _rosenbrock_data(rng: Any, size: int) -> tuple[Arrays, Arrays]:
    return (rng.normal(0, 1, size),), (rng.normal(0, 1, size),)


def _rosenbrock(m: Any, x: Any) -> Any:
    return m.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def _rosenbrock_hand(leaves: Arrays, constants: Arrays) -> Step:
    (x,) = leaves
    (v,) = constants

    def step() -> tuple[Any, ...]:
        head, tail = x[:-1], v[1:]
        out = np.zeros_like(x)
        out[:-1] = (1200.0 * head * head - 400.0 * x[1:] + 2.0) * v[:-1] - 400.0 * head * tail
        out[1:] += 200.0 * tail - 400.0 * head * v[:-1]
        return (out,)

    return step


_add(
    name="hvp", title="Hessian-vector product of Rosenbrock-100", target=15.0, kind="hvp",
    data=_rosenbrock_data, loss=_rosenbrock, hand=_rosenbrock_hand, sizes=(100, 100, 6),
    without={"mygrad": "first order only"},
)  # fmt: skip
