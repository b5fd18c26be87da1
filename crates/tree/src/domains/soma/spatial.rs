//! `spatialdata/` of an experiment of TileDB-SOMA with scenes: a store that `spatialdata.read_zarr` opens.
//!
//! * `images/SCENE_NAME` is `zarr/` of a multiscale image.
//! * `shapes/SCENE_NAME` and `points/SCENE_NAME` have the Parquet file of a cloud of points; points with a radius are
//!   shapes.
//! * `shapes/SCENE_NAME` has the Parquet file of a frame of geometries if all are polygons or several polygons each, which
//!   takes a pass over the geometries when the store is opened.
//! * `tables/NAME` is a measurement as annotated data.
//!
//! Elements have the names and the transformations that TileDB-SOMA's own `to_spatialdata` gives them. The attribute
//! `left_out` says of all other members why they are missing.
//!
//! Source: the output of spatialdata 0.7, and `tiledbsoma.io.spatial` 2.3.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::SystemTime;

use tilefs_base::error::Result;
use tilefs_base::json;
use tilefs_export::pyramid::Pyramid;
use tilefs_export::tables::geometries::FoundGeometries;
use tilefs_export::zarr::{self, LEFT_OUT, ZarrGroup, ZarrNode, ZarrVersion};
use tilefs_export::{FormatResult, Metadatum, Unrepresentable};
use tilefs_format::datatype::Datatype;
use tilefs_reader::OpenedObject;
use tilefs_reader::array::{Metadata, OpenedArray};
use tilefs_reader::group::OpenedGroup;
use tilefs_threads::cancellation;
use tilefs_vfs::node::lazy::{FixedFolder, LazyFile};
use tilefs_vfs::node::{Entry, Folder, Node};

use crate::sizing::Sizing;
use serde_json::{Value, json};

use crate::cells::sparse::SparseSubarray;
use crate::cells::{FieldId, Subarray as _};
use crate::domains::ShownGroup;
use crate::domains::soma::cut::Cut;
use crate::domains::soma::experiment::{annotated_data, measurement_names, member, reasoned};
use crate::domains::soma::object_type;
use crate::domains::soma::plane_map::PlaneMap;
use crate::fields::array_form::ArrayForm;
use crate::fields::columns::column_of;
use crate::fields::{FieldFolder, meta};
use crate::objects::members::NamedMembers;
use crate::shown::ShownViews;
use crate::views::names::field_names;
use crate::views::parquet::{GEOMETRY, file_of_shapes};
use crate::views::zarr::group_folder;

/// The name of the folder.
pub const SPATIALDATA: &str = "spatialdata";

/// The collection of an experiment's scenes.
const SCENES: &str = "spatial";

/// The file that describes a Zarr group.
const DESCRIPTION: &str = "zarr.json";

/// The metadata key of the axes of a scene, a cloud of points or an image.
const SPACE: &str = "soma_coordinate_space";

/// The version of the store, and those of its images, shapes, points and tables.
const OF_STORE: &str = "0.2";
const OF_IMAGES: &str = "0.5-dev-spatialdata";
/// The version of the attributes of an image, which is another one than that of its OME-Zarr.
const OF_IMAGE_ATTRIBUTES: &str = "0.3";
const OF_SHAPES: &str = "0.3";
const OF_POINTS: &str = "0.2";
const OF_TABLES: &str = "0.2";

/// The attribute of a frame with its geometries.
const GEOMETRIES: &str = "soma_geometry";

/// Maximum number of channels of an image, each of which has a label.
const MAX_CHANNELS: f64 = 4096.0;

