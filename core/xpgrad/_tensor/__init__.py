"""The Tensor class: its methods, in-place writes, printing and copying."""
