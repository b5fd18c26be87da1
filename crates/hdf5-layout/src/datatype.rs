//! Datatypes, and the Datatype message (specification, IV.A.2.d).

use std::collections::HashSet;

use crate::error::Problem;

/// Maximum nesting depth of datatypes.
const DEPTH: usize = 16;

/// HDF5's maximum number of axes of dataspaces and of array datatypes.
pub(crate) const MAX_RANK: usize = 32;

/// The representation of an element. All numbers are little-endian.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "the comments of the variants name the fields")]
pub enum Datatype {
    /// An integer of 1, 2, 4 or 8 bytes.
    Integer { size: u32, is_signed: bool },
    /// An IEEE 754 number of 2, 4 or 8 bytes.
    Float { size: u32 },
    /// Text of a fixed length in bytes.
    FixedString { size: u32, padding: StringPadding, character_set: CharacterSet },
    /// Text of variable length, in the global heap.
    VariableString { character_set: CharacterSet },
    /// A variable number of elements of one type, in the global heap.
    Sequence { element: Box<Datatype> },
    /// Bytes without a meaning to HDF5. They have no tag, because h5py rejects all tags except its own.
    Opaque { size: u32 },
    /// Names for values of an integer type; each name has the bytes of its value.
    Enumeration { base: Box<Datatype>, members: Vec<(String, Vec<u8>)> },
    /// Members at offsets within `size` bytes.
    Compound { size: u32, members: Vec<CompoundMember> },
    /// A box of elements in row-major order.
    Array { shape: Vec<u32>, element: Box<Datatype> },
    /// The address of an object header ([`FileLayout::address`](crate::FileLayout::address)).
    ObjectReference,
}

/// A member of a compound datatype.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompoundMember {
    /// The name of the member.
    pub name: String,
    /// The offset of the member in the compound, in bytes.
    pub offset: u32,
    /// The type of the member.
    pub datatype: Datatype,
}

/// The padding after the text in a string of fixed length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StringPadding {
    /// At least one NUL.
    NullTerminated,
    /// Zeros, or nothing.
    NullPadded,
    /// Spaces, or nothing.
    SpacePadded,
}

/// The character set of a string, an attribute's name or a link's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CharacterSet {
    /// ASCII.
    Ascii,
    /// UTF-8.
    Utf8,
}

impl StringPadding {
    fn code(self) -> u32 {
        match self {
            StringPadding::NullTerminated => 0,
            StringPadding::NullPadded => 1,
            StringPadding::SpacePadded => 2,
        }
    }
}

impl CharacterSet {
    pub(crate) fn code(self) -> u8 {
        match self {
            CharacterSet::Ascii => 0,
            CharacterSet::Utf8 => 1,
        }
    }

    /// Returns the character set that a text requires.
    pub(crate) fn of(text: &str) -> Self {
        if text.is_ascii() { CharacterSet::Ascii } else { CharacterSet::Utf8 }
    }
}

impl Datatype {
    /// Creates a signed integer of `size` bytes.
    pub fn signed(size: u32) -> Self {
        Datatype::Integer { size, is_signed: true }
    }

    /// Creates an unsigned integer of `size` bytes.
    pub fn unsigned(size: u32) -> Self {
        Datatype::Integer { size, is_signed: false }
    }

    /// Creates a boolean as h5py writes it: a byte, with the names FALSE for 0 and TRUE for 1.
    pub fn boolean() -> Self {
        let members = vec![("FALSE".to_owned(), vec![0]), ("TRUE".to_owned(), vec![1])];
        Datatype::Enumeration { base: Box::new(Datatype::signed(1)), members }
    }

    /// Creates a complex number as h5py writes it: the members `r` and `i`, each a float of `part` bytes.
    pub fn complex(part: u32) -> Self {
        let member = |name: &str, offset| CompoundMember {
            name: name.to_owned(),
            offset,
            datatype: Datatype::Float { size: part },
        };
        Datatype::Compound { size: part.saturating_mul(2), members: vec![member("r", 0), member("i", part)] }
    }

