"""The scenario editor: everything of a scenario in one form, which is kept as it was typed until it is saved."""
