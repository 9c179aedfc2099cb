"""The table of data sets, from which loaders, descriptions and the command line all derive."""

from __future__ import annotations

from gmil.datasets.cards import DatasetInfo
from gmil.datasets.further_sets import ANDREWS, FURTHER_SETS
from gmil.errors import DatasetError

_MUSK_SOURCE = (
    "https://raw.githubusercontent.com/hbldh/skboost/70633bed50439a73a4092ad8769242d57f04dbdb/skboost/datasets/musk"
)
_COREL_SOURCE = (
    "https://raw.githubusercontent.com/sunformoon/RMI-SVM-ICCV2015/"
    "58badf01dc4587277d86c79ee5afa6488127f538/data/MIL-Data-2002-Musk-Corel-Trec9-MATLAB"
)
_DIETTERICH = (
    "Dietterich, T. G., Lathrop, R. H. and Lozano-Perez, T. (1997). Solving the multiple instance "
    "problem with axis-parallel rectangles. Artificial Intelligence 89(1-2), 31-71."
)
_SULTANI = (
    "Sultani, W., Chen, C. and Shah, M. (2018). Real-world anomaly detection in surveillance videos. "
    "Proceedings of CVPR."
)


def _musk(version: int, counts: tuple[int, int, int], file: str, sha256: str, contents: str) -> DatasetInfo:
    n_bags, n_positive, n_instances = counts
    return DatasetInfo(
        f"musk{version}",
        f"Musk, version {version}",
        "bundled",
        n_bags,
        n_positive,
        n_instances,
        166,
        licence="CC BY 4.0",
        citation=_DIETTERICH,
        about=(
            "A bag is a molecule, an instance one of its conformations, described by 166 whole numbers; "
            "positive molecules smell of musk. UCI Machine Learning Repository, values as distributed."
        ),
        filename=f"musk{version}.npz",
        url=f"{_MUSK_SOURCE}/{file}",
        sha256=sha256,
        contents=contents,
        label_check="The label is in the name of the molecule; UCI's counts of bags and musks.",
        defects=(
            "Some copies on the web swap the two versions; copies called scaled were normalised with all bags, before "
            "any fold."
        ),
    )


def _corel(name: str, n_instances: int, sha256: str, contents: str) -> DatasetInfo:
    return DatasetInfo(
        name,
        f"{name.capitalize()}, Corel images",
        "fetched",
        *(200, 100, n_instances, 230),
        licence="none stated",
        citation=ANDREWS,
        about=(
            f"A bag is an image, an instance one of its segments; positive images show a {name}. Values as "
            "distributed: 87 or more of the columns are constant."
        ),
        filename=f"{name}.npz",
        url=f"{_COREL_SOURCE}/{name}_100x100_matlab.mat",
        sha256=sha256,
        contents=contents,
        label_check="A bag is positive where the original file labels any of its instances so: 100 and 100.",
        defects="Copies called scaled were normalised with all bags, before any fold.",
    )


REGISTRY: dict[str, DatasetInfo] = {
    info.name: info
    for info in (
        _musk(
            1,
            (92, 47, 476),
            file="clean1.data",
            sha256="59e3be669d645a72b2de7e7baa21e7d4e537be918e4320e8dea6aadc9227f379",
            contents="e8cfa6e38b06ce1b65d0968c66b17be7a4f9efe98a873335a23ffe7fa18b3273",
        ),
        _musk(
            2,
            (102, 39, 6598),
            file="clean2.data",
            sha256="8dee8e1946b6939ad96cc0d30560ae7e71c60886dd41d794a878f38a0c1a6a9f",
            contents="79bb8f611fb90d0b0a8fee4101d982babafcda8ec754aefb141a0160285d329e",
        ),
        _corel(
            "elephant",
            1391,
            sha256="b871820b5df11ef9050e0c0ec73e3d4d95b3e59b64bac237ec115548a5024a13",
            contents="298dccf9ff86b5da7a4113142dc360ce13d3485a609302579d50a68ab8e056c6",
        ),
        _corel(
            "fox",
            1320,
            sha256="9c550a12a4417f99eb81ad6fd16506ab1772a18dcb5fcb2e7a555a99f07c7ad2",
            contents="203e94672987e1aa649f72f51425fd4c32ab2b3a32e559532076871f72e5807a",
        ),
        _corel(
            "tiger",
            1220,
            sha256="b37a443b25ed98089d86900db6dc3774ce4293e56c186337518e977ffff0b817",
            contents="c90dc8095548a7de589b2c923634bed79132f40f57a90e971dd084fd82aef3e3",
        ),
        DatasetInfo(
            "trec9",
            "TREC9, first test set",
            "local",
            *(400, 200, 3224, 66552),
            licence="none stated",
            citation=ANDREWS,
            about="A bag is a document, an instance a passage of it, described by sparse word weights.",
            filename="trec9_tst1.npz",
            contents="0457465c2916996a0f465115ecc1b8a809bccc24128053bbf6cd66fefedf944f",
            label_check="Sizes and counts of classes are the published ones.",
        ),
        DatasetInfo(
            "ucf-crime",
            "UCF-Crime, 830 surveillance videos",
            "local",
            *(830, 400, 76557, 64),
            licence="none stated",
            citation=_SULTANI,
            about=(
                "A bag is a surveillance video, an instance a clip of it; positive videos show one of seven "
                "events. X3D features, reduced to 64 by a PCA that was fitted on all 830 videos without "
                "their labels: say so beside results. The labels of the instances are known for all normal "
                "videos and 58 others, and -1 elsewhere."
            ),
            filename="ucfcrime_x3d_830_pca64.npz",
            contents="3d2c1aa68058daa103be1fb903ea238c9bde73548eb212803d379ca6550f798b",
            label_check="The label is in the name of the video; no normal video has an instance that is labelled.",
            defects="Bags are sorted by class: folds must be shuffled. The PCA has seen test videos, without labels.",
        ),
        *FURTHER_SETS,
    )
}


def dataset_names() -> list[str]:
    """Return the names of all data sets.

    Examples
    --------
    >>> from gmil.datasets import dataset_names
    >>> dataset_names()[:7]
    ['musk1', 'musk2', 'elephant', 'fox', 'tiger', 'trec9', 'ucf-crime']
    """
    return list(REGISTRY)


def describe(name: str) -> DatasetInfo:
    """Return what is known about a data set; it is not loaded for that.

    Parameters
    ----------
    name : str
        One of `dataset_names`.

    Examples
    --------
    >>> from gmil.datasets import describe
    >>> info = describe("musk1")
    >>> info.n_bags, info.n_positive, info.licence
    (92, 47, 'CC BY 4.0')
    """
    if name not in REGISTRY:
        msg = f"There is no data set {name!r}; the data sets are {', '.join(REGISTRY)}."
        raise DatasetError(msg)
    return REGISTRY[name]
