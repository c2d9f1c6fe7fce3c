"""Forward mode: tangents, computed together with the values, operation by operation."""
