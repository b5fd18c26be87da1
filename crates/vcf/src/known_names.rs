//! Finds what belongs to names by their places: consecutive lines mostly have the same names in the same order.

use tilefs_base::error::Result;

/// The values that were looked up for the names of the previous line, by the place of each name in the line. Memory: a copy of
/// each name of the longest line.
#[derive(Debug)]
pub(super) struct KnownNames<T>(Vec<(Vec<u8>, T)>);

impl<T> Default for KnownNames<T> {
    fn default() -> Self {
        KnownNames(Vec::new())
    }
}

impl<T: Copy> KnownNames<T> {
    /// Returns what belongs to a name at a place of a line. Calls `find` if the line before had another name there.
    pub(super) fn get(&mut self, place: usize, name: &[u8], find: impl FnOnce() -> Result<T>) -> Result<T> {
        match self.0.get_mut(place) {
            Some((known, value)) if known == name => Ok(*value),
            Some((known, value)) => {
                *value = find()?;
                known.clear();
                known.extend_from_slice(name);
                Ok(*value)
            }
            None => {
                let value = find()?;
                if place == self.0.len() {
                    self.0.push((name.to_vec(), value));
                }
                Ok(value)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tilefs_base::error::Error;

    use super::*;

    #[test]
    fn names_are_looked_up_where_they_change() {
        let mut known = KnownNames::default();
        let mut looked_up = Vec::new();
        let mut line = |names: &[&'static str]| {
            let found = names.iter().enumerate().map(|(place, name)| {
                known.get(place, name.as_bytes(), || {
                    looked_up.push(*name);
                    if name.is_empty() { Err(Error::damaged("no name")) } else { Ok(name.len()) }
                })
            });
            found.collect::<Result<Vec<_>>>().unwrap_or_default()
        };
        assert_eq!(line(&["a", "bb"]), [1, 2]);
        assert_eq!(line(&["a", "bb", "ccc"]), [1, 2, 3]);
        assert_eq!(line(&["bb", "bb", "ccc"]), [2, 2, 3]);
        // A failed look-up leaves what was known.
        assert!(line(&["bb", ""]).is_empty());
        assert_eq!(line(&["bb", "bb"]), [2, 2]);
        assert_eq!(looked_up, ["a", "bb", "ccc", "bb", ""]);
    }
}
