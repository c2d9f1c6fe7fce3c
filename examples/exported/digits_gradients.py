"""The value of `digits` and its gradients, in NumPy alone.

    digits, grad_w1, grad_b1, grad_w2, grad_b2 = digits_and_gradients(w1, b1, w2, b2, pixels, labels)

Arguments
---------
w1 : float64, shape (64, 32)
b1 : float64, shape (32,)
w2 : float64, shape (32, 10)
b2 : float64, shape (10,)
pixels : float64, shape (50, 64)
labels : float64, shape (50, 10)

Results
-------
digits : float64, shape ()
grad_w1 : float64, shape (64, 32)
    the gradient with respect to `w1`
grad_b1 : float64, shape (32,)
    the gradient with respect to `b1`
grad_w2 : float64, shape (32, 10)
    the gradient with respect to `w2`
grad_b2 : float64, shape (10,)
    the gradient with respect to `b2`

Made from `digits` (functions.py, line 10), by xpgrad:

    python functions.py

The function takes arrays of these shapes and dtypes, writes to none of them, and returns new ones. Run the module to test it.
"""

import numpy as np


_BITS = {"e": np.int16, "f": np.int32, "d": np.int64}


def _keep(condition, x):
    """Return x where the condition is True, else 0: the bits times 0 or 1, which is fast and handles infinities."""
    bits = _BITS.get(x.dtype.char)
    if bits is None:
        return np.where(condition, x, x.dtype.type(0))
    return np.multiply(np.asarray(x).view(bits), condition).view(x.dtype)


def _share(x, low, high):
    """Return 0 where low < high, x / 2 where they are equal, else x."""
    out = _keep(np.logical_not(low < high), x)
    ties = low == high
    if not np.count_nonzero(ties):  # most arrays have none
        return out
    return out * np.subtract(1, np.multiply(ties, 0.5, dtype=out.dtype), dtype=out.dtype)


def digits_and_gradients(w1, b1, w2, b2, pixels, labels):
    """Return the value of `digits` and its gradients; see the module's docstring."""
    # functions.py:12  hidden = xp.maximum(pixels @ w1 + b1, 0)
    t1 = pixels @ w1
    t1 += b1
    hidden = np.maximum(t1, 0)
    # functions.py:13  scores = hidden @ w2 + b2
    scores = hidden @ w2
    scores += b2
    # functions.py:14  scores = scores - xp.max(scores.detach(), axis=1, keepdims=True)
    scores_2 = np.subtract(scores, np.maximum.reduce(scores, 1, keepdims=True), out=scores)
    # functions.py:15  log_p = scores - xp.log(xp.sum(xp.exp(scores), axis=1, keepdims=True))
    t2 = np.exp(scores_2)
    t3 = np.add.reduce(t2, 1, keepdims=True)
    log_p = np.subtract(scores_2, np.log(t3), out=scores_2)
    # functions.py:16  return -xp.sum(labels * log_p) / pixels.shape[0]
    log_p *= labels
    digits = np.add.reduce(log_p, None) / -50

    # backward
    g1 = labels * -0.02
    g2 = np.add.reduce(labels * 0.02, 1, keepdims=True)
    # functions.py:15  log_p = scores - xp.log(xp.sum(xp.exp(scores), axis=1, keepdims=True))
    g2 /= t3
    t2 *= g2
    g1 += t2
    grad_b2 = np.add.reduce(g1, 0)
    g2 = g1 @ w2.T
    # functions.py:12  hidden = xp.maximum(pixels @ w1 + b1, 0)
    grad_w2 = hidden.T @ g1
    g1 = _share(g2, t1, 0)
    grad_b1 = np.add.reduce(g1, 0)
    grad_w1 = pixels.T @ g1
    return digits, grad_w1, grad_b1, grad_w2, grad_b2


def _example(seed):
    """Return random arguments, in the ranges of those with which this module was exported."""
    rng = np.random.default_rng(seed)
    return [
        rng.uniform(-0.4874, 0.3833, (64, 32)),
        rng.uniform(-0.1529, 0.147, (32,)),
        rng.uniform(-0.4513, 0.4519, (32, 10)),
        rng.uniform(-0.1401, 0.1524, (10,)),
        rng.uniform(0.0002485, 0.9999, (50, 64)),
        rng.uniform(0, 1, (50, 10)),
    ]


def check(seed=0):
    """Compare each gradient with central differences along a random direction; return whether all agree."""
    arguments = _example(seed)
    value, *gradients = digits_and_gradients(*arguments)
    rng = np.random.default_rng(seed + 1)
    good = True
    for name, place, gradient in zip(['grad_w1', 'grad_b1', 'grad_w2', 'grad_b2'], [0, 1, 2, 3], gradients):
        x = arguments[place]
        direction = rng.uniform(-1, 1, x.shape)
        if x.dtype.kind == "c":
            direction = direction + 1j * rng.uniform(-1, 1, x.shape)
        eps = max(np.finfo(x.dtype).eps, np.finfo(value.dtype).eps)

        def slope(step):
            values = []
            for moved in (x + step * direction, x - step * direction):
                others = [*arguments[:place], moved.astype(x.dtype), *arguments[place + 1 :]]
                values.append(float(digits_and_gradients(*others)[0]))
            return (values[0] - values[1]) / (2 * step)

        step = float(eps ** (1 / 3))
        near, far = slope(step), slope(2 * step)
        found = float(np.sum(np.real(np.conj(gradient) * direction), dtype=float))
        allowed = abs(near - far) + 1e2 * eps / step * (abs(float(value)) + 1) + 1e-6 * abs(near)
        agrees = abs(found - near) <= allowed
        good = good and agrees
        print(f"{name}: {found:.10g}, by central differences {near:.10g}: {'ok' if agrees else 'FAILED'}")
    return good


if __name__ == "__main__":
    raise SystemExit(not check())
