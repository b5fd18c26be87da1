//! Attributes, and the Attribute message (specification, IV.A.2.m).

use crate::dataspace::Dataspace;
use crate::datatype::{CharacterSet, CompoundMember, Datatype, StringPadding};
use crate::error::Problem;
use crate::global_heap::{AttributeHeap, NIL};
use crate::object_id::ObjectId;

/// The content of HDF5's Attribute message except the attribute's name: datatype, dataspace and value. Memory: the value.
#[derive(Debug, Clone, PartialEq)]
pub struct AttributeMessage {
    datatype: Datatype,
    dataspace: Dataspace,
    value: AttributeValue,
}

#[derive(Debug, Clone, PartialEq)]
enum AttributeValue {
    /// The elements as stored.
    Bytes(Vec<u8>),
    /// Texts of variable length.
    Texts(Vec<String>),
    /// A list of object references for each element.
    ReferenceLists(Vec<Vec<ObjectId>>),
    /// Object references, each with the number of an axis.
    Axes(Vec<(ObjectId, u32)>),
}

impl AttributeMessage {
    /// Creates an attribute with elements of a fixed-length type, as stored.
    pub fn new(datatype: Datatype, dataspace: Dataspace, bytes: Vec<u8>) -> Self {
        AttributeMessage { datatype, dataspace, value: AttributeValue::Bytes(bytes) }
    }

    /// Creates a text of variable length, the form that most writers use: a scalar in the global heap.
    pub fn text(text: &str) -> Self {
        AttributeMessage::texts(Dataspace::Scalar, vec![text.to_owned()])
    }

    /// Creates texts of variable length.
    pub fn texts(dataspace: Dataspace, texts: Vec<String>) -> Self {
        AttributeMessage { datatype: Datatype::text(), dataspace, value: AttributeValue::Texts(texts) }
    }

    /// Creates a text whose length is in its type.
    pub fn fixed_text(text: &str) -> Self {
        let (padding, character_set) = (StringPadding::NullTerminated, CharacterSet::of(text));
        // One more byte for the NUL. A text of 4 GiB or more does not fit its type, which check() reports.
        let size = u32::try_from(text.len() + 1).unwrap_or(u32::MAX);
        let mut bytes = text.as_bytes().to_vec();
        bytes.push(0);
        AttributeMessage::new(Datatype::FixedString { size, padding, character_set }, Dataspace::Scalar, bytes)
    }

    /// Creates a signed integer of eight bytes.
    pub fn signed(value: i64) -> Self {
        AttributeMessage::new(Datatype::signed(8), Dataspace::Scalar, value.to_le_bytes().to_vec())
    }

    /// Creates a float of eight bytes.
    pub fn float(value: f64) -> Self {
        AttributeMessage::new(Datatype::Float { size: 8 }, Dataspace::Scalar, value.to_le_bytes().to_vec())
    }

    /// Creates an attribute of this type without a value.
    pub fn null(datatype: Datatype) -> Self {
        AttributeMessage::new(datatype, Dataspace::Null, Vec::new())
    }

    /// Creates the attribute DIMENSION_LIST of a dataset: the scales of each axis (dimension scales specification).
    pub(crate) fn dimension_list(scales: Vec<Vec<ObjectId>>) -> Self {
        let datatype = Datatype::Sequence { element: Box::new(Datatype::ObjectReference) };
        let dataspace = Dataspace::vector(scales.len() as u64);
        AttributeMessage { datatype, dataspace, value: AttributeValue::ReferenceLists(scales) }
    }

    /// Creates the attribute REFERENCE_LIST of a scale: the axes that use it (dimension scales specification).
    pub(crate) fn reference_list(axes: Vec<(ObjectId, u32)>) -> Self {
        let member = |name: &str, offset, datatype| CompoundMember { name: name.to_owned(), offset, datatype };
        // As in the HDF5 library: a C structure with padding at its end.
        let members =
            vec![member("dataset", 0, Datatype::ObjectReference), member("dimension", 8, Datatype::unsigned(4))];
        let dataspace = Dataspace::vector(axes.len() as u64);
        AttributeMessage {
            datatype: Datatype::Compound { size: 16, members },
            dataspace,
            value: AttributeValue::Axes(axes),
        }
    }

