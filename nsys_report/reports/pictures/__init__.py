"""Takes an analyzed capture, gives what its pictures show as frozen values: pages, PNG files and notebooks draw the same ones."""
