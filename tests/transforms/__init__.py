"""Functions of functions: forward mode, `vmap`, `func`, `autograd.functional`, and how all features compose."""
