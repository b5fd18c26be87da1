//! The orders of cells that the format version of a fragment implies. Some releases numbered space tiles,
//! computed the Hilbert curve or compared times by other rules.
//!
//! A release also writes fragments of older versions, from version 7 on, if the array was created with that version. So
//! fragments of one version may have been sorted by several rules.

use tilefs_format::datatype::Kind;
use tilefs_format::fragment::SIGNED_TIMES_SINCE;

use super::axis::{KeyAxis, Scale};
use super::key::KeyPlan;

/// Writers before this format version divided float domains into tiles by another rule.
const FLOAT_TILES_SINCE: u32 = 5;

/// Writers before this format version computed the Hilbert curve differently.
const HILBERT_SINCE: u32 = 9;

/// Fragments before this format version may have cells in any order: their writers used several rules, and put some
/// cells with string coordinates out of order. Later writers follow today's order, except for non-ASCII strings.
pub const ORDERED_SINCE: u32 = 14;

/// Returns whether all libraries that write fragments of a format version sort cells as `plan` does, by today's rules.
/// They do not if there are strings: current releases still compare the bytes of strings as signed numbers. Nor do they
/// if a filter rounds coordinates after they were sorted.
pub fn writers_agree(plan: &KeyPlan, version: u32) -> bool {
    plan.is_exact()
        && !plan.is_rounded()
        && (version >= FLOAT_TILES_SINCE || !plan.has_floats())
        && (version >= SIGNED_TIMES_SINCE || !plan.crosses_1970())
        && (version >= HILBERT_SINCE || !plan.is_hilbert())
        && plan.axes.iter().filter_map(IntegerTiles::new).all(|tiles| tiles.are_numbered_as_today(version))
}

/// How a release computed the number of the space tile that holds an integer, a date or a time. C++ promotes numbers of
/// less than 32 bits to signed 32-bit numbers in every computation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TileRule {
    /// Before format version 5: the signed difference to the low end, divided by the signed extent, truncated to the
    /// type.
    Cut,
    /// Before 9: the same, compared as an unsigned 64-bit number.
    Signed,
    /// Before 14: coordinate, low end and extent are first converted to unsigned numbers of their own size, then
    /// promoted to 32 bits if they are shorter. If the low end is negative, the difference is negative for coordinates
    /// from 0 on.
    Widened,
}

/// Returns the rules, other than today's, of all libraries that write fragments of a format version.
fn rules(version: u32) -> &'static [TileRule] {
    match version {
        ..5 => &[TileRule::Cut],
        5..7 => &[TileRule::Signed],
        7..9 => &[TileRule::Signed, TileRule::Widened],
        9..14 => &[TileRule::Widened],
        _ => &[],
    }
}

/// The space tiles along one dimension of integers, dates or times of a signed type. Tiles of unsigned types have never
/// changed.
#[derive(Debug)]
struct IntegerTiles {
    /// The size of the type.
    bits: u32,
    /// Whether computations promote the type to a larger one.
    is_widened: bool,
    /// The distance of 0 from the low end of the domain, if 0 lies in the domain above its low end.
    zero: Option<u128>,
    /// The distance of the high end from the low end.
    last: u128,
    extent: u128,
}

impl IntegerTiles {
    /// Returns `None` if there are no tiles, or all rules agree.
    fn new(axis: &KeyAxis) -> Option<Self> {
        let Scale::Integer { low, last, extent: Some(extent) } = axis.scale else { return None };
        let bits = 8 * axis.datatype.size() as u32;
        let zero = (1u64 << 63).checked_sub(low).filter(|zero| (1..=last).contains(zero));
        (axis.datatype.kind() == Kind::Signed).then_some(IntegerTiles {
            bits,
            is_widened: bits < 32,
            zero: zero.map(u128::from),
            last: last.into(),
            extent: extent.into(),
        })
    }

    fn are_numbered_as_today(&self, version: u32) -> bool {
        rules(version).iter().all(|rule| self.gives_today(*rule))
    }

    /// Returns whether a rule gives every coordinate of the domain its tile number by today's rule: how often the
    /// extent fits between the low end and the coordinate.
    fn gives_today(&self, rule: TileRule) -> bool {
        let (whole, half) = (1u128 << self.bits, 1u128 << (self.bits - 1));
        match rule {
            TileRule::Widened if !self.is_widened => true,
            // From 0 on, the difference is too small by 2^bits. The result is right only if division rounds it to 0,
            // and 0 is the right number only in the first tile.
            TileRule::Widened => self.zero.is_none_or(|zero| self.last < self.extent && whole - zero < self.extent),
            // The signed extent is negative, so all numbers are 0 or less, and only those that should be 0 are right.
            TileRule::Cut | TileRule::Signed if self.extent >= half => self.last < whole - self.extent,
            TileRule::Cut | TileRule::Signed if !self.is_widened => self.last < half,
            TileRule::Cut => self.last / self.extent < half,
            TileRule::Signed => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the low bits of a number as a signed number.
    fn signed(number: i128, bits: u32) -> i128 {
        let number = number & ((1 << bits) - 1);
        if number >> (bits - 1) == 1 { number - (1 << bits) } else { number }
    }

    fn unsigned(number: i128, bits: u32) -> i128 {
        number & ((1 << bits) - 1)
    }

    /// Computes the number step by step as a release does.
    fn computed(rule: TileRule, bits: u32, is_widened: bool, low: i128, extent: i128, value: i128) -> i128 {
        match (rule, is_widened) {
            (TileRule::Widened, false) => unsigned(value - low, bits) / unsigned(extent, bits),
            (TileRule::Widened, true) => {
                unsigned((unsigned(value, bits) - unsigned(low, bits)) / unsigned(extent, bits), 64)
            }
            (TileRule::Cut | TileRule::Signed, _) => {
                let difference = if is_widened { value - low } else { signed(value - low, bits) };
                let number = difference / signed(extent, bits);
                if rule == TileRule::Cut { signed(number, bits) } else { unsigned(number, 64) }
            }
        }
    }

    /// Checks every domain, extent and coordinate of a 5-bit type.
    #[test]
    fn rules_that_give_other_numbers_are_known() {
        let (bits, least) = (5, -16);
        let mut agreeing = [0; 3];
        for is_widened in [false, true] {
            for low in least..-least {
                for last in 0..-least - low {
                    for extent in 1..=(last + 1).min(31) {
                        let tiles = IntegerTiles {
                            bits,
                            is_widened,
                            zero: (low < 0 && low + last >= 0).then_some((-low) as u128),
                            last: last as u128,
                            extent: extent as u128,
                        };
                        for rule in [TileRule::Cut, TileRule::Signed, TileRule::Widened] {
                            let is_today = |position: &i128| {
                                computed(rule, bits, is_widened, low, extent, low + position) == position / extent
                            };
                            let due = (0..=last).all(|position| is_today(&position));
                            // Libraries never choose a negative extent smaller than the domain, so answering `false` is
                            // good enough there.
                            if tiles.gives_today(rule) || extent < -least || extent > last {
                                assert_eq!(tiles.gives_today(rule), due, "{rule:?} {tiles:?} from {low}");
                            }
                            agreeing[rule as usize] += usize::from(due);
                        }
                    }
                }
            }
        }
        assert!(agreeing.iter().all(|count| *count > 1000), "{agreeing:?}");
    }
}
