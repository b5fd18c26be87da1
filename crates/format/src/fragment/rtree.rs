//! The R-tree of a sparse fragment. Its leaves are the minimum bounding rectangles (MBRs) of the tiles; each box of an
//! upper level bounds `fanout` consecutive boxes of the next level.
//!
//! The tree may be too large to keep in memory. [`RTreeLayout::read`] reads all of it once, proves that each box
//! contains the boxes below it, and records where the levels are. [`RTree`] then reads single boxes from any
//! [`ReadAt`].

use std::ops::Range as Numbers;

use tilefs_base::error::{Error, Locate, Result};

use super::facts::{covering_texts, domain_if_unsigned};
use crate::cursor::Cursor;
use crate::datatype::Datatype;
use crate::scalar::{Range, Scalar, range_bytes};
use crate::schema::{ArraySchema, Dimension};

/// The most levels that are accepted. Even with a fanout of 2, a tree with a 64-bit count of leaves has no more.
const MAX_LEVELS: u32 = 64;

/// The distance between checkpoints: if boxes vary in size, the start of every 16th box is recorded.
const CHECKPOINT_EVERY: u64 = 16;

/// The bytes that a cursor reads at once.
const WINDOW: u64 = 4096;

/// The size in bytes of the two lengths before bounds of variable size.
const LENGTHS: usize = 16;

/// Bytes with random access.
pub trait ReadAt {
    /// Fills `out` with the bytes from `start`.
    ///
    /// # Errors
    /// [`Error::Damaged`] past the end; errors of the underlying read.
    fn read_at(&self, start: u64, out: &mut [u8]) -> Result<()>;
}

impl ReadAt for Box<[u8]> {
    fn read_at(&self, start: u64, out: &mut [u8]) -> Result<()> {
        let start = usize::try_from(start).ok();
        let from = start.and_then(|start| self.get(start..start.checked_add(out.len())?));
        out.copy_from_slice(from.ok_or_else(|| Error::damaged("bytes past the end wanted"))?);
        Ok(())
    }
}

/// The decision about the tiles below a box.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Descent {
    /// Skip all tiles below the box.
    Skip,
    /// Examine the boxes below: some tiles may be wanted.
    Enter,
    /// Take all tiles below the box.
    Take,
}

/// The places of the boxes in the bytes of an R-tree. Memory: a few words for each level and, if boxes vary in size,
/// half a byte for each box.
#[derive(Debug, Clone, PartialEq)]
pub struct RTreeLayout {
    dimensions: Box<[BoxDimension]>,
    fanout: u64,
    /// The levels, from the root to the leaves.
    levels: Vec<Level>,
    /// Whether the upper levels are reliable. If not, [`RTree::descend`] scans the leaves.
    descends: bool,
}

#[derive(Debug, Clone, PartialEq)]
struct BoxDimension {
    datatype: Datatype,
    variable: bool,
    /// The dimension, if an old library may have compared its dates as unsigned numbers.
    unsigned_times: Option<Dimension>,
    version: u32,
}

#[derive(Debug, Clone, PartialEq)]
struct Level {
    /// The byte range of the level's boxes.
    bytes: Numbers<u64>,
    count: u64,
    /// If boxes vary in size, the start of every box whose index is a multiple of [`CHECKPOINT_EVERY`].
    checkpoints: Vec<u64>,
}

impl RTreeLayout {
    /// Reads the payload of an R-tree's generic tile, in a fragment of this version, page by page. Dense fragments have
    /// a tree without levels. While a level is read, the bytes of the level above it are kept: at most `max_bytes`.
    ///
    /// # Errors
    /// [`Error::Damaged`] if the levels do not fill the payload, the number of boxes contradicts the fanout, a bound is
    /// out of order, or a box does not contain the boxes below it; [`Error::Unsupported`] for an upper level of more
    /// than `max_bytes`.
    pub fn read(pages: impl Pages, version: u32, schema: &ArraySchema, max_bytes: usize) -> Result<Self> {
        let mut reader = PageReader::new(pages);
        if version < 5 {
            let dimensions = reader.u32("number of dimensions")?;
            if dimensions as usize != schema.dimensions.len() {
                let reason = format!("R-tree of {dimensions} dimensions, array of {}", schema.dimensions.len());
                return Err(reader.error("number of dimensions", reason));
            }
        }
        let fanout = reader.u32("fanout")?;
        if version < 5 {
            let datatype = Datatype::from_number(reader.take(1, "datatype of dimensions")?[0])?;
            if schema.dimensions.iter().any(|dimension| dimension.datatype != datatype) {
                return Err(reader.error("datatype of dimensions", format!("R-tree of {}", datatype.name())));
            }
        }
        let levels = reader.u32("number of levels")?;
        if levels > MAX_LEVELS || (levels > 0 && fanout == 0) {
            return Err(reader.error("number of levels", format!("{levels} levels of fanout {fanout}")));
        }
        let dimensions = dimensions(version, schema);
        let descends = dimensions.iter().all(|dimension| dimension.unsigned_times.is_none());
        let mut layout = RTreeLayout { dimensions, fanout: fanout.into(), levels: Vec::new(), descends };
        let mut above = Vec::new();
        for level in 1..=levels {
            above = layout.read_level(&mut reader, &above, if level == levels { None } else { Some(max_bytes) })?;
        }
        reader.expect_end("R-tree")?;
        Ok(layout)
    }

