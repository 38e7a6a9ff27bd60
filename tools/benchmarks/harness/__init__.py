"""The shared parts of all benchmarks: rounds and their medians, a load generator, the site as a process, the report."""
