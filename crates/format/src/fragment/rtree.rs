//! The R-tree of a sparse fragment: the minimum bounding rectangle (MBR) of each tile, and above them levels of boxes of
//! which each holds so many of the next level.
//!
//! The tree may be larger than memory should be. [`RTreeLayout::read`] goes through all of it once, proves that each box
//! holds those below it, and notes where the levels are. [`RTree`] then reads single boxes, wherever the bytes are kept.

use std::ops::Range as Numbers;

use super::facts::domain_if_unsigned;
use crate::cursor::Cursor;
use crate::datatype::Datatype;
use crate::error::{Error, Locate, Result};
use crate::scalar::{Range, Scalar, range_bytes};
use crate::schema::{ArraySchema, Dimension};

/// A tree of 64-bit counts is no higher, however small its fanout.
const MOST_LEVELS: u32 = 64;

/// Of boxes of varying size, the start of one in so many is noted.
const NOTED: u64 = 16;

/// Bytes that a cursor reads at once.
const WINDOW: u64 = 4096;

/// Bytes of two lengths, in front of the bounds of a varying size.
const LENGTHS: usize = 16;

/// Bytes that are kept somewhere.
pub trait ReadAt {
    /// Fills `out` with the bytes from `start`.
    ///
    /// # Errors
    /// [`Error::Damaged`] past the end; what reading says.
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

/// What to do with the tiles below a box.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Descent {
    /// None is wanted.
    Skip,
    /// Some may be wanted: look at the boxes below.
    Enter,
    /// All are wanted.
    Take,
}

/// Where the boxes of an R-tree are in its bytes. Memory: a few words for each level; where boxes vary in size, half a
/// byte for each.
#[derive(Debug, Clone, PartialEq)]
pub struct RTreeLayout {
    dimensions: Box<[BoxDimension]>,
    fanout: u64,
    /// From the root to the leaves.
    levels: Vec<Level>,
    /// Whether the upper levels say anything.
    descends: bool,
}

#[derive(Debug, Clone, PartialEq)]
struct BoxDimension {
    datatype: Datatype,
    variable: bool,
    /// As in the schema, where an old library may have taken times for unsigned numbers.
    unsigned_times: Option<Dimension>,
    version: u32,
}

#[derive(Debug, Clone, PartialEq)]
struct Level {
    /// Where its boxes are.
    bytes: Numbers<u64>,
    count: u64,
    /// Where one in [`NOTED`] boxes of varying size starts.
    noted: Vec<u64>,
}

impl RTreeLayout {
    /// Reads the payload of an R-tree's generic tile in a fragment of this version, as `pages` gives it piece by piece.
    /// Dense fragments have a tree without levels. At most `most` bytes are kept of a level while the next is read.
    ///
    /// # Errors
    /// [`Error::Damaged`] where the levels do not fill the payload, are not as many boxes as the fanout asks for, a bound
    /// is out of order, or a box does not hold those below it; [`Error::Unsupported`] for a level of more bytes.
    pub fn read(pages: impl Pages, version: u32, schema: &ArraySchema, most: usize) -> Result<Self> {
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
        if levels > MOST_LEVELS || (levels > 0 && fanout == 0) {
            return Err(reader.error("number of levels", format!("{levels} levels of fanout {fanout}")));
        }
        let dimensions = dimensions(version, schema);
        let descends = dimensions.iter().all(|dimension| dimension.unsigned_times.is_none());
        let mut layout = RTreeLayout { dimensions, fanout: fanout.into(), levels: Vec::new(), descends };
        let mut above = Vec::new();
        for level in 1..=levels {
            above = layout.read_level(&mut reader, &above, if level == levels { None } else { Some(most) })?;
        }
        reader.expect_end("R-tree")?;
        Ok(layout)
    }

    /// Reads a count and that many MBRs: the whole list before version 3.
    pub(super) fn read_list(reader: &mut PageReader<impl Pages>, version: u32, schema: &ArraySchema) -> Result<Self> {
        let dimensions = dimensions(version, schema);
        let mut layout = RTreeLayout { dimensions, fanout: 1, levels: Vec::new(), descends: false };
        layout.read_level(reader, &[], None)?;
        Ok(layout)
    }

