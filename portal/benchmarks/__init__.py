"""What measurements of all rooms share: a load generator, a counter of statements, the site as a process."""
