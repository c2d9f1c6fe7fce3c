"""Interpreters beside the tape: batches, tangents, and functions compiled as one node."""
