//! Which pixels of an image its overviews show: those that `gdaladdo -r nearest` chooses for a copy of the file.
//!
//! * There are overviews by the factors 2, 4, 8 and so on, until no side has more than 256 pixels. Sides are rounded up.
//! * A pixel of an overview shows one of its *source*: pixel `i` of a side shows pixel `⌊i · n / m + ½⌋`, where `n` and
//!   `m` are the lengths of the source's side and its own.
//! * Where the bands of a pixel are adjacent, the source of an overview is the next larger one.
//! * Where each band is a plane, the source is the image itself. GDAL then goes through the image in chunks of lines, and
//!   assigns each line of an overview to one of them: it shows no line before the first of its chunk.
//! * Images with so long lines that GDAL's least chunk exceeds its limit are sampled from overview to overview, too: by
//!   tiles without chunks, by strips with chunks that are chosen for each overview.
//!
//! Source: observed with GDAL 3.6 and 3.10; `tests/exports/mounted/overview_files.py` compares all pixels.

/// Overviews end when no side is longer than this.
const LEAST_SIDE: u64 = 256;

/// GDAL's maximum size of a chunk in bytes.
const MOST_CHUNK: u64 = 10 << 20;

/// The sides of the tiles in which GDAL stores the overviews that it makes.
const GDAL_BLOCK: u64 = 128;

/// How an image is stored, as far as the choice of pixels depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Storing {
    /// Whether the bands of a pixel are adjacent, rather than being a plane each.
    pub is_contiguous: bool,
    /// The size of a value in bytes.
    pub value: u64,
    /// Columns and lines of a tile, or of a strip.
    pub block: [u64; 2],
}

/// The overviews of an image: their sizes, and the pixel of the image that each of their pixels shows. Level 0 is the
/// image itself, level `n` the overview by a factor of `2^n`.
#[derive(Debug, Clone, Hash)]
pub struct Sampling {
    /// The columns and lines of each level.
    sizes: Vec<[u64; 2]>,
    /// Whether the source of each overview is the level before it, rather than the image.
    is_nested: bool,
    /// The number of lines of a chunk for each level; 0 if there are no chunks.
    chunks: Vec<u64>,
}

/// A side of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageSide {
    Columns = 0,
    Lines = 1,
}

impl Sampling {
    /// Chooses the pixels of all overviews of an image with this number of columns and lines.
    pub fn of(size: [u64; 2], storing: Storing) -> Self {
        let mut sizes = vec![size];
        let mut factor: u64 = 1;
        while size.iter().any(|length| length.div_ceil(factor) > LEAST_SIDE) {
            factor = factor.saturating_mul(2);
            sizes.push(size.map(|length| length.div_ceil(factor)));
        }
        let mut sampling = Sampling { chunks: vec![0; sizes.len()], sizes, is_nested: true };
        if !storing.is_contiguous {
            sampling.choose_chunks(storing);
        }
        sampling
    }

    fn choose_chunks(&mut self, storing: Storing) {
        let line = |width: u64| width.saturating_mul(storing.value);
        let [width, _] = self.sizes[0];
        let factors = self.sizes.iter().map(|size| ratio(self.sizes[0], *size));
        match LinesAtOnce::of(storing.block[1], line(width), factors.max().unwrap_or(1)) {
            LinesAtOnce::Within(lines) => {
                self.is_nested = false;
                self.chunks.fill(lines);
            }
            LinesAtOnce::Beyond(_) if storing.block[0] < width => {}
            LinesAtOnce::Beyond(_) => {
                for (number, pair) in self.sizes.windows(2).enumerate() {
                    let block = if number == 0 { storing.block[1] } else { GDAL_BLOCK };
                    self.chunks[number + 1] = match LinesAtOnce::of(block, line(pair[0][0]), ratio(pair[0], pair[1])) {
                        LinesAtOnce::Within(lines) => lines,
                        LinesAtOnce::Beyond(lines) if number == 0 => lines,
                        LinesAtOnce::Beyond(_) => 0,
                    };
                }
            }
        }
    }

