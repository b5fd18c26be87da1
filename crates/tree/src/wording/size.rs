//! The size of an array, for people.

use tilefs_reader::array::sparse::RowCount;

/// Returns `1 fragment`, `20 fragments`.
pub fn counted(number: u64, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// Returns `1 row`, `20 rows`, `at most 20 rows`.
pub fn rows_text(rows: RowCount) -> String {
    let most = if rows.exact().is_some() { "" } else { "at most " };
    format!("{most}{}", counted(rows.most(), "row"))
}

/// Returns `sparse 2638 rows`.
pub fn sparse_text(rows: RowCount) -> String {
    format!("sparse {}", rows_text(rows))
}

/// Returns `dense 100 x 200`, from the lengths along each axis.
pub fn dense_text(lengths: impl Iterator<Item = impl ToString>) -> String {
    let lengths: Vec<String> = lengths.map(|length| length.to_string()).collect();
    format!("dense {}", lengths.join(" x "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_state_what_is_known() {
        assert_eq!(sparse_text(RowCount::Exactly(2638)), "sparse 2638 rows");
        assert_eq!(sparse_text(RowCount::Exactly(1)), "sparse 1 row");
        assert_eq!(sparse_text(RowCount::AtMost(7)), "sparse at most 7 rows");
        assert_eq!([counted(0, "tile"), counted(1, "tile"), counted(2, "tile")], ["0 tiles", "1 tile", "2 tiles"]);
        assert_eq!(dense_text([100, 200].into_iter()), "dense 100 x 200");
    }
}
