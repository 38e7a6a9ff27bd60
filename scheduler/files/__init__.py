"""The files of the project: programs and inputs to download, outputs that computers upload."""
