//! Row 7: row 6, where the transfer queue waits for the event's semaphore as well: llama.cpp pull request
//! 25229. Trace `pr25229-merged.copy-overtakes-wait`.

use super::row5::Lists;

/// Row 7.
pub type Row7 = Lists<7>;
