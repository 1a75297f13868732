//! Row 6: row 5, with asynchronous copies on a transfer queue that a wait does not cover: llama.cpp before
//! pull request 25229. Trace `pr25229-before.copy-overtakes-wait`.

use super::row5::Lists;

/// Row 6.
pub type Row6 = Lists<6>;
