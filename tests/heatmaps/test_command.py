"""``gmil slides heatmap``, and `gmil.heatmaps.write_maps` behind it."""

from __future__ import annotations

import csv
import gzip
import json
import re

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.special import expit
from tests.heatmaps.conftest import lattice, one_slide, read_png, write_tiff

import gmil
from gmil.cli.main import main
from gmil.errors import DiskError
from gmil.heatmaps import write_maps
from gmil.heatmaps.colours import colour_values
from gmil.heatmaps.thumbnails import SlideFolder, read_slide


@pytest.fixture(scope="session")
def files(cohort, tmp_path_factory):
    """A folder with three slides of the cohort as Parquet, and its model."""
    folder = tmp_path_factory.mktemp("cohort")
    gmil.write(folder / "slides.parquet", cohort.bags[:3], cohort.y[:3])
    cohort.model.save(folder / "model.gmil")
    gmil.GMIL(random_state=0, pos_label="tumour", n_jobs=1).fit(cohort.bags, cohort.y).save(folder / "other.gmil")
    return folder


def run(*words, code=0):
    found = CliRunner().invoke(main, ["slides", "heatmap", *map(str, words)])
    assert found.exit_code == code, found.output + str(found.exception)
    return found.output


def rows_of(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def rings_of(path):
    return [feature["geometry"]["coordinates"][0] for feature in json.loads(path.read_text())["features"]]


# ------------------------------------------------------------------ files


def test_every_slide_gets_three_files_and_the_page_all_of_them(files, cohort, tmp_path):
    told = run(files / "model.gmil", files / "slides.parquet", "-o", tmp_path / "maps")
    assert "maps of 3 slides" in told
    names = {path.name for path in (tmp_path / "maps").iterdir()}
    assert names == {"index.html", *(f"slide {i}{end}" for i in range(3) for end in (".png", ".geojson", ".csv"))}
    scores = cohort.bags.split(cohort.model.score_instances(cohort.bags))
    rows = rows_of(tmp_path / "maps" / "slide 1.csv")
    np.testing.assert_allclose([float(row["score"]) for row in rows], scores[1], rtol=1e-3)
    info = cohort.bags[[1]].instance_info
    assert [int(row["x"]) for row in rows] == info.column("x").to_pylist()
    best = json.loads((tmp_path / "maps" / "slide 1.geojson").read_text())["features"][0]["properties"]
    assert best["measurements"]["score"] == pytest.approx(scores[1].max(), rel=1e-3)
    assert best["classification"]["name"] == "tumour"
    assert "Score for tumour" in read_png((tmp_path / "maps" / "slide 1.png").read_bytes()).texts["Description"]


def test_a_probability_stands_where_scores_are_log_odds(cohort, tmp_path):
    write_maps(cohort.model, cohort.bags[[1]], tmp_path)
    rows = rows_of(tmp_path / "slide 1.csv")
    if cohort.model.witnesses_ is None:
        assert "probability" not in rows[0]
    else:
        for row in rows:
            assert float(row["probability"]) == pytest.approx(expit(float(row["score"])))


def test_one_scale_over_all_slides_has_the_same_ends(files, tmp_path):
    def ends(*options):
        run(files / "model.gmil", files / "slides.parquet", "-o", tmp_path, *options)
        texts = [read_png(path.read_bytes()).texts["Description"] for path in tmp_path.glob("*.png")]
        return {re.search(r"from (?:<= )?(.*) to (?:>= )?(.*)\.$", text).groups() for text in texts}

    assert len(ends()) == 3
    assert len(ends("--scale", "cohort")) == 1
    assert ends("--value", "percentile") == {("0", "100")}
    assert ends("--value", "percentile", "--scale", "cohort") == {("0", "100")}


def test_the_other_class_has_the_scores_turned_round(cohort, tmp_path):
    for label in ("tumour", "normal"):
        write_maps(cohort.model, cohort.bags[[1]], tmp_path / label, label=label)
    one, other = (rows_of(tmp_path / label / "slide 1.csv") for label in ("tumour", "normal"))
    for a, b in zip(one, other, strict=True):
        assert float(a["score"]) == -float(b["score"])
    text = read_png((tmp_path / "normal" / "slide 1.png").read_bytes()).texts["Description"]
    assert "Score for normal: less the score for tumour" in text


def test_of_several_classes_the_predicted_one_is_shown(tmp_path):
    bags, y = gmil.make_bags(30, n_features=3, random_state=0, return_X_y=True)
    info = {"x": 5 * np.arange(bags.n_instances), "y": np.zeros(bags.n_instances)}
    bags = gmil.Bags(bags.instances, bags.offsets, instance_info=info)
    y = np.array(["a", "b", "c"])[np.arange(30) % 3]
    model = gmil.BagStatistics().fit(bags, y)
    write_maps(model, bags[:3], tmp_path, patch_size=5)
    for i, predicted in enumerate(model.predict(bags[:3])):
        features = json.loads((tmp_path / f"{i}.geojson").read_text())["features"]
        column = list(model.classes_).index(predicted)
        assert features[0]["properties"]["classification"]["name"] == predicted
        highest = model.score_instances(bags[[i]])[:, column].max()
        assert features[0]["properties"]["measurements"]["score"] == pytest.approx(highest)


def test_smoothing_is_that_of_smooth_scores_over_one_patch(cohort, tmp_path):
    write_maps(cohort.model, cohort.bags[[1]], tmp_path, smooth=True)
    bag = cohort.bags[[1]]
    smooth = gmil.smooth_scores(cohort.model.score_instances(bag), bag, 256.0)
    np.testing.assert_allclose([float(row["score"]) for row in rows_of(tmp_path / "slide 1.csv")], smooth)


def test_large_slides_can_have_small_geojson(files, tmp_path):
    run(files / "model.gmil", files / "slides.parquet", "-o", tmp_path, "--gzip", "--top", 5)
    found = json.loads(gzip.decompress((tmp_path / "slide 0.geojson.gz").read_bytes()))
    assert len(found["features"]) == 5
    assert not list(tmp_path.glob("*.geojson"))
    run(files / "model.gmil", files / "slides.parquet", "-o", tmp_path, "--value", "percentile", "--above", 90)
    for feature in json.loads((tmp_path / "slide 0.geojson").read_text())["features"]:
        assert feature["properties"]["measurements"]["percentile"] >= 90


def test_two_models_have_folders_of_their_own(files, tmp_path):
    words = (files / "model.gmil", files / "slides.parquet", "-o", tmp_path)
    run(*words, "--compare", files / "other.gmil", "--compare", files / "other.gmil")
    folders = {path.name for path in tmp_path.iterdir() if path.is_dir()}
    assert folders == {"model", "other", "other 2"}
    assert len(list((tmp_path / "other").glob("*.png"))) == 3


def test_a_patient_of_several_slides_gets_a_map_of_each(cohort, tmp_path):
    n = cohort.bags.n_instances
    info = cohort.bags.instance_info.append_column(
        "slide", [[f"part {i % 2}/{b}" for i, b in zip(range(n), cohort.bags.segment_ids, strict=True)]]
    )
    bags = gmil.Bags(cohort.bags.instances, cohort.bags.offsets, cohort.bags.bag_ids, instance_info=info)
    written = write_maps(cohort.model, bags[:2], tmp_path)
    assert written.slides == ["part 0/0", "part 1/0", "part 0/1", "part 1/1"]
    assert len(list(tmp_path.glob("part*.png"))) == 4
    sizes = [len(rows_of(path)) for path in tmp_path.glob("*.csv")]
    assert sum(sizes) == bags[:2].n_instances


def test_lazy_bags_are_read_slide_by_slide(files, cohort, tmp_path, monkeypatch):
    lazy, y = gmil.scan(files / "slides.parquet")
    sizes = []
    load = gmil.LazyBags.load
    monkeypatch.setattr(gmil.LazyBags, "load", lambda self: sizes.append(len(self)) or load(self))
    write_maps(cohort.model, lazy, tmp_path / "lazy", y=y)
    assert set(sizes) == {1}
    write_maps(cohort.model, cohort.bags[:3], tmp_path / "whole")
    lazily, whole = (rows_of(tmp_path / name / "slide 2.csv") for name in ("lazy", "whole"))
    np.testing.assert_allclose(*([float(row["score"]) for row in rows] for rows in (lazily, whole)), rtol=1e-3)


def test_a_map_takes_lazy_bags_too(files, cohort):
    lazy, _ = gmil.scan(files / "slides.parquet")
    found = gmil.heatmap(lazy, cohort.model.score_instances(lazy), slide="slide 2", label=1)
    assert len(found) == lazy.sizes[2]
    assert found.legend.startswith("Score for class 1")


def test_names_that_are_paths_or_markup_stay_in_the_folder(cohort, tmp_path):
    names = ["../../up", "<img src=x onerror=alert(1)>", "Ж/木", "a" * 300, "con"]
    bags = gmil.Bags(
        cohort.bags[:5].instances, cohort.bags[:5].offsets, names, instance_info=cohort.bags[:5].instance_info
    )
    written = write_maps(cohort.model, bags, tmp_path / "maps")
    assert written.slides == names
    assert [path.name for path in tmp_path.iterdir()] == ["maps"]
    assert len(list((tmp_path / "maps").glob("*.png"))) == 5
    assert "<img" not in (tmp_path / "maps" / "index.html").read_text(encoding="utf-8")


# ------------------------------------------------------------------ what goes wrong


def test_a_slide_that_fails_is_listed_and_the_rest_goes_on(cohort, tmp_path):
    info = cohort.bags.instance_info.to_pydict()
    info["x"][int(cohort.bags.offsets[2])] = None
    bags = gmil.Bags(cohort.bags.instances, cohort.bags.offsets, cohort.bags.bag_ids, instance_info=info)
    cohort.model.save(tmp_path / "m.gmil")
    gmil.write(tmp_path / "s.parquet", bags[1:4], cohort.y[1:4])
    told = run(tmp_path / "m.gmil", tmp_path / "s.parquet", "-o", tmp_path / "maps", code=1)
    assert "left out: slide 2: 1 of the" in told
    assert "maps of 2 slides" in told
    assert len(list((tmp_path / "maps").glob("*.png"))) == 2


def test_a_full_disk_ends_everything(cohort, tmp_path, monkeypatch):
    def full(*_args, **_options):
        msg = "The disk is full."
        raise DiskError(msg)

    monkeypatch.setattr(gmil.HeatMap, "to_csv", full)
    with pytest.raises(DiskError):
        write_maps(cohort.model, cohort.bags, tmp_path)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--class", "benign"), "'benign' is not a class of the model; its classes are normal, tumour"),
        (("--slides", "nowhere"), "There is no folder 'nowhere'"),
        (("--scale", "galaxy"), "is not one of"),
    ],
)
def test_wrong_options_are_refused_in_a_sentence(files, tmp_path, words, told):
    assert told in run(files / "model.gmil", files / "slides.parquet", "-o", tmp_path / "m", *words, code=2)


