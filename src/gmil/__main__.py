"""``python -m gmil``."""

from gmil.cli.main import main

main(prog_name="gmil")
