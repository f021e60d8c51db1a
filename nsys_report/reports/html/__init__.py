"""Takes a report with its pictures, gives one page that needs nothing else."""
