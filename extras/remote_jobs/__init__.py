"""BOINC's remote job submission: what projects' scripts and programs send, over the project server's use cases."""
