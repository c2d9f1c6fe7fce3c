"""Tests of `xpgrad.testing` and of its pytest plugin."""
