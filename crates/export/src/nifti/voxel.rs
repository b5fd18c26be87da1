//! The types of voxels.

use tilefs_format::datatype::{Datatype, Kind};

use crate::column::{Field, FormatResult, Unrepresentable};

/// The type of a voxel, as NIfTI numbers it, and its bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct VoxelType {
    pub(super) code: i16,
    pub(super) bits: i16,
}

impl VoxelType {
    pub(super) fn of(field: &Field) -> FormatResult<Self> {
        let no = |what: &'static str| Err(Unrepresentable::new(format!("NIfTI has no {what}")));
        let size = field.datatype.size();
        let code = match (field.datatype.kind(), size, field.values_per_cell) {
            (Kind::Bytes, ..) => return Err(Unrepresentable::bytes()),
            (_, _, None) => return Err(Unrepresentable::varying_cells()),
            _ if field.datatype.time_unit().is_some() => return Err(Unrepresentable::times()),
            (Kind::Unsigned, 1, Some(3)) if field.datatype != Datatype::Bool => 128,
            (Kind::Unsigned, 1, Some(4)) if field.datatype != Datatype::Bool => 2304,
            (_, _, Some(2..)) | (_, _, Some(0)) => {
                return no("cells of several values, other than the bytes of a colour");
            }
            (Kind::Unsigned, 1, _) => 2,
            (Kind::Signed, 2, _) => 4,
            (Kind::Signed, 4, _) => 8,
            (Kind::Float, 4, _) => 16,
            (Kind::Float, ..) => 64,
            (Kind::Signed, 1, _) => 256,
            (Kind::Unsigned, 2, _) => 512,
            (Kind::Unsigned, 4, _) => 768,
            (Kind::Signed, ..) => 1024,
            (Kind::Unsigned, ..) => 1280,
        };
        let values = field.values_per_cell.and_then(|values| i16::try_from(values).ok()).unwrap_or(1);
        Ok(VoxelType { code, bits: values * size as i16 * 8 })
    }
}
