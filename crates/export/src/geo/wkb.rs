//! Geometries in well-known binary, in ISO's form (SQL/MM: 1001 to 3017 are the types with heights and measures) and in
//! that of PostGIS (flags in the type, and an identifier of the coordinate system).

/// Geometries within geometries, at most.
const MAX_DEPTH: u32 = 16;

/// Flags of a type in the form of PostGIS.
const HAS_HEIGHT: u32 = 0x8000_0000;
const HAS_MEASURE: u32 = 0x4000_0000;
const HAS_SYSTEM: u32 = 0x2000_0000;

/// The least size of a geometry in bytes: its byte order, its type and a count.
const LEAST: usize = 9;

/// The kind of a geometry, by its number in well-known binary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GeometryKind {
    Point,
    LineString,
    Polygon,
    MultiPoint,
    MultiLineString,
    MultiPolygon,
    GeometryCollection,
    /// Polygons that share edges.
    Surface,
    Triangle,
}

/// A place. Measures are left out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Vertex {
    pub x: f64,
    pub y: f64,
    pub z: Option<f64>,
}

/// A geometry.
#[derive(Debug, Clone, PartialEq)]
pub struct Geometry {
    pub kind: GeometryKind,
    pub parts: GeometryParts,
}

/// The parts of a geometry.
#[derive(Debug, Clone, PartialEq)]
pub enum GeometryParts {
    /// Of a point, which is empty without one, and of a line.
    Vertices(Vec<Vertex>),
    /// Of a polygon: its outline and its holes.
    Rings(Vec<Vec<Vertex>>),
    Geometries(Vec<Geometry>),
}

/// The reason why bytes are no geometry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WkbError {
    /// They end too early, or continue after the geometry.
    Length,
    /// A byte order or a type that the format does not have, or geometries too deep within others.
    Form,
    /// A curve, whose vertices do not show where it is.
    Curve,
}

impl WkbError {
    /// Returns what the bytes are instead.
    pub fn what(self) -> &'static str {
        match self {
            WkbError::Length => "well-known binary of another length than its counts say",
            WkbError::Form => "no well-known binary",
            WkbError::Curve => "a curve",
        }
    }
}

impl Geometry {
    /// Reads a geometry, which takes all of the bytes.
    ///
    /// # Errors
    /// Fails if they are not one, and for curves.
    pub fn read(bytes: &[u8]) -> Result<Self, WkbError> {
        let mut rest = WkbBytes { rest: bytes, is_little: true };
        let geometry = rest.geometry(0)?;
        if rest.rest.is_empty() { Ok(geometry) } else { Err(WkbError::Length) }
    }

    /// Passes each vertex to `visit`.
    pub fn for_each_vertex(&self, visit: &mut impl FnMut(Vertex)) {
        match &self.parts {
            GeometryParts::Vertices(vertices) => vertices.iter().copied().for_each(visit),
            GeometryParts::Rings(rings) => rings.iter().flatten().copied().for_each(visit),
            GeometryParts::Geometries(all) => all.iter().for_each(|geometry| geometry.for_each_vertex(visit)),
        }
    }
}

/// The bytes of a geometry that were not read yet.
struct WkbBytes<'a> {
    rest: &'a [u8],
    is_little: bool,
}

