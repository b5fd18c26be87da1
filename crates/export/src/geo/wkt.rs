//! Parses coordinate systems in well-known text of both versions, as far as other formats need them.

/// An element of the text: `UNIT["metre", 1]` has the keyword `UNIT` and two values.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WktElement<'a> {
    pub keyword: &'a str,
    pub values: Vec<WktValue<'a>>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum WktValue<'a> {
    Text(&'a str),
    /// A number, or a word like `NORTH`.
    Word(&'a str),
    Element(WktElement<'a>),
}

/// Radians in a degree.
pub(crate) const DEGREE: f64 = 0.017_453_292_519_943_295;

/// A name in the second version, and in the first.
pub(crate) type UnitName = (&'static str, &'static str);

/// Methods of the second version (named as by the EPSG), each with its name in the first version and its parameters.
pub(crate) const METHODS: [(&str, &str, &[UnitName]); 6] = [
    ("Transverse Mercator", "Transverse_Mercator", &NATURAL_ORIGIN),
    ("Mercator (variant A)", "Mercator_1SP", &NATURAL_ORIGIN),
    (
        "Lambert Conic Conformal (2SP)",
        "Lambert_Conformal_Conic_2SP",
        &[
            ("Latitude of false origin", "latitude_of_origin"),
            ("Longitude of false origin", "central_meridian"),
            ("Latitude of 1st standard parallel", "standard_parallel_1"),
            ("Latitude of 2nd standard parallel", "standard_parallel_2"),
        ],
    ),
    (
        "Albers Equal Area",
        "Albers_Conic_Equal_Area",
        &[
            ("Latitude of false origin", "latitude_of_center"),
            ("Longitude of false origin", "longitude_of_center"),
            ("Latitude of 1st standard parallel", "standard_parallel_1"),
            ("Latitude of 2nd standard parallel", "standard_parallel_2"),
        ],
    ),
    (
        "Lambert Azimuthal Equal Area",
        "Lambert_Azimuthal_Equal_Area",
        &[("Latitude of natural origin", "latitude_of_center"), ("Longitude of natural origin", "longitude_of_center")],
    ),
    (
        "Polar Stereographic (variant B)",
        "Polar_Stereographic",
        &[("Latitude of standard parallel", "latitude_of_origin"), ("Longitude of origin", "central_meridian")],
    ),
];

const NATURAL_ORIGIN: [UnitName; 3] = [
    ("Latitude of natural origin", "latitude_of_origin"),
    ("Longitude of natural origin", "central_meridian"),
    ("Scale factor at natural origin", "scale_factor"),
];

/// Parameters that every method has, under one of two names.
pub(crate) const SHARED: [UnitName; 4] = [
    ("False easting", "false_easting"),
    ("False northing", "false_northing"),
    ("Easting at false origin", "false_easting"),
    ("Northing at false origin", "false_northing"),
];

/// Maximum depth of nested elements; real systems have fewer than ten.
const MAX_DEPTH: usize = 32;

/// Maximum length of the text of a coordinate system in bytes; real ones have a few thousand.
pub const MAX_LENGTH: usize = 256 << 10;

/// A coordinate system.
#[derive(Debug, Clone, PartialEq)]
pub struct CoordinateSystem<'a> {
    /// The horizontal part, if the system is compound.
    element: WktElement<'a>,
    /// Whether the coordinates are longitude and latitude.
    pub is_geographic: bool,
    /// Whether the text has no other part: a vertical system, or a transformation into another system.
    pub(crate) is_alone: bool,
}

/// A map projection, in the terms of the first version.
#[derive(Debug, Clone, PartialEq)]
pub struct Projection<'a> {
    /// The name of the projection's method.
    pub method: &'a str,
    /// Names and values of the parameters, in the units of the CRS.
    pub parameters: Vec<(&'a str, f64)>,
}

/// The ellipsoid and the prime meridian, in metres and degrees.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Datum {
    /// The radius at the equator in metres.
    pub semi_major_axis: f64,
    /// The inverse of the flattening; 0 for a sphere.
    pub inverse_flattening: f64,
    /// The longitude of the prime meridian in degrees east of Greenwich.
    pub prime_meridian: f64,
}

impl<'a> CoordinateSystem<'a> {
    /// Parses the text; `None` if it is not a system of geographic or projected coordinates.
    pub fn parse(text: &'a str) -> Option<Self> {
        if text.len() > MAX_LENGTH {
            return None;
        }
        let mut element = Parser { rest: text }.element(0)?;
        let mut is_alone = true;
        loop {
            let is_geographic = match element.keyword.to_ascii_uppercase().as_str() {
                "GEOGCS" | "GEOGCRS" | "GEOGRAPHICCRS" | "GEODCRS" | "GEODETICCRS" => true,
                "PROJCS" | "PROJCRS" | "PROJECTEDCRS" => false,
                // The horizontal part comes first.
                "COMPD_CS" | "COMPOUNDCRS" | "BOUNDCRS" | "SOURCECRS" => {
                    element = element.values.into_iter().find_map(|value| match value {
                        WktValue::Element(inner) => Some(inner),
                        _ => None,
                    })?;
                    is_alone = false;
                    continue;
                }
                _ => return None,
            };
            return Some(CoordinateSystem { element, is_geographic, is_alone });
        }
    }

    /// Returns the system's own name.
    pub fn name(&self) -> Option<&'a str> {
        self.element.text()
    }

    /// Returns the system's EPSG code, if given.
    pub(crate) fn epsg(&self) -> Option<u16> {
        let identifier = self.element.children().find(|child| {
            child.is(&["AUTHORITY", "ID"]) && child.text().is_some_and(|text| text.eq_ignore_ascii_case("EPSG"))
        })?;
        match identifier.values.get(1)? {
            WktValue::Text(number) | WktValue::Word(number) => number.parse().ok(),
            WktValue::Element(_) => None,
        }
    }

    /// Returns whether the first axis is the northing or latitude; `None` if the text has no axes.
    pub(crate) fn has_northing_first(&self) -> Option<bool> {
        match self.element.child(&["AXIS"])?.values.get(1)? {
            WktValue::Word(direction) => Some(direction.eq_ignore_ascii_case("NORTH")),
            _ => None,
        }
    }

    /// Returns the unit of the coordinates: its name, and its size in metres or, for a geographic system, radians.
    pub fn unit(&self) -> Option<(&'a str, f64)> {
        let of = |element: &WktElement<'a>| {
            let unit = element.child(&["UNIT", "LENGTHUNIT", "ANGLEUNIT"])?;
            Some((unit.text()?, unit.number(1)?))
        };
        // The second version allows a unit per axis.
        of(&self.element).or_else(|| of(self.element.child(&["AXIS"])?))
    }

    /// Returns the projection; `None` for geographic systems, if an extension overrides the projection, or if the
    /// second version's method is not in [`METHODS`].
    pub(crate) fn projection(&self) -> Option<Projection<'a>> {
        if self.is_geographic || self.element.child(&["EXTENSION"]).is_some() {
            return None;
        }
        if let Some(conversion) = self.element.child(&["CONVERSION"]) {
            return self.converted(conversion);
        }
        let method = self.element.child(&["PROJECTION"])?.text()?;
        let parameters = self.element.children().filter(|child| child.is(&["PARAMETER"]));
        let parameters = parameters.map(|child| Some((child.text()?, child.number(1)?))).collect::<Option<_>>()?;
        Some(Projection { method, parameters })
    }

    /// Returns the projection of the second version, which gives each parameter its own unit.
    fn converted(&self, conversion: &WktElement<'a>) -> Option<Projection<'a>> {
        let wanted = conversion.child(&["METHOD", "PROJECTION"])?.text()?;
        let (_, method, names) = METHODS.into_iter().find(|(name, ..)| name.eq_ignore_ascii_case(wanted))?;
        let (_, metres) = self.unit()?;
        let parameter = |child: &WktElement<'a>| {
            let name = child.text()?;
            let (_, name) = names.iter().chain(&SHARED).find(|(known, _)| known.eq_ignore_ascii_case(name))?;
            let unit = child.children().find_map(|unit| Some((unit.keyword, unit.number(1)?)));
            let factor = match unit {
                Some(("ANGLEUNIT", radians)) if (radians - DEGREE).abs() > 1e-9 => return None,
                Some(("LENGTHUNIT", factor)) if factor != metres => factor / metres,
                _ => 1.0,
            };
            Some((*name, child.number(1)? * factor))
        };
        let parameters = conversion.children().filter(|child| child.is(&["PARAMETER"]));
        Some(Projection { method, parameters: parameters.map(parameter).collect::<Option<_>>()? })
    }

    /// Returns the ellipsoid; `None` if it is missing or its angles are not in degrees.
    pub fn datum(&self) -> Option<Datum> {
        let base = ["GEOGCS", "BASEGEOGCRS", "BASEGEODCRS"];
        let geographic = if self.is_geographic { &self.element } else { self.element.child(&base)? };
        if let Some(unit) = geographic.child(&["UNIT", "ANGLEUNIT"])
            && (unit.number(1)? - DEGREE).abs() > 1e-9
        {
            return None;
        }
        let datum = geographic.child(&["DATUM", "ENSEMBLE", "GEODETICDATUM", "TRF"])?;
        let ellipsoid = datum.child(&["SPHEROID", "ELLIPSOID"])?;
        let meridian = geographic.child(&["PRIMEM", "PRIMEMERIDIAN"]);
        Some(Datum {
            semi_major_axis: ellipsoid.number(1)?,
            inverse_flattening: ellipsoid.number(2)?,
            prime_meridian: meridian.and_then(|meridian| meridian.number(1)).unwrap_or(0.0),
        })
    }
}

