# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Checks of shapes, bags and labels: no kernel reads past an array."""

from libc.stdint cimport int32_t, int64_t, uint8_t
from gmil.engine.native._cpp cimport first_bad_bag, real


cdef inline int require(bint condition, str what) except -1:
    if not condition:
        raise ValueError(f"{what} does not fit the other arguments.")
    return 0


cdef inline int require_bags(const int64_t[::1] offsets, int64_t n_rows) except -1:
    require(offsets.shape[0] >= 1, "offsets")
    cdef int64_t bad = first_bad_bag(&offsets[0], offsets.shape[0] - 1, n_rows)
    if bad >= 0:
        raise ValueError(
            f"Bag {bad} runs from row {offsets[bad]} to row {offsets[bad + 1]} of {n_rows}, "
            "but every bag must have at least one row."
        )
    return 0


cdef inline int require_all_rows(const int64_t[::1] offsets, int64_t n_rows) except -1:
    require_bags(offsets, n_rows)
    return require(offsets[0] == 0 and offsets[offsets.shape[0] - 1] == n_rows, "offsets")


cdef inline int require_labels(int64_t bad_row, const int32_t[::1] labels, int64_t n_bins) except -1:
    if bad_row >= 0:
        raise ValueError(f"Row {bad_row} has label {labels[bad_row]}, but labels must be from 0 to {n_bins - 1}.")
    return 0


cdef inline int require_centers(const real[:, ::1] X, const real[:, ::1] centers, str what) except -1:
    return require(
        X.shape[0] > 0 and X.shape[1] > 0 and centers.shape[0] > 0 and centers.shape[1] == X.shape[1], what
    )


cdef inline int require_pairs(
    const real[:, ::1] X, const real[:, ::1] others, const real[:, ::1] out, str what
) except -1:
    require_centers(X, others, what)
    return require(out.shape[0] == X.shape[0] and out.shape[1] == others.shape[0], "out")


cdef inline int require_assignment(
    const real[:, ::1] X, const real[:, ::1] centers, const int32_t[::1] labels, const real[::1] nearest
) except -1:
    require_centers(X, centers, "centers")
    require(labels.shape[0] == X.shape[0], "labels")
    return require(nearest.shape[0] == X.shape[0], "nearest")


cdef inline int require_jobs(const double[:, ::1] gram, const uint8_t[:, ::1] members) except -1:
    cdef int64_t n = gram.shape[0], job, i
    cdef bint trains
    require(n > 0 and gram.shape[1] == n, "gram")
    require(members.shape[0] > 0 and members.shape[1] == n, "members")
    for job in range(members.shape[0]):
        trains = False
        for i in range(n):
            if members[job, i] != 0:
                trains = True
                break
        if not trains:
            raise ValueError(f"Job {job} has no member, but at least one row must train it.")
    return 0


cdef inline int require_edges(const int64_t[::1] edges, int64_t blocks, int64_t size, str what) except -1:
    cdef int64_t i, n = edges.shape[0] - 1
    require(n > 0 and n % blocks == 0 and edges[0] >= 0 and edges[n] < size, what)
    for i in range(n):
        require(edges[i] < edges[i + 1], what)
    return 0
