#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| playhouse_theater::fuzz::session(bytes));