impl Projection<'_> {
    /// Returns a parameter's value.
    pub fn parameter(&self, name: &str) -> Option<f64> {
        self.parameters.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| *value)
    }
}

impl<'a> WktElement<'a> {
    /// Parses a text that is one element.
    pub fn parse(text: &'a str) -> Option<Self> {
        if text.len() > MAX_LENGTH {
            return None;
        }
        let mut parser = Parser { rest: text };
        let element = parser.element(0)?;
        parser.rest.trim_end_matches('\0').trim().is_empty().then_some(element)
    }

    pub fn is(&self, keywords: &[&str]) -> bool {
        keywords.iter().any(|keyword| self.keyword.eq_ignore_ascii_case(keyword))
    }

    pub fn children(&self) -> impl Iterator<Item = &WktElement<'a>> {
        self.values.iter().filter_map(|value| match value {
            WktValue::Element(element) => Some(element),
            _ => None,
        })
    }

    pub fn child(&self, keywords: &[&str]) -> Option<&WktElement<'a>> {
        self.children().find(|child| child.is(keywords))
    }

    /// Returns the first value, which is the name of most elements.
    pub fn text(&self) -> Option<&'a str> {
        match self.values.first()? {
            WktValue::Text(text) => Some(text),
            _ => None,
        }
    }

    pub fn number(&self, place: usize) -> Option<f64> {
        match self.values.get(place)? {
            WktValue::Word(word) => word.parse().ok().filter(|number: &f64| number.is_finite()),
            _ => None,
        }
    }
}

