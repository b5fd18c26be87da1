//! Version 2 object headers (specification, IV.A.1.b) of groups and datasets, with their messages (IV.A.2).
//!
//! A header is one block, however many messages it has, and contains its links and attributes as messages. A group with
//! very many members is therefore read as a whole, once; in return, every reader of HDF5 supports it. Attributes that
//! are too large for a message follow the header (`dense_attributes`).

use crate::UNDEFINED;
use crate::attribute::AttributeMessage;
use crate::checksum;
use crate::dataset::Dataset;
use crate::datatype::CharacterSet;
use crate::dense_attributes;
use crate::error::{Error, Problem};
use crate::global_heap::AttributeHeap;
use crate::object_id::ObjectId;
use crate::tree::{NodeKind, TreeObject};

/// Maximum size of a message in bytes: its length has two bytes.
const LARGEST_MESSAGE: usize = 0xffff;

/// Flags of a message that never changes.
const CONSTANT: u8 = 1;

/// The addresses in a file by the numbers of objects; those of other objects are undefined.
pub(crate) struct ObjectAddresses {
    /// Of each object's header.
    pub headers: Vec<u64>,
    /// In each dataset's Data Layout message: of its values, or of the index of its chunks.
    pub storage: Vec<u64>,
}

impl ObjectAddresses {
    fn header(&self, object: ObjectId) -> u64 {
        self.headers.get(object.index()).copied().unwrap_or(UNDEFINED)
    }

    fn storage(&self, object: ObjectId) -> u64 {
        self.storage.get(object.index()).copied().unwrap_or(UNDEFINED)
    }
}

/// A header message: its type and body.
struct Message {
    kind: u8,
    flags: u8,
    body: Vec<u8>,
}

impl Message {
    fn new(kind: u8, flags: u8, body: Vec<u8>) -> Self {
        Message { kind, flags, body }
    }
}

/// The input of the encoder of headers.
pub(crate) struct HeaderContext<'a> {
    pub objects: &'a [TreeObject],
    pub addresses: &'a ObjectAddresses,
    /// For each object, the attributes that describe dimension scales.
    pub scale_attributes: &'a [Vec<(String, AttributeMessage)>],
}

