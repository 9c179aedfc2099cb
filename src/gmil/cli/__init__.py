"""The ``gmil`` command. Data goes to standard output, talk to standard error."""
