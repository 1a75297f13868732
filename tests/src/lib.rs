//! Black-box tests of GPU event backends.
