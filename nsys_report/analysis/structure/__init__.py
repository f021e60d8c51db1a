"""What repeats in a program: layers, loops and their iterations, tokens, and how executions differ."""
