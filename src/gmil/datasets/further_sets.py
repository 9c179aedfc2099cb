"""Data sets that are read from the data folder, with their cards: none has an address that could be pinned."""

from __future__ import annotations

from typing import Any

from gmil.datasets.cards import DatasetInfo

ANDREWS = (
    "Andrews, S., Tsochantaridis, I. and Hofmann, T. (2002). Support vector machines for "
    "multiple-instance learning. Advances in Neural Information Processing Systems 15."
)
_ZHOU_2009 = (
    "Zhou, Z.-H., Sun, Y.-Y. and Li, Y.-F. (2009). Multi-instance learning by treating instances as "
    "non-i.i.d. samples. Proceedings of ICML."
)
_ZHOU_2005 = (
    "Zhou, Z.-H., Jiang, K. and Li, M. (2005). Multi-instance learning based web mining. Applied Intelligence 22(2)."
)
_BRIGGS = (
    "Briggs, F., Fern, X. Z. and Raich, R. (2012). Rank-loss support instance machines for MIML instance "
    "annotation. Proceedings of KDD."
)
_SRINIVASAN = (
    "Srinivasan, A., Muggleton, S., King, R. D. and Sternberg, M. J. E. (1994). Mutagenesis: ILP experiments in a "
    "non-determinate biological domain. Proceedings of ILP."
)
_TAO = (
    "Tao, Q., Scott, S., Vinodchandran, N. V. and Osugi, T. T. (2004). SVM-based generalized multiple-instance "
    "learning via approximate box counting. Proceedings of ICML."
)
_CHEN = (
    "Chen, Y., Bi, J. and Wang, J. Z. (2006). MILES: multiple-instance learning via embedded instance selection. "
    "IEEE Transactions on Pattern Analysis and Machine Intelligence 28(12)."
)
_RAY = (
    "Ray, S. and Craven, M. (2005). Learning statistical models for annotating proteins with function information "
    "using biomedical text. BMC Bioinformatics 6(Suppl. 1)."
)
_RAHMANI = (
    "Rahmani, R., Goldman, S. A., Zhang, H., Krettek, J. and Fritts, J. E. (2005). Localized content based image "
    "retrieval. Proceedings of ACM MIR."
)
_VAN_TILBORG = (
    "van Tilborg, D., Alenicheva, A. and Grisoni, F. (2022). Exposing the limitations of molecular machine learning "
    "with activity cliffs. Journal of Chemical Information and Modeling 62(23)."
)
_AKTI = (
    "Akti, S., Tataroglu, G. A. and Ekenel, H. K. (2019). Vision-based fight detection from surveillance cameras. "
    "Proceedings of IPTA."
)
_BY_INSTANCES = (
    "Sizes and counts are the published ones; no negative bag has an instance that is labelled positive, "
    "which loading checks."
)
_BY_COUNTS = "Sizes and counts of classes are the published ones; loading checks a hash of bags and labels."
_SORTED = "Bags are sorted by class, or nearly: folds must be shuffled."


def _local(name: str, counts: tuple[int, int | None, int, int], contents: str, **card: Any) -> DatasetInfo:
    card = {"filename": f"more/{name}.npz", "licence": "none stated", "label_check": _BY_COUNTS, **card}
    return DatasetInfo(name, card.pop("title"), "local", *counts, contents=contents, **card)


def _newsgroup(group: str, n_positive: int, n_instances: int, contents: str) -> DatasetInfo:
    return _local(
        f"newsgroups_{group}",
        (100, n_positive, n_instances, 200),
        contents,
        title=f"Newsgroups, {group.replace('_', '.')}",
        citation=_ZHOU_2009,
        about=(
            "A bag is a set of posts of 20 Newsgroups, an instance a post, described by 200 weights of words; about "
            "3 per cent of the posts of a positive bag are of this group. The labels of all instances are known."
        ),
        defects=f"{_SORTED} Some collections have the label of the instance as the last feature; here no column is.",
        label_check=f"{_BY_INSTANCES} Every positive bag has one.",
    )


def _birds(species: str, n_positive: int, contents: str, not_found: str = "") -> DatasetInfo:
    return _local(
        f"birds_{species}",
        (548, n_positive, 10232, 38),
        contents,
        title=f"Birds, {species.replace('_', ' ')}",
        citation=_BRIGGS,
        about=(
            "A bag is a recording from the H. J. Andrews forest, an instance a segment of its spectrogram; positive "
            "recordings have this species. The labels of segments that were labelled are known, others are -1."
        ),
        defects="The set is the same for all species but for its labels: count the three as one in a claim of breadth.",
        label_check=f"{_BY_INSTANCES}{not_found}",
    )


