"""Interpreters alongside the tape: batches, tangents, and functions compiled as one node."""
