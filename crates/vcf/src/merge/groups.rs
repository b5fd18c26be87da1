//! Groups the records of one position into lines, like `bcftools merge`, release 1.16, with or without `-m none`.
//!
//! Each round makes one line. It unites the alleles of the remaining records file by file: those of the first record,
//! then those of each record that [`LineRule`] lets join. The line takes from each file the first record with the most
//! frequent alternative allele. Insertions and deletions wait until no record that replaces bases is left.
//!
//! By [`LineRule::SharedAllele`], a record joins if the union already has an alternative allele of it. A record without
//! a variant (`<NON_REF>`, or no alternative allele) joins records of its kind, and those with the same symbol.
//!
//! By [`LineRule::SameKind`], all records with the same reference join. From a file that has no record with the most
//! frequent allele, the line takes the first one of the same kind: one that replaces a base if any remaining record
//! replaces bases, one that inserts or deletes if any does, or one without a variant.
//!
//! If a file has several records at the position, the one whose variant most files share comes first.

use std::borrow::Cow;
use std::collections::HashSet;
use std::rc::Rc;

use tilefs_base::error::{Error, Result};
use tilefs_threads::cancellation;

use super::alleles::{Kinds, Union, shared_end};

/// The rule by which records become one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LineRule {
    /// Records that share an alternative allele, as by `bcftools merge -m none`.
    SharedAllele,
    /// Records with variants of the same kind, as by `bcftools merge`: a line may have alleles of different records.
    SameKind,
}

/// One of the records at a position.
#[derive(Debug)]
pub(super) struct Candidate<'a> {
    /// The number of the file.
    pub file: usize,
    /// The alleles, the reference first.
    pub alleles: Vec<&'a [u8]>,
    /// The last position that the record states, if any. Symbolic alleles with different ends are different.
    pub stated_end: Option<u64>,
}

/// The records of one line, at most one per file, in the order of the files.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LineGroup<'a> {
    pub members: Vec<GroupedRecord>,
    /// The alleles of the line, the reference first.
    pub alleles: Vec<Cow<'a, [u8]>>,
}

/// A record of a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct GroupedRecord {
    /// The number of the candidate.
    pub record: usize,
    /// For each allele of the record, its number in the line.
    pub map: Rc<[usize]>,
}

/// Returns the lines for the records of one position, which are ordered by file.
///
/// # Errors
/// [`Error::Cancelled`] if the reader has given up; other failures are bugs.
pub(super) fn groups<'a>(candidates: &[Candidate<'a>], rule: LineRule) -> Result<Vec<LineGroup<'a>>> {
    let are_alike = candidates.windows(2).all(|two| two[0].file != two[1].file && two[0].alleles == two[1].alleles);
    if let Some(first) = candidates.first().filter(|_| are_alike)
        && let Some(group) = one_line(candidates.len(), &first.alleles, Vec::new(), &mut Rc::default())
    {
        return Ok(vec![group]);
    }
    let own = |candidate: &Candidate<'_>| WrittenAlleles {
        kinds: Kinds::of(&candidate.alleles),
        alleles: candidate.alleles.iter().map(|allele| allele.to_vec()).collect(),
    };
    let mut written: Vec<WrittenAlleles> = candidates.iter().map(own).collect();
    let mut left = in_order(candidates);
    let mut groups = Vec::new();
    let mut union = Union::default();
    while !left.is_empty() {
        // Check for cancellation: each round visits all remaining records, and damaged data may have millions at one
        // position.
        cancellation::check()?;
        union.clear();
        let group = next_line(candidates, rule, &mut written, &left, &mut union)?;
        let done: HashSet<usize> = group.members.iter().map(|member| member.record).collect();
        left.retain(|record| !done.contains(record));
        groups.push(group);
    }
    Ok(groups)
}

/// Returns the line of some records if all have the same alleles and each is from another file; `None` if an allele
/// occurs twice. `members` is an empty list whose memory the line takes, and `map` is kept for the next line.
pub(super) fn one_line<'a>(
    records: usize,
    alleles: &[&'a [u8]],
    mut members: Vec<GroupedRecord>,
    map: &mut Rc<[usize]>,
) -> Option<LineGroup<'a>> {
    // Repeated alleles of a record share a number.
    let is_distinct = |(number, allele): (usize, &&[u8])| {
        alleles[..number].iter().skip(1).all(|before| !before.eq_ignore_ascii_case(allele))
    };
    if records == 0 || !alleles.iter().enumerate().skip(1).all(is_distinct) {
        return None;
    }
    if map.len() != alleles.len() {
        *map = (0..alleles.len()).collect();
    }
    members.extend((0..records).map(|record| GroupedRecord { record, map: map.clone() }));
    let shared = shared_end(alleles);
    let own = |allele: &&'a [u8]| Cow::Borrowed(allele.get(..allele.len() - shared).unwrap_or_default());
    let alleles = alleles.iter().map(own).collect();
    Some(LineGroup { members, alleles })
}

