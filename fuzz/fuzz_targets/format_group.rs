//! Group details: the bytes after the first are used as two details files; the first selects the version in their
//! names.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tilefs_format::group::{members_in_force, parse_group_details};
use tilefs_format::name::TimestampedName;
use tilefs_fuzz as _; // for its bounded allocator

fuzz_target!(|data: &[u8]| {
    let Some((version, data)) = data.split_first() else { return };
    let Ok(members) = parse_group_details(data) else { return };
    let name = format!("__1_1_{}_{}", "0".repeat(32), version % 3);
    let name = TimestampedName::parse(&name).unwrap().unwrap();
    let most = members.len();
    assert!(members_in_force(vec![(name, members.clone()), (name, members)]).len() <= most);
});
