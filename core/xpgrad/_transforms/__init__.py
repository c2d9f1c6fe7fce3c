"""The transforms: interpreters of the operations that work beside the tape, each private to itself."""
