//! A second, simple reader of BCF for tests, which converts it to lines of VCF; and random lines.

use std::collections::HashMap;

use proptest::prelude::*;
use tilefs_base::error::{Error, Result};

use super::{BcfHeader, BcfRecords};
use crate::fields::{FieldValues, MISSING_FLOAT, append_float};
use crate::header::{attribute, structured};
use crate::line::{Line, LineValue, MISSING, SampleFields};
use crate::record::GENOTYPE;

/// Reads little-endian numbers from the front of some bytes.
struct BcfReader<'a>(&'a [u8]);

impl<'a> BcfReader<'a> {
    fn take(&mut self, length: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(length);
        self.0 = rest;
        taken
    }

    fn signed(&mut self, size: usize) -> i64 {
        let mut bytes = self.take(size).to_vec();
        let sign = if bytes[size - 1] >= 0x80 { 0xff } else { 0 };
        bytes.resize(8, sign);
        i64::from_le_bytes(bytes.try_into().unwrap())
    }

    fn descriptor(&mut self) -> (u8, usize) {
        let byte = self.take(1)[0];
        match byte >> 4 {
            15 => {
                let (kind, count) = self.descriptor();
                assert_eq!(count, 1);
                (byte & 15, self.signed(1 << (kind - 1)) as usize)
            }
            count => (byte & 15, usize::from(count)),
        }
    }

    /// The text of a vector.
    fn vector(&mut self, kind: u8, count: usize, is_genotype: bool) -> String {
        match kind {
            0 => String::new(),
            7 => String::from_utf8(self.take(count).to_vec()).unwrap().trim_end_matches('\0').to_owned(),
            5 => {
                let bits: Vec<u32> = (0..count).map(|_| self.signed(4) as u32).collect();
                let texts = bits.iter().take_while(|&&bits| bits != 0x7f80_0002).map(|&bits| {
                    let mut text = Vec::new();
                    append_float(bits, &mut text);
                    String::from_utf8(text).unwrap()
                });
                texts.collect::<Vec<_>>().join(",")
            }
            1..=3 => {
                let size = 1usize << (kind - 1);
                let missing = -(1i64 << (8 * size - 1));
                let mut text = String::new();
                let values: Vec<i64> = (0..count).map(|_| self.signed(size)).collect();
                for (place, value) in values.into_iter().take_while(|value| *value != missing + 1).enumerate() {
                    assert!(value == missing || value >= missing + 8);
                    if place > 0 {
                        text.push(if !is_genotype {
                            ','
                        } else if value & 1 == 1 {
                            '|'
                        } else {
                            '/'
                        });
                    }
                    match value {
                        _ if value == missing || (is_genotype && value < 2) => text.push('.'),
                        _ if is_genotype => text += &(value / 2 - 1).to_string(),
                        _ => text += &value.to_string(),
                    }
                }
                text
            }
            _ => panic!("type {kind}"),
        }
    }

    fn typed(&mut self) -> String {
        let (kind, count) = self.descriptor();
        self.vector(kind, count, false)
    }
}

/// Returns the lines of the records of a file without BGZF.
pub fn lines(file: &[u8]) -> String {
    let mut reader = BcfReader(file);
    assert_eq!(reader.take(5), b"BCF\x02\x02");
    let length = reader.signed(4) as usize;
    let head = String::from_utf8(reader.take(length).strip_suffix(b"\0").unwrap().to_vec()).unwrap();
    let (mut strings, mut contigs) = (HashMap::new(), HashMap::new());
    for line in head.lines() {
        let Some((key, rest)) = structured(line.as_bytes()) else { continue };
        let text = |name| attribute(rest, name).map(|text| String::from_utf8(text.to_vec()).unwrap());
        let Some((name, number)) = text(b"ID").zip(text(b"IDX")) else { continue };
        let dictionary = if key == b"contig" { &mut contigs } else { &mut strings };
        dictionary.insert(number.parse::<usize>().unwrap(), name);
    }
    let samples = head.lines().last().unwrap().split('\t').count().saturating_sub(9);
    let mut text = String::new();
    while !reader.0.is_empty() {
        let lengths = [reader.signed(4), reader.signed(4)].map(|length| length as usize);
        let [mut shared, mut of_samples] = lengths.map(|length| BcfReader(reader.take(length)));
        let [contig, position, length] = [(); 3].map(|()| shared.signed(4));
        let quality = shared.signed(4) as u32;
        let (info, alleles) = (shared.signed(2), shared.signed(2));
        let counts = shared.signed(4) as u32;
        assert_eq!((counts & 0xff_ffff) as usize, samples);
        let id = shared.typed();
        let alleles: Vec<String> = (0..alleles).map(|_| shared.typed()).collect();
        let or_dot = |text: String| if text.is_empty() { ".".to_owned() } else { text };
        let filters = or_dot(shared.typed());
        let name = |number: &str| strings[&number.parse().unwrap()].clone();
        let filters: Vec<String> =
            filters.split(',').map(|one| if one == "." { one.to_owned() } else { name(one) }).collect();
        let mut end = None;
        let fields = (0..info).map(|_| {
            let key = name(&shared.typed());
            match shared.typed() {
                value if value.is_empty() => key,
                value => {
                    let stated = value.parse::<i64>().ok().filter(|stated| key == "END" && *stated > position);
                    end = stated.or(end);
                    format!("{key}={value}")
                }
            }
        });
        let fields: Vec<String> = fields.collect();
        assert!(shared.0.is_empty());
        assert_eq!(length, end.map_or(alleles[0].len() as i64, |end| end - position));
        let (mut names, mut columns) = (Vec::new(), vec![Vec::new(); samples]);
        for _ in 0..counts >> 24 {
            let field = name(&of_samples.typed());
            let (kind, count) = of_samples.descriptor();
            columns.iter_mut().for_each(|column| column.push(of_samples.vector(kind, count, field == "GT")));
            names.push(field);
        }
        assert!(of_samples.0.is_empty());
        let mut quality_text = Vec::new();
        append_float(quality, &mut quality_text);
        let mut all =
            vec![contigs[&(contig as usize)].clone(), (position + 1).to_string(), or_dot(id), alleles[0].clone()];
        all.push(or_dot(alleles[1..].join(",")));
        all.push(String::from_utf8(quality_text).unwrap());
        all.extend([filters.join(";"), or_dot(fields.join(";"))]);
        if samples > 0 {
            all.push(or_dot(names.join(":")));
            all.extend(columns.into_iter().map(|column| or_dot(column.join(":"))));
        }
        text += &(all.join("\t") + "\n");
    }
    text
}

