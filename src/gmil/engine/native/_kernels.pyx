# distutils: language = c++
# cython: language_level=3, freethreading_compatible=True, boundscheck=False, wraparound=False, initializedcheck=False
"""The compiled kernels on typed arrays.

Every function checks that shapes fit, so that no kernel reads past an array; what the values mean is the business
of the caller. Results go into arrays that the caller made. Kernels run without the global lock, and nothing here changes
but the chosen instruction set, which is atomic, and the list of ended helper threads, which has a lock of its own.

Declarations are in ``_cpp.pxd``, checks in ``_checks.pxd``. The functions stay in one module because they share that state;
a further extension would have a copy of it, and of a quarter of a megabyte that Cython adds for arrays.
"""

import threading

from libc.stdint cimport int32_t, int64_t, uint8_t

from gmil.engine.native._checks cimport (
    require, require_all_rows, require_assignment, require_bags, require_centers, require_edges, require_jobs,
    require_labels, require_pairs,
)
from gmil.engine.native._cpp cimport (
    PyErr_CheckSignals, PyThread_get_thread_ident, active_variant, bag_rows, c_bag_histograms, c_bag_reduce,
    c_class_histograms, c_forget_helpers, c_join_helpers, c_solve_margin_program, cells_of, first_bad_row, frames_of,
    gram_jobs, grid_of, kMostFaces, kernels_for, n_variants, polyhedron_of, real, rows, set_interrupt_check, sparse_factors,
    sparse_rows, svm_problem, use_variant, variant_name, weighted_bags,
)


cdef unsigned long main_thread = threading.main_thread().ident


cdef int interrupted() noexcept nogil:
    """Run the handlers of signals that have come; tell whether one of them raised, which is left to be raised.

    Python runs them in its main thread alone. Others must not ask: at the end of the process they could be stopped here.
    """
    if PyThread_get_thread_ident() != main_thread:
        return 0
    with gil:
        return PyErr_CheckSignals()


set_interrupt_check(interrupted)


def join_helpers():
    with nogil:
        c_join_helpers()


def forget_helpers():
    global main_thread
    main_thread = threading.main_thread().ident
    c_forget_helpers()


def simd_levels():
    return [variant_name(i).decode() for i in range(n_variants())]


def simd_level():
    return active_variant().name.decode()


def set_simd_level(str name):
    if not use_variant(name.encode()):
        raise ValueError(f"The instruction set {name!r} cannot run here; those that can are {simd_levels()}.")


def sq_distances(const real[:, ::1] X, const real[:, ::1] centers, real[:, ::1] out, int n_threads):
    cdef int64_t n = X.shape[0], d = X.shape[1], k = centers.shape[0]
    require_pairs(X, centers, out, "centers")
    with nogil:
        kernels_for(&X[0, 0]).sq_distances(rows(&X[0, 0], n, d), &centers[0, 0], k, &out[0, 0], n_threads)


def sparse_sq_distances(
    const real[::1] values, const int32_t[::1] columns, const int32_t[::1] starts,
    const real[:, ::1] matrix, const real[:, ::1] terms, const real[:, ::1] per_row, real[:, ::1] out, int n_threads,
):
    cdef int64_t n = out.shape[0], k = out.shape[1], n_values = values.shape[0]
    require(n > 0 and k > 0 and n_values > 0, "out")
    require(starts.shape[0] == n + 1 and columns.shape[0] == n_values, "columns")
    require(matrix.shape[0] > 0 and matrix.shape[1] == k, "matrix")
    require(terms.shape[0] == 2 and terms.shape[1] == k, "terms")
    require(per_row.shape[0] == n and per_row.shape[1] == 2, "per_row")
    cdef int64_t bad = first_bad_row(&columns[0], &starts[0], n, n_values, matrix.shape[0])
    if bad >= 0:
        raise ValueError(f"Row {bad} has numbers in columns that are not there.")
    with nogil:
        kernels_for(&values[0]).sparse_sq_distances(
            sparse_rows(&values[0], &columns[0], &starts[0], n),
            sparse_factors(&matrix[0, 0], &terms[0, 0], k, &per_row[0, 0]),
            &out[0, 0],
            n_threads,
        )


