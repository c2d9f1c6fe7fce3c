"""The functions and their gradients, in files after the standard's chapters, and the rules that users declare."""
