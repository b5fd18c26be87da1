//! Dense attributes as rasters: what the metadata of an array tell of them.

use std::borrow::Cow;
use std::sync::Arc;

use tilefs_base::error::{Error, Result};
use tilefs_export::geo::bands::{Band, Bands};
use tilefs_export::geo::georeference::{Georeference, GeoreferencedAxes};
use tilefs_export::geo::pam::AttributePam;
use tilefs_export::geo::pam_metadata::{ControlPoints, MetadataDomain, RasterWindow};
use tilefs_export::raster::{Scene, band_axis, line_and_sample_axes};
use tilefs_export::{Field, Metadatum, number};
use tilefs_format::datatype::{Datatype, Kind};
use tilefs_reader::array::dense::AxisRange;
use tilefs_select::Addressing;

use crate::cells::FieldId;
use crate::fields::FieldFolder;
use crate::fields::coordinates::{Coordinates, LabelCoordinates};
use crate::fields::enums;
use crate::fields::missing;
use crate::fields::told::Told;

/// The rows and columns of an array's raster, without the padding of its last tiles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImagePart {
    pub lines: u64,
    pub samples: u64,
    /// The name of the folder in `islice/` that shows only this part.
    pub selection: String,
}

/// The metadata of an array about its fields, and about the fields as rasters.
pub struct Rasters<'a> {
    fields: &'a FieldFolder,
    pub told: &'a Told,
    /// The coordinates that the array has along each axis.
    coordinates: Vec<Option<Coordinates>>,
    band_axis: Option<usize>,
    /// The lengths of the array's axes.
    lengths: Vec<u64>,
}

impl<'a> Rasters<'a> {
    /// Reads the metadata.
    ///
    /// # Errors
    /// Fails if the metadata or a label that has coordinates cannot be read.
    pub fn of(fields: &'a FieldFolder) -> Result<Self> {
        let mut rasters = Self::without_labels(fields)?;
        let count = fields.schema().dimensions.len();
        let coordinates = (0..count).map(|dimension| Coordinates::of(fields, &rasters.told.notes, dimension));
        rasters.coordinates = coordinates.collect::<Result<_>>()?;
        if let (Some([lines, samples]), 3) = (rasters.horizontal_axes(), count) {
            rasters.band_axis = (0..3).find(|axis| ![lines, samples].contains(axis));
        }
        Ok(rasters)
    }

    /// Reads the metadata without the labels of the axes.
    fn without_labels(fields: &'a FieldFolder) -> Result<Self> {
        let told = fields.told()?;
        let dimensions = &fields.schema().dimensions;
        let names: Vec<String> = fields.schema().dimension_names().map(Cow::into_owned).collect();
        let lengths: Vec<u64> = dimensions
            .iter()
            .map(|dimension| {
                let last = dimension.domain.as_ref().and_then(|domain| domain.high.distance_above(&domain.low));
                last.map_or(u64::MAX, |last| last.saturating_add(1))
            })
            .collect();
        let band_axis = band_axis(&names, &lengths);
        Ok(Rasters { fields, told, coordinates: Vec::new(), band_axis, lengths })
    }

    /// Returns the north-south and the east-west axis, if the array itself identifies them.
    fn horizontal_axes(&self) -> Option<[usize; 2]> {
        let of = |kind: &str| {
            let is_it =
                |axis: &Option<Coordinates>| axis.as_ref().is_some_and(|axis| axis.kind.as_deref() == Some(kind));
            self.coordinates.iter().position(is_it)
        };
        Some([of("HORIZONTAL_Y")?, of("HORIZONTAL_X")?])
    }

    /// Returns the coordinates that labels give an axis, with all notes.
    ///
    /// # Errors
    /// Fails if labels cannot be read.
    pub fn coordinates(&self, axis: usize) -> Result<LabelCoordinates> {
        let known = self.coordinates.get(axis).and_then(Option::as_ref);
        LabelCoordinates::of(self.fields, &self.told.notes, axis, known)
    }