struct Parser<'a> {
    rest: &'a str,
}

impl<'a> Parser<'a> {
    /// Parses `KEYWORD[value, ...]`; round brackets are allowed too.
    fn element(&mut self, depth: usize) -> Option<WktElement<'a>> {
        let keyword = self.word()?;
        self.take(&['[', '('])?;
        self.values(keyword, depth)
    }

    /// Parses the values after the opening bracket, and the closing bracket.
    fn values(&mut self, keyword: &'a str, depth: usize) -> Option<WktElement<'a>> {
        if depth > MAX_DEPTH {
            return None;
        }
        let mut element = WktElement { keyword, values: Vec::new() };
        if self.take(&[']', ')']).is_some() {
            return Some(element);
        }
        loop {
            let value = match self.take(&['"']) {
                Some(_) => {
                    let (text, rest) = self.rest.split_once('"')?;
                    self.rest = rest;
                    WktValue::Text(text)
                }
                None => {
                    let word = self.word()?;
                    match self.take(&['[', '(']) {
                        Some(_) => WktValue::Element(self.values(word, depth + 1)?),
                        None => WktValue::Word(word),
                    }
                }
            };
            element.values.push(value);
            match self.take(&[',', ']', ')'])? {
                ',' => {}
                _ => return Some(element),
            }
        }
    }

    /// Takes one of these characters, after any blanks.
    fn take(&mut self, wanted: &[char]) -> Option<char> {
        self.rest = self.rest.trim_start();
        let found = self.rest.chars().next().filter(|found| wanted.contains(found))?;
        self.rest = &self.rest[found.len_utf8()..];
        Some(found)
    }

    fn word(&mut self) -> Option<&'a str> {
        self.rest = self.rest.trim_start();
        let end = self.rest.find(|c: char| c.is_whitespace() || "[](),\"".contains(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        (!word.is_empty()).then_some(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UTM: &str = r#"PROJCS["WGS 84 / UTM zone 32N", GEOGCS["WGS 84",DATUM["WGS_1984",SPHEROID["WGS 84",6378137,298.257223563]],PRIMEM["Greenwich",0],UNIT["degree",0.0174532925199433]],PROJECTION["Transverse_Mercator"],PARAMETER["central_meridian",9],PARAMETER["scale_factor",0.9996],UNIT["US survey foot",0.304800609601219],AXIS["Easting",EAST]]"#;

    #[test]
    fn first_version_is_parsed() {
        let system = CoordinateSystem::parse(UTM).unwrap();
        assert!(!system.is_geographic);
        assert_eq!(system.unit(), Some(("US survey foot", 0.304800609601219)));
        let projection = system.projection().unwrap();
        assert_eq!((projection.method, projection.parameter("CENTRAL_MERIDIAN")), ("Transverse_Mercator", Some(9.0)));
        let datum = Datum { semi_major_axis: 6378137.0, inverse_flattening: 298.257223563, prime_meridian: 0.0 };
        assert_eq!(system.datum(), Some(datum));
        let compound = format!("COMPD_CS[\"both\",{UTM},VERT_CS[\"height\"]]");
        assert_eq!(CoordinateSystem::parse(&compound), Some(CoordinateSystem { is_alone: false, ..system.clone() }));
        assert!(system.is_alone && system.has_northing_first() == Some(false));
    }

    #[test]
    fn second_version_is_parsed() {
        let text = r#"GEOGCRS["ETRS89",DATUM["ETRS89",ELLIPSOID["GRS 1980",6378137,298.257222101,LENGTHUNIT["metre",1]]],CS[ellipsoidal,2],AXIS["latitude",north,ANGLEUNIT["degree",0.0174532925199433]],ID["EPSG",4258]]"#;
        let system = CoordinateSystem::parse(text).unwrap();
        assert!(system.is_geographic && system.projection().is_none());
        assert_eq!(system.unit().unwrap().0, "degree");
        assert_eq!(system.datum().unwrap().inverse_flattening, 298.257222101);
    }

    #[test]
    fn invalid_text_is_rejected() {
        for text in
            ["", "EPSG:4326", "PROJCS", "PROJCS[", "PROJCS[\"a", "LOCAL_CS[\"a\"]", "COMPD_CS[\"a\"]", "GEOGCS[\"a\","]
        {
            assert_eq!(CoordinateSystem::parse(text), None, "{text}");
        }
        assert_eq!(CoordinateSystem::parse(&"GEOGCS[".repeat(100_000)), None);
    }
}
