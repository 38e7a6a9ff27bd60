"""Container images: run any program on many inputs, as jobs in Docker on volunteers' computers."""
