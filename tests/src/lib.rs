//! Black-box tests of GPU event backends.
//!
//! [`reference`] says what events mean in sets, and shares no code with the machine; [`program`] holds the runtime to it;
//! [`conformance`] holds any backend to it.

pub mod conformance;
pub mod program;
pub mod reference;
