//! Black-box tests of GPU event backends.
//!
//! [`reference`] says what events mean in sets, and shares no code with the machine; [`program`] holds the runtime to it.

pub mod program;
pub mod reference;
