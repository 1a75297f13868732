//! Black-box tests of GPU event backends.
//!
//! [`mod@reference`] says what events mean in sets, and shares no code with the machine; [`program`] holds the runtime to it,
//! and [`conformance`] any backend. [`scenario`] tells stories of the machine and the GPU below it.

pub mod budget;
pub mod conformance;
pub mod fuzz;
pub mod program;
pub mod reference;
pub mod scenario;
