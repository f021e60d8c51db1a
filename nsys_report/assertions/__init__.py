"""Assertions over a report's figures, for gates in CI: a small language, its answers, and files that CI systems show."""