    /// Checks that the value fits its type and dataspace.
    pub(crate) fn check(&self, name: &str) -> Result<(), Problem> {
        let what = || format!("the attribute {name:?}");
        let size = self.datatype.size()?;
        let elements = self.dataspace.elements()?;
        let wanted = elements.checked_mul(u64::from(size));
        let wanted = wanted.ok_or_else(|| Problem::TooLarge { what: what(), limit: u64::MAX })?;
        let bytes = match &self.value {
            AttributeValue::Bytes(_) if self.datatype.has_variable_length() && wanted > 0 => {
                return Err(Problem::Datatype { reason: "elements of variable length have no bytes of their own" });
            }
            AttributeValue::Bytes(bytes) => bytes.len() as u64,
            AttributeValue::Texts(texts) if texts.iter().any(|text| text.contains('\0')) => {
                return Err(Problem::NulInText { attribute: name.to_owned() });
            }
            AttributeValue::Texts(texts) if texts.iter().any(|text| u32::try_from(text.len()).is_err()) => {
                return Err(Problem::TooLarge { what: what(), limit: u64::from(u32::MAX) });
            }
            AttributeValue::Texts(texts) => texts.len() as u64 * 16,
            AttributeValue::ReferenceLists(lists) => lists.len() as u64 * 16,
            AttributeValue::Axes(axes) => axes.len() as u64 * 16,
        };
        if bytes == wanted { Ok(()) } else { Err(Problem::ValueLength { what: what(), bytes, wanted }) }
    }

    /// Returns the Attribute message of a checked attribute. `address` returns the address of an object's header;
    /// values of variable length are added to `heap`.
    pub(crate) fn encode(&self, name: &str, address: &dyn Fn(ObjectId) -> u64, heap: &mut AttributeHeap) -> Vec<u8> {
        let (mut datatype, mut dataspace) = (Vec::new(), Vec::new());
        self.datatype.encode(&mut datatype);
        self.dataspace.encode(&[], &mut dataspace);
        let mut out = Vec::new();
        // Version 3, no shared types.
        out.extend([3, 0]);
        let length = |length: usize| (length.min(0xffff) as u16).to_le_bytes();
        out.extend(length(name.len() + 1));
        out.extend(length(datatype.len()));
        out.extend(length(dataspace.len()));
        out.push(CharacterSet::of(name).code());
        out.extend(name.as_bytes());
        out.push(0);
        out.extend(datatype);
        out.extend(dataspace);
        match &self.value {
            AttributeValue::Bytes(bytes) => out.extend(bytes),
            AttributeValue::Texts(texts) => {
                for text in texts {
                    out.extend(heap.insert(text.as_bytes(), text.len()));
                }
            }
            AttributeValue::ReferenceLists(lists) => {
                for list in lists {
                    let addresses: Vec<u8> = list.iter().flat_map(|object| address(*object).to_le_bytes()).collect();
                    out.extend(if list.is_empty() { NIL } else { heap.insert(&addresses, list.len()) });
                }
            }
            AttributeValue::Axes(axes) => {
                for (object, axis) in axes {
                    out.extend(address(*object).to_le_bytes());
                    out.extend(axis.to_le_bytes());
                    out.extend([0; 4]);
                }
            }
        }
        out
    }

    /// Returns whether the type fits its field of the message.
    pub(crate) fn fits_its_message(&self) -> bool {
        let mut datatype = Vec::new();
        self.datatype.encode(&mut datatype);
        datatype.len() <= 0xffff
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_values_of_another_length_and_texts_with_a_nul() {
        let short = AttributeMessage::new(Datatype::signed(4), Dataspace::vector(2), vec![0; 7]);
        assert!(matches!(short.check("a"), Err(Problem::ValueLength { bytes: 7, wanted: 8, .. })));
        assert!(matches!(AttributeMessage::text("a\0b").check("a"), Err(Problem::NulInText { .. })));
        let without_heap = AttributeMessage::new(Datatype::text(), Dataspace::Scalar, vec![0; 16]);
        assert!(without_heap.check("a").is_err());
        assert_eq!(AttributeMessage::null(Datatype::text()).check("a"), Ok(()));
    }

    #[test]
    fn encodes_the_message_as_the_library_does() {
        let mut heap = AttributeHeap::new(0x1000);
        let message = AttributeMessage::fixed_text("abc").encode("NAME", &|_| 0, &mut heap);
        let mut expected = vec![3, 0, 5, 0, 8, 0, 4, 0, 0];
        expected.extend(b"NAME\0");
        expected.extend([0x13, 0, 0, 0, 4, 0, 0, 0]);
        expected.extend([2, 0, 0, 0]);
        expected.extend(b"abc\0");
        assert_eq!(message, expected);
        let message = AttributeMessage::text("é").encode("a", &|_| 0, &mut heap);
        let id = &message[message.len() - 16..];
        assert_eq!(id, [2, 0, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0]);
    }
}
