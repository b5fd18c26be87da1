//! Files with their values in memory, in the order of the elements.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;

use hdf5_layout::{
    AttributeMessage, Dataset, Dataspace, Datatype, Error, FileLayout, HeapPlan, ObjectId, SegmentValues, Tree,
};

/// The elements of a dataset or an attribute, in row-major order.
#[derive(Clone)]
pub enum Elements {
    /// Of fixed length, as stored.
    Fixed(Vec<u8>),
    /// Of variable length.
    Variable(Vec<Vec<u8>>),
}

/// Shows only the number of bytes, because a failing test prints its model.
impl fmt::Debug for Elements {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Elements::Fixed(bytes) => write!(out, "Fixed({} bytes)", bytes.len()),
            Elements::Variable(elements) => write!(out, "Variable({} elements)", elements.len()),
        }
    }
}

#[derive(Debug, Clone)]
pub struct ModelAttribute {
    pub name: String,
    pub datatype: Datatype,
    pub dataspace: Dataspace,
    pub elements: Elements,
}

#[derive(Debug, Clone)]
pub struct ModelDataset {
    pub datatype: Datatype,
    pub dataspace: Dataspace,
    pub chunk_shape: Option<Vec<u64>>,
    pub fill_value: Option<Vec<u8>>,
    pub elements: Elements,
}

#[derive(Debug, Clone)]
pub struct ModelObject {
    /// The index of its group among all objects. The root comes first and is its own parent.
    pub parent: usize,
    pub name: String,
    /// `None` for a group.
    pub dataset: Option<ModelDataset>,
    pub attributes: Vec<ModelAttribute>,
    /// The number of the one-dimensional dataset that is the scale of the first axis.
    pub scale: Option<usize>,
}

/// A file. The first object is the root group.
#[derive(Debug, Clone)]
pub struct Model(pub Vec<ModelObject>);

/// The elements of a model, in stored order.
pub struct Stored {
    pub layout: FileLayout,
    /// The objects of the model in the file.
    pub ids: Vec<ObjectId>,
    elements: HashMap<ObjectId, Elements>,
    /// The most bytes of elements requested in one call.
    pub largest_collection: u64,
}

impl ModelAttribute {
    fn attribute(&self) -> AttributeMessage {
        match &self.elements {
            Elements::Fixed(bytes) => {
                AttributeMessage::new(self.datatype.clone(), self.dataspace.clone(), bytes.clone())
            }
            Elements::Variable(texts) => {
                let texts = texts.iter().map(|text| String::from_utf8(text.clone()).unwrap()).collect();
                AttributeMessage::texts(self.dataspace.clone(), texts)
            }
        }
    }
}

impl ModelDataset {
    /// Returns the number of each stored element; `None` past the edge.
    fn order(&self) -> Vec<Option<usize>> {
        let shape = self.dataspace.shape();
        let elements = self.dataspace.elements().unwrap() as usize;
        let Some(chunk) = self.chunk_shape.as_ref().filter(|_| elements > 0) else {
            return (0..elements).map(Some).collect();
        };
        let grid: Vec<u64> = shape.iter().zip(chunk).map(|(length, chunk)| length.div_ceil(*chunk)).collect();
        let mut order = Vec::new();
        for at in indexes(&grid) {
            for within in indexes(chunk) {
                let place: Vec<u64> = (0..grid.len()).map(|axis| at[axis] * chunk[axis] + within[axis]).collect();
                let is_inside = place.iter().zip(shape).all(|(index, length)| index < length);
                let number = || place.iter().zip(shape).fold(0, |number, (index, length)| number * length + index);
                order.push(is_inside.then(|| number() as usize));
            }
        }
        order
    }

    /// Returns the elements as stored.
    fn stored(&self) -> Elements {
        let order = self.order();
        match &self.elements {
            Elements::Fixed(bytes) => {
                let size = self.datatype.size().unwrap() as usize;
                let element = |number: Option<usize>| match number {
                    Some(number) => bytes[number * size..][..size].to_vec(),
                    None => vec![0xee; size],
                };
                Elements::Fixed(order.into_iter().flat_map(element).collect())
            }
            Elements::Variable(elements) => {
                let element = |number: Option<usize>| number.map_or_else(Vec::new, |number| elements[number].clone());
                Elements::Variable(order.into_iter().map(element).collect())
            }
        }
    }
}

