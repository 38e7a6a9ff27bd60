"""The project server: sends jobs to computers, takes their results, and moves workunits on."""
