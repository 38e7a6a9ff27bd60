"""Which projects computers run: volunteers' and operators' choices, the projects' standings, and the reasons in
words.
"""