/// Makes the store of an experiment. Opens its scenes and all in them, and reads all geometries of frames of geometries,
/// but no other cell.
///
/// # Errors
/// Fails if something could not be read that may be readable the next time.
pub fn spatial_store(experiment: &ShownGroup) -> Result<FixedFolder> {
    let ShownGroup { group, modified, .. } = experiment;
    let mut store =
        SpatialStore { members: (experiment.members)(), modified: *modified, found: Vec::new(), left_out: Vec::new() };
    if let Some(OpenedObject::Group(scenes)) = member(group, SCENES)? {
        for (name, real_name) in names(&scenes)? {
            store.add_scene(&scenes, &name, &real_name)?;
        }
    }
    for name in measurement_names(group)? {
        match reasoned(annotated_data(group, &name, &Cut::default()))? {
            Ok(mut table) => {
                table.attributes.insert("spatialdata-encoding-type".to_owned(), json!("ngff:regions_table"));
                table.attributes.insert("version".to_owned(), json!(OF_TABLES));
                let folder = group_folder(&Arc::new(table), ZarrVersion::Third, *modified);
                store.found.push((Part::Table, name, Node::Folder(Arc::new(folder))));
            }
            Err(reason) => store.left_out.push((format!("ms/{name}"), reason.to_string())),
        }
    }
    Ok(store.folder())
}

/// Returns whether an experiment has scenes.
///
/// # Errors
/// Fails if its members cannot be read.
pub fn has_scenes(experiment: &OpenedGroup) -> Result<bool> {
    Ok(NamedMembers::new(experiment.members()?).by_name.contains_key(SCENES))
}

/// The parts of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Image,
    Shape,
    Point,
    Table,
}

impl Part {
    const ALL: [Part; 4] = [Part::Image, Part::Shape, Part::Point, Part::Table];

    fn folder(self) -> &'static str {
        match self {
            Part::Image => "images",
            Part::Shape => "shapes",
            Part::Point => "points",
            Part::Table => "tables",
        }
    }
}

/// The name of a scene, and the axes of its space.
struct SceneSpace {
    name: String,
    axes: Vec<String>,
}

/// A member of a collection of a scene.
struct SceneMember<'a> {
    scene: &'a SceneSpace,
    /// Its path in the folder of the experiment.
    path: String,
    /// Its name in the store.
    key: String,
    /// The transformation from the scene to it, if it has one.
    transform: Option<String>,
}

/// A store that is being made.
struct SpatialStore {
    /// The folder of the experiment's members.
    members: Arc<dyn Folder>,
    modified: SystemTime,
    found: Vec<(Part, String, Node)>,
    left_out: Vec<(String, String)>,
}

impl SpatialStore {
    fn add_scene(&mut self, scenes: &OpenedGroup, name: &str, real_name: &str) -> Result<()> {
        let path = format!("{SCENES}/{name}");
        let opened = reasoned(member(scenes, name).map(Ok))?;
        let scene = match opened {
            Ok(Some(OpenedObject::Group(scene))) => scene,
            Ok(_) => return self.leave_out(path, "it is not a scene"),
            Err(reason) => return self.leave_out(path, &reason.to_string()),
        };
        let Some(axes) = axes(&*scene.metadata()?) else {
            return self.leave_out(path, "it has no coordinate space");
        };
        let of = SceneSpace { name: real_name.to_owned(), axes };
        for collection in ["obsl", "img"] {
            if let Some(OpenedObject::Group(members)) = member(&scene, collection)? {
                self.add_collection(&of, &format!("{path}/{collection}"), &of.name, &members)?;
            }
        }
        let Some(OpenedObject::Group(measurements)) = member(&scene, "varl")? else { return Ok(()) };
        for (name, real_name) in names(&measurements)? {
            if let Some(OpenedObject::Group(members)) = member(&measurements, &name)? {
                let prefix = format!("{}_{real_name}", of.name);
                self.add_collection(&of, &format!("{path}/varl/{name}"), &prefix, &members)?;
            }
        }
        Ok(())
    }

