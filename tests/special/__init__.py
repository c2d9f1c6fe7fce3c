"""Tests of the special functions: the table of `support.special_functions` against SciPy, mpmath, differences, PyTorch and JAX."""
