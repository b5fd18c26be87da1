//! The directory of a BigTIFF: its header, tags in their order, and the values that do not fit beside their tag.

use std::sync::Arc;

use crate::export::compose::Repeat;
use crate::export::content::Content;

/// The header: little-endian, BigTIFF, offsets of 8 bytes, and that of the only directory.
const HEADER: [u8; 16] = [b'I', b'I', 43, 0, 8, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0];

/// Bytes of a tag.
const TAG: u64 = 20;

/// Values of at most so many bytes lie in the tag itself.
const INLINE: u64 = 8;

/// The values of a tag.
pub enum Value {
    Short(Vec<u16>),
    Long(Vec<u32>),
    Double(Vec<f64>),
    Text(String),
    /// 64-bit numbers, which may be very many.
    Computed(Arc<dyn Content>),
}

impl Value {
    /// Its type in TIFF, how many values there are, and their bytes.
    fn parts(&self) -> (u16, u64, Arc<dyn Content>) {
        let parts = |kind, count: usize, bytes: Vec<u8>| (kind, count as u64, Arc::new(bytes) as Arc<dyn Content>);
        match self {
            Value::Text(text) => {
                // A NUL ends it.
                let bytes: Vec<u8> = text.bytes().filter(|&byte| byte != 0).chain([0]).collect();
                parts(2, bytes.len(), bytes)
            }
            Value::Short(values) => {
                parts(3, values.len(), values.iter().flat_map(|value| value.to_le_bytes()).collect())
            }
            Value::Long(values) => {
                parts(4, values.len(), values.iter().flat_map(|value| value.to_le_bytes()).collect())
            }
            Value::Double(values) => {
                parts(12, values.len(), values.iter().flat_map(|value| value.to_le_bytes()).collect())
            }
            Value::Computed(content) => (16, content.len() / 8, content.clone()),
        }
    }
}

/// The tags of a picture.
#[derive(Default)]
pub struct Directory {
    tags: Vec<(u16, Value)>,
}

impl Directory {
    /// Adds a tag, in its place.
    pub fn add(&mut self, tag: u16, value: Value) {
        let place = self.tags.partition_point(|(known, _)| *known < tag);
        self.tags.insert(place, (tag, value));
    }

    /// Gives a tag another value, of the same type and number.
    pub fn replace(&mut self, tag: u16, value: Value) {
        if let Some((_, own)) = self.tags.iter_mut().find(|(known, _)| *known == tag) {
            *own = value;
        }
    }

    /// Where the tags end, and the values that have no room in them begin.
    fn end_of_tags(&self) -> u64 {
        HEADER.len() as u64 + 8 + TAG * self.tags.len() as u64 + 8
    }

    /// Bytes of the header and all tags and values; `None` where they are too many.
    pub fn length(&self) -> Option<u64> {
        self.tags.iter().try_fold(self.end_of_tags(), |end, (_, value)| {
            let length = value.parts().2.len();
            if length <= INLINE { Some(end) } else { end.checked_add(length)?.checked_next_multiple_of(8) }
        })
    }

    /// The header and all tags and values, with zeros behind them up to the byte `end`.
    pub fn contents(&self, end: u64) -> Vec<Arc<dyn Content>> {
        let mut bytes = HEADER.to_vec();
        bytes.extend((self.tags.len() as u64).to_le_bytes());
        let mut behind: Vec<Arc<dyn Content>> = Vec::new();
        let mut at = self.end_of_tags();
        for (tag, value) in &self.tags {
            let (kind, count, content) = value.parts();
            bytes.extend(tag.to_le_bytes());
            bytes.extend(kind.to_le_bytes());
            bytes.extend(count.to_le_bytes());
            let length = content.len();
            if length <= INLINE {
                let mut inline = [0; INLINE as usize];
                // A few bytes that were made above, or computed, which cannot fail.
                if content.read_at(0, &mut inline[..length as usize]).is_ok() {
                    bytes.extend(inline);
                }
                continue;
            }
            bytes.extend(at.to_le_bytes());
            let padded = length.next_multiple_of(8);
            behind.push(content);
            behind.push(Arc::new(Repeat::zeros(padded - length)));
            at += padded;
        }
        // No directory follows.
        bytes.extend([0; 8]);
        let mut parts: Vec<Arc<dyn Content>> = vec![Arc::new(bytes)];
        parts.append(&mut behind);
        parts.push(Arc::new(Repeat::zeros(end.saturating_sub(at))));
        parts
    }
}
