"""What make bench measures: a module for each benchmark, and one harness."""