def test_data_without_coordinates_is_refused_before_any_work(files, cohort, tmp_path):
    bags = gmil.Bags(cohort.bags.instances, cohort.bags.offsets, cohort.bags.bag_ids)
    gmil.write(tmp_path / "s.parquet", bags, cohort.y)
    told = run(files / "model.gmil", tmp_path / "s.parquet", "-o", tmp_path / "maps", code=2)
    assert "A map needs instance_info with 'x' and 'y', but there is none" in told
    (tmp_path / "file").write_text("x")
    told = run(files / "model.gmil", files / "slides.parquet", "-o", tmp_path / "file", code=2)
    assert "cannot be the folder of maps" in told
    assert "is what is read" in run(files / "model.gmil", files, "-o", files, code=2)


def test_micrometres_without_the_size_of_a_pixel_give_no_geojson_and_say_so(cohort, tmp_path):
    x, y = lattice(4, 3, 256.0)
    bags = one_slide(x, y, 256.0, unit=["um"] * 12)
    bags = bags.with_instances(cohort.bags.instances[:12])
    written = write_maps(cohort.model, bags, tmp_path)
    assert written.notes == ["s1: no GeoJSON, as its micrometres need the size of a pixel (mpp)."]
    assert {path.name for path in tmp_path.iterdir()} == {"s1.png", "s1.csv", "index.html"}
    write_maps(cohort.model, bags, tmp_path, mpp=0.5)
    rings = rings_of(tmp_path / "s1.geojson")
    assert {point[0] for ring in rings for point in ring} == {0, 512, 1024, 1536, 2048}


