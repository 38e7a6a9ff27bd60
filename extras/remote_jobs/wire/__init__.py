"""The messages of remote job submission: pure parsers and writers."""
