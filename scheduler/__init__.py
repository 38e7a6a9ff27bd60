"""The project server: it sends jobs to computers, takes their results, and moves workunits on."""
