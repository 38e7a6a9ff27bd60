"""What all benchmarks share: rounds and their medians, a load generator, the site as a process, the report."""
