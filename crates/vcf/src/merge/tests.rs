//! Tests of merged lines that differ from those of bcftools, and of records that cannot be merged.
//! `tests/tree/variants/merged.rs` compares all other lines with bcftools itself.

use super::super::fields::testing::{FieldExample, stored};
use super::*;

const HEADER: &str = "##fileformat=VCFv4.2\n\
    ##INFO=<ID=DP,Number=1,Type=Integer>\n\
    ##INFO=<ID=AF,Number=A,Type=Float>\n\
    ##INFO=<ID=AN,Number=1,Type=Integer>\n\
    ##INFO=<ID=AC,Number=A,Type=Integer>\n\
    ##FORMAT=<ID=GT,Number=1,Type=String>\n\
    ##FORMAT=<ID=AD,Number=R,Type=Integer>\n\
    ##FORMAT=<ID=PL,Number=G,Type=Integer>\n";

/// The alleles of a record, its INFO and its FORMAT fields.
type Parts<'p> = (&'p str, &'p [(&'p str, FieldExample)], &'p [(&'p str, FieldExample)]);

/// The lines of one record of each file, after the first seven columns.
fn merged(records: &[Parts<'_>]) -> Result<Vec<String>> {
    let header = Arc::new(Header::parse(HEADER.as_bytes()).unwrap());
    let file = |number: usize| MergedFile { header: header.clone(), sample: Some(format!("S{number}").into_bytes()) };
    let merger = Merger::new((0..records.len()).map(file).collect(), LineRule::SharedAllele).unwrap();
    let owned: Vec<[Vec<u8>; 3]> = records
        .iter()
        .map(|(alleles, info, format)| [format!("{alleles}\0").into_bytes(), stored(info), stored(format)])
        .collect();
    let records: Vec<FileRecord<'_>> = owned
        .iter()
        .enumerate()
        .map(|(file, [alleles, info, format])| FileRecord {
            file,
            position: 9,
            record: Record {
                contig: b"1",
                start: 9,
                end: 9,
                quality: MISSING_FLOAT,
                alleles,
                id: b".\0",
                filters: &[0; 4],
                info,
                format,
                extracted_info: &[],
                extracted_format: &[],
            },
        })
        .collect();
    let mut out = Vec::new();
    merger.lines().for_each_line(&records, |line| line.append(&mut out))?;
    let text = String::from_utf8(out).unwrap();
    Ok(text.lines().map(|line| line.splitn(8, '\t').nth(7).unwrap().to_owned()).collect())
}

fn integers(values: &[i32]) -> FieldExample {
    FieldExample::Integers(values.to_vec())
}

#[test]
fn values_that_bcftools_loses_are_kept() {
    // The missing frequency does not hide the one after it.
    let frequencies = FieldExample::Floats(vec![MISSING_FLOAT, 0.5f32.to_bits()]);
    let lines = merged(&[("A,C,G", &[("AF", frequencies)], &[]), ("A,C,G", &[], &[])]).unwrap();
    assert_eq!(lines, ["AF=.,0.5\t.\t.\t."]);
    let depth = || integers(&[i32::MAX]);
    let lines = merged(&[("A,C", &[("DP", depth())], &[]), ("A,C", &[("DP", depth())], &[])]).unwrap();
    assert_eq!(lines, ["DP=4294967294\t.\t.\t."]);
    // A triploid sample has four genotypes of two alleles, and ten of three.
    let triploid = [("GT", integers(&[2, 4, 4])), ("PL", integers(&[9, 8, 7, 6]))];
    let other = [("GT", integers(&[4, 6, 2]))];
    let lines = merged(&[("A,G", &[], &triploid), ("A,C,G", &[], &other)]).unwrap();
    assert_eq!(lines, ["AN=6;AC=3,1\tGT:PL\t0/1/1:9,8,7,6,.,.,.,.,.,.\t2/1/0:."]);
}

#[test]
fn records_that_do_not_fit_their_alleles_are_errors_that_name_the_sample() {
    let told = |format: &[(&str, FieldExample)]| {
        let other = [("GT", integers(&[2, 2]))];
        merged(&[("A,C,G", &[], &other), ("A,G", &[], format)]).unwrap_err().to_string()
    };
    let depths = told(&[("AD", integers(&[1, 2, 3]))]);
    assert!(depths.contains("fmt of the record at 1:10") && depths.contains("field AD of sample S1"), "{depths}");
    for alleles in [&[2, 6][..], &[-2], &[i32::MAX]] {
        let genotype = told(&[("GT", integers(alleles))]);
        assert!(genotype.contains("fmt of the record at 1:10") && genotype.contains("field GT"), "{genotype}");
    }
    assert!(told(&[("GT", FieldExample::Text(b"0/1".to_vec()))]).contains("not numbers"));
    assert!(Merger::new(vec![], LineRule::SharedAllele).is_ok_and(|merger| merger.head().is_ok()));
    let header = Arc::new(Header::parse(HEADER.as_bytes()).unwrap());
    let twice = MergedFile { header, sample: Some(b"S".to_vec()) };
    assert!(Merger::new(vec![twice.clone(), twice], LineRule::SharedAllele).is_err());
}
