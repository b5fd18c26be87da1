//! The position of a raster on the Earth: an affine transform and a coordinate system.

use crate::geo::wkt::CoordinateSystem;

/// A coordinate system, and the affine transform from pixels to coordinates in it.
#[derive(Debug, Clone, PartialEq)]
pub struct Georeference {
    /// GDAL's six numbers: x of the upper left corner, x per column, x per row; then the same for y. `None` if the
    /// pixels do not form a regular grid, or it is not known.
    pub transform: Option<[f64; 6]>,
    /// The coordinate system as well-known text or, if there is none, as stored; empty if there is no system.
    pub system: String,
    /// The axes of the system, by number from 1, that are x and y, in GDAL's notation: `2,1` if the system's first axis
    /// is the latitude or the northing. `None` if x is always the easting or longitude, which is GDAL's own rule.
    pub axis_mapping: Option<String>,
    /// The year, as a decimal fraction, for which coordinates of a dynamic system hold.
    pub epoch: Option<String>,
}

/// The axes of an array whose cells are pixels.
#[derive(Debug, Clone, PartialEq)]
pub struct GeoreferencedAxes {
    /// The position of the raster in its coordinate reference system.
    pub place: Georeference,
    /// The axis along which rows follow each other.
    pub lines: usize,
    /// The axis along a row.
    pub samples: usize,
    /// Whether the array itself has the coordinates along these axes, which then take precedence over the transform.
    pub are_labelled: bool,
}

impl GeoreferencedAxes {
    /// Returns whether a variable must name its coordinate system because the coordinates along the axes do not say
    /// everything.
    pub(crate) fn need_a_system(&self) -> bool {
        !self.are_labelled || !self.place.system.is_empty()
    }
}

impl Georeference {
    /// Creates a georeference in a system whose axis order the system itself defines.
    pub fn new(transform: [f64; 6], system: impl Into<String>) -> Self {
        Georeference { transform: Some(transform), system: system.into(), axis_mapping: None, epoch: None }
    }

    /// Creates a georeference that has a system but no transform.
    pub fn of_system(system: impl Into<String>) -> Self {
        Georeference { transform: None, system: system.into(), axis_mapping: None, epoch: None }
    }

    /// Returns the georeference of a window of the raster: columns from `column` in steps of `column_step`, rows
    /// likewise. The centre of each remaining pixel keeps its position.
    pub fn window(&self, column: u64, column_step: u64, row: u64, row_step: u64) -> Self {
        let Some([x, x_column, x_row, y, y_column, y_row]) = self.transform else { return self.clone() };
        let (columns, rows) = (column_step as f64, row_step as f64);
        // From the corner to the first pixel's centre, and back by half of the larger pixel.
        let right = column as f64 + 0.5 - columns / 2.0;
        let down = row as f64 + 0.5 - rows / 2.0;
        let transform = [
            x + right * x_column + down * x_row,
            x_column * columns,
            x_row * rows,
            y + right * y_column + down * y_row,
            y_column * columns,
            y_row * rows,
        ];
        Georeference { transform: Some(transform), ..self.clone() }
    }

    /// Returns whether columns go east and rows go south, without rotation.
    pub(crate) fn is_north_up(&self) -> bool {
        self.transform.is_some_and(|[_, width, _, _, _, height]| width > 0.0 && height < 0.0) && !self.is_rotated()
    }

    /// Returns whether x depends on the row, or y on the column.
    pub(crate) fn is_rotated(&self) -> bool {
        self.transform.is_some_and(|transform| transform[2] != 0.0 || transform[4] != 0.0)
    }

    /// Returns the coordinate system's own name: the first quoted text.
    pub(crate) fn system_name(&self) -> Option<&str> {
        self.system.split('"').nth(1)
    }

    /// Returns whether the coordinates are longitude and latitude.
    pub(crate) fn is_geographic(&self) -> bool {
        CoordinateSystem::parse(&self.system).is_some_and(|system| system.is_geographic)
    }

    /// Returns the zone (1 to 60) and whether it is the northern one, for UTM on WGS 84.
    pub(crate) fn utm_zone(&self) -> Option<(u8, bool)> {
        let zone = self.system_name()?.strip_prefix("WGS 84 / UTM zone ")?;
        let (number, north) = match zone.strip_suffix('N') {
            Some(number) => (number, true),
            None => (zone.strip_suffix('S')?, false),
        };
        number.parse().ok().filter(|zone| (1..=60).contains(zone)).map(|zone| (zone, north))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> Georeference {
        Georeference::new([440720.0, 60.0, 0.0, 3751320.0, 0.0, -30.0], "PROJCS[\"WGS 84 / UTM zone 32N\"]")
    }

    #[test]
    fn the_system_s_name_gives_the_zone() {
        assert_eq!(place().utm_zone(), Some((32, true)));
        assert!(place().is_north_up() && !place().is_geographic());
    }

    #[test]
    fn window_keeps_the_position_of_pixels() {
        let place = place();
        let moved = place.window(10, 1, 5, 1);
        assert_eq!(moved.transform, Some([440720.0 + 600.0, 60.0, 0.0, 3751320.0 - 150.0, 0.0, -30.0]));
        // Every third column: the first pixel is three times as wide around the same centre.
        let thinned = place.window(10, 3, 0, 1);
        let centre = 440720.0 + 10.5 * 60.0;
        let [corner, width, ..] = thinned.transform.unwrap();
        assert_eq!((corner + width / 2.0, width), (centre, 180.0));
    }
}
