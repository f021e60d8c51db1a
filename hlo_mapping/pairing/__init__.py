"""Pairs the programs and instructions of two dumps by what they compute: names and numbers of fusions change with every compile."""
