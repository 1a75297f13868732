//! How much the tests try: what a quick run has time for, or with `FENCEPOST_LONG=1` (`tests/run --long`) more.

/// Whether this is a long run.
pub fn is_long() -> bool {
    std::env::var("FENCEPOST_LONG").is_ok_and(|value| !matches!(&*value, "" | "0"))
}

/// So many of something: seeds, cases, paths.
pub fn count<T>(quick: T, long: T) -> T {
    if is_long() { long } else { quick }
}
