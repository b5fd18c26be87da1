//! Loops compiled for the widest vectors of the processor: the portable build may only use the oldest instruction set.
//!
//! Invariant of the `unsafe` block: a function compiled for AVX2 is entered only if [`std::is_x86_feature_detected`]
//! found AVX2.
#![allow(unsafe_code)]

/// Runs `work`, a branch-free loop, compiled for 32-byte vectors if the processor has AVX2. The result is the same.
#[inline]
pub(crate) fn in_wide_vectors<T>(work: impl FnOnce() -> T) -> T {
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
        fn wide_vectors_give_the_same_result(values in prop::collection::vec(any::<u64>(), 0..300)) {
            let sum = || values.iter().fold(0, |sum: u64, value| sum ^ value.wrapping_sub(7));
            prop_assert_eq!(in_wide_vectors(sum), sum());
        }
    }
}
