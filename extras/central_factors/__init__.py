"""Cross-project version normalisation: factors of projects, averaged; those of a central server.

docs/explanation/credit.md, "Factors from other projects", says how.
"""
