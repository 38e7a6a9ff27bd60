"""The diagnosis of a run: late jobs, projects below their shares, idle processors, and changes that would help.
Pure.
"""
