//! Counts the steps of work on inputs of a size, twice and four times the size.

use support::counting_allocator::{allocated, allocations};
use tilefs_threads::cancellation;

/// How many times as many steps four times the input may take.
const MOST: f64 = 4.5;

/// Bytes of memory that count as a step: clearing or copying them takes time, too.
const BLOCK: u64 = 256;

/// Returns the number of steps that this thread takes for `work`.
pub fn steps(work: impl FnOnce()) -> u64 {
    let now = || allocations() + allocated() / BLOCK + cancellation::checks();
    let before = now();
    work();
    now() - before
}

/// Fails if the steps of `work` grow faster than its input. `make` makes an input of a size.
pub fn grow_with_the_input<T>(name: &str, size: usize, make: impl Fn(usize) -> T, work: impl Fn(T)) {
    let of = |size: usize| {
        let input = make(size);
        steps(|| work(input))
    };
    // What is made only once.
    of(1);
    let counts = [size, 2 * size, 4 * size].map(of);
    println!("{name}: {counts:?}");
    assert!(
        counts[2] as f64 <= MOST * counts[0] as f64,
        "{name}: {counts:?} steps for {size}, twice and four times as many"
    );
}

#[test]
fn steps_of_a_square_are_noticed() {
    let square = |size: usize| (0..size).for_each(|_| drop(vec![0u8; size * 256]));
    let noticed = std::panic::catch_unwind(|| grow_with_the_input("a square", 100, |size| size, square));
    assert!(noticed.is_err());
    grow_with_the_input("a line", 100, |size| size, |size| (0..size).for_each(|_| drop(vec![0u8; 4096])));
}
