"""A history of runs: medians by case and program, the rule that flags a regression, and levels that changed."""
