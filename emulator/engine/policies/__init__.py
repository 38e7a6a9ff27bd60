"""The scheduling policies: which jobs run and who is asked for work. Each module cites the document it follows."""
