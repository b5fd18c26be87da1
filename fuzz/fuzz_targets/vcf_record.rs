//! Headers of VCF files and the stored values of records: each is lines of VCF or an error, alone and merged, lines are
//! records of BCF or an error, and a cell is in each column of a table or an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::collections::HashSet;
use std::sync::Arc;

use tilefs_export::column::computed::{CellKind, Cells, Notation};
use tilefs_vcf::{
    BcfHeader, BcfRecords, Contigs, FileRecord, Header, Line, LineRule, MergedFile, Merger, Record, sample_numbers,
};
use tilefs_vcf::{Definitions, FieldColumns, FieldKind, push_alleles, push_filters, push_id};

/// Takes a value from the front: its length in one byte, and its bytes.
fn take<'a>(data: &mut &'a [u8]) -> &'a [u8] {
    let (length, rest) = data.split_first().map_or((0, &data[..]), |(&length, rest)| (usize::from(length), rest));
    let (value, rest) = rest.split_at(length.min(rest.len()));
    *data = rest;
    value
}

/// Makes the cells of a record, all columns at once and each alone.
fn tabulate(header: &[u8], alleles: &[u8], id: &[u8], filters: &[u8], stored: &[u8], extracted: &[u8]) {
    let mut definitions = Definitions::default();
    let known = definitions.add(header).is_ok()
        || definitions.add(b"##fileformat=VCFv4.2\n##INFO=<ID=X,Number=1,Type=Integer>\n").is_ok();
    assert!(known);
    definitions.add_stored(FieldKind::Format, b"GT");
    for notation in [Notation::Lists, Notation::Texts] {
        let list = if notation == Notation::Lists { CellKind::Texts } else { CellKind::Text };
        let _ = push_alleles(alleles, notation, &mut Cells::new(list));
        let _ = push_id(id, notation, &mut Cells::new(CellKind::Text));
        let _ = push_filters(filters, &definitions.filters()[0], notation, &mut Cells::new(list));
        for (kind, own) in [(FieldKind::Info, &b"X"[..]), (FieldKind::Format, b"GT")] {
            let columns = FieldColumns::new(&definitions, kind, notation, &mut HashSet::new());
            let mut all: Vec<Cells> = columns.columns().iter().map(|column| Cells::new(column.kind)).collect();
            let extracted = [(own, extracted)];
            if columns.append(stored, &extracted, None, &mut all).is_err() {
                continue;
            }
            for (number, (column, cells)) in columns.columns().iter().zip(&all).enumerate() {
                let mut alone = [Cells::new(column.kind)];
                columns.append(stored, &extracted, Some(number), &mut alone).expect("a column of a sound record");
                assert!(alone[0] == *cells && cells.count() == 1);
            }
        }
    }
}

/// Appends the record of a line, and checks that its lengths are those of its bytes.
fn check_bcf(line: &Line<'_>, records: &mut BcfRecords<'_>) {
    let mut record = Vec::new();
    if records.append(line, &mut record).is_ok() {
        let length = |at: usize| u32::from_le_bytes(record[at..at + 4].try_into().unwrap()) as usize;
        assert_eq!(record.len(), 8 + length(0) + length(4));
    }
}

fuzz_target!(|data: &[u8]| {
    let mut data = data;
    let numbers = take(&mut data);
    let number =
        |at: usize| numbers.get(at..at + 4).map_or(7, |bytes| bytes.iter().fold(0, |sum, &b| sum << 8 | u32::from(b)));
    let _ = sample_numbers(numbers);
    let [alleles, id, filters, info, format, extracted, contig] = std::array::from_fn(|_| take(&mut data));
    let _ = Contigs::parse(alleles, id);
    for stored in [info, format] {
        tabulate(data, alleles, id, filters, stored, extracted);
    }
    let header = Header::parse(data)
        .or_else(|_| Header::parse(&[b"##fileformat=VCFv4.2\n", data].concat()))
        .or_else(|_| Header::parse(b"##fileformat=VCFv4.2\n##FILTER=<ID=a>\n##INFO=<ID=END>\n"));
    let Ok(header) = header else { return };
    let record = Record {
        contig,
        start: number(0),
        end: number(4),
        quality: number(8),
        alleles,
        id,
        filters,
        info,
        format,
        extracted_info: &[(b"X", extracted)],
        extracted_format: &[(b"GT", extracted)],
    };
    let mut text = Vec::new();
    if let Ok(line) = record.line(&header, true)
        && line.append(&mut text).is_ok()
    {
        assert_eq!(text.iter().filter(|&&byte| byte == b'\n').count(), 1);
        assert_eq!(text.iter().filter(|&&byte| byte == b'\t').count(), 9);
        if let Ok(Ok(header)) = header.text(Some(b"s")).map(|head| BcfHeader::new(&head, &[contig.to_vec()])) {
            check_bcf(&line, &mut BcfRecords::new(&header));
        }
    }
    // The same, merged with a record of another file and with a second record of the same file.
    let other = Record {
        alleles: b"A,C,<NON_REF>\0",
        id: b".\0",
        filters: &[0; 4],
        info: &[0; 4],
        format: &[0; 4],
        extracted_info: &[],
        extracted_format: &[],
        ..record
    };
    let third = Record { info: other.info, alleles: other.alleles, id: other.id, ..record };
    let header = Arc::new(header);
    let file = |sample: &[u8]| MergedFile { header: header.clone(), sample: Some(sample.to_vec()) };
    for rule in [LineRule::SharedAllele, LineRule::SameKind] {
        let Ok(merger) = Merger::new(vec![file(b"a"), file(b"b")], rule) else { return };
        check_merged(&merger, contig, [(0, record), (0, third), (1, other)]);
    }
});

fn check_merged(merger: &Merger, contig: &[u8], records: [(usize, Record<'_>); 3]) {
    let records = records.map(|(file, record)| FileRecord { file, record, position: record.start });
    let bcf = merger.head().and_then(|head| BcfHeader::new(&head, &[contig.to_vec()]));
    let mut bcf = bcf.as_ref().ok().map(BcfRecords::new);
    let _ = merger.lines().for_each_line(&records, |line| {
        let mut text = Vec::new();
        line.append(&mut text)?;
        assert_eq!(text.iter().filter(|&&byte| byte == b'\t').count(), 10);
        assert_eq!(text.iter().filter(|&&byte| byte == b'\n').count(), 1);
        if let Some(bcf) = &mut bcf {
            check_bcf(line, bcf);
        }
        Ok(())
    });
}
