//! The integers that the arithmetic filters work on. Their sums wrap, so a signed and an unsigned
//! integer of one width are the same thing here.

use crate::format::datatype::Datatype;

/// Width of one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Width {
    One,
    Two,
    Four,
    Eight,
}

impl Width {
    pub fn of(datatype: Datatype) -> Self {
        match datatype.size() {
            1 => Width::One,
            2 => Width::Two,
            4 => Width::Four,
            _ => Width::Eight,
        }
    }

    pub fn bytes(self) -> usize {
        match self {
            Width::One => 1,
            Width::Two => 2,
            Width::Four => 4,
            Width::Eight => 8,
        }
    }
}

/// Calls a function that is generic over [`Element`] with the integer of a [`Width`].
macro_rules! with_element {
    ($width:expr, $($function:ident)::+($($argument:expr),* $(,)?)) => {
        match $width {
            $crate::filter::element::Width::One => $($function)::+::<u8>($($argument),*),
            $crate::filter::element::Width::Two => $($function)::+::<u16>($($argument),*),
            $crate::filter::element::Width::Four => $($function)::+::<u32>($($argument),*),
            $crate::filter::element::Width::Eight => $($function)::+::<u64>($($argument),*),
        }
    };
}
pub(super) use with_element;

/// An integer that is stored little-endian, at any alignment.
pub(super) trait Element: Copy {
    const BYTES: usize;

    /// The value in the first `BYTES` bytes of a slice that is at least that long.
    fn load(bytes: &[u8]) -> Self;
    /// Writes the value to the first `BYTES` bytes of a slice that is at least that long.
    fn store(self, bytes: &mut [u8]);
    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    fn xor(self, other: Self) -> Self;
    /// The low bits of an integer.
    fn truncate(value: u64) -> Self;
}

macro_rules! element {
    ($($integer:ty)*) => {$(
        impl Element for $integer {
            const BYTES: usize = size_of::<$integer>();

            #[inline(always)]
            fn load(bytes: &[u8]) -> Self {
                let mut array = [0; size_of::<$integer>()];
                array.copy_from_slice(&bytes[..size_of::<$integer>()]);
                <$integer>::from_le_bytes(array)
            }

            #[inline(always)]
            fn store(self, bytes: &mut [u8]) {
                bytes[..size_of::<$integer>()].copy_from_slice(&self.to_le_bytes());
            }

            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }

            #[inline(always)]
            fn minus(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }

            #[inline(always)]
            fn xor(self, other: Self) -> Self {
                self ^ other
            }

            #[inline(always)]
            fn truncate(value: u64) -> Self {
                value as $integer
            }
        }
    )*};
}
element!(u8 u16 u32 u64);
