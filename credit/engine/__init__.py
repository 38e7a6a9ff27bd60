"""The rules of validated credit: facts in, claims, grants and statistics out; no Django, no clock."""
