"""Tests of how backends are found and of their devices; and of JAX and CuPy, the two backends in this distribution besides NumPy."""