    fn add_collection(&mut self, scene: &SceneSpace, path: &str, prefix: &str, collection: &OpenedGroup) -> Result<()> {
        let metadata = collection.metadata()?;
        for (name, real_name) in names(collection)? {
            let element = SceneMember {
                scene,
                path: format!("{path}/{name}"),
                key: format!("{prefix}_{real_name}"),
                transform: meta::text_value(&metadata, &format!("soma_scene_registry_{real_name}")),
            };
            let made = member(collection, &name).and_then(|object| self.element(&element, object.as_ref()));
            match reasoned(made)? {
                Ok((part, node)) => self.found.push((part, element.key, node)),
                Err(reason) => self.left_out.push((element.path, reason.to_string())),
            }
        }
        Ok(())
    }

    fn leave_out(&mut self, path: String, reason: &str) -> Result<()> {
        self.left_out.push((path, reason.to_owned()));
        Ok(())
    }

    /// Returns an element, and the part to which it belongs, or the reason why there is none.
    fn element(&self, element: &SceneMember<'_>, object: Option<&OpenedObject>) -> Result<FormatResult<(Part, Node)>> {
        match object {
            Some(OpenedObject::Array(array)) => {
                let metadata = array.metadata()?;
                match object_type(&metadata).as_deref() {
                    Some("SOMAPointCloudDataFrame") => self.points(element, &metadata),
                    Some("SOMAGeometryDataFrame") => self.polygons(element, array, &metadata),
                    _ => reason(ONLY_SHOWN),
                }
            }
            Some(OpenedObject::Group(group)) => {
                let metadata = group.metadata()?;
                match object_type(&metadata).as_deref() {
                    Some("SOMAMultiscaleImage") => self.image(element, &metadata),
                    _ => reason(ONLY_SHOWN),
                }
            }
            None => reason("it is gone"),
        }
    }

    /// Returns a cloud of points: shapes if they have a radius.
    fn points(&self, element: &SceneMember<'_>, metadata: &Metadata) -> Result<FormatResult<(Part, Node)>> {
        let transformation = match transformation(element, metadata, &["x", "y"]) {
            Ok(transformation) => transformation,
            Err(reason) => return Ok(Err(reason)),
        };
        let (part, encoding, version, file) = match metadata.get("soma_geometry") {
            None => (Part::Point, "ngff:points", OF_POINTS, "points.parquet"),
            Some(_) if meta::text_value(metadata, "soma_geometry_type").as_deref() != Some("radius") => {
                return reason("its geometries are neither points nor circles");
            }
            Some(_) => (Part::Shape, "ngff:shapes", OF_SHAPES, "shapes.parquet"),
        };
        if part == Part::Point && axes(metadata).is_none_or(|axes| axes != ["x", "y"]) {
            return reason("its coordinates are not called x and y");
        }
        let Some(table) = find(&self.members, &format!("{}/parquet/cells.parquet", element.path))? else {
            return reason("it has no table in Parquet");
        };
        let mut folder = self.described(of_plane(encoding, version, &transformation));
        folder.add(file, table);
        Ok(Ok((part, Node::Folder(Arc::new(folder)))))
    }

    /// Returns the polygons of a frame of geometries.
    fn polygons(
        &self,
        element: &SceneMember<'_>,
        array: &Arc<OpenedArray>,
        metadata: &Metadata,
    ) -> Result<FormatResult<(Part, Node)>> {
        let transformation = match transformation(element, metadata, &["x", "y"]) {
            Ok(transformation) => transformation,
            Err(reason) => return Ok(Err(reason)),
        };
        let attributes = &array.schema().attributes;
        let Some(number) = attributes
            .iter()
            .position(|one| one.name == GEOMETRIES)
            .filter(|&number| attributes[number].datatype == Datatype::GeomWkb && attributes[number].is_variable())
        else {
            return reason("it has no geometries in well-known binary");
        };
        if attributes.iter().any(|one| one.name == GEOMETRY) {
            return reason("it has a column that is called geometry");
        }
        let subarray = Arc::new(SparseSubarray::new(array.clone(), false));
        let rows = subarray.row_count()?;
        if !Sizing::Cells.is_listed(rows.most(), rows.exact().is_some()) {
            return reason("it has so many geometries that their kinds are not examined");
        }
        let (names, shown) = (Arc::new(field_names(array.schema())), ShownViews::NONE);
        let (modified, form, told) = (self.modified, ArrayForm::default(), Arc::default());
        let fields = FieldFolder { subarray, names, modified, shown, form, told };
        if !FoundGeometries::of(&column_of(&fields, FieldId::Attribute(number))?)?.are_polygons() {
            return reason("its geometries are not all polygons in a plane");
        }
        let mut folder = self.described(of_plane("ngff:shapes", OF_SHAPES, &transformation));
        folder.add_file("shapes.parquet", file_of_shapes(&fields));
        Ok(Ok((Part::Shape, Node::Folder(Arc::new(folder)))))
    }

