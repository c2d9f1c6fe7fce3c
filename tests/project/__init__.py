"""What stands around the library: command line, conformance suite, documentation, examples, benchmarks, and how strong the tests are."""
