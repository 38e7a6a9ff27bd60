"""The files of the project: program and input files to download, output files that computers upload."""
