# distutils: language = c++
# cython: language_level=3, freethreading_compatible=True, boundscheck=False, wraparound=False, initializedcheck=False
"""The compiled kernels on typed arrays.

Every function checks that shapes fit, so that no kernel reads past an array; what the values mean is the business
of the caller. Results go into arrays that the caller made. Kernels run without the global lock, and nothing here changes
but the chosen instruction set, which is atomic, and the list of ended helper threads, which has a lock of its own.
"""

import threading
from libc.stdint cimport int32_t, int64_t, uint8_t

ctypedef fused real:
    float
    double

cdef extern from "Python.h" nogil:
    unsigned long PyThread_get_thread_ident()
    int PyErr_CheckSignals()

cdef extern from "cpp/api.hpp" namespace "gmil" nogil:
    void raise_python_error()

    int n_variants()
    const char* variant_name(int)
    bint use_variant(const char*)
    cppclass Variant:
        const char* name
        GramKernels gram
        VideoKernels video
    const Variant& active_variant()

    cppclass Rows[T]:
        pass
    cppclass BagRows[T]:
        pass
    cppclass SparseRows[T]:
        pass
    cppclass SparseFactors[T]:
        pass
    cppclass GramJobs:
        pass
    Rows[T] rows[T](const T*, int64_t, int64_t)
    BagRows[T] bag_rows[T](const T*, int64_t, int64_t, const int64_t*, int64_t)
    SparseRows[T] sparse_rows[T](const T*, const int32_t*, const int32_t*, int64_t)
    SparseFactors[T] sparse_factors[T](const T*, const T*, int64_t, const T*)
    int64_t first_bad_row(const int32_t*, const int32_t*, int64_t, int64_t, int64_t)
    GramJobs gram_jobs(const double*, int64_t, const uint8_t*, int64_t, int64_t)

    cppclass Kernels[T]:
        void sq_distances(const Rows[T]&, const T*, int64_t, T*, int) except +raise_python_error
        void sparse_sq_distances(
            const SparseRows[T]&, const SparseFactors[T]&, T*, int
        ) except +raise_python_error
        void l1_distances(const Rows[T]&, const T*, int64_t, T*, int) except +raise_python_error
        void column_ranks(const Rows[T]&, const T*, int64_t, T*, int) except +raise_python_error
        void assign(
            const Rows[T]&, const T*, int64_t, int32_t*, T*, double*, int64_t*, int
        ) except +raise_python_error
        void seed(const Rows[T]&, int64_t, const double*, int64_t, int64_t*, int) except +raise_python_error
        int64_t lloyd(const Rows[T]&, T*, int64_t, int64_t, int32_t*, double*, int) except +raise_python_error
        void gram_matrix(const Rows[T]&, double*, int) except +raise_python_error
        void bag_moments(const BagRows[T]&, double*, int) except +raise_python_error
        void bag_two_min(const BagRows[T]&, T*, int64_t*, T*, int) except +raise_python_error
    const Kernels[T]& kernels_for[T](const T*)
    void c_bag_reduce "gmil::bag_reduce"[T](int, const BagRows[T]&, T*, int) except +raise_python_error

    cppclass GramKernels:
        void seed(const GramJobs&, const double*, int64_t, int64_t*, int) except +raise_python_error
        void lloyd(
            const GramJobs&, const int64_t*, int64_t, int32_t*, double*, double*, int64_t*, int
        ) except +raise_python_error

    cppclass Frames:
        pass
    cppclass Grid:
        pass
    cppclass Polyhedron:
        pass
    cppclass Cells:
        pass
    Frames frames_of(const uint8_t*, const uint8_t*, const uint8_t*, int64_t, int64_t)
    Grid grid_of(int64_t, int64_t, const int64_t*, int64_t, const int64_t*, int64_t, int64_t)
    Polyhedron polyhedron_of(const float*, int64_t, float, bint)
    Cells cells_of(const float*, int64_t, int64_t, int64_t, int64_t)
    const int64_t kMostFaces
    cppclass VideoKernels:
        void integrate_gradients(const Frames&, int32_t*) except +raise_python_error
        void add_directions(
            const Grid&, const int32_t*, double, const Polyhedron&, int32_t*, float*, float*
        ) except +raise_python_error
        void cell_boxes(
            const Cells&, int64_t, const int64_t*, int64_t, int64_t, float, float*
        ) except +raise_python_error

    int64_t first_bad_bag(const int64_t*, int64_t, int64_t)
    int64_t c_bag_histograms "gmil::bag_histograms"(const int32_t*, const int64_t*, int64_t, int64_t, int64_t*)
    int64_t c_class_histograms "gmil::class_histograms"(
        const int32_t*, const int64_t*, int64_t, const int64_t*, int64_t, int64_t*
    )

    void c_join_helpers "gmil::join_helpers"()
    void c_forget_helpers "gmil::forget_helpers"()
    void set_interrupt_check(int (*)() noexcept nogil)


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


