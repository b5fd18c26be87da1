//! A file of variants with random access, and in sequence.
//!
//! For random access, one pass records the positions and the length of each piece of text. The first pieces of this pass
//! stay in the cache for the read that usually follows.

use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use tilefs_base::content::{Content, Forward};
use tilefs_base::error::{Error, Locate, Result};
use tilefs_base::lru_cache::LruCache;
use tilefs_base::output::Output;
use tilefs_export::content::compose::Concat;
use tilefs_reader::array::IndexKey;

use super::records::{TextPiece, VariantText};
use super::windows::{PIECE, RecordWalk};
use crate::tabix::{IndexFormat, csi_of_bcf, tabix};

/// Number of pieces that are cached for reads at nearby offsets.
const KEPT: usize = 4;

impl VariantText {
    /// Returns the file without BGZF. Measuring its length takes a pass over all records, unless an earlier mount has
    /// saved the result. Sets `remark` if there is one.
    ///
    /// # Errors
    /// Fails if a record cannot be read or represented.
    pub fn content(self: Arc<Self>, remark: &Arc<OnceLock<String>>) -> Result<Arc<dyn Content>> {
        let (head, owner) = (self.head()?, self.indexes().new_owner());
        let saved = &self.dataset.data.context().saved;
        let inputs = saved.inputs_of(("variants", self.dataset.row_count()?.most()), &*self);
        let encode = |(pieces, length): &(Vec<TextPiece>, u64)| encode(pieces, *length);
        let (pieces, length) = saved.get_or_make(inputs, |bytes| self.decode(bytes), encode, || self.measure(owner))?;
        if length.checked_add(head.len() as u64).is_none_or(|length| length > i64::MAX as u64) {
            return Err(Error::unsupported("the text would be longer than 2^63 bytes"));
        }
        let has_records = || Ok(RecordWalk::new(self.clone()).next()?.is_some());
        self.set_remark(remark, pieces.iter().map(|piece| piece.span), has_records)?;
        let groups = self.groups(&pieces, length);
        let lines = TextContent { records: self, pieces, groups, length, owner, kept: LruCache::new(KEPT) };
        Ok(Arc::new(Concat::new(vec![Arc::new(head), Arc::new(lines)])))
    }

    /// Returns the same bytes sequentially. The first bytes require only the first records. Sets `remark` with the last
    /// bytes, if there is one.
    ///
    /// # Errors
    /// Fails if the header is missing.
    pub fn forward(self: Arc<Self>, remark: &Arc<OnceLock<String>>) -> Result<Box<dyn Forward>> {
        let (head, remark) = (Some(self.head()?), remark.clone());
        let (walk, ready, spans) = (RecordWalk::new(self), VecDeque::new(), BTreeSet::new());
        Ok(Box::new(InSequence { head, walk, ready, spans, remark }))
    }

    /// Returns the index of the file in BGZF. Building it takes a pass over all records, unless an earlier mount has
    /// saved it.
    ///
    /// # Errors
    /// As for [`tabix`].
    pub fn index(&self, content: &dyn Content, format: IndexFormat) -> Result<Vec<u8>> {
        let saved = &self.dataset.data.context().saved;
        let inputs = saved.inputs_of(("index of variants", self.dataset.row_count()?.most()), self);
        let inputs = inputs.map(|inputs| inputs.part(format_args!("{format:?}")));
        saved.get_or_make(
            inputs,
            |bytes| Some(bytes.to_vec()),
            Vec::clone,
            || match &self.bcf {
                Some(header) => csi_of_bcf(content, header),
                None => tabix(content, format),
            },
        )
    }