/// Appends the records of the lines of a text, in which all values are texts.
pub fn append_lines(header: &BcfHeader, text: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let mut records = BcfRecords::new(header);
    let lines = text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    for line in lines {
        let columns: Vec<&[u8]> = line.split(|&byte| byte == b'\t').collect();
        records.append(&line_of(&columns).ok_or_else(|| Error::damaged("a line with few columns"))?, out)?;
    }
    Ok(())
}

fn line_of<'l>(columns: &[&'l [u8]]) -> Option<Line<'l>> {
    let [contig, position, id, reference, others, quality, filters, info, samples @ ..] = columns else { return None };
    let list = |text: &'l [u8], separator: u8| -> Vec<&'l [u8]> {
        text.split(|&byte| byte == separator).filter(|_| text != MISSING).collect()
    };
    let value = |field: &'l [u8]| {
        let name = field.split(|&byte| byte == b'=').next().unwrap_or_default();
        (name, LineValue::Stored(FieldValues::Text(field.get(name.len() + 1..).unwrap_or_default())))
    };
    let quality = str::from_utf8(quality).ok()?;
    let samples = samples.split_first().map(|(format, columns)| {
        let names = list(format, b':');
        let columns = columns.iter().map(|column| column.split(|&byte| byte == b':').collect()).collect();
        Box::new(TextFields { names, columns }) as Box<dyn SampleFields + 'l>
    });
    Some(Line {
        contig,
        start: u32::try_from(str::from_utf8(position).ok()?.parse::<u64>().ok()?.checked_sub(1)?).ok()?,
        ids: list(id, b';'),
        alleles: [*reference].into_iter().chain(list(others, b',')).collect(),
        quality: if quality == "." { MISSING_FLOAT } else { quality.parse::<f32>().ok()?.to_bits() },
        filters: list(filters, b';'),
        info: list(info, b';').into_iter().map(value).collect(),
        samples,
    })
}

/// The texts of FORMAT fields. Those omitted at the end of a sample's column are missing.
pub struct TextFields<'a> {
    pub names: Vec<&'a [u8]>,
    /// For each sample, the text of each field.
    pub columns: Vec<Vec<&'a [u8]>>,
}

impl SampleFields for TextFields<'_> {
    fn names(&self) -> Vec<&[u8]> {
        self.names.clone()
    }

    fn for_each_value(&self, field: usize, visit: &mut dyn FnMut(&LineValue<'_>) -> Result<()>) -> Result<()> {
        self.columns.iter().try_for_each(|column| {
            let text = FieldValues::Text(column.get(field).copied().unwrap_or(MISSING));
            visit(&if self.names.get(field) == Some(&GENOTYPE) {
                LineValue::Genotype(text)
            } else {
                LineValue::Stored(text)
            })
        })
    }

    fn append(&self, _: &mut Vec<u8>) -> Result<()> {
        unreachable!("only read as BCF")
    }
}

const DEFINITIONS: &str = "##fileformat=VCFv4.2\n##FILTER=<ID=q10>\n##FILTER=<ID=s50>\n\
    ##INFO=<ID=I,Number=.,Type=Integer>\n##INFO=<ID=F,Number=.,Type=Float>\n##INFO=<ID=S,Number=.,Type=String>\n\
    ##INFO=<ID=END,Number=1,Type=Integer>\n##INFO=<ID=B,Number=0,Type=Flag>\n##FORMAT=<ID=GT,Number=1,Type=String>\n\
    ##FORMAT=<ID=I,Number=.,Type=Integer>\n##FORMAT=<ID=F,Number=.,Type=Float>\n##FORMAT=<ID=S,Number=.,Type=String>\n\
    ##contig=<ID=1>\n##contig=<ID=chr2,length=9>\n#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO";

