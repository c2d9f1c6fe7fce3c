"""Forward mode: tangents, carried along operation by operation."""
