"""One module a file format: each turns a file into bags and labels, and back."""