# ------------------------------------------------------------------ slides at hand


def small_slide(cohort, **options):
    """Return bags of one slide, s1, of 4 x 3 patches of 64 pixels from (100, 60)."""
    x, y = lattice(4, 3, 64, 100, 60)
    return one_slide(x, y, 64, **options).with_instances(cohort.bags.instances[:12])


def test_a_slide_at_hand_lies_below_the_map(cohort, tmp_path):
    pytest.importorskip("openslide")
    scans = tmp_path / "scans" / "deep"
    scans.mkdir(parents=True)
    image = read_slide(write_tiff(scans / "s1.tiff"))
    assert (image.width, image.height, image.origin) == (512, 384, (0, 0))
    bags = small_slide(cohort)
    assert write_maps(cohort.model, bags, tmp_path / "maps", slides=tmp_path / "scans").notes == []
    pixels = read_png((tmp_path / "maps" / "s1.png").read_bytes()).pixels
    assert pixels.shape[1] == 512
    np.testing.assert_array_equal(pixels[:60], image.pixels[:60])  # no patch begins above
    np.testing.assert_array_equal(pixels[:384, :100], image.pixels[:, :100])
    found = gmil.heatmap(bags, cohort.model.score_instances(bags))
    colour = colour_values(found.scores[:1], found.limits, "viridis")[0].astype(float)
    np.testing.assert_allclose(pixels[61, 101], (colour + image.pixels[61, 101]) / 2, atol=1)
    assert "data:image/jpeg;base64," in (tmp_path / "maps" / "index.html").read_text(encoding="utf-8")


