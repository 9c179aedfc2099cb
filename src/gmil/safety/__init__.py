"""No kill loses data, no file takes the process down: atomic writes, guards, temporary folders, worker processes."""
