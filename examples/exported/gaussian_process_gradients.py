"""The value of `gaussian_process` and its gradients, in NumPy alone.

    gaussian_process, grad_log_length, grad_log_noise = gaussian_process_and_gradients(log_length, log_noise, x, y)

Arguments
---------
log_length : float64, shape ()
log_noise : float64, shape ()
x : float64, shape (30,)
y : float64, shape (30,)

Results
-------
gaussian_process : float64, shape ()
grad_log_length : float64, shape ()
    the gradient with respect to `log_length`
grad_log_noise : float64, shape ()
    the gradient with respect to `log_noise`

Made from `gaussian_process` (functions.py, line 19), by xpgrad:

    python functions.py

The function takes arrays of these shapes and dtypes, writes to none of them, and returns new ones. Run the module to test it.
"""

import numpy as np

c = np.eye(30, 30, dtype=np.float64)


def _diagonal_transpose(values, shape, offset):
    """Return zeros of a shape with values on a diagonal of the last two axes."""
    out = np.zeros(shape, values.dtype)
    rows = np.arange(values.shape[-1]) + max(-offset, 0)
    out[..., rows, rows + offset] = values
    return out


def gaussian_process_and_gradients(log_length, log_noise, x, y):
    """Return the value of `gaussian_process` and its gradients; see the module's docstring."""
    # functions.py:21  distance = (x[:, None] - x[None, :]) / xp.exp(log_length)
    distance = x[:, None] - x[None]
    t1 = np.exp(log_length)
    distance /= t1
    # functions.py:22  covariance = xp.exp(-0.5 * distance * distance) + xp.exp(log_noise) * xp.eye(x.shape[0])
    t2 = distance * -0.5
    t3 = t2 * distance
    np.exp(t3, out=t3)
    t4 = np.exp(log_noise)
    covariance = t4 * c
    covariance += t3
    # functions.py:23  factor = xp.linalg.cholesky(covariance)
    factor = np.linalg.cholesky(covariance, upper=False)
    # functions.py:24  alpha = xp.linalg.solve(covariance, y)
    t5 = np.linalg.solve(covariance, y[:, None])
    alpha = t5.reshape(30)
    # functions.py:25  return 0.5 * xp.sum(y * alpha) + xp.sum(xp.log(xp.linalg.diagonal(factor)))
    t6 = y * alpha
    t7 = np.add.reduce(t6) * 0.5
    t6 = np.diagonal(factor, 0, -2, -1)
    t8 = np.log(t6)
    gaussian_process = t7 + np.add.reduce(t8)

    # backward
    # functions.py:25  return 0.5 * xp.sum(y * alpha) + xp.sum(xp.log(xp.linalg.diagonal(factor)))
    g1 = _diagonal_transpose(1.0 / t6, (30, 30), 0)
    g2 = y * 0.5
    # functions.py:22  covariance = xp.exp(-0.5 * distance * distance) + xp.exp(log_noise) * xp.eye(x.shape[0])
    g3 = np.linalg.solve(covariance.T, g2[:, None])
    np.negative(g3, out=g3)
    g2 = g3 @ t5.T
    # functions.py:23  factor = xp.linalg.cholesky(covariance)
    g3 = factor.T
    g4 = g3 @ g1
    g1 = np.tril(g4, 0)
    g1 += np.tril(g4, -1)
    g1 /= 2
    g1 += g1.T
    g1 /= 2
    g4 = np.linalg.solve(g3, g1)
    g1 = np.linalg.solve(g3, g4.T)
    # functions.py:22  covariance = xp.exp(-0.5 * distance * distance) + xp.exp(log_noise) * xp.eye(x.shape[0])
    g2 += g1.T
    g1 = g2 * c
    grad_log_noise = np.add.reduce(g1, None) * t4
    g2 *= t3
    # functions.py:21  distance = (x[:, None] - x[None, :]) / xp.exp(log_length)
    g1 = g2 * distance
    # functions.py:22  covariance = xp.exp(-0.5 * distance * distance) + xp.exp(log_noise) * xp.eye(x.shape[0])
    g2 *= t2
    # functions.py:21  distance = (x[:, None] - x[None, :]) / xp.exp(log_length)
    g1 *= -0.5
    # functions.py:22  covariance = xp.exp(-0.5 * distance * distance) + xp.exp(log_noise) * xp.eye(x.shape[0])
    g2 += g1
    np.negative(g2, out=g2)
    g2 *= distance
    # functions.py:21  distance = (x[:, None] - x[None, :]) / xp.exp(log_length)
    g2 /= t1
    grad_log_length = np.add.reduce(g2, None) * t1
    return gaussian_process, grad_log_length, grad_log_noise


def _example(seed):
    """Return random arguments, in the ranges of those with which this module was exported."""
    rng = np.random.default_rng(seed)
    return [
        np.asarray(rng.uniform(-0.5, -0.4, ()), np.float64),
        np.asarray(rng.uniform(-2, -1.9, ()), np.float64),
        rng.uniform(0.01393, 4.7, (30,)),
        rng.uniform(-0.9999, 0.9755, (30,)),
    ]


def check(seed=0):
    """Compare each gradient with central differences along a random direction; return whether all agree."""
    arguments = _example(seed)
    value, *gradients = gaussian_process_and_gradients(*arguments)
    rng = np.random.default_rng(seed + 1)
    good = True
    for name, place, gradient in zip(['grad_log_length', 'grad_log_noise'], [0, 1], gradients):
        x = arguments[place]
        direction = rng.uniform(-1, 1, x.shape)
        if x.dtype.kind == "c":
            direction = direction + 1j * rng.uniform(-1, 1, x.shape)
        eps = max(np.finfo(x.dtype).eps, np.finfo(value.dtype).eps)

        def slope(step):
            values = []
            for moved in (x + step * direction, x - step * direction):
                others = [*arguments[:place], moved.astype(x.dtype), *arguments[place + 1 :]]
                values.append(float(gaussian_process_and_gradients(*others)[0]))
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
