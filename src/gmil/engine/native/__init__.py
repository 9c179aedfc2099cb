"""The compiled kernels: C++ behind one Cython module.

``_kernels`` is built when the package is installed with a C++ compiler at hand, and missing otherwise; import this
package freely, and ``gmil.engine.native.backend`` only through :func:`gmil.engine.resolve`.
"""
