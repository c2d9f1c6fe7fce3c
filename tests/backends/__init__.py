"""Finding backends, the devices they bring, and the two in this distribution besides NumPy's: JAX and CuPy."""
