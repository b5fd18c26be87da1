//! Random files.

use std::collections::HashSet;

use hdf5_layout::{CharacterSet, CompoundMember, Dataspace, Datatype, StringPadding};
use proptest::prelude::*;

use super::model::{Elements, Model, ModelAttribute, ModelDataset, ModelObject};

/// A file of some groups and datasets with attributes.
pub fn models() -> impl Strategy<Value = Model> {
    let object = (any::<u32>(), names(), prop::option::weighted(0.75, datasets()), attributes(), any::<bool>());
    (attributes(), prop::collection::vec(object, 0..12)).prop_map(|(of_root, objects)| {
        let root = ModelObject { parent: 0, name: String::new(), dataset: None, attributes: of_root, scale: None };
        let mut all = vec![root];
        for (parent, name, dataset, attributes, has_scale) in objects {
            let groups: Vec<usize> = (0..all.len()).filter(|number| all[*number].dataset.is_none()).collect();
            let parent = groups[parent as usize % groups.len()];
            // The number at the end makes names unique, and prevents the name ".".
            let name = format!("{name}{}", all.len());
            let scale = if has_scale { scale_for(&all, dataset.as_ref()) } else { None };
            all.push(ModelObject { parent, name, dataset, attributes, scale });
        }
        Model(all)
    })
}

/// A dataset that can be a scale of the first axis of another.
fn scale_for(objects: &[ModelObject], dataset: Option<&ModelDataset>) -> Option<usize> {
    dataset.filter(|dataset| !dataset.dataspace.shape().is_empty())?;
    objects.iter().position(|object| {
        let is_vector = object.dataset.as_ref().is_some_and(|dataset| dataset.dataspace.shape().len() == 1);
        is_vector && object.scale.is_none()
    })
}

fn names() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-z_]{1,8}",
        2 => "[^/\0]{1,20}",
        1 => "[a-z]{250,300}",
    ]
}

/// Generates bytes from a seed: their values do not matter, so they need not shrink.
fn bytes(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..length).map(|_| next()).collect()
}

fn padding() -> impl Strategy<Value = StringPadding> {
    use StringPadding::{NullPadded, NullTerminated, SpacePadded};
    prop::sample::select(vec![NullTerminated, NullPadded, SpacePadded])
}

fn character_set() -> impl Strategy<Value = CharacterSet> {
    prop::sample::select(vec![CharacterSet::Ascii, CharacterSet::Utf8])
}

fn integers() -> impl Strategy<Value = Datatype> {
    (prop::sample::select(vec![1, 2, 4, 8]), any::<bool>())
        .prop_map(|(size, is_signed)| Datatype::Integer { size, is_signed })
}

fn floats() -> impl Strategy<Value = Datatype> {
    prop::sample::select(vec![2, 4, 8]).prop_map(|size| Datatype::Float { size })
}

/// Types of one length whose elements can be any bytes.
fn plain_types() -> impl Strategy<Value = Datatype> {
    let opaque = (1..9_u32).prop_map(|size| Datatype::Opaque { size });
    let leaf = prop_oneof![integers(), floats(), opaque, enumerations()];
    leaf.prop_recursive(2, 8, 3, |inner| {
        let shape = prop::collection::vec(1..4_u32, 1..3);
        let arrays =
            (shape, inner.clone()).prop_map(|(shape, element)| Datatype::Array { shape, element: Box::new(element) });
        prop_oneof![arrays, compounds(inner)]
    })
}

fn enumerations() -> impl Strategy<Value = Datatype> {
    (integers(), prop::collection::hash_set("[a-zé ]{1,9}", 1..5)).prop_map(|(base, names)| {
        let size = base.size().unwrap() as usize;
        // Each value has only one name.
        let value = |number: usize| [vec![number as u8], vec![0; size - 1]].concat();
        let members = names.into_iter().enumerate().map(|(number, name)| (name, value(number))).collect();
        Datatype::Enumeration { base: Box::new(base), members }
    })
}

/// Compound types with some gaps.
fn compounds(inner: impl Strategy<Value = Datatype>) -> impl Strategy<Value = Datatype> {
    prop::collection::vec(("[a-zé]{1,9}", 0..4_u32, inner), 1..4).prop_map(|parts| {
        let (mut members, mut seen, mut size) = (Vec::new(), HashSet::new(), 0);
        for (name, gap, datatype) in parts {
            if seen.insert(name.clone()) {
                let offset = size + gap;
                size = offset + datatype.size().unwrap();
                members.push(CompoundMember { name, offset, datatype });
            }
        }
        Datatype::Compound { size, members }
    })
}

fn dataspaces() -> impl Strategy<Value = Dataspace> {
    prop_oneof![
        1 => Just(Dataspace::Null),
        2 => Just(Dataspace::Scalar),
        8 => prop::collection::vec(0..9_u64, 1..4).prop_map(Dataspace::Simple),
        1 => (300..3000_u64).prop_map(Dataspace::vector),
        1 => prop::collection::vec(1..2_u64, 5..33).prop_map(Dataspace::Simple),
    ]
}

