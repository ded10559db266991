"""The threads of BLAS, and threads that solve rows."""
