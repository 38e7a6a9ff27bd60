"""The benchmarks of `make bench`: a module for each, and one harness."""