impl HeaderContext<'_> {
    /// Returns the object header of an object, which will be at this address, followed by its dense attributes. Its
    /// length does not depend on addresses.
    ///
    /// # Errors
    /// Fails if something does not fit into its message.
    pub fn encode(&self, id: ObjectId, address: u64, heap: &mut AttributeHeap) -> Result<Vec<u8>, Problem> {
        let Some(object) = self.objects.get(id.index()) else {
            return Err(Problem::NoSuchObject { wanted: "object" });
        };
        let attributes = self.attributes(id, object, heap)?;
        let mut messages = match &object.kind {
            NodeKind::Group { members } => self.group(members),
            NodeKind::Dataset(dataset) => dataset_messages(dataset, self.addresses.storage(id))?,
        };
        // pyfive reads eight bytes more than this message has, so it must not be the last one.
        let info = |heap, names| attribute_info(attributes.len(), heap, names);
        messages.insert(0, info(UNDEFINED, UNDEFINED));
        if attributes.iter().all(|(_, body)| body.len() <= LARGEST_MESSAGE) {
            messages.extend(attributes.into_iter().map(|(_, body)| Message::new(0x0c, 0, body)));
            return header(&messages);
        }
        let behind = address + (header(&messages)?.len() as u64).next_multiple_of(8);
        let dense = dense_attributes::encode(&attributes, behind)?;
        if let Some(first) = messages.first_mut() {
            *first = info(dense.heap, dense.names);
        }
        let mut out = header(&messages)?;
        out.resize(out.len().next_multiple_of(8), 0);
        out.extend(dense.bytes);
        Ok(out)
    }

    /// Returns the names and messages of an object's attributes.
    fn attributes<'a>(
        &'a self,
        id: ObjectId,
        object: &'a TreeObject,
        heap: &mut AttributeHeap,
    ) -> Result<Vec<(&'a str, Vec<u8>)>, Problem> {
        let of_scales = self.scale_attributes.get(id.index()).map_or(&[][..], Vec::as_slice);
        if let Some((name, _)) =
            of_scales.iter().find(|(name, _)| object.attributes.iter().any(|(other, _)| other == name))
        {
            return Err(Problem::NameTwice { name: name.clone() });
        }
        let all = object.attributes.iter().chain(of_scales);
        let encode = |(name, attribute): &'a (String, AttributeMessage)| {
            if !attribute.fits_its_message() {
                return Err(Problem::TooLarge { what: format!("the type of the attribute {name:?}"), limit: 0xffff });
            }
            Ok((name.as_str(), attribute.encode(name, &|object| self.addresses.header(object), heap)))
        };
        let attributes = all.map(encode).collect::<Result<Vec<_>, _>>()?;
        // The creation order has two bytes.
        if attributes.len() > 0xffff {
            return Err(Problem::TooLarge { what: "the number of attributes".to_owned(), limit: 0xffff });
        }
        Ok(attributes)
    }

    fn group(&self, members: &[ObjectId]) -> Vec<Message> {
        // Link Info: version 0, creation order is tracked, no dense storage.
        let mut info = vec![0, 1];
        info.extend((members.len() as u64).to_le_bytes());
        info.extend(UNDEFINED.to_le_bytes());
        info.extend(UNDEFINED.to_le_bytes());
        // Group Info: version 0, all defaults.
        let mut messages = vec![Message::new(0x02, 0, info), Message::new(0x0a, CONSTANT, vec![0, 0])];
        for (order, member) in (0_u64..).zip(members) {
            let name = self.objects.get(member.index()).map_or("", |object| object.name.as_str());
            messages.push(Message::new(0x06, 0, link(name, order, self.addresses.header(*member))));
        }
        messages
    }
}

/// Returns the Link message of a hard link.
fn link(name: &str, order: u64, address: u64) -> Vec<u8> {
    let character_set = CharacterSet::of(name);
    // Version 1. The length of the name has one or two bytes; creation order and, if necessary, character set are
    // present.
    let is_long = name.len() > 0xff;
    let has_character_set = character_set != CharacterSet::Ascii;
    let mut out = vec![1, u8::from(is_long) | 4 | u8::from(has_character_set) << 4];
    out.extend(order.to_le_bytes());
    if has_character_set {
        out.push(character_set.code());
    }
    // The tree limits names to less than 64 KiB.
    out.extend(&(name.len() as u16).to_le_bytes()[..if is_long { 2 } else { 1 }]);
    out.extend(name.as_bytes());
    out.extend(address.to_le_bytes());
    out
}

/// Returns the Attribute Info message.
fn attribute_info(attributes: usize, heap: u64, names: u64) -> Message {
    // Version 0, creation order is tracked.
    let mut body = vec![0, 1];
    body.extend((attributes as u16).to_le_bytes());
    body.extend(heap.to_le_bytes());
    body.extend(names.to_le_bytes());
    Message::new(0x15, 0, body)
}

fn dataset_messages(dataset: &Dataset, storage: u64) -> Result<Vec<Message>, Problem> {
    let (mut dataspace, mut datatype) = (Vec::new(), Vec::new());
    dataset.dataspace.encode(&dataset.unlimited, &mut dataspace);
    dataset.datatype.encode(&mut datatype);
    // Fill Value: version 2; space is allocated early, incrementally for chunks, or late if nothing was written; fill
    // values are written if set.
    let allocation = match (dataset.is_unwritten, &dataset.chunk_shape) {
        (true, _) => 2,
        (false, Some(_)) => 3,
        (false, None) => 1,
    };
    let mut fill_value = vec![2, allocation, 2, 1];
    let bytes = dataset.fill_value.as_deref().unwrap_or(&[]);
    // A fill value larger than a message is rejected with the message.
    fill_value.extend(u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes());
    fill_value.extend(bytes);
    Ok(vec![
        Message::new(0x01, 0, dataspace),
        Message::new(0x03, CONSTANT, datatype),
        Message::new(0x05, CONSTANT, fill_value),
        Message::new(0x08, 0, data_layout(dataset, storage)?),
    ])
}