def test_a_slide_that_is_not_at_hand_is_drawn_on_white(cohort, tmp_path):
    pytest.importorskip("openslide")
    write_tiff(tmp_path / "other.tiff")
    written = write_maps(cohort.model, small_slide(cohort), tmp_path / "maps", slides=tmp_path)
    assert written.notes == ["s1: no slide file of that name; drawn on white."]
    assert written.slides == ["s1"]


def test_the_slide_tells_the_size_of_a_pixel(cohort, tmp_path):
    pytest.importorskip("openslide")
    image = read_slide(write_tiff(tmp_path / "s1.tif", mpp=0.5))
    if image.mpp is None:
        pytest.skip("This OpenSlide does not read the resolution of a plain TIFF.")
    assert image.mpp == pytest.approx(0.5)
    written = write_maps(cohort.model, small_slide(cohort, unit=["um"] * 12), tmp_path / "maps", slides=tmp_path)
    assert written.notes == []
    rings = rings_of(tmp_path / "maps" / "s1.geojson")
    assert {point[0] for ring in rings for point in ring} == {200, 328, 456, 584, 712}


def test_the_corner_of_the_scanned_area_moves_the_geojson(cohort, tmp_path, monkeypatch):
    openslide = pytest.importorskip("openslide")
    write_tiff(tmp_path / "s1.tiff")
    bounds = {"openslide.bounds-x": "100", "openslide.bounds-y": "60"}
    monkeypatch.setattr(openslide.OpenSlide, "properties", property(lambda _: bounds))
    write_maps(cohort.model, small_slide(cohort), tmp_path / "maps", slides=tmp_path)
    corners = [point for ring in rings_of(tmp_path / "maps" / "s1.geojson") for point in ring]
    assert np.min(corners, axis=0).tolist() == [0, 0]
    rows = rows_of(tmp_path / "maps" / "s1.csv")  # the table keeps level 0
    assert min(int(row["x"]) for row in rows) == 100


def test_files_of_slides_are_found_by_name_and_twins_are_told(tmp_path):
    pytest.importorskip("openslide")
    for name in ("a.b.svs", "c.ome.tiff", "one/d.ndpi", "two/d.ndpi", "e.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    folder = SlideFolder(tmp_path)
    assert folder.find("a.b").name == "a.b.svs"
    assert folder.find("c").name == "c.ome.tiff"
    assert folder.find("two/d").parent.name == "two"
    assert folder.find("e") is None
    with pytest.raises(gmil.FormatError, match="Several files are called like slide 'd'"):
        folder.find("d")


def test_a_slide_file_that_is_none_is_a_note(cohort, tmp_path):
    pytest.importorskip("openslide")
    (tmp_path / "slide 1.svs").write_bytes(b"not a slide")
    written = write_maps(cohort.model, cohort.bags[[1]], tmp_path / "maps", slides=tmp_path)
    assert len(written.notes) == 1
    assert "is no slide that OpenSlide can read" in written.notes[0]
    assert written.slides == ["slide 1"]
