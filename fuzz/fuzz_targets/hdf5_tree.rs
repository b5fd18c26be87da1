//! Trees of HDF5 objects with any names, types, shapes and chunks: each is an error, or a file whose ranges are parts
//! of the whole.
#![no_main]

use std::collections::HashMap;
use std::ops::Range;

use hdf5_layout::{
    AttributeMessage, CharacterSet, Dataset, Dataspace, Datatype, Error, HeapPlan, FileLayout, ObjectId, SegmentValues, Tree,
};
use libfuzzer_sys::fuzz_target;

/// The longest file that is read as a whole.
const MAX_FILE: u64 = 1 << 20;

/// The most elements of variable length that are put into a heap.
const MAX_ELEMENTS: u64 = 1 << 10;

/// The bytes of the input, taken from the front; zeros after its end.
struct Choices<'a>(&'a [u8]);

impl Choices<'_> {
    fn byte(&mut self) -> u8 {
        let Some((byte, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *byte
    }

    /// A number that is mostly small, and sometimes enormous.
    fn number(&mut self) -> u64 {
        match self.byte() {
            small @ 0..=199 => u64::from(small % 9),
            200..=249 => u64::from(self.byte()) << 3,
            shift => u64::MAX >> (shift & 7) >> (self.byte() & 63),
        }
    }

    fn numbers(&mut self) -> Vec<u64> {
        (0..self.byte() % 4).map(|_| self.number()).collect()
    }

    fn text(&mut self) -> String {
        (0..self.byte() % 12).map(|_| char::from(self.byte())).collect()
    }

    fn datatype(&mut self, depth: u8) -> Datatype {
        match self.byte() % if depth > 0 { 8 } else { 6 } {
            0 => Datatype::signed(self.number() as u32),
            1 => Datatype::Float { size: [2, 4, 8, 3][usize::from(self.byte() % 4)] },
            2 => Datatype::Opaque { size: self.number() as u32 },
            3 => Datatype::boolean(),
            4 => Datatype::complex(4),
            5 => Datatype::VariableString { character_set: CharacterSet::Utf8 },
            6 => {
                let shape = self.numbers().into_iter().map(|length| length as u32).collect();
                Datatype::Array { shape, element: Box::new(self.datatype(depth - 1)) }
            }
            _ => Datatype::Sequence { element: Box::new(self.datatype(depth - 1)) },
        }
    }

    fn dataspace(&mut self) -> Dataspace {
        match self.byte() % 6 {
            0 => Dataspace::Null,
            1 => Dataspace::Scalar,
            _ => Dataspace::Simple(self.numbers()),
        }
    }
}

/// Elements that follow from their numbers; the lengths of those of variable length were chosen.
#[derive(Default)]
struct Elements(HashMap<ObjectId, Vec<u64>>);

fn fill(from: u64, out: &mut [u8]) {
    out.iter_mut().zip(0..).for_each(|(byte, number)| *byte = from.wrapping_add(number).wrapping_mul(31) as u8);
}

impl SegmentValues for Elements {
    type Error = Error;

    fn values(&mut self, _: ObjectId, start: u64, out: &mut [u8]) -> Result<(), Error> {
        fill(start, out);
        Ok(())
    }

    fn lengths(&mut self, dataset: ObjectId, elements: Range<u64>) -> Result<Vec<u64>, Error> {
        Ok(self.0[&dataset][elements.start as usize..elements.end as usize].to_vec())
    }

    fn elements(&mut self, dataset: ObjectId, elements: Range<u64>) -> Result<Vec<Vec<u8>>, Error> {
        let lengths = self.lengths(dataset, elements.clone())?;
        let element = |(length, number): (u64, u64)| {
            let mut bytes = vec![0; length as usize];
            fill(number, &mut bytes);
            bytes
        };
        Ok(lengths.into_iter().zip(elements).map(element).collect())
    }

    fn element(&mut self, _: ObjectId, element: u64, start: u64, out: &mut [u8]) -> Result<(), Error> {
        fill(element.wrapping_add(start), out);
        Ok(())
    }
}

fn dataset(choices: &mut Choices<'_>, lengths: &mut Vec<u64>) -> Option<Dataset> {
    let (datatype, dataspace) = (choices.datatype(2), choices.dataspace());
    let count = dataspace.elements().ok()?;
    let is_variable = datatype.has_variable_length();
    let mut made = Dataset::new(datatype, dataspace);
    match choices.byte() % 4 {
        // The elements of a chunked dataset of variable length are more than its shape tells.
        0 if !is_variable => {
            made = made.chunked(choices.numbers()).unlimited((0..usize::from(choices.byte() % 3)).collect());
        }
        1 => made = made.fill_value((0..choices.byte() % 9).collect()),
        2 => made = made.unwritten(),
        _ => {}
    }
    if is_variable && count <= MAX_ELEMENTS {
        let mut heap = HeapPlan::new();
        for _ in 0..count {
            let length = choices.number() % 70_000;
            heap.push(length).ok()?;
            lengths.push(length);
        }
        made = made.heap(heap);
    }
    Some(made)
}

fuzz_target!(|data: &[u8]| {
    let mut choices = Choices(data);
    let (mut tree, mut ids, mut elements) = (Tree::new(), vec![ObjectId::ROOT], Elements::default());
    while !choices.0.is_empty() && ids.len() < 64 {
        let object = ids[usize::from(choices.byte()) % ids.len()];
        let name = choices.text();
        match choices.byte() % 4 {
            0 => ids.extend(tree.group(object, &name)),
            1 => {
                let attribute = match choices.byte() % 3 {
                    0 => AttributeMessage::text(&choices.text()),
                    1 => AttributeMessage::signed(choices.number() as i64),
                    _ => AttributeMessage::new(choices.datatype(1), choices.dataspace(), (0..choices.byte()).collect()),
                };
                let _ = tree.attribute(object, &name, attribute);
            }
            2 => {
                let mut lengths = Vec::new();
                let made = dataset(&mut choices, &mut lengths).and_then(|made| tree.dataset(object, &name, made).ok());
                if let Some(id) = made {
                    elements.0.insert(id, lengths);
                    ids.push(id);
                }
            }
            _ => {
                let scale = ids[usize::from(choices.byte()) % ids.len()];
                let _ = tree.make_scale(scale, &name);
                let _ = tree.attach_scale(object, usize::from(choices.byte() % 3), scale);
            }
        }
    }
    let Ok(layout) = FileLayout::build(tree) else { return };
    if layout.len() > MAX_FILE {
        // Any part of it is still a part of a file.
        for start in [0, layout.len() / 2, layout.len() - 100] {
            let _ = layout.read(start, &mut elements, &mut [0; 100]);
        }
        return;
    }
    let mut whole = vec![0; layout.len() as usize];
    if layout.read(0, &mut elements, &mut whole).is_err() {
        return;
    }
    let step = 1 + whole.len() / 16;
    for start in (0..whole.len()).step_by(step) {
        let end = (start + data.len() % 3000 + 1).min(whole.len());
        let mut part = vec![0; end - start];
        layout.read(start as u64, &mut elements, &mut part).unwrap();
        assert!(part == whole[start..end], "{start}..{end}");
    }
});
