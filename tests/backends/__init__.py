"""How backends are found, the devices they bring, and the two that are in this distribution beside NumPy's: JAX and CuPy."""
