//! Standard output: everything a command prints goes through here, so that a reader who has seen enough ends it.

use std::io::{self, Write};

use super::failure::Failure;
use tilefs::export::{Content, Forward};
use tilefs::read_ahead::{MAX_WINDOW, ReadAhead, Reader};

/// How much is read and written first: a reader who wants a header only should not wait for more.
const FIRST_BLOCK: u64 = 4 << 10;

/// To how much at a time that grows.
const BLOCK: u64 = 1 << 20;

/// Prints a text that ends in a line break.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut output = io::stdout().lock();
    output.write_all(text.as_bytes())?;
    output.flush()?;
    Ok(())
}

/// Prints all bytes of a file, in blocks, reading ahead.
pub fn copy(content: std::sync::Arc<dyn Content>, workers: usize, cache_size: u64) -> Result<(), Failure> {
    let mut output = io::stdout().lock();
    let reader = std::sync::Arc::new(Reader::new(content));
    let length = reader.content().len();
    // The default window is for caches of the default size.
    let read_ahead = ReadAhead::new(workers, MAX_WINDOW.min(cache_size / 8));
    let mut block = vec![0; length.min(BLOCK) as usize];
    let (mut offset, mut next) = (0, FIRST_BLOCK);
    while offset < length {
        let now = next.min(length - offset);
        next = BLOCK.min(2 * next);
        let bytes = &mut block[..now as usize];
        read_ahead.note(&reader, offset, now);
        reader.content().read_at(offset, bytes)?;
        output.write_all(bytes)?;
        offset += now;
    }
    output.flush()?;
    Ok(())
}

/// Prints a file whose length nobody knows yet.
pub fn copy_forward(mut forward: Box<dyn Forward>) -> Result<(), Failure> {
    let mut output = io::stdout().lock();
    let mut bytes = Vec::new();
    while forward.next(&mut bytes)? {
        output.write_all(&bytes)?;
    }
    output.flush()?;
    Ok(())
}