/// Returns the Data Layout message, version 3.
fn data_layout(dataset: &Dataset, storage: u64) -> Result<Vec<u8>, Problem> {
    let mut out = vec![3];
    let Some(chunk_shape) = &dataset.chunk_shape else {
        out.push(1);
        out.extend(storage.to_le_bytes());
        out.extend(dataset.stored_bytes()?.to_le_bytes());
        return Ok(out);
    };
    // One more axis, for the bytes of an element. The dataset limits the rank to 32, and lengths to four bytes.
    out.extend([2, chunk_shape.len() as u8 + 1]);
    out.extend(storage.to_le_bytes());
    out.extend(chunk_shape.iter().flat_map(|length| (*length as u32).to_le_bytes()));
    out.extend(dataset.datatype.size()?.to_le_bytes());
    Ok(out)
}

/// Returns a header of these messages in one block.
fn header(messages: &[Message]) -> Result<Vec<u8>, Problem> {
    let mut body = Vec::new();
    let mut attributes = 0_u16;
    for Message { kind, flags, body: message } in messages {
        let Ok(length) = u16::try_from(message.len()) else {
            let what = format!("the {}", name_of(*kind));
            return Err(Problem::TooLarge { what, limit: LARGEST_MESSAGE as u64 });
        };
        body.push(*kind);
        body.extend(length.to_le_bytes());
        body.push(*flags);
        // The creation order of attributes; 0 for other messages.
        let order = if *kind == 0x0c { attributes } else { 0 };
        attributes = attributes.wrapping_add(u16::from(*kind == 0x0c));
        body.extend(order.to_le_bytes());
        body.extend(message);
    }
    // Version 2; flags: the order of attributes is tracked, and the length of the block has 4 bytes.
    let mut out = b"OHDR\x02\x06".to_vec();
    let Ok(length) = u32::try_from(body.len()) else {
        return Err(Problem::TooLarge { what: "the object header".to_owned(), limit: u64::from(u32::MAX) });
    };
    out.extend(length.to_le_bytes());
    out.extend(body);
    checksum::append(&mut out, 0);
    Ok(out)
}

fn name_of(kind: u8) -> &'static str {
    match kind {
        0x03 => "datatype",
        0x05 => "fill value",
        _ => "message",
    }
}

/// Adds the path of the object to a problem.
pub(crate) fn located<T>(result: Result<T, Problem>, path: impl FnOnce() -> String) -> crate::Result<T> {
    result.map_err(|problem| Error::new(path(), problem))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodes_links_of_short_long_and_international_names() {
        let mut short = vec![1, 4, 7, 0, 0, 0, 0, 0, 0, 0, 1, b'a'];
        short.extend(0x1234_u64.to_le_bytes());
        assert_eq!(link("a", 7, 0x1234), short);
        assert_eq!(link(&"a".repeat(300), 0, 0)[..12], [1, 5, 0, 0, 0, 0, 0, 0, 0, 0, 44, 1]);
        assert_eq!(link("é", 0, 0)[..14], [1, 0x14, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 0xc3, 0xa9]);
    }

    #[test]
    fn a_header_is_a_block_with_a_checksum() {
        let header = header(&[Message::new(0x0a, 1, vec![0, 0])]).unwrap();
        assert_eq!(header[..18], *b"OHDR\x02\x06\x08\0\0\0\x0a\x02\0\x01\0\0\0\0");
        assert_eq!(header[18..], checksum::lookup3(&header[..18]).to_le_bytes());
    }
}
