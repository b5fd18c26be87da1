//! Lists a group, with the groups in it, and the metadata of each: `cargo run --example walk_group -- GROUP`.

use std::env;
use std::error::Error;

use tilefs_api::{Group, Object};

fn main() -> Result<(), Box<dyn Error>> {
    let path = env::args().nth(1).ok_or("usage: walk_group GROUP")?;
    walk(&tilefs_api::open(path)?.into_group()?, 0)
}

fn walk(group: &Group, depth: usize) -> Result<(), Box<dyn Error>> {
    let indent = "  ".repeat(depth);
    for (key, value) in group.metadata()?.iter() {
        println!("{indent}@{}: {} x {}", String::from_utf8_lossy(key), value.datatype.name(), value.count);
    }
    for member in group.members()? {
        match group.open(&member)? {
            Object::Array(array) => {
                println!("{indent}{}: {} attributes", member.name(), array.schema().attributes.len())
            }
            Object::Group(inner) => {
                println!("{indent}{}/", member.name());
                walk(&inner, depth + 1)?;
            }
        }
    }
    Ok(())
}
