"""Takes pictures as values, gives them as matplotlib figures and PNG files."""
