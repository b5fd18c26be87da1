//! Delete conditions: the trees in `.del` files (the format's "Delete commit file").
//!
//! The stored tree is the negation of the condition that the user gave: a cell is kept if the stored tree is true for
//! it.

use std::collections::{BTreeSet, HashMap};

use tilefs_base::error::{Error, Locate, Result};

use super::cursor::Cursor;
use super::enumeration::parse_starts;
use super::schema::ArraySchema;

/// The greatest depth that is accepted. It bounds the recursion of parsing and evaluation.
const MAX_DEPTH: usize = 256;

/// The most nodes that are accepted. A node takes more memory than its stored bytes, so the size of the file alone does
/// not bound the memory.
const MAX_NODES: usize = 1 << 20;

/// The stored bytes of the smallest node: an expression without children.
const MIN_BYTES: usize = 10;

/// A condition that is true or false for a cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// A combination of at least one child; of exactly one for [`Combination::Not`].
    Expression {
        /// How the results of the children combine.
        combination: Combination,
        /// The conditions that are combined.
        children: Vec<Condition>,
    },
    /// A comparison of a field with a value.
    Value(ValueCondition),
}

/// How the results of conditions combine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Combination {
    /// All hold.
    And,
    /// At least one holds.
    Or,
    /// The only child does not hold.
    Not,
}

/// The comparison of a cell's value with the condition's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// The cell is less than the value.
    Less,
    /// The cell is at most the value.
    LessOrEqual,
    /// The cell is greater than the value.
    Greater,
    /// The cell is at least the value.
    GreaterOrEqual,
    /// The cell equals the value.
    Equal,
    /// The cell differs from the value.
    NotEqual,
    /// The cell equals one of the values.
    In,
    /// The cell equals none of the values.
    NotIn,
    /// Every cell matches.
    AlwaysTrue,
    /// No cell matches.
    AlwaysFalse,
}

/// A comparison of one field with a value or with a set of values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueCondition {
    /// An attribute or dimension. The schema of a fragment, or the latest schema, may not have it.
    pub field: String,
    /// How cells are compared with the value.
    pub operator: Operator,
    /// Little-endian bytes in the field's type. For an attribute with an enumeration, the index of the label.
    value: Vec<u8>,
    /// The start of each member of the set in `value`; only for [`Operator::In`] and [`Operator::NotIn`].
    starts: Vec<u64>,
    /// Indexes of the members, sorted by the members' bytes.
    sorted: Vec<u32>,
}

impl ValueCondition {
    /// Returns the value to compare with. If it is empty for a fixed-size field, the condition tests for null
    /// ([`Operator::Equal`]) or for not null ([`Operator::NotEqual`]).
    pub fn value(&self) -> &[u8] {
        &self.value
    }

    /// Returns the members of the set of [`Operator::In`] and [`Operator::NotIn`], in stored order.
    pub fn members(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.starts.len()).map(|number| self.member(number))
    }

    /// Returns whether these bytes equal a member of the set, by binary search.
    pub fn has_member(&self, bytes: &[u8]) -> bool {
        self.sorted.binary_search_by(|number| self.member(*number as usize).cmp(bytes)).is_ok()
    }

    /// Returns a member by its index in stored order.
    fn member(&self, number: usize) -> &[u8] {
        let position = |number: usize| self.starts.get(number).and_then(|start| usize::try_from(*start).ok());
        let range = position(number).unwrap_or(usize::MAX)..position(number + 1).unwrap_or(self.value.len());
        self.value.get(range).unwrap_or_default()
    }

    /// Sorts the indexes of the members by the members' bytes.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for more than 2^32 - 1 members.
    fn with_sorted_members(mut self) -> Result<Self> {
        let count = u32::try_from(self.starts.len());
        let count = count.map_err(|_| Error::unsupported("a condition on a set of more than 2^32 members"))?;
        let mut sorted: Vec<u32> = (0..count).collect();
        sorted.sort_unstable_by(|a, b| self.member(*a as usize).cmp(self.member(*b as usize)));
        self.sorted = sorted;
        Ok(self)
    }
}

