//! Group details, taken as several files: all but the first byte twice.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tilefs_format::group::{members_in_force, parse_group_details};
use tilefs_format::name::TimestampedName;
use tilefs_fuzz as _; // its bounded memory

fuzz_target!(|data: &[u8]| {
    let Some((version, data)) = data.split_first() else { return };
    let Ok(members) = parse_group_details(data) else { return };
    let name = format!("__1_1_{}_{}", "0".repeat(32), version % 3);
    let name = TimestampedName::parse(&name).unwrap().unwrap();
    let most = members.len();
    assert!(members_in_force(vec![(name, members.clone()), (name, members)]).len() <= most);
});
