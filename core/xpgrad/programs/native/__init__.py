"""Machine code for programs on NumPy arrays, compiled by LLVM through llvmlite."""
