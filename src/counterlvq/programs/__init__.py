"""Programs in numbers: what solvers are handed, and what bounds are computed from.

`duality_kernel` is believed as certificates are. It is here because the compiled kernels of
the solvers sum the same terms, and solvers do not see `certificates`.
"""
