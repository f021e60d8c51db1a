"""The step budget: every nanosecond of a step in parts that add up exactly."""
