"""Interpreters alongside the tape: batches and tangents."""
