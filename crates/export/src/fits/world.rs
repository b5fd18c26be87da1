//! The coordinates of the pixels of a FITS image.
//!
//! An array that was made from FITS may have its keywords as metadata. They hold for the whole array, so the reference
//! pixel of a part moves. Otherwise, the coordinates along an axis are those of the dimension, if they are evenly spaced.

use crate::column::Metadatum;
use crate::fits::value::{KeywordValue, unit_of};
use crate::number;
use crate::raster::axis::ImageAxis;

/// The beginnings of keywords about one axis, or two.
const OF_AXES: [&str; 12] =
    ["CTYPE", "CUNIT", "CRVAL", "CDELT", "CRPIX", "CROTA", "CNAME", "CRDER", "CSYER", "CD", "PC", "PV"];

/// The number of axes of the coordinates, which the standard wants before the keywords about them.
const COUNT: &str = "WCSAXES";

/// The keywords about the axes of an image.
pub(super) struct World {
    /// In the order of the header: name, value, comment.
    pub of_axes: Vec<(String, KeywordValue, &'static str)>,
    /// Whether the metadata describe the axes.
    is_described: bool,
}

impl World {
    /// Returns whether a key of the metadata describes axes: such keywords are among those of the image, or do not hold.
    pub(super) fn is_about_axes(&self, key: &str) -> bool {
        let key = key.to_uppercase();
        self.is_described && (key == COUNT || is_of_axes(&key))
    }
}

/// Returns the keywords about the axes of an array. `first` is FITS' number of the array's last axis.
pub(super) fn keywords(axes: &[ImageAxis], first: usize, metadata: &[Metadatum]) -> World {
    if metadata.iter().any(|datum| is_of_axes(&datum.key.to_uppercase())) {
        // Each step changes the size of a pixel, which several keywords and distortions depend on.
        let starts: Option<Vec<u64>> = axes.iter().rev().map(ImageAxis::start_of_run).collect();
        let of_axes = starts.filter(|_| first == 1).map(|starts| moved(&starts, metadata)).unwrap_or_default();
        return World { of_axes, is_described: true };
    }
    let of_axes = (first..).zip(axes.iter().rev()).flat_map(|(number, axis)| of_dimension(number, axis)).collect();
    World { of_axes, is_described: false }
}

/// Returns the keywords that the metadata have, for an image that begins at these positions of the array's axes.
fn moved(starts: &[u64], metadata: &[Metadatum]) -> Vec<(String, KeywordValue, &'static str)> {
    let mut found = Vec::new();
    let mut missing: Vec<usize> = (1..=starts.len()).filter(|&number| starts[number - 1] > 0).collect();
    for datum in metadata {
        let key = datum.key.to_uppercase();
        if key == COUNT {
            found.extend(KeywordValue::of(datum).map(|value| (key, value, "")));
            // Before all others.
            found.rotate_right(1);
            continue;
        }
        if !is_of_axes(&key) {
            continue;
        }
        let number = key.strip_prefix("CRPIX").and_then(|rest| rest.trim_end_matches(char::is_alphabetic).parse().ok());
        let value = match number.and_then(|number: usize| Some((number, *starts.get(number.checked_sub(1)?)?))) {
            Some((number, start)) => {
                missing.retain(|other| *other != number);
                let pixel = number::text(datum.datatype, &datum.value).and_then(|text| text.parse::<f64>().ok());
                pixel.and_then(|pixel| KeywordValue::float(pixel - start as f64))
            }
            None => KeywordValue::of(datum),
        };
        found.extend(value.map(|value| (key, value, "")));
    }
    // Without the keyword, the reference pixel of the whole is 0.
    let of_start =
        |number: usize| Some((format!("CRPIX{number}"), KeywordValue::float(-(starts[number - 1] as f64))?, ""));
    found.extend(missing.into_iter().filter_map(of_start));
    found
}

/// Returns the keywords about the coordinates of a dimension.
fn of_dimension(number: usize, axis: &ImageAxis) -> Vec<(String, KeywordValue, &'static str)> {
    let Some((low, step)) = axis.spacing() else { return Vec::new() };
    let since = if axis.datatype.is_datetime() { "since 1970-01-01" } else { "" };
    // The fifth character of a celestial axis is a hyphen.
    let name = KeywordValue::text(&axis.name).filter(|_| axis.name.len() <= LONGEST_NAME && !axis.name.contains('-'));
    let unit = unit_of(axis.datatype).map(|unit| KeywordValue::Text(unit.to_owned()));
    let all = [
        ("CTYPE", name, ""),
        ("CRPIX", KeywordValue::float(1.0), ""),
        ("CRVAL", KeywordValue::float(low as f64), since),
        ("CDELT", KeywordValue::float(step as f64), ""),
        ("CUNIT", unit, ""),
    ];
    all.into_iter().filter_map(|(start, value, comment)| Some((format!("{start}{number}"), value?, comment))).collect()
}

/// Maximum number of characters of the name of an axis: one card.
const LONGEST_NAME: usize = 68;

/// Returns whether a keyword is about one or two axes: `CRVAL1`, `CD1_2`, `CTYPE3A`.
fn is_of_axes(keyword: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    OF_AXES.iter().filter_map(|start| keyword.strip_prefix(start)).any(|rest| {
        let rest = rest.strip_suffix(|c: char| c.is_ascii_uppercase()).unwrap_or(rest);
        match rest.split_once('_') {
            Some((one, other)) => is_number(one) && is_number(other),
            None => is_number(rest),
        }
    })
}
