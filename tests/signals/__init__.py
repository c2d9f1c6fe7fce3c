"""Tests of `xpgrad.scipy.signal`, `fft` and `interpolate`, compared with SciPy, differences, PyTorch and JAX."""