    /// Returns a field with its notes and its marker of missing values.
    ///
    /// # Errors
    /// Fails if required metadata cannot be read.
    pub fn describe(&self, id: FieldId) -> Result<Field> {
        let mut field = self.fields.describe(id);
        field.notes = self.told.notes.of_field(id);
        if matches!(id, FieldId::Dimension(_)) {
            return Ok(field);
        }
        let marked = field.notes.iter().find(|note| note.key == "_FillValue");
        field.no_data = marked.and_then(|note| missing::number_of(field.datatype, note));
        let bands = self.bands(id, &field);
        let gdal = bands.shared(|band| band.no_data.clone());
        field.no_data = field.no_data.or_else(|| missing::parsed(field.datatype, &gdal?));
        let differ = bands.count() > 0 && bands.shared(|band| Some(band.no_data.clone())).is_none();
        let double = |key: &str, value: f64| Metadatum {
            key: key.to_owned(),
            datatype: Datatype::Float64,
            value: value.to_le_bytes().to_vec(),
        };
        let descriptions: Vec<&str> = bands.described().filter_map(|(_, band)| band.description.as_deref()).collect();
        let said = [
            bands.shared(|band| band.unit.clone()).map(|unit| Metadatum::text("units", unit)),
            bands.shared(|band| band.scale).map(|scale| double("scale_factor", scale)),
            bands.shared(|band| band.offset).map(|offset| double("add_offset", offset)),
            match descriptions.len() {
                0 => None,
                1 if bands.count() == 1 => Some(Metadatum::text("long_name", descriptions.concat())),
                _ => Some(Metadatum::text("band_names", descriptions.join(", "))),
            },
            differ.then(|| no_data_of_bands(&bands)).flatten(),
        ];
        for note in said.into_iter().flatten() {
            // The array's own metadata take precedence.
            if field.notes.iter().all(|own| own.key != note.key) {
                field.notes.push(note);
            }
        }
        missing::describe(self.fields, id, &mut field)?;
        Ok(field)
    }

    /// Like [`Rasters::describe`], with the labels of the enumeration.
    ///
    /// # Errors
    /// Fails if required metadata, or the enumeration, cannot be read.
    pub fn describe_all(&self, id: FieldId) -> Result<Field> {
        let mut field = self.describe(id)?;
        if let FieldId::Attribute(number) = id {
            field.labels = enums::labels(self.fields.subarray.array(), number)?;
        }
        Ok(field)
    }

    /// Returns the georeference of the rows and columns of all attributes: all rasters of an array have the same.
    ///
    /// # Errors
    /// As for [`Rasters::georeference`].
    pub fn georeference_of_all(&self) -> Result<Option<GeoreferencedAxes>> {
        self.fields.attributes().find_map(|id| self.georeference(id).transpose()).transpose()
    }

    /// Returns the properties of an attribute as a raster.
    ///
    /// # Errors
    /// As for [`Rasters::georeference`].
    pub fn scene(&self, id: FieldId, field: &Field) -> Result<Scene> {
        let mut bands = self.bands(id, field);
        let note = |key: &str| field.notes.iter().find(|note| note.key == key);
        let text = |key: &str| note(key).and_then(|note| String::from_utf8(note.value.clone()).ok());
        let number = |key: &str| {
            let bytes = missing::number_of(Datatype::Float64, note(key)?)?;
            number::text(Datatype::Float64, &bytes)?.parse::<f64>().ok()
        };
        let (unit, scale, offset) = (text("units"), number("scale_factor"), number("add_offset"));
        bands.change(|band| {
            band.unit = band.unit.take().or_else(|| unit.clone());
            band.scale = band.scale.or(scale);
            band.offset = band.offset.or(offset);
        });
        if let Some(band) = bands.only() {
            band.description = band.description.take().or_else(|| text("long_name"));
        }
        // The transform of a header cannot express rows that go from west to east.
        let placed = self.georeference(id)?.filter(|placed| placed.lines < placed.samples);
        let [lines, samples] = self.sizes(id).map_or([None; 2], |sizes| sizes.map(Some));
        let pam = self.pam(id);
        let (mut metadata, mut control_points) = (pam.metadata(), pam.control_points().cloned());
        let shown = self.window();
        if shown.is_none_or(|(_, covers_all)| !covers_all) {
            // Metadata of the whole raster, such as statistics, need not hold for a part of it.
            let within = |domains: &[MetadataDomain]| -> Vec<MetadataDomain> {
                shown.map_or(Vec::new(), |(window, _)| domains.iter().filter_map(|one| one.within(window)).collect())
            };
            metadata = Arc::new(within(&metadata));
            let points_within = |(points, (window, _)): (Arc<ControlPoints>, (RasterWindow, bool))| {
                Arc::new(Arc::unwrap_or_clone(points).within(window))
            };
            control_points = control_points.zip(shown).map(points_within);
            bands.change(|band| {
                band.metadata = within(&band.metadata);
                band.statistics.clear();
            });
        }
        let place = placed.map(|placed| placed.place);
        let is_complex = self.is_complex(id);
        Ok(Scene { band_axis: self.band_axis, place, samples, lines, is_complex, bands, metadata, control_points })
    }

