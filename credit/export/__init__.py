"""The daily export of the project's statistics, for sites that add up credit over projects."""