impl WkbBytes<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], WkbError> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(WkbError::Length)?;
        self.rest = rest;
        Ok(*taken)
    }

    fn number(&mut self) -> Result<u32, WkbError> {
        let bytes = self.take()?;
        Ok(if self.is_little { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) })
    }

    /// Reads a count of parts of at least `size` bytes each.
    fn count(&mut self, size: usize) -> Result<usize, WkbError> {
        let count = self.number()? as usize;
        if count > self.rest.len() / size { Err(WkbError::Length) } else { Ok(count) }
    }

    fn coordinate(&mut self) -> Result<f64, WkbError> {
        let bytes = self.take()?;
        Ok(if self.is_little { f64::from_le_bytes(bytes) } else { f64::from_be_bytes(bytes) })
    }

    fn geometry(&mut self, depth: u32) -> Result<Geometry, WkbError> {
        let [order] = self.take()?;
        if order > 1 || depth > MAX_DEPTH {
            return Err(WkbError::Form);
        }
        self.is_little = order == 1;
        let stored = self.number()?;
        if stored & HAS_SYSTEM != 0 {
            self.number()?;
        }
        let number = stored & !(HAS_HEIGHT | HAS_MEASURE | HAS_SYSTEM);
        let thousands = number / 1000;
        let has_height = stored & HAS_HEIGHT != 0 || thousands == 1 || thousands == 3;
        let has_measure = stored & HAS_MEASURE != 0 || thousands == 2 || thousands == 3;
        let form = VertexForm { has_height, has_measure };
        let kind = match number % 1000 {
            _ if thousands > 3 => return Err(WkbError::Form),
            1 => GeometryKind::Point,
            2 => GeometryKind::LineString,
            3 => GeometryKind::Polygon,
            4 => GeometryKind::MultiPoint,
            5 => GeometryKind::MultiLineString,
            6 => GeometryKind::MultiPolygon,
            7 => GeometryKind::GeometryCollection,
            8..=14 => return Err(WkbError::Curve),
            15 | 16 => GeometryKind::Surface,
            17 => GeometryKind::Triangle,
            _ => return Err(WkbError::Form),
        };
        let parts = match kind {
            GeometryKind::Point => {
                let vertex = self.vertex(form)?;
                // An empty point has no coordinates.
                let is_empty = vertex.x.is_nan() && vertex.y.is_nan();
                GeometryParts::Vertices(Some(vertex).filter(|_| !is_empty).into_iter().collect())
            }
            GeometryKind::LineString => GeometryParts::Vertices(self.vertices(form)?),
            GeometryKind::Polygon | GeometryKind::Triangle => {
                // A ring has at least a count.
                let count = self.count(4)?;
                GeometryParts::Rings((0..count).map(|_| self.vertices(form)).collect::<Result<_, _>>()?)
            }
            _ => {
                let count = self.count(LEAST)?;
                GeometryParts::Geometries((0..count).map(|_| self.geometry(depth + 1)).collect::<Result<_, _>>()?)
            }
        };
        Ok(Geometry { kind, parts })
    }

    fn vertices(&mut self, form: VertexForm) -> Result<Vec<Vertex>, WkbError> {
        let count = self.count(form.size())?;
        (0..count).map(|_| self.vertex(form)).collect()
    }

    fn vertex(&mut self, form: VertexForm) -> Result<Vertex, WkbError> {
        let (x, y) = (self.coordinate()?, self.coordinate()?);
        let z = if form.has_height { Some(self.coordinate()?) } else { None };
        if form.has_measure {
            self.coordinate()?;
        }
        Ok(Vertex { x, y, z })
    }
}

/// The coordinates of a vertex beside x and y.
#[derive(Debug, Clone, Copy)]
struct VertexForm {
    has_height: bool,
    has_measure: bool,
}