impl Condition {
    /// Reads the payload of a `.del` file.
    ///
    /// # Errors
    /// [`Error::Damaged`] for a tree that is malformed or deeper than 256 nodes, or does not fill the payload;
    /// [`Error::Unsupported`] for unknown operators, for more than 2^20 nodes, and for names that are not UTF-8.
    pub fn parse(payload: &[u8]) -> Result<Self> {
        let mut cursor = Cursor::new(payload);
        let condition = parse_node(&mut cursor, MAX_DEPTH, &mut 1)?;
        cursor.expect_end("end of condition")?;
        Ok(condition)
    }

    /// Returns the fields that the condition names, each once.
    pub fn fields(&self) -> BTreeSet<&str> {
        let mut fields = BTreeSet::new();
        self.add_fields(&mut fields);
        fields
    }

    fn add_fields<'a>(&'a self, fields: &mut BTreeSet<&'a str>) {
        match self {
            Condition::Expression { children, .. } => children.iter().for_each(|child| child.add_fields(fields)),
            Condition::Value(value) => {
                fields.insert(&value.field);
            }
        }
    }

    /// Checks that each value has the size of a cell of the field that it is compared with. Fields that are not in the
    /// schema are ignored.
    ///
    /// # Errors
    /// [`Error::Damaged`] for a value of another size.
    pub fn check(&self, schema: &ArraySchema) -> Result<()> {
        let dimensions = schema.dimensions.iter().map(|dimension| {
            let size = (!dimension.is_variable()).then(|| dimension.datatype.size());
            (dimension.name.as_str(), Cell { size, nullable: false })
        });
        let attributes = schema.attributes.iter().map(|attribute| {
            (attribute.name.as_str(), Cell { size: attribute.cell_size(), nullable: attribute.nullable })
        });
        self.check_cells(&dimensions.chain(attributes).collect())
    }

    fn check_cells(&self, cells: &HashMap<&str, Cell>) -> Result<()> {
        match self {
            Condition::Expression { children, .. } => children.iter().try_for_each(|child| child.check_cells(cells)),
            Condition::Value(value) => cells.get(value.field.as_str()).map_or(Ok(()), |cell| check_value(value, cell)),
        }
    }
}

/// The properties of a field that [`check_value`] needs.
struct Cell {
    /// Bytes of a cell; `None` if they vary.
    size: Option<usize>,
    nullable: bool,
}

fn check_value(condition: &ValueCondition, cell: &Cell) -> Result<()> {
    let Some(size) = cell.size else { return Ok(()) };
    let fits = match condition.operator {
        Operator::In | Operator::NotIn => condition.members().all(|member| member.len() == size),
        Operator::AlwaysTrue | Operator::AlwaysFalse => true,
        // An empty value tests for null.
        Operator::Equal | Operator::NotEqual if cell.nullable => {
            condition.value.is_empty() || condition.value.len() == size
        }
        _ => condition.value.len() == size,
    };
    if fits {
        return Ok(());
    }
    let reason = format!("condition with a value of {} bytes on cells of {size}", condition.value.len());
    Err(Error::damaged(reason).in_field(&condition.field))
}

/// Reads the tree at the cursor. `nodes` counts the nodes of the whole tree.
fn parse_node(cursor: &mut Cursor<'_>, depth_left: usize, nodes: &mut usize) -> Result<Condition> {
    match cursor.u8("node type")? {
        0 => match depth_left.checked_sub(1) {
            Some(depth_left) => parse_expression(cursor, depth_left, nodes),
            None => Err(cursor.error("node type", format!("condition deeper than {MAX_DEPTH} nodes"))),
        },
        1 => parse_value(cursor).map(Condition::Value),
        other => Err(cursor.error("node type", format!("node type {other}"))),
    }
}

