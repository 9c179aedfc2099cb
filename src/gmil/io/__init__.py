"""Files of bags and models: `read`, `write`, `scan`, one module for every format, model files."""
