"""What is compiled: kernels over vectors and addresses, and what calls them. Importing them imports Numba."""
