//! What every test of a content checks: that any range of bytes equals that range of the whole.

use proptest::test_runner::{Config, TestRunner};

use super::Content;

/// All bytes of a content.
pub fn read_all(content: &dyn Content) -> Vec<u8> {
    let mut bytes = vec![0xaa; usize::try_from(content.len()).expect("tests read small files")];
    content.read_at(0, &mut bytes).expect("the whole can be read");
    bytes
}

/// Checks random ranges, the empty ones at both ends, and each single byte of a small file.
pub fn assert_random_access(content: &dyn Content) {
    let whole = read_all(content);
    let check = |start: usize, end: usize| {
        let mut part = vec![0x55; end - start];
        content.read_at(start as u64, &mut part).expect("a part can be read");
        assert!(part == whole[start..end], "bytes {start}..{end} differ from the whole");
    };
    check(0, 0);
    check(whole.len(), whole.len());
    for at in 0..whole.len().min(300) {
        check(at, at + 1);
    }
    let mut runner = TestRunner::new(Config { cases: 64, failure_persistence: None, ..Config::default() });
    let ranges = (0..=whole.len(), 0..=whole.len());
    runner
        .run(&ranges, |(a, b)| {
            check(a.min(b), a.max(b));
            Ok(())
        })
        .expect("any range equals that range of the whole");
    assert!(content.read_at(content.len(), &mut [0]).is_err(), "reading past the end must fail");
}
