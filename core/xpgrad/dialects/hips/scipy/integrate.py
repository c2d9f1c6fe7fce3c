"""Not there: `scipy.integrate`; importing it says so."""

from __future__ import annotations

msg = (
    "xpgrad.dialects.hips.scipy has no 'integrate', only `linalg`, `signal`, `special` and `stats`; make a primitive of a function of "
    "SciPy with `extend.primitive` and `extend.defvjp`"
)
raise ImportError(msg)