/// The record's alleles as written; in capitals after a union with alleles in capitals.
struct WrittenAlleles {
    kinds: Kinds,
    alleles: Vec<Vec<u8>>,
}

/// Returns the next line made of the remaining records.
fn next_line(
    candidates: &[Candidate<'_>],
    rule: LineRule,
    written: &mut [WrittenAlleles],
    left: &[usize],
    union: &mut Union,
) -> Result<LineGroup<'static>> {
    let remaining = RemainingKinds::of(left.iter().map(|&record| written[record].kinds));
    // The records in the union, with the numbers of their alleles.
    let mut united: Vec<GroupedRecord> = Vec::new();
    for &record in left {
        let WrittenAlleles { alleles: own, kinds } = &mut written[record];
        let alleles: Vec<&[u8]> = own.iter().map(Vec::as_slice).collect();
        let is_allowed = || rule == LineRule::SameKind || !kinds.has_variant || union.shares_alternative(&alleles);
        let fits = union.is_empty() || (union.has_reference_of(&alleles) && is_allowed());
        let waits = kinds.has_indel && !kinds.has_substitution && remaining.has_substitution;
        if fits && !waits {
            let mut map = Vec::new();
            if union.add(&alleles, &mut map) {
                own.iter_mut().for_each(|allele| allele.make_ascii_uppercase());
            }
            united.push(GroupedRecord { record, map: map.into() });
        }
    }
    let wanted = union.most_frequent();
    let mut members: Vec<GroupedRecord> = Vec::new();
    let file = |member: &GroupedRecord| candidates[member.record].file;
    let mut united = united.into_iter().peekable();
    while let Some(first) = united.next() {
        let mut of_file = vec![first];
        while let Some(next) = united.next_if(|next| file(next) == file(&of_file[0])) {
            of_file.push(next);
        }
        let has_wanted = |member: &GroupedRecord| wanted.is_none_or(|wanted| member.map.contains(&wanted));
        let joins =
            |member: &GroupedRecord| rule == LineRule::SameKind && remaining.joins(written[member.record].kinds);
        let taken = of_file.iter().position(has_wanted).or_else(|| of_file.iter().position(joins));
        members.extend(taken.map(|place| of_file.swap_remove(place)));
    }
    if members.is_empty() {
        return Err(Error::internal("a record that belongs to no line"));
    }
    line_of(members, union)
}

/// Returns the line of some records, which has only the alleles that they have.
fn line_of(mut members: Vec<GroupedRecord>, union: &Union) -> Result<LineGroup<'static>> {
    let mut is_used = vec![false; union.len()];
    let all = members.iter().flat_map(|member| &*member.map);
    all.for_each(|&number| is_used.get_mut(number).into_iter().for_each(|is_used| *is_used = true));
    let numbers: Vec<usize> = is_used
        .iter()
        .scan(0, |next, is_used| {
            let number = *next;
            *next += usize::from(*is_used);
            Some(number)
        })
        .collect();
    for number in members.iter_mut().flat_map(|member| Rc::make_mut(&mut member.map)) {
        *number = numbers.get(*number).copied().ok_or_else(|| Error::internal("an allele that is in no line"))?;
    }
    let used = (0..union.len()).filter(|&number| is_used[number]);
    let alleles: Vec<&[u8]> = used.map(|number| union.allele(number)).collect();
    let shared = shared_end(&alleles);
    let own = |allele: &&[u8]| Cow::Owned(allele.get(..allele.len() - shared).unwrap_or_default().to_vec());
    Ok(LineGroup { members, alleles: alleles.iter().map(own).collect() })
}

/// The kinds of all records at a position that are in no line yet.
#[derive(Default)]
struct RemainingKinds {
    has_substitution: bool,
    has_indel: bool,
    /// A record has no variant.
    has_reference: bool,
}

impl RemainingKinds {
    fn of(kinds: impl Iterator<Item = Kinds>) -> Self {
        kinds.fold(RemainingKinds::default(), |all, own| RemainingKinds {
            has_substitution: all.has_substitution || own.has_substitution,
            has_indel: all.has_indel || own.has_indel,
            has_reference: all.has_reference || !own.has_variant,
        })
    }

