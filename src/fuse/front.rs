//! What is read of a long file before its length is known: its front, made from there on, until somebody wants more than
//! that. Then the whole file is made ready, which takes a pass over all of it.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::read_ahead::Stream;
use crate::error::Result;
use crate::export::Forward;
use crate::tree::File;

/// So much is made from the front, and what comes with the last of it; it is kept until the file is closed.
const MOST_BYTES: usize = 1 << 20;

/// A file that was opened before its length was known.
pub struct Front {
    file: Arc<dyn File>,
    made: Mutex<Made>,
    whole: OnceLock<Arc<Stream>>,
}

/// The text so far, and what makes more of it.
struct Made {
    text: Vec<u8>,
    /// `None` once the text is the whole file.
    more: Option<Box<dyn Forward>>,
}

/// Where a range can be read.
pub enum Place {
    /// It was copied from the front: so many bytes, which are fewer than wanted only at the end of the file.
    Front(usize),
    /// It is in the whole file.
    Whole(Arc<Stream>),
}

impl Front {
    pub fn new(file: Arc<dyn File>, more: Box<dyn Forward>) -> Self {
        let made = Made { text: Vec::new(), more: Some(more) };
        Front { file, made: Mutex::new(made), whole: OnceLock::new() }
    }

    /// Copies a range into `out` if it is near the front, else says where it is.
    ///
    /// # Errors
    /// What is wrong with the cells that the text is made of.
    pub fn read(&self, offset: u64, size: usize, out: &mut Vec<u8>) -> Result<Place> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        // With the lock: once there is a whole file, the front goes.
        if let Some(whole) = self.whole.get() {
            return Ok(Place::Whole(whole.clone()));
        }
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let end = start.saturating_add(size);
        if end <= MOST_BYTES || made.more.is_none() {
            made.reach(end)?;
            let end = end.min(made.text.len());
            let found = made.text.get(start.min(end)..end).unwrap_or_default();
            if out.len() < found.len() {
                out.resize(found.len(), 0);
            }
            out[..found.len()].copy_from_slice(found);
            return Ok(Place::Front(found.len()));
        }
        drop(made);
        let content = self.file.open()?;
        let whole = self.whole.get_or_init(|| Arc::new(Stream::new(content))).clone();
        *self.made.lock().unwrap_or_else(PoisonError::into_inner) = Made { text: Vec::new(), more: None };
        Ok(Place::Whole(whole))
    }

    /// The length of the file, once it was read to its end or made whole.
    pub fn length(&self) -> Option<u64> {
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        match self.whole.get() {
            Some(whole) => Some(whole.content().len()),
            None => made.more.is_none().then_some(made.text.len() as u64),
        }
    }

    /// The whole file, if it was wanted.
    pub fn whole(&self) -> Option<&Arc<Stream>> {
        self.whole.get()
    }
}

impl Made {
    /// Makes text up to a place, or to the end of the file.
    fn reach(&mut self, end: usize) -> Result<()> {
        let mut next = Vec::new();
        while self.text.len() < end
            && let Some(more) = &mut self.more
        {
            if more.next(&mut next)? {
                self.text.extend_from_slice(&next);
            } else {
                self.more = None;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::tree::made::MadeFile;
    use std::time::SystemTime;

    /// A text in pieces of 1000 bytes, with an error behind it or its end.
    struct Pieces {
        left: Vec<Vec<u8>>,
        ends: bool,
    }

    impl Forward for Pieces {
        fn next(&mut self, out: &mut Vec<u8>) -> Result<bool> {
            out.clear();
            match (self.left.pop(), self.ends) {
                (Some(piece), _) => out.extend(piece),
                (None, true) => return Ok(false),
                (None, false) => return Err(Error::damaged("the rest")),
            }
            Ok(true)
        }
    }

    fn front(text: &[u8], pieces: usize, ends: bool) -> Front {
        let left: Vec<Vec<u8>> = text.chunks(1000).take(pieces).rev().map(<[u8]>::to_vec).collect();
        let whole = text.to_vec();
        let file = MadeFile::new(SystemTime::UNIX_EPOCH, move || Ok(Arc::new(whole.clone())));
        Front::new(Arc::new(file), Box::new(Pieces { left, ends }))
    }

    fn read(front: &Front, offset: u64, size: usize) -> Vec<u8> {
        let mut out = Vec::new();
        match front.read(offset, size, &mut out).unwrap() {
            Place::Front(length) => out.truncate(length),
            Place::Whole(stream) => {
                let length = (stream.content().len().saturating_sub(offset)).min(size as u64) as usize;
                out.resize(length, 0);
                stream.content().read_at(offset, &mut out).unwrap();
            }
        }
        out
    }

    #[test]
    fn the_front_and_the_whole_have_the_same_bytes() {
        let text: Vec<u8> = (0..3 * MOST_BYTES as u32).map(|number| (number % 251) as u8).collect();
        let front = front(&text, usize::MAX, true);
        for (offset, size) in [(0, 10), (500, 2000), (0, 10), (MOST_BYTES - 5, 5)] {
            assert_eq!(read(&front, offset as u64, size), text[offset..offset + size], "{offset}");
            assert!(front.whole().is_none());
        }
        for (offset, size) in [(MOST_BYTES - 5, 6), (0, 10), (text.len() - 3, 3)] {
            assert_eq!(read(&front, offset as u64, size), text[offset..offset + size], "{offset}");
            assert!(front.whole().is_some());
        }
        assert_eq!(read(&front, text.len() as u64 - 3, 10), text[text.len() - 3..]);
        assert_eq!(read(&front, u64::MAX, 10), b"");
    }

    #[test]
    fn a_short_file_ends_without_being_made_whole() {
        let text = b"0123456789".repeat(250);
        let front = front(&text, usize::MAX, true);
        assert!(front.length().is_none());
        assert_eq!(read(&front, 0, 100_000), text);
        assert_eq!(front.length(), Some(2500));
        assert_eq!(read(&front, 2495, 100_000), b"56789");
        assert_eq!(read(&front, 2500, 10), b"");
        assert_eq!(read(&front, u64::MAX, 10), b"");
        assert!(front.whole().is_none());
    }

    #[test]
    fn what_cannot_be_made_is_an_error_and_no_end() {
        let text = vec![b'x'; 5000];
        let front = front(&text, 2, false);
        assert_eq!(read(&front, 0, 2000), &text[..2000]);
        assert!(front.read(0, 2001, &mut Vec::new()).is_err());
        assert_eq!(read(&front, 0, 1000), &text[..1000]);
    }
}