    /// Returns the shown rows and columns of the array's rasters, and whether all are shown; `None` if the shown rows
    /// or columns are not one run.
    fn window(&self) -> Option<(RasterWindow, bool)> {
        let (axes, [rows, columns]) = self.rows_and_columns()?;
        let step = |range: &AxisRange| u64::try_from(range.step).ok().filter(|step| *step > 0);
        let window =
            RasterWindow { row: rows.first, row_step: step(rows)?, column: columns.first, column_step: step(columns)? };
        let shown = axes.iter().zip([rows, columns]).zip([self.told.pam.lines, self.told.pam.samples]);
        let covers_all = shown.into_iter().all(|((&axis, range), size)| {
            let length = self.lengths.get(axis).copied().unwrap_or(u64::MAX);
            (range.first, range.step) == (0, 1) && range.count >= size.map_or(length, |size| size.min(length))
        });
        Some((window, covers_all))
    }

    /// Returns the georeference of the shown rows and columns of an attribute.
    ///
    /// # Errors
    /// Fails if the coordinates of the rows and columns cannot be read.
    pub fn georeference(&self, id: FieldId) -> Result<Option<GeoreferencedAxes>> {
        let said = self.pam(id).place().cloned();
        let found = line_and_sample_axes(self.coordinates.len(), self.band_axis);
        let Some([lines, samples]) = self.horizontal_axes().or(found) else { return Ok(None) };
        let [rows, columns] = [lines, samples].map(|axis| self.coordinates[axis].as_ref());
        let (Some(rows), Some(columns)) = (rows, columns) else {
            let transformed = said.and_then(|place| self.windowed(place));
            return Ok(transformed.or_else(|| {
                let system = self.told.system.clone()?;
                let place = Georeference::of_system(system);
                (!self.fields.schema().is_sparse()).then_some(GeoreferencedAxes {
                    place,
                    lines,
                    samples,
                    are_labelled: false,
                })
            }));
        };
        // Without a system, only the kind of the axes shows that they are on the Earth.
        let place = match (said, &self.told.system) {
            (Some(place), _) => place,
            (None, Some(system)) => Georeference::of_system(system),
            (None, None) if self.horizontal_axes().is_some() => Georeference::of_system(""),
            (None, None) => return Ok(None),
        };
        let transform = match (columns.spacing()?, rows.spacing()?) {
            (Some((x, width)), Some((y, height))) => Some([x - width / 2.0, width, 0.0, y - height / 2.0, 0.0, height]),
            _ => None,
        };
        let place = Georeference { transform, ..place };
        Ok(Some(GeoreferencedAxes { place, lines, samples, are_labelled: true }))
    }

    /// Returns the georeference of the shown part, if that is one run of rows and one run of columns.
    fn windowed(&self, place: Georeference) -> Option<GeoreferencedAxes> {
        let ([lines, samples], [rows, columns]) = self.rows_and_columns()?;
        let step = |range: &AxisRange| u64::try_from(range.step).ok();
        let place = place.window(columns.first, step(columns)?, rows.first, step(rows)?);
        Some(GeoreferencedAxes { place, lines, samples, are_labelled: false })
    }