def l1_distances(const real[:, ::1] X, const real[:, ::1] Y, real[:, ::1] out, int n_threads):
    cdef int64_t n = X.shape[0], d = X.shape[1], k = Y.shape[0]
    require_pairs(X, Y, out, "Y")
    with nogil:
        kernels_for(&X[0, 0]).l1_distances(rows(&X[0, 0], n, d), &Y[0, 0], k, &out[0, 0], n_threads)


def column_ranks(const real[:, ::1] X, const real[:, ::1] knots, real[:, ::1] out, int n_threads):
    cdef int64_t n = X.shape[0], d = X.shape[1], n_knots = knots.shape[1]
    require(n > 0 and d > 0 and n_knots > 0 and knots.shape[0] == d, "knots")
    require(out.shape[0] == n and out.shape[1] == d, "out")
    with nogil:
        kernels_for(&X[0, 0]).column_ranks(rows(&X[0, 0], n, d), &knots[0, 0], n_knots, &out[0, 0], n_threads)


def assign(const real[:, ::1] X, const real[:, ::1] centers, int32_t[::1] labels, real[::1] nearest, int n_threads):
    cdef int64_t n = X.shape[0], d = X.shape[1], k = centers.shape[0]
    require_assignment(X, centers, labels, nearest)
    with nogil:
        kernels_for(&X[0, 0]).assign(
            rows(&X[0, 0], n, d), &centers[0, 0], k, &labels[0], &nearest[0], NULL, NULL, n_threads
        )


def assign_sums(
    const real[:, ::1] X, const real[:, ::1] centers, int32_t[::1] labels, real[::1] nearest,
    double[:, ::1] sums, int64_t[::1] counts, int n_threads,
):
    cdef int64_t n = X.shape[0], d = X.shape[1], k = centers.shape[0]
    require_assignment(X, centers, labels, nearest)
    require(sums.shape[0] == k and sums.shape[1] == d, "sums")
    require(counts.shape[0] == k, "counts")
    with nogil:
        kernels_for(&X[0, 0]).assign(
            rows(&X[0, 0], n, d), &centers[0, 0], k, &labels[0], &nearest[0], &sums[0, 0], &counts[0], n_threads
        )


def seed(const real[:, ::1] X, const double[:, ::1] uniforms, int64_t[::1] chosen, int n_threads):
    cdef int64_t n = X.shape[0], d = X.shape[1], k = chosen.shape[0]
    require(n > 0 and d > 0, "X")
    require(k > 0 and uniforms.shape[0] == k and uniforms.shape[1] > 0, "uniforms")
    with nogil:
        kernels_for(&X[0, 0]).seed(
            rows(&X[0, 0], n, d), k, &uniforms[0, 0], uniforms.shape[1], &chosen[0], n_threads
        )


def lloyd(const real[:, ::1] X, real[:, ::1] centers, int64_t max_iter, int32_t[::1] labels, int n_threads):
    cdef int64_t n = X.shape[0], d = X.shape[1], k = centers.shape[0]
    cdef int64_t n_iter
    cdef double inertia = 0
    require_centers(X, centers, "centers")
    require(labels.shape[0] == n, "labels")
    with nogil:
        n_iter = kernels_for(&X[0, 0]).lloyd(
            rows(&X[0, 0], n, d), &centers[0, 0], k, max_iter, &labels[0], &inertia, n_threads
        )
    return inertia, n_iter


def gram_matrix(const real[:, ::1] X, double[:, ::1] out, int n_threads):
    cdef int64_t n = X.shape[0], d = X.shape[1]
    require(n > 0 and d > 0, "X")
    require(out.shape[0] == n and out.shape[1] == n, "out")
    with nogil:
        kernels_for(&X[0, 0]).gram_matrix(rows(&X[0, 0], n, d), &out[0, 0], n_threads)