    /// Returns an image: the Zarr group of its own folder, with SpatialData's metadata.
    fn image(&self, element: &SceneMember<'_>, metadata: &Metadata) -> Result<FormatResult<(Part, Node)>> {
        let described = meta::for_formats(metadata);
        let mut group = zarr::of_group(&described, None);
        let Some(image) = group.attributes.get_mut("ome") else { return reason("its zarr/ is not OME-Zarr") };
        let Some(multiscale) = image.pointer_mut("/multiscales/0") else { return reason("it has no levels") };
        let names: Vec<&str> = match multiscale.get("axes").and_then(Value::as_array) {
            Some(axes) => axes.iter().filter_map(|axis| axis.get("name")?.as_str()).collect(),
            None => Vec::new(),
        };
        if names != ["c", "y", "x"] {
            return reason(format!("its axes are {}, and not channels, y and x", names.join(", ")));
        }
        let transformation = match transformation(element, metadata, &["c", "y", "x"]) {
            Ok(transformation) => transformation,
            Err(reason) => return Ok(Err(reason)),
        };
        if let Some(multiscale) = multiscale.as_object_mut() {
            multiscale.insert("coordinateTransformations".to_owned(), json!([transformation]));
        }
        let Some(channels) = channels(&described) else { return reason("its number of channels is unknown") };
        if let Some(image) = image.as_object_mut() {
            image.insert("version".to_owned(), json!(OF_IMAGES));
            image.entry("omero").or_insert_with(|| json!({"channels": channels}));
        }
        group.attributes.insert("spatialdata_attrs".to_owned(), json!({"version": OF_IMAGE_ATTRIBUTES}));
        let Some(Node::Folder(levels)) = find(&self.members, &format!("{}/zarr", element.path))? else {
            return reason("it has no zarr/");
        };
        let image = ImageOfScene { levels, description: description(group, self.modified) };
        Ok(Ok((Part::Image, Node::Folder(Arc::new(image)))))
    }

    /// Returns the folder of a Zarr group with these attributes.
    fn described(&self, attributes: Value) -> FixedFolder {
        let mut group = ZarrGroup { attributes: Default::default(), members: Vec::new() };
        if let Value::Object(attributes) = attributes {
            group.attributes = attributes;
        }
        let mut folder = FixedFolder::new(self.modified);
        folder.add(DESCRIPTION, description(group, self.modified));
        folder
    }

    fn folder(self) -> FixedFolder {
        let reasons: Value = self.left_out.iter().map(|(path, reason)| (path.clone(), json!(reason))).collect();
        let mut attributes = json!({"spatialdata_attrs": {"version": OF_STORE}});
        if let (false, Some(attributes)) = (self.left_out.is_empty(), attributes.as_object_mut()) {
            attributes.insert(LEFT_OUT.to_owned(), reasons);
        }
        let mut store = self.described(attributes);
        for part in Part::ALL {
            let mut folder = self.described(json!({}));
            let own = self.found.iter().filter(|(of, ..)| *of == part);
            own.for_each(|(_, key, node)| folder.add(key.clone(), node.clone()));
            store.add_folder(part.folder(), folder);
        }
        store
    }
}

/// The Zarr group of an image, described for SpatialData.
struct ImageOfScene {
    levels: Arc<dyn Folder>,
    description: Node,
}

