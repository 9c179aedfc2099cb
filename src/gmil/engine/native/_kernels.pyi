from gmil.engine.arrays import Floats, Integers

def join_helpers() -> None: ...
def forget_helpers() -> None: ...
def simd_levels() -> list[str]: ...
def simd_level() -> str: ...
def set_simd_level(name: str) -> None: ...
def sq_distances(X: Floats, centers: Floats, out: Floats, n_threads: int) -> None: ...
def sparse_sq_distances(
    values: Floats,
    columns: Integers,
    starts: Integers,
    matrix: Floats,
    terms: Floats,
    per_row: Floats,
    out: Floats,
    n_threads: int,
) -> None: ...
def l1_distances(X: Floats, Y: Floats, out: Floats, n_threads: int) -> None: ...
def column_ranks(X: Floats, knots: Floats, out: Floats, n_threads: int) -> None: ...
def assign(X: Floats, centers: Floats, labels: Integers, nearest: Floats, n_threads: int) -> None: ...
def assign_sums(
    X: Floats,
    centers: Floats,
    labels: Integers,
    nearest: Floats,
    sums: Floats,
    counts: Integers,
    n_threads: int,
) -> None: ...
def seed(X: Floats, uniforms: Floats, chosen: Integers, n_threads: int) -> None: ...
def lloyd(X: Floats, centers: Floats, max_iter: int, labels: Integers, n_threads: int) -> tuple[float, int]: ...
def rbf_sums(
    left: Floats,
    left_weights: Floats,
    left_offsets: Integers,
    right: Floats,
    right_weights: Floats,
    right_offsets: Integers,
    gammas: Floats,
    same: bool,
    out: Floats,
    n_threads: int,
) -> None: ...
def gram_matrix(X: Floats, out: Floats, n_threads: int) -> None: ...
def bag_reduce(values: Floats, offsets: Integers, how: str, out: Floats, n_threads: int) -> None: ...
def bag_moments(values: Floats, offsets: Integers, out: Floats, n_threads: int) -> None: ...
def bag_two_min(
    values: Floats,
    offsets: Integers,
    smallest: Floats,
    where: Integers,
    second: Floats,
    n_threads: int,
) -> None: ...
def bag_histograms(labels: Integers, offsets: Integers, out: Integers) -> None: ...
def class_histograms(
    labels: Integers,
    offsets: Integers,
    classes: Integers,
    out: Integers,
) -> None: ...
def solve_margin_program(rows: Floats, most: Floats, max_steps: int, prices: Floats, shares: Floats) -> bool: ...
def gram_seed(
    gram: Floats,
    members: Integers,
    uniforms: Floats,
    chosen: Integers,
    n_threads: int,
) -> None: ...
def gram_lloyd(
    gram: Floats,
    members: Integers,
    starts: Integers,
    max_iter: int,
    labels: Integers,
    squares: Floats,
    inertia: Floats,
    n_iter: Integers,
    n_threads: int,
) -> None: ...
def svm_solve(
    kernel: Floats,
    positive: Integers,
    costs: Floats,
    tolerance: float,
    max_iter: int,
    first: Floats,
    dual: Floats,
    products: Floats,
) -> tuple[float, int]: ...
def integrate_gradients(before: Integers, now: Integers, after: Integers, sums: Integers) -> None: ...
def add_directions(
    sums: Integers,
    corners: Integers,
    rows: Integers,
    columns: Integers,
    blocks: int,
    frames: float,
    normals: Floats,
    neighbour_cosine: float,
    half: bool,
    histograms: Floats,
    lengths: Floats,
) -> None: ...
def cell_boxes(cells: Floats, first: int, places: Integers, side: int, clip: float, out: Floats) -> None: ...
