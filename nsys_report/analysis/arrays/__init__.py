"""NumPy and Arrow: the columns that the analyses compute with, arithmetic on them, and the tables that come out."""
