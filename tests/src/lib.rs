//! Black-box tests of GPU event backends.

pub mod scenario;
