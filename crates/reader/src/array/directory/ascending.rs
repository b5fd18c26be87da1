//! Lookup of names in a sorted list. Lists of commits and copies of footers mostly name fragments in byte order, so a
//! lookup first tries the name after the one found last.

/// Items sorted by their names in byte order.
pub(crate) struct Ascending<'a, T, N> {
    items: &'a [T],
    name: N,
    /// The index after the item found last.
    next: usize,
}

impl<'a, T, N: Fn(&T) -> &str> Ascending<'a, T, N> {
    /// Begins lookups in `items`, which are sorted by `name`.
    pub fn new(items: &'a [T], name: N) -> Self {
        Ascending { items, name, next: 0 }
    }

    /// Returns the index of an item with this name.
    pub fn find(&mut self, wanted: &str) -> Option<usize> {
        let is_next = self.items.get(self.next).is_some_and(|item| (self.name)(item) == wanted);
        let found = match is_next {
            true => self.next,
            false => self.items.binary_search_by(|item| (self.name)(item).cmp(wanted)).ok()?,
        };
        self.next = found + 1;
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn lookups_in_any_order_find_the_same(
            names in prop::collection::btree_set("[a-c]{0,3}", 0..20),
            wanted in prop::collection::vec("[a-c]{0,3}", 0..40),
        ) {
            let names: Vec<String> = names.into_iter().collect();
            let mut lookup = Ascending::new(&names, String::as_str);
            for wanted in names.iter().chain(&wanted) {
                prop_assert_eq!(lookup.find(wanted), names.iter().position(|name| name == wanted));
            }
        }
    }
}
