"""All chapters of the table, which importing declares."""

from __future__ import annotations

from xpgrad._numpy import (
    creation as creation,
    fourier as fourier,
    linear_algebra as linear_algebra,
    manipulation as manipulation,
    missing as missing,
    numbers as numbers,
    reductions as reductions,
    searching as searching,
    signals as signals,
    statistics as statistics,
)