REDUCTIONS = ("min", "max", "mean", "deviation")


def bag_reduce(const real[:, ::1] values, const int64_t[::1] offsets, str how, real[:, ::1] out, int n_threads):
    cdef int64_t n = values.shape[0], d = values.shape[1], n_bags = offsets.shape[0] - 1
    cdef int reduction = REDUCTIONS.index(how)
    require_bags(offsets, n)
    require(out.shape[0] == n_bags and out.shape[1] == d, "out")
    if n_bags == 0 or d == 0:
        return
    with nogil:
        c_bag_reduce(reduction, bag_rows(&values[0, 0], n, d, &offsets[0], n_bags), &out[0, 0], n_threads)


def bag_moments(const real[:, ::1] values, const int64_t[::1] offsets, double[:, :, ::1] out, int n_threads):
    cdef int64_t n = values.shape[0], d = values.shape[1], n_bags = offsets.shape[0] - 1
    require_bags(offsets, n)
    require(out.shape[0] == n_bags and out.shape[1] == 3 and out.shape[2] == d, "out")
    if n_bags == 0 or d == 0:
        return
    with nogil:
        kernels_for(&values[0, 0]).bag_moments(
            bag_rows(&values[0, 0], n, d, &offsets[0], n_bags), &out[0, 0, 0], n_threads
        )


def bag_two_min(
    const real[:, ::1] values, const int64_t[::1] offsets,
    real[:, ::1] smallest, int64_t[:, ::1] where, real[:, ::1] second, int n_threads,
):
    cdef int64_t n = values.shape[0], d = values.shape[1], n_bags = offsets.shape[0] - 1
    require_bags(offsets, n)
    require(smallest.shape[0] == n_bags and smallest.shape[1] == d, "smallest")
    require(where.shape[0] == n_bags and where.shape[1] == d, "where")
    require(second.shape[0] == n_bags and second.shape[1] == d, "second")
    if n_bags == 0 or d == 0:
        return
    with nogil:
        kernels_for(&values[0, 0]).bag_two_min(
            bag_rows(&values[0, 0], n, d, &offsets[0], n_bags),
            &smallest[0, 0], &where[0, 0], &second[0, 0], n_threads,
        )


def bag_histograms(const int32_t[::1] labels, const int64_t[::1] offsets, int64_t[:, ::1] out):
    cdef int64_t n_bags = offsets.shape[0] - 1, n_bins = out.shape[1], bad
    require_bags(offsets, labels.shape[0])
    require(out.shape[0] == n_bags and n_bins > 0, "out")
    if n_bags == 0:
        return
    with nogil:
        bad = c_bag_histograms(&labels[0], &offsets[0], n_bags, n_bins, &out[0, 0])
    require_labels(bad, labels, n_bins)


def class_histograms(
    const int32_t[::1] labels, const int64_t[::1] offsets, const int64_t[::1] classes, int64_t[:, ::1] out
):
    cdef int64_t n_bags = offsets.shape[0] - 1, n_bins = out.shape[1], bad, b
    require_bags(offsets, labels.shape[0])
    require(out.shape[0] > 0 and n_bins > 0, "out")
    require(classes.shape[0] == n_bags, "classes")
    for b in range(n_bags):
        require(0 <= classes[b] < out.shape[0], "classes")
    if n_bags == 0:
        return
    with nogil:
        bad = c_class_histograms(&labels[0], &offsets[0], n_bags, &classes[0], n_bins, &out[0, 0])
    require_labels(bad, labels, n_bins)


def solve_margin_program(
    const double[:, ::1] rows, const double[::1] most, int64_t max_steps, double[::1] prices, double[::1] shares
):
    cdef int64_t n_rows = rows.shape[0], n_columns = rows.shape[1]
    cdef bint solved
    require(n_rows > 0 and n_columns > 0, "rows")
    require(most.shape[0] == n_rows and shares.shape[0] == n_rows, "most")
    require(prices.shape[0] == n_columns, "prices")
    with nogil:
        solved = c_solve_margin_program(
            &rows[0, 0], &most[0], n_rows, n_columns, max_steps, &prices[0], &shares[0]
        )
    return solved