impl VertexForm {
    /// Returns the size of a vertex in bytes.
    fn size(self) -> usize {
        8 * (2 + usize::from(self.has_height) + usize::from(self.has_measure))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns a geometry of a type and a count, with these coordinates after them.
    fn wkb(kind: u32, count: Option<u32>, coordinates: &[f64]) -> Vec<u8> {
        let mut bytes = vec![1];
        bytes.extend(kind.to_le_bytes());
        bytes.extend(count.into_iter().flat_map(u32::to_le_bytes));
        bytes.extend(coordinates.iter().flat_map(|coordinate| coordinate.to_le_bytes()));
        bytes
    }

    fn vertex(x: f64, y: f64, z: Option<f64>) -> Vertex {
        Vertex { x, y, z }
    }

    #[test]
    fn both_forms_have_heights_and_measures() {
        let cases = [
            (1, None, vec![1.0, 2.0], None),
            (1001, None, vec![1.0, 2.0, 3.0], Some(3.0)),
            (2001, None, vec![1.0, 2.0, 9.0], None),
            (3001, None, vec![1.0, 2.0, 3.0, 9.0], Some(3.0)),
            (HAS_HEIGHT | 1, None, vec![1.0, 2.0, 3.0], Some(3.0)),
            (HAS_MEASURE | 1, None, vec![1.0, 2.0, 9.0], None),
            (HAS_SYSTEM | 1, Some(4326), vec![1.0, 2.0], None),
        ];
        for (kind, system, coordinates, z) in cases {
            let point = Geometry::read(&wkb(kind, system, &coordinates)).unwrap();
            assert_eq!(point.parts, GeometryParts::Vertices(vec![vertex(1.0, 2.0, z)]), "{kind:x}");
        }
        let mut big = vec![0];
        big.extend(2u32.to_be_bytes());
        big.extend(1u32.to_be_bytes());
        big.extend([5.0f64, 6.0].into_iter().flat_map(f64::to_be_bytes));
        let line = Geometry::read(&big).unwrap();
        assert_eq!(
            (line.kind, line.parts),
            (GeometryKind::LineString, GeometryParts::Vertices(vec![vertex(5.0, 6.0, None)]))
        );
    }

    #[test]
    fn parts_are_read_within_parts() {
        let ring = [0.0f64, 0.0, 4.0, 0.0, 4.0, 3.0, 0.0, 0.0];
        let mut polygon = wkb(3, Some(2), &[]);
        for _ in 0..2 {
            polygon.extend(4u32.to_le_bytes());
            polygon.extend(ring.iter().flat_map(|coordinate| coordinate.to_le_bytes()));
        }
        let mut all = wkb(7, Some(3), &[]);
        all.extend(&polygon);
        all.extend(wkb(1, None, &[f64::NAN, f64::NAN]));
        all.extend(wkb(4, Some(0), &[]));
        let geometry = Geometry::read(&all).unwrap();
        let mut count = 0;
        geometry.for_each_vertex(&mut |_| count += 1);
        assert_eq!(count, 8);
        let GeometryParts::Geometries(parts) = geometry.parts else { panic!("a collection has geometries") };
        assert_eq!(parts[1].parts, GeometryParts::Vertices(Vec::new()), "an empty point");
        assert_eq!(parts[2], Geometry { kind: GeometryKind::MultiPoint, parts: GeometryParts::Geometries(Vec::new()) });
    }

    #[test]
    fn other_bytes_are_refused() {
        let point = wkb(1, None, &[1.0, 2.0]);
        for length in 0..point.len() {
            assert_eq!(Geometry::read(&point[..length]), Err(WkbError::Length));
        }
        assert_eq!(Geometry::read(&[&point[..], &[0]].concat()), Err(WkbError::Length));
        assert_eq!(Geometry::read(&wkb(2, Some(u32::MAX), &[0.0; 8])), Err(WkbError::Length));
        assert_eq!(Geometry::read(&wkb(7, Some(u32::MAX), &[0.0; 8])), Err(WkbError::Length));
        assert_eq!(Geometry::read(&[&[2], &point[1..]].concat()), Err(WkbError::Form));
        for kind in [0, 18, 4001, 1000] {
            assert_eq!(Geometry::read(&wkb(kind, None, &[1.0, 2.0])), Err(WkbError::Form), "{kind}");
        }
        assert_eq!(Geometry::read(&wkb(8, Some(0), &[])), Err(WkbError::Curve));
        let deep = wkb(7, Some(1), &[]).repeat(100_000);
        assert_eq!(Geometry::read(&deep), Err(WkbError::Form));
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_geometry_or_an_error(mut bytes in prop::collection::vec(any::<u8>(), 0..200), kind in 0u8..20) {
            if let [order, number, zeros @ .., _, _] = &mut bytes[..] {
                (*order, *number) = (1, kind);
                zeros.iter_mut().take(3).for_each(|byte| *byte = 0);
            }
            let _ = Geometry::read(&bytes);
        }
    }
}
