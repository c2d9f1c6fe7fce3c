"""The record of operations, and the pass over it."""
