//! The contents that a reader must find in a file, as JSON for `read_back.py`.

use hdf5_layout::{CharacterSet, Dataspace, Datatype};
use serde_json::{Value, json};

use super::model::{Elements, Model};

/// All objects of a file, with their types in NumPy's notation and their elements in hexadecimal.
pub fn expected(model: &Model) -> Value {
    let objects = model.0.iter().enumerate().map(|(number, object)| {
        let members = model.0.iter().skip(1).filter(|member| member.parent == number).map(|member| &member.name);
        let mut found = json!({
            "path": model.path(number),
            "attributes": object.attributes.iter().map(|attribute| {
                let mut found = elements(&attribute.datatype, &attribute.dataspace, &attribute.elements);
                found["name"] = json!(attribute.name);
                found
            }).collect::<Vec<_>>(),
        });
        match &object.dataset {
            None => found["members"] = json!(members.collect::<Vec<_>>()),
            Some(dataset) => {
                found["dataset"] = elements(&dataset.datatype, &dataset.dataspace, &dataset.elements);
                found["chunks"] = json!(dataset.chunk_shape);
                found["fill_value"] = json!(dataset.fill_value.as_deref().map(hex));
                found["scale"] = json!(object.scale.map(|scale| model.path(scale)));
            }
        }
        found
    });
    Value::Array(objects.collect())
}

fn elements(datatype: &Datatype, dataspace: &Dataspace, elements: &Elements) -> Value {
    let shape = if *dataspace == Dataspace::Null { Value::Null } else { json!(dataspace.shape()) };
    let elements = match elements {
        Elements::Fixed(bytes) => json!(hex(bytes)),
        Elements::Variable(elements) => elements.iter().map(|element| hex(element)).collect(),
    };
    json!({"type": type_of(datatype), "shape": shape, "elements": elements})
}

fn type_of(datatype: &Datatype) -> Value {
    match datatype {
        _ if *datatype == Datatype::boolean() => json!({"numpy": "?"}),
        Datatype::Integer { size, is_signed } => {
            json!({"numpy": format!("<{}{size}", if *is_signed { 'i' } else { 'u' })})
        }
        Datatype::Float { size } => json!({"numpy": format!("<f{size}")}),
        Datatype::Opaque { size } => json!({"numpy": format!("V{size}")}),
        Datatype::ObjectReference => json!({"reference": true}),
        Datatype::FixedString { size, .. } => json!({"string": size}),
        Datatype::VariableString { character_set } => {
            json!({"text": if *character_set == CharacterSet::Utf8 { "utf-8" } else { "ascii" }})
        }
        Datatype::Sequence { element } => json!({"sequence": type_of(element)}),
        Datatype::Array { shape, element } => json!({"array": type_of(element), "shape": shape}),
        Datatype::Enumeration { base, members } => {
            let value = |bytes: &[u8]| bytes.iter().rev().fold(0_u64, |value, byte| value << 8 | u64::from(*byte));
            let members: Vec<_> = members.iter().map(|(name, bytes)| (name, value(bytes))).collect();
            json!({"enumeration": members, "base": type_of(base)})
        }
        Datatype::Compound { size, members } => json!({
            "compound": members.iter().map(|member| &member.name).collect::<Vec<_>>(),
            "formats": members.iter().map(|member| type_of(&member.datatype)).collect::<Vec<_>>(),
            "offsets": members.iter().map(|member| member.offset).collect::<Vec<_>>(),
            "size": size,
        }),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
