//! What the metadata of an array tell of its fields and of these as rasters, read once for all files of the array.

use tilefs_base::error::{Error, Locate, Result};
use tilefs_export::Metadatum;
use tilefs_export::geo::pam::Pam;
use tilefs_export::geo::projjson;
use tilefs_export::geo::wkt::CoordinateSystem;
use tilefs_export::tables::geoparquet::unusable_system;
use tilefs_format::text;
use tilefs_reader::array::{MetadataItem, OpenedArray};
use tilefs_storage::StoreKey;

use crate::fields::meta;
use crate::fields::notes::Notes;

/// The metadata key under which GDAL describes a raster.
const GDAL_METADATA: &str = "_gdal";

/// The metadata key under which GDAL's multidimensional driver stores the coordinate system of an array.
const GDAL_SYSTEM: &str = "_CRS";

/// The suffix of the file in an array's folder in which GDAL described a raster before TileDB had metadata.
const GDAL_FILE: &str = ".tdb.aux.xml";

/// Maximum size in bytes of GDAL's description of a raster.
const MAX_GDAL_FILE: u64 = 16 << 20;

/// What the metadata of an array tell. Memory: a copy of the metadata that formats get, and GDAL's description.
pub struct Told {
    pub notes: Notes,
    /// GDAL's description of the rasters; empty if there is none.
    pub pam: Pam,
    /// Whether GDAL's driver described the rasters.
    pub is_of_gdal: bool,
    /// The coordinate system of the array, if it has one but no position of the pixels.
    pub system: Option<String>,
    /// Sentences about what was stored and cannot be used.
    pub remarks: Vec<String>,
}

impl Told {
    /// Reads the metadata.
    ///
    /// # Errors
    /// Fails if the metadata cannot be read.
    pub fn of(array: &OpenedArray) -> Result<Self> {
        let (metadata, schema) = (array.metadata()?, array.schema());
        let mut told = Told {
            notes: Notes::of(schema, meta::for_formats(&metadata)),
            pam: Pam::default(),
            is_of_gdal: false,
            system: None,
            remarks: Vec::new(),
        };
        match metadata.get(GDAL_METADATA) {
            Some(value) if value.len() > MAX_GDAL_FILE => {
                told.remarks.push(unused(GDAL_METADATA, &format!("it has more than {MAX_GDAL_FILE} bytes")));
            }
            Some(value) => told.parse_gdal(GDAL_METADATA, &whole(value)?)?,
            None if !schema.is_sparse() && (2..=3).contains(&schema.dimensions.len()) => {
                if let Some(stored) = text_of_gdal_file(array)? {
                    told.parse_gdal(GDAL_FILE, &stored)?;
                }
            }
            None => {}
        }
        let system = told.notes.of_array.iter().position(|metadatum| metadatum.key == GDAL_SYSTEM);
        if let Some(metadatum) = system.map(|place| told.notes.of_array.remove(place)) {
            told.system = told.system_of(&metadatum);
        }
        told.remarks.extend(unusable_system(&told.notes.of_array));
        Ok(told)
    }

    /// Returns a coordinate system as well-known text, or as it is stored.
    fn system_of(&mut self, metadatum: &Metadatum) -> Option<String> {
        let Some(system) = text::decode(metadatum.datatype, &metadatum.value) else {
            self.remarks.push(format!("the coordinate system ({GDAL_SYSTEM}) is not used: it is not text"));
            return None;
        };
        let converted = projjson::well_known_text(&system);
        if converted.is_none() && CoordinateSystem::parse(&system).is_none() {
            self.remarks.push(format!(
                "the coordinate system ({GDAL_SYSTEM}) is neither PROJJSON nor well-known text of a geographic or projected \
                 system; rasters have it as it is"
            ));
        }
        Some(converted.unwrap_or_else(|| system.into_owned()))
    }

    fn parse_gdal(&mut self, name: &str, stored: &[u8]) -> Result<()> {
        let parsed =
            std::str::from_utf8(stored).map_err(|error| Error::refused("it is not UTF-8", error)).and_then(Pam::parse);
        match parsed {
            Ok(pam) => (self.pam, self.is_of_gdal) = (pam, true),
            Err(Error::Damaged { reason, .. } | Error::Unsupported { what: reason, .. }) => {
                self.remarks.push(unused(name, &reason));
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

fn unused(name: &str, reason: &str) -> String {
    format!("GDAL's description of the rasters ({name}) is not used: {reason}")
}

fn whole(value: &MetadataItem) -> Result<Vec<u8>> {
    let mut bytes = vec![0; value.len() as usize];
    value.read_at(0, &mut bytes)?;
    Ok(bytes)
}

/// Returns whether GDAL described an array as a raster.
///
/// # Errors
/// Fails if the metadata cannot be read.
pub fn is_described_by_gdal(array: &OpenedArray) -> Result<bool> {
    let schema = array.schema();
    if schema.is_sparse() || !(2..=3).contains(&schema.dimensions.len()) {
        return Ok(false);
    }
    Ok(array.metadata()?.get(GDAL_METADATA).is_some() || gdal_file(array).is_some())
}

/// Returns GDAL's description in a file of the array's folder.
fn text_of_gdal_file(array: &OpenedArray) -> Result<Option<Vec<u8>>> {
    let read = |file: StoreKey| array.context().storage.read(&file, MAX_GDAL_FILE);
    gdal_file(array).map(read).transpose().in_array(array.path())
}

/// Returns the file of an array's folder that has GDAL's description. The file has the name that the folder had when it
/// was written.
fn gdal_file(array: &OpenedArray) -> Option<StoreKey> {
    let files = array.folder().directory().listing().top();
    let found: Vec<_> = files.iter().filter(|file| !file.is_folder() && file.name.ends_with(GDAL_FILE)).collect();
    let stem = stem(array.path()).map(|stem| format!("{stem}{GDAL_FILE}"));
    let own = found.iter().find(|file| Some(&file.name) == stem.as_ref());
    let own = own.or(found.first().filter(|_| found.len() == 1));
    own.map(|file| array.path().join(&file.name))
}

/// Returns the name of a folder up to its last dot.
fn stem(folder: &StoreKey) -> Option<String> {
    let name = String::from_utf8_lossy(folder.name()?).into_owned();
    let dot = name.rfind('.').filter(|&dot| dot > 0);
    Some(name[..dot.unwrap_or(name.len())].to_owned())
}
