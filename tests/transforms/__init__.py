"""Tests of transforms: forward mode, `vmap`, `func`, `autograd.functional`, and combinations of all features."""
