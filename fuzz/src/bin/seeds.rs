//! Makes seeds of the vectors in tests/fixtures/filters: every chunk that libtiledb wrote, as an input for the target
//! of its filter and for the target of whole pipelines.
//!
//! usage: cargo run --release --bin seeds   (in the folder fuzz)

use std::fs;
use std::io::Read;
use std::path::Path;

use tilefs_format::cursor::Cursor;
use tilefs_format::datatype::Datatype;
use tilefs_format::filter::Chunks;
use tilefs_format::pipeline::Pipeline;
use tilefs_fuzz::{Input, MAX_ORIGINAL, choices};

const TARGETS: [&str; 11] = [
    "filter_compressors",
    "filter_shuffles",
    "filter_rle",
    "filter_dictionary",
    "filter_double_delta",
    "filter_delta",
    "filter_bit_width_reduction",
    "filter_positive_delta",
    "filter_checksums",
    "filter_webp",
    "filter_aes",
];

/// The longest chunk that becomes a seed. Longer ones are slow and cover no more code.
const MAX_SEED_BYTES: usize = 4096;

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let unzip = |name: &str| {
        let file = fs::File::open(root.join("../tests/fixtures/filters").join(name)).expect("the vectors are there");
        let mut bytes = Vec::new();
        flate2::read::GzDecoder::new(file).read_to_end(&mut bytes).expect("a gzip file");
        bytes
    };
    let (index, blobs) = (String::from_utf8(unzip("index.tsv.gz")).expect("text"), unzip("blobs.gz"));
    let mut written = 0;
    for (line_number, line) in index.lines().enumerate() {
        let fields: Vec<&str> = line.split('\t').collect();
        let number = |field: &str| field.parse::<usize>().expect("a number");
        let blob = |field: &str| {
            let (start, length) = field.split_once('+').expect("START+LENGTH");
            &blobs[number(start)..][..number(length)]
        };
        let pipeline: Vec<u8> = (0..fields[5].len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&fields[5][at..at + 2], 16).expect("hexadecimal"))
            .collect();
        let filters = Pipeline::parse(&mut Cursor::new(&pipeline)).expect("a pipeline").filters;
        for (chunk_number, chunk) in Chunks::new(blob(fields[6])).expect("a tile").enumerate() {
            let chunk = chunk.expect("a chunk");
            if chunk.metadata.len() + chunk.data.len() > MAX_SEED_BYTES {
                continue;
            }
            let mut input = Input {
                choice: 0,
                datatype: Datatype::from_number(number(fields[1]) as u8).expect("a datatype"),
                cell_size: number(fields[2]),
                format_version: 22,
                encrypted: fields[4] != "-",
                original: (chunk.original_bytes as usize).min(MAX_ORIGINAL),
                cells: if fields[8] == "-" { 0 } else { blob(fields[8]).len() / 8 },
                pipeline: pipeline.clone(),
                metadata: chunk.metadata.to_vec(),
                data: chunk.data.to_vec(),
            };
            let mut write = |target: &str, input: &Input| {
                let folder = root.join("corpus").join(target);
                fs::create_dir_all(&folder).expect("a folder for seeds");
                let file = folder.join(format!("vector-{line_number}-{chunk_number}"));
                fs::write(file, input.to_bytes()).expect("a seed");
                written += 1;
            };
            write("filter_pipeline", &input);
            input.pipeline.clear();
            match filters.as_slice() {
                [] if input.encrypted => write("filter_aes", &input),
                [filter] if !input.encrypted => {
                    for target in TARGETS {
                        let same = |choice: &_| std::mem::discriminant(choice) == std::mem::discriminant(filter);
                        if let Some(choice) = choices(target).iter().position(same) {
                            input.choice = choice as u8;
                            write(target, &input);
                        }
                    }
                }
                _ => {}
            }
        }
    }
    println!("{written} seeds in {}", root.join("corpus").display());
}