cdef inline int _require(bint condition, str what) except -1:
    if not condition:
        raise ValueError(f"{what} does not fit the other arguments.")
    return 0


cdef inline int _require_bags(const int64_t[::1] offsets, int64_t n_rows) except -1:
    _require(offsets.shape[0] >= 1, "offsets")
    cdef int64_t bad = first_bad_bag(&offsets[0], offsets.shape[0] - 1, n_rows)
    if bad >= 0:
        raise ValueError(
            f"Bag {bad} runs from row {offsets[bad]} to row {offsets[bad + 1]} of {n_rows}, "
            "but every bag must have at least one row."
        )
    return 0


cdef inline int _require_labels(int64_t bad_row, const int32_t[::1] labels, int64_t n_bins) except -1:
    if bad_row >= 0:
        raise ValueError(f"Row {bad_row} has label {labels[bad_row]}, but labels must be from 0 to {n_bins - 1}.")
    return 0


cdef inline int _require_centers(const real[:, ::1] X, const real[:, ::1] centers, str what) except -1:
    return _require(
        X.shape[0] > 0 and X.shape[1] > 0 and centers.shape[0] > 0 and centers.shape[1] == X.shape[1], what
    )


cdef inline int _require_pairs(
    const real[:, ::1] X, const real[:, ::1] others, const real[:, ::1] out, str what
) except -1:
    _require_centers(X, others, what)
    return _require(out.shape[0] == X.shape[0] and out.shape[1] == others.shape[0], "out")


cdef inline int _require_assignment(
    const real[:, ::1] X, const real[:, ::1] centers, const int32_t[::1] labels, const real[::1] nearest
) except -1:
    _require_centers(X, centers, "centers")
    _require(labels.shape[0] == X.shape[0], "labels")
    return _require(nearest.shape[0] == X.shape[0], "nearest")


def sq_distances(const real[:, ::1] X, const real[:, ::1] centers, real[:, ::1] out, int n_threads):
    cdef int64_t n = X.shape[0], d = X.shape[1], k = centers.shape[0]
    _require_pairs(X, centers, out, "centers")
    with nogil:
        kernels_for(&X[0, 0]).sq_distances(rows(&X[0, 0], n, d), &centers[0, 0], k, &out[0, 0], n_threads)


def sparse_sq_distances(
    const real[::1] values, const int32_t[::1] columns, const int32_t[::1] starts,
    const real[:, ::1] matrix, const real[:, ::1] terms, const real[:, ::1] per_row, real[:, ::1] out, int n_threads,
):
    cdef int64_t n = out.shape[0], k = out.shape[1], n_values = values.shape[0]
    _require(n > 0 and k > 0 and n_values > 0, "out")
    _require(starts.shape[0] == n + 1 and columns.shape[0] == n_values, "columns")
    _require(matrix.shape[0] > 0 and matrix.shape[1] == k, "matrix")
    _require(terms.shape[0] == 2 and terms.shape[1] == k, "terms")
    _require(per_row.shape[0] == n and per_row.shape[1] == 2, "per_row")
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
    _require_pairs(X, Y, out, "Y")
    with nogil:
        kernels_for(&X[0, 0]).l1_distances(rows(&X[0, 0], n, d), &Y[0, 0], k, &out[0, 0], n_threads)


