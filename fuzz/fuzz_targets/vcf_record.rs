//! Headers of VCF files and the stored values of records: each is lines of VCF or an error, alone and merged, lines are
//! records of BCF or an error, and a cell is in each column of a table or an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::collections::HashSet;
use std::sync::Arc;

use tilefs_export::column::computed::{CellKind, Cells};
use tilefs_vcf::{Definitions, FieldColumns, FieldKind, Notation, push_alleles, push_filters, push_id};
use tilefs_vcf::{BcfHeader, BcfRecords, Contigs, FileRecord, Header, MergedFile, Merger, Record, sample_numbers};

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
    let known = definitions.add(header).is_ok() || definitions.add(b"##fileformat=VCFv4.2\n##INFO=<ID=X,Number=1,Type=Integer>\n").is_ok();
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

/// Makes records of BCF of lines, and checks that their lengths are those of their bytes.
fn check_bcf(head: &[u8], contigs: &[Vec<u8>], lines: &[u8]) {
    let Ok(header) = BcfHeader::new(head, contigs) else { return };
    let mut records = Vec::new();
    if BcfRecords::new(&header).append(lines, &mut records).is_err() {
        return;
    }
    let (mut rest, mut count) = (records.as_slice(), 0);
    while !rest.is_empty() {
        let length = |at: usize| u32::from_le_bytes(rest[at..at + 4].try_into().unwrap()) as usize;
        rest = &rest[8 + length(0) + length(4)..];
        count += 1;
    }
    assert_eq!(count, lines.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).count());
}

fuzz_target!(|data: &[u8]| {
    let mut data = data;
    let numbers = take(&mut data);
    let number = |at: usize| numbers.get(at..at + 4).map_or(7, |bytes| bytes.iter().fold(0, |sum, &b| sum << 8 | u32::from(b)));
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
    let mut line = Vec::new();
    if record.append(&header, true, &mut line).is_ok() {
        assert_eq!(line.iter().filter(|&&byte| byte == b'\n').count(), 1);
        assert_eq!(line.iter().filter(|&&byte| byte == b'\t').count(), 9);
        if let Ok(head) = header.text(Some(b"s")) {
            check_bcf(&head, &[contig.to_vec()], &line);
        }
    }
    // Lines that no record makes.
    let head = b"##fileformat=VCFv4.2\n##INFO=<ID=I,Type=Integer>\n##FORMAT=<ID=GT,Type=String>\n##contig=<ID=1>\n#\t\t\t\t\t\t\t\t\t\n";
    check_bcf(head, &[], alleles);
    // The same, merged with a record of another file and with a second record of the same file.
    let other = Record { alleles: b"A,C,<NON_REF>\0", id: b".\0", filters: &[0; 4], info: &[0; 4], format: &[0; 4], extracted_info: &[], extracted_format: &[], ..record };
    let third = Record { info: other.info, alleles: other.alleles, id: other.id, ..record };
    let header = Arc::new(header);
    let file = |sample: &[u8]| MergedFile { header: header.clone(), sample: Some(sample.to_vec()) };
    let Ok(merger) = Merger::new(vec![file(b"a"), file(b"b")]) else { return };
    let records = [(0, record), (0, third), (1, other)].map(|(file, record)| FileRecord { file, record });
    let mut lines = Vec::new();
    if merger.lines().append(&records, &mut lines).is_ok() {
        if let Ok(head) = merger.head() {
            check_bcf(&head, &[contig.to_vec()], &lines);
        }
        let mut lines = lines.strip_suffix(b"\n").unwrap_or_default().split(|&byte| byte == b'\n');
        assert!(lines.all(|line| line.iter().filter(|&&byte| byte == b'\t').count() == 10));
    }
});
