//! Alleles of records at one position: the kinds of their variants, and the union of the alleles of several records.
//!
//! Two records may write the same alleles with references of different length: `AC` to `A` and `ACC` to `AC` delete the
//! same base. To unite them, the shorter reference and its alternative alleles are extended by the bases that it lacks.

/// The kinds of variants of a record, as far as merging needs them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Kinds {
    /// An alternative allele replaces one base by another.
    pub has_single: bool,
    /// An alternative allele replaces one or more bases by as many others.
    pub has_substitution: bool,
    /// An alternative allele inserts or deletes bases.
    pub has_indel: bool,
    /// An alternative allele is a symbol, a breakend, or replaces bases by another number of bases.
    pub has_complex: bool,
    /// An alternative allele is a variant. `<NON_REF>` and `<*>` stand for any allele, and are not variants.
    pub has_variant: bool,
}

impl Kinds {
    /// Returns the kinds of a record's alleles, the reference first.
    pub(super) fn of(alleles: &[&[u8]]) -> Self {
        let mut kinds = Kinds::default();
        let Some((reference, others)) = alleles.split_first() else { return kinds };
        for other in others {
            match kind(reference, other) {
                AlleleKind::Reference => continue,
                AlleleKind::Single => (kinds.has_single, kinds.has_substitution) = (true, true),
                AlleleKind::Substitution => kinds.has_substitution = true,
                AlleleKind::Indel => kinds.has_indel = true,
                AlleleKind::Complex => kinds.has_complex = true,
                AlleleKind::Spanning => {}
            }
            kinds.has_variant = true;
        }
        kinds
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AlleleKind {
    Reference,
    Single,
    Substitution,
    Indel,
    /// `*`: the base is missing because of a deletion that begins before it.
    Spanning,
    Complex,
}

/// Returns the kind of an alternative allele.
fn kind(reference: &[u8], other: &[u8]) -> AlleleKind {
    match other {
        b"*" => return AlleleKind::Spanning,
        b"<X>" | b"<*>" | b"<NON_REF>" => return AlleleKind::Reference,
        [b'<' | b'[' | b']', ..] | [.., b'[' | b']'] => return AlleleKind::Complex,
        [b'.' | b'X'] if reference.len() == 1 => return AlleleKind::Reference,
        _ => {}
    }
    let same = |pair: &(&u8, &u8)| pair.0.eq_ignore_ascii_case(pair.1);
    let before = reference.iter().zip(other).take_while(same).count();
    let (reference, other) = (&reference[before..], &other[before..]);
    if reference.is_empty() || other.is_empty() {
        return if reference.len() == other.len() { AlleleKind::Reference } else { AlleleKind::Indel };
    }
    // Each has at least one base left, and these differ.
    let behind = reference[1..].iter().rev().zip(other[1..].iter().rev()).take_while(same).count();
    let (reference, other) = (&reference[..reference.len() - behind], &other[..other.len() - behind]);
    let is_anchored = || reference.last().zip(other.last()).is_some_and(|pair| same(&pair));
    match (reference.len(), other.len()) {
        (1, 1) => AlleleKind::Single,
        (length, other_length) if length == other_length => AlleleKind::Substitution,
        (1, _) | (_, 1) if is_anchored() => AlleleKind::Indel,
        _ => AlleleKind::Complex,
    }
}

/// Returns whether an allele is written as a symbol instead of bases.
fn is_symbol(allele: &[u8]) -> bool {
    matches!(allele.first(), Some(b'<' | b'*'))
}

/// The union of the alleles of several records, the reference first, and the number of records with each.
#[derive(Debug, Default)]
pub(super) struct Union {
    alleles: Vec<Vec<u8>>,
    /// May be longer than the alleles.
    counts: Vec<usize>,
}

impl Union {
    /// Removes all alleles. Like bcftools, keeps the counts that the next record does not overwrite.
    pub(super) fn clear(&mut self) {
        self.alleles.clear();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.alleles.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.alleles.len()
    }

    pub(super) fn allele(&self, number: usize) -> &[u8] {
        self.alleles.get(number).map_or(&[], Vec::as_slice)
    }

    /// Returns the alternative allele that most records have; of several, the first.
    pub(super) fn most_frequent(&self) -> Option<usize> {
        // `max_by_key` returns the last maximum, so the first allele must come last.
        (1..self.len()).rev().max_by_key(|&number| self.counts.get(number))
    }

    /// Returns whether one reference is a prefix of the other.
    pub(super) fn has_reference_of(&self, alleles: &[&[u8]]) -> bool {
        let (own, other) = (self.allele(0), alleles.first().copied().unwrap_or_default());
        let shared = own.len().min(other.len());
        own[..shared].eq_ignore_ascii_case(&other[..shared])
    }

    /// Returns whether the union contains an alternative allele of a record. Its reference must be compatible.
    pub(super) fn shares_alternative(&self, alleles: &[&[u8]]) -> bool {
        let Some((reference, others)) = alleles.split_first() else { return false };
        let own = self.allele(0);
        let shared = own.len().min(reference.len());
        let is_same = |own_allele: &[u8], other: &[u8]| {
            // The bases that one reference lacks extend its alleles.
            let extended = |short: &[u8], by: &[u8], long: &[u8]| {
                let (start, end) = long.split_at(short.len().min(long.len()));
                start.eq_ignore_ascii_case(short) && end.eq_ignore_ascii_case(by)
            };
            match own.len() > shared {
                true => extended(other, &own[shared..], own_allele),
                false => extended(own_allele, &reference[shared..], other),
            }
        };
        others.iter().any(|other| self.alleles.iter().skip(1).any(|own_allele| is_same(own_allele, other)))
    }

    /// Adds the alleles of a record with a compatible reference. `map` receives the number of each in the union.
    /// Returns whether all alleles were converted to capitals because the references differ in case.
    pub(super) fn add(&mut self, alleles: &[&[u8]], map: &mut Vec<usize>) -> bool {
        map.clear();
        let Some((reference, others)) = alleles.split_first() else { return false };
        if self.is_empty() {
            self.alleles.extend(alleles.iter().map(|allele| allele.to_vec()));
            self.counts.resize(self.counts.len().max(alleles.len()), 0);
            self.counts.iter_mut().take(alleles.len()).for_each(|count| *count = 1);
            map.extend(0..alleles.len());
            return false;
        }
        let is_in_capitals = self.place(reference, others, map);
        self.counts.resize(self.counts.len().max(self.alleles.len()), 0);
        for &number in &*map {
            self.counts.get_mut(number).into_iter().for_each(|count| *count += 1);
        }
        is_in_capitals
    }

    /// Adds alleles to the union; returns whether all alleles were converted to capitals.
    fn place(&mut self, reference: &[u8], others: &[&[u8]], map: &mut Vec<usize>) -> bool {
        map.push(0);
        if let ([_], [[other]], [_, known]) = (reference, others, self.alleles.as_slice())
            && known.as_slice() == [*other]
            && self.allele(0).len() == 1
        {
            // Both replace the same base by the same one, whatever the case.
            map.push(1);
            return false;
        }
        let own_length = self.allele(0).len();
        let shared = own_length.min(reference.len());
        let is_in_capitals = self.allele(0)[..shared] != reference[..shared];
        let in_capitals = |allele: &[u8]| if is_in_capitals { allele.to_ascii_uppercase() } else { allele.to_vec() };
        if is_in_capitals {
            self.alleles.iter_mut().for_each(|allele| allele.make_ascii_uppercase());
        }
        let behind = in_capitals(&reference[shared..]);
        self.alleles
            .iter_mut()
            .filter(|allele| !is_symbol(allele))
            .for_each(|allele| allele.extend_from_slice(&behind));
        // Empty if the record's reference is the longer one. A symbol as reference, which only damaged data has, is not
        // extended.
        let behind = self.allele(0).get(reference.len()..).unwrap_or_default().to_vec();
        for other in others {
            let mut allele = in_capitals(other);
            if !is_symbol(&allele) {
                allele.extend_from_slice(&behind);
            }
            let known = self.alleles.iter().skip(1).position(|known| known.eq_ignore_ascii_case(&allele));
            map.push(known.map_or(self.alleles.len(), |place| place + 1));
            if known.is_none() {
                self.alleles.push(allele);
            }
        }
        is_in_capitals
    }
}

/// Returns the length of the longest common suffix of all alleles that leaves at least one base of each.
pub(super) fn shared_end(alleles: &[&[u8]]) -> usize {
    let shortest = alleles.iter().map(|allele| allele.len()).min().unwrap_or(0);
    let Some((reference, others)) = alleles.split_first() else { return 0 };
    let last = |allele: &[u8], from_end: usize| allele.len().checked_sub(from_end + 1).map(|place| allele[place]);
    let is_shared = |from_end: &usize| others.iter().all(|other| last(other, *from_end) == last(reference, *from_end));
    (0..shortest.saturating_sub(1)).take_while(is_shared).count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn kinds(alleles: &str) -> Kinds {
        Kinds::of(&alleles.split(',').map(str::as_bytes).collect::<Vec<_>>())
    }

    #[test]
    fn records_have_the_kinds_of_their_alleles() {
        let none = Kinds::default();
        let variant = Kinds { has_variant: true, ..none };
        let substitution = Kinds { has_substitution: true, ..variant };
        let single = Kinds { has_single: true, ..substitution };
        let expected = [
            (none, &["A", "A,<NON_REF>", "A,<*>", "AC,<NON_REF>", "A,X", "A,A", "AC,ac"][..]),
            (single, &["A,C", "AC,AG", "ACG,ATG", "A,<NON_REF>,C", "A,*,C"]),
            (substitution, &["AC,GT", "TAC,TTA"]),
            (Kinds { has_indel: true, ..variant }, &["A,AC", "ACC,A", "ACC,AC", "ATG,AG", "AC,ATC", "A,TA"]),
            (Kinds { has_complex: true, ..variant }, &["A,<DEL>", "A,A[1:5[", "A,]1:5]A", "ACG,TT"]),
            (variant, &["A,*"]),
            (Kinds { has_indel: true, ..single }, &["AC,A,AG"]),
        ];
        for (wanted, records) in expected {
            for alleles in records {
                assert_eq!(kinds(alleles), wanted, "{alleles}");
            }
        }
    }

    fn union(records: &[&str]) -> (Vec<String>, Vec<Vec<usize>>) {
        let (mut union, mut maps) = (Union::default(), Vec::new());
        for record in records {
            let alleles: Vec<&[u8]> = record.split(',').map(str::as_bytes).collect();
            assert!(union.has_reference_of(&alleles) || union.is_empty());
            let mut map = Vec::new();
            union.add(&alleles, &mut map);
            maps.push(map);
        }
        let alleles = union.alleles.iter().map(|allele| String::from_utf8(allele.clone()).unwrap()).collect();
        (alleles, maps)
    }

    #[test]
    fn alleles_of_records_are_united() {
        let (alleles, maps) = union(&["ACGT,A", "ACG,AC,A", "ACGT,<DEL>,A"]);
        assert_eq!(alleles, ["ACGT", "A", "ACT", "AT", "<DEL>"]);
        assert_eq!(maps, [vec![0, 1], vec![0, 2, 3], vec![0, 4, 1]]);
        let (alleles, maps) = union(&["A,G,<NON_REF>,*", "AC,A"]);
        assert_eq!(alleles, ["AC", "GC", "<NON_REF>", "*", "A"]);
        assert_eq!(maps[1], [0, 4]);
        assert_eq!(union(&["a,g", "A,G"]), (vec!["A".to_owned(), "G".to_owned()], vec![vec![0, 1]; 2]));
        assert_eq!(union(&["a,G", "A,G"]).0, ["a", "G"]);
    }

    #[test]
    fn symbols_as_references_are_united_without_a_panic() {
        assert_eq!(union(&["*,A", "*AC,G"]).0, ["*", "AAC", "G"]);
        assert_eq!(union(&["<,A", "<DEL>,<"]).0, ["<", "ADEL>", "<"]);
    }

    proptest! {
        #[test]
        fn any_alleles_are_united_or_kept_apart(records in prop::collection::vec(prop::collection::vec("[aAcG<*>.]{0,3}", 1..4), 1..5)) {
            let mut union = Union::default();
            for record in &records {
                let alleles: Vec<&[u8]> = record.iter().map(String::as_bytes).collect();
                let _ = (Kinds::of(&alleles), union.shares_alternative(&alleles));
                if union.is_empty() || union.has_reference_of(&alleles) {
                    let mut map = Vec::new();
                    union.add(&alleles, &mut map);
                    prop_assert_eq!(map.len(), alleles.len());
                    prop_assert!(map.iter().all(|&number| number < union.len()));
                }
            }
            let alleles: Vec<&[u8]> = union.alleles.iter().map(Vec::as_slice).collect();
            let shared = shared_end(&alleles);
            prop_assert!(alleles.iter().all(|allele| allele.is_empty() || shared < allele.len()));
        }
    }

    #[test]
    fn alleles_are_found_whatever_the_length_of_the_reference() {
        let (mut union, mut map) = (Union::default(), Vec::new());
        union.add(&[b"ACC", b"AC", b"<DEL>"], &mut map);
        assert!(union.shares_alternative(&[b"AC", b"A"]));
        assert!(union.shares_alternative(&[b"ACCG", b"ACG"]));
        assert!(union.shares_alternative(&[b"ACC", b"T", b"<DEL>"]));
        for none in [[&b"AC"[..], b"<DEL>"], [b"AC", b"AC"], [b"ACCG", b"AC"]] {
            assert!(!union.shares_alternative(&none), "{none:?}");
        }
        assert!(union.has_reference_of(&[b"a"]) && !union.has_reference_of(&[b"AT"]));
    }

    #[test]
    fn shared_ends_are_removed() {
        let trimmed = |alleles: &str| {
            let alleles: Vec<&[u8]> = alleles.split(',').map(str::as_bytes).collect();
            let shared = shared_end(&alleles);
            let own: Vec<&[u8]> = alleles.iter().map(|allele| &allele[..allele.len() - shared]).collect();
            String::from_utf8(own.join(&b","[..])).unwrap()
        };
        assert_eq!(trimmed("GTTT,GTT"), "GT,G");
        assert_eq!(trimmed("ACG,ACG"), "A,A");
        assert_eq!(trimmed("ACG,TCG,AG"), "AC,TC,A");
        assert_eq!(trimmed("ACG"), "A");
        assert_eq!(trimmed("ACG,<DEL>"), "ACG,<DEL>");
    }
}