    /// Reads a level below the one of these bytes, and gives its own: at most `most`, none of the leaves.
    fn read_level(
        &mut self,
        reader: &mut PageReader<impl Pages>,
        above: &[u8],
        most: Option<usize>,
    ) -> Result<Vec<u8>> {
        let count = reader.u64("number of MBRs")?;
        if let Some(level) = self.levels.last()
            && level.count != count.div_ceil(self.fanout)
        {
            let reason = format!("{} boxes over {count} at a fanout of {}", level.count, self.fanout);
            return Err(reader.error("number of MBRs", reason));
        }
        if count > 0 && self.even_size() == Some(0) {
            return Err(reader.error("number of MBRs", "boxes of nothing"));
        }
        let mut level = Level { bytes: reader.position..reader.position, count, noted: Vec::new() };
        let (varies, is_leaf, number_of_level) = (self.even_size().is_none(), most.is_none(), self.levels.len());
        let mut above = PageReader::new(above);
        let (mut kept, mut ranges, mut around) = (Vec::new(), Vec::new(), Vec::new());
        for number in 0..count {
            if varies && number.is_multiple_of(NOTED) {
                level.noted.push(reader.position);
            }
            self.read_box(reader, &mut ranges, most.map(|_| &mut kept))?;
            if most.is_some_and(|most| kept.len() > most) {
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

    /// Reads a box, and appends its bytes where these are kept.
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
            // Writers that take bytes for signed numbers join texts by other rules than those by which we look for them.
            let is_plain = |value: &Scalar| !matches!(value, Scalar::Text(text) if !text.is_ascii());
            self.descends &= is_plain(&range.low) && is_plain(&range.high);
            ranges.push(range);
        }
        Ok(())
    }

    /// Numbers are in order. (Some writers compare texts as signed bytes, so nothing is asked of those.)
    fn check_leaf(&self, ranges: &[Range], tile: u64) -> Result<()> {
        let mut both = self.dimensions.iter().zip(ranges);
        match both.all(|(dimension, range)| dimension.variable || range.is_ordered()) {
            true => Ok(()),
            false => Err(Error::damaged(format!("MBR of tile {tile} out of order")).in_field("MBRs")),
        }
    }

    /// How many boxes of tiles there are, which has to be the number of tiles.
    pub fn tiles(&self) -> u64 {
        self.levels.last().map_or(0, |level| level.count)
    }

    /// Bytes of memory behind this layout.
    pub fn memory(&self) -> usize {
        let noted: usize = self.levels.iter().map(|level| level.noted.capacity() * size_of::<u64>()).sum();
        noted + self.levels.capacity() * size_of::<Level>() + size_of_val::<[BoxDimension]>(&self.dimensions)
    }

    /// Bytes of a box, where all are of one size.
    fn even_size(&self) -> Option<u64> {
        let sizes = self.dimensions.iter().map(|dimension| match dimension.variable {
            true => None,
            false => Some(2 * dimension.datatype.size() as u64),
        });
        sizes.sum()
    }
}

impl BoxDimension {
    /// Bytes of the range whose first eight `head` gives.
    fn length(&self, head: impl FnOnce() -> Result<[u8; 8]>) -> Result<usize> {
        if !self.variable {
            return Ok(2 * self.datatype.size());
        }
        let bounds = usize::try_from(u64::from_le_bytes(head()?)).ok();
        let length = bounds.and_then(|bounds| bounds.checked_add(LENGTHS));
        length.ok_or_else(|| Error::damaged("bounds of more bytes than memory has").in_field("MBR"))
    }