def _web(number: int, n_positive: int, n_features: int, contents: str) -> DatasetInfo:
    return _local(
        f"web{number}",
        (113, n_positive, 3423, n_features),
        contents,
        title=f"Web index pages, user {number}",
        citation=_ZHOU_2005,
        about=(
            "A bag is a page with links, an instance a page that it links to, described by sparse counts of words; "
            "positive pages interest this user. ``split_test`` is the published division."
        ),
        defects=(
            "In one Python package the labels of Web1 are sorted while its bags are not: 28 of 75 are wrong there. "
            "Elsewhere training and test pages were divided by different constants, which gives the division away."
        ),
        label_check=f"{_BY_COUNTS} They agree with a second copy.",
    )


def _mutagenesis(
    name: str, sizes: tuple[int, int], instance: str, groups: tuple[int, int], contents: str
) -> DatasetInfo:
    n_groups, n_mixed = groups
    return _local(
        f"mutagenesis_{name}",
        (188, 125, *sizes),
        contents,
        title=f"Mutagenesis, {name}",
        citation=_SRINIVASAN,
        about=f"A bag is a molecule, an instance {instance}; positive molecules cause mutations.",
        has_copies=True,
        grouped=(
            f"Many molecules are copies of each other: {n_groups} groups of equal bags, ``groups`` of what is loaded. "
            "Folds must keep them whole."
        ),
        defects=(
            f"{n_mixed} groups of equal bags have both labels, so that no method can be right on all; plain "
            "folds test molecules that were trained on."
        ),
        label_check=f"{_BY_COUNTS} The groups are those of equal bags.",
    )


def _corel2000(number: str, what: str, contents: str) -> DatasetInfo:
    return _local(
        f"corel2000_{number}_{what}",
        (2000, 100, 7947, 9),
        contents,
        title=f"Corel 2000, category {number}: {what}",
        citation=_CHEN,
        about="A bag is one of 2000 images of 20 categories, an instance a region with 9 features of colour and shape.",
        defects="5 per cent of the bags are positive: accuracy says little, the majority class has 95.",
    )


def _affinity(target: str, n_bags: int, n_instances: int, contents: str) -> DatasetInfo:
    return _local(
        f"{target.lower()}_ki",
        (n_bags, None, n_instances, 140),
        contents,
        title=f"Affinities to {target}",
        task="values",
        filename=f"regression/{target}_Ki.npz",
        licence="CC BY-SA 3.0",
        citation=_VAN_TILBORG,
        about=(
            "A bag is a molecule, an instance one of up to six conformers with 140 descriptors of shape and "
            "autocorrelation; its value is the negative logarithm of the affinity, shifted. From ChEMBL; conformers "
            "made with RDKit. ``split`` is the published division, by activity cliffs."
        ),
        grouped="The published division is ``split``; molecules are no copies of each other.",
        label_check="Loading checks a hash of bags and values.",
        defects="Values, and not classes: for regression.",
    )


