"""Programs as C: readable text, compiled by the system's compiler, or exported as a header and a source."""
