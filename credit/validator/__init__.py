"""The validator: compares the outputs of workunits' results and grants credit, in passes over batches."""
