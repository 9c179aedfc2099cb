"""A module that nothing imports: if it is imported while a file is read, the file had a say in what runs."""


class Canary:
    """What mutated files name as the class of something in them."""


def trip(*_arguments: object) -> Canary:
    """Do nothing, on behalf of a pickle."""
    return Canary()