    /// Divides pieces into groups of at most about [`PIECE`] bytes that one query can find; returns the number of the
    /// first piece of each. `length` is the length of the text of all pieces.
    fn groups(&self, pieces: &[TextPiece], length: u64) -> Vec<usize> {
        let layout = &self.dataset.layout;
        // A contig that has other pieces is not whole in one of these.
        let is_whole = |number: usize| {
            let span = |number: usize| pieces.get(number).map(|piece| piece.span);
            span(number) != span(number + 1) && number.checked_sub(1).is_none_or(|before| span(number) != span(before))
        };
        let can_join = |number: usize, first: usize| {
            let spans = [first, number].map(|number| self.spans.get(pieces.get(number)?.span));
            let [Some(one), Some(other)] = spans else { return false };
            one.contig == other.contig || one.can_join(other, layout) && is_whole(number) && is_whole(first)
        };
        let mut groups: Vec<usize> = Vec::new();
        for number in 0..pieces.len() {
            let end = pieces.get(number + 1).map_or(length, |next| next.place);
            let place = |first: usize| pieces.get(first).map_or(0, |piece| piece.place);
            let fits = |first: &usize| end - place(*first) <= PIECE as u64 && can_join(number, *first);
            if !groups.last().is_some_and(fits) {
                groups.push(number);
            }
        }
        groups
    }

    /// Returns all pieces, and the length of their text. Caches the first ones under the number of `owner`.
    fn measure(self: &Arc<Self>, owner: u64) -> Result<(Vec<TextPiece>, u64)> {
        let most = self.dataset.data.context().budget().text_pieces() as u64;
        let (mut pieces, mut length, mut walk) = (Vec::new(), 0u64, RecordWalk::new(self.clone()));
        while let Some(made) = walk.next()? {
            for (piece, text) in made.into_iter().filter(|(_, text)| !text.is_empty()) {
                let (place, size) = (length, text.len());
                length = length.saturating_add(size as u64);
                if length <= most {
                    let key = IndexKey::TextPiece(owner, pieces.len() as u64);
                    self.indexes().get_or_load(key, || Ok((text, size)))?;
                }
                pieces.push(TextPiece { place, ..piece });
            }
        }
        self.dataset.data.context().saved.note_measured(walk.records);
        Ok((pieces, length))
    }

    /// Decodes pieces that an earlier mount has saved; `None` if they are malformed.
    fn decode(&self, bytes: &[u8]) -> Option<(Vec<TextPiece>, u64)> {
        let (numbers, []) = bytes.as_chunks() else { return None };
        let numbers: Vec<u64> = numbers.iter().map(|number| u64::from_le_bytes(*number)).collect();
        let (length, rest) = numbers.split_first()?;
        let (found, []) = rest.as_chunks::<4>() else { return None };
        let piece = |[span, first, last, place]: &[u64; 4]| {
            let span = usize::try_from(*span).ok().filter(|span| *span < self.spans.len())?;
            Some(TextPiece {
                span,
                first: u32::try_from(*first).ok()?,
                last: u32::try_from(*last).ok()?,
                place: *place,
            })
        };
        let pieces = found.iter().map(piece).collect::<Option<Vec<TextPiece>>>()?;
        let ascends = pieces
            .windows(2)
            .all(|two| two[0].place < two[1].place && (two[0].span, two[0].last) < (two[1].span, two[1].first));
        let begins = pieces.first().map_or(*length, |first| first.place) == 0;
        let ends = pieces.last().is_none_or(|last| last.place < *length) && *length <= i64::MAX as u64;
        let is_sound = ascends && begins && ends && pieces.iter().all(|piece| piece.first <= piece.last);
        is_sound.then_some((pieces, *length))
    }
}

fn encode(pieces: &[TextPiece], length: u64) -> Vec<u8> {
    let numbers =
        pieces.iter().flat_map(|piece| [piece.span as u64, piece.first.into(), piece.last.into(), piece.place]);
    [length].into_iter().chain(numbers).flat_map(u64::to_le_bytes).collect()
}

/// The bytes of a file, read sequentially.
struct InSequence {
    head: Option<Vec<u8>>,
    walk: RecordWalk,
    ready: VecDeque<Vec<u8>>,
    /// The spans that had records so far.
    spans: BTreeSet<usize>,
    remark: Arc<OnceLock<String>>,
}