    /// Reads a count and that many MBRs: before version 3, the whole list.
    pub(super) fn read_list(reader: &mut PageReader<impl Pages>, version: u32, schema: &ArraySchema) -> Result<Self> {
        let dimensions = dimensions(version, schema);
        let mut layout = RTreeLayout { dimensions, fanout: 1, levels: Vec::new(), descends: false };
        layout.read_level(reader, &[], None)?;
        Ok(layout)
    }

    /// Reads the level below the one whose bytes are `above`. Returns the bytes of the level, at most `max_bytes`; for
    /// the leaves, `max_bytes` is `None` and nothing is returned.
    fn read_level(
        &mut self,
        reader: &mut PageReader<impl Pages>,
        above: &[u8],
        max_bytes: Option<usize>,
    ) -> Result<Vec<u8>> {
        let count = reader.u64("number of MBRs")?;
        if let Some(level) = self.levels.last()
            && level.count != count.div_ceil(self.fanout)
        {
            let reason = format!("{} boxes over {count} at a fanout of {}", level.count, self.fanout);
            return Err(reader.error("number of MBRs", reason));
        }
        if count > 0 && self.even_size() == Some(0) {
            return Err(reader.error("number of MBRs", "boxes without dimensions"));
        }
        let mut level = Level { bytes: reader.position..reader.position, count, checkpoints: Vec::new() };
        let (varies, is_leaf, number_of_level) = (self.even_size().is_none(), max_bytes.is_none(), self.levels.len());
        let mut above = PageReader::new(above);
        let (mut kept, mut ranges, mut around) = (Vec::new(), Vec::new(), Vec::new());
        for number in 0..count {
            if varies && number.is_multiple_of(CHECKPOINT_EVERY) {
                level.checkpoints.push(reader.position);
            }
            self.read_box(reader, &mut ranges, max_bytes.map(|_| &mut kept))?;
            if max_bytes.is_some_and(|max_bytes| kept.len() > max_bytes) {
                let what = format!("an R-tree with upper levels of more than {} bytes", kept.len());
                return Err(Error::unsupported(what).in_field("MBRs"));
            }
            if is_leaf {
                self.check_leaf(&ranges, number)?;
            }
            if number_of_level > 0 && number.is_multiple_of(self.fanout) {
                self.read_box(&mut above, &mut around, None)?;
            }
            let leaves = |(around, own): (&Range, &Range)| !(around.contains(&own.low) && around.contains(&own.high));
            if self.descends && around.iter().zip(&ranges).any(leaves) {
                let reason = format!("box {number} of level {number_of_level} leaves the one above it");
                return Err(Error::damaged(reason).in_field("MBRs"));
            }
        }
        level.bytes.end = reader.position;
        self.levels.push(level);
        Ok(kept)
    }

    /// Reads a box into `ranges`, and appends its bytes to `kept`.
    fn read_box(
        &mut self,
        reader: &mut PageReader<impl Pages>,
        ranges: &mut Vec<Range>,
        mut kept: Option<&mut Vec<u8>>,
    ) -> Result<()> {
        ranges.clear();
        for dimension in &self.dimensions {
            let length = dimension.length(|| Ok(reader.peek(8, "MBR")?.first_chunk().copied().unwrap_or_default()))?;
            let bytes = reader.take(length, "MBR")?;
            let range = dimension.parse(bytes)?;
            if let Some(kept) = &mut kept {
                kept.extend_from_slice(bytes);
            }
            // Some writers compare bytes as signed numbers when they compute upper boxes. In our order, such boxes do
            // not bound texts beyond ASCII.
            let is_plain = |value: &Scalar| !matches!(value, Scalar::Text(text) if !text.is_ascii());
            self.descends &= is_plain(&range.low) && is_plain(&range.high);
            ranges.push(range);
        }
        Ok(())
    }

