//! PLINK 1 binary files of merged records: `.bed` with genotypes, `.bim` with sites, `.fam` with samples.
//!
//! They hold sites with one alternative allele; the symbols `<NON_REF>`, `<*>` and `<X>`, which stand for any other
//! allele, do not count. As in the files that `plink --vcf` makes, A1 is the alternative allele and A2 the reference.
//! A genotype is missing if one of its alleles is missing or is such a symbol, or if it has more than two alleles. The
//! allele of a genotype with a single allele counts twice.
//!
//! Source: the specifications of the formats at <https://www.cog-genomics.org/plink/1.9/formats>.

use std::collections::HashSet;

use tilefs_base::error::{Error, Locate, Result};

use crate::line::{Allele, Line, LineValue};
use crate::record::GENOTYPE;

/// The first bytes of a `.bed` that has all samples of one site after the other.
pub(crate) const BED_HEAD: [u8; 3] = [0x6c, 0x1b, 0x01];

/// The codes of genotypes in a `.bed`.
const TWO_ALTERNATIVES: u8 = 0b00;
const MISSING: u8 = 0b01;
const ONE_ALTERNATIVE: u8 = 0b10;
const TWO_REFERENCES: u8 = 0b11;

/// The number of genotypes in a byte.
const PER_BYTE: usize = 4;

/// Appends the genotypes of a line to a `.bed`, if its site is there.
///
/// # Errors
/// Fails for values that do not fit the alleles of their record.
pub(crate) fn append_genotypes(line: &Line<'_>, samples: usize, out: &mut Vec<u8>) -> Result<()> {
    let Some(alternative) = only_alternative(line) else { return Ok(()) };
    let mut codes = Vec::with_capacity(samples);
    if let Some(fields) = &line.samples
        && let Some(genotype) = fields.names().iter().position(|name| *name == GENOTYPE)
    {
        let read = fields.for_each_value(genotype, &mut |value| {
            codes.push(code(value, alternative));
            Ok(())
        });
        read.in_file(line.place("fmt"))?;
    }
    codes.resize(samples, MISSING);
    out.extend(codes.chunks(PER_BYTE).map(|codes| {
        // The first sample has the lowest bits; those behind the last one are 0.
        codes.iter().rev().fold(0, |byte, code| byte << 2 | code)
    }));
    Ok(())
}

/// Appends the site of a line to a `.bim`, if it is there.
pub(crate) fn append_site(line: &Line<'_>, out: &mut Vec<u8>) {
    let (Some(alternative), Some(reference)) = (only_alternative(line), line.alleles.first()) else { return };
    out.extend_from_slice(line.contig);
    out.push(b'\t');
    if line.ids.is_empty() {
        out.push(b'.');
    }
    crate::line::separate(&line.ids, b';', out, |id, out| out.extend_from_slice(id));
    out.extend_from_slice(b"\t0\t");
    out.extend_from_slice(itoa::Buffer::new().format(u64::from(line.start) + 1).as_bytes());
    for allele in [line.alleles.get(alternative).unwrap_or(reference), reference] {
        out.push(b'\t');
        out.extend_from_slice(allele);
    }
    out.push(b'\n');
}

/// Returns a `.fam` of samples without family, parents, sex and phenotype.
///
/// # Errors
/// Fails for a name that PLINK does not allow: with a space, or `0`.
pub fn fam<'s>(samples: impl Iterator<Item = &'s [u8]>) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    let mut known = HashSet::new();
    for name in samples {
        if name == b"0" || name.is_empty() || name.iter().any(|byte| *byte == b' ' || byte.is_ascii_control()) {
            let name = String::from_utf8_lossy(name);
            return Err(Error::unsupported(format!("PLINK allows no sample with the name {name:?}")));
        }
        if !known.insert(name) {
            return Err(Error::usage(format!("the sample {} is named twice", String::from_utf8_lossy(name))));
        }
        text.extend_from_slice(b"0\t");
        text.extend_from_slice(name);
        text.extend_from_slice(b"\t0\t0\t0\t-9\n");
    }
    Ok(text)
}

/// Returns the number of the only alternative allele of a line; `None` if there are others, or none.
fn only_alternative(line: &Line<'_>) -> Option<usize> {
    let stands_for_any = |allele: &[u8]| matches!(allele, b"<NON_REF>" | b"<*>" | b"<X>");
    let mut others = line.alleles.iter().enumerate().skip(1).filter(|(_, allele)| !stands_for_any(allele));
    let (number, _) = others.next()?;
    others.next().is_none().then_some(number)
}

fn code(value: &LineValue<'_>, alternative: usize) -> u8 {
    let LineValue::MergedGenotype { alleles, map } = value else { return MISSING };
    let number = |(allele, _): &Allele| map.get((*allele)?).copied();
    let (first, second) = match alleles {
        [only] => (number(only), number(only)),
        [first, second] => (number(first), number(second)),
        _ => return MISSING,
    };
    let is_alternative = |allele: Option<usize>| match allele {
        Some(0) => Some(false),
        allele => (allele == Some(alternative)).then_some(true),
    };
    match (is_alternative(first), is_alternative(second)) {
        (Some(true), Some(true)) => TWO_ALTERNATIVES,
        (Some(false), Some(false)) => TWO_REFERENCES,
        (Some(_), Some(_)) => ONE_ALTERNATIVE,
        _ => MISSING,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn genotypes_have_the_codes_of_plink() {
        let of = |alleles: &[Option<usize>]| {
            let alleles: Vec<Allele> = alleles.iter().map(|allele| (*allele, false)).collect();
            code(&LineValue::MergedGenotype { alleles: &alleles, map: &[0, 2, 1] }, 1)
        };
        assert_eq!(of(&[Some(0), Some(0)]), TWO_REFERENCES);
        assert_eq!([of(&[Some(0), Some(2)]), of(&[Some(2), Some(0)])], [ONE_ALTERNATIVE; 2]);
        assert_eq!([of(&[Some(2), Some(2)]), of(&[Some(2)])], [TWO_ALTERNATIVES; 2]);
        for missing in [&[None, Some(0)][..], &[None], &[], &[Some(1), Some(0)], &[Some(2); 3], &[Some(9), Some(0)]] {
            assert_eq!(of(missing), MISSING, "{missing:?}");
        }
        assert_eq!(code(&LineValue::MissingGenotype(2), 1), MISSING);
    }

    #[test]
    fn names_that_plink_does_not_allow_are_errors() {
        assert_eq!(fam([&b"a"[..], b"b.1"].into_iter()).unwrap(), b"0\ta\t0\t0\t0\t-9\n0\tb.1\t0\t0\t0\t-9\n");
        for wrong in [&["a b"][..], &["0"], &["a", "a"]] {
            assert!(fam(wrong.iter().map(|name| name.as_bytes())).is_err(), "{wrong:?}");
        }
    }
}
