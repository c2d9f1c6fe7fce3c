"""Tests of NumPy's functions on Tensors: values, gradients, refusals, and the page that lists them."""
