"""What the C++ under ``cpp`` offers, as Cython sees it."""

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
        RbfKernels rbf
        SvmKernels svm
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
    cppclass WeightedBags:
        pass
    Rows[T] rows[T](const T*, int64_t, int64_t)
    BagRows[T] bag_rows[T](const T*, int64_t, int64_t, const int64_t*, int64_t)
    WeightedBags weighted_bags(const double*, int64_t, int64_t, const double*, const int64_t*, int64_t)
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

    cppclass RbfKernels:
        void sums(
            const WeightedBags&, const WeightedBags&, const double*, int64_t, bint, double*, int
        ) except +raise_python_error

    cppclass SvmProblem:
        pass
    SvmProblem svm_problem(const double*, int64_t, const uint8_t*, const double*)
    cppclass SvmKernels:
        int64_t solve(
            const SvmProblem&, double, int64_t, const double*, double*, double*, double*
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

    bint c_solve_margin_program "gmil::solve_margin_program"(
        const double*, const double*, int64_t, int64_t, int64_t, double*, double*
    ) except +raise_python_error

    void c_join_helpers "gmil::join_helpers"()
    void c_forget_helpers "gmil::forget_helpers"()
    void set_interrupt_check(int (*)() noexcept nogil)
