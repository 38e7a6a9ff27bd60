"""Example apps, and the demo that keeps a few of their jobs in the queue."""
