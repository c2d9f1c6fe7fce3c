"""Tests of what surrounds the library: command line, conformance suite, documentation, examples, benchmarks, and the tests' strength."""