    /// Checks that the bounds of numbers are in order. Bounds of texts are not checked, as some writers compare texts
    /// as signed bytes.
    fn check_leaf(&self, ranges: &[Range], tile: u64) -> Result<()> {
        let mut both = self.dimensions.iter().zip(ranges);
        match both.all(|(dimension, range)| dimension.variable || range.is_ordered()) {
            true => Ok(()),
            false => Err(Error::damaged(format!("MBR of tile {tile} out of order")).in_field("MBRs")),
        }
    }

    /// Returns the number of leaf boxes, which must equal the number of tiles.
    pub fn tiles(&self) -> u64 {
        self.levels.last().map_or(0, |level| level.count)
    }

    /// Returns the heap memory of this layout in bytes.
    pub fn memory(&self) -> usize {
        let checkpoints: usize = self.levels.iter().map(|level| level.checkpoints.capacity() * size_of::<u64>()).sum();
        checkpoints + self.levels.capacity() * size_of::<Level>() + size_of_val::<[BoxDimension]>(&self.dimensions)
    }

    /// Returns the size of a box in bytes, if all boxes have the same size.
    fn even_size(&self) -> Option<u64> {
        let sizes = self.dimensions.iter().map(|dimension| match dimension.variable {
            true => None,
            false => Some(2 * dimension.datatype.size() as u64),
        });
        sizes.sum()
    }
}

impl BoxDimension {
    /// Returns the size of a range in bytes. Calls `head` for the first eight bytes of the range, if needed.
    fn length(&self, head: impl FnOnce() -> Result<[u8; 8]>) -> Result<usize> {
        if !self.variable {
            return Ok(2 * self.datatype.size());
        }
        let bounds = usize::try_from(u64::from_le_bytes(head()?)).ok();
        let length = bounds.and_then(|bounds| bounds.checked_add(LENGTHS));
        length.ok_or_else(|| Error::damaged("bounds of more bytes than memory has").in_field("MBR"))
    }

    /// Parses a range. Where an old library stored one that may leave out cells, the result is wider, so that every read
    /// examines the tile: the domain, if the library compared dates as unsigned numbers and the tile has dates before
    /// and after 1970; all texts from the empty one on, if that is the low end.
    fn parse(&self, bytes: &[u8]) -> Result<Range> {
        let (low, high) = range_bytes(&mut Cursor::new(bytes), self.datatype, self.variable, "MBR")?;
        let range = Range { low: Scalar::parse(self.datatype, low)?, high: Scalar::parse(self.datatype, high)? };
        if range.is_ordered() {
            return Ok(covering_texts(self.version, range));
        }
        let domain = self.unsigned_times.as_ref().and_then(|one| domain_if_unsigned(self.version, one, &range));
        Ok(domain.cloned().unwrap_or(range))
    }
}

fn dimensions(version: u32, schema: &ArraySchema) -> Box<[BoxDimension]> {
    let of = |dimension: &Dimension| {
        let is_old = version < super::SIGNED_TIMES_SINCE && dimension.datatype.is_datetime();
        BoxDimension {
            datatype: dimension.datatype,
            variable: dimension.is_variable(),
            unsigned_times: is_old.then(|| dimension.clone()),
            version,
        }
    };
    schema.dimensions.iter().map(of).collect()
}

/// An R-tree: its layout, and random access to its bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct RTree<B> {
    /// The levels of the tree.
    pub layout: RTreeLayout,
    /// The bytes that the layout was read from.
    pub bytes: B,
}

impl RTree<Box<[u8]>> {
    /// Reads a payload that is in memory; see [`RTreeLayout::read`].
    ///
    /// # Errors
    /// Those of [`RTreeLayout::read`].
    pub fn parse(payload: Vec<u8>, version: u32, schema: &ArraySchema) -> Result<Self> {
        let layout = RTreeLayout::read(payload.as_slice(), version, schema, usize::MAX)?;
        Ok(RTree { layout, bytes: payload.into() })
    }
}

impl<B: ReadAt> RTree<B> {
    /// Returns the number of leaf boxes.
    pub fn tiles(&self) -> u64 {
        self.layout.tiles()
    }