impl Folder for ImageOfScene {
    fn inner(&self) -> Option<&dyn Folder> {
        Some(&*self.levels)
    }

    fn lookup(&self, name: &str) -> Result<Option<Node>> {
        if name == DESCRIPTION { Ok(Some(self.description.clone())) } else { self.levels.lookup(name) }
    }

    fn list(&self) -> Result<Vec<Entry>> {
        self.levels.list()
    }

    fn modified(&self) -> SystemTime {
        self.levels.modified()
    }
}

/// Why other members are left out.
const ONLY_SHOWN: &str = "only clouds of points, frames of geometries and images are shown";

/// Returns the attributes of points or shapes.
fn of_plane(encoding: &str, version: &str, transformation: &Value) -> Value {
    json!({
        "encoding-type": encoding,
        "axes": ["x", "y"],
        "coordinateTransformations": [transformation],
        "spatialdata_attrs": {"version": version},
    })
}

/// Returns the transformation from an element to its scene; without a scene, it is the identity to a space of its own.
fn transformation(element: &SceneMember<'_>, metadata: &Metadata, axes: &[&str]) -> FormatResult<Value> {
    let own = self::axes(metadata).filter(|own| own.len() == 2);
    let own = own.ok_or_else(|| Unrepresentable::new("its space has other than two axes"))?;
    let Some(text) = &element.transform else { return Ok(PlaneMap::IDENTITY.to_spatialdata(axes, &element.key)) };
    let map = PlaneMap::of_soma(text, &element.scene.axes, &own).and_then(|map| map.inverse());
    let map = map.ok_or_else(|| Unrepresentable::new("its transformation is unknown, or has no inverse"))?;
    Ok(map.to_spatialdata(axes, &element.scene.name))
}

/// Returns the channels of an image, which SpatialData requires to have labels: their numbers.
fn channels(metadata: &[Metadatum]) -> Option<Vec<Value>> {
    let pyramid = Pyramid::of(metadata)?;
    let level = pyramid.levels.first()?;
    let (_, count) = level.axes.chars().zip(&level.shape).find(|(axis, _)| *axis == 'C')?;
    let count = Some(*count).filter(|count| (0.0..=MAX_CHANNELS).contains(count))?;
    Some((0..count as u32).map(|number| json!({"label": number.to_string()})).collect())
}

/// Returns the file that describes a Zarr group without its members, which are found in its folder.
fn description(group: ZarrGroup, modified: SystemTime) -> Node {
    let group = ZarrNode::Group(Arc::new(group));
    Node::File(Arc::new(LazyFile::text(modified, move || Ok(group.own_text(DESCRIPTION)))))
}

/// Returns the names of a group's members in the tree, and those that are stored.
fn names(group: &OpenedGroup) -> Result<Vec<(String, String)>> {
    let named = NamedMembers::new(group.members()?);
    let all = named.names.iter().zip(named.members.iter());
    Ok(all.filter_map(|(name, member)| Some((name.clone()?, member.name.clone()))).collect())
}

/// Returns the names of the axes of a space.
fn axes(metadata: &Metadata) -> Option<Vec<String>> {
    let space: Value = json::parse(&meta::text_value(metadata, SPACE)?, cancellation::check).ok()?;
    space.as_array()?.iter().map(|axis| Some(axis.get("name")?.as_str()?.to_owned())).collect()
}

/// Returns the node at a path.
fn find(folder: &Arc<dyn Folder>, path: &str) -> Result<Option<Node>> {
    let mut node = Node::Folder(folder.clone());
    for name in path.split('/') {
        let Node::Folder(folder) = node else { return Ok(None) };
        match folder.lookup(name)? {
            Some(found) => node = found,
            None => return Ok(None),
        }
    }
    Ok(Some(node))
}

fn reason<T>(text: impl Into<Cow<'static, str>>) -> Result<FormatResult<T>> {
    Ok(Err(Unrepresentable::new(text)))
}
