"""Shared memory: which Tensors share it, and when it was written."""