    /// Returns the number of overviews.
    pub fn overviews(&self) -> usize {
        self.sizes.len() - 1
    }

    /// Returns the columns and lines of a level.
    pub fn size(&self, level: usize) -> [u64; 2] {
        self.sizes[level]
    }

    /// Returns the pixel of the image, along a side, that a pixel of a level shows.
    pub fn in_image(&self, level: usize, side: ImageSide, pixel: u64) -> u64 {
        match (level, self.is_nested) {
            (0, _) => pixel,
            (1, _) | (_, false) => self.in_source(level, 0, side, pixel),
            (level, true) => self.in_image(level - 1, side, self.in_source(level, level - 1, side, pixel)),
        }
    }

    /// Returns the pixel of the level before this one, along a side, that shows the same; `None` if there is none.
    pub fn in_larger(&self, level: usize, side: ImageSide, pixel: u64) -> Option<u64> {
        let larger = level.checked_sub(1)?;
        if self.is_nested || larger == 0 {
            return Some(self.in_source(level, larger, side, pixel));
        }
        let (wanted, near) = (self.in_image(level, side, pixel), pixel.saturating_mul(2));
        let length = self.sizes[larger][side as usize];
        (near.saturating_sub(1)..(near + 2).min(length)).find(|&pixel| self.in_image(larger, side, pixel) == wanted)
    }

    /// Returns the pixel of the source of a level that one of its pixels shows.
    fn in_source(&self, level: usize, source: usize, side: ImageSide, pixel: u64) -> u64 {
        let [length, own] = [source, level].map(|level| self.sizes[level][side as usize]);
        // The same operations on numbers of the same precision as GDAL's.
        let ratio = length as f64 / own as f64;
        let nearest = (0.5 + pixel as f64 * ratio) as u64;
        let nearest = nearest.min(length - 1);
        match (side, self.chunks[level]) {
            (ImageSide::Lines, lines) if lines > 0 => nearest.max(first_of_chunk(lines, length, ratio, pixel, nearest)),
            _ => nearest,
        }
    }
}

/// Returns the first line of the chunk to which GDAL assigns a line of an overview, which is near the line `nearest` of
/// the source.
fn first_of_chunk(lines: u64, length: u64, ratio: f64, line: u64, nearest: u64) -> u64 {
    let next = (nearest / lines + 1) * lines;
    // The first line of the overview that belongs to the next chunk.
    let begins = (0.5 + next as f64 / ratio) as u64;
    if next < length && begins <= line { next } else { next - lines }
}

/// Returns how many times a level is smaller than another, as GDAL rounds it.
fn ratio(of: [u64; 2], level: [u64; 2]) -> u64 {
    let rounded = of.iter().zip(level).map(|(&length, own)| (length as f64 / own as f64 + 0.5) as u64);
    rounded.max().unwrap_or(1).max(1)
}

/// The number of lines that GDAL reads at once, and whether they have at most the size that it allows.
enum LinesAtOnce {
    Within(u64),
    Beyond(u64),
}

