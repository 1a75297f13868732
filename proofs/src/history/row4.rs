//! Row 4: several VkEvents with a pending and a submitted list, freed at `synchronize`; a timeline semaphore
//! for each event: llama.cpp pull request 20518, third try.

use super::row5::Lists;

/// Row 4.
pub type Row4 = Lists<4>;
