"""Tests of functions of matrices: `xpgrad.scipy.linalg` is compared with SciPy, mpmath, differences, PyTorch and JAX."""
