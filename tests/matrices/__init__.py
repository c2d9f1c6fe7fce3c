"""Functions of matrices: `xpgrad.scipy.linalg` against SciPy, mpmath, differences, PyTorch and JAX."""
