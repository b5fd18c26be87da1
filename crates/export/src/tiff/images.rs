//! Several images in one file: the header and all directories, and then the tiles of each.

use std::ops::Range;
use std::sync::Arc;

use tilefs_base::content::Content;
use tilefs_base::error::Result;
use tilefs_base::output::Output;

use crate::content::compose::{Concat, Repeat};

/// The bytes of a file with several images.
pub struct Images {
    all: Concat,
    /// The end of the tiles of each image.
    ends: Vec<u64>,
}

impl Images {
    /// Creates a file from its header and directories, and from the tiles of each image with their position, which does not
    /// lie before the end of the part before. `padding` zeros follow.
    pub fn new(
        mut head: Vec<Arc<dyn Content>>,
        tiles: impl IntoIterator<Item = (u64, Arc<dyn Content>)>,
        padding: u64,
    ) -> Self {
        let mut end = head.iter().map(|part| part.len()).sum();
        let mut ends = Vec::new();
        for (start, content) in tiles {
            head.push(Arc::new(Repeat::zeros(start.saturating_sub(end))));
            end = start.saturating_add(content.len());
            ends.push(end);
            head.push(content);
        }
        head.push(Arc::new(Repeat::zeros(padding)));
        Images { all: Concat::new(head), ends }
    }
}

impl Content for Images {
    fn len(&self) -> u64 {
        self.all.len()
    }

    fn fill(&self, offset: u64, out: Output<'_>) -> Result<()> {
        self.all.fill(offset, out)
    }

    fn band(&self, offset: u64) -> Range<u64> {
        self.all.band(offset)
    }

    fn end_of_part(&self, offset: u64) -> u64 {
        let number = self.ends.partition_point(|&end| end <= offset);
        self.ends.get(number).copied().unwrap_or(self.len())
    }

    fn decoded_per_byte(&self) -> u64 {
        self.all.decoded_per_byte()
    }
}
