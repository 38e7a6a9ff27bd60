"""The rules of validated credit, as pure functions: facts and the time in; claims, grants and statistics out."""