def column_ranks(const real[:, ::1] X, const real[:, ::1] knots, real[:, ::1] out, int n_threads):
    cdef int64_t n = X.shape[0], d = X.shape[1], n_knots = knots.shape[1]
    _require(n > 0 and d > 0 and n_knots > 0 and knots.shape[0] == d, "knots")
    _require(out.shape[0] == n and out.shape[1] == d, "out")
    with nogil:
        kernels_for(&X[0, 0]).column_ranks(rows(&X[0, 0], n, d), &knots[0, 0], n_knots, &out[0, 0], n_threads)


def assign(const real[:, ::1] X, const real[:, ::1] centers, int32_t[::1] labels, real[::1] nearest, int n_threads):
    cdef int64_t n = X.shape[0], d = X.shape[1], k = centers.shape[0]
    _require_assignment(X, centers, labels, nearest)
    with nogil:
        kernels_for(&X[0, 0]).assign(
            rows(&X[0, 0], n, d), &centers[0, 0], k, &labels[0], &nearest[0], NULL, NULL, n_threads
        )


def assign_sums(
    const real[:, ::1] X, const real[:, ::1] centers, int32_t[::1] labels, real[::1] nearest,
    double[:, ::1] sums, int64_t[::1] counts, int n_threads,
):
    cdef int64_t n = X.shape[0], d = X.shape[1], k = centers.shape[0]
    _require_assignment(X, centers, labels, nearest)
    _require(sums.shape[0] == k and sums.shape[1] == d, "sums")
    _require(counts.shape[0] == k, "counts")
    with nogil:
        kernels_for(&X[0, 0]).assign(
            rows(&X[0, 0], n, d), &centers[0, 0], k, &labels[0], &nearest[0], &sums[0, 0], &counts[0], n_threads
        )


def seed(const real[:, ::1] X, const double[:, ::1] uniforms, int64_t[::1] chosen, int n_threads):
    cdef int64_t n = X.shape[0], d = X.shape[1], k = chosen.shape[0]
    _require(n > 0 and d > 0, "X")
    _require(k > 0 and uniforms.shape[0] == k and uniforms.shape[1] > 0, "uniforms")
    with nogil:
        kernels_for(&X[0, 0]).seed(
            rows(&X[0, 0], n, d), k, &uniforms[0, 0], uniforms.shape[1], &chosen[0], n_threads
        )


def lloyd(const real[:, ::1] X, real[:, ::1] centers, int64_t max_iter, int32_t[::1] labels, int n_threads):
    cdef int64_t n = X.shape[0], d = X.shape[1], k = centers.shape[0]
    cdef int64_t n_iter
    cdef double inertia = 0
    _require_centers(X, centers, "centers")
    _require(labels.shape[0] == n, "labels")
    with nogil:
        n_iter = kernels_for(&X[0, 0]).lloyd(
            rows(&X[0, 0], n, d), &centers[0, 0], k, max_iter, &labels[0], &inertia, n_threads
        )
    return inertia, n_iter


def gram_matrix(const real[:, ::1] X, double[:, ::1] out, int n_threads):
    cdef int64_t n = X.shape[0], d = X.shape[1]
    _require(n > 0 and d > 0, "X")
    _require(out.shape[0] == n and out.shape[1] == n, "out")
    with nogil:
        kernels_for(&X[0, 0]).gram_matrix(rows(&X[0, 0], n, d), &out[0, 0], n_threads)


REDUCTIONS = ("min", "max", "mean", "deviation")