def gram_seed(
    const double[:, ::1] gram, const uint8_t[:, ::1] members, const double[:, :, ::1] uniforms,
    int64_t[:, ::1] chosen, int n_threads,
):
    cdef int64_t n = gram.shape[0], n_jobs = members.shape[0], k = chosen.shape[1]
    require_jobs(gram, members)
    require(chosen.shape[0] == n_jobs and k > 0, "chosen")
    require(uniforms.shape[0] == n_jobs and uniforms.shape[1] == k and uniforms.shape[2] > 0, "uniforms")
    with nogil:
        active_variant().gram.seed(
            gram_jobs(&gram[0, 0], n, &members[0, 0], n_jobs, k),
            &uniforms[0, 0, 0], uniforms.shape[2], &chosen[0, 0], n_threads,
        )


def gram_lloyd(
    const double[:, ::1] gram, const uint8_t[:, ::1] members, const int64_t[:, ::1] starts, int64_t max_iter,
    int32_t[:, ::1] labels, double[:, :, ::1] squares, double[::1] inertia, int64_t[::1] n_iter, int n_threads,
):
    cdef int64_t n = gram.shape[0], n_jobs = members.shape[0], k = starts.shape[1], job, q
    require_jobs(gram, members)
    require(starts.shape[0] == n_jobs and k > 0, "starts")
    for job in range(n_jobs):
        for q in range(k):
            require(0 <= starts[job, q] < n, "starts")
    require(labels.shape[0] == n_jobs and labels.shape[1] == n, "labels")
    require(squares.shape[0] == n_jobs and squares.shape[1] == n and squares.shape[2] == k, "squares")
    require(inertia.shape[0] == n_jobs and n_iter.shape[0] == n_jobs, "inertia")
    with nogil:
        active_variant().gram.lloyd(
            gram_jobs(&gram[0, 0], n, &members[0, 0], n_jobs, k), &starts[0, 0], max_iter,
            &labels[0, 0], &squares[0, 0, 0], &inertia[0], &n_iter[0], n_threads,
        )


def rbf_sums(
    const double[:, ::1] left, const double[::1] left_weights, const int64_t[::1] left_offsets,
    const double[:, ::1] right, const double[::1] right_weights, const int64_t[::1] right_offsets,
    const double[::1] gammas, bint same, double[:, :, ::1] out, int n_threads,
):
    cdef int64_t n_left = left.shape[0], n_right = right.shape[0], d = left.shape[1], n_gammas = gammas.shape[0]
    cdef int64_t n_left_bags = left_offsets.shape[0] - 1, n_right_bags = right_offsets.shape[0] - 1
    require_centers(left, right, "right")
    require(left_weights.shape[0] == n_left and right_weights.shape[0] == n_right, "weights")
    require_all_rows(left_offsets, n_left)
    require_all_rows(right_offsets, n_right)
    require(not same or (n_left == n_right and n_left_bags == n_right_bags), "same")
    require(n_gammas > 0, "gammas")
    require(out.shape[0] == n_gammas and out.shape[1] == n_left_bags and out.shape[2] == n_right_bags, "out")
    with nogil:
        active_variant().rbf.sums(
            weighted_bags(&left[0, 0], n_left, d, &left_weights[0], &left_offsets[0], n_left_bags),
            weighted_bags(&right[0, 0], n_right, d, &right_weights[0], &right_offsets[0], n_right_bags),
            &gammas[0], n_gammas, same, &out[0, 0, 0], n_threads,
        )


