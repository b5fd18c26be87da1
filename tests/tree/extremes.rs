//! Extreme requests: no cell, one cell, 2^40 cells, 100,000 ranges, very many attributes, names that are not selections.

use std::fs;
use std::process::Command;
use std::sync::Arc;

use support::own_process::in_own_process;
use support::paths::{folder, node};
use support::shown::read_all;
use support::skip::python_with;
use tilefs_base::content::Content;
use tilefs_tree::{self as tree, TreeOptions};
use tilefs_vfs::node::NODE;
use tilefs_vfs::{EntryKind, Folder, Node};

fn fixture(name: &str) -> Arc<dyn Folder> {
    let path = tilefs_fixtures::fixtures().join(name);
    tree::open(
        &path,
        &TreeOptions {
            reading: tilefs_reader::ReaderOptions { cache_size: 32 << 20, ..Default::default() },
            ..TreeOptions::default()
        },
    )
    .unwrap()
}

/// Opens a file, and checks that its length is the one that was reported before.
fn content(root: &Arc<dyn Folder>, path: &str) -> Arc<dyn Content> {
    let Some(Node::File(file)) = node(root, path) else { panic!("there is no file {path}") };
    let (length, content) = (file.len().unwrap(), file.open().unwrap());
    assert_eq!(content.len(), length, "{path}");
    content
}

fn bytes(root: &Arc<dyn Folder>, path: &str) -> Vec<u8> {
    read_all(&*content(root, path)).unwrap()
}

fn part<const N: usize>(content: &dyn Content, offset: u64) -> [u8; N] {
    let mut bytes = [0; N];
    content.read_at(offset, &mut bytes).unwrap();
    bytes
}

/// Reads every listed file below a folder completely; returns their number.
fn read_everything(folder: &Arc<dyn Folder>) -> usize {
    let mut files = 0;
    for entry in folder.list().unwrap() {
        match entry.kind {
            EntryKind::File => {
                bytes(folder, &entry.name);
                files += 1;
            }
            EntryKind::Folder => {
                let Some(Node::Folder(inner)) = node(folder, &entry.name) else { panic!("no folder {}", entry.name) };
                files += read_everything(&inner);
            }
        }
    }
    files
}

#[test]
fn selections_of_nothing_are_files_without_cells() {
    let demo = fixture("demo");
    for selection in ["slice/5:5", "slice/..,7:7", "islice/90:10", "islice/5:5,3:3"] {
        let slice = folder(&demo, selection);
        assert!(read_everything(&slice) > 15, "{selection}");
        assert!(bytes(&slice, "temp.f32").is_empty() && bytes(&slice, "F/cell.i32").is_empty(), "{selection}");
        let npy = bytes(&slice, "npy/temp.npy");
        assert!(npy.len().is_multiple_of(64) && npy.windows(5).any(|part| part == b"'<f4'"), "{selection}");
    }
    assert_eq!(bytes(&demo, "slice/5:5/dims/y.i64").len(), 0);
    assert_eq!(bytes(&demo, "slice/5:5/dims/x.i64").len(), 200 * 8);
    // Selections without rows, in arrays with rows and in an array without any.
    for (array, selection) in [("dims_1", "slice/-1:-1"), ("types", "islice/7:7"), ("empty", "slice/-50..49")] {
        let slice = folder(&fixture(&format!("arrays/sparse/{array}")), selection);
        assert!(read_everything(&slice) > 8, "{array}");
        assert_eq!(bytes(&slice, "text/cells.tsv").iter().filter(|&&byte| byte == b'\n').count(), 1, "{array}");
        bytes(&slice, "arrow/cells.arrow");
        bytes(&slice, "parquet/cells.parquet");
    }
    read_everything(&fixture("arrays/sparse/empty"));
    read_everything(&fixture("arrays/dense/no_fragment"));
}

#[test]
fn one_cell_is_one_value_in_every_format() {
    let demo = fixture("demo");
    let value = 20.0 - 42.0 / 10.0 + 17.0 / 100.0;
    for selection in ["slice/42,17", "slice/x=17,y=42", "islice/42,17", "islice/-58,-183:-182"] {
        let slice = folder(&demo, selection);
        assert!(read_everything(&slice) > 15, "{selection}");
        let temp = f32::from_le_bytes(bytes(&slice, "temp.f32").try_into().unwrap());
        assert!((f64::from(temp) - value).abs() < 1e-5, "{selection}: {temp}");
        assert_eq!(bytes(&slice, "cell.i32"), 42_017_i32.to_le_bytes());
        assert_eq!(bytes(&slice, "F/cell.i32"), 42_017_i32.to_le_bytes());
        assert_eq!(bytes(&slice, "npy/cell.npy")[128..], 42_017_i32.to_le_bytes());
        assert_eq!(String::from_utf8(bytes(&slice, "text/cell.txt")).unwrap().trim(), "42017");
    }
}