fn parse_expression(cursor: &mut Cursor<'_>, depth_left: usize, nodes: &mut usize) -> Result<Condition> {
    let combination = match cursor.u8("combination")? {
        0 => Combination::And,
        1 => Combination::Or,
        2 => Combination::Not,
        other => return Err(Error::unsupported(format!("condition combination {other}"))),
    };
    let count = cursor.u64("number of nodes")?;
    let count = cursor.checked_count(count, MIN_BYTES, "number of nodes")?;
    if count == 0 || (combination == Combination::Not && count != 1) {
        return Err(cursor.error("number of nodes", format!("{combination:?} of {count} conditions")));
    }
    *nodes = nodes.saturating_add(count);
    if *nodes > MAX_NODES {
        return Err(Error::unsupported(format!("condition of more than {MAX_NODES} nodes")));
    }
    let mut children = Vec::new();
    for _ in 0..count {
        children.push(parse_node(cursor, depth_left, nodes)?);
    }
    Ok(Condition::Expression { combination, children })
}

fn parse_value(cursor: &mut Cursor<'_>) -> Result<ValueCondition> {
    let operator = match cursor.u8("operator")? {
        0 => Operator::Less,
        1 => Operator::LessOrEqual,
        2 => Operator::Greater,
        3 => Operator::GreaterOrEqual,
        4 => Operator::Equal,
        5 => Operator::NotEqual,
        6 => Operator::In,
        7 => Operator::NotIn,
        253 => Operator::AlwaysTrue,
        254 => Operator::AlwaysFalse,
        other => return Err(Error::unsupported(format!("condition operator {other}"))),
    };
    let field = cursor.text32("field")?;
    let value = cursor.str64("value")?;
    let starts = match operator {
        Operator::In | Operator::NotIn => {
            let starts = parse_starts(cursor.str64("offsets")?, value.len() as u64);
            starts.ok_or_else(|| cursor.error("offsets", format!("offsets that do not fit {} bytes", value.len())))?
        }
        _ => Vec::new(),
    };
    let condition =
        ValueCondition { field: field.to_owned(), operator, value: value.to_vec(), starts, sorted: Vec::new() };
    condition.with_sorted_members()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::fixture;
    use proptest::prelude::*;

    fn value(operator: u8, field: &str, value: &[u8], starts: Option<&[u64]>) -> Vec<u8> {
        let mut bytes = vec![1, operator];
        bytes.extend((field.len() as u32).to_le_bytes());
        bytes.extend(field.as_bytes());
        bytes.extend((value.len() as u64).to_le_bytes());
        bytes.extend(value);
        if let Some(starts) = starts {
            bytes.extend((8 * starts.len() as u64).to_le_bytes());
            bytes.extend(starts.iter().flat_map(|start| start.to_le_bytes()));
        }
        bytes
    }

    fn expression(combination: u8, children: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = vec![0, combination];
        bytes.extend((children.len() as u64).to_le_bytes());
        bytes.extend(children.concat());
        bytes
    }

    #[test]
    fn a_stored_condition() {
        // Delete where a > 20 and (b == 'red' or a in [40, 60]), negated as writers do.
        let set = value(7, "a", &[40, 0, 0, 0, 60, 0, 0, 0], Some(&[0, 4]));
        let inner = expression(0, &[value(5, "b", b"red", None), set]);
        let bytes = expression(1, &[value(1, "a", &[20, 0, 0, 0], None), inner]);
        let parsed = Condition::parse(&bytes).unwrap();
        let Condition::Expression { combination, children } = &parsed else { panic!() };
        assert_eq!((*combination, children.len()), (Combination::Or, 2));
        let Condition::Expression { combination, children } = &children[1] else { panic!() };
        assert_eq!(*combination, Combination::And);
        let Condition::Value(set) = &children[1] else { panic!() };
        assert_eq!((set.field.as_str(), set.operator), ("a", Operator::NotIn));
        assert!(parsed.fields().into_iter().eq(["a", "b"]));
        assert!(set.members().eq([&[40, 0, 0, 0], &[60, 0, 0, 0]]));
        for cut in 0..bytes.len() {
            assert!(Condition::parse(&bytes[..cut]).is_err());
        }
    }

    #[test]
    fn malformed_trees_are_refused() {
        let leaf = value(4, "a", &[0], None);
        for bytes in [
            expression(0, &[]),
            expression(3, std::slice::from_ref(&leaf)),
            expression(2, &[leaf.clone(), leaf.clone()]),
            value(8, "a", &[0], None),
            value(6, "a", &[0; 4], Some(&[0, 5])),
            value(6, "a", &[0; 4], Some(&[2])),
            value(6, "a", &[0; 4], Some(&[])),
            [leaf.clone(), vec![0]].concat(),
            vec![2],
        ] {
            assert!(Condition::parse(&bytes).is_err(), "{bytes:?}");
        }
        let mut many = expression(0, std::slice::from_ref(&leaf));
        many[2..10].copy_from_slice(&u64::MAX.to_le_bytes());
        assert!(matches!(Condition::parse(&many), Err(Error::Damaged { .. })));
    }

    #[test]
    fn depth_is_bounded() {
        let nest = |depth| (0..depth).fold(value(253, "", &[], None), |node, _| expression(2, &[node]));
        assert!(Condition::parse(&nest(MAX_DEPTH)).is_ok());
        assert!(Condition::parse(&nest(MAX_DEPTH + 1)).is_err());
        assert!(Condition::parse(&nest(3000)).is_err());
    }

    #[test]
    fn nodes_are_bounded() {
        let children = vec![expression(0, &[]); MAX_NODES];
        let error = Condition::parse(&expression(0, &children)).unwrap_err();
        assert!(matches!(error, Error::Unsupported { .. }), "{error}");
    }

    #[test]
    fn empty_sets_and_empty_members() {
        let members = |bytes: &[u8]| {
            let Condition::Value(condition) = Condition::parse(bytes).unwrap() else { panic!() };
            condition.members().map(<[u8]>::to_vec).collect::<Vec<_>>()
        };
        assert!(members(&value(6, "b", b"", Some(&[]))).is_empty());
        assert_eq!(members(&value(6, "b", b"x", Some(&[0, 0, 1]))), [b"".to_vec(), b"x".to_vec(), b"".to_vec()]);
    }

    proptest! {
        #[test]
        fn members_are_found(
            members in prop::collection::vec(prop::collection::vec(0u8..3, 0..3), 0..20),
            other in prop::collection::vec(0u8..3, 0..3),
        ) {
            let mut starts = vec![0];
            starts.extend(members.iter().scan(0, |end, member| {
                *end += member.len() as u64;
                Some(*end)
            }));
            starts.truncate(members.len());
            let parsed = Condition::parse(&value(6, "b", &members.concat(), Some(&starts))).unwrap();
            let Condition::Value(set) = parsed else { panic!() };
            prop_assert!(set.members().eq(&members));
            prop_assert!(members.iter().all(|member| set.has_member(member)));
            prop_assert_eq!(set.has_member(&other), members.contains(&other));
        }
    }

    #[test]
    fn sizes_are_checked_against_the_schema() {
        let mut schema = fixture::sparse();
        let check = |bytes: &[u8], schema: &ArraySchema| Condition::parse(bytes).unwrap().check(schema);
        assert!(check(&value(4, "a", &[0; 8], None), &schema).is_ok());
        assert!(check(&value(4, "a", &[0; 4], None), &schema).is_err());
        assert!(check(&value(4, "rows", &[0; 4], None), &schema).is_ok());
        assert!(check(&value(4, "rows", &[0; 8], None), &schema).is_err());
        assert!(check(&value(6, "rows", &[0; 8], Some(&[0, 4])), &schema).is_ok());
        assert!(check(&value(6, "rows", &[0; 8], Some(&[0, 3])), &schema).is_err());
        assert!(check(&value(4, "b", b"any", None), &schema).is_ok());
        assert!(check(&value(4, "gone", &[0; 3], None), &schema).is_ok());
        assert!(check(&expression(0, &[value(4, "a", &[0; 4], None)]), &schema).is_err());
        assert!(check(&value(5, "a", &[], None), &schema).is_err());
        schema.attributes[0].nullable = true;
        assert!(check(&value(5, "a", &[], None), &schema).is_ok());
        assert!(check(&value(0, "a", &[], None), &schema).is_err());
    }

    proptest! {
        #[test]
        fn never_panics(bytes in prop::collection::vec(prop_oneof![3 => 0u8..4, 1 => any::<u8>()], 0..80)) {
            let _ = Condition::parse(&bytes);
        }
    }
}
