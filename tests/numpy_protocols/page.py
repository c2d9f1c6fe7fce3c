"""The page of NumPy's functions, docs/numpy.md: its text is here, its table is the core's.

``PYTHONPATH=tests python -m numpy_protocols.page`` writes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from xpgrad._numpy import dispatch
from xpgrad._numpy.missing import NOT_DISPATCHED
from xpgrad._numpy.table import ABSENT, FUNCTIONS, UFUNCS

assert dispatch  # which loads the tables

PAGE = Path(__file__).resolve().parents[2] / "docs" / "numpy.md"
PLACES: list[tuple[str, Any]] = [("", np), ("linalg.", np.linalg), ("fft.", np.fft), ("lib.stride_tricks.", np.lib.stride_tricks)]

HEAD = """# NumPy code on Tensors

A Tensor of any device is an argument of NumPy's own functions: `np.sin(x)`, `np.add.reduce(x)`, `np.linalg.norm(x)` compute by xpgrad's
rows, on the Tensor's device, and record. So code that was written for NumPy differentiates unchanged, on JAX and CuPy too, and inside
of `vmap`, `func.grad`, forward mode and `compile`. NumPy hands its functions over by two protocols, `__array_ufunc__` ([NEP
13](https://numpy.org/neps/nep-0013-ufunc-overrides.html)) and `__array_function__` ([NEP
18](https://numpy.org/neps/nep-0018-array-function-protocol.html)).

```python
import numpy as np
import xpgrad as xp


def energy(x, springs):  # NumPy code: it has never heard of xpgrad
    gaps = np.diff(x, prepend=0.0) - 1.0
    return np.sum(springs * np.where(gaps > 0, np.square(gaps), np.log1p(np.exp(gaps))))


x = xp.tensor([1.5, 2.0, 4.0], requires_grad=True)
energy(x, np.asarray([1.0, 2.0, 3.0])).backward()
print(np.round(x.grad, 3).tolist())  # [0.245, -5.245, 6.0]
print(np.median(np.fft.rfft(x.detach()).real))  # tensor(3.)
```

## The rules

* **Nothing is converted silently.** What has no rule raises `TypeError`, with the nearest name that has one. `np.asarray(x)` of what
  requires grad raises, as ever; `x.detach().numpy()` says that a constant is meant. `requires_grad` does not change what a function
  does.
* **Constants.** Beside a Tensor, numbers are weak (Python's, NumPy's, and NumPy's 0-d arrays); lists of numbers and NumPy's arrays become
  [constants](constants.md) on the Tensor's device, in the dtype that they have, without a copy where the library can share memory: writing
  to such an array later is not seen. Where the device is not in the host's memory, a NumPy array raises
  `DeviceMismatchError`: move it there once. A list that holds Tensors is stacked. Arrays of objects, masked arrays and other libraries'
  arrays raise and say what to do.
* **`out=`** must be a Tensor; it is [written in place](writing-in-place.md), and that is recorded. With `where=` beside `out=` the
  elements that are left out are not computed at all, so that an infinite derivative there does no harm. `where=` without `out=` raises
  in a universal function.
* **Options** (`axis=`, `keepdims=`, `dtype=`, `initial=`, ...) mean what they mean in NumPy, or are refused by name. `order=` and
  `subok=` change nothing about values: what NumPy decides there is the backend's.
* **Dtypes** follow xpgrad's promotion, which is the same on every device: an integer with a floating dtype gives the latter (NumPy:
  int64 with float32 gives float64); functions of integers with floating results, such as `np.sin` and `np.mean`, give the device's
  default floating dtype; NumPy's scalars are as weak as Python's. What NumPy always computes in
  float64 (`cov`, `interp`, `bincount`, the polynomials, ...) stays in the precision of the Tensors. Indices and counts are int64, or
  what the backend has.
* **Results** are Tensors where NumPy's are arrays or NumPy scalars. Views are the library's, as for `xpgrad.reshape`.
* **Methods of universal functions**: `reduce` and `accumulate` (by rows for sums, products and extrema, step by step for the others),
  `outer`, `reduceat`, and `at` for `np.add` and `np.subtract`.
* **What NumPy does not ask about.** An argument that is a list of lists, a method of a NumPy array (`array.dot(x)`), an array of
  objects that holds Tensors, and the options that NumPy reads itself (`np.sum(array, initial=x)`) never reach the Tensor's protocols:
  NumPy converts the Tensor there, which raises if it requires grad; where NumPy wants one number (`initial=x`), `float(x)` warns, as
  in PyTorch, and the result has no gradient; inside of a function that a transform runs it raises. An array of objects computes with
  each Tensor by itself, and keeps their histories.
* **`like=x`** makes an array beside a Tensor: `np.zeros(3, like=x)`, `np.asarray(array, like=x)`.

An operation of this kind costs less than 1.5 us more than its xpgrad spelling (`python -m benchmarks.protocols`).

## Coming from MyGrad

A program for [MyGrad](https://mygrad.readthedocs.io) writes `xp.tensor(values, requires_grad=True)` for `mg.tensor(values)`, and `np`
for `mg` in what it computes: every function of MyGrad that has NumPy's name is in the table below, with the same values and gradients.
The others:

| MyGrad | here |
|---|---|
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

* `f.backward()` of an `f` with axes sums it in MyGrad; here it needs a gradient, as in PyTorch, or `np.sum(f).backward()`.
* Gradients add up over several passes here, and last until they are deleted; MyGrad forgets them when the Tensor is used again. `x.grad` is
  a Tensor. Passes free the graph in both.
* `constant=True` of a function is `x.detach()`; `mg.no_autodiff` is `xp.no_grad()`; `mg.execute_op` and `Operation` are
  [`xp.autograd.Function`](tutorial.md). There is no memory guard to turn off: writes are recorded, or refused.
* MyGrad's other layers, losses and initial values (`batchnorm`, `conv_nd`, `max_pool`, `focal_loss`, `softmax_crossentropy`, ...) have no
  counterpart: they are compositions of NumPy's functions. Its own `sliding_window_view`, with steps and gaps, is NumPy's with a key:
  `np.lib.stride_tricks.sliding_window_view(x, 3)[::2]`.

## The table

Every public function of `numpy`, `numpy.linalg`, `numpy.fft` and `numpy.lib.stride_tricks` in NumPy 2.4. The tests compare each ✓ with
NumPy itself: its values, and central differences of them, with a Tensor that requires grad in each argument. This page is written by
`PYTHONPATH=tests python -m numpy_protocols.page`.

* ✓: differentiable.
* constant: computes; the result (an index, a count, a truth, a shape) has no derivative.
* no: raises `TypeError`, for the reason given.
* aside: NumPy does not ask a Tensor about it.
"""


def names() -> Iterator[tuple[str, str]]:
    """The public names, and the name under which the function behind each is in the tables (`np.acos` is `arccos`)."""
    for prefix, module in PLACES:
        for name in dir(module):
            found = getattr(module, name)
            if callable(found) and not name.startswith("_") and not isinstance(found, type):
                yield prefix + name, prefix + getattr(found, "__name__", name)


def row(name: str, key: str) -> str:
    """The line of a name."""
    same = "" if name == key else f"as `{key}`"
    reason = ABSENT.get(key) or next((why for why, group in NOT_DISPATCHED.items() if key in group), "")
    entry = UFUNCS.get(key) or FUNCTIONS.get(key)
    if entry is not None:
        mark, note = ("✓" if entry.differentiable else "constant"), entry.note
    else:
        mark, note = ("no" if key in ABSENT else "aside"), reason
    return f"| `{name}` | {mark} | {'; '.join(filter(None, (same, note)))} |"


def page() -> str:
    """The text of docs/numpy.md."""
    rows = [row(*pair) for pair in names()]
    marks = [line.split(" | ")[1] for line in rows]
    counts = f"{len(rows)} names: {marks.count('✓')} differentiable, {marks.count('constant')} constant, {marks.count('no')} not there."
    return "\n".join([HEAD, counts, "", "| function | | |", "|---|---|---|", *rows, ""])


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
