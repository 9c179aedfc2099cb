"""Maps as files: PNG, GeoJSON for QuPath by RFC 7946, CSV; colours, limits and percentiles behind them."""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import uuid

import numpy as np
import pytest
from tests.heatmaps.conftest import lattice, one_slide, read_png

import gmil
from gmil.heatmaps.colours import COLOURS, colour_table, colour_values
from gmil.heatmaps.file_names import file_name
from gmil.heatmaps.values import colour_limits, percentile_ranks

HOSTILE = ("../../etc/passwd", "a/b\\c", "<script>alert(1)</script>", "Ж 木 é", "con", "x" * 400, "", ".", "a\x00b\nc")


@pytest.fixture
def found():
    """A map of six patches; one has no score."""
    scores = [0.5, -1.0, 2.0, np.nan, 0.5, 7.0]
    return gmil.heatmap(one_slide(*lattice(3, 2, 256, 1000, 500), 256), scores, limits=(-1, 3), label="tumour")


# ------------------------------------------------------------------ numbers


def test_percentiles_are_mean_ranks_within_the_slide_and_scores_stay(found):
    np.testing.assert_allclose(found.percentiles, [50, 20, 80, np.nan, 50, 100])
    assert found.scores[5] == 7.0
    ranked = gmil.heatmap(one_slide(*lattice(3, 1, 1)), [5.0, 1.0, 9.0], value="percentile")
    assert ranked.limits == (0, 100)
    np.testing.assert_allclose(ranked.values, [200 / 3, 100 / 3, 100])
    assert ranked.scores.tolist() == [5, 1, 9]


def test_percentiles_are_those_of_a_slow_reference():
    scores = np.random.default_rng(0).integers(0, 9, 50).astype(float)
    slow = [100 * ((scores < s).sum() + ((scores == s).sum() + 1) / 2) / 50 for s in scores]
    np.testing.assert_allclose(percentile_ranks(scores), slow)


def test_the_ends_of_the_colours():
    assert colour_limits(np.array([3.0, 1.0, np.nan])) == (1, 3)
    assert colour_limits(np.arange(101.0)) == (1, 99)  # the extreme patches do not darken the others
    assert colour_limits(np.array([-1.0, 4.0]), "diverging") == (-4, 4)
    assert colour_limits(np.array([2.0, 2.0])) == (1.5, 2.5)
    assert colour_limits(np.array([np.nan])) == (0, 1)


def test_smoothing_averages_neighbours_and_nothing_beyond():
    bags = one_slide([0, 256, 99999], [0, 0, 0], 256)
    smooth = gmil.heatmap(bags, [1.0, 0.0, 5.0], bandwidth=256.0)
    near = math.exp(-0.5)
    assert smooth.legend == "Score: averaged over neighbours."
    np.testing.assert_allclose(smooth.scores, [1 / (1 + near), near / (1 + near), 5], atol=1e-12)
    np.testing.assert_allclose(smooth.scores, gmil.smooth_scores([1.0, 0.0, 5.0], bags, 256.0))
    plain = gmil.heatmap(bags, [1.0, 0.0, 5.0])
    np.testing.assert_array_equal(smooth.image[..., 3], plain.image[..., 3])  # empty area stays empty
    with_gap = gmil.heatmap(bags, [1.0, np.nan, 5.0], bandwidth=256.0)
    np.testing.assert_allclose(with_gap.scores, [1, np.nan, 5], atol=1e-12)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"value": "attention"}, "value must be one of score, percentile"),
        ({"limits": (1, 1)}, "limits must be two numbers, the second above the first"),
        ({"bandwidth": 0}, "bandwidth must be a number above 0"),
    ],
)
def test_bad_options_are_refused(options, words):
    with pytest.raises(gmil.BagValidationError, match=words):
        gmil.heatmap(one_slide([0, 1], [0, 0]), [1, 2], **options)


# ------------------------------------------------------------------ colours


@pytest.mark.parametrize("name", COLOURS)
def test_colours_get_steadily_lighter_or_have_their_lightest_in_the_middle(name):
    linear = (colour_table(name) / 255) ** 2.2
    light = np.cbrt(linear @ [0.2126, 0.7152, 0.0722])
    if name == "diverging":
        assert 100 < light.argmax() < 155
        assert (np.diff(light[:120]) > 0).all()
        assert (np.diff(light[136:]) < 0).all()
    else:
        assert (np.diff(light) > -1e-3).all()
        steps = np.diff(light[::15])
        assert steps.max() < 4 * np.median(steps)


