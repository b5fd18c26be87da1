//! Where the pixels of a raster lie on the Earth, as GDAL's TileDB driver keeps it: an XML text under the
//! metadata key `_gdal`, of which two elements matter here, `SRS` and `GeoTransform`.

/// An affine transform from pixels to map coordinates and the coordinate system it leads to.
#[derive(Debug, Clone, PartialEq)]
pub struct Georeference {
    /// GDAL's six numbers: x of the upper left corner, x per column, x per row; then the same of y.
    pub transform: [f64; 6],
    /// The coordinate system in the well-known text form; empty where none is given.
    pub system: String,
}

impl Georeference {
    /// From the value of `_gdal`; `None` where it has no valid `GeoTransform`.
    pub fn from_gdal_metadata(xml: &str) -> Option<Self> {
        let numbers = element(xml, "GeoTransform")?;
        let numbers: Vec<f64> = numbers.split(',').map(|n| n.trim().parse().ok()).collect::<Option<_>>()?;
        let transform: [f64; 6] = numbers.try_into().ok()?;
        if transform.iter().any(|number| !number.is_finite()) {
            return None;
        }
        let system = element(xml, "SRS").map(unescape).unwrap_or_default();
        Some(Georeference { transform, system })
    }

    /// The same for a window of the raster: columns from `column` in steps of `column_step`, rows likewise.
    /// The centre of each remaining pixel stays where it was.
    pub fn window(&self, column: u64, column_step: u64, row: u64, row_step: u64) -> Self {
        let [x, x_column, x_row, y, y_column, y_row] = self.transform;
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
        Georeference { transform, system: self.system.clone() }
    }

    /// Whether columns go east and rows go south, without rotation.
    pub fn is_north_up(&self) -> bool {
        let [_, width, x_row, _, y_column, height] = self.transform;
        x_row == 0.0 && y_column == 0.0 && width > 0.0 && height < 0.0
    }

    /// The coordinate system's own name: the first quoted text.
    pub fn system_name(&self) -> Option<&str> {
        self.system.split('"').nth(1)
    }

    /// Whether the coordinates are longitude and latitude.
    pub fn is_geographic(&self) -> bool {
        self.system.trim_start().starts_with("GEOG")
    }

    /// The zone (1 to 60) and whether it is the northern one, for UTM on WGS 84.
    pub fn utm_zone(&self) -> Option<(u8, bool)> {
        let zone = self.system_name()?.strip_prefix("WGS 84 / UTM zone ")?;
        let (number, north) = match zone.strip_suffix('N') {
            Some(number) => (number, true),
            None => (zone.strip_suffix('S')?, false),
        };
        number.parse().ok().filter(|zone| (1..=60).contains(zone)).map(|zone| (zone, north))
    }
}

/// The text of the first element of this name.
fn element<'a>(xml: &'a str, name: &str) -> Option<&'a str> {
    let open = format!("<{name}");
    let mut rest = xml;
    loop {
        rest = &rest[rest.find(&open)? + open.len()..];
        // `<SRS>` or `<SRS attribute="…">`, but not `<SRSomething>`.
        if rest.starts_with(['>', ' ', '\t', '\r', '\n']) {
            break;
        }
    }
    let text = &rest[rest.find('>')? + 1..];
    Some(&text[..text.find(&format!("</{name}>"))?])
}

fn unescape(text: &str) -> String {
    // The ampersand last, so that what it makes is not taken for another entity.
    [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&amp;", "&")]
        .iter()
        .fold(text.trim().to_owned(), |text, (entity, character)| text.replace(entity, character))
}

#[cfg(test)]
mod tests {
    use super::*;

    const XML: &str = "<PAMDataset>\n  <SRS dataAxisToSRSAxisMapping=\"1,2\">PROJCS[&quot;WGS 84 / UTM zone 32N&quot;,UNIT[&quot;a&amp;lt;&quot;]]</SRS>\n  <GeoTransform>  4.4072e+05,  6.0e+01,  0.0,  3.75132e+06,  0.0, -3.0e+01</GeoTransform>\n</PAMDataset>";

    #[test]
    fn the_metadata_gives_transform_and_system() {
        let place = Georeference::from_gdal_metadata(XML).unwrap();
        assert_eq!(place.transform, [440720.0, 60.0, 0.0, 3751320.0, 0.0, -30.0]);
        assert_eq!(place.system, "PROJCS[\"WGS 84 / UTM zone 32N\",UNIT[\"a&lt;\"]]");
        assert_eq!(place.utm_zone(), Some((32, true)));
        assert!(place.is_north_up() && !place.is_geographic());
    }

    #[test]
    fn nonsense_gives_nothing() {
        for xml in [
            "",
            "<GeoTransform>",
            "<GeoTransform></GeoTransform>",
            "<GeoTransform>1,2,3</GeoTransform>",
            "<GeoTransform>1,2,3,4,5,inf</GeoTransform>",
            "<GeoTransforms>1,2,3,4,5,6</GeoTransforms>",
        ] {
            assert_eq!(Georeference::from_gdal_metadata(xml), None, "{xml}");
        }
    }

    #[test]
    fn a_window_keeps_the_pixels_where_they_are() {
        let place = Georeference::from_gdal_metadata(XML).unwrap();
        let moved = place.window(10, 1, 5, 1);
        assert_eq!(moved.transform, [440720.0 + 600.0, 60.0, 0.0, 3751320.0 - 150.0, 0.0, -30.0]);
        // Every third column: the first pixel is three times as wide around the same centre.
        let thinned = place.window(10, 3, 0, 1);
        let centre = 440720.0 + 10.5 * 60.0;
        assert_eq!(thinned.transform[0] + thinned.transform[1] / 2.0, centre);
        assert_eq!(thinned.transform[1], 180.0);
    }
}