impl LinesAtOnce {
    /// Chooses the chunk of an image with blocks of `block` lines, each line of `line` bytes, for overviews by up to a
    /// factor.
    fn of(block: u64, line: u64, factor: u64) -> Self {
        let mut lines = block.max(2 * factor);
        let size = |lines: u64| lines.saturating_mul(line.max(1));
        if size(lines) > MOST_CHUNK {
            return LinesAtOnce::Beyond(lines);
        }
        while size(lines) < MOST_CHUNK / 2 {
            lines *= 2;
        }
        LinesAtOnce::Within(lines)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Goes through an image of `length` lines in chunks, like GDAL, and returns the line that each line of an overview
    /// shows. There is one chunk if `lines` is 0.
    fn line_by_line(length: u64, own: u64, lines: u64) -> Vec<u64> {
        let ratio = length as f64 / own as f64;
        let lines = if lines == 0 { length } else { lines };
        let mut shown = vec![u64::MAX; own as usize];
        for first in (0..length).step_by(lines as usize) {
            let begin = (0.5 + first as f64 / ratio) as u64;
            let end = if first + lines >= length { own } else { (0.5 + (first + lines) as f64 / ratio) as u64 };
            for line in begin..end {
                shown[line as usize] = ((0.5 + line as f64 * ratio) as u64).max(first);
            }
        }
        shown
    }

    proptest! {
        #[test]
        fn pixels_are_those_of_a_pass_over_the_image(
            lines in 1u64..9000, columns in 1u64..9000, value in prop::sample::select(vec![1u64, 2, 4, 8, 4096]),
            block in (prop::sample::select(vec![64u64, 10_000]), 1u64..600), is_contiguous: bool,
        ) {
            let storing = Storing { is_contiguous, value, block: [block.0.min(columns), block.1.min(lines)] };
            let sampling = Sampling::of([columns, lines], storing);
            prop_assert!(!is_contiguous || sampling.is_nested && sampling.chunks.iter().all(|&one| one == 0));
            let mut larger = [(0..columns).collect::<Vec<_>>(), (0..lines).collect::<Vec<_>>()];
            for level in 1..=sampling.overviews() {
                let size = sampling.size(level);
                let factor = 1 << level;
                prop_assert_eq!(size, [columns.div_ceil(factor), lines.div_ceil(factor)]);
                let shown = [ImageSide::Columns, ImageSide::Lines].map(|side| {
                    let source = if sampling.is_nested { level - 1 } else { 0 };
                    let chunk = if side == ImageSide::Lines { sampling.chunks[level] } else { 0 };
                    let pixels = line_by_line(sampling.size(source)[side as usize], size[side as usize], chunk);
                    match sampling.is_nested {
                        true => pixels.into_iter().map(|pixel| larger[side as usize][pixel as usize]).collect(),
                        false => pixels,
                    }
                });
                for side in [ImageSide::Columns, ImageSide::Lines] {
                    let pixels = 0..size[side as usize];
                    let found: Vec<u64> = pixels.clone().map(|pixel| sampling.in_image(level, side, pixel)).collect();
                    prop_assert_eq!(&found, &shown[side as usize]);
                    prop_assert!(found.is_sorted());
                    for pixel in pixels {
                        let in_larger = sampling.in_larger(level, side, pixel);
                        let place = in_larger.map(|pixel| larger[side as usize][pixel as usize]);
                        let is_there = larger[side as usize].binary_search(&found[pixel as usize]).is_ok();
                        prop_assert_eq!(place, is_there.then_some(found[pixel as usize]));
                    }
                }
                larger = shown;
            }
        }
    }

    #[test]
    fn overviews_end_when_no_side_is_longer_than_256() {
        let sizes = |size: [u64; 2]| {
            let sampling = Sampling::of(size, Storing { is_contiguous: true, value: 1, block: size });
            (1..=sampling.overviews()).map(|level| sampling.size(level)).collect::<Vec<_>>()
        };
        assert!(sizes([256, 256]).is_empty() && sizes([1, 1]).is_empty());
        assert_eq!(sizes([257, 1]), [[129, 1]]);
        assert_eq!(sizes([2048, 300]), [[1024, 150], [512, 75], [256, 38]]);
        assert_eq!(sizes([i32::MAX as u64, 1]).len(), 23);
    }

    #[test]
    fn sides_that_the_factor_divides_show_every_nth_pixel() {
        for is_contiguous in [true, false] {
            let sampling = Sampling::of([4096, 1024], Storing { is_contiguous, value: 2, block: [4096, 100] });
            for level in 1..=sampling.overviews() {
                let all = (0..sampling.size(level)[1]).map(|line| sampling.in_image(level, ImageSide::Lines, line));
                assert!(all.eq((0..1024).step_by(1 << level)), "{level}");
            }
        }
    }
}
