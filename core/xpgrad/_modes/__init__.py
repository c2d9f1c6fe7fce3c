"""Modes: whether and how operations are recorded in the current context."""
