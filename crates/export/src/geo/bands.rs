//! The bands of a raster: each has the common description, or one of its own.
//!
//! A raster has up to 65,536 bands, and a text may describe only the last one. So memory and time depend on the number
//! of bands that are described, not on the number of bands.

use std::collections::BTreeMap;

use crate::geo::pam_metadata::MetadataDomain;

/// The description of one band. Texts are as GDAL wrote them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Band {
    /// The name of the band.
    pub description: Option<String>,
    /// A number, or `nan`.
    pub no_data: Option<String>,
    /// The unit of the values.
    pub unit: Option<String>,
    /// A value means this plus [`scale`](Self::scale) times what is stored.
    pub offset: Option<f64>,
    /// The factor of stored values.
    pub scale: Option<f64>,
    /// GDAL's name of a colour: `Gray`, `Red`, `Palette`.
    pub colour: Option<String>,
    /// The colours of a palette: red, green, blue and alpha.
    pub palette: Vec<[i16; 4]>,
    /// The meanings of the values 0, 1 and so on.
    pub categories: Vec<String>,
    /// The metadata of the band.
    pub metadata: Vec<MetadataDomain>,
    /// GDAL's table of attributes of values, as an XML element.
    pub attribute_table: Option<String>,
    /// Histograms, and other XML elements that describe the values of all pixels.
    pub statistics: Vec<String>,
}

/// The bands of a raster, numbered from 0.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Bands {
    count: u64,
    common: Band,
    described: BTreeMap<u64, Band>,
}

impl Bands {
    /// Creates this many bands of which nothing is known.
    pub fn new(count: u64) -> Self {
        Bands { count, ..Bands::default() }
    }

    /// Returns the number of bands.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Describes a band. There are more bands afterwards if it was none of them.
    pub fn describe(&mut self, number: u64, band: Band) {
        self.count = self.count.max(number.saturating_add(1));
        self.described.insert(number, band);
    }

    /// Returns a band; `None` if there are fewer.
    pub fn get(&self, number: u64) -> Option<&Band> {
        (number < self.count).then(|| self.described.get(&number).unwrap_or(&self.common))
    }

    /// Returns the description of the bands that have none of their own.
    pub fn common(&self) -> &Band {
        &self.common
    }

    /// Returns all bands in their order.
    pub fn each(&self) -> impl Iterator<Item = &Band> {
        (0..self.count).map_while(|number| self.get(number))
    }

    /// Returns the bands with a description of their own, in their order.
    pub fn described(&self) -> impl Iterator<Item = (u64, &Band)> {
        self.described.iter().map(|(number, band)| (*number, band))
    }

    /// Returns those of the bands in a range of numbers.
    pub fn described_in(&self, first: u64, last: u64) -> impl Iterator<Item = (u64, &Band)> {
        let range = (first <= last).then(|| self.described.range(first..=last));
        range.into_iter().flatten().map(|(number, band)| (*number, band))
    }

    /// Returns each description that some band has. What holds for all of these holds for all bands.
    pub fn kinds(&self) -> impl Iterator<Item = &Band> {
        let are_all_described = self.described.len() as u64 == self.count;
        self.described.values().chain((!are_all_described).then_some(&self.common))
    }

    /// Changes all bands in the same way.
    pub fn change(&mut self, change: impl Fn(&mut Band)) {
        self.described.values_mut().chain([&mut self.common]).for_each(change);
    }

    /// Returns the description of the only band; `None` if there are several.
    pub fn only(&mut self) -> Option<&mut Band> {
        (self.count == 1).then(|| self.described.entry(0).or_insert(self.common.clone()))
    }

    /// Returns a property that all bands share.
    pub fn shared<T: PartialEq>(&self, of: impl Fn(&Band) -> Option<T>) -> Option<T> {
        let mut kinds = self.kinds();
        let first = of(kinds.next().filter(|_| self.count > 0)?)?;
        kinds.all(|band| of(band).as_ref() == Some(&first)).then_some(first)
    }
}

impl From<Vec<Band>> for Bands {
    fn from(all: Vec<Band>) -> Self {
        let mut bands = Bands::default();
        (0..).zip(all).for_each(|(number, band)| bands.describe(number, band));
        bands
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn named(name: u8) -> Band {
        Band { unit: (name > 0).then(|| name.to_string()), ..Band::default() }
    }

    proptest! {
        /// Bands are those of a list in which each band has its place.
        #[test]
        fn bands_are_a_list(described in prop::collection::vec((0u64..6, 0u8..3), 0..6), count in 0u64..6, common in 0u8..3) {
            let (mut bands, mut list) = (Bands::new(count), vec![Band::default(); count as usize]);
            for (number, name) in described {
                bands.describe(number, named(name));
                list.resize(list.len().max(number as usize + 1), Band::default());
                list[number as usize] = named(name);
            }
            let change = |band: &mut Band| {
                band.unit = band.unit.take().or(named(common).unit);
            };
            bands.change(change);
            list.iter_mut().for_each(change);
            prop_assert_eq!(bands.count(), list.len() as u64);
            prop_assert!(bands.each().eq(&list));
            prop_assert!((0..9).all(|number| bands.get(number) == list.get(number as usize)));
            prop_assert!(bands.described_in(1, 3).all(|(number, band)| (1..=3).contains(&number) && *band == list[number as usize]));
            let shared = list.first().and_then(|first| list.iter().all(|band| band.unit == first.unit).then(|| first.unit.clone())?);
            prop_assert_eq!(bands.shared(|band| band.unit.clone()), shared);
            let none = |band: &Band| band.unit.is_none();
            prop_assert_eq!(bands.count() == 0 || bands.kinds().all(none), list.iter().all(none));
            prop_assert_eq!(bands.only().cloned(), (list.len() == 1).then(|| list[0].clone()));
        }
    }
}