    /// Returns how many of the shown rows and columns of an attribute belong to the raster, if its metadata contain its
    /// size.
    pub fn sizes(&self, id: FieldId) -> Option<[u64; 2]> {
        let pam = self.pam(id);
        let (_, ranges) = self.rows_and_columns()?;
        let [lines, samples] = [(pam.lines()?, ranges[0]), (pam.samples()?, ranges[1])].map(|(size, range)| {
            let step = u64::try_from(range.step).ok()?.max(1);
            let within = size.checked_sub(range.first).filter(|&left| left > 0)?.div_ceil(step);
            Some(within.min(range.count))
        });
        Some([lines?, samples?])
    }

    /// Returns the axes of rows and columns, and the shown part of each, if that is one run.
    fn rows_and_columns(&self) -> Option<([usize; 2], [&AxisRange; 2])> {
        let axes = self.fields.subarray.selection()?.axes();
        let found = line_and_sample_axes(axes.len(), self.band_axis)?;
        let [Some(rows), Some(columns)] = found.map(|axis| match axes.get(axis)?.ranges() {
            [range] => Some(range),
            _ => None,
        }) else {
            return None;
        };
        Some((found, [rows, columns]))
    }

    fn pam(&self, id: FieldId) -> AttributePam<'_> {
        let schema = self.fields.schema();
        // A raster has at most one axis besides: that of the bands.
        let is_flat = schema.dimensions.len() == 2;
        self.told.pam.of_attribute(&self.fields.user_name(id), schema.attributes.len() == 1, is_flat)
    }

    /// Returns whether the two values of each cell are the parts of a complex number.
    fn is_complex(&self, id: FieldId) -> bool {
        has_pairs(&self.fields.describe(id)) && self.pam(id).is_complex() == Some(true)
    }

    /// Returns the description of each band that is shown; none if there are more than GDAL supports.
    fn bands(&self, id: FieldId, field: &Field) -> Bands {
        let rank = self.fields.schema().dimensions.len();
        let values = if self.is_complex(id) { 1 } else { field.values_per_cell.unwrap_or(1) };
        let axis = if rank == 3 { Some(self.band_axis.unwrap_or(0)) } else { self.band_axis };
        let subarray = axis.and_then(|axis| self.fields.subarray.selection()?.axes().get(axis));
        let (runs, shown) = match (subarray, axis) {
            (Some(shown), _) if shown.len() <= MAX_BANDS => (shown.runs(0, shown.len()).collect(), shown.len()),
            (None, None) => (vec![AxisRange { first: 0, step: 1, count: values.into() }], values.into()),
            _ => return Bands::default(),
        };
        let said = self.pam(id).bands();
        let count = axis.map_or(values.into(), |axis| self.lengths.get(axis).copied().unwrap_or(0));
        let colours = match axis.map_or(&[][..], |axis| colours(&self.fields.schema().dimensions[axis].name)) {
            [] if self.told.is_of_gdal => undescribed_colours(&said, count, field.datatype),
            colours => colours,
        };
        let mut stored = said.into_owned();
        for (number, &colour) in (0..).zip(colours) {
            let mut band = stored.get(number).cloned().unwrap_or_default();
            band.colour.get_or_insert_with(|| colour.to_owned());
            stored.describe(number, band);
        }
        shown_bands(&stored, &runs, shown)
    }
}

/// Returns the bands at the positions of the runs, which are so many.
fn shown_bands(stored: &Bands, runs: &[AxisRange], count: u64) -> Bands {
    let (mut bands, mut before) = (Bands::new(count), 0);
    for run in runs {
        let step = run.step.unsigned_abs();
        let last = run.first.saturating_add_signed(run.step.saturating_mul(run.count.saturating_sub(1) as i64));
        for (number, band) in stored.described_in(run.first.min(last), run.first.max(last)) {
            let distance = number.abs_diff(run.first);
            if distance.checked_rem(step).unwrap_or(distance) == 0 {
                bands.describe(before + distance.checked_div(step).unwrap_or(0), band.clone());
            }
        }
        before += run.count;
    }
    bands
}