    /// Creates text of variable length in UTF-8.
    pub fn text() -> Self {
        Datatype::VariableString { character_set: CharacterSet::Utf8 }
    }

    /// Returns the size in bytes of an element in a dataset or attribute; an element in the global heap counts as its
    /// global heap ID.
    ///
    /// # Errors
    /// Fails if HDF5 does not support the type.
    pub fn size(&self) -> std::result::Result<u32, Problem> {
        self.check(DEPTH, true)
    }

    /// Returns whether the elements are in the global heap.
    pub fn has_variable_length(&self) -> bool {
        matches!(self, Datatype::VariableString { .. } | Datatype::Sequence { .. })
    }

    /// Returns the size in bytes of the units in which the length of an element in the global heap is counted: one byte
    /// for a string.
    pub(crate) fn heap_part(&self) -> u32 {
        match self {
            Datatype::Sequence { element } => element.size().unwrap_or(1),
            _ => 1,
        }
    }

    /// Checks that HDF5 supports this type; returns the size of an element in bytes.
    fn check(&self, depth: usize, may_vary: bool) -> std::result::Result<u32, Problem> {
        let wrong = |reason| Err(Problem::Datatype { reason });
        let Some(depth) = depth.checked_sub(1) else { return wrong("types are nested too deeply") };
        match self {
            Datatype::Integer { size: size @ (1 | 2 | 4 | 8), .. } | Datatype::Float { size: size @ (2 | 4 | 8) } => {
                Ok(*size)
            }
            Datatype::Integer { .. } => wrong("an integer of this many bytes"),
            Datatype::Float { .. } => wrong("a float of this many bytes"),
            Datatype::FixedString { size: 0, .. } => wrong("a string of no bytes"),
            Datatype::FixedString { size, .. } => Ok(*size),
            Datatype::VariableString { .. } if may_vary => Ok(16),
            Datatype::Sequence { element } if may_vary => element.check(depth, false).map(|_| 16),
            Datatype::VariableString { .. } | Datatype::Sequence { .. } => wrong("variable length within another type"),
            Datatype::Opaque { size: 0 } => wrong("opaque data of no bytes"),
            Datatype::Opaque { size } => Ok(*size),
            Datatype::Enumeration { base, members } => {
                if !matches!(**base, Datatype::Integer { .. }) {
                    return wrong("an enumeration of values that are not integers");
                }
                let size = base.check(depth, false)?;
                check_names(members.iter().map(|(name, _)| name))?;
                if members.iter().any(|(_, value)| value.len() != size as usize) {
                    return wrong("the length of an enumeration's value differs from that of its type");
                }
                Ok(size)
            }
            Datatype::Compound { size, members } => {
                check_names(members.iter().map(|member| &member.name))?;
                let mut places = Vec::with_capacity(members.len());
                for member in members {
                    let length = member.datatype.check(depth, false)?;
                    let Some(end) = member.offset.checked_add(length).filter(|end| end <= size) else {
                        return wrong("a member of a compound type lies outside it");
                    };
                    places.push((member.offset, end));
                }
                places.sort_unstable();
                if places.windows(2).any(|pair| pair[0].1 > pair[1].0) {
                    return wrong("members of a compound type overlap");
                }
                Ok(*size)
            }
            Datatype::Array { shape, element } => {
                let size = element.check(depth, false)?;
                if shape.is_empty() || shape.len() > MAX_RANK || shape.contains(&0) {
                    return wrong("an array type without elements, or with more than 32 axes");
                }
                let all = shape.iter().try_fold(size, |all, length| all.checked_mul(*length));
                all.map_or_else(|| wrong("an array type of 4 GiB or more"), Ok)
            }
            Datatype::ObjectReference => Ok(8),
        }
    }