def svm_solve(
    const double[:, ::1] kernel, const uint8_t[::1] positive, const double[::1] costs, double tolerance, int64_t max_iter,
    const double[::1] first, double[::1] dual, double[::1] products,
):
    cdef int64_t n = kernel.shape[0], n_iter
    cdef double intercept = 0
    require(n > 0 and kernel.shape[1] == n, "kernel")
    require(positive.shape[0] == n and costs.shape[0] == n, "costs")
    require(first.shape[0] == n and dual.shape[0] == n and products.shape[0] == n, "first")
    with nogil:
        n_iter = active_variant().svm.solve(
            svm_problem(&kernel[0, 0], n, &positive[0], &costs[0]),
            tolerance, max_iter, &first[0], &dual[0], &products[0], &intercept,
        )
    return intercept, n_iter


def integrate_gradients(
    const uint8_t[:, ::1] before, const uint8_t[:, ::1] now, const uint8_t[:, ::1] after, int32_t[:, :, ::1] sums
):
    cdef int64_t height = now.shape[0], width = now.shape[1]
    require(height > 0 and width > 0, "now")
    require(before.shape[0] == height and before.shape[1] == width, "before")
    require(after.shape[0] == height and after.shape[1] == width, "after")
    require(sums.shape[0] == 3 and sums.shape[1] == height + 1 and sums.shape[2] == width + 1, "sums")
    with nogil:
        active_variant().video.integrate_gradients(
            frames_of(&before[0, 0], &now[0, 0], &after[0, 0], height, width), &sums[0, 0, 0]
        )


def add_directions(
    const int32_t[:, :, ::1] sums, int32_t[:, :, ::1] corners, const int64_t[::1] rows, const int64_t[::1] columns,
    int64_t blocks, double frames, const float[:, ::1] normals, float neighbour_cosine, bint half,
    float[:, :, ::1] histograms, float[:, ::1] lengths,
):
    cdef int64_t n_rows = rows.shape[0] - 1, n_columns = columns.shape[0] - 1, n_faces = normals.shape[0]
    require(blocks > 0, "blocks")
    require(frames > 0, "frames")
    require(sums.shape[0] == 3, "sums")
    require_edges(rows, blocks, sums.shape[1], "rows")
    require_edges(columns, blocks, sums.shape[2], "columns")
    require(
        corners.shape[0] == 3 and corners.shape[1] == n_rows + 1 and corners.shape[2] == n_columns + 1, "corners"
    )
    require(0 < n_faces <= kMostFaces and normals.shape[1] == 3, "normals")
    require(lengths.shape[0] == n_rows // blocks and lengths.shape[1] == n_columns // blocks, "lengths")
    require(
        histograms.shape[0] == lengths.shape[0] and histograms.shape[1] == lengths.shape[1]
        and histograms.shape[2] == n_faces, "histograms",
    )
    with nogil:
        active_variant().video.add_directions(
            grid_of(sums.shape[1], sums.shape[2], &rows[0], n_rows, &columns[0], n_columns, blocks),
            &sums[0, 0, 0], frames, polyhedron_of(&normals[0, 0], n_faces, neighbour_cosine, half),
            &corners[0, 0, 0], &histograms[0, 0, 0], &lengths[0, 0],
        )


def cell_boxes(
    const float[:, :, :, ::1] cells, int64_t first, const int64_t[:, ::1] places, int64_t side, float clip,
    float[:, ::1] out,
):
    cdef int64_t n_boxes = places.shape[0], i
    cdef int64_t n_layers = cells.shape[0], n_faces = cells.shape[3]
    require(n_layers > 0 and n_faces > 0 and 0 <= first < n_layers, "first")
    require(n_boxes > 0 and places.shape[1] == 2 and side > 0, "places")
    for i in range(n_boxes):
        require(0 <= places[i, 0] <= cells.shape[1] - side and 0 <= places[i, 1] <= cells.shape[2] - side, "places")
    require(out.shape[0] == n_boxes and out.shape[1] == side * side * n_layers * n_faces, "out")
    with nogil:
        active_variant().video.cell_boxes(
            cells_of(&cells[0, 0, 0, 0], n_layers, cells.shape[1], cells.shape[2], n_faces),
            first, &places[0, 0], n_boxes, side, clip, &out[0, 0],
        )