    /// Returns the range of one dimension in the box of one tile.
    ///
    /// # Errors
    /// [`Error::Damaged`] if there is no such tile or dimension; errors of reading the bytes.
    pub fn range(&self, tile: u64, dimension: usize) -> Result<Range> {
        let mut ranges = Vec::new();
        self.boxes().read(tile, &mut ranges)?;
        ranges.into_iter().nth(dimension).ok_or_else(|| Error::damaged(format!("tile {tile} has no such box")))
    }

    /// Returns a cursor over the leaf boxes. Reads in ascending order need few accesses to the bytes.
    pub fn boxes(&self) -> BoxCursor<'_, B> {
        self.cursor(self.layout.levels.len().saturating_sub(1))
    }

    /// Passes the tiles that `decide` selects to `found`, as ascending ranges of tile numbers. `decide` sees upper
    /// boxes and leaf boxes; an upper box may be larger than the union of the boxes below it, never smaller.
    ///
    /// # Errors
    /// Those of `decide`, and of reading the bytes.
    pub fn descend(
        &self,
        mut decide: impl FnMut(&[Range]) -> Result<Descent>,
        mut found: impl FnMut(Numbers<u64>),
    ) -> Result<()> {
        let Some(leaves) = self.layout.levels.len().checked_sub(1) else { return Ok(()) };
        let first = if self.layout.descends { 0 } else { leaves };
        let mut cursors: Vec<_> = (first..=leaves).map(|level| self.cursor(level)).collect();
        let mut ranges = Vec::new();
        // For each level from the first to the current one, the boxes still to be examined.
        let mut open = Vec::from([self.all_of(first)]);
        while let Some(nodes) = open.last_mut() {
            let Some(node) = nodes.next() else {
                open.pop();
                continue;
            };
            let depth = open.len() - 1;
            cursors[depth].read(node, &mut ranges)?;
            match (decide(&ranges)?, first + depth == leaves) {
                (Descent::Skip, _) => {}
                (Descent::Enter, false) => open.push(self.below(node, first + depth, first + depth + 1)),
                (Descent::Enter | Descent::Take, _) => found(self.below(node, first + depth, leaves)),
            }
        }
        Ok(())
    }

    /// Returns the numbers of the boxes of level `of` that are below box `node` of `level`.
    fn below(&self, node: u64, level: usize, of: usize) -> Numbers<u64> {
        let each = self.layout.fanout.saturating_pow((of - level) as u32);
        let count = self.layout.levels[of].count;
        node.saturating_mul(each).min(count)..node.saturating_add(1).saturating_mul(each).min(count)
    }

    fn all_of(&self, level: usize) -> Numbers<u64> {
        0..self.layout.levels.get(level).map_or(0, |level| level.count)
    }

    fn cursor(&self, level: usize) -> BoxCursor<'_, B> {
        let even_size = self.layout.even_size();
        BoxCursor {
            tree: self,
            level: self.layout.levels.get(level),
            even_size,
            window: Vec::new(),
            start: 0,
            next: (0, 0),
        }
    }
}

/// A reader of the boxes of one level. Memory: a window of 4 KiB, or one box if that is larger.
pub struct BoxCursor<'a, B> {
    tree: &'a RTree<B>,
    level: Option<&'a Level>,
    even_size: Option<u64>,
    window: Vec<u8>,
    /// The offset of the window in the tree.
    start: u64,
    /// The index and the offset of the box after the last one that was read.
    next: (u64, u64),
}