    /// Appends the Datatype message of a checked type.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        self.encode_version(if self.has_array() { 2 } else { 1 }, out);
    }

    /// Returns whether this contains an array type, which the first version of the message does not support.
    fn has_array(&self) -> bool {
        match self {
            Datatype::Array { .. } => true,
            Datatype::Compound { members, .. } => members.iter().any(|member| member.datatype.has_array()),
            Datatype::Sequence { element } => element.has_array(),
            _ => false,
        }
    }

    fn encode_version(&self, version: u8, out: &mut Vec<u8>) {
        match self {
            Datatype::Integer { size, is_signed } => {
                prefix(1, 0, if *is_signed { 8 } else { 0 }, *size, out);
                out.extend(0_u16.to_le_bytes());
                out.extend((*size as u16).wrapping_mul(8).to_le_bytes());
            }
            Datatype::Float { size } => encode_float(*size, out),
            Datatype::FixedString { size, padding, character_set } => {
                prefix(1, 3, padding.code() | u32::from(character_set.code()) << 4, *size, out);
            }
            Datatype::VariableString { character_set } => {
                prefix(1, 9, 1 | u32::from(character_set.code()) << 8, 16, out);
                Datatype::unsigned(1).encode_version(1, out);
            }
            Datatype::Sequence { element } => {
                prefix(version, 9, 0, 16, out);
                element.encode_version(version, out);
            }
            Datatype::Opaque { size } => prefix(1, 5, 0, *size, out),
            Datatype::Enumeration { base, members } => {
                prefix(version, 8, members.len() as u32, base.size().unwrap_or(0), out);
                base.encode_version(version, out);
                for (name, _) in members {
                    encode_name(name, out);
                }
                for (_, value) in members {
                    out.extend(value);
                }
            }
            Datatype::Compound { size, members } => {
                prefix(version, 6, members.len() as u32, *size, out);
                for CompoundMember { name, offset, datatype } in members {
                    encode_name(name, out);
                    out.extend(offset.to_le_bytes());
                    if version == 1 {
                        // Dimensionality and related fields: a scalar.
                        out.extend([0; 28]);
                    }
                    datatype.encode_version(version, out);
                }
            }
            Datatype::Array { shape, element } => {
                prefix(version, 10, 0, self.size().unwrap_or(0), out);
                // check() limits the rank to 32.
                out.extend([shape.len() as u8, 0, 0, 0]);
                out.extend(shape.iter().flat_map(|length| length.to_le_bytes()));
                // The permutation of the axes, which no reader uses.
                out.extend((0..shape.len() as u32).flat_map(u32::to_le_bytes));
                element.encode_version(version, out);
            }
            Datatype::ObjectReference => prefix(1, 7, 0, 8, out),
        }
    }
}

fn check_names<'a>(names: impl Iterator<Item = &'a String>) -> std::result::Result<(), Problem> {
    let mut seen = HashSet::new();
    for name in names {
        if name.is_empty() || name.contains('\0') || !seen.insert(name) {
            return Err(Problem::Datatype { reason: "a member without a name of its own" });
        }
    }
    match seen.len() {
        0 => Err(Problem::Datatype { reason: "a type without members" }),
        1..=0xffff => Ok(()),
        _ => Err(Problem::TooLarge { what: "the number of members of a type".to_owned(), limit: 0xffff }),
    }
}

/// Writes class and version, class bit field and size.
fn prefix(version: u8, class: u8, bits: u32, size: u32, out: &mut Vec<u8>) {
    out.push(version << 4 | class);
    out.extend(&bits.to_le_bytes()[..3]);
    out.extend(size.to_le_bytes());
}

