"""Data sets by name, bags made to order, and files of many formats."""

from __future__ import annotations

from gmil.datasets.download import data_home
from gmil.datasets.loaders import (
    fetch_elephant,
    fetch_fox,
    fetch_tiger,
    fetch_trec9,
    fetch_ucf_crime,
    load,
    load_musk1,
    load_musk2,
)
from gmil.datasets.med11 import make_med11
from gmil.datasets.registry import dataset_names, describe
from gmil.datasets.slides import make_slides
from gmil.datasets.synthetic import make_bags
from gmil.io.reading import read, write
from gmil.io.scanning import scan

__all__ = [
    "data_home",
    "dataset_names",
    "describe",
    "fetch_elephant",
    "fetch_fox",
    "fetch_tiger",
    "fetch_trec9",
    "fetch_ucf_crime",
    "load",
    "load_musk1",
    "load_musk2",
    "make_bags",
    "make_med11",
    "make_slides",
    "read",
    "scan",
    "write",
]