/// Returns the resident memory of this process in bytes.
fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

/// 2^20 x 2^20 cells of which 8 x 8 in the middle are written.
#[test]
fn files_of_two_to_the_forty_cells_have_their_size_and_take_no_memory() {
    in_own_process(|| {
        const SIDE: u64 = 1 << 20;
        const MIDDLE: u64 = 1 << 19;
        let before = resident();
        let huge = fixture("huge");
        let raw = content(&huge, "v.i32");
        assert_eq!(raw.len(), 4 * SIDE * SIDE);
        let npy = content(&huge, "npy/v.npy");
        assert_eq!(npy.len(), 128 + raw.len());
        let column_major = content(&huge, "F/v.i32");
        assert_eq!(column_major.len(), raw.len());
        let text = content(&huge, "text/v.txt");
        assert_eq!(text.len() % (SIDE * SIDE), 0);
        assert!(content(&huge, "netcdf/array.nc").len() > raw.len());
        let value = |y: u64, x: u64| match (y.checked_sub(MIDDLE), x.checked_sub(MIDDLE)) {
            (Some(y @ 0..8), Some(x @ 0..8)) => (8 * y + x) as i32,
            _ => -1,
        };
        let (near, corners) = (MIDDLE - 1..MIDDLE + 9, [(0, 0), (0, SIDE - 1), (SIDE - 1, 0), (SIDE - 1, SIDE - 1)]);
        for (y, x) in near.clone().flat_map(|y| near.clone().map(move |x| (y, x))).chain(corners) {
            let cell = y * SIDE + x;
            let expected = value(y, x).to_le_bytes();
            assert_eq!(part::<4>(&*raw, 4 * cell), expected, "{y} {x}");
            assert_eq!(part::<4>(&*npy, 128 + 4 * cell), expected, "{y} {x}");
            assert_eq!(part::<4>(&*column_major, 4 * (x * SIDE + y)), expected, "{y} {x}");
            let text = part::<12>(&*text, 12 * cell);
            assert_eq!(std::str::from_utf8(&text).unwrap().trim(), value(y, x).to_string(), "{y} {x}");
        }
        let grown = resident().saturating_sub(before);
        assert!(grown < 256 << 20, "{} MiB more", grown >> 20);
    });
}

