"""The rules of sending jobs: facts and an account of the time in, decisions out. Knows neither Django nor a clock."""