FURTHER_SETS: tuple[DatasetInfo, ...] = (
    _newsgroup("alt_atheism", 50, 5443, "4a3c5082ff7741cb00221499e1535a5c413be916f7d84738e286c48979271f31"),
    _newsgroup("comp_graphics", 49, 3094, "419d4d8d159a1a66abb825436e02112f1d4896a3bb727216d9b62250fa50d867"),
    _newsgroup("misc_forsale", 50, 5306, "828e97c9739cb6fb65a74ea2fa0a97286417107a2adb1c5c70e366aa7db56ff7"),
    _newsgroup("rec_autos", 50, 3458, "b7d03235421579d76618af93eadf29dbc8cd304e280a8a88af364d0f2558a030"),
    _newsgroup("rec_sport_hockey", 50, 1982, "3bd4a84e0dfe6741a6787a3ff2d224cedf23d08f0ed8340b7083a2afd545f62d"),
    _newsgroup("sci_crypt", 50, 4284, "c124faf52e68c4347d5e7deda9c10473d49e532b1245db06fc1e42079256ef0c"),
    _newsgroup("sci_med", 50, 3045, "c490ddade15463bc2ea51c897392cc65a8879f3e2072219347f19b0cffbfe69d"),
    _newsgroup("soc_religion_christian", 50, 4677, "467429e9b210ce46f951a9264776b4706cade355f97c6e4997994e2d9d9ecbd7"),
    _newsgroup("talk_politics_guns", 50, 3558, "7d36a51e3d5ce76ff4c65433b0157f159148a06520ac81e0b13652f7a965c1f6"),
    _newsgroup("talk_religion_misc", 49, 4606, "a86372ffd06bae58b19fcb18bb9c1c756af0e40fa7de036428d0bf266284792c"),
    _birds(
        "brown_creeper",
        197,
        "ce0cad859dcc03178ef7e9fe6c369fedba45e90273aeb49e3b16e50207d53e7c",
        not_found=(
            " In 35 positive recordings no labelled segment is of the species. In one Python package and two other "
            "collections 142 of the 548 labels are wrong: they are sorted while the bags are not."
        ),
    ),
    _birds("winter_wren", 109, "c3df43728177991690b10bcbd0ca2c3f8c6d6fc09cef054be8e830f508bad1c2"),
    _birds("hammonds_flycatcher", 103, "a497c621f3978037f718eb04857e8b8220e54630cc140cc944fc2549690ab861"),
    _web(1, 21, 5863, "69d18fac221c800631b694c58d03c52c17f093441c1d47896730365a564a9084"),
    _web(4, 88, 6059, "b6848de17b90b7f668d643645e349effc42aeac8368ba1bf3175093e05669a6e"),
    _web(7, 54, 6450, "959d4cb806b4db6e250e1940b54c3f5a2be63605304b9cec7eac4eed88080254"),
    _local(
        "trec9_set2",
        (400, 200, 3344, 6842),
        "1398eda64b1422e4ddac74ececacb36059d188598858210b6cb335b02402a538",
        title="TREC9, second set",
        citation=ANDREWS,
        about="A bag is a document, an instance a passage of it that overlaps with others; sparse word weights.",
        defects=_SORTED,
    ),
    _mutagenesis(
        "easy",
        (10486, 7),
        "a pair of bonded atoms",
        (126, 5),
        "71b2af2ebed1c145c58feed677c1433cfcca0333ce5cdeaf8d218a1be9b9dc2b",
    ),
    _mutagenesis(
        "atoms",
        (1618, 10),
        "an atom",
        (109, 9),
        "f4b544e0c32491b4cdf0d17b8278028e03019212e4ff8bba114d596023257a5d",
    ),
    _local(
        "protein",
        (193, 25, 26611, 9),
        "ab770bd456ee63b6de839a606c85663e7028224fc7b1d16a45367c86b892590e",
        title="Proteins with the thioredoxin fold",
        citation=_TAO,
        about="A bag is a protein, an instance a position of its sequence with properties of what is around it.",
        defects=f"{_SORTED} 13 per cent of the bags are positive: accuracy says little.",
    ),
    _corel2000("00", "african", "ae6bf1691306f83339357b63f926bb891f78c71807b4be7bbceb71a670c41293"),
    _corel2000("10", "dogs", "e1476876d5274e9447b58f1ef29feb6a68e54d6f17bada77d5a62270ab03b242"),
    _local(
        "biocreative_component",
        (3130, 423, 36894, 200),
        "9d8bb37c46c55f8cbb7497dfc2b44fdbb3a488db4f7fab2a9dff8113d389e595",
        title="BioCreative, cellular components",
        citation=_RAY,
        about=(
            "A bag is a paper with a protein, an instance a paragraph, described by 200 weights of words; positive "
            "papers say in which component of the cell the protein is."
        ),
        has_copies=True,
        grouped="26 bags are copies of others, in 8 groups: ``groups`` of what is loaded. Folds must keep them whole.",
        defects="14 per cent of the bags are positive: accuracy says little.",
    ),
    _local(
        "sival_mcil3",
        (360, 180, 11410, 30),
        "6dddc9c74d9d2812435f1a9eaf89218d01c614c7c2c9276f868d74856b9484de",
        title="SIVAL, objects in scenes",
        citation=_RAHMANI,
        about="A bag is a picture of objects before various scenes, an instance a region of it with 30 features.",
        defects=_SORTED,
    ),
    _affinity("CHEMBL1862", 794, 4748, "e5d95153f97a0fe36b90e3944c28ae62c35445ab1d7528ea0d7a09900b69c24d"),
    _affinity("CHEMBL262", 856, 5136, "00d7528a6581fa6b3cbd2f0819345920b41a0ee432d4b65bcb92c845050baade"),
    _affinity("CHEMBL2835", 615, 3683, "4e8777971a6ac35fb4ed2b8243d103cf8b2b3fe91ecb0951e8b197fb3ad6d259"),
    _affinity("CHEMBL4203", 731, 4386, "1fce08faec32d86b6215d15f1890048c761cb42afb4e8acf7cc3c680a8fc3a8d"),
    DatasetInfo(
        "fights",
        "Surveillance Camera Fight data set",
        "local",
        *(300, 150, 0, 0),
        task="videos",
        licence="MIT; clips uncertain",
        citation=_AKTI,
        about=(
            "300 clips of 2 to 3 seconds, 320 pixels wide, from video sites: their rights are uncertain. They are "
            "videos, and no bags before features are made of them: `gmil video`. ``labels.csv`` has the labels, "
            "``groups.csv`` the source of every clip."
        ),
        filename="fights",
        grouped="72 sources, most with clips of both kinds (``groups.csv``): folds must keep them whole.",
        label_check="Labels are those of the file names of the data set, 150 of each kind.",
        defects="With plain folds a method may know the scene and not the fight.",
    ),
)
