"""Functions of functions: forward mode, `vmap`, `func`, `autograd.functional`, and the composition of all features."""