/// Returns a header with this many samples.
pub fn header(samples: usize) -> BcfHeader {
    let format = if samples > 0 { "\tFORMAT" } else { "" };
    let names: String = (0..samples).map(|number| format!("\ts{number}")).collect();
    BcfHeader::new(format!("{DEFINITIONS}{format}{names}\n").as_bytes(), &[b"chrUn".to_vec()]).unwrap()
}

fn integers() -> BoxedStrategy<String> {
    let one = prop_oneof![
        Just(".".to_owned()),
        (-130i32..140).prop_map(|value| value.to_string()),
        (-40_000i32..40_000).prop_map(|value| value.to_string()),
        (i32::MIN + 8..=i32::MAX).prop_map(|value| value.to_string()),
    ];
    proptest::collection::vec(one, 1..20).prop_map(|all| all.join(",")).boxed()
}

fn floats() -> BoxedStrategy<String> {
    // One bit pattern of NaN is enough, because VCF does not distinguish them.
    let text = |bits: u32| {
        let mut text = Vec::new();
        append_float(bits, &mut text);
        String::from_utf8(text).unwrap()
    };
    proptest::collection::vec(any::<u32>().prop_map(text), 1..20).prop_map(|all| all.join(",")).boxed()
}

fn genotypes() -> BoxedStrategy<String> {
    let allele = prop_oneof![
        Just(".".to_owned()),
        (0u32..70).prop_map(|n| n.to_string()),
        (0u32..1 << 30).prop_map(|n| n.min((1 << 30) - 2).to_string())
    ];
    let next = (prop_oneof![Just("/"), Just("|")], allele.clone())
        .prop_map(|(separator, allele)| separator.to_owned() + &allele);
    (allele, proptest::collection::vec(next, 0..4)).prop_map(|(first, rest)| first + &rest.concat()).boxed()
}

fn text(characters: &str) -> BoxedStrategy<String> {
    proptest::string::string_regex(characters).unwrap().boxed()
}

/// Returns lines of a file with this many samples.
pub fn any_lines(samples: usize) -> BoxedStrategy<String> {
    let info = prop_oneof![
        integers().prop_map(|values| format!("I={values}")),
        floats().prop_map(|values| format!("F={values}")),
        text("[a-z,.|]{1,300}").prop_map(|value| format!("S={value}")),
        (0i32..=i32::MAX).prop_map(|end| format!("END={end}")),
        Just("B".to_owned()),
        Just("I".to_owned()),
    ];
    let field = prop_oneof![
        proptest::collection::vec(genotypes(), samples).prop_map(|all| ("GT", all)),
        proptest::collection::vec(integers(), samples).prop_map(|all| ("I", all)),
        proptest::collection::vec(floats(), samples).prop_map(|all| ("F", all)),
        proptest::collection::vec(text("[a-z,.|=]{1,40}"), samples).prop_map(|all| ("S", all)),
    ];
    let alleles = text("[ACGTN]{1,20}");
    let others = prop_oneof![Just(".".to_owned()), text("([ACGT]{1,5}|<DEL>|\\*)(,[ACGT]{1,3}){0,20}")];
    let filters = prop_oneof![Just("."), Just("PASS"), Just("q10"), Just("s50;q10")];
    let fixed = (
        prop_oneof![Just("1"), Just("chr2"), Just("chrUn")],
        1i32..=i32::MAX,
        prop_oneof![Just(".".to_owned()), text("rs[0-9;]{1,20}")],
        alleles,
        others,
        floats(),
    );
    let line = (fixed, filters, proptest::collection::vec(info, 0..6), proptest::collection::vec(field, 0..4))
        .prop_map(move |((contig, position, id, reference, others, quality), filters, info, fields)| {
            let or_dot = |text: String| if text.is_empty() { ".".to_owned() } else { text };
            // A record has each field only once.
            let mut seen = std::collections::HashSet::new();
            let fields: Vec<_> = fields.into_iter().filter(|(name, _)| seen.insert(*name)).collect();
            let quality = quality.split(',').next().unwrap_or_default();
            let mut columns = vec![contig.to_owned(), position.to_string(), id, reference, others, quality.to_owned()];
            columns.extend([filters.to_owned(), or_dot(info.join(";"))]);
            if samples > 0 {
                columns.push(or_dot(fields.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(":")));
                columns.extend((0..samples).map(|number| {
                    or_dot(fields.iter().map(|(_, all)| all[number].as_str()).collect::<Vec<_>>().join(":"))
                }));
            }
            columns.join("\t") + "\n"
        });
    proptest::collection::vec(line, 0..5).prop_map(|lines| lines.concat()).boxed()
}
