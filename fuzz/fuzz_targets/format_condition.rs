//! Delete conditions, and their check against a schema.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tilefs_format::condition::Condition;
use tilefs_fuzz::schema_and_rest::split;

fn walk(condition: &Condition) -> usize {
    match condition {
        Condition::Expression { children, .. } => children.iter().map(walk).sum(),
        Condition::Value(value) => {
            assert!(value.members().map(<[u8]>::len).sum::<usize>() <= value.value().len());
            1
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((_, schema, rest)) = split(data) else { return };
    if let Ok(condition) = Condition::parse(rest) {
        assert!(walk(&condition) > 0);
        let _ = condition.check(&schema);
    }
});
