"""Signals, transforms and interpolants: `xpgrad.scipy.signal`, `fft` and `interpolate` against SciPy, differences, PyTorch and JAX."""
