"""The rules of the scheduler and the transitioner: facts and a time go in, decisions come out. Pure."""
