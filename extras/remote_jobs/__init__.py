"""BOINC's remote job submission: requests from projects' scripts and programs, on top of the project server's use
cases.
"""
