"""The data of `make run`: projects, a volunteer with ninety days of history, an operator."""
