//! The directories of a BigTIFF: tags in ascending order, and the values that do not fit into their tag.

use std::sync::Arc;

use tilefs_base::content::Content;

use crate::content::compose::Repeat;

/// The header: little-endian, BigTIFF, 8-byte offsets, and the offset of the first directory, which follows the header.
pub const HEADER: [u8; 16] = [b'I', b'I', 43, 0, 8, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0];

/// The tag that tells what an image is, and its value for a reduced version of another image.
pub const SUBFILE_TYPE: u16 = 254;
pub const REDUCED: u32 = 1;

/// Size of a tag in bytes.
const TAG: u64 = 20;

/// Maximum size in bytes of values that are stored in the tag itself.
const INLINE: u64 = 8;

/// Alignment of values.
const PLACE: u64 = 8;

/// The values of a tag.
#[derive(Clone)]
pub enum TagValues {
    Short(Vec<u16>),
    Long(Vec<u32>),
    Double(Vec<f64>),
    /// Includes the final NUL.
    Text(Arc<Vec<u8>>),
    /// The positions of directories.
    Directories(Vec<u64>),
    /// 64-bit numbers, possibly very many.
    Computed(Arc<dyn Content>),
}

impl TagValues {
    pub fn text(text: &str) -> Self {
        TagValues::Text(Arc::new(text.bytes().filter(|&byte| byte != 0).chain([0]).collect()))
    }

    /// Returns its TIFF type, the number of values, and their bytes.
    fn parts(&self) -> (u16, u64, Arc<dyn Content>) {
        let parts = |kind, count: usize, bytes: Vec<u8>| (kind, count as u64, Arc::new(bytes) as Arc<dyn Content>);
        match self {
            TagValues::Text(text) => (2, text.len(), text.clone()),
            TagValues::Short(values) => {
                parts(3, values.len(), values.iter().flat_map(|value| value.to_le_bytes()).collect())
            }
            TagValues::Long(values) => {
                parts(4, values.len(), values.iter().flat_map(|value| value.to_le_bytes()).collect())
            }
            TagValues::Double(values) => {
                parts(12, values.len(), values.iter().flat_map(|value| value.to_le_bytes()).collect())
            }
            TagValues::Directories(places) => {
                parts(18, places.len(), places.iter().flat_map(|place| place.to_le_bytes()).collect())
            }
            TagValues::Computed(content) => (16, content.len() / 8, content.clone()),
        }
    }
}

/// The tags of an image.
#[derive(Default)]
pub struct ImageDirectory {
    tags: Vec<(u16, TagValues)>,
}

impl ImageDirectory {
    /// Adds a tag in ascending order.
    pub fn add(&mut self, tag: u16, value: TagValues) {
        let place = self.tags.partition_point(|(known, _)| *known < tag);
        self.tags.insert(place, (tag, value));
    }

    /// Returns the size in bytes of the tags. The values that do not fit into them follow.
    fn bytes_of_tags(&self) -> u64 {
        (8 + TAG * self.tags.len() as u64 + 8).next_multiple_of(PLACE)
    }

    /// Returns the size in bytes of all tags and values, a multiple of 8; `None` if it is too large.
    pub fn length(&self) -> Option<u64> {
        self.tags.iter().try_fold(self.bytes_of_tags(), |end, (_, value)| {
            let length = value.parts().2.len();
            if length <= INLINE { Some(end) } else { end.checked_add(length.checked_next_multiple_of(PLACE)?) }
        })
    }

    /// Returns the bytes of a directory that begins at the byte `start`; their length is that of the directory. `next`
    /// is the position of the next directory, 0 for none.
    pub fn contents(&self, start: u64, next: u64) -> Vec<Arc<dyn Content>> {
        let mut bytes = (self.tags.len() as u64).to_le_bytes().to_vec();
        let mut behind: Vec<Arc<dyn Content>> = Vec::new();
        let mut at = start + self.bytes_of_tags();
        for (tag, value) in &self.tags {
            let (kind, count, content) = value.parts();
            bytes.extend(tag.to_le_bytes());
            bytes.extend(kind.to_le_bytes());
            bytes.extend(count.to_le_bytes());
            let length = content.len();
            if length <= INLINE {
                let mut inline = [0; INLINE as usize];
                // These few bytes are in memory or computed, so reading them cannot fail.
                if content.read_at(0, &mut inline[..length as usize]).is_ok() {
                    bytes.extend(inline);
                }
                continue;
            }
            bytes.extend(at.to_le_bytes());
            let padded = length.next_multiple_of(PLACE);
            behind.push(content);
            behind.push(Arc::new(Repeat::zeros(padded - length)));
            at += padded;
        }
        bytes.extend(next.to_le_bytes());
        bytes.resize(bytes.len().next_multiple_of(PLACE as usize), 0);
        let mut parts: Vec<Arc<dyn Content>> = vec![Arc::new(bytes)];
        parts.append(&mut behind);
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::compose::Concat;

    #[test]
    fn directory_has_its_declared_length() {
        for tags in 1..5 {
            for length in 1..20 {
                let mut directory = ImageDirectory::default();
                (0..tags).for_each(|tag| directory.add(256 + tag, TagValues::Text(Arc::new(vec![1; length]))));
                let contents = Concat::new(directory.contents(16, 0));
                assert_eq!(directory.length(), Some(contents.len()), "{tags} tags of {length} bytes");
                assert!(contents.len().is_multiple_of(PLACE));
            }
        }
    }
}
