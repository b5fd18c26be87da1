//! The number types as which cells can be read.

use bytemuck::Pod;
use tilefs_format::datatype::{Datatype, Kind};

/// A number type. `i64` also reads dates and times, as counts of their unit. A cell of several values gives several
/// numbers.
pub trait Number: sealed::Sealed + Pod + Default + Send + Sync {
    /// Returns whether values of a datatype have the kind and the size of this type. Values are never converted.
    fn reads(datatype: Datatype) -> bool;
}

pub(super) mod sealed {
    /// Prevents other crates from adding number types.
    pub trait Sealed {
        /// Converts from little-endian bytes.
        fn of_little_endian(self) -> Self;
    }
}

macro_rules! numbers {
    ($kind:ident: $($number:ty),*) => {$(
        impl sealed::Sealed for $number {
            fn of_little_endian(self) -> Self {
                <$number>::from_le_bytes(self.to_ne_bytes())
            }
        }

        impl Number for $number {
            fn reads(datatype: Datatype) -> bool {
                datatype.kind() == Kind::$kind && datatype.size() == size_of::<$number>()
            }
        }
    )*};
}

numbers!(Signed: i8, i16, i32, i64);
numbers!(Unsigned: u8, u16, u32, u64);
numbers!(Float: f32, f64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_type_reads_only_its_own_datatype() {
        assert!(i64::reads(Datatype::DateTimeDay) && i64::reads(Datatype::Int64) && u8::reads(Datatype::Bool));
        assert!(!i64::reads(Datatype::UInt64) && !f32::reads(Datatype::Float64) && !u8::reads(Datatype::StringAscii));
    }
}
