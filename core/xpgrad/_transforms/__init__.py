"""Interpreters besides the tape: batches and tangents."""