def bag_reduce(const real[:, ::1] values, const int64_t[::1] offsets, str how, real[:, ::1] out, int n_threads):
    cdef int64_t n = values.shape[0], d = values.shape[1], n_bags = offsets.shape[0] - 1
    cdef int reduction = REDUCTIONS.index(how)
    _require_bags(offsets, n)
    _require(out.shape[0] == n_bags and out.shape[1] == d, "out")
    if n_bags == 0 or d == 0:
        return
    with nogil:
        c_bag_reduce(reduction, bag_rows(&values[0, 0], n, d, &offsets[0], n_bags), &out[0, 0], n_threads)


def bag_moments(const real[:, ::1] values, const int64_t[::1] offsets, double[:, :, ::1] out, int n_threads):
    cdef int64_t n = values.shape[0], d = values.shape[1], n_bags = offsets.shape[0] - 1
    _require_bags(offsets, n)
    _require(out.shape[0] == n_bags and out.shape[1] == 3 and out.shape[2] == d, "out")
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
    _require_bags(offsets, n)
    _require(smallest.shape[0] == n_bags and smallest.shape[1] == d, "smallest")
    _require(where.shape[0] == n_bags and where.shape[1] == d, "where")
    _require(second.shape[0] == n_bags and second.shape[1] == d, "second")
    if n_bags == 0 or d == 0:
        return
    with nogil:
        kernels_for(&values[0, 0]).bag_two_min(
            bag_rows(&values[0, 0], n, d, &offsets[0], n_bags),
            &smallest[0, 0], &where[0, 0], &second[0, 0], n_threads,
        )


def bag_histograms(const int32_t[::1] labels, const int64_t[::1] offsets, int64_t[:, ::1] out):
    cdef int64_t n_bags = offsets.shape[0] - 1, n_bins = out.shape[1], bad
    _require_bags(offsets, labels.shape[0])
    _require(out.shape[0] == n_bags and n_bins > 0, "out")
    if n_bags == 0:
        return
    with nogil:
        bad = c_bag_histograms(&labels[0], &offsets[0], n_bags, n_bins, &out[0, 0])
    _require_labels(bad, labels, n_bins)


def class_histograms(
    const int32_t[::1] labels, const int64_t[::1] offsets, const int64_t[::1] classes, int64_t[:, ::1] out
):
    cdef int64_t n_bags = offsets.shape[0] - 1, n_bins = out.shape[1], bad, b
    _require_bags(offsets, labels.shape[0])
    _require(out.shape[0] > 0 and n_bins > 0, "out")
    _require(classes.shape[0] == n_bags, "classes")
    for b in range(n_bags):
        _require(0 <= classes[b] < out.shape[0], "classes")
    if n_bags == 0:
        return
    with nogil:
        bad = c_class_histograms(&labels[0], &offsets[0], n_bags, &classes[0], n_bins, &out[0, 0])
    _require_labels(bad, labels, n_bins)


cdef inline int _require_jobs(const double[:, ::1] gram, const uint8_t[:, ::1] members) except -1:
    cdef int64_t n = gram.shape[0], job, i
    cdef bint trains
    _require(n > 0 and gram.shape[1] == n, "gram")
    _require(members.shape[0] > 0 and members.shape[1] == n, "members")
    for job in range(members.shape[0]):
        trains = False
        for i in range(n):
            if members[job, i] != 0:
                trains = True
                break
        if not trains:
            raise ValueError(f"Job {job} has no member, but at least one row must train it.")
    return 0