    /// A range of so many bytes. Bounds of times before and after 1970 that an old library took for unsigned numbers
    /// become the domain: such a tile has to be looked into.
    fn parse(&self, bytes: &[u8]) -> Result<Range> {
        let (low, high) = range_bytes(&mut Cursor::new(bytes), self.datatype, self.variable, "MBR")?;
        let range = Range { low: Scalar::parse(self.datatype, low)?, high: Scalar::parse(self.datatype, high)? };
        if range.is_ordered() {
            return Ok(range);
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

/// An R-tree whose bytes are kept somewhere.
#[derive(Debug, Clone, PartialEq)]
pub struct RTree<B> {
    pub layout: RTreeLayout,
    /// Those that the layout was read from.
    pub bytes: B,
}

impl RTree<Box<[u8]>> {
    /// Reads all of a payload that is in memory; see [`RTreeLayout::read`].
    ///
    /// # Errors
    /// As there.
    pub fn parse(payload: Vec<u8>, version: u32, schema: &ArraySchema) -> Result<Self> {
        let layout = RTreeLayout::read(payload.as_slice(), version, schema, usize::MAX)?;
        Ok(RTree { layout, bytes: payload.into() })
    }
}

impl<B: ReadAt> RTree<B> {
    /// How many boxes of tiles there are.
    pub fn tiles(&self) -> u64 {
        self.layout.tiles()
    }

    /// The range of one dimension in the box of one tile.
    ///
    /// # Errors
    /// [`Error::Damaged`] when there is no such tile or dimension; what reading says.
    pub fn range(&self, tile: u64, dimension: usize) -> Result<Range> {
        let mut ranges = Vec::new();
        self.boxes().read(tile, &mut ranges)?;
        ranges.into_iter().nth(dimension).ok_or_else(|| Error::damaged(format!("tile {tile} has no such box")))
    }

    /// Reads the boxes of tiles, with few look-ups where these ascend.
    pub fn boxes(&self) -> BoxCursor<'_, B> {
        self.cursor(self.layout.levels.len().saturating_sub(1))
    }

    /// Visits the tiles that `decide` wants, by their boxes and those above, as ascending ranges of their numbers. A box
    /// above others may be larger than they are together, never smaller.
    ///
    /// # Errors
    /// Those of `decide`; what reading says.
    pub fn descend(
        &self,
        mut decide: impl FnMut(&[Range]) -> Result<Descent>,
        mut found: impl FnMut(Numbers<u64>),
    ) -> Result<()> {
        let Some(leaves) = self.layout.levels.len().checked_sub(1) else { return Ok(()) };
        let first = if self.layout.descends { 0 } else { leaves };
        let mut cursors: Vec<_> = (first..=leaves).map(|level| self.cursor(level)).collect();
        let mut ranges = Vec::new();
        // For each level from the first to the present one, the boxes that are still to be looked at.
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

    /// The boxes of a level that lie below one of another level.
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

/// Reads the boxes of one level. Memory: a window of 4 KiB, or one box where that is larger.
pub struct BoxCursor<'a, B> {
    tree: &'a RTree<B>,
    level: Option<&'a Level>,
    even_size: Option<u64>,
    window: Vec<u8>,
    /// Where the window starts in the tree.
    start: u64,
    /// The box behind the one that was read last, and where it starts.
    next: (u64, u64),
}

impl<B: ReadAt> BoxCursor<'_, B> {
    /// Puts the ranges of a box in the place of what is in `ranges`, one for each dimension.
    ///
    /// # Errors
    /// [`Error::Damaged`] when there is no such box; what reading says.
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

    /// Where a box of varying size starts.
    fn find(&mut self, level: &Level, number: u64) -> Result<u64> {
        let noted = number / NOTED * NOTED;
        let (mut before, mut at) = self.next;
        if at == 0 || !(noted..=number).contains(&before) {
            let start = usize::try_from(number / NOTED).ok().and_then(|place| level.noted.get(place));
            (before, at) = (noted, *start.ok_or_else(|| Error::internal("a box that was not noted"))?);
        }
        for _ in before..number {
            for dimension in &self.tree.layout.dimensions {
                let length = dimension.length(|| Ok(self.bytes(at, 8)?.first_chunk().copied().unwrap_or_default()))?;
                at += length as u64;
            }
        }
        Ok(at)
    }

    /// Bytes of this level.
    fn bytes(&mut self, at: u64, length: usize) -> Result<&[u8]> {
        let is_here = |from: u64| from.saturating_add(length as u64) <= self.window.len() as u64;
        let from = match at.checked_sub(self.start).filter(|from| is_here(*from)) {
            Some(from) => from as usize,
            None => {
                let end = self.level.map_or(0, |level| level.bytes.end);
                let left = end.saturating_sub(at);
                if length as u64 > left {
                    return Err(Error::internal("a box that is not where it was"));
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
        self.window.get(from..from + length).ok_or_else(|| Error::internal("a window that does not hold what it read"))
    }
}

/// Bytes that come piece by piece.
pub trait Pages {
    /// Appends the next bytes; `false` behind the last.
    ///
    /// # Errors
    /// What reading says.
    fn next(&mut self, out: &mut Vec<u8>) -> Result<bool>;
}

impl Pages for &[u8] {
    fn next(&mut self, out: &mut Vec<u8>) -> Result<bool> {
        let all = std::mem::take(self);
        out.extend_from_slice(all);
        Ok(!all.is_empty())
    }
}

/// Reads fields from bytes that come piece by piece.
pub(super) struct PageReader<P> {
    pages: P,
    bytes: Vec<u8>,
    /// What was read of the bytes.
    taken: usize,
    /// Bytes from the start to here.
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

    /// Bytes from the start to here.
    pub fn position(&self) -> u64 {
        self.position
    }
}
