//! The integers of the arithmetic filters. Arithmetic wraps, so signed and unsigned integers of the same width need no
//! distinction.

use crate::datatype::Datatype;

/// The width of a value.
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

    /// Returns the width of this many bytes.
    pub fn of_bytes(bytes: u64) -> Option<Self> {
        match bytes {
            1 => Some(Width::One),
            2 => Some(Width::Two),
            4 => Some(Width::Four),
            8 => Some(Width::Eight),
            _ => None,
        }
    }

    /// Returns the type of signed integers of this width.
    pub fn signed(self) -> Datatype {
        match self {
            Width::One => Datatype::Int8,
            Width::Two => Datatype::Int16,
            Width::Four => Datatype::Int32,
            Width::Eight => Datatype::Int64,
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

/// Calls a function that is generic over [`Integer`] with the integer of a [`Width`].
macro_rules! with_integer {
    ($width:expr, $($function:ident)::+($($argument:expr),* $(,)?)) => {
        match $width {
            $crate::filter::integer::Width::One => $($function)::+::<u8>($($argument),*),
            $crate::filter::integer::Width::Two => $($function)::+::<u16>($($argument),*),
            $crate::filter::integer::Width::Four => $($function)::+::<u32>($($argument),*),
            $crate::filter::integer::Width::Eight => $($function)::+::<u64>($($argument),*),
        }
    };
}
pub(super) use with_integer;

/// An integer that is stored little-endian, at any alignment.
pub(super) trait Integer: Copy {
    const BYTES: usize;

    /// Reads the value from the first `BYTES` bytes of a slice that is at least that long.
    fn load(bytes: &[u8]) -> Self;
    /// Writes the value to the first `BYTES` bytes of a slice that is at least that long.
    fn store(self, bytes: &mut [u8]);
    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    fn xor(self, other: Self) -> Self;
    /// Returns the low bits of an integer.
    fn truncate(value: u64) -> Self;
}

macro_rules! integer {
    ($($integer:ty)*) => {$(
        impl Integer for $integer {
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
integer!(u8 u16 u32 u64);
