"""Pages about tasks, about apps, and about why a job was granted its credit."""
