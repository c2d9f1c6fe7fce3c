"""The value of `stencil` and its gradients, in NumPy alone.

    stencil, grad_u = stencil_and_gradients(u, wanted)

Arguments
---------
u : float64, shape (40,)
wanted : float64, shape (40,)

Results
-------
stencil : float64, shape ()
grad_u : float64, shape (40,)
    the gradient with respect to `u`

Made from `stencil` (functions.py, line 28), by xpgrad:

    python functions.py

The function takes arrays of these shapes and dtypes, writes to none of them, and returns new ones. Run the module to test it.
"""

import numpy as np


def stencil_and_gradients(u, wanted):
    """Return the value of `stencil` and its gradients; see the module's docstring."""
    # functions.py:31  inner = u[1:-1] + rate * (u[2:] - 2 * u[1:-1] + u[:-2])
    t1 = u[1:-1]
    inner = t1 * 2
    np.subtract(u[2:], inner, out=inner)
    inner += u[:-2]
    inner *= 0.2
    inner += t1
    # functions.py:32  u = xp.concat([u[:1], inner, u[-1:]])
    u_2 = np.concatenate([u[:1], inner, u[-1:]], axis=0)
    # functions.py:31  inner = u[1:-1] + rate * (u[2:] - 2 * u[1:-1] + u[:-2])
    t1 = u_2[1:-1]
    inner_2 = t1 * 2
    np.subtract(u_2[2:], inner_2, out=inner_2)
    inner_2 += u_2[:-2]
    inner_2 *= 0.2
    inner_2 += t1
    # functions.py:32  u = xp.concat([u[:1], inner, u[-1:]])
    u_3 = np.concatenate([u_2[:1], inner_2, u_2[-1:]], axis=0)
    # functions.py:31  inner = u[1:-1] + rate * (u[2:] - 2 * u[1:-1] + u[:-2])
    t1 = u_3[1:-1]
    inner_3 = t1 * 2
    np.subtract(u_3[2:], inner_3, out=inner_3)
    inner_3 += u_3[:-2]
    inner_3 *= 0.2
    inner_3 += t1
    # functions.py:32  u = xp.concat([u[:1], inner, u[-1:]])
    u_4 = np.concatenate([u_3[:1], inner_3, u_3[-1:]], axis=0)
    # functions.py:31  inner = u[1:-1] + rate * (u[2:] - 2 * u[1:-1] + u[:-2])
    t1 = u_4[1:-1]
    inner_4 = t1 * 2
    np.subtract(u_4[2:], inner_4, out=inner_4)
    inner_4 += u_4[:-2]
    inner_4 *= 0.2
    inner_4 += t1
    # functions.py:32  u = xp.concat([u[:1], inner, u[-1:]])
    u_5 = np.concatenate([u_4[:1], inner_4, u_4[-1:]], axis=0)
    # functions.py:33  return xp.sum((u - wanted) ** 2)
    u_5 -= wanted
    stencil = np.add.reduce(np.square(u_5))

    # backward
    # functions.py:33  return xp.sum((u - wanted) ** 2)
    u_5 *= 2
    g1 = u_5[1:39]
    g2 = np.zeros(40)
    g2[-1:] = u_5[39:]
    g2[:1] += u_5[:1]
    g3 = g1 * 0.2
    g2[:-2] += g3
    g2[1:-1] += g1 * -0.4
    g2[2:] += g3
    g2[1:-1] += g1
    g1 = g2[1:39]
    g3 = np.zeros(40)
    g3[-1:] = g2[39:]
    g3[:1] += g2[:1]
    g2 = g1 * 0.2
    g3[:-2] += g2
    g3[1:-1] += g1 * -0.4
    g3[2:] += g2
    g3[1:-1] += g1
    g1 = g3[1:39]
    g2 = np.zeros(40)
    g2[-1:] = g3[39:]
    g2[:1] += g3[:1]
    g3 = g1 * 0.2
    g2[:-2] += g3
    g2[1:-1] += g1 * -0.4
    g2[2:] += g3
    g2[1:-1] += g1
    g1 = g2[1:39]
    grad_u = np.zeros(40)
    grad_u[-1:] = g2[39:]
    grad_u[:1] += g2[:1]
    g2 = g1 * 0.2
    grad_u[:-2] += g2
    grad_u[1:-1] += g1 * -0.4
    grad_u[2:] += g2
    grad_u[1:-1] += g1
    return stencil, grad_u


def _example(seed):
    """Return random arguments, in the ranges of those with which this module was exported."""
    rng = np.random.default_rng(seed)
    return [
        rng.uniform(0.02661, 0.9788, (40,)),
        rng.uniform(0, 1, (40,)),
    ]


def check(seed=0):
    """Compare each gradient with central differences along a random direction; return whether all agree."""
    arguments = _example(seed)
    value, *gradients = stencil_and_gradients(*arguments)
    rng = np.random.default_rng(seed + 1)
    good = True
    for name, place, gradient in zip(['grad_u'], [0], gradients):
        x = arguments[place]
        direction = rng.uniform(-1, 1, x.shape)
        if x.dtype.kind == "c":
            direction = direction + 1j * rng.uniform(-1, 1, x.shape)
        eps = max(np.finfo(x.dtype).eps, np.finfo(value.dtype).eps)

        def slope(step):
            values = []
            for moved in (x + step * direction, x - step * direction):
                others = [*arguments[:place], moved.astype(x.dtype), *arguments[place + 1 :]]
                values.append(float(stencil_and_gradients(*others)[0]))
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
