//! The numbers of the rows of a data frame. AnnData knows rows by their places, so in each of its forms row `i` has to be
//! the one with the number `i`: with another number, its cell would be shown with the values of another cell.

use tilefs_export::{FormatResult, Unrepresentable};

/// The row number of a data frame.
pub const JOINID: &str = "soma_joinid";

/// Checks that rows with these numbers, in any order, are numbered from 0 on, each once. Sorts the numbers.
///
/// # Errors
/// The reason why they are not.
pub fn check(numbers: &mut [i64]) -> FormatResult<()> {
    numbers.sort_unstable();
    let again = numbers.iter().zip(numbers.iter().skip(1)).find(|(one, next)| one == next);
    if let Some((number, _)) = again {
        return refuse(numbers.len() as u64, &format!("the {JOINID} {number} several times"));
    }
    match (numbers.first(), numbers.last()) {
        (Some(first), Some(last)) => check_ends([*first, *last], numbers.len() as u64),
        _ => Ok(()),
    }
}

/// As [`check`], by the first and the last of distinct numbers in their order.
///
/// # Errors
/// As [`check`].
pub fn check_ends(ends: [i64; 2], rows: u64) -> FormatResult<()> {
    // Distinct numbers from 0 to n - 1 are all of them.
    match ends.map(|end| u64::try_from(end).ok()) == [Some(0), rows.checked_sub(1)] {
        true => Ok(()),
        false => refuse(rows, &format!("a {JOINID} from {} to {}", ends[0], ends[1])),
    }
}

fn refuse(rows: u64, what: &str) -> FormatResult<()> {
    Err(Unrepresentable::new(format!("its {rows} rows have {what}; AnnData counts them from 0 without a gap")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_each_number_once() {
        for right in [vec![], vec![0], vec![0, 1, 2], vec![2, 0, 1]] {
            assert!(check(&mut right.clone()).is_ok(), "{right:?}");
        }
        let rule = "AnnData counts them from 0 without a gap";
        for (wrong, what) in [
            (vec![0, 0, 2], "the soma_joinid 0 several times"),
            (vec![1, 2, 0, 2], "the soma_joinid 2 several times"),
            (vec![1, 2, 3], "a soma_joinid from 1 to 3"),
            (vec![0, 3, 1], "a soma_joinid from 0 to 3"),
            (vec![-1, 0, 1], "a soma_joinid from -1 to 1"),
            (vec![i64::MIN, i64::MAX], "a soma_joinid from -9223372036854775808 to 9223372036854775807"),
        ] {
            let reason = check(&mut wrong.clone()).unwrap_err().to_string();
            assert_eq!(reason, format!("its {} rows have {what}; {rule}", wrong.len()));
        }
    }

    proptest::proptest! {
        #[test]
        fn numbers_are_checked_as_by_a_list_of_all(numbers in proptest::collection::vec(-1i64..6, 0..6)) {
            let is_right = (0..numbers.len() as i64).all(|number| numbers.contains(&number));
            proptest::prop_assert_eq!(check(&mut numbers.clone()).is_ok(), is_right);
        }
    }
}
