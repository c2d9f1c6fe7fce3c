"""Calls of the functions of `scipy.signal`, including the windows, that accept arrays of any library."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import signal as s

from support.consumers.rows import MATRIX, ROW, Row, V, X, asarray_like, bind_last, row

LONG = np.cos(np.arange(24.0) * 0.7) + 0.1 * np.arange(24.0)
B, A = np.asarray([0.3, 0.4, 0.2]), np.asarray([1.1, -0.3, 0.1])
Z, P = np.asarray([0.5, -0.2]), np.asarray([0.25, 0.4])
SOS = np.asarray([[0.3, 0.4, 0.2, 1.0, -0.3, 0.1], [1.0, 0.5, 0.25, 1.0, 0.2, 0.05]])
IMAGE = np.random.default_rng(4).random((20, 20))
TAPS = np.asarray([0.5, 1.2, 2.5, 1.1, 0.4, 0.1])


def _sections(x: Any) -> Any:
    """Return `x` as second-order sections: the leading coefficient of each denominator is replaced by 1, as SciPy requires."""
    fixed = asarray_like(x, [0.0, 0.0, 0.0, 1.0, 0.0, 0.0])
    return x * (1.0 - fixed) + fixed


ROWS: dict[str, Row] = {
    **{f"scipy.signal.{name}": row(getattr(s, name), ROW, TAPS) for name in ("convolve", "correlate", "fftconvolve", "oaconvolve")},
    **{f"scipy.signal.{name}": row(getattr(s, name), MATRIX, X[:3]) for name in ("convolve2d", "correlate2d")},
    **{
        f"scipy.signal.{name}": row(getattr(s, name), ROW)
        for name in ("cspline1d", "qspline1d", "gauss_spline", "wiener", "medfilt")
        if name != "gauss_spline"
    },
    **{f"scipy.signal.{name}": row(bind_last(getattr(s, name), 2.0), B, A) for name in ("lp2lp", "lp2hp")},
    **{f"scipy.signal.{name}": row(bind_last(getattr(s, name), 2.0, 0.5), B, A) for name in ("lp2bp", "lp2bs")},
    **{f"scipy.signal.{name}": row(bind_last(getattr(s, name), 1.5, 2.0), Z, P) for name in ("lp2lp_zpk", "lp2hp_zpk")},
    **{f"scipy.signal.{name}": row(bind_last(getattr(s, name), 1.5, 2.0, 0.5), Z, P) for name in ("lp2bp_zpk", "lp2bs_zpk")},
    "scipy.signal.abcd_normalize": row(s.abcd_normalize, np.eye(2) * 0.5, np.ones((2, 1)), np.ones((1, 2)), np.ones((1, 1))),
    "scipy.signal.bilinear": row(lambda b, a: s.bilinear(b, a, 2.0), B, A),
    "scipy.signal.bilinear_zpk": row(lambda z, p: s.bilinear_zpk(z, p, 1.5, 2.0), Z, P),
    "scipy.signal.bode": row(lambda b, a: s.bode((b, a), w=asarray_like(b, [0.1, 1.0]))[1:], B, A),
    "scipy.signal.cspline1d_eval": row(lambda c, x: s.cspline1d_eval(c, x), ROW, V * 5.0),
    "scipy.signal.qspline1d_eval": row(lambda c, x: s.qspline1d_eval(c, x), ROW, V * 5.0),
    "scipy.signal.cspline2d": row(lambda x: s.cspline2d(x, 0.0), IMAGE),
    "scipy.signal.deconvolve": row(s.deconvolve, ROW, TAPS),
    "scipy.signal.detrend": row(lambda x: s.detrend(x, axis=0)),
    "scipy.signal.detrend(type='constant')": row(lambda x: s.detrend(x, axis=0, type="constant")),
    "scipy.signal.envelope": row(lambda x: s.envelope(x)[0], LONG),
    "scipy.signal.filtfilt": row(s.filtfilt, B, A, LONG),
    "scipy.signal.firls": row(lambda d: s.firls(5, asarray_like(d, [0.0, 0.4, 0.6, 1.0]), d, fs=2.0), np.asarray([1.0, 0.9, 0.2, 0.1])),
    "scipy.signal.firwin": row(lambda c: s.firwin(5, c, pass_zero=False), np.asarray([0.3, 0.6])),
    "scipy.signal.firwin2": row(lambda g: s.firwin2(9, asarray_like(g, [0.0, 0.4, 0.6, 1.0]), g), np.asarray([1.0, 0.9, 0.2, 0.1])),
    "scipy.signal.freqs": row(lambda b, a, w: s.freqs(b, a, w)[1], B, A, V),
    "scipy.signal.freqs_zpk": row(lambda z, p, w: s.freqs_zpk(z, p, 1.5, w)[1], Z, P, V),
    "scipy.signal.freqz": row(lambda b, a: s.freqz(b, a, worN=8)[1], B, A),
    "scipy.signal.freqz(worN=array)": row(lambda b, a, w: s.freqz(b, a, worN=w)[1], B, A, V),
    "scipy.signal.freqz_sos": row(lambda x: s.freqz_sos(_sections(x), worN=8)[1], SOS),
    "scipy.signal.freqz_zpk": row(lambda z, p: s.freqz_zpk(z, p, 1.5, worN=8)[1], Z, P),
    "scipy.signal.gauss_spline": row(lambda x: s.gauss_spline(x, 3), V),
    "scipy.signal.group_delay": row(lambda b, a: s.group_delay((b, a), w=8)[1], B, A),
    "scipy.signal.hilbert": row(lambda x: s.hilbert(x, axis=0)),
    "scipy.signal.hilbert2": row(s.hilbert2, MATRIX),
    "scipy.signal.impulse": row(lambda b, a: s.impulse((b, a), T=asarray_like(b, [0.0, 0.5, 1.0]))[1], B[1:], A),
    "scipy.signal.lfilter": row(s.lfilter, B, A, ROW),
    "scipy.signal.lfilter_zi": row(s.lfilter_zi, B, A),
    "scipy.signal.lfiltic": row(s.lfiltic, B, A, V[:2], V[2:4]),
    "scipy.signal.medfilt2d": row(s.medfilt2d, MATRIX),
    "scipy.signal.minimum_phase": row(s.minimum_phase, TAPS),
    "scipy.signal.normalize": row(s.normalize, B, A),
    "scipy.signal.order_filter": row(lambda x: s.order_filter(x, asarray_like(x, [1.0, 1.0, 1.0]), 1), ROW),
    "scipy.signal.place_poles": row(
        lambda a, b, p: s.place_poles(a, b, p).gain_matrix, np.asarray([[0.5, 1.0], [0.2, 0.3]]), np.asarray([[0.1], [1.0]]), -P
    ),
    "scipy.signal.remez": row(lambda d: s.remez(7, asarray_like(d, [0.0, 0.2, 0.3, 0.5]), d), np.asarray([1.0, 0.1])),
    "scipy.signal.resample": row(lambda x: s.resample(x, 8), ROW),
    "scipy.signal.resample_poly": row(lambda x: s.resample_poly(x, 3, 2), ROW),
    "scipy.signal.savgol_filter": row(lambda x: s.savgol_filter(x, 5, 2), ROW),
    "scipy.signal.sos2tf": row(lambda x: s.sos2tf(_sections(x)), SOS),
    "scipy.signal.sos2zpk": row(lambda x: s.sos2zpk(_sections(x)), SOS),
    "scipy.signal.sosfilt": row(lambda x, y: s.sosfilt(_sections(x), y), SOS, ROW),
    "scipy.signal.sosfilt_zi": row(lambda x: s.sosfilt_zi(_sections(x)), SOS),
    "scipy.signal.spline_filter": row(lambda x: s.spline_filter(x, 1.0), IMAGE),
    "scipy.signal.tf2sos": row(s.tf2sos, B, A),
    "scipy.signal.tf2zpk": row(s.tf2zpk, B, A),
    "scipy.signal.upfirdn": row(lambda h, x: s.upfirdn(h, x, 2), TAPS, ROW),
    "scipy.signal.vectorstrength": row(lambda x: s.vectorstrength(x, 2.0)[0], V),
    "scipy.signal.zpk2sos": row(lambda z, p: s.zpk2sos(z, p, 1.5), Z, P),
    "scipy.signal.zpk2tf": row(lambda z, p: s.zpk2tf(z, p, 1.5), Z, P),
}
LEFT_OUT: dict[str, str] = {
    "it designs a filter of numbers: no array is an argument": """
        scipy.signal.bessel scipy.signal.besselap scipy.signal.buttap scipy.signal.butter scipy.signal.buttord scipy.signal.cheb1ap
        scipy.signal.cheb1ord scipy.signal.cheb2ap scipy.signal.cheb2ord scipy.signal.cheby1 scipy.signal.cheby2 scipy.signal.ellip
        scipy.signal.ellipap scipy.signal.ellipord scipy.signal.gammatone scipy.signal.iircomb scipy.signal.iirdesign
        scipy.signal.iirfilter scipy.signal.iirnotch scipy.signal.iirpeak scipy.signal.savgol_coeffs
    """,
    "it makes a window of a length and numbers: no array is an argument": " ".join(
        f"scipy.signal.windows.{name}" for name in s.windows.__all__ if callable(getattr(s.windows, name)) and name != "dpss"
    )
    + " scipy.signal.get_window",
    "it names the faster of two methods: no array comes out": "scipy.signal.choose_conv_method",
    "another name of `freqz_sos`": "scipy.signal.sosfreqz",
}