/// A type, a dataspace and elements.
fn elements(is_attribute: bool) -> impl Strategy<Value = (Datatype, Dataspace, Elements)> {
    let plain = (plain_types(), dataspaces(), any::<u64>()).prop_map(|(datatype, dataspace, seed)| {
        let length = dataspace.elements().unwrap() as usize * datatype.size().unwrap() as usize;
        (datatype, dataspace, Elements::Fixed(bytes(seed, length)))
    });
    let booleans = (dataspaces(), any::<u64>()).prop_map(|(dataspace, seed)| {
        let bytes = bytes(seed, dataspace.elements().unwrap() as usize).iter().map(|byte| byte % 2).collect();
        (Datatype::boolean(), dataspace, Elements::Fixed(bytes))
    });
    let strings = (1..9_u32, padding(), character_set(), dataspaces(), any::<u64>()).prop_map(
        |(size, padding, character_set, dataspace, seed)| {
            let count = dataspace.elements().unwrap() as usize;
            let texts = bytes(seed, count).into_iter().flat_map(|length| fixed_string(length, size, padding)).collect();
            (Datatype::FixedString { size, padding, character_set }, dataspace, Elements::Fixed(texts))
        },
    );
    let texts = (dataspaces(), any::<u64>(), any::<bool>(), character_set()).prop_map(
        move |(dataspace, seed, are_long, character_set)| {
            let count = dataspace.elements().unwrap() as usize;
            // Texts of attributes are UTF-8 only.
            let character_set = if is_attribute { CharacterSet::Utf8 } else { character_set };
            let text = |(number, length): (usize, u8)| text(length, number % 7 == 3 && are_long && count < 100);
            let texts = bytes(seed, count).into_iter().enumerate().map(text).collect();
            (Datatype::VariableString { character_set }, dataspace, Elements::Variable(texts))
        },
    );
    // Sequences contain only numbers: h5py cannot convert some of the other types.
    let numbers = prop_oneof![integers(), floats()];
    let sequences = (numbers, dataspaces(), any::<u64>()).prop_map(|(element, dataspace, seed)| {
        let count = dataspace.elements().unwrap() as usize;
        let size = element.size().unwrap() as usize;
        let elements = bytes(seed, count).into_iter().map(|length| bytes(seed, usize::from(length) % 9 * size));
        (Datatype::Sequence { element: Box::new(element) }, dataspace, Elements::Variable(elements.collect()))
    });
    if is_attribute {
        prop_oneof![plain, booleans, strings, texts].boxed()
    } else {
        prop_oneof![plain, booleans, strings, texts, sequences].boxed()
    }
}

fn fixed_string(length: u8, size: u32, padding: StringPadding) -> Vec<u8> {
    let (most, fill) = match padding {
        StringPadding::NullTerminated => (size - 1, 0),
        StringPadding::NullPadded => (size, 0),
        StringPadding::SpacePadded => (size, b' '),
    };
    let length = usize::from(length) % (most as usize + 1);
    let mut text = b"abcdefgh"[..length].to_vec();
    text.resize(size as usize, fill);
    text
}

fn text(length: u8, is_long: bool) -> Vec<u8> {
    let repeats = if is_long { 12_000 } else { usize::from(length) % 13 };
    "né=x;".repeat(repeats).into_bytes()
}

fn attributes() -> impl Strategy<Value = Vec<ModelAttribute>> {
    let attribute = (names(), elements(true)).prop_map(|(name, (datatype, dataspace, elements))| ModelAttribute {
        name,
        datatype,
        dataspace,
        elements,
    });
    prop::collection::vec(attribute, 0..4).prop_map(|attributes| {
        let mut seen = HashSet::new();
        attributes.into_iter().filter(|attribute| seen.insert(attribute.name.clone())).collect()
    })
}

fn datasets() -> impl Strategy<Value = ModelDataset> {
    let chunks = prop::option::of(prop::collection::vec(1..70_u64, 32));
    (elements(false), chunks, any::<bool>(), any::<u64>()).prop_map(
        |((datatype, dataspace, elements), chunks, has_fill_value, seed)| {
            let shape = dataspace.shape();
            // Chunks are no longer than their axes; those of long axes stay short.
            let clip = |(chunk, length): (u64, &u64)| 1 + chunk % (*length).clamp(1, 60);
            let chunk_shape =
                chunks.filter(|_| !shape.is_empty()).map(|chunks| chunks.into_iter().zip(shape).map(clip).collect());
            let is_fixed = matches!(elements, Elements::Fixed(_)) && datatype != Datatype::boolean();
            let fill_value = (has_fill_value && is_fixed && !matches!(datatype, Datatype::FixedString { .. }))
                .then(|| bytes(seed, datatype.size().unwrap() as usize));
            ModelDataset { datatype, dataspace, chunk_shape, fill_value, elements }
        },
    )
}
