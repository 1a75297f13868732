//! Row 2: row 1 with the wait submitted: llama.cpp pull request 20518, first fix.

use super::row1::OneEach;

/// Row 2.
pub type Row2 = OneEach<2>;
