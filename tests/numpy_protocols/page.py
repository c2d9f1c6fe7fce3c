"""Generate docs/numpy.md: the text below, and a table of the core's functions.

``PYTHONPATH=tests python -m numpy_protocols.page`` writes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from support.numpy_cases import PLACES
from xpgrad._numpy.missing import NOT_DISPATCHED
from xpgrad._numpy.table import ABSENT, FUNCTIONS, UFUNCS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "numpy.md"

HEAD = """# NumPy code on Tensors

NumPy's own functions accept Tensors of any device: `np.sin(x)`, `np.add.reduce(x)` and `np.linalg.norm(x)` compute with xpgrad's rules on
the Tensor's device, and are recorded. So code written for NumPy can be differentiated unchanged, also on JAX and CuPy, and inside `vmap`,
`func.grad`, forward mode and `compile`. NumPy calls xpgrad through two protocols, `__array_ufunc__` ([NEP
13](https://numpy.org/neps/nep-0013-ufunc-overrides.html)) and `__array_function__` ([NEP
18](https://numpy.org/neps/nep-0018-array-function-protocol.html)).

```python
import numpy as np
import xpgrad as xp


def energy(x, springs):  # NumPy code without any mention of xpgrad
    gaps = np.diff(x, prepend=0.0) - 1.0
    return np.sum(springs * np.where(gaps > 0, np.square(gaps), np.log1p(np.exp(gaps))))


x = xp.tensor([1.5, 2.0, 4.0], requires_grad=True)
energy(x, np.asarray([1.0, 2.0, 3.0])).backward()
print(np.round(x.grad, 3).tolist())  # [0.245, -5.245, 6.0]
print(np.median(np.fft.rfft(x.detach()).real))  # tensor(3.)
```

## The rules

* **Nothing is converted silently.** A function without a rule raises `TypeError`, which suggests the nearest name that has one.
  `np.asarray(x)` raises if `x` requires grad; use `x.detach().numpy()` to get a constant. A function does the same whether or not
  `requires_grad` is set.
* **Constants.** Combined with a Tensor, numbers (Python's, NumPy's, and NumPy's 0-d arrays) do not decide the dtype. Lists of numbers and
  NumPy arrays become [constants](constants.md) on the Tensor's device and keep their dtype. They are not copied if the library can share
  memory; later writes to such an array are not noticed. If the device is not in CPU memory, a NumPy array raises `DeviceMismatchError`:
  move it to the device once. A list that contains Tensors is stacked. Object arrays, masked arrays and other libraries' arrays raise an
  error that says what to do. The objects of [xarray, pint and pandas](with-other-libraries.md) may be combined with Tensors.
* **`out=`** must be a Tensor. It is [written in place](writing-in-place.md), and the write is recorded. With both `where=` and `out=`,
  excluded elements are not computed at all, so an infinite derivative there does no harm. `where=` without `out=` raises in a universal
  function.
* **Options** (`axis=`, `keepdims=`, `dtype=`, `initial=`, ...) mean what they mean in NumPy, or raise an error that names the option.
  `order=` and `subok=` do not affect values: the backend decides the memory order.
* **Dtypes** follow xpgrad's promotion, which is the same on every device. An integer combined with a floating dtype gives the floating
  dtype (NumPy: int64 with float32 gives float64). Functions of integers with floating results, such as `np.sin` and `np.mean`, give the
  device's default floating dtype. NumPy scalars promote like Python numbers. Functions that NumPy always computes in float64 (`cov`,
  `interp`, `bincount`, the polynomials, ...) keep the precision of the Tensors. Indices and counts are int64, or the backend's own index
  dtype.
* **Results** are Tensors where NumPy returns arrays or NumPy scalars. Whether a result is a view depends on the library, as for
  `xpgrad.reshape`.
* **Methods of universal functions**: `reduce` and `accumulate` (one operation for sums, products and extrema, step by step for the others),
  `outer`, `reduceat`, and `at` for `np.add` and `np.subtract`.
* **Cases in which NumPy does not call xpgrad.** These are a list that contains Tensors, unless the function joins arrays (`np.stack([x,
  y])`), a method of a NumPy array (`array.dot(x)`), an object array that contains Tensors, and the options that NumPy reads itself
  (`np.sum(array, initial=x)`). NumPy then converts the Tensor, which raises if it requires grad. If NumPy needs one number (`initial=x`),
  `float(x)` warns, as in PyTorch, and the result has no gradient; inside a function that a transform or `numpy_code` runs it raises. An
  object array computes with each Tensor separately and keeps their histories.
* **`like=x`** creates an array on the device of `x`: `np.zeros(3, like=x)`, `np.asarray(array, like=x)`.

A NumPy call on Tensors takes less than 1.5 us longer than the same call in xpgrad (`python -m benchmarks.protocols`).

## Programs that make arrays

`np.zeros(3)` and `np.array([1.0, 2.0])` get no Tensor, so they return arrays of NumPy's, into which no Tensor can be written. `numpy_code`
runs a function or a method with versions of these that return Tensors. So do all functions of the same module that it calls, also decorated
ones, and the methods of its classes:

```python
def solve(a, b):  # forward substitution
    out = np.zeros(len(b))
    for i in range(len(b)):
        out[i] = (b[i] - np.dot(a[i, :i], out[:i])) / a[i, i]
    return out


run = xp.numpy_code(solve)
a, b = xp.asarray([[2.0, 0.0], [1.0, 4.0]]), xp.asarray([2.0, 9.0])
print(run(a, b))  # tensor([1., 2.])
print(xp.func.jacrev(run, argnums=1)(a, b).tolist())  # [[0.5, 0.0], [-0.125, 0.25]]
print(xp.compile(run)(a, b))  # tensor([1., 2.])
```

Elements are scalars, as in NumPy: `s = a[0]; s += 1` does not change `a`, and `a[0], a[1] = a[1], a[0]` exchanges two elements. Everywhere
else `a[0]` is a view, as in PyTorch, and `s += 1` writes into it. Methods and attributes that PyTorch has in another form, such as
`a.transpose()`, `a.sort()`, `a.repeat(2)`, `a.std(ddof=1)`, `a.sum(0, out=s)`, `a.reshape(6, order="F")` and `a.flat[1:]`, are NumPy's, and
the parts of `np.r_` and `np.c_` may be Tensors. Functions take lists that contain Tensors: `np.mean([x, y])`, `np.diag([x, y])`,
`np.maximum.reduce([x, y])`. `a.item()` and `a.tolist()` return scalars that keep their gradients, and `np.vectorize` calls its function
with each element. For `isinstance`, `type` and `hasattr` in the module, Tensors are arrays and scalars: `isinstance(a[0], float)` is true.
Functions of `math` and `cmath`, `float(x)`, `complex(x)` and `np.float64(x)` keep gradients; `int(x)`, `round(x)` and `math.floor(x)` are
constants, because they are step functions. `copy.copy(a)` and `copy.deepcopy(a)` are copies with gradients.

What generators of `np.random` draw are Tensors. Locations, scales and the arrays from which they choose may be Tensors, and have gradients:
`rng.normal(mean, scale)`, `rng.choice(x, 5)`, `rng.permutation(x)`. The other parameters raise if they have one. `np.poly1d` and the
classes and functions of `numpy.polynomial` take Tensors; they do not remove zeros that have a gradient.

What is missing raises an error: scalars with gradients as keys of dicts and elements of sets, assignments to `a.shape`, and what shows
memory, e.g. `a.strides`. To write a number that has a gradient into an array of NumPy's, such as one that a global name or an object made
before holds, or one computed from integers (`np.arange(3) / 2`), raises an error, because the gradient would be lost.
Views of such an array, as by `np.ravel(a)` or `np.asarray(a)`, share its memory, and so this error; `np.array(a)` is a Tensor.

SciPy's functions, classes and distributions are those of `xpgrad.scipy` if they get Tensors or functions: solvers, differential equations,
distributions, interpolants, sparse matrices. Further ones are those of `scipy.linalg` that the standard or NumPy has (also `lu_factor`,
`lu_solve`, `solve(assume_a="pos")`, `eigh(a, b)`), `dblquad`, `nquad`, `fsolve`, `leastsq` and `root_scalar`, distances (`cdist`, `pdist`),
and filters and `map_coordinates` (with `order` 0 or 1) of `scipy.ndimage`. All others that SciPy writes in Python run on Tensors as the
program does, if they get a Tensor that has a gradient: `scipy.stats.zscore`, `scipy.signal.welch`, `scipy.ndimage.gaussian_filter`,
`Rotation.from_euler`, the densities of further distributions. What SciPy computes in C raises for such a Tensor. Functions that are given
to solvers run as code for NumPy also when a backward pass calls them.

```python
from scipy.integrate import solve_ivp


def swing(length):  # a program for NumPy and SciPy
    motion = solve_ivp(lambda t, y: [y[1], -9.81 / length * np.sin(y[0])], (0.0, 1.0), [0.5, 0.0], rtol=1e-8, atol=1e-8)
    return motion.y[0, -1]


print(f"{float(xp.func.grad(xp.numpy_code(swing))(2.0)):.4f}")  # 0.2235
```

During a call, the names of the function's module that mean NumPy, SciPy, or functions of them, mean the versions. Code of other modules
runs as it is, unless the argument `modules` names them: with `xp.numpy_code(f, modules=[package])`, `f` may call functions of a whole
package that others wrote for NumPy ([packages that were tried](other-programs.md#packages-written-for-numpy)). In other threads the
versions do what NumPy and SciPy do.

Programs written for NumPy often overwrite what a gradient needs, and write to their arguments: both work here. The old values are kept, and
arguments are copied first, so that the caller's do not change; return what you need of them. Under `vmap`, each element has its own arrays.
Arrays of integers and bools stay NumPy's. A mask that selects a number of elements which depends on values cannot be compiled
([Branches under vmap and compile](sharp-edges.md#branches-under-vmap-and-compile)).

## Coming from MyGrad

To port a program from [MyGrad](https://mygrad.readthedocs.io), replace `mg.tensor(values)` by `xp.tensor(values, requires_grad=True)`, and
`mg` by `np` in the computations. Every MyGrad function with NumPy's name is in the table below, with the same values and gradients. For the
other functions write:

| MyGrad | NumPy and xpgrad |
| `mg.sec(x)` | `1 / np.cos(x)` |
| `mg.csc(x)` | `1 / np.sin(x)` |
| `mg.cot(x)` | `1 / np.tan(x)` |
| `mg.sech(x)` | `1 / np.cosh(x)` |
| `mg.csch(x)` | `1 / np.sinh(x)` |
| `mg.coth(x)` | `1 / np.tanh(x)` |
| `mg.arcsec(x + 1)` | `np.arccos(1 / (x + 1))` |
| `mg.arccsc(x + 1)` | `np.arcsin(1 / (x + 1))` |
| `mg.arccot(x)` | `np.arctan(1 / x)` |
| `mg.arccsch(x)` | `np.arcsinh(1 / x)` |
| `mg.arccoth(x + 1)` | `np.arctanh(1 / (x + 1))` |
| `mg.add_sequence(x, x, x)` | `sum([x, x, x])` |
| `mg.multiply_sequence(x, x, x)` | `math.prod([x, x, x])` |
| `mg.multi_matmul([x, x.T, x])` | `np.linalg.multi_dot([x, x.T, x])` |
| `mg.astensor(x)` | `xp.asarray(x)` |
| `mg.nnet.relu(x)` | `np.maximum(x, 0)` |
| `mg.nnet.leaky_relu(x, 0.1)` | `np.where(x > 0, x, 0.1 * x)` |
| `mg.nnet.elu(x, 0.5)` | `np.where(x > 0, x, 0.5 * np.expm1(x))` |
| `mg.nnet.selu(x)` | `1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x))` |
| `mg.nnet.sigmoid(x)` | `1 / (1 + np.exp(-x))` |
| `mg.nnet.soft_sign(x)` | `x / (1 + np.abs(x))` |
| `mg.nnet.hard_tanh(x)` | `np.clip(x, -1, 1)` |
| `mg.nnet.tanh(x)` | `np.tanh(x)` |
| `mg.nnet.glu(x)` | `x[..., :2] / (1 + np.exp(-x[..., 2:]))` |
| `mg.nnet.softmax(x)` | `np.exp(x) / np.sum(np.exp(x), axis=-1, keepdims=True)` |
| `mg.nnet.logsoftmax(x)` | `x - np.log(np.sum(np.exp(x), axis=-1, keepdims=True))` |

* `f.backward()` sums an `f` with axes in MyGrad. Here it needs a gradient, as in PyTorch; or write `np.sum(f).backward()`.
* Gradients accumulate over several passes here, until you delete them; MyGrad deletes them when the Tensor is used again. `x.grad` is a
  Tensor. A pass frees the graph in both libraries.
* Instead of `constant=True` use `x.detach()`; instead of `mg.no_autodiff`, `xp.no_grad()`; instead of `mg.execute_op` and `Operation`,
  [`xp.autograd.Function`](tutorial.md). There is no memory guard to turn off: a write is either recorded or raises.
* MyGrad's other layers, losses and initializers (`batchnorm`, `conv_nd`, `max_pool`, `focal_loss`, `softmax_crossentropy`, ...) have no
  counterpart here: compose them from NumPy's functions. For its `sliding_window_view` with steps and gaps, index NumPy's:
  `np.lib.stride_tricks.sliding_window_view(x, 3)[::2]`.

## The table

The table lists every public function of `numpy`, `numpy.linalg`, `numpy.fft`, `numpy.emath` and `numpy.lib.stride_tricks` in NumPy 2.4.
For each ✓ the tests compare the values with NumPy's, and the gradients with central differences, with a Tensor that requires grad in each
argument. This page is generated: `PYTHONPATH=tests python -m numpy_protocols.page`.

* ✓: differentiable.
* constant: computed, but the result (an index, a count, a bool, a shape) has no derivative.
* no: raises `TypeError`, for the reason given.
* aside: NumPy does not pass Tensors to xpgrad for this function.
"""


def names() -> Iterator[tuple[str, str]]:
    """Yield each public name and its key in the tables (`np.acos` has the key `arccos`)."""
    for prefix, module in PLACES:
        for name in dir(module):
            found = getattr(module, name)
            if callable(found) and not name.startswith("_") and not isinstance(found, type):
                yield prefix + name, prefix + getattr(found, "__name__", name)


def row(name: str, key: str) -> str:
    """Return the table row of a name."""
    same = "" if name == key else f"as `{key}`"
    reason = ABSENT.get(key) or next((why for why, group in NOT_DISPATCHED.items() if key in group), "")
    entry = UFUNCS.get(key) or FUNCTIONS.get(key)
    if entry is not None:
        mark, note = ("✓" if entry.differentiable else "constant"), entry.note
    else:
        mark, note = ("no" if key in ABSENT else "aside"), reason
    return f"| `{name}` | {mark} | {'; '.join(filter(None, (same, note)))} |"


def page() -> str:
    """Return the text of docs/numpy.md."""
    rows = [row(*pair) for pair in names()]
    marks = [line.split(" | ")[1] for line in rows]
    counts = f"{len(rows)} names: {marks.count('✓')} differentiable, {marks.count('constant')} constant, {marks.count('no')} not supported."
    return "\n".join([HEAD, counts, "", "| function | | |", "|---|---|---|", *rows, ""])


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