def gram_seed(
    const double[:, ::1] gram, const uint8_t[:, ::1] members, const double[:, :, ::1] uniforms,
    int64_t[:, ::1] chosen, int n_threads,
):
    cdef int64_t n = gram.shape[0], n_jobs = members.shape[0], k = chosen.shape[1]
    _require_jobs(gram, members)
    _require(chosen.shape[0] == n_jobs and k > 0, "chosen")
    _require(uniforms.shape[0] == n_jobs and uniforms.shape[1] == k and uniforms.shape[2] > 0, "uniforms")
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
    _require_jobs(gram, members)
    _require(starts.shape[0] == n_jobs and k > 0, "starts")
    for job in range(n_jobs):
        for q in range(k):
            _require(0 <= starts[job, q] < n, "starts")
    _require(labels.shape[0] == n_jobs and labels.shape[1] == n, "labels")
    _require(squares.shape[0] == n_jobs and squares.shape[1] == n and squares.shape[2] == k, "squares")
    _require(inertia.shape[0] == n_jobs and n_iter.shape[0] == n_jobs, "inertia")
    with nogil:
        active_variant().gram.lloyd(
            gram_jobs(&gram[0, 0], n, &members[0, 0], n_jobs, k), &starts[0, 0], max_iter,
            &labels[0, 0], &squares[0, 0, 0], &inertia[0], &n_iter[0], n_threads,
        )


def integrate_gradients(
    const uint8_t[:, ::1] before, const uint8_t[:, ::1] now, const uint8_t[:, ::1] after, int32_t[:, :, ::1] sums
):
    cdef int64_t height = now.shape[0], width = now.shape[1]
    _require(height > 0 and width > 0, "now")
    _require(before.shape[0] == height and before.shape[1] == width, "before")
    _require(after.shape[0] == height and after.shape[1] == width, "after")
    _require(sums.shape[0] == 3 and sums.shape[1] == height + 1 and sums.shape[2] == width + 1, "sums")
    with nogil:
        active_variant().video.integrate_gradients(
            frames_of(&before[0, 0], &now[0, 0], &after[0, 0], height, width), &sums[0, 0, 0]
        )


cdef inline int _require_edges(const int64_t[::1] edges, int64_t blocks, int64_t size, str what) except -1:
    cdef int64_t i, n = edges.shape[0] - 1
    _require(n > 0 and n % blocks == 0 and edges[0] >= 0 and edges[n] < size, what)
    for i in range(n):
        _require(edges[i] < edges[i + 1], what)
    return 0


def add_directions(
    const int32_t[:, :, ::1] sums, int32_t[:, :, ::1] corners, const int64_t[::1] rows, const int64_t[::1] columns,
    int64_t blocks, double frames, const float[:, ::1] normals, float neighbour_cosine, bint half,
    float[:, :, ::1] histograms, float[:, ::1] lengths,
):
    cdef int64_t n_rows = rows.shape[0] - 1, n_columns = columns.shape[0] - 1, n_faces = normals.shape[0]
    _require(blocks > 0, "blocks")
    _require(frames > 0, "frames")
    _require(sums.shape[0] == 3, "sums")
    _require_edges(rows, blocks, sums.shape[1], "rows")
    _require_edges(columns, blocks, sums.shape[2], "columns")
    _require(
        corners.shape[0] == 3 and corners.shape[1] == n_rows + 1 and corners.shape[2] == n_columns + 1, "corners"
    )
    _require(0 < n_faces <= kMostFaces and normals.shape[1] == 3, "normals")
    _require(lengths.shape[0] == n_rows // blocks and lengths.shape[1] == n_columns // blocks, "lengths")
    _require(
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
    _require(n_layers > 0 and n_faces > 0 and 0 <= first < n_layers, "first")
    _require(n_boxes > 0 and places.shape[1] == 2 and side > 0, "places")
    for i in range(n_boxes):
        _require(0 <= places[i, 0] <= cells.shape[1] - side and 0 <= places[i, 1] <= cells.shape[2] - side, "places")
    _require(out.shape[0] == n_boxes and out.shape[1] == side * side * n_layers * n_faces, "out")
    with nogil:
        active_variant().video.cell_boxes(
            cells_of(&cells[0, 0, 0, 0], n_layers, cells.shape[1], cells.shape[2], n_faces),
            first, &places[0, 0], n_boxes, side, clip, &out[0, 0],
        )
