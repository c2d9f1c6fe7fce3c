"""Find and load backends; the implementation of `xpgrad.registry`."""
