"""The report for assistants: questions with bounded answers, over the Model Context Protocol."""
