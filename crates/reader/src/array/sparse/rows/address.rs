//! The address of a cell of a sparse array.

use tilefs_base::error::{Error, Result};

/// A cell, by the number of its fragment and its position there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Address(u64);

/// Bits of an address that hold the position.
const POSITION_BITS: u32 = 44;

impl Address {
    /// # Errors
    /// [`Error::Unsupported`] for more fragments or cells than an address can tell apart.
    pub fn new(fragment: u32, position: u64) -> Result<Self> {
        if u64::from(fragment) >> (64 - POSITION_BITS) != 0 || position >> POSITION_BITS != 0 {
            return Err(Error::unsupported("another order of more than 2^44 cells or 2^20 fragments"));
        }
        Ok(Address(u64::from(fragment) << POSITION_BITS | position))
    }

    /// Returns the addresses of `cells` consecutive cells from a position on.
    ///
    /// # Errors
    /// As [`Address::new`].
    pub fn consecutive(fragment: u32, position: u64, cells: u64) -> Result<impl Iterator<Item = Address>> {
        let first = Address::new(fragment, position)?;
        // Positions are the last bits of an address.
        Address::new(fragment, position.saturating_add(cells.saturating_sub(1)))?;
        Ok((0..cells).map(move |cell| Address(first.0 + cell)))
    }

    pub fn fragment(self) -> u32 {
        (self.0 >> POSITION_BITS) as u32
    }

    pub fn position(self) -> u64 {
        self.0 & ((1 << POSITION_BITS) - 1)
    }

    pub fn to_bits(self) -> u64 {
        self.0
    }

    pub fn from_bits(bits: u64) -> Self {
        Address(bits)
    }

    /// Returns the address in fewer bits, if positions take at most `position_bits`.
    pub fn packed(self, position_bits: u32) -> u64 {
        u64::from(self.fragment()) << position_bits | self.position()
    }

    /// Returns the address of what [`Address::packed`] returned.
    pub fn from_packed(packed: u64, position_bits: u32) -> Self {
        let fragment = packed >> position_bits;
        Address(fragment << POSITION_BITS | (packed ^ fragment << position_bits))
    }
}
