"""Threads of BLAS, and threads that solve rows."""