impl<B: ReadAt> BoxCursor<'_, B> {
    /// Replaces the content of `ranges` by the ranges of a box, one per dimension.
    ///
    /// # Errors
    /// [`Error::Damaged`] if there is no such box; errors of reading the bytes.
    pub fn read(&mut self, number: u64, ranges: &mut Vec<Range>) -> Result<()> {
        ranges.clear();
        let Some(level) = self.level.filter(|level| number < level.count) else {
            return Err(Error::damaged(format!("tile {number} has no box in the R-tree")));
        };
        let mut at = match self.even_size {
            Some(size) => level.bytes.start + number * size,
            None => self.find(level, number)?,
        };
        for dimension in &self.tree.layout.dimensions {
            let length = dimension.length(|| Ok(self.bytes(at, 8)?.first_chunk().copied().unwrap_or_default()))?;
            ranges.push(dimension.parse(self.bytes(at, length)?)?);
            at += length as u64;
        }
        self.next = (number + 1, at);
        Ok(())
    }

    /// Returns the offset of a box of variable size.
    fn find(&mut self, level: &Level, number: u64) -> Result<u64> {
        let checkpoint = number / CHECKPOINT_EVERY * CHECKPOINT_EVERY;
        let (mut before, mut at) = self.next;
        if at == 0 || !(checkpoint..=number).contains(&before) {
            let index = usize::try_from(number / CHECKPOINT_EVERY).ok();
            let start = index.and_then(|index| level.checkpoints.get(index));
            (before, at) = (checkpoint, *start.ok_or_else(|| Error::internal("a box without a checkpoint"))?);
        }
        for _ in before..number {
            for dimension in &self.tree.layout.dimensions {
                let length = dimension.length(|| Ok(self.bytes(at, 8)?.first_chunk().copied().unwrap_or_default()))?;
                at += length as u64;
            }
        }
        Ok(at)
    }

    /// Returns bytes of this level, from the window if it has them.
    fn bytes(&mut self, at: u64, length: usize) -> Result<&[u8]> {
        let is_here = |from: u64| from.saturating_add(length as u64) <= self.window.len() as u64;
        let from = match at.checked_sub(self.start).filter(|from| is_here(*from)) {
            Some(from) => from as usize,
            None => {
                let end = self.level.map_or(0, |level| level.bytes.end);
                let left = end.saturating_sub(at);
                if length as u64 > left {
                    return Err(Error::internal("a box outside its level"));
                }
                self.window.resize(left.min(WINDOW.max(length as u64)) as usize, 0);
                self.start = at;
                if let Err(error) = self.tree.bytes.read_at(at, &mut self.window) {
                    self.window.clear();
                    return Err(error.in_field("R-tree"));
                }
                0
            }
        };
        self.window.get(from..from + length).ok_or_else(|| Error::internal("a window without the bytes just read"))
    }
}

/// A sequential source of bytes.
pub trait Pages {
    /// Appends the next bytes to `out`; returns `false` at the end.
    ///
    /// # Errors
    /// Those of the underlying read.
    fn next(&mut self, out: &mut Vec<u8>) -> Result<bool>;
}

impl Pages for &[u8] {
    fn next(&mut self, out: &mut Vec<u8>) -> Result<bool> {
        let all = std::mem::take(self);
        out.extend_from_slice(all);
        Ok(!all.is_empty())
    }
}

/// A reader of fields from a sequential source of bytes.
pub(super) struct PageReader<P> {
    pages: P,
    bytes: Vec<u8>,
    /// The number of `bytes` that were consumed.
    taken: usize,
    /// The number of bytes consumed since the start.
    position: u64,
}

impl<P: Pages> PageReader<P> {
    pub fn new(pages: P) -> Self {
        PageReader { pages, bytes: Vec::new(), taken: 0, position: 0 }
    }

    fn peek(&mut self, length: usize, field: &str) -> Result<&[u8]> {
        while self.bytes.len() - self.taken < length {
            self.bytes.drain(..self.taken);
            self.taken = 0;
            if !self.pages.next(&mut self.bytes)? {
                let reason = format!("{length} bytes wanted, {} left", self.bytes.len());
                return Err(self.error(field, reason));
            }
        }
        Ok(&self.bytes[self.taken..self.taken + length])
    }

    fn take(&mut self, length: usize, field: &str) -> Result<&[u8]> {
        self.peek(length, field)?;
        let taken = self.taken;
        self.taken += length;
        self.position += length as u64;
        Ok(&self.bytes[taken..taken + length])
    }

    fn u32(&mut self, field: &str) -> Result<u32> {
        Ok(u32::from_le_bytes(self.take(4, field)?.first_chunk().copied().unwrap_or_default()))
    }

    fn u64(&mut self, field: &str) -> Result<u64> {
        Ok(u64::from_le_bytes(self.take(8, field)?.first_chunk().copied().unwrap_or_default()))
    }

    fn expect_end(&mut self, what: &str) -> Result<()> {
        self.bytes.drain(..self.taken);
        self.taken = 0;
        self.pages.next(&mut self.bytes)?;
        match self.bytes.len() {
            0 => Ok(()),
            more => Err(self.error(what, format!("{more} bytes too many"))),
        }
    }

    fn error(&self, field: &str, reason: impl Into<String>) -> Error {
        Error::damaged(reason).in_field(field).at(self.position)
    }

    /// Returns the number of bytes consumed since the start.
    pub fn position(&self) -> u64 {
        self.position
    }
}
