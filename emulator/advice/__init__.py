"""The answer of a run: which jobs are late, which projects get too little, what idles, and what would help. Pure."""
