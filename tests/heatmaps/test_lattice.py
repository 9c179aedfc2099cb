"""From patches to pixels: every lattice that slides have, small maps by hand, and a slow reference."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.heatmaps.conftest import lattice, one_slide

import gmil
from gmil.heatmaps.lattice import Grid, grid_around, rasterize
from gmil.heatmaps.places import Places, neighbour_spacing, places_of, slides_of

NAN = np.nan


def places(x, y, side, **further):
    sides = np.broadcast_to(np.float64(side), len(x))
    return Places(np.asarray(x, dtype=float), np.asarray(y, dtype=float), sides, **further)


def found_places(bags, **options):
    return places_of(bags.instance_info, "s1", **options)


def rows(values):
    return np.round(values, 9).tolist()


# ------------------------------------------------------------------ by hand


def test_a_map_of_three_patches():
    got = rasterize(places([0, 2, 2], [0, 0, 2], 2), np.array([1.0, 2.0, 3.0]), Grid(0, 0, 2, 3, 2))
    np.testing.assert_equal(rows(got), [[1, 2, NAN], [NAN, 3, NAN]])


def test_overlapping_patches_are_averaged_by_count():
    # Of side 2 and step 1: the pixel in the middle is under both, then under three.
    got = rasterize(places([0, 1], [0, 0], 2), np.array([1.0, 5.0]), Grid(0, 0, 1, 3, 2))
    assert rows(got) == [[1, 3, 5], [1, 3, 5]]
    got = rasterize(places([0, 1, 1], [0, 0, 0], 2), np.array([1.0, 5.0, 9.0]), Grid(0, 0, 1, 3, 1))
    assert rows(got) == [[1, 5, 7]]


def test_a_patch_that_comes_twice_is_averaged():
    assert rows(rasterize(places([0, 0], [0, 0], 1), np.array([2.0, 4.0]), Grid(0, 0, 1, 1, 1))) == [[3]]


def test_a_patch_beyond_the_edge_is_cut():
    got = rasterize(places([-1, 2], [0, 1], 2), np.array([7.0, 8.0]), Grid(0, 0, 1, 3, 2))
    np.testing.assert_equal(rows(got), [[7, NAN, NAN], [7, NAN, 8]])


def test_a_score_that_is_none_leaves_a_hole_and_no_trace():
    got = rasterize(places([0, 1, 1], [0, 0, 0], 1), np.array([1.0, NAN, 4.0]), Grid(0, 0, 1, 2, 1))
    assert rows(got) == [[1, 4]]
    assert np.isnan(rasterize(places([0], [0], 1), np.array([NAN]), Grid(0, 0, 1, 1, 1))).all()


# ------------------------------------------------------------------ a slow reference


@st.composite
def scattered(draw):
    n = draw(st.integers(1, 12))
    numbers = st.lists(st.integers(-3, 12), min_size=n, max_size=n)
    sides = st.lists(st.integers(2, 5), min_size=n, max_size=n)
    values = st.lists(st.floats(-1e3, 1e3), min_size=n, max_size=n)
    return [np.array(draw(part), dtype=float) for part in (numbers, numbers, sides, values)]


@settings(max_examples=60)
@given(scattered(), st.sampled_from([1.0, 0.5, 1.5]))
def test_a_pixel_has_the_mean_of_the_patches_over_its_middle(found, pixel):
    x, y, side, values = found
    grid = Grid(-2.0, -1.0, pixel, 11, 9)
    expected = np.full((9, 11), NAN)
    for row in range(9):
        for column in range(11):
            at = -2 + (column + 0.5) * pixel, -1 + (row + 0.5) * pixel
            over = (x <= at[0]) & (at[0] < x + side) & (y <= at[1]) & (at[1] < y + side)
            if over.any():
                expected[row, column] = values[over].mean()
    np.testing.assert_allclose(rasterize(Places(x, y, side), values, grid), expected, rtol=1e-9, atol=1e-9)


# ------------------------------------------------------------------ lattices that slides have


@pytest.mark.parametrize("step", [256, 512, 224.0, 258.375])
def test_the_spacing_is_that_of_the_lattice(step):
    x, y = lattice(7, 5, step, 131, 77)
    assert neighbour_spacing(x, y) == pytest.approx(step)


def test_pieces_of_tissue_have_lattices_of_their_own():
    # Three contours, each from its bounding box: no division by the step gives rows and columns.
    parts = [lattice(4, 3, 256, 10, 20), lattice(3, 3, 256, 1307, 411), lattice(2, 2, 256, 301, 1333)]
    x, y = (np.concatenate(axis) for axis in zip(*parts, strict=True))
    got = found_places(one_slide(x, y))
    assert got.spacing == 256
    assert got.is_estimated
    assert (got.side == 256).all()
    grid = grid_around(got)
    values = np.arange(len(x), dtype=float)
    picture = rasterize(got, values, grid)
    for i in range(len(x)):  # the middle of every patch has its own score
        middle = int((x[i] + 128 - grid.left) / grid.pixel), int((y[i] + 128 - grid.top) / grid.pixel)
        assert picture[middle[::-1]] == pytest.approx(values[i])
    covered = np.isfinite(picture).sum() * grid.pixel**2 / 256**2
    assert covered == pytest.approx(len(x), rel=0.02)


def test_patches_of_20x_and_40x_fill_the_same_picture():
    pictures = []
    for step in (256, 512):
        x, y = lattice(5, 4, step)
        found = gmil.heatmap(one_slide(x, y, step), np.arange(20.0))
        pictures.append(found.image)
    np.testing.assert_array_equal(*pictures)


def test_overlap_leaves_no_hole_and_takes_the_size_that_is_given():
    x, y = lattice(6, 6, 128)
    got = found_places(one_slide(x, y, 256))
    assert (got.side == 256).all()
    assert got.spacing == 128
    assert not got.is_estimated
    assert np.isfinite(rasterize(got, np.ones(36), grid_around(got))).all()


def test_rounded_sizes_leave_no_seams():
    # STAMP: a patch of 256 um is ceil(256 / mpp) pixels wide, so that neighbours lie 256.3 um apart.
    x, y = lattice(40, 3, 256.3)
    got = found_places(one_slide(x.astype(np.float32), y.astype(np.float32), 256.0, unit=["um"] * len(x)))
    assert got.unit == "um"
    assert np.isfinite(rasterize(got, np.ones(len(x)), grid_around(got))).all()
    apart = found_places(one_slide(*lattice(5, 1, 300.0), 256.0))  # but a real gap is one
    assert np.isnan(rasterize(apart, np.ones(5), grid_around(apart))).any()


def test_corners_of_centres_may_be_fractions_and_below_zero():
    x, y = lattice(4, 4, 299, -149.5, -149.5)
    found = gmil.heatmap(one_slide(x, y, 299.0), np.arange(16.0))
    assert (found.image[..., 3] == 255).all()


def test_centres_of_unknown_size_become_corners_when_the_size_is_found():
    # slideflow without the size of a pixel: the reader keeps centres and says so.
    x, y = lattice(4, 3, 512, 256, 256)
    info = pa.table({"x": x, "y": y, "patch_size": pa.nulls(12, pa.float64())})
    info = info.replace_schema_metadata({"gmil.slides.anchor": '"centre"'})
    bags = gmil.Bags(np.zeros((12, 1)), [0, 12], bag_ids=["s1"], instance_info=info)
    for options in ({}, {"patch_size": 512}):
        got = found_places(bags, **options)
        assert (got.x.min(), got.y.min(), got.side[0]) == (0, 0, 512)
    assert found_places(bags, patch_size=100).x.min() == 206


def test_the_order_of_patches_does_not_matter():
    x, y = lattice(6, 5, 256)
    scores, order = np.arange(30.0), np.random.default_rng(0).permutation(30)
    one = gmil.heatmap(one_slide(x, y), scores).image
    np.testing.assert_array_equal(one, gmil.heatmap(one_slide(x[order], y[order]), scores[order]).image)


def test_sizes_that_are_missing_are_those_of_the_lattice():
    side = np.array([256.0, NAN, 0.0, 256.0])
    got = found_places(one_slide([0, 256, 512, 768], [0, 0, 0, 0], side))
    assert got.side.tolist() == [256] * 4
    assert got.is_estimated
    assert "patch size unknown" in gmil.heatmap(one_slide([0, 9], [0, 0]), [1, 2]).legend
    assert "unknown" not in gmil.heatmap(one_slide([0, 9], [0, 0], 9), [1, 2]).legend


def test_the_size_of_a_single_patch_is_asked_for_and_never_assumed():
    with pytest.raises(gmil.BagValidationError, match=r"size of the patches of slide 's1' is not known.*patch_size="):
        gmil.heatmap(one_slide([512], [256]), [1.0])
    assert gmil.heatmap(one_slide([512], [256]), [1.0], patch_size=256).places.side.tolist() == [256]


def test_few_patches_make_no_picture_of_a_few_pixels_and_many_no_huge_one():
    assert min(gmil.heatmap(one_slide(*lattice(3, 2, 256)), np.arange(6.0)).image.shape[:2]) >= 90
    x, y = np.array([0.0, 256.0, 256.0 * 5000]), np.zeros(3)
    image = gmil.heatmap(one_slide(x, y, 256), [1.0, 2.0, 3.0]).image
    assert image.shape[1] == 2048
    assert image[0, -1, 3] == 255  # patches below a pixel still show


def test_patches_that_lie_anywhere_have_the_usual_distance():
    rng = np.random.default_rng(0)
    points = rng.uniform(0, 1e4, size=(200, 2))
    nearest = np.sort(np.abs(points[:, None] - points).max(axis=2), axis=1)[:, 1]
    assert neighbour_spacing(*points.T) == pytest.approx(np.median(nearest))


def test_a_sparse_selection_of_a_lattice_still_tells_its_step():
    x, y = lattice(40, 40, 256)
    keep = np.random.default_rng(0).random(1600) < 0.25
    assert neighbour_spacing(x[keep], y[keep]) == 256


# ------------------------------------------------------------------ slides of bags


def test_a_bag_may_have_several_slides_in_frames_that_overlap():
    info = {"x": [0, 256, 0, 256], "y": [0, 0, 0, 0], "slide": ["a", "a", "b", "b"]}
    bags = gmil.Bags(np.zeros((4, 1)), [0, 4], bag_ids=["patient"], instance_info=info)
    assert [(slide.name, slide.bag, slide.rows.tolist()) for slide in slides_of(bags)] == [
        ("a", 0, [0, 1]),
        ("b", 0, [2, 3]),
    ]
    scores = [1.0, 2.0, 30.0, 40.0]
    assert gmil.heatmap(bags, scores, slide="b").scores.tolist() == [30, 40]
    with pytest.raises(gmil.BagValidationError, match=r"There are 2 slides: a, b\. Choose one with slide="):
        gmil.heatmap(bags, scores)
    with pytest.raises(gmil.BagValidationError, match="There is no slide 'c'; the slides are a, b"):
        gmil.heatmap(bags, scores, slide="c")


@pytest.mark.parametrize(
    ("bags", "scores", "words"),
    [
        (one_slide([0, 1], [0, 0]), [1.0], "one number for each of the 2 instances"),
        (gmil.Bags(np.zeros((2, 1)), [0, 2]), [1, 2], "needs instance_info with 'x' and 'y', but its columns are"),
        (one_slide([0, NAN], [0, 0]), [1, 2], "1 of the 2 patches of slide 's1' have no x"),
        (one_slide(["a", "b"], [0, 0]), [1, 2], "'x' of instance_info must be numbers"),
        (one_slide([0, 1], [0, 0], unit=["px", "um"]), [1, 2], "one a slide"),
        (one_slide([0, 1], [0, 0], unit=["mm", "mm"]), [1, 2], "must be 'px' or 'um'"),
    ],
)
def test_what_cannot_be_drawn_is_refused_in_a_sentence(bags, scores, words):
    with pytest.raises(gmil.BagValidationError, match=words):
        gmil.heatmap(bags, scores)
