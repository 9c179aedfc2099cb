"""Names of slides as names of files, whatever a slide is called."""

from __future__ import annotations

import hashlib
import re
import unicodedata

_UNSAFE = re.compile(r"[^\w.\-+ ]")
_MOST_BYTES = 120
_RESERVED = re.compile(r"(?i)(con|prn|aux|nul|com\d|lpt\d|index)(\..*)?")  # of Windows, and the page


def file_name(name: str, taken: set[str]) -> str:
    """Return a name for the files of a slide, and add it to those that are taken.

    A name that is safe stays as it is. Any other loses what no file system or address takes, and gets a mark of the
    whole name, so that two slides never share a file.

    Parameters
    ----------
    name : str
        What the slide is called.
    taken : set of str
        Names that are given already, in lower case: some file systems do not tell upper case apart.

    Examples
    --------
    >>> file_name("TCGA-AA-0001-01Z-00-DX1.8d3a", set())
    'TCGA-AA-0001-01Z-00-DX1.8d3a'
    >>> file_name("../a/b<c>", set())
    'a_b_c-87a24d17'
    """
    plain = unicodedata.normalize("NFC", name)
    made = _UNSAFE.sub("_", plain).strip(" ._")
    made = made.encode()[:_MOST_BYTES].decode(errors="ignore").strip(" ._")
    if made != name or _RESERVED.fullmatch(made) or made.casefold() in taken:
        made = f"{made or 'slide'}-{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"
    unique, number = made, 1
    while unique.casefold() in taken:
        number += 1
        unique = f"{made}-{number}"
    taken.add(unique.casefold())
    return unique
