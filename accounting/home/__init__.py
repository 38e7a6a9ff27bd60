"""The pages before and after signing in: landing page, how to connect a computer, overview."""