/// Returns all indexes of a box, in row-major order.
fn indexes(shape: &[u64]) -> impl Iterator<Item = Vec<u64>> + use<> {
    let shape = shape.to_vec();
    (0..shape.iter().product()).map(move |number: u64| {
        let mut rest = number;
        let mut index: Vec<u64> = shape.iter().rev().map(|length| (rest % length, rest /= length).0).collect();
        index.reverse();
        index
    })
}

impl Model {
    /// Returns the path of an object.
    pub fn path(&self, number: usize) -> String {
        let object = &self.0[number];
        match (number, object.parent) {
            (0, _) => "/".to_owned(),
            (_, 0) => format!("/{}", object.name),
            (_, parent) => format!("{}/{}", self.path(parent), object.name),
        }
    }

    /// Computes the layout of the file.
    pub fn store(&self) -> Stored {
        let mut tree = Tree::new();
        let mut ids = vec![ObjectId::ROOT];
        let mut elements = HashMap::new();
        for object in &self.0[1..] {
            let parent = ids[object.parent];
            let Some(model) = &object.dataset else {
                ids.push(tree.group(parent, &object.name).unwrap());
                continue;
            };
            let stored = model.stored();
            let mut dataset = Dataset::new(model.datatype.clone(), model.dataspace.clone());
            if let Some(chunk_shape) = &model.chunk_shape {
                dataset = dataset.chunked(chunk_shape.clone());
            }
            if let Some(fill_value) = &model.fill_value {
                dataset = dataset.fill_value(fill_value.clone());
            }
            if let Elements::Variable(elements) = &stored {
                let mut heap = HeapPlan::new();
                elements.iter().for_each(|element| heap.push(element.len() as u64).unwrap());
                dataset = dataset.heap(heap);
            }
            let id = tree.dataset(parent, &object.name, dataset).unwrap();
            elements.insert(id, stored);
            ids.push(id);
        }
        for (number, object) in self.0.iter().enumerate() {
            for attribute in &object.attributes {
                tree.attribute(ids[number], &attribute.name, attribute.attribute()).unwrap();
            }
            if let Some(scale) = object.scale {
                tree.make_scale(ids[scale], &self.0[scale].name).unwrap();
                tree.attach_scale(ids[number], 0, ids[scale]).unwrap();
            }
        }
        Stored { layout: FileLayout::build(tree).unwrap(), ids, elements, largest_collection: 0 }
    }
}

impl Stored {
    /// Returns the whole file.
    pub fn bytes(&mut self) -> Vec<u8> {
        self.read(0..self.layout.len())
    }

    /// Returns a range of the file.
    pub fn read(&mut self, range: Range<u64>) -> Vec<u8> {
        let layout = self.layout.clone();
        // Bytes that are not filled in remain visible.
        let mut out = vec![0xdd; (range.end - range.start) as usize];
        layout.read(range.start, self, &mut out).unwrap();
        out
    }

    fn variable(&self, dataset: ObjectId) -> &[Vec<u8>] {
        match &self.elements[&dataset] {
            Elements::Variable(elements) => elements,
            Elements::Fixed(_) => panic!("the elements of {dataset:?} have one length"),
        }
    }
}

impl SegmentValues for Stored {
    type Error = Error;

    fn values(&mut self, dataset: ObjectId, start: u64, out: &mut [u8]) -> Result<(), Error> {
        let Elements::Fixed(bytes) = &self.elements[&dataset] else { panic!("{dataset:?} has elements of one length") };
        out.copy_from_slice(&bytes[start as usize..][..out.len()]);
        Ok(())
    }

    fn lengths(&mut self, dataset: ObjectId, elements: Range<u64>) -> Result<Vec<u64>, Error> {
        let elements = &self.variable(dataset)[elements.start as usize..elements.end as usize];
        Ok(elements.iter().map(|element| element.len() as u64).collect())
    }

    fn elements(&mut self, dataset: ObjectId, elements: Range<u64>) -> Result<Vec<Vec<u8>>, Error> {
        let elements = self.variable(dataset)[elements.start as usize..elements.end as usize].to_vec();
        let bytes = elements.iter().map(|element| element.len() as u64).sum();
        self.largest_collection = self.largest_collection.max(bytes);
        Ok(elements)
    }

    fn element(&mut self, dataset: ObjectId, element: u64, start: u64, out: &mut [u8]) -> Result<(), Error> {
        out.copy_from_slice(&self.variable(dataset)[element as usize][start as usize..][..out.len()]);
        Ok(())
    }
}
