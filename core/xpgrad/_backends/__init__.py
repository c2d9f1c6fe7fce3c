"""Finding and loading backends, behind the public `xpgrad.registry`."""