/// Maximum number of bands in a list for each band that is described.
const LISTED_BANDS: u64 = 1024;

/// Returns the numbers that mark missing values in the bands, as a text; `None` if hardly any band is described.
fn no_data_of_bands(bands: &Bands) -> Option<Metadatum> {
    let described = bands.described().count() as u64;
    let number = |band: &Band| band.no_data.clone().unwrap_or_else(|| "none".to_owned());
    let list = || bands.each().map(number).collect::<Vec<_>>().join(", ");
    (bands.count() <= described.saturating_mul(LISTED_BANDS)).then(|| Metadatum::text("band_no_data", list()))
}

/// Returns whether each cell of a field has two values that can be the parts of a complex number.
fn has_pairs(field: &Field) -> bool {
    field.values_per_cell == Some(2) && matches!(field.datatype.kind(), Kind::Signed | Kind::Float)
}

/// Returns an attribute as formats of images take it: with one value per cell if that is a complex number. Reads metadata
/// only of attributes that have two values per cell; if that fails, they count as values.
pub fn with_whole_pixels(fields: &FieldFolder, id: FieldId, field: &Field) -> Field {
    let has_pairs = has_pairs(field) && !fields.schema().is_sparse();
    let is_complex = has_pairs && Rasters::without_labels(fields).is_ok_and(|rasters| rasters.is_complex(id));
    if is_complex { field.clone().with_values_per_cell(Some(1)) } else { field.clone() }
}

/// Returns the rows and columns of an array's rasters, if the metadata mark all other cells as padding.
///
/// # Errors
/// Fails if the metadata cannot be read.
pub fn image_part(fields: &FieldFolder) -> Result<Option<ImagePart>> {
    let rasters = Rasters::without_labels(fields)?;
    let sizes = fields.attributes().find_map(|id| rasters.sizes(id));
    let (Some(sizes), Some((axes, ranges))) = (sizes, rasters.rows_and_columns()) else { return Ok(None) };
    if ranges.iter().zip(sizes).all(|(range, size)| range.count == size) {
        return Ok(None);
    }
    let parts = (0..fields.schema().dimensions.len()).map(|axis| {
        let size = axes.iter().zip(sizes).find_map(|(&own, size)| (own == axis).then_some(size));
        size.map_or_else(|| "..".to_owned(), |size| format!("0:{size}"))
    });
    let [lines, samples] = sizes;
    Ok(Some(ImagePart { lines, samples, selection: parts.collect::<Vec<_>>().join(",") }))
}

/// Returns a folder that shows the [`image_part`] of an array, or all of it if nothing is padding.
///
/// # Errors
/// Fails if the metadata cannot be read.
pub fn without_padding(fields: &FieldFolder) -> Result<FieldFolder> {
    let Some(image) = image_part(fields)? else { return Ok(fields.clone()) };
    let subarray = fields.subarray.select(&image.selection, Addressing::Position);
    let subarray = subarray.map_err(|error| Error::unsupported(error.message))?;
    Ok(FieldFolder { subarray, ..fields.clone() })
}

/// The most bands that GDAL supports.
const MAX_BANDS: u64 = 65_536;

/// Returns the colours of the bands along an axis with the name `axis`.
fn colours(axis: &str) -> &'static [&'static str] {
    match axis.to_lowercase().as_str() {
        "rgb" => &["Red", "Green", "Blue"],
        "rgba" => &["Red", "Green", "Blue", "Alpha"],
        _ => &[],
    }
}

/// Returns the colours that GDAL's driver takes for those of bands of which none has a description of its colour: a single
/// band is grey, and three or four bytes a pixel are a picture. The driver takes any other bands for a picture too, which
/// they rarely are.
fn undescribed_colours(bands: &Bands, count: u64, datatype: Datatype) -> &'static [&'static str] {
    if bands.kinds().any(|band| band.colour.is_some() || !band.palette.is_empty()) {
        return &[];
    }
    match (count, datatype) {
        (1, _) => &["Gray"],
        (3, Datatype::UInt8) => colours("rgb"),
        (4, Datatype::UInt8) => colours("rgba"),
        _ => &[],
    }
}