fn encode_float(size: u32, out: &mut Vec<u8>) {
    let (precision, exponent_size, mantissa_size, bias): (u16, u8, u8, u32) = match size {
        2 => (16, 5, 10, 15),
        4 => (32, 8, 23, 127),
        _ => (64, 11, 52, 1023),
    };
    // The mantissa's highest bit is implied; the sign is the highest bit.
    prefix(1, 1, 0x20 | u32::from(precision - 1) << 8, size, out);
    out.extend(0_u16.to_le_bytes());
    out.extend(precision.to_le_bytes());
    out.extend([mantissa_size, exponent_size, 0, mantissa_size]);
    out.extend(bias.to_le_bytes());
}

/// Writes a name with a NUL, padded to a multiple of eight bytes.
fn encode_name(name: &str, out: &mut Vec<u8>) {
    padded(name.as_bytes(), (name.len() + 1).next_multiple_of(8), out);
}

fn padded(bytes: &[u8], length: usize, out: &mut Vec<u8>) {
    let end = out.len() + length;
    out.extend(bytes);
    out.resize(end, 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(datatype: &Datatype) -> Vec<u8> {
        let mut out = Vec::new();
        datatype.encode(&mut out);
        out
    }

    #[test]
    fn encodes_numbers_as_the_library_does() {
        assert_eq!(encoded(&Datatype::signed(4)), [0x10, 8, 0, 0, 4, 0, 0, 0, 0, 0, 32, 0]);
        let double = [0x11, 0x20, 0x3f, 0, 8, 0, 0, 0, 0, 0, 64, 0, 52, 11, 0, 52, 0xff, 3, 0, 0];
        assert_eq!(encoded(&Datatype::Float { size: 8 }), double);
        let single = [0x11, 0x20, 0x1f, 0, 4, 0, 0, 0, 0, 0, 32, 0, 23, 8, 0, 23, 127, 0, 0, 0];
        assert_eq!(encoded(&Datatype::Float { size: 4 }), single);
    }

    #[test]
    fn encodes_text_as_the_library_does() {
        let text = [0x19, 1, 1, 0, 16, 0, 0, 0, 0x10, 0, 0, 0, 1, 0, 0, 0, 0, 0, 8, 0];
        assert_eq!(encoded(&Datatype::text()), text);
    }

    #[test]
    fn gives_compound_types_with_arrays_the_second_version() {
        let array = Datatype::Array { shape: vec![2, 3], element: Box::new(Datatype::signed(1)) };
        assert_eq!(array.size(), Ok(6));
        let members = vec![CompoundMember { name: "a".to_owned(), offset: 0, datatype: array }];
        let compound = encoded(&Datatype::Compound { size: 6, members });
        assert_eq!(compound[0], 0x26);
        // The name, its offset, and directly after it the array.
        assert_eq!(compound[8..21], [b'a', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x2a]);
    }

    #[test]
    fn refuses_unsupported_types() {
        let member =
            |name: &str, offset| CompoundMember { name: name.to_owned(), offset, datatype: Datatype::signed(4) };
        let compound = |size, members| Datatype::Compound { size, members };
        let deep = (0..100)
            .fold(Datatype::signed(1), |element, _| Datatype::Array { shape: vec![1], element: Box::new(element) });
        for wrong in [
            Datatype::signed(3),
            Datatype::Float { size: 16 },
            Datatype::FixedString { size: 0, padding: StringPadding::NullPadded, character_set: CharacterSet::Utf8 },
            Datatype::Opaque { size: 0 },
            Datatype::Enumeration { base: Box::new(Datatype::signed(1)), members: vec![] },
            Datatype::Enumeration { base: Box::new(Datatype::signed(2)), members: vec![("a".to_owned(), vec![1])] },
            Datatype::Sequence { element: Box::new(Datatype::text()) },
            compound(8, vec![member("a", 0), member("b", 2)]),
            compound(8, vec![member("a", 6)]),
            compound(8, vec![member("a", 0), member("a", 4)]),
            Datatype::Array { shape: vec![1 << 20, 1 << 20], element: Box::new(Datatype::signed(1)) },
            deep,
        ] {
            assert!(wrong.size().is_err(), "{wrong:?}");
        }
    }
}
