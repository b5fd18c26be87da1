//! Reads XML from front to back, in time and memory that its length bounds.
//!
//! Whoever reads an XML text, stored or received, reads it with an [`XmlReader`], which has the limits of all of them.
//! The reader keeps the names of the elements that are open and the namespaces that these declare, and nothing else. It
//! asks before each part of the text whether to go on. Document types are refused: they define entities, which may stand
//! for more text than there is.

use std::borrow::Cow;
use std::collections::HashSet;
use std::collections::hash_map::{Entry, HashMap};
use std::ops::Range;

use quick_xml::XmlVersion;
use quick_xml::escape::resolve_xml_entity;
use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::name::QName;

use crate::error::{Error, Result};

/// Maximum length of a text in bytes.
pub const MAX_LENGTH: usize = 64 << 20;

/// Maximum number of elements that are open at once.
pub const MAX_DEPTH: usize = 256;

/// Maximum number of attributes of one element.
pub const MAX_ATTRIBUTES: usize = 256;

/// Maximum number of elements of one text.
pub const MAX_ELEMENTS: u64 = 1 << 22;

/// The namespace of the prefix `xml`, which needs no declaration.
const XML: &str = "http://www.w3.org/XML/1998/namespace";

/// The start of an element.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct XmlElement<'t> {
    name: &'t str,
    attributes: Vec<(String, String)>,
    /// Number of elements around it.
    depth: usize,
    start: usize,
    /// Where its content begins.
    content: usize,
}

/// A reader of one text. Elements are read in the order of the text: reading the next child of an element passes over
/// what is left of the last one.
pub struct XmlReader<'t> {
    text: &'t str,
    reader: quick_xml::Reader<&'t [u8]>,
    /// Asked before each part of the text.
    check: fn() -> Result<()>,
    depth: usize,
    elements: u64,
    /// Where the part that was read last begins.
    part: usize,
    namespaces: Namespaces,
}

