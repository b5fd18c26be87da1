//! Fallible allocation of sizes that come from stored numbers: an error instead of an abort.

use tilefs_format::error::{Error, Result};

/// Resizes a vector to `length`, filling new elements with zero.
///
/// # Errors
/// [`Error::Unsupported`] if there is not enough memory; `what` names its purpose in the message.
pub fn resize<T: Copy + Default>(vector: &mut Vec<T>, length: usize, what: &str) -> Result<()> {
    let missing = length.saturating_sub(vector.len());
    vector.try_reserve(missing).map_err(|_| not_enough(length.saturating_mul(size_of::<T>()), what))?;
    vector.resize(length, T::default());
    Ok(())
}

/// Allocates `count` times `size` zero bytes.
///
/// # Errors
/// As [`resize`].
pub fn zeros(count: u64, size: usize, what: &str) -> Result<Vec<u8>> {
    let length = usize::try_from(count).ok().and_then(|count| count.checked_mul(size));
    let mut bytes = Vec::new();
    resize(&mut bytes, length.ok_or_else(|| not_enough(usize::MAX, what))?, what)?;
    Ok(bytes)
}

fn not_enough(bytes: usize, what: &str) -> Error {
    Error::unsupported(format!("{bytes} bytes for {what}: not enough memory"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_allocation_is_an_error() {
        let mut some = vec![7u16];
        resize(&mut some, 3, "numbers").unwrap();
        assert_eq!(some, [7, 0, 0]);
        let error = resize(&mut some, 1 << 60, "numbers").unwrap_err();
        assert!(error.to_string().contains("2305843009213693952 bytes for numbers: not enough memory"), "{error}");
        assert_eq!(some, [7, 0, 0]);
        resize(&mut some, 1, "numbers").unwrap();
        assert_eq!(some, [7]);
        assert_eq!(zeros(3, 2, "cells").unwrap(), [0; 6]);
        assert!(zeros(u64::MAX, 2, "cells").is_err() && zeros(1 << 61, 1, "cells").is_err());
    }
}