impl Forward for InSequence {
    fn next(&mut self, out: &mut Vec<u8>) -> Result<bool> {
        if let Some(head) = self.head.take() {
            *out = head;
            return Ok(true);
        }
        loop {
            if let Some(text) = self.ready.pop_front() {
                *out = text;
                return Ok(true);
            }
            let Some(made) = self.walk.next()? else {
                let has_records = || Ok(self.walk.records > 0);
                self.walk.records_of.set_remark(&self.remark, self.spans.iter().copied(), has_records)?;
                return Ok(false);
            };
            for (piece, mut text) in made.into_iter().filter(|(_, text)| !text.is_empty()) {
                self.spans.insert(piece.span);
                match self.ready.back_mut().filter(|last| last.len() + text.len() <= PIECE) {
                    Some(last) => last.append(&mut text),
                    None => self.ready.push_back(text),
                }
            }
        }
    }
}

/// The records of a file with random access. Memory: 32 bytes for each piece, and the text of a few groups. Pieces from
/// the measuring pass are in the cache of indexes.
struct TextContent {
    records: Arc<VariantText>,
    pieces: Vec<TextPiece>,
    /// The first piece of each group of pieces that are read together.
    groups: Vec<usize>,
    length: u64,
    /// Identifies this file's pieces in the cache.
    owner: u64,
    kept: LruCache<usize, Arc<Vec<u8>>>,
}

impl TextContent {
    /// Returns the pieces of a group.
    fn pieces_of(&self, group: usize) -> Range<usize> {
        let first = |group: usize| self.groups.get(group).copied().unwrap_or(self.pieces.len());
        first(group)..first(group + 1)
    }

    /// Returns the range of a group in the file.
    fn place(&self, group: usize) -> Range<u64> {
        let start = |number: usize| self.pieces.get(number).map_or(self.length, |piece| piece.place);
        let pieces = self.pieces_of(group);
        start(pieces.start)..start(pieces.end)
    }

    /// Returns the number of the group that contains a byte.
    fn group_at(&self, place: u64) -> usize {
        let piece = self.pieces.partition_point(|piece| piece.place <= place).saturating_sub(1);
        self.groups.partition_point(|first| *first <= piece).saturating_sub(1)
    }

    fn text(&self, group: usize) -> Result<Arc<Vec<u8>>> {
        if let Some(text) = self.kept.get(&group) {
            return Ok(text);
        }
        let numbers = self.pieces_of(group);
        let text = match self.measured(&numbers)? {
            Some(measured) => measured,
            None => Arc::new(self.records.text(self.pieces.get(numbers.clone()).unwrap_or_default())?),
        };
        let place = self.place(group);
        if text.len() != place.end - place.start {
            let first = self.pieces.get(numbers.start).map_or(0, |piece| piece.first);
            let reason = format!("records at {first} that have another length than they had");
            return Err(Error::damaged(reason).in_array(self.records.dataset.data.path()));
        }
        self.kept.put(group, text.clone());
        Ok(text)
    }

    /// Returns the text of pieces of the measuring pass, if all are still cached.
    fn measured(&self, numbers: &Range<usize>) -> Result<Option<Arc<Vec<u8>>>> {
        let piece = |number: usize| self.records.indexes().get(IndexKey::TextPiece(self.owner, number as u64));
        if numbers.len() == 1 {
            return piece(numbers.start);
        }
        let mut text: Vec<u8> = Vec::new();
        for number in numbers.clone() {
            let Some(own) = piece(number)? else { return Ok(None) };
            text.extend_from_slice(&own);
        }
        Ok(Some(Arc::new(text)))
    }
}

impl Content for TextContent {
    fn len(&self) -> u64 {
        self.length
    }

    fn fill(&self, offset: u64, out: Output<'_>) -> Result<()> {
        let (mut at, mut rest) = (offset, out);
        while !rest.is_empty() {
            let group = self.group_at(at);
            let place = self.place(group);
            let text = self.text(group)?;
            let within = at.checked_sub(place.start).and_then(|from| text.get(usize::try_from(from).ok()?..));
            let within = within.filter(|within| !within.is_empty());
            let within = within.ok_or_else(|| Error::internal("a read past the end of a text"))?;
            let (mut now, later) = rest.split_at(within.len() as u64);
            if let Some(now) = now.wanted() {
                now.copy_from_slice(&within[..now.len()]);
            }
            at += now.len();
            rest = later;
        }
        Ok(())
    }

    fn band(&self, offset: u64) -> Range<u64> {
        self.place(self.group_at(offset))
    }
}
