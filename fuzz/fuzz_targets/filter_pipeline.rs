#![no_main]
//! Whole pipelines: the input contains the filters, in the form in which schemas store them.

use tilefs_format::cursor::Cursor;
use tilefs_format::pipeline::Pipeline;
use tilefs_fuzz::Input;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(input) = Input::parse(bytes) else { return };
    let Ok(pipeline) = Pipeline::parse(&mut Cursor::new(&input.pipeline)) else { return };
    input.decode(pipeline.filters);
});