/// 2^62 cells, of which the files show 6 ..= 15: the written cells, 6 ..= 9 and 13 ..= 15, and those between.
#[test]
fn a_slice_is_of_the_domain_and_not_of_what_files_show() {
    const HALF: i64 = 1 << 61;
    let enormous = fixture("enormous");
    let is_written = |i: i64| (6..=9).contains(&i) || (13..=15).contains(&i);
    let check = |path: &str, expected: &[i64]| {
        let shown = folder(&enormous, path);
        let value = |i: i64| if is_written(i) { i as i32 } else { -1 };
        let name = |i: i64| if is_written(i) { format!("#{i}") } else { "none".to_owned() };
        let values: Vec<u8> = expected.iter().flat_map(|&i| value(i).to_le_bytes()).collect();
        assert_eq!(bytes(&shown, "v.i32"), values, "{path}");
        assert_eq!(bytes(&shown, "npy/v.npy")[128..], values, "{path}");
        let names: Vec<String> = expected.iter().map(|&i| name(i)).collect();
        assert_eq!(bytes(&shown, "name.bytes"), names.concat().into_bytes(), "{path}");
        let ends = names.iter().scan(0, |end, name| {
            *end += name.len() as u64;
            Some(*end)
        });
        let offsets: Vec<u8> = [0].into_iter().chain(ends).flat_map(u64::to_le_bytes).collect();
        assert_eq!(bytes(&shown, "name.offsets.u64"), offsets, "{path}");
        let coordinates: Vec<u8> = expected.iter().flat_map(|i| i.to_le_bytes()).collect();
        assert_eq!(bytes(&shown, "dims/i.i64"), coordinates, "{path}");
        let table = String::from_utf8(bytes(&shown, "text/cells.tsv")).unwrap();
        let rows: Vec<Vec<String>> = table
            .lines()
            .skip(1)
            .map(|row| row.split('\t').map(|one| one.trim_matches([' ', '"']).to_owned()).collect())
            .collect();
        let expected: Vec<Vec<String>> =
            expected.iter().map(|&i| vec![i.to_string(), value(i).to_string(), name(i)]).collect();
        assert_eq!(rows, expected, "{path}");
        assert!(read_everything(&shown) > 10, "{path}");
    };
    let all = |first: i64, last: i64| (first..=last).collect::<Vec<_>>();
    check(".", &all(6, 15));
    check("nonempty", &all(6, 15));
    for root in ["", "nonempty/"] {
        // Beyond the written box on both sides, on one side, and beside it.
        check(&format!("{root}slice/4..17"), &all(4, 17));
        check(&format!("{root}slice/-2..7"), &all(-2, 7));
        check(&format!("{root}slice/15..21"), &all(15, 21));
        check(&format!("{root}slice/1000000000000..1000000000002"), &all(1_000_000_000_000, 1_000_000_000_002));
        check(&format!("{root}slice/1:20:6"), &[1, 7, 13, 19]);
        check(&format!("{root}slice/20+5..6+13+20"), &[20, 5, 6, 13, 20]);
        // The ends of the domain, to which ranges are clipped.
        check(&format!("{root}slice/{}..{}", -HALF - 5, 1 - HALF), &[-HALF, 1 - HALF]);
        check(&format!("{root}slice/{}..{}", HALF - 2, i64::MAX), &[HALF - 2, HALF - 1]);
        // Ends without a coordinate are those of the box shown.
        for (name, expected) in [("first", all(6, 6)), ("last", all(15, 15)), ("..7", all(6, 7)), ("14..", all(14, 15))]
        {
            check(&format!("{root}slice/{name}"), &expected);
        }
        check(&format!("{root}islice/0:4"), &all(6, 9));
        check(&format!("{root}islice/-1"), &[15]);
        for missing in [format!("slice/{HALF}"), format!("slice/{}", -HALF - 1), "islice/10".to_owned()] {
            assert!(node(&enormous, &format!("{root}{missing}")).is_none(), "{root}{missing}");
        }
    }
    // A file of 2^60 values is too large to be read as a whole, but each value can be read.
    let quarter = content(&enormous, &format!("slice/0..{}/v.i32", HALF / 2 - 1));
    assert_eq!(quarter.len(), 2 * HALF as u64);
    assert_eq!(part::<12>(&*quarter, 4 * 5), [-1, 6, 7].map(i32::to_le_bytes).concat()[..]);
    assert_eq!(part::<4>(&*quarter, quarter.len() - 4), (-1i32).to_le_bytes());
}

#[test]
fn a_hundred_thousand_ranges_are_one_selection() {
    // Rows of a dense array in any order, repeatedly; each row begins with 1000 times its number.
    let demo = fixture("demo");
    let rows: Vec<u64> = (0..100_000_u64).map(|number| number * 37 % 100).collect();
    let ranges: Vec<String> = rows.iter().map(u64::to_string).collect();
    let cells = content(&demo, &format!("slice/{}/cell.i32", ranges.join("+")));
    assert_eq!(cells.len(), 100_000 * 200 * 4);
    for at in (0..100_000).step_by(997).chain([99_999]) {
        assert_eq!(part(&*cells, at * 800 + 4), (1000 * rows[at as usize] as i32 + 1).to_le_bytes(), "row {at}");
    }

    // Coordinates of a sparse array by ranges with gaps between them.
    let sparse = fixture("arrays/sparse/dim_integers");
    let coordinates = |root: &Arc<dyn Folder>, path: &str| -> Vec<u32> {
        bytes(root, path).chunks_exact(4).map(|four| u32::from_le_bytes(four.try_into().unwrap())).collect()
    };
    let all = coordinates(&sparse, "dims/uint32.u32");
    let is_wanted = |coordinate: u32| coordinate % 42_949 < 30_000 && coordinate / 42_949 < 100_000;
    let expected: Vec<u32> = all.iter().copied().filter(|&coordinate| is_wanted(coordinate)).collect();
    assert!(!expected.is_empty() && expected.len() < all.len());
    let ranges: Vec<String> = (0..100_000_u32).map(|n| format!("{}..{}", n * 42_949, n * 42_949 + 29_999)).collect();
    let path = format!("slice/uint32={}/dims/uint32.u32", ranges.join("+"));
    assert_eq!(coordinates(&sparse, &path), expected);
}

/// Makes an array of 1,200 attributes, some of whose names begin like others.
const WIDE: &str = "
import sys, numpy as np, tiledb
names = [f'a{number}' for number in range(1198)] + ['a7.i32', 'a7.x']
dims = [tiledb.Dim(name, domain=(0, 3), tile=2, dtype=np.int32) for name in 'yx']
attributes = [tiledb.Attr(name, dtype=np.int32) for name in names]
tiledb.Array.create(sys.argv[1], tiledb.ArraySchema(tiledb.Domain(*dims), attributes))
cells = np.arange(16, dtype=np.int32).reshape(4, 4)
values = {name: cells + 100 * number for number, name in enumerate(names)}
with tiledb.open(sys.argv[1], 'w') as array:
    array[:] = values