    /// Returns whether a record without the most frequent allele joins the line, by [`LineRule::SameKind`]. Like
    /// bcftools, lets records that replace several bases join only with that allele, and symbols only next to records
    /// without a variant.
    fn joins(&self, own: Kinds) -> bool {
        !own.has_variant
            || self.has_substitution && own.has_single
            || self.has_indel && own.has_indel
            || self.has_reference && (own.has_indel || own.has_complex)
    }
}

/// A variant of some files: records with the same alleles in the same order.
struct Variant {
    /// The records, each from another file.
    records: Vec<usize>,
    /// Its reference and alternative alleles, sorted, to recognize them in another order.
    sorted: Vec<Vec<u8>>,
}

/// Returns the numbers of the records, ordered by file. In each file, the record whose variant most files have comes
/// first.
fn in_order(candidates: &[Candidate<'_>]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..candidates.len()).collect();
    if candidates.windows(2).all(|two| two[0].file != two[1].file) {
        return order;
    }
    let mut sets = variants(candidates);
    loop {
        let Some(most) =
            (0..sets.len()).rev().max_by_key(|&number| sets[number].iter().map(|one| one.records.len()).sum::<usize>())
        else {
            return order;
        };
        let files = |number: usize| {
            sets[number]
                .iter()
                .flat_map(|one| &one.records)
                .map(|&record| candidates[record].file)
                .collect::<HashSet<usize>>()
        };
        let own_files = files(most);
        let is_same = |number: usize| {
            sets[most].iter().any(|own| sets[number].iter().any(|other| own.sorted == other.sorted))
                && files(number).is_disjoint(&own_files)
        };
        match (0..sets.len()).filter(|&number| number != most).find(|&number| is_same(number)) {
            Some(other) => {
                let (kept, moved) = (most.min(other), most.max(other));
                let moved = sets.remove(moved);
                sets[kept].extend(moved);
            }
            None => {
                let first: HashSet<usize> = sets[most].iter().flat_map(|one| one.records.clone()).collect();
                // The sort is stable, so all others keep their order.
                order.sort_by_key(|record| (candidates[*record].file, !first.contains(record)));
                return order;
            }
        }
    }
}

/// Returns the distinct variants of the records, in the order of first occurrence.
fn variants(candidates: &[Candidate<'_>]) -> Vec<Vec<Variant>> {
    let mut found: Vec<(Vec<u8>, Vec<Variant>)> = Vec::new();
    for (record, candidate) in candidates.iter().enumerate() {
        let parts = written(candidate);
        let key = parts.join(&b',');
        // A second record of a file with the same alleles counts as another variant.
        let is_free =
            |variant: &Variant| variant.records.last().is_none_or(|&last| candidates[last].file != candidate.file);
        let known = found.iter_mut().filter(|(known, _)| *known == key).flat_map(|(_, variants)| variants);
        match known.into_iter().find(|variant| is_free(variant)) {
            Some(variant) => variant.records.push(record),
            None => {
                let mut sorted: Vec<Vec<u8>> = parts.iter().map(|part| part.to_ascii_uppercase()).collect();
                sorted.sort();
                found.push((key, vec![Variant { records: vec![record], sorted }]));
            }
        }
    }
    found.into_iter().map(|(_, variants)| variants).collect()
}

/// Returns each alternative allele together with the reference, as one text.
fn written(candidate: &Candidate<'_>) -> Vec<Vec<u8>> {
    let Some((reference, others)) = candidate.alleles.split_first() else { return Vec::new() };
    if others.is_empty() {
        return vec![[reference, &b">."[..]].concat()];
    }
    let with_end = |other: &&[u8]| {
        let end = candidate.stated_end.filter(|_| other.starts_with(b"<"));
        let end = end.map(|end| format!("/{end}")).unwrap_or_default();
        [reference, &b">"[..], other, end.as_bytes()].concat()
    };
    others.iter().map(with_end).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes lines from records given as `file:alleles`; each line is shown as its alleles and its records.
    fn lines(records: &[&str]) -> Vec<String> {
        lines_by(LineRule::SharedAllele, records)
    }

    fn lines_by(rule: LineRule, records: &[&str]) -> Vec<String> {
        let candidates = records.iter().map(|record| {
            let (file, alleles) = record.split_once(':').unwrap();
            let alleles = alleles.split(',').map(str::as_bytes).collect();
            Candidate { file: file.parse().unwrap(), alleles, stated_end: None }
        });
        let candidates: Vec<_> = candidates.collect();
        let line = |group: LineGroup<'_>| {
            let members = group.members.iter().map(|member| format!("{}{:?}", member.record, &member.map[1..]));
            let alleles = String::from_utf8(group.alleles.join(&b","[..])).unwrap();
            format!("{alleles} {}", members.collect::<Vec<_>>().join(" "))
        };
        groups(&candidates, rule).unwrap().into_iter().map(line).collect()
    }

    #[test]
    fn records_with_a_shared_allele_become_one_line() {
        assert_eq!(lines(&["0:A,C", "1:A,C", "2:A,C"]), ["A,C 0[1] 1[1] 2[1]"]);
        assert_eq!(lines(&["0:A,C", "1:A,G"]), ["A,C 0[1]", "A,G 1[1]"]);
        assert_eq!(lines(&["0:A,C", "1:A,G,C"]), ["A,C,G 0[1] 1[2, 1]"]);
        // Shown with the shortest reference that represents them.
        assert_eq!(lines(&["0:AC,A", "1:ACC,AC"]), ["AC,A 0[1] 1[1]"]);
    }

    #[test]
    fn insertions_and_deletions_come_after_substitutions() {
        assert_eq!(lines(&["0:AC,A", "1:A,G"]), ["A,G 1[1]", "AC,A 0[1]"]);
        assert_eq!(lines(&["0:ACG,A", "1:ACG,ATA"]), ["ACG,ATA 1[1]", "ACG,A 0[1]"]);
    }

    #[test]
    fn records_without_a_variant_join_their_like() {
        assert_eq!(lines(&["0:A", "1:A"]), ["A 0[] 1[]"]);
        assert_eq!(lines(&["0:A", "1:A,G"]), ["A 0[]", "A,G 1[1]"]);
        assert_eq!(lines(&["0:A,<NON_REF>", "1:A,G,<NON_REF>"]), ["A,<NON_REF>,G 0[1] 1[2, 1]"]);
    }

    #[test]
    fn alleles_that_differ_by_capitals_are_the_same() {
        assert_eq!(lines(&["0:a,G", "1:A,T", "2:A,T,G"]), ["A,G,T 0[1] 2[2, 1]", "A,T 1[1]"]);
        assert_eq!(lines(&["0:A,G", "1:a", "2:a"]), ["A,G 0[1]", "A 1[] 2[]"]);
    }

    #[test]
    fn the_variant_of_most_files_comes_first() {
        assert_eq!(lines(&["0:A,C", "0:A,G", "1:A,G"]), ["A,G 1[1] 2[1]", "A,C 0[1]"]);
        assert_eq!(lines(&["0:A,C", "0:A,C", "1:A,C"]), ["A,C 0[1] 2[1]", "A,C 1[1]"]);
        // Variants with the same alleles in another order are counted together.
        let orders = ["0:A,C", "0:A,G,T", "1:A,T,G", "2:A,C", "3:A,G,T", "4:A,G,T"];
        assert_eq!(lines(&orders)[0], "A,G,T 1[1, 2] 2[2, 1] 4[1, 2] 5[1, 2]");
    }

    #[test]
    fn records_of_the_same_kind_become_one_line() {
        let lines = |records: &[&str]| lines_by(LineRule::SameKind, records);
        assert_eq!(lines(&["0:A,C", "1:A,G"]), ["A,C,G 0[1] 1[2]"]);
        assert_eq!(lines(&["0:AC,A", "1:A,G", "2:A,AT"]), ["A,G 1[1]", "AC,A,ATC 0[1] 2[2]"]);
        assert_eq!(lines(&["0:A", "1:A,G", "2:A,<NON_REF>"]), ["A,G,<NON_REF> 0[] 1[1] 2[2]"]);
        assert_eq!(lines(&["0:A,<DEL>", "1:A,<INV>", "2:A,C"]), ["A,<DEL>,C 0[1] 2[2]", "A,<INV> 1[1]"]);
        // A file's second record with another allele becomes a line of its own.
        assert_eq!(lines(&["0:A,C", "0:A,G", "1:A,T"]), ["A,C,T 0[1] 2[2]", "A,G 1[1]"]);
        // References that contradict each other.
        assert_eq!(lines(&["0:A,C", "1:G,C"]), ["A,C 0[1]", "G,C 1[1]"]);
    }
}
