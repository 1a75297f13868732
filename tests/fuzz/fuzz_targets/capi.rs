#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fencepost_tests::fuzz::capi(bytes));