";

#[test]
fn files_of_very_many_attributes_are_made_when_they_are_looked_up() {
    let Some(python) = python_with("tiledb, numpy") else { return };
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("wide");
    let made = Command::new(&python).arg("-c").arg(WIDE).arg(&path).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let root = tree::open(&path, &TreeOptions::default()).unwrap();
    let cells =
        |number: i32| -> Vec<u8> { [5, 6].iter().flat_map(|cell| (cell + 100 * number).to_le_bytes()).collect() };
    // An array of two attributes has as many nodes that do not belong to one.
    let narrow = place.path().join("narrow");
    let made = Command::new(python).arg("-c").arg(WIDE.replace("1198", "0")).arg(&narrow).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let others = tree::open(&narrow, &TreeOptions::default()).unwrap().memory();
    assert!(root.memory() <= others, "{} {others}", root.memory());
    let slice = folder(&root, "islice/1,1:3");
    let looked_up = [("a0", 0), ("a7", 7), ("a1197", 1197), ("a7.i32", 1198), ("a7.x", 1199)];
    let before = slice.memory();
    for (name, number) in looked_up {
        assert_eq!(bytes(&slice, &format!("{name}.i32")), cells(number), "{name}");
    }
    // All files are listed, those of the table included, and those of no other attribute were made for it.
    let listed: Vec<String> = slice.list().unwrap().into_iter().map(|entry| entry.name).collect();
    let made = (slice.memory() - before) / NODE;
    assert!((looked_up.len()..=12 * looked_up.len()).contains(&made), "{made} nodes were made");
    assert!(listed.len() > 1200 && listed.iter().all(|name| node(&slice, name).is_some()));
    assert_eq!(bytes(&slice, "npy/a7.npy")[128..], cells(7));
    assert!(node(&slice, "a7").is_none() && node(&slice, "b.i32").is_none());
    // The list of all files has those of the first attributes; each attribute has its own.
    let schema: serde_json::Value = serde_json::from_slice(&bytes(&root, "schema.json")).unwrap();
    let paths = |list: &serde_json::Value| list.as_array().unwrap().len();
    let (all, left_out) = (paths(&schema["files"]), schema["files_left_out"].as_u64().unwrap() as usize);
    let own: Vec<usize> = schema["attributes"].as_array().unwrap().iter().map(|one| paths(&one["files"])).collect();
    assert_eq!(left_out, own[1000..].iter().sum::<usize>());
    assert!(own.iter().all(|&files| files > 5) && all > own[..1000].iter().sum());
}

#[test]
fn names_with_broken_escapes_are_no_files_and_are_explained() {
    let names =
        ["%zz", "1%", "1%4", "y=%", "y=1%2", "%FF=1", "y%3=1", "%%", "%e9..1", "é%", "%00", "1,%", "+", "=", ",,,"];
    for root in ["demo", "arrays/sparse/dim_text", "arrays/sparse/dims_3", "arrays/dense/odd_names"] {
        let opened = fixture(root);
        // Any valid text is a selection of a string dimension.
        let text = root.ends_with("text");
        for name in names.iter().filter(|name| !text || name.contains("zz") || name.ends_with("%4")) {
            for by in ["slice", "islice"] {
                assert!(node(&opened, &format!("{by}/{name}")).is_none(), "{root} {by}/{name}");
            }
        }
        for name in names {
            for place in ["", "npy/", "text/", "dims/", "meta/", ".history/", "slice/0/"] {
                let path = format!("{place}{name}");
                assert!(!matches!(node(&opened, &path), Some(Node::File(_))), "{root} {path}");
            }
        }
    }
    let demo = tilefs_fixtures::fixtures().join("demo");
    let explained = |selection: &str| {
        let tilefs = env!("CARGO_BIN_EXE_tilefs");
        let output = Command::new(tilefs).arg("info").arg(&demo).args(["--slice", selection]).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    for (selection, shown) in [
        ("5%2,7", "\n5%2,7\n ^^\n"),
        ("slice/5%2,7", "\n5%2,7\n ^^\n"),
        ("islice/5%2,7/", "\n5%2,7\n^^^\n"),
        ("islice/1,200", "\n1,200\n  ^^^\n"),
    ] {
        let (status, text) = explained(selection);
        assert_eq!(status, Some(1), "{text}");
        assert!(text.contains(shown) && text.contains("dimension "), "{text}");
    }
    assert_eq!(explained("islice/-1,::2"), (Some(0), String::new()));
}
