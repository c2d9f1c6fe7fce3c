"""Check what differs where NumPy's indices have 32 bits: `python tests/browser/wasi.py tests/browser/narrow.py`."""

from __future__ import annotations

import numpy as np

import xpgrad as xp
from xpgrad.func import vmap

x = xp.asarray([4.0, 3.0])
order = xp.argsort(x)
assert order.dtype == xp.argmax(x).dtype == xp.unique_counts(x).counts.dtype == xp.nonzero(x)[0].dtype == xp.int64
assert xp.searchsorted(x, xp.asarray([3.5]), sorter=order).tolist() == [1]

# NumPy with 32-bit indices wraps: element 2**32 would be element 0.
far = xp.asarray([2**32])
READS = (
    lambda i: x[i],
    lambda i: xp.take(x, i),
    lambda i: xp.take_along_axis(x, i, axis=0),
    xp.compile(lambda i: x[i]),
    vmap(lambda i: x[i]),
    lambda i: x.__setitem__(i, 1.0),
)
for read in READS:
    message = ""
    try:
        read(far)
    except IndexError as error:
        message = str(error)
    assert "index 4294967296 is out of" in message, message

assert (xp.asarray([2**30] * 4).sum().item(), xp.asarray([2**40]).tolist()) == (2**32, [2**40])
print(f"integers of {xp.asarray([1]).dtype}, indices of NumPy of {np.dtype(np.intp)}: as promised")