def test_values_beyond_the_ends_have_the_colours_of_the_ends_and_what_is_none_is_grey():
    table = colour_table("viridis")
    got = colour_values(np.array([-9.0, 0.0, 1.0, 9.0, np.nan]), (0, 1), "viridis")
    assert got.tolist() == [*table[[0, 0, 255, 255]].tolist(), [160, 160, 160]]
    with pytest.raises(gmil.BagValidationError, match="colors must be one of viridis"):
        gmil.heatmap(one_slide([0, 1], [0, 0]), [1, 2], colors="jet").save_png("never.png")


# ------------------------------------------------------------------ PNG


def test_the_image_is_transparent_where_there_is_no_patch_or_no_score(found):
    image = found.image
    height, width = image.shape[:2]
    opaque = image[height // 4 :: height // 2, width // 6 :: width // 3, 3][:2, :3]
    assert opaque.tolist() == [[255, 255, 255], [0, 255, 255]]
    assert image[0, 0, :3].tolist() == colour_values(np.array([0.5]), (-1, 3), "viridis")[0].tolist()
    assert not image[-1, 0].any()


def test_a_png_has_the_map_on_white_a_legend_and_words_of_its_own(found, tmp_path):
    assert found.save_png(tmp_path / "m.png") == tmp_path / "m.png"
    pixels, texts = read_png((tmp_path / "m.png").read_bytes())
    height, width = found.image.shape[:2]
    np.testing.assert_array_equal(pixels[0, :width], found.image[0, :, :3])
    assert (pixels[height - 1, 0] == 255).all()  # the patch without a score
    bar = pixels[height + 12, 10:-10]
    np.testing.assert_array_equal(bar[[0, -1]], colour_table("viridis")[[0, 255]])
    assert (pixels[height + 24 :].min(axis=(1, 2)) < 100).sum() > 8  # letters
    assert texts["Title"] == "s1"
    assert "Score for tumour." in texts["Description"]
    assert "from -1 to >= 3" in texts["Description"]
    found.save_png(tmp_path / "bare.png", legend=False)
    assert read_png((tmp_path / "bare.png").read_bytes()).pixels.shape == (height, width, 3)


def test_the_legend_of_a_large_picture_is_as_large(tmp_path):
    x, y = np.array([0.0, 256.0 * 4000]), np.zeros(2)
    gmil.heatmap(one_slide(x, y, 256), [1.0, 2.0]).save_png(tmp_path / "m.png")
    pixels = read_png((tmp_path / "m.png").read_bytes()).pixels
    assert pixels.shape[1] == 2048
    dark = np.flatnonzero((pixels[-60:] < 90).all(axis=2).any(axis=1))
    assert len(dark) > 15  # letters of twice the size


def test_a_notebook_shows_the_picture(found):
    assert read_png(found._repr_png_()).pixels.shape[2] == 3


def test_names_in_any_script_do_no_harm(tmp_path):
    for name in HOSTILE:
        made = gmil.heatmap(one_slide([0, 1], [0, 0], name=name), [1, 2], label="Ж<b>", meaning="木")
        assert read_png(made.save_png(tmp_path / "m.png").read_bytes()).texts["Title"] == name


# ------------------------------------------------------------------ GeoJSON


def test_a_geojson_holds_what_the_rfc_says(found):
    geojson_pydantic = pytest.importorskip("geojson_pydantic")
    text = json.dumps(found.to_geojson(), allow_nan=False)
    parsed = geojson_pydantic.FeatureCollection.model_validate_json(text)
    assert len(parsed.features) == 6
    for feature in parsed.features:
        assert type(feature.geometry) is geojson_pydantic.Polygon
        ring = np.array([tuple(point) for point in feature.geometry.coordinates[0]])
        assert len(ring) == 5
        x, y = ring[:-1].T
        area = np.sum(x * np.roll(y, -1) - y * np.roll(x, -1)) / 2
        assert area == 256**2  # above 0: exterior rings are counterclockwise
    assert "crs" not in json.loads(text)


def test_a_geojson_holds_what_qupath_reads(found):
    features = found.to_geojson()["features"]
    by_place = {tuple(feature["geometry"]["coordinates"][0][0]): feature["properties"] for feature in features}
    for feature in features:
        ring, told = feature["geometry"]["coordinates"][0], feature["properties"]
        assert ring[0] == ring[-1]
        assert all(type(number) is int for point in ring for number in point)
        assert str(uuid.UUID(feature["id"])) == feature["id"]
        assert told["objectType"] == "tile"
        assert told["classification"]["name"] == "tumour"
        for colour in (told["color"], told["classification"]["color"]):
            assert len(colour) == 3
            assert all(type(part) is int and 0 <= part <= 255 for part in colour)
    assert by_place[1512, 500]["measurements"] == {"score": 2.0, "percentile": 80.0}
    assert by_place[1000, 756]["measurements"] == {"score": "NaN", "percentile": "NaN"}
    assert len({feature["id"] for feature in features}) == 6
    again = [feature["id"] for feature in found.to_geojson()["features"]]
    assert again == [feature["id"] for feature in features]


def test_infinite_scores_are_texts():
    made = gmil.heatmap(one_slide([0, 1], [0, 0]), [np.inf, 1.0], limits=(0, 1))
    assert {f["properties"]["measurements"]["score"] for f in made.to_geojson()["features"]} == {1.0, "Infinity"}


def test_a_geojson_can_hold_the_highest_patches_only(found):
    def scores(**options):
        return [f["properties"]["measurements"]["score"] for f in found.to_geojson(**options)["features"]]

    assert scores() == [7.0, 2.0, 0.5, 0.5, -1.0, "NaN"]
    assert scores(top=2) == [7.0, 2.0]
    assert scores(threshold=0.5) == [7.0, 2.0, 0.5, 0.5]
    assert scores(threshold=0.5, top=1) == [7.0]


def test_micrometres_become_pixels_of_level_0_or_are_refused():
    bags = one_slide([0.0, 128.0], [64.0, 64.0], 128.0, unit=["um"] * 2)
    made = gmil.heatmap(bags, [1.0, 2.0])
    with pytest.raises(gmil.BagValidationError, match=r"in micrometres, but pixels of level 0 are needed.*mpp="):
        made.to_geojson()
    rings = [f["geometry"]["coordinates"][0] for f in made.to_geojson(mpp=0.25)["features"]]
    assert rings[0] == [[512, 256], [1024, 256], [1024, 768], [512, 768], [512, 256]]
    assert made.to_table().column("unit").to_pylist() == ["um", "um"]


def test_the_corner_that_qupath_crops_to_is_subtracted(found):
    plain, moved = (found.to_geojson(origin=origin)["features"][0] for origin in ((0, 0), (1000, 500)))
    first, second = (np.array(feature["geometry"]["coordinates"][0]) for feature in (plain, moved))
    np.testing.assert_array_equal(first - second, [[1000, 500]] * 5)
    assert plain["id"] == moved["id"]


def test_a_compressed_file_is_smaller_and_the_same(found, tmp_path):
    made = found.to_geojson(tmp_path / "m.geojson")
    found.to_geojson(tmp_path / "m.geojson.gz")
    plain, packed = ((tmp_path / f"m.geojson{end}").read_bytes() for end in ("", ".gz"))
    assert json.loads(plain) == made
    assert gzip.decompress(packed) == plain
    assert len(packed) < len(plain) / 2
    found.to_geojson(tmp_path / "m.geojson.gz")
    assert (tmp_path / "m.geojson.gz").read_bytes() == packed


# ------------------------------------------------------------------ CSV


def test_a_table_is_keyed_by_slide_and_corner(found, tmp_path):
    text = found.to_csv(tmp_path / "m.csv")
    assert (tmp_path / "m.csv").read_text(encoding="utf-8") == text
    rows = list(csv.DictReader(io.StringIO(text)))
    assert list(rows[0]) == ["slide", "x", "y", "patch_size", "unit", "score", "percentile"]
    assert list(rows[2].values()) == ["s1", "1512", "500", "256", "px", "2", "80"]
    assert (rows[3]["score"], rows[3]["percentile"]) == ("", "")
    assert len({(row["slide"], row["x"], row["y"]) for row in rows}) == 6


def test_a_hostile_name_survives_a_table():
    for name in HOSTILE[:6]:
        made = gmil.heatmap(one_slide([0, 1], [0, 0], name=name), [1, 2])
        assert {row["slide"] for row in csv.DictReader(io.StringIO(made.to_csv()))} == {name}


def test_nothing_half_written_stays(found, tmp_path):
    with pytest.raises(gmil.GmilError, match="there is no folder"):
        found.to_csv(tmp_path / "nothing" / "m.csv")
    found.to_csv(tmp_path / "m.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["m.csv"]


# ------------------------------------------------------------------ names of files


def test_names_that_are_safe_stay_and_dots_are_no_suffix():
    for name in ("TCGA-AA-1.8D3A.x", "slide 7", "0012", "Ж木", "a+b_c"):
        assert file_name(name, set()) == name


def test_names_of_files_never_leave_their_folder_nor_meet(tmp_path):
    taken: set[str] = set()
    made = [file_name(name, taken) for name in [*HOSTILE, "a/b", "a_b", "A_B", "a_b", "CON", "index"]]
    assert len({name.casefold() for name in made}) == len(made)
    for name in made:
        path = (tmp_path / f"{name}.geojson.gz").resolve()
        assert path.parent == tmp_path
        path.write_text("x", encoding="utf-8")
        assert not set(name) & set('/\\<>:"|?*\0\n')
        assert len(path.name.encode()) < 200
    assert "index" not in made
