//! Where the value of a cell comes from: the fragment, the tile, the chunk and the bytes that hold it, and why other
//! cells with the same coordinates are not shown. It follows the plan of a read, and decodes only the cells asked for.
//!
//! From the lowest to the highest, and each uses only those before it: `fragments`, which of them count; `place`, a cell
//! of a fragment and what became of it; `stored`, the bytes of its values; `candidates`, the cells at some coordinates
//! in all fragments; `fates`, which of these are shown; `runs`, consecutive cells; `dense` and `sparse`.

mod candidates;
mod dense;
mod fates;
mod fragments;
mod place;
mod runs;
mod sparse;
mod stored;

pub use dense::{origin_of_cell, runs_of_cells};
pub use fragments::{FragmentState, fragment_states};
pub use place::{CellFate, CellOrigin, CellPlace, Deletion, MapForm, MapPlace, OtherCell, UnreadFragment};
pub use runs::CellRun;
pub use sparse::{hidden_cells, origin_of_row, runs_of_rows};
pub use stored::{ChunkPlace, FetchedBytes, StoredValue, ValuePart, stored_values};
