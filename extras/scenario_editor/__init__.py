"""The scenario editor: a whole scenario in one form, stored as it was typed until it is saved."""
