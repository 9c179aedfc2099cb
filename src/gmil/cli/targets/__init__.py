"""Values, grades and times on the command line."""
