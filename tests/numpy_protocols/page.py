"""The page of NumPy's functions, docs/numpy.md: its text is here, its table is the core's.

``PYTHONPATH=tests python -m numpy_protocols.page`` writes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from xpgrad._numpy import dispatch
from xpgrad._numpy.missing import ASIDE
from xpgrad._numpy.table import ABSENT, FUNCTIONS, UFUNCS

assert dispatch  # which loads the tables

PAGE = Path(__file__).resolve().parents[2] / "docs" / "numpy.md"
PLACES: list[tuple[str, Any]] = [("", np), ("linalg.", np.linalg), ("fft.", np.fft)]

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
  in PyTorch, and the result has no gradient. An array of objects computes with each Tensor by itself, and keeps
  their histories.
* **`like=x`** makes an array beside a Tensor: `np.zeros(3, like=x)`, `np.asarray(array, like=x)`.

An operation of this kind costs less than 1.5 us more than its xpgrad spelling (`python -m benchmarks.protocols`).

## The table

Every public function of `numpy`, `numpy.linalg` and `numpy.fft` in NumPy 2.4. The tests compare each ✓ with NumPy itself: its values,
and central differences of them, with a Tensor that requires grad in each argument. This page is written by `PYTHONPATH=tests python -m
numpy_protocols.page`.

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
    reason = ABSENT.get(key) or next((why for why, group in ASIDE.items() if key in group), "")
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
