"""Cross-project version normalisation: projects' factors, averaged, or taken from a central server.

See docs/explanation/credit.md, "Factors from other projects".
"""
