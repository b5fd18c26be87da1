//! Sorts items by a word, digit by digit from the last one: a few passes over the items, and no comparisons.

/// Bits of a digit if there are many items. Their counters fit in a core's first cache.
const DIGIT: u32 = 11;

/// With fewer items, counting by a longer digit would take longer than the passes it saves ...
const MANY: usize = 1 << 14;

/// ... so digits have this many bits.
const SHORT_DIGIT: u32 = 8;

/// With fewer items, comparing them is as fast.
const FEW: usize = 64;

/// More items do not fit in a core's cache. They are divided by their first digit, so that most parts do.
const LARGE: usize = 1 << 17;

/// Sorts items by their words. The sort is stable. `scratch` gets as many items; their values do not matter.
pub fn sort_by_word<T: Copy>(items: &mut [T], scratch: &mut Vec<T>, word: impl Fn(&T) -> u64) {
    if let Some(&first) = items.first()
        && !items.is_sorted_by_key(&word)
    {
        scratch.resize(items.len(), first);
        sort(items, scratch, &word);
    }
}

/// As [`sort_by_word`], with a scratch of the same length.
fn sort<T: Copy>(items: &mut [T], scratch: &mut [T], word: &impl Fn(&T) -> u64) {
    if items.len() < FEW {
        return items.sort_by_key(word);
    }
    let first = items.first().map_or(0, word);
    // A bit that is the same in all words makes no difference.
    let mut differing = items.iter().fold(0, |bits, item| bits | (word(item) ^ first));
    let mut places = Vec::new();
    if items.len() > LARGE && differing >> SHORT_DIGIT != 0 {
        let shift = u64::BITS - differing.leading_zeros() - SHORT_DIGIT;
        scatter(items, scratch, SHORT_DIGIT, &mut places, |item| word(item) >> shift);
        items.copy_from_slice(scratch);
        let mut start = 0;
        for end in places {
            sort(&mut items[start..end], &mut scratch[start..end], word);
            start = end;
        }
        return;
    }
    let digit = if items.len() < MANY { SHORT_DIGIT } else { DIGIT };
    let (mut from, mut to, mut is_in_scratch) = (items, scratch, false);
    while differing != 0 {
        let shift = differing.trailing_zeros();
        scatter(from, to, digit, &mut places, |item| word(item) >> shift);
        (from, to, is_in_scratch) = (to, from, !is_in_scratch);
        differing &= !(((1 << digit) - 1) << shift);
    }
    if is_in_scratch {
        to.copy_from_slice(from);
    }
}

/// Copies items to another slice of the same length, sorted by the last `bits` of a number. Sets `places` to the end of
/// the items with each number.
fn scatter<T: Copy>(from: &[T], to: &mut [T], bits: u32, places: &mut Vec<usize>, number: impl Fn(&T) -> u64) {
    let mask = (1u64 << bits) - 1;
    let number = |item: &T| (number(item) & mask) as usize;
    places.clear();
    places.resize(1 << bits, 0);
    from.iter().for_each(|item| places[number(item)] += 1);
    let mut before = 0;
    for place in &mut *places {
        before += std::mem::replace(place, before);
    }
    for item in from {
        let place = &mut places[number(item)];
        to[*place] = *item;
        *place += 1;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Beside the stable sort of the standard library.
        #[test]
        fn words_are_in_the_order_that_comparing_gives(
            mut words in prop::collection::vec(any::<u64>(), 0..300),
            mask in prop_oneof![Just(u64::MAX), Just(0xff), Just(0x3_0000_0000_0300), Just(1 << 63), any::<u64>()],
            times in prop_oneof![8 => Just(1usize), 2 => Just(100), 1 => Just(LARGE / 100)],
        ) {
            words.iter_mut().for_each(|word| *word &= mask);
            let mut items: Vec<(u64, usize)> = (0..words.len() * times).map(|number| (words[number % words.len()].rotate_left(number as u32 % 3), number)).collect();
            let mut expected = items.clone();
            expected.sort_by_key(|item| item.0);
            sort_by_word(&mut items, &mut vec![(7, 7)], |item| item.0);
            prop_assert_eq!(items, expected);
        }
    }
}
