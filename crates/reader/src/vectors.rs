//! Loops in the widest vectors that the processor has: what is compiled for all processors has to do with those of the
//! oldest.
//!
//! Invariant of the `unsafe` block: a function that is compiled for AVX2 is entered only where
//! [`std::is_x86_feature_detected`] has found it.
#![allow(unsafe_code)]

/// Does `work`, a loop without branches, with vectors of 32 bytes where the processor has AVX2. The same comes of it.
#[inline]
pub fn in_wide_vectors<T>(work: impl FnOnce() -> T) -> T {
    #[cfg(target_arch = "x86_64")]
    if std::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2.
        return unsafe { with_avx2(work) };
    }
    work()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn with_avx2<T>(work: impl FnOnce() -> T) -> T {
    work()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn vectors_do_what_the_loop_does(values in prop::collection::vec(any::<u64>(), 0..300)) {
            let sum = || values.iter().fold(0, |sum: u64, value| sum ^ value.wrapping_sub(7));
            prop_assert_eq!(in_wide_vectors(sum), sum());
        }
    }
}