/// What one part of the text is.
enum Part<'t> {
    Start(XmlElement<'t>),
    End,
    Text(Cow<'t, str>),
    Other,
    Eof,
}

impl<'t> XmlElement<'t> {
    /// Returns the name without a prefix.
    pub fn name(&self) -> &'t str {
        local(self.name)
    }

    /// Returns the attributes, without declarations of namespaces, by their names with prefixes.
    pub fn attributes(&self) -> impl Iterator<Item = (&str, &str)> {
        let all = self.attributes.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        all.filter(|(name, _)| declared_prefix(name).is_none())
    }

    /// Returns the value of an attribute by its name without a prefix, in upper or lower case.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes().find(|(known, _)| local(known).eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

impl<'t> XmlReader<'t> {
    /// Creates a reader. `check` is asked before each part of the text, and ends the reading with its error.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the text is too long.
    pub fn new(text: &'t str, check: fn() -> Result<()>) -> Result<Self> {
        if text.len() > MAX_LENGTH {
            return Err(Error::unsupported(format!("XML of more than {MAX_LENGTH} bytes")));
        }
        // The library does not count the bytes of a byte order mark.
        let text = text.trim_start_matches('\u{FEFF}');
        let mut reader = quick_xml::Reader::from_str(text);
        let config = reader.config_mut();
        (config.check_comments, config.expand_empty_elements) = (true, true);
        Ok(XmlReader { text, reader, check, depth: 0, elements: 0, part: 0, namespaces: Namespaces::default() })
    }

    /// Returns the element that contains all others.
    ///
    /// # Errors
    /// [`Error::Damaged`] with the offset if the text is not well-formed, [`Error::Unsupported`] beyond a limit, and
    /// those of `check`.
    pub fn root(&mut self) -> Result<XmlElement<'t>> {
        loop {
            match self.next_part()? {
                Part::Start(element) => return Ok(element),
                Part::Text(text) if text.trim().is_empty() => {}
                Part::Other => {}
                Part::Text(_) => return Err(self.malformed("text outside of the root element")),
                Part::End | Part::Eof => return Err(self.malformed("there is no element")),
            }
        }
    }

    /// Returns the next element of this name without a prefix, wherever it is; `None` if there is none.
    ///
    /// # Errors
    /// As for [`XmlReader::root`].
    pub fn find(&mut self, name: &str) -> Result<Option<XmlElement<'t>>> {
        loop {
            match self.next_part()? {
                Part::Start(element) if element.name() == name => return Ok(Some(element)),
                Part::Eof => return Ok(None),
                _ => {}
            }
        }
    }

    /// Returns the next element within `parent`, which is open; `None` after the last one. Passes over text.
    ///
    /// # Errors
    /// As for [`XmlReader::root`].
    pub fn child(&mut self, parent: &XmlElement<'t>) -> Result<Option<XmlElement<'t>>> {
        while self.depth > parent.depth {
            let is_own = self.depth == parent.depth + 1;
            match self.next_part()? {
                Part::Start(element) if is_own => return Ok(Some(element)),
                Part::Eof => return Err(self.malformed("an element has no end")),
                _ => {}
            }
        }
        Ok(None)
    }

    /// Returns the text within `element`, which was read last, without that of elements in it.
    ///
    /// # Errors
    /// As for [`XmlReader::root`].
    pub fn text(&mut self, element: &XmlElement<'t>) -> Result<String> {
        let mut all = String::new();
        while self.depth > element.depth {
            let is_own = self.depth == element.depth + 1;
            match self.next_part()? {
                Part::Text(text) if is_own => all.push_str(&text),
                Part::Eof => return Err(self.malformed("an element has no end")),
                _ => {}
            }
        }
        Ok(all)
    }

    /// Passes over what is left of `element`. Returns the text of the whole element, and the text between its tags.
    ///
    /// # Errors
    /// As for [`XmlReader::root`].
    pub fn source(&mut self, element: &XmlElement<'t>) -> Result<(&'t str, &'t str)> {
        while self.depth > element.depth {
            if matches!(self.next_part()?, Part::Eof) {
                return Err(self.malformed("an element has no end"));
            }
        }
        let end = self.position();
        let inner = element.content..self.part.max(element.content);
        let of = |range: Range<usize>| self.text.get(range).unwrap_or_default();
        Ok((of(element.start..end), of(inner)))
    }

    /// Reads what is left of the text, which proves that all of it is well-formed.
    ///
    /// # Errors
    /// As for [`XmlReader::root`].
    pub fn finish(mut self) -> Result<()> {
        while self.depth > 0 {
            if matches!(self.next_part()?, Part::Eof) {
                return Err(self.malformed("an element has no end"));
            }
        }
        loop {
            match self.next_part()? {
                Part::Eof => return Ok(()),
                Part::Text(text) if text.trim().is_empty() => {}
                Part::Other => {}
                _ => return Err(self.malformed("something after the root element")),
            }
        }
    }

    /// Returns the namespace of an element that is open, empty if it is in none; `None` if its prefix is not declared.
    pub fn namespace(&self, element: &XmlElement<'_>) -> Option<&str> {
        match element.name.split_once(':') {
            Some((prefix, _)) => self.namespaces.of(prefix),
            None => Some(self.namespaces.of("").unwrap_or_default()),
        }
    }

    fn next_part(&mut self) -> Result<Part<'t>> {
        (self.check)()?;
        self.part = self.position();
        let event = self.reader.read_event().map_err(|error| self.malformed(&error.to_string()))?;
        match event {
            // With `expand_empty_elements`, an empty element has a start and an end.
            Event::Start(start) | Event::Empty(start) => self.start(&start).map(Part::Start),
            Event::End(_) => {
                self.depth = self.depth.saturating_sub(1);
                self.namespaces.leave(self.depth);
                Ok(Part::End)
            }
            Event::Text(_) => {
                let text = self.text.get(self.part..self.position()).unwrap_or_default();
                self.check_characters(text)?;
                if text.contains("]]>") {
                    return Err(self.malformed("]]> in a text"));
                }
                Ok(Part::Text(line_ends(text)))
            }
            Event::CData(data) => {
                let text = data.decode().map_err(|error| self.malformed(&error.to_string()))?.into_owned();
                self.check_characters(&text)?;
                Ok(Part::Text(Cow::Owned(line_ends(&text).into_owned())))
            }
            Event::GeneralRef(reference) => self.reference(&reference).map(Part::Text),
            Event::DocType(_) => Err(Error::unsupported("XML with a document type")),
            Event::Comment(_) | Event::PI(_) | Event::Decl(_) => {
                self.check_characters(self.text.get(self.part..self.position()).unwrap_or_default())?;
                Ok(Part::Other)
            }
            Event::Eof => Ok(Part::Eof),
        }
    }

    fn start(&mut self, start: &BytesStart<'_>) -> Result<XmlElement<'t>> {
        self.elements += 1;
        if self.depth >= MAX_DEPTH {
            return Err(Error::unsupported(format!("XML with more than {MAX_DEPTH} elements within each other")));
        }
        if self.elements > MAX_ELEMENTS {
            return Err(Error::unsupported(format!("XML with more than {MAX_ELEMENTS} elements")));
        }
        self.check_characters(self.text.get(self.part..self.position()).unwrap_or_default())?;
        // The name begins after the bracket.
        let name = self.part + 1..self.part + 1 + start.name().as_ref().len();
        let name =
            self.text.get(name).filter(|name| is_name(name)).ok_or_else(|| self.malformed("a tag has no name"))?;
        let attributes = self.attributes(start)?;
        let element = XmlElement { name, attributes, depth: self.depth, start: self.part, content: self.position() };
        self.namespaces.enter(self.depth, &element.attributes);
        self.depth += 1;
        Ok(element)
    }

    fn attributes(&self, start: &BytesStart<'_>) -> Result<Vec<(String, String)>> {
        let (mut all, mut names) = (Vec::new(), HashSet::new());
        // The library compares each name with all before it.
        for attribute in start.attributes().with_checks(false) {
            (self.check)()?;
            let attribute = attribute.map_err(|error| self.malformed(&error.to_string()))?;
            if all.len() >= MAX_ATTRIBUTES {
                return Err(Error::unsupported(format!("an XML element with more than {MAX_ATTRIBUTES} attributes")));
            }
            let QName(name) = attribute.key;
            let name = std::str::from_utf8(name).ok().filter(|name| is_name(name));
            let name = name.ok_or_else(|| self.malformed("an attribute has no name"))?.to_owned();
            if attribute.value.contains(&b'<') {
                return Err(self.malformed("a value contains <"));
            }
            let value = attribute.normalized_value(XmlVersion::Explicit1_0);
            let value = value.map_err(|error| self.malformed(&error.to_string()))?.into_owned();
            self.check_characters(&value)?;
            if !names.insert(name.clone()) {
                return Err(self.malformed("an attribute occurs twice"));
            }
            all.push((name, value));
        }
        Ok(all)
    }

    /// Returns the text that a reference stands for: a character by its number, or one of the five that XML names.
    fn reference(&self, reference: &BytesRef<'_>) -> Result<Cow<'t, str>> {
        let failed = |error: &dyn std::fmt::Display| self.malformed(&error.to_string());
        if let Some(character) = reference.resolve_char_ref().map_err(|error| failed(&error))? {
            let text = String::from(character);
            self.check_characters(&text)?;
            return Ok(Cow::Owned(text));
        }
        let name = reference.decode().map_err(|error| failed(&error))?;
        resolve_xml_entity(&name).map(Cow::Borrowed).ok_or_else(|| self.malformed("an entity that XML does not define"))
    }

    fn check_characters(&self, text: &str) -> Result<()> {
        let is_allowed = |c: char| matches!(c, '\t' | '\n' | '\r') || c >= ' ' && !matches!(c, '\u{FFFE}' | '\u{FFFF}');
        match text.chars().all(is_allowed) {
            true => Ok(()),
            false => Err(self.malformed("a character that XML does not allow")),
        }
    }

    fn position(&self) -> usize {
        usize::try_from(self.reader.buffer_position()).unwrap_or(usize::MAX)
    }

    fn malformed(&self, reason: &str) -> Error {
        Error::damaged(format!("malformed XML at byte {}: {reason}", self.part))
    }
}

/// The namespaces of the elements that are open.
#[derive(Default)]
struct Namespaces {
    /// By prefix, the innermost last.
    by_prefix: HashMap<String, Vec<String>>,
    /// The prefixes that elements declare, with the depth of the element, the innermost last.
    declared: Vec<(usize, String)>,
}

impl Namespaces {
    fn enter(&mut self, depth: usize, attributes: &[(String, String)]) {
        for (name, namespace) in attributes {
            if let Some(prefix) = declared_prefix(name) {
                self.by_prefix.entry(prefix.to_owned()).or_default().push(namespace.clone());
                self.declared.push((depth, prefix.to_owned()));
            }
        }
    }

    /// Forgets what an element declared that ends.
    fn leave(&mut self, depth: usize) {
        while let Some((_, prefix)) = self.declared.pop_if(|(declared, _)| *declared >= depth) {
            if let Entry::Occupied(mut all) = self.by_prefix.entry(prefix) {
                all.get_mut().pop();
                if all.get().is_empty() {
                    all.remove();
                }
            }
        }
    }

    fn of(&self, prefix: &str) -> Option<&str> {
        let declared = self.by_prefix.get(prefix).and_then(|all| all.last());
        declared.map(String::as_str).or((prefix == "xml").then_some(XML))
    }
}

/// Returns the prefix that an attribute of this name declares; empty for the namespace of names without a prefix.
fn declared_prefix(name: &str) -> Option<&str> {
    name.strip_prefix("xmlns:").or((name == "xmlns").then_some(""))
}

fn local(name: &str) -> &str {
    name.rsplit_once(':').map_or(name, |(_, local)| local)
}

/// Returns whether XML allows a name: letters, digits and some signs, which do not begin it.
fn is_name(name: &str) -> bool {
    let is_start = |c: char| c.is_alphabetic() || c == '_' || c == ':';
    name.starts_with(is_start) && name.chars().all(|c| is_start(c) || c.is_alphanumeric() || "-.\u{B7}".contains(c))
}

/// Returns a text in which lines end as XML's do.
fn line_ends(text: &str) -> Cow<'_, str> {
    match text.contains('\r') {
        true => Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n")),
        false => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        static STEPS: Cell<u64> = const { Cell::new(0) };
    }

    fn count() -> Result<()> {
        STEPS.set(STEPS.get() + 1);
        Ok(())
    }

    /// Reads all of a text, and returns the names with their depths.
    fn names(text: &str) -> Result<Vec<(usize, String)>> {
        fn within<'t>(
            reader: &mut XmlReader<'t>,
            element: &XmlElement<'t>,
            all: &mut Vec<(usize, String)>,
        ) -> Result<()> {
            all.push((element.depth, element.name().to_owned()));
            while let Some(child) = reader.child(element)? {
                within(reader, &child, all)?;
            }
            Ok(())
        }
        let (mut reader, mut all) = (XmlReader::new(text, count)?, Vec::new());
        let root = reader.root()?;
        within(&mut reader, &root, &mut all)?;
        reader.finish()?;
        Ok(all)
    }

    #[test]
    fn elements_are_read_in_their_order() {
        let text = "\u{FEFF}<?xml version='1.0'?><!-- c --><a><b/>t<b:c><d/></b:c></a>\n";
        let found = names(text).unwrap();
        let found: Vec<(usize, &str)> = found.iter().map(|(depth, name)| (*depth, name.as_str())).collect();
        assert_eq!(found, [(0, "a"), (1, "b"), (1, "c"), (2, "d")]);
    }

    #[test]
    fn texts_and_attributes_are_decoded() {
        let text = "<a B='1 &lt;\n&#65;' c:d=\"2\" xmlns:c='u'>x&amp;<e>no</e><![CDATA[<y>]]>\r\nz</a>";
        let mut reader = XmlReader::new(text, count).unwrap();
        let root = reader.root().unwrap();
        assert_eq!(root.attributes().collect::<Vec<_>>(), [("B", "1 < A"), ("c:d", "2")]);
        assert_eq!((root.attribute("b"), root.attribute("D"), root.attribute("e")), (Some("1 < A"), Some("2"), None));
        assert_eq!(reader.text(&root).unwrap(), "x&<y>\nz");
        reader.finish().unwrap();
    }

    #[test]
    fn sources_are_those_of_the_text() {
        let text = "<a> <b c='d'>x<e/><!-- f --></b><g/><h></h></a>";
        let mut reader = XmlReader::new(text, count).unwrap();
        let root = reader.root().unwrap();
        let mut sources = Vec::new();
        while let Some(child) = reader.child(&root).unwrap() {
            sources.push(reader.source(&child).unwrap());
        }
        let first = ("<b c='d'>x<e/><!-- f --></b>", "x<e/><!-- f -->");
        assert_eq!(sources, [first, ("<g/>", ""), ("<h></h>", "")]);
    }

    #[test]
    fn namespaces_are_those_of_the_elements_around() {
        let text = "<a xmlns='u' xmlns:p='v'><p:b xmlns:p='w' xmlns=''><c/></p:b><p:d/><q:e/><xml:f/></a>";
        let mut reader = XmlReader::new(text, count).unwrap();
        let root = reader.root().unwrap();
        assert_eq!(reader.namespace(&root), Some("u"));
        let b = reader.child(&root).unwrap().unwrap();
        assert_eq!(reader.namespace(&b), Some("w"));
        let c = reader.child(&b).unwrap().unwrap();
        assert_eq!(reader.namespace(&c), Some(""));
        let d = reader.child(&root).unwrap().unwrap();
        assert_eq!((reader.namespace(&d), d.name()), (Some("v"), "d"));
        let e = reader.child(&root).unwrap().unwrap();
        assert_eq!(reader.namespace(&e), None);
        let f = reader.child(&root).unwrap().unwrap();
        assert_eq!(reader.namespace(&f), Some(XML));
    }

    #[test]
    fn malformed_texts_are_refused() {
        let all = [
            "",
            "<",
            "text",
            "<a>",
            "<a></b>",
            "</a>",
            "<a/><b/>",
            "<a/>x",
            "x<a/>",
            "<a>&b;</a>",
            "<a b='&c;'/>",
            "<a b=c/>",
            "<a b='1' b='2'/>",
            "<a b='<'/>",
            "<a>\u{1}</a>",
            "<a>&#1;</a>",
            "<a b='&#0;'/>",
            "<a>]]></a>",
            "<1/>",
            "< a/>",
            "<a><!-- -- --></a>",
            "<a 1='2'/>",
            "<!DOCTYPE a [<!ENTITY b 'c'>]><a/>",
            "<a b/>",
            "<a>&</a>",
            "<a b='\u{FFFF}'/>",
        ];
        for text in all {
            assert!(names(text).is_err(), "{text}");
        }
    }

    #[test]
    fn limits_are_kept() {
        let nested = |depth: usize| format!("{}{}", "<a>".repeat(depth), "</a>".repeat(depth));
        assert_eq!(names(&nested(MAX_DEPTH)).unwrap().len(), MAX_DEPTH);
        assert!(names(&nested(MAX_DEPTH + 1)).is_err());
        let attributes = |count: usize| format!("<a {}/>", (0..count).map(|n| format!("a{n}='' ")).collect::<String>());
        assert!(names(&attributes(MAX_ATTRIBUTES)).is_ok());
        assert!(names(&attributes(MAX_ATTRIBUTES + 1)).is_err());
        assert!(XmlReader::new(&" ".repeat(MAX_LENGTH + 1), count).is_err());
    }

    #[test]
    fn reading_ends_when_nobody_waits() {
        fn gone() -> Result<()> {
            STEPS.set(STEPS.get() + 1);
            if STEPS.get() > 10 { Err(Error::Cancelled) } else { Ok(()) }
        }
        let text = format!("<a>{}</a>", "<b/>".repeat(1000));
        STEPS.set(0);
        let mut reader = XmlReader::new(&text, gone).unwrap();
        let root = reader.root().unwrap();
        assert!(reader.text(&root).unwrap_err().is_cancelled());
        assert_eq!(STEPS.get(), 11);
    }
}
