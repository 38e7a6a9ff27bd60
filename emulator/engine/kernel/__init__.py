"""The loop of a run, compiled: see emulator.engine.table for its data, and `kernel.dispatch` for what it can run."""
